//! Folders that other users may write to, such as a directory target on an SMB share.
//!
//! Somebody can put a symbolic link, a FIFO or a device where the gateway writes or reads. So each name is opened
//! relative to its folder and without following links, only regular files are opened, and a new file gets a name that
//! nobody can predict. Only the root may be a link: the operator chose it.
use crate::files;
use rustix::fs::{
    AtFlags, Dir, FileType, Mode, OFlags, RenameFlags, fstat, linkat, mkdirat, openat, renameat,
    renameat_with, unlinkat,
};
use rustix::io::Errno;
use std::ffi::OsStr;
use std::fs::File;
use std::io;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Component, Path};

/// The extension of files that are being written. With the dot in front of their names, readers ignore them.
pub const TEMPORARY_EXTENSION: &str = ".part";

/// An open folder.
#[derive(Debug)]
pub struct SharedFolder {
    folder: File,
}

impl SharedFolder {
    /// Opens a folder, and creates it and its parents if they do not exist. The path itself may lead through links.
    ///
    /// # Errors
    /// The path is no folder, or it cannot be created.
    pub fn create_root(path: &Path) -> io::Result<Self> {
        files::create_folders(path)?;
        Self::open_root(path)
    }

    /// Opens a folder. The path itself may lead through links.
    ///
    /// # Errors
    /// The path is no folder or does not exist.
    pub fn open_root(path: &Path) -> io::Result<Self> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let folder = rustix::fs::open(path, flags, Mode::empty())?;
        Ok(Self { folder: folder.into() })
    }

    /// Opens the folder below this one that `path` leads to, and creates what is missing of it.
    ///
    /// # Errors
    /// A part of the path is a link or no folder, or it cannot be created.
    pub fn create_below(self, path: &Path) -> io::Result<Self> {
        self.descend(path, |folder, name| match mkdirat(&folder.folder, name, Mode::from(0o777)) {
            Err(Errno::EXIST) => Ok(()),
            created => {
                created?;
                folder.folder.sync_all()
            }
        })
    }

    /// Opens the folder below this one that `path` leads to. Returns `None` if it does not exist.
    ///
    /// # Errors
    /// A part of the path is a link or no folder.
    pub fn open_below(self, path: &Path) -> io::Result<Option<Self>> {
        none_if_missing(self.descend(path, |_, _| Ok(())))
    }

    fn descend(
        self,
        path: &Path,
        mut prepare: impl FnMut(&Self, &Path) -> io::Result<()>,
    ) -> io::Result<Self> {
        let mut folder = self;
        for part in path.components() {
            let Component::Normal(name) = part else {
                return Err(refusal(path, "leads out of the folder"));
            };
            let name = Path::new(name);
            prepare(&folder, name)?;
            let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
            let opened = openat(&folder.folder, name, flags, Mode::empty());
            let opened = opened.map_err(|errno| match errno {
                Errno::LOOP | Errno::NOTDIR => refusal(name, "is a link or a file, not a folder"),
                errno => errno.into(),
            })?;
            folder = Self { folder: opened.into() };
        }
        Ok(folder)
    }

    /// Opens a regular file for reading. Returns `None` if it does not exist.
    ///
    /// # Errors
    /// The name belongs to a link, a FIFO or something else that is no regular file, or it cannot be read.
    pub fn open_file(&self, name: &Path) -> io::Result<Option<File>> {
        // Without NONBLOCK a FIFO would block until somebody writes to it.
        let flags =
            OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
        let file = match openat(&self.folder, name, flags, Mode::empty()) {
            Err(Errno::NOENT) => return Ok(None),
            Err(Errno::LOOP) => return Err(refusal(name, "is a link, not a regular file")),
            Err(Errno::NXIO | Errno::NODEV) => {
                return Err(refusal(name, "is a socket or a device, not a regular file"));
            }
            opened => File::from(opened?),
        };
        match FileType::from_raw_mode(fstat(&file)?.st_mode) {
            FileType::RegularFile => Ok(Some(file)),
            FileType::Directory => Err(refusal(name, "is a folder, not a regular file")),
            FileType::Fifo => Err(refusal(name, "is a FIFO, not a regular file")),
            _ => Err(refusal(name, "is not a regular file")),
        }
    }

    /// Removes a file if it exists, and syncs the folder.
    ///
    /// # Errors
    /// It cannot be removed.
    pub fn remove_file(&self, name: &Path) -> io::Result<()> {
        match unlinkat(&self.folder, name, AtFlags::empty()) {
            Err(Errno::NOENT) => Ok(()),
            removed => {
                removed?;
                self.sync()
            }
        }
    }

    /// Creates a file with a temporary name that begins with `.` and `stem`. It is removed when it is dropped, unless it
    /// got its final name.
    ///
    /// # Errors
    /// It cannot be created.
    pub fn create_temporary(&self, stem: &str) -> io::Result<TemporaryFile<'_>> {
        self.create_temporary_as(stem, OFlags::WRONLY, Mode::from(0o666))
    }

    /// Creates a file as [`Self::create_temporary`] does, which only its owner can open, and which this process can read
    /// too. Its lock says that it is being written.
    ///
    /// # Errors
    /// It cannot be created.
    pub fn create_private_temporary(&self, stem: &str) -> io::Result<TemporaryFile<'_>> {
        let temporary = self.create_temporary_as(stem, OFlags::RDWR, Mode::from(0o600))?;
        // If the file system has no locks, no process takes the file for abandoned.
        let _ = temporary.file.try_lock();
        Ok(temporary)
    }

    fn create_temporary_as(
        &self,
        stem: &str,
        access: OFlags,
        mode: Mode,
    ) -> io::Result<TemporaryFile<'_>> {
        let random = rand::random::<u128>();
        let name = format!(".{stem}.{random:032x}{TEMPORARY_EXTENSION}");
        let flags = access | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let file = openat(&self.folder, &name, flags, mode)?;
        Ok(TemporaryFile { folder: self, file: file.into(), name: Some(name) })
    }

    /// Removes the temporary files with this stem, which a process left when it was killed.
    ///
    /// # Errors
    /// The folder cannot be read.
    pub fn remove_temporary_files(&self, stem: &str) -> io::Result<()> {
        self.remove_temporary_files_if(stem, |_| true)
    }

    /// Removes the files of [`Self::create_private_temporary`] with this stem whose process was killed.
    ///
    /// # Errors
    /// The folder cannot be read.
    pub fn remove_abandoned_files(&self, stem: &str) -> io::Result<()> {
        self.remove_temporary_files_if(stem, |name| {
            let Ok(Some(file)) = self.open_file(name) else { return false };
            // A file that is open for reading gets no other lock on NFS.
            file.try_lock_shared().is_ok()
        })
    }

    fn remove_temporary_files_if(
        &self,
        stem: &str,
        is_removed: impl Fn(&Path) -> bool,
    ) -> io::Result<()> {
        let beginning = format!(".{stem}.");
        for entry in Dir::read_from(&self.folder)? {
            let entry = entry?;
            let name = entry.file_name().to_bytes();
            let random = beginning.len()..name.len().saturating_sub(TEMPORARY_EXTENSION.len());
            // Otherwise it belongs to a longer stem, or to another program.
            let is_temporary = name.starts_with(beginning.as_bytes())
                && name.ends_with(TEMPORARY_EXTENSION.as_bytes())
                && name.get(random).unwrap_or_default().iter().all(u8::is_ascii_hexdigit);
            let name = Path::new(OsStr::from_bytes(name));
            if is_temporary && is_removed(name) {
                // If it is a folder or another process removed it, there is nothing to do.
                let _ = unlinkat(&self.folder, name, AtFlags::empty());
            }
        }
        Ok(())
    }

    /// Makes names that were created, renamed or removed in the folder durable.
    ///
    /// # Errors
    /// The error of the sync.
    pub fn sync(&self) -> io::Result<()> {
        self.folder.sync_all()
    }
}

/// A file that is being written and has no final name yet.
#[derive(Debug)]
pub struct TemporaryFile<'a> {
    folder: &'a SharedFolder,
    file: File,
    /// `None` once it has its final name.
    name: Option<String>,
}

impl TemporaryFile<'_> {
    /// The file, open for writing.
    pub fn file(&self) -> &File {
        &self.file
    }

    /// Gives the synced file its final name, which it takes from an existing file, and syncs the folder.
    ///
    /// # Errors
    /// The final name belongs to a folder, or the folder cannot be changed.
    pub fn rename_synced(mut self, name: &Path) -> io::Result<()> {
        if let Some(temporary) = &self.name {
            renameat(&self.folder.folder, temporary, &self.folder.folder, name)?;
            self.name = None;
        }
        self.folder.sync()
    }

    /// As [`Self::rename_synced`], but replaces no file.
    ///
    /// # Errors
    /// `ErrorKind::AlreadyExists` if the final name is taken. A file system that can neither rename so nor link files
    /// cannot tell.
    pub fn rename_new_synced(mut self, name: &Path) -> io::Result<()> {
        if let Some(temporary) = &self.name {
            let folder = &self.folder.folder;
            match renameat_with(folder, temporary, folder, name, RenameFlags::NOREPLACE) {
                // NFS and others cannot do it.
                Err(Errno::INVAL | Errno::NOSYS | Errno::OPNOTSUPP) => {
                    rename_with_link(folder, temporary, name)?;
                }
                renamed => renamed?,
            }
            self.name = None;
        }
        self.folder.sync()
    }
}

/// Renames a file by a link, which replaces nothing.
fn rename_with_link(folder: &File, temporary: &str, name: &Path) -> rustix::io::Result<()> {
    match linkat(folder, temporary, folder, name, AtFlags::empty()) {
        Ok(()) => unlinkat(folder, temporary, AtFlags::empty()),
        // The file system has no links either.
        Err(Errno::PERM | Errno::OPNOTSUPP | Errno::NOSYS) => {
            renameat(folder, temporary, folder, name)
        }
        Err(error) => Err(error),
    }
}

impl Drop for TemporaryFile<'_> {
    fn drop(&mut self) {
        if let Some(name) = &self.name {
            let _ = unlinkat(&self.folder.folder, name, AtFlags::empty());
        }
    }
}

/// Something other than the regular file or the folder that a name should belong to.
#[derive(Debug, thiserror::Error)]
#[error("`{name}` {reason}; remove it")]
pub struct UnexpectedFile {
    name: String,
    reason: &'static str,
}

impl UnexpectedFile {
    /// Returns whether this is the cause of the error.
    pub fn is_cause_of(error: &io::Error) -> bool {
        error.get_ref().and_then(|cause| cause.downcast_ref::<Self>()).is_some()
    }
}

fn refusal(name: &Path, reason: &'static str) -> io::Error {
    let name = name.to_string_lossy().into_owned();
    io::Error::new(io::ErrorKind::InvalidInput, UnexpectedFile { name, reason })
}

fn none_if_missing<T>(result: io::Result<T>) -> io::Result<Option<T>> {
    match result {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        result => result.map(Some),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write as _;
    use std::os::unix::fs::{PermissionsExt as _, symlink};

    fn write_file(folder: &SharedFolder, name: &str, bytes: &[u8]) -> io::Result<()> {
        let temporary = folder.create_temporary("one")?;
        temporary.file().write_all(bytes)?;
        temporary.rename_synced(Path::new(name))
    }

    #[test]
    fn a_file_replaces_a_link_and_not_what_it_leads_to() {
        let dir = tempfile::tempdir().unwrap();
        let victim = dir.path().join("victim");
        std::fs::write(&victim, "precious").unwrap();
        let root = dir.path().join("root");
        let folder = SharedFolder::create_root(&root).unwrap();
        symlink(&victim, root.join("a.json")).unwrap();
        write_file(&folder, "a.json", b"new").unwrap();
        assert_eq!(std::fs::read(&victim).unwrap(), b"precious");
        assert_eq!(std::fs::read(root.join("a.json")).unwrap(), b"new");
        let temporary = folder.create_temporary("one").unwrap();
        let error = temporary.rename_new_synced(Path::new("a.json")).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::AlreadyExists);
        assert_eq!(std::fs::read(root.join("a.json")).unwrap(), b"new");
        assert_eq!(std::fs::read_dir(&root).unwrap().count(), 1);
    }

    #[test]
    fn only_regular_files_below_real_folders_are_opened() {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().join("root");
        let open = || SharedFolder::create_root(&root).unwrap();
        let folder = open();
        std::fs::create_dir(dir.path().join("elsewhere")).unwrap();
        symlink(dir.path().join("elsewhere"), root.join("link")).unwrap();
        let unexpected = |error: io::Error| {
            assert!(UnexpectedFile::is_cause_of(&error), "{error}");
            error.to_string()
        };
        let error = unexpected(open().create_below(Path::new("link")).unwrap_err());
        assert_eq!(error, "`link` is a link or a file, not a folder; remove it");
        unexpected(open().create_below(Path::new("../elsewhere")).unwrap_err());
        let error = unexpected(folder.open_file(Path::new("link")).unwrap_err());
        assert_eq!(error, "`link` is a link, not a regular file; remove it");
        nix::unistd::mkfifo(&root.join("pipe"), nix::sys::stat::Mode::S_IRUSR).unwrap();
        let error = unexpected(folder.open_file(Path::new("pipe")).unwrap_err());
        assert_eq!(error, "`pipe` is a FIFO, not a regular file; remove it");
        assert!(folder.open_file(Path::new("none")).unwrap().is_none());
        assert!(open().open_below(Path::new("a/b")).unwrap().is_none());
        open().create_below(Path::new("a/b")).unwrap();
        assert!(open().open_below(Path::new("a/b")).unwrap().is_some());
    }

    #[test]
    fn temporary_files_of_a_killed_process_are_removed() {
        let dir = tempfile::tempdir().unwrap();
        let folder = SharedFolder::create_root(dir.path()).unwrap();
        for name in [".one.0123.part", ".one.part", ".other.0123.part", "one.json"] {
            std::fs::write(dir.path().join(name), "").unwrap();
        }
        folder.remove_temporary_files("one").unwrap();
        let mut left: Vec<_> = std::fs::read_dir(dir.path())
            .unwrap()
            .map(|entry| entry.unwrap().file_name())
            .collect();
        left.sort();
        assert_eq!(left, [".other.0123.part", "one.json"]);
    }

    #[test]
    fn only_files_that_no_process_writes_are_abandoned() {
        let dir = tempfile::tempdir().unwrap();
        let folder = SharedFolder::create_root(dir.path()).unwrap();
        let others = [".one.zst.0123.part", ".one.download.part"];
        for name in [".one.0123.part"].iter().chain(&others) {
            std::fs::write(dir.path().join(name), "").unwrap();
        }
        let written = folder.create_private_temporary("one").unwrap();
        folder.remove_abandoned_files("one").unwrap();
        assert!(!dir.path().join(".one.0123.part").exists());
        assert!(others.iter().all(|name| dir.path().join(name).exists()));
        written.rename_new_synced(Path::new("one")).unwrap();
        let mode = std::fs::metadata(dir.path().join("one")).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
    }

    #[test]
    fn a_link_gives_a_file_its_name_and_replaces_none() {
        let dir = tempfile::tempdir().unwrap();
        let folder = SharedFolder::create_root(dir.path()).unwrap();
        std::fs::write(dir.path().join("new"), "new").unwrap();
        std::fs::write(dir.path().join("old"), "old").unwrap();
        let taken = rename_with_link(&folder.folder, "new", Path::new("old")).unwrap_err();
        assert_eq!(taken, Errno::EXIST);
        assert_eq!(std::fs::read(dir.path().join("old")).unwrap(), b"old");
        rename_with_link(&folder.folder, "new", Path::new("named")).unwrap();
        assert_eq!(std::fs::read(dir.path().join("named")).unwrap(), b"new");
        assert!(!dir.path().join("new").exists());
    }
}
