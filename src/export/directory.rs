//! A directory as a target. Files appear atomically: complete or not at all. Other users may write there too, so links
//! below its root are not followed, and only regular files count ([`SharedFolder`]).
mod objects;

use super::backup::data_dir::has_era;
use super::blocking::run_io;
use super::cause::DeliveryFailure;
use super::delivery::{self, Delivery, MetadataObject};
use super::file;
use super::queue::ExportQueue;
use super::uplink::Uplink;
use nix::unistd::{AccessFlags, access};
use penstock_base::blocking::spawn_blocking;
use penstock_base::disk;
use penstock_base::files::PeriodicallySynced;
use penstock_base::hex::encode_hex;
use penstock_base::shared::Shared;
use penstock_base::shared_folder::{SharedFolder, UnexpectedFile};
use penstock_resources::export::{Cause, Export};
use sha2::{Digest, Sha256};
use std::fs::File;
use std::io::{self, Read, Write};
use std::path::{Component, Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// The folder used as a bucket.
#[derive(Debug, Clone)]
pub(super) struct Directory {
    root: PathBuf,
    /// What was sent to the target, if the folder may be on a disk that is not mounted.
    history: Option<TargetHistory>,
}

/// What the gateway knows of what it has sent to a target.
#[derive(Debug, Clone)]
struct TargetHistory {
    queue: Shared<ExportQueue>,
    /// The bucketName.
    target: String,
    /// The data directory, if the continuous backup is in the folder.
    backup_of: Option<PathBuf>,
}

impl TargetHistory {
    /// Returns whether an export was delivered to the target, or the backup has begun there. Blocking.
    fn has_content(&self) -> io::Result<bool> {
        if let Some(data_dir) = &self.backup_of
            && has_era(data_dir).map_err(io::Error::other)?
        {
            return Ok(true);
        }
        self.queue.has_delivered(&self.target).map_err(io::Error::other)
    }
}

/// A root that does not exist although exports or the backup were sent to it.
#[derive(Debug, thiserror::Error)]
#[error(
    "the directory is gone: the target's `path` has no folder `{target}`, although exports or the backup were sent \
     there; mount its disk again, or create the folder if it may begin empty"
)]
struct MissingRoot {
    target: String,
}

impl Directory {
    pub(super) fn new(root: PathBuf) -> Self {
        Self { root, history: None }
    }

    /// Creates the root only as long as nothing was sent to this target. Otherwise it may be on a disk that is not mounted,
    /// and the files would not be where somebody reads them. `backup_of` is the data directory whose continuous backup is
    /// there, if any.
    pub(super) fn with_history(
        self,
        queue: Shared<ExportQueue>,
        bucket_name: &str,
        backup_of: Option<&Path>,
    ) -> Self {
        let (target, backup_of) = (bucket_name.to_owned(), backup_of.map(Path::to_owned));
        Self { history: Some(TargetHistory { queue, target, backup_of }), ..self }
    }

    /// Opens the root. Returns `None` if it may be created. Blocking.
    ///
    /// # Errors
    /// It cannot be opened, or it is gone ([`MissingRoot`]).
    fn open_root(&self) -> io::Result<Option<SharedFolder>> {
        match SharedFolder::open_root(&self.root) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => match &self.history {
                Some(history) if history.has_content()? => {
                    let target = history.target.clone();
                    Err(io::Error::new(error.kind(), MissingRoot { target }))
                }
                _ => Ok(None),
            },
            opened => opened.map(Some),
        }
    }

    /// Opens the root, and creates it if it may be created. Blocking.
    fn create_root(&self) -> io::Result<SharedFolder> {
        match self.open_root()? {
            Some(root) => Ok(root),
            None => SharedFolder::create_root(&self.root),
        }
    }

    /// Checks whether the gateway can write to the folder, or create it. Returns a remark if it does not exist yet.
    pub(super) async fn test_access(&self) -> Result<Option<&'static str>, DeliveryFailure> {
        let directory = self.clone();
        let task = spawn_blocking(move || directory.check_access());
        task.await.unwrap_or_else(|error| Err(to_failure(&self.root, &io::Error::other(error))))
    }

    fn check_access(&self) -> Result<Option<&'static str>, DeliveryFailure> {
        let existing = find_existing_folder(&self.root)?;
        self.open_root().map_err(|error| to_failure(&self.root, &error))?;
        access(existing, AccessFlags::W_OK | AccessFlags::X_OK)
            .map_err(|errno| to_failure(&self.root, &io::Error::from(errno)))?;
        if disk::free_bytes_of(existing) == Some(0) {
            return Err(to_failure(&self.root, &io::ErrorKind::StorageFull.into()));
        }
        let exists = existing == self.root;
        Ok((!exists).then_some("the directory does not exist yet; the first delivery creates it"))
    }

    /// Copies the file under a temporary name, syncs it, and renames it. Metadata in a file of its own comes first.
    /// Dropping the future cancels the copy.
    pub(super) async fn deliver(&self, delivery: Delivery<'_>) -> Result<(), DeliveryFailure> {
        let entry = delivery.entry;
        self.check_key(&entry.key)?;
        let cancelled = Arc::new(AtomicBool::new(false));
        let _guard = CancelOnDrop(Arc::clone(&cancelled));
        let was_interrupted = delivery.may_be_stored;
        let copy_of = |entry: &Export| FileCopy {
            directory: self.clone(),
            key: PathBuf::from(&entry.key),
            id: entry.id.clone(),
            was_interrupted,
            sha256: entry.sha256.clone(),
            uplink: Arc::clone(delivery.uplink),
            cancelled: Arc::clone(&cancelled),
        };
        let copying = copy_of(entry);
        let metadata =
            delivery.metadata.map(|MetadataObject { entry, text }| (copy_of(&entry), text));
        let file = delivery.file;
        let task = spawn_blocking(move || {
            let mut file = file;
            if let Some((metadata, text)) = metadata {
                copying.check_deliverable(&mut file)?;
                metadata.copy_unless_stored(Ok(text.as_bytes()))?;
            }
            copying.copy_unless_stored(file)
        });
        task.await.unwrap_or_else(|error| Err(to_failure(&self.root, &io::Error::other(error))))
    }
}

impl Directory {
    /// Replaces a file that is not an export by this text. `guard` is dropped once that has ended: the thread continues
    /// if this future is dropped.
    pub(super) async fn put_text(
        &self,
        key: &str,
        text: &str,
        guard: impl Send + 'static,
    ) -> Result<(), DeliveryFailure> {
        self.check_key(key)?;
        let (directory, key, text) = (self.clone(), PathBuf::from(key), text.to_owned());
        let written = run_io(move || {
            let _guard = guard;
            replace_file(&directory, &key, text.as_bytes())
        });
        written.await.map_err(|error| to_failure(&self.root, &error))
    }

    /// Checks that the key leads to a file below the root.
    #[expect(clippy::unused_self, reason = "the key is relative to this directory")]
    fn check_key(&self, key: &str) -> Result<(), DeliveryFailure> {
        if Path::new(key).components().all(|part| matches!(part, Component::Normal(_))) {
            return Ok(());
        }
        Err(DeliveryFailure::of_gateway(format!(
            "the key `{key}` leads out of the directory; correct the target's `prefix`"
        )))
    }
}

/// Splits a key into the path of its folder and the name of its file.
fn split_key(key: &Path) -> (&Path, &Path) {
    (key.parent().unwrap_or(Path::new("")), Path::new(key.file_name().unwrap_or_default()))
}

/// Replaces a file. A reader sees the old one or the new one.
fn replace_file(directory: &Directory, key: &Path, bytes: &[u8]) -> io::Result<()> {
    let (folder, name) = split_key(key);
    let folder = directory.create_root()?.create_below(folder)?;
    let stem = name.to_string_lossy();
    folder.remove_temporary_files(&stem)?;
    let temporary = folder.create_temporary(&stem)?;
    temporary.file().write_all(bytes)?;
    temporary.file().sync_all()?;
    temporary.rename_synced(name)
}

/// Returns the folder that the path of a directory leads to, as far as it exists.
///
/// # Errors
/// It is a file.
fn find_existing_folder(root: &Path) -> Result<&Path, DeliveryFailure> {
    let existing = root.ancestors().find(|folder| folder.exists()).unwrap_or(Path::new("/"));
    if existing.is_dir() {
        return Ok(existing);
    }
    Err(DeliveryFailure::of_gateway(format!(
        "the path of the directory is a file: {}; remove it or change the target's `path`",
        existing.display()
    )))
}

/// Converts an I/O error of the directory at `root` into a failure with a hint for the operator.
fn to_failure(root: &Path, error: &io::Error) -> DeliveryFailure {
    if let Some(missing) = error.get_ref().and_then(|cause| cause.downcast_ref::<MissingRoot>()) {
        return DeliveryFailure::new(Cause::Bucket, missing.to_string());
    }
    if matches!(error.kind(), io::ErrorKind::NotADirectory | io::ErrorKind::AlreadyExists)
        && let Err(failure) = find_existing_folder(root)
    {
        return failure;
    }
    let (class, hint) = match error.kind() {
        _ if UnexpectedFile::is_cause_of(error) => (Cause::Conflict, ""),
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => {
            (Cause::Quota, "; free space there")
        }
        io::ErrorKind::PermissionDenied => (Cause::Policy, "; let the gateway's user write there"),
        // The systemd unit lets the service write only into its own directories.
        io::ErrorKind::ReadOnlyFilesystem => (
            Cause::Policy,
            "; under systemd, allow the service to write there: run systemctl edit penstock and add [Service] and \
             ReadWritePaths=-/the/folder, then restart the service; a failed disk is also mounted read-only, see the \
             kernel log",
        ),
        _ => (Cause::Broken, ""),
    };
    let root = root.display();
    DeliveryFailure::new(class, format!("writing to the directory {root} failed: {error}{hint}"))
}

struct CancelOnDrop(Arc<AtomicBool>);

impl Drop for CancelOnDrop {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// The copy of one file.
struct FileCopy {
    directory: Directory,
    key: PathBuf,
    id: String,
    /// Whether an earlier attempt may have left a temporary file.
    was_interrupted: bool,
    sha256: String,
    uplink: Arc<Uplink>,
    cancelled: Arc<AtomicBool>,
}

impl FileCopy {
    fn copy_unless_stored(self, source: Result<impl Read, String>) -> Result<(), DeliveryFailure> {
        match self.find_existing().map_err(|error| to_failure(&self.directory.root, &error))? {
            Some(true) => return Ok(()),
            Some(false) => return Err(self.conflict_failure()),
            None => {}
        }
        let source = source.map_err(|cause| delivery::missing_file_failure(&cause))?;
        let copied = self.copy_file(source);
        copied.map_err(|error| match error {
            CopyError::Failed(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                self.conflict_failure()
            }
            CopyError::Failed(error) => to_failure(&self.directory.root, &error),
            CopyError::Damaged => DeliveryFailure::of_gateway(delivery::DAMAGED_FILE),
        })
    }

    /// Checks, before the metadata is written, that the file in the spool is usable unless the directory has it
    /// already. Metadata without its file would remain there.
    fn check_deliverable(&self, source: &mut Result<File, String>) -> Result<(), DeliveryFailure> {
        match self.find_existing() {
            Ok(Some(true)) => return Ok(()),
            Ok(Some(false)) => return Err(self.conflict_failure()),
            // Copying the file reports the error.
            Ok(None) | Err(_) => {}
        }
        let source = source.as_mut().map_err(|cause| delivery::missing_file_failure(cause))?;
        delivery::check_digest(source, &self.sha256).map(|_| ())
    }

    fn conflict_failure(&self) -> DeliveryFailure {
        DeliveryFailure::new(
            Cause::Conflict,
            format!(
                "the directory already has another file `{}`, which is not overwritten; give each gateway a \
                 `prefix` of its own, or move that file away",
                split_key(&self.key).1.display()
            ),
        )
    }

    /// Returns whether the existing file is the same export, or `None` if there is no file.
    fn find_existing(&self) -> io::Result<Option<bool>> {
        let (folder, name) = split_key(&self.key);
        let Some(root) = self.directory.open_root()? else { return Ok(None) };
        let Some(folder) = root.open_below(folder)? else { return Ok(None) };
        let Some(mut file) = folder.open_file(name)? else { return Ok(None) };
        let same = file::digest_to_end(&mut file)?.1 == self.sha256;
        if same {
            // The gateway may have crashed between the rename and the sync of the folder.
            folder.sync()?;
        }
        Ok(Some(same))
    }

    fn copy_file(&self, source: impl Read) -> Result<(), CopyError> {
        let (folder, name) = split_key(&self.key);
        let folder = self.directory.create_root()?.create_below(folder)?;
        if self.was_interrupted {
            folder.remove_temporary_files(&self.id)?;
        }
        // The name does not end in `.json`, so that no consumer reads it as an export.
        let temporary = folder.create_temporary(&self.id)?;
        self.write_temporary(source, temporary.file())?;
        // Another gateway may have put a file there since it was looked for.
        Ok(temporary.rename_new_synced(name)?)
    }

    fn write_temporary(&self, mut source: impl Read, temporary: &File) -> Result<(), CopyError> {
        let mut target = PeriodicallySynced::new(temporary);
        let mut hasher = Sha256::new();
        let mut buffer = vec![0; self.uplink.chunk_bytes()];
        loop {
            if self.cancelled.load(Ordering::Relaxed) {
                return Err(io::Error::other("the gateway is stopping").into());
            }
            let n = source.read(&mut buffer)?;
            let chunk = buffer.get(..n).unwrap_or_default();
            if chunk.is_empty() {
                break;
            }
            self.uplink.block_for_bandwidth(chunk.len());
            hasher.update(chunk);
            target.write_all(chunk)?;
        }
        if encode_hex(&hasher.finalize()) != self.sha256 {
            return Err(CopyError::Damaged);
        }
        Ok(target.sync_all()?)
    }
}

/// The reason why a copy did not finish.
enum CopyError {
    Failed(io::Error),
    Damaged,
}

impl From<io::Error> for CopyError {
    fn from(error: io::Error) -> Self {
        Self::Failed(error)
    }
}
