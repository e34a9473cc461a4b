//! How the runs of the folder `service.definitions.dir` ended, for the status.
use parking_lot::Mutex;
use penstock_base::error::{Finding, GatewayError};
use penstock_resources::definitions::AppliedDefinitions;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// The maximum number of errors, and of warnings, in the status. `penstock apply --dry-run` shows all.
const MAX_LISTED: usize = 20;

/// The runs of `service.definitions.dir`. Cheap to clone.
#[derive(Debug, Clone, Default)]
pub struct FolderState(pub(super) Arc<Runs>);

#[derive(Debug, Default)]
pub(super) struct Runs {
    pub(super) last: Mutex<FolderOutcome>,
    /// The number of runs that have begun or wait for their turn.
    unfinished: AtomicUsize,
    /// One run after the other, so that the last outcome is that of the newest files.
    pub(super) permit: Mutex<()>,
}

/// How the last run ended.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct FolderOutcome {
    /// Whether a run has begun that has not ended.
    pub is_running: bool,
    /// When the last run ended (RFC 3339, UTC); `None` if none has since the start.
    pub applied_at: Option<String>,
    /// Why nothing was applied: the first errors, each with its file, line and column.
    pub errors: Vec<String>,
    /// The number of errors.
    pub error_count: usize,
    /// What is valid and probably not meant: the first warnings.
    pub warnings: Vec<String>,
    /// The number of warnings.
    pub warning_count: usize,
    /// `errors` without what only Admins see.
    pub(super) public_errors: Vec<String>,
    /// Whether the disk or the store was the cause, and not the files.
    pub(super) is_temporary: bool,
}

impl FolderOutcome {
    pub(super) fn of_report(report: AppliedDefinitions) -> Self {
        let AppliedDefinitions { mut warnings, .. } = report;
        let warning_count = warnings.len();
        warnings.truncate(MAX_LISTED);
        Self { warnings, warning_count, ..Self::default() }
    }

    pub(super) fn of_error(error: &GatewayError) -> Self {
        let whole = [Finding::whole(error.detail.clone())];
        let all = if error.findings.is_empty() { &whole[..] } else { &error.findings };
        let public = |finding: &Finding| match &finding.public_message {
            Some(message) => message.clone(),
            None => finding.to_string(),
        };
        Self {
            errors: all.iter().take(MAX_LISTED).map(ToString::to_string).collect(),
            public_errors: all.iter().take(MAX_LISTED).map(public).collect(),
            error_count: all.len(),
            is_temporary: error.class.is_temporary(),
            ..Self::default()
        }
    }

    /// Whether a retry failed as the run before it did. Each cause is logged once, however often the gateway retries.
    pub(super) fn repeats(&self, last: &Self) -> bool {
        self.is_temporary && last.is_temporary && self.errors == last.errors
    }

    /// Removes what only Admins see: ids and emails of accounts.
    pub fn redact(&mut self) {
        self.errors.clone_from(&self.public_errors);
    }
}

/// A run of `service.definitions.dir`, which the status shows until this is dropped.
#[derive(Debug)]
pub struct FolderRun(FolderState);

impl FolderState {
    /// Returns how the last run ended, and whether another one has begun.
    pub fn outcome(&self) -> FolderOutcome {
        let last = self.0.last.lock().clone();
        FolderOutcome { is_running: self.0.unfinished.load(Ordering::Acquire) > 0, ..last }
    }

    /// Whether the disk or the store kept the last run from applying the files.
    pub(super) fn must_retry(&self) -> bool {
        self.0.last.lock().is_temporary
    }

    /// Shows a run in the status from now on, also while it waits for a thread.
    pub fn begin_run(&self) -> FolderRun {
        self.0.unfinished.fetch_add(1, Ordering::AcqRel);
        FolderRun(self.clone())
    }
}

impl Drop for FolderRun {
    fn drop(&mut self) {
        self.0.0.unfinished.fetch_sub(1, Ordering::AcqRel);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use penstock_base::error::ErrorClass;

    #[test]
    fn only_a_retry_with_the_same_cause_repeats_the_run_before_it() {
        let failed = |class, why: &str| FolderOutcome::of_error(&GatewayError::new(class, why));
        let full = failed(ErrorClass::InsufficientStorage, "the gateway's disk is full");
        assert!(full.repeats(&full.clone()) && !full.repeats(&FolderOutcome::default()));
        let io = failed(ErrorClass::Internal, "an I/O error");
        assert!(!io.repeats(&full) && !full.repeats(&io));
        let invalid = failed(ErrorClass::Invalid, "a.yaml: wrong");
        assert!(!invalid.repeats(&invalid.clone()));
    }
}
