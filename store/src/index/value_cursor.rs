//! Reads the entries of values between two keys, from the first to the last or in reverse.
use super::entries::Entries;
use super::run::Run;
use super::run_files::RunReader;
use super::values::FrozenValues;
use crate::Error;
use std::cmp::Ordering;
use std::collections::BinaryHeap;
use std::collections::binary_heap::PeekMut;
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
}

impl ValueCursor {
    fn key(&self) -> &[u8] {
        self.entries.key(self.at)
    }

    /// Moves to the first key from `from` on. Returns false if there is none.
    fn seek(&mut self, from: &[u8], reader: &RunReader) -> Result<bool, Error> {
        self.at = self.entries.count_before(from);
        if self.at < self.entries.len() {
            return Ok(true);
        }
        self.load_neighbour(reader)
    }

    /// Moves to the last key before `to`. Returns false if there is none.
    fn seek_back(&mut self, to: &[u8], reader: &RunReader) -> Result<bool, Error> {
        match self.entries.count_before(to).checked_sub(1) {
            Some(at) => {
                self.at = at;
                Ok(true)
            }
            None => self.load_neighbour(reader),
        }
    }

    /// Moves to the next key. Returns false at the end.
    fn advance(&mut self, reader: &RunReader) -> Result<bool, Error> {
        let next = if self.is_reverse { self.at.checked_sub(1) } else { Some(self.at + 1) };
        match next.filter(|at| *at < self.entries.len()) {
            Some(at) => {
                self.at = at;
                Ok(true)
            }
            None => self.load_neighbour(reader),
        }
    }

    /// Moves to the first key of the next block, in reverse to the last one of the block before. Returns false at the end.
    fn load_neighbour(&mut self, reader: &RunReader) -> Result<bool, Error> {
        let Some((run, number)) = &mut self.run else { return Ok(false) };
        let next = if self.is_reverse { number.checked_sub(1) } else { Some(*number + 1) };
        let Some(next) = next else { return Ok(false) };
        let Some(block) = reader.read_block(run, next)? else { return Ok(false) };
        *number = next;
        let entries = Entries::of_block(&block);
        if entries.is_empty() {
            return Ok(false);
        }
        self.at = if self.is_reverse { entries.len() - 1 } else { 0 };
        self.entries = Arc::new(entries);
        Ok(true)
    }
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

/// The keys of a range that exist, in order or in reverse.
pub(super) struct RangeKeys<'a> {
    reader: &'a RunReader,
    cursors: BinaryHeap<ValueCursor>,
    /// The key at which the range ends.
    end: Vec<u8>,
    is_reverse: bool,
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
            let is_found = if is_reverse {
                cursor.seek_back(&range.to, reader)?
            } else {
                cursor.seek(&range.from, reader)?
            };
            let key = cursor.key();
            if is_found && *key >= *range.from && *key < *range.to {
                cursors.push(cursor);
            }
            Ok::<_, Error>(())
        };
        for (age, entries) in values.recent.iter().enumerate() {
            add(ValueCursor { age, is_reverse, run: None, entries: entries.clone(), at: 0 })?;
        }
        for (age, run) in (values.recent.len()..).zip(&values.written) {
            if range.hash.is_some_and(|hash| run.sought > 0 && !run.may_contain(hash)) {
                continue;
            }
            let bound = if is_reverse { &range.to } else { &range.from };
            let number = run.find_block(bound).unwrap_or(0);
            let Some(block) = reader.read_block(run, number)? else { continue };
            let run = Some((run.clone(), number));
            let entries = Arc::new(Entries::of_block(&block));
            add(ValueCursor { age, is_reverse, run, entries, at: 0 })?;
        }
        let end = if is_reverse { range.from } else { range.to };
        Ok(Self { reader, cursors: cursors.into(), end, is_reverse, last: Vec::new() })
    }

    /// Returns the next key; `None` at the end.
    pub(super) fn next_key(&mut self) -> Result<Option<&[u8]>, Error> {
        while let Some(mut cursor) = self.cursors.peek_mut() {
            let key = cursor.key();
            let is_past = if self.is_reverse { *key < *self.end } else { *key >= *self.end };
            if is_past {
                PeekMut::pop(cursor);
                continue;
            }
            let is_newest = *key != *self.last;
            if is_newest {
                self.last.clear();
                self.last.extend_from_slice(cursor.key());
            }
            let is_there = is_newest && !cursor.entries.is_deleted(cursor.at);
            if !cursor.advance(self.reader)? {
                PeekMut::pop(cursor);
            }
            if is_there {
                return Ok(Some(&self.last));
            }
        }
        Ok(None)
    }
}
