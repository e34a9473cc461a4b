//! Dead letters: objects that an ingestion rejected and left out. Their texts are kept as received until someone retries
//! or deletes them.
//!
//! The commit of an ingestion stores its dead letters, so neither exists without the other. `record` has their stored
//! form and their tables, `errors` the form of their errors, `shares` the totals and the limits, `change` adds and removes
//! them.
//!
//! Dead letters are evicted in the order of their sequences, because a clock can be set back.
//! They expire by elapsed time, so setting a clock ahead removes nothing. A removal needs only the entry in
//! `dead-letters.by-origin`, so it does not fail because a dead letter cannot be read.

mod change;
mod errors;
mod read;
mod record;
mod shares;
#[cfg(test)]
mod tests;

pub(crate) use change::{NewDeadLetter, Retention, add_letters, remove_letter, replace_errors};
pub use change::{delete_letter, evict_letters, expire_letters};
pub(crate) use errors::{
    MAX_LISTED_ERRORS, count_error_bytes, keep_error, list_first_errors, not_stored_error,
};
pub use read::{
    ListedLetters, find_letter, list_ingestion_letters, list_letters, list_oldest_letters,
    read_text, read_totals,
};
pub use record::{CsvRecordForm, DeadLetter, MessageForm, Origin};
pub use shares::Totals;
