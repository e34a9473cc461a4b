//! What a snapshot needs of the blocks that commits changed after it: the blocks as they were.
//!
//! A block is preserved before its first change after the snapshot. It then stands for its range of keys, however the
//! index splits and joins blocks there later. Outside of these ranges the index still has the blocks of the snapshot.
//! If all snapshots take too much memory, the blocks of one are written to a file, which is deleted with the snapshot. If
//! the files take too much, the oldest snapshot ends.
//!
//! Invariant: a changed block of the index covers only keys that preserved blocks cover. A block is preserved unless its
//! name is covered. Splitting a block keeps its range, and joining changes both.
use super::block::Block;
use super::clean::{Name, covers_key};
use super::key::tree;
use crate::{Error, SnapshotLimits, files};
use std::collections::BTreeMap;
use std::fs::File;
use std::ops::Bound;
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

/// The preserved blocks of one snapshot.
#[derive(Debug)]
pub(crate) struct PreservedBlocks {
    folder: PathBuf,
    state: Mutex<PreservedState>,
}

#[derive(Debug, Default)]
struct PreservedState {
    blocks: BTreeMap<Name, PreservedBlock>,
    /// The bytes of the blocks in memory.
    memory_bytes: usize,
    file: Option<BlockFile>,
    /// Why a block could not be preserved, if so.
    lost_cause: Option<String>,
}

#[derive(Debug)]
enum PreservedBlock {
    InMemory(Arc<Block>),
    InFile { offset: u64, length: usize, end: Option<Name> },
}

/// A file that no other process can open.
#[derive(Debug)]
struct BlockFile {
    file: File,
    path: PathBuf,
    length: u64,
}

/// The snapshots for which changed blocks are preserved, the oldest first.
#[derive(Debug)]
pub(super) struct OpenSnapshots {
    open: Mutex<Vec<Weak<PreservedBlocks>>>,
    limits: SnapshotLimits,
}

impl OpenSnapshots {
    pub(super) fn new(limits: SnapshotLimits) -> Self {
        Self { open: Mutex::default(), limits }
    }

    /// Preserves blocks for a snapshot of the current state, as long as it exists. No commit is being applied.
    pub(super) fn open(&self, folder: &Path) -> Arc<PreservedBlocks> {
        let snapshot =
            Arc::new(PreservedBlocks { folder: folder.to_owned(), state: Mutex::default() });
        let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        open.retain(|other| other.strong_count() > 0);
        open.push(Arc::downgrade(&snapshot));
        snapshot
    }

    /// Preserves a block that is about to be changed.
    pub(super) fn preserve(&mut self, name: &Name, block: &Arc<Block>) {
        let open = self.open.get_mut().unwrap_or_else(PoisonError::into_inner);
        if open.is_empty() {
            return;
        }
        let open: Vec<_> = open.iter().filter_map(Weak::upgrade).collect();
        let mut is_kept = false;
        for snapshot in &open {
            is_kept |= snapshot.lock().preserve(name, block);
        }
        if is_kept {
            enforce_limits(&open, self.limits);
        }
    }
}

/// Writes blocks to files, and ends the oldest snapshots, until all of them together respect the limits.
fn enforce_limits(open: &[Arc<PreservedBlocks>], limits: SnapshotLimits) {
    loop {
        let memory = |snapshot: &&Arc<PreservedBlocks>| snapshot.lock().memory_bytes;
        if open.iter().map(|snapshot| memory(&snapshot)).sum::<usize>() <= limits.memory_bytes {
            return;
        }
        let Some(largest) = open.iter().max_by_key(memory) else { return };
        let on_disk: u64 = open.iter().map(|snapshot| snapshot.lock().file_bytes()).sum();
        let left = limits.disk_bytes.saturating_sub(on_disk);
        let written = largest.lock().write_to_file(&largest.folder, left, limits.reserve_bytes);
        let Err(cause) = written else { continue };
        // A commit never fails because of a snapshot.
        let Some(oldest) = open.iter().find(|snapshot| snapshot.lock().lost_cause.is_none()) else {
            return;
        };
        tracing::warn!(
            cause,
            "The oldest snapshot of the store ended, because what commits changed since then takes too much space."
        );
        oldest.lock().end(cause);
    }
}

impl PreservedBlocks {
    fn lock(&self) -> MutexGuard<'_, PreservedState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns why a block could not be preserved, if so.
    pub(crate) fn lost_cause(&self) -> Option<String> {
        self.lock().lost_cause.clone()
    }

    /// Returns the preserved block with the greatest name within `upper`, which is a bound at `key`, if it covers the
    /// keys there.
    pub(crate) fn find_block(
        &self,
        upper: Bound<&[u8]>,
        key: &[u8],
    ) -> Result<Option<(Name, Arc<Block>)>, Error> {
        let state = self.lock();
        state.check_complete()?;
        let Some((name, block)) = state.find(upper, key) else { return Ok(None) };
        Ok(Some((name.clone(), state.load(name, block)?)))
    }

    /// Returns the preserved block with this name.
    pub(crate) fn load_block(&self, name: &[u8]) -> Result<Option<Arc<Block>>, Error> {
        let state = self.lock();
        state.check_complete()?;
        state.blocks.get(name).map(|block| state.load(name, block)).transpose()
    }
}

impl PreservedState {
    /// Preserves a block unless its keys are covered. Returns whether it did.
    fn preserve(&mut self, name: &Name, block: &Arc<Block>) -> bool {
        if self.lost_cause.is_some() || self.find(Bound::Included(name), name).is_some() {
            return false;
        }
        self.memory_bytes += name.len() + block.memory_bytes();
        self.blocks.insert(name.clone(), PreservedBlock::InMemory(block.clone()));
        true
    }

    fn file_bytes(&self) -> u64 {
        self.file.as_ref().map_or(0, |file| file.length)
    }

    /// Ends the snapshot: its reads fail from now on.
    fn end(&mut self, cause: String) {
        *self = Self { lost_cause: Some(cause), ..Self::default() };
    }

    fn check_complete(&self) -> Result<(), Error> {
        match &self.lost_cause {
            Some(cause) => Err(Error::SnapshotLost { cause: cause.clone() }),
            None => Ok(()),
        }
    }

    fn find(&self, upper: Bound<&[u8]>, key: &[u8]) -> Option<(&Name, &PreservedBlock)> {
        let range = (Bound::Unbounded, upper);
        let (name, block) = self.blocks.range::<[u8], _>(range).next_back()?;
        let end = match block {
            PreservedBlock::InMemory(block) => block.end(),
            PreservedBlock::InFile { end, .. } => end.as_deref(),
        };
        (name.first() == key.first() && covers_key(end, upper, key)).then_some((name, block))
    }

    fn load(&self, name: &[u8], block: &PreservedBlock) -> Result<Arc<Block>, Error> {
        let (offset, length) = match block {
            PreservedBlock::InMemory(block) => return Ok(block.clone()),
            PreservedBlock::InFile { offset, length, .. } => (*offset, *length),
        };
        let shape = tree::block_shape(name.first().copied().unwrap_or_default());
        let mut bytes = vec![0; length];
        let read = self.file.as_ref().map(|file| {
            file.file
                .read_exact_at(&mut bytes, offset)
                .map_err(files::io_error("reading", &file.path))
        });
        read.transpose()?;
        let block = Block::decode(shape, &bytes);
        Ok(Arc::new(block.ok_or_else(|| super::damaged_entry("the preserved block", name))?))
    }

    /// Writes the blocks in memory to the file. It may grow by `most` bytes, and leaves `reserve` bytes of the disk free.
    fn write_to_file(&mut self, folder: &Path, most: u64, reserve: u64) -> Result<(), String> {
        let bytes = self.memory_bytes as u64;
        if bytes > most {
            return Err(format!("{bytes} bytes more would exceed the limit of all files"));
        }
        let file = match &mut self.file {
            Some(file) => file,
            None => self.file.insert(BlockFile::create(folder).map_err(|error| error.to_string())?),
        };
        let needed = bytes.saturating_add(reserve);
        let free = files::free_bytes(folder)
            .map_err(|error| format!("checking the free disk space failed: {error}"))?;
        if free < needed {
            return Err(format!(
                "{needed} bytes of free disk space are needed, and {free} are free"
            ));
        }
        let mut bytes = Vec::new();
        let start = file.length;
        for block in self.blocks.values_mut() {
            let PreservedBlock::InMemory(kept) = block else { continue };
            let offset = bytes.len();
            kept.encode(&mut bytes);
            *block = PreservedBlock::InFile {
                offset: start + offset as u64,
                length: bytes.len() - offset,
                end: kept.end().map(Name::from),
            };
        }
        files::write_at(&file.file, &file.path, &bytes, start)
            .map_err(|error| format!("writing {} failed: {error}", file.path.display()))?;
        file.length += bytes.len() as u64;
        self.memory_bytes = 0;
        Ok(())
    }
}

impl BlockFile {
    /// Creates a file that disappears when it is closed, or with the process. Only one commit at a time creates one.
    fn create(folder: &Path) -> Result<Self, Error> {
        let path = folder.join("snapshot.new");
        let file = files::create_or_truncate(&path)?;
        std::fs::remove_file(&path).map_err(files::io_error("removing", &path))?;
        Ok(Self { file, path, length: 0 })
    }
}
