//! The thread that maintains the journal, and what ends it when the store closes.
use crate::Error;
use parking_lot::{Condvar, Mutex};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

/// Whether the store is closing.
#[derive(Debug, Default)]
pub(crate) struct Closing {
    begun: AtomicBool,
    lock: Mutex<()>,
    changed: Condvar,
}

impl Closing {
    pub(crate) fn begin_closing(&self) {
        let _lock = self.lock.lock();
        self.begun.store(true, Ordering::Release);
        self.changed.notify_all();
    }

    pub(crate) fn check_not_closing(&self) -> Result<(), Error> {
        if self.begun.load(Ordering::Acquire) { Err(Error::Closing) } else { Ok(()) }
    }

    pub(crate) fn wait_for_closing(&self, at_most: Duration) {
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
    /// Starts the thread with this work unless it is running.
    pub(crate) fn start_if_idle(&self, work: impl FnOnce() + Send + 'static) {
        let mut thread = self.thread.lock();
        if thread.as_ref().is_some_and(|thread| !thread.is_finished()) {
            return;
        }
        match std::thread::Builder::new().name("tidying".into()).spawn(work) {
            Ok(started) => *thread = Some(started),
            Err(cause) => {
                tracing::warn!(%cause,
                    "Starting the thread that packs and compacts the journal failed; the next commit retries.");
            }
        }
    }

    /// Waits until the thread has ended.
    pub(crate) fn join(&self) {
        let thread = self.thread.lock().take();
        if thread.is_some_and(|thread| thread.join().is_err()) {
            tracing::warn!("Packing or compacting the journal panicked; nothing is lost.");
        }
    }
}
