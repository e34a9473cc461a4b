//! Operator actions on an entry: retry, park, replay, and reading its file.
use super::OpenedExport;
use super::delivery::DAMAGED_FILE;
use super::queue::ExportQueue;
use super::record::{EXPORTS, Record};
use super::state::QueueState;
use penstock_base::commit::{CommitCheck, commit};
use penstock_base::error::{ErrorClass, GatewayError};
use penstock_resources::export::{Export, ExportStatus};
use penstock_store::{Error, Transaction};

impl ExportQueue {
    /// Retries the target of a queued entry now, or queues a parked entry again at its original place.
    pub(super) fn retry(&self, check: &dyn CommitCheck, id: &str) -> Result<Export, GatewayError> {
        let mut state = self.lock_state();
        let (order, mut record, entry) = self.find_required(&state, id)?;
        match entry.status {
            // Nothing changes, but the requester must still be authorized.
            ExportStatus::Queued
            | ExportStatus::Blocked
            | ExportStatus::Delivering
            | ExportStatus::Waiting => {
                self.commit_checked(check, |_| Ok(()))?;
            }
            ExportStatus::Parked => {
                // Without its file it would only block the queue.
                self.spool.open_file(&record.spool_file_name(), entry.bytes).map_err(|cause| {
                    let remedy = "restore it, or push the Business Object for a full export";
                    conflict_error(&entry, &format!("cannot be retried: {cause}; {remedy}"))
                })?;
                record.entry.status = ExportStatus::Queued;
                // The file may have been restored. The next attempt finds out; until then no full export replaces it.
                record.entry.last_error =
                    record.entry.last_error.filter(|cause| cause != DAMAGED_FILE);
                self.commit_record(check, order, &record)?;
                state.add_record(order, &record);
                self.publish_entry(&record.entry);
            }
            ExportStatus::Delivered => {
                return Err(conflict_error(&entry, "was delivered; `replay` delivers it again"));
            }
        }
        state.queues.entry(entry.target.clone()).or_default().wake.notify_one();
        self.entry_added.notify_one();
        Ok(state.current_entry(order, record.entry))
    }

    /// Parks a queued entry.
    pub(super) fn park(&self, check: &dyn CommitCheck, id: &str) -> Result<Export, GatewayError> {
        let mut state = self.lock_state();
        let (order, mut record, entry) = self.find_required(&state, id)?;
        match entry.status {
            ExportStatus::Queued | ExportStatus::Blocked | ExportStatus::Waiting => {}
            ExportStatus::Delivering => {
                return Err(conflict_error(&entry, "is being delivered; try again later"));
            }
            ExportStatus::Parked => return Err(conflict_error(&entry, "is parked already")),
            ExportStatus::Delivered => {
                return Err(conflict_error(
                    &entry,
                    "was delivered; only queued exports can be parked",
                ));
            }
        }
        record.entry = Export { status: ExportStatus::Parked, ..entry };
        self.commit_record(check, order, &record)?;
        let target_queue = state.queues.entry(record.entry.target.clone()).or_default();
        target_queue.remove(order, &record);
        target_queue.wake.notify_one();
        let bytes = self.spool.used_bytes(&record.spool_file_name(), record.entry.bytes);
        state.parked.insert(order, bytes);
        self.publish_entry(&record.entry);
        Ok(record.entry)
    }

    /// Queues a delivered file again at the end of its target's queue.
    pub(super) fn replay(&self, check: &dyn CommitCheck, id: &str) -> Result<Export, GatewayError> {
        let mut state = self.lock_state();
        let (order, mut record, entry) = self.find_required(&state, id)?;
        if entry.status != ExportStatus::Delivered {
            return Err(conflict_error(&entry, "was not delivered yet; `retry` tries it now"));
        }
        if !record.kept {
            return Err(conflict_error(
                &entry,
                "cannot be replayed: its file was removed from the history",
            ));
        }
        self.spool
            .open_file(&record.spool_file_name(), entry.bytes)
            .map_err(|cause| conflict_error(&entry, &cause))?;
        record.entry.status = ExportStatus::Queued;
        record.entry.delivered_at = None;
        record.place = state.next_order;
        self.commit_record(check, order, &record)?;
        state.delivered.remove(&order);
        state.add_record(order, &record);
        self.publish_entry(&record.entry);
        state.queues.entry(record.entry.target.clone()).or_default().wake.notify_one();
        self.entry_added.notify_one();
        Ok(record.entry)
    }

    /// Returns the entry and its open file.
    pub(super) fn open_content(&self, id: &str) -> Result<OpenedExport, GatewayError> {
        let state = self.lock_state();
        let (_, record, entry) = self.find_required(&state, id)?;
        let no_content = |cause: &str| {
            GatewayError::new(
                ErrorClass::NotFound,
                format!("the export `{id}` has no content: {cause}"),
            )
        };
        if !record.kept {
            return Err(no_content("it was delivered, and its file is no longer kept"));
        }
        let file = self
            .spool
            .open_file(&record.spool_file_name(), entry.bytes)
            .map_err(|cause| no_content(&cause))?;
        let schema_version = record.schema_version;
        Ok(OpenedExport { length: entry.bytes, entry, file, schema_version })
    }

    fn find_required(
        &self,
        state: &QueueState,
        id: &str,
    ) -> Result<(u64, Record, Export), GatewayError> {
        let unknown =
            || GatewayError::new(ErrorClass::NotFound, format!("there is no export `{id}`"));
        self.find_entry(state, id)?.ok_or_else(unknown)
    }

    /// Commits the changed record of an entry on behalf of the operator.
    fn commit_record(
        &self,
        check: &dyn CommitCheck,
        order: u64,
        record: &Record,
    ) -> Result<(), GatewayError> {
        self.commit_checked(check, |t| {
            EXPORTS.put(t, order, record)?;
            self.store_event(t, &record.entry)
        })
    }

    /// Commits on behalf of the operator.
    pub(super) fn commit_checked(
        &self,
        check: &dyn CommitCheck,
        change: impl FnOnce(&mut Transaction<'_>) -> Result<(), Error>,
    ) -> Result<(), GatewayError> {
        commit::<_, GatewayError>(&self.store, check, |t| Ok(change(t)?))?;
        Ok(())
    }
}

fn conflict_error(entry: &Export, why: &str) -> GatewayError {
    GatewayError::new(ErrorClass::Conflict, format!("the export `{}` {why}", entry.id))
}
