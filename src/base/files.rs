//! File operations that survive a power cut: a file's name is durable only after its folder is synced.
use nix::errno::Errno;
use std::borrow::{Borrow, Cow};
use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

/// Returns whether a setting gives text in PEM format itself, rather than the path of a file.
pub fn is_pem(given: &str) -> bool {
    given.trim_start().starts_with("-----BEGIN ")
}

/// Returns the text in PEM format of a setting: its value, or the content of the file that it names.
pub fn read_pem(given: &str) -> io::Result<Cow<'_, [u8]>> {
    if is_pem(given) {
        return Ok(Cow::Borrowed(given.as_bytes()));
    }
    fs::read(given).map(Cow::Owned)
}

/// Returns what to do about a configured file that cannot be read, to follow the error; empty if that is not known.
pub fn remedy_of_unreadable(error: &io::Error) -> &'static str {
    match error.kind() {
        io::ErrorKind::PermissionDenied => {
            "; let the user that Penstock runs as read it and enter its folders"
        }
        io::ErrorKind::NotFound => "; put the file there, or correct the path",
        io::ErrorKind::IsADirectory => "; name a file in this folder",
        _ => "",
    }
}

/// Whether the content of a file is lost: the file does not exist, or the medium cannot read it.
pub fn is_lost(error: &io::Error) -> bool {
    error.kind() == io::ErrorKind::NotFound || error.raw_os_error() == Some(Errno::EIO as i32)
}

/// Syncs a folder, so that names created, renamed or removed in it are durable.
pub fn sync_folder(folder: &Path) -> io::Result<()> {
    File::open(folder)?.sync_all()
}

/// Renames a synced file within one folder and syncs the folder.
pub fn rename_synced(from: &Path, to: &Path) -> io::Result<()> {
    #[expect(
        clippy::disallowed_methods,
        reason = "this is the function that syncs the folder too"
    )]
    fs::rename(from, to)?;
    to.parent().map_or(Ok(()), sync_folder)
}

/// Creates a folder and its missing parents, and syncs the parent of each.
pub fn create_folders(folder: &Path) -> io::Result<()> {
    if folder.as_os_str().is_empty() || folder.is_dir() {
        return Ok(());
    }
    let parent = folder.parent().unwrap_or(Path::new("/"));
    create_folders(parent)?;
    match fs::create_dir(folder) {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists && folder.is_dir() => {}
        other => other?,
    }
    sync_folder(if parent.as_os_str().is_empty() { Path::new(".") } else { parent })
}

/// A file that is synced at intervals while it is written. Otherwise a commit whose sync comes at the same time would wait
/// until the whole file is on the medium: ext4 writes the data of all new files together.
#[derive(Debug)]
pub struct PeriodicallySynced<F = File> {
    file: F,
    unsynced: usize,
}

/// The bytes between two syncs: as many as a memory card writes in a tenth of a second.
const SYNC_INTERVAL_BYTES: usize = 1 << 20;

impl<F: Borrow<File>> PeriodicallySynced<F> {
    /// Writes to this file.
    pub fn new(file: F) -> Self {
        Self { file, unsynced: 0 }
    }

    /// Returns when everything is on the medium.
    ///
    /// # Errors
    /// The error of the sync.
    pub fn sync_all(&self) -> io::Result<()> {
        self.file.borrow().sync_all()
    }
}

impl<F: Borrow<File>> Write for PeriodicallySynced<F> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let written = self.file.borrow().write(bytes)?;
        self.unsynced += written;
        if self.unsynced >= SYNC_INTERVAL_BYTES {
            self.file.borrow().sync_data()?;
            self.unsynced = 0;
        }
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.borrow().flush()
    }
}

/// Returns the path under which [`write_atomically`] writes a file. A crash can leave it.
pub fn temporary_path(path: &Path) -> PathBuf {
    let mut name = path.file_name().unwrap_or_default().to_owned();
    name.push(".new");
    path.with_file_name(name)
}

/// Replaces the file at `path` with one of mode 0600. After a power cut there is either the complete old file or the
/// complete new one.
pub fn write_atomically(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let temporary = temporary_path(path);
    // A crash may have left it. Creating it again would follow a link in its place.
    match fs::remove_file(&temporary) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    let written =
        OpenOptions::new().write(true).create_new(true).mode(0o600).open(&temporary).and_then(
            |mut file| {
                file.write_all(bytes)?;
                file.sync_all()
            },
        );
    if let Err(error) = written {
        // A partial file would only take space; the first error is the one to report.
        let _ = fs::remove_file(&temporary);
        return Err(error);
    }
    rename_synced(&temporary, path)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    #[test]
    fn the_new_file_replaces_the_old_one_and_is_private() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("id");
        write_atomically(&path, b"first, and longer").unwrap();
        write_atomically(&path, b"second").unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"second");
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
    }

    #[test]
    fn a_link_in_place_of_the_temporary_file_is_not_followed() {
        let folder = tempfile::tempdir().unwrap();
        let (path, victim) = (folder.path().join("id"), folder.path().join("victim"));
        fs::write(&victim, "precious").unwrap();
        std::os::unix::fs::symlink(&victim, folder.path().join("id.new")).unwrap();
        write_atomically(&path, b"new").unwrap();
        assert_eq!(fs::read(&victim).unwrap(), b"precious");
        assert_eq!(fs::read(&path).unwrap(), b"new");
    }

    #[test]
    fn a_missing_folder_is_an_error() {
        let folder = tempfile::tempdir().unwrap();
        assert!(write_atomically(&folder.path().join("none/id"), b"x").is_err());
    }
}
