//! Files and folders whose names survive a power cut, readable by their owner alone.
use crate::Error;
#[cfg(feature = "faults")]
use crate::faults::{Operation, strike};
use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::fs::{DirBuilderExt, FileExt as _, OpenOptionsExt};
use std::path::Path;

/// Without the feature nothing is asked, and nothing of this is left in the program.
#[cfg(not(feature = "faults"))]
mod faultless {
    pub(super) enum Operation {
        Create,
        Write,
        Sync,
        Cut,
        Rename,
        Remove,
        Apply,
    }

    pub(super) enum Failure {}

    impl Failure {
        pub(super) fn error(&self) -> std::io::Error {
            match *self {}
        }

        pub(super) fn is_short(&self) -> bool {
            match *self {}
        }
    }

    pub(super) fn strike(_operation: Operation, _path: &std::path::Path) -> Option<Failure> {
        None
    }
}
#[cfg(not(feature = "faults"))]
use faultless::{Operation, strike};

/// The bytes that are free for us on the disk of a folder.
pub fn free(folder: &Path) -> io::Result<u64> {
    // How wide the two numbers are depends on the processor.
    fn product(count: impl Into<u64>, bytes: impl Into<u64>) -> u64 {
        count.into().saturating_mul(bytes.into())
    }
    let disk = nix::sys::statvfs::statvfs(folder)?;
    Ok(product(disk.blocks_available(), disk.fragment_size()))
}

/// Too little disk space for what is about to be written, found before anything is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("{needed} bytes of disk space are needed and {free} are free")]
pub struct DiskFull {
    /// Bytes that must be free.
    pub needed: u64,
    /// Bytes that are free.
    pub free: u64,
}

impl DiskFull {
    /// What an error of the operating system stands for, if it stands for this.
    pub fn of(error: &io::Error) -> Option<Self> {
        error.get_ref()?.downcast_ref().copied()
    }
}

impl From<DiskFull> for io::Error {
    fn from(full: DiskFull) -> Self {
        Self::new(io::ErrorKind::StorageFull, full)
    }
}

/// Makes an [`Error::Io`] of an operating system's error.
pub(crate) fn fault(action: &'static str, path: &Path) -> impl FnOnce(io::Error) -> Error {
    let path = path.to_owned();
    move |source| Error::Io { action, path, source }
}

fn allow(operation: Operation, path: &Path) -> io::Result<()> {
    strike(operation, path).map_or(Ok(()), |failure| Err(failure.error()))
}

/// Lets a commit be applied to the index of a data directory, unless a test says otherwise.
pub(crate) fn allow_apply(dir: &Path) -> Result<(), Error> {
    allow(Operation::Apply, dir)
        .map_err(|cause| Error::Index(format!("a commit could not be applied: {cause}")))
}

/// Makes names that were created, renamed or deleted in a folder durable.
pub(crate) fn sync_folder(path: &Path) -> Result<(), Error> {
    allow(Operation::Sync, path)
        .and_then(|()| File::open(path))
        .and_then(|folder| folder.sync_all())
        .map_err(fault("syncing", path))
}

/// Makes a folder and those above it (mode 0700) unless they are there, durably.
pub(crate) fn make_folder(path: &Path) -> Result<(), Error> {
    if path.is_dir() {
        return Ok(());
    }
    let parent = match path.parent() {
        Some(parent) if parent.as_os_str().is_empty() => Path::new("."),
        Some(parent) => parent,
        None => path,
    };
    make_folder(parent)?;
    allow(Operation::Create, path)
        .and_then(|()| DirBuilder::new().mode(0o700).create(path))
        .map_err(fault("creating", path))?;
    sync_folder(parent)
}

/// Opens a file (mode 0600) for reading and writing, making it unless it is there.
pub(crate) fn open_or_make(path: &Path) -> Result<File, Error> {
    allow(Operation::Create, path)
        .and_then(|()| writable().truncate(false).open(path))
        .map_err(fault("opening", path))
}

/// Makes an empty file (mode 0600) in place of the one of that name.
pub(crate) fn make_anew(path: &Path) -> Result<File, Error> {
    allow(Operation::Create, path)
        .and_then(|()| writable().truncate(true).open(path))
        .map_err(fault("creating", path))
}

fn writable() -> OpenOptions {
    let mut options = OpenOptions::new();
    options.read(true).write(true).create(true).mode(0o600);
    options
}

/// Writes all of the bytes at a place of a file.
pub(crate) fn write_at(file: &File, path: &Path, bytes: &[u8], at: u64) -> io::Result<()> {
    let Some(failure) = strike(Operation::Write, path) else {
        return file.write_all_at(bytes, at);
    };
    if failure.is_short() {
        file.write_all_at(bytes.get(..bytes.len() / 2).unwrap_or_default(), at)?;
    }
    Err(failure.error())
}

/// Writes bytes where the file was last written to; gives how many it took.
pub(crate) fn write(file: &mut File, path: &Path, bytes: &[u8]) -> io::Result<usize> {
    let Some(failure) = strike(Operation::Write, path) else { return file.write(bytes) };
    if failure.is_short() {
        file.write_all(bytes.get(..bytes.len() / 2).unwrap_or_default())?;
    }
    Err(failure.error())
}

/// Syncs the bytes of a file, and its length.
pub(crate) fn sync_data(file: &File, path: &Path) -> io::Result<()> {
    allow(Operation::Sync, path)?;
    file.sync_data()
}

/// Syncs a file with all that is known of it.
pub(crate) fn sync(file: &File, path: &Path) -> Result<(), Error> {
    allow(Operation::Sync, path).and_then(|()| file.sync_all()).map_err(fault("syncing", path))
}

/// Cuts off the end of a file.
pub(crate) fn cut(file: &File, path: &Path, length: u64) -> Result<(), Error> {
    allow(Operation::Cut, path).and_then(|()| file.set_len(length)).map_err(fault("cutting", path))
}

/// Renames a file within its folder, durably.
pub(crate) fn rename(from: &Path, to: &Path, folder: &Path) -> Result<(), Error> {
    #[expect(clippy::disallowed_methods, reason = "the folder is synced right after")]
    allow(Operation::Rename, from)
        .and_then(|()| fs::rename(from, to))
        .map_err(fault("renaming", from))?;
    sync_folder(folder)
}

/// Removes a file if it is there, durably.
pub(crate) fn remove(path: &Path, folder: &Path) -> Result<(), Error> {
    match allow(Operation::Remove, path).and_then(|()| fs::remove_file(path)) {
        Ok(()) => sync_folder(folder),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        Err(error) => Err(fault("removing", path)(error)),
    }
}

/// The bytes of all files right in a folder; 0 for one that is not there.
pub(crate) fn size_of(folder: &Path) -> u64 {
    let Ok(entries) = fs::read_dir(folder) else { return 0 };
    entries.flatten().filter_map(|entry| entry.metadata().ok()).map(|data| data.len()).sum()
}
