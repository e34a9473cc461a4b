//! CSV (RFC 4180): a header that names fields, and one record for each object.
//!
//! `records` finds the ends of records in a text that arrives in pieces, and reads their cells. `columns` finds the field
//! of each name in the header, and builds the JSON object of a record. `sample` reads samples, whose format and types it
//! guesses. `write` writes objects as records that are read as the same objects.
//!
//! Rules:
//! - A record ends with a line break outside quotes: `\n` or `\r\n`. Records without any value (`;;`) and empty lines are
//!   skipped.
//! - A line `sep=;` before the header names the delimiter. Columns after the last name are empty.
//! - An empty cell is an absent field.
//! - The name `position.latitude` is the field `latitude` of the object in the field `position`, unless a field has
//!   exactly that name. `sensors.T1.value` and `sensors["10.0.0.1"].value` are the field `value` of a member of a map.
//! - A cell becomes the type that its field has in the mapping. A number keeps its lexical form.

mod columns;
mod format;
mod header;
mod members;
mod records;
mod sample;
mod write;

pub use columns::check_text_field;
pub(crate) use columns::{Columns, TextField};
pub use format::CsvFormat;
pub use header::CsvHeader;
pub(crate) use members::split_member;
pub use records::{RecordScanner, count_blank_bytes};
pub(crate) use records::{record_error, trim_record};
pub(crate) use sample::{CsvSample, guess_format};
pub use write::{CsvOptions, CsvWriter};

#[cfg(test)]
mod tests;
