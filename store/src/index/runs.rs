//! A map from names to numbers, in sorted runs, for names that arrive in an order other than their own.
//!
//! In a tree of blocks, nearly every new name would change a different block, and a checkpoint would write
//! that whole block for one name. So the changes are written as a new run. When a level has enough runs, they
//! are merged into one run of the next level: each name is written once for each level. Each checkpoint
//! merges only a stretch, so that none takes long.
//!
//! Invariant: of entries with the same key, in memory or in `written`, the first one counts. A merge takes
//! all runs of a level, and its result replaces them at their position.
use super::block::Block;
use super::filter;
use super::key::damaged_entry;
use super::merged::{DELETED, Merged, Source};
use super::packing::Unpacker;
use super::run::{NewRun, Run, RunCursor, RunNote};
use crate::steps::WriterSteps;
use crate::varint;
use crate::{Error, files};
use parking_lot::{Mutex, MutexGuard};
use std::collections::{BTreeMap, HashMap};
use std::fs;
use std::ops::Bound;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// The number of runs of a level that are merged into one.
const RUNS_PER_MERGE: usize = 8;
/// Entries merged at a checkpoint for each entry that it wrote. It exceeds the possible number of levels, so
/// that merging keeps up.
const MERGE_PACE: u64 = 6;
/// The minimum number of entries merged at a checkpoint.
const MIN_MERGE_STRETCH_ENTRIES: u64 = if cfg!(test) { 40 } else { 20_000 };
/// The number of blocks cached for readers, in two generations.
const MAX_CACHED_BLOCKS: usize = 256;
/// Approximate memory of an entry in bytes, without its key.
const ENTRY_OVERHEAD_BYTES: usize = 64;

#[derive(Debug)]
pub(super) struct Runs {
    folder: PathBuf,
    /// Returns whether a key is looked up individually. Other keys are only listed.
    sought: fn(&[u8]) -> bool,
    /// The newest changes. They are frozen before the next change if a snapshot has them.
    changed: Arc<Changes>,
    changed_bytes: usize,
    /// All that is older.
    frozen: FrozenRuns,
    /// The number of the next file. It also grows after a failed checkpoint.
    next: AtomicU64,
    merge: Mutex<Option<Merge>>,
}

/// Changes that wait for a checkpoint.
type Changes = BTreeMap<Box<[u8]>, u64>;

/// A state of the map that does not change. Cheap to clone.
#[derive(Debug, Clone, Default)]
pub(crate) struct FrozenRuns {
    /// Changes that wait for a checkpoint, newest first. Each was frozen for a snapshot.
    layers: Vec<Arc<Changes>>,
    /// The runs, newest first: by level, and within a level by age.
    written: Vec<Arc<Run>>,
    reader: Arc<RunReader>,
}

/// Reads blocks of runs.
#[derive(Debug, Default)]
struct RunReader {
    cache: Mutex<RunBlockCache>,
    unpacker: Unpacker,
}

/// A merge in progress.
#[derive(Debug)]
struct Merge {
    inputs: Vec<u64>,
    merged: Merged<'static>,
    out: NewRun,
    /// Whether no older run exists, so that entries of deleted names can be dropped.
    is_oldest: bool,
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

/// Where names and their numbers come from.
pub(crate) trait NameSource {
    /// Returns the number of a name that is looked up individually.
    fn find_name(&self, key: &[u8]) -> Result<Option<u64>, Error>;

    /// Returns the names that begin with `prefix`, from `from` on, in order: at most `limit`.
    fn list_names(
        &self,
        prefix: &[u8],
        from: &[u8],
        limit: usize,
    ) -> Result<Vec<ListedName>, Error>;
}

/// A name with its number.
pub(crate) type ListedName = (Box<[u8]>, u64);

impl NameSource for Runs {
    fn find_name(&self, key: &[u8]) -> Result<Option<u64>, Error> {
        self.get(key)
    }

    fn list_names(
        &self,
        prefix: &[u8],
        from: &[u8],
        limit: usize,
    ) -> Result<Vec<ListedName>, Error> {
        self.frozen.list_merged(Some(&self.changed), prefix, from, limit)
    }
}

impl NameSource for FrozenRuns {
    fn find_name(&self, key: &[u8]) -> Result<Option<u64>, Error> {
        let there = |number| (number != DELETED).then_some(number);
        if let Some(number) = self.layers.iter().find_map(|layer| layer.get(key)) {
            return Ok(there(*number));
        }
        let hash = filter::hash_key(key);
        for run in &self.written {
            if run.may_contain(hash)
                && let Some(number) = run.find_block(key)
                && let Some(block) = self.reader.read_block(run, number)?
                && let Some(value) = block.get(key)
            {
                let number = varint::Input::new(value).read_number();
                return number.map(there).ok_or_else(|| damaged_entry("the number of", key));
            }
        }
        Ok(None)
    }

    fn list_names(
        &self,
        prefix: &[u8],
        from: &[u8],
        limit: usize,
    ) -> Result<Vec<ListedName>, Error> {
        self.list_merged(None, prefix, from, limit)
    }
}

impl FrozenRuns {
    /// Lists names of this state and the changes after it.
    fn list_merged(
        &self,
        changed: Option<&Changes>,
        prefix: &[u8],
        from: &[u8],
        limit: usize,
    ) -> Result<Vec<ListedName>, Error> {
        let range = (Bound::Included(from), Bound::Unbounded);
        let changes = changed.into_iter().chain(self.layers.iter().map(|layer| &**layer));
        let mut sources: Vec<_> = changes
            .enumerate()
            .filter_map(|(age, changes)| Source::from_changes(age, changes.range::<[u8], _>(range)))
            .collect();
        // More than the number of layers.
        for (age, run) in (1 + self.layers.len()..).zip(&self.written) {
            let first = |run: &Run, number| self.reader.read_block(run, number);
            if let Some(cursor) = RunCursor::seek(run, from, &self.reader.unpacker, first)? {
                sources.push(Source::from_run(age, cursor));
            }
        }
        let mut merged = Merged::new(sources);
        let mut found = Vec::new();
        let mut list = |key: &[u8], number, counts: bool| {
            if !key.starts_with(prefix) {
                return false;
            }
            if counts && number != DELETED {
                found.push((key.into(), number));
            }
            found.len() < limit
        };
        while merged.next(&self.reader.unpacker, &mut list)? == Some(true) {}
        Ok(found)
    }
}

impl RunReader {
    fn read_block(&self, run: &Run, number: usize) -> Result<Option<Arc<Block>>, Error> {
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

/// The runs after a checkpoint, for [`Runs::mark_written`].
#[derive(Debug)]
pub(super) struct WrittenRuns {
    runs: Vec<Arc<Run>>,
}

impl WrittenRuns {
    pub(super) fn to_notes(&self) -> Vec<RunNote> {
        self.runs.iter().map(|run| run.note).collect()
    }
}

impl Runs {
    /// Opens the runs in the index's note. Removes files that an interrupted checkpoint left.
    pub(super) fn open(
        folder: PathBuf,
        notes: &[RunNote],
        sought: fn(&[u8]) -> bool,
    ) -> Result<Self, Error> {
        let runs = notes.iter().map(|note| Run::open(&folder, *note).map(Arc::new));
        let runs = runs.collect::<Result<Vec<_>, _>>()?;
        remove_unlisted_runs(&folder, notes)?;
        Ok(Self {
            folder,
            sought,
            changed: Arc::default(),
            changed_bytes: 0,
            frozen: FrozenRuns { written: runs, ..FrozenRuns::default() },
            next: AtomicU64::new(notes.iter().map(|note| note.id + 1).max().unwrap_or(1)),
            merge: Mutex::default(),
        })
    }

    /// Releases the files and the memory.
    pub(super) fn close(&mut self) {
        self.changed = Arc::default();
        self.changed_bytes = 0;
        self.frozen = FrozenRuns::default();
        self.merge = Mutex::default();
    }

    /// Returns the number of bytes that wait for a checkpoint.
    pub(super) fn changed_bytes(&self) -> usize {
        self.changed_bytes
    }

    /// Returns the size on disk, in bytes.
    pub(super) fn bytes_on_disk(&self) -> u64 {
        files::folder_bytes(&self.folder)
    }

    /// Returns the number of a name that is looked up individually.
    pub(super) fn get(&self, key: &[u8]) -> Result<Option<u64>, Error> {
        match self.changed.get(key) {
            Some(number) => Ok(Some(*number).filter(|number| *number != DELETED)),
            None => self.frozen.find_name(key),
        }
    }

    /// Returns the current state for a snapshot.
    pub(super) fn freeze(&self) -> FrozenRuns {
        let mut frozen = self.frozen.clone();
        if !self.changed.is_empty() {
            frozen.layers.insert(0, Arc::clone(&self.changed));
        }
        frozen
    }

    /// Begins a new map of changes above the current one, which a snapshot has. Merges layers that no snapshot has any
    /// more, so that there are at most twice as many as snapshots.
    fn freeze_changes(&mut self) {
        let layers = &mut self.frozen.layers;
        layers.insert(0, std::mem::take(&mut self.changed));
        let mut at = 0;
        while let Some([newer, older]) = layers.get_mut(at..at + 2) {
            if let (Some(newer), Some(older)) = (Arc::get_mut(newer), Arc::get_mut(older)) {
                older.extend(std::mem::take(newer));
                layers.remove(at);
            } else {
                at += 1;
            }
        }
    }

    /// Sets the number of a name.
    pub(super) fn insert(&mut self, key: &[u8], number: u64) {
        if Arc::get_mut(&mut self.changed).is_none() {
            self.freeze_changes();
        }
        if Arc::make_mut(&mut self.changed).insert(key.into(), number).is_none() {
            self.changed_bytes += key.len() + ENTRY_OVERHEAD_BYTES;
        }
    }

    /// Removes a name.
    pub(super) fn remove(&mut self, key: &[u8]) {
        self.insert(key, DELETED);
    }

    fn lock_merge(&self) -> MutexGuard<'_, Option<Merge>> {
        self.merge.lock()
    }

    fn begin_run(&self, level: u64, sought: u64) -> Result<NewRun, Error> {
        let id = self.next.fetch_add(1, Ordering::Relaxed);
        NewRun::begin(&self.folder, id, level, sought)
    }

    fn push_entry(&self, run: &mut NewRun, key: &[u8], number: u64) -> Result<(), Error> {
        let mut value = Vec::with_capacity(9);
        varint::write_number(&mut value, number);
        run.push(key, &value, (self.sought)(key).then(|| filter::hash_key(key)))
    }

    /// Writes the changes as a run, merges a stretch, and returns when both are on the medium. They count
    /// once the index's note has them.
    pub(super) fn write_changes(&self, steps: &WriterSteps) -> Result<WrittenRuns, Error> {
        let mut runs = self.frozen.written.clone();
        let changes = || {
            let layers = self.frozen.layers.iter().map(|layer| &**layer);
            [&*self.changed].into_iter().chain(layers)
        };
        let sought = changes().flat_map(Changes::keys).filter(|key| (self.sought)(key)).count();
        if changes().all(Changes::is_empty) {
            return Ok(WrittenRuns { runs });
        }
        files::create_folder(&self.folder)?;
        let mut run = self.begin_run(0, sought as u64)?;
        let mut merged = Merged::new(
            changes()
                .enumerate()
                .filter_map(|(age, layer)| Source::from_changes(age, layer.range::<[u8], _>(..))),
        );
        let unpacker = &self.frozen.reader.unpacker;
        while let Some(pushed) = merged.next(unpacker, |key, number, counts| {
            if counts { self.push_entry(&mut run, key, number) } else { Ok(()) }
        })? {
            steps.count_step();
            pushed?;
        }
        drop(merged);
        runs.insert(0, Arc::new(run.finish()?));
        let mut merge = self.lock_merge();
        // If this step fails, the merge is lost and starts again.
        if let Some(current) =
            merge.take().map_or_else(|| self.begin_merge(&runs), |m| Ok(Some(m)))?
        {
            *merge = self.continue_merge(current, &mut runs, steps)?;
        }
        files::sync_folder(&self.folder)?;
        Ok(WrittenRuns { runs })
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
            let first = |run: &Run, number| run.read_block(number, &self.frozen.reader.unpacker);
            if let Some(cursor) = RunCursor::seek(run, &[], &self.frozen.reader.unpacker, first)? {
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
            let more = merge.merged.next(&self.frozen.reader.unpacker, |key, number, counts| {
                if counts && !(number == DELETED && is_oldest) {
                    self.push_entry(out, key, number)
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

    /// Takes over the written runs, after the index's note has them.
    pub(super) fn mark_written(&mut self, written: WrittenRuns) {
        self.changed = Arc::default();
        self.changed_bytes = 0;
        self.frozen.layers.clear();
        let before = std::mem::replace(&mut self.frozen.written, written.runs);
        for run in before {
            if !self.frozen.written.iter().any(|kept| kept.note.id == run.note.id) {
                run.remove_file();
            }
        }
    }
}

/// Removes the files of runs that are not in the note.
fn remove_unlisted_runs(folder: &Path, notes: &[RunNote]) -> Result<(), Error> {
    if !folder.exists() {
        return Ok(());
    }
    for entry in fs::read_dir(folder).map_err(files::io_error("reading", folder))? {
        let path = entry.map_err(files::io_error("reading", folder))?.path();
        if !notes.iter().any(|note| super::run::run_path(folder, note.id) == path) {
            files::remove_durably(&path, folder)?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[derive(Debug, Clone)]
    enum Step {
        Insert(Vec<u8>, u64),
        Remove(Vec<u8>),
        Checkpoint,
        /// A checkpoint that fails after the runs are written.
        Fail,
        Reopen,
        Freeze,
    }

    fn key() -> impl Strategy<Value = Vec<u8>> {
        prop::collection::vec(0_u8..5, 1..5)
    }

    fn step() -> impl Strategy<Value = Step> {
        prop_oneof![
            20 => (key(), 1_u64..1 << 40).prop_map(|(key, number)| Step::Insert(key, number)),
            6 => key().prop_map(Step::Remove),
            5 => Just(Step::Checkpoint),
            1 => Just(Step::Fail),
            1 => Just(Step::Reopen),
            4 => Just(Step::Freeze),
        ]
    }

    fn all(runs: &dyn NameSource, prefix: &[u8], from: &[u8]) -> Vec<(Vec<u8>, u64)> {
        let found = runs.list_names(prefix, from, usize::MAX).unwrap();
        found.into_iter().map(|(key, number)| (key.into(), number)).collect()
    }

    #[test]
    fn written_and_merged_names_count_as_steps() {
        let dir = tempfile::tempdir().unwrap();
        let mut runs = Runs::open(dir.path().join("runs"), &[], |_| true).unwrap();
        let steps = WriterSteps::default();
        for run in 0..RUNS_PER_MERGE as u64 {
            for name in 0..10 {
                runs.insert(&[u8::try_from(run).unwrap(), name], 1);
            }
            let before = steps.step_count();
            let written = runs.write_changes(&steps).unwrap();
            runs.mark_written(written);
            let expected =
                if run + 1 == RUNS_PER_MERGE as u64 { 10 + MIN_MERGE_STRETCH_ENTRIES } else { 10 };
            assert!(steps.step_count() - before >= expected, "run {run}");
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(40))]
        #[test]
        fn runs_match_a_model(
            steps in prop::collection::vec(step(), 1..600),
            from in key(),
        ) {
            let dir = tempfile::tempdir().unwrap();
            let folder = dir.path().join("runs");
            let open = |notes: &[RunNote]| Runs::open(folder.clone(), notes, |_| true).unwrap();
            let mut runs = open(&[]);
            let mut model = BTreeMap::new();
            let mut noted = (Vec::new(), BTreeMap::new());
            let mut snapshots: Vec<(FrozenRuns, BTreeMap<Vec<u8>, u64>)> = Vec::new();
            for step in steps {
                match step {
                    Step::Insert(key, number) => {
                        runs.insert(&key, number);
                        model.insert(key, number);
                    }
                    Step::Remove(key) => {
                        runs.remove(&key);
                        model.remove(&key);
                    }
                    Step::Checkpoint => {
                        let written = runs.write_changes(&WriterSteps::default()).unwrap();
                        noted = (written.to_notes(), model.clone());
                        runs.mark_written(written);
                        prop_assert!(runs.frozen.written.len() < 4 * RUNS_PER_MERGE, "merging does not keep up");
                    }
                    Step::Fail => {
                        let _ = runs.write_changes(&WriterSteps::default()).unwrap();
                    }
                    Step::Freeze => {
                        // Some snapshots end before others.
                        if snapshots.len() > 10 {
                            snapshots.swap_remove(model.len() % 10);
                        }
                        snapshots.push((runs.freeze(), model.clone()));
                    }
                    Step::Reopen => {
                        runs = open(&noted.0);
                        model = noted.1.clone();
                    }
                }
            }
            for (frozen, model) in snapshots {
                let expected: Vec<_> = model.clone().into_iter().collect();
                prop_assert_eq!(all(&frozen, &[], &[]), expected);
                for key in model.keys().chain([&from]) {
                    prop_assert_eq!(frozen.find_name(key).unwrap(), model.get(key).copied());
                }
            }
            let expected: Vec<_> = model.clone().into_iter().collect();
            prop_assert_eq!(all(&runs, &[], &[]), expected);
            let expected: Vec<_> = model
                .range(from.clone()..)
                .filter(|(key, _)| key.starts_with(&from[..1]))
                .map(|(key, number)| (key.clone(), *number))
                .collect();
            prop_assert_eq!(all(&runs, &from[..1], &from), expected);
            for key in model.keys().chain([&from]) {
                prop_assert_eq!(runs.get(key).unwrap(), model.get(key).copied());
            }
        }
    }
}
