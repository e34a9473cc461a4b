//! The quad index: the state of the journal as ordered maps. It can be rebuilt at any time by replaying the journal.
mod apply;
mod block;
mod block_source;
mod blocks;
mod build;
mod checkpoint;
mod clean;
mod count;
mod dictionary;
mod documents;
mod engine;
mod entries;
mod estimate;
mod filter;
#[cfg(test)]
mod fuzz;
mod images;
mod key;
mod key_scan;
mod literal_subjects;
mod merged;
mod names;
mod note;
mod packing;
mod page;
mod prefix_cursor;
mod preserved;
mod quad_scan;
mod quads;
mod recent_blocks;
mod run;
mod run_files;
mod runs;
mod seal;
mod sorter;
mod subject_ids;
mod subject_reader;
mod subjects;
mod term_code;
mod value_check;
mod value_cursor;
mod value_scan;
mod values;
mod view;

pub(crate) use block::{Block, Name};
pub(crate) use block_source::{BlockSource, Reading};
pub(crate) use build::{build_index, is_worthwhile as is_build_worthwhile, remove_scratch};
pub(crate) use checkpoint::{
    FoundIndex, InspectedIndex, LOADING_SEQUENCE, discard_index, find_index, index_exists,
    inspect_index, open_index,
};
pub use engine::panic_is_caught;
pub(crate) use key::{Code, DEFAULT_GRAPH, Row};
use names::Names;
pub(crate) use page::PageCursor;
pub(crate) use prefix_cursor::{BlockHint, PrefixCursor};
pub(crate) use preserved::OpenSnapshots;
use preserved::PreservedBlocks;
pub(crate) use quad_scan::{QuadScan, list_graphs};
pub(crate) use recent_blocks::RecentBlocks;
use runs::FrozenRuns;
pub use term_code::{CodedPattern, CodedQuad, TermCode};
pub(crate) use value_scan::ValueScan;
use values::{FrozenValues, Values};
pub(crate) use view::{Health, View};

use crate::{Error, SnapshotLimits};
use blocks::Blocks;
use note::Note;
use runs::Runs;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};

/// The index.
#[derive(Debug)]
pub(crate) struct Index {
    blocks: Blocks,
    /// The trees whose keys are names, which can arrive in any order.
    runs: Runs,
    /// The index of values, unless it is switched off.
    values: Option<Values>,
    names: Arc<Names>,
    /// Identifies this index within the process. Ids are valid only for one instance.
    instance: u64,
    /// The note for the state in memory.
    note: Note,
    /// The sequence of the newest frame on the medium.
    checkpointed_sequence: u64,
    /// The data directory.
    dir: PathBuf,
    /// Why the state in memory cannot be trusted, if so.
    unusable_cause: Option<String>,
    /// The first damage found since the index was opened.
    damage: OnceLock<String>,
    /// Whether the medium may have a newer checkpoint than this state knows, because writing one failed at
    /// its end.
    is_behind: AtomicBool,
    /// Whether the index was closed because another one is about to replace it.
    closed: bool,
}

/// What a snapshot keeps of its state. Where no block is preserved, the index still has the one of that state.
#[derive(Debug)]
pub(crate) struct FrozenIndex {
    pub(crate) preserved: Arc<PreservedBlocks>,
    pub(crate) runs: FrozenRuns,
    pub(crate) values: Option<FrozenValues>,
    pub(crate) names: Arc<Names>,
    pub(crate) instance: u64,
    pub(crate) sequence: u64,
}

impl Index {
    /// Returns the sequence of the newest frame that was applied.
    pub(crate) fn sequence(&self) -> u64 {
        self.note.sequence
    }

    /// Returns the sequence of the newest frame that is on the medium.
    pub(crate) fn checkpointed_sequence(&self) -> u64 {
        self.checkpointed_sequence
    }

    /// Returns the number that identifies this index within the process.
    pub(crate) fn instance(&self) -> u64 {
        self.instance
    }

    pub(crate) fn store_id(&self) -> [u8; 16] {
        self.note.store_id
    }

    /// Returns whether there is an index of values.
    pub(crate) fn has_values(&self) -> bool {
        self.values.is_some()
    }

    pub(crate) fn quad_count(&self) -> u64 {
        self.note.quads
    }

    /// Returns the number of documents.
    pub(crate) fn document_count(&self) -> u64 {
        self.note.documents
    }

    pub(crate) fn dirty_bytes(&self) -> usize {
        let values = self.values.as_ref().map_or(0, Values::changed_bytes);
        self.blocks.dirty_bytes() + self.runs.changed_bytes() + values
    }

    pub(crate) fn bytes_on_disk(&self) -> u64 {
        let values = self.values.as_ref().map_or(0, Values::bytes_on_disk);
        self.blocks.engine().bytes_on_disk() + self.runs.bytes_on_disk() + values
    }

    /// Releases the files, so that they can be reopened. Reads fail afterwards.
    pub(crate) fn close(&mut self) {
        self.closed = true;
        self.blocks.close();
        self.runs.close();
        if let Some(values) = &mut self.values {
            values.close();
        }
    }

    /// Forgets the damage that was found, once the damaged files are discarded.
    pub(crate) fn forget_damage(&mut self) {
        self.damage = OnceLock::new();
    }

    /// Returns whether the medium may be newer than this state, so that it must be read again.
    pub(crate) fn is_behind(&self) -> bool {
        self.is_behind.load(Ordering::Acquire)
    }

    /// Returns the first damage that was found, if any.
    pub(crate) fn first_damage(&self) -> Option<&str> {
        self.damage.get().map(String::as_str)
    }

    /// Sets the limits of all snapshots together. There are none yet.
    pub(crate) fn set_snapshot_limits(&mut self, limits: SnapshotLimits) {
        self.blocks.set_snapshot_limits(&self.dir, limits);
    }

    /// Returns the snapshots of this index.
    pub(crate) fn snapshots(&self) -> &Arc<OpenSnapshots> {
        self.blocks.snapshots()
    }

    /// Freezes the current state for a snapshot.
    pub(crate) fn open_snapshot(&self) -> Result<FrozenIndex, Error> {
        self.check_usable()?;
        Ok(FrozenIndex {
            preserved: self.blocks.snapshots().open(),
            runs: self.runs.freeze(),
            values: self.values.as_ref().map(|values| values.frozen().clone()),
            names: Arc::clone(&self.names),
            instance: self.instance,
            sequence: self.sequence(),
        })
    }

    /// Returns the current blocks.
    pub(crate) fn blocks(&self) -> &impl BlockSource {
        &self.blocks
    }

    /// Returns the current state, for reading.
    pub(crate) fn view(&self) -> View<'_> {
        View {
            blocks: &self.blocks,
            runs: &self.runs,
            values: self.values.as_ref().map(Values::frozen),
            names: &self.names,
            health: self,
            instance: self.instance,
            sequence: self.sequence(),
        }
    }
}

impl Health for Index {
    fn check_usable(&self) -> Result<(), Error> {
        match &self.unusable_cause {
            _ if self.closed => Err(Error::Reopening),
            Some(cause) => Err(Error::Index(cause.clone())),
            None => Ok(()),
        }
    }

    fn record_damage(&self, error: &Error) {
        if let Error::Index(cause) = error
            && self.damage.set(cause.clone()).is_ok()
        {
            tracing::warn!(
                cause,
                "The quad index is damaged; it is rebuilt when the store is reopened."
            );
        }
    }
}
