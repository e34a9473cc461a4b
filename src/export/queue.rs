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
mod loaded;

use super::ExportRequester;
use super::cause::DeliveryFailure;
use super::delivery::DeliveryOutcome;
use super::file::{FinishedFile, MetadataSource};
use super::history::HistoryRemovals;
use super::key::{ExportExt as _, KeyValues};
use super::record::{
    EXPORT_DELIVERED, EXPORT_IDS, EXPORT_OBJECT_COUNTS, EXPORT_SEQUENCES, EXPORTS, Record,
};
use super::spool::Spool;
use super::state::{FailingEntry, QueueState};
use super::target::FileSettings;
use loaded::LoadedRecords;
use parking_lot::{Mutex, MutexGuard};
use penstock_base::clock::Stamp;
use penstock_base::commit::commit;
use penstock_base::error::{self, GatewayError};
use penstock_base::events::{self, EventBus};
use penstock_base::time;
use penstock_config::ExportFormat;
use penstock_model::change_feed;
use penstock_resources::export::{Export, ExportKind, ExportStatus};
use penstock_store::{Error, Format, Store, Transaction};
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::sync::Notify;

/// The number of records that are read at a time.
const RECORDS_PER_READ: usize = 200;

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

/// Rendered files to queue.
#[derive(Debug)]
pub(super) struct NewExports<'a> {
    pub(super) business_object: &'a str,
    /// What the metadata of the files has in common, with the name of the Business Object.
    pub(super) source: &'a MetadataSource<'a>,
    /// In sequence order.
    pub(super) exports: &'a [NewExport],
    pub(super) targets: &'a [QueueTarget],
    /// The sequence of the only commit that the files show. `None` if they may mix several.
    pub(super) commit: Option<u64>,
    /// The generations of changes that the files contain ([`Record::covers`]).
    pub(super) covers: Option<(u64, u64)>,
    pub(super) by: ExportRequester<'a>,
    /// When the files were created.
    pub(super) created_at: Stamp,
}

/// A target to queue files for.
#[derive(Debug)]
pub(super) struct QueueTarget {
    pub(super) name: String,
    /// How it names and writes its files.
    pub(super) files: FileSettings,
    /// The configured target as text ([`Record::made_for`]).
    pub(super) place: Option<String>,
}

/// A hook that adds further writes to the commit of new entries.
pub(super) type EntriesCommitHook<'a> =
    &'a mut dyn FnMut(&mut Transaction<'_>, &[Export]) -> Result<(), Error>;

/// The rendered objects of an export to queue.
#[derive(Debug)]
pub(super) struct NewExport {
    pub(super) kind: ExportKind,
    /// The number of objects.
    pub(super) objects: u64,
    pub(super) warnings: Vec<String>,
    /// The files, one for each target.
    pub(super) files: Vec<TargetFile>,
}

/// A file of one target.
#[derive(Debug)]
pub(super) struct TargetFile {
    /// The id of its entry.
    pub(super) id: String,
    pub(super) finished: FinishedFile,
    /// The sequence in the file, if its metadata is extended.
    pub(super) sequence: Option<u64>,
}

/// An entry to deliver.
#[derive(Debug, Clone)]
pub(super) struct DeliveryJob {
    pub(super) order: u64,
    pub(super) entry: Export,
    /// The configured target when the export was created ([`Record::made_for`]).
    pub(super) made_for: Option<String>,
    /// The metadata as a document of its own ([`Record::metadata`]).
    pub(super) metadata: Option<String>,
    /// Whether an earlier attempt may have stored the object although no delivery is recorded. The target may not
    /// have answered, the gateway may have crashed during the attempt, or the entry was parked or replayed after an
    /// attempt.
    pub(super) may_be_stored: bool,
    /// When the last attempt without a clear result ended. The target may still be storing the object.
    pub(super) unclear_since: Option<Instant>,
    /// Whether the export was delivered before.
    pub(super) is_replay: bool,
}

impl ExportQueue {
    /// Opens the queue from the store.
    pub(super) fn open(
        store: Store,
        spool: Spool,
        limits: HistoryLimits,
        events: EventBus,
    ) -> Result<Self, GatewayError> {
        let mut loaded = LoadedRecords::default();
        for row in EXPORTS.scan().pages(|| store.read(), RECORDS_PER_READ) {
            let row = row?;
            let Some(order) = row.key_or_log() else { continue };
            loaded.add(order, row.value_or_log(), &spool);
        }
        loaded.store_corrections(&store)?;
        loaded.clean_up_spool(&spool)?;
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

    /// Queues files for their targets. One commit writes the entries, the sequences, the object counts of the
    /// consumers, and what `hook` adds. The files must be synced already.
    pub(super) fn enqueue_files(
        &self,
        new: &NewExports<'_>,
        hook: EntriesCommitHook<'_>,
    ) -> Result<Vec<Export>, EnqueueError> {
        let mut state = self.lock_state();
        let first = state.next_order;
        let (records, _) = commit::<_, EnqueueError>(&self.store, new.by.check, |t| {
            let mut records = Vec::with_capacity(new.exports.len() * new.targets.len());
            for export in new.exports {
                for (target_file, to) in export.files.iter().zip(new.targets) {
                    let order = first + records.len() as u64;
                    let record = new.create_record(t, export, target_file, to, order)?;
                    if record.metadata.is_some() || record.entry.graph().is_some() {
                        // An older version would deliver lines without their metadata, and quads into a bucket.
                        t.require_format(Format::V3);
                    }
                    EXPORT_IDS.put(t, &target_file.id, order)?;
                    EXPORTS.put(t, order, &record)?;
                    records.push((order, record));
                    let key = (to.name.as_str(), new.source.object_type);
                    let count = match export.kind {
                        ExportKind::Full => export.objects,
                        ExportKind::Incremental => {
                            EXPORT_OBJECT_COUNTS.get_or_log(t, key)?.unwrap_or(0) + export.objects
                        }
                        ExportKind::Deleted => continue,
                    };
                    EXPORT_OBJECT_COUNTS.put(t, key, count)?;
                }
            }
            for (_, record) in &records {
                self.store_event(t, &record.entry)?;
            }
            let entries: Vec<Export> =
                records.iter().map(|(_, record): &(u64, Record)| record.entry.clone()).collect();
            hook(t, &entries)?;
            Ok(records)
        })?;
        for (order, record) in &records {
            state.add_record(*order, record);
            self.publish_entry(&record.entry);
        }
        // This does not end the backoff of a blocked target, because only the head of its queue is delivered.
        self.entry_added.notify_one();
        Ok(records.into_iter().map(|(_, record)| record.entry).collect())
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

    /// Returns whether the consumers of one of these targets may have objects of this Business Object.
    pub(super) fn may_have_objects(&self, targets: &[String], name: &str) -> Result<bool, Error> {
        let read = self.store.read();
        for target in targets {
            if EXPORT_OBJECT_COUNTS
                .get_or_log(&read, (target, name))?
                .is_some_and(|count| count > 0)
            {
                return Ok(true);
            }
        }
        Ok(false)
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
                    error::ErrorClass::Invalid,
                    format!("there is no export `{id}` to continue after"),
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

    /// Returns the targets with queued entries.
    pub(super) fn list_queued_targets(&self) -> Vec<String> {
        let state = self.lock_state();
        let queued =
            state.queues.iter().filter(|(_, target_queue)| !target_queue.waiting.is_empty());
        queued.map(|(target, _)| target.clone()).collect()
    }

    /// Returns the notification that ends the backoff of this target.
    pub(super) fn wake_signal(&self, target: &str) -> Arc<Notify> {
        Arc::clone(&self.lock_state().queues.entry(target.to_owned()).or_default().wake)
    }

    /// Starts the delivery of the first entry in a target's queue. Returns `None` if the queue is empty.
    pub(super) fn begin_delivery(&self, target: &str) -> Result<Option<DeliveryJob>, GatewayError> {
        let mut state = self.lock_state();
        let target_queue = state.queues.entry(target.to_owned()).or_default();
        let Some((_, &(order, _))) = target_queue.waiting.first_key_value() else {
            return Ok(None);
        };
        let record = EXPORTS.get_or_log(&self.store.read(), order)?.ok_or_else(|| {
            GatewayError::new(
                error::ErrorClass::Internal,
                format!("the record of export number {order} is missing"),
            )
        })?;
        target_queue.delivering = Some(order);
        if target_queue.failing.as_ref().is_some_and(|failing| failing.order != order) {
            target_queue.failing = None;
        }
        let attempts = target_queue.failing.as_ref().map_or(0, |failing| failing.failures);
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

    /// Records that the delivery in progress failed. Returns the number of failures, and the delay that `wait`
    /// computes from that number.
    pub(super) fn record_failure(
        &self,
        target: &str,
        order: u64,
        failure: &DeliveryFailure,
        wait: impl FnOnce(u64) -> Duration,
    ) -> (u64, Duration) {
        let mut state = self.lock_state();
        let target_queue = state.queues.entry(target.to_owned()).or_default();
        target_queue.delivering = None;
        target_queue.reachable = failure.target_reached().or(target_queue.reachable);
        let before = target_queue.failing.take().filter(|failing| failing.order == order);
        let failures = before.as_ref().map_or(0, |failing| failing.failures) + 1;
        let is_new_class = before.as_ref().is_none_or(|failing| failing.class != failure.class);
        let wait = wait(failures);
        if failure.outcome_unknown {
            target_queue.unclear_since.insert(order, Instant::now());
        }
        target_queue.failing = Some(FailingEntry {
            order,
            failures,
            error: failure.cause.clone(),
            answer: failure.answer.clone(),
            class: failure.class,
            since: before.map_or_else(time::now_rfc3339, |failing| failing.since),
            next_attempt: time::rfc3339_after(wait),
        });
        if is_new_class && let Ok(Some(record)) = EXPORTS.get_or_log(&self.store.read(), order) {
            self.publish_unstored_entry(&state.current_entry(order, record.entry));
        }
        (failures, wait)
    }

    /// Marks the entry whose delivery was interrupted as queued again.
    pub(super) fn interrupt_delivery(&self, target: &str) {
        if let Some(target_queue) = self.lock_state().queues.get_mut(target) {
            target_queue.delivering = None;
        }
    }

    /// Records that the entry is delivered. The same commit removes the oldest entries from the history, and records if
    /// the target needs a full export.
    pub(super) fn record_delivery(
        &self,
        order: u64,
        at: Stamp,
        outcome: &DeliveryOutcome,
    ) -> Result<Export, GatewayError> {
        let mut state = self.lock_state();
        let Some(mut record) = EXPORTS.get_or_log(&self.store.read(), order)? else {
            return Err(GatewayError::new(
                error::ErrorClass::Internal,
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
        state.add_to_history(order, record.entry.bytes);
        self.publish_entry(&record.entry);
        for file in removals.apply_in_memory(&mut state) {
            self.spool.remove(&file);
        }
        self.capacity_freed.notify_one();
        Ok(record.entry)
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

/// The reason why exports were not queued.
#[derive(Debug)]
pub(super) enum EnqueueError {
    /// The requester is no longer authorized; nothing was committed.
    Refused(GatewayError),
    /// The store failed.
    Store(Error),
}

impl From<GatewayError> for EnqueueError {
    fn from(error: GatewayError) -> Self {
        Self::Refused(error)
    }
}

impl From<Error> for EnqueueError {
    fn from(error: Error) -> Self {
        Self::Store(error)
    }
}

impl From<EnqueueError> for GatewayError {
    fn from(error: EnqueueError) -> Self {
        match error {
            EnqueueError::Refused(error) => error,
            EnqueueError::Store(error) => error.into(),
        }
    }
}

impl NewExports<'_> {
    /// Creates the record of one file for one target, and assigns it the next sequence.
    fn create_record(
        &self,
        t: &mut Transaction<'_>,
        export: &NewExport,
        TargetFile { id, finished, sequence: sequence_in_file }: &TargetFile,
        to: &QueueTarget,
        order: u64,
    ) -> Result<Record, EnqueueError> {
        let source = self.source;
        let name = source.object_type;
        let sequence = EXPORT_SEQUENCES.get(t, (&to.name, name))?.unwrap_or(0) + 1;
        if sequence_in_file.is_some_and(|in_file| in_file != sequence) {
            return Err(EnqueueError::Refused(GatewayError::new(
                error::ErrorClass::Unavailable(Duration::from_secs(1)),
                format!("another export of `{name}` was queued at the same time; try again"),
            )));
        }
        EXPORT_SEQUENCES.put(t, (&to.name, name), sequence)?;
        let FinishedFile { objects, bytes, ref data_checksum, ref sha256 } = *finished;
        let key = KeyValues {
            prefix: &to.files.prefix,
            name,
            kind: export.kind,
            date: &source.export_date,
            sequence,
            gateway: source.gateway_id,
        };
        let key = to.files.build_key(&key);
        let metadata = (to.files.format == ExportFormat::JsonLines).then(|| {
            source.metadata_of(id, export.kind, sequence, objects, data_checksum).to_document()
        });
        Ok(Record {
            entry: Export {
                id: id.clone(),
                business_object: self.business_object.to_owned(),
                business_object_name: name.to_owned(),
                target: to.name.clone(),
                sequence,
                kind: export.kind,
                status: ExportStatus::Queued,
                object_count: objects,
                bytes,
                data_checksum: data_checksum.clone(),
                sha256: sha256.clone(),
                key,
                created_at: self.created_at.to_rfc3339(),
                clock: self.created_at.doubt,
                commit: self.commit.filter(|_| export.kind == ExportKind::Full),
                delivered_at: None,
                attempts: 0,
                last_error: None,
                pushed_by: self.by.account.map(str::to_owned),
                traceparent: self.by.traceparent.map(str::to_owned),
                warnings: export.warnings.clone(),
            },
            place: order,
            kept: true,
            covers: self.covers,
            made_for: to.place.clone(),
            metadata,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
        )
        .unwrap();
        assert!(queue.spool.path("some.json").exists());
        assert_eq!(queue.lock_state().next_order, 8);
    }

    #[test]
    fn a_file_with_a_sequence_that_another_export_took_is_refused() {
        let dir = tempfile::tempdir().unwrap();
        let options = penstock_store::Options::default();
        let store = Store::open(&dir.path().join("store"), options, &mut |_| {}).unwrap();
        let spool = Spool::open(dir.path().join("spool")).unwrap();
        let limits = HistoryLimits { records: 9, bytes: 1 << 20 };
        let queue = ExportQueue::open(store, spool, limits, EventBus::default()).unwrap();
        let source = MetadataSource {
            export_date: "20260301T120000Z".to_owned(),
            object_type: "Pump",
            gateway_id: "gateway-1",
            schema_version: 1,
            commit: 1,
            is_extended: true,
        };
        let files = FileSettings::default();
        let targets = [QueueTarget { name: "north".to_owned(), files, place: None }];
        let enqueue = |id: &str, sequence| {
            let (data_checksum, sha256) = (String::new(), String::new());
            let finished = FinishedFile { objects: 1, bytes: 10, data_checksum, sha256 };
            let file = TargetFile { id: id.to_owned(), finished, sequence: Some(sequence) };
            let (kind, warnings) = (ExportKind::Full, Vec::new());
            let new = NewExports {
                business_object: "id",
                source: &source,
                exports: &[NewExport { kind, objects: 1, warnings, files: vec![file] }],
                targets: &targets,
                commit: None,
                covers: None,
                by: ExportRequester::gateway(),
                created_at: Stamp::of_system(),
            };
            queue.enqueue_files(&new, &mut |_, _| Ok(()))
        };
        assert_eq!(enqueue("first", 1).unwrap()[0].sequence, 1);
        let Err(EnqueueError::Refused(refused)) = enqueue("late", 1) else {
            panic!("the sequence was used twice");
        };
        assert!(matches!(refused.class, error::ErrorClass::Unavailable(_)), "{refused}");
        assert_eq!(queue.list(None, 9).unwrap().len(), 1);
        assert_eq!(enqueue("again", 2).unwrap()[0].sequence, 2);
    }
}
