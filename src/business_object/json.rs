//! Strict JSON (RFC 8259): exact numbers, no duplicate keys, a limit on nesting.
use crate::fault::Fault;

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

/// Reads one JSON text (UTF-8, nothing after it but white space).
///
/// # Errors
/// `Kind::Malformed` with line and column: not UTF-8, not JSON, cut short, a duplicate name, nested
/// deeper than `nesting`.
pub fn parse(text: &[u8], nesting: usize) -> Result<Json, Fault> {
    let _ = (text, nesting);
    todo!()
}

/// Reads an ingestion body `{"data": [...]}`, handing over one object of `data` at a time (with its
/// index), so that no more than one of them is held. The first error of `each` ends it.
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
    let _ = (text, nesting, limit, each);
    todo!()
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
