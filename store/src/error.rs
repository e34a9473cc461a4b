//! What can go wrong in the store.
use crate::files::DiskFull;
use std::path::PathBuf;

/// A fault of the store.
#[non_exhaustive]
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A file or folder could not be read, written or synced. Free space or mend the medium.
    #[error("{action} {}: {source}", path.display())]
    Io {
        /// What was being done: "writing", "syncing", ...
        action: &'static str,
        /// The file or folder.
        path: PathBuf,
        /// The cause as the operating system gave it.
        source: std::io::Error,
    },
    /// Another process has the data directory open. Stop it, or speak to it through its control socket.
    #[error("the data directory {} is in use by another process", path.display())]
    InUse {
        /// The data directory.
        path: PathBuf,
    },
    /// The data directory was written by a newer version of Penstock. Install that version.
    #[error("{} has format version {found}, and this version of Penstock knows up to {known}", path.display())]
    NewerFormat {
        /// The file that says so.
        path: PathBuf,
        /// The version it names.
        found: u32,
        /// The newest version known here.
        known: u32,
    },
    /// Bytes on the medium are not what was written.
    #[error(transparent)]
    Corrupt(#[from] Corruption),
    /// An earlier write or sync failed, so that it is not known what is on the medium, or the index is about to
    /// be made again; commits are refused until the store is opened anew. A lack of room that left nothing behind does not poison.
    #[error("the store takes no commits since {cause}")]
    Poisoned {
        /// The failure that poisoned it.
        cause: String,
    },
    /// One commit holds more than a frame can (see FORMAT.md). Split the request.
    #[error("a commit of {bytes} bytes is over the limit of {limit}")]
    TooLarge {
        /// Its size.
        bytes: u64,
        /// The limit.
        limit: u64,
    },
    /// A backup is restored only into a folder without files. Name another one, or move them away.
    #[error("{} is not empty; a backup is restored only into an empty folder", path.display())]
    NotEmpty {
        /// The folder.
        path: PathBuf,
    },
    /// A restore into the directory ended before it was complete. Restore the backup again.
    #[error("a restore into {} did not finish, so there is no store in it; run the restore again", path.display())]
    UnfinishedRestore {
        /// The data directory.
        path: PathBuf,
    },
    /// The file is the base of a journal, which is nothing without its segments.
    #[error("{} is not a backup but a part of a store; restore a file that penstock backup wrote", path.display())]
    NotABackup {
        /// The file.
        path: PathBuf,
    },
    /// The store was dropped while it compacted its journal or wrote a backup. Nothing is lost.
    #[error("the store is being closed")]
    Closing,
    /// The store is being opened anew after [`Error::Poisoned`]. Ask again in a moment.
    #[error("the store is being opened anew")]
    Reopening,
    /// The index is damaged or its engine failed; it is made again from the journal when the store is opened
    /// anew or again.
    #[error("the quad index failed: {0}")]
    Index(String),
}

impl Error {
    /// Whether it is a lack of room on the disk, after which the same may succeed once there is some.
    pub fn is_no_room(&self) -> bool {
        use std::io::ErrorKind::{QuotaExceeded, StorageFull};
        match self {
            Self::Io { source, .. } => matches!(source.kind(), StorageFull | QuotaExceeded),
            _ => false,
        }
    }

    /// How much disk space is needed and free, where that was found out before a write.
    pub fn disk_full(&self) -> Option<DiskFull> {
        match self {
            Self::Io { source, .. } => DiskFull::of(source),
            _ => None,
        }
    }
}

/// A place where the bytes on the medium are not what was written.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{} is damaged at byte {offset}: {what}", path.display())]
pub struct Corruption {
    /// The file.
    pub path: PathBuf,
    /// Bytes from its start.
    pub offset: u64,
    /// What was found there, and what was expected.
    pub what: String,
}
