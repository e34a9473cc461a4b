//! The segments of a path.
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, PercentEncode, utf8_percent_encode};
use salvo::Request;

/// The characters that are not escaped in a segment of a path (RFC 3986, 2.3).
const SEGMENT: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~');

/// Percent-encodes a text as one segment of a path.
pub fn encode_segment(text: &str) -> PercentEncode<'_> {
    utf8_percent_encode(text, SEGMENT)
}

/// Returns a decoded parameter of the path.
pub fn path_parameter<'a>(req: &'a Request, name: &str) -> &'a str {
    req.params().get(name).map_or("", String::as_str)
}
