//! The documents of the queues.
use crate::collections;
use crate::table::{AsJson, Table};
use penstock_store::{Error, Read, Transaction};
use serde::{Deserialize, Serialize};

/// The events in JSON, by webhook and number. The name of a webhook never contains the byte 0.
pub(super) const EVENTS: Table<(String, u64), Vec<u8>> = Table::new(collections::WEBHOOK_EVENTS);
/// The totals, by webhook.
pub(super) const QUEUES: Table<String, AsJson<QueueTotals>> =
    Table::new(collections::WEBHOOK_QUEUES);
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
    read: &dyn Read,
    name: &str,
    until: u64,
    limit: usize,
) -> Result<QueuePage, Error> {
    let mut page = QueuePage { totals: read_queue_totals(read, name)?, ..QueuePage::default() };
    let mut bytes = 0;
    // One at a time, because an event can be large.
    let mut rows = EVENTS.scan().prefix::<String>(name).pages(|| read, 1);
    while page.events.len() + page.unreadable.len() < limit
        && bytes < MAX_PAGE_BYTES
        && let Some(row) = rows.next().transpose()?
    {
        let Some(((_, number), value)) = row.entry_or_log() else { continue };
        if number > until {
            break;
        }
        bytes += value.len();
        match parse_event(number, value) {
            Some(event) => page.events.push(event),
            None => page.unreadable.push(number),
        }
    }
    Ok(page)
}

/// Returns what the queue of a webhook holds.
///
/// # Errors
/// The errors of the store.
pub fn read_queue_totals(read: &dyn Read, name: &str) -> Result<QueueTotals, Error> {
    Ok(QUEUES.get_readable(read, name)?.unwrap_or_default())
}

/// Returns the highest number in the queue of a webhook.
pub(super) fn read_last_number(read: &dyn Read, name: &str) -> Result<Option<u64>, Error> {
    let last = EVENTS.scan().prefix::<String>(name).reverse().first(read)?;
    Ok(last.and_then(|row| row.key_or_log()).map(|(_, number)| number))
}

/// Deletes some events of a queue. Returns the bytes of each.
pub(super) fn delete_some_events(
    transaction: &mut Transaction<'_>,
    name: &str,
) -> Result<Vec<usize>, Error> {
    let found = EVENTS.scan().prefix::<String>(name).read(transaction, EVENTS_PER_DELETION)?;
    found.iter().try_for_each(|row| row.delete(transaction))?;
    Ok(found.iter().map(|row| row.value_bytes().len()).collect())
}

fn parse_event(number: u64, value: Vec<u8>) -> Option<WaitingEvent> {
    let json = String::from_utf8(value).ok()?;
    let EventHead { id, time } = serde_json::from_str(&json).ok()?;
    Some(WaitingEvent { number, id, time, json })
}
