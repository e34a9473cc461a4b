//! YAML and JSON files whose values keep their positions, so that what is found in a value is reported with its line and
//! column.
mod json_escapes;

use crate::mapping::yaml::{self, Content, Location, Node};
use json_escapes::YamlEscapes;
use penstock_base::error::{Finding, Place};
use penstock_base::json::{self, Json};

/// The maximum length of a text in bytes.
pub const MAX_BYTES: usize = yaml::MAX_BYTES;

/// A text with one document.
#[derive(Debug)]
pub struct SourceText<'t> {
    text: &'t str,
    root: Node,
}

/// A value in a text.
#[derive(Debug, Clone, Copy)]
pub struct SourceValue<'s> {
    text: &'s str,
    node: &'s Node,
}

impl<'t> SourceText<'t> {
    /// Parses a text; `None` if it has only comments.
    ///
    /// # Errors
    /// Returns every error, each with its line and column.
    pub fn parse(text: &'t str) -> Result<Option<Self>, Vec<Finding>> {
        Self::parse_escaped(text, text, |_| {}, |_| {})
    }

    /// As [`Self::parse`], for a text that is JSON: a surrogate pair is one character.
    ///
    /// # Errors
    /// As [`Self::parse`].
    pub fn parse_json(text: &'t str) -> Result<Option<Self>, Vec<Finding>> {
        let escapes = YamlEscapes::replace(text);
        let restore_node = |node: &mut Node| escapes.restore_node(node);
        let restore_finding = |finding: &mut Finding| {
            escapes.restore_finding(finding);
            // The parser of YAML reads JSON too, but its message is about the text that was given.
            finding.message = finding.message.replacen("not valid YAML", "not valid JSON", 1);
        };
        Self::parse_escaped(text, &escapes.text, restore_node, restore_finding)
    }

    /// Parses `escaped`, which is `text` with other escapes, and moves all positions to where they are in `text`.
    fn parse_escaped(
        text: &'t str,
        escaped: &str,
        restore_node: impl Fn(&mut Node),
        restore_finding: impl Fn(&mut Finding),
    ) -> Result<Option<Self>, Vec<Finding>> {
        let is_blank = |line: &str| {
            let line = line.trim();
            line.is_empty() || line == "---" || line.starts_with('#')
        };
        if text.lines().all(is_blank) {
            return Ok(None);
        }
        let mut findings = Vec::new();
        match yaml::parse_document(escaped, &mut findings) {
            Ok(mut root) if findings.is_empty() => {
                restore_node(&mut root);
                return Ok(Some(Self { text, root }));
            }
            Ok(_) => {}
            Err(finding) => findings.push(finding),
        }
        findings.iter_mut().for_each(restore_finding);
        Err(findings)
    }

    /// Returns the elements of the list that the document is, or the document.
    pub fn values(&self) -> Vec<SourceValue<'_>> {
        let value = |node| SourceValue { text: self.text, node };
        match &self.root.content {
            Content::Sequence(elements) => elements.iter().map(value).collect(),
            _ => vec![value(&self.root)],
        }
    }
}

impl SourceValue<'_> {
    /// Converts the value. A plain scalar is a number, `true`, `false` or null if JSON has the same text for it.
    pub fn to_json(self) -> Json {
        node_to_json(self.node)
    }

    /// Creates a finding at a JSON Pointer into the value.
    pub fn find_at(self, pointer: &str, message: impl Into<String>) -> Finding {
        self.locate_pointer(pointer).to_finding(message)
    }

    /// Gives a finding about the value its line and column in the text. A finding with a line is about the text that the
    /// member `text_member` has.
    #[must_use]
    pub fn place_finding(self, finding: Finding, text_member: &str) -> Finding {
        let Finding { place, message, public_message, violation, .. } = finding;
        let placed = match place {
            Place::Whole => self.find_at("", message),
            Place::Pointer(pointer) => self.find_at(&pointer, message),
            Place::Line { line, column } => {
                let place = Location { line, column };
                let message = message.strip_prefix("config: ").unwrap_or(&message);
                self.place_in_member(text_member, place, message)
            }
        };
        Finding { public_message, violation, ..placed }
    }

    /// Returns the position of the deepest value that a JSON Pointer leads to: of the name of a member, or of an element.
    fn locate_pointer(self, pointer: &str) -> Location {
        let (mut node, mut at) = (self.node, self.node.at);
        for token in pointer.split('/').skip(1) {
            let token = json::unescape_token(token);
            let next = match &node.content {
                Content::Mapping(entries) => entries
                    .iter()
                    .find(|(key, _)| key.name == token)
                    .map(|(key, value)| (key.at, value)),
                Content::Sequence(elements) => token
                    .parse::<usize>()
                    .ok()
                    .and_then(|index| elements.get(index))
                    .map(|element| (element.at, element)),
                _ => None,
            };
            match next {
                Some(next) => (at, node) = next,
                None => break,
            }
        }
        at
    }

    /// Creates a finding at a place in the text that a member has: a block of text, or a mapping that was converted to
    /// JSON.
    fn place_in_member(self, member: &str, place: Location, message: &str) -> Finding {
        let Content::Mapping(entries) = &self.node.content else {
            return self.node.at.to_finding(message);
        };
        let Some((key, value)) = entries.iter().find(|(key, _)| key.name == member) else {
            return self.node.at.to_finding(message);
        };
        match &value.content {
            Content::Scalar { .. } => match self.locate_in_block(value.at, place) {
                Some(at) => at.to_finding(message),
                None => value.at.to_finding(format!(
                    "in `{member}`, line {}, column {}: {message}",
                    place.line, place.column
                )),
            },
            Content::Mapping(_) => {
                let written = format!("{:#}", node_to_json(value));
                let at = match yaml::parse_document(&written, &mut Vec::new()) {
                    Ok(written) => locate_same(&written, value, place),
                    Err(_) => key.at,
                };
                at.to_finding(message)
            }
            _ => key.at.to_finding(message),
        }
    }

    /// Returns the position in the file of a place in a literal block, whose header (`|`) is in the line of `start`.
    fn locate_in_block(self, start: Location, place: Location) -> Option<Location> {
        let lines = || self.text.lines().zip(1_u64..);
        // The parser's position is the header, or the first line of the block.
        let header = lines()
            .take_while(|(_, number)| *number <= start.line)
            .filter(|(line, number)| number + 1 >= start.line && has_block_header(line))
            .last()
            .map(|(_, number)| number)?;
        let first = lines().find(|(line, number)| *number > header && !line.trim().is_empty());
        let indent = first.map_or(0, |(line, _)| {
            line.chars().take_while(|character| *character == ' ').count() as u64
        });
        Some(Location { line: header + place.line, column: indent + place.column })
    }
}

/// Returns whether a line ends with the header of a literal block.
fn has_block_header(line: &str) -> bool {
    let line = line.split(" #").next().unwrap_or_default().trim_end();
    let Some(place) = line.rfind('|') else { return false };
    let (before, header) = line.split_at(place);
    (before.is_empty() || before.ends_with([' ', ':']))
        && header.chars().skip(1).all(|c| matches!(c, '+' | '-' | '1'..='9'))
}

/// Returns the position of the node in `source` that has, in the same tree written as `written`, this place.
fn locate_same(written: &Node, source: &Node, place: Location) -> Location {
    let (mut written, mut source) = (written, source);
    let mut found = source.at;
    loop {
        let next = match (&written.content, &source.content) {
            (Content::Mapping(written), Content::Mapping(source)) => {
                let last = written.iter().rposition(|(key, _)| key.at <= place);
                let pair = last.and_then(|index| written.get(index).zip(source.get(index)));
                let Some(((key, written), (source_key, source))) = pair else { return found };
                found = source_key.at;
                if key.at == place || written.at > place {
                    return found;
                }
                (written, source)
            }
            (Content::Sequence(written), Content::Sequence(source)) => {
                let last = written.iter().rposition(|element| element.at <= place);
                match last.and_then(|index| written.get(index).zip(source.get(index))) {
                    Some(pair) => pair,
                    None => return found,
                }
            }
            _ => return found,
        };
        (written, source) = next;
        found = source.at;
    }
}

/// Converts a node. A plain scalar is a number, `true`, `false` or null if JSON has the same text for it.
pub(crate) fn node_to_json(node: &Node) -> Json {
    match &node.content {
        Content::Null => Json::Null,
        Content::Scalar { text, plain: true } => match json::parse(text.as_bytes(), 1) {
            Ok(value @ (Json::Number(_) | Json::Bool(_))) => value,
            _ => Json::String(text.clone()),
        },
        Content::Scalar { text, .. } => Json::String(text.clone()),
        Content::Sequence(elements) => Json::Array(elements.iter().map(node_to_json).collect()),
        Content::Mapping(entries) => Json::Object(
            entries.iter().map(|(key, value)| (key.name.clone(), node_to_json(value))).collect(),
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the position of a finding in the first value of a text.
    fn place(text: &str, finding: Finding) -> (u64, u64, String) {
        let source = SourceText::parse(text).unwrap().unwrap();
        let placed = source.values()[0].place_finding(finding, "config");
        match placed.place {
            Place::Line { line, column } => (line, column, placed.message),
            other => panic!("{other:?}"),
        }
    }

    fn at(text: &str, pointer: &str) -> (u64, u64) {
        let (line, column, _) = place(text, Finding::at_pointer(pointer, "x"));
        (line, column)
    }

    fn in_config(text: &str, line: u64, column: u64) -> (u64, u64) {
        let (line, column, _) = place(text, Finding::at_line(line, column, "config: x"));
        (line, column)
    }

    #[test]
    fn pointers_lead_to_names_and_elements() {
        let text = "# a comment\nname: P\nmembers:\n  - a\n  - b: {c: 1}\n";
        assert_eq!(at(text, ""), (2, 1));
        assert_eq!(at(text, "/members"), (3, 1));
        assert_eq!(at(text, "/members/0"), (4, 5));
        assert_eq!(at(text, "/members/1/b/c"), (5, 9));
        assert_eq!(at(text, "/members/7"), (3, 1));
        assert_eq!(at(text, "/missing"), (2, 1));
        assert_eq!(at("[\n {\"name\": \"P\"}]", "/name"), (2, 3));
    }

    #[test]
    fn lines_of_a_text_are_lines_of_the_file() {
        let block = "name: P\nconfig: |\n  type: object\n  path: x\n";
        assert_eq!(in_config(block, 2, 7), (4, 9));
        let mapping = "name: P\nconfig:\n  type: object\n  fields:\n    a: {path: x, type: no}\n";
        // The text that is stored: {, type, fields, {, a, {, path, type.
        let written = "{\n  \"type\": \"object\",\n  \"fields\": {\n    \"a\": {\n      \"path\": \"x\",\n      \"type\": \"no\"";
        let column = written.lines().last().unwrap().find("\"no\"").unwrap() as u64 + 1;
        assert_eq!(in_config(mapping, 6, column), (5, 24));
        assert_eq!(in_config(mapping, 6, 7), (5, 18));
        let quoted = "{\"name\": \"P\",\n \"config\": \"type: object\\npath: x\"}";
        let (line, column, message) = place(quoted, Finding::at_line(2, 7, "config: x"));
        assert_eq!((line, column, message.as_str()), (2, 12, "in `config`, line 2, column 7: x"));
    }

    #[test]
    fn scalars_become_values_of_json() {
        let text = "a: 1\nb: '1'\nc: true\nd: ~\ne: 1.50\nf: 01\ng: [x]\n";
        let source = SourceText::parse(text).unwrap().unwrap();
        let expected = r#"{"a":1,"b":"1","c":true,"d":null,"e":1.50,"f":"01","g":["x"]}"#;
        assert_eq!(source.values()[0].to_json().to_string(), expected);
    }

    #[test]
    fn a_surrogate_pair_in_json_is_one_character_of_the_value_and_twelve_of_the_line() {
        let text = r#"{"\ud83d\ude00": "\ud83d\ude00 \\ud83d \"x\\", "b": "\u00fc", "c": [1]}"#;
        let source = SourceText::parse_json(text).unwrap().unwrap();
        let value = source.values()[0];
        let expected = r#"{"\u{1f600}":"\u{1f600} \\ud83d \"x\\","b":"\u{fc}","c":[1]}"#;
        let expected = expected.replace("\\u{1f600}", "\u{1f600}").replace("\\u{fc}", "\u{fc}");
        assert_eq!(value.to_json().to_string(), expected);
        let column = |pointer: &str| match value.find_at(pointer, "").place {
            Place::Line { line: 1, column } => column,
            other => panic!("{other:?}"),
        };
        let at = |wanted: &str| text.find(wanted).unwrap() as u64 + 1;
        assert_eq!(column("/\u{1f600}"), 2);
        assert_eq!(
            (column("/b"), column("/c"), column("/c/0")),
            (at("\"b\""), at("\"c\""), at("1]"))
        );
        let errors = SourceText::parse_json(r#"["\ud83d\ude00", {"a": 1, "a": 2}]"#).unwrap_err();
        assert_eq!(errors[0].place, Place::Line { line: 1, column: 27 });
        assert!(SourceText::parse_json(r#"["\ud83d"]"#).is_err());
        let errors = SourceText::parse_json(r#"{"kind": "Group" "name": "x"}"#).unwrap_err();
        assert!(errors[0].message.starts_with("this is not valid JSON: "), "{errors:?}");
        assert!(SourceText::parse("- \"\\ud83d\\ude00\"\n").is_err(), "YAML has no pairs");
    }

    #[test]
    fn a_text_has_one_document_without_duplicates() {
        assert!(SourceText::parse("---\n# nothing\n\n").unwrap().is_none());
        assert_eq!(SourceText::parse("a: 1\na: 2\n").unwrap_err().len(), 1);
        assert!(SourceText::parse("a: [\n").is_err());
        assert!(SourceText::parse("a: 1\n---\nb: 1\n").is_err());
        assert_eq!(SourceText::parse("- a: 1\n- b: 2\n").unwrap().unwrap().values().len(), 2);
    }
}
