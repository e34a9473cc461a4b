//! Bytes in hexadecimal.
use std::fmt::Write as _;

/// Returns bytes in lower-case hexadecimal.
pub fn encode_hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::with_capacity(bytes.len() * 2), |mut text, byte| {
        // Writing to a string cannot fail.
        let _ = write!(text, "{byte:02x}");
        text
    })
}
