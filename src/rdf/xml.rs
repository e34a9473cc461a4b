//! Finds quads that RDF/XML cannot represent, and escapes what its writer does not escape.
use oxrdf::vocab::rdf;
use oxrdf::{Quad, Term};
use std::io::{self, Write};

/// Returns why this quad cannot be written as RDF/XML and read back unchanged.
pub(super) fn find_refusal(quad: &Quad) -> Option<String> {
    if !is_qualified(quad.predicate.as_str()) {
        return Some(format!(
            "RDF/XML cannot write the predicate {}, because it does not end with a name",
            quad.predicate
        ));
    }
    match &quad.object {
        // A type may become the name of an element.
        Term::NamedNode(class) if quad.predicate == rdf::TYPE && !is_qualified(class.as_str()) => {
            Some(format!(
                "RDF/XML cannot write the type {class}, because it does not end with a name"
            ))
        }
        Term::Literal(literal) => {
            let c = literal.value().chars().find(|c| !is_xml_char(*c))?;
            Some(format!(
                "RDF/XML cannot write the character {c:?}, which occurs in a value of {} {}",
                quad.subject, quad.predicate
            ))
        }
        _ => None,
    }
}

/// Returns whether XML 1.0 allows a character (`Char`).
fn is_xml_char(c: char) -> bool {
    matches!(c, '\t' | '\n' | '\r' | ' '..='\u{d7ff}' | '\u{e000}'..='\u{fffd}' | '\u{10000}'..)
}

/// Returns whether an IRI can be split into the namespace and the name of an XML element.
fn is_qualified(iri: &str) -> bool {
    let is_part = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.');
    let base = iri.trim_end_matches(is_part);
    let name = iri.get(base.len()..).unwrap_or_default();
    let starts = |c: char| c.is_ascii_alphabetic() || c == '_';
    let (Some(at), true) = (name.find(starts), !base.is_empty()) else { return false };
    // XML counts a non-ASCII letter before the name as part of the name.
    let ends_in_ascii = base.chars().next_back().is_some_and(|c| c.is_ascii());
    let namespace = iri.get(..base.len() + at).unwrap_or_default();
    ends_in_ascii
        && !namespace.starts_with("http://www.w3.org/2000/xmlns")
        && !namespace.starts_with("http://www.w3.org/XML/1998")
}

/// Writes a carriage return as a character reference, because XML would read it as a line feed.
pub(super) struct ReferenceWriter<W>(pub(super) W);

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
        for good in
            ["http://a.example/b", "urn:a:b1", "http://a.example/#x-1", "http://a.example/9z"]
        {
            assert!(is_qualified(good), "{good}");
        }
        for bad in
            ["http://a.example/", "urn:a:1", "http://a.example/ü", "http://www.w3.org/2000/xmlns/a"]
        {
            assert!(!is_qualified(bad), "{bad}");
        }
    }

    #[test]
    fn carriage_returns_are_references() {
        let mut out = ReferenceWriter(Vec::new());
        out.write_all(b"a\rb\n\r").unwrap();
        assert_eq!(out.0, b"a&#13;b\n&#13;");
    }
}
