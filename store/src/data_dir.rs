//! The data directory: its lock, and what an interrupted restore or verification left in it.
use crate::{Error, files, index};
use std::fs::{self, File};
use std::path::Path;
use std::time::Duration;

/// The file in a data directory that is locked while the store is in use.
const LOCK_FILE: &str = "lock";
/// The number of attempts to lock a file: [`is_in_use`] has the lock for a moment.
const LOCK_ATTEMPTS: u32 = 5;
const LOCK_RETRY_DELAY: Duration = Duration::from_millis(20);

/// The folder in which a restore creates the journal. It is renamed when the journal is complete.
pub(crate) const UNFINISHED_FOLDER: &str = "journal.new";
/// The folder in which a verification builds an index to compare with.
pub(crate) const SCRATCH_FOLDER: &str = "verify";

/// Excludes other processes from a data directory.
#[derive(Debug)]
pub(crate) struct DirLock(Vec<File>);

impl DirLock {
    fn lock_file(&mut self, file: File) -> Result<(), fs::TryLockError> {
        try_lock(&file, &mut || std::thread::sleep(LOCK_RETRY_DELAY))?;
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

/// Locks a file. Calls `wait` between the attempts.
fn try_lock(file: &File, wait: &mut dyn FnMut()) -> Result<(), fs::TryLockError> {
    for _ in 1..LOCK_ATTEMPTS {
        match file.try_lock() {
            Err(fs::TryLockError::WouldBlock) => wait(),
            done => return done,
        }
    }
    file.try_lock()
}

/// Returns whether a process has the store in this directory in use; false if that is unknown.
pub fn is_in_use(dir: &Path) -> bool {
    // Closing the file ends the lock that this takes.
    let file = File::open(dir.join(LOCK_FILE));
    file.is_ok_and(|file| matches!(file.try_lock_shared(), Err(fs::TryLockError::WouldBlock)))
}

/// Locks a data directory: the file `lock` in it, which is all that older versions check, and the directory
/// itself, because the file can be removed while the store is in use.
pub(crate) fn lock_data_dir(dir: &Path) -> Result<DirLock, Error> {
    let path = dir.join(LOCK_FILE);
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lock_that_another_process_has_for_a_moment_is_waited_for() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join(LOCK_FILE);
        let (file, other) = (File::create(&path).unwrap(), File::open(&path).unwrap());
        other.try_lock_shared().unwrap();
        let mut waits = 0;
        let failed = try_lock(&file, &mut || waits += 1);
        assert!(matches!(failed, Err(fs::TryLockError::WouldBlock)), "{failed:?}");
        assert_eq!(waits, LOCK_ATTEMPTS - 1);
        try_lock(&file, &mut || other.unlock().unwrap()).unwrap();
    }

    #[test]
    fn a_store_is_in_use_while_its_directory_is_locked() {
        let dir = tempfile::tempdir().unwrap();
        assert!(!is_in_use(&dir.path().join("missing")) && !is_in_use(dir.path()));
        let lock = lock_data_dir(dir.path()).unwrap();
        assert!(is_in_use(dir.path()));
        drop(lock);
        assert!(!is_in_use(dir.path()));
    }
}
