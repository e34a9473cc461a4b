//! A cache of unchanged blocks, for readers.
use super::block::{Block, Name};
use super::block_source::Reading;
use std::collections::BTreeMap;
use std::ops::Bound;
use std::sync::Arc;

/// The size of the cache, in bytes.
const MAX_CLEAN_BYTES: usize = 4 << 20;

pub(super) type Chain = BTreeMap<Name, Arc<Block>>;

/// The number of blocks that were read once and whose names are remembered.
const REMEMBERED_READS: usize = 1_024;

/// Unchanged blocks in two generations. A block is dropped if it is not used while blocks of half the cache
/// size are read.
#[derive(Debug, Default)]
pub(super) struct CleanBlocks {
    young: Chain,
    old: Chain,
    young_bytes: usize,
    /// Checksums of the names of blocks that were read once, at an index derived from the checksum.
    once: Vec<u32>,
}

impl CleanBlocks {
    pub(super) fn insert(&mut self, name: Name, block: Arc<Block>) {
        self.young_bytes += name.len() + block.memory_bytes();
        self.young.insert(name, block);
        if self.young_bytes > MAX_CLEAN_BYTES / 2 {
            self.old = std::mem::take(&mut self.young);
            self.young_bytes = 0;
        }
    }

    /// Caches a block that was read.
    pub(super) fn cache_block(&mut self, name: Name, block: Arc<Block>, reading: Reading) {
        match reading {
            Reading::Again => self.insert(name, block),
            Reading::Once => self.insert_if_read_before(name, block),
        }
    }

    /// Caches a block if it was recently read before; otherwise only remembers its name. So a pass over many
    /// blocks does not evict blocks that are used all the time.
    fn insert_if_read_before(&mut self, name: Name, block: Arc<Block>) {
        let checksum = crc32c::crc32c(&name);
        self.once.resize(REMEMBERED_READS, 0);
        match self.once.get_mut(checksum as usize % REMEMBERED_READS) {
            Some(once) if *once != checksum => *once = checksum,
            _ => self.insert(name, block),
        }
    }

    pub(super) fn find_block(
        &mut self,
        upper: Bound<&[u8]>,
        key: &[u8],
    ) -> Option<(Name, Arc<Block>)> {
        if let Some((name, block)) = find_floor(&self.young, upper, key) {
            return Some((name.clone(), block.clone()));
        }
        let (name, block) = find_floor(&self.old, upper, key)?;
        let (name, block) = (name.clone(), block.clone());
        self.old.remove(&name);
        self.insert(name.clone(), block.clone());
        Some((name, block))
    }

    pub(super) fn get(&self, name: &[u8]) -> Option<Arc<Block>> {
        self.young.get(name).or_else(|| self.old.get(name)).cloned()
    }

    pub(super) fn remove(&mut self, name: &[u8]) {
        if let Some(block) = self.young.remove(name) {
            self.young_bytes = self.young_bytes.saturating_sub(name.len() + block.memory_bytes());
        }
        self.old.remove(name);
    }
}

/// Returns whether a block with this end covers the keys up to `upper`, which is a bound at `key`. It must end
/// after `key`; if the bound excludes `key`, the block may also end at it.
pub(super) fn covers_key(end: Option<&[u8]>, upper: Bound<&[u8]>, key: &[u8]) -> bool {
    end.is_none_or(|end| match upper {
        Bound::Excluded(_) => end >= key,
        _ => end > key,
    })
}

/// Returns the block with the greatest name within `upper`, if it covers `key`.
pub(super) fn find_floor<'a>(
    chain: &'a Chain,
    upper: Bound<&[u8]>,
    key: &[u8],
) -> Option<(&'a Name, &'a Arc<Block>)> {
    let (name, block) = chain.range::<[u8], _>((Bound::Unbounded, upper)).next_back()?;
    (name.first() == key.first() && covers_key(block.end(), upper, key)).then_some((name, block))
}

#[cfg(test)]
mod tests {
    use super::super::key::Shape;
    use super::*;

    #[test]
    fn a_block_is_cached_when_it_is_read_a_second_time() {
        let mut clean = CleanBlocks::default();
        let block = Arc::new(Block::new(Shape { has_values: false, max_bytes: 96 }));
        let name = |n: u8| Name::from([3, n].as_slice());
        clean.insert(name(1), block.clone());
        clean.insert_if_read_before(name(2), block.clone());
        assert_eq!((clean.get(&name(1)).is_some(), clean.get(&name(2)).is_some()), (true, false));
        clean.insert_if_read_before(name(2), block);
        assert!(clean.get(&name(2)).is_some());
    }
}
