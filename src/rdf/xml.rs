//! Finds triples that RDF/XML cannot represent, and escapes what its writer does not escape.
use oxrdf::vocab::rdf;
use oxrdf::{TermRef, TripleRef};
use std::io::{self, Write};

/// The names in the namespace of RDF that have a meaning of their own, so that no property can be an element of this name
/// (RDF/XML, 6.2.5 to 6.2.8): `coreSyntaxTerms`, `oldTerms`, `rdf:Description`, and `rdf:li`, which is numbered.
const SYNTAX_NAMES: [&str; 12] = [
    "RDF",
    "ID",
    "about",
    "parseType",
    "resource",
    "nodeID",
    "datatype",
    "aboutEach",
    "aboutEachPrefix",
    "bagID",
    "Description",
    "li",
];
const RDF: &str = "http://www.w3.org/1999/02/22-rdf-syntax-ns#";

/// Returns why this triple cannot be written as RDF/XML and read back unchanged.
pub(crate) fn find_refusal(triple: TripleRef<'_>) -> Option<String> {
    let TripleRef { subject, predicate, object } = triple;
    if let Some(why) = find_name_refusal(predicate.as_str()) {
        return Some(format!("RDF/XML cannot write the predicate {predicate}, because {why}"));
    }
    match object {
        // A type may become the name of an element.
        TermRef::NamedNode(class) if predicate == rdf::TYPE => {
            let why = find_name_refusal(class.as_str())?;
            Some(format!("RDF/XML cannot write the type {class}, because {why}"))
        }
        TermRef::Literal(literal) => {
            let c = find_non_xml_char(literal.value())?;
            Some(format!(
                "RDF/XML cannot write the character {c:?}, which occurs in a value of {subject} {predicate}"
            ))
        }
        _ => None,
    }
}

/// Returns the first character of a text that XML 1.0 does not allow (`Char`).
pub fn find_non_xml_char(text: &str) -> Option<char> {
    let is_allowed = |c: char| matches!(c, '\t' | '\n' | '\r' | ' '..='\u{d7ff}' | '\u{e000}'..='\u{fffd}' | '\u{10000}'..);
    text.chars().find(|c| !is_allowed(*c))
}

/// Returns why an IRI cannot become the name of an XML element.
fn find_name_refusal(iri: &str) -> Option<&'static str> {
    let name_length: usize =
        iri.chars().rev().take_while(|c| is_name_char(*c)).map(char::len_utf8).sum();
    let (base, end) = iri.split_at(iri.len() - name_length);
    let Some((at, _)) = end.char_indices().find(|(_, c)| is_name_start_char(*c)) else {
        return Some("it does not end with a name");
    };
    let (namespace, name) = iri.split_at(base.len() + at);
    if namespace.is_empty() {
        return Some("it has no namespace");
    }
    if namespace.starts_with("http://www.w3.org/2000/xmlns")
        || namespace.starts_with("http://www.w3.org/XML/1998")
    {
        return Some("XML reserves its namespace");
    }
    let is_syntax = namespace == RDF && SYNTAX_NAMES.contains(&name);
    is_syntax.then_some("RDF/XML uses its name for the syntax")
}

/// Returns whether a name may begin with a character (Namespaces in XML 1.0, `NCName`; XML 1.0, `NameStartChar`).
fn is_name_start_char(c: char) -> bool {
    matches!(
        c,
        'A'..='Z' | '_' | 'a'..='z'
            | '\u{c0}'..='\u{d6}' | '\u{d8}'..='\u{f6}' | '\u{f8}'..='\u{2ff}'
            | '\u{370}'..='\u{37d}' | '\u{37f}'..='\u{1fff}' | '\u{200c}'..='\u{200d}'
            | '\u{2070}'..='\u{218f}' | '\u{2c00}'..='\u{2fef}' | '\u{3001}'..='\u{d7ff}'
            | '\u{f900}'..='\u{fdcf}' | '\u{fdf0}'..='\u{fffd}' | '\u{10000}'..='\u{effff}'
    )
}

/// Returns whether a name may contain a character (`NameChar` without the colon).
fn is_name_char(c: char) -> bool {
    is_name_start_char(c)
        || matches!(
            c,
            '-' | '.' | '0'..='9' | '\u{b7}' | '\u{300}'..='\u{36f}' | '\u{203f}'..='\u{2040}'
        )
}

/// Writes a carriage return as a character reference, because XML would read it as a line feed.
#[derive(Debug)]
pub struct ReferenceWriter<W>(pub W);

impl<W: Write> Write for ReferenceWriter<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let mut pieces = bytes.split(|byte| *byte == b'\r');
        self.0.write_all(pieces.next().unwrap_or_default())?;
        for piece in pieces {
            self.0.write_all(b"&#13;")?;
            self.0.write_all(piece)?;
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.flush()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_needed_at_the_end() {
        for good in [
            "http://a.example/b",
            "urn:a:b1",
            "http://a.example/#x-1",
            "http://a.example/9z",
            "http://a.example/ü",
            "http://a.example/größe",
        ] {
            assert_eq!(find_name_refusal(good), None, "{good}");
        }
        for bad in [
            "http://a.example/",
            "urn:a:1",
            "http://www.w3.org/2000/xmlns/a",
            "http://www.w3.org/1999/02/22-rdf-syntax-ns#li",
        ] {
            assert!(find_name_refusal(bad).is_some(), "{bad}");
        }
    }

    #[test]
    fn carriage_returns_are_references() {
        let mut out = ReferenceWriter(Vec::new());
        out.write_all(b"a\rb\n\r").unwrap();
        assert_eq!(out.0, b"a&#13;b\n&#13;");
    }
}
