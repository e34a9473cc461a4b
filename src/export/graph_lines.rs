//! The lines of an export for a SPARQL store: how its spool file is written, and read back for the delivery.
//!
//! The file is rendered from the same snapshot as those of other targets. A later mapping does not change it.
//!
//! | format | lines |
//! |---|---|
//! | `quads` | N-Quads. The graph of each quad is the object of the Business Object that it belongs to. |
//! | `triples` | N-Triples: everything that the graph has after the export. |
//!
//! In `quads`, each subject that an object shows has one line `<object> <urn:penstock:export:holds> <subject> <object> .`,
//! also the object itself. A removed object has only the line `<object> <urn:penstock:export:removed> <object> <object> .`.
use oxrdf::{NamedNode, NamedNodeRef, TermRef};
use penstock_config::ExportFormat;
use penstock_model::view::ShownFact;
use std::io::Write as _;

/// The beginning of every IRI that the gateway adds to the data.
pub(super) const VOCABULARY: &str = "urn:penstock:export:";
/// The first line of a file in the format `quads`.
const QUADS_HEADER: &str = "# penstock quads 1\n";
/// The first line of a file in the format `triples`.
const TRIPLES_HEADER: &str = "# penstock triples 1\n";
const HOLDS_PREDICATE: &str = "<urn:penstock:export:holds>";
const REMOVED_PREDICATE: &str = "<urn:penstock:export:removed>";

/// Returns the first line of a file in this format. It is a comment.
pub(super) fn header_line(format: ExportFormat) -> &'static str {
    match format {
        ExportFormat::Quads => QUADS_HEADER,
        ExportFormat::Triples => TRIPLES_HEADER,
        ExportFormat::Json | ExportFormat::JsonLines => "",
    }
}

/// Returns the format of a file with this first line.
pub(super) fn format_of_header(line: &str) -> Option<ExportFormat> {
    [ExportFormat::Quads, ExportFormat::Triples]
        .into_iter()
        .find(|format| header_line(*format).trim_end() == line.trim_end())
}

/// Appends the line of a fact that the view of `object` shows, if the format has one.
pub(super) fn append_fact(
    format: ExportFormat,
    object: &NamedNode,
    fact: ShownFact<'_>,
    out: &mut Vec<u8>,
) {
    match (format, fact) {
        (ExportFormat::Quads, ShownFact::Subject(subject)) => {
            append_line(out, format_args!("{object} {HOLDS_PREDICATE} {subject} {object}"));
        }
        (ExportFormat::Quads, ShownFact::Triple(subject, predicate, value))
            if !is_reserved(predicate) =>
        {
            append_line(out, format_args!("{subject} {predicate} {} {object}", write_term(value)));
        }
        (ExportFormat::Triples, ShownFact::Triple(subject, predicate, value))
            if !is_reserved(predicate) =>
        {
            append_line(out, format_args!("{subject} {predicate} {}", write_term(value)));
        }
        _ => {}
    }
}

/// Appends the line of an object that was removed, if the format has one.
pub(super) fn append_removed(format: ExportFormat, object: &NamedNode, out: &mut Vec<u8>) {
    if format == ExportFormat::Quads {
        append_line(out, format_args!("{object} {REMOVED_PREDICATE} {object} {object}"));
    }
}

/// Returns whether only the gateway uses a predicate: its lines have a meaning of their own.
fn is_reserved(predicate: NamedNodeRef<'_>) -> bool {
    predicate.as_str().starts_with(VOCABULARY)
}

fn append_line(out: &mut Vec<u8>, line: std::fmt::Arguments<'_>) {
    writeln!(out, "{line} .").expect("writing into memory never fails");
}

/// Writes a term so that N-Quads and SPARQL read the same.
///
/// SPARQL replaces `\uXXXX` before it reads anything else (19.2), also after an escaped backslash. So the `u` after an
/// escaped backslash is written as such a replacement.
fn write_term(term: TermRef<'_>) -> String {
    let text = term.to_string();
    if !text.contains("\\\\u") && !text.contains("\\\\U") {
        return text;
    }
    let mut written = String::with_capacity(text.len() + 16);
    let mut characters = text.chars();
    let mut follows_backslash = false;
    while let Some(character) = characters.next() {
        match character {
            '\\' => {
                written.push('\\');
                let escaped = characters.next();
                written.extend(escaped);
                follows_backslash = escaped == Some('\\');
                continue;
            }
            'u' if follows_backslash => written.push_str("\\u0075"),
            'U' if follows_backslash => written.push_str("\\u0055"),
            other => written.push(other),
        }
        follows_backslash = false;
    }
    written
}

/// A line of a file in the format `quads`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum GraphLine<'l> {
    /// The object holds the subject: both in angle brackets.
    Holds { object: &'l str, subject: &'l str },
    /// The object was removed.
    Removed { object: &'l str },
    /// A triple, without the dot.
    Triple(&'l str),
}

impl<'l> GraphLine<'l> {
    /// Parses a line, without its line feed. Returns `None` if it is damaged.
    pub(super) fn parse(line: &'l str) -> Option<Self> {
        let quad = line.strip_suffix(" .")?;
        // No IRI contains a space, and the last term is one.
        let (triple, object) = quad.rsplit_once(' ')?;
        let (subject, rest) = triple.split_once(' ')?;
        let (predicate, value) = rest.split_once(' ')?;
        match predicate {
            HOLDS_PREDICATE if subject == object => Some(Self::Holds { object, subject: value }),
            REMOVED_PREDICATE if subject == object => Some(Self::Removed { object }),
            _ if object.starts_with('<') && object.ends_with('>') => Some(Self::Triple(triple)),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use oxrdf::Literal;

    fn lines_of(format: ExportFormat, facts: &[ShownFact<'_>]) -> String {
        let object = NamedNode::new_unchecked("urn:o");
        let mut out = Vec::new();
        for fact in facts {
            append_fact(format, &object, *fact, &mut out);
        }
        append_removed(format, &object, &mut out);
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn lines_are_parsed_as_they_were_written() {
        let nested = NamedNodeRef::new_unchecked("urn:n");
        let predicate = NamedNodeRef::new_unchecked("urn:p");
        let reserved = NamedNodeRef::new_unchecked("urn:penstock:export:holds");
        let text = Literal::new_simple_literal("a <b> .\n\"ü\" \\");
        let facts = [
            ShownFact::Subject(nested),
            ShownFact::Triple(nested, predicate, text.as_ref().into()),
            ShownFact::Triple(nested, reserved, nested.into()),
        ];
        let quads = lines_of(ExportFormat::Quads, &facts);
        let parsed: Option<Vec<_>> = quads.lines().map(GraphLine::parse).collect();
        let triple = r#"<urn:n> <urn:p> "a <b> .\n\"ü\" \\""#;
        let expected = [
            GraphLine::Holds { object: "<urn:o>", subject: "<urn:n>" },
            GraphLine::Triple(triple),
            GraphLine::Removed { object: "<urn:o>" },
        ];
        assert_eq!(parsed.unwrap(), expected);
        assert_eq!(lines_of(ExportFormat::Triples, &facts), format!("{triple} .\n"));
        for damaged in ["", "<urn:n> <urn:p>", "<urn:n> <urn:p> <urn:o> .", "<a> <b> <c> \"d\" ."] {
            let parsed = GraphLine::parse(damaged);
            assert!(parsed.is_none(), "{damaged}: {parsed:?}");
        }
    }

    #[test]
    fn a_backslash_before_u_stays_text_in_sparql() {
        for (text, written) in [
            ("\\u0041", r#""\\\u00750041""#),
            ("\\\\U", r#""\\\\\u0055""#),
            ("\\x u", r#""\\x u""#),
            ("a\nu\\", r#""a\nu\\""#),
        ] {
            let literal = Literal::new_simple_literal(text);
            assert_eq!(write_term(literal.as_ref().into()), written);
        }
    }

    #[test]
    fn the_first_line_tells_the_format() {
        for format in [ExportFormat::Quads, ExportFormat::Triples] {
            assert_eq!(format_of_header(header_line(format)), Some(format));
        }
        assert_eq!(format_of_header("{"), None);
        assert_eq!(format_of_header(""), None);
    }
}
