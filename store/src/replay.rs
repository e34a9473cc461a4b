//! Bringing an index up to the journal: replays the frames that it lacks, or rebuilds it.
use crate::frame::Change;
use crate::index::{self, FoundIndex, Index, LOADING_SEQUENCE};
use crate::journal::{self, ApplyFrame, Base, SettledJournal, StoreId};
use crate::steps::WriterSteps;
use crate::{Error, Options, Progress};
use std::cell::{Cell, RefCell};
use std::path::Path;

/// The store that a replay works for.
#[derive(Clone, Copy)]
pub(crate) struct ReplayContext<'s> {
    pub(crate) dir: &'s Path,
    pub(crate) options: &'s Options,
    pub(crate) steps: &'s WriterSteps,
}

/// Replays the journal into an index. Rebuilds the index if it is unusable, or if the index of values was switched on or
/// off, but only after all of the journal was read: until then, the index may be the only copy of some data.
pub(crate) fn catch_up(
    ReplayContext { dir, options, steps }: ReplayContext<'_>,
    found: FoundIndex,
    journal: &SettledJournal,
    progress: &mut dyn FnMut(Progress),
) -> Result<Index, Error> {
    let (id, value_index) = (journal.id(), options.value_index);
    let mut index = match found {
        FoundIndex::Usable(index) => *index,
        FoundIndex::Unusable { cause, is_of_other_version, .. } => {
            if is_of_other_version {
                tracing::info!(
                    cause,
                    "The quad index is of another version; rebuilding it from the journal."
                );
            } else {
                warn_of_rebuild(&cause);
            }
            read_journal(dir, journal, steps, progress)?;
            replace_index(dir, id, value_index)?
        }
    };
    if index.has_values() != value_index && can_rebuild(dir, &index, journal, steps, progress)? {
        tracing::info!(value_index, "Rebuilding the quad index from the journal.");
        drop(index);
        index = replace_index(dir, id, value_index)?;
    }
    if let Some(base) = journal.base()
        && index::is_build_worthwhile(dir, &index, base)
    {
        index = build_sorted(dir, index, base, steps, progress)?;
    }
    match replay_journal(&mut index, journal, options, steps, progress) {
        Err(Error::Index(cause)) => {
            warn_of_rebuild(&cause);
            read_journal(dir, journal, steps, progress)?;
            drop(index);
            index = replace_index(dir, id, value_index)?;
            replay_journal(&mut index, journal, options, steps, progress)?;
        }
        done => done?,
    }
    index.set_snapshot_limits(options.snapshots);
    Ok(index)
}

fn warn_of_rebuild(cause: &str) {
    tracing::warn!(cause, "The quad index was unusable; rebuilding it from the journal.");
}

/// Reads the whole journal, so that the index can be rebuilt from it. Meanwhile `progress` is called and steps are
/// counted, because a process without progress is ended.
fn read_journal(
    dir: &Path,
    journal: &SettledJournal,
    steps: &WriterSteps,
    progress: &mut dyn FnMut(Progress),
) -> Result<(), Error> {
    let (parts, from) = journal.base().map_or((0, 0), |base| (base.end.parts, base.end.from));
    let total = parts + journal.newest.saturating_sub(from);
    let (done, progress) = (Cell::new(0), RefCell::new(progress));
    let folder = dir.join("journal");
    journal::read_synced(&folder, &journal.id(), journal.newest, &|| {
        done.set(done.get() + 1);
        (*progress.borrow_mut())(Progress { done: done.get(), total });
        steps.count_step();
        Ok(())
    })
}

/// Returns whether the whole journal can be read. If it cannot, an index that works is the only copy of the data.
fn can_rebuild(
    dir: &Path,
    index: &Index,
    journal: &SettledJournal,
    steps: &WriterSteps,
    progress: &mut dyn FnMut(Progress),
) -> Result<bool, Error> {
    if index.checkpointed_sequence() == 0 {
        return Ok(true);
    }
    match read_journal(dir, journal, steps, progress) {
        // A bad sector is an I/O error.
        Err(cause @ (Error::Corrupt(_) | Error::Io { .. })) => {
            tracing::error!(%cause,
                "The quad index was not rebuilt for the setting of the index of values, because the journal is damaged; \
                 back up the store, and restore it from that backup.");
            Ok(false)
        }
        read => read.map(|()| true),
    }
}

/// Builds an index from a base. If there is too little disk space for that, or if what was sorted is damaged, returns an
/// empty one, which is filled by a replay.
fn build_sorted(
    dir: &Path,
    index: Index,
    base: &Base,
    steps: &WriterSteps,
    progress: &mut dyn FnMut(Progress),
) -> Result<Index, Error> {
    let (id, has_values) = (index.store_id(), index.has_values());
    let total = 2 * base.end.parts;
    let built =
        index::build_index(dir, index, base, steps, &mut |done| progress(Progress { done, total }));
    match built {
        Err(error) if error.is_disk_full() || matches!(error, Error::Index(_)) => {
            tracing::warn!(%error, "The quad index could not be built in sorted order; replaying the journal.");
            replace_index(dir, id, has_values)
        }
        built => built,
    }
}

/// Replaces an index, which is closed, by an empty one.
fn replace_index(dir: &Path, id: StoreId, has_values: bool) -> Result<Index, Error> {
    index::discard_index(dir)?;
    index::open_index(dir, id, has_values)
}

fn replay_journal(
    index: &mut Index,
    journal: &SettledJournal,
    options: &Options,
    steps: &WriterSteps,
    progress: &mut dyn FnMut(Progress),
) -> Result<(), Error> {
    Replay {
        base: journal.base(),
        newest: journal.newest,
        write_back_bytes: Some(options.write_back_bytes),
        steps,
        frames: &|after, apply| journal.replay_after(after, apply),
    }
    .replay_into(index, progress)
}

/// Replays the journal into an index.
pub(crate) struct Replay<'a> {
    pub(crate) base: Option<&'a Base>,
    pub(crate) newest: u64,
    /// Changed bytes after which a checkpoint is written; `None` if the index must not change on disk.
    pub(crate) write_back_bytes: Option<usize>,
    /// Counts the progress.
    pub(crate) steps: &'a WriterSteps,
    /// Passes the frames after a sequence to a callback, in order.
    pub(crate) frames: &'a dyn Fn(u64, &mut ApplyFrame<'_>) -> Result<(), Error>,
}

impl Replay<'_> {
    pub(crate) fn replay_into(
        &self,
        index: &mut Index,
        progress: &mut dyn FnMut(Progress),
    ) -> Result<(), Error> {
        let base = self.base.filter(|base| index.checkpointed_sequence() < base.end.from);
        let after = base.map_or(index.checkpointed_sequence(), |base| base.end.from);
        let parts = base.map_or(0, |base| base.end.parts);
        let total = parts + self.newest - after;
        // A base without parts is the state of an empty store: only the sequence is taken over.
        if total == 0 && base.is_none() {
            return Ok(());
        }
        let mut done = 0;
        progress(Progress { done, total });
        let mut apply = |index: &mut Index, sequence, payload: &[u8]| {
            let change = match Change::decode(payload) {
                Ok(change) => change,
                Err(what) => return Ok(Err(what)),
            };
            index.apply_frame(sequence, &change, self.steps)?;
            if self.write_back_bytes.is_some_and(|most| index.is_checkpoint_due(most)) {
                index.check_checkpoint_space()?;
                let written = index.write_checkpoint(self.steps)?;
                index.mark_written(written);
            }
            done += 1;
            progress(Progress { done, total });
            Ok(Ok(()))
        };
        if let Some(base) = base {
            base.replay_parts(&mut |part, payload| apply(index, LOADING_SEQUENCE + part, payload))?;
            index.apply_frame(base.end.from, &Change::default(), self.steps)?;
        }
        (self.frames)(after, &mut |sequence, payload| apply(index, sequence, payload))?;
        tracing::info!(parts, frames = total - parts, "Replayed the journal into the quad index.");
        Ok(())
    }
}
