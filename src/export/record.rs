//! The stored form of queue entries: documents of the store, committed together with their sequences.
//!
//! An entry has three numbers. Its *order* identifies it, and grows with each new entry of any target. Its *place*
//! is its position in its target's queue. Its *sequence* is for the consumer: it numbers the exports of one Business
//! Object for one target.
//!
//! | collection | key | value |
//! |---|---|---|
//! | `exports` | order (u64, big endian) | [`Record`] as JSON. |
//! | `export-ids` | id | order. |
//! | `export-sequences` | target, 0, Business Object name | the last assigned sequence (u64, big endian). |
//! | `export-delivered` | as for its sequence | the highest sequence that was delivered to a SPARQL store (u64, big endian). |
//! | `export-held` | as for its sequence | objects of the last full export and all incremental ones since (u64, big endian). |
mod stored_entry;

use penstock_resources::export::Export;
use penstock_store::{DocumentRange, Error, Read, Transaction};
use serde::{Deserialize, Serialize};
use stored_entry::StoredEntry;

pub(super) const EXPORTS: &str = "exports";
pub(super) const EXPORT_IDS: &str = "export-ids";
/// The collection of the last sequence assigned to each target and Business Object.
pub const EXPORT_SEQUENCES: &str = "export-sequences";
/// The collection of the highest sequence delivered to each SPARQL store, for each Business Object.
pub(super) const EXPORT_DELIVERED: &str = "export-delivered";
pub(super) const EXPORT_OBJECT_COUNTS: &str = "export-held";

/// The maximum number of records read at a time.
const RECORDS_PER_PAGE: usize = 200;

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

/// Reads the record with this order.
pub(super) fn read_by_order(read: &impl Read, order: u64) -> Result<Option<Record>, Error> {
    Ok(read.read_document(EXPORTS, &order.to_be_bytes())?.as_deref().and_then(parse_record))
}

/// Reads the order of the entry with this id.
pub(super) fn read_order(read: &impl Read, id: &str) -> Result<Option<u64>, Error> {
    read_number(read, EXPORT_IDS, id.as_bytes())
}

/// Reads a page of records with their orders, starting after the order `after` (before it if `reverse`).
pub(super) fn read_page(
    read: &impl Read,
    after: Option<u64>,
    reverse: bool,
    limit: usize,
) -> Result<Vec<(u64, Record)>, Error> {
    let after = after.map(u64::to_be_bytes);
    let range = DocumentRange {
        prefix: b"",
        after: after.as_ref().map(<[u8; 8]>::as_slice),
        reverse,
        limit,
    };
    let documents = read.read_documents(EXPORTS, range)?;
    Ok(documents
        .iter()
        .filter_map(|(key, value)| Some((to_u64(key)?, parse_record(value)?)))
        .collect())
}

/// Passes every record to `each`, oldest first, reading page by page. A record that cannot be read is passed as
/// `None`.
pub(super) fn scan_records(
    store: &penstock_store::Store,
    each: &mut dyn FnMut(u64, Option<Record>),
) -> Result<(), Error> {
    let mut after: Option<Vec<u8>> = None;
    loop {
        let range = DocumentRange {
            after: after.as_deref(),
            limit: RECORDS_PER_PAGE,
            ..DocumentRange::default()
        };
        let documents = store.read().read_documents(EXPORTS, range)?;
        for (key, value) in &documents {
            each(to_u64(key).unwrap_or_default(), parse_record(value));
        }
        match documents.into_iter().last() {
            Some((last, _)) => after = Some(last),
            None => return Ok(()),
        }
    }
}

/// Removes a record.
pub(super) fn delete_record(
    transaction: &mut Transaction<'_>,
    order: u64,
    id: &str,
) -> Result<(), Error> {
    transaction.delete_document(EXPORTS, &order.to_be_bytes())?;
    transaction.delete_document(EXPORT_IDS, id.as_bytes())
}

/// Writes a record under its order.
pub(super) fn put_record(
    transaction: &mut Transaction<'_>,
    order: u64,
    record: &Record,
) -> Result<(), Error> {
    let value = serde_json::to_vec(record).expect("a record has only string keys");
    transaction.put_document(EXPORTS, &order.to_be_bytes(), &value)
}

/// Reads a number that is stored as a document.
pub(super) fn read_number(
    read: &impl Read,
    collection: &str,
    key: &[u8],
) -> Result<Option<u64>, Error> {
    Ok(read.read_document(collection, key)?.as_deref().and_then(to_u64))
}

/// Reads the maximum number of objects that consumers of this target and Business Object may have.
pub(super) fn read_object_count(
    read: &impl Read,
    target: &str,
    business_object: &str,
) -> Result<u64, Error> {
    Ok(read_number(read, EXPORT_OBJECT_COUNTS, &sequence_key(target, business_object))?
        .unwrap_or(0))
}

/// Returns the key of a sequence. A target's name never contains the byte 0.
pub(super) fn sequence_key(target: &str, business_object: &str) -> Vec<u8> {
    [target.as_bytes(), &[0], business_object.as_bytes()].concat()
}

fn to_u64(bytes: &[u8]) -> Option<u64> {
    bytes.try_into().ok().map(u64::from_be_bytes)
}

fn parse_record(bytes: &[u8]) -> Option<Record> {
    serde_json::from_slice(bytes)
        .inspect_err(
            |error| tracing::error!(%error, "A record of the export queue could not be read."),
        )
        .ok()
}
