//! Dead letters: objects that an ingestion rejected and left out. Their texts are kept as received until someone retries
//! or deletes them.
//!
//! The commit of an ingestion stores its dead letters, so neither exists without the other. `record` has their stored
//! form, `errors` that of their errors, `shares` the limits, `change` adds and removes them.
//!
//! | collection | key | value |
//! |---|---|---|
//! | `dead-letters` | id (16 bytes) | [`DeadLetter`] as JSON |
//! | `dead-letters.texts` | id | the text, as received |
//! | `dead-letters.by-ingestion` | id of the ingestion (16 bytes), id | empty |
//! | `dead-letters.by-origin` | account, 0, origin, 0, sequence of the commit (u64), number in the commit (u32) | id, id of the ingestion, bytes (u64), elapsed milliseconds (u64) |
//! | `dead-letters.totals` | account, 0, origin; empty for all together | letters, bytes (u64 each) |
//! | `dead-letters.removed` | empty | evicted, expired (u64 each) |
//!
//! Numbers are big endian. Dead letters are evicted in the order of their sequences, because a clock can be set back.
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

const LETTERS: &str = "dead-letters";
const TEXTS: &str = "dead-letters.texts";
const BY_INGESTION: &str = "dead-letters.by-ingestion";
const BY_ORIGIN: &str = "dead-letters.by-origin";
const TOTALS: &str = "dead-letters.totals";
const REMOVED: &str = "dead-letters.removed";

/// The bytes of an id: a UUID of version 7.
type IdBytes = [u8; 16];

/// Returns the bytes of an id, or `None` if the text is not one.
fn parse_id(id: &str) -> Option<IdBytes> {
    uuid::Uuid::parse_str(id).ok().map(uuid::Uuid::into_bytes)
}

fn format_id(id: IdBytes) -> String {
    uuid::Uuid::from_bytes(id).to_string()
}
