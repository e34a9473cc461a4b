//! A collection of documents in the order of their creation, of which the newest are kept.
//!
//! Keys begin with the journal's sequence and not with a time, because a clock can be set back. The number of entries
//! and their total bytes are a separate document: counting them would cost more the more there are.
use penstock_base::fault::Fault;
use penstock_store::{DocumentRange, Read, Transaction};

const SUMS: &str = "bounded-sums";

/// A bounded collection, with at most one new entry per transaction. An entry is the number of bytes that it accounts
/// for, followed by its value.
#[derive(Debug, Clone, Copy)]
pub(super) struct Bounded(pub(super) &'static str);

/// The totals of a collection.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Sum {
    pub(super) entries: u64,
    pub(super) bytes: u64,
}

/// One entry of a collection.
#[derive(Debug)]
pub(super) struct Entry {
    pub(super) key: Vec<u8>,
    pub(super) value: Vec<u8>,
}

impl Bounded {
    /// Returns the key of the entry that the transaction with this sequence adds.
    pub(super) fn key(sequence: u64) -> [u8; 8] {
        sequence.to_be_bytes()
    }

    /// Adds an entry that accounts for `bytes` bytes.
    pub(super) fn add(
        self,
        transaction: &mut Transaction<'_>,
        sequence: u64,
        value: &[u8],
        bytes: u64,
    ) -> Result<(), Fault> {
        let entry = [bytes.to_be_bytes().as_slice(), value].concat();
        transaction.put(self.0, &Self::key(sequence), &entry)?;
        let Sum { entries, bytes: before } = self.sum(transaction)?;
        let sum = Sum { entries: entries.saturating_add(1), bytes: before.saturating_add(bytes) };
        self.set_sum(transaction, sum)
    }

    pub(super) fn remove(self, transaction: &mut Transaction<'_>, key: &[u8]) -> Result<(), Fault> {
        let Some(entry) = transaction.document(self.0, key)? else { return Ok(()) };
        transaction.delete(self.0, key)?;
        let Sum { entries, bytes } = self.sum(transaction)?;
        let gone = entry.first_chunk::<8>().map_or(0, |bytes| u64::from_be_bytes(*bytes));
        let sum = Sum { entries: entries.saturating_sub(1), bytes: bytes.saturating_sub(gone) };
        self.set_sum(transaction, sum)
    }

    /// Returns the oldest entry.
    pub(super) fn oldest(self, read: &impl Read) -> Result<Option<Entry>, Fault> {
        let range = DocumentRange { limit: 1, ..DocumentRange::default() };
        let oldest = read.documents(self.0, range)?.into_iter().next();
        Ok(oldest.map(|(key, entry)| Entry { key, value: Self::value(&entry).to_vec() }))
    }

    /// Returns the value in an encoded entry.
    pub(super) fn value(entry: &[u8]) -> &[u8] {
        entry.get(8..).unwrap_or_default()
    }

    pub(super) fn sum(self, read: &impl Read) -> Result<Sum, Fault> {
        let sum = read.document(SUMS, self.0.as_bytes())?.unwrap_or_default();
        let (numbers, _) = sum.as_chunks::<8>();
        let &[entries, bytes] = numbers else { return Ok(Sum::default()) };
        Ok(Sum { entries: u64::from_be_bytes(entries), bytes: u64::from_be_bytes(bytes) })
    }

    fn set_sum(self, transaction: &mut Transaction<'_>, sum: Sum) -> Result<(), Fault> {
        let sum = [sum.entries.to_be_bytes(), sum.bytes.to_be_bytes()].concat();
        Ok(transaction.put(SUMS, self.0.as_bytes(), &sum)?)
    }
}
