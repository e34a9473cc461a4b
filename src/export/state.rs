//! The state of the queue in memory: the place of each queued entry, and the progress of its delivery.
//!
//! Invariant: under the queue's lock, this state agrees with the committed records. It needs some tens of bytes for
//! each entry and never contains the entries themselves, so that a long queue uses little memory.
use super::backoff::FailedAttempts;
use super::cause::DeliveryOutcome;
use super::record::Record;
use super::spool;
use penstock_resources::export::{Export, ExportKind, ExportStatus};
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;
use std::time::Instant;
use tokio::sync::Notify;

/// The queue in memory.
#[derive(Debug, Default)]
pub(super) struct QueueState {
    /// The queues by target.
    pub(super) queues: HashMap<String, TargetQueue>,
    /// The next order or place to assign.
    pub(super) next_order: u64,
    /// Delivered entries by order: the size of the file in bytes, 0 if it is not kept.
    pub(super) delivered: BTreeMap<u64, u64>,
    /// Parked entries by order: the bytes that the file takes on the disk, 0 if it is gone. Otherwise a spool could be full
    /// of lost files, so that the full export which replaces them is never created.
    pub(super) parked: BTreeMap<u64, u64>,
    /// Whether there are unreadable records, which none of the fields above contains.
    pub(super) has_unreadable: bool,
    /// The ids of exports whose commit failed. Until the store is reopened it is unknown whether the commit exists, so
    /// their files stay.
    pub(super) unconfirmed: Vec<String>,
}

/// One target's queue.
#[derive(Debug, Default)]
pub(super) struct TargetQueue {
    /// Queued entries by place: their order and bytes.
    pub(super) waiting: BTreeMap<u64, (u64, u64)>,
    /// The total bytes of `waiting`.
    pub(super) bytes: u64,
    /// The bytes that the files of `waiting` take on the disk.
    disk_bytes: u64,
    /// The order of the entry that is being delivered.
    pub(super) delivering: Option<u64>,
    /// When the last attempt without a clear result ended, by order. The target may have stored these entries. After
    /// a start, the head of the queue is one of them, because the gateway may have crashed during its delivery.
    pub(super) unclear_since: HashMap<u64, Instant>,
    /// The entry whose last attempt failed.
    pub(super) failing: Option<FailingEntry>,
    /// Whether the last attempt reached the target.
    pub(super) reachable: Option<bool>,
    /// What the last delivery could not check at the target.
    pub(super) remark: Option<&'static str>,
    /// The names of the Business Objects of which the target needs a full export that only a push creates.
    pub(super) needed_pushes: BTreeSet<String>,
    /// When the last entry was delivered.
    pub(super) last_delivery: Option<String>,
    /// Ends the backoff before the next attempt.
    pub(super) wake: Arc<Notify>,
}

/// An entry whose last attempt failed.
#[derive(Debug, Clone)]
pub(super) struct FailingEntry {
    pub(super) order: u64,
    /// Its failures since it became the head of the queue, or since the start.
    pub(super) attempts: FailedAttempts,
}

impl QueueState {
    /// Adds a record from the store.
    pub(super) fn add_record(&mut self, order: u64, record: &Record) {
        self.next_order = self.next_order.max(order + 1).max(record.place + 1);
        let target_queue = self.queues.entry(record.entry.target.clone()).or_default();
        if let Some(at) = &record.entry.delivered_at
            && target_queue.last_delivery.as_ref().is_none_or(|last| last < at)
        {
            target_queue.last_delivery = Some(at.clone());
        }
        match record.entry.status {
            ExportStatus::Delivered => {
                self.delivered.insert(order, if record.kept { record.entry.bytes } else { 0 });
            }
            ExportStatus::Parked => {
                self.parked.insert(order, spool::disk_bytes(record.entry.bytes));
            }
            ExportStatus::Queued
            | ExportStatus::Delivering
            | ExportStatus::Blocked
            | ExportStatus::Waiting => {
                target_queue.add(order, record);
                self.parked.remove(&order);
            }
        }
    }

    /// Returns the bytes that all undelivered files take on the disk. A file counts once for each target.
    pub(super) fn undelivered_bytes(&self) -> u64 {
        let waiting: u64 = self.queues.values().map(|target_queue| target_queue.disk_bytes).sum();
        waiting + self.parked.values().sum::<u64>()
    }

    /// Returns the orders of all undelivered entries, or `None` if there are unreadable records.
    pub(super) fn undelivered_orders(&self) -> Option<Vec<u64>> {
        (!self.has_unreadable).then(|| self.readable_undelivered_orders())
    }

    /// Returns the orders of all undelivered entries with a readable record.
    pub(super) fn readable_undelivered_orders(&self) -> Vec<u64> {
        let waiting = self.queues.values().flat_map(|target_queue| target_queue.waiting.values());
        waiting.map(|(order, _)| *order).chain(self.parked.keys().copied()).collect()
    }

    /// Returns the entry in its current state.
    pub(super) fn current_entry(&self, order: u64, mut entry: Export) -> Export {
        let Some(target_queue) = self.queues.get(&entry.target) else { return entry };
        if let Some(failing) =
            target_queue.failing.as_ref().filter(|failing| failing.order == order)
        {
            entry.attempts += failing.attempts.count;
            entry.last_error = Some(failing.attempts.last.cause.clone());
            entry.status = ExportStatus::Blocked;
        }
        if target_queue.delivering == Some(order) {
            entry.status = ExportStatus::Delivering;
        }
        entry
    }
}

impl TargetQueue {
    /// Adds an entry at its place.
    pub(super) fn add(&mut self, order: u64, record: &Record) {
        if self.waiting.insert(record.place, (order, record.entry.bytes)).is_none() {
            self.bytes += record.entry.bytes;
            self.disk_bytes += spool::disk_bytes(record.entry.bytes);
        }
    }

    /// Records what the delivery of an entry has shown.
    pub(super) fn record_outcome(&mut self, entry: &Export, outcome: &DeliveryOutcome) {
        self.reachable = Some(true);
        self.remark = outcome.remark;
        self.last_delivery.clone_from(&entry.delivered_at);
        if outcome.needs_push {
            self.needed_pushes.insert(entry.business_object_name.clone());
        } else if entry.kind == ExportKind::Full && !outcome.needs_full {
            self.needed_pushes.remove(&entry.business_object_name);
        }
    }

    /// Returns what an operator should know although nothing failed.
    pub(super) fn remark(&self) -> Option<String> {
        let names: Vec<String> =
            self.needed_pushes.iter().map(|name| format!("`{name}`")).collect();
        let pushes = (!names.is_empty())
            .then(|| format!("the target needs a full export: push {}", names.join(", ")));
        let remarks: Vec<String> =
            self.remark.map(str::to_owned).into_iter().chain(pushes).collect();
        (!remarks.is_empty()).then(|| remarks.join("; "))
    }

    /// Removes an entry.
    pub(super) fn remove(&mut self, order: u64, record: &Record) {
        if let Some((_, bytes)) = self.waiting.remove(&record.place) {
            self.bytes -= bytes;
            self.disk_bytes -= spool::disk_bytes(bytes);
        }
        if self.delivering == Some(order) {
            self.delivering = None;
        }
        if self.failing.as_ref().is_some_and(|failing| failing.order == order) {
            self.failing = None;
        }
        self.unclear_since.remove(&order);
    }
}
