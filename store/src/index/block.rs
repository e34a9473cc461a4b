//! A block: some hundred bytes, or a few thousand, of sorted entries, each key front-coded against the one before it.
//!
//! The bytes in memory are the bytes on disk, so that a block costs what it holds. Searching and
//! changing need no key in full: how much of the sought key the entry before it matches, against
//! how much an entry shares with the entry before it, tells which of the two is greater.
use crate::Error;
use crate::varint::{self, Input};
use std::ops::ControlFlow;

/// What all blocks of a tree have in common.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Shape {
    /// Whether entries have values.
    pub(crate) valued: bool,
    /// A block is split when its entries take more bytes than this.
    pub(crate) full: usize,
}

/// Bytes that a block grows by beyond what it needs; doubling would leave half of them empty.
const SPARE: usize = 96;

/// Sorted entries, and where the next block begins.
#[derive(Debug, Clone)]
pub(crate) struct Block {
    shape: Shape,
    entries: Vec<u8>,
    /// The last key, so that ascending keys are appended without a search.
    last: Vec<u8>,
    /// The first key that does not belong here but to the block of that name; none in the last one.
    end: Option<Box<[u8]>>,
    /// The checksum of what the engine has under the block's name; 0 when it has nothing.
    stored: u64,
}

struct Entry<'a> {
    shared: usize,
    suffix: &'a [u8],
    value: &'a [u8],
    suffix_at: usize,
    next: usize,
}

/// Where a key is, or belongs.
struct Place {
    at: usize,
    /// How many bytes the key has in common with the key before `at`.
    matched: usize,
    exact: bool,
}

/// What a scan calls for each entry, with its key and value.
pub(crate) type Visit<'v> = dyn FnMut(&[u8], &[u8]) -> Result<ControlFlow<()>, Error> + 'v;

/// What an insertion did.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Inserted {
    /// The key is new; `last` when it is now the block's last.
    New { last: bool },
    /// The key was there.
    Replaced,
}

fn common(a: &[u8], b: &[u8]) -> usize {
    a.iter().zip(b).take_while(|(a, b)| a == b).count()
}

fn after(bytes: &[u8], at: usize) -> &[u8] {
    bytes.get(at..).unwrap_or_default()
}

fn before(bytes: &[u8], at: usize) -> &[u8] {
    bytes.get(..at).unwrap_or_default()
}

impl Block {
    /// A block without entries that reaches to the end of its tree.
    pub(crate) fn new(shape: Shape) -> Self {
        Self { shape, entries: Vec::new(), last: Vec::new(), end: None, stored: 0 }
    }

    /// Reads a block as [`Block::encode`] wrote it; `None` when it cannot be one.
    pub(crate) fn decode(shape: Shape, bytes: &[u8]) -> Option<Self> {
        let mut input = Input::new(bytes);
        let end = match input.length()? {
            0 => None,
            length => Some(input.take(length - 1)?.into()),
        };
        let mut block =
            Self { shape, entries: input.rest().to_vec(), last: Vec::new(), end, stored: 0 };
        let mut last = Vec::new();
        let mut at = 0;
        while at < block.entries.len() {
            let entry = block.entry(at)?;
            if entry.shared > last.len() || (at > 0 && entry.suffix.is_empty()) {
                return None;
            }
            last.truncate(entry.shared);
            last.extend_from_slice(entry.suffix);
            at = entry.next;
        }
        block.last = last;
        Some(block)
    }

    /// The bytes of the block on disk.
    pub(crate) fn encode(&self, out: &mut Vec<u8>) {
        match &self.end {
            None => varint::put(out, 0),
            Some(end) => {
                varint::put_length(out, end.len() + 1);
                out.extend_from_slice(end);
            }
        }
        out.extend_from_slice(&self.entries);
    }

    pub(crate) fn stored(&self) -> u64 {
        self.stored
    }

    /// Notes the checksum of what the engine has under the block's name.
    pub(crate) fn set_stored(&mut self, checksum: u64) {
        self.stored = checksum;
    }

    pub(crate) fn end(&self) -> Option<&[u8]> {
        self.end.as_deref()
    }

    /// Whether so little is left that it may fit into one block with the next.
    pub(crate) fn is_small(&self) -> bool {
        self.entries.len() < self.shape.full / 4
    }

    /// Whether the two may become one, with room left.
    pub(crate) fn fits(&self, right: &Self) -> bool {
        self.is_empty() || self.entries.len() + right.entries.len() <= self.shape.full * 3 / 4
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// Whether so many more bytes leave the block no longer than it should be; an empty one has room
    /// for any entry.
    pub(crate) fn has_room_for(&self, bytes: usize) -> bool {
        self.is_empty() || self.entries.len() + bytes <= self.shape.full
    }

    /// The value of the entry at `at`, which moves on to the next; `key`, which must be the key of the
    /// entry before it, becomes its key. Nothing at the end.
    pub(crate) fn step(&self, at: &mut usize, key: &mut Vec<u8>) -> Option<&[u8]> {
        let entry = self.entry(*at)?;
        key.truncate(entry.shared);
        key.extend_from_slice(entry.suffix);
        *at = entry.next;
        Some(entry.value)
    }

    /// About how many bytes of memory the block takes.
    pub(crate) fn weight(&self) -> usize {
        const BASE: usize = 160;
        BASE + self.entries.capacity() + self.last.capacity() + self.end().map_or(0, <[u8]>::len)
    }

    fn entry(&self, at: usize) -> Option<Entry<'_>> {
        let rest = self.entries.get(at..)?;
        if rest.is_empty() {
            return None;
        }
        let mut input = Input::new(rest);
        let (shared, length) = match rest {
            // Nearly always both numbers are one byte.
            [shared @ 0..0x80, length @ 0..0x80, rest @ ..] => {
                input = Input::new(rest);
                (usize::from(*shared), usize::from(*length))
            }
            _ => (input.length()?, input.length()?),
        };
        let suffix_at = at + rest.len() - input.len();
        let suffix = input.take(length)?;
        let value = if self.shape.valued { input.bytes()? } else { &[] };
        Some(Entry { shared, suffix, value, suffix_at, next: at + rest.len() - input.len() })
    }

    fn place(&self, key: &[u8]) -> Place {
        let (mut at, mut matched) = (0, 0);
        loop {
            at = self.skip(at, matched);
            let Some(entry) = self.entry(at) else { break };
            if entry.shared < matched {
                break;
            }
            if entry.shared == matched {
                let sought = after(key, matched);
                let more = common(entry.suffix, sought);
                match (entry.suffix.get(more), sought.get(more)) {
                    (None, None) => return Place { at, matched, exact: true },
                    (Some(here), Some(there)) if here > there => break,
                    (Some(_), None) => break,
                    _ => matched += more,
                }
            }
            at = entry.next;
        }
        Place { at, matched, exact: false }
    }

    /// Where the entries from `at` on stop that share more than `matched` with the one before, whose two
    /// numbers are one byte each, and that have no values: nearly all that a search passes.
    fn skip(&self, mut at: usize, matched: usize) -> usize {
        while !self.shape.valued
            && let Some([shared @ 0..0x80, length @ 0..0x80, ..]) = self.entries.get(at..)
            && usize::from(*shared) > matched
        {
            at += 2 + usize::from(*length);
        }
        at
    }

    /// The value of a key.
    pub(crate) fn get(&self, key: &[u8]) -> Option<&[u8]> {
        let place = self.place(key);
        if place.exact { Some(self.entry(place.at)?.value) } else { None }
    }

    /// Puts an entry in place of the one of the same key.
    pub(crate) fn insert(&mut self, key: &[u8], value: &[u8]) -> Inserted {
        let place = if self.is_empty() || *key > *self.last {
            Place { at: self.entries.len(), matched: common(&self.last, key), exact: false }
        } else {
            self.place(key)
        };
        if place.exact {
            if let Some(entry) = self.entry(place.at)
                && self.shape.valued
                && entry.value != value
            {
                let range = entry.suffix_at + entry.suffix.len()..entry.next;
                let mut new = Vec::with_capacity(value.len() + 2);
                varint::put_bytes(&mut new, value);
                self.entries.splice(range, new);
            }
            return Inserted::Replaced;
        }
        let mut new = Vec::with_capacity(key.len() + value.len() + 8);
        varint::put_length(&mut new, place.matched);
        varint::put_bytes(&mut new, after(key, place.matched));
        if self.shape.valued {
            varint::put_bytes(&mut new, value);
        }
        if self.entries.capacity() < self.entries.len() + new.len() {
            self.entries.reserve_exact(new.len() + SPARE);
        }
        let mut replaced_to = place.at;
        let mut last = true;
        if let Some(next) = self.entry(place.at) {
            last = false;
            if next.shared == place.matched {
                let more = common(next.suffix, after(key, place.matched));
                varint::put_length(&mut new, place.matched + more);
                varint::put_length(&mut new, next.suffix.len() - more);
                replaced_to = next.suffix_at + more;
            }
        }
        if last {
            self.entries.extend_from_slice(&new);
            self.last.truncate(place.matched);
            self.last.extend_from_slice(after(key, place.matched));
        } else {
            self.entries.splice(place.at..replaced_to, new);
        }
        Inserted::New { last }
    }

    /// Removes an entry; `false` when there is none of that key.
    pub(crate) fn remove(&mut self, key: &[u8]) -> bool {
        let place = self.place(key);
        if !place.exact {
            return false;
        }
        let Some(entry) = self.entry(place.at) else { return false };
        let was_last = entry.next == self.entries.len();
        let mut new = Vec::new();
        let mut replaced_to = entry.next;
        if let Some(next) = self.entry(entry.next)
            && next.shared > entry.shared
        {
            let more = next.shared - entry.shared;
            varint::put_length(&mut new, entry.shared);
            varint::put_length(&mut new, next.suffix.len() + more);
            new.extend_from_slice(before(entry.suffix, more));
            replaced_to = next.suffix_at;
        }
        self.entries.splice(place.at..replaced_to, new);
        if was_last {
            let mut last = Vec::new();
            self.walk(&mut |key, _| {
                last.clear();
                last.extend_from_slice(key);
            });
            self.last = last;
        }
        true
    }

    fn walk(&self, visit: &mut impl FnMut(&[u8], &[u8])) {
        let mut key = Vec::new();
        let mut at = 0;
        while let Some(entry) = self.entry(at) {
            key.truncate(entry.shared);
            key.extend_from_slice(entry.suffix);
            visit(&key, entry.value);
            at = entry.next;
        }
    }

    /// Hands the entries from `from` on to `visit`, until it breaks or fails.
    pub(crate) fn scan(
        &self,
        from: &[u8],
        visit: &mut Visit<'_>,
    ) -> Result<ControlFlow<()>, Error> {
        let mut key = Vec::new();
        let mut at = 0;
        let mut reached = false;
        while let Some(entry) = self.entry(at) {
            key.truncate(entry.shared);
            key.extend_from_slice(entry.suffix);
            reached = reached || *key >= *from;
            if reached && visit(&key, entry.value)?.is_break() {
                return Ok(ControlFlow::Break(()));
            }
            at = entry.next;
        }
        Ok(ControlFlow::Continue(()))
    }

    /// All entries, for those who read them backwards.
    pub(crate) fn to_vec(&self) -> Vec<(Vec<u8>, Vec<u8>)> {
        let mut all = Vec::new();
        self.walk(&mut |key, value| all.push((key.to_vec(), value.to_vec())));
        all
    }

    /// Moves the upper part of a block that is too full into a new one, whose name is returned
    /// with it. After an insertion at the end only that entry moves, so that ascending keys leave
    /// full blocks behind.
    pub(crate) fn split(&mut self, appended: bool) -> Option<(Box<[u8]>, Self)> {
        if self.entries.len() <= self.shape.full {
            return None;
        }
        let half = if appended { self.entries.len() } else { self.entries.len() / 2 };
        let (mut key, mut at) = (Vec::new(), 0);
        let (mut cut, mut last) = (0, Vec::new());
        while let Some(entry) = self.entry(at) {
            if at > 0 {
                if cut > 0 && at > self.shape.full {
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
            let first = self.entry(cut)?;
            (first.shared, first.suffix_at + first.suffix.len(), first.suffix.to_vec())
        };
        let mut first = before(&last, shared).to_vec();
        first.extend_from_slice(&suffix);
        let mut entries = Vec::with_capacity(self.entries.len() - cut + first.len() + SPARE);
        varint::put_length(&mut entries, 0);
        varint::put_bytes(&mut entries, &first);
        entries.extend_from_slice(after(&self.entries, tail));
        // The shortest key that is greater than all that stay and not greater than any that go.
        let name: Box<[u8]> = before(&first, shared + 1).into();
        let right = Self {
            shape: self.shape,
            entries,
            last: std::mem::replace(&mut self.last, last),
            end: self.end.replace(name.clone()),
            stored: 0,
        };
        self.entries.truncate(cut);
        self.entries.shrink_to(cut + SPARE);
        Some((name, right))
    }

    /// Takes over the entries of the block that follows.
    pub(crate) fn absorb(&mut self, right: &Self) {
        if let Some(first) = right.entry(0) {
            let shared = common(&self.last, first.suffix);
            varint::put_length(&mut self.entries, shared);
            varint::put_bytes(&mut self.entries, after(first.suffix, shared));
            self.entries
                .extend_from_slice(after(&right.entries, first.suffix_at + first.suffix.len()));
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

    const SHAPE: Shape = Shape { valued: true, full: 512 };

    fn check(block: &Block, model: &BTreeMap<Vec<u8>, Vec<u8>>) -> Result<(), TestCaseError> {
        let expected: Vec<_> = model.iter().map(|(k, v)| (k.clone(), v.clone())).collect();
        prop_assert_eq!(block.to_vec(), expected);
        let mut bytes = Vec::new();
        block.encode(&mut bytes);
        let again = Block::decode(SHAPE, &bytes).unwrap();
        prop_assert_eq!(&again.entries, &block.entries);
        prop_assert_eq!(&again.last, &block.last);
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
            if let Some((name, right)) = block.split(appended) {
                let (low, high): (BTreeMap<_, _>, BTreeMap<_, _>) =
                    entries.clone().into_iter().partition(|(key, _)| **key < *name);
                prop_assert!(!low.is_empty() && !high.is_empty());
                prop_assert_eq!(block.end(), Some(&*name));
                check(&block, &low)?;
                check(&right, &high)?;
                block.absorb(&right);
            }
            check(&block, &entries)?;
        }

        #[test]
        fn any_bytes_are_a_block_or_refused(bytes: Vec<u8>, valued: bool) {
            if let Some(block) = Block::decode(Shape { valued, full: 512 }, &bytes) {
                block.to_vec();
            }
        }
    }
}
