//! A collection of documents in the order they were made, of which the newest are kept.
//!
//! Keys begin with the journal's sequence and not with a time, since a clock can be set back. The number of
//! entries is a document of its own: counting them would cost more the more there are.
use crate::fault::Fault;
use penstock_store::{DocumentRange, Read, Transaction};

const COUNTS: &str = "bounded-counts";

/// Key and value.
type Entry = (Vec<u8>, Vec<u8>);

/// Such a collection; at most one entry a transaction.
#[derive(Debug, Clone, Copy)]
pub(super) struct Bounded(pub(super) &'static str);

impl Bounded {
    /// The key of the entry that this transaction adds, and its sequence.
    pub(super) fn key(sequence: u64) -> [u8; 8] {
        sequence.to_be_bytes()
    }

    pub(super) fn add(
        self,
        transaction: &mut Transaction<'_>,
        sequence: u64,
        value: &[u8],
    ) -> Result<(), Fault> {
        transaction.put(self.0, &Self::key(sequence), value)?;
        let count = self.count(transaction)?.saturating_add(1);
        self.set_count(transaction, count)
    }

    pub(super) fn remove(self, transaction: &mut Transaction<'_>, key: &[u8]) -> Result<(), Fault> {
        if transaction.document(self.0, key)?.is_none() {
            return Ok(());
        }
        transaction.delete(self.0, key)?;
        let count = self.count(transaction)?.saturating_sub(1);
        self.set_count(transaction, count)
    }

    /// The oldest entry.
    pub(super) fn oldest(self, read: &impl Read) -> Result<Option<Entry>, Fault> {
        let range = DocumentRange { limit: 1, ..DocumentRange::default() };
        Ok(read.documents(self.0, range)?.into_iter().next())
    }

    pub(super) fn count(self, read: &impl Read) -> Result<u64, Fault> {
        let count = read.document(COUNTS, self.0.as_bytes())?;
        let bytes = count.and_then(|count| <[u8; 8]>::try_from(count).ok());
        Ok(bytes.map_or(0, u64::from_be_bytes))
    }

    fn set_count(self, transaction: &mut Transaction<'_>, count: u64) -> Result<(), Fault> {
        Ok(transaction.put(COUNTS, self.0.as_bytes(), &count.to_be_bytes())?)
    }
}
