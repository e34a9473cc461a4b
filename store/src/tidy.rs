//! Tidying: full segments of the journal are packed, and a journal that holds much of what is no longer so
//! is compacted, in a thread that no commit waits for.
use crate::Error;
use crate::journal;
use crate::store::Inner;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

/// How long what failed waits until it is tried again.
const RETRY: Duration = Duration::from_mins(1);

/// Whether the store is being closed.
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

/// Tidies in a thread that is there only while it has something to do.
#[derive(Debug, Default)]
pub(crate) struct Tidier {
    thread: Mutex<Option<JoinHandle<()>>>,
}

impl Tidier {
    /// Begins to tidy, unless that is under way.
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
                        "Packing or compacting the journal was given up: nothing is lost, and it is tried again.");
                    inner.closing.wait(RETRY);
                }
            }
        };
        match std::thread::Builder::new().name("tidying".into()).spawn(run) {
            Ok(started) => *thread = Some(started),
            Err(cause) => {
                tracing::warn!(%cause, "No thread could be started to pack and compact the journal.");
            }
        }
    }

    /// Ends what is under way, and returns when it has ended.
    pub(crate) fn end(&self, inner: &Inner) {
        inner.closing.begin();
        let thread = self.thread.lock().unwrap_or_else(PoisonError::into_inner).take();
        if thread.is_some_and(|thread| thread.join().is_err()) {
            tracing::warn!("Packing or compacting the journal panicked: nothing is lost.");
        }
    }
}

impl Inner {
    /// Whether a segment is to be packed, or the journal is worth a compaction.
    pub(crate) fn is_untidy(&self) -> bool {
        let synced = self.synced();
        synced.check().is_ok() && (synced.is_to_pack() || self.is_outgrown())
    }

    /// Whether the journal is worth a compaction. Where nothing was removed or changed, it takes less room
    /// than the index, and a new base would hold no less.
    fn is_outgrown(&self) -> bool {
        let bytes = self.synced().bytes();
        bytes.packed > self.options.compact_bytes.max(bytes.base / 2)
            && bytes.packed + bytes.base > self.index_bytes()
    }

    fn tidy(&self) -> Result<(), Error> {
        match self.pack() {
            Err(Error::Corrupt(place)) => {
                tracing::error!(%place,
                    "The journal is damaged; a new base is made of the index, which has all that was in it.");
                self.compact()?;
                // A medium that goes on failing is not to be filled with bases.
                self.closing.wait(RETRY);
                Ok(())
            }
            Ok(()) if self.is_outgrown() => self.compact(),
            done => done,
        }
    }

    /// Packs the segments that are full.
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
