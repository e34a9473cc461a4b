//! Reads the objects of a body, one at a time.
use super::{Body, Limits, lines};
use penstock_base::error::{Finding, GatewayError, Place};
use penstock_base::json::{self, Element, Json};
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
    /// The object, or the error of a text of its own that is not JSON.
    pub(super) json: Result<Json, GatewayError>,
}

/// Passes each object of the body to `each`.
///
/// # Errors
/// Returns the first error of `each`, and those of a JSON body that is malformed as a whole.
pub(super) fn read_objects(
    body: Body<'_>,
    limits: &Limits,
    each: &mut dyn FnMut(ReadObject) -> Result<(), GatewayError>,
) -> Result<(), GatewayError> {
    match body {
        Body::Json(text) => {
            json::parse_data(text, limits.nesting, limits.objects, &mut |element| {
                let Element { index, range, json } = element;
                each(ReadObject { index, line: None, range, json: Ok(json) })
            })
        }
        Body::Lines { text, first, line_numbers } => {
            lines::read_lines(text, limits.nesting, first, line_numbers, each)
        }
        Body::Object { text, index, first_line } => {
            let json = json::parse(text, limits.nesting)
                .map_err(|error| with_line_offset(error, first_line.saturating_sub(1)));
            each(ReadObject { index, line: None, range: 0..text.len(), json })
        }
    }
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
