//! Reads the entries of values between two keys, from the first to the last or in reverse.
use super::entries::Entries;
use super::key::damaged_entry;
use super::run::Run;
use super::run_files::RunReader;
use super::values::FrozenValues;
use crate::Error;
use std::cmp::Ordering;
use std::collections::BinaryHeap;
use std::collections::binary_heap::PeekMut;
use std::ops::Range;
use std::sync::Arc;

/// A position in the entries in memory, or in a run.
struct ValueCursor {
    /// Smaller for newer entries.
    age: usize,
    is_reverse: bool,
    /// The run with the number of the block that is read; `None` in memory.
    run: Option<(Arc<Run>, usize)>,
    entries: Arc<Entries>,
    at: usize,
    /// The positions in the range that were not reached.
    rest: Range<usize>,
}

impl ValueCursor {
    fn key(&self) -> &[u8] {
        self.entries.key(self.at)
    }

    /// Moves to the next key of the range. Returns false at the end.
    fn advance(&mut self, range: &KeyRange, reader: &RunReader) -> Result<bool, Error> {
        loop {
            let next = if self.is_reverse { self.rest.next_back() } else { self.rest.next() };
            if let Some(next) = next {
                self.at = next;
                return Ok(true);
            }
            let Some((run, number)) = &mut self.run else { return Ok(false) };
            let next = if self.is_reverse { number.checked_sub(1) } else { Some(*number + 1) };
            let Some(next) = next.filter(|next| run.may_overlap(*next, range.bounds())) else {
                return Ok(false);
            };
            *number = next;
            self.entries = Arc::new(read_entries(run, next, range, reader)?);
            self.rest = 0..self.entries.len();
        }
    }
}

/// Reads the entries of a block in a range.
fn read_entries(
    run: &Run,
    number: usize,
    range: &KeyRange,
    reader: &RunReader,
) -> Result<Entries, Error> {
    // Each run has a block, and those beside it are looked up.
    let block = reader.read_block(run, number)?;
    let block = block.ok_or_else(|| damaged_entry("the block of", &range.from))?;
    Entries::of_block(&block, range.bounds())
}

/// The heap returns the greatest cursor first: that must be the one that comes first in its direction, and of those with the
/// same key the newest.
impl Ord for ValueCursor {
    fn cmp(&self, other: &Self) -> Ordering {
        let keys = self.key().cmp(other.key());
        let keys = if self.is_reverse { keys } else { keys.reverse() };
        keys.then_with(|| other.age.cmp(&self.age))
    }
}

impl PartialOrd for ValueCursor {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for ValueCursor {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for ValueCursor {}

/// The keys from one up to another, exclusive.
pub(super) struct KeyRange {
    pub(super) from: Vec<u8>,
    pub(super) to: Vec<u8>,
    /// The hash for the filters of runs, if all keys are of one value.
    pub(super) hash: Option<u64>,
}

impl KeyRange {
    pub(super) fn bounds(&self) -> (&[u8], &[u8]) {
        (&self.from, &self.to)
    }

    /// Returns whether a run may have keys of the range, by its filter.
    pub(super) fn may_be_in(&self, run: &Run) -> bool {
        self.hash.is_none_or(|hash| run.sought == 0 || run.may_contain(hash))
    }
}

/// The keys of a range that exist, in order or in reverse.
pub(super) struct RangeKeys<'a> {
    reader: &'a RunReader,
    range: KeyRange,
    cursors: BinaryHeap<ValueCursor>,
    /// The last key that was passed; empty before the first.
    last: Vec<u8>,
}

impl<'a> RangeKeys<'a> {
    pub(super) fn open(
        values: &'a FrozenValues,
        range: KeyRange,
        is_reverse: bool,
    ) -> Result<Self, Error> {
        let reader = &*values.reader;
        let mut cursors = Vec::new();
        let mut add = |mut cursor: ValueCursor| {
            if cursor.advance(&range, reader)? {
                cursors.push(cursor);
            }
            Ok::<_, Error>(())
        };
        for (age, entries) in values.recent.iter().enumerate() {
            let rest = entries.find(range.bounds());
            add(ValueCursor { age, is_reverse, run: None, entries: entries.clone(), at: 0, rest })?;
        }
        for (age, run) in (values.recent.len()..).zip(&values.written) {
            if !range.may_be_in(run) {
                continue;
            }
            let bound = if is_reverse { &range.to } else { &range.from };
            let number = run.find_block(bound).unwrap_or(0);
            let entries = Arc::new(read_entries(run, number, &range, reader)?);
            let (run, rest) = (Some((run.clone(), number)), 0..entries.len());
            add(ValueCursor { age, is_reverse, run, entries, at: 0, rest })?;
        }
        Ok(Self { reader, range, cursors: cursors.into(), last: Vec::new() })
    }

    /// Returns the next key; `None` at the end.
    pub(super) fn next_key(&mut self) -> Result<Option<&[u8]>, Error> {
        while let Some(mut cursor) = self.cursors.peek_mut() {
            let is_newest = *cursor.key() != *self.last;
            if is_newest {
                self.last.clear();
                self.last.extend_from_slice(cursor.key());
            }
            let is_there = is_newest && !cursor.entries.is_deleted(cursor.at);
            if !cursor.advance(&self.range, self.reader)? {
                PeekMut::pop(cursor);
            }
            if is_there {
                return Ok(Some(&self.last));
            }
        }
        Ok(None)
    }
}
