//! The index of values: which subjects have a literal of a property with a value, in the order of the values.
//!
//! Its keys are in sorted runs, as those of names. Unlike names, many of them wait for a checkpoint, and nobody looks for a
//! single one. So the entries of each frame become sorted entries, which are merged now and then, and never change.
//!
//! Invariant: between two frames, a key exists if and only if the subject has a literal of the property with this value, in
//! any graph.
use super::entries::{Entries, in_order};
use super::filter;
use super::key::tree;
use super::merged::DELETED_VALUE;
use super::run::{Run, RunKind, RunNote};
use super::run_files::{RunFiles, RunReader, WrittenRuns};
use crate::Error;
use crate::steps::WriterSteps;
use crate::value::{Remainder, ValueClass, ValueKey};
use crate::varint::{self, Input};
use oxrdf::LiteralRef;
use std::path::PathBuf;
use std::sync::Arc;

/// The folder of the runs in that of the index.
pub(super) const FOLDER: &str = "values";
/// The number of sorted entries of about one size that are merged.
const ENTRIES_PER_MERGE: usize = 8;
/// Sorted entries of more bytes are not merged again before the checkpoint.
const MAX_MERGED_BYTES: usize = 256 << 10;

/// The runs of values.
pub(super) static KIND: RunKind = RunKind {
    filter_hash: |key| value_part(key).map(filter::hash_key),
    // The levels share the bytes that are written. Without a filter, each large run would cost a lookup a block.
    filter_bits: |level| match level {
        0 => 8,
        1 => 7,
        _ => 5,
    },
    block_bytes: 4_096,
    zstd_level: 1,
};

/// The index of values.
#[derive(Debug)]
pub(super) struct Values {
    files: RunFiles,
    /// The changes of the frame that is being applied, in this order.
    pending: Entries,
    frozen: FrozenValues,
    changed_bytes: usize,
}

/// A state of the index of values that does not change. Cheap to clone.
#[derive(Debug, Clone, Default)]
pub(crate) struct FrozenValues {
    /// Entries that wait for a checkpoint, newest first.
    pub(super) recent: Vec<Arc<Entries>>,
    /// The runs, newest first.
    pub(super) written: Vec<Arc<Run>>,
    pub(super) reader: Arc<RunReader>,
}

impl Values {
    /// Opens the runs in the index's note.
    pub(super) fn open(folder: PathBuf, notes: &[RunNote]) -> Result<Self, Error> {
        let (files, written) = RunFiles::open(folder, &KIND, notes)?;
        let reader = Arc::clone(&files.reader);
        let frozen = FrozenValues { recent: Vec::new(), written, reader };
        Ok(Self { files, pending: Entries::default(), frozen, changed_bytes: 0 })
    }

    /// Releases the files and the memory.
    pub(super) fn close(&mut self) {
        self.pending.clear();
        self.frozen = FrozenValues::default();
        self.changed_bytes = 0;
        self.files.close();
    }

    /// Returns the state after the newest frame.
    pub(super) fn frozen(&self) -> &FrozenValues {
        &self.frozen
    }

    /// Returns the number of bytes that wait for a checkpoint.
    pub(super) fn changed_bytes(&self) -> usize {
        self.changed_bytes
    }

    /// Returns the size on disk, in bytes.
    pub(super) fn bytes_on_disk(&self) -> u64 {
        self.files.bytes_on_disk()
    }

    /// Adds or removes a key. [`Self::end_frame`] must follow.
    pub(super) fn change(&mut self, key: &[u8], is_removed: bool) {
        self.pending.push(key, is_removed);
    }

    /// Makes the changes of a frame visible.
    pub(super) fn end_frame(&mut self) {
        if self.pending.is_empty() {
            return;
        }
        let recent = &mut self.frozen.recent;
        recent.insert(0, Arc::new(self.pending.sort()));
        self.pending.clear();
        while let Some(count) = mergeable(recent) {
            let newer: Vec<_> = recent.drain(..count).collect();
            recent.insert(0, Arc::new(Entries::merge(&newer)));
        }
        self.changed_bytes = recent.iter().map(|entries| entries.memory_bytes()).sum();
    }

    /// Writes the changes as a run, and merges a stretch of the others.
    pub(super) fn write_changes(&self, steps: &WriterSteps) -> Result<WrittenRuns, Error> {
        let FrozenValues { recent, written, .. } = &self.frozen;
        if recent.is_empty() {
            return Ok(WrittenRuns::unchanged(written));
        }
        let entries = in_order(recent);
        let (mut sought, mut last) = (0, None);
        for (run, at) in &entries {
            let value = value_part(run.key(*at));
            sought += u64::from(last != value);
            last = value;
        }
        self.files.write_run(written, sought, steps, |run| {
            entries.iter().try_for_each(|(entries, at)| {
                steps.count_step();
                let value = if entries.is_deleted(*at) { DELETED_VALUE } else { &[] };
                run.push(entries.key(*at), value)
            })
        })
    }

    /// Takes over the written runs, after the index's note has them.
    pub(super) fn mark_written(&mut self, written: WrittenRuns) {
        self.frozen.recent.clear();
        self.changed_bytes = 0;
        written.replace(&mut self.frozen.written);
    }
}

/// Returns how many of the newest entries are merged into one: all up to the size of the newest, if they are enough.
fn mergeable(recent: &[Arc<Entries>]) -> Option<usize> {
    let size = |entries: &Entries| entries.memory_bytes().ilog2() / ENTRIES_PER_MERGE.ilog2();
    let newest = recent.first().filter(|newest| newest.memory_bytes() < MAX_MERGED_BYTES)?;
    let count = recent.iter().take_while(|entries| size(entries) <= size(newest)).count();
    (count >= ENTRIES_PER_MERGE).then_some(count)
}

/// Appends the part of a key that all values of a class of a property have. The property is as encoded in keys.
pub(super) fn write_class(property: &[u8], class: ValueClass, key: &mut Vec<u8>) {
    key.push(tree::VALUE);
    key.extend_from_slice(property);
    key.push(class.code());
}

/// Returns the key of an entry. Property and subject are as encoded in keys.
pub(super) fn value_key(property: &[u8], literal: LiteralRef<'_>, subject: &[u8]) -> Vec<u8> {
    let (class, value) = ValueKey::of(literal);
    let mut key = Vec::with_capacity(48);
    write_class(property, class, &mut key);
    value.encode(class, &mut key);
    key.extend_from_slice(subject);
    if let Some(remainder) = Remainder::of(literal, class, &value) {
        remainder.encode(&mut key);
    }
    key
}

/// Returns the key of an entry without the subject.
fn value_part(key: &[u8]) -> Option<&[u8]> {
    let mut input = Input::new(key.get(1..)?);
    input.read_number()?;
    let class = ValueClass::from_code(input.read_byte()?)?;
    ValueKey::decode(class, &mut input)?;
    key.get(..key.len() - input.len())
}

/// Returns the beginning of the keys of a class of a property, and what follows them.
pub(super) fn class_bounds(property: u64, class: ValueClass) -> (Vec<u8>, Vec<u8>) {
    varint::encode_number(property, |property| {
        let mut prefix = Vec::with_capacity(48);
        write_class(property, class, &mut prefix);
        let mut end = prefix.clone();
        if let Some(class) = end.last_mut() {
            *class += 1;
        }
        (prefix, end)
    })
}
