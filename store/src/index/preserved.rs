//! What a snapshot needs of the blocks that commits changed after it: the blocks as they were.
//!
//! A block is preserved before its first change after the snapshot. From then on it answers for its range of keys,
//! however the index splits and joins blocks there later. Outside of these ranges the index still has the blocks of the
//! snapshot. If all snapshots take too much memory, blocks are written to a file, which is deleted with the snapshot. If
//! the files take too much, the oldest snapshot ends.
//!
//! Invariant: a changed block of the index covers only keys that preserved blocks cover. A block is preserved unless its
//! name is covered. Splitting a block keeps its range, and joining changes both.
use super::block::{Block, Name};
use super::clean::{Chain, covers_key, find_floor};
use super::key::Shape;
use crate::{Error, LostCause, SnapshotLimits, SnapshotStats, files};
use parking_lot::{Mutex, MutexGuard};
use std::collections::BTreeMap;
use std::fs::File;
use std::ops::Bound;
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Weak};

/// The approximate memory of the position of a block in the file, in bytes, without its name and end.
const POSITION_BYTES: usize = 160;
/// Free disk space above the reserve that snapshots leave for the next commits, in bytes.
const HEADROOM_BYTES: u64 = 16 << 20;
/// The bytes that are written to a file at once.
const WRITE_BYTES: usize = 128 << 10;

/// The snapshots for which changed blocks are preserved.
#[derive(Debug)]
pub(crate) struct OpenSnapshots {
    /// The oldest first.
    open: Mutex<Vec<Weak<PreservedBlocks>>>,
    /// The number of snapshots so far.
    opened: AtomicU64,
    folder: PathBuf,
    limits: SnapshotLimits,
}

/// The preserved blocks of one snapshot.
#[derive(Debug, Default)]
pub(crate) struct PreservedBlocks {
    state: Mutex<PreservedState>,
}

#[derive(Debug, Default)]
struct PreservedState {
    in_memory: Chain,
    /// The bytes of the blocks in memory.
    memory_bytes: usize,
    in_file: BTreeMap<Name, FilePosition>,
    /// The bytes in memory of the positions of blocks in the file.
    position_bytes: usize,
    file: Option<Arc<BlockFile>>,
    file_bytes: u64,
    end: Option<SnapshotEnd>,
}

/// Why a snapshot cannot be read any more.
#[derive(Debug, Clone, Copy)]
enum SnapshotEnd {
    Lost(LostCause),
    /// Another index replaces the one that it belongs to.
    Reopened,
}

/// The position of a block in the file.
#[derive(Debug)]
struct FilePosition {
    offset: u64,
    length: usize,
    crc: u32,
    /// The end of the block.
    end: Option<Name>,
}

/// A file that no other process can open.
#[derive(Debug)]
struct BlockFile {
    file: File,
    path: PathBuf,
}

/// Why blocks were not written to a file, and the snapshot whose file failed. `None` if there is too little space.
type WriteError<'o> = (Option<&'o PreservedBlocks>, LostCause);

impl OpenSnapshots {
    pub(super) fn new(folder: PathBuf, limits: SnapshotLimits) -> Self {
        Self { open: Mutex::default(), opened: AtomicU64::default(), folder, limits }
    }

    /// Preserves blocks for a snapshot of the current state, as long as it exists. No commit is being applied.
    pub(super) fn open(&self) -> Arc<PreservedBlocks> {
        let snapshot = Arc::new(PreservedBlocks::default());
        let mut open = self.lock();
        open.retain(|other| other.strong_count() > 0);
        open.push(Arc::downgrade(&snapshot));
        self.opened.fetch_add(1, Ordering::Relaxed);
        snapshot
    }

    /// Preserves a block that is about to be changed. Returns the number of snapshots for which it now is preserved
    /// ([`Block::set_preserved_for`]). May write blocks to a file, if memory is short.
    pub(super) fn preserve(&self, name: &Name, block: &Arc<Block>) -> u64 {
        let opened = self.opened.load(Ordering::Relaxed);
        if block.preserved_for() == opened {
            return opened;
        }
        let mut is_added = false;
        self.lock().retain(|snapshot| {
            let snapshot = snapshot.upgrade();
            is_added |= snapshot.as_ref().is_some_and(|one| one.lock().preserve(name, block));
            snapshot.is_some()
        });
        if is_added {
            self.enforce_limits();
        }
        opened
    }

    /// Writes blocks to files while the snapshots take nearly all of their memory, so that the next commit need not.
    /// `on_write` is called after each write. Only the writer calls this.
    pub(crate) fn make_room(&self, on_write: &mut dyn FnMut()) {
        let open = self.list();
        while let Some(full) = self.find_full(&open, self.limits.memory_bytes / 4 * 3) {
            match full.and_then(|snapshot| self.write_blocks(&open, snapshot)) {
                Ok(()) => on_write(),
                Err((Some(failed), cause)) => failed.end_early(cause),
                // The rest of the memory is left.
                Err((None, _)) => return,
            }
        }
    }

    /// Ends all snapshots, because another index replaces the one that they belong to.
    pub(super) fn close(&self) {
        for snapshot in self.list() {
            snapshot.lock().end(SnapshotEnd::Reopened);
        }
    }

    /// Returns how many snapshots there are, and what they keep.
    pub(crate) fn stats(&self) -> SnapshotStats {
        let mut stats = SnapshotStats::default();
        for snapshot in self.list() {
            let state = snapshot.lock();
            stats.count += u64::from(state.end.is_none());
            stats.memory_bytes += state.all_memory_bytes() as u64;
            stats.file_bytes += state.file_bytes;
        }
        stats
    }

    fn lock(&self) -> MutexGuard<'_, Vec<Weak<PreservedBlocks>>> {
        self.open.lock()
    }

    fn list(&self) -> Vec<Arc<PreservedBlocks>> {
        self.lock().iter().filter_map(Weak::upgrade).collect()
    }

    /// Writes blocks to files until all snapshots together respect the limits. Where that is not possible, the oldest
    /// snapshot ends. A commit never fails because of a snapshot. Only the writer calls this.
    fn enforce_limits(&self) {
        let open = self.list();
        while let Some(full) = self.find_full(&open, self.limits.memory_bytes) {
            let written = full.and_then(|snapshot| self.write_blocks(&open, snapshot));
            if let Err((failed, cause)) = written {
                let oldest = || open.iter().find(|snapshot| snapshot.lock().end.is_none());
                let Some(ended) = failed.or_else(|| oldest().map(|one| &**one)) else { return };
                ended.end_early(cause);
            }
        }
    }

    /// Returns the snapshot whose blocks are written next, if all together take more than `target` bytes of memory. Fails
    /// if nearly all of it are positions in files, because then each block would be written for itself.
    fn find_full<'o>(
        &self,
        open: &'o [Arc<PreservedBlocks>],
        target: usize,
    ) -> Option<Result<&'o PreservedBlocks, WriteError<'o>>> {
        if sum_of(open, |state| state.all_memory_bytes() as u64) <= target as u64 {
            return None;
        }
        let limit_bytes = self.limits.memory_bytes as u64;
        let is_worthwhile = sum_of(open, |state| state.memory_bytes as u64) > limit_bytes / 8;
        let largest = open.iter().max_by_key(|snapshot| snapshot.lock().memory_bytes);
        let largest = largest.filter(|_| is_worthwhile).map(|largest| &**largest);
        Some(largest.ok_or((None, LostCause::Memory { limit_bytes })))
    }

    /// Writes some of the blocks in memory to the file of their snapshot.
    fn write_blocks<'o>(
        &self,
        open: &[Arc<PreservedBlocks>],
        snapshot: &'o PreservedBlocks,
    ) -> Result<(), WriteError<'o>> {
        let failed = |error: Error| {
            tracing::warn!(cause = %error, "The file of a snapshot cannot be written.");
            (Some(snapshot), LostCause::Io)
        };
        let state = snapshot.lock();
        let (file, start) = (state.file.clone(), state.file_bytes);
        let mut memory_bytes = 0;
        let blocks = state.in_memory.iter().take_while(|(name, block)| {
            let fits = memory_bytes < WRITE_BYTES;
            memory_bytes += name.len() + block.memory_bytes();
            fits
        });
        let blocks: Vec<_> =
            blocks.map(|(name, block)| (name.clone(), Arc::clone(block))).collect();
        drop(state);

        let mut bytes = Vec::with_capacity(memory_bytes);
        let mut positions = Vec::with_capacity(blocks.len());
        for (_, block) in &blocks {
            let before = bytes.len();
            block.encode(&mut bytes);
            let encoded = bytes.get(before..).unwrap_or_default();
            positions.push(FilePosition {
                offset: start + before as u64,
                length: encoded.len(),
                crc: crc32c::crc32c(encoded),
                end: block.end().map(Name::from),
            });
        }
        let needed = bytes.len() as u64;
        let limit_bytes = self.limits.disk_bytes;
        if sum_of(open, |state| state.file_bytes).saturating_add(needed) > limit_bytes {
            return Err((None, LostCause::Disk { limit_bytes }));
        }
        let free_bytes = files::free_bytes(&self.folder)
            .map_err(files::io_error("checking the free disk space of", &self.folder))
            .map_err(failed)?;
        let kept_free = self.limits.reserve_bytes.saturating_add(HEADROOM_BYTES);
        if free_bytes < needed.saturating_add(kept_free) {
            return Err((None, LostCause::DiskFull { free_bytes }));
        }
        let file = match file {
            Some(file) => file,
            None => Arc::new(BlockFile::create(&self.folder).map_err(failed)?),
        };
        files::write_at(&file.file, &file.path, &bytes, start)
            .map_err(files::io_error("writing", &file.path))
            .map_err(failed)?;
        snapshot.lock().move_to_file(file, blocks, positions, start + needed);
        Ok(())
    }
}

/// Returns a sum over all snapshots.
fn sum_of(open: &[Arc<PreservedBlocks>], count: fn(&PreservedState) -> u64) -> u64 {
    open.iter().map(|snapshot| count(&snapshot.lock())).sum()
}

impl PreservedBlocks {
    fn lock(&self) -> MutexGuard<'_, PreservedState> {
        self.state.lock()
    }

    /// Returns why a block could not be preserved, if so.
    pub(crate) fn lost_cause(&self) -> Option<LostCause> {
        match self.lock().end {
            Some(SnapshotEnd::Lost(cause)) => Some(cause),
            Some(SnapshotEnd::Reopened) | None => None,
        }
    }

    /// Ends the snapshot: its reads fail from now on.
    pub(crate) fn end_early(&self, cause: LostCause) {
        tracing::warn!(%cause, "A snapshot of the store ended early. What reads it continues with the newest state, or reports an error.");
        self.lock().end(SnapshotEnd::Lost(cause));
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
        if let Some((name, block)) = find_floor(&state.in_memory, upper, key) {
            return Ok(Some((name.clone(), Arc::clone(block))));
        }
        let range = (Bound::Unbounded, upper);
        let Some((name, position)) = state.in_file.range::<[u8], _>(range).next_back() else {
            return Ok(None);
        };
        if name.first() != key.first() || !covers_key(position.end.as_deref(), upper, key) {
            return Ok(None);
        }
        let name = name.clone();
        Ok(self.read_block(state, &name)?.map(|block| (name, block)))
    }

    /// Returns the preserved block with this name.
    pub(crate) fn load_block(&self, name: &[u8]) -> Result<Option<Arc<Block>>, Error> {
        let state = self.lock();
        state.check_complete()?;
        match state.in_memory.get(name) {
            Some(block) => Ok(Some(Arc::clone(block))),
            None => self.read_block(state, name),
        }
    }

    /// Reads a block from the file. The snapshot ends if that fails. The state is unlocked meanwhile, so that no commit
    /// waits for the disk.
    fn read_block(
        &self,
        state: MutexGuard<'_, PreservedState>,
        name: &[u8],
    ) -> Result<Option<Arc<Block>>, Error> {
        let (Some(position), Some(file)) = (state.in_file.get(name), state.file.clone()) else {
            return Ok(None);
        };
        let FilePosition { offset, length, crc, .. } = *position;
        drop(state);
        let mut bytes = vec![0; length];
        let read = file.file.read_exact_at(&mut bytes, offset);
        let shape = Shape::of_tree(name.first().copied().unwrap_or_default());
        if read.is_ok()
            && crc32c::crc32c(&bytes) == crc
            && let Some(block) = Block::decode(shape, bytes)
        {
            return Ok(Some(Arc::new(block)));
        }
        tracing::warn!(?read, "Reading the file of a snapshot failed, or the file is damaged.");
        self.end_early(LostCause::Io);
        self.lock().check_complete().map(|()| None)
    }

    /// Damages the file, for a test.
    #[cfg(test)]
    pub(crate) fn damage_file(&self) {
        let state = self.lock();
        let file = state.file.as_ref().unwrap();
        for position in state.in_file.values() {
            file.file.write_all_at(b"?", position.offset + position.length as u64 / 2).unwrap();
        }
    }
}

impl PreservedState {
    /// Preserves a block unless its keys are covered. Returns whether it did.
    fn preserve(&mut self, name: &Name, block: &Arc<Block>) -> bool {
        if self.end.is_some() || self.covers_name(name) {
            return false;
        }
        self.memory_bytes += name.len() + block.memory_bytes();
        self.in_memory.insert(name.clone(), Arc::clone(block));
        true
    }

    fn covers_name(&self, name: &[u8]) -> bool {
        let upper = Bound::Included(name);
        let in_file = || self.in_file.range::<[u8], _>((Bound::Unbounded, upper)).next_back();
        find_floor(&self.in_memory, upper, name).is_some()
            || in_file().is_some_and(|(found, position)| {
                found.first() == name.first() && covers_key(position.end.as_deref(), upper, name)
            })
    }

    fn all_memory_bytes(&self) -> usize {
        self.memory_bytes + self.position_bytes
    }

    fn end(&mut self, end: SnapshotEnd) {
        *self = Self { end: Some(end), ..Self::default() };
    }

    fn check_complete(&self) -> Result<(), Error> {
        match self.end {
            Some(SnapshotEnd::Lost(cause)) => Err(Error::SnapshotLost { cause }),
            Some(SnapshotEnd::Reopened) => Err(Error::Reopening),
            None => Ok(()),
        }
    }

    /// Replaces blocks in memory by their positions in the file, which now has this length.
    fn move_to_file(
        &mut self,
        file: Arc<BlockFile>,
        blocks: Vec<(Name, Arc<Block>)>,
        positions: Vec<FilePosition>,
        file_bytes: u64,
    ) {
        if self.end.is_some() {
            return;
        }
        (self.file, self.file_bytes) = (Some(file), file_bytes);
        for ((name, block), position) in blocks.into_iter().zip(positions) {
            self.in_memory.remove(&name);
            let bytes = name.len() + block.memory_bytes();
            self.memory_bytes = self.memory_bytes.saturating_sub(bytes);
            let end_bytes = position.end.as_ref().map_or(0, |end| end.len());
            self.position_bytes += POSITION_BYTES + name.len() + end_bytes;
            self.in_file.insert(name, position);
        }
    }
}

impl BlockFile {
    /// Creates a file that disappears when it is closed, or with the process. Only one commit at a time creates one.
    fn create(folder: &Path) -> Result<Self, Error> {
        let path = file_path(folder);
        let file = files::create_or_truncate(&path)?;
        std::fs::remove_file(&path).map_err(files::io_error("removing", &path))?;
        Ok(Self { file, path })
    }
}

/// Returns the path that the file of a snapshot has for a moment.
pub(super) fn file_path(folder: &Path) -> PathBuf {
    folder.join("snapshot.new")
}

#[cfg(test)]
mod tests;
