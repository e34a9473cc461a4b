//! Deferred writes: small changes that a thread collects for a second and commits together. So a sign-in with its three
//! changes (last login, session, audit event) costs one frame on disk, and the request does not wait.
//!
//! If the process is killed, the changes of the last second are lost. Changes that must not be lost are committed
//! directly by their callers.
use parking_lot::{Condvar, Mutex, MutexGuard};
use penstock_base::error::{ErrorClass, GatewayError};
use penstock_store::{Store, Transaction};
use std::fmt;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// How long changes are collected before a commit.
const COMMIT_DELAY: Duration = Duration::from_secs(1);
/// How long the thread waits after a failed commit before it retries.
const RETRY_INTERVAL: Duration = Duration::from_secs(10);
/// The attempts after which a change is dropped that fails itself: the changes after it cannot be committed before it, because
/// they may be of the same document.
const MAX_ATTEMPTS: u32 = 6;
/// The maximum number of waiting changes. Beyond it, new ones are dropped.
const MAX_WAITING_CHANGES: usize = 4096;

/// A change. It runs again if its commit fails.
type Change = Box<dyn Fn(&mut Transaction<'_>) -> Result<(), GatewayError> + Send>;

/// The queue of deferred changes. Cheap to clone. Dropping the last clone commits the waiting changes.
#[derive(Debug, Clone)]
pub(super) struct DeferredWrites {
    thread: Arc<Thread>,
}

#[derive(Debug)]
struct Thread {
    shared: Arc<Shared>,
    handle: Option<JoinHandle<()>>,
}

struct Shared {
    store: Store,
    queue: Mutex<Queue>,
    wake: Condvar,
    /// Locked during a commit, so that a flush waits for changes that another thread has already taken.
    committing: Mutex<()>,
}

struct Waiting {
    due: Instant,
    /// How often it failed itself.
    failures: u32,
    change: Change,
}

#[derive(Default)]
struct Queue {
    changes: Vec<Waiting>,
    /// The earliest time of the next attempt, after a failure.
    not_before: Option<Instant>,
    dropped: u64,
    is_ending: bool,
}

impl fmt::Debug for Shared {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} changes", self.queue.lock().changes.len())
    }
}

impl DeferredWrites {
    /// Starts the thread that commits the changes.
    ///
    /// # Errors
    /// If the system cannot start a thread.
    pub(super) fn start(store: Store) -> std::io::Result<Self> {
        let shared = Arc::new(Shared {
            store,
            queue: Mutex::default(),
            wake: Condvar::new(),
            committing: Mutex::default(),
        });
        let of_thread = shared.clone();
        let handle = std::thread::Builder::new()
            .name("later".into())
            .spawn(move || of_thread.run_commit_loop())?;
        Ok(Self { thread: Arc::new(Thread { shared, handle: Some(handle) }) })
    }

    /// Enqueues a change, to be committed within about a second. Drops it if the queue is full.
    pub(super) fn enqueue(
        &self,
        change: impl Fn(&mut Transaction<'_>) -> Result<(), GatewayError> + Send + 'static,
    ) {
        self.enqueue_after(COMMIT_DELAY, change);
    }

    /// Enqueues a change, to be committed after this delay, or earlier when the gateway stops. Drops it if the queue is
    /// full.
    pub(super) fn enqueue_after(
        &self,
        delay: Duration,
        change: impl Fn(&mut Transaction<'_>) -> Result<(), GatewayError> + Send + 'static,
    ) {
        let mut queue = self.thread.shared.queue.lock();
        if queue.changes.len() >= MAX_WAITING_CHANGES {
            queue.dropped += 1;
            return;
        }
        self.push(queue, delay, Box::new(change));
    }

    /// Enqueues a change as [`Self::enqueue`] does, but never drops it.
    pub(super) fn enqueue_always(
        &self,
        change: impl Fn(&mut Transaction<'_>) -> Result<(), GatewayError> + Send + 'static,
    ) {
        self.push(self.thread.shared.queue.lock(), COMMIT_DELAY, Box::new(change));
    }

    fn push(&self, mut queue: MutexGuard<'_, Queue>, delay: Duration, change: Change) {
        queue.changes.push(Waiting { due: Instant::now() + delay, failures: 0, change });
        drop(queue);
        self.thread.shared.wake.notify_all();
    }

    /// Commits the changes that are due within a second. Blocking.
    pub(super) fn flush(&self) {
        self.thread.shared.commit_due(Some(Instant::now() + COMMIT_DELAY));
    }

    /// Commits all waiting changes. Blocking.
    pub(super) fn flush_all(&self) {
        self.thread.shared.commit_due(None);
    }
}

impl Drop for Thread {
    fn drop(&mut self) {
        self.shared.queue.lock().is_ending = true;
        self.shared.wake.notify_all();
        if let Some(handle) = self.handle.take() {
            // If the thread panics, the process ends with it.
            let _ = handle.join();
        }
    }
}

impl Shared {
    fn run_commit_loop(&self) {
        loop {
            let mut queue = self.queue.lock();
            loop {
                let now = Instant::now();
                let due = queue.changes.iter().map(|waiting| waiting.due).min();
                let due = due.map(|due| queue.not_before.map_or(due, |retry| retry.max(due)));
                match due {
                    _ if queue.is_ending => {
                        drop(queue);
                        self.commit_due(None);
                        return;
                    }
                    Some(due) if due <= now => break,
                    Some(due) => {
                        self.wake.wait_for(&mut queue, due - now);
                    }
                    None => self.wake.wait(&mut queue),
                }
            }
            drop(queue);
            self.commit_due(Some(Instant::now()));
        }
    }

    /// Commits the changes that are due at the time `until`, or all changes if it is `None`.
    fn commit_due(&self, until: Option<Instant>) {
        let _committing = self.committing.lock();
        let mut queue = self.queue.lock();
        let (mut due, rest) = std::mem::take(&mut queue.changes)
            .into_iter()
            .partition::<Vec<_>, _>(|waiting| until.is_none_or(|until| waiting.due <= until));
        queue.changes = rest;
        let dropped = std::mem::take(&mut queue.dropped);
        // At the end there is no other attempt.
        let max_attempts = if queue.is_ending { 1 } else { MAX_ATTEMPTS };
        drop(queue);
        if dropped > 0 {
            tracing::warn!(
                changes = dropped,
                "Last uses and events were dropped, because too many were waiting for the store."
            );
        }
        let committed = loop {
            if due.is_empty() {
                return;
            }
            let (failing, committed) = self.commit(&mut due);
            let failed = failing.filter(|index| {
                due.get(*index).is_some_and(|waiting| waiting.failures >= max_attempts)
            });
            match (failed, committed) {
                (Some(index), Err(error)) => {
                    due.remove(index);
                    tracing::error!(
                        %error,
                        "A last use, a session or an event could not be written in several attempts, and was dropped."
                    );
                }
                (_, committed) => break committed,
            }
        };
        let mut queue = self.queue.lock();
        match committed {
            Ok(()) => queue.not_before = None,
            Err(fault) => {
                let first = queue.not_before.is_none();
                queue.not_before = Some(Instant::now() + RETRY_INTERVAL);
                let newer = std::mem::replace(&mut queue.changes, due);
                queue.changes.extend(newer);
                drop(queue);
                if first {
                    tracing::warn!(%fault, "Writing last uses and events failed. The gateway retries until the store accepts them.");
                }
            }
        }
    }

    /// Commits these changes together. Returns the index of one that failed itself, and counts that.
    fn commit(&self, due: &mut [Waiting]) -> (Option<usize>, Result<(), GatewayError>) {
        let mut failing = None;
        let committed = self.store.transact::<_, GatewayError>(|transaction| {
            due.iter().enumerate().try_for_each(|(index, waiting)| {
                (waiting.change)(transaction).inspect_err(|error| {
                    // Otherwise the store takes no changes at all.
                    let is_own = !matches!(
                        error.class,
                        ErrorClass::Unavailable(_) | ErrorClass::InsufficientStorage
                    );
                    failing = is_own.then_some(index);
                })
            })
        });
        if let Some(waiting) = failing.and_then(|index| due.get_mut(index)) {
            waiting.failures += 1;
        }
        (failing, committed.map(drop))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use penstock_store::{Options, Read};

    fn open_store(dir: &std::path::Path) -> Store {
        Store::open(dir, Options::default(), &mut |_| {}).unwrap()
    }

    #[test]
    fn changes_are_committed_in_order_together_and_at_the_latest_on_drop() {
        let dir = tempfile::tempdir().unwrap();
        let store = open_store(dir.path());
        let later = DeferredWrites::start(store.clone()).unwrap();
        let before = store.read().sequence();
        for value in 1..=3_u8 {
            later.enqueue(move |t| Ok(t.put_document("c", b"k", &[value])?));
        }
        later.enqueue_after(Duration::from_hours(1), |t| Ok(t.put_document("c", b"hour", b"1")?));
        later.flush();
        assert_eq!(store.read().read_document("c", b"k").unwrap(), Some(vec![3]));
        assert_eq!(store.read().read_document("c", b"hour").unwrap(), None);
        assert!(store.read().sequence() - before <= 3);
        drop(later);
        assert_eq!(store.read().read_document("c", b"hour").unwrap(), Some(b"1".to_vec()));
    }

    #[test]
    fn changes_of_a_failed_commit_are_retried() {
        use std::sync::atomic::{AtomicBool, Ordering};
        let dir = tempfile::tempdir().unwrap();
        let store = open_store(dir.path());
        let later = DeferredWrites::start(store.clone()).unwrap();
        let broken = Arc::new(AtomicBool::new(true));
        let is_broken = broken.clone();
        later.enqueue(move |t| {
            if is_broken.load(Ordering::Relaxed) {
                return Err(GatewayError::new(ErrorClass::InsufficientStorage, "no disk space"));
            }
            Ok(t.put_document("c", b"k", b"1")?)
        });
        later.flush();
        assert_eq!(store.read().read_document("c", b"k").unwrap(), None);
        broken.store(false, Ordering::Relaxed);
        later.flush();
        assert_eq!(store.read().read_document("c", b"k").unwrap(), Some(b"1".to_vec()));
    }

    #[test]
    fn a_change_that_always_fails_does_not_block_the_others() {
        let dir = tempfile::tempdir().unwrap();
        let store = open_store(dir.path());
        let later = DeferredWrites::start(store.clone()).unwrap();
        let fail = |_: &mut Transaction<'_>| {
            Err(GatewayError::new(ErrorClass::Internal, "it cannot be read"))
        };
        let read = |key: &[u8]| store.read().read_document("c", key).unwrap();
        later.enqueue(|t| Ok(t.put_document("c", b"first", b"1")?));
        later.enqueue(fail);
        later.enqueue(|t| Ok(t.put_document("c", b"last", b"1")?));
        later.flush();
        assert_eq!((read(b"first"), read(b"last")), (None, None));
        (1..MAX_ATTEMPTS).for_each(|_| later.flush());
        assert!(read(b"first").is_some() && read(b"last").is_some());
        // Nor those of the last commit.
        later.enqueue(fail);
        later.enqueue(|t| Ok(t.put_document("c", b"end", b"1")?));
        drop(later);
        assert!(read(b"end").is_some());
    }
}
