//! Exports: listing them, their files, what operators do with them, and pushes.
use crate::blocking::run_blocking;
use crate::gateway::Gateway;
use penstock_auth::{Authorized, Role};
use penstock_base::error::{ErrorClass, GatewayError};
use penstock_export::{ExportEntry, ExportRequester, Exporter, OpenedExport, PushResult, Status};
use penstock_model::resource::Compiled;
use std::io::Read as _;
use std::sync::Arc;

/// What an operator does with an export.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ExportAction {
    /// Retries the delivery of a queued export now, or queues a parked one again at its place.
    Retry,
    /// Parks a queued export, so that the exports after it are delivered.
    Park,
    /// Queues a delivered file again under its own key.
    Replay,
}

/// Selects exports. The default selects all.
#[derive(Debug, Clone, Default)]
pub struct ExportFilter {
    /// The id of the Business Object.
    pub business_object: Option<String>,
    /// The bucketName.
    pub target: Option<String>,
    /// The states.
    pub statuses: Option<&'static [Status]>,
}

/// A search for exports, newest first.
#[derive(Debug, Clone)]
pub struct ExportSearch {
    /// Which exports to find.
    pub filter: ExportFilter,
    /// The id of the export after which the search begins.
    pub after: Option<String>,
    /// The maximum number of exports to find.
    pub limit: usize,
    /// The maximum number of exports to read.
    pub max_read: usize,
}

/// The result of a search for exports.
#[derive(Debug, Default)]
pub struct FoundExports {
    /// The exports, newest first.
    pub exports: Vec<ExportEntry>,
    /// The id of the export after which the next search begins. `None` if there are no more exports.
    pub next: Option<String>,
}

/// An export with the beginning of its file.
#[derive(Debug)]
pub struct ExportPreview {
    /// The export.
    pub entry: ExportEntry,
    /// The first bytes of the file, or the reason why it cannot be read.
    pub beginning: Result<Vec<u8>, String>,
}

impl ExportFilter {
    /// Returns whether the filter selects this export.
    pub fn is_match(&self, entry: &ExportEntry) -> bool {
        let is = |wanted: &Option<String>, value: &str| {
            wanted.as_ref().is_none_or(|wanted| wanted == value)
        };
        is(&self.business_object, &entry.business_object)
            && is(&self.target, &entry.target)
            && self.statuses.is_none_or(|statuses| statuses.contains(&entry.status))
    }
}

/// Lists exports, newest first, starting after the export with the id `after`. The exports that wait for spool capacity
/// come first.
///
/// # Errors
/// `ErrorClass::Invalid` if there is no export with the id `after`.
pub async fn list_exports(
    gateway: &Gateway,
    after: Option<String>,
    limit: usize,
) -> Result<Vec<ExportEntry>, GatewayError> {
    let exporter = gateway.exporter.clone();
    run_blocking(move || exporter.list(after.as_deref(), limit)).await
}

/// Finds exports with a filter.
///
/// # Errors
/// As [`list_exports`].
pub async fn find_exports(
    gateway: &Gateway,
    search: ExportSearch,
) -> Result<FoundExports, GatewayError> {
    let exporter = gateway.exporter.clone();
    run_blocking(move || search_exports(&exporter, search)).await
}

fn search_exports(
    exporter: &Exporter,
    ExportSearch { filter, after, limit, max_read }: ExportSearch,
) -> Result<FoundExports, GatewayError> {
    let mut exports: Vec<ExportEntry> = Vec::new();
    // The last export that was read, unless it is the last of `exports`.
    let mut skipped = None;
    for (read_count, entry) in exporter.iterate(after).enumerate() {
        let entry = entry?;
        let is_match = filter.is_match(&entry);
        if read_count == max_read || is_match && exports.len() == limit {
            let last = exports.last().map(|last| last.id.clone());
            return Ok(FoundExports { next: skipped.or(last), exports });
        }
        if is_match {
            skipped = None;
            exports.push(entry);
        } else {
            skipped = Some(entry.id);
        }
    }
    Ok(FoundExports { exports, next: None })
}

/// Returns the first exports in a target's queue, in delivery order, and the length of the queue.
///
/// # Errors
/// The errors of the store.
pub async fn list_queue(
    gateway: &Gateway,
    target: &str,
    limit: usize,
) -> Result<(Vec<ExportEntry>, usize), GatewayError> {
    let (exporter, target) = (gateway.exporter.clone(), target.to_owned());
    run_blocking(move || exporter.list_queue(&target, limit)).await
}

/// Returns the export with this id.
///
/// # Errors
/// `ErrorClass::NotFound` if there is none.
pub async fn find_export(gateway: &Gateway, id: &str) -> Result<ExportEntry, GatewayError> {
    let (exporter, id) = (gateway.exporter.clone(), id.to_owned());
    run_blocking(move || read_entry(&exporter, &id)).await
}

fn read_entry(exporter: &Exporter, id: &str) -> Result<ExportEntry, GatewayError> {
    exporter.get(id)?.ok_or_else(|| {
        GatewayError::new(ErrorClass::NotFound, format!("there is no export with the id {id:?}"))
    })
}

/// Opens the file of an export.
///
/// # Errors
/// `ErrorClass::NotFound` if there is no such export, or if its file is no longer kept.
pub async fn open_export(gateway: &Gateway, id: &str) -> Result<OpenedExport, GatewayError> {
    let (exporter, id) = (gateway.exporter.clone(), id.to_owned());
    run_blocking(move || exporter.open_content(&id)).await
}

/// Returns the export with this id, and at most `max_bytes` of its file.
///
/// # Errors
/// `ErrorClass::NotFound` if there is no such export.
pub async fn preview_export(
    gateway: &Gateway,
    id: &str,
    max_bytes: usize,
) -> Result<ExportPreview, GatewayError> {
    let (exporter, id) = (gateway.exporter.clone(), id.to_owned());
    run_blocking(move || {
        let entry = read_entry(&exporter, &id)?;
        let beginning = exporter
            .open_content(&id)
            .map_err(|error| error.detail)
            .and_then(|content| read_beginning(content, max_bytes));
        Ok(ExportPreview { entry, beginning })
    })
    .await
}

fn read_beginning(content: OpenedExport, max_bytes: usize) -> Result<Vec<u8>, String> {
    let length = usize::try_from(content.length).unwrap_or(max_bytes);
    let mut bytes = Vec::with_capacity(max_bytes.min(length));
    match content.file.take(max_bytes as u64).read_to_end(&mut bytes) {
        Ok(_) => Ok(bytes),
        Err(error) => Err(format!("it could not be read: {error}")),
    }
}

/// Retries, parks or replays an export, and returns it after the change.
///
/// # Errors
/// `ErrorClass::NotFound` if there is no such export; `ErrorClass::Conflict` if its state does not allow the action;
/// the errors of the check of `by`.
pub async fn change_export(
    gateway: &Gateway,
    by: &Authorized,
    id: &str,
    action: ExportAction,
) -> Result<ExportEntry, GatewayError> {
    by.require_role(Role::Admin)?;
    let (exporter, by, id) = (gateway.exporter.clone(), by.clone(), id.to_owned());
    run_blocking(move || match action {
        ExportAction::Retry => exporter.retry(&by, &id),
        ExportAction::Park => exporter.park(&by, &id),
        ExportAction::Replay => exporter.replay(&by, &id),
    })
    .await
}

/// Exports all objects of a Business Object now. `traceparent` is the trace of the request (W3C Trace Context). When
/// this returns, the files are on disk and queued. Waits for a permit; if the caller drops the future meanwhile, nothing
/// is exported.
///
/// # Errors
/// Those of [`Exporter::acquire_push_permit`] and [`Exporter::push`].
pub async fn push_business_object(
    gateway: &Gateway,
    by: &Authorized,
    business_object: Arc<Compiled>,
    traceparent: String,
) -> Result<PushResult, GatewayError> {
    by.require_role(Role::Contributor)?;
    let permit = gateway.exporter.acquire_push_permit(&business_object).await?;
    let (exporter, by) = (gateway.exporter.clone(), by.clone());
    run_blocking(move || {
        // The permit is held until the thread is done, even if the client has disconnected.
        let _permit = permit;
        let requester =
            ExportRequester { check: &by, account: Some(by.id()), traceparent: Some(&traceparent) };
        exporter.push(&business_object, requester)
    })
    .await
}
