//! Files and folders whose names survive a power cut, readable by their owner alone.
use crate::Error;
use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::Path;

/// Makes an [`Error::Io`] of an operating system's error.
pub(crate) fn fault(action: &'static str, path: &Path) -> impl FnOnce(io::Error) -> Error {
    let path = path.to_owned();
    move |source| Error::Io { action, path, source }
}

/// Makes names that were created, renamed or deleted in a folder durable.
pub(crate) fn sync_folder(path: &Path) -> Result<(), Error> {
    File::open(path).and_then(|folder| folder.sync_all()).map_err(fault("syncing", path))
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
    DirBuilder::new().mode(0o700).create(path).map_err(fault("creating", path))?;
    sync_folder(parent)
}

/// Opens a file (mode 0600) for reading and writing, making it unless it is there.
pub(crate) fn open_or_make(path: &Path) -> Result<File, Error> {
    OpenOptions::new()
        .read(true)
        .write(true)
        .create(true)
        .truncate(false)
        .mode(0o600)
        .open(path)
        .map_err(fault("opening", path))
}

/// Makes an empty file (mode 0600) in place of the one of that name.
pub(crate) fn make_anew(path: &Path) -> Result<File, Error> {
    OpenOptions::new()
        .read(true)
        .write(true)
        .create(true)
        .truncate(true)
        .mode(0o600)
        .open(path)
        .map_err(fault("creating", path))
}

/// Renames a file within its folder, durably.
pub(crate) fn rename(from: &Path, to: &Path, folder: &Path) -> Result<(), Error> {
    #[expect(clippy::disallowed_methods, reason = "the folder is synced right after")]
    fs::rename(from, to).map_err(fault("renaming", from))?;
    sync_folder(folder)
}

/// Removes a file if it is there, durably.
pub(crate) fn remove(path: &Path, folder: &Path) -> Result<(), Error> {
    match fs::remove_file(path) {
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
