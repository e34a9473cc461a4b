//! Strict JSON (RFC 8259): exact numbers, no duplicate names, a limit on nesting.
//!
//! The grammar is in `reader`. It is Penstock's own because each of its faults needs the exact line
//! and column, a number must keep its digits, and no name in an object may have a meaning of its own;
//! the tests hold it against `serde_json`.

mod members;
mod reader;
mod write;

pub use members::Members;

use crate::fault::{Fault, Finding, Kind};
use reader::{Fail, Reader};
use std::collections::HashSet;

/// The deepest nesting that can be configured: what a thread's stack bears with much to spare.
pub const MAX_NESTING: usize = 1000;

/// Foreign members of a body that are named one by one.
const MAX_FINDINGS: usize = 100;

/// A JSON value. A number keeps the digits it came with.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Json {
    /// `null`
    Null,
    /// `true` or `false`
    Bool(bool),
    /// A number, as it stood in the text.
    Number(String),
    /// A string.
    String(String),
    /// An array.
    Array(Vec<Json>),
    /// An object, its members in the order of the text, each name once.
    Object(Vec<(String, Json)>),
}

impl Json {
    /// The kind in words: "a string", "an array", ...
    pub fn kind(&self) -> &'static str {
        match self {
            Self::Null => "null",
            Self::Bool(_) => "a boolean",
            Self::Number(_) => "a number",
            Self::String(_) => "a string",
            Self::Array(_) => "an array",
            Self::Object(_) => "an object",
        }
    }
}

/// Reads one JSON text (UTF-8, nothing after it but white space). Arrays and objects nest up to
/// `nesting` levels, the outermost being the first, and never deeper than [`MAX_NESTING`].
///
/// # Errors
/// `Kind::Malformed` with line and column: not UTF-8, not JSON, cut short, a duplicate name, nested
/// deeper than `nesting`.
pub fn parse(text: &[u8], nesting: usize) -> Result<Json, Fault> {
    let text = utf8(text)?;
    let mut reader = Reader::new(text, nesting);
    let read = reader.begin().and_then(|()| reader.value()).and_then(|value| {
        reader.end()?;
        Ok(value)
    });
    read.map_err(|fail| malformed(text, &fail))
}

/// Reads an ingestion body `{"data": [...]}`, handing over one element of `data` at a time (with its
/// index), so that no more than one of them is held. The first error of `each` ends it. Whether an
/// element is an object is for `each` to say.
///
/// # Errors
/// As [`parse`]; `Kind::Invalid` for a body that is no object, a missing `data`, a `data` that is no
/// array, any other member (each with its JSON Pointer); `Kind::TooLarge` for more than `limit` objects.
pub fn parse_data(
    text: &[u8],
    nesting: usize,
    limit: usize,
    each: &mut dyn FnMut(usize, Json) -> Result<(), Fault>,
) -> Result<(), Fault> {
    let text = utf8(text)?;
    let mut reader = Reader::new(text, nesting);
    let malformed = |fail: Fail| malformed(text, &fail);
    let mut findings = Vec::new();

    reader.begin().map_err(malformed)?;
    if !reader.at_object() {
        let value = reader.value().map_err(malformed)?;
        reader.end().map_err(malformed)?;
        return Err(invalid(vec![Finding::at(
            "",
            format!("the body is {}; expected is an object {{\"data\": [...]}}", value.kind()),
        )]));
    }
    let mut names: HashSet<String> = HashSet::new();
    reader.enter("object").map_err(malformed)?;
    while let Some(name) =
        reader.name(names.is_empty(), |name| names.contains(name)).map_err(malformed)?
    {
        if name == "data" && reader.at_array() {
            let mut index = 0;
            reader.enter("array").map_err(malformed)?;
            while reader.next_element(index == 0).map_err(malformed)? {
                if index == limit {
                    return Err(too_many(limit));
                }
                let value = reader.value().map_err(malformed)?;
                if findings.is_empty() {
                    each(index, value)?;
                }
                index += 1;
            }
        } else {
            let value = reader.value().map_err(malformed)?;
            if findings.len() == MAX_FINDINGS {
                names.insert(name);
                continue;
            }
            let mut pointer = String::new();
            push_pointer(&mut pointer, &name);
            findings.push(if name == "data" {
                let kind = value.kind();
                Finding::at(pointer, format!("`data` is {kind}; expected is an array of objects"))
            } else {
                Finding::at(
                    pointer,
                    format!("`{name}` is not known here; the body holds `data` alone"),
                )
            });
        }
        names.insert(name);
    }
    reader.end().map_err(malformed)?;
    if !names.contains("data") {
        findings.push(Finding::at(
            "/data",
            "`data` is missing; expected is an array of objects under this name",
        ));
    }
    if findings.is_empty() { Ok(()) } else { Err(invalid(findings)) }
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

fn utf8(bytes: &[u8]) -> Result<&str, Fault> {
    std::str::from_utf8(bytes).map_err(|error| {
        let at = error.valid_up_to();
        let before = String::from_utf8_lossy(bytes.get(..at).unwrap_or_default());
        let message = match bytes.get(at) {
            Some(byte) if error.error_len().is_some() => {
                format!("the byte 0x{byte:02X} at offset {at} is not UTF-8; JSON is sent in UTF-8")
            }
            _ => "the text ends in the middle of a character; it was cut short".to_owned(),
        };
        malformed(&before, &Fail { at: before.len(), message })
    })
}

fn malformed(text: &str, fail: &Fail) -> Fault {
    let before = text.get(..fail.at).unwrap_or(text);
    let line = 1 + before.bytes().filter(|&b| b == b'\n').count() as u64;
    let start = before.rfind('\n').map_or(0, |i| i + 1);
    let column = 1 + before.get(start..).unwrap_or_default().chars().count() as u64;
    Fault::with(
        Kind::Malformed,
        format!("the JSON cannot be read: line {line}, column {column}: {}", fail.message),
        vec![Finding::line(line, column, fail.message.clone())],
    )
}

fn invalid(findings: Vec<Finding>) -> Fault {
    let detail = findings.first().map(|finding| finding.message.clone()).unwrap_or_default();
    Fault::with(Kind::Invalid, detail, findings)
}

fn too_many(limit: usize) -> Fault {
    Fault::with(
        Kind::TooLarge,
        format!(
            "the request holds more than {limit} objects (service.limits.objects); split it, or send \
             application/x-ndjson, which has no such limit"
        ),
        vec![Finding::at(format!("/data/{limit}"), "the first object over the limit")],
    )
}

#[cfg(test)]
mod tests;
