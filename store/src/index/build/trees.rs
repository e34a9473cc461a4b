//! The index that is being built, and its trees and runs, which are filled in order.
use crate::index::block::{Block, Name};
use crate::index::engine::{Writes, entry_checksum};
use crate::index::key::Shape;
use crate::index::note::Note;
use crate::index::packing::Packer;
use crate::index::run::{NewRun, RunKind, RunNote};
use crate::index::run_files::RUNS_PER_MERGE;
use crate::index::sorter::SortedRecords;
use crate::steps::WriterSteps;
use crate::{Error, files};
use std::path::{Path, PathBuf};

/// A run of so many entries for each run of a checkpoint is of the level above.
const ENTRIES_OF_LEVEL: u64 = 100_000;

/// The index that is being built: its trees, runs and note.
pub(super) struct Builder<'a> {
    pub(super) writes: Writes<'a>,
    pub(super) packer: Packer,
    pub(super) scratch: &'a Path,
    /// The folder of the index.
    pub(super) folder: &'a Path,
    pub(super) steps: &'a WriterSteps,
    pub(super) note: Note,
}

/// A tree that is filled in order.
pub(super) struct TreeBuilder {
    pub(super) name: Name,
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
