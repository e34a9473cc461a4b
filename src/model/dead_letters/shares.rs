//! Fair shares: past the limit, the account that has most bytes loses the oldest dead letter of its API key that has most
//! bytes, again and again until the others fit. So no account loses one while it has less than its equal share, however
//! many others and however many keys send. The same holds for the keys of one account.
use super::record::{BY_INGESTION, BY_ORIGIN, LETTERS, OrderEntry, OrderKey, OriginKey, TEXTS};
use penstock_base::collections;
use penstock_base::store_as_fields;
use penstock_base::table::{Scan, Table};
use penstock_store::{Error, Read, Transaction};
use std::cmp::Ordering;
use std::collections::{BTreeMap, BinaryHeap, VecDeque};
use uuid::Uuid;

/// The totals of each origin; without one, of all together.
const TOTALS: Table<Option<OriginKey>, Share> = Table::new(collections::DEAD_LETTER_TOTALS);
/// The numbers of evicted and of expired dead letters.
const REMOVED: Table<(), (u64, u64)> = Table::new(collections::DEAD_LETTERS_REMOVED);

/// The number of entries that are read at a time.
const ENTRIES_PER_READ: usize = 500;

/// What is stored, and what the limits removed since the data directory was created.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Totals {
    /// The number of dead letters.
    pub letters: u64,
    /// Their bytes.
    pub bytes: u64,
    /// The number of dead letters that were removed because of `service.limits.rejected.bytes`.
    pub evicted: u64,
    /// The number of dead letters that were removed because of `service.limits.rejected.age`.
    pub expired: u64,
}

/// The number and bytes of the dead letters of one origin, or of all together.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Share {
    pub(super) letters: u64,
    pub(super) bytes: u64,
}

impl Share {
    /// Returns the share with one more dead letter, of this many bytes.
    pub(super) fn add(self, bytes: u64) -> Self {
        Self { letters: self.letters.saturating_add(1), bytes: self.bytes.saturating_add(bytes) }
    }

    /// Returns the share without a dead letter of this many bytes.
    pub(super) fn remove(self, bytes: u64) -> Self {
        Self { letters: self.letters.saturating_sub(1), bytes: self.bytes.saturating_sub(bytes) }
    }
}

store_as_fields!(Share: letters: u64, bytes: u64);

/// What an eviction removes.
#[derive(Debug, Clone, Copy)]
pub(super) struct Eviction {
    /// The bytes that all dead letters may have after it.
    pub(super) max_bytes: u64,
    /// The maximum number of dead letters that it removes.
    pub(super) max_letters: usize,
    /// The dead letter that stays whatever it takes.
    pub(super) kept: Option<Uuid>,
}

impl Eviction {
    /// Returns the eviction in the commit of a client, before which all dead letters have `before` bytes. The commit
    /// removes only what it replaces: if the limit was lowered, [`super::evict_letters`] removes the rest.
    pub(super) fn of_client(before: u64, max_bytes: u64) -> Self {
        Self { max_bytes: max_bytes.max(before), max_letters: usize::MAX, kept: None }
    }
}

/// Reads the share of an origin; without one, of all together.
pub(super) fn read_share(read: &dyn Read, origin: Option<(&str, &str)>) -> Result<Share, Error> {
    Ok(TOTALS.get(read, origin)?.unwrap_or_default())
}

/// Changes the totals of an origin, and those of all together.
pub(super) fn update_share(
    transaction: &mut Transaction<'_>,
    origin: (&str, &str),
    change: impl Fn(Share) -> Share,
) -> Result<(), Error> {
    for key in [Some(origin), None] {
        let share = change(read_share(transaction, key)?);
        if share.letters == 0 {
            TOTALS.delete(transaction, key)?;
        } else {
            TOTALS.put(transaction, key, &share)?;
        }
    }
    Ok(())
}

/// Removes the dead letter with this entry in the order of its origin.
pub(super) fn remove_entry(
    transaction: &mut Transaction<'_>,
    key: OrderKey<'_>,
    entry: OrderEntry,
) -> Result<(), Error> {
    LETTERS.delete(transaction, entry.id)?;
    TEXTS.delete(transaction, entry.id)?;
    BY_INGESTION.delete(transaction, (entry.ingestion, entry.id))?;
    BY_ORIGIN.delete(transaction, key)?;
    update_share(transaction, key.0, |share| share.remove(entry.bytes))
}

/// Reads the numbers of dead letters that the limits removed: evicted and expired.
pub(super) fn read_removed(read: &dyn Read) -> Result<(u64, u64), Error> {
    Ok(REMOVED.get(read, ())?.unwrap_or_default())
}

pub(super) fn count_removed(
    transaction: &mut Transaction<'_>,
    evicted: u64,
    expired: u64,
) -> Result<(), Error> {
    let (before, expired_before) = read_removed(transaction)?;
    let numbers = (before.saturating_add(evicted), expired_before.saturating_add(expired));
    REMOVED.put(transaction, (), numbers)
}

/// Evicts dead letters. Returns their ids.
pub(super) fn evict_excess(
    transaction: &mut Transaction<'_>,
    eviction: Eviction,
) -> Result<Vec<Uuid>, Error> {
    let Eviction { max_bytes, max_letters, kept } = eviction;
    let mut evicted = Vec::new();
    let mut total = read_share(transaction, None)?.bytes;
    if total <= max_bytes {
        return Ok(evicted);
    }
    let mut accounts = queue_accounts(list_origins(transaction)?);
    while total > max_bytes && evicted.len() < max_letters {
        let Some(mut account) = accounts.pop() else { break };
        // An account without a removable dead letter does not return to the queue.
        if let Some(oldest) = account.value.remove_oldest(transaction, kept)? {
            total = total.saturating_sub(oldest.bytes);
            evicted.push(oldest.id);
            account.bytes = account.bytes.saturating_sub(oldest.bytes);
            accounts.push(account);
        }
    }
    if !evicted.is_empty() {
        count_removed(transaction, evicted.len() as u64, 0)?;
    }
    Ok(evicted)
}

/// Something with a number of bytes, in a queue that returns what has most bytes first.
#[derive(Debug)]
struct Weighted<T> {
    bytes: u64,
    value: T,
}

impl<T> Ord for Weighted<T> {
    fn cmp(&self, other: &Self) -> Ordering {
        self.bytes.cmp(&other.bytes)
    }
}

impl<T> PartialOrd for Weighted<T> {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl<T> PartialEq for Weighted<T> {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}

impl<T> Eq for Weighted<T> {}

/// The origins of one account: its API keys, and the account itself.
#[derive(Debug, Default)]
struct AccountQueue(BinaryHeap<Weighted<OriginQueue>>);

impl AccountQueue {
    /// Removes the oldest dead letter of the origin that has most bytes, except the one that is kept. Returns its entry.
    fn remove_oldest(
        &mut self,
        transaction: &mut Transaction<'_>,
        kept: Option<Uuid>,
    ) -> Result<Option<OrderEntry>, Error> {
        while let Some(mut origin) = self.0.pop() {
            if origin.value.read_oldest(transaction)?.is_some_and(|oldest| Some(oldest.id) == kept)
            {
                origin.value.skip_oldest();
            }
            if let Some(oldest) = origin.value.remove_oldest(transaction, &|_| true)? {
                origin.bytes = origin.bytes.saturating_sub(oldest.bytes);
                self.0.push(origin);
                return Ok(Some(oldest));
            }
        }
        Ok(None)
    }
}

/// Returns the accounts of these origins.
fn queue_accounts(origins: Vec<(OriginKey, u64)>) -> BinaryHeap<Weighted<AccountQueue>> {
    let mut accounts: BTreeMap<String, Weighted<AccountQueue>> = BTreeMap::new();
    for (origin, bytes) in origins {
        let account = accounts
            .entry(origin.0.clone())
            .or_insert_with(|| Weighted { bytes: 0, value: AccountQueue::default() });
        account.bytes = account.bytes.saturating_add(bytes);
        account.value.0.push(Weighted { bytes, value: OriginQueue::new(&origin) });
    }
    accounts.into_values().collect()
}

/// Lists the origins that have dead letters, with their bytes.
pub(super) fn list_origins(read: &dyn Read) -> Result<Vec<(OriginKey, u64)>, Error> {
    let mut origins = Vec::new();
    for row in TOTALS.scan().read_all(read)? {
        let Some((origin, share)) = row.entry_or_log() else { continue };
        origins.extend(origin.map(|origin| (origin, share.bytes)));
    }
    Ok(origins)
}

/// The dead letters of one origin, oldest first. They are read in pages, because each read of a transaction looks at all
/// that it has changed in the collection.
#[derive(Debug)]
pub(super) struct OriginQueue {
    /// The entries that were read and not removed yet.
    page: VecDeque<((OriginKey, u64, u32), OrderEntry)>,
    rows: Scan<(OriginKey, u64, u32), OrderEntry>,
}

impl OriginQueue {
    pub(super) fn new((account, origin): &OriginKey) -> Self {
        let rows = BY_ORIGIN.scan().prefix::<OriginKey>((account, origin));
        Self { page: VecDeque::new(), rows }
    }

    /// Returns the oldest entry.
    pub(super) fn read_oldest(&mut self, read: &dyn Read) -> Result<Option<OrderEntry>, Error> {
        while self.page.is_empty() {
            let rows = self.rows.next_page(read, ENTRIES_PER_READ)?;
            if rows.is_empty() {
                break;
            }
            self.page.extend(rows.iter().filter_map(|row| row.entry().ok()));
        }
        Ok(self.page.front().map(|(_, entry)| *entry))
    }

    /// Leaves the oldest entry out.
    fn skip_oldest(&mut self) {
        self.page.pop_front();
    }

    /// Removes the oldest dead letter if `is_removable` says so, and returns its entry.
    pub(super) fn remove_oldest(
        &mut self,
        transaction: &mut Transaction<'_>,
        is_removable: &dyn Fn(&OrderEntry) -> bool,
    ) -> Result<Option<OrderEntry>, Error> {
        if !self.read_oldest(transaction)?.is_some_and(|oldest| is_removable(&oldest)) {
            return Ok(None);
        }
        let Some((key, oldest)) = self.page.pop_front() else { return Ok(None) };
        let ((account, origin), sequence, number) = &key;
        remove_entry(transaction, ((account, origin), *sequence, *number), oldest)?;
        Ok(Some(oldest))
    }
}
