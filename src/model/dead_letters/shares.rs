//! Fair shares: past the limit, the account that has most bytes loses the oldest dead letter of its API key that has most
//! bytes, again and again until the others fit. So no account loses one while it has less than its equal share, however
//! many others and however many keys send. The same holds for the keys of one account.
use super::change::remove_entry;
use super::record::OrderEntry;
use super::{BY_ORIGIN, IdBytes, REMOVED, TOTALS};
use penstock_base::error::GatewayError;
use penstock_store::{DocumentRange, Read, Transaction};
use std::cmp::Ordering;
use std::collections::{BTreeMap, BinaryHeap, VecDeque};

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
    fn decode(value: &[u8]) -> Self {
        let (letters, bytes) = decode_pair(value);
        Self { letters, bytes }
    }

    /// Returns the share with one more dead letter, of this many bytes.
    pub(super) fn add(self, bytes: u64) -> Self {
        Self { letters: self.letters.saturating_add(1), bytes: self.bytes.saturating_add(bytes) }
    }

    /// Returns the share without a dead letter of this many bytes.
    pub(super) fn remove(self, bytes: u64) -> Self {
        Self { letters: self.letters.saturating_sub(1), bytes: self.bytes.saturating_sub(bytes) }
    }
}

/// What an eviction removes.
#[derive(Debug, Clone, Copy)]
pub(super) struct Eviction {
    /// The bytes that all dead letters may have after it.
    pub(super) max_bytes: u64,
    /// The maximum number of dead letters that it removes.
    pub(super) max_letters: usize,
    /// The dead letter that stays whatever it takes.
    pub(super) kept: Option<IdBytes>,
}

impl Eviction {
    /// Returns the eviction in the commit of a client, before which all dead letters have `before` bytes. The commit
    /// removes only what it replaces: if the limit was lowered, [`super::evict_letters`] removes the rest.
    pub(super) fn of_client(before: u64, max_bytes: u64) -> Self {
        Self { max_bytes: max_bytes.max(before), max_letters: usize::MAX, kept: None }
    }
}

/// Reads the share of the origin with this key; of all together if it is empty.
pub(super) fn read_share(read: &impl Read, origin: &[u8]) -> Result<Share, GatewayError> {
    Ok(read.read_document(TOTALS, origin)?.map(|value| Share::decode(&value)).unwrap_or_default())
}

/// Changes the totals of the origin with this key, and those of all together.
pub(super) fn update_share(
    transaction: &mut Transaction<'_>,
    origin: &[u8],
    change: impl Fn(Share) -> Share,
) -> Result<(), GatewayError> {
    for key in [origin, b""] {
        let share = change(read_share(transaction, key)?);
        if share.letters == 0 {
            transaction.delete_document(TOTALS, key)?;
        } else {
            transaction.put_document(TOTALS, key, &encode_pair(share.letters, share.bytes))?;
        }
    }
    Ok(())
}

/// Reads the numbers of dead letters that the limits removed: evicted and expired.
pub(super) fn read_removed(read: &impl Read) -> Result<(u64, u64), GatewayError> {
    Ok(read.read_document(REMOVED, b"")?.map(|value| decode_pair(&value)).unwrap_or_default())
}

pub(super) fn count_removed(
    transaction: &mut Transaction<'_>,
    evicted: u64,
    expired: u64,
) -> Result<(), GatewayError> {
    let (before, expired_before) = read_removed(transaction)?;
    let pair = encode_pair(before.saturating_add(evicted), expired_before.saturating_add(expired));
    Ok(transaction.put_document(REMOVED, b"", &pair)?)
}

/// Evicts dead letters. Returns their ids.
pub(super) fn evict_excess(
    transaction: &mut Transaction<'_>,
    eviction: Eviction,
) -> Result<Vec<IdBytes>, GatewayError> {
    let Eviction { max_bytes, max_letters, kept } = eviction;
    let mut evicted = Vec::new();
    let mut total = read_share(transaction, b"")?.bytes;
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
        kept: Option<IdBytes>,
    ) -> Result<Option<OrderEntry>, GatewayError> {
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
fn queue_accounts(origins: Vec<(Vec<u8>, u64)>) -> BinaryHeap<Weighted<AccountQueue>> {
    let mut accounts: BTreeMap<Vec<u8>, Weighted<AccountQueue>> = BTreeMap::new();
    for (origin, bytes) in origins {
        let account = origin.split(|byte| *byte == 0).next().unwrap_or_default().to_vec();
        let account = accounts
            .entry(account)
            .or_insert_with(|| Weighted { bytes: 0, value: AccountQueue::default() });
        account.bytes = account.bytes.saturating_add(bytes);
        account.value.0.push(Weighted { bytes, value: OriginQueue::new(origin) });
    }
    accounts.into_values().collect()
}

/// Lists the keys of the origins that have dead letters, with their bytes.
pub(super) fn list_origins(read: &impl Read) -> Result<Vec<(Vec<u8>, u64)>, GatewayError> {
    let all = DocumentRange { limit: usize::MAX, ..DocumentRange::default() };
    let totals = read.read_documents(TOTALS, all)?;
    let origins = totals.into_iter().filter(|(key, _)| !key.is_empty());
    Ok(origins.map(|(key, value)| (key, Share::decode(&value).bytes)).collect())
}

/// The dead letters of one origin, oldest first. They are read in pages, because each read of a transaction looks at all
/// that it has changed in the collection.
#[derive(Debug)]
pub(super) struct OriginQueue {
    origin: Vec<u8>,
    /// The entries that were read and not removed yet.
    page: VecDeque<(Vec<u8>, OrderEntry)>,
    /// The key of the last entry that was read.
    after: Option<Vec<u8>>,
}

impl OriginQueue {
    pub(super) fn new(origin: Vec<u8>) -> Self {
        Self { origin, page: VecDeque::new(), after: None }
    }

    /// Returns the oldest entry.
    pub(super) fn read_oldest(
        &mut self,
        read: &impl Read,
    ) -> Result<Option<OrderEntry>, GatewayError> {
        while self.page.is_empty() {
            let prefix = [self.origin.as_slice(), &[0]].concat();
            let range = DocumentRange {
                prefix: &prefix,
                after: self.after.as_deref(),
                limit: ENTRIES_PER_READ,
                ..DocumentRange::default()
            };
            let entries = read.read_documents(BY_ORIGIN, range)?;
            if entries.is_empty() {
                break;
            }
            for (key, value) in entries {
                self.after = Some(key.clone());
                self.page.extend(OrderEntry::decode(&value).map(|entry| (key, entry)));
            }
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
    ) -> Result<Option<OrderEntry>, GatewayError> {
        if !self.read_oldest(transaction)?.is_some_and(|oldest| is_removable(&oldest)) {
            return Ok(None);
        }
        let Some((key, oldest)) = self.page.pop_front() else { return Ok(None) };
        remove_entry(transaction, &self.origin, &key, oldest)?;
        Ok(Some(oldest))
    }
}

fn encode_pair(one: u64, other: u64) -> Vec<u8> {
    [one.to_be_bytes(), other.to_be_bytes()].concat()
}

fn decode_pair(value: &[u8]) -> (u64, u64) {
    let (numbers, _) = value.as_chunks::<8>();
    let &[one, other] = numbers else { return (0, 0) };
    (u64::from_be_bytes(one), u64::from_be_bytes(other))
}
