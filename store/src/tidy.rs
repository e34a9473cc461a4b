//! Background maintenance: packs full segments, and compacts a journal that is largely obsolete. It runs in a
//! thread of its own, for which no commit waits.
use crate::Error;
use crate::journal;
use crate::store::Inner;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

/// The delay before a failed attempt is retried.
const RETRY: Duration = Duration::from_mins(1);

/// Whether the store is closing.
#[derive(Debug, Default)]
pub(crate) struct Closing {
    begun: AtomicBool,
    lock: Mutex<()>,
    bell: Condvar,
}

impl Closing {
    fn begin(&self) {
        let _lock = self.lock.lock().unwrap_or_else(PoisonError::into_inner);
        self.begun.store(true, Ordering::Release);
        self.bell.notify_all();
    }

    pub(crate) fn check(&self) -> Result<(), Error> {
        if self.begun.load(Ordering::Acquire) { Err(Error::Closing) } else { Ok(()) }
    }

    fn wait(&self, at_most: Duration) {
        let lock = self.lock.lock().unwrap_or_else(PoisonError::into_inner);
        let _ended = self
            .bell
            .wait_timeout_while(lock, at_most, |()| !self.begun.load(Ordering::Acquire))
            .unwrap_or_else(PoisonError::into_inner);
    }
}

/// The maintenance thread. It only exists while there is something to do.
#[derive(Debug, Default)]
pub(crate) struct Tidier {
    thread: Mutex<Option<JoinHandle<()>>>,
}

impl Tidier {
    /// Starts the thread unless it is running.
    pub(crate) fn begin(&self, inner: &Arc<Inner>) {
        let mut thread = self.thread.lock().unwrap_or_else(PoisonError::into_inner);
        if thread.as_ref().is_some_and(|thread| !thread.is_finished()) {
            return;
        }
        let inner = inner.clone();
        let run = move || {
            while inner.is_untidy() && inner.closing.check().is_ok() {
                if let Err(cause) = inner.tidy() {
                    if matches!(cause, Error::Closing) {
                        return;
                    }
                    tracing::warn!(%cause,
                        "Packing or compacting the journal failed; nothing is lost. The store retries in 60 s.");
                    inner.closing.wait(RETRY);
                }
            }
        };
        match std::thread::Builder::new().name("tidying".into()).spawn(run) {
            Ok(started) => *thread = Some(started),
            Err(cause) => {
                tracing::warn!(%cause,
                    "Starting the thread that packs and compacts the journal failed; the next commit retries.");
            }
        }
    }

    /// Stops the thread, and waits until it has ended.
    pub(crate) fn end(&self, inner: &Inner) {
        inner.closing.begin();
        let thread = self.thread.lock().unwrap_or_else(PoisonError::into_inner).take();
        if thread.is_some_and(|thread| thread.join().is_err()) {
            tracing::warn!("Packing or compacting the journal panicked; nothing is lost.");
        }
    }
}

impl Inner {
    /// Returns whether a segment should be packed or the journal compacted.
    pub(crate) fn is_untidy(&self) -> bool {
        let synced = self.synced();
        synced.check().is_ok() && (synced.is_to_pack() || self.is_outgrown())
    }

    /// Returns whether the journal should be compacted. If nothing was removed or changed, the journal takes
    /// less disk space than the index, and a new base would not be smaller.
    fn is_outgrown(&self) -> bool {
        let bytes = self.synced().bytes();
        bytes.packed > self.options.compact_bytes.max(bytes.base / 2)
            && bytes.packed + bytes.base > self.index_bytes()
    }

    fn tidy(&self) -> Result<(), Error> {
        match self.pack() {
            Err(Error::Corrupt(place)) => {
                tracing::error!(%place,
                    "A segment of the journal is damaged. Replacing it by a new base from the index, which has all \
                     of its content.");
                self.compact()?;
                // If the medium keeps failing, bases must not fill it.
                self.closing.wait(RETRY);
                Ok(())
            }
            Ok(()) if self.is_outgrown() => self.compact(),
            done => done,
        }
    }

    /// Packs the full segments.
    pub(crate) fn pack(&self) -> Result<(), Error> {
        let _slot = self.slot.take();
        let synced = self.synced();
        synced.check()?;
        synced.begin_packing();
        let check = || self.closing.check().and_then(|()| synced.check());
        let packed = journal::pack(&self.journal(), &check, &mut |before, after| {
            synced.packed(before, after);
        });
        packed.inspect_err(|_| synced.packing_failed())
    }
}
