//! Reads JSON with the grammar of `serde_json`; a cursor tracks names, places and depth.
//!
//! A scalar is read as `RawValue`, which is its text: `1E5` and `-0` stay unchanged (with `serde_json`'s
//! `arbitrary_precision` the first would become `1e+5`). Names are read in the same way. Everything else is requested
//! as an array or object, according to the text, never as "any value". So `serde_json` never returns a number or raw
//! text as a map with its private key (`$serde_json::private::Number`), and such a name in a client's object is an
//! ordinary name.
use super::text::malformed_error;
use super::value::Json;
use crate::error::GatewayError;
use serde::Deserialize;
use serde::de::{DeserializeSeed, Deserializer, Error, MapAccess, SeqAccess, Visitor};
use serde_json::value::RawValue;
use std::borrow::Cow;
use std::collections::HashSet;
use std::fmt;

/// The deepest nesting that can be configured. A thread's stack of 2 MiB suffices for it, even without optimization.
pub const MAX_NESTING: usize = 1000;

/// What to do with what follows the end of a value.
const REMOVE: &str = "remove it";

/// The maximum number of characters of an excerpt in an error.
const MAX_EXCERPT_CHARS: usize = 20;

/// The position in a text up to which `serde_json` has read it.
#[derive(Debug)]
pub(super) struct TextCursor<'de> {
    pub(super) text: &'de str,
    /// The offset after the last scalar, name or bracket.
    pub(super) offset: usize,
    depth: usize,
    nesting: usize,
    /// What to do if more follows the end of the value and begins like an object.
    pub(super) remedy_for_objects: &'static str,
    /// The error that stopped the reading, if `serde_json` did not cause it.
    error: Option<GatewayError>,
}

/// Reads a text with one value. `value` reads it, and keeps the cursor at the position of `serde_json`.
pub(super) fn read_text<'de, T>(
    text: &'de str,
    nesting: usize,
    value: impl FnOnce(
        &mut TextCursor<'de>,
        &mut serde_json::Deserializer<serde_json::de::StrRead<'de>>,
    ) -> serde_json::Result<T>,
) -> Result<T, GatewayError> {
    if text.starts_with('\u{feff}') {
        let message = "the text begins with a byte order mark, which JSON does not have; leave out \
                       the bytes EF BB BF";
        return Err(malformed_error(text, 0, message));
    }
    let mut cursor = TextCursor {
        text,
        offset: 0,
        depth: 0,
        nesting: nesting.min(MAX_NESTING),
        remedy_for_objects: REMOVE,
        error: None,
    };
    if cursor.peek().is_none() {
        return Err(malformed_error(
            text,
            text.len(),
            "the text is empty; a JSON value is expected",
        ));
    }
    let mut deserializer = serde_json::Deserializer::from_str(text);
    // The cursor counts the depth, and reports the place where it exceeds the limit.
    deserializer.disable_recursion_limit();
    value(&mut cursor, &mut deserializer)
        .and_then(|value| deserializer.end().map(|()| value))
        .map_err(|error| cursor.error.take().unwrap_or_else(|| cursor.convert_error(0, &error)))
}

impl<'de> TextCursor<'de> {
    /// Skips white space and separators, and returns the next byte.
    pub(super) fn peek(&mut self) -> Option<u8> {
        let rest = self.text.get(self.offset..)?;
        let rest = rest.trim_start_matches([' ', '\n', '\r', '\t', ',', ':']);
        self.offset = self.text.len() - rest.len();
        rest.bytes().next()
    }

    /// Stops the reading with this error.
    pub(super) fn stop_with<E: Error>(&mut self, error: GatewayError) -> E {
        self.error = Some(error);
        E::custom("stopped")
    }

    /// Enters the array or object that comes next.
    pub(super) fn enter_nested<E: Error>(&mut self) -> Result<(), E> {
        let what = if self.peek() == Some(b'[') { "array" } else { "object" };
        if self.depth == self.nesting {
            let message = format!(
                "this {what} is nested deeper than {} levels (service.limits.nesting)",
                self.nesting
            );
            return Err(self.stop_with(malformed_error(self.text, self.offset, &message)));
        }
        self.depth += 1;
        self.offset += 1;
        Ok(())
    }

    /// Leaves the current array or object: moves past its closing bracket.
    pub(super) fn leave_nested(&mut self) {
        self.peek();
        self.depth -= 1;
        self.offset += 1;
    }

    /// Reads the next name of an object, which must not be in `names`.
    pub(super) fn read_name<M: MapAccess<'de>>(
        &mut self,
        map: &mut M,
        names: &mut HashSet<Cow<'de, str>>,
    ) -> Result<Option<Cow<'de, str>>, M::Error> {
        let Some(raw) = map.next_key::<&RawValue>()? else { return Ok(None) };
        let Name(name) = self.parse_raw(raw)?;
        if !names.insert(name.clone()) {
            let message = format!("the name {name:?} occurs twice in one object");
            let start = self.offset - raw.get().len();
            return Err(self.stop_with(malformed_error(self.text, start, &message)));
        }
        Ok(Some(name))
    }

    /// Reads the scalar that comes next, which begins with `first`.
    pub(super) fn read_scalar<D: Deserializer<'de>>(
        &mut self,
        first: Option<u8>,
        deserializer: D,
    ) -> Result<Json, D::Error> {
        let raw = <&RawValue>::deserialize(deserializer)?;
        Ok(match first {
            Some(b'"') => Json::String(self.parse_raw(raw)?),
            Some(b't' | b'f') => Json::Bool(self.parse_raw(raw)?),
            Some(b'n') => self.parse_raw(raw).map(|()| Json::Null)?,
            _ => {
                self.offset += raw.get().len();
                Json::Number(raw.get().to_owned())
            }
        })
    }

    /// Parses the raw text that comes next.
    fn parse_raw<T: Deserialize<'de>, E: Error>(&mut self, raw: &'de RawValue) -> Result<T, E> {
        self.peek();
        let start = self.offset;
        self.offset += raw.get().len();
        serde_json::from_str(raw.get()).map_err(|error| {
            let error = self.convert_error(start, &error);
            self.stop_with(error)
        })
    }

    /// Converts an error of `serde_json`, which parsed the text from `start` on. Its columns are bytes.
    fn convert_error(&self, start: usize, error: &serde_json::Error) -> GatewayError {
        let message = error.to_string();
        let message = message.rsplit_once(" at line ").map_or(&*message, |(message, _)| message);
        if error.is_eof() {
            let place = match message {
                "EOF while parsing a list" => "inside an array",
                "EOF while parsing an object" => "inside an object",
                "EOF while parsing a string" => "inside a string",
                _ => "before the end of a value",
            };
            let message = format!("the text ends {place}; it may be cut short here");
            return malformed_error(self.text, self.text.len(), &message);
        }
        let before = self.text.get(start..).unwrap_or_default().split_inclusive('\n');
        let before: usize = before.take(error.line().saturating_sub(1)).map(str::len).sum();
        let at = start + before + error.column().saturating_sub(1);
        malformed_error(self.text, at, &self.describe_error(at, message))
    }

    /// Describes an error of `serde_json` at this offset, with what is there and what to do.
    fn describe_error(&self, at: usize, message: &str) -> String {
        let text = self.text;
        let before = text.get(..text.floor_char_boundary(at)).unwrap_or_default();
        let is_of_word = |c: char| c.is_alphanumeric() || matches!(c, '+' | '-' | '.');
        let start = match message {
            // The word before is the value, or its end.
            "trailing characters" => before.len(),
            _ => before.trim_end_matches(is_of_word).len(),
        };
        let rest = text.get(start..).unwrap_or_default();
        let length = rest.find(|c: char| c.is_whitespace() || matches!(c, ',' | ']' | '}'));
        let first = rest.chars().next().map_or(0, char::len_utf8);
        let excerpt = rest.get(..length.unwrap_or(rest.len()).max(first)).unwrap_or_default();
        let excerpt: String = excerpt.chars().take(MAX_EXCERPT_CHARS).collect();
        let word = excerpt.trim_start_matches(['+', '-']).to_ascii_lowercase();
        match message {
            _ if (message.starts_with("expected") || message == "key must be a string")
                && excerpt.starts_with(['/', '#']) =>
            {
                format!("{message}, not {excerpt:?}; JSON has no comments")
            }
            "key must be a string" | "trailing comma"
                if excerpt.starts_with(['}', ']']) && before.trim_end().ends_with(',') =>
            {
                "trailing comma; remove the comma before this bracket".to_owned()
            }
            "key must be a string" => format!("{message}; write the name in double quotes"),
            "expected value" | "expected ident" | "invalid number"
                if matches!(word.as_str(), "nan" | "infinity" | "inf") =>
            {
                format!("JSON has no {excerpt}: leave the field out")
            }
            "expected value" | "expected ident" => match word.as_str() {
                "true" | "false" | "null" => {
                    format!("{excerpt:?} is no JSON value; write `{word}`")
                }
                _ if excerpt.starts_with(|c: char| c.is_alphabetic() || c == '\'') => {
                    format!("{excerpt:?} is no JSON value; a string is in double quotes")
                }
                _ => format!("a JSON value is expected, not {excerpt:?}"),
            },
            "unexpected end of hex escape" | "lone leading surrogate in hex escape" => {
                let escapes = before.rmatch_indices("\\u").map(|(start, _)| start..start + 6);
                let mut escapes = escapes.filter_map(|range| text.get(range));
                let half =
                    escapes.find(|escape| matches!(escape.as_bytes().get(2), Some(b'd' | b'D')));
                let half = half.unwrap_or("the escape");
                format!("{half} is half of a character: write both halves, or the character itself")
            }
            "trailing characters" => {
                let is_object = excerpt.starts_with('{');
                let remedy = if is_object { self.remedy_for_objects } else { REMOVE };
                format!("{excerpt:?} follows the end of the JSON; {remedy}")
            }
            _ => message.to_owned(),
        }
    }
}

#[derive(Deserialize)]
struct Name<'a>(#[serde(borrow)] Cow<'a, str>);

/// Reads one value at any place.
pub(super) struct ValueReader<'c, 'de>(pub(super) &'c mut TextCursor<'de>);

impl<'de> DeserializeSeed<'de> for ValueReader<'_, 'de> {
    type Value = Json;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Json, D::Error> {
        match self.0.peek() {
            Some(b'[') => deserializer.deserialize_seq(self),
            Some(b'{') => deserializer.deserialize_map(self),
            first => self.0.read_scalar(first, deserializer),
        }
    }
}

impl<'de> Visitor<'de> for ValueReader<'_, 'de> {
    type Value = Json;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON value")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Json, A::Error> {
        let cursor = self.0;
        cursor.enter_nested()?;
        let mut elements = Vec::new();
        while let Some(element) = seq.next_element_seed(ValueReader(cursor))? {
            elements.push(element);
        }
        cursor.leave_nested();
        Ok(Json::Array(elements))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Json, A::Error> {
        let cursor = self.0;
        cursor.enter_nested()?;
        let (mut members, mut names) = (Vec::new(), HashSet::new());
        while let Some(name) = cursor.read_name(&mut map, &mut names)? {
            members.push((name.into_owned(), map.next_value_seed(ValueReader(cursor))?));
        }
        cursor.leave_nested();
        Ok(Json::Object(members))
    }
}
