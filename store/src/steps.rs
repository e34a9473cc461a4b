//! How far the writer is, for who watches it and must wait for nothing.
use std::fmt;
use std::sync::atomic::{AtomicU8, AtomicU64, AtomicUsize, Ordering};

/// What the writer of a store is at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum Stage {
    /// Nothing.
    Idle,
    /// It makes a change, by the rules of who asked for it.
    Changing,
    /// It writes a frame to the journal.
    Appending,
    /// It brings a commit into the index.
    Applying,
    /// It waits until the journal is on the medium, for a checkpoint; or there is no writer, and those
    /// whose commits were applied wait for it.
    Syncing,
    /// It writes the index out.
    WritingOut,
    /// Nobody may write: the store is being opened anew.
    Reopening,
}

impl Stage {
    const ALL: [Self; 7] = [
        Self::Idle,
        Self::Changing,
        Self::Appending,
        Self::Applying,
        Self::Syncing,
        Self::WritingOut,
        Self::Reopening,
    ];
}

impl fmt::Display for Stage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Idle => "nothing",
            Self::Changing => "making a change",
            Self::Appending => "writing to the journal",
            Self::Applying => "bringing a commit into the index",
            Self::Syncing => "waiting for the journal to be on the medium",
            Self::WritingOut => "writing the index out",
            Self::Reopening => "opening the store anew",
        })
    }
}

/// Counts what the writer does.
#[derive(Debug, Default)]
pub(crate) struct Steps {
    count: AtomicU64,
    stage: AtomicU8,
    /// How many wait until their commits are on the medium, when the writer is at something else already.
    waiting: AtomicUsize,
}

impl Steps {
    /// One more thing is done.
    pub(crate) fn step(&self) {
        self.count.fetch_add(1, Ordering::Relaxed);
    }

    /// It goes over to another stage, and back when what is given is dropped.
    pub(crate) fn begin(&self, stage: Stage) -> Begun<'_> {
        Begun { steps: self, before: self.stage.swap(stage as u8, Ordering::Relaxed) }
    }

    /// Somebody waits for a commit to be on the medium, until what is given is dropped.
    pub(crate) fn wait(&self) -> Waiting<'_> {
        self.waiting.fetch_add(1, Ordering::Relaxed);
        Waiting(self)
    }

    pub(crate) fn count(&self) -> u64 {
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

/// A stage, perhaps within another.
pub(crate) struct Begun<'a> {
    steps: &'a Steps,
    before: u8,
}

impl Drop for Begun<'_> {
    fn drop(&mut self) {
        self.steps.stage.store(self.before, Ordering::Relaxed);
    }
}

/// Somebody who waits for a sync.
pub(crate) struct Waiting<'a>(&'a Steps);

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        self.0.waiting.fetch_sub(1, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{DocumentRange, Error, Options, Read as _, Store, SubjectFilter};
    use std::thread;
    use std::time::{Duration, Instant};

    #[test]
    fn a_sync_that_does_not_return_is_what_is_told() {
        let dir = tempfile::tempdir().unwrap();
        let store = Store::open(dir.path(), Options::default(), &mut |_| {}).unwrap();
        store.inner().synced().hang(true);
        let began = Instant::now();
        let told = thread::scope(|scope| {
            scope.spawn(|| {
                store.transact::<_, Error>(|change| change.put("d", b"key", b"value")).unwrap();
            });
            while store.stage() != Stage::Syncing && began.elapsed() < Duration::from_mins(1) {
                thread::yield_now();
            }
            let told = store.stage();
            store.inner().synced().hang(false);
            told
        });
        assert_eq!(told, Stage::Syncing);
        assert_eq!(store.stage(), Stage::Idle);
    }

    #[test]
    fn documents_and_listings_are_steps_too() {
        let dir = tempfile::tempdir().unwrap();
        let store = Store::open(dir.path(), Options::default(), &mut |_| {}).unwrap();
        let put = |change: &mut crate::Transaction<'_>| {
            (0..100_u8).try_for_each(|n| change.put("d", &[n], b"value"))
        };
        store.transact::<_, Error>(put).unwrap();
        // Each is put, compared with what was there, and applied.
        assert!(store.steps() >= 300, "{}", store.steps());
        let mut counted = store.steps();
        let mut grown = |what: &str| {
            let now = store.steps();
            assert!(now > counted, "{what} is no step");
            now - std::mem::replace(&mut counted, now)
        };
        let look = |change: &mut crate::Transaction<'_>| {
            let range = DocumentRange { limit: 100, ..DocumentRange::default() };
            change.documents("d", range)?;
            assert!(grown("a range") >= 100);
            change.subjects(&SubjectFilter::default(), None, 10)?;
            grown("a listing");
            change.delete("d", b"none")?;
            grown("a deletion");
            change.before();
            grown("what was before");
            Ok(())
        };
        store.transact::<_, Error>(look).unwrap();
    }

    #[test]
    fn the_stage_is_the_one_that_was_begun() {
        let steps = Steps::default();
        assert_eq!(steps.stage(), Stage::Idle);
        for stage in Stage::ALL {
            let begun = steps.begin(stage);
            assert_eq!(steps.stage(), stage);
            let within = steps.begin(Stage::Appending);
            assert_eq!(steps.stage(), Stage::Appending);
            drop(within);
            assert_eq!(steps.stage(), stage);
            drop(begun);
            assert_eq!(steps.stage(), Stage::Idle);
        }
    }

    #[test]
    fn who_waits_for_a_sync_shows_when_there_is_no_writer() {
        let steps = Steps::default();
        let waiting = [steps.wait(), steps.wait()];
        assert_eq!(steps.stage(), Stage::Syncing);
        let begun = steps.begin(Stage::Changing);
        assert_eq!(steps.stage(), Stage::Changing);
        drop(begun);
        assert_eq!(steps.stage(), Stage::Syncing);
        drop(waiting);
        assert_eq!(steps.stage(), Stage::Idle);
    }
}
