//! A directory as a target: files appear whole or not at all.
use super::entry::Entry;
use super::file;
use super::target::Failure;
use crate::files;
use sha2::{Digest, Sha256};
use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::path::{Component, Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

const CHUNK: usize = 256 << 10;

/// The folder that stands for a bucket.
#[derive(Debug)]
pub(super) struct Directory {
    root: PathBuf,
}

impl Directory {
    pub(super) fn new(root: PathBuf) -> Self {
        Self { root }
    }

    /// Copies the file under a temporary name, syncs it, renames it. Dropping the future ends the copy.
    pub(super) async fn deliver(&self, source: File, entry: &Entry) -> Result<(), Failure> {
        if Path::new(&entry.key).components().any(|part| !matches!(part, Component::Normal(_))) {
            let cause = format!(
                "the key `{}` leads out of the directory; mend the target's `prefix`",
                entry.key
            );
            return Err(Failure { reached: None, cause });
        }
        let path = self.root.join(&entry.key);
        let (id, sha256) = (entry.id.clone(), entry.sha256.clone());
        let cancelled = Arc::new(AtomicBool::new(false));
        let _guard = CancelOnDrop(Arc::clone(&cancelled));
        let task =
            tokio::task::spawn_blocking(move || copy(source, &path, &id, &sha256, &cancelled));
        task.await.unwrap_or_else(|error| Err(io::Error::other(error))).map_err(|error| Failure {
            reached: Some(!matches!(error.kind(), io::ErrorKind::NotFound)),
            cause: format!("writing to the directory failed: {error}"),
        })
    }
}

struct CancelOnDrop(Arc<AtomicBool>);

impl Drop for CancelOnDrop {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

fn copy(
    source: File,
    path: &Path,
    id: &str,
    sha256: &str,
    cancelled: &AtomicBool,
) -> io::Result<()> {
    if has(path, sha256)? {
        return Ok(());
    }
    let folder = path.parent().unwrap_or(Path::new("/"));
    files::create_folders(folder)?;
    // Its name begins with a dot and does not end in `.json`: nobody who looks for exports takes it.
    let temporary = folder.join(format!(".{id}.part"));
    let copied = write(source, &temporary, sha256, cancelled)
        .and_then(|()| files::rename_synced(&temporary, path));
    if copied.is_err() {
        let _ = fs::remove_file(&temporary);
    }
    copied
}

/// Whether the file is there with the same bytes.
fn has(path: &Path, sha256: &str) -> io::Result<bool> {
    let mut file = match File::open(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(false),
        opened => opened?,
    };
    let same = file::digest(&mut file)?.1 == sha256;
    if same {
        // A crash may have come between the rename and the sync of the folder.
        path.parent().map_or(Ok(()), files::sync_folder)?;
    }
    Ok(same)
}

fn write(
    mut source: File,
    temporary: &Path,
    sha256: &str,
    cancelled: &AtomicBool,
) -> io::Result<()> {
    let mut target = File::create(temporary)?;
    let mut hasher = Sha256::new();
    let mut buffer = vec![0; CHUNK];
    loop {
        if cancelled.load(Ordering::Relaxed) {
            return Err(io::Error::other("the gateway is stopping"));
        }
        let n = source.read(&mut buffer)?;
        let chunk = buffer.get(..n).unwrap_or_default();
        if chunk.is_empty() {
            break;
        }
        hasher.update(chunk);
        target.write_all(chunk)?;
    }
    if file::hex(&hasher.finalize()) != sha256 {
        return Err(io::Error::other(
            "the file in the spool is damaged: its SHA-256 is not what it was when it was written",
        ));
    }
    target.sync_all()
}
