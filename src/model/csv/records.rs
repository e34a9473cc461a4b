//! Finds the ends of records, and reads their cells.
use super::CsvFormat;
use csv_core::{ReadRecordResult, Reader, ReaderBuilder, Terminator};
use memchr::{memchr, memchr2};
use penstock_base::error::{ErrorClass, Finding, GatewayError};
use std::ops::Range;

/// Finds the ends of records in a text that arrives in pieces.
// No clone: that of the reader (csv-core 0.1.13) forgets its table.
#[derive(Debug)]
pub struct RecordScanner(Reader);

impl RecordScanner {
    /// Creates a scanner for the start of a text.
    pub fn new(format: CsvFormat) -> Self {
        Self(build_reader(format))
    }

    /// Reads on in `text`, which continues what was read before. Returns how many of its bytes belong to the record,
    /// with its line break, or `None` if the record does not end in it.
    pub fn find_end(&mut self, text: &[u8]) -> Option<usize> {
        // What is read is discarded.
        let (mut cells, mut ends) = ([0; 4096], [0; 64]);
        let mut length = 0;
        loop {
            let rest = text.get(length..).filter(|rest| !rest.is_empty())?;
            let (result, read, ..) = self.0.read_record(rest, &mut cells, &mut ends);
            length += read;
            if result == ReadRecordResult::Record {
                return Some(length);
            }
        }
    }

    /// Ends the text. Returns whether its last record, which is not blank and has no line break, ends within quotes.
    pub fn ends_in_quotes(&mut self) -> bool {
        self.find_end(b"\n").is_none()
    }
}

fn build_reader(format: CsvFormat) -> Reader {
    // A carriage return before a line feed is removed from the text of a record.
    let (delimiter, terminator) = (format.delimiter_byte(), Terminator::Any(b'\n'));
    ReaderBuilder::new().delimiter(delimiter).terminator(terminator).build()
}

/// Returns how many bytes at the start of a text are delimiters and white space. A record of nothing else is blank.
pub fn count_blank_bytes(text: &[u8], format: CsvFormat) -> usize {
    let delimiter = format.delimiter_byte();
    text.iter().take_while(|byte| **byte == delimiter || byte.is_ascii_whitespace()).count()
}

/// Returns where the record is in its text: without the empty lines before it and the line break after it.
pub(crate) fn trim_record(text: &[u8]) -> Range<usize> {
    let start = text.iter().take_while(|byte| **byte == b'\n').count();
    let kept = text.strip_suffix(b"\n").unwrap_or(text);
    let kept = kept.strip_suffix(b"\r").unwrap_or(kept);
    start..kept.len().max(start)
}

/// A cell of a record.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Cell {
    /// Where it begins in the text of the record, in bytes.
    pub(crate) offset: usize,
    /// Its value, without quotes.
    pub(crate) value: String,
}

/// Reads the cells of a record without its line break, which begins in this line.
///
/// # Errors
/// `ErrorClass::Malformed` if it is not UTF-8, or has more than `max_cells` cells.
pub(crate) fn read_cells(
    text: &[u8],
    format: CsvFormat,
    line: u64,
    max_cells: usize,
) -> Result<Vec<Cell>, GatewayError> {
    let text = std::str::from_utf8(text).map_err(|error| {
        let at = error.valid_up_to();
        let column =
            1 + String::from_utf8_lossy(text.get(..at).unwrap_or_default()).chars().count();
        let byte = text.get(at).copied().unwrap_or_default();
        let message = format!(
            "the byte 0x{byte:02X} is not UTF-8; send UTF-8, or name the charset, such as \
             Content-Type: text/csv; charset=windows-1252"
        );
        record_error(line, column as u64, message)
    })?;
    let (mut cells, mut offset) = (Vec::new(), 0);
    loop {
        if cells.len() == max_cells {
            let message = format!(
                "the record has more cells than the {max_cells} columns that it may have; a cell that contains {:?} needs \
                 double quotes around it",
                format.delimiter
            );
            return Err(record_error(line, 1, message));
        }
        let (value, length) = read_cell(text.get(offset..).unwrap_or_default(), format);
        cells.push(Cell { offset, value });
        offset += length;
        if text.as_bytes().get(offset) != Some(&format.delimiter_byte()) {
            return Ok(cells);
        }
        offset += 1;
    }
}

/// Reads the cell at the start of a text: its value, and how many bytes it has. A reader of csv-core gives the same, but
/// creating one takes longer than reading a record.
fn read_cell(text: &str, format: CsvFormat) -> (String, usize) {
    let find_end = |start: usize| {
        let rest = text.as_bytes().get(start..).unwrap_or_default();
        memchr2(format.delimiter_byte(), b'\n', rest).map_or(text.len(), |length| start + length)
    };
    let slice = |range: Range<usize>| text.get(range).unwrap_or_default();
    if !text.starts_with('"') {
        let end = find_end(0);
        return (slice(0..end).to_owned(), end);
    }
    let (mut value, mut start) = (String::new(), 1);
    while let Some(length) = memchr(b'"', slice(start..text.len()).as_bytes()) {
        value.push_str(slice(start..start + length));
        start += length + 1;
        if !slice(start..text.len()).starts_with('"') {
            // What follows a closing quote belongs to the cell.
            let end = find_end(start);
            value.push_str(slice(start..end));
            return (value, end);
        }
        value.push('"');
        start += 1;
    }
    // The quote is open at the end of the text.
    value.push_str(slice(start..text.len()));
    (value, text.len())
}

/// Returns the error of a record that cannot be read.
pub(crate) fn record_error(line: u64, column: u64, message: impl Into<String>) -> GatewayError {
    let finding = Finding::at_line(line, column, message);
    let detail = format!("the CSV cannot be read: {finding}");
    GatewayError::with_findings(ErrorClass::Malformed, detail, vec![finding])
}
