//! The queue: entries are kept with the store's commits, and waiting ones stand in a line per target.
//!
//! Invariants:
//! - An entry is committed only after its spool file and the spool's folder are synced, in one commit
//!   with its sequence number: what stands in the queue can be delivered, and no sequence is lost.
//! - A record says `kept` before its file is there to be read, and says so no more before the file is
//!   removed: after a crash a file that no record keeps is nobody's.
//! - `delivering`, and failures since the start, live in memory alone: no retry writes to the disk.
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

/// The queue of every target.
#[derive(Debug)]
pub(super) struct Queue {
    pub(super) store: Store,
    pub(super) spool: Spool,
    pub(super) limits: Limits,
    pub(super) events: Events,
    /// Tells the workers' overseer that a target may have an entry waiting.
    pub(super) added: Notify,
    /// Tells that a target has taken a file.
    pub(super) room: Notify,
    state: Mutex<State>,
}

/// What is kept of delivered entries.
#[derive(Debug, Clone, Copy)]
pub(super) struct Limits {
    /// Records.
    pub(super) records: usize,
    /// Bytes of files.
    pub(super) bytes: u64,
}

/// Rendered files to be queued.
#[derive(Debug)]
pub(super) struct New<'a> {
    pub(super) business_object: &'a str,
    pub(super) name: &'a str,
    pub(super) export_date: &'a str,
    /// In the order of their sequences.
    pub(super) files: &'a [NewFile],
    pub(super) targets: &'a [To],
    /// The generations of changes that they bring.
    pub(super) covers: Option<(u64, u64)>,
    /// Who asked for them.
    pub(super) by: By<'a>,
    /// When they were made.
    pub(super) made: Stamp,
}

/// A target that files are queued for.
#[derive(Debug)]
pub(super) struct To {
    pub(super) name: String,
    /// What its keys begin with.
    pub(super) prefix: String,
    /// [`Record::made_for`]
    pub(super) place: Option<String>,
}

/// What else goes into the commit of new entries.
pub(super) type Also<'a> = &'a mut dyn FnMut(&mut Transaction<'_>, &[Entry]) -> Result<(), Error>;

/// One rendered file to be queued.
#[derive(Debug)]
pub(super) struct NewFile {
    pub(super) kind: Kind,
    pub(super) finished: Finished,
    pub(super) warnings: Vec<String>,
    /// The id of its entry for each target.
    pub(super) ids: Vec<String>,
}

/// An entry to deliver.
#[derive(Debug, Clone)]
pub(super) struct Job {
    pub(super) order: u64,
    pub(super) entry: Entry,
    /// [`Record::made_for`]
    pub(super) made_for: Option<String>,
    /// Whether an attempt may have come to an end that nobody heard of: the target did not say, the gateway may
    /// have crashed during one, or it was parked or replayed after one.
    pub(super) unclear: bool,
    /// When the target was asked last to store it and did not say how that ended: it may be at it still.
    pub(super) unanswered: Option<Instant>,
}

impl Queue {
    /// Opens the queue as it was left.
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
                    "The file of an export was missing or damaged; put it back, or park the export."
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
                "records of the export queue cannot be read, and their files stay in the spool; was this \
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
                "Exports were found that wait for their target."
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

    /// Queues files for their targets: entries, sequences, what consumers may hold, and what `also` puts, in
    /// one commit. The files must be synced already.
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
        // The wait of a target that does not take its head goes on: one more behind it mends nothing.
        self.added.notify_one();
        Ok(records.into_iter().map(|(_, record)| record.entry).collect())
    }

    /// Tells of an entry as it is now. The lock of the state is held, so that no listener is told what
    /// was before.
    pub(super) fn tell(&self, entry: &Entry) {
        let trace = entry.traceparent.as_deref();
        self.events.publish_in(trace, events::Kind::Export, &entry.id, entry);
    }

    /// Whether the consumers of one of these targets may hold an object of this Business Object.
    pub(super) fn is_held(&self, targets: &[String], name: &str) -> Result<bool, Error> {
        let read = self.store.read();
        for target in targets {
            if record::held(&read, target, name)? > 0 {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Entries, newest first.
    pub(super) fn list(&self, after: Option<&str>, limit: usize) -> Result<Vec<Entry>, Fault> {
        let state = self.state();
        let read = self.store.read();
        let after = match after {
            None => None,
            Some(id) => Some(record::order_of(&read, id)?.ok_or_else(|| {
                Fault::new(
                    fault::Kind::Invalid,
                    format!("there is no export `{id}` to go on after"),
                )
            })?),
        };
        let records = record::page(&read, after, true, limit)?;
        Ok(records.into_iter().map(|(order, record)| state.now(order, record.entry)).collect())
    }

    /// The first entries that wait for a target, and how many wait.
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

    /// One entry as it is now, with its order and record.
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

    /// Targets with an entry waiting.
    pub(super) fn targets_waiting(&self) -> Vec<String> {
        let state = self.state();
        let lines = state.lines.iter().filter(|(_, line)| !line.waiting.is_empty());
        lines.map(|(target, _)| target.clone()).collect()
    }

    /// What ends a wait for this target.
    pub(super) fn wake(&self, target: &str) -> Arc<Notify> {
        Arc::clone(&self.state().lines.entry(target.to_owned()).or_default().wake)
    }

    /// Takes the oldest waiting entry of a target under way; `None` when none waits.
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
        // Further attempts are told when they end otherwise than the one before.
        if attempts == 0 {
            self.tell(&Entry { status: Status::Delivering, ..entry.clone() });
        }
        Ok(Some(Job { order, entry, made_for: record.made_for, unclear, unanswered }))
    }

    /// The entry under way did not get through; returns how often it has not, and what `wait` says to that.
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

    /// The entry under way was left off; it waits again.
    pub(super) fn left_off(&self, target: &str) {
        if let Some(line) = self.state().lines.get_mut(target) {
            line.under_way = None;
        }
    }

    /// The target has the entry: commits that, with what falls out of the history.
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

/// Why exports were not queued.
#[derive(Debug)]
pub(super) enum AddError {
    /// Whoever asked may no longer do so; nothing was committed.
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
    /// The record of one file for one target, with the next sequence, which it takes.
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

/// Checks that the file name of a key fits into a directory (255 bytes), however its parts turn out.
pub(super) fn check_name(name: &str) -> Result<(), String> {
    let file_name = key("", name, "20260301T120000Z", u64::MAX).len() - encode(name).len() - 1;
    if file_name <= 255 {
        return Ok(());
    }
    Err(format!(
        "the name of the Business Object is too long for the key of an export: percent-encoded it has {} \
         bytes, {} too many",
        encode(name).len(),
        file_name - 255
    ))
}

/// The key of an export: `<prefix><name>/<name>-<export_date>-<sequence>.json`.
fn key(prefix: &str, name: &str, export_date: &str, sequence: u64) -> String {
    let name = encode(name);
    format!("{prefix}{name}/{name}-{export_date}-{sequence:012}.json")
}

/// Percent-encodes beyond `A-Za-z0-9._-`; a name of dots alone entirely, since it would lead elsewhere
/// as a folder.
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
    fn the_file_of_a_record_that_cannot_be_read_stays() {
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
    fn keys_hold_no_character_that_leads_elsewhere() {
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
