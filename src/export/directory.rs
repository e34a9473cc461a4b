//! A directory as a target: files appear whole or not at all.
use super::cause::{Class, Failure};
use super::file;
use super::parcel::{self, Parcel};
use super::uplink::Uplink;
use nix::unistd::{AccessFlags, access};
use penstock_base::disk;
use penstock_base::files;
use sha2::{Digest, Sha256};
use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::path::{Component, Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// The folder that stands for a bucket.
#[derive(Debug)]
pub(super) struct Directory {
    root: PathBuf,
}

impl Directory {
    pub(super) fn new(root: PathBuf) -> Self {
        Self { root }
    }

    /// Whether files can be written there, or the folder made.
    pub(super) fn probe(&self) -> Result<Option<&'static str>, Failure> {
        let there = self.root.ancestors().find(|folder| folder.exists()).unwrap_or(Path::new("/"));
        if !there.is_dir() {
            return Err(Failure::gateway("there is a file where the directory should be"));
        }
        access(there, AccessFlags::W_OK | AccessFlags::X_OK)
            .map_err(|errno| failure(&io::Error::from(errno)))?;
        if disk::free(there) == Some(0) {
            return Err(failure(&io::ErrorKind::StorageFull.into()));
        }
        let is_made = there == self.root;
        Ok((!is_made).then_some("the directory is not there yet; the first delivery makes it"))
    }

    /// Copies the file under a temporary name, syncs it, renames it. Dropping the future ends the copy.
    pub(super) async fn deliver(&self, parcel: Parcel<'_>) -> Result<(), Failure> {
        let entry = parcel.entry;
        if Path::new(&entry.key).components().any(|part| !matches!(part, Component::Normal(_))) {
            return Err(Failure::gateway(format!(
                "the key `{}` leads out of the directory; mend the target's `prefix`",
                entry.key
            )));
        }
        let cancelled = Arc::new(AtomicBool::new(false));
        let _guard = CancelOnDrop(Arc::clone(&cancelled));
        let copying = Copying {
            path: self.root.join(&entry.key),
            id: entry.id.clone(),
            sha256: entry.sha256.clone(),
            uplink: Arc::clone(parcel.uplink),
            cancelled,
        };
        let file = parcel.file;
        let task = tokio::task::spawn_blocking(move || copying.deliver(file));
        task.await.unwrap_or_else(|error| Err(failure(&io::Error::other(error))))
    }
}

/// What went wrong, in words.
fn failure(error: &io::Error) -> Failure {
    let (class, mend) = match error.kind() {
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => {
            (Class::Quota, "; make room there")
        }
        io::ErrorKind::PermissionDenied => (Class::Policy, "; let the gateway's user write there"),
        // The unit lets the service write into its own directories alone.
        io::ErrorKind::ReadOnlyFilesystem => (
            Class::Policy,
            "; under systemd, open the folder to the service: systemctl edit penstock, and there [Service] and \
             ReadWritePaths=/the/folder; a disk that failed is mounted read-only, too: the kernel's log tells",
        ),
        _ => (Class::Broken, ""),
    };
    Failure::new(class, format!("writing to the directory failed: {error}{mend}"))
}

struct CancelOnDrop(Arc<AtomicBool>);

impl Drop for CancelOnDrop {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// One file on its way.
struct Copying {
    path: PathBuf,
    id: String,
    sha256: String,
    uplink: Arc<Uplink>,
    cancelled: Arc<AtomicBool>,
}

impl Copying {
    fn deliver(self, source: Result<File, String>) -> Result<(), Failure> {
        match self.found().map_err(|error| failure(&error))? {
            Some(true) => return Ok(()),
            Some(false) => {
                return Err(Failure::new(
                    Class::Conflict,
                    format!(
                        "the directory holds another file as `{}`, and it is not written over; give each gateway \
                         a `prefix` of its own, or move that file away",
                        self.path.file_name().unwrap_or_default().to_string_lossy()
                    ),
                ));
            }
            None => {}
        }
        let source = source.map_err(|cause| parcel::missing(&cause))?;
        let copied = self.copy(source);
        copied.map_err(|error| match error {
            Stopped::Failed(error) => failure(&error),
            Stopped::Damaged => Failure::gateway(parcel::DAMAGED),
        })
    }

    /// Whether a file is there, and the same one.
    fn found(&self) -> io::Result<Option<bool>> {
        let mut file = match File::open(&self.path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            opened => opened?,
        };
        let same = file::digest(&mut file)?.1 == self.sha256;
        if same {
            // A crash may have come between the rename and the sync of the folder.
            self.path.parent().map_or(Ok(()), files::sync_folder)?;
        }
        Ok(Some(same))
    }

    fn copy(&self, source: File) -> Result<(), Stopped> {
        let folder = self.path.parent().unwrap_or(Path::new("/"));
        files::create_folders(folder)?;
        // Its name begins with a dot and does not end in `.json`: nobody who looks for exports takes it.
        let temporary = folder.join(format!(".{}.part", self.id));
        let copied = self
            .write(source, &temporary)
            .and_then(|()| Ok(files::rename_synced(&temporary, &self.path)?));
        if copied.is_err() {
            let _ = fs::remove_file(&temporary);
        }
        copied
    }

    fn write(&self, mut source: File, temporary: &Path) -> Result<(), Stopped> {
        let mut target = File::create(temporary)?;
        let mut hasher = Sha256::new();
        let mut buffer = vec![0; self.uplink.chunk()];
        loop {
            if self.cancelled.load(Ordering::Relaxed) {
                return Err(io::Error::other("the gateway is stopping").into());
            }
            let n = source.read(&mut buffer)?;
            let chunk = buffer.get(..n).unwrap_or_default();
            if chunk.is_empty() {
                break;
            }
            std::thread::sleep(self.uplink.wait_for(chunk.len()));
            hasher.update(chunk);
            target.write_all(chunk)?;
        }
        if file::hex(&hasher.finalize()) != self.sha256 {
            return Err(Stopped::Damaged);
        }
        Ok(target.sync_all()?)
    }
}

/// Why a copy came to no end.
enum Stopped {
    Failed(io::Error),
    Damaged,
}

impl From<io::Error> for Stopped {
    fn from(error: io::Error) -> Self {
        Self::Failed(error)
    }
}
