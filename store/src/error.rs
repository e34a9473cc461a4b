//! The errors of the store.
use std::io;
use std::path::PathBuf;

/// An error of the store.
#[non_exhaustive]
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A file or folder could not be read, written or synced. Free disk space, or repair or replace the
    /// medium.
    #[error("{action} {}: {source}", path.display())]
    Io {
        /// The failed operation: "writing", "syncing", ...
        action: &'static str,
        /// The file or folder.
        path: PathBuf,
        /// The error of the operating system.
        source: io::Error,
    },
    /// Another process has the data directory open. Stop it, or use its control socket.
    #[error("the data directory {} is in use by another process", path.display())]
    InUse {
        /// The data directory.
        path: PathBuf,
    },
    /// The data was written by a newer version of Penstock. Install that version, or restore a backup of an
    /// older format.
    #[error(
        "{} has format version {found}, and this version of Penstock knows up to {known}; install the version \
         that wrote it, or restore a backup of format {known} or lower into another directory", path.display()
    )]
    NewerFormat {
        /// The file with the newer format.
        path: PathBuf,
        /// The number of its format.
        found: u32,
        /// The number of the newest [`Format`](crate::Format) that this program knows.
        known: u32,
    },
    /// Bytes on the medium differ from what was written.
    #[error(transparent)]
    Corrupt(#[from] Corruption),
    /// The layer that owns a collection cannot read a document of it, for example because a newer version wrote it.
    #[error("{} could not be read ({}): {}", .0.document, .0.place, .0.cause)]
    Unreadable(#[from] UnreadableDocument),
    /// An earlier write or sync failed, so the state of the medium is unknown; or the index is about to be
    /// rebuilt. Commits are refused until the store is reopened. Lack of disk space does not poison the store
    /// if nothing of the write remains.
    #[error("the store refuses commits until it is reopened, because of an earlier error: {cause}")]
    Poisoned {
        /// The error that poisoned the store.
        cause: String,
    },
    /// A commit is larger than a frame can be, or a name is too long (see FORMAT.md). Split the request.
    #[error(
        "{bytes} bytes exceed the limit of {limit} bytes for a commit or a name; split the request"
    )]
    TooLarge {
        /// The size, in bytes.
        bytes: u64,
        /// The limit, in bytes.
        limit: u64,
    },
    /// The term is of RDF 1.2, and the store keeps terms of RDF 1.1. Leave it out, or describe the triple with properties.
    #[error(
        "the store cannot keep {term}: it is {kind} of RDF 1.2, and the store keeps terms of RDF 1.1"
    )]
    UnsupportedTerm {
        /// The beginning of the term, in the syntax of N-Triples.
        term: String,
        /// What it is: "a triple term" or "a text with a base direction".
        kind: &'static str,
    },
    /// A backup is restored only into a folder without files. Choose another one, or move the files away.
    #[error("{} is not empty; a backup is restored only into an empty folder", path.display())]
    NotEmpty {
        /// The folder.
        path: PathBuf,
    },
    /// A restore into the directory was interrupted or refused its input. Run the restore again.
    #[error("a restore into {} did not finish, so there is no store in it; run the restore again", path.display())]
    UnfinishedRestore {
        /// The data directory.
        path: PathBuf,
    },
    /// The file is the base of a journal. It is incomplete without its segments.
    #[error("{} is not a backup but a part of a store; restore a file that penstock backup wrote", path.display())]
    NotABackup {
        /// The file.
        path: PathBuf,
    },
    /// Frames were asked for that the journal no longer has, because a base replaced them.
    #[error("the journal no longer has frame {sequence}; its oldest is frame {oldest}")]
    FramesReplaced {
        /// The first frame that was asked for.
        sequence: u64,
        /// The oldest frame in the journal.
        oldest: u64,
    },
    /// The store was closed during a compaction or a backup. No data is lost.
    #[error("the store is closing")]
    Closing,
    /// A commit raised the format of the store during a backup, whose header told the older format. Run the
    /// backup again.
    #[error("a commit raised the format of the store meanwhile; run the backup again")]
    FormatRaised,
    /// The store is being reopened after [`Error::Poisoned`]. Retry in a moment.
    #[error("the store is being reopened; try again in a moment")]
    Reopening,
    /// Subjects were listed until the deadline of their filter. Ask for less, or allow more time.
    #[error("listing subjects was ended at its deadline")]
    TimedOut,
    /// A snapshot could not keep what commits changed after it. Read again with a new one.
    #[error("the state being read could not be kept: {cause}; read again with a new snapshot")]
    SnapshotLost {
        /// Why the snapshot ended.
        cause: LostCause,
    },
    /// The index is damaged or its engine failed. It is rebuilt from the journal when the store is reopened.
    #[error("the quad index failed: {0}")]
    Index(String),
}

impl Error {
    /// Returns whether bytes on the medium are damaged or cannot be read. A bad sector is an I/O error.
    pub fn is_unreadable(&self) -> bool {
        matches!(self, Self::Corrupt(_) | Self::Io { action: "reading", .. })
    }

    /// Returns whether disk space was missing. The operation may succeed when some is free.
    pub fn is_disk_full(&self) -> bool {
        use io::ErrorKind::{QuotaExceeded, StorageFull};
        match self {
            Self::Io { source, .. } => matches!(source.kind(), StorageFull | QuotaExceeded),
            _ => false,
        }
    }

    /// Returns how much disk space is needed and how much is free, if that was checked before a write.
    pub fn disk_full_details(&self) -> Option<DiskFull> {
        match self {
            Self::Io { source, .. } => DiskFull::from_io_error(source),
            _ => None,
        }
    }
}

/// The error of a check before a write: too little disk space is free. Nothing was written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("{needed} bytes of disk space are needed, but only {free} are free")]
pub struct DiskFull {
    /// Bytes that must be free.
    pub needed: u64,
    /// Bytes that are free.
    pub free: u64,
}

impl DiskFull {
    /// Returns the [`DiskFull`] inside an I/O error, if there is one.
    pub fn from_io_error(error: &io::Error) -> Option<Self> {
        error.get_ref()?.downcast_ref().copied()
    }
}

impl From<DiskFull> for io::Error {
    fn from(full: DiskFull) -> Self {
        Self::new(io::ErrorKind::StorageFull, full)
    }
}

/// Why a snapshot could not keep what commits changed after it.
#[non_exhaustive]
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum LostCause {
    /// All snapshots together would exceed [`SnapshotLimits::memory_bytes`](crate::SnapshotLimits::memory_bytes),
    /// although most of what they keep is in files.
    #[error("later commits changed more than fits into {limit_bytes} bytes of memory")]
    Memory {
        /// The limit, in bytes.
        limit_bytes: u64,
    },
    /// All snapshots together would exceed [`SnapshotLimits::disk_bytes`](crate::SnapshotLimits::disk_bytes).
    #[error("later commits changed more than fits into {limit_bytes} bytes of files")]
    Disk {
        /// The limit, in bytes.
        limit_bytes: u64,
    },
    /// The files would leave too little disk space free.
    #[error("only {free_bytes} bytes of the disk are free")]
    DiskFull {
        /// The free disk space, in bytes.
        free_bytes: u64,
    },
    /// Writing or reading the file failed. The log has the error.
    #[error("a file with what later commits changed could not be written or read")]
    Io,
}

/// A place where the bytes on the medium differ from what was written.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{} is damaged at byte {offset}: {what}", path.display())]
pub struct Corruption {
    /// The file.
    pub path: PathBuf,
    /// The offset from its start, in bytes.
    pub offset: u64,
    /// What was found, and what was expected.
    pub what: String,
}

/// A document whose bytes have not the form that the layer of its collection expects. The store does not create it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{cause}")]
pub struct UnreadableDocument {
    /// What the document is, as the beginning of a sentence, such as `An account`.
    pub document: &'static str,
    /// The collection and the key.
    pub place: String,
    /// What was found, and what was expected.
    pub cause: String,
}
