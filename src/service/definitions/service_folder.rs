//! Applies the folder `service.definitions.dir`, at the start and at SIGHUP. An error stops neither: the definitions of the
//! last good run stay. The gateway serves requests meanwhile. If the disk or the store was the cause, it retries.
use super::{ApplyOptions, FolderOutcome, apply_files, read_folder};
use crate::gateway::Gateway;
use penstock_auth::Authorized;
use penstock_base::backoff::exponential_delay;
use penstock_base::error::GatewayError;
use penstock_base::managed::list_managed;
use penstock_base::time;
use penstock_resources::definitions::AppliedDefinitions;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::time::Duration;

/// The delay before the files are applied again after a failure of the disk or the store. It doubles with each failure.
const FIRST_RETRY_DELAY: Duration = Duration::from_millis(if cfg!(test) { 10 } else { 60_000 });
/// The maximum of this delay.
const MAX_RETRY_DELAY: Duration = Duration::from_mins(10);

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
