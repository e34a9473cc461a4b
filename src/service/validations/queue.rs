//! The queue of validations: those that wait, the one that runs, and those whose reports are kept.
use super::kept::{KeptReports, remove_unended};
use parking_lot::{Mutex, MutexGuard};
use penstock_base::error::{ErrorClass, GatewayError};
use penstock_resources::validation::{SeverityCounts, Validation, ValidationState};
use penstock_shapes::Cancellation;
use std::collections::VecDeque;
use std::path::Path;
use std::sync::atomic::AtomicBool;
use std::time::Duration;
use tokio::sync::Notify;

/// The maximum number of validations that wait while one runs.
const MAX_WAITING: usize = 16;
/// When a client may ask again while too many wait.
const RETRY_DELAY: Duration = Duration::from_secs(30);

/// The validations of a gateway.
#[derive(Debug)]
pub struct Validations {
    queue: Mutex<Queue>,
    /// Wakes the task that runs them.
    pub(super) enqueued: Notify,
    /// Whether the service stops. What then ends is not kept, because it begins again, unless a client cancelled it.
    pub(super) is_stopping: AtomicBool,
}

#[derive(Debug)]
pub(super) struct Queue {
    pub(super) waiting: VecDeque<Validation>,
    pub(super) running: Option<(Validation, Cancellation)>,
    pub(super) kept: KeptReports,
}

impl Validations {
    /// Opens the kept reports in this folder, and enqueues the validations that had not ended. Removes the files that cannot
    /// be read.
    pub(crate) fn open(folder: &Path) -> Self {
        let kept = KeptReports::open(folder);
        let queue = Queue { waiting: kept.read_unended(), running: None, kept };
        Self {
            queue: Mutex::new(queue),
            enqueued: Notify::new(),
            is_stopping: AtomicBool::new(false),
        }
    }

    /// Returns the violations that the last finished validation of each Business Object has counted, by its name.
    pub(crate) fn list_last_counts(&self) -> Vec<(String, SeverityCounts)> {
        let queue = self.lock();
        let mut last: Vec<&Validation> = Vec::new();
        for ended in queue.kept.iter().filter(|one| one.state == ValidationState::Finished) {
            if !last.iter().any(|known| known.business_object == ended.business_object) {
                last.push(ended);
            }
        }
        last.iter().map(|one| (one.business_object_name.clone(), one.counts)).collect()
    }

    /// Returns the id of the Business Object of a validation; `None` if there is no such validation.
    pub fn find_business_object(&self, id: &str) -> Option<String> {
        let queue = self.lock();
        let found = queue.iter().find(|one| one.id == id);
        found.map(|validation| validation.business_object.clone())
    }

    /// Removes the reports of a Business Object that was deleted with its objects. Its validations that wait are
    /// forgotten, and one that runs is cancelled.
    pub(crate) fn remove_reports(&self, business_object: &str) {
        let mut queue = self.lock();
        let running = queue.running.iter().map(|(running, _)| running);
        let unended = queue.waiting.iter().chain(running);
        for gone in unended.filter(|one| one.business_object == business_object) {
            remove_unended(&queue.kept.folder(), &gone.id);
        }
        queue.waiting.retain(|waiting| waiting.business_object != business_object);
        if let Some((running, cancellation)) = &queue.running
            && running.business_object == business_object
        {
            cancellation.cancel();
        }
        queue.kept.remove_all(business_object);
    }

    // No code panics while it holds this lock.
    pub(super) fn lock(&self) -> MutexGuard<'_, Queue> {
        self.queue.lock()
    }
}

impl Queue {
    /// Checks that another validation may wait.
    ///
    /// # Errors
    /// `ErrorClass::Unavailable`
    pub(super) fn check_capacity(&self) -> Result<(), GatewayError> {
        if self.waiting.len() < MAX_WAITING {
            return Ok(());
        }
        let busy = ErrorClass::Unavailable(RETRY_DELAY);
        let detail = format!(
            "a validation runs and {MAX_WAITING} wait already; try again when one of them has ended"
        );
        Err(GatewayError::new(busy, detail))
    }

    /// Iterates over all validations, the newest first.
    pub(super) fn iter(&self) -> impl Iterator<Item = &Validation> {
        let running = self.running.iter().map(|(running, _)| running);
        let mut all: Vec<_> = self.waiting.iter().chain(running).chain(self.kept.iter()).collect();
        all.sort_by(|a, b| b.id.cmp(&a.id));
        all.into_iter()
    }

    /// Cancels a validation, and returns it; `None` if it has ended. One that runs ends later, and one that waits is no
    /// longer in the queue.
    pub(super) fn cancel(&mut self, id: &str) -> Option<Validation> {
        if let Some((running, cancellation)) = &mut self.running
            && running.id == id
        {
            if !running.state.is_open() {
                return None;
            }
            cancellation.cancel();
            running.state = ValidationState::Cancelled;
            return Some(running.clone());
        }
        let place = self.waiting.iter().position(|waiting| waiting.id == id)?;
        let waiting = self.waiting.remove(place)?;
        Some(Validation { state: ValidationState::Cancelled, ..waiting })
    }
}
