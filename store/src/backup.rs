//! Backups: the state of the store at one moment, in one file.
//!
//! A backup is a base (FORMAT.md). Commits that ran while it was written are parts of their own, so nothing
//! has to be replayed over it. It is not N-Quads, because a base has the documents too, is exact however much commits
//! change meanwhile, and needs no second format.
use crate::frame::CommitCounts;
use crate::journal::{self, PartWriter, SyncState};
use crate::slot::LendingWriter;
use crate::{Error, ReadStore};
use std::io::Write;
use std::path::Path;
use std::sync::Arc;

/// The content of a backup.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Backup {
    /// The sequence of the newest commit in it.
    pub sequence: u64,
    /// The number of quads written. Quads that changed during the backup count more than once.
    pub quads: u64,
    /// The number of documents written. Documents that changed during the backup count more than once.
    pub documents: u64,
}

impl ReadStore {
    /// Writes a backup to `out`. It contains the state at the moment at which the backup ends. Commits and
    /// reads continue meanwhile; a compaction waits.
    ///
    /// The output is valid only if this function succeeds: [`BackupFile`](crate::BackupFile) refuses an incomplete one.
    ///
    /// If the store is poisoned meanwhile, the backup fails so that the store can be reopened. A backup that
    /// starts on a poisoned store continues, and reopening waits for it. It does not wait if `out` accepts
    /// nothing for some seconds. Such a backup can have commits that could not be synced, and that reopening cuts off.
    ///
    /// If a commit raises the format of the store meanwhile, the backup fails with [`Error::FormatRaised`].
    pub fn write_backup(&self, out: &mut dyn Write) -> Result<Backup, Error> {
        Ok(self.write_unsynced_backup(out)?.0)
    }

    /// Works as [`Self::write_backup`], but fails if a commit in the backup is not synced. So the frames that follow it
    /// in the journal continue it, also after the store was reopened.
    pub fn write_durable_backup(&self, out: &mut dyn Write) -> Result<Backup, Error> {
        let (backup, synced) = self.write_unsynced_backup(out)?;
        synced.wait_synced(backup.sequence)?;
        Ok(backup)
    }

    /// Writes a backup. Returns with it what knows whether its commits are synced.
    fn write_unsynced_backup(
        &self,
        out: &mut dyn Write,
    ) -> Result<(Backup, Arc<SyncState>), Error> {
        let inner = self.inner();
        let slot = inner.slot.take();
        inner.closing.check_not_closing()?;
        let writer = inner.lock_writer();
        let (id, folder) = (writer.id(), writer.folder().to_owned());
        let before = inner.begin_pass(&writer);
        drop(writer);
        let out = LendingWriter { out, slot: &slot, is_last: before.was_poisoned };
        let mut parts = PartWriter::begin(out, Path::new("the backup"), &id, before.format)?;
        let exact = inner.write_state(&mut parts, &before)?;
        // Without commits meanwhile it reads no frames: one whose sync failed may be lost.
        if exact > before.from {
            journal::replay_synced(&folder, &id, before.from, exact, &mut |_, payload| {
                inner.check_may_continue(&before)?;
                match CommitCounts::read(payload, &mut |_| {}) {
                    Ok(counts) => parts.write_commit(payload, counts).map(Ok),
                    Err(what) => Ok(Err(what)),
                }
            })?;
        }
        let (end, _) = parts.finish(exact, exact)?;
        let backup = Backup { sequence: exact, quads: end.quads, documents: end.documents };
        Ok((backup, before.synced))
    }
}
