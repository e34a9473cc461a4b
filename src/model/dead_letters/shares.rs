//! Fair shares: past the limit, the origin that has most bytes loses its oldest dead letter, again and again until the
//! others fit. So no origin loses one while it has less than its equal share, however many another origin sends.
use super::change::remove_entry;
use super::record::OrderEntry;
use super::{BY_ORIGIN, IdBytes, REMOVED, TOTALS};
use penstock_base::error::GatewayError;
use penstock_store::{DocumentRange, Read, Transaction};
use std::collections::VecDeque;

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
}

/// Reads the share of the origin with this key; of all together if it is empty.
pub(super) fn read_share(read: &impl Read, origin: &[u8]) -> Result<Share, GatewayError> {
    Ok(read.read_document(TOTALS, origin)?.map(|value| Share::decode(&value)).unwrap_or_default())
}

/// Adds a dead letter of this many bytes to the totals, or removes it from them.
pub(super) fn count_letter(
    transaction: &mut Transaction<'_>,
    origin: &[u8],
    bytes: u64,
    is_added: bool,
) -> Result<(), GatewayError> {
    for key in [origin, b""] {
        let Share { letters, bytes: total } = read_share(transaction, key)?;
        let share = if is_added {
            Share { letters: letters.saturating_add(1), bytes: total.saturating_add(bytes) }
        } else {
            Share { letters: letters.saturating_sub(1), bytes: total.saturating_sub(bytes) }
        };
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

/// Evicts dead letters until all together have at most `max_bytes`. Returns their ids.
pub(super) fn evict_excess(
    transaction: &mut Transaction<'_>,
    max_bytes: u64,
) -> Result<Vec<IdBytes>, GatewayError> {
    let mut evicted = Vec::new();
    if read_share(transaction, b"")?.bytes <= max_bytes {
        return Ok(evicted);
    }
    let mut origins: Vec<_> = list_origins(transaction)?
        .into_iter()
        .map(|(origin, bytes)| (OriginQueue::new(origin), bytes))
        .collect();
    let mut total: u64 = origins.iter().map(|(_, bytes)| bytes).sum();
    while total > max_bytes {
        let Some((queue, bytes)) = origins.iter_mut().max_by_key(|(_, bytes)| *bytes) else {
            break;
        };
        let Some(oldest) = queue.remove_oldest(transaction, &|_| true)? else { break };
        *bytes = bytes.saturating_sub(oldest.bytes);
        total = total.saturating_sub(oldest.bytes);
        evicted.push(oldest.id);
    }
    if !evicted.is_empty() {
        count_removed(transaction, evicted.len() as u64, 0)?;
    }
    Ok(evicted)
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
        if self.page.is_empty() {
            let prefix = [self.origin.as_slice(), &[0]].concat();
            let range = DocumentRange {
                prefix: &prefix,
                after: self.after.as_deref(),
                limit: ENTRIES_PER_READ,
                ..DocumentRange::default()
            };
            for (key, value) in read.read_documents(BY_ORIGIN, range)? {
                self.after = Some(key.clone());
                self.page.extend(OrderEntry::decode(&value).map(|entry| (key, entry)));
            }
        }
        Ok(self.page.front().map(|(_, entry)| *entry))
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
