//! Ordered maps of byte keys in blocks, with a write-back cache.
//!
//! A key begins with the byte of its tree. A tree is a chain of blocks, each holding the keys from
//! its own name up to the name of the next, which it knows as its end.
//!
//! Invariant: the names of all live blocks, in memory or in the engine, and their ends partition
//! each tree. A block that exists in several places counts in this order: dirty, clean, engine. A
//! name in `gone` is in the engine, perhaps, but no longer alive.
use super::block::{Block, Inserted, Shape, Visit};
use super::engine::Engine;
use super::packing::{Packer, Unpacker};
use crate::Error;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::{Bound, ControlFlow};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Bytes of unchanged blocks kept for readers.
const CLEAN_BYTES: usize = 4 << 20;

/// How many blocks are written between new names and new names.
const STRETCH: usize = 512;

/// About what the name of a block that is new takes in memory.
const FRESH_BYTES: usize = 40;

type Name = Box<[u8]>;
type Chain = BTreeMap<Name, Arc<Block>>;

#[derive(Debug)]
pub(crate) struct Blocks {
    engine: Engine,
    /// What the blocks of a tree are like.
    shape: fn(u8) -> Shape,
    dirty: Chain,
    dirty_bytes: usize,
    gone: BTreeSet<Name>,
    /// Dirty blocks whose names the engine does not have.
    fresh: BTreeSet<Name>,
    clean: Mutex<Clean>,
    unpacker: Unpacker,
}

/// Unchanged blocks. What was not used since half of the bytes were read is dropped.
#[derive(Debug, Default)]
struct Clean {
    young: Chain,
    old: Chain,
    young_bytes: usize,
}

impl Clean {
    fn insert(&mut self, name: Name, block: Arc<Block>) {
        self.young_bytes += name.len() + block.weight();
        self.young.insert(name, block);
        if self.young_bytes > CLEAN_BYTES / 2 {
            self.old = std::mem::take(&mut self.young);
            self.young_bytes = 0;
        }
    }

    fn find(&mut self, upper: Bound<&[u8]>, key: &[u8]) -> Option<(Name, Arc<Block>)> {
        if let Some((name, block)) = floor(&self.young, upper, key) {
            return Some((name.clone(), block.clone()));
        }
        let (name, block) = floor(&self.old, upper, key)?;
        let (name, block) = (name.clone(), block.clone());
        self.old.remove(&name);
        self.insert(name.clone(), block.clone());
        Some((name, block))
    }

    fn get(&self, name: &[u8]) -> Option<Arc<Block>> {
        self.young.get(name).or_else(|| self.old.get(name)).cloned()
    }

    fn remove(&mut self, name: &[u8]) {
        if let Some(block) = self.young.remove(name) {
            self.young_bytes = self.young_bytes.saturating_sub(name.len() + block.weight());
        }
        self.old.remove(name);
    }
}

/// Whether the block reaches to `key`: past it when its name may be the key itself, up to it else.
fn reaches(block: &Block, upper: Bound<&[u8]>, key: &[u8]) -> bool {
    block.end().is_none_or(|end| match upper {
        Bound::Excluded(_) => end >= key,
        _ => end > key,
    })
}

fn floor<'a>(
    chain: &'a Chain,
    upper: Bound<&[u8]>,
    key: &[u8],
) -> Option<(&'a Name, &'a Arc<Block>)> {
    let (name, block) = chain.range::<[u8], _>((Bound::Unbounded, upper)).next_back()?;
    (name.first() == key.first() && reaches(block, upper, key)).then_some((name, block))
}

/// Edits a block and keeps the count of bytes true.
fn weighed<T>(block: &mut Arc<Block>, bytes: &mut usize, edit: impl FnOnce(&mut Block) -> T) -> T {
    let block = Arc::make_mut(block);
    let was = block.weight();
    let value = edit(block);
    *bytes = (*bytes + block.weight()).saturating_sub(was);
    value
}

fn damaged(name: &[u8]) -> Error {
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
            gone: BTreeSet::new(),
            fresh: BTreeSet::new(),
            clean: Mutex::default(),
            unpacker: Unpacker::default(),
        }
    }

    pub(crate) fn engine(&self) -> &Engine {
        &self.engine
    }

    /// Lets go of the files and the memory. It answers no more.
    pub(crate) fn close(&mut self) {
        self.engine.close();
        (self.dirty, self.gone, self.fresh) = Default::default();
        self.clean = Mutex::default();
        self.dirty_bytes = 0;
    }

    /// Bytes that wait for a checkpoint.
    pub(crate) fn dirty_bytes(&self) -> usize {
        self.dirty_bytes
    }

    fn clean(&self) -> MutexGuard<'_, Clean> {
        self.clean.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn decode(&self, name: &[u8], bytes: &[u8]) -> Result<Arc<Block>, Error> {
        let shape = (self.shape)(tree_of(name));
        let block = self.unpacker.unpack(bytes, |bytes| Block::decode(shape, bytes));
        Ok(Arc::new(block.ok_or_else(|| damaged(name))?))
    }

    /// The live block with the greatest name within `upper`, which must reach to `key`.
    fn find(&self, upper: Bound<&[u8]>, key: &[u8]) -> Result<(Name, Arc<Block>), Error> {
        if let Some((name, block)) = floor(&self.dirty, upper, key) {
            return Ok((name.clone(), block.clone()));
        }
        if let Some(found) = self.clean().find(upper, key) {
            return Ok(found);
        }
        let found = self.engine.last_within(upper, |name, bytes| {
            (name.first() == key.first())
                .then(|| Ok::<_, Error>((Name::from(name), self.decode(name, bytes)?)))
        })?;
        let Some(Some(found)) = found else {
            let tree = tree_of(key);
            return Ok(([tree].into(), Arc::new(Block::new((self.shape)(tree)))));
        };
        let (name, block) = found?;
        if !reaches(&block, upper, key) || self.gone.contains(&name) {
            return Err(damaged(&name));
        }
        self.clean().insert(name.clone(), block.clone());
        Ok((name, block))
    }

    /// The live block of that name.
    fn load(&self, name: &[u8]) -> Result<Arc<Block>, Error> {
        if let Some(block) = self.dirty.get(name) {
            return Ok(block.clone());
        }
        if let Some(block) = self.clean().get(name) {
            return Ok(block);
        }
        let block = self
            .engine
            .get(name, |bytes| self.decode(name, bytes))?
            .ok_or_else(|| damaged(name))??;
        self.clean().insert(name.into(), block.clone());
        Ok(block)
    }

    /// The value of a key.
    pub(crate) fn get<T>(
        &self,
        key: &[u8],
        read: impl FnOnce(&[u8]) -> T,
    ) -> Result<Option<T>, Error> {
        let upper = Bound::Included(key);
        if let Some((_, block)) = floor(&self.dirty, upper, key) {
            return Ok(block.get(key).map(read));
        }
        let (_, block) = self.find(upper, key)?;
        Ok(block.get(key).map(read))
    }

    /// Hands the entries of a tree from `from` on to `visit`, in order, until it breaks.
    pub(crate) fn scan(&self, from: &[u8], visit: &mut Visit<'_>) -> Result<(), Error> {
        let (_, mut block) = self.find(Bound::Included(from), from)?;
        while block.scan(from, visit)?.is_continue() {
            let Some(end) = block.end() else { break };
            let next = self.load(end)?;
            block = next;
        }
        Ok(())
    }

    /// Hands the entries whose keys begin with `prefix` to `visit`, in order, until it breaks.
    pub(crate) fn scan_prefix(&self, prefix: &[u8], visit: &mut Visit<'_>) -> Result<(), Error> {
        self.scan(prefix, &mut |key, value| {
            if key.starts_with(prefix) { visit(key, value) } else { Ok(ControlFlow::Break(())) }
        })
    }

    /// Hands the entries of a tree before `before` to `visit`, backwards, until it breaks.
    pub(crate) fn scan_back(&self, before: &[u8], visit: &mut Visit<'_>) -> Result<(), Error> {
        let mut upper = Name::from(before);
        loop {
            let (name, block) = self.find(Bound::Excluded(&upper), &upper)?;
            for (key, value) in block.to_vec().iter().rev() {
                if **key < *before && visit(key, value)?.is_break() {
                    return Ok(());
                }
            }
            if name.len() <= 1 {
                return Ok(());
            }
            upper = name;
        }
    }

    /// Whether some key begins with `prefix`.
    pub(crate) fn any(&self, prefix: &[u8]) -> Result<bool, Error> {
        let mut found = false;
        self.scan_prefix(prefix, &mut |_, _| {
            found = true;
            Ok(ControlFlow::Break(()))
        })?;
        Ok(found)
    }

    /// Changes the block that a key belongs to, which is dirty from then on.
    fn change<T>(&mut self, key: &[u8], edit: impl FnOnce(&mut Block) -> T) -> Result<T, Error> {
        let upper = Bound::Included(key);
        let range = (Bound::Unbounded, upper);
        if let Some((name, block)) = self.dirty.range_mut::<[u8], _>(range).next_back()
            && name.first() == key.first()
            && reaches(block, upper, key)
        {
            return Ok(weighed(block, &mut self.dirty_bytes, edit));
        }
        let (name, mut block) = self.find(upper, key)?;
        self.clean().remove(&name);
        self.dirty_bytes += name.len() + block.weight();
        let value = weighed(&mut block, &mut self.dirty_bytes, edit);
        self.gone.remove(&name);
        self.dirty.insert(name, block);
        Ok(value)
    }

    /// Puts an entry in place of the one of the same key; `false` when there was one.
    pub(crate) fn insert(&mut self, key: &[u8], value: &[u8]) -> Result<bool, Error> {
        let (inserted, split) = self.change(key, |block| {
            let inserted = block.insert(key, value);
            (inserted, block.split(inserted == Inserted::New { last: true }))
        })?;
        if let Some((name, right)) = split {
            self.dirty_bytes += name.len() + right.weight();
            if !self.gone.remove(&name) {
                self.dirty_bytes += FRESH_BYTES;
                self.fresh.insert(name.clone());
            }
            self.dirty.insert(name, Arc::new(right));
        }
        Ok(inserted != Inserted::Replaced)
    }

    /// Removes an entry; `false` when there is none of that key.
    pub(crate) fn remove(&mut self, key: &[u8]) -> Result<bool, Error> {
        let (removed, follower) = self.change(key, |block| {
            let removed = block.remove(key);
            let small = removed && block.is_small();
            (removed, block.end().filter(|_| small).map(Name::from))
        })?;
        if let Some(name) = follower {
            self.join(key, &name)?;
        }
        Ok(removed)
    }

    /// Lets the block of `key` take over the one that follows, when both fit into one.
    fn join(&mut self, key: &[u8], name: &Name) -> Result<(), Error> {
        let right = self.load(name)?;
        let joined = self.change(key, |block| {
            let fits = block.fits(&right);
            if fits {
                block.absorb(&right);
            }
            fits
        })?;
        if joined {
            if let Some(block) = self.dirty.remove(name) {
                self.dirty_bytes = self.dirty_bytes.saturating_sub(name.len() + block.weight());
            }
            self.clean().remove(name);
            if self.fresh.remove(name) {
                self.dirty_bytes = self.dirty_bytes.saturating_sub(FRESH_BYTES);
            } else {
                self.gone.insert(name.clone());
            }
        }
        Ok(())
    }

    /// Writes what is dirty to the engine, in order, and after it under the name `last` what `note`
    /// makes of the change of the sum of all checksums; returns when all of it is on the medium.
    pub(crate) fn write_out(
        &self,
        last: &[u8],
        note: impl FnOnce(u64) -> Vec<u8>,
    ) -> Result<(), Error> {
        let mut writes = self.engine.write();
        let mut packer = Packer::new();
        let (mut bytes, mut packed) = (Vec::new(), Vec::new());
        for name in &self.gone {
            writes.remove(name)?;
        }
        // A leaf of the engine that gets too many entries is written again whole, in two; so new
        // names are entered first, without the bytes. But only a stretch ahead: the engine should
        // still have their leaves in memory when the bytes follow.
        let dirty: Vec<_> = self.dirty.iter().collect();
        for stretch in dirty.chunks(STRETCH) {
            for (name, _) in stretch {
                if self.fresh.contains(*name) {
                    writes.insert(name, &[])?;
                }
            }
            for (name, block) in stretch {
                bytes.clear();
                packed.clear();
                block.encode(&mut bytes);
                packer.pack(&bytes, &mut packed);
                writes.insert(name, &packed)?;
            }
        }
        let note = note(writes.change());
        writes.insert(last, &note)?;
        writes.finish()
    }

    /// What was dirty has been written out.
    pub(crate) fn written(&mut self) {
        self.gone.clear();
        self.fresh.clear();
        self.dirty_bytes = 0;
        let mut clean = std::mem::take(&mut *self.clean());
        for (name, block) in std::mem::take(&mut self.dirty) {
            clean.insert(name, block);
        }
        *self.clean() = clean;
    }
}
