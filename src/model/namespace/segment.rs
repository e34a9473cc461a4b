//! Percent-encodes texts for the segments of URIs.
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, PercentEncode, utf8_percent_encode};

/// The characters of a name that are percent-encoded in a URI: all but the unreserved ones (RFC 3986, 2.3).
const PERCENT_ENCODED: &AsciiSet =
    &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~');

/// Percent-encodes every byte outside the unreserved characters (RFC 3986, 2.3).
pub(crate) fn encode_segment(text: &str) -> PercentEncode<'_> {
    utf8_percent_encode(text, PERCENT_ENCODED)
}
