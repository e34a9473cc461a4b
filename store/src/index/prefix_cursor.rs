//! Reading one prefix of a tree after the other, continuing at the last position.
//!
//! Subjects with consecutive ids usually share a block. Reading them in that order looks up and decodes each
//! block once.
use super::block::{Block, Name};
use super::block_source::{BlockSource, Reading};
use crate::Error;
use std::ops::Bound;
use std::sync::Arc;

/// The position up to which a tree was read.
///
/// Invariant: no key lies between the keys that begin with `prefix` and the pending key `key`, and none
/// between that key and `at`. Without a pending key, none lies between the keys that begin with `prefix` and
/// `at`. It holds until the index changes.
#[derive(Debug, Default)]
pub(crate) struct PrefixCursor {
    /// The instance and sequence of the index for which this is valid.
    state: (u64, u64),
    prefix: Vec<u8>,
    block: Option<Arc<Block>>,
    /// The position of the entry after `key` in the block.
    at: usize,
    key: Vec<u8>,
    /// Whether `key` is still to be visited.
    has_pending_key: bool,
}

impl PrefixCursor {
    /// Returns the block to continue in, if the keys of the prefix can be in it and not before it.
    fn block_for(&self, state: (u64, u64), prefix: &[u8]) -> Option<Arc<Block>> {
        let is_later = *prefix > *self.prefix && !prefix.starts_with(&self.prefix);
        let block = self.block.as_ref().filter(|_| self.state == state && is_later)?;
        block.end().is_none_or(|end| end > prefix).then(|| block.clone())
    }
}

/// The block of the last lookup.
#[derive(Debug, Default)]
pub(crate) struct BlockHint {
    /// The instance and sequence of the index for which this is valid.
    state: (u64, u64),
    /// The block with its name.
    block: Option<(Name, Arc<Block>)>,
}

impl BlockHint {
    fn covers_key(&self, state: (u64, u64), key: &[u8]) -> bool {
        self.block.as_ref().is_some_and(|(name, block)| {
            self.state == state && **name <= *key && block.end().is_none_or(|end| end > key)
        })
    }
}

/// Reads nearby keys one after the other.
pub(super) trait ReadNearby: BlockSource {
    /// Looks up a key that may be in the same block as the last one.
    fn get_with_hint<T>(
        &self,
        hint: &mut BlockHint,
        state: (u64, u64),
        key: &[u8],
        read: impl FnOnce(&[u8]) -> T,
    ) -> Result<Option<T>, Error> {
        if !hint.covers_key(state, key) {
            let block = self.find_block(Bound::Included(key), key, Reading::Again)?;
            *hint = BlockHint { state, block: Some(block) };
        }
        Ok(hint.block.as_ref().and_then(|(_, block)| block.get(key)).map(read))
    }

    /// Passes the rest of each key that begins with `prefix` to `visit`. `state` must differ for each index
    /// and after every change.
    fn read_prefix(
        &self,
        cursor: &mut PrefixCursor,
        state: (u64, u64),
        prefix: &[u8],
        visit: &mut dyn FnMut(&[u8]) -> Result<(), Error>,
    ) -> Result<(), Error> {
        let mut block = if let Some(block) = cursor.block_for(state, prefix) {
            block
        } else {
            let (_, block) = self.find_block(Bound::Included(prefix), prefix, Reading::Once)?;
            (cursor.at, cursor.has_pending_key) = (block.seek(0, 0, prefix).at, false);
            cursor.key.clear();
            cursor.key.extend_from_slice(prefix);
            block
        };
        // Cleared first, so that a failure leaves no position.
        cursor.block = None;
        cursor.state = state;
        cursor.prefix.clear();
        cursor.prefix.extend_from_slice(prefix);
        loop {
            if std::mem::take(&mut cursor.has_pending_key) {
                if let Some(rest) = cursor.key.strip_prefix(prefix) {
                    visit(rest)?;
                } else if *cursor.key > *prefix {
                    cursor.has_pending_key = true;
                    cursor.block = Some(block);
                    return Ok(());
                }
            }
            if block.read_next(&mut cursor.at, &mut cursor.key).is_some() {
                cursor.has_pending_key = true;
                continue;
            }
            let Some(end) = block.end() else { return Ok(()) };
            block = self.load_block(end, Reading::Once)?;
            cursor.at = 0;
            cursor.key.clear();
        }
    }
}

impl<S: BlockSource + ?Sized> ReadNearby for S {}

#[cfg(test)]
mod tests {
    use super::super::blocks::Blocks;
    use super::super::engine::Engine;
    use super::super::key::Shape;
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    fn blocks(folder: &std::path::Path, keys: &BTreeSet<Vec<u8>>) -> Blocks {
        let (engine, ()) = Engine::open(folder, |_, _| Ok(())).unwrap();
        let mut blocks = Blocks::new(engine, |_| Shape { has_values: false, max_bytes: 96 });
        for key in keys {
            blocks.insert(key, &[]).unwrap();
        }
        blocks
    }

    /// Keys of the tree's byte, an id of one byte, and up to 29 more bytes.
    fn keys() -> impl Strategy<Value = BTreeSet<Vec<u8>>> {
        let key = (0_u8..40, prop::collection::vec(any::<u8>(), 1..30)).prop_map(|(id, rest)| {
            let mut key = vec![3, id];
            key.extend(rest);
            key
        });
        prop::collection::btree_set(key, 0..80)
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(32))]
        #[test]
        fn each_prefix_returns_its_keys_in_any_order_of_reading(
            keys in keys(),
            order in prop::collection::vec((0_u8..41, any::<bool>()), 1..120),
        ) {
            let dir = tempfile::tempdir().unwrap();
            let mut keys = keys;
            let mut blocks = blocks(dir.path(), &keys);
            let (mut cursor, mut hint) = (PrefixCursor::default(), BlockHint::default());
            let mut changes = 0;
            for (at, (id, ascending)) in order.into_iter().enumerate() {
                let id = if ascending { u8::try_from(at % 41).unwrap() } else { id };
                if id == 40 {
                    let new = vec![3, u8::try_from(at % 40).unwrap(), 7, 7];
                    blocks.insert(&new, &[]).unwrap();
                    keys.insert(new);
                    changes += 1;
                }
                let mut found = Vec::new();
                blocks
                    .read_prefix(&mut cursor, (1, changes), &[3, id], &mut |rest| {
                        found.push([&[3, id], rest].concat());
                        Ok(())
                    })
                    .unwrap();
                let expected: Vec<_> =
                    keys.iter().filter(|key| key.starts_with(&[3, id])).cloned().collect();
                prop_assert_eq!(found, expected);
                let one = [3, id, 7, 7];
                let found = blocks.get_with_hint(&mut hint, (1, changes), &one, |_| ()).unwrap();
                prop_assert_eq!(found.is_some(), keys.contains(one.as_slice()));
            }
        }
    }
}
