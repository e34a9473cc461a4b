//! What a snapshot needs of the blocks that commits changed after it: the blocks as they were.
//!
//! A block is preserved before its first change after the snapshot. It then stands for its range of keys, however the
//! index splits and joins blocks there later. Outside of these ranges the index still has the blocks of the snapshot.
//! Blocks that take too much memory are written to a file, which is deleted with the snapshot.
//!
//! Invariant: a changed block of the index covers only keys that preserved blocks cover. A block is preserved unless its
//! name is covered. Splitting a block keeps its range, and joining changes both.
use super::block::Block;
use super::clean::{Name, covers_key};
use super::key::tree;
use crate::{Error, files};
use std::collections::BTreeMap;
use std::fs::File;
use std::ops::Bound;
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

/// The bytes of blocks that a snapshot keeps in memory.
const MAX_MEMORY_BYTES: usize = if cfg!(test) { 4 << 10 } else { 2 << 20 };
/// Free disk space that a snapshot leaves to the journal and the index, in bytes.
const SPACE_RESERVE_BYTES: u64 = 32 << 20;

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

/// The snapshots for which changed blocks are preserved.
#[derive(Debug, Default)]
pub(super) struct OpenSnapshots(Mutex<Vec<Weak<PreservedBlocks>>>);

impl OpenSnapshots {
    /// Preserves blocks for a snapshot of the current state, as long as it exists. No commit is being applied.
    pub(super) fn open(&self, folder: &Path) -> Arc<PreservedBlocks> {
        let snapshot =
            Arc::new(PreservedBlocks { folder: folder.to_owned(), state: Mutex::default() });
        let mut open = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        open.retain(|other| other.strong_count() > 0);
        open.push(Arc::downgrade(&snapshot));
        snapshot
    }

    /// Preserves a block that is about to be changed.
    pub(super) fn preserve(&mut self, name: &Name, block: &Arc<Block>) {
        let open = self.0.get_mut().unwrap_or_else(PoisonError::into_inner);
        for snapshot in open.iter().filter_map(Weak::upgrade) {
            snapshot.preserve(name, block);
        }
    }
}

impl PreservedBlocks {
    fn lock(&self) -> MutexGuard<'_, PreservedState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn preserve(&self, name: &Name, block: &Arc<Block>) {
        let mut state = self.lock();
        if state.lost_cause.is_some() || state.find(Bound::Included(name), name).is_some() {
            return;
        }
        state.memory_bytes += name.len() + block.memory_bytes();
        state.blocks.insert(name.clone(), PreservedBlock::InMemory(block.clone()));
        if state.memory_bytes > MAX_MEMORY_BYTES
            && let Err(error) = state.write_to_file(&self.folder)
        {
            // A commit never fails because of a snapshot.
            tracing::warn!(cause = %error, "A snapshot ends early, because its blocks cannot be kept.");
            *state =
                PreservedState { lost_cause: Some(error.to_string()), ..PreservedState::default() };
        }
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

    /// Writes the blocks in memory to the file.
    fn write_to_file(&mut self, folder: &Path) -> Result<(), Error> {
        let file = match &mut self.file {
            Some(file) => file,
            None => self.file.insert(BlockFile::create(folder)?),
        };
        let needed = self.memory_bytes as u64 + SPACE_RESERVE_BYTES;
        let free = files::free_bytes(folder)
            .map_err(files::io_error("checking the free disk space of", folder))?;
        if free < needed {
            let full = files::DiskFull { needed, free }.into();
            return Err(files::io_error("writing", &file.path)(full));
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
            .map_err(files::io_error("writing", &file.path))?;
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
