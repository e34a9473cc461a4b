//! The stored form of queue entries: documents of the store, committed together with their sequences.
//!
//! An entry has three numbers. Its *order* identifies it, and grows with each new entry of any target. Its *place*
//! is its position in its target's queue. Its *sequence* is for the consumer: it numbers the exports of one Business
//! Object for one target.
mod stored_entry;

use penstock_base::collections;
use penstock_base::table::{AsJson, Table};
use penstock_resources::export::Export;
use penstock_store::{Error, Transaction};
use serde::{Deserialize, Serialize};
use stored_entry::StoredEntry;

/// The records, by order.
pub(super) const EXPORTS: Table<u64, AsJson<Record>> = Table::new(collections::EXPORTS);
/// The orders, by id.
pub(super) const EXPORT_IDS: Table<String, u64> = Table::new(collections::EXPORT_IDS);
/// The last sequence that was assigned, by target and Business Object name. No name of a target contains the byte 0.
pub(super) const EXPORT_SEQUENCES: Table<(String, String), u64> =
    Table::new(collections::EXPORT_SEQUENCES);
/// The highest sequence that was delivered to a SPARQL store, by target and Business Object name.
pub(super) const EXPORT_DELIVERED: Table<(String, String), u64> =
    Table::new(collections::EXPORT_DELIVERED);
/// The maximum number of objects that consumers have, by target and Business Object name: those of the last full export
/// and of all incremental ones since.
pub(super) const EXPORT_OBJECT_COUNTS: Table<(String, String), u64> =
    Table::new(collections::EXPORT_HELD);

/// Forgets how many objects consumers have, after a restore: they may have those of exports since the backup.
///
/// # Errors
/// The errors of the store.
pub fn forget_object_counts(transaction: &mut Transaction<'_>) -> Result<(), Error> {
    EXPORT_OBJECT_COUNTS.scan().delete(transaction, usize::MAX).map(drop)
}

/// An entry with the data that only the queue uses.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Record {
    /// The entry as the API shows it, in the form [`StoredEntry`].
    #[serde(with = "StoredEntry")]
    pub(super) entry: Export,
    /// Its place in its target's queue: its order, or after a replay a later number from the same counter.
    pub(super) place: u64,
    /// Whether the spool still has its file.
    pub(super) kept: bool,
    /// The generations of changes that the export contains: after the first number, up to and including the second.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) covers: Option<(u64, u64)>,
    /// The configured target when the export was created, as text. Absent for the embedded default.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) made_for: Option<String>,
    /// The metadata as a document of its own, which is delivered before the file. Absent if the metadata is in the file
    /// (`json`). It is stored, so that a repeated delivery has the same bytes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) metadata: Option<String>,
    /// The version of the Business Object that the file was rendered with. Absent if an earlier version of the gateway
    /// queued it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) schema_version: Option<u64>,
}

impl Record {
    /// Returns the name of its file in the spool.
    pub(super) fn spool_file_name(&self) -> String {
        file_name(&self.entry.id)
    }
}

/// Returns the name of an export's file in the spool, which is the same for every format.
pub(super) fn file_name(id: &str) -> String {
    format!("{id}.json")
}
