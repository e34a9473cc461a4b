//! A map from names to numbers, in sorted runs, for names that arrive in an order other than their own.
//!
//! In a tree of blocks, nearly every new name would change a different block, and a checkpoint would write
//! that whole block for one name. So the changes are written as a new run (`run_files.rs`).
//!
//! Invariant: of entries with the same key, in memory or in `written`, the first one counts.
use super::filter;
use super::key::{damaged_entry, tree};
use super::merged::{DELETED, Merged, Source};
use super::packing::ZSTD_LEVEL;
use super::run::{Run, RunCursor, RunKind, RunNote};
use super::run_files::{RunFiles, RunReader, WrittenRuns};
use crate::Error;
use crate::steps::WriterSteps;
use crate::varint::Input;
use std::collections::BTreeMap;
use std::ops::Bound;
use std::path::PathBuf;
use std::sync::Arc;

/// The folder of the runs in that of the index.
pub(super) const FOLDER: &str = "runs";
/// Approximate memory of an entry in bytes, without its key.
const ENTRY_OVERHEAD_BYTES: usize = 64;

/// The runs of names.
pub(super) static NAMES: RunKind = RunKind {
    filter_hash: |key| tree::is_looked_up(key).then(|| filter::hash_key(key)),
    filter_bits: |_| 10,
    block_bytes: 4_096,
    zstd_level: ZSTD_LEVEL,
};

#[derive(Debug)]
pub(super) struct Runs {
    files: RunFiles,
    /// The newest changes. They are frozen before the next change if a snapshot has them.
    changed: Arc<Changes>,
    changed_bytes: usize,
    /// All that is older.
    frozen: FrozenRuns,
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
                let number = Input::new(value).read_number();
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
        let mut list = |key: &[u8], value: &[u8], counts: bool| -> Result<bool, Error> {
            if !key.starts_with(prefix) {
                return Ok(false);
            }
            let number = Input::new(value).read_number();
            let number = number.ok_or_else(|| damaged_entry("the number of", key))?;
            if counts && number != DELETED {
                found.push((key.into(), number));
            }
            Ok(found.len() < limit)
        };
        while merged.next(&self.reader.unpacker, &mut list)?.transpose()? == Some(true) {}
        Ok(found)
    }
}

impl Runs {
    /// Opens the runs in the index's note. Removes files that an interrupted checkpoint left.
    pub(super) fn open(
        folder: PathBuf,
        kind: &'static RunKind,
        notes: &[RunNote],
    ) -> Result<Self, Error> {
        let (files, written) = RunFiles::open(folder, kind, notes)?;
        let reader = Arc::clone(&files.reader);
        Ok(Self {
            files,
            changed: Arc::default(),
            changed_bytes: 0,
            frozen: FrozenRuns { layers: Vec::new(), written, reader },
        })
    }

    /// Releases the files and the memory.
    pub(super) fn close(&mut self) {
        self.changed = Arc::default();
        self.changed_bytes = 0;
        self.frozen = FrozenRuns::default();
        self.files.close();
    }

    /// Returns the number of bytes that wait for a checkpoint.
    pub(super) fn changed_bytes(&self) -> usize {
        self.changed_bytes
    }

    /// Returns the size on disk, in bytes.
    pub(super) fn bytes_on_disk(&self) -> u64 {
        self.files.bytes_on_disk()
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

    /// Writes the changes as a run, and merges a stretch of the others.
    pub(super) fn write_changes(&self, steps: &WriterSteps) -> Result<WrittenRuns, Error> {
        let changes = || {
            let layers = self.frozen.layers.iter().map(|layer| &**layer);
            [&*self.changed].into_iter().chain(layers)
        };
        let written = &self.frozen.written;
        if changes().all(Changes::is_empty) {
            return Ok(WrittenRuns::unchanged(written));
        }
        let sought = changes().flat_map(Changes::keys).filter(|key| self.files.is_sought(key));
        self.files.write_run(written, sought.count() as u64, steps, |run| {
            let mut merged =
                Merged::new(changes().enumerate().filter_map(|(age, layer)| {
                    Source::from_changes(age, layer.range::<[u8], _>(..))
                }));
            let unpacker = &self.frozen.reader.unpacker;
            while let Some(pushed) =
                merged.next(
                    unpacker,
                    |key, value, counts| {
                        if counts { run.push(key, value) } else { Ok(()) }
                    },
                )?
            {
                steps.count_step();
                pushed?;
            }
            Ok(())
        })
    }

    /// Takes over the written runs, after the index's note has them.
    pub(super) fn mark_written(&mut self, written: WrittenRuns) {
        self.changed = Arc::default();
        self.changed_bytes = 0;
        self.frozen.layers.clear();
        written.replace(&mut self.frozen.written);
    }
}

#[cfg(test)]
mod tests {
    use super::super::run_files::{MIN_MERGE_STRETCH_ENTRIES, RUNS_PER_MERGE};
    use super::*;
    use proptest::prelude::*;

    static KIND: RunKind = RunKind { filter_hash: |key| Some(filter::hash_key(key)), ..NAMES };

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
        let mut runs = Runs::open(dir.path().join("runs"), &KIND, &[]).unwrap();
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
            let open = |notes: &[RunNote]| Runs::open(folder.clone(), &KIND, notes).unwrap();
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
                        let is_changed = runs.changed_bytes() > 0;
                        let written = runs.write_changes(&WriterSteps::default()).unwrap();
                        noted = (written.to_notes(), model.clone());
                        runs.mark_written(written);
                        prop_assert!(runs.frozen.written.len() < 4 * RUNS_PER_MERGE, "merging does not keep up");
                        // Those of failed checkpoints were removed; one is being merged.
                        let files = std::fs::read_dir(&folder).map_or(0, Iterator::count);
                        prop_assert!(!is_changed || files <= noted.0.len() + 1);
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
