//! Sorted keys in memory that never change, each of which exists or was deleted.
use super::block::Block;
use super::key::damaged_entry;
use super::merged::DELETED_VALUE;
use crate::Error;
use std::ops::Range;
use std::sync::Arc;

/// The flag before a key that exists.
const LIVE: u8 = 0;
/// The flag before a key that was deleted.
const DELETED: u8 = 1;

/// The number of entries of a block from which on memory is reserved for all. A lookup of one value finds fewer.
const FEW_ENTRIES: usize = 4;

/// Keys with flags, one behind the other.
#[derive(Debug, Default)]
pub(super) struct Entries {
    bytes: Vec<u8>,
    /// Where each entry ends. A frame of 256 MiB has fewer bytes of keys than fit.
    ends: Vec<u32>,
}

impl Entries {
    /// Returns the entries of a block from one key up to another, exclusive.
    pub(super) fn of_block(block: &Block, (from, to): (&[u8], &[u8])) -> Result<Self, Error> {
        let mut entries = Self::default();
        let (mut at, mut key) = (block.seek(0, 0, from).at, from.to_vec());
        while let Some(value) = block.read_next(&mut at, &mut key)
            && *key < *to
        {
            let is_deleted = value == DELETED_VALUE;
            if !is_deleted && !value.is_empty() {
                return Err(damaged_entry("the value of", &key));
            }
            if entries.len() == FEW_ENTRIES {
                // The keys of neighbours have about half of their bytes in common.
                entries.bytes.reserve(2 * block.memory_bytes());
            }
            entries.push(&key, is_deleted);
        }
        Ok(entries)
    }

    /// Merges sorted entries, newest first. Of equal keys, the newest counts.
    pub(super) fn merge(runs: &[Arc<Self>]) -> Self {
        let mut merged = Self {
            bytes: Vec::with_capacity(runs.iter().map(|run| run.bytes.len()).sum()),
            ends: Vec::with_capacity(runs.iter().map(|run| run.ends.len()).sum()),
        };
        for (run, at) in in_order(runs) {
            merged.push(run.key(at), run.is_deleted(at));
        }
        merged.bytes.shrink_to_fit();
        merged.ends.shrink_to_fit();
        merged
    }

    /// Sorts entries that were pushed in any order. Of equal keys, the last one counts.
    pub(super) fn sort(&self) -> Self {
        let mut order: Vec<usize> = (0..self.len()).rev().collect();
        order.sort_by(|one, other| self.key(*one).cmp(self.key(*other)));
        order.dedup_by(|one, other| self.key(*one) == self.key(*other));
        let mut sorted = Self {
            bytes: Vec::with_capacity(self.bytes.len()),
            ends: Vec::with_capacity(self.ends.len()),
        };
        for at in order {
            sorted.push(self.key(at), self.is_deleted(at));
        }
        sorted
    }

    pub(super) fn push(&mut self, key: &[u8], is_deleted: bool) {
        self.bytes.push(if is_deleted { DELETED } else { LIVE });
        self.bytes.extend_from_slice(key);
        self.ends.push(u32::try_from(self.bytes.len()).unwrap_or(u32::MAX));
    }

    pub(super) fn clear(&mut self) {
        *self = Self::default();
    }

    pub(super) fn len(&self) -> usize {
        self.ends.len()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }

    /// Returns the memory of the entries, in bytes.
    pub(super) fn memory_bytes(&self) -> usize {
        self.bytes.capacity() + self.ends.capacity() * size_of::<u32>()
    }

    fn entry(&self, at: usize) -> &[u8] {
        let end = |at: usize| self.ends.get(at).map_or(0, |end| *end as usize);
        let start = at.checked_sub(1).map_or(0, end);
        self.bytes.get(start..end(at)).unwrap_or_default()
    }

    /// Returns the key at a position; nothing past the end.
    pub(super) fn key(&self, at: usize) -> &[u8] {
        self.entry(at).get(1..).unwrap_or_default()
    }

    pub(super) fn is_deleted(&self, at: usize) -> bool {
        self.entry(at).first() == Some(&DELETED)
    }

    /// Returns the positions of the keys from one up to another, exclusive.
    pub(super) fn find(&self, (from, to): (&[u8], &[u8])) -> Range<usize> {
        self.count_before(from)..self.count_before(to)
    }

    /// Returns the number of entries before a key.
    fn count_before(&self, key: &[u8]) -> usize {
        let (mut from, mut to) = (0, self.len());
        while from < to {
            let middle = usize::midpoint(from, to);
            if self.key(middle) < key {
                from = middle + 1;
            } else {
                to = middle;
            }
        }
        from
    }
}

/// Returns the entries of sorted runs, newest first, in order: the newest of those with the same key.
pub(super) fn in_order(runs: &[Arc<Entries>]) -> Vec<(&Entries, usize)> {
    let entries = runs.iter().map(|run| (&**run, run.len()));
    let mut order: Vec<_> =
        entries.flat_map(|(run, length)| (0..length).map(move |at| (run, at))).collect();
    // Stable, and fast for parts that are sorted already.
    order.sort_by(|(run, at), (other, other_at)| run.key(*at).cmp(other.key(*other_at)));
    order.dedup_by(|(run, at), (kept, kept_at)| run.key(*at) == kept.key(*kept_at));
    order
}

#[cfg(test)]
mod tests {
    use super::super::key::Shape;
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeMap;

    type Changes = Vec<(Vec<u8>, bool)>;

    #[test]
    fn a_value_that_no_entry_has_is_damage() {
        let mut block = Block::new(Shape { has_values: true, max_bytes: 4_096 });
        for (key, value) in [(b"a", &[][..]), (b"b", DELETED_VALUE), (b"c", &[7])] {
            block.insert(key, value);
        }
        let found = Entries::of_block(&block, (b"a", b"c")).unwrap();
        assert_eq!(all(&found), [(b"a".to_vec(), false), (b"b".to_vec(), true)]);
        assert!(matches!(Entries::of_block(&block, (b"b", b"d")), Err(Error::Index(_))));
    }

    fn changes() -> impl Strategy<Value = Changes> {
        prop::collection::vec((prop::collection::vec(0_u8..3, 0..4), any::<bool>()), 0..40)
    }

    fn pushed(changes: &Changes) -> Entries {
        let mut entries = Entries::default();
        for (key, is_deleted) in changes {
            entries.push(key, *is_deleted);
        }
        entries.sort()
    }

    fn all(entries: &Entries) -> Changes {
        (0..entries.len()).map(|at| (entries.key(at).to_vec(), entries.is_deleted(at))).collect()
    }

    proptest! {
        #[test]
        fn the_newest_of_equal_keys_counts(
            older in changes(),
            newer in changes(),
            key in prop::collection::vec(0_u8..3, 0..4),
        ) {
            let model: BTreeMap<_, _> = older.iter().chain(&newer).cloned().collect();
            let merged = Entries::merge(&[pushed(&newer).into(), pushed(&older).into()]);
            let expected: Changes = model.clone().into_iter().collect();
            prop_assert_eq!(all(&merged), expected);
            let before = model.range(..key.clone()).count();
            prop_assert_eq!(merged.find((&[], &key)), 0..before);
        }
    }
}
