//! Runs one ingestion: transaction, answer, log line and metrics.
use super::change::{Applied, apply_objects, apply_whole_request};
use super::findings::quote_excerpt;
use super::idempotency::IdempotencyKey;
use super::partial::apply_valid_objects;
use super::rejections::Rejections;
use super::review::find_submission;
use super::write_history::WrittenObjects;
use super::{
    Answer, AuditHook, AuditedStep, Limits, Mode, OnError, Record, Request, Submission, record,
    retry, value_limit,
};
use crate::changes::{Change, store_submission};
use crate::{change_feed, dead_letters};
use oxrdf::NamedNode;
use penstock_base::commit::GuardedStore;
use penstock_base::error::{ErrorClass, GatewayError};
use penstock_base::events;
use penstock_base::telemetry::metrics;
use penstock_store::{Error, Transaction};
use std::collections::BTreeSet;
use std::time::{Duration, Instant};

/// How the transaction of an ingestion ended.
enum Completion {
    Committed(Box<Committed>),
    Replayed(Answer),
    /// The request became a change.
    Submitted {
        answer: Answer,
        change: Box<Change>,
    },
    /// The retry of a dead letter failed. Only its errors were committed.
    RetryFailed {
        error: GatewayError,
        /// The number of dead letters that had to make place for the errors.
        evicted_letters: u64,
    },
}

/// An ingestion whose changes were committed.
struct Committed {
    answer: Answer,
    record: Record,
    /// The nested objects that were removed because nothing refers to them any more.
    removed: Vec<NamedNode>,
    /// The number of dead letters that had to make place for those of this ingestion.
    evicted_letters: u64,
}

/// The reason why a transaction commits nothing.
enum NotCommitted {
    Refused(GatewayError),
    Validated(Box<Answer>),
}

impl From<Error> for NotCommitted {
    fn from(error: Error) -> Self {
        Self::Refused(error.into())
    }
}

impl From<GatewayError> for NotCommitted {
    fn from(error: GatewayError) -> Self {
        Self::Refused(error)
    }
}

/// Runs one ingestion: parses, checks, mints and commits. It returns the answer only once the commit would survive a
/// power cut. VALIDATE does the same and commits nothing; its minted URIs are examples.
///
/// # Errors
/// The `detail` of every error begins with `Ingestion failed: `. An ingestion with an error stores nothing.
pub fn ingest(
    store: &GuardedStore,
    limits: &Limits,
    request: &Request<'_>,
) -> Result<Answer, GatewayError> {
    let started = Instant::now();
    let (outcome, result) = match run_ingestion(store, limits, request) {
        Ok(Completion::Committed(committed)) => {
            let Committed { answer, record, removed, evicted_letters } = *committed;
            if let Some(events) = request.events {
                let trace = record.traceparent.as_deref();
                events.publish_in_trace(trace, events::EventKind::Ingestion, &record.id, &record);
            }
            log_removed_orphans(request, &answer, &removed);
            metrics::count_rejected_objects(record.rejected);
            metrics::count_removed_dead_letters("evicted", evicted_letters);
            ("committed", Ok(answer))
        }
        Ok(Completion::Replayed(answer)) => ("replayed", Ok(answer)),
        Ok(Completion::Submitted { answer, change }) => {
            if let Some(events) = request.events {
                change.publish_event(events, request.traceparent, change.approvers.clone());
            }
            ("submitted", Ok(answer))
        }
        Err(NotCommitted::Validated(answer)) => ("validated", Ok(*answer)),
        Ok(Completion::RetryFailed { error, evicted_letters }) => {
            metrics::count_removed_dead_letters("evicted", evicted_letters);
            ("refused", Err(error))
        }
        Err(NotCommitted::Refused(error)) => ("refused", Err(error)),
    };
    let result = result.map_err(|mut error| {
        error.detail = format!("Ingestion failed: {}", error.detail);
        error
    });
    report_ingestion(request, outcome, &result, started);
    result
}

fn run_ingestion(
    store: &GuardedStore,
    limits: &Limits,
    request: &Request<'_>,
) -> Result<Completion, NotCommitted> {
    let key = match request.idempotency_key {
        Some(key) if request.mode != Mode::Validate => Some(IdempotencyKey::new(request, key)?),
        _ => None,
    };
    value_limit::check_body(request.body, limits.values)?;
    let (done, _) =
        store.commit(request.check, |transaction| -> Result<Completion, NotCommitted> {
            if let Some(key) = &key
                && let Some(answer) = key.find_answer(transaction)?
            {
                return Ok(Completion::Replayed(answer));
            }
            check_accepts(transaction, request)?;
            let retried = retry::find_retried_letter(transaction, request)?;
            if let Some(submission) = find_submission(request)? {
                return submit_change(transaction, limits, request, key.as_ref(), submission);
            }
            let applied = apply_request(transaction, limits, request);
            let (applied, rejections) = match (applied, retried) {
                (Ok(applied), None) => applied,
                (Ok(applied), Some(letter)) => {
                    dead_letters::remove_letter(transaction, &letter)?;
                    applied
                }
                (Err(error), Some(letter)) => {
                    let evicted_letters = retry::keep_letter(transaction, letter, &error, limits)?;
                    return Ok(Completion::RetryFailed { error, evicted_letters });
                }
                (Err(error), None) => return Err(error.into()),
            };
            let Applied { mut answer, removed, bypassed, .. } = applied;
            answer.rejected = rejections.list();
            let wrote = WrittenObjects::from_answer(&answer);
            if !request.lists_objects {
                answer.objects.clear();
            }
            if request.mode == Mode::Validate {
                return Err(NotCommitted::Validated(Box::new(answer)));
            }
            let none = BTreeSet::new();
            change_feed::record_changed_objects(transaction, request.watch, "", &none)?;
            let record =
                record::store_record(transaction, request, &answer, &wrote, limits.history)?;
            let evicted_letters = rejections.store_dead_letters(
                transaction,
                request,
                &mut answer,
                limits,
                &record.at,
            )?;
            if let Some(key) = &key {
                key.store_answer(transaction, &answer, limits)?;
            }
            if !bypassed.is_empty() {
                let step = AuditedStep::Bypassed(&bypassed);
                AuditHook::record(request.audit, transaction, step)?;
            }
            if let Some(events) = request.events {
                let trace = record.traceparent.as_deref();
                let kind = events::EventKind::Ingestion;
                events.store(transaction, trace, kind, &record.id, &record)?;
            }
            let committed = Committed { answer, record, removed, evicted_letters };
            Ok(Completion::Committed(Box::new(committed)))
        })?;
    Ok(done)
}

/// Checks that the Business Object accepts data, with the definitions that the request read.
pub(super) fn check_accepts(
    transaction: &Transaction<'_>,
    request: &Request<'_>,
) -> Result<(), GatewayError> {
    let object = &request.business_object.object;
    request.watch.check_not_closed(object)?;
    check_versions(transaction, request)?;
    if object.definition.enabled {
        return Ok(());
    }
    let message = format!("the Business Object {:?} is disabled", object.definition.name);
    Err(GatewayError::new(ErrorClass::Conflict, message))
}

/// Computes what the request would do, and stores it as a change. Nothing of it reaches the graph.
fn submit_change(
    transaction: &mut Transaction<'_>,
    limits: &Limits,
    request: &Request<'_>,
    key: Option<&IdempotencyKey>,
    submission: Submission<'_>,
) -> Result<Completion, NotCommitted> {
    let applied = apply_whole_request(transaction, limits, request)?;
    let change = store_submission(transaction, limits, request, &applied, submission)?;
    AuditHook::record(request.audit, transaction, AuditedStep::Submitted(&change))?;
    change.store_event(transaction, request.events, request.traceparent)?;
    let mut answer = applied.answer;
    answer.change = Some(change.state);
    if !request.lists_objects {
        answer.objects.clear();
    }
    if let Some(key) = key {
        key.store_answer(transaction, &answer, limits)?;
    }
    Ok(Completion::Submitted { answer, change: Box::new(change) })
}

/// Checks that no definition was replaced after the request read it. With an old one, objects could be stored without a
/// new key, or in a namespace that the credential may no longer write.
pub(crate) fn check_versions(
    transaction: &Transaction<'_>,
    request: &Request<'_>,
) -> Result<(), GatewayError> {
    let current = request.watch.current_definitions(transaction)?;
    let object = &request.business_object.object;
    if current.version_of(&object.id).is_some_and(|version| version != object.version) {
        return Err(outdated_error(&object.definition.name));
    }
    let others = request.write_scope.unwrap_or_default().iter().map(|other| &other.object);
    for other in others.filter(|other| other.id != object.id) {
        // One that was deleted has no version.
        if current.version_of(&other.id) != Some(other.version) {
            return Err(outdated_error(&other.definition.name));
        }
    }
    Ok(())
}

/// Returns the error of a request that read a definition before it was replaced or deleted.
pub(crate) fn outdated_error(name: &str) -> GatewayError {
    GatewayError::new(
        ErrorClass::Unavailable(Duration::from_secs(1)),
        format!(
            "the Business Object {name:?} was just replaced or deleted; send the request again"
        ),
    )
}

/// Applies the request to the transaction without committing it.
fn apply_request(
    transaction: &mut Transaction<'_>,
    limits: &Limits,
    request: &Request<'_>,
) -> Result<(Applied, Rejections), GatewayError> {
    match request.on_error {
        OnError::Abort => {
            Ok((apply_objects(transaction, limits, request, None)?, Rejections::default()))
        }
        OnError::Skip => apply_valid_objects(transaction, limits, request),
    }
}

/// Logs the objects that the request removed without naming them. One of them may have been ingested as an object of
/// its own.
fn log_removed_orphans(request: &Request<'_>, answer: &Answer, orphans: &[NamedNode]) {
    const MAX_NAMED: usize = 20;
    if orphans.is_empty() {
        return;
    }
    let named: Vec<_> =
        orphans.iter().take(MAX_NAMED).map(|uri| quote_excerpt(uri.as_str())).collect();
    tracing::info!(
        ingestion_id = answer.ingestion_id,
        business_object = request.business_object.object.definition.name.as_str(),
        mode = request.mode.name(),
        count = orphans.len(),
        first = named.join(", "),
        "Removed nested objects that nothing refers to any more."
    );
}

/// Writes one log line and counts the ingestion, refused or not.
fn report_ingestion(
    request: &Request<'_>,
    outcome: &'static str,
    result: &Result<Answer, GatewayError>,
    started: Instant,
) {
    let elapsed = started.elapsed();
    let bytes = request.body.byte_len();
    let duration_ms = u64::try_from(elapsed.as_millis()).unwrap_or(u64::MAX);
    let business_object = request.business_object.object.definition.name.as_str();
    let (mode, caller) = (request.mode.name(), request.caller);
    match result {
        Ok(answer) => tracing::info!(
            ingestion_id = answer.ingestion_id,
            business_object,
            mode,
            outcome,
            created = answer.created,
            updated = answer.updated,
            unchanged = answer.unchanged,
            deleted = answer.deleted,
            rejected = answer.rejected.len(),
            bytes,
            duration_ms,
            caller,
            "An ingestion was done."
        ),
        Err(error) => tracing::warn!(
            business_object,
            mode,
            cause = error.detail,
            bytes,
            duration_ms,
            caller,
            "An ingestion was refused."
        ),
    }
    let objects = result
        .as_ref()
        .map_or(0, |answer| answer.created + answer.updated + answer.unchanged + answer.deleted);
    metrics::count_ingestion(outcome, objects, bytes, elapsed.as_secs_f64());
    if let (Ok(answer), "committed") = (result, outcome) {
        metrics::count_unchanged_objects(answer.unchanged);
    }
}
