//! Opening the queue: the records of the store, compared with the files of the spool.
use crate::record::{EXPORTS, Record};
use crate::spool::Spool;
use crate::state::QueueState;
use penstock_resources::export::{Export, ExportStatus};
use penstock_store::{Error, Store};
use std::collections::HashSet;
use std::time::Instant;

/// The number of records that one commit corrects. After a restore, the files of all queued exports are gone, and the memory
/// must not depend on their number.
pub(crate) const RECORDS_PER_COMMIT: usize = if cfg!(test) { 4 } else { 1_000 };

/// The records of the store, while the queue opens.
#[derive(Default)]
pub(super) struct LoadedRecords {
    pub(super) state: QueueState,
    /// The files that the spool must keep.
    files: HashSet<String>,
    /// Records whose status differs from the stored one, with their orders, until they are stored.
    corrections: Vec<(u64, Record)>,
    /// The orders of undelivered exports whose file is missing or damaged.
    missing: HashSet<u64>,
    /// Whether such exports are errors in the log.
    logs_missing: bool,
    /// The number of records that could not be read.
    unread: u64,
}

impl LoadedRecords {
    pub(super) fn new(logs_missing: bool) -> Self {
        Self { logs_missing, ..Self::default() }
    }

    /// Adds a record. It is corrected if its file is missing, or if the gateway stopped during its delivery.
    pub(super) fn add(&mut self, order: u64, record: Option<Record>, spool: &Spool) {
        let Some(mut record) = record else {
            self.unread += 1;
            self.state.has_unreadable = true;
            self.state.next_order = self.state.next_order.max(order + 1);
            return;
        };
        self.state.add_record(order, &record);
        if !record.kept {
            return;
        }
        let file = record.spool_file_name();
        let status = record.entry.status;
        if status == ExportStatus::Parked {
            self.state.parked.insert(order, spool.used_bytes(&file, record.entry.bytes));
        } else if status != ExportStatus::Delivered {
            let cause = spool.open_file(&file, record.entry.bytes).err();
            if let Some(cause) = &cause {
                self.missing.insert(order);
                if self.logs_missing {
                    log_missing_file(&record.entry, cause);
                }
            }
            if cause.is_some() || status != ExportStatus::Queued {
                record.entry.status =
                    if cause.is_some() { ExportStatus::Blocked } else { ExportStatus::Queued };
                record.entry.last_error = cause;
                self.corrections.push((order, record));
            }
        }
        self.files.insert(file);
    }

    /// Returns whether enough corrections wait for a commit.
    pub(super) fn has_many_corrections(&self) -> bool {
        self.corrections.len() >= RECORDS_PER_COMMIT
    }

    /// Stores the corrected records.
    pub(super) fn store_corrections(&mut self, store: &Store) -> Result<(), Error> {
        let corrections = std::mem::take(&mut self.corrections);
        if corrections.is_empty() {
            return Ok(());
        }
        store.transact::<_, Error>(|t| {
            let mut corrections = corrections.iter();
            corrections.try_for_each(|(order, record)| EXPORTS.put(t, *order, record))
        })?;
        Ok(())
    }

    /// Marks the head of each queue as possibly stored: the gateway may have stopped during its delivery.
    pub(super) fn expect_interrupted_deliveries(&mut self) {
        let missing = &self.missing;
        for (target, target_queue) in &mut self.state.queues {
            let Some((_, &(head, _))) = target_queue.waiting.first_key_value() else { continue };
            target_queue.unclear_since.insert(head, Instant::now());
            let (mut exports, mut bytes) = (0_u64, 0_u64);
            for (_, size) in
                target_queue.waiting.values().filter(|(order, _)| !missing.contains(order))
            {
                exports += 1;
                bytes += size;
            }
            if exports == 0 {
                continue;
            }
            tracing::info!(
                target_name = target,
                exports,
                bytes,
                "Undelivered exports were found; the gateway delivers them."
            );
        }
    }

    /// Removes the files without a record, unless there are records that could not be read. If the folder cannot be read, the
    /// next start tries again.
    pub(super) fn clean_up_spool(&self, spool: &Spool) {
        if self.unread == 0 {
            // The error is in the log.
            drop(spool.retain(&self.files));
        } else {
            tracing::error!(
                unread = self.unread,
                "Records of the export queue could not be read, and their files stay in the spool. Was this \
                 data directory written by a newer version?"
            );
        }
    }
}

/// Logs that the file of an export is missing or damaged.
fn log_missing_file(entry: &Export, cause: &str) {
    let Export { id, target, business_object_name, .. } = entry;
    tracing::error!(
        export_id = id,
        target_name = target,
        business_object = business_object_name,
        cause,
        "The file of an export is missing or damaged; restore it, or park the export."
    );
}
