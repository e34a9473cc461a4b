//! Strict JSON (RFC 8259): exact numbers, no duplicate names, a limit on nesting.
//!
//! `reader` parses with `serde_json`. `data` reads the body of an ingestion object by object, `sample` reads a sample
//! of many objects. `compact` removes white space, `write` writes a `value`, `pointer` writes JSON Pointers, and `text`
//! decodes UTF-8.

mod compact;
mod data;
mod members;
mod pointer;
mod reader;
mod sample;
mod text;
mod value;
mod write;

pub use compact::compact;
pub use data::{DataBody, Element, MessageObjects, parse_data, parse_message};
pub use members::{MAX_FINDINGS, Members};
pub use pointer::{join_pointer, push_pointer, unescape_token};
pub use reader::MAX_NESTING;
pub use sample::{Sample, SampleLayout, SampleLimits, read_sample};
pub use value::Json;

use crate::error::GatewayError;
use serde::de::DeserializeSeed;
use text::decode_utf8;

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

#[cfg(test)]
mod tests;
