//! The text of JSON: its encoding, and the error for a place in it.
use crate::error::{ErrorClass, Finding, GatewayError};

pub(super) fn decode_utf8(bytes: &[u8]) -> Result<&str, GatewayError> {
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
pub(super) fn malformed_error(text: &str, at: usize, message: &str) -> GatewayError {
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
