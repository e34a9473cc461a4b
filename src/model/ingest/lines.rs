//! NDJSON: one object per line.
use penstock_base::error::{Finding, GatewayError, Place};
use penstock_base::json::{self, Json};

/// Passes each object to `each` with its index in the whole stream. Lines of only white space are skipped and have no
/// index.
///
/// # Errors
/// Returns the errors of [`json::parse`], and the first error of `each`. Line numbers count from the beginning of the
/// stream, as if there were no empty lines before this chunk.
pub(super) fn parse_lines(
    text: &[u8],
    nesting: usize,
    first: usize,
    each: &mut dyn FnMut(usize, Json) -> Result<(), GatewayError>,
) -> Result<(), GatewayError> {
    let mut index = first;
    for (number, line) in text.split(|byte| *byte == b'\n').enumerate() {
        if line.iter().all(u8::is_ascii_whitespace) {
            continue;
        }
        let value = json::parse(line, nesting)
            .map_err(|error| with_stream_position(error, index, first.saturating_add(number)))?;
        each(index, value)?;
        index += 1;
    }
    Ok(())
}

/// Converts the position of an error from its line to the whole stream.
fn with_stream_position(
    mut error: GatewayError,
    index: usize,
    lines_before: usize,
) -> GatewayError {
    for Finding { place, .. } in &mut error.findings {
        if let Place::Line { line, .. } = place {
            *line += lines_before as u64;
        }
    }
    let cause = error.findings.first().map_or_else(|| error.detail.clone(), Finding::to_string);
    error.detail = format!("object {index} of the stream cannot be read: {cause}");
    error
}
