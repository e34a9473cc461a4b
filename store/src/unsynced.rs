//! A commit that may not be synced yet.
use crate::journal::SyncState;
use crate::steps::Stage;
use crate::{Commit, Error, ReadStore, Store, Transaction};
use std::future::poll_fn;
use std::sync::Arc;
use std::task::{Context, Poll};

/// A value that may be reported only after a sync, because the power may be cut before. Get it with [`Self::wait`] or
/// [`Self::synced`]. If this is dropped, the commit exists nevertheless.
#[derive(Debug)]
#[must_use = "the commit is reported only once it is synced"]
pub struct Unsynced<T> {
    value: T,
    /// `None` if the value depends on no commit.
    commit: Option<UnsyncedCommit>,
}

/// A commit that may not be synced yet.
#[derive(Debug)]
struct UnsyncedCommit {
    sequence: u64,
    synced: Arc<SyncState>,
    store: ReadStore,
    /// Identifies this commit among those that wait without a thread, since it waits so.
    task: Option<u64>,
}

impl Store {
    /// As [`Self::transact`], but returns before the frame is synced. The result gives the value once it is.
    pub fn transact_unsynced<T, E: From<Error>>(
        &self,
        change: impl FnOnce(&mut Transaction<'_>) -> Result<T, E>,
    ) -> Result<Unsynced<(T, Commit)>, E> {
        let mut writer = self.inner().lock_writer_if_writable()?;
        self.inner().checkpoint_if_due(&writer)?;
        let steps = &self.inner().steps;
        let begun = steps.enter_stage(Stage::Changing);
        let mut transaction = Transaction::new(self.read().index, steps);
        let value = change(&mut transaction)?;
        let changes = transaction.into_changes()?;
        let sequence = self.inner().append_and_apply(&mut writer, &changes)?;
        let commit = Commit { sequence, added: changes.added, removed: changes.removed };
        // Many commits may wait for a sync at the same time.
        drop(changes);
        // Reopening may replace the sync state once the writer is dropped.
        let unsynced = Unsynced::new((value, commit), sequence, self, writer.sync_state());
        drop(begun);
        Ok(unsynced)
    }
}

impl<T> Unsynced<T> {
    pub(crate) fn new(value: T, sequence: u64, store: &ReadStore, synced: Arc<SyncState>) -> Self {
        store.inner().steps.begin_wait();
        let commit = UnsyncedCommit { sequence, synced, store: store.clone(), task: None };
        Self { value, commit: Some(commit) }
    }

    /// Returns a value that depends on no commit, so that it waits for nothing.
    pub fn without_commit(value: T) -> Self {
        Self { value, commit: None }
    }

    /// Converts the value. The result can be given away only after the sync too.
    pub fn map<U>(self, convert: impl FnOnce(T) -> U) -> Unsynced<U> {
        Unsynced { value: convert(self.value), commit: self.commit }
    }

    /// Waits for the sync, and returns the value. Blocking.
    ///
    /// # Errors
    /// [`Error::Io`] or [`Error::Poisoned`] if the sync failed: it is unknown whether the commit exists until the store
    /// is reopened.
    pub fn wait(self) -> Result<T, Error> {
        if let Some(commit) = &self.commit {
            commit.synced.wait_synced(commit.sequence)?;
            commit.store.start_maintenance();
        }
        Ok(self.value)
    }

    /// Waits for the sync without a thread, and returns the value. It blocks only if the system has no thread for the
    /// sync.
    ///
    /// # Errors
    /// As [`Self::wait`].
    pub async fn synced(mut self) -> Result<T, Error> {
        if let Some(commit) = &mut self.commit {
            poll_fn(|context| commit.poll_synced(context)).await?;
            commit.store.start_maintenance();
        }
        Ok(self.value)
    }
}

impl UnsyncedCommit {
    fn poll_synced(&mut self, context: &Context<'_>) -> Poll<Result<(), Error>> {
        let is_first = self.task.is_none();
        let polled = self.synced.poll_synced(self.sequence, &mut self.task, context.waker());
        if polled.is_pending()
            && is_first
            && !self.store.inner().sync_thread.request_sync(&self.synced, self.sequence)
        {
            return Poll::Ready(self.synced.wait_synced(self.sequence));
        }
        polled
    }
}

impl Drop for UnsyncedCommit {
    fn drop(&mut self) {
        self.store.inner().steps.end_wait();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Options;
    use crate::faults::{Failure, Faults};
    use std::pin::{Pin, pin};
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::task::{Wake, Waker};
    use std::thread::{self, Thread};
    use std::time::Duration;

    /// Counts how often a task was woken, and unparks the thread of its test.
    struct Wakings {
        count: AtomicUsize,
        thread: Thread,
    }

    impl Wake for Wakings {
        fn wake(self: Arc<Self>) {
            self.count.fetch_add(1, Ordering::SeqCst);
            self.thread.unpark();
        }
    }

    impl Wakings {
        fn new() -> Arc<Self> {
            Arc::new(Self { count: AtomicUsize::new(0), thread: thread::current() })
        }

        fn count(&self) -> usize {
            self.count.load(Ordering::SeqCst)
        }
    }

    fn poll<T>(waiting: Pin<&mut impl Future<Output = T>>, wakings: &Arc<Wakings>) -> Option<T> {
        match waiting.poll(&mut Context::from_waker(&Waker::from(wakings.clone()))) {
            Poll::Ready(value) => Some(value),
            Poll::Pending => None,
        }
    }

    /// Polls until the result, each time after being woken.
    fn complete<T>(mut waiting: Pin<&mut impl Future<Output = T>>) -> T {
        let wakings = Wakings::new();
        for woken in 1.. {
            if let Some(value) = poll(waiting.as_mut(), &wakings) {
                return value;
            }
            while wakings.count() < woken {
                thread::park_timeout(Duration::from_mins(1));
            }
        }
        unreachable!("the loop has no end")
    }

    fn put(store: &Store, number: u64) -> Unsynced<u64> {
        let change = |change: &mut Transaction<'_>| {
            change.put_document("d", &number.to_be_bytes(), b"value")
        };
        store.transact_unsynced::<_, Error>(change).unwrap().map(|((), commit)| commit.sequence)
    }

    fn open(dir: &tempfile::TempDir) -> Store {
        Store::open(dir.path(), Options::default(), &mut |_| {}).unwrap()
    }

    #[test]
    fn a_value_is_given_only_after_its_sync() {
        let dir = tempfile::tempdir().unwrap();
        let store = open(&dir);
        let commits: Vec<_> = (0..100).map(|number| put(&store, number)).collect();
        assert_eq!(store.inner().sync_state().newest_synced(), 0);
        for commit in commits {
            let sequence = complete(pin!(commit.synced())).unwrap();
            assert!(store.inner().sync_state().newest_synced() >= sequence);
        }
        assert_eq!(complete(pin!(Unsynced::without_commit(7).synced())).unwrap(), 7);
        assert_eq!(put(&store, 100).wait().unwrap(), 101);
        assert_eq!(store.stage(), Stage::Idle);
    }

    #[test]
    fn the_newest_waker_of_a_commit_is_woken_once() {
        let dir = tempfile::tempdir().unwrap();
        let store = open(&dir);
        let synced = store.inner().sync_state();
        synced.set_hanging(true);
        let mut waiting = pin!(put(&store, 0).synced());
        let (replaced, newest) = (Wakings::new(), Wakings::new());
        assert!(poll(waiting.as_mut(), &replaced).is_none());
        assert!(poll(waiting.as_mut(), &newest).is_none());
        // A commit whose client has disconnected is forgotten at its sync.
        let gone = Wakings::new();
        assert!(poll(pin!(put(&store, 1).synced()), &gone).is_none());
        assert_eq!(store.stage(), Stage::Syncing);
        synced.set_hanging(false);
        while newest.count() == 0 {
            thread::park_timeout(Duration::from_mins(1));
        }
        complete(waiting).unwrap();
        synced.wait_synced(2).unwrap();
        assert_eq!((replaced.count(), newest.count()), (0, 1));
    }

    #[test]
    fn a_failed_sync_fails_every_commit_that_waits_for_it() {
        let dir = tempfile::tempdir().unwrap();
        let faults = Faults::inject_below(dir.path());
        let store = open(&dir);
        let commits: Vec<_> = (0..10).map(|number| put(&store, number)).collect();
        faults.fail_nth(1, Failure::Io, false);
        for commit in commits {
            let failed = complete(pin!(commit.synced()));
            assert!(matches!(failed, Err(Error::Io { action: "syncing", .. })), "{failed:?}");
        }
        store.reopen(&mut |_| {}).unwrap();
        complete(pin!(put(&store, 11).synced())).unwrap();
    }
}
