//! The options of a store, and the figures that it reports.

/// The options for opening a store.
#[derive(Debug, Clone)]
pub struct Options {
    /// Bytes of changed index entries kept in memory before a checkpoint writes them. One commit may exceed
    /// it. Default 12 MiB.
    pub write_back_bytes: usize,
    /// Bytes after which the journal begins a new segment. Default 8 MiB.
    pub segment_bytes: u64,
    /// The size of the packed segments, in bytes, above which the journal is compacted. They must also take
    /// more than half of the base, and together with the base more than the index. Default 8 MiB.
    pub compact_bytes: u64,
    /// Whether a background thread packs full segments and compacts the journal when that is due. Otherwise
    /// call [`ReadStore::pack_segments`](crate::ReadStore::pack_segments) and
    /// [`ReadStore::compact_journal`](crate::ReadStore::compact_journal). Default true.
    pub background_maintenance: bool,
    /// The limits of all snapshots together.
    pub snapshots: SnapshotLimits,
    /// Whether literals are indexed by property and value. A store that was last open with the other setting rebuilds its
    /// index when it is opened. Default true.
    pub value_index: bool,
    /// Frames after this sequence stay in the journal, also when a new base replaces them, until
    /// [`ReadStore::retain_frames_after`](crate::ReadStore::retain_frames_after) releases them. Default `None`: no frame
    /// that a base replaces stays.
    pub retain_after: Option<u64>,
}

/// The limits of all snapshots together, which keep the earlier content of what commits change. Beyond both, the
/// oldest one ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SnapshotLimits {
    /// The bytes kept in memory, which one commit may exceed by what it writes to a file at once. Default 8 MiB.
    pub memory_bytes: usize,
    /// The bytes kept in files. Default 256 MiB.
    pub disk_bytes: u64,
    /// The free disk space that snapshots leave, in bytes. Default 64 MiB.
    pub reserve_bytes: u64,
}

impl Default for SnapshotLimits {
    fn default() -> Self {
        Self { memory_bytes: 8 << 20, disk_bytes: 256 << 20, reserve_bytes: 64 << 20 }
    }
}

impl Default for Options {
    fn default() -> Self {
        Self {
            write_back_bytes: 12 << 20,
            segment_bytes: 8 << 20,
            compact_bytes: 8 << 20,
            background_maintenance: true,
            snapshots: SnapshotLimits::default(),
            value_index: true,
            retain_after: None,
        }
    }
}

/// The progress of replaying the journal while a store opens.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Progress {
    /// Frames, and parts of the base, replayed so far.
    pub done: u64,
    /// Frames and parts to replay in total.
    pub total: u64,
}

/// The result of a transaction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Commit {
    /// The sequence of its frame. If nothing changed, that of the newest frame before it.
    pub sequence: u64,
    /// Quads added.
    pub added: u64,
    /// Quads removed.
    pub removed: u64,
}

/// Size and content of the store.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Stats {
    /// The sequence of the newest frame.
    pub sequence: u64,
    /// Number of quads stored.
    pub quads: u64,
    /// Bytes of the journal on disk, including its base.
    pub journal_bytes: u64,
    /// Bytes of the journal's base on disk.
    pub base_bytes: u64,
    /// Bytes of the index on disk.
    pub index_bytes: u64,
    /// Bytes of index entries that are not yet written to disk.
    pub write_back_bytes: u64,
    /// The open snapshots.
    pub snapshots: SnapshotStats,
}

/// The open snapshots, and what they keep.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct SnapshotStats {
    /// The number of snapshots, without those that ended early.
    pub count: u64,
    /// Bytes kept in memory.
    pub memory_bytes: u64,
    /// Bytes kept in files, which have no name.
    pub file_bytes: u64,
}
