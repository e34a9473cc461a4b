//! Operator actions on an entry: retry, park, replay, and reading its file.
use super::entry::{Entry, Status};
use super::queue::Queue;
use super::record::{self, Record};
use super::state::State;
use penstock_base::commit::{CommitCheck, commit};
use penstock_base::fault::{Fault, Kind};
use penstock_store::{Error, Transaction};
use std::fs::File;

impl Queue {
    /// Retries the target of a queued entry now, or queues a parked entry again at its original place.
    pub(super) fn retry(&self, check: &dyn CommitCheck, id: &str) -> Result<Entry, Fault> {
        let mut state = self.state();
        let (order, mut record, entry) = self.known(&state, id)?;
        match entry.status {
            // Nothing changes, but the requester must still be authorized.
            Status::Queued | Status::Blocked | Status::Delivering | Status::Waiting => {
                self.commit(check, |_| Ok(()))?;
            }
            Status::Parked => {
                record.entry.status = Status::Queued;
                self.commit(check, |t| record::put(t, order, &record))?;
                state.take_up(order, &record);
                self.tell(&record.entry);
            }
            Status::Delivered => {
                return Err(conflict(&entry, "was delivered; `replay` delivers it again"));
            }
        }
        state.lines.entry(entry.target.clone()).or_default().wake.notify_one();
        self.added.notify_one();
        Ok(state.now(order, record.entry))
    }

    /// Parks a queued entry.
    pub(super) fn park(&self, check: &dyn CommitCheck, id: &str) -> Result<Entry, Fault> {
        let mut state = self.state();
        let (order, mut record, entry) = self.known(&state, id)?;
        match entry.status {
            Status::Queued | Status::Blocked | Status::Waiting => {}
            Status::Delivering => {
                return Err(conflict(&entry, "is being delivered; try again later"));
            }
            Status::Parked => return Err(conflict(&entry, "is parked already")),
            Status::Delivered => {
                return Err(conflict(&entry, "was delivered; only queued exports can be parked"));
            }
        }
        record.entry = Entry { status: Status::Parked, ..entry };
        self.commit(check, |t| record::put(t, order, &record))?;
        let line = state.lines.entry(record.entry.target.clone()).or_default();
        line.remove(order, &record);
        line.wake.notify_one();
        state.parked.insert(order, record.entry.bytes);
        self.tell(&record.entry);
        Ok(record.entry)
    }

    /// Queues a delivered file again at the end of its target's queue.
    pub(super) fn replay(&self, check: &dyn CommitCheck, id: &str) -> Result<Entry, Fault> {
        let mut state = self.state();
        let (order, mut record, entry) = self.known(&state, id)?;
        if entry.status != Status::Delivered {
            return Err(conflict(&entry, "was not delivered yet; `retry` tries it now"));
        }
        if !record.kept {
            return Err(conflict(&entry, "is no longer kept: its file fell out of the history"));
        }
        self.spool.file(&record.file(), entry.bytes).map_err(|cause| conflict(&entry, &cause))?;
        record.entry.status = Status::Queued;
        record.entry.delivered_at = None;
        record.place = state.next;
        self.commit(check, |t| record::put(t, order, &record))?;
        state.forget(order);
        state.take_up(order, &record);
        self.tell(&record.entry);
        state.lines.entry(record.entry.target.clone()).or_default().wake.notify_one();
        self.added.notify_one();
        Ok(record.entry)
    }

    /// Returns the entry and its open file.
    pub(super) fn content(&self, id: &str) -> Result<(Entry, File), Fault> {
        let state = self.state();
        let (_, record, entry) = self.known(&state, id)?;
        let gone = |cause: &str| {
            Fault::new(Kind::NotFound, format!("the export `{id}` has no content: {cause}"))
        };
        if !record.kept {
            return Err(gone("it was delivered, and its file is no longer kept"));
        }
        let file = self.spool.file(&record.file(), entry.bytes).map_err(|cause| gone(&cause))?;
        Ok((entry, file))
    }

    fn known(&self, state: &State, id: &str) -> Result<(u64, Record, Entry), Fault> {
        let unknown = || Fault::new(Kind::NotFound, format!("there is no export `{id}`"));
        self.find(state, id)?.ok_or_else(unknown)
    }

    /// Commits on behalf of the operator.
    pub(super) fn commit(
        &self,
        check: &dyn CommitCheck,
        change: impl FnOnce(&mut Transaction<'_>) -> Result<(), Error>,
    ) -> Result<(), Fault> {
        commit::<_, Fault>(&self.store, check, |t| Ok(change(t)?))?;
        Ok(())
    }
}

fn conflict(entry: &Entry, why: &str) -> Fault {
    Fault::new(Kind::Conflict, format!("the export `{}` {why}", entry.id))
}
