//! The spool: the folder with the files of undelivered exports, and of delivered ones in the history.
use penstock_base::error::{ErrorClass, GatewayError};
use penstock_base::files;
use std::collections::HashSet;
use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};

/// The bytes of a block of the disk. A file takes whole blocks.
pub(super) const BLOCK_BYTES: u64 = 4_096;

/// Returns the bytes that a file of this length takes on the disk, at least one block: an empty file has an inode and a
/// record too.
pub(super) fn disk_bytes(length: u64) -> u64 {
    length.max(1).next_multiple_of(BLOCK_BYTES)
}

/// Why a file can certainly not be delivered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Loss {
    /// There is none.
    Missing,
    /// It has another length than was written.
    Damaged,
}

/// The spool folder.
#[derive(Debug)]
pub(super) struct Spool {
    folder: PathBuf,
}

impl Spool {
    /// Opens the folder, and creates it if it does not exist. One that cannot be used is in the log: exports fail until
    /// somebody repairs it, and everything else needs no spool.
    ///
    /// # Errors
    /// `ErrorClass::InsufficientStorage` if the disk is full.
    pub(super) fn open(folder: PathBuf) -> Result<Self, GatewayError> {
        if let Err(error) = files::create_folders(&folder) {
            let error = spool_error("creating", &folder, &error);
            if error.class == ErrorClass::InsufficientStorage {
                return Err(error);
            }
        }
        Ok(Self { folder })
    }

    pub(super) fn folder(&self) -> &Path {
        &self.folder
    }

    /// Returns the path of the file with this name.
    pub(super) fn path(&self, name: &str) -> PathBuf {
        self.folder.join(name)
    }

    /// Syncs the folder, so that the names of new files survive a power cut.
    pub(super) fn sync_folder(&self) -> Result<(), GatewayError> {
        files::sync_folder(&self.folder).map_err(|e| spool_error("syncing", &self.folder, &e))
    }

    /// Opens the file with this name and checks its length. The error says why it is not usable.
    pub(super) fn open_file(&self, name: &str, bytes: u64) -> Result<File, String> {
        let file = File::open(self.path(name)).map_err(|error| match error.kind() {
            io::ErrorKind::NotFound => format!("its file {name} is missing from the spool"),
            _ => format!("its file {name} in the spool cannot be read: {error}"),
        })?;
        match file.metadata() {
            Ok(metadata) if metadata.len() == bytes => Ok(file),
            Ok(metadata) => Err(format!(
                "its file {name} in the spool is damaged: it has {} bytes, but {bytes} were written",
                metadata.len()
            )),
            Err(error) => Err(format!("its file {name} in the spool cannot be read: {error}")),
        }
    }

    /// Returns what happened to the file with this name, if nothing can deliver it any more. One that cannot be read now may
    /// be readable later.
    pub(super) fn find_loss(&self, name: &str, bytes: u64) -> Option<Loss> {
        match fs::metadata(self.path(name)) {
            Ok(metadata) => (metadata.len() != bytes).then_some(Loss::Damaged),
            Err(error) => (error.kind() == io::ErrorKind::NotFound).then_some(Loss::Missing),
        }
    }

    /// Returns the bytes that a file of this length takes on the disk: see [`disk_bytes`], or 0 if it is lost. A full export
    /// removes it, and must not wait for its space.
    pub(super) fn used_bytes(&self, name: &str, length: u64) -> u64 {
        if self.find_loss(name, length).is_some() { 0 } else { disk_bytes(length) }
    }

    /// Removes a file that no entry needs. If that fails, the next start removes it.
    pub(super) fn remove(&self, name: &str) {
        match fs::remove_file(self.path(name)) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                tracing::warn!(file = name, %error, "A file could not be removed from the spool.");
            }
            _ => {}
        }
    }

    /// Removes every file except those named. Returns how many were removed.
    pub(super) fn retain(&self, names: &HashSet<String>) -> Result<u64, GatewayError> {
        let unreadable = |e| spool_error("reading", &self.folder, &e);
        let mut removed = 0;
        for entry in fs::read_dir(&self.folder).map_err(unreadable)? {
            let name = entry.map_err(unreadable)?.file_name();
            if let Some(name) = name.to_str()
                && !names.contains(name)
            {
                self.remove(name);
                tracing::info!(
                    file = name,
                    "A file that belongs to no export was removed from the spool."
                );
                removed += 1;
            }
        }
        Ok(removed)
    }
}

/// Logs and returns the error of a disk operation. Only the log contains the path.
pub(super) fn spool_error(action: &str, path: &Path, error: &io::Error) -> GatewayError {
    if matches!(error.kind(), io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded) {
        return GatewayError::new(
            ErrorClass::InsufficientStorage,
            "the gateway's disk has no space for the export; free space on it",
        );
    }
    tracing::error!(action, path = %path.display(), %error, "The spool failed.");
    GatewayError::new(
        ErrorClass::Internal,
        format!("{action} the export's file failed; the gateway's log says why"),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_takes_whole_blocks_of_the_disk() {
        for (length, blocks) in [(0, 1), (1, 1), (BLOCK_BYTES, 1), (BLOCK_BYTES + 1, 2)] {
            assert_eq!(disk_bytes(length), blocks * BLOCK_BYTES, "{length}");
        }
    }
}
