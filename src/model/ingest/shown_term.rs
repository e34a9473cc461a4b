//! Stored values in messages.
use super::findings::quote_excerpt;
use oxrdf::Term;
use oxrdf::vocab::xsd;

/// Formats a value for a message, as the JSON has it.
pub(super) fn format_value(term: &Term) -> String {
    let excerpt = quote_excerpt(term_text(term));
    match term {
        Term::Literal(literal)
            if [xsd::INTEGER, xsd::DECIMAL, xsd::DOUBLE, xsd::BOOLEAN]
                .contains(&literal.datatype()) =>
        {
            excerpt.replace('"', "")
        }
        _ => excerpt,
    }
}

/// Formats two different values for a message. If their excerpts are equal, the texts show where the values differ.
pub(super) fn format_both(one: &Term, other: &Term) -> (String, String) {
    let shown = (format_value(one), format_value(other));
    if shown.0 != shown.1 {
        return shown;
    }
    let texts = (term_text(one), term_text(other));
    if texts.0 == texts.1 {
        return (
            format!("{} ({})", shown.0, describe_type(one)),
            format!("{} ({})", shown.1, describe_type(other)),
        );
    }
    // Both excerpts end before the texts differ.
    let same = texts.0.chars().zip(texts.1.chars()).take_while(|(a, b)| a == b).count();
    let end = |text: &str| {
        let end: String = text.chars().skip(same.saturating_sub(20)).collect();
        format!("...{}", quote_excerpt(&end))
    };
    (end(texts.0), end(texts.1))
}

fn term_text(term: &Term) -> &str {
    match term {
        Term::NamedNode(iri) => iri.as_str(),
        Term::Literal(literal) => literal.value(),
        Term::BlankNode(node) => node.as_str(),
        // The store refuses it.
        Term::Triple(_) => "a triple term",
    }
}

fn describe_type(term: &Term) -> String {
    let Term::Literal(literal) = term else { return "an IRI".to_owned() };
    let datatype = literal.datatype().as_str();
    match (literal.language(), datatype.strip_prefix("http://www.w3.org/2001/XMLSchema#")) {
        (Some(language), _) => format!("in the language {language}"),
        (None, Some(name)) => format!("xsd:{name}"),
        (None, None) => format!("<{datatype}>"),
    }
}
