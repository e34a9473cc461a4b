//! Trees and runs that are filled in order.
use super::Builder;
use super::quads::read_put;
use super::terms::{KeysById, split_long_key};
use crate::index::block::{Block, Name};
use crate::index::dictionary::{VALUE_PART_BYTES, long_id};
use crate::index::documents::part_key;
use crate::index::engine::entry_checksum;
use crate::index::key::{Shape, build_numbered_key, damaged_entry, tree};
use crate::index::run::{NewRun, RunKind, RunNote};
use crate::index::run_files::RUNS_PER_MERGE;
use crate::index::sorter::SortedRecords;
use crate::index::values;
use crate::{Error, files, varint};
use std::path::PathBuf;

/// A run of so many entries for each run of a checkpoint is of the level above.
const ENTRIES_OF_LEVEL: u64 = 100_000;

/// A tree that is filled in order.
pub(super) struct TreeBuilder {
    name: Name,
    block: Block,
}

impl TreeBuilder {
    pub(super) fn new(tree: u8) -> Self {
        Self { name: [tree].into(), block: Block::new(Shape::of_tree(tree)) }
    }
}

/// A run that is filled in order.
pub(super) struct RunBuilder {
    folder: PathBuf,
    pub(super) run: NewRun,
    is_empty: bool,
}

impl RunBuilder {
    /// Begins the only run in a folder of the index: of so many entries, of which so many are looked up.
    pub(super) fn begin(
        folder: PathBuf,
        kind: &'static RunKind,
        entries: u64,
        sought: u64,
    ) -> Result<Self, Error> {
        files::create_folder(&folder)?;
        let level = u64::from((entries / ENTRIES_OF_LEVEL).max(1).ilog2() / RUNS_PER_MERGE.ilog2());
        let run = NewRun::begin(&folder, kind, 1, level, sought)?;
        Ok(Self { folder, run, is_empty: entries == 0 })
    }

    /// Returns the runs for the note, when they are on the medium.
    pub(super) fn finish(self) -> Result<Vec<RunNote>, Error> {
        let note = self.run.finish()?.note;
        files::sync_folder(&self.folder)?;
        // The open removes a run that is not in the note.
        Ok(if self.is_empty { Vec::new() } else { vec![note] })
    }
}

impl Builder<'_> {
    /// Writes the other trees of quads, one after the other, with the long literals of these quads, and at last the names of
    /// the subjects of each graph.
    pub(super) fn write_entries(
        &mut self,
        entries: &SortedRecords,
        long: &SortedRecords,
        names: &mut NewRun,
    ) -> Result<(), Error> {
        let mut current: Option<TreeBuilder> = None;
        let (mut literals, mut parts) = (KeysById::new(long)?, TreeBuilder::new(tree::LONG_PART));
        let (mut merge, mut key) = (entries.read()?, Vec::new());
        let (mut value, mut count) = (Vec::new(), 0_u64);
        while merge.next_key(&mut key, &mut |found| {
            value = found.to_vec();
            count += 1;
            Ok(())
        })? {
            let tree = *key.first().ok_or_else(|| damaged_entry("an entry", &key))?;
            if current.as_ref().is_none_or(|current| current.name.first() != Some(&tree))
                && let Some(ended) = current.replace(TreeBuilder::new(tree))
            {
                self.end_tree(&ended)?;
            }
            if tree == tree::LONG {
                value.clear();
                varint::write_number(&mut value, count);
                // Both are in the order of ids.
                let id = long_id(&key).ok_or_else(|| damaged_entry("a long literal", &key))?;
                let (_, bytes) = split_long_key(literals.read_key(id)?)?;
                for (part, bytes) in (0..).zip(bytes.chunks(VALUE_PART_BYTES)) {
                    self.push(
                        &mut parts,
                        &build_numbered_key(tree::LONG_PART, &[id, part]),
                        bytes,
                    )?;
                }
            }
            match &mut current {
                _ if tree == tree::GRAPH_IRI => names.push(&key, &value)?,
                Some(current) => self.push(current, &key, &value)?,
                None => {}
            }
            count = 0;
        }
        self.end_tree(&parts)?;
        current.map_or(Ok(()), |ended| self.end_tree(&ended))
    }

    /// Writes the keys of values.
    pub(super) fn write_values(&self, values: &SortedRecords) -> Result<Vec<RunNote>, Error> {
        let (mut merge, mut key) = (values.read()?, Vec::new());
        let (mut entries, mut sought, mut last) = (0, 0, None);
        while merge.next_key(&mut key, &mut |_| Ok(()))? {
            let hash = (values::KIND.filter_hash)(&key);
            entries += 1;
            sought += u64::from(last != hash);
            last = hash;
        }
        let folder = self.folder.join(values::FOLDER);
        let mut run = RunBuilder::begin(folder, &values::KIND, entries, sought)?;
        let mut merge = values.read()?;
        while merge.next_key(&mut key, &mut |_| Ok(()))? {
            self.steps.count_step();
            run.run.push(&key, &[])?;
        }
        run.finish()
    }

    pub(super) fn write_documents(&mut self, documents: &SortedRecords) -> Result<(), Error> {
        let mut parts = TreeBuilder::new(tree::DOCUMENT);
        let (mut merge, mut prefix, mut stored) = (documents.read()?, Vec::new(), Vec::new());
        while merge.next_key(&mut prefix, &mut |found| {
            stored = found.to_vec();
            Ok(())
        })? {
            let Some(value) = read_put("a document", &prefix, &stored)? else { continue };
            self.note.documents += 1;
            let (first, others) = value.split_at(value.len().min(VALUE_PART_BYTES));
            self.push(&mut parts, &part_key(&prefix, 0), first)?;
            for (number, bytes) in (1..).zip(others.chunks(VALUE_PART_BYTES)) {
                self.push(&mut parts, &part_key(&prefix, number), bytes)?;
            }
        }
        self.end_tree(&parts)
    }

    /// Appends an entry, whose key is greater than all before it.
    pub(super) fn push(
        &mut self,
        tree: &mut TreeBuilder,
        key: &[u8],
        value: &[u8],
    ) -> Result<(), Error> {
        tree.block.insert(key, value);
        if let Some((name, right)) = tree.block.split_off_upper(true) {
            self.write_block(tree)?;
            (tree.name, tree.block) = (name, right);
        }
        Ok(())
    }

    pub(super) fn end_tree(&mut self, tree: &TreeBuilder) -> Result<(), Error> {
        if tree.block.is_empty() { Ok(()) } else { self.write_block(tree) }
    }

    fn write_block(&mut self, tree: &TreeBuilder) -> Result<(), Error> {
        let (mut bytes, mut packed) = (Vec::new(), Vec::new());
        tree.block.encode(&mut bytes);
        self.packer.pack_block(&bytes, &mut packed);
        let checksum = entry_checksum(&tree.name, &packed);
        self.note.checksum_sum = self.note.checksum_sum.wrapping_add(checksum);
        self.writes.insert(&tree.name, &packed)
    }
}

pub(super) fn count_keys(records: &SortedRecords) -> Result<u64, Error> {
    let (mut merge, mut key, mut count) = (records.read()?, Vec::new(), 0);
    while merge.next_key(&mut key, &mut |_| Ok(()))? {
        count += 1;
    }
    Ok(count)
}
