//! Runs one ingestion: transaction, answer, log line and metrics.
use super::change::{Applied, apply_objects, apply_whole_request};
use super::documents::with_objects;
use super::findings::quote_excerpt;
use super::idempotency::IdempotencyKey;
use super::partial::apply_valid_objects;
use super::places::DocumentPlaces;
use super::rejections::Rejections;
use super::submission::find_submission;
use super::written_objects::WrittenObjects;
use super::{
    Answer, AuditHook, AuditedStep, Limits, Mode, OnError, Request, Submission, record, retry,
    value_limit,
};
use crate::changes::{Change, store_submission};
use crate::{change_feed, dead_letters};
use oxrdf::NamedNode;
use penstock_base::commit::GuardedStore;
use penstock_base::error::{ErrorClass, GatewayError};
use penstock_base::events::{EventBus, EventKind};
use penstock_base::telemetry::metrics;
use penstock_resources::ingestion::IngestionRecord;
use penstock_store::{Error, Transaction, Unsynced};
use std::collections::BTreeSet;
use std::time::{Duration, Instant};

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
    begin_ingestion(store, limits, request).wait()
}

/// Runs one ingestion as [`ingest`], except waiting for the sync.
pub fn begin_ingestion(
    store: &GuardedStore,
    limits: &Limits,
    request: &Request<'_>,
) -> BegunIngestion<Answer> {
    let report = Report::new(request);
    let ended = match request.mode {
        Mode::Validate => validate(store, limits, request),
        _ => commit_request(store, limits, request),
    };
    let ended = ended.unwrap_or_else(|error| Unsynced::without_commit(Ended::refused(error)));
    BegunIngestion { ended, report }
}

/// An ingestion whose commit may not be synced yet. It ends with [`Self::wait`] or [`Self::synced`], which report it: as
/// an event, in the log and in the metrics.
#[must_use = "the ingestion is reported only once it is synced"]
pub struct BegunIngestion<T> {
    ended: Unsynced<Ended<T>>,
    report: Report,
}

/// How an ingestion ended.
struct Ended<T> {
    outcome: &'static str,
    result: Result<T, GatewayError>,
    /// `None` with an error.
    counts: Option<Counts>,
    notices: Vec<Notice>,
}

/// What the log and the metrics tell of an answer.
struct Counts {
    ingestion_id: String,
    created: u64,
    updated: u64,
    unchanged: u64,
    deleted: u64,
    rejected: usize,
}

/// What is reported once it is durable.
enum Notice {
    Ingested(Box<IngestionRecord>),
    Submitted(Box<Change>),
    RemovedOrphans(Vec<NamedNode>),
    EvictedLetters(u64),
}

impl Ended<Answer> {
    fn answered(outcome: &'static str, answer: Answer, notices: Vec<Notice>) -> Self {
        let counts = Counts {
            ingestion_id: answer.ingestion_id.clone(),
            created: answer.created,
            updated: answer.updated,
            unchanged: answer.unchanged,
            deleted: answer.deleted,
            rejected: answer.rejected.len(),
        };
        Self { outcome, result: Ok(answer), counts: Some(counts), notices }
    }
}

impl<T> Ended<T> {
    fn refused(error: GatewayError) -> Self {
        Self { outcome: "refused", result: Err(error), counts: None, notices: Vec::new() }
    }

    fn map<U>(self, convert: impl FnOnce(T) -> U) -> Ended<U> {
        let Self { outcome, result, counts, notices } = self;
        Ended { outcome, result: result.map(convert), counts, notices }
    }
}

impl<T> BegunIngestion<T> {
    /// Converts the answer, which is given away only after the sync.
    pub fn map<U>(self, convert: impl FnOnce(T) -> U) -> BegunIngestion<U> {
        let Self { ended, report } = self;
        BegunIngestion { ended: ended.map(|ended| ended.map(convert)), report }
    }

    /// Waits for the sync, and reports the ingestion. Blocking.
    ///
    /// # Errors
    /// As [`ingest`].
    pub fn wait(self) -> Result<T, GatewayError> {
        self.report.finish(self.ended.wait())
    }

    /// Waits for the sync without a thread, and reports the ingestion.
    ///
    /// # Errors
    /// As [`ingest`].
    pub async fn synced(self) -> Result<T, GatewayError> {
        self.report.finish(self.ended.synced().await)
    }
}

/// Applies the request in a transaction that is not committed.
fn validate(
    store: &GuardedStore,
    limits: &Limits,
    sent: &Request<'_>,
) -> Result<Unsynced<Ended<Answer>>, GatewayError> {
    value_limit::check_body(sent.body, limits.values)?;
    let mut answer = store.dry_run(sent.check, |transaction| {
        check_accepts(transaction, sent)?;
        with_objects(sent, limits, |request, limits, places| {
            retry::find_retried_letter(transaction, request)?;
            find_submission(request)?;
            let (applied, rejections) = apply_request(transaction, limits, request, places)?;
            Ok(Answer { rejected: rejections.list(), ..applied.answer })
        })
    })?;
    if !sent.lists_objects {
        answer.objects.clear();
    }
    Ok(Unsynced::without_commit(Ended::answered("validated", answer, Vec::new())))
}

/// Commits what the request does: its objects, a change, or the new errors of a dead letter.
fn commit_request(
    store: &GuardedStore,
    limits: &Limits,
    sent: &Request<'_>,
) -> Result<Unsynced<Ended<Answer>>, GatewayError> {
    let key = sent.idempotency_key.map(|key| IdempotencyKey::new(sent, key)).transpose()?;
    value_limit::check_body(sent.body, limits.values)?;
    let committed =
        store.commit_unsynced(sent.check, |transaction| -> Result<_, GatewayError> {
            if let Some(key) = &key
                && let Some(answer) = key.find_answer(transaction)?
            {
                return Ok(Ended::answered("replayed", answer, Vec::new()));
            }
            check_accepts(transaction, sent)?;
            let ended = with_objects(sent, limits, |request, limits, places| {
                let retried = retry::find_retried_letter(transaction, request)?;
                if let Some(submission) = find_submission(request)? {
                    return submit_change(transaction, limits, request, submission, places);
                }
                match (apply_request(transaction, limits, request, places), retried) {
                    (Ok(applied), retried) => {
                        if let Some(letter) = &retried {
                            dead_letters::remove_letter(transaction, letter)?;
                        }
                        record_applied(transaction, limits, sent, request, applied)
                    }
                    (Err(error), Some(letter)) => {
                        let evicted = retry::keep_letter(transaction, letter, &error, limits)?;
                        let notices = vec![Notice::EvictedLetters(evicted)];
                        Ok(Ended { notices, ..Ended::refused(error) })
                    }
                    (Err(error), None) => Err(error),
                }
            })?;
            if let (Some(key), Ok(answer)) = (&key, &ended.result) {
                key.store_answer(transaction, answer, limits)?;
            }
            Ok(ended)
        })?;
    Ok(committed.map(|(ended, _)| ended))
}

/// Adds to the commit of the applied request what belongs to it: its record, its dead letters and its events. `sent` is
/// the request before its documents became objects.
fn record_applied(
    transaction: &mut Transaction<'_>,
    limits: &Limits,
    sent: &Request<'_>,
    request: &Request<'_>,
    (applied, rejections): (Applied, Rejections),
) -> Result<Ended<Answer>, GatewayError> {
    let Applied { mut answer, removed, bypassed, .. } = applied;
    answer.rejected = rejections.list();
    let wrote = WrittenObjects::from_answer(&answer);
    if !request.lists_objects {
        answer.objects.clear();
    }
    change_feed::record_changed_objects(transaction, request.watch, "", &BTreeSet::new())?;
    let record = record::new_record(transaction, sent, &answer);
    record::store_record(transaction, &record, &wrote, limits.history)?;
    let evicted =
        rejections.store_dead_letters(transaction, request, &mut answer, limits, &record.at)?;
    if !bypassed.is_empty() {
        AuditHook::record(request.audit, transaction, AuditedStep::Bypassed(&bypassed))?;
    }
    if let Some(events) = request.events {
        let trace = record.traceparent.as_deref();
        events.store(transaction, trace, EventKind::Ingestion, &record.id, &record)?;
    }
    let notices = vec![
        Notice::Ingested(Box::new(record)),
        Notice::RemovedOrphans(removed),
        Notice::EvictedLetters(evicted),
    ];
    Ok(Ended::answered("committed", answer, notices))
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
    submission: Submission<'_>,
    places: Option<&DocumentPlaces>,
) -> Result<Ended<Answer>, GatewayError> {
    let submitted = compute_change(transaction, limits, request, submission);
    let (answer, change) = match places {
        Some(places) => places.convert_submitted(submitted),
        None => submitted,
    }?;
    Ok(Ended::answered("submitted", answer, vec![Notice::Submitted(Box::new(change))]))
}

fn compute_change(
    transaction: &mut Transaction<'_>,
    limits: &Limits,
    request: &Request<'_>,
    submission: Submission<'_>,
) -> Result<(Answer, Change), GatewayError> {
    let applied = apply_whole_request(transaction, limits, request)?;
    let change = store_submission(transaction, limits, request, &applied, submission)?;
    AuditHook::record(request.audit, transaction, AuditedStep::Submitted(&change))?;
    change.store_event(transaction, request.events, request.traceparent)?;
    let mut answer = applied.answer;
    answer.change = Some(change.state);
    if !request.lists_objects {
        answer.objects.clear();
    }
    Ok((answer, change))
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

/// Applies the request to the transaction without committing it. `places` are those of objects from documents.
pub(super) fn apply_request(
    transaction: &mut Transaction<'_>,
    limits: &Limits,
    request: &Request<'_>,
    places: Option<&DocumentPlaces>,
) -> Result<(Applied, Rejections), GatewayError> {
    let applied = match request.on_error {
        OnError::Abort => apply_objects(transaction, limits, request, None)
            .map(|applied| (applied, Rejections::default())),
        OnError::Skip => apply_valid_objects(transaction, limits, request),
    };
    let Some(places) = places else { return applied };
    let (mut applied, mut rejections) = applied.map_err(|error| places.convert_error(error))?;
    places.convert_answer(&mut applied.answer);
    rejections.convert_places(places);
    Ok((applied, rejections))
}

/// What is reported about an ingestion once it is durable or refused.
struct Report {
    started: Instant,
    events: Option<EventBus>,
    traceparent: Option<String>,
    business_object: String,
    mode: Mode,
    caller: String,
    bytes: u64,
}

impl Report {
    fn new(request: &Request<'_>) -> Self {
        Self {
            started: Instant::now(),
            events: request.events.cloned(),
            traceparent: request.traceparent.map(str::to_owned),
            business_object: request.business_object.object.definition.name.clone(),
            mode: request.mode,
            caller: request.caller.to_owned(),
            bytes: request.body.byte_len(),
        }
    }

    /// Publishes, logs and counts the ingestion, which is synced, or whose sync failed.
    fn finish<T>(self, ended: Result<Ended<T>, Error>) -> Result<T, GatewayError> {
        let ended = ended.unwrap_or_else(|error| Ended::refused(error.into()));
        for notice in ended.notices {
            match notice {
                Notice::Ingested(record) => self.publish_record(&record),
                Notice::Submitted(change) => {
                    if let Some(events) = &self.events {
                        let approvers = change.approvers.clone();
                        change.publish_event(events, self.traceparent.as_deref(), approvers);
                    }
                }
                Notice::RemovedOrphans(orphans) => {
                    self.log_removed_orphans(ended.counts.as_ref(), &orphans);
                }
                Notice::EvictedLetters(0) => {}
                Notice::EvictedLetters(count) => {
                    metrics::count_removed_dead_letters("evicted", count);
                    tracing::warn!(
                        business_object = self.business_object,
                        caller = self.caller,
                        count,
                        "Dead letters were removed to make space for new ones, so their objects are lost. Correct what the \
                         senders send, or raise service.limits.rejected.bytes."
                    );
                }
            }
        }
        let result = ended.result.map_err(|mut error| {
            error.detail = format!("Ingestion failed: {}", error.detail);
            error
        });
        self.log_end(ended.outcome, ended.counts.as_ref(), result.as_ref().err());
        result
    }

    fn publish_record(&self, record: &IngestionRecord) {
        if let Some(events) = &self.events {
            let trace = record.traceparent.as_deref();
            events.publish_in_trace(trace, EventKind::Ingestion, &record.id, record);
        }
        metrics::count_rejected_objects(record.rejected);
    }

    /// Logs the objects that the request removed without naming them. One of them may have been ingested as an object of
    /// its own.
    fn log_removed_orphans(&self, counts: Option<&Counts>, orphans: &[NamedNode]) {
        const MAX_NAMED: usize = 20;
        if orphans.is_empty() {
            return;
        }
        let named: Vec<_> =
            orphans.iter().take(MAX_NAMED).map(|uri| quote_excerpt(uri.as_str())).collect();
        tracing::info!(
            ingestion_id = counts.map(|counts| counts.ingestion_id.as_str()),
            business_object = self.business_object,
            mode = self.mode.name(),
            count = orphans.len(),
            first = named.join(", "),
            "Removed nested objects that nothing refers to any more."
        );
    }

    /// Writes one log line and counts the ingestion, refused or not.
    fn log_end(
        &self,
        outcome: &'static str,
        counts: Option<&Counts>,
        error: Option<&GatewayError>,
    ) {
        let elapsed = self.started.elapsed();
        let duration_ms = u64::try_from(elapsed.as_millis()).unwrap_or(u64::MAX);
        let Self { business_object, caller, bytes, .. } = self;
        let mode = self.mode.name();
        if let Some(error) = error {
            tracing::warn!(
                business_object,
                mode,
                cause = error.detail,
                bytes,
                duration_ms,
                caller,
                "An ingestion was refused."
            );
        } else if let Some(counts) = counts {
            tracing::info!(
                ingestion_id = counts.ingestion_id,
                business_object,
                mode,
                outcome,
                created = counts.created,
                updated = counts.updated,
                unchanged = counts.unchanged,
                deleted = counts.deleted,
                rejected = counts.rejected,
                bytes,
                duration_ms,
                caller,
                "An ingestion was done."
            );
        }
        let objects = counts.map_or(0, |counts| {
            counts.created + counts.updated + counts.unchanged + counts.deleted
        });
        metrics::count_ingestion(outcome, objects, *bytes, elapsed.as_secs_f64());
        if let (Some(counts), "committed") = (counts, outcome) {
            metrics::count_unchanged_objects(counts.unchanged);
        }
    }
}
