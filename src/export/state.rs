//! What the queue holds in memory: where each waiting entry stands, and how delivery goes now.
//!
//! Invariant: under the queue's lock it agrees with the committed records. It holds some tens of
//! bytes an entry, never the entries themselves, so that a long queue costs little.
use super::cause::Class;
use super::entry::{Entry, Status};
use super::record::Record;
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::time::Instant;
use tokio::sync::Notify;

/// The queue in memory.
#[derive(Debug, Default)]
pub(super) struct State {
    /// By target.
    pub(super) lines: HashMap<String, Line>,
    /// The next order or place to give.
    pub(super) next: u64,
    /// Delivered entries by order: the bytes of the file, 0 when it is not kept.
    pub(super) delivered: BTreeMap<u64, u64>,
    /// Parked entries by order: the bytes of the file.
    pub(super) parked: BTreeMap<u64, u64>,
    /// Whether there are records that cannot be read, which are in none of these.
    pub(super) unread: bool,
}

/// One target's queue.
#[derive(Debug, Default)]
pub(super) struct Line {
    /// Waiting entries by place: their order and bytes.
    pub(super) waiting: BTreeMap<u64, (u64, u64)>,
    /// Bytes of all in `waiting`.
    pub(super) bytes: u64,
    /// The order of the entry under way.
    pub(super) under_way: Option<u64>,
    /// By order, the entries that the target was asked to store without saying how that ended, and until when
    /// that was not over: the head at the start, since the gateway may have crashed meanwhile.
    pub(super) unanswered: HashMap<u64, Instant>,
    /// The entry that did not get through.
    pub(super) failing: Option<Failing>,
    /// Whether the last attempt reached the target.
    pub(super) reachable: Option<bool>,
    /// When the last one was delivered.
    pub(super) last_delivery: Option<String>,
    /// Ends the wait before the next attempt.
    pub(super) wake: Arc<Notify>,
}

/// An entry that did not get through.
#[derive(Debug, Clone)]
pub(super) struct Failing {
    pub(super) order: u64,
    /// Failures since it came to the head, or since the start.
    pub(super) failures: u64,
    pub(super) error: String,
    pub(super) class: Class,
    /// When the first of them was (RFC 3339).
    pub(super) since: String,
    /// When the next attempt is due (RFC 3339).
    pub(super) next: String,
}

impl State {
    /// Takes up a record as it stands in the store.
    pub(super) fn take_up(&mut self, order: u64, record: &Record) {
        self.next = self.next.max(order + 1).max(record.place + 1);
        let line = self.lines.entry(record.entry.target.clone()).or_default();
        if let Some(at) = &record.entry.delivered_at
            && line.last_delivery.as_ref().is_none_or(|last| last < at)
        {
            line.last_delivery = Some(at.clone());
        }
        match record.entry.status {
            Status::Delivered => self.keep(order, if record.kept { record.entry.bytes } else { 0 }),
            Status::Parked => {
                self.parked.insert(order, record.entry.bytes);
            }
            Status::Queued | Status::Delivering | Status::Blocked | Status::Waiting => {
                line.add(order, record);
                self.parked.remove(&order);
            }
        }
    }

    /// Bytes of all files that no target has taken yet, each counted for each target.
    pub(super) fn held(&self) -> u64 {
        let waiting: u64 = self.lines.values().map(|line| line.bytes).sum();
        waiting + self.parked.values().sum::<u64>()
    }

    /// The orders of all that no target has taken yet; `None` when that cannot be told.
    pub(super) fn undelivered(&self) -> Option<Vec<u64>> {
        let waiting = self.lines.values().flat_map(|line| line.waiting.values());
        let orders = waiting.map(|(order, _)| *order).chain(self.parked.keys().copied());
        (!self.unread).then(|| orders.collect())
    }

    /// Takes a delivered entry into the history, or notes that its file is not kept (0 bytes).
    pub(super) fn keep(&mut self, order: u64, bytes: u64) {
        self.delivered.insert(order, bytes);
    }

    /// Takes an entry out of the history.
    pub(super) fn forget(&mut self, order: u64) {
        self.delivered.remove(&order);
    }

    /// The entry as it is now.
    pub(super) fn now(&self, order: u64, mut entry: Entry) -> Entry {
        let Some(line) = self.lines.get(&entry.target) else { return entry };
        if let Some(failing) = line.failing.as_ref().filter(|failing| failing.order == order) {
            entry.attempts += failing.failures;
            entry.last_error = Some(failing.error.clone());
            entry.status = Status::Blocked;
        }
        if line.under_way == Some(order) {
            entry.status = Status::Delivering;
        }
        entry
    }
}

impl Line {
    /// Lets an entry wait at its place.
    pub(super) fn add(&mut self, order: u64, record: &Record) {
        if self.waiting.insert(record.place, (order, record.entry.bytes)).is_none() {
            self.bytes += record.entry.bytes;
        }
    }

    /// The entry waits no more.
    pub(super) fn remove(&mut self, order: u64, record: &Record) {
        if let Some((_, bytes)) = self.waiting.remove(&record.place) {
            self.bytes -= bytes;
        }
        if self.under_way == Some(order) {
            self.under_way = None;
        }
        if self.failing.as_ref().is_some_and(|failing| failing.order == order) {
            self.failing = None;
        }
        self.unanswered.remove(&order);
    }
}
