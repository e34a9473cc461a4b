//! What goes into a store when it is opened, and what it tells about itself.

/// How a store is opened.
#[derive(Debug, Clone)]
pub struct Options {
    /// Bytes of changed index entries held in memory before a checkpoint writes them out. One
    /// commit may exceed it by what it changes. Default 12 MiB.
    pub write_back_bytes: usize,
    /// Bytes after which the journal begins a new segment. Default 8 MiB.
    pub segment_bytes: u64,
    /// The journal is compacted when what it has beside its base takes more than this, more than half of
    /// the base, and with it more than the index. Default 8 MiB.
    pub compact_bytes: u64,
    /// Whether full segments are packed, and the journal is compacted, by a thread of the store's own when
    /// it is time; else [`Store::pack`](crate::Store::pack) and [`Store::compact`](crate::Store::compact)
    /// do it. Default true.
    pub tidies: bool,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            write_back_bytes: 12 << 20,
            segment_bytes: 8 << 20,
            compact_bytes: 8 << 20,
            tidies: true,
        }
    }
}

/// How far an opening store has come with replaying its journal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Progress {
    /// Frames, and parts of the base, replayed so far.
    pub done: u64,
    /// Frames and parts to replay in all.
    pub total: u64,
}

/// What a transaction became.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Commit {
    /// The sequence of its frame; that of the newest frame before it when nothing changed.
    pub sequence: u64,
    /// Quads added.
    pub added: u64,
    /// Quads removed.
    pub removed: u64,
}

/// What the store holds and uses now.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Stats {
    /// The sequence of the newest frame.
    pub sequence: u64,
    /// Quads held.
    pub quads: u64,
    /// Bytes of the journal on disk, its base among them.
    pub journal_bytes: u64,
    /// Bytes of the journal's base on disk.
    pub base_bytes: u64,
    /// Bytes of the index on disk.
    pub index_bytes: u64,
    /// Bytes of index entries that wait for a checkpoint.
    pub write_back_bytes: u64,
}
