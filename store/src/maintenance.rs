//! Background maintenance: packs full segments, and compacts a journal that is largely obsolete. It runs in a
//! thread of its own, for which no commit waits.
use crate::Error;
use crate::journal;
use crate::store::StoreInner;
use parking_lot::{Condvar, Mutex};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

/// The delay before a failed attempt is retried.
const RETRY_DELAY: Duration = Duration::from_mins(1);

/// Whether the store is closing.
#[derive(Debug, Default)]
pub(crate) struct Closing {
    begun: AtomicBool,
    lock: Mutex<()>,
    changed: Condvar,
}

impl Closing {
    fn begin_closing(&self) {
        let _lock = self.lock.lock();
        self.begun.store(true, Ordering::Release);
        self.changed.notify_all();
    }

    pub(crate) fn check_not_closing(&self) -> Result<(), Error> {
        if self.begun.load(Ordering::Acquire) { Err(Error::Closing) } else { Ok(()) }
    }

    fn wait_for_closing(&self, at_most: Duration) {
        let mut lock = self.lock.lock();
        let is_open = |(): &mut ()| !self.begun.load(Ordering::Acquire);
        self.changed.wait_while_for(&mut lock, is_open, at_most);
    }
}

/// The maintenance thread. It only exists while there is something to do.
#[derive(Debug, Default)]
pub(crate) struct MaintenanceThread {
    thread: Mutex<Option<JoinHandle<()>>>,
}

impl MaintenanceThread {
    /// Starts the thread unless it is running.
    pub(crate) fn start_if_idle(&self, inner: &Arc<StoreInner>) {
        let mut thread = self.thread.lock();
        if thread.as_ref().is_some_and(|thread| !thread.is_finished()) {
            return;
        }
        let inner = inner.clone();
        let run = move || {
            while inner.needs_maintenance() && inner.closing.check_not_closing().is_ok() {
                if let Err(cause) = inner.run_maintenance() {
                    if matches!(cause, Error::Closing) {
                        return;
                    }
                    tracing::warn!(%cause,
                        "Packing or compacting the journal failed; nothing is lost. The store retries in 60 s.");
                    inner.closing.wait_for_closing(RETRY_DELAY);
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
    pub(crate) fn stop_and_join(&self, inner: &StoreInner) {
        inner.closing.begin_closing();
        let thread = self.thread.lock().take();
        if thread.is_some_and(|thread| thread.join().is_err()) {
            tracing::warn!("Packing or compacting the journal panicked; nothing is lost.");
        }
    }
}

impl StoreInner {
    /// Returns whether a segment should be packed or the journal compacted.
    pub(crate) fn needs_maintenance(&self) -> bool {
        let synced = self.sync_state();
        synced.check_writable().is_ok() && (synced.needs_packing() || self.needs_compaction())
    }

    /// Returns whether the journal should be compacted. If nothing was removed or changed, the journal takes
    /// less disk space than the index, and a new base would not be smaller.
    fn needs_compaction(&self) -> bool {
        let bytes = self.sync_state().bytes();
        bytes.packed > self.options.compact_bytes.max(bytes.base / 2)
            && bytes.packed + bytes.base > self.index_bytes()
    }

    fn run_maintenance(&self) -> Result<(), Error> {
        match self.pack_segments() {
            Err(Error::Corrupt(place)) => {
                tracing::error!(%place,
                    "A segment of the journal is damaged. Replacing it by a new base from the index, which has all \
                     of its content.");
                self.compact_journal()?;
                // If the medium keeps failing, bases must not fill it.
                self.closing.wait_for_closing(RETRY_DELAY);
                Ok(())
            }
            Ok(()) if self.needs_compaction() => self.compact_journal(),
            done => done,
        }
    }

    /// Packs the full segments.
    pub(crate) fn pack_segments(&self) -> Result<(), Error> {
        let _slot = self.slot.take();
        let synced = self.sync_state();
        synced.check_writable()?;
        synced.begin_packing();
        let check = || self.closing.check_not_closing().and_then(|()| synced.check_writable());
        let packed =
            journal::pack_segments(&self.journal_folder(), &check, &mut |before, after| {
                synced.record_packed(before, after);
            });
        packed.inspect_err(|_| synced.record_packing_failure())
    }
}
