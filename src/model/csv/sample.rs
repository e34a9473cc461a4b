//! Reads samples of CSV, of which neither the format nor the types are known.
use super::columns::{CellKind, Columns};
use super::header::MAX_COLUMNS;
use super::records::{Cell, RecordScanner, count_blank_bytes, read_cells, trim_record};
use super::{CsvFormat, CsvHeader};
use crate::mapping::Form;
use memchr::memchr_iter;
use penstock_base::error::{ErrorClass, GatewayError};
use penstock_base::json::{Json, SampleLimits};
use penstock_rdf::number::to_json_number;
use std::ops::Range;

/// The delimiters that are guessed, the most probable first.
const DELIMITERS: [char; 4] = [',', ';', '\t', '|'];

/// The maximum number of levels in the name of a column, such as 2 of `position.latitude`.
const MAX_LEVELS: usize = 20;

/// The maximum number of bytes of a text that are read to guess its format.
const MAX_GUESS_BYTES: usize = 64 << 10;

/// Returns the format of a text that is probably CSV: it has several lines, and is not JSON. The delimiter is the
/// character that is most often in the first line, outside quotes. Only the beginning of the text is read.
pub(crate) fn guess_format(text: &str) -> Option<CsvFormat> {
    let text = text.trim_start_matches('\u{feff}').trim();
    if text.starts_with(['{', '[']) || !text.contains('\n') {
        return None;
    }
    let text = text.get(..text.floor_char_boundary(MAX_GUESS_BYTES)).unwrap_or_default();
    let header = text.lines().next().unwrap_or_default();
    let unquoted = || header.split('"').step_by(2);
    let count = |delimiter: char| unquoted().map(|text| text.matches(delimiter).count()).sum();
    // The last of the greatest is the first of the list.
    let delimiter =
        DELIMITERS.into_iter().rev().max_by_key(|delimiter| -> usize { count(*delimiter) })?;
    let format = CsvFormat { delimiter, ..CsvFormat::default() };
    if delimiter == ',' {
        return Some(format);
    }
    Some(CsvFormat { decimal_comma: has_decimal_commas(text.as_bytes(), format), ..format })
}

/// Returns whether a cell is a number with a decimal comma, and none before it one with a decimal point.
fn has_decimal_commas(text: &[u8], format: CsvFormat) -> bool {
    let mut found = None;
    for_each_record(text, 0, format, |range, line| {
        let record = text.get(range).unwrap_or_default();
        let cells = read_cells(record, format, line, MAX_COLUMNS).unwrap_or_default();
        for Cell { value, .. } in cells {
            let value = value.trim();
            if value.contains('.') && is_number(value) {
                found = Some(false);
            } else if value.matches(',').count() == 1 && is_number(&value.replace(',', ".")) {
                found = found.or(Some(true));
            }
        }
        found != Some(false)
    });
    found == Some(true)
}

/// A sample of a CSV text: records at even distances.
#[derive(Debug)]
pub(crate) struct CsvSample<'t> {
    header: CsvHeader,
    /// The text of each record without its line break, and its first line.
    records: Vec<(&'t [u8], u64)>,
    /// The number of records in the text.
    total: usize,
}

impl<'t> CsvSample<'t> {
    /// Reads a sample; `None` if the text has no header. A line before the header that names the delimiter decides.
    ///
    /// # Errors
    /// As [`CsvHeader::read`] and [`CsvFormat::new`]; `ErrorClass::TooLarge` if a single record exceeds the limits.
    pub(crate) fn read(
        text: &'t str,
        format: CsvFormat,
        limits: SampleLimits,
    ) -> Result<Option<Self>, GatewayError> {
        let bytes = text.strip_prefix('\u{feff}').unwrap_or(text).as_bytes();
        let (format, start) = format.read_delimiter_line(bytes)?;
        let (mut total, mut first) = (0_usize, None);
        for_each_record(bytes, start, format, |range, line| {
            first.get_or_insert((range, line));
            total += 1;
            true
        });
        let Some((range, line)) = first else { return Ok(None) };
        let header = CsvHeader::read(bytes.get(range).unwrap_or_default(), format, line)?;
        total -= 1;
        let count = (limits.values / header.names().len().max(1)).clamp(1, limits.elements.max(1));
        let step = total.div_ceil(count).max(1);
        let (mut records, mut index) = (Vec::new(), 0);
        for_each_record(bytes, start, format, |range, line| {
            if index > 0 && (index - 1) % step == 0 {
                records.push((bytes.get(range).unwrap_or_default(), line));
            }
            index += 1;
            true
        });
        while records.iter().map(|(record, _)| record.len()).sum::<usize>() > limits.bytes {
            if records.len() == 1 {
                let message = "a record is too large for a sample; leave out most of its columns";
                return Err(GatewayError::new(ErrorClass::TooLarge, message));
            }
            records = records.into_iter().step_by(2).collect();
        }
        Ok(Some(Self { header, records, total }))
    }

    /// Returns the header.
    pub(crate) fn header(&self) -> &CsvHeader {
        &self.header
    }

    /// Returns the number of records in the sample, and in the text.
    pub(crate) fn counts(&self) -> (usize, usize) {
        (self.records.len(), self.total)
    }

    /// Returns the records as a chunk of a stream has them, and the first line of each in the text.
    pub(crate) fn to_chunk(&self) -> (Vec<u8>, Vec<u64>) {
        let (mut text, mut lines) = (Vec::new(), Vec::with_capacity(self.records.len()));
        for (record, line) in &self.records {
            text.extend_from_slice(record);
            text.push(b'\n');
            lines.push(*line);
        }
        (text, lines)
    }

    /// Returns the records as objects. A column has numbers or booleans if all its values are, otherwise strings.
    ///
    /// # Errors
    /// As [`Columns::read_record`].
    pub(crate) fn to_objects(&self) -> Result<Vec<Json>, GatewayError> {
        let columns = guess_columns(&self.header, &self.records)?;
        self.records.iter().map(|(record, line)| columns.read_record(record, *line)).collect()
    }
}

/// Passes to `each` where each record after the first `start` bytes is in the text, and its line, until it returns false.
fn for_each_record(
    text: &[u8],
    mut start: usize,
    format: CsvFormat,
    mut each: impl FnMut(Range<usize>, u64) -> bool,
) {
    let mut scanner = RecordScanner::new(format);
    let mut line = 1 + memchr_iter(b'\n', text.get(..start).unwrap_or_default()).count() as u64;
    while let Some(rest) = text.get(start..).filter(|rest| !rest.is_empty()) {
        let length = scanner.find_end(rest).unwrap_or(rest.len());
        let record = rest.get(..length).unwrap_or_default();
        let trimmed = trim_record(record);
        if count_blank_bytes(record, format) < record.len() {
            let range = start + trimmed.start..start + trimmed.end;
            if !each(range, line + trimmed.start as u64) {
                return;
            }
        }
        line += memchr_iter(b'\n', record).count() as u64;
        start += length;
    }
}

fn guess_columns(
    header: &CsvHeader,
    records: &[(&[u8], u64)],
) -> Result<Columns<'static>, GatewayError> {
    let mut kinds = vec![None; header.names().len()];
    for (record, line) in records {
        let cells = read_cells(record, header.format, *line, header.column_count())?;
        for (kind, Cell { value, .. }) in kinds.iter_mut().zip(cells) {
            let guessed = guess_value(&value, header.format);
            *kind = match (*kind, guessed) {
                (kind, None) => kind,
                (None, guessed) => guessed,
                (one, other) if one == other => one,
                _ => Some(Form::Text),
            };
        }
    }
    let mut kinds = kinds.into_iter();
    Columns::build(header, |name| {
        let form = kinds.next().flatten().unwrap_or(Form::Text);
        let levels = name.split('.').count();
        if levels > MAX_LEVELS {
            return Err(format!("the name has {levels} levels; the maximum is {MAX_LEVELS}"));
        }
        Ok((name.split('.').collect(), CellKind::single(form)))
    })
}

/// Returns the kind of a cell; `None` if it is empty.
fn guess_value(text: &str, format: CsvFormat) -> Option<Form> {
    let text = text.trim();
    let number = if format.decimal_comma { text.replace(',', ".") } else { text.to_owned() };
    match text {
        "" => None,
        "true" | "false" | "TRUE" | "FALSE" => Some(Form::Boolean),
        _ if format.decimal_comma && text.contains('.') => Some(Form::Text),
        // `007` is probably a name.
        _ if is_number(&number) => Some(Form::Number),
        _ => Some(Form::Text),
    }
}

/// Returns whether a text is a number as JSON writes it.
fn is_number(text: &str) -> bool {
    to_json_number(text).is_some_and(|json| json == text)
}
