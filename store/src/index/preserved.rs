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

/// The approximate memory of a block in the file, in bytes, without its name and end.
const ENTRY_BYTES: usize = 160;
/// Free disk space above the reserve that snapshots leave for the next commits, in bytes.
const HEADROOM_BYTES: u64 = 16 << 20;
/// The bytes that are written to the file at once.
const WRITE_BYTES: usize = 64 << 10;

#[derive(Debug, Default)]
struct PreservedState {
    blocks: BTreeMap<Name, PreservedBlock>,
    /// The bytes of the blocks in memory.
    memory_bytes: usize,
    /// The bytes in memory of the entries of blocks in the file.
    entry_bytes: usize,
    file: Option<BlockFile>,
    /// Why a block could not be preserved, if so.
    lost_cause: Option<String>,
}

#[derive(Debug)]
enum PreservedBlock {
    InMemory(Arc<Block>),
    InFile { offset: u64, length: usize, crc: u32, end: Option<Name> },
}

/// Why blocks were not written to the file.
enum SpillError {
    /// There is too little space.
    NoSpace(String),
    /// Writing failed.
    Failed(Error),
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
        open.retain(|snapshot| snapshot.strong_count() > 0);
        let mut is_kept = false;
        for snapshot in open.iter().filter_map(Weak::upgrade) {
            is_kept |= snapshot.lock().preserve(name, block);
        }
        if is_kept {
            let open: Vec<_> = open.iter().filter_map(Weak::upgrade).collect();
            enforce_limits(&open, self.limits);
        }
    }
}

/// Writes blocks to files, and ends the oldest snapshots, until all of them together respect the limits. A commit never
/// fails because of a snapshot.
fn enforce_limits(open: &[Arc<PreservedBlocks>], limits: SnapshotLimits) {
    loop {
        let sum = |bytes: &dyn Fn(&PreservedState) -> u64| -> u64 {
            open.iter().map(|snapshot| bytes(&snapshot.lock())).sum()
        };
        if sum(&|state| state.all_memory_bytes() as u64) <= limits.memory_bytes as u64 {
            return;
        }
        let Some(largest) = open.iter().max_by_key(|snapshot| snapshot.lock().memory_bytes) else {
            return;
        };
        let left = limits.disk_bytes.saturating_sub(sum(&PreservedState::file_bytes));
        let written = if largest.lock().memory_bytes < limits.memory_bytes / 8 {
            let why = "what later commits changed exceeds service.limits.snapshot.memory";
            Err(SpillError::NoSpace(why.to_owned()))
        } else {
            largest.lock().write_to_file(&largest.folder, left, limits.reserve_bytes)
        };
        match written {
            Ok(()) => {}
            Err(SpillError::Failed(error)) => {
                tracing::warn!(cause = %error, "A snapshot of the store ended, because its file cannot be written.");
                largest
                    .lock()
                    .end("what later commits changed cannot be written to the disk".into());
            }
            Err(SpillError::NoSpace(cause)) => {
                let mut alive =
                    open.iter().map(|one| one.lock()).filter(|one| one.lost_cause.is_none());
                let Some(mut oldest) = alive.next() else { return };
                tracing::warn!(cause, "The oldest snapshot of the store ended.");
                oldest.end(cause);
            }
        }
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
        let mut state = self.lock();
        state.check_complete()?;
        let Some(name) = state.find(upper, key).map(|(name, _)| name.clone()) else {
            return Ok(None);
        };
        Ok(state.load(&name)?.map(|block| (name, block)))
    }

    /// Returns the preserved block with this name.
    pub(crate) fn load_block(&self, name: &[u8]) -> Result<Option<Arc<Block>>, Error> {
        let mut state = self.lock();
        state.check_complete()?;
        state.load(name)
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

    /// Returns the block with this name. The snapshot ends if it cannot be read.
    fn load(&mut self, name: &[u8]) -> Result<Option<Arc<Block>>, Error> {
        let (offset, length, crc) = match self.blocks.get(name) {
            None => return Ok(None),
            Some(PreservedBlock::InMemory(block)) => return Ok(Some(block.clone())),
            Some(PreservedBlock::InFile { offset, length, crc, .. }) => (*offset, *length, *crc),
        };
        let shape = tree::block_shape(name.first().copied().unwrap_or_default());
        let mut bytes = vec![0; length];
        let read = self.file.as_ref().map(|file| file.file.read_exact_at(&mut bytes, offset));
        if let Some(Ok(())) = read
            && crc32c::crc32c(&bytes) == crc
            && let Some(block) = Block::decode(shape, bytes)
        {
            return Ok(Some(Arc::new(block)));
        }
        tracing::warn!(?read, "A snapshot of the store ended, because its file cannot be read.");
        self.end("what later commits changed cannot be read from the disk".to_owned());
        self.check_complete().map(|()| None)
    }

    fn all_memory_bytes(&self) -> usize {
        self.memory_bytes + self.entry_bytes
    }

    /// Writes the blocks in memory to the file. It may grow by `most` bytes, and leaves `reserve` bytes of the disk free.
    fn write_to_file(&mut self, folder: &Path, most: u64, reserve: u64) -> Result<(), SpillError> {
        let needed = self.memory_bytes as u64;
        if needed > most {
            let why = "what later commits changed exceeds service.limits.snapshot.disk";
            return Err(SpillError::NoSpace(why.to_owned()));
        }
        let free = files::free_bytes(folder).map_err(|error| {
            SpillError::Failed(files::io_error("checking the free disk space of", folder)(error))
        })?;
        if free < needed.saturating_add(reserve).saturating_add(HEADROOM_BYTES) {
            return Err(SpillError::NoSpace("the disk is nearly full".to_owned()));
        }
        let file = match &mut self.file {
            Some(file) => file,
            None => self.file.insert(BlockFile::create(folder).map_err(SpillError::Failed)?),
        };
        // What was written counts only after all of it.
        let (mut bytes, mut end_of_file) = (Vec::with_capacity(WRITE_BYTES), file.length);
        let mut positions = Vec::new();
        for block in self.blocks.values() {
            let PreservedBlock::InMemory(block) = block else { continue };
            let start = bytes.len();
            block.encode(&mut bytes);
            let encoded = bytes.get(start..).unwrap_or_default();
            positions.push((end_of_file + start as u64, encoded.len(), crc32c::crc32c(encoded)));
            if bytes.len() >= WRITE_BYTES {
                file.write(&bytes, &mut end_of_file)?;
                bytes.clear();
            }
        }
        file.write(&bytes, &mut end_of_file)?;
        file.length = end_of_file;
        let mut positions = positions.into_iter();
        for (name, block) in &mut self.blocks {
            let PreservedBlock::InMemory(kept) = block else { continue };
            let Some((offset, length, crc)) = positions.next() else { break };
            let end = kept.end().map(Name::from);
            self.entry_bytes += ENTRY_BYTES + name.len() + end.as_ref().map_or(0, |end| end.len());
            *block = PreservedBlock::InFile { offset, length, crc, end };
        }
        self.memory_bytes = 0;
        Ok(())
    }
}

impl BlockFile {
    /// Appends bytes at a position, which is advanced.
    fn write(&self, bytes: &[u8], at: &mut u64) -> Result<(), SpillError> {
        files::write_at(&self.file, &self.path, bytes, *at)
            .map_err(|error| SpillError::Failed(files::io_error("writing", &self.path)(error)))?;
        *at += bytes.len() as u64;
        Ok(())
    }

    /// Creates a file that disappears when it is closed, or with the process. Only one commit at a time creates one.
    fn create(folder: &Path) -> Result<Self, Error> {
        let path = folder.join("snapshot.new");
        let file = files::create_or_truncate(&path)?;
        std::fs::remove_file(&path).map_err(files::io_error("removing", &path))?;
        Ok(Self { file, path, length: 0 })
    }
}
