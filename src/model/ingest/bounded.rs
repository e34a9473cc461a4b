//! A log that knows its size, so that callers can remove the oldest entries and keep the newest.
//!
//! The key is the journal's sequence and not a time, because a clock can be set back. The number of entries and their
//! total bytes are in a document of their own, because counting would take longer with each entry.
use penstock_base::collections::{self, Collection};
use penstock_base::table::{Codec, Table};
use penstock_store::{Error, Read, Transaction};

/// The maximum number of old entries that a commit removes. After a limit was lowered, later commits remove the rest.
pub(super) const MAX_REMOVALS: usize = 500;

/// The number of entries and their bytes, by the name of the log's collection.
const TOTALS: Table<String, (u64, u64)> = Table::new(collections::BOUNDED_SUMS);

/// A bounded log, with at most one new entry per transaction: by sequence, the number of bytes that an entry counts for,
/// and its value.
#[derive(Debug)]
pub(super) struct BoundedLog<V>(Table<u64, (u64, V)>);

impl<V: Codec> BoundedLog<V> {
    pub(super) const fn new(collection: Collection) -> Self {
        Self(Table::new(collection))
    }

    /// Returns the entries as a table, for reading.
    pub(super) const fn entries(&self) -> Table<u64, (u64, V)> {
        self.0
    }

    /// Adds an entry that counts for `bytes` bytes.
    pub(super) fn add(
        &self,
        transaction: &mut Transaction<'_>,
        sequence: u64,
        value: V::Ref<'_>,
        bytes: u64,
    ) -> Result<(), Error> {
        self.0.put(transaction, sequence, (bytes, value))?;
        let (entries, before) = self.read_totals(transaction)?;
        let totals = (entries.saturating_add(1), before.saturating_add(bytes));
        TOTALS.put(transaction, self.0.collection().name, totals)
    }

    /// Removes the entry of this sequence, if there is one.
    pub(super) fn remove(
        &self,
        transaction: &mut Transaction<'_>,
        sequence: u64,
    ) -> Result<(), Error> {
        let entry = self.0.with_values::<(u64, Vec<u8>)>().get(transaction, sequence)?;
        let Some((gone, _)) = entry else { return Ok(()) };
        self.0.delete(transaction, sequence)?;
        let (entries, bytes) = self.read_totals(transaction)?;
        let totals = (entries.saturating_sub(1), bytes.saturating_sub(gone));
        TOTALS.put(transaction, self.0.collection().name, totals)
    }

    /// Returns the oldest entry: its sequence and its value.
    pub(super) fn read_oldest(&self, read: &dyn Read) -> Result<Option<(u64, V::Owned)>, Error> {
        let Some(row) = self.0.scan().first(read)? else { return Ok(None) };
        Ok(row.entry_or_log().map(|(sequence, (_, value))| (sequence, value)))
    }

    /// Returns the number of entries, and their bytes.
    pub(super) fn read_totals(&self, read: &dyn Read) -> Result<(u64, u64), Error> {
        Ok(TOTALS.get_or_log(read, self.0.collection().name)?.unwrap_or_default())
    }
}
