//! Ordered maps of byte keys in blocks, with a write-back cache.
//!
//! A key begins with the byte of its tree. A tree is a chain of blocks. Each block has the keys from its own
//! name up to the name of the next block, which it stores as its end.
//!
//! Invariant: the names and ends of all live blocks, in memory or in the engine, partition each tree. If
//! several copies of a block exist, the dirty one counts, then the clean one, then the engine's. A name in
//! `deleted` is deleted, even if the engine still has it.
use super::block::{Block, Inserted, Name};
use super::block_source::{BlockSource, Reading};
use super::clean::{Chain, CleanBlocks, covers_key, find_floor};
use super::engine::{Engine, entry_checksum};
use super::images::{self, Image, NewImages};
use super::key::Shape;
use super::packing::{Packer, Unpacker};
use super::preserved::OpenSnapshots;
use crate::steps::WriterSteps;
use crate::{Error, SnapshotLimits};
use parking_lot::{Mutex, MutexGuard};
use std::collections::BTreeMap;
use std::ops::Bound;
use std::path::{Path, PathBuf};
use std::sync::Arc;

#[derive(Debug)]
pub(crate) struct Blocks {
    engine: Engine,
    /// Returns the shape of a tree's blocks.
    shape: fn(u8) -> Shape,
    dirty: Chain,
    dirty_bytes: usize,
    /// Deleted blocks, with the checksums of the entries that the engine has for them.
    deleted: BTreeMap<Name, u64>,
    clean: Mutex<CleanBlocks>,
    unpacker: Unpacker,
    snapshots: Arc<OpenSnapshots>,
}

/// Edits a block, which is preserved for this number of snapshots, and updates the byte count.
fn edit_counted<T>(
    block: &mut Arc<Block>,
    bytes: &mut usize,
    snapshots: u64,
    edit: impl FnOnce(&mut Block) -> T,
) -> T {
    let block = Arc::make_mut(block);
    block.set_preserved_for(snapshots);
    let was = block.memory_bytes();
    let value = edit(block);
    *bytes = (*bytes + block.memory_bytes()).saturating_sub(was);
    value
}

fn damaged_block(name: &[u8]) -> Error {
    Error::Index(format!("the block named {name:02x?} is missing or damaged"))
}

fn tree_of(key: &[u8]) -> u8 {
    key.first().copied().unwrap_or_default()
}

impl Blocks {
    pub(crate) fn new(engine: Engine, shape: fn(u8) -> Shape) -> Self {
        Self {
            engine,
            shape,
            dirty: Chain::new(),
            dirty_bytes: 0,
            deleted: BTreeMap::new(),
            clean: Mutex::default(),
            unpacker: Unpacker::default(),
            snapshots: Arc::new(OpenSnapshots::new(PathBuf::new(), SnapshotLimits::default())),
        }
    }

    pub(crate) fn engine(&self) -> &Engine {
        &self.engine
    }

    /// Releases the files and the memory. Reads fail afterwards, and so do those of all snapshots.
    pub(crate) fn close(&mut self) {
        self.snapshots.close();
        self.engine.close();
        (self.dirty, self.deleted) = Default::default();
        self.clean = Mutex::default();
        self.dirty_bytes = 0;
    }

    /// Sets the folder for the files of snapshots, and the limits of all snapshots together. There are none yet.
    pub(super) fn set_snapshot_limits(&mut self, folder: &Path, limits: SnapshotLimits) {
        self.snapshots = Arc::new(OpenSnapshots::new(folder.to_owned(), limits));
    }

    /// Returns the snapshots for which blocks are preserved.
    pub(super) fn snapshots(&self) -> &Arc<OpenSnapshots> {
        &self.snapshots
    }

    /// Returns the number of bytes that wait for a checkpoint.
    pub(crate) fn dirty_bytes(&self) -> usize {
        self.dirty_bytes
    }

    fn lock_clean(&self) -> MutexGuard<'_, CleanBlocks> {
        self.clean.lock()
    }

    fn decode_block(&self, name: &[u8], bytes: &[u8]) -> Result<Arc<Block>, Error> {
        let shape = (self.shape)(tree_of(name));
        let block = self.unpacker.unpack_block(bytes);
        let block = block.and_then(|bytes| Block::decode(shape, bytes));
        let mut block = block.ok_or_else(|| damaged_block(name))?;
        block.set_stored_checksum(entry_checksum(name, bytes));
        Ok(Arc::new(block))
    }

    /// Edits the block of a key and marks it dirty.
    fn edit_block<T>(
        &mut self,
        key: &[u8],
        edit: impl FnOnce(&mut Block) -> T,
    ) -> Result<T, Error> {
        let upper = Bound::Included(key);
        let range = (Bound::Unbounded, upper);
        if let Some((name, block)) = self.dirty.range_mut::<[u8], _>(range).next_back()
            && name.first() == key.first()
            && covers_key(block.end(), upper, key)
        {
            let snapshots = self.snapshots.preserve(name, block);
            return Ok(edit_counted(block, &mut self.dirty_bytes, snapshots, edit));
        }
        let (name, mut block) = self.find_block(upper, key, Reading::Again)?;
        let snapshots = self.snapshots.preserve(&name, &block);
        self.lock_clean().remove(&name);
        self.dirty_bytes += name.len() + block.memory_bytes();
        let value = edit_counted(&mut block, &mut self.dirty_bytes, snapshots, edit);
        self.deleted.remove(&name);
        self.dirty.insert(name, block);
        Ok(value)
    }

    /// Inserts an entry, or replaces the value of an existing one. Returns `false` if the key existed.
    pub(crate) fn insert(&mut self, key: &[u8], value: &[u8]) -> Result<bool, Error> {
        let (inserted, split) = self.edit_block(key, |block| {
            let inserted = block.insert(key, value);
            (inserted, block.split_off_upper(inserted == Inserted::New { last: true }))
        })?;
        if let Some((name, mut right)) = split {
            self.dirty_bytes += name.len() + right.memory_bytes();
            right.set_stored_checksum(self.deleted.remove(&name).unwrap_or_default());
            self.dirty.insert(name, Arc::new(right));
        }
        Ok(inserted != Inserted::Replaced)
    }

    /// Removes an entry. Returns `false` if the key does not exist.
    pub(crate) fn remove(&mut self, key: &[u8]) -> Result<bool, Error> {
        let (removed, follower) = self.edit_block(key, |block| {
            let removed = block.remove(key);
            let small = removed && block.is_small();
            (removed, block.end().filter(|_| small).map(Name::from))
        })?;
        if let Some(name) = follower {
            self.join_next(key, &name)?;
        }
        Ok(removed)
    }

    /// Joins the block of `key` with the next one if both fit into one.
    fn join_next(&mut self, key: &[u8], name: &Name) -> Result<(), Error> {
        let right = self.load_block(name, Reading::Again)?;
        let joined = self.edit_block(key, |block| {
            let fits = block.fits_with(&right);
            if fits {
                block.append_block(&right);
            }
            fits
        })?;
        if joined {
            self.snapshots.preserve(name, &right);
            if let Some(block) = self.dirty.remove(name) {
                self.dirty_bytes =
                    self.dirty_bytes.saturating_sub(name.len() + block.memory_bytes());
            }
            self.lock_clean().remove(name);
            if right.stored_checksum() != 0 {
                self.deleted.insert(name.clone(), right.stored_checksum());
            }
        }
        Ok(())
    }

    /// Writes all dirty blocks to a file of images, in order.
    pub(crate) fn write_dirty(
        &self,
        out: &mut NewImages,
        steps: &WriterSteps,
    ) -> Result<WrittenImages, Error> {
        let mut packer = Packer::new();
        let (mut bytes, mut packed) = (Vec::new(), Vec::new());
        let mut imaged = WrittenImages::default();
        for (name, stored) in &self.deleted {
            out.push(name, Image::Deleted)?;
            imaged.change = imaged.change.wrapping_sub(*stored);
        }
        for (name, block) in &self.dirty {
            steps.count_step();
            bytes.clear();
            packed.clear();
            block.encode(&mut bytes);
            packer.pack_block(&bytes, &mut packed);
            let checksum = entry_checksum(name, &packed);
            imaged.checksums.push(checksum);
            imaged.sum = imaged.sum.wrapping_add(checksum);
            imaged.change =
                imaged.change.wrapping_add(checksum).wrapping_sub(block.stored_checksum());
            let image = match block.stored_checksum() {
                0 => Image::New(&bytes),
                _ => Image::Changed(&bytes),
            };
            out.push(name, image)?;
        }
        Ok(imaged)
    }

    /// Marks the dirty blocks as written.
    pub(crate) fn mark_written(&mut self, imaged: WrittenImages) {
        self.deleted.clear();
        self.dirty_bytes = 0;
        let mut clean = std::mem::take(&mut *self.lock_clean());
        let dirty = std::mem::take(&mut self.dirty);
        for ((name, mut block), checksum) in dirty.into_iter().zip(imaged.checksums) {
            Arc::make_mut(&mut block).set_stored_checksum(checksum);
            clean.insert(name, block);
        }
        *self.lock_clean() = clean;
    }
}

impl BlockSource for Blocks {
    fn read_value(&self, key: &[u8], read: &mut dyn FnMut(&[u8])) -> Result<(), Error> {
        let upper = Bound::Included(key);
        // Most lookups of a commit end here.
        if let Some((_, block)) = find_floor(&self.dirty, upper, key) {
            block.get(key).map(read);
            return Ok(());
        }
        let (_, block) = self.find_block(upper, key, Reading::Again)?;
        block.get(key).map(read);
        Ok(())
    }

    fn find_block(
        &self,
        upper: Bound<&[u8]>,
        key: &[u8],
        reading: Reading,
    ) -> Result<(Name, Arc<Block>), Error> {
        if let Some((name, block)) = find_floor(&self.dirty, upper, key) {
            return Ok((name.clone(), block.clone()));
        }
        if let Some(found) = self.lock_clean().find_block(upper, key) {
            return Ok(found);
        }
        let found = self.engine.last_within(upper, |name, bytes| {
            (name.first() == key.first())
                .then(|| Ok::<_, Error>((Name::from(name), self.decode_block(name, bytes)?)))
        })?;
        let Some(Some(found)) = found else {
            let tree = tree_of(key);
            return Ok(([tree].into(), Arc::new(Block::new((self.shape)(tree)))));
        };
        let (name, block) = found?;
        if !covers_key(block.end(), upper, key) || self.deleted.contains_key(&name) {
            return Err(damaged_block(&name));
        }
        self.lock_clean().cache_block(name.clone(), block.clone(), reading);
        Ok((name, block))
    }

    fn load_block(&self, name: &[u8], reading: Reading) -> Result<Arc<Block>, Error> {
        if let Some(block) = self.dirty.get(name) {
            return Ok(block.clone());
        }
        if let Some(block) = self.lock_clean().get(name) {
            return Ok(block);
        }
        let block = self
            .engine
            .get(name, |bytes| self.decode_block(name, bytes))?
            .ok_or_else(|| damaged_block(name))??;
        self.lock_clean().cache_block(name.into(), block.clone(), reading);
        Ok(block)
    }
}

/// The result of [`Blocks::write_dirty`].
#[derive(Debug, Default)]
pub(crate) struct WrittenImages {
    /// The change of the sum of all checksums.
    pub(crate) change: u64,
    /// The sum of the checksums below.
    pub(crate) sum: u64,
    /// The checksums of the dirty blocks, in order.
    checksums: Vec<u64>,
}

/// Writes the content of a file of images to the engine, and then its note under the name `note_name`. Returns
/// the note when everything is on the medium.
pub(crate) fn apply_images(
    engine: &Engine,
    path: &Path,
    note_name: &[u8],
    steps: &WriterSteps,
) -> Result<Vec<u8>, Error> {
    let mut writes = engine.begin_writes();
    let mut packer = Packer::new();
    let mut packed = Vec::new();
    let mut sum = 0_u64;
    let end = images::read_images(path, &mut |images| {
        for (name, image) in images {
            match image {
                Image::Deleted => writes.remove(name)?,
                Image::New(_) => writes.insert(name, &[])?,
                Image::Changed(_) => {}
            }
        }
        for (name, image) in images {
            steps.count_step();
            if let Image::Changed(bytes) | Image::New(bytes) = image {
                packed.clear();
                packer.pack_block(bytes, &mut packed);
                sum = sum.wrapping_add(entry_checksum(name, &packed));
                writes.insert(name, &packed)?;
            }
        }
        Ok(())
    })?;
    if sum != end.sum {
        return Err(Error::Index(
            "the blocks in the checkpoint file do not match their checksum".into(),
        ));
    }
    writes.insert(note_name, &end.note)?;
    writes.finish()?;
    Ok(end.note)
}
