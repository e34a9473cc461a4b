//! Operations on files and folders: names survive a power cut, and only the owner can read the files.
use crate::Error;
#[cfg(feature = "faults")]
use crate::faults::{Operation, planned_failure};
use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::fs::{DirBuilderExt, FileExt as _, OpenOptionsExt};
use std::path::Path;

/// Replaces fault injection if the feature is off, so that the program contains none of it.
#[cfg(not(feature = "faults"))]
mod faultless {
    pub(super) enum Operation {
        Create,
        Write,
        Sync,
        Truncate,
        Rename,
        Remove,
        Apply,
        FindPreserved,
    }

    pub(super) enum Failure {}

    impl Failure {
        pub(super) fn to_io_error(&self) -> std::io::Error {
            match *self {}
        }

        pub(super) fn is_short(&self) -> bool {
            match *self {}
        }
    }

    pub(super) fn planned_failure(
        _operation: Operation,
        _path: &std::path::Path,
    ) -> Option<Failure> {
        None
    }
}
#[cfg(not(feature = "faults"))]
use faultless::{Operation, planned_failure};

/// Returns the free bytes that this process may use on the disk of a folder.
pub fn free_bytes(folder: &Path) -> io::Result<u64> {
    // The width of both numbers depends on the platform.
    fn multiply_blocks(count: impl Into<u64>, bytes: impl Into<u64>) -> u64 {
        count.into().saturating_mul(bytes.into())
    }
    let disk = nix::sys::statvfs::statvfs(folder)?;
    Ok(multiply_blocks(disk.blocks_available(), disk.fragment_size()))
}

/// Returns a function that converts an I/O error into an [`Error::Io`].
pub(crate) fn io_error(action: &'static str, path: &Path) -> impl FnOnce(io::Error) -> Error {
    let path = path.to_owned();
    move |source| Error::Io { action, path, source }
}

fn inject_failure(operation: Operation, path: &Path) -> io::Result<()> {
    planned_failure(operation, path).map_or(Ok(()), |failure| Err(failure.to_io_error()))
}

/// Fails if a test planned a failure of applying a commit. Without fault injection it always succeeds.
pub(crate) fn inject_apply_failure(dir: &Path) -> Result<(), Error> {
    inject_failure(Operation::Apply, dir)
        .map_err(|cause| Error::Index(format!("a commit could not be applied: {cause}")))
}

/// Returns whether a test planned that a snapshot ends here.
pub(crate) fn is_snapshot_loss_injected(dir: &Path) -> bool {
    planned_failure(Operation::FindPreserved, dir).is_some()
}

/// Syncs a folder, so that created, renamed and removed names in it are durable.
pub(crate) fn sync_folder(path: &Path) -> Result<(), Error> {
    inject_failure(Operation::Sync, path)
        .and_then(|()| File::open(path))
        .and_then(|folder| folder.sync_all())
        .map_err(io_error("syncing", path))
}

/// Creates a folder and its missing parents (mode 0700) durably.
pub(crate) fn create_folder(path: &Path) -> Result<(), Error> {
    if path.is_dir() {
        return Ok(());
    }
    let parent = match path.parent() {
        Some(parent) if parent.as_os_str().is_empty() => Path::new("."),
        Some(parent) => parent,
        None => path,
    };
    create_folder(parent)?;
    inject_failure(Operation::Create, path)
        .and_then(|()| DirBuilder::new().mode(0o700).create(path))
        .map_err(io_error("creating", path))?;
    sync_folder(parent)
}

/// Opens a file for reading and writing. Creates it (mode 0600) if it is missing.
pub(crate) fn open_or_create(path: &Path) -> Result<File, Error> {
    inject_failure(Operation::Create, path)
        .and_then(|()| write_options().truncate(false).open(path))
        .map_err(io_error("opening", path))
}

/// Creates an empty file (mode 0600), or truncates an existing one.
pub(crate) fn create_or_truncate(path: &Path) -> Result<File, Error> {
    inject_failure(Operation::Create, path)
        .and_then(|()| write_options().truncate(true).open(path))
        .map_err(io_error("creating", path))
}

fn write_options() -> OpenOptions {
    let mut options = OpenOptions::new();
    options.read(true).write(true).create(true).mode(0o600);
    options
}

/// Writes all bytes at an offset of a file.
pub(crate) fn write_at(file: &File, path: &Path, bytes: &[u8], at: u64) -> io::Result<()> {
    let Some(failure) = planned_failure(Operation::Write, path) else {
        return file.write_all_at(bytes, at);
    };
    if failure.is_short() {
        file.write_all_at(bytes.get(..bytes.len() / 2).unwrap_or_default(), at)?;
    }
    Err(failure.to_io_error())
}

/// Writes bytes at the current position of a file. Returns how many were written.
pub(crate) fn write_some(file: &mut File, path: &Path, bytes: &[u8]) -> io::Result<usize> {
    let Some(failure) = planned_failure(Operation::Write, path) else { return file.write(bytes) };
    if failure.is_short() {
        file.write_all(bytes.get(..bytes.len() / 2).unwrap_or_default())?;
    }
    Err(failure.to_io_error())
}

/// Syncs the content and length of a file (`fdatasync`).
pub(crate) fn sync_data(file: &File, path: &Path) -> io::Result<()> {
    inject_failure(Operation::Sync, path)?;
    file.sync_data()
}

/// Syncs a file including its metadata (`fsync`).
pub(crate) fn sync_file(file: &File, path: &Path) -> Result<(), Error> {
    inject_failure(Operation::Sync, path)
        .and_then(|()| file.sync_all())
        .map_err(io_error("syncing", path))
}

/// Truncates a file to a length.
pub(crate) fn truncate_file(file: &File, path: &Path, length: u64) -> Result<(), Error> {
    inject_failure(Operation::Truncate, path)
        .and_then(|()| file.set_len(length))
        .map_err(io_error("truncating", path))
}

/// Renames a file within its folder, and syncs the folder.
pub(crate) fn rename_durably(from: &Path, to: &Path, folder: &Path) -> Result<(), Error> {
    #[expect(clippy::disallowed_methods, reason = "the folder is synced right after")]
    inject_failure(Operation::Rename, from)
        .and_then(|()| fs::rename(from, to))
        .map_err(io_error("renaming", from))?;
    sync_folder(folder)
}

/// Removes a file if it exists, and syncs the folder.
pub(crate) fn remove_durably(path: &Path, folder: &Path) -> Result<(), Error> {
    match inject_failure(Operation::Remove, path).and_then(|()| fs::remove_file(path)) {
        Ok(()) => sync_folder(folder),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        Err(error) => Err(io_error("removing", path)(error)),
    }
}

/// Returns the total size of the files directly in a folder, in bytes; 0 if the folder is missing.
pub(crate) fn folder_bytes(folder: &Path) -> u64 {
    let Ok(entries) = fs::read_dir(folder) else { return 0 };
    entries.flatten().filter_map(|entry| entry.metadata().ok()).map(|data| data.len()).sum()
}
