//! Runs one ingestion: transaction, answer, log line and metrics.
use super::change::change;
use super::findings::excerpt;
use super::idempotency::Key;
use super::wrote::Wrote;
use super::{Answer, Limits, Mode, Record, Request, record, values};
use crate::changes;
use oxrdf::NamedNode;
use penstock_base::commit::GuardedStore;
use penstock_base::events;
use penstock_base::fault::{Fault, Kind};
use penstock_base::telemetry::metrics;
use penstock_store::Error;
use std::time::Instant;

/// How an ingestion without errors ended.
enum Done {
    /// With the nested objects that were removed because nothing refers to them any more.
    Committed(Answer, Vec<NamedNode>, Box<Record>),
    Replayed(Answer),
}

/// The reason why a transaction commits nothing.
enum Stop {
    Refused(Fault),
    Validated(Answer),
}

impl From<Error> for Stop {
    fn from(error: Error) -> Self {
        Self::Refused(error.into())
    }
}

impl From<Fault> for Stop {
    fn from(fault: Fault) -> Self {
        Self::Refused(fault)
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
) -> Result<Answer, Fault> {
    let started = Instant::now();
    let (outcome, result) = match run(store, limits, request) {
        Ok(Done::Committed(answer, orphans, record)) => {
            if let Some(events) = request.events {
                let trace = record.traceparent.as_deref();
                events.publish_in(trace, events::Kind::Ingestion, &record.id, &*record);
            }
            report_removed(request, &answer, &orphans);
            ("committed", Ok(answer))
        }
        Ok(Done::Replayed(answer)) => ("replayed", Ok(answer)),
        Err(Stop::Validated(answer)) => ("validated", Ok(answer)),
        Err(Stop::Refused(mut fault)) => {
            fault.detail = format!("Ingestion failed: {}", fault.detail);
            ("refused", Err(fault))
        }
    };
    report(request, outcome, &result, started);
    result
}

fn run(store: &GuardedStore, limits: &Limits, request: &Request<'_>) -> Result<Done, Stop> {
    let key = match request.idempotency_key {
        Some(key) if request.mode != Mode::Validate => Some(Key::new(request, key)?),
        _ => None,
    };
    values::check(request.body.text(), limits.values)?;
    let (done, _) = store.commit(request.check, |transaction| -> Result<Done, Stop> {
        if let Some(key) = &key
            && let Some(answer) = key.replay(transaction)?
        {
            return Ok(Done::Replayed(answer));
        }
        let definition = &request.business_object.object.definition;
        if !definition.enabled {
            let message = format!("the Business Object {:?} is disabled", definition.name);
            return Err(Fault::new(Kind::Conflict, message).into());
        }
        let (mut answer, orphans) = change(transaction, limits, request)?;
        let wrote = Wrote::of(&answer);
        if !request.tells_objects {
            answer.objects.clear();
        }
        if request.mode == Mode::Validate {
            return Err(Stop::Validated(answer));
        }
        changes::note(transaction, request.watch)?;
        let record = record::keep(transaction, request, &answer, &wrote, limits.history)?;
        if let Some(key) = &key {
            key.keep(transaction, &answer, limits)?;
        }
        Ok(Done::Committed(answer, orphans, Box::new(record)))
    })?;
    Ok(done)
}

/// Logs the objects that the request removed without naming them. One of them may have been ingested as an object of
/// its own.
fn report_removed(request: &Request<'_>, answer: &Answer, orphans: &[NamedNode]) {
    const MOST: usize = 20;
    if orphans.is_empty() {
        return;
    }
    let named: Vec<_> = orphans.iter().take(MOST).map(|uri| excerpt(uri.as_str())).collect();
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
fn report(
    request: &Request<'_>,
    outcome: &'static str,
    result: &Result<Answer, Fault>,
    started: Instant,
) {
    let elapsed = started.elapsed();
    let bytes = request.body.bytes();
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
            bytes,
            duration_ms,
            caller,
            "An ingestion was done."
        ),
        Err(fault) => tracing::warn!(
            business_object,
            mode,
            cause = fault.detail,
            bytes,
            duration_ms,
            caller,
            "An ingestion was refused."
        ),
    }
    let objects = result
        .as_ref()
        .map_or(0, |answer| answer.created + answer.updated + answer.unchanged + answer.deleted);
    metrics::ingestion(outcome, objects, bytes, elapsed.as_secs_f64());
}
