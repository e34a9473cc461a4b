//! A block: sorted entries, from some hundred bytes to a few thousand. Each key is front-coded against the
//! key before it.
//!
//! The bytes in memory are the bytes on disk, so a block takes no more memory than its content. Searching and
//! changing do not decode whole keys. They compare two lengths: how much of the searched key the previous
//! entry matches, and how much an entry shares with the previous entry.
use super::key::{KeyBuffer, Shape};
use crate::Error;
use crate::varint::{self, Input};
use std::ops::ControlFlow;
use std::sync::Arc;

/// The name of a block.
pub(crate) type Name = Arc<[u8]>;

/// Bytes reserved when a block grows. Doubling the capacity would leave half of it unused.
const GROWTH_BYTES: usize = 96;

/// Sorted entries, and the name of the next block.
#[derive(Debug, Clone)]
pub(crate) struct Block {
    shape: Shape,
    entries: Vec<u8>,
    /// The last key, so that appending ascending keys needs no search. `None` until it is needed.
    last: Option<Vec<u8>>,
    /// The name of the next block, which is the first key that does not belong here. `None` in the last
    /// block.
    end: Option<Name>,
    /// The checksum of the entry that the engine has under this block's name; 0 if it has none.
    stored: u64,
    /// The number of snapshots for which the keys here are preserved: the oldest ones.
    preserved_for: u64,
}

struct Entry<'a> {
    shared: usize,
    suffix: &'a [u8],
    value: &'a [u8],
    suffix_at: usize,
    next: usize,
}

/// The position at which a key is, or would be inserted.
pub(crate) struct KeyPosition {
    pub(crate) at: usize,
    /// How many bytes the key shares with the key before `at`.
    pub(crate) matched: usize,
    exact: bool,
}

/// What follows within a prefix.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Following {
    Key,
    /// A key that does not begin with the prefix.
    OtherPrefix,
    EndOfBlock,
    /// A key that no quad has.
    Damage,
}

/// The callback of a scan. It gets each entry's key and value.
pub(crate) type VisitEntry<'v> = dyn FnMut(&[u8], &[u8]) -> Result<ControlFlow<()>, Error> + 'v;

/// The result of an insertion.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Inserted {
    /// The key is new. `last` says whether it is now the block's last.
    New { last: bool },
    /// The key existed; its value was replaced.
    Replaced,
}

pub(crate) fn common_prefix_len(a: &[u8], b: &[u8]) -> usize {
    a.iter().zip(b).take_while(|(a, b)| a == b).count()
}

fn bytes_after(bytes: &[u8], at: usize) -> &[u8] {
    bytes.get(at..).unwrap_or_default()
}

fn bytes_before(bytes: &[u8], at: usize) -> &[u8] {
    bytes.get(..at).unwrap_or_default()
}

impl Block {
    /// Creates a block without entries that extends to the end of its tree.
    pub(crate) fn new(shape: Shape) -> Self {
        Self { shape, entries: Vec::new(), last: None, end: None, stored: 0, preserved_for: 0 }
    }

    /// Decodes a block written by [`Block::encode`]. Returns `None` if the bytes are not a block.
    pub(crate) fn decode(shape: Shape, mut bytes: Vec<u8>) -> Option<Self> {
        let mut input = Input::new(&bytes);
        let end = match input.read_length()? {
            0 => None,
            length => Some(input.take(length - 1)?.into()),
        };
        let entries_at = bytes.len() - input.len();
        bytes.drain(..entries_at);
        let block = Self { shape, entries: bytes, last: None, end, stored: 0, preserved_for: 0 };
        let (mut at, mut key_bytes) = (0, 0);
        while at < block.entries.len() {
            let entry = block.read_entry(at)?;
            if entry.shared > key_bytes || (at > 0 && entry.suffix.is_empty()) {
                return None;
            }
            key_bytes = entry.shared + entry.suffix.len();
            at = entry.next;
        }
        Some(block)
    }

    /// Appends the block's bytes on disk to `out`.
    pub(crate) fn encode(&self, out: &mut Vec<u8>) {
        match &self.end {
            None => varint::write_number(out, 0),
            Some(end) => {
                varint::write_length(out, end.len() + 1);
                out.extend_from_slice(end);
            }
        }
        out.extend_from_slice(&self.entries);
    }

    pub(crate) fn stored_checksum(&self) -> u64 {
        self.stored
    }

    /// Sets the checksum of the entry that the engine has under this block's name.
    pub(crate) fn set_stored_checksum(&mut self, checksum: u64) {
        self.stored = checksum;
    }

    /// Returns the number of snapshots for which the keys of this block are preserved: the oldest ones.
    pub(crate) fn preserved_for(&self) -> u64 {
        self.preserved_for
    }

    /// Sets the number of snapshots for which the keys of this block are preserved.
    pub(crate) fn set_preserved_for(&mut self, snapshots: u64) {
        self.preserved_for = snapshots;
    }

    pub(crate) fn end(&self) -> Option<&[u8]> {
        self.end.as_deref()
    }

    /// Returns whether the block is so small that it may be joined with the next.
    pub(crate) fn is_small(&self) -> bool {
        self.entries.len() < self.shape.max_bytes / 4
    }

    /// Returns whether both blocks fit into one, with some space left.
    pub(crate) fn fits_with(&self, right: &Self) -> bool {
        self.is_empty() || self.entries.len() + right.entries.len() <= self.shape.max_bytes * 3 / 4
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// Returns whether an entry of that many bytes fits. An empty block accepts any entry.
    pub(crate) fn fits_bytes(&self, bytes: usize) -> bool {
        self.is_empty() || self.entries.len() + bytes <= self.shape.max_bytes
    }

    /// Returns the value of the entry at `at` and advances `at`; `None` at the end. `key` must be the previous entry's key
    /// or the one that was sought, and becomes this entry's key.
    pub(crate) fn read_next(&self, at: &mut usize, key: &mut Vec<u8>) -> Option<&[u8]> {
        let entry = self.read_entry(*at)?;
        key.truncate(entry.shared);
        key.extend_from_slice(entry.suffix);
        *at = entry.next;
        Some(entry.value)
    }

    /// Reads the entry at `at` if its key has the first `prefix` bytes of `key`. Then it advances `at`, and
    /// `key` becomes the entry's key. Before, `key` must be the previous entry's key or the one that was sought.
    pub(crate) fn read_within(
        &self,
        prefix: usize,
        at: &mut usize,
        key: &mut KeyBuffer,
    ) -> Following {
        let Some(entry) = self.read_entry(*at) else { return Following::EndOfBlock };
        if entry.shared < prefix {
            let missing = key.get(entry.shared..prefix);
            if !missing.is_some_and(|missing| entry.suffix.starts_with(missing)) {
                return Following::OtherPrefix;
            }
        }
        key.truncate(entry.shared);
        if !key.extend(entry.suffix) {
            return Following::Damage;
        }
        *at = entry.next;
        Following::Key
    }

    /// Returns the value of the entry at `at`.
    pub(crate) fn read_value(&self, at: usize) -> Option<&[u8]> {
        self.read_entry(at).map(|entry| entry.value)
    }

    /// Returns the approximate size of the block in memory, in bytes.
    pub(crate) fn memory_bytes(&self) -> usize {
        const BASE: usize = 160;
        let last_bytes = self.last.as_ref().map_or(0, Vec::capacity);
        BASE + self.entries.capacity() + last_bytes + self.end().map_or(0, <[u8]>::len)
    }

    fn read_entry(&self, at: usize) -> Option<Entry<'_>> {
        let rest = self.entries.get(at..)?;
        if rest.is_empty() {
            return None;
        }
        let mut input = Input::new(rest);
        let (shared, length) = match rest {
            // Fast path: nearly always both numbers take one byte.
            [shared @ 0..0x80, length @ 0..0x80, rest @ ..] => {
                input = Input::new(rest);
                (usize::from(*shared), usize::from(*length))
            }
            _ => (input.read_length()?, input.read_length()?),
        };
        let suffix_at = at + rest.len() - input.len();
        let suffix = input.take(length)?;
        let value = if self.shape.has_values { input.read_bytes()? } else { &[] };
        Some(Entry { shared, suffix, value, suffix_at, next: at + rest.len() - input.len() })
    }

    fn find_position(&self, key: &[u8]) -> KeyPosition {
        self.seek(0, 0, key)
    }

    /// Returns the position of a key. `at` is where the search begins, and `matched` is how many bytes the key
    /// shares with the key before `at`, which must be smaller.
    pub(crate) fn seek(&self, mut at: usize, mut matched: usize, key: &[u8]) -> KeyPosition {
        loop {
            at = self.skip_shared(at, matched);
            let Some(entry) = self.read_entry(at) else { break };
            if entry.shared < matched {
                break;
            }
            if entry.shared == matched {
                let sought = bytes_after(key, matched);
                let more = common_prefix_len(entry.suffix, sought);
                match (entry.suffix.get(more), sought.get(more)) {
                    (None, None) => return KeyPosition { at, matched, exact: true },
                    (Some(here), Some(there)) if here > there => break,
                    (Some(_), None) => break,
                    _ => matched += more,
                }
            }
            at = entry.next;
        }
        KeyPosition { at, matched, exact: false }
    }

    /// Skips entries from `at` on that share more than `matched` with the previous one. It handles only entries whose
    /// lengths take one byte each: nearly all that a search passes.
    fn skip_shared(&self, mut at: usize, matched: usize) -> usize {
        while let Some([shared @ 0..0x80, length @ 0..0x80, ..]) = self.entries.get(at..)
            && usize::from(*shared) > matched
        {
            let mut next = at + 2 + usize::from(*length);
            if self.shape.has_values {
                let Some(bytes @ 0..0x80) = self.entries.get(next).copied() else { break };
                next += 1 + usize::from(bytes);
            }
            at = next;
        }
        at
    }

    /// Returns the value of a key.
    pub(crate) fn get(&self, key: &[u8]) -> Option<&[u8]> {
        let position = self.find_position(key);
        if position.exact { Some(self.read_entry(position.at)?.value) } else { None }
    }

    /// Inserts an entry, or replaces the value of an existing one.
    pub(crate) fn insert(&mut self, key: &[u8], value: &[u8]) -> Inserted {
        let last = self.last_key();
        let position = if last.is_empty() || *key > **last {
            let matched = common_prefix_len(last, key);
            KeyPosition { at: self.entries.len(), matched, exact: false }
        } else {
            self.find_position(key)
        };
        if position.exact {
            if let Some(entry) = self.read_entry(position.at)
                && self.shape.has_values
                && entry.value != value
            {
                let range = entry.suffix_at + entry.suffix.len()..entry.next;
                let mut new = Vec::with_capacity(value.len() + 2);
                varint::write_bytes(&mut new, value);
                self.entries.splice(range, new);
            }
            return Inserted::Replaced;
        }
        let mut new = Vec::with_capacity(key.len() + value.len() + 8);
        varint::write_length(&mut new, position.matched);
        varint::write_bytes(&mut new, bytes_after(key, position.matched));
        if self.shape.has_values {
            varint::write_bytes(&mut new, value);
        }
        if self.entries.capacity() < self.entries.len() + new.len() {
            self.entries.reserve_exact(new.len() + GROWTH_BYTES);
        }
        let mut replaced_to = position.at;
        let mut last = true;
        if let Some(next) = self.read_entry(position.at) {
            last = false;
            if next.shared == position.matched {
                let more = common_prefix_len(next.suffix, bytes_after(key, position.matched));
                varint::write_length(&mut new, position.matched + more);
                varint::write_length(&mut new, next.suffix.len() - more);
                replaced_to = next.suffix_at + more;
            }
        }
        if last {
            self.entries.extend_from_slice(&new);
            let last = self.last_key();
            last.truncate(position.matched);
            last.extend_from_slice(bytes_after(key, position.matched));
        } else {
            self.entries.splice(position.at..replaced_to, new);
        }
        Inserted::New { last }
    }

    /// Removes an entry. Returns `false` if the key does not exist.
    pub(crate) fn remove(&mut self, key: &[u8]) -> bool {
        let position = self.find_position(key);
        if !position.exact {
            return false;
        }
        let Some(entry) = self.read_entry(position.at) else { return false };
        let was_last = entry.next == self.entries.len();
        let mut new = Vec::new();
        let mut replaced_to = entry.next;
        if let Some(next) = self.read_entry(entry.next)
            && next.shared > entry.shared
        {
            let more = next.shared - entry.shared;
            varint::write_length(&mut new, entry.shared);
            varint::write_length(&mut new, next.suffix.len() + more);
            new.extend_from_slice(bytes_before(entry.suffix, more));
            replaced_to = next.suffix_at;
        }
        self.entries.splice(position.at..replaced_to, new);
        if was_last {
            self.last = None;
        }
        true
    }

    /// Returns the last key; empty in an empty block.
    fn last_key(&mut self) -> &mut Vec<u8> {
        let last = self.last.take().unwrap_or_else(|| {
            let (mut last, mut at) = (Vec::new(), 0);
            while self.read_next(&mut at, &mut last).is_some() {}
            last
        });
        self.last.insert(last)
    }

    fn visit_entries(&self, visit: &mut impl FnMut(&[u8], &[u8])) {
        let mut key = Vec::new();
        let mut at = 0;
        while let Some(entry) = self.read_entry(at) {
            key.truncate(entry.shared);
            key.extend_from_slice(entry.suffix);
            visit(&key, entry.value);
            at = entry.next;
        }
    }

    /// Passes the entries from `from` on to `visit` until it breaks or fails.
    pub(crate) fn scan(
        &self,
        from: &[u8],
        visit: &mut VisitEntry<'_>,
    ) -> Result<ControlFlow<()>, Error> {
        let mut key = from.to_vec();
        let mut at = self.find_position(from).at;
        while let Some(value) = self.read_next(&mut at, &mut key) {
            if visit(&key, value)?.is_break() {
                return Ok(ControlFlow::Break(()));
            }
        }
        Ok(ControlFlow::Continue(()))
    }

    /// Returns all entries, for reading them backwards.
    pub(crate) fn to_vec(&self) -> Vec<(Vec<u8>, Vec<u8>)> {
        let mut all = Vec::new();
        self.visit_entries(&mut |key, value| all.push((key.to_vec(), value.to_vec())));
        all
    }

    /// Moves the upper part of an oversized block into a new one. Returns the new block and its name. After
    /// an insertion at the end only that entry moves, so that ascending keys leave full blocks behind.
    pub(crate) fn split_off_upper(&mut self, appended: bool) -> Option<(Name, Self)> {
        if self.entries.len() <= self.shape.max_bytes {
            return None;
        }
        let half = if appended { self.entries.len() } else { self.entries.len() / 2 };
        let (mut key, mut at) = (Vec::new(), 0);
        let (mut cut, mut last) = (0, Vec::new());
        while let Some(entry) = self.read_entry(at) {
            if at > 0 {
                if cut > 0 && at > self.shape.max_bytes {
                    break;
                }
                cut = at;
                last.clone_from(&key);
                if at >= half {
                    break;
                }
            }
            key.truncate(entry.shared);
            key.extend_from_slice(entry.suffix);
            at = entry.next;
        }
        if cut == 0 {
            return None;
        }
        let (shared, tail, suffix) = {
            let first = self.read_entry(cut)?;
            (first.shared, first.suffix_at + first.suffix.len(), first.suffix.to_vec())
        };
        let mut first = bytes_before(&last, shared).to_vec();
        first.extend_from_slice(&suffix);
        let mut entries = Vec::with_capacity(self.entries.len() - cut + first.len() + GROWTH_BYTES);
        varint::write_length(&mut entries, 0);
        varint::write_bytes(&mut entries, &first);
        entries.extend_from_slice(bytes_after(&self.entries, tail));
        // The shortest key that is greater than all remaining keys and not greater than any moved one.
        let name: Name = bytes_before(&first, shared + 1).into();
        let right = Self {
            shape: self.shape,
            entries,
            last: self.last.replace(last),
            end: self.end.replace(name.clone()),
            stored: 0,
            preserved_for: self.preserved_for,
        };
        self.entries.truncate(cut);
        self.entries.shrink_to(cut + GROWTH_BYTES);
        Some((name, right))
    }

    /// Appends the entries of the block that follows.
    pub(crate) fn append_block(&mut self, right: &Self) {
        if let Some(first) = right.read_entry(0) {
            let shared = common_prefix_len(self.last_key(), first.suffix);
            varint::write_length(&mut self.entries, shared);
            varint::write_bytes(&mut self.entries, bytes_after(first.suffix, shared));
            self.entries.extend_from_slice(bytes_after(
                &right.entries,
                first.suffix_at + first.suffix.len(),
            ));
            self.last.clone_from(&right.last);
        }
        self.end.clone_from(&right.end);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeMap;

    const SHAPE: Shape = Shape { has_values: true, max_bytes: 512 };

    fn check(block: &Block, model: &BTreeMap<Vec<u8>, Vec<u8>>) -> Result<(), TestCaseError> {
        let expected: Vec<_> = model.iter().map(|(k, v)| (k.clone(), v.clone())).collect();
        prop_assert_eq!(block.to_vec(), expected);
        let mut bytes = Vec::new();
        block.encode(&mut bytes);
        let mut again = Block::decode(SHAPE, bytes).unwrap();
        prop_assert_eq!(&again.entries, &block.entries);
        let mut block = block.clone();
        prop_assert_eq!(again.last_key(), block.last_key());
        prop_assert_eq!(&again.end, &block.end);
        Ok(())
    }

    fn key() -> impl Strategy<Value = Vec<u8>> {
        prop::collection::vec(0_u8..3, 1..7)
    }

    proptest! {
        #[test]
        fn a_block_is_a_sorted_map(
            changes in prop::collection::vec((key(), prop::option::of(key())), 0..60)
        ) {
            let mut block = Block::new(SHAPE);
            let mut model = BTreeMap::new();
            for (key, value) in changes {
                if let Some(value) = value {
                    let new = model.insert(key.clone(), value.clone()).is_none();
                    prop_assert_eq!(
                        matches!(block.insert(&key, &value), Inserted::New { .. }), new);
                } else {
                    prop_assert_eq!(block.remove(&key), model.remove(&key).is_some());
                }
                prop_assert_eq!(block.get(&key), model.get(&key).map(Vec::as_slice));
            }
            check(&block, &model)?;
        }

        #[test]
        fn a_split_block_is_whole_again_when_its_parts_are_joined(
            entries in prop::collection::btree_map(key(), prop::collection::vec(any::<u8>(), 0..90), 2..60),
            appended: bool,
        ) {
            let mut block = Block::new(SHAPE);
            for (key, value) in &entries {
                block.insert(key, value);
            }
            if let Some((name, right)) = block.split_off_upper(appended) {
                let (low, high): (BTreeMap<_, _>, BTreeMap<_, _>) =
                    entries.clone().into_iter().partition(|(key, _)| **key < *name);
                prop_assert!(!low.is_empty() && !high.is_empty());
                prop_assert_eq!(block.end(), Some(&*name));
                check(&block, &low)?;
                check(&right, &high)?;
                block.append_block(&right);
            }
            check(&block, &entries)?;
        }

        #[test]
        fn any_bytes_are_a_block_or_refused(bytes: Vec<u8>, valued: bool) {
            if let Some(block) = Block::decode(Shape { has_values: valued, max_bytes: 512 }, bytes) {
                block.to_vec();
            }
        }
    }
}
