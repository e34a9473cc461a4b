//! Small changes that may wait a second: they are gathered and committed together by a thread of their
//! own, so that a sign-in (its last login, its session, its event) costs the disk one frame, and the
//! request no wait.
//!
//! What waits is lost when the process is killed before its second is over. What must not be lost so
//! is committed by whoever changes it.
use penstock_base::fault::Fault;
use penstock_store::{Store, Transaction};
use std::fmt;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// How long changes are gathered.
const GATHER: Duration = Duration::from_secs(1);
/// When changes that the store did not take are tried again.
const RETRY: Duration = Duration::from_secs(10);
/// Changes that wait; beyond it new ones are let go.
const MOST: usize = 4096;

/// A change. It may be made more than once, when the store does not take the first.
type Change = Box<dyn Fn(&mut Transaction<'_>) -> Result<(), Fault> + Send>;

/// The changes that wait. Cheap to clone; when the last clone is dropped, what waits is committed.
#[derive(Debug, Clone)]
pub(super) struct Later {
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
    /// Had by the one who commits, so that a flush waits for what was taken before it.
    committing: Mutex<()>,
}

#[derive(Default)]
struct Queue {
    changes: Vec<(Instant, Change)>,
    /// No attempt before this, after one that failed.
    not_before: Option<Instant>,
    let_go: u64,
    ending: bool,
}

impl fmt::Debug for Shared {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} changes", self.queue().changes.len())
    }
}

impl Later {
    /// Starts the thread.
    ///
    /// # Errors
    /// When the system has no thread left.
    pub(super) fn start(store: Store) -> std::io::Result<Self> {
        let shared = Arc::new(Shared {
            store,
            queue: Mutex::default(),
            wake: Condvar::new(),
            committing: Mutex::default(),
        });
        let of_thread = shared.clone();
        let handle =
            std::thread::Builder::new().name("later".into()).spawn(move || of_thread.run())?;
        Ok(Self { thread: Arc::new(Thread { shared, handle: Some(handle) }) })
    }

    /// Makes this change within a second or so.
    pub(super) fn soon(
        &self,
        change: impl Fn(&mut Transaction<'_>) -> Result<(), Fault> + Send + 'static,
    ) {
        self.after(GATHER, change);
    }

    /// Makes this change after this time, or earlier when the gateway ends.
    pub(super) fn after(
        &self,
        delay: Duration,
        change: impl Fn(&mut Transaction<'_>) -> Result<(), Fault> + Send + 'static,
    ) {
        let mut queue = self.thread.shared.queue();
        if queue.changes.len() >= MOST {
            queue.let_go += 1;
            return;
        }
        self.push(queue, delay, Box::new(change));
    }

    /// As [`Self::soon`], and never let go, however many wait.
    pub(super) fn surely(
        &self,
        change: impl Fn(&mut Transaction<'_>) -> Result<(), Fault> + Send + 'static,
    ) {
        self.push(self.thread.shared.queue(), GATHER, Box::new(change));
    }

    fn push(&self, mut queue: MutexGuard<'_, Queue>, delay: Duration, change: Change) {
        queue.changes.push((Instant::now() + delay, change));
        drop(queue);
        self.thread.shared.wake.notify_all();
    }

    /// Commits what is to be made soon. Blocks.
    pub(super) fn flush(&self) {
        self.thread.shared.commit(Some(Instant::now() + GATHER));
    }

    /// Commits all that waits. Blocks.
    pub(super) fn flush_all(&self) {
        self.thread.shared.commit(None);
    }
}

impl Drop for Thread {
    fn drop(&mut self) {
        self.shared.queue().ending = true;
        self.shared.wake.notify_all();
        if let Some(handle) = self.handle.take() {
            // It panics only where the process ends with it.
            let _ = handle.join();
        }
    }
}

impl Shared {
    // Nothing panics while the queue is held.
    fn queue(&self) -> MutexGuard<'_, Queue> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn run(&self) {
        loop {
            let mut queue = self.queue();
            loop {
                let now = Instant::now();
                let due = queue.changes.iter().map(|(due, _)| *due).min();
                let due = due.map(|due| queue.not_before.map_or(due, |retry| retry.max(due)));
                match due {
                    _ if queue.ending => {
                        drop(queue);
                        self.commit(None);
                        return;
                    }
                    Some(due) if due <= now => break,
                    Some(due) => {
                        let waited = self.wake.wait_timeout(queue, due - now);
                        queue = waited.unwrap_or_else(PoisonError::into_inner).0;
                    }
                    None => {
                        queue = self.wake.wait(queue).unwrap_or_else(PoisonError::into_inner);
                    }
                }
            }
            drop(queue);
            self.commit(Some(Instant::now()));
        }
    }

    /// Commits what is due by then, or everything.
    fn commit(&self, by: Option<Instant>) {
        let _committing = self.committing.lock().unwrap_or_else(PoisonError::into_inner);
        let mut queue = self.queue();
        let (due, rest) = std::mem::take(&mut queue.changes)
            .into_iter()
            .partition::<Vec<_>, _>(|(due, _)| by.is_none_or(|by| *due <= by));
        queue.changes = rest;
        let let_go = std::mem::take(&mut queue.let_go);
        drop(queue);
        if let_go > 0 {
            tracing::warn!(
                changes = let_go,
                "Last uses and events were not kept, since too many waited for the store."
            );
        }
        if due.is_empty() {
            return;
        }
        let made = self.store.transact::<_, Fault>(|transaction| {
            due.iter().try_for_each(|(_, change)| change(transaction))
        });
        let mut queue = self.queue();
        match made {
            Ok(_) => queue.not_before = None,
            Err(fault) => {
                let first = queue.not_before.is_none();
                queue.not_before = Some(Instant::now() + RETRY);
                let later = std::mem::replace(&mut queue.changes, due);
                queue.changes.extend(later);
                drop(queue);
                if first {
                    tracing::warn!(%fault, "Last uses and events wait until the store takes them.");
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use penstock_store::{Options, Read};

    fn store(dir: &std::path::Path) -> Store {
        Store::open(dir, Options::default(), &mut |_| {}).unwrap()
    }

    #[test]
    fn changes_are_made_in_order_in_one_commit_and_with_the_end() {
        let dir = tempfile::tempdir().unwrap();
        let store = store(dir.path());
        let later = Later::start(store.clone()).unwrap();
        let before = store.read().sequence();
        for value in 1..=3_u8 {
            later.soon(move |t| Ok(t.put("c", b"k", &[value])?));
        }
        later.after(Duration::from_hours(1), |t| Ok(t.put("c", b"hour", b"1")?));
        later.flush();
        assert_eq!(store.read().document("c", b"k").unwrap(), Some(vec![3]));
        assert_eq!(store.read().document("c", b"hour").unwrap(), None);
        assert!(store.read().sequence() - before <= 3);
        drop(later);
        assert_eq!(store.read().document("c", b"hour").unwrap(), Some(b"1".to_vec()));
    }

    #[test]
    fn what_was_not_taken_waits() {
        use std::sync::atomic::{AtomicBool, Ordering};
        let dir = tempfile::tempdir().unwrap();
        let store = store(dir.path());
        let later = Later::start(store.clone()).unwrap();
        let broken = Arc::new(AtomicBool::new(true));
        let is_broken = broken.clone();
        later.soon(move |t| {
            if is_broken.load(Ordering::Relaxed) {
                return Err(Fault::new(penstock_base::fault::Kind::NoRoom, "no room"));
            }
            Ok(t.put("c", b"k", b"1")?)
        });
        later.flush();
        assert_eq!(store.read().document("c", b"k").unwrap(), None);
        broken.store(false, Ordering::Relaxed);
        later.flush();
        assert_eq!(store.read().document("c", b"k").unwrap(), Some(b"1".to_vec()));
    }
}
