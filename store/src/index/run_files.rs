//! The files of runs: a checkpoint writes its changes as a new run, and merges older ones.
//!
//! When a level has enough runs, they are merged into one run of the next level: each entry is written once for each level.
//! Each checkpoint merges only a stretch, so that none takes long.
//!
//! Invariant: of entries with the same key, that of the first run counts. A merge takes all runs of a level, and its result
//! replaces them at their position.
use super::block::Block;
use super::merged::{DELETED_VALUE, Merged, Source};
use super::packing::Unpacker;
use super::run::{NewRun, Run, RunCursor, RunKind, RunNote, run_path};
use crate::steps::WriterSteps;
use crate::{Error, files};
use parking_lot::Mutex;
use std::collections::HashMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// The number of runs of a level that are merged into one.
pub(super) const RUNS_PER_MERGE: usize = 8;
/// Entries merged at a checkpoint for each entry that it wrote. It exceeds the possible number of levels, so
/// that merging keeps up.
const MERGE_PACE: u64 = 6;
/// The minimum number of entries merged at a checkpoint.
pub(super) const MIN_MERGE_STRETCH_ENTRIES: u64 = if cfg!(test) { 40 } else { 20_000 };
/// The number of blocks cached for readers, in two generations.
const MAX_CACHED_BLOCKS: usize = 256;

/// The folder of the runs of one kind.
#[derive(Debug)]
pub(super) struct RunFiles {
    folder: PathBuf,
    kind: &'static RunKind,
    /// The number of the next file. It also grows after a failed checkpoint.
    next: AtomicU64,
    merge: Mutex<Option<Merge>>,
    pub(super) reader: Arc<RunReader>,
}

/// A merge in progress.
#[derive(Debug)]
struct Merge {
    inputs: Vec<u64>,
    merged: Merged<'static>,
    out: NewRun,
    /// Whether no older run exists, so that deleted entries can be dropped.
    is_oldest: bool,
}

/// Reads blocks of runs.
#[derive(Debug, Default)]
pub(super) struct RunReader {
    cache: Mutex<RunBlockCache>,
    pub(super) unpacker: Unpacker,
}

/// Cached blocks, by run and block number, in two generations. A block is dropped if it is not used while
/// half of the cache's capacity is read.
#[derive(Debug, Default)]
struct RunBlockCache {
    young: HashMap<(u64, usize), Arc<Block>>,
    old: HashMap<(u64, usize), Arc<Block>>,
}

impl RunBlockCache {
    fn get(&mut self, key: (u64, usize)) -> Option<Arc<Block>> {
        if let Some(block) = self.young.get(&key) {
            return Some(block.clone());
        }
        let block = self.old.remove(&key)?;
        self.insert(key, block.clone());
        Some(block)
    }

    fn insert(&mut self, key: (u64, usize), block: Arc<Block>) {
        self.young.insert(key, block);
        if self.young.len() > MAX_CACHED_BLOCKS / 2 {
            self.old = std::mem::take(&mut self.young);
        }
    }
}

impl RunReader {
    /// Reads a block; `None` past the last one.
    pub(super) fn read_block(&self, run: &Run, number: usize) -> Result<Option<Arc<Block>>, Error> {
        let key = (run.note.id, number);
        let lock = || self.cache.lock();
        if let Some(block) = lock().get(key) {
            return Ok(Some(block));
        }
        let block = run.read_block(number, &self.unpacker)?;
        if let Some(block) = &block {
            lock().insert(key, block.clone());
        }
        Ok(block)
    }
}

/// The runs after a checkpoint, newest first.
#[derive(Debug)]
pub(super) struct WrittenRuns(Vec<Arc<Run>>);

impl WrittenRuns {
    /// Returns the runs if there was nothing to write.
    pub(super) fn unchanged(runs: &[Arc<Run>]) -> Self {
        Self(runs.to_vec())
    }

    pub(super) fn to_notes(&self) -> Vec<RunNote> {
        self.0.iter().map(|run| run.note).collect()
    }

    /// Replaces the runs before the checkpoint, and removes the files that no longer count.
    pub(super) fn replace(self, runs: &mut Vec<Arc<Run>>) {
        for run in std::mem::replace(runs, self.0) {
            if !runs.iter().any(|kept| kept.note.id == run.note.id) {
                run.remove_file();
            }
        }
    }
}

impl RunFiles {
    /// Opens the runs in the index's note. Removes files that an interrupted checkpoint left.
    pub(super) fn open(
        folder: PathBuf,
        kind: &'static RunKind,
        notes: &[RunNote],
    ) -> Result<(Self, Vec<Arc<Run>>), Error> {
        let runs = notes.iter().map(|note| Run::open(&folder, *note).map(Arc::new));
        let runs = runs.collect::<Result<Vec<_>, _>>()?;
        let known: Vec<_> = notes.iter().map(|note| note.id).collect();
        remove_other_runs(&folder, &known)?;
        let next = notes.iter().map(|note| note.id + 1).max().unwrap_or(1);
        let files = Self {
            folder,
            kind,
            next: AtomicU64::new(next),
            merge: Mutex::default(),
            reader: Arc::default(),
        };
        Ok((files, runs))
    }

    /// Releases the files and the memory.
    pub(super) fn close(&mut self) {
        self.merge = Mutex::default();
        self.reader = Arc::default();
    }

    /// Returns the size on disk, in bytes.
    pub(super) fn bytes_on_disk(&self) -> u64 {
        files::folder_bytes(&self.folder)
    }

    /// Returns whether a key is looked up.
    pub(super) fn is_sought(&self, key: &[u8]) -> bool {
        (self.kind.filter_hash)(key).is_some()
    }

    fn begin_run(&self, level: u64, most_sought: u64) -> Result<NewRun, Error> {
        let id = self.next.fetch_add(1, Ordering::Relaxed);
        NewRun::begin(&self.folder, self.kind, id, level, most_sought)
    }

    /// Writes a run, merges a stretch of the others, and returns when both are on the medium. They count once the index's
    /// note has them. `push_all` pushes the entries in order, at most `most_sought` of them for the filter.
    pub(super) fn write_run(
        &self,
        older: &[Arc<Run>],
        most_sought: u64,
        steps: &WriterSteps,
        push_all: impl FnOnce(&mut NewRun) -> Result<(), Error>,
    ) -> Result<WrittenRuns, Error> {
        files::create_folder(&self.folder)?;
        let mut merge = self.merge.lock();
        // A failed checkpoint left files, and may have failed because the disk is full. What cannot be removed now is
        // removed by the next one or by an open.
        let merging = merge.as_ref().map(|merge| merge.out.id());
        let known: Vec<_> = older.iter().map(|run| run.note.id).chain(merging).collect();
        let _ = remove_other_runs(&self.folder, &known);
        let mut run = self.begin_run(0, most_sought)?;
        push_all(&mut run)?;
        let mut runs = older.to_vec();
        runs.insert(0, Arc::new(run.finish()?));
        // If this step fails, the merge is lost and starts again.
        if let Some(current) =
            merge.take().map_or_else(|| self.begin_merge(&runs), |m| Ok(Some(m)))?
        {
            *merge = self.continue_merge(current, &mut runs, steps)?;
        }
        files::sync_folder(&self.folder)?;
        Ok(WrittenRuns(runs))
    }

    /// Begins to merge the runs of the lowest level that has enough.
    fn begin_merge(&self, runs: &[Arc<Run>]) -> Result<Option<Merge>, Error> {
        let of = |level| runs.iter().filter(move |run| run.note.level == level);
        let levels = runs.iter().map(|run| run.note.level);
        let Some(level) = levels.clone().find(|level| of(*level).count() >= RUNS_PER_MERGE) else {
            return Ok(None);
        };
        let mut sources = Vec::new();
        for (age, run) in of(level).enumerate() {
            let first = |run: &Run, number| run.read_block(number, &self.reader.unpacker);
            if let Some(cursor) = RunCursor::seek(run, &[], &self.reader.unpacker, first)? {
                sources.push(Source::from_run(age, cursor));
            }
        }
        Ok(Some(Merge {
            inputs: of(level).map(|run| run.note.id).collect(),
            merged: Merged::new(sources),
            out: self.begin_run(level + 1, of(level).map(|run| run.sought).sum())?,
            is_oldest: levels.max() == Some(level),
        }))
    }

    /// Merges a stretch. A finished merge replaces its inputs in `runs`.
    fn continue_merge(
        &self,
        mut merge: Merge,
        runs: &mut Vec<Arc<Run>>,
        steps: &WriterSteps,
    ) -> Result<Option<Merge>, Error> {
        let written = runs.first().map_or(0, |run| run.entries);
        for _ in 0..(written * MERGE_PACE).max(MIN_MERGE_STRETCH_ENTRIES) {
            steps.count_step();
            let (out, is_oldest) = (&mut merge.out, merge.is_oldest);
            let more = merge.merged.next(&self.reader.unpacker, |key, value, counts| {
                if counts && !(value == DELETED_VALUE && is_oldest) {
                    out.push(key, value)
                } else {
                    Ok(())
                }
            })?;
            if let Some(pushed) = more {
                pushed?;
                continue;
            }
            let run = Arc::new(merge.out.finish()?);
            runs.retain(|run| !merge.inputs.contains(&run.note.id));
            let at = runs.partition_point(|older| older.note.level < run.note.level);
            runs.insert(at, run);
            return Ok(None);
        }
        Ok(Some(merge))
    }
}

/// Removes the files in a folder of runs that are not among these.
fn remove_other_runs(folder: &Path, known: &[u64]) -> Result<(), Error> {
    if !folder.exists() {
        return Ok(());
    }
    for entry in fs::read_dir(folder).map_err(files::io_error("reading", folder))? {
        let path = entry.map_err(files::io_error("reading", folder))?.path();
        if !known.iter().any(|id| run_path(folder, *id) == path) {
            files::remove_durably(&path, folder)?;
        }
    }
    Ok(())
}
