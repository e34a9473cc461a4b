//! The data directory: its lock, and what an interrupted restore or verification left in it.
use crate::{Error, files, index};
use std::fs::{self, File};
use std::path::Path;

/// The folder in which a restore creates the journal. It is renamed when the journal is complete.
pub(crate) const UNFINISHED_FOLDER: &str = "journal.new";
/// The folder in which a verification builds an index to compare with.
pub(crate) const SCRATCH_FOLDER: &str = "verify";

/// Excludes other processes from a data directory.
#[derive(Debug)]
pub(crate) struct DirLock(Vec<File>);

impl DirLock {
    fn lock_file(&mut self, file: File) -> Result<(), fs::TryLockError> {
        file.try_lock()?;
        self.0.push(file);
        Ok(())
    }
}

impl Drop for DirLock {
    fn drop(&mut self) {
        // Closing is not enough, because a child process that is just starting may have a copy of the
        // descriptor. A failed unlock leaves the lock until this process ends, which is also safe.
        for file in &self.0 {
            let _ = file.unlock();
        }
    }
}

/// Locks a data directory: the file `lock` in it, which is all that older versions check, and the directory
/// itself, because the file can be removed while the store is in use.
pub(crate) fn lock_data_dir(dir: &Path) -> Result<DirLock, Error> {
    let path = dir.join("lock");
    let file = files::open_or_create(&path)?;
    let mut lock = DirLock(Vec::new());
    lock.lock_file(file).map_err(|error| lock_error(error, dir, &path))?;
    let folder = File::open(dir).map_err(files::io_error("opening", dir))?;
    match lock.lock_file(folder) {
        // Some network file systems only lock files.
        Err(fs::TryLockError::Error(cause)) => {
            tracing::debug!(path = %dir.display(), %cause,
                "The file system cannot lock the directory; only a file in it is locked.");
        }
        taken => taken.map_err(|error| lock_error(error, dir, dir))?,
    }
    Ok(lock)
}

fn lock_error(error: fs::TryLockError, dir: &Path, path: &Path) -> Error {
    match error {
        fs::TryLockError::WouldBlock => Error::InUse { path: dir.to_owned() },
        fs::TryLockError::Error(error) => files::io_error("locking", path)(error),
    }
}

/// Refuses a data directory in which a restore did not finish.
pub(crate) fn refuse_unfinished_restore(dir: &Path) -> Result<(), Error> {
    if dir.join(UNFINISHED_FOLDER).exists() {
        return Err(Error::UnfinishedRestore { path: dir.to_owned() });
    }
    Ok(())
}

/// Removes what an interrupted verification, or an interrupted build of the index, left.
pub(crate) fn discard_scratch(dir: &Path) -> Result<(), Error> {
    index::remove_scratch(dir)?;
    let scratch = dir.join(SCRATCH_FOLDER);
    if scratch.exists() {
        fs::remove_dir_all(&scratch).map_err(files::io_error("removing", &scratch))?;
    }
    Ok(())
}
