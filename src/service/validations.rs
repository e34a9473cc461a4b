//! Validations of everything that a Business Object has, in the background: one runs, and 16 wait.
//!
//! `queue` has those that wait and the one that runs, `run` validates, `report` is what a validation finds and the file
//! that keeps it, `kept` has the files. What runs or waits when the service stops begins again at the next start, on a
//! new snapshot.
mod kept;
pub(crate) mod queue;
mod report;
mod run;

pub use report::Report;
pub use run::run_validations;

use crate::audit::change_event;
use crate::blocking::run_blocking;
use crate::gateway::Gateway;
use crate::ingestions::find_write_scope;
use crate::objects::open_visible;
use kept::{remove_unended, write_unended};
use penstock_auth::{Authorized, Caller, Role};
use penstock_base::error::{ErrorClass, GatewayError};
use penstock_base::time::format_rfc3339;
use penstock_model::rdf::Format;
use penstock_model::resource::Compiled;
use penstock_model::validation::check_has_shapes;
use penstock_model::visible::VisibleObjects;
use penstock_resources::validation::{
    ListedViolation, Progress, SeverityCounts, Validation, ValidationState,
};
use penstock_shapes::ReportWriter;
use penstock_store::Snapshot;
use std::io::Write;
use std::sync::Arc;

/// Enqueues the validation of all members of a Business Object, in whatever mode it validates ingestions. It survives a
/// restart.
///
/// # Errors
/// - `ErrorClass::Forbidden` without the role Contributor
/// - `ErrorClass::Conflict` if it names no shapes graphs
/// - `ErrorClass::InsufficientStorage` when less than the reserve is free on the disk
/// - `ErrorClass::Unavailable` if too many validations wait
pub async fn start_validation(
    gateway: &Gateway,
    by: &Authorized,
    business_object: Arc<Compiled>,
) -> Result<Validation, GatewayError> {
    let start =
        move |gateway: &Gateway, by: &Authorized| enqueue_validation(gateway, by, &business_object);
    gateway.run(by, Role::Contributor, start).await
}

/// As [`start_validation`]. Blocking.
fn enqueue_validation(
    gateway: &Gateway,
    by: &Authorized,
    business_object: &Compiled,
) -> Result<Validation, GatewayError> {
    by.with_current_role()?.require_role(Role::Contributor)?;
    check_has_shapes(business_object)?;
    gateway.disk.check_reserve()?;
    let folder = {
        let queue = gateway.validations.lock();
        queue.check_capacity()?;
        queue.kept.folder()
    };
    let object = &business_object.object;
    let validation = Validation {
        id: uuid::Uuid::now_v7().to_string(),
        business_object: object.id.clone(),
        business_object_name: object.definition.name.clone(),
        state: ValidationState::Queued,
        requested_by: by.id().to_owned(),
        queued_at: format_rfc3339(gateway.clock.now()),
        started_at: None,
        ended_at: None,
        commit: None,
        shapes: Vec::new(),
        progress: Progress::default(),
        conforms: None,
        counts: SeverityCounts::default(),
        listed: 0,
        error: None,
    };
    if let Err(error) = write_unended(&folder, &validation) {
        tracing::warn!(%error, id = validation.id, "Writing the file of a validation failed; a restart forgets it.");
    }
    let mut queue = gateway.validations.lock();
    // Others may have come meanwhile.
    if let Err(busy) = queue.check_capacity() {
        drop(queue);
        remove_unended(&folder, &validation.id);
        return Err(busy);
    }
    queue.waiting.push_back(validation.clone());
    drop(queue);
    gateway.validations.enqueued.notify_one();
    record_step(gateway, by, "validation.started", &validation);
    Ok(validation)
}

/// Lists at most `limit` validations that the caller may see, the newest first, starting after the one with the id `after`.
pub fn list_validations(
    gateway: &Gateway,
    by: &Caller,
    business_object: Option<&str>,
    after: Option<&str>,
    limit: usize,
) -> Vec<Validation> {
    let queue = gateway.validations.lock();
    let of_page = queue.iter().filter(|one| {
        by.may_use(&one.business_object)
            && business_object.is_none_or(|wanted| one.business_object == wanted)
            && after.is_none_or(|after| one.id.as_str() < after)
    });
    of_page.take(limit).cloned().collect()
}

/// Returns a validation with its counts by shape and constraint, which are known when it has ended.
///
/// # Errors
/// `ErrorClass::NotFound`; `ErrorClass::Damaged` if its file is damaged.
pub async fn find_validation(gateway: &Gateway, id: &str) -> Result<Report, GatewayError> {
    let known = find_known(gateway, id)?;
    let path = gateway.validations.lock().kept.find_file(id);
    match path {
        None => Ok(Report { validation: known, constraints: Vec::new(), other_count: 0 }),
        Some(path) => run_blocking(move || report::read_header(&path)).await,
    }
}

/// Returns the listed violations of a validation after the first `skipped` ones, at most `limit`, as far as the caller sees
/// them; none before it has ended.
///
/// # Errors
/// As [`find_validation`].
pub async fn list_violations(
    gateway: &Gateway,
    by: &Caller,
    id: &str,
    skipped: usize,
    limit: usize,
) -> Result<Vec<ListedViolation>, GatewayError> {
    let scope = find_scope(gateway, by, &find_known(gateway, id)?);
    let path = gateway.validations.lock().kept.find_file(id);
    let Some(path) = path else { return Ok(Vec::new()) };
    gateway
        .read(move |gateway| {
            let mut page = Vec::new();
            let mut number = 0;
            let visible = open_limited(gateway, scope.as_deref())?;
            // The whole file is read, so that its checksum is checked.
            report::for_each_violation(&path, |mut violation| {
                number += 1;
                if number > skipped && page.len() < limit {
                    if let Some(visible) = &visible {
                        visible.withhold_values(&mut violation, [])?;
                    }
                    page.push(report::show_violation(&violation));
                }
                Ok(())
            })?;
            Ok(page)
        })
        .await
}

/// Returns the Business Objects that limit what the caller sees of a report; `None` without a limit.
fn find_scope(
    gateway: &Gateway,
    by: &Caller,
    validation: &Validation,
) -> Option<Vec<Arc<Compiled>>> {
    match gateway.catalogue.get(&validation.business_object) {
        Some(compiled) => find_write_scope(gateway, by, &compiled),
        // It was deleted meanwhile.
        None => by.business_objects().map(|_| Vec::new()),
    }
}

/// Opens what a caller with this limit sees; `None` without a limit, which needs no snapshot.
fn open_limited<'s>(
    gateway: &Gateway,
    scope: Option<&'s [Arc<Compiled>]>,
) -> Result<Option<VisibleObjects<'s, Snapshot>>, GatewayError> {
    scope.map(|scope| open_visible(gateway, Some(scope))).transpose()
}

/// Checks that a validation has a report.
///
/// # Errors
/// `ErrorClass::NotFound`, and `ErrorClass::Conflict` unless it is finished.
pub fn check_finished(gateway: &Gateway, id: &str) -> Result<(), GatewayError> {
    match find_known(gateway, id)?.state {
        ValidationState::Finished => Ok(()),
        state @ (ValidationState::Queued | ValidationState::Running) => Err(GatewayError::new(
            ErrorClass::Conflict,
            format!("the validation {id} is {}; read its report when it is finished", state.name()),
        )),
        state => Err(GatewayError::new(
            ErrorClass::Conflict,
            format!(
                "the validation {id} is {}, so it has no report; start another one",
                state.name()
            ),
        )),
    }
}

/// Writes the report of a finished validation as an `sh:ValidationReport`, as far as the caller sees it. Blocking.
///
/// # Errors
/// As [`check_finished`]; those of writing to `out`.
pub fn write_report(
    gateway: &Gateway,
    by: &Caller,
    id: &str,
    format: Format,
    out: impl Write,
) -> Result<(), GatewayError> {
    check_finished(gateway, id)?;
    let path = gateway.validations.lock().kept.find_file(id);
    let path = path.ok_or_else(|| unknown_validation_error(id))?;
    let scope = find_scope(gateway, by, &find_known(gateway, id)?);
    let visible = open_limited(gateway, scope.as_deref())?;
    let mut writer = ReportWriter::new(out, format)?;
    report::for_each_violation(&path, |mut violation| {
        if let Some(visible) = &visible {
            visible.withhold_values(&mut violation, [])?;
        }
        Ok(writer.write(&violation)?)
    })?;
    writer.finish()?;
    Ok(())
}

/// Cancels a validation that waits or runs. One that runs ends within moments.
///
/// # Errors
/// `ErrorClass::NotFound`; `ErrorClass::Conflict` if it has ended; `ErrorClass::Forbidden` without the role Contributor.
pub async fn cancel_validation(
    gateway: &Gateway,
    by: &Authorized,
    id: &str,
) -> Result<Validation, GatewayError> {
    by.with_current_role()?.require_role(Role::Contributor)?;
    find_known(gateway, id)?;
    let cancelled = gateway.validations.lock().cancel(id).ok_or_else(|| {
        let detail = format!("the validation {id} has ended, so it cannot be cancelled");
        GatewayError::new(ErrorClass::Conflict, detail)
    })?;
    record_step(gateway, by, "validation.cancelled", &cancelled);
    let end = move |gateway: &Gateway| {
        if cancelled.started_at.is_none() {
            return Ok(run::keep_ended(gateway, cancelled, report::Findings::default()));
        }
        // The process may be killed before it ends. It must not begin again then.
        let folder = gateway.validations.lock().kept.folder();
        remove_unended(&folder, &cancelled.id);
        Ok(cancelled)
    };
    gateway.read(end).await
}

fn record_step(gateway: &Gateway, by: &Authorized, what: &'static str, validation: &Validation) {
    let detail = format!("{} of {:?}", validation.id, validation.business_object_name);
    gateway.auth.audit.record_event(change_event(by, what, detail));
}

fn find_known(gateway: &Gateway, id: &str) -> Result<Validation, GatewayError> {
    let queue = gateway.validations.lock();
    let found = queue.iter().find(|one| one.id == id).cloned();
    found.ok_or_else(|| unknown_validation_error(id))
}

fn unknown_validation_error(id: &str) -> GatewayError {
    GatewayError::new(
        ErrorClass::NotFound,
        format!("there is no validation with the id {id:?}; the last 100 that ended are kept"),
    )
}

#[cfg(test)]
mod tests;
