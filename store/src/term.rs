//! RDF terms as self-contained bytes, as an uncommitted transaction stores them.
//!
//! A kind byte is followed by an IRI, a blank node's identifier or a plain string, to the end. For other
//! literals it is followed by the language tag or the datatype's IRI with its length, and then the value to
//! the end. The default graph is empty.
use crate::Error;
use crate::varint::{self, Input};
use oxrdf::vocab::xsd;
use oxrdf::{
    BlankNodeRef, GraphName, GraphNameRef, LiteralRef, NamedNode, NamedNodeRef, NamedOrBlankNode,
    Term, TermRef,
};

/// The kinds of terms. The journal and the index store these numbers.
pub(crate) mod kind {
    pub(crate) const IRI: u8 = 0;
    pub(crate) const BLANK: u8 = 1;
    pub(crate) const STRING: u8 = 2;
    pub(crate) const LANGUAGE: u8 = 3;
    pub(crate) const TYPED: u8 = 4;
}

/// The maximum length of an IRI, blank node identifier, language tag or document key, in bytes.
pub(crate) const MAX_NAME_BYTES: usize = 1 << 16;

/// A literal by its kind.
pub(crate) enum LiteralParts<'a> {
    String(&'a str),
    Language(&'a str, &'a str),
    Typed(NamedNodeRef<'a>, &'a str),
}

pub(crate) fn split_literal(literal: LiteralRef<'_>) -> LiteralParts<'_> {
    match literal.language() {
        Some(language) => LiteralParts::Language(language, literal.value()),
        None if literal.datatype() == xsd::STRING => LiteralParts::String(literal.value()),
        None => LiteralParts::Typed(literal.datatype(), literal.value()),
    }
}

/// Refuses a name that is too long for an index entry.
pub(crate) fn check_length(name: &[u8]) -> Result<(), Error> {
    if name.len() > MAX_NAME_BYTES {
        return Err(Error::TooLarge { bytes: name.len() as u64, limit: MAX_NAME_BYTES as u64 });
    }
    Ok(())
}

/// The maximum length of a term in an error, in characters.
const MAX_SHOWN_CHARACTERS: usize = 200;

/// Checks that the store can keep a term.
///
/// # Errors
/// [`Error::UnsupportedTerm`] for a term that only RDF 1.2 has.
pub fn check_supported(term: TermRef<'_>) -> Result<(), Error> {
    let kind = match term {
        TermRef::Triple(_) => "a triple term",
        TermRef::Literal(literal) if literal.direction().is_some() => {
            "a text with a base direction"
        }
        _ => return Ok(()),
    };
    let mut shown = term.to_string();
    if let Some((end, _)) = shown.char_indices().nth(MAX_SHOWN_CHARACTERS) {
        shown.replace_range(end.., "...");
    }
    Err(Error::UnsupportedTerm { term: shown, kind })
}

/// Encodes a term.
///
/// # Errors
/// - `Error::TooLarge` for a name that is too long
/// - `Error::UnsupportedTerm` for a term that only RDF 1.2 has
pub(crate) fn encode(out: &mut Vec<u8>, term: TermRef<'_>) -> Result<(), Error> {
    check_supported(term)?;
    match term {
        TermRef::NamedNode(iri) => {
            check_length(iri.as_str().as_bytes())?;
            out.push(kind::IRI);
            out.extend_from_slice(iri.as_str().as_bytes());
        }
        TermRef::BlankNode(node) => {
            check_length(node.as_str().as_bytes())?;
            out.push(kind::BLANK);
            out.extend_from_slice(node.as_str().as_bytes());
        }
        TermRef::Literal(literal) => match split_literal(literal) {
            LiteralParts::String(value) => {
                out.push(kind::STRING);
                out.extend_from_slice(value.as_bytes());
            }
            LiteralParts::Language(language, value) => {
                check_length(language.as_bytes())?;
                out.push(kind::LANGUAGE);
                varint::write_bytes(out, language.as_bytes());
                out.extend_from_slice(value.as_bytes());
            }
            LiteralParts::Typed(datatype, value) => {
                check_length(datatype.as_str().as_bytes())?;
                out.push(kind::TYPED);
                varint::write_bytes(out, datatype.as_str().as_bytes());
                out.extend_from_slice(value.as_bytes());
            }
        },
        TermRef::Triple(_) => {}
    }
    Ok(())
}

/// Decodes a term. Returns `None` if the bytes are not a term.
pub(crate) fn decode(bytes: &[u8]) -> Option<TermRef<'_>> {
    let mut input = Input::new(bytes);
    let kind = input.read_byte()?;
    let text = |bytes| std::str::from_utf8(bytes).ok();
    Some(match kind {
        kind::IRI => NamedNodeRef::new_unchecked(text(input.rest())?).into(),
        kind::BLANK => BlankNodeRef::new_unchecked(text(input.rest())?).into(),
        kind::STRING => LiteralRef::new_simple_literal(text(input.rest())?).into(),
        kind::LANGUAGE => {
            let language = input.read_text()?;
            let value = text(input.rest())?;
            LiteralRef::new_language_tagged_literal_unchecked(value, language).into()
        }
        kind::TYPED => {
            let datatype = NamedNodeRef::new_unchecked(input.read_text()?);
            LiteralRef::new_typed_literal(text(input.rest())?, datatype).into()
        }
        _ => return None,
    })
}

/// Returns the graph as a term; `None` for the default graph.
pub(crate) fn graph_to_term(graph: GraphNameRef<'_>) -> Option<TermRef<'_>> {
    match graph {
        GraphNameRef::NamedNode(iri) => Some(iri.into()),
        GraphNameRef::BlankNode(node) => Some(node.into()),
        GraphNameRef::DefaultGraph => None,
    }
}

/// Converts a term into a subject; `None` if it is neither an IRI nor a blank node.
pub(crate) fn to_subject(term: Term) -> Option<NamedOrBlankNode> {
    match term {
        Term::NamedNode(iri) => Some(iri.into()),
        Term::BlankNode(node) => Some(node.into()),
        Term::Literal(_) | Term::Triple(_) => None,
    }
}

/// Converts a term into a predicate; `None` if it is not an IRI.
pub(crate) fn to_predicate(term: Term) -> Option<NamedNode> {
    if let Term::NamedNode(iri) = term { Some(iri) } else { None }
}

/// Converts a term into a graph; `None` if it is neither an IRI nor a blank node.
pub(crate) fn to_graph(term: Term) -> Option<GraphName> {
    match term {
        Term::NamedNode(iri) => Some(iri.into()),
        Term::BlankNode(node) => Some(node.into()),
        Term::Literal(_) | Term::Triple(_) => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use oxrdf::{BaseDirection, Literal, Triple};

    #[test]
    fn terms_of_rdf_1_2_are_refused() {
        let node = NamedNode::new_unchecked("http://a/p");
        let triple = Triple::new(node.clone(), node.clone(), Literal::from("x".repeat(1000)));
        let directional = Literal::new_directional_language_tagged_literal_unchecked(
            "x",
            "en",
            BaseDirection::Ltr,
        );
        for (term, kind) in [
            (Term::from(triple), "a triple term"),
            (directional.into(), "a text with a base direction"),
        ] {
            let error = encode(&mut Vec::new(), term.as_ref()).unwrap_err();
            let message = error.to_string();
            assert!(message.contains(kind) && message.len() < 400, "{message}");
        }
        encode(&mut Vec::new(), TermRef::from(node.as_ref())).unwrap();
    }
}
