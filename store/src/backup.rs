//! Backups: the state of the store at one moment, in one file; and restoring a store from such a file.
//!
//! A backup is a base (FORMAT.md). Commits that ran while it was written are parts of their own, so nothing
//! has to be replayed over it. It is not N-Quads, because a base has the documents too, is exact however much commits
//! change meanwhile, and needs no second format.
use crate::frame::CommitCounts;
use crate::journal::{self, PartWriter, SyncState};
use crate::restore::{restore_file, summarize_end};
use crate::slot::LendingWriter;
use crate::{Error, ReadStore, files};
use std::fs::File;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// How far the counters and sequences of a restored store jump ahead. It is more than a gateway uses between
/// a backup and the loss of its data.
pub const SEQUENCE_JUMP: u64 = 1_000_000;

/// The key of a document in each collection of counters: where a counter begins that is not there yet. A counter, or what
/// it counts, may be newer than the backup, and may have been lost with numbers that were issued.
pub const NEW_COUNTERS: &[u8] = b"";

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

/// The result of a restore.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Restored {
    /// The content of the backup.
    pub backup: Backup,
    /// The sequence after which the restored store continues.
    pub sequence: u64,
    /// The number of counters that jumped ahead.
    pub counters: u64,
}

impl ReadStore {
    /// Writes a backup to `out`. It contains the state at the moment at which the backup ends. Commits and
    /// reads continue meanwhile; a compaction waits.
    ///
    /// The output is valid only if this function succeeds: [`BackupFile`] refuses an incomplete one.
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

/// A backup file, as written by [`ReadStore::write_backup`].
#[derive(Debug)]
pub struct BackupFile {
    file: File,
    path: PathBuf,
}

impl BackupFile {
    /// Opens the backup at `path`.
    pub fn open(path: &Path) -> Result<Self, Error> {
        Ok(Self::from_file(File::open(path).map_err(files::io_error("opening", path))?, path))
    }

    /// Wraps a file that is open for reading. Errors name it `path`.
    pub fn from_file(file: File, path: &Path) -> Self {
        Self { file, path: path.to_owned() }
    }

    /// Reads the whole backup and verifies that it is complete and undamaged.
    pub fn verify_content(&self) -> Result<Backup, Error> {
        let (_, end) = journal::read_base(&self.file, &self.path, &mut |_, _| Ok(Ok(())))?;
        summarize_end(&end, &self.path)
    }

    /// Restores the backup into `dir`, which must be empty or missing. The sequence of commits jumps ahead by
    /// [`SEQUENCE_JUMP`]. So does each document in the collections `counters` that is a big-endian `u64`, and
    /// [`NEW_COUNTERS`]. The first open builds the index.
    pub fn restore_into(&self, dir: &Path, counters: &[&str]) -> Result<Restored, Error> {
        restore_file((&self.file, &self.path), dir, SEQUENCE_JUMP, counters)
    }
}
