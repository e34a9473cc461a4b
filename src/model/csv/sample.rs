//! Reads samples of CSV, of which neither the format nor the types are known.
use super::columns::{CellKind, CellValue, Columns};
use super::records::{Cell, RecordScanner, count_blank_bytes, read_cells, trim_record};
use super::{CsvFormat, CsvHeader};
use crate::mapping::Mapping;
use crate::view;
use memchr::memchr_iter;
use penstock_base::error::{ErrorClass, GatewayError};
use penstock_base::json::{Sample, SampleLimits};
use std::ops::Range;

/// The delimiters that are guessed, the most probable first.
const DELIMITERS: [char; 4] = [',', ';', '\t', '|'];

/// The maximum number of levels in the name of a column, such as 2 of `position.latitude`.
const MAX_LEVELS: usize = 20;

/// Returns the format of a text that is probably CSV: it has several lines, and is not JSON. The delimiter is the
/// character that is most often in the first line.
pub(crate) fn guess_format(text: &str) -> Option<CsvFormat> {
    let text = text.trim_start_matches('\u{feff}').trim();
    let (header, _) = text.split_once('\n')?;
    if text.starts_with(['{', '[']) {
        return None;
    }
    let count = |delimiter: char| header.matches(delimiter).count();
    // The last of the greatest is the first of the list.
    let delimiter = DELIMITERS.into_iter().rev().max_by_key(|delimiter| count(*delimiter))?;
    let format = CsvFormat { delimiter, ..CsvFormat::default() };
    if delimiter == ',' {
        return Some(format);
    }
    let mut has_comma = false;
    for (range, line) in list_records(text.as_bytes(), format) {
        let record = text.as_bytes().get(range).unwrap_or_default();
        for Cell { value, .. } in read_cells(record, format, line, usize::MAX).unwrap_or_default() {
            let value = value.trim();
            if value.contains('.') && is_number(value) {
                return Some(format);
            }
            has_comma |= value.matches(',').count() == 1 && is_number(&value.replace(',', "."));
        }
    }
    Some(CsvFormat { decimal_comma: has_comma, ..format })
}

/// Reads a sample of CSV: records at even distances, as objects. Their values have the types of the mapping. Without one,
/// a column has numbers or booleans if all its values are, otherwise strings.
///
/// # Errors
/// As [`CsvHeader::read`], [`Columns::find`] and [`Columns::read_record`].
pub(crate) fn read_csv_sample(
    text: &str,
    format: CsvFormat,
    mapping: Option<&Mapping>,
    limits: SampleLimits,
) -> Result<Sample, GatewayError> {
    let bytes = text.as_bytes();
    let mut records = list_records(bytes, format).into_iter();
    let Some((range, line)) = records.next() else {
        return Ok(Sample { objects: Vec::new(), total: 0, cut_length: None });
    };
    let header = CsvHeader::read(bytes.get(range).unwrap_or_default(), format, line)?;
    let total = records.len();
    let count = (limits.values / header.names().len().max(1)).clamp(1, limits.elements.max(1));
    let mut kept: Vec<(&[u8], u64)> = records
        .step_by(total.div_ceil(count).max(1))
        .map(|(range, line)| (bytes.get(range).unwrap_or_default(), line))
        .collect();
    while kept.iter().map(|(record, _)| record.len()).sum::<usize>() > limits.bytes {
        if kept.len() == 1 {
            let message = "a record is too large for a sample; leave out most of its columns";
            return Err(GatewayError::new(ErrorClass::TooLarge, message));
        }
        kept = kept.into_iter().step_by(2).collect();
    }
    let columns = match mapping {
        Some(mapping) => Columns::find(&header, mapping)?,
        None => guess_columns(&header, &kept)?,
    };
    let objects: Result<_, _> =
        kept.into_iter().map(|(record, line)| columns.read_record(record, line)).collect();
    Ok(Sample { objects: objects?, total, cut_length: None })
}

/// Returns where each record is in the text, and its line.
fn list_records(text: &[u8], format: CsvFormat) -> Vec<(Range<usize>, u64)> {
    let (mut scanner, mut start, mut line) = (RecordScanner::new(format), 0, 1);
    let mut records = Vec::new();
    while let Some(rest) = text.get(start..).filter(|rest| !rest.is_empty()) {
        let length = scanner.find_end(rest).unwrap_or(rest.len());
        let record = rest.get(..length).unwrap_or_default();
        let trimmed = trim_record(record);
        if count_blank_bytes(record, format) < record.len() {
            let range = start + trimmed.start..start + trimmed.end;
            records.push((range, line + trimmed.start as u64));
        }
        line += memchr_iter(b'\n', record).count() as u64;
        start += length;
    }
    records
}

fn guess_columns(header: &CsvHeader, records: &[(&[u8], u64)]) -> Result<Columns, GatewayError> {
    let mut kinds = vec![None; header.names().len()];
    for (record, line) in records {
        let cells = read_cells(record, header.format, *line, kinds.len())?;
        for (kind, Cell { value, .. }) in kinds.iter_mut().zip(cells) {
            let guessed = guess_value(&value, header.format);
            *kind = match (*kind, guessed) {
                (kind, None) => kind,
                (None, guessed) => guessed,
                (one, other) if one == other => one,
                _ => Some(CellValue::Text),
            };
        }
    }
    let mut kinds = kinds.into_iter();
    Columns::build(header, |name| {
        let value = kinds.next().flatten().unwrap_or(CellValue::Text);
        let levels = name.split('.').count();
        if levels > MAX_LEVELS {
            return Err(format!("the name has {levels} levels; the maximum is {MAX_LEVELS}"));
        }
        Ok((name.split('.').collect(), CellKind { value, is_array: false }))
    })
}

/// Returns the kind of a cell; `None` if it is empty.
fn guess_value(text: &str, format: CsvFormat) -> Option<CellValue> {
    let text = text.trim();
    let number = if format.decimal_comma { text.replace(',', ".") } else { text.to_owned() };
    match text {
        "" => None,
        "true" | "false" | "TRUE" | "FALSE" => Some(CellValue::Boolean),
        _ if format.decimal_comma && text.contains('.') => Some(CellValue::Text),
        // `007` is probably a name.
        _ if is_number(&number) => Some(CellValue::Number),
        _ => Some(CellValue::Text),
    }
}

/// Returns whether a text is a number as JSON writes it.
fn is_number(text: &str) -> bool {
    view::to_json_number(text).is_some_and(|json| json == text)
}
