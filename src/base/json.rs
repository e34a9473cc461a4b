//! Strict JSON (RFC 8259): exact numbers, no duplicate names, a limit on nesting.
//!
//! `reader` parses with `serde_json`. `data` reads the body of an ingestion object by object, `sample` reads a sample
//! of many objects. `compact` removes white space.

mod compact;
mod data;
mod members;
mod reader;
mod sample;
mod write;

pub use compact::compact;
pub use data::{DataBody, Element, MessageObjects, parse_data, parse_message};
pub use members::{MAX_FINDINGS, Members};
pub use sample::{Sample, SampleLayout, SampleLimits, read_sample};

use crate::error::{ErrorClass, Finding, GatewayError};
use serde::de::DeserializeSeed;

/// The deepest nesting that can be configured. A thread's stack of 2 MiB suffices for it, even without optimization.
pub const MAX_NESTING: usize = 1000;

/// A JSON value. A number keeps its digits as written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Json {
    /// `null`
    Null,
    /// `true` or `false`
    Bool(bool),
    /// A number as written in the text.
    Number(String),
    /// A string.
    String(String),
    /// An array.
    Array(Vec<Json>),
    /// An object: its members in the order of the text, with unique names.
    Object(Vec<(String, Json)>),
}

impl Json {
    /// Describes the type: "a string", "an array", ...
    pub fn kind_name(&self) -> &'static str {
        match self {
            Self::Null => "null",
            Self::Bool(_) => "a boolean",
            Self::Number(_) => "a number",
            Self::String(_) => "a string",
            Self::Array(_) => "an array",
            Self::Object(_) => "an object",
        }
    }

    /// Returns the value of the member with this name; `None` if there is none, or if this is not an object.
    pub fn member(&self, name: &str) -> Option<&Self> {
        let Self::Object(members) = self else { return None };
        members.iter().find(|(known, _)| known == name).map(|(_, value)| value)
    }
}

/// Parses one JSON text (UTF-8, followed only by white space). Arrays and objects may nest up to `nesting` levels,
/// the outermost being the first, and never deeper than [`MAX_NESTING`].
///
/// # Errors
/// `ErrorClass::Malformed` with line and column if the text is not UTF-8, is not JSON, is cut short, has a name twice
/// in one object, or nests deeper than `nesting`.
pub fn parse(text: &[u8], nesting: usize) -> Result<Json, GatewayError> {
    reader::read_text(decode_utf8(text)?, nesting, |cursor, text| {
        reader::ValueReader(cursor).deserialize(text)
    })
}

/// Appends one reference token to a JSON Pointer (RFC 6901), escaped.
pub fn push_pointer(pointer: &mut String, token: &str) {
    pointer.push('/');
    for c in token.chars() {
        match c {
            '~' => pointer.push_str("~0"),
            '/' => pointer.push_str("~1"),
            c => pointer.push(c),
        }
    }
}

/// Returns the JSON Pointer of a member or an element of the value at a JSON Pointer.
pub fn join_pointer(pointer: &str, token: &str) -> String {
    let mut joined = pointer.to_owned();
    push_pointer(&mut joined, token);
    joined
}

/// Returns the name in a reference token of a JSON Pointer.
pub fn unescape_token(token: &str) -> String {
    token.replace("~1", "/").replace("~0", "~")
}

fn decode_utf8(bytes: &[u8]) -> Result<&str, GatewayError> {
    std::str::from_utf8(bytes).map_err(|error| {
        let at = error.valid_up_to();
        let before = String::from_utf8_lossy(bytes.get(..at).unwrap_or_default());
        let message = match bytes.get(at) {
            Some(byte) if error.error_len().is_some() => {
                let remedy = find_encoding_remedy(bytes).unwrap_or("send JSON in UTF-8");
                format!("the byte 0x{byte:02X} at offset {at} is not UTF-8; {remedy}")
            }
            _ => "the text ends in the middle of a character; it was cut short".to_owned(),
        };
        malformed_error(&before, before.len(), &message)
    })
}

/// Returns what to do with a text that is not UTF-8, if its first bytes say what it is.
fn find_encoding_remedy(bytes: &[u8]) -> Option<&'static str> {
    Some(match bytes {
        [0x1F, 0x8B, ..] => {
            "the text is gzip: decompress it, or over HTTP send it with Content-Encoding: gzip"
        }
        [0x28, 0xB5, 0x2F, 0xFD, ..] => {
            "the text is zstd: decompress it, or over HTTP send it with Content-Encoding: zstd"
        }
        [0xFF, 0xFE, ..] | [0xFE, 0xFF, ..] => "the text is UTF-16: send JSON in UTF-8",
        _ => return None,
    })
}

/// Creates the error for a place in a text, given in bytes from its start.
fn malformed_error(text: &str, at: usize, message: &str) -> GatewayError {
    let (before, _) = text.split_at(text.floor_char_boundary(at));
    let line = 1 + before.bytes().filter(|&b| b == b'\n').count() as u64;
    let start = before.rfind('\n').map_or(0, |i| i + 1);
    let column = 1 + before.get(start..).unwrap_or_default().chars().count() as u64;
    GatewayError::with_findings(
        ErrorClass::Malformed,
        format!("the JSON cannot be read: line {line}, column {column}: {message}"),
        vec![Finding::at_line(line, column, message)],
    )
}

#[cfg(test)]
mod tests;
