//! The delivery of the first entry of a target's queue.
use super::{ExportQueue, RECORDS_PER_READ};
use crate::backoff::{FailedAttempts, RetryRule};
use crate::cause::{DeliveryFailure, DeliveryOutcome};
use crate::delivery::DAMAGED_FILE;
use crate::history::{HistoryRemovals, MAX_REPLACED_PER_COMMIT};
use crate::key::ExportExt as _;
use crate::record::{EXPORT_DELIVERED, EXPORT_SEQUENCES, EXPORTS, Record};
use crate::state::{FailingEntry, QueueState};
use crate::uploads::UploadFolder;
use penstock_base::clock::Stamp;
use penstock_base::error::{ErrorClass, GatewayError};
use penstock_model::change_feed;
use penstock_resources::export::{Export, ExportKind, ExportStatus};
use penstock_store::{Error, Transaction};
use std::time::{Duration, Instant};

/// An entry to deliver.
#[derive(Debug, Clone)]
pub(crate) struct DeliveryJob {
    pub(crate) order: u64,
    pub(crate) entry: Export,
    /// The configured target when the export was created ([`crate::record::Record::made_for`]).
    pub(crate) made_for: Option<String>,
    /// The metadata as a document of its own ([`crate::record::Record::metadata`]).
    pub(crate) metadata: Option<String>,
    /// Whether an earlier attempt may have stored the object although no delivery is recorded. The target may not
    /// have answered, the gateway may have crashed during the attempt, or the entry was parked or replayed after an
    /// attempt.
    pub(crate) may_be_stored: bool,
    /// When the last attempt without a clear result ended. The target may still be storing the object.
    pub(crate) unclear_since: Option<Instant>,
    /// Whether the export was delivered before.
    pub(crate) is_replay: bool,
}

impl ExportQueue {
    /// Starts the delivery of the first entry in a target's queue. Returns `None` if the queue is empty.
    pub(crate) fn begin_delivery(&self, target: &str) -> Result<Option<DeliveryJob>, GatewayError> {
        let mut state = self.lock_state();
        let target_queue = state.queues.entry(target.to_owned()).or_default();
        let Some((_, &(order, _))) = target_queue.waiting.first_key_value() else {
            return Ok(None);
        };
        let record = EXPORTS.get_or_log(&self.store.read(), order)?.ok_or_else(|| {
            GatewayError::new(
                ErrorClass::Internal,
                format!("the record of export number {order} is missing"),
            )
        })?;
        target_queue.delivering = Some(order);
        if target_queue.failing.as_ref().is_some_and(|failing| failing.order != order) {
            target_queue.failing = None;
        }
        let attempts = target_queue.failing.as_ref().map_or(0, |failing| failing.attempts.count);
        let unanswered = target_queue.unclear_since.get(&order).copied();
        let mut entry = record.entry;
        let unclear = unanswered.is_some() || entry.attempts > 0;
        entry.attempts += attempts;
        // Further attempts publish an event only when their failure class changes.
        if attempts == 0 {
            self.publish_unstored_entry(&Export {
                status: ExportStatus::Delivering,
                ..entry.clone()
            });
        }
        Ok(Some(DeliveryJob {
            order,
            entry,
            made_for: record.made_for,
            metadata: record.metadata,
            may_be_stored: unclear,
            unclear_since: unanswered,
            // Only a replay changes the place.
            is_replay: record.place != order,
        }))
    }

    /// Records that the delivery in progress failed. Returns the number of failures, and the delay before the next
    /// attempt.
    pub(crate) fn record_failure(
        &self,
        target: &str,
        order: u64,
        failure: DeliveryFailure,
        rule: &RetryRule,
    ) -> (u64, Duration) {
        let mut state = self.lock_state();
        let target_queue = state.queues.entry(target.to_owned()).or_default();
        target_queue.delivering = None;
        target_queue.reachable = failure.target_reached().or(target_queue.reachable);
        if failure.outcome_unknown {
            target_queue.unclear_since.insert(order, Instant::now());
        }
        let before = target_queue.failing.take().filter(|failing| failing.order == order);
        let before = before.map(|failing| failing.attempts);
        let is_new_class = before.as_ref().is_none_or(|before| before.last.class != failure.class);
        let attempts = FailedAttempts::add(before, failure, rule);
        let (failures, delay) = (attempts.count, attempts.delay);
        target_queue.failing = Some(FailingEntry { order, attempts });
        if is_new_class && let Ok(Some(record)) = EXPORTS.get_or_log(&self.store.read(), order) {
            self.publish_unstored_entry(&state.current_entry(order, record.entry));
        }
        (failures, delay)
    }

    /// Returns whether an export was delivered to this target. The history may have forgotten it, but every sequence that
    /// was assigned to an export that is neither queued nor parked was delivered.
    pub(crate) fn has_delivered(&self, target: &str) -> Result<bool, Error> {
        let state = self.lock_state();
        let target_queue = state.queues.get(target);
        if target_queue.is_some_and(|target_queue| target_queue.last_delivery.is_some()) {
            return Ok(true);
        }
        // A replay, which alone has another place than its order, was delivered before.
        let mut undelivered = target_queue.map_or(0, |target_queue| {
            let waiting = target_queue.waiting.iter();
            waiting.filter(|(place, (order, _))| *place == order).count() as u64
        });
        let read = self.store.read();
        for &order in state.parked.keys() {
            let is_undelivered =
                |record: &Record| record.entry.target == target && record.place == order;
            let record = EXPORTS.get_or_log(&read, order)?;
            undelivered += u64::from(record.as_ref().is_some_and(is_undelivered));
        }
        // A restore has moved where all sequences begin. No Business Object has an empty name.
        let begin = EXPORT_SEQUENCES.last_number(&read, (target, ""))?;
        let mut assigned = 0;
        for row in EXPORT_SEQUENCES.scan().prefix::<String>(target).read_all(&read)? {
            assigned += row.value()?.saturating_sub(begin);
        }
        Ok(assigned > undelivered)
    }

    /// Marks the entry whose delivery was interrupted as queued again.
    pub(crate) fn interrupt_delivery(&self, target: &str) {
        if let Some(target_queue) = self.lock_state().queues.get_mut(target) {
            target_queue.delivering = None;
        }
    }

    /// Records that the entry is delivered. The same commit removes the oldest entries from the history, and records if
    /// the target needs a full export.
    pub(crate) fn record_delivery(
        &self,
        order: u64,
        at: Stamp,
        outcome: &DeliveryOutcome,
        uploads: &UploadFolder,
    ) -> Result<Export, GatewayError> {
        let mut state = self.lock_state();
        let Some(mut record) = EXPORTS.get_or_log(&self.store.read(), order)? else {
            return Err(GatewayError::new(
                ErrorClass::Internal,
                "the record of the export is missing",
            ));
        };
        record.entry = state.current_entry(order, record.entry);
        record.entry.status = ExportStatus::Delivered;
        record.entry.attempts += 1;
        record.entry.last_error = None;
        record.entry.delivered_at = Some(at.to_rfc3339());
        if let Some(warning) = &outcome.warning
            && !record.entry.warnings.contains(warning)
        {
            record.entry.warnings.push(warning.clone());
        }
        let mut removals =
            HistoryRemovals::find_removals(&state, self.limits, order, record.entry.bytes);
        let replaced = self.find_replaced(&state, order, &record.entry, uploads)?;
        let mut replaced = replaced.chunks(MAX_REPLACED_PER_COMMIT);
        removals.add_replaced(replaced.next().unwrap_or_default());
        self.store.transact::<_, Error>(|t| {
            EXPORTS.put(t, order, &record)?;
            if record.entry.graph().is_some() {
                record_delivered_sequence(t, &record.entry)?;
            }
            if outcome.needs_full {
                require_full_export(t, &record.entry)?;
            }
            self.store_event(t, &record.entry)?;
            removals.add_to_commit(t)
        })?;
        let target_queue = state.queues.entry(record.entry.target.clone()).or_default();
        target_queue.remove(order, &record);
        target_queue.record_outcome(&record.entry, outcome);
        state.delivered.insert(order, record.entry.bytes);
        self.publish_entry(&record.entry);
        for file in removals.apply_in_memory(&mut state) {
            self.spool.remove(&file);
        }
        if let Err(error) = replaced.try_for_each(|orders| self.remove_replaced(&mut state, orders))
        {
            tracing::warn!(%error, "Some parked exports that a full export replaces were not removed; the next one removes them.");
        }
        self.capacity_freed.notify_one();
        Ok(record.entry)
    }
}

impl ExportQueue {
    /// Finds the parked exports that a full export replaces, which is delivered now: earlier ones whose files are gone or
    /// damaged, so that no retry can deliver them. An upload is cleaned up first, because the cleanup takes an export
    /// without an entry for a delivered one. A later full export replaces such an entry.
    fn find_replaced(
        &self,
        state: &QueueState,
        order: u64,
        full: &Export,
        uploads: &UploadFolder,
    ) -> Result<Vec<u64>, Error> {
        let mut replaced = Vec::new();
        if full.kind != ExportKind::Full {
            return Ok(replaced);
        }
        let parked: Vec<u64> = state.parked.range(..order).map(|(order, _)| *order).collect();
        for orders in parked.chunks(RECORDS_PER_READ) {
            // Commits wait while it exists.
            let read = self.store.read();
            for &parked in orders {
                let Some(record) = EXPORTS.get_or_log(&read, parked)? else { continue };
                let entry = &record.entry;
                if entry.target == full.target
                    && entry.business_object_name == full.business_object_name
                    && self.is_lost(&record)
                    && !uploads.needs_cleanup(&entry.id)
                {
                    replaced.push(parked);
                }
            }
        }
        Ok(replaced)
    }

    /// Returns whether the file of a parked export is gone or damaged. Its SHA-256 is not computed here, because commits wait;
    /// a delivery that found it wrong has recorded that.
    fn is_lost(&self, record: &Record) -> bool {
        record.entry.last_error.as_deref() == Some(DAMAGED_FILE)
            || self.spool.find_loss(&record.spool_file_name(), record.entry.bytes).is_some()
    }

    /// Removes more of the parked exports that a delivered one replaces.
    fn remove_replaced(&self, state: &mut QueueState, orders: &[u64]) -> Result<(), Error> {
        let mut removals = HistoryRemovals::default();
        removals.add_replaced(orders);
        self.store.transact::<_, Error>(|t| removals.add_to_commit(t))?;
        for file in removals.apply_in_memory(state) {
            self.spool.remove(&file);
        }
        Ok(())
    }
}

/// Records the sequence that a SPARQL store has, unless it had a higher one.
fn record_delivered_sequence(t: &mut Transaction<'_>, entry: &Export) -> Result<(), Error> {
    let key = (entry.target.as_str(), entry.business_object_name.as_str());
    let before = EXPORT_DELIVERED.get_or_log(t, key)?;
    if before.is_some_and(|before| before >= entry.sequence) {
        return Ok(());
    }
    EXPORT_DELIVERED.put(t, key, entry.sequence)
}

/// Forgets what the target has, so that its next automatic export is full.
fn require_full_export(t: &mut Transaction<'_>, entry: &Export) -> Result<(), Error> {
    let id = entry.business_object.as_str();
    let Some(mut cursor) = change_feed::read_cursor(t, id)? else { return Ok(()) };
    if cursor.targets.remove(&entry.target).is_some() {
        change_feed::CURSORS.put(t, id, &cursor)?;
    }
    Ok(())
}
