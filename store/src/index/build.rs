//! Builds an empty index from a base in sorted order.
//!
//! Replaying the parts of a base changes blocks everywhere, so each checkpoint writes most of the index again. Here each
//! block is written once: names, quads, values and documents are sorted in files, and the trees are filled from the first
//! key to the last. Names get their ids in the order of the names, so the trees of names and of ids are sorted alike.
//!
//! 1. The terms of all parts are sorted. Each name and each long literal gets its id, and each term of each part its code
//!    (`terms.rs`).
//! 2. The parts are read again with these codes. Their quads and documents are sorted; the last change of each counts. With
//!    a quad goes the key of its value (`quads.rs`).
//! 3. The quads, in the order of subjects, give the entries of the other trees, and the keys of values, which are sorted
//!    too (`entries.rs`). A long literal is written only if a quad still has it.
//!
//! While it runs, the mark of a checkpoint is empty, so that an open after a crash discards the index.
mod entries;
mod quads;
mod terms;
mod trees;

use super::Index;
use super::checkpoint::{self, open_index};
use super::engine::Engine;
use super::key::tree;
use super::note::Note;
use super::packing::Packer;
use super::runs::{self, NAMES};
use super::sorter::Sorter;
use crate::journal::Base;
use crate::steps::WriterSteps;
use crate::{Error, files};
use std::fs;
use std::path::{Path, PathBuf};
use trees::{Builder, RunBuilder, count_keys};

/// The folder of the files that are sorted.
const SCRATCH_FOLDER: &str = "index.new";
/// The minimum number of parts. Replaying fewer takes seconds.
const MIN_PARTS: u64 = 64;
/// The free disk space that the files need, as a multiple of the base.
const SPACE_FACTOR: u64 = 16;

/// Returns whether an index should be built from this base in sorted order: it is empty, and the base is large.
pub(crate) fn is_worthwhile(dir: &Path, index: &Index, base: &Base) -> bool {
    let is_empty = index.checkpointed_sequence() == 0 && index.sequence() == 0;
    let has_space = || files::free_bytes(dir).is_ok_and(|free| free / SPACE_FACTOR > base.bytes);
    is_empty && base.end.parts >= MIN_PARTS && has_space()
}

/// Builds the index in place of an empty one. `progress` gets the number of parts that were read, each of them twice.
pub(crate) fn build_index(
    dir: &Path,
    empty: Index,
    base: &Base,
    steps: &WriterSteps,
    progress: &mut dyn FnMut(u64),
) -> Result<Index, Error> {
    let (id, has_values) = (empty.store_id(), empty.has_values());
    drop(empty);
    checkpoint::discard_index(dir)?;
    checkpoint::set_mark(dir)?;
    let scratch = Scratch::create(dir)?;
    let folder = checkpoint::index_folder(dir);
    let (mut engine, ()) = Engine::open(&folder, |_, _| Ok(()))?;
    let builder = Builder {
        writes: engine.begin_writes(),
        packer: Packer::new(),
        scratch: &scratch.0,
        folder: &folder,
        steps,
        note: Note { sequence: base.end.from, ..Note::new(id, has_values) },
    };
    let built = builder.build(base, progress);
    engine.close();
    built?;
    drop(scratch);
    checkpoint::remove_mark(dir)?;
    open_index(dir, id, has_values)
}

/// The folder of the sorted files, which is removed at the end.
struct Scratch(PathBuf);

impl Scratch {
    fn create(dir: &Path) -> Result<Self, Error> {
        let path = dir.join(SCRATCH_FOLDER);
        remove_scratch(dir)?;
        files::create_folder(&path)?;
        Ok(Self(path))
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        // The next build or open removes what remains.
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// Removes the files of a build that was interrupted.
pub(crate) fn remove_scratch(dir: &Path) -> Result<(), Error> {
    let path = dir.join(SCRATCH_FOLDER);
    if path.exists() {
        fs::remove_dir_all(&path).map_err(files::io_error("removing", &path))?;
    }
    Ok(())
}

impl Builder<'_> {
    fn build(mut self, base: &Base, progress: &mut dyn FnMut(u64)) -> Result<(), Error> {
        let mut done = 0;
        let mut advance = || {
            done += 1;
            progress(done);
        };
        let (names, long) = self.sort_terms(base, &mut advance)?;
        let mut codes = Sorter::new(self.scratch, "codes");
        let count = count_keys(&names)?;
        let folder = self.folder.join(runs::FOLDER);
        let mut name_run = RunBuilder::begin(folder, &NAMES, count, count)?;
        self.write_names(&names, &mut name_run.run, &mut codes)?;
        self.assign_long_ids(&long, &mut codes)?;
        let (quads, documents) = self.sort_changes(base, &codes.finish()?, &mut advance)?;
        let (entries, values) = self.write_quads(&quads, &names)?;
        drop((quads, names));
        self.write_entries(&entries, &long, &mut name_run.run)?;
        drop((entries, long));
        self.note.runs = name_run.finish()?;
        if self.note.values.is_some() {
            self.note.values = Some(self.write_values(&values)?);
        }
        drop(values);
        self.write_documents(&documents)?;
        let note = self.note.encode();
        self.writes.insert(&[tree::NOTE], &note)?;
        self.writes.finish()
    }
}

#[cfg(test)]
mod tests;
