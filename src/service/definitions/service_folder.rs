//! Applies the folder `service.definitions.dir`, at the start and at SIGHUP. An error stops neither: the definitions of the
//! last good run stay. The gateway serves requests meanwhile.
use super::{ApplyAction, ApplyOptions, ApplyReport, apply_files, read_folder};
use crate::gateway::Gateway;
use penstock_auth::Authorized;
use penstock_base::error::GatewayError;
use penstock_base::managed::list_managed;
use penstock_base::time;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

/// The maximum number of errors in the status. The log has all.
const MAX_LISTED_ERRORS: usize = 100;

/// The runs of `service.definitions.dir`. Cheap to clone.
#[derive(Debug, Clone, Default)]
pub struct FolderState(Arc<Runs>);

#[derive(Debug, Default)]
struct Runs {
    last: Mutex<FolderOutcome>,
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
    /// What is valid and probably not meant.
    pub warnings: Vec<String>,
}

/// A run of `service.definitions.dir`, which the status shows until this is dropped.
#[derive(Debug)]
pub struct FolderRun(FolderState);

impl FolderState {
    /// Returns how the last run ended, and whether another one has begun.
    pub fn outcome(&self) -> FolderOutcome {
        let last = self.0.last.lock().unwrap_or_else(PoisonError::into_inner).clone();
        FolderOutcome { is_running: self.0.unfinished.load(Ordering::Acquire) > 0, ..last }
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
    let _permit = runs.permit.lock().unwrap_or_else(PoisonError::into_inner);
    let applied = match &gateway.settings.definitions_dir {
        Some(folder) => apply_folder(gateway, by, folder),
        None => match has_service_definitions(gateway) {
            Ok(true) => {
                let options = ApplyOptions { is_service_folder: true, ..ApplyOptions::default() };
                apply_files(gateway, by, &[], &options)
            }
            Ok(false) => return,
            Err(error) => Err(error),
        },
    };
    let outcome = match applied {
        Ok(report) => {
            log_report(&report);
            FolderOutcome { warnings: report.warnings, ..FolderOutcome::default() }
        }
        Err(error) => {
            tracing::error!(
                %error,
                "The files of service.definitions.dir were not applied; the definitions of the last good run stay."
            );
            FolderOutcome { errors: list_errors(&error), ..FolderOutcome::default() }
        }
    };
    let applied_at = Some(time::now_rfc3339());
    *runs.last.lock().unwrap_or_else(PoisonError::into_inner) =
        FolderOutcome { applied_at, ..outcome };
}

/// Returns whether there are definitions of an earlier folder.
fn has_service_definitions(gateway: &Gateway) -> Result<bool, GatewayError> {
    Ok(list_managed(&gateway.store.read())?.iter().any(|record| record.is_read_only))
}

fn apply_folder(
    gateway: &Gateway,
    by: &Authorized,
    folder: &Path,
) -> Result<ApplyReport, GatewayError> {
    // The service runs as the owner of its data directory.
    let owner = std::fs::metadata(&gateway.settings.data_dir).map_or(0, |found| found.uid());
    let files = read_folder(folder, owner)?;
    // As penstock apply names the folder, which may prune what is left of it.
    let folder = folder.canonicalize().unwrap_or_else(|_| folder.to_owned());
    let folder = folder.display().to_string();
    let options = ApplyOptions { folder, is_service_folder: true, ..ApplyOptions::default() };
    apply_files(gateway, by, &files, &options)
}

fn log_report(report: &ApplyReport) {
    for change in &report.changes {
        let (kind, name) = (change.id.kind.name(), change.id.name.as_str());
        let file = change.file.as_str();
        if change.action == ApplyAction::Unmanaged {
            tracing::warn!(kind, name, file, "No file defines this definition any more; it stays.");
        } else {
            let action = change.action.name();
            tracing::info!(kind, name, file, action, "A file has changed a definition.");
        }
    }
    let (changed, unchanged) = (report.changes.len(), report.unchanged);
    tracing::info!(changed, unchanged, "The files of service.definitions.dir were applied.");
}

fn list_errors(error: &GatewayError) -> Vec<String> {
    if error.findings.is_empty() {
        return vec![error.detail.clone()];
    }
    error.findings.iter().take(MAX_LISTED_ERRORS).map(ToString::to_string).collect()
}
