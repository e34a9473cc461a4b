//! The documents of the queues.
use penstock_store::{DocumentRange, Error, Read, Transaction};
use serde::{Deserialize, Serialize};

pub(super) const EVENTS: &str = "webhook-events";
pub(super) const QUEUES: &str = "webhook-queues";
/// The number of events that are deleted in one commit, when a whole queue is deleted.
const EVENTS_PER_DELETION: usize = 1000;
/// A page ends after the event that exceeds these bytes.
const MAX_PAGE_BYTES: usize = 256 << 10;

/// What the queue of a webhook holds, and what has become of earlier events.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct QueueTotals {
    /// The number of events that wait.
    pub waiting: u64,
    /// Their bytes.
    pub bytes: u64,
    /// The number of events dropped that no event in the queue reports yet.
    pub missed: u64,
    /// The number of events dropped since the webhook was configured.
    pub dropped: u64,
    /// The number of events delivered since the webhook was configured.
    pub delivered: u64,
    /// When the last event was delivered (RFC 3339).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_delivery: Option<String>,
}

/// An event that waits for a webhook.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WaitingEvent {
    /// Its position in the queue.
    pub number: u64,
    /// Its identifier, which stays the same in every attempt.
    pub id: String,
    /// When it happened (RFC 3339).
    pub time: String,
    /// The event in JSON.
    pub json: String,
}

/// The first events in the queue of a webhook.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct QueuePage {
    /// The events, in order.
    pub events: Vec<WaitingEvent>,
    /// The numbers of documents between them that are no events.
    pub unreadable: Vec<u64>,
    /// What the whole queue holds.
    pub totals: QueueTotals,
}

/// The part of an event that its delivery needs.
#[derive(Deserialize)]
struct EventHead {
    id: String,
    time: String,
}

impl QueueTotals {
    pub(super) fn add(&mut self, bytes: usize) {
        self.waiting += 1;
        self.bytes += bytes as u64;
    }

    pub(super) fn remove(&mut self, bytes: usize) {
        self.waiting = self.waiting.saturating_sub(1);
        self.bytes = self.bytes.saturating_sub(bytes as u64);
    }

    pub(super) fn count_dropped(&mut self, count: u64) {
        self.missed += count;
        self.dropped += count;
    }
}

/// Reads the first events in the queue of a webhook: at most `limit` with numbers up to `until`, and fewer if they are
/// large.
///
/// # Errors
/// The errors of the store.
pub fn read_queue_page(
    read: &impl Read,
    name: &str,
    until: u64,
    limit: usize,
) -> Result<QueuePage, Error> {
    let mut page = QueuePage { totals: read_queue_totals(read, name)?, ..QueuePage::default() };
    let prefix = queue_prefix(name);
    let (mut after, mut bytes) = (None::<Vec<u8>>, 0);
    while page.events.len() + page.unreadable.len() < limit && bytes < MAX_PAGE_BYTES {
        // One at a time, because an event can be large.
        let range = DocumentRange {
            prefix: &prefix,
            after: after.as_deref(),
            limit: 1,
            ..DocumentRange::default()
        };
        let Some((key, value)) = read.read_documents(EVENTS, range)?.pop() else { break };
        let number = parse_number(&key);
        if number > until {
            break;
        }
        bytes += value.len();
        match parse_event(number, value) {
            Some(event) => page.events.push(event),
            None => page.unreadable.push(number),
        }
        after = Some(key);
    }
    Ok(page)
}

/// Returns what the queue of a webhook holds.
///
/// # Errors
/// The errors of the store.
pub fn read_queue_totals(read: &impl Read, name: &str) -> Result<QueueTotals, Error> {
    let stored = read.read_document(QUEUES, name.as_bytes())?;
    Ok(stored.as_deref().map(parse_totals).unwrap_or_default())
}

/// Returns the highest number in the queue of a webhook.
pub(super) fn read_last_number(read: &impl Read, name: &str) -> Result<Option<u64>, Error> {
    let prefix = queue_prefix(name);
    let range =
        DocumentRange { prefix: &prefix, limit: 1, reverse: true, ..DocumentRange::default() };
    Ok(read.read_documents(EVENTS, range)?.pop().map(|(key, _)| parse_number(&key)))
}

/// Deletes some events of a queue. Returns the bytes of each.
pub(super) fn delete_some_events(
    transaction: &mut Transaction<'_>,
    name: &str,
) -> Result<Vec<usize>, Error> {
    let prefix = queue_prefix(name);
    let range =
        DocumentRange { prefix: &prefix, limit: EVENTS_PER_DELETION, ..DocumentRange::default() };
    let found = transaction.read_documents(EVENTS, range)?;
    for (key, _) in &found {
        transaction.delete_document(EVENTS, key)?;
    }
    Ok(found.into_iter().map(|(_, value)| value.len()).collect())
}

/// Returns the beginning of the keys of a webhook's events. Its name never contains the byte 0.
fn queue_prefix(name: &str) -> Vec<u8> {
    [name.as_bytes(), &[0]].concat()
}

pub(super) fn event_key(name: &str, number: u64) -> Vec<u8> {
    [name.as_bytes(), &[0], &number.to_be_bytes()].concat()
}

/// Returns the number in a key of [`event_key`].
fn parse_number(key: &[u8]) -> u64 {
    key.last_chunk().copied().map_or(0, u64::from_be_bytes)
}

fn parse_event(number: u64, value: Vec<u8>) -> Option<WaitingEvent> {
    let json = String::from_utf8(value).ok()?;
    let EventHead { id, time } = serde_json::from_str(&json).ok()?;
    Some(WaitingEvent { number, id, time, json })
}

pub(super) fn parse_totals(bytes: &[u8]) -> QueueTotals {
    serde_json::from_slice(bytes).unwrap_or_default()
}

pub(super) fn put_totals(
    transaction: &mut Transaction<'_>,
    name: &str,
    totals: &QueueTotals,
) -> Result<(), Error> {
    let value = serde_json::to_vec(totals).expect("totals have only string keys");
    transaction.put_document(QUEUES, name.as_bytes(), &value)
}
