//! The header of a CSV text: the names of the columns.
use super::CsvFormat;
use super::records::{Cell, read_cells, trim_record};
use penstock_base::error::{ErrorClass, Finding, GatewayError};
use std::collections::HashMap;

/// The maximum number of columns.
pub(super) const MAX_COLUMNS: usize = 2000;

/// The maximum number of findings in one answer.
pub(super) const MAX_FINDINGS: usize = 100;

/// The header of a CSV text, and the format of its records.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CsvHeader {
    /// Its text, without a line break.
    pub text: String,
    /// The format of the records.
    pub format: CsvFormat,
    /// Its line in the stream, from 1.
    pub line: u64,
    names: Vec<ColumnName>,
    /// The number of columns, also those after the last name, which hold nothing.
    column_count: usize,
}

/// The name of a column.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct ColumnName {
    pub(super) name: String,
    /// Where it begins in its line, in characters from 1.
    pub(super) column: u64,
}

impl CsvHeader {
    /// The maximum number of bytes of a header. Each dead letter of the stream has it.
    pub const MAX_BYTES: usize = 64 << 10;

    /// Reads a header, which is in this line of the stream. White space around names does not count. Columns at its end need no
    /// name: some systems write a delimiter after the last cell of each record.
    ///
    /// # Errors
    /// - `ErrorClass::Malformed` if it is not UTF-8, or has too many columns
    /// - `ErrorClass::TooLarge` if it has more than [`MAX_BYTES`](Self::MAX_BYTES)
    /// - `ErrorClass::Invalid` if a name is empty before another one, or occurs twice, or if lines end with a carriage return
    ///   alone
    pub fn read(text: &[u8], format: CsvFormat, line: u64) -> Result<Self, GatewayError> {
        let text = text.get(trim_record(text)).unwrap_or_default();
        let text = text.strip_prefix(b"\xEF\xBB\xBF").unwrap_or(text);
        // Such a text is one line, so the limits and the names below say nothing useful about it.
        if let Some(column) = find_single_carriage_return(text, format) {
            let message = "a carriage return alone ends no line; end each line with CR LF or LF";
            refuse_header(vec![Finding::at_line(line, column, message)])?;
        }
        if text.len() > Self::MAX_BYTES {
            let message =
                format!("the header has {} bytes; the maximum is {}", text.len(), Self::MAX_BYTES);
            return Err(GatewayError::new(ErrorClass::TooLarge, message));
        }
        let cells = read_cells(text, format, line, MAX_COLUMNS)?;
        let text = String::from_utf8_lossy(text).into_owned();
        let column_count = cells.len();
        let last_name = cells.iter().rposition(|cell| !cell.value.trim().is_empty());
        let named = last_name.map_or(column_count, |last| last + 1);
        let mut header = Self { text, format, line, names: Vec::new(), column_count };
        let (mut findings, mut first) = (Vec::new(), HashMap::new());
        for (number, Cell { offset, value }) in (1_usize..).zip(cells).take(named) {
            let before = header.text.get(..offset).unwrap_or_default();
            let column = 1 + before.rsplit('\n').next().unwrap_or_default().chars().count() as u64;
            let name = value.trim().to_owned();
            if name.is_empty() {
                let message = format!(
                    "the column {number} has no name; the header must name a field for each"
                );
                findings.push(Finding::at_line(line, column, message));
            } else if let Some(other) = first.insert(name.clone(), number) {
                let message =
                    format!("the columns {other} and {number} have the same name {name:?}");
                findings.push(Finding::at_line(line, column, message));
            }
            header.names.push(ColumnName { name, column });
        }
        refuse_header(findings)?;
        Ok(header)
    }

    /// Returns the number of columns, also of those after the last name.
    pub fn column_count(&self) -> usize {
        self.column_count
    }

    /// Returns the names of the first columns. Those after them hold nothing.
    pub(super) fn names(&self) -> &[ColumnName] {
        &self.names
    }
}

/// Returns the column of the first carriage return outside quotes that has no line feed after it. White space at the end does
/// not count.
fn find_single_carriage_return(text: &[u8], format: CsvFormat) -> Option<u64> {
    let mut chars = std::str::from_utf8(text).ok()?.trim_end().chars().peekable();
    let (mut is_quoted, mut previous, mut column) = (false, format.delimiter, 0);
    while let Some(c) = chars.next() {
        column += 1;
        match c {
            // A quote opens only at the start of a cell, and two of them are one within a cell.
            '"' if is_quoted || previous == format.delimiter || previous == '"' => {
                is_quoted = !is_quoted;
            }
            '\r' if !is_quoted && chars.peek() != Some(&'\n') => return Some(column),
            '\n' => column = 0,
            _ => {}
        }
        previous = c;
    }
    None
}

/// Returns these findings of the header as an error, if there are any.
pub(super) fn refuse_header(findings: Vec<Finding>) -> Result<(), GatewayError> {
    let Some(first) = findings.first() else { return Ok(()) };
    let detail = match findings.len() {
        1 => format!("the header cannot be used: {first}"),
        count => {
            format!("the header cannot be used: {count} columns are wrong; the first is {first}")
        }
    };
    let findings = findings.into_iter().take(MAX_FINDINGS).collect();
    Err(GatewayError::with_findings(ErrorClass::Invalid, detail, findings))
}
