//! A collection of documents in the order of their creation. It knows its size, so that callers can remove the oldest
//! entries and keep the newest.
//!
//! The key is the journal's sequence and not a time, because a clock can be set back. The number of entries and their
//! total bytes are in a separate document, because counting would take longer with each entry.
use penstock_base::error::GatewayError;
use penstock_store::{DocumentRange, Read, Transaction};

const TOTALS: &str = "bounded-sums";

/// A bounded collection, with at most one new entry per transaction. An entry is stored as the number of bytes that it
/// counts for (`u64`, big endian), followed by its value.
#[derive(Debug, Clone, Copy)]
pub(super) struct BoundedCollection(pub(super) &'static str);

/// The totals of a collection.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct CollectionTotals {
    pub(super) entries: u64,
    pub(super) bytes: u64,
}

/// One entry of a collection.
#[derive(Debug)]
pub(super) struct Entry {
    pub(super) key: Vec<u8>,
    pub(super) value: Vec<u8>,
}

impl BoundedCollection {
    /// Returns the key of the entry that the transaction with this sequence adds.
    pub(super) fn entry_key(sequence: u64) -> [u8; 8] {
        sequence.to_be_bytes()
    }

    /// Adds an entry that counts for `bytes` bytes.
    pub(super) fn add(
        self,
        transaction: &mut Transaction<'_>,
        sequence: u64,
        value: &[u8],
        bytes: u64,
    ) -> Result<(), GatewayError> {
        let entry = [bytes.to_be_bytes().as_slice(), value].concat();
        transaction.put_document(self.0, &Self::entry_key(sequence), &entry)?;
        let CollectionTotals { entries, bytes: before } = self.read_totals(transaction)?;
        let totals = CollectionTotals {
            entries: entries.saturating_add(1),
            bytes: before.saturating_add(bytes),
        };
        self.write_totals(transaction, totals)
    }

    pub(super) fn remove(
        self,
        transaction: &mut Transaction<'_>,
        key: &[u8],
    ) -> Result<(), GatewayError> {
        let Some(entry) = transaction.read_document(self.0, key)? else { return Ok(()) };
        transaction.delete_document(self.0, key)?;
        let CollectionTotals { entries, bytes } = self.read_totals(transaction)?;
        let gone = entry.first_chunk::<8>().map_or(0, |bytes| u64::from_be_bytes(*bytes));
        let totals = CollectionTotals {
            entries: entries.saturating_sub(1),
            bytes: bytes.saturating_sub(gone),
        };
        self.write_totals(transaction, totals)
    }

    /// Returns the oldest entry.
    pub(super) fn read_oldest(self, read: &impl Read) -> Result<Option<Entry>, GatewayError> {
        let range = DocumentRange { limit: 1, ..DocumentRange::default() };
        let oldest = read.read_documents(self.0, range)?.into_iter().next();
        Ok(oldest.map(|(key, entry)| Entry { key, value: Self::entry_value(&entry).to_vec() }))
    }

    /// Returns the value in an encoded entry.
    pub(super) fn entry_value(entry: &[u8]) -> &[u8] {
        entry.get(8..).unwrap_or_default()
    }

    pub(super) fn read_totals(self, read: &impl Read) -> Result<CollectionTotals, GatewayError> {
        let totals = read.read_document(TOTALS, self.0.as_bytes())?.unwrap_or_default();
        let (numbers, _) = totals.as_chunks::<8>();
        let &[entries, bytes] = numbers else { return Ok(CollectionTotals::default()) };
        Ok(CollectionTotals {
            entries: u64::from_be_bytes(entries),
            bytes: u64::from_be_bytes(bytes),
        })
    }

    fn write_totals(
        self,
        transaction: &mut Transaction<'_>,
        totals: CollectionTotals,
    ) -> Result<(), GatewayError> {
        let totals = [totals.entries.to_be_bytes(), totals.bytes.to_be_bytes()].concat();
        Ok(transaction.put_document(TOTALS, self.0.as_bytes(), &totals)?)
    }
}
