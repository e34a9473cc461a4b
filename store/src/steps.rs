//! The progress of the writer, for observers that must not wait for a lock.
use std::fmt;
use std::sync::atomic::{AtomicU8, AtomicU64, AtomicUsize, Ordering};

/// The current activity of the writer of a store.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum Stage {
    /// The writer does nothing.
    Idle,
    /// Running the change of a transaction.
    Changing,
    /// Writing a frame to the journal.
    Appending,
    /// Applying a commit to the index.
    Applying,
    /// Syncing the journal, for a checkpoint or for waiting commits.
    Syncing,
    /// Writing a checkpoint of the index.
    Checkpointing,
    /// Reopening the store. Commits are refused.
    Reopening,
}

impl Stage {
    const ALL: [Self; 7] = [
        Self::Idle,
        Self::Changing,
        Self::Appending,
        Self::Applying,
        Self::Syncing,
        Self::Checkpointing,
        Self::Reopening,
    ];
}

impl fmt::Display for Stage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Idle => "idle",
            Self::Changing => "running a transaction",
            Self::Appending => "writing to the journal",
            Self::Applying => "applying a commit to the index",
            Self::Syncing => "syncing the journal",
            Self::Checkpointing => "writing a checkpoint",
            Self::Reopening => "reopening the store",
        })
    }
}

/// Counts the steps of the writer.
#[derive(Debug, Default)]
pub(crate) struct WriterSteps {
    count: AtomicU64,
    stage: AtomicU8,
    /// The number of commits that wait for their sync while the writer does something else.
    waiting: AtomicUsize,
}

impl WriterSteps {
    /// Counts one step.
    pub(crate) fn count_step(&self) {
        self.count.fetch_add(1, Ordering::Relaxed);
    }

    /// Enters a stage. Returns to the previous one when the result is dropped.
    pub(crate) fn enter_stage(&self, stage: Stage) -> StageGuard<'_> {
        StageGuard { steps: self, before: self.stage.swap(stage as u8, Ordering::Relaxed) }
    }

    /// Counts a waiting commit, until [`Self::end_wait`].
    pub(crate) fn begin_wait(&self) {
        self.waiting.fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn end_wait(&self) {
        self.waiting.fetch_sub(1, Ordering::Relaxed);
    }

    pub(crate) fn step_count(&self) -> u64 {
        self.count.load(Ordering::Relaxed)
    }

    pub(crate) fn stage(&self) -> Stage {
        let stage = usize::from(self.stage.load(Ordering::Relaxed));
        match Stage::ALL.get(stage).copied().unwrap_or(Stage::Idle) {
            Stage::Idle if self.waiting.load(Ordering::Relaxed) > 0 => Stage::Syncing,
            stage => stage,
        }
    }
}

/// A stage, which can be nested in another.
pub(crate) struct StageGuard<'a> {
    steps: &'a WriterSteps,
    before: u8,
}

impl Drop for StageGuard<'_> {
    fn drop(&mut self) {
        self.steps.stage.store(self.before, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{DocumentRange, Error, Options, Read as _, Store, SubjectFilter};
    use std::thread;
    use std::time::{Duration, Instant};

    #[test]
    fn the_stage_is_syncing_while_a_sync_hangs() {
        let dir = tempfile::tempdir().unwrap();
        let store = Store::open(dir.path(), Options::default(), &mut |_| {}).unwrap();
        store.inner().sync_state().set_hanging(true);
        let began = Instant::now();
        let hanging = thread::scope(|scope| {
            scope.spawn(|| {
                store
                    .transact::<_, Error>(|change| change.put_document("d", b"key", b"value"))
                    .unwrap();
            });
            while store.stage() != Stage::Syncing && began.elapsed() < Duration::from_mins(1) {
                thread::yield_now();
            }
            let stage = store.stage();
            store.inner().sync_state().set_hanging(false);
            stage
        });
        assert_eq!(hanging, Stage::Syncing);
        assert_eq!(store.stage(), Stage::Idle);
    }

    #[test]
    fn documents_and_listings_count_as_steps() {
        let dir = tempfile::tempdir().unwrap();
        let store = Store::open(dir.path(), Options::default(), &mut |_| {}).unwrap();
        let put = |change: &mut crate::Transaction<'_>| {
            (0..100_u8).try_for_each(|n| change.put_document("d", &[n], b"value"))
        };
        store.transact::<_, Error>(put).unwrap();
        // Each is put, compared with the old value, and applied.
        assert!(store.step_count() >= 300, "{}", store.step_count());
        let mut counted = store.step_count();
        let mut grown = |what: &str| {
            let now = store.step_count();
            assert!(now > counted, "{what} did not count as a step");
            now - std::mem::replace(&mut counted, now)
        };
        let look = |change: &mut crate::Transaction<'_>| {
            let range = DocumentRange { limit: 100, ..DocumentRange::default() };
            change.read_documents("d", range)?;
            assert!(grown("a range") >= 100);
            change.list_subjects(&SubjectFilter::default(), None, 10)?;
            grown("a listing");
            change.delete_document("d", b"none")?;
            grown("a deletion");
            change.prior_state();
            grown("the prior state");
            Ok(())
        };
        store.transact::<_, Error>(look).unwrap();
    }

    #[test]
    fn the_stage_is_the_innermost_one() {
        let steps = WriterSteps::default();
        assert_eq!(steps.stage(), Stage::Idle);
        for stage in Stage::ALL {
            let begun = steps.enter_stage(stage);
            assert_eq!(steps.stage(), stage);
            let within = steps.enter_stage(Stage::Appending);
            assert_eq!(steps.stage(), Stage::Appending);
            drop(within);
            assert_eq!(steps.stage(), stage);
            drop(begun);
            assert_eq!(steps.stage(), Stage::Idle);
        }
    }

    #[test]
    fn waiting_commits_show_as_syncing_without_a_writer() {
        let steps = WriterSteps::default();
        steps.begin_wait();
        assert_eq!(steps.stage(), Stage::Syncing);
        let begun = steps.enter_stage(Stage::Changing);
        assert_eq!(steps.stage(), Stage::Changing);
        drop(begun);
        assert_eq!(steps.stage(), Stage::Syncing);
        steps.end_wait();
        assert_eq!(steps.stage(), Stage::Idle);
    }
}
