//! Names on the disk that survive a power cut: a name is there for good only once its folder is synced.
use std::fs::{self, File};
use std::io;
use std::path::Path;

/// Syncs a folder, so that the names made, renamed or removed in it stay so.
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

/// Makes a folder and those above it that are not there, each synced in the one that holds it.
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
