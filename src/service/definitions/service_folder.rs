//! Applies the folder `service.definitions.dir`, at the start and at SIGHUP. An error stops neither: the definitions of the
//! last good run stay. The gateway serves requests meanwhile. If the disk or the store was the cause, it retries.
use super::{ApplyOptions, apply_files, read_folder};
use crate::gateway::Gateway;
use parking_lot::Mutex;
use penstock_auth::Authorized;
use penstock_base::backoff::exponential_delay;
use penstock_base::error::{Finding, GatewayError};
use penstock_base::managed::list_managed;
use penstock_base::time;
use penstock_resources::definitions::AppliedDefinitions;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

/// The maximum number of errors, and of warnings, in the status. `penstock apply --dry-run` shows all.
const MAX_LISTED: usize = 20;
/// The delay before the files are applied again after a failure of the disk or the store. It doubles with each failure.
const FIRST_RETRY_DELAY: Duration = Duration::from_millis(if cfg!(test) { 10 } else { 60_000 });
/// The maximum of this delay.
const MAX_RETRY_DELAY: Duration = Duration::from_mins(10);

/// The runs of `service.definitions.dir`. Cheap to clone.
#[derive(Debug, Clone, Default)]
pub struct FolderState(pub(super) Arc<Runs>);

#[derive(Debug, Default)]
pub(super) struct Runs {
    pub(super) last: Mutex<FolderOutcome>,
    /// The number of runs that have begun or wait for their turn.
    unfinished: AtomicUsize,
    /// One run after the other, so that the last outcome is that of the newest files.
    permit: Mutex<()>,
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
    public_errors: Vec<String>,
    /// Whether the disk or the store was the cause, and not the files.
    is_temporary: bool,
}

impl FolderOutcome {
    fn of_report(report: AppliedDefinitions) -> Self {
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
    fn repeats(&self, last: &Self) -> bool {
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

/// Applies the files of `service.definitions.dir`, and logs the result. Without this setting, the definitions of an earlier
/// folder become unmanaged. Waits for the runs that have begun before. Blocking.
pub fn apply_service_folder(gateway: &Gateway, by: &Authorized) {
    let _run = gateway.definition_files.begin_run();
    let runs = &gateway.definition_files.0;
    let _permit = runs.permit.lock();
    let applied = match &gateway.settings.definitions_dir {
        Some(folder) => apply_folder(gateway, by, folder),
        None => match has_service_definitions(gateway) {
            Ok(true) => {
                let options = ApplyOptions { is_service_folder: true, ..ApplyOptions::default() };
                apply_files(gateway, by, &[], &options)
            }
            Ok(false) => {
                *runs.last.lock() = FolderOutcome::default();
                return;
            }
            Err(error) => Err(error),
        },
    };
    let outcome = match applied {
        Ok(report) => {
            log_report(&report);
            FolderOutcome::of_report(report)
        }
        Err(error) => {
            let outcome = FolderOutcome::of_error(&error);
            if !outcome.repeats(&runs.last.lock()) {
                let then = if outcome.is_temporary { ", and the gateway retries" } else { "" };
                tracing::error!(
                    %error,
                    "The files of service.definitions.dir were not applied; the definitions of the last good run stay{then}."
                );
            }
            outcome
        }
    };
    let applied_at = Some(time::now_rfc3339());
    *runs.last.lock() = FolderOutcome { applied_at, ..outcome };
}

/// Applies the files again, at growing intervals, while the disk or the store keeps them from being applied, until this
/// future is dropped.
pub async fn retry_service_folder(gateway: Gateway, by: Authorized) {
    let mut failures = 0;
    loop {
        let delay = exponential_delay(FIRST_RETRY_DELAY, failures, MAX_RETRY_DELAY);
        tokio::time::sleep(delay).await;
        if !gateway.definition_files.must_retry() {
            failures = 0;
            continue;
        }
        failures += 1;
        let by = by.clone();
        let applied = gateway.read(move |gateway| {
            apply_service_folder(gateway, &by);
            Ok(())
        });
        if let Err(error) = applied.await {
            tracing::error!(%error, "Applying the files of service.definitions.dir ended unexpectedly.");
        }
    }
}

/// Returns whether there are definitions of an earlier folder.
fn has_service_definitions(gateway: &Gateway) -> Result<bool, GatewayError> {
    Ok(list_managed(&gateway.store.read())?.iter().any(|record| record.is_read_only))
}

fn apply_folder(
    gateway: &Gateway,
    by: &Authorized,
    folder: &Path,
) -> Result<AppliedDefinitions, GatewayError> {
    // The service runs as the owner of its data directory.
    let owner = std::fs::metadata(&gateway.settings.data_dir).map_or(0, |found| found.uid());
    let files = read_folder(folder, owner)?;
    // As penstock apply names the folder, which may prune what is left of it.
    let folder = folder.canonicalize().unwrap_or_else(|_| folder.to_owned());
    let folder = folder.display().to_string();
    let options = ApplyOptions { folder, is_service_folder: true, ..ApplyOptions::default() };
    apply_files(gateway, by, &files, &options)
}

fn log_report(report: &AppliedDefinitions) {
    for change in &report.changes {
        let (kind, name) = (change.id.kind.name(), change.id.name.as_str());
        let (file, action) = (change.file.as_str(), change.action.name());
        tracing::info!(kind, name, file, action, "A file has changed a definition.");
    }
    for warning in &report.warnings {
        tracing::warn!(warning, "The definition files have a warning.");
    }
    let (changed, unchanged) = (report.changes.len(), report.unchanged);
    tracing::info!(changed, unchanged, "The files of service.definitions.dir were applied.");
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
