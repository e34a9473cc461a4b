//! An object as it was read from a body, or the error of its text.
use penstock_base::error::{Finding, GatewayError, Place};
use penstock_base::json::Json;
use std::ops::Range;

/// One object of a body.
#[derive(Debug)]
pub(super) struct ReadObject {
    /// Its index in the request or stream, from 0.
    pub(super) index: usize,
    /// Its line in the stream, from 1; `None` in a JSON body.
    pub(super) line: Option<u64>,
    /// Where its text is in the body, in bytes.
    pub(super) range: Range<usize>,
    /// The object, or the error of a text of its own that cannot be read.
    pub(super) json: Result<Json, GatewayError>,
}

/// Converts the line numbers of an error from its text to a stream that has this many lines before the text.
pub(super) fn with_line_offset(mut error: GatewayError, lines_before: u64) -> GatewayError {
    for Finding { place, .. } in &mut error.findings {
        if let Place::Line { line, .. } = place {
            *line = line.saturating_add(lines_before);
        }
    }
    if let [finding] = error.findings.as_slice() {
        error.detail = format!("the JSON cannot be read: {finding}");
    }
    error
}
