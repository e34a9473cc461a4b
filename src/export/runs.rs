//! Why the last run of a Business Object exported nothing. It is only in memory, and known since the start.
use parking_lot::Mutex;
use std::collections::HashMap;

/// A run that exported nothing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EmptyRun {
    /// When it was (RFC 3339).
    pub at: String,
    /// The cause, as text.
    pub cause: String,
    /// Whether it failed. Otherwise there was nothing to export.
    pub is_error: bool,
}

/// The last runs that exported nothing, by the id of the Business Object.
#[derive(Debug, Default)]
pub(super) struct EmptyRuns(Mutex<HashMap<String, EmptyRun>>);

impl EmptyRuns {
    pub(super) fn record(&self, id: &str, run: EmptyRun) {
        self.0.lock().insert(id.to_owned(), run);
    }

    /// Records that the last run exported something.
    pub(super) fn clear(&self, id: &str) {
        self.0.lock().remove(id);
    }

    pub(super) fn find(&self, id: &str) -> Option<EmptyRun> {
        self.0.lock().get(id).cloned()
    }

    /// Lists the runs that failed: the id of the Business Object of each, and the cause.
    pub(super) fn list_errors(&self) -> Vec<(String, String)> {
        let runs = self.0.lock();
        let failed = runs.iter().filter(|(_, run)| run.is_error);
        failed.map(|(id, run)| (id.clone(), run.cause.clone())).collect()
    }

    /// Records that the last run did not fail.
    pub(super) fn clear_error(&self, id: &str) {
        self.0.lock().retain(|other, run| other != id || !run.is_error);
    }

    pub(super) fn retain(&self, is_kept: impl Fn(&str, &EmptyRun) -> bool) {
        self.0.lock().retain(|id, run| is_kept(id, run));
    }
}
