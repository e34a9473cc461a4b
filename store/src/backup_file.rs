//! A whole backup: verifying it, and restoring a store from it.
use crate::backup::Backup;
use crate::restore::{Restored, SEQUENCE_JUMP, restore_file, summarize_end};
use crate::{Error, files, journal};
use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

/// A backup file, as written by [`ReadStore::write_backup`](crate::ReadStore::write_backup).
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
    /// [`NEW_COUNTERS`](crate::NEW_COUNTERS). The first open builds the index.
    pub fn restore_into(&self, dir: &Path, counters: &[&str]) -> Result<Restored, Error> {
        restore_file((&self.file, &self.path), dir, SEQUENCE_JUMP, counters)
    }
}

/// Reads a backup from a stream, as [`ReadStore::write_backup`](crate::ReadStore::write_backup) wrote it, and verifies that
/// it is complete and undamaged. Errors name it `path`.
pub fn verify_backup(input: &mut dyn Read, path: &Path) -> Result<Backup, Error> {
    let (_, end) = journal::read_base_stream(input, path, &mut |_, _| Ok(Ok(())))?;
    summarize_end(&end, path)
}
