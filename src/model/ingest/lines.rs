//! Streams: NDJSON with one object per line, and CSV with one per record.
use super::read_object::{ReadObject, with_line_offset};
use crate::csv::{Columns, RecordScanner, count_blank_bytes, record_error, trim_record};
use penstock_base::error::{ErrorClass, Finding, GatewayError};
use penstock_base::json::{self, Json};

/// Passes the object of each line to `each`, with its index. `first` is the index of the first one in the whole stream;
/// `None` for the objects of documents, which count from 0. Lines of only white space are skipped and have no index.
/// `line_numbers` has the number of each other line in the stream.
///
/// # Errors
/// Returns the first error of `each`.
pub(super) fn read_lines(
    text: &[u8],
    nesting: usize,
    first: Option<usize>,
    line_numbers: &[u64],
    each: &mut dyn FnMut(ReadObject) -> Result<(), GatewayError>,
) -> Result<(), GatewayError> {
    let (mut index, mut start) = (first.unwrap_or_default(), 0);
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
            let mut error = with_line_offset(error, lines_before);
            let trimmed = line.trim_ascii();
            if let [finding] = error.findings.as_mut_slice()
                && !(trimmed.starts_with(b"{") && trimmed.ends_with(b"}"))
            {
                finding.message.push_str("; each line is one whole object");
            }
            name_object(error, first.map(|_| index))
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
    (columns, nesting): (&Columns<'_>, usize),
    first: usize,
    line_numbers: &[u64],
    each: &mut dyn FnMut(ReadObject) -> Result<(), GatewayError>,
) -> Result<(), GatewayError> {
    let format = columns.format();
    let (mut scanner, mut start) = (RecordScanner::new(format), 0);
    for (index, line) in (first..).zip(line_numbers) {
        let rest = text.get(start..).unwrap_or_default();
        let length = scanner.find_end(rest).unwrap_or(rest.len());
        let record = rest.get(..length).unwrap_or_default();
        let trimmed = trim_record(record);
        let range = start + trimmed.start..start + trimmed.end;
        start += length;
        let record = record.get(trimmed).unwrap_or_default();
        let json = read_record(columns, record, *line, nesting)
            .map_err(|error| name_object(error, Some(index)));
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

/// Reads a record without its line break, which begins in this line. The JSON in its cells nests no deeper than an object in
/// JSON may.
///
/// # Errors
/// `ErrorClass::Malformed` if it cannot be read, or nests deeper than `nesting`.
pub(super) fn read_record(
    columns: &Columns<'_>,
    text: &[u8],
    line: u64,
    nesting: usize,
) -> Result<Json, GatewayError> {
    let json = columns.read_record(text, line)?;
    if nests_deeper(&json, nesting) {
        let message = format!(
            "the object of the record, with the JSON in its cells, is nested deeper than {nesting} levels \
             (service.limits.nesting)"
        );
        return Err(record_error(line, 1, message));
    }
    Ok(json)
}

/// Returns whether a value has more than this many levels of arrays and objects.
fn nests_deeper(json: &Json, levels: usize) -> bool {
    let Some(inner) = levels.checked_sub(1) else {
        return matches!(json, Json::Array(_) | Json::Object(_));
    };
    match json {
        Json::Array(elements) => elements.iter().any(|element| nests_deeper(element, inner)),
        Json::Object(members) => members.iter().any(|(_, value)| nests_deeper(value, inner)),
        _ => false,
    }
}

/// Names the object of an error in the stream, which is a document if it has no index.
fn name_object(mut error: GatewayError, index: Option<usize>) -> GatewayError {
    let cause = error.findings.first().map_or_else(|| error.detail.clone(), Finding::to_string);
    let what = index.map_or_else(|| "a document".to_owned(), |index| format!("object {index}"));
    error.detail = format!("{what} of the stream cannot be read: {cause}");
    error
}
