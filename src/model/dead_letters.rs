//! Dead letters: objects that an ingestion rejected and left out. Their texts are kept as received until someone retries
//! or deletes them.
//!
//! The commit of an ingestion stores its dead letters, so neither exists without the other. `record` has their stored
//! form, `errors` that of their errors, `shares` the limits, `change` adds and removes them.
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

use penstock_base::collections;
use penstock_base::table::{AsJson, Table};
use record::OrderEntry;
use shares::Share;
use uuid::Uuid;

/// The dead letters, by id.
const LETTERS: Table<Uuid, AsJson<DeadLetter>> = Table::new(collections::DEAD_LETTERS);
/// The texts as received, by id.
const TEXTS: Table<Uuid, Vec<u8>> = Table::new(collections::DEAD_LETTER_TEXTS);
/// The ids of each ingestion: its id, and that of the dead letter.
const BY_INGESTION: Table<(Uuid, Uuid), ()> = Table::new(collections::DEAD_LETTERS_BY_INGESTION);
/// The order of each origin: the sequence of the commit, and the number in the commit.
const BY_ORIGIN: Table<(OriginKey, u64, u32), OrderEntry> =
    Table::new(collections::DEAD_LETTERS_BY_ORIGIN);
/// The totals of each origin; without one, of all together.
const TOTALS: Table<Option<OriginKey>, Share> = Table::new(collections::DEAD_LETTER_TOTALS);
/// The numbers of evicted and of expired dead letters.
const REMOVED: Table<(), (u64, u64)> = Table::new(collections::DEAD_LETTERS_REMOVED);

/// The account that sent dead letters, and the text of their origin. No id contains the byte 0.
type OriginKey = (String, String);

/// The key of an entry in the order of an origin.
type OrderKey<'k> = ((&'k str, &'k str), u64, u32);
