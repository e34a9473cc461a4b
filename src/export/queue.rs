//! The export queue. Entries are stored in the store's commits; undelivered entries are also in memory, one
//! queue for each target.
//!
//! Invariants:
//! - An entry is committed only after its spool file and the spool's folder are synced, in one commit with its
//!   sequence number. So every queued entry can be delivered, and no sequence is lost.
//! - A record is marked as `kept` before its file can be read, and no longer marked before the file is removed. So
//!   after a crash, a file without a `kept` record is not needed.
//! - The status `delivering` and the failures since the start are only in memory, so retries do not write to the
//!   disk.
mod enqueue;
mod loaded;
mod progress;

pub use enqueue::ExportRequester;
pub(super) use enqueue::{
    EnqueueError, EntriesCommitHook, NewExport, NewExports, QueueTarget, TargetFile,
};
pub(super) use loaded::RECORDS_PER_COMMIT;
pub(super) use progress::DeliveryJob;

use super::record::{EXPORT_IDS, EXPORTS, Record};
use super::spool::Spool;
use super::state::QueueState;
use loaded::LoadedRecords;
use parking_lot::{Mutex, MutexGuard};
use penstock_base::error::{self, GatewayError};
use penstock_base::events::{self, EventBus};
use penstock_resources::export::Export;
use penstock_store::{Error, Store, Transaction};
use std::sync::Arc;
use tokio::sync::Notify;

/// The number of records that are read at a time.
pub(super) const RECORDS_PER_READ: usize = 200;

/// The queues of all targets.
#[derive(Debug)]
pub(super) struct ExportQueue {
    pub(super) store: Store,
    pub(super) spool: Spool,
    pub(super) limits: HistoryLimits,
    pub(super) events: EventBus,
    /// Notifies the delivery loop that a target may have a queued entry.
    pub(super) entry_added: Notify,
    /// Notifies that a delivery has freed spool capacity.
    pub(super) capacity_freed: Notify,
    state: Mutex<QueueState>,
}

/// The limits of the history of delivered entries.
#[derive(Debug, Clone, Copy)]
pub(super) struct HistoryLimits {
    /// The maximum number of records.
    pub(super) records: usize,
    /// The maximum total size of the files in bytes.
    pub(super) bytes: u64,
}

impl ExportQueue {
    /// Opens the queue from the store. With `parks_lost`, [`super::lost`] parks the exports whose files are missing, so
    /// they are no errors.
    pub(super) fn open(
        store: Store,
        spool: Spool,
        limits: HistoryLimits,
        events: EventBus,
        parks_lost: bool,
    ) -> Result<Self, GatewayError> {
        let mut loaded = LoadedRecords::new(!parks_lost);
        for row in EXPORTS.scan().pages(|| store.read(), RECORDS_PER_READ) {
            let row = row?;
            let Some(order) = row.key_or_log() else { continue };
            loaded.add(order, row.value_or_log(), &spool);
            if loaded.has_many_corrections() {
                loaded.store_corrections(&store)?;
            }
        }
        loaded.store_corrections(&store)?;
        loaded.clean_up_spool(&spool);
        loaded.expect_interrupted_deliveries();
        let queue = Self {
            store,
            spool,
            limits,
            events,
            entry_added: Notify::new(),
            capacity_freed: Notify::new(),
            state: Mutex::new(loaded.state),
        };
        queue.entry_added.notify_one();
        Ok(queue)
    }

    pub(super) fn lock_state(&self) -> MutexGuard<'_, QueueState> {
        self.state.lock()
    }

    /// Stores the event about an entry for webhooks, in the commit of its state.
    pub(super) fn store_event(&self, t: &mut Transaction<'_>, entry: &Export) -> Result<(), Error> {
        let trace = entry.traceparent.as_deref();
        self.events.store(t, trace, events::EventKind::Export, &entry.id, entry)
    }

    /// Publishes an event with a state of an entry that is in no commit, as [`Self::publish_entry`].
    pub(super) fn publish_unstored_entry(&self, entry: &Export) {
        let trace = entry.traceparent.as_deref();
        self.events.publish_unstored(trace, events::EventKind::Export, &entry.id, entry);
    }

    /// Publishes an event with the current state of an entry, which is committed. The caller holds the state lock, so
    /// that events arrive in order.
    pub(super) fn publish_entry(&self, entry: &Export) {
        let trace = entry.traceparent.as_deref();
        self.events.publish_in_trace(trace, events::EventKind::Export, &entry.id, entry);
    }

    /// Lists entries, newest first.
    pub(super) fn list(
        &self,
        after: Option<&str>,
        limit: usize,
    ) -> Result<Vec<Export>, GatewayError> {
        let state = self.lock_state();
        let read = self.store.read();
        let after = match after {
            None => None,
            Some(id) => Some(EXPORT_IDS.get(&read, id)?.ok_or_else(|| {
                GatewayError::new(
                    error::ErrorClass::Malformed,
                    "the cursor names an unknown export, or one that is no longer kept; start again without it",
                )
            })?),
        };
        let rows = EXPORTS.scan().after(after).reverse().read(&read, limit)?;
        let records = rows.iter().filter_map(|row| Some((row.key().ok()?, row.value_or_log()?)));
        Ok(records.map(|(order, record)| state.current_entry(order, record.entry)).collect())
    }

    /// Returns the first entries of a target's queue, and the length of the queue.
    pub(super) fn list_queue(
        &self,
        target: &str,
        limit: usize,
    ) -> Result<(Vec<Export>, usize), GatewayError> {
        let state = self.lock_state();
        let Some(target_queue) = state.queues.get(target) else { return Ok((Vec::new(), 0)) };
        let read = self.store.read();
        let mut entries = Vec::new();
        for &(order, _) in target_queue.waiting.values().take(limit) {
            if let Some(record) = EXPORTS.get_or_log(&read, order)? {
                entries.push(state.current_entry(order, record.entry));
            }
        }
        Ok((entries, target_queue.waiting.len()))
    }

    /// Finds an entry in its current state, with its order and record.
    pub(super) fn find_entry(
        &self,
        state: &QueueState,
        id: &str,
    ) -> Result<Option<(u64, Record, Export)>, GatewayError> {
        let read = self.store.read();
        let Some(order) = EXPORT_IDS.get(&read, id)? else { return Ok(None) };
        let Some(record) = EXPORTS.get_or_log(&read, order)? else { return Ok(None) };
        let entry = state.current_entry(order, record.entry.clone());
        Ok(Some((order, record, entry)))
    }

    /// Returns the targets with queued entries, each with the notification that ends its backoff.
    pub(super) fn list_queued_targets(&self) -> Vec<(String, Arc<Notify>)> {
        let state = self.lock_state();
        let queued = state.queues.iter().filter(|(_, queue)| !queue.waiting.is_empty());
        queued.map(|(target, queue)| (target.clone(), Arc::clone(&queue.wake))).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_queue_opens_although_the_spool_is_no_folder() {
        let dir = tempfile::tempdir().unwrap();
        let options = penstock_store::Options::default();
        let store = Store::open(&dir.path().join("store"), options, &mut |_| {}).unwrap();
        let path = dir.path().join("spool");
        std::fs::write(&path, "").unwrap();
        let spool = Spool::open(path.clone()).unwrap();
        let limits = HistoryLimits { records: 1, bytes: 1 };
        let queue = ExportQueue::open(store, spool, limits, EventBus::default(), false).unwrap();
        assert!(queue.list(None, 1).unwrap().is_empty());
        // An operator decides what becomes of it.
        assert!(path.is_file());
    }

    #[test]
    fn the_file_of_an_unreadable_record_is_kept() {
        let dir = tempfile::tempdir().unwrap();
        let options = penstock_store::Options::default();
        let store = Store::open(&dir.path().join("store"), options, &mut |_| {}).unwrap();
        let of_the_future = br#"{"entries":[]}"#;
        let put = |t: &mut Transaction<'_>| {
            t.put_document("exports", &7_u64.to_be_bytes(), of_the_future)
        };
        store.transact::<_, Error>(put).unwrap();
        let spool = Spool::open(dir.path().join("spool")).unwrap();
        std::fs::write(spool.path("some.json"), "{}").unwrap();
        let queue = ExportQueue::open(
            store,
            spool,
            HistoryLimits { records: 1, bytes: 1 },
            EventBus::default(),
            false,
        )
        .unwrap();
        assert!(queue.spool.path("some.json").exists());
        assert_eq!(queue.lock_state().next_order, 8);
    }
}
