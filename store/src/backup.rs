//! Backups: the state of the store at one moment, in one file; and restoring a store from such a file.
//!
//! A backup is a base (FORMAT.md). Commits that ran while it was written are parts of their own, so nothing
//! has to be replayed over it. It is not N-Quads, because a base has the documents too, is exact however much commits
//! change meanwhile, and needs no second format.
use crate::data_dir::{UNFINISHED_FOLDER, lock_data_dir};
use crate::frame::Change;
use crate::journal::{self, Base, BaseEnd, NewBase, PartWriter};
use crate::slot::LendingWriter;
use crate::{Error, ReadStore, files};
use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::Write;
use std::path::{Path, PathBuf};

/// How far the counters and sequences of a restored store jump ahead. It is more than a gateway uses between
/// a backup and the loss of its data.
pub const SEQUENCE_JUMP: u64 = 1_000_000;

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
    /// nothing for some seconds.
    ///
    /// If a commit raises the format of the store meanwhile, the backup fails with [`Error::FormatRaised`].
    pub fn write_backup(&self, out: &mut dyn Write) -> Result<Backup, Error> {
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
        journal::replay_synced(&folder, &id, before.from, exact, &mut |_, payload| {
            inner.check_may_continue(&before)?;
            match Change::decode(payload) {
                Ok(change) => parts.write_commit(payload, &change).map(Ok),
                Err(what) => Ok(Err(what)),
            }
        })?;
        let (end, _) = parts.finish(exact, exact)?;
        Ok(Backup { sequence: exact, quads: end.quads, documents: end.documents })
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
        self.summarize_end(&end)
    }

    fn summarize_end(&self, end: &BaseEnd) -> Result<Backup, Error> {
        if end.from != end.exact {
            return Err(Error::NotABackup { path: self.path.clone() });
        }
        Ok(Backup { sequence: end.exact, quads: end.quads, documents: end.documents })
    }

    /// Restores the backup into `dir`, which must be empty or missing. The sequence of commits jumps ahead by
    /// [`SEQUENCE_JUMP`]. So does each document in the collections `counters` that is a big-endian `u64`. The
    /// first open builds the index.
    pub fn restore_into(&self, dir: &Path, counters: &[&str]) -> Result<Restored, Error> {
        files::create_folder(dir)?;
        let _lock = lock_data_dir(dir)?;
        for entry in fs::read_dir(dir).map_err(files::io_error("reading", dir))? {
            let path = entry.map_err(files::io_error("reading", dir))?.path();
            if path.file_name().is_some_and(|name| name != "lock" && name != UNFINISHED_FOLDER) {
                return Err(Error::NotEmpty { path: dir.to_owned() });
            }
        }
        let folder = dir.join(UNFINISHED_FOLDER);
        if folder.exists() {
            fs::remove_dir_all(&folder).map_err(files::io_error("removing", &folder))?;
        }
        files::create_folder(&folder)?;
        let restored = self.create_journal(&folder, counters).and_then(|restored| {
            files::rename_durably(&folder, &dir.join("journal"), dir)?;
            Ok(restored)
        });
        restored.inspect_err(|_| {
            // Best effort: no open accepts an unfinished restore, and the first error is the one to report.
            let _ = fs::remove_dir_all(&folder);
        })
    }

    fn create_journal(&self, folder: &Path, counters: &[&str]) -> Result<Restored, Error> {
        let from = Base::open_file(&self.file, &self.path)?;
        let (backup, format) = (self.summarize_end(&from.end)?, from.format);
        let sequence = backup.sequence.saturating_add(SEQUENCE_JUMP);
        let id = journal::new_id();
        journal::make_segment(folder, &id, sequence + 1, format)?;
        let mut base = NewBase::begin(folder, &id, sequence, format)?;
        let mut last = BTreeMap::new();
        journal::read_base(&self.file, &self.path, &mut |_, payload| {
            let change = match Change::decode(payload) {
                Ok(change) => change,
                Err(what) => return Ok(Err(what)),
            };
            for (collection, key, value) in &change.documents {
                if counters.contains(collection) {
                    let number = value.and_then(|value| value.try_into().ok());
                    let name = ((*collection).to_owned(), key.to_vec());
                    last.insert(name, number.map(u64::from_be_bytes));
                }
            }
            base.parts.write_commit(payload, &change).map(Ok)
        })?;
        let mut jumped = 0;
        for ((collection, key), counter) in last {
            if let Some(counter) = counter {
                base.parts.add_document(
                    &collection,
                    &key,
                    &counter.saturating_add(SEQUENCE_JUMP).to_be_bytes(),
                );
                jumped += 1;
            }
        }
        base.finish(sequence, &|| Ok(()))?.publish()?;
        Ok(Restored { backup, sequence, counters: jumped })
    }
}
