//! Streams: NDJSON with one object per line, and CSV with one per record.
use super::objects::{ReadObject, with_line_offset};
use crate::csv::{Columns, CsvFormat, RecordScanner, count_blank_bytes, trim_record};
use penstock_base::error::{ErrorClass, Finding, GatewayError};
use penstock_base::json;

/// Passes the object of each line to `each`, with its index in the whole stream. Lines of only white space are skipped
/// and have no index. `line_numbers` has the number of each other line in the stream.
///
/// # Errors
/// Returns the first error of `each`.
pub(super) fn read_lines(
    text: &[u8],
    nesting: usize,
    first: usize,
    line_numbers: &[u64],
    each: &mut dyn FnMut(ReadObject) -> Result<(), GatewayError>,
) -> Result<(), GatewayError> {
    let (mut index, mut start) = (first, 0);
    let mut numbers = line_numbers.iter();
    for line in text.split_inclusive(|byte| *byte == b'\n') {
        let begin = start;
        start += line.len();
        if line.trim_ascii().is_empty() {
            continue;
        }
        let line = line.strip_suffix(b"\n").unwrap_or(line);
        let line = line.strip_suffix(b"\r").unwrap_or(line);
        let number = numbers.next().copied();
        let json = json::parse(line, nesting).map_err(|error| {
            let lines_before = number.unwrap_or_default().saturating_sub(1);
            name_object(with_line_offset(error, lines_before), index)
        });
        each(ReadObject { index, line: number, range: begin..begin + line.len(), json })?;
        index += 1;
    }
    Ok(())
}

/// Passes the object of each record to `each`, with its index in the whole stream. `line_numbers` has the number of each
/// record's first line in the stream.
///
/// # Errors
/// Returns the first error of `each`, and `ErrorClass::Malformed` if the text has more records.
pub(super) fn read_records(
    text: &[u8],
    format: CsvFormat,
    columns: &Columns,
    first: usize,
    line_numbers: &[u64],
    each: &mut dyn FnMut(ReadObject) -> Result<(), GatewayError>,
) -> Result<(), GatewayError> {
    let (mut scanner, mut start) = (RecordScanner::new(format), 0);
    for (index, line) in (first..).zip(line_numbers) {
        let rest = text.get(start..).unwrap_or_default();
        let length = scanner.find_end(rest).unwrap_or(rest.len());
        let record = rest.get(..length).unwrap_or_default();
        let trimmed = trim_record(record);
        let range = start + trimmed.start..start + trimmed.end;
        start += length;
        let record = record.get(trimmed).unwrap_or_default();
        let json = columns.read_record(record, *line).map_err(|error| name_object(error, index));
        each(ReadObject { index, line: Some(*line), range, json })?;
    }
    let rest = text.get(start..).unwrap_or_default();
    if count_blank_bytes(rest, format) < rest.len() {
        let message = format!(
            "the text has more than {} records of CSV; send only the record, without its header",
            line_numbers.len()
        );
        return Err(GatewayError::new(ErrorClass::Malformed, message));
    }
    Ok(())
}

fn name_object(mut error: GatewayError, index: usize) -> GatewayError {
    let cause = error.findings.first().map_or_else(|| error.detail.clone(), Finding::to_string);
    error.detail = format!("object {index} of the stream cannot be read: {cause}");
    error
}
