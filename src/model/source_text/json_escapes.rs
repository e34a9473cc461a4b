//! Surrogate pairs in JSON. YAML has all other escapes of JSON, but writes a character beyond U+FFFF as `\U0001F600`, not as
//! `\ud83d\ude00`.
use crate::mapping::yaml::{Content, Location, Node};
use penstock_base::error::{Finding, Place};
use std::borrow::Cow;

/// The number of characters that a pair has more than the escape in YAML.
const REMOVED_CHARACTERS: u64 = 2;

/// A JSON text in which the surrogate pairs are escapes of YAML.
#[derive(Debug)]
pub(super) struct YamlEscapes<'t> {
    pub(super) text: Cow<'t, str>,
    /// Where each replaced pair ends in `text`, in order.
    ends: Vec<Location>,
}

impl<'t> YamlEscapes<'t> {
    /// Replaces the surrogate pairs of a text. One half alone stays, and is an error of the parser.
    pub(super) fn replace(text: &'t str) -> Self {
        let mut replaced = Self { text: Cow::Borrowed(text), ends: Vec::new() };
        if !text.contains("\\u") {
            return replaced;
        }
        let mut written = String::with_capacity(text.len());
        let (mut rest, mut line, mut column) = (text, 1, 1);
        while let Some(character) = rest.chars().next() {
            let length = match (character, read_pair(rest)) {
                ('\\', Some(pair)) => {
                    let escape = format!("\\U{:08X}", u32::from(pair));
                    column += escape.len() as u64;
                    written.push_str(&escape);
                    replaced.ends.push(Location { line, column });
                    2 * "\\ud83d".len()
                }
                // The character after a backslash begins no escape.
                ('\\', None) => {
                    let length = 1 + rest.chars().nth(1).map_or(0, char::len_utf8);
                    written.push_str(rest.get(..length).unwrap_or_default());
                    column += 2;
                    length
                }
                _ => {
                    written.push(character);
                    column += 1;
                    character.len_utf8()
                }
            };
            if character == '\n' {
                (line, column) = (line + 1, 1);
            }
            rest = rest.get(length..).unwrap_or_default();
        }
        replaced.text = Cow::Owned(written);
        replaced
    }

    /// Moves the position of each node to where it is in the text with its pairs.
    pub(super) fn restore_node(&self, node: &mut Node) {
        if self.ends.is_empty() {
            return;
        }
        node.at = self.restore(node.at);
        match &mut node.content {
            Content::Null | Content::Scalar { .. } => {}
            Content::Sequence(elements) => {
                for element in elements {
                    self.restore_node(element);
                }
            }
            Content::Mapping(entries) => {
                for (key, value) in entries {
                    key.at = self.restore(key.at);
                    self.restore_node(value);
                }
            }
        }
    }

    /// Moves the position of a finding.
    pub(super) fn restore_finding(&self, finding: &mut Finding) {
        if let Place::Line { line, column } = &mut finding.place {
            *column = self.restore(Location { line: *line, column: *column }).column;
        }
    }

    fn restore(&self, at: Location) -> Location {
        let is_before = |end: &&Location| end.line == at.line && end.column <= at.column;
        let count = self.ends.iter().filter(is_before).count() as u64;
        Location { column: at.column + REMOVED_CHARACTERS * count, ..at }
    }
}

/// Returns the character whose two halves the text begins with.
fn read_pair(text: &str) -> Option<char> {
    let half = |at: usize| {
        let digits = text.get(at..at + 6)?.strip_prefix("\\u")?;
        let is_hex = digits.bytes().all(|byte| byte.is_ascii_hexdigit());
        u16::from_str_radix(digits, 16).ok().filter(|_| is_hex)
    };
    char::decode_utf16([half(0)?, half(6)?])
        .next()?
        .ok()
        .filter(|character| u32::from(*character) > 0xFFFF)
}
