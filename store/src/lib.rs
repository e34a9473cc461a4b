//! The journal and the quad index of Penstock.
//!
//! One ordered, checksummed journal is the source of truth. The quad index is derived from it, and can be
//! discarded and rebuilt. The crate knows RDF terms, quads and byte documents, but not HTTP, JSON or YAML.
//! Its functions block, except [`Unsynced::synced`]: call them from a thread that may block.
//!
//! FORMAT.md, in the folder of this crate, describes the files and the assumptions about the medium.

mod backup;
mod backup_file;
mod coded;
mod compaction;
mod data_dir;
mod digest;
mod error;
#[cfg(feature = "faults")]
pub mod faults;
mod files;
mod format;
mod frame;
mod frames;
#[cfg(test)]
mod fuzz;
mod hash;
mod index;
mod index_lock;
mod journal;
mod maintenance;
mod maintenance_thread;
mod options;
mod order;
mod overlay;
mod read;
mod reader;
mod reopen;
mod replay;
mod restore;
mod slot;
mod snapshot;
mod steps;
mod store;
mod subject_quads;
mod term;
mod transaction;
mod unsynced;
mod value;
mod varint;
mod verify;

pub use backup::Backup;
pub use backup_file::{BackupFile, verify_backup};
pub use coded::{CodeReader, CodedQuads, CodedValues};
pub use data_dir::is_in_use;
pub use error::{Corruption, DiskFull, Error, LostCause, UnreadableDocument};
pub use files::free_bytes;
pub use format::Format;
pub use hash::{FastMap, FastSet};
pub use index::{CodedPattern, CodedQuad, TermCode, panic_is_caught};
pub use journal::{FrameReader, MAX_ZSTD_WINDOW_LOG};
pub use options::{Commit, Options, Progress, SnapshotLimits, SnapshotStats, Stats};
pub use read::{Document, DocumentRange, ListedSubject, Pattern, Read, SubjectFilter, VisitValue};
pub use reader::{QuadPosition, Reader};
pub use restore::{
    NEW_COUNTERS, NewStore, NewStorePlan, Restored, SEQUENCE_JUMP, UnpublishedStore,
};
pub use snapshot::Snapshot;
pub use steps::Stage;
pub use store::{ReadStore, Store};
pub use subject_quads::SubjectQuads;
pub use term::check_supported;
pub use transaction::Transaction;
pub use unsynced::Unsynced;
pub use value::{ValueClass, ValueKey, ValueRange, parse_usual_moment};
pub use verify::{Verified, verify_store};
