//! The export queue. Entries are stored in the store's commits; undelivered entries are also in memory, one
//! queue for each target.
//!
//! Invariants:
//! - An entry is committed only after its spool file and the spool's folder are synced, in one commit with its
//!   sequence number. So every queued entry can be delivered, and no sequence is lost.
//! - A record says `kept` before its file can be read, and stops saying so before the file is removed. So after
//!   a crash a file without a `kept` record is not needed.
//! - `delivering` and the failures since the start are only in memory, so retries do not write to the disk.
use super::By;
use super::cause::Failure;
use super::entry::{Entry, Kind, Status};
use super::file::Finished;
use super::history::Fallen;
use super::record::{self, Record};
use super::spool::Spool;
use super::state::{Failing, State};
use penstock_base::clock::Stamp;
use penstock_base::commit::commit;
use penstock_base::events::{self, Events};
use penstock_base::fault::{self, Fault};
use penstock_base::time;
use penstock_store::{Error, Store, Transaction};
use std::collections::HashSet;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use tokio::sync::Notify;

/// The queues of all targets.
#[derive(Debug)]
pub(super) struct Queue {
    pub(super) store: Store,
    pub(super) spool: Spool,
    pub(super) limits: Limits,
    pub(super) events: Events,
    /// Notifies the delivery loop that a target may have a queued entry.
    pub(super) added: Notify,
    /// Notifies that a delivery has freed spool capacity.
    pub(super) room: Notify,
    state: Mutex<State>,
}

/// The limits of the history of delivered entries.
#[derive(Debug, Clone, Copy)]
pub(super) struct Limits {
    /// The maximum number of records.
    pub(super) records: usize,
    /// The maximum total size of the files in bytes.
    pub(super) bytes: u64,
}

/// Rendered files to queue.
#[derive(Debug)]
pub(super) struct New<'a> {
    pub(super) business_object: &'a str,
    pub(super) name: &'a str,
    pub(super) export_date: &'a str,
    /// In sequence order.
    pub(super) files: &'a [NewFile],
    pub(super) targets: &'a [To],
    /// The generations of changes that the files contain.
    pub(super) covers: Option<(u64, u64)>,
    /// The requester.
    pub(super) by: By<'a>,
    /// When the files were created.
    pub(super) made: Stamp,
}

/// A target to queue files for.
#[derive(Debug)]
pub(super) struct To {
    pub(super) name: String,
    /// The prefix of its keys.
    pub(super) prefix: String,
    /// [`Record::made_for`]
    pub(super) place: Option<String>,
}

/// A hook that adds further writes to the commit of new entries.
pub(super) type Also<'a> = &'a mut dyn FnMut(&mut Transaction<'_>, &[Entry]) -> Result<(), Error>;

/// One rendered file to queue.
#[derive(Debug)]
pub(super) struct NewFile {
    pub(super) kind: Kind,
    pub(super) finished: Finished,
    pub(super) warnings: Vec<String>,
    /// The ids of its entries, one for each target.
    pub(super) ids: Vec<String>,
}

/// An entry to deliver.
#[derive(Debug, Clone)]
pub(super) struct Job {
    pub(super) order: u64,
    pub(super) entry: Entry,
    /// [`Record::made_for`]
    pub(super) made_for: Option<String>,
    /// Whether an earlier attempt may have stored the object unnoticed. The target may not have answered, or
    /// the gateway may have crashed during the attempt. Or the entry was parked or replayed after an attempt.
    pub(super) unclear: bool,
    /// When the last attempt without a clear result ended. The target may still be storing the object.
    pub(super) unanswered: Option<Instant>,
}

impl Queue {
    /// Opens the queue from the store.
    pub(super) fn open(
        store: Store,
        spool: Spool,
        limits: Limits,
        events: Events,
    ) -> Result<Self, Fault> {
        let mut state = State::default();
        let mut files = HashSet::new();
        let mut missing = Vec::new();
        let mut unread = 0_u64;
        record::scan(&store, &mut |order, record| {
            let Some(mut record) = record else {
                unread += 1;
                state.next = state.next.max(order + 1);
                return;
            };
            state.take_up(order, &record);
            if !record.kept {
                return;
            }
            files.insert(record.file());
            let status = match record.entry.status {
                Status::Delivered | Status::Parked => return,
                waiting => waiting,
            };
            let cause = spool.file(&record.file(), record.entry.bytes).err();
            if cause.is_some() || status != Status::Queued {
                record.entry.status =
                    if cause.is_some() { Status::Blocked } else { Status::Queued };
                record.entry.last_error = cause;
                missing.push((order, record));
            }
        })?;
        state.unread = unread > 0;
        for (_, record) in &missing {
            if let Some(cause) = &record.entry.last_error {
                let Entry { id, target, business_object_name, .. } = &record.entry;
                tracing::error!(
                    export_id = id,
                    target_name = target,
                    business_object = business_object_name,
                    cause,
                    "The file of an export is missing or damaged; restore it, or park the export."
                );
            }
        }
        if !missing.is_empty() {
            store.transact::<_, Error>(|t| {
                missing.iter().try_for_each(|(order, record)| record::put(t, *order, record))
            })?;
        }
        if unread == 0 {
            spool.retain(&files)?;
        } else {
            tracing::error!(
                unread,
                "Records of the export queue could not be read, and their files stay in the spool. Was this \
                 data directory written by a newer version?"
            );
        }
        for (target, line) in &mut state.lines {
            let Some((_, &(head, _))) = line.waiting.first_key_value() else { continue };
            line.unanswered.insert(head, Instant::now());
            let (exports, bytes) = (line.waiting.len(), line.bytes);
            tracing::info!(
                target_name = target,
                exports,
                bytes,
                "Undelivered exports were found; the gateway delivers them."
            );
        }
        let queue = Self {
            store,
            spool,
            limits,
            events,
            added: Notify::new(),
            room: Notify::new(),
            state: Mutex::new(state),
        };
        queue.added.notify_one();
        Ok(queue)
    }

    pub(super) fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Queues files for their targets. One commit writes the entries, the sequences, the object counts of the
    /// consumers, and what `also` adds. The files must be synced already.
    pub(super) fn add(&self, new: &New<'_>, also: Also<'_>) -> Result<Vec<Entry>, AddError> {
        let mut state = self.state();
        let first = state.next;
        let (records, _) = commit::<_, AddError>(&self.store, new.by.check, |t| {
            let mut records = Vec::with_capacity(new.files.len() * new.targets.len());
            for file in new.files {
                for (id, to) in file.ids.iter().zip(new.targets) {
                    let order = first + records.len() as u64;
                    let record = new.record(t, file, id, to, order)?;
                    t.put(record::IDS, id.as_bytes(), &order.to_be_bytes())?;
                    record::put(t, order, &record)?;
                    records.push((order, record));
                    let held = match file.kind {
                        Kind::Full => file.finished.objects,
                        Kind::Incremental => {
                            record::held(t, &to.name, new.name)? + file.finished.objects
                        }
                        Kind::Deleted => continue,
                    };
                    let key = record::sequence_key(&to.name, new.name);
                    t.put(record::HELD, &key, &held.to_be_bytes())?;
                }
            }
            let entries: Vec<Entry> =
                records.iter().map(|(_, record): &(u64, Record)| record.entry.clone()).collect();
            also(t, &entries)?;
            Ok(records)
        })?;
        for (order, record) in &records {
            state.take_up(*order, record);
            self.tell(&record.entry);
        }
        // The backoff of a blocked target continues: a further entry behind its head does not help.
        self.added.notify_one();
        Ok(records.into_iter().map(|(_, record)| record.entry).collect())
    }

    /// Publishes an event with the current state of an entry. The caller holds the state lock, so that events
    /// arrive in order.
    pub(super) fn tell(&self, entry: &Entry) {
        let trace = entry.traceparent.as_deref();
        self.events.publish_in(trace, events::Kind::Export, &entry.id, entry);
    }

    /// Returns whether the consumers of one of these targets may have objects of this Business Object.
    pub(super) fn is_held(&self, targets: &[String], name: &str) -> Result<bool, Error> {
        let read = self.store.read();
        for target in targets {
            if record::held(&read, target, name)? > 0 {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Lists entries, newest first.
    pub(super) fn list(&self, after: Option<&str>, limit: usize) -> Result<Vec<Entry>, Fault> {
        let state = self.state();
        let read = self.store.read();
        let after = match after {
            None => None,
            Some(id) => Some(record::order_of(&read, id)?.ok_or_else(|| {
                Fault::new(
                    fault::Kind::Invalid,
                    format!("there is no export `{id}` to continue after"),
                )
            })?),
        };
        let records = record::page(&read, after, true, limit)?;
        Ok(records.into_iter().map(|(order, record)| state.now(order, record.entry)).collect())
    }

    /// Returns the first entries of a target's queue, and the length of the queue.
    pub(super) fn line(&self, target: &str, limit: usize) -> Result<(Vec<Entry>, usize), Fault> {
        let state = self.state();
        let Some(line) = state.lines.get(target) else { return Ok((Vec::new(), 0)) };
        let read = self.store.read();
        let mut entries = Vec::new();
        for &(order, _) in line.waiting.values().take(limit) {
            if let Some(record) = record::by_order(&read, order)? {
                entries.push(state.now(order, record.entry));
            }
        }
        Ok((entries, line.waiting.len()))
    }

    /// Finds an entry in its current state, with its order and record.
    pub(super) fn find(
        &self,
        state: &State,
        id: &str,
    ) -> Result<Option<(u64, Record, Entry)>, Fault> {
        let read = self.store.read();
        let Some(order) = record::order_of(&read, id)? else { return Ok(None) };
        let Some(record) = record::by_order(&read, order)? else { return Ok(None) };
        let entry = state.now(order, record.entry.clone());
        Ok(Some((order, record, entry)))
    }

    /// Returns the targets with queued entries.
    pub(super) fn targets_waiting(&self) -> Vec<String> {
        let state = self.state();
        let lines = state.lines.iter().filter(|(_, line)| !line.waiting.is_empty());
        lines.map(|(target, _)| target.clone()).collect()
    }

    /// Returns the notification that ends the backoff of this target.
    pub(super) fn wake(&self, target: &str) -> Arc<Notify> {
        Arc::clone(&self.state().lines.entry(target.to_owned()).or_default().wake)
    }

    /// Starts the delivery of a target's oldest entry. Returns `None` if its queue is empty.
    pub(super) fn begin(&self, target: &str) -> Result<Option<Job>, Fault> {
        let mut state = self.state();
        let line = state.lines.entry(target.to_owned()).or_default();
        let Some((_, &(order, _))) = line.waiting.first_key_value() else { return Ok(None) };
        let record = record::by_order(&self.store.read(), order)?.ok_or_else(|| {
            Fault::new(
                fault::Kind::Internal,
                format!("the record of export number {order} is missing"),
            )
        })?;
        line.under_way = Some(order);
        if line.failing.as_ref().is_some_and(|failing| failing.order != order) {
            line.failing = None;
        }
        let attempts = line.failing.as_ref().map_or(0, |failing| failing.failures);
        let unanswered = line.unanswered.get(&order).copied();
        let mut entry = record.entry;
        let unclear = unanswered.is_some() || entry.attempts > 0;
        entry.attempts += attempts;
        // Further attempts publish an event only when their failure class changes.
        if attempts == 0 {
            self.tell(&Entry { status: Status::Delivering, ..entry.clone() });
        }
        Ok(Some(Job { order, entry, made_for: record.made_for, unclear, unanswered }))
    }

    /// Records that the delivery in progress failed. Returns the number of failures and the delay that `wait`
    /// computes from it.
    pub(super) fn failed(
        &self,
        target: &str,
        order: u64,
        failure: &Failure,
        wait: impl FnOnce(u64) -> Duration,
    ) -> (u64, Duration) {
        let mut state = self.state();
        let line = state.lines.entry(target.to_owned()).or_default();
        line.under_way = None;
        line.reachable = failure.class.reached().or(line.reachable);
        let before = line.failing.take().filter(|failing| failing.order == order);
        let failures = before.as_ref().map_or(0, |failing| failing.failures) + 1;
        let is_news = before.as_ref().is_none_or(|failing| failing.class != failure.class);
        let wait = wait(failures);
        if failure.unanswered {
            line.unanswered.insert(order, Instant::now());
        }
        line.failing = Some(Failing {
            order,
            failures,
            error: failure.cause.clone(),
            class: failure.class,
            since: before.map_or_else(time::rfc3339, |failing| failing.since),
            next: time::rfc3339_in(wait),
        });
        if is_news && let Ok(Some(record)) = record::by_order(&self.store.read(), order) {
            self.tell(&state.now(order, record.entry));
        }
        (failures, wait)
    }

    /// Puts the entry whose delivery was interrupted back into the queue.
    pub(super) fn left_off(&self, target: &str) {
        if let Some(line) = self.state().lines.get_mut(target) {
            line.under_way = None;
        }
    }

    /// Commits that the entry is delivered, together with the removals from the history.
    pub(super) fn delivered(&self, order: u64, at: Stamp) -> Result<Entry, Fault> {
        let mut state = self.state();
        let Some(mut record) = record::by_order(&self.store.read(), order)? else {
            return Err(Fault::new(fault::Kind::Internal, "the record of the export is missing"));
        };
        record.entry = state.now(order, record.entry);
        record.entry.status = Status::Delivered;
        record.entry.attempts += 1;
        record.entry.last_error = None;
        record.entry.delivered_at = Some(at.rfc3339());
        let mut fallen = Fallen::find(&state, self.limits, order, record.entry.bytes);
        self.store.transact::<_, Error>(|t| {
            record::put(t, order, &record)?;
            fallen.commit(t)
        })?;
        let line = state.lines.entry(record.entry.target.clone()).or_default();
        line.remove(order, &record);
        line.reachable = Some(true);
        line.last_delivery.clone_from(&record.entry.delivered_at);
        state.keep(order, record.entry.bytes);
        self.tell(&record.entry);
        for file in fallen.apply(&mut state) {
            self.spool.remove(&file);
        }
        self.room.notify_one();
        Ok(record.entry)
    }
}

/// The error of queueing exports.
#[derive(Debug)]
pub(super) enum AddError {
    /// The requester is no longer authorized; nothing was committed.
    Refused(Fault),
    /// The store failed.
    Store(Error),
}

impl From<Fault> for AddError {
    fn from(fault: Fault) -> Self {
        Self::Refused(fault)
    }
}

impl From<Error> for AddError {
    fn from(error: Error) -> Self {
        Self::Store(error)
    }
}

impl From<AddError> for Fault {
    fn from(error: AddError) -> Self {
        match error {
            AddError::Refused(fault) => fault,
            AddError::Store(error) => error.into(),
        }
    }
}

impl New<'_> {
    /// Creates the record of one file for one target, and assigns it the next sequence.
    fn record(
        &self,
        t: &mut Transaction<'_>,
        file: &NewFile,
        id: &str,
        to: &To,
        order: u64,
    ) -> Result<Record, Error> {
        let sequence_key = record::sequence_key(&to.name, self.name);
        let sequence = record::number(t, record::SEQUENCES, &sequence_key)?.unwrap_or(0) + 1;
        t.put(record::SEQUENCES, &sequence_key, &sequence.to_be_bytes())?;
        Ok(Record {
            entry: Entry {
                id: id.to_owned(),
                business_object: self.business_object.to_owned(),
                business_object_name: self.name.to_owned(),
                target: to.name.clone(),
                sequence,
                kind: file.kind,
                status: Status::Queued,
                object_count: file.finished.objects,
                bytes: file.finished.bytes,
                data_checksum: file.finished.data_checksum.clone(),
                sha256: file.finished.sha256.clone(),
                key: key(&to.prefix, self.name, self.export_date, sequence),
                created_at: self.made.rfc3339(),
                clock: self.made.doubt,
                delivered_at: None,
                attempts: 0,
                last_error: None,
                pushed_by: self.by.account.map(str::to_owned),
                traceparent: self.by.traceparent.map(str::to_owned),
                warnings: file.warnings.clone(),
            },
            place: order,
            kept: true,
            covers: self.covers,
            made_for: to.place.clone(),
        })
    }
}

/// Checks that the longest possible file name of a key fits into a directory (255 bytes).
pub(super) fn check_name(name: &str) -> Result<(), String> {
    let file_name = key("", name, "20260301T120000Z", u64::MAX).len() - encode(name).len() - 1;
    if file_name <= 255 {
        return Ok(());
    }
    Err(format!(
        "the name of the Business Object is too long for the key of an export: it has {} percent-encoded \
         bytes, {} too many; shorten it",
        encode(name).len(),
        file_name - 255
    ))
}

/// Returns the key of an export: `<prefix><name>/<name>-<export_date>-<sequence>.json`.
fn key(prefix: &str, name: &str, export_date: &str, sequence: u64) -> String {
    let name = encode(name);
    format!("{prefix}{name}/{name}-{export_date}-{sequence:012}.json")
}

/// Percent-encodes all bytes except `A-Za-z0-9._-`. A name that consists only of dots is encoded completely,
/// because it would lead to another folder.
fn encode(name: &str) -> String {
    let dots = name.bytes().all(|b| b == b'.');
    let mut encoded = String::with_capacity(name.len());
    for byte in name.bytes() {
        if (byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'_' | b'-')) && !dots {
            encoded.push(char::from(byte));
        } else {
            encoded.push('%');
            encoded.push_str(&super::file::hex(&[byte]).to_ascii_uppercase());
        }
    }
    encoded
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
        let put =
            |t: &mut Transaction<'_>| t.put(record::EXPORTS, &7_u64.to_be_bytes(), of_the_future);
        store.transact::<_, Error>(put).unwrap();
        let spool = Spool::open(dir.path().join("spool")).unwrap();
        std::fs::write(spool.path("some.json"), "{}").unwrap();
        let queue =
            Queue::open(store, spool, Limits { records: 1, bytes: 1 }, Events::default()).unwrap();
        assert!(queue.spool.path("some.json").exists());
        assert_eq!(queue.state().next, 8);
    }

    #[test]
    fn keys_contain_no_path_characters() {
        assert_eq!(
            key("plant/", "Pump", "20260301T120000Z", 7),
            "plant/Pump/Pump-20260301T120000Z-000000000007.json"
        );
        assert_eq!(encode("a b/ü..c"), "a%20b%2F%C3%BC..c");
        assert_eq!(encode("."), "%2E");
        assert_eq!(encode(".."), "%2E%2E");
        assert_eq!(check_name(&"n".repeat(200)), Ok(()));
        assert!(check_name(&"ü".repeat(100)).is_err());
    }
}
