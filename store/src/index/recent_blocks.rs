//! The blocks that a snapshot read last. Its state never changes, so they stay valid.
use super::block::{Block, Name};
use super::clean::covers_key;
use super::key::tree;
use std::ops::Bound;
use std::sync::Arc;

/// The number of blocks of a tree. A join reads a tree at as many positions.
const BLOCKS_PER_TREE: usize = 8;
/// The maximum size of a block, in bytes. Only blocks with a single long entry are larger. So the blocks of a snapshot
/// take at most about 100 KiB.
const MAX_BLOCK_BYTES: usize = 3 << 10;

type RecentBlock = Option<(Name, Arc<Block>)>;

/// Recently read blocks by tree, the last one first.
#[derive(Debug, Default)]
pub(crate) struct RecentBlocks([[RecentBlock; BLOCKS_PER_TREE]; tree::COUNT]);

impl RecentBlocks {
    /// Returns the block with the greatest name within `upper`, which is a bound at `key`.
    pub(crate) fn find(&mut self, upper: Bound<&[u8]>, key: &[u8]) -> Option<(Name, Arc<Block>)> {
        let blocks = self.0.get_mut(usize::from(*key.first()?))?;
        let at = blocks.iter().position(|recent| {
            recent.as_ref().is_some_and(|(name, block)| {
                let begins_before = match upper {
                    Bound::Excluded(_) => **name < *key,
                    _ => **name <= *key,
                };
                begins_before && covers_key(block.end(), upper, key)
            })
        })?;
        blocks.get_mut(..=at)?.rotate_right(1);
        blocks.first()?.clone()
    }

    pub(crate) fn insert(&mut self, (name, block): &(Name, Arc<Block>)) {
        if block.memory_bytes() > MAX_BLOCK_BYTES {
            return;
        }
        if let Some(tree) = name.first()
            && let Some(blocks) = self.0.get_mut(usize::from(*tree))
        {
            blocks.rotate_right(1);
            blocks[0] = Some((name.clone(), block.clone()));
        }
    }
}
