//! Adds and removes dead letters, always in a commit that has another reason or checks its requester.
use super::read::find_letter;
use super::record::{BY_INGESTION, BY_ORIGIN, DeadLetter, LETTERS, OrderEntry, TEXTS};
use super::shares::{
    Eviction, OriginQueue, Share, count_removed, evict_excess, list_origins, read_share,
    remove_entry, update_share,
};
use penstock_base::commit::{GuardedStore, NoClient};
use penstock_base::error::{ErrorClass, GatewayError};
use penstock_base::telemetry::metrics;
use penstock_resources::problem::Finding;
use penstock_store::{Format, Transaction};
use std::collections::HashSet;
use uuid::Uuid;

/// The maximum number of dead letters that expire or are evicted in one commit that no client waits for.
const MAX_REMOVED_PER_COMMIT: usize = 500;

/// A dead letter to be stored: everything but its id and its place in the order.
#[derive(Debug)]
pub(crate) struct NewDeadLetter<'t> {
    pub(crate) letter: DeadLetter,
    pub(crate) text: &'t [u8],
}

/// How long dead letters are kept, and how many.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Retention {
    /// The elapsed milliseconds now.
    pub(crate) now: u64,
    /// The maximum bytes of all dead letters together.
    pub(crate) max_bytes: u64,
}

/// Stores dead letters, and evicts the oldest ones beyond the limit. Returns the id of each, in the same order; `None` if
/// it exceeds the limit itself. Also returns the number of evicted dead letters.
pub(crate) fn add_letters<'t>(
    transaction: &mut Transaction<'_>,
    letters: impl IntoIterator<Item = NewDeadLetter<'t>>,
    retention: Retention,
) -> Result<(Vec<Option<String>>, u64), GatewayError> {
    let before = read_share(transaction, None)?.bytes;
    let mut ids = Vec::new();
    for (number, NewDeadLetter { letter, text }) in (0..).zip(letters) {
        let id = Uuid::now_v7();
        let sequence = transaction.sequence();
        let letter = DeadLetter { id: id.to_string(), sequence, number, ..letter };
        if retention.max_bytes > 0 {
            let has_escape = letter.csv.as_ref().is_some_and(|csv| csv.format.array_escape);
            transaction.require_format(if has_escape { Format::V4 } else { Format::V3 });
            add_letter(transaction, id, &letter, text, retention.now)?;
        }
        ids.push(id);
    }
    if retention.max_bytes == 0 {
        return Ok((vec![None; ids.len()], 0));
    }
    let eviction = Eviction::of_client(before, retention.max_bytes);
    let evicted: HashSet<Uuid> = evict_excess(transaction, eviction)?.into_iter().collect();
    let ids = ids.into_iter().map(|id| (!evicted.contains(&id)).then(|| id.to_string())).collect();
    Ok((ids, evicted.len() as u64))
}

fn add_letter(
    transaction: &mut Transaction<'_>,
    id: Uuid,
    letter: &DeadLetter,
    text: &[u8],
    now: u64,
) -> Result<(), GatewayError> {
    let ingestion = Uuid::parse_str(&letter.ingestion_id).map_err(|_| {
        let detail = format!("the id of the ingestion {:?} is not a UUID", letter.ingestion_id);
        GatewayError::new(ErrorClass::Internal, detail)
    })?;
    let bytes = LETTERS.put_sized(transaction, id, letter)? + text.len() as u64;
    TEXTS.put(transaction, id, text)?;
    BY_INGESTION.put(transaction, (ingestion, id), ())?;
    let origin = letter.origin.to_string();
    let key = letter.order_key(&origin);
    BY_ORIGIN.put(transaction, key, &OrderEntry { id, ingestion, bytes, at: now })?;
    Ok(update_share(transaction, key.0, |share| share.add(bytes))?)
}

/// Removes a dead letter.
pub(crate) fn remove_letter(
    transaction: &mut Transaction<'_>,
    letter: &DeadLetter,
) -> Result<(), GatewayError> {
    let origin = letter.origin.to_string();
    let key = letter.order_key(&origin);
    let Some(entry) = BY_ORIGIN.get_readable(transaction, key)? else { return Ok(()) };
    Ok(remove_entry(transaction, key, entry)?)
}

/// Replaces the errors of a dead letter after a retry that failed, and evicts other dead letters if it is larger now and
/// does not fit. Returns the number of evicted dead letters.
pub(crate) fn replace_errors(
    transaction: &mut Transaction<'_>,
    letter: DeadLetter,
    errors: Vec<Finding>,
    max_bytes: u64,
) -> Result<u64, GatewayError> {
    let letter = DeadLetter { errors, ..letter };
    let origin = letter.origin.to_string();
    let key = letter.order_key(&origin);
    let Some(entry) = BY_ORIGIN.get_readable(transaction, key)? else { return Ok(0) };
    let before = read_share(transaction, None)?.bytes;
    let bytes =
        LETTERS.put_sized(transaction, entry.id, &letter)?.saturating_add(letter.text_bytes);
    BY_ORIGIN.put(transaction, key, &OrderEntry { bytes, ..entry })?;
    update_share(transaction, key.0, |share: Share| share.remove(entry.bytes).add(bytes))?;
    let eviction = Eviction::of_client(before, max_bytes);
    let evicted = evict_excess(transaction, Eviction { kept: Some(entry.id), ..eviction })?;
    Ok(evicted.len() as u64)
}

/// Deletes a dead letter. Returns false if there is none with this id.
///
/// # Errors
/// The errors of the store.
pub fn delete_letter(transaction: &mut Transaction<'_>, id: &str) -> Result<bool, GatewayError> {
    let Some(letter) = find_letter(transaction, id)? else { return Ok(false) };
    remove_letter(transaction, &letter)?;
    Ok(true)
}

/// Removes the dead letters that are older than `max_age` milliseconds, in commits of bounded size. `now` is the elapsed
/// time in milliseconds. Returns their number.
///
/// # Errors
/// The errors of the store.
pub fn expire_letters(store: &GuardedStore, now: u64, max_age: u64) -> Result<u64, GatewayError> {
    let mut expired = 0;
    let is_expired = |entry: &OrderEntry| now.saturating_sub(entry.at) > max_age;
    let origins = list_origins(&store.read())?;
    for (origin, _) in origins {
        loop {
            let oldest = OriginQueue::new(&origin).read_oldest(&store.read())?;
            if !oldest.is_some_and(|oldest| is_expired(&oldest)) {
                break;
            }
            let (count, _) = store.commit(&NoClient, |transaction| -> Result<_, GatewayError> {
                let mut queue = OriginQueue::new(&origin);
                let mut count = 0;
                while count < MAX_REMOVED_PER_COMMIT
                    && queue.remove_oldest(transaction, &is_expired)?.is_some()
                {
                    count += 1;
                }
                count_removed(transaction, 0, count as u64)?;
                Ok(count as u64)
            })?;
            metrics::count_removed_dead_letters("expired", count);
            expired += count;
        }
    }
    Ok(expired)
}

/// Evicts dead letters until all together have at most `max_bytes`, in commits of bounded size. This is necessary after
/// the limit was lowered. Returns their number.
///
/// # Errors
/// The errors of the store.
pub fn evict_letters(store: &GuardedStore, max_bytes: u64) -> Result<u64, GatewayError> {
    let eviction = Eviction { max_bytes, max_letters: MAX_REMOVED_PER_COMMIT, kept: None };
    let mut evicted = 0;
    while read_share(&store.read(), None)?.bytes > max_bytes {
        let (count, _) = store.commit(&NoClient, |transaction| -> Result<_, GatewayError> {
            Ok(evict_excess(transaction, eviction)?.len() as u64)
        })?;
        if count == 0 {
            break;
        }
        metrics::count_removed_dead_letters("evicted", count);
        evicted += count;
    }
    Ok(evicted)
}
