//! Merges several sorted sources. Of entries with the same key, the newest counts.
use super::packing::Unpacker;
use super::run::RunCursor;
use crate::{Error, varint};
use std::cmp::Ordering;
use std::collections::BinaryHeap;
use std::collections::binary_heap::PeekMut;
use std::collections::btree_map::Range;

/// The number of a deleted name.
pub(super) const DELETED: u64 = 0;
/// The value of an entry that was deleted, as in a run.
pub(super) const DELETED_VALUE: &[u8] = &[0];

/// A source with its current entry.
#[derive(Debug)]
pub(super) struct Source<'a> {
    /// Smaller for newer sources.
    age: usize,
    kind: SourceKind<'a>,
}

#[derive(Debug)]
enum SourceKind<'a> {
    Run(RunCursor),
    Changed { key: &'a [u8], value: Vec<u8>, rest: Range<'a, Box<[u8]>, u64> },
}

impl<'a> Source<'a> {
    pub(super) fn from_run(age: usize, cursor: RunCursor) -> Self {
        Self { age, kind: SourceKind::Run(cursor) }
    }

    /// Creates the source of changes that wait for a checkpoint. They are newer than any run. `None` if there
    /// are none.
    pub(super) fn from_changes(age: usize, mut rest: Range<'a, Box<[u8]>, u64>) -> Option<Self> {
        let (key, number) = rest.next()?;
        let mut value = Vec::with_capacity(9);
        varint::write_number(&mut value, *number);
        Some(Self { age, kind: SourceKind::Changed { key, value, rest } })
    }

    fn key(&self) -> &[u8] {
        match &self.kind {
            SourceKind::Run(cursor) => cursor.key(),
            SourceKind::Changed { key, .. } => key,
        }
    }

    fn value(&self) -> &[u8] {
        match &self.kind {
            SourceKind::Run(cursor) => cursor.value(),
            SourceKind::Changed { value, .. } => value,
        }
    }

    fn advance(&mut self, unpacker: &Unpacker) -> Result<bool, Error> {
        match &mut self.kind {
            SourceKind::Run(cursor) => cursor.advance(unpacker),
            SourceKind::Changed { key, value, rest } => Ok(rest.next().is_some_and(|next| {
                *key = next.0;
                value.clear();
                varint::write_number(value, *next.1);
                true
            })),
        }
    }
}

/// Reversed, because the heap returns the greatest source first: that must be the one with the smallest key,
/// and of those the newest.
impl Ord for Source<'_> {
    fn cmp(&self, other: &Self) -> Ordering {
        other.key().cmp(self.key()).then_with(|| other.age.cmp(&self.age))
    }
}

impl PartialOrd for Source<'_> {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Source<'_> {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for Source<'_> {}

/// The entries of all sources, in order.
#[derive(Debug)]
pub(super) struct Merged<'a> {
    sources: BinaryHeap<Source<'a>>,
    /// The key of the last entry; `None` before the first.
    last: Option<Vec<u8>>,
}

impl<'a> Merged<'a> {
    pub(super) fn new(sources: impl IntoIterator<Item = Source<'a>>) -> Self {
        Self { sources: sources.into_iter().collect(), last: None }
    }

    /// Passes the next entry of any source to `read`, with a flag for whether it is the newest with its
    /// key. Returns `None` at the end.
    pub(super) fn next<T>(
        &mut self,
        unpacker: &Unpacker,
        read: impl FnOnce(&[u8], &[u8], bool) -> T,
    ) -> Result<Option<T>, Error> {
        let Some(mut source) = self.sources.peek_mut() else { return Ok(None) };
        let counts = self.last.as_deref() != Some(source.key());
        if counts {
            let last = self.last.get_or_insert_default();
            last.clear();
            last.extend_from_slice(source.key());
        }
        let done = read(source.key(), source.value(), counts);
        if !source.advance(unpacker)? {
            PeekMut::pop(source);
        }
        Ok(Some(done))
    }
}
