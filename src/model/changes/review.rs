//! The steps of a change: submitting, approving, rejecting, withdrawing, and computing its difference again.
//!
//! Each step is one commit, which checks who takes it, the state, and the version.
use super::list::{current_approvers, find_change, is_abandoned, is_defined};
use super::open::OPEN;
use super::read::{Part, read_minted, read_part};
use super::record::{Change, ChangeAction, HistoryEntry};
use super::storage::{put_change, read_stored, release_identifiers};
use super::submit::Computed;
use crate::change_feed::{self, Watch};
use crate::ingest::{
    Applied, Body, BodyForm, Limits, MintedIdentifier, OnError, Replay, Request, ReviewStep,
    WrittenObjects, apply_whole_request, check_versions, new_record, store_record,
};
use crate::resource::Compiled;
use penstock_base::IfMatch;
use penstock_base::commit::{CommitCheck, GuardedStore, NoClient};
use penstock_base::error::{ErrorClass, GatewayError};
use penstock_base::events::{EventBus, EventKind};
use penstock_base::json::MAX_NESTING;
use penstock_base::principal::Principal;
use penstock_resources::change::ChangeState;
use penstock_resources::ingestion::IngestionRecord;
use penstock_store::Transaction;
use std::collections::BTreeSet;

/// The number of changes that are read at a time to withdraw them, and the maximum number withdrawn in one commit.
const CHANGES_PER_COMMIT: usize = 200;

/// Checks in the commit whether the client may take the step. It gets the current approvers.
pub type StepCheck<'a> =
    &'a (dyn Fn(&Transaction<'_>, &Change, &[Principal]) -> Result<(), GatewayError> + 'a);

/// Adds the audit event of a step to its commit.
pub type StepHook<'a> =
    &'a (dyn Fn(&mut Transaction<'_>, &Change) -> Result<(), GatewayError> + 'a);

/// A step that a client takes.
#[derive(Clone, Copy)]
pub struct Review<'a> {
    /// The id of the change.
    pub id: &'a str,
    /// The check of the client, which runs in the commit.
    pub check: &'a dyn CommitCheck,
    /// Whether the client may take the step.
    pub authorize: StepCheck<'a>,
    /// Adds the audit event.
    pub on_commit: StepHook<'a>,
    /// The client's account, as stored in the history.
    pub by: &'a str,
    /// The version that the client has seen.
    pub if_match: IfMatch,
    /// The client's comment.
    pub comment: Option<&'a str>,
    /// The trace of the request, as in the header `traceparent`.
    pub traceparent: Option<&'a str>,
    /// Records changes for automatic exports, and has the clock.
    pub watch: &'a Watch,
    /// Where the step is published.
    pub events: Option<&'a EventBus>,
}

/// The definitions that a change is computed with, as they are now.
#[derive(Debug, Clone, Copy)]
pub struct Decision<'a> {
    /// The Business Object of the change.
    pub business_object: &'a Compiled,
    /// The Business Objects that the author's credential was limited to; `None` without a limit.
    pub write_scope: Option<&'a [&'a Compiled]>,
    /// The limits of requests.
    pub limits: &'a Limits,
}

/// Whether a change would still do what its difference shows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Applicability {
    /// It would.
    Applies,
    /// It would do something else, because something that it depends on has changed.
    Differs,
    /// It can no longer be published.
    Fails(GatewayError),
}

impl Review<'_> {
    /// Returns the change, if the client may take the step.
    fn find(&self, transaction: &Transaction<'_>) -> Result<Change, GatewayError> {
        let change = find_change(transaction, self.id)?;
        let change = change.ok_or_else(|| missing_change_error(self.id))?;
        let approvers = current_approvers(transaction, self.watch, &change)?;
        (self.authorize)(transaction, &change, &approvers)?;
        Ok(change)
    }

    fn check_version(&self, change: &Change) -> Result<(), GatewayError> {
        match self.if_match {
            IfMatch::Version(seen) if seen != change.version => Err(GatewayError::new(
                ErrorClass::PreconditionFailed,
                format!(
                    "the change {} has version {} now, not {seen}; read it again",
                    change.id, change.version
                ),
            )),
            _ => Ok(()),
        }
    }

    /// Returns the change after the step.
    ///
    /// # Errors
    /// As [`Change::add_step`].
    fn advance(
        &self,
        transaction: &Transaction<'_>,
        change: &Change,
        action: ChangeAction,
    ) -> Result<Change, GatewayError> {
        let mut change = change.clone();
        let entry = HistoryEntry {
            at: self.watch.stamp().to_rfc3339(),
            by: Some(self.by.to_owned()),
            state: action.state(),
            rebased: action == ChangeAction::Rebase,
            comment: self.comment.map(str::to_owned),
        };
        change.add_step(transaction, entry)?;
        Ok(change)
    }

    fn publish(&self, store: &GuardedStore, change: &Change) {
        let Some(events) = self.events else { return };
        // Listeners read the change, which checks again what they may see.
        let approvers = current_approvers(&store.read(), self.watch, change);
        let approvers = approvers.unwrap_or_else(|_| change.approvers.clone());
        change.publish_event(events, self.traceparent, approvers);
    }
}

/// Returns the error of a change that does not exist, or that the client may not see.
pub fn missing_change_error(id: &str) -> GatewayError {
    GatewayError::new(ErrorClass::NotFound, format!("there is no change {id:?}"))
}

/// Takes a step that computes nothing: submits, rejects or withdraws a change. Repeating it changes nothing.
///
/// # Errors
/// - `ErrorClass::NotFound` and the errors of [`Review::authorize`]
/// - `ErrorClass::Conflict` if the state does not allow it
/// - `ErrorClass::PreconditionFailed` for another version
pub fn take_step(
    store: &GuardedStore,
    review: &Review<'_>,
    action: ChangeAction,
) -> Result<Change, GatewayError> {
    let ((change, is_taken), _) = store.commit(review.check, |transaction| {
        let before = review.find(transaction)?;
        if !action.check_state(&before)? {
            return Ok((before, false));
        }
        review.check_version(&before)?;
        let mut change = review.advance(transaction, &before, action)?;
        put_change(transaction, Some(&before), &mut change, review.watch.elapsed())?;
        (review.on_commit)(transaction, &change)?;
        change.store_event(transaction, review.events, review.traceparent)?;
        Ok::<_, GatewayError>((change, true))
    })?;
    if is_taken {
        review.publish(store, &change);
    }
    Ok(change)
}

/// Publishes a change: the graph, its ingestion record and its state in one commit. Repeating it changes nothing.
///
/// # Errors
/// - `ErrorClass::NotFound` and the errors of [`Review::authorize`]
/// - `ErrorClass::PreconditionFailed` for another version
/// - `ErrorClass::Conflict` if the state does not allow it, if the change would do something else than its difference
///   shows, or if it can no longer be published
pub fn publish_change(
    store: &GuardedStore,
    review: &Review<'_>,
    decision: Decision<'_>,
) -> Result<Change, GatewayError> {
    let ((change, record), _) = store.commit(review.check, |transaction| {
        let before = review.find(transaction)?;
        if !ChangeAction::Approve.check_state(&before)? {
            return Ok((before, None));
        }
        review.check_version(&before)?;
        let stored = StoredRequest::read(transaction, &before)?;
        let request = stored.to_request(review, decision, &before);
        let (applied, computed) =
            run_again(transaction, decision.limits, &request).map_err(to_conflict)?;
        if computed.digest != before.digest {
            return Err(GatewayError::new(
                ErrorClass::Conflict,
                "something that the change depends on has changed, so it would not do what its difference shows; rebase it, and look at it again",
            ));
        }
        let mut answer = applied.answer;
        answer.ingestion_id.clone_from(&before.id);
        let wrote = WrittenObjects::from_answer(&answer);
        change_feed::record_changed_objects(transaction, review.watch, "", &BTreeSet::new())?;
        let record = IngestionRecord {
            author: Some(before.author.clone()),
            approved_by: Some(review.by.to_owned()),
            ..new_record(transaction, &request, &answer)
        };
        store_record(transaction, &record, &wrote, decision.limits.history)?;
        let mut change = review.advance(transaction, &before, ChangeAction::Approve)?;
        put_change(transaction, Some(&before), &mut change, review.watch.elapsed())?;
        release_identifiers(transaction, &before)?;
        (review.on_commit)(transaction, &change)?;
        if let Some(events) = review.events {
            let kind = EventKind::Ingestion;
            events.store(transaction, review.traceparent, kind, &record.id, &record)?;
        }
        change.store_event(transaction, review.events, review.traceparent)?;
        Ok((change, Some(record)))
    })?;
    if let Some(record) = record {
        publish_record(review, &record);
        review.publish(store, &change);
    }
    Ok(change)
}

fn publish_record(review: &Review<'_>, record: &IngestionRecord) {
    if let Some(events) = review.events {
        events.publish_in_trace(review.traceparent, EventKind::Ingestion, &record.id, record);
    }
    tracing::info!(
        ingestion_id = record.id,
        business_object = record.business_object_name.as_deref(),
        author = record.author.as_deref(),
        approved_by = record.approved_by.as_deref(),
        created = record.created,
        updated = record.updated,
        deleted = record.deleted,
        "A change was published."
    );
}

/// Computes the difference of a change again, and submits it if it is a draft. Without a comment, it changes nothing if the
/// difference of a submitted change is still the same.
///
/// # Errors
/// - `ErrorClass::NotFound` and the errors of [`Review::authorize`]
/// - `ErrorClass::PreconditionFailed` for another version
/// - `ErrorClass::Conflict` if the state does not allow it, or if the change can no longer be published
/// - `ErrorClass::TooManyRequests` if the difference is larger now and exceeds the limits
pub fn rebase_change(
    store: &GuardedStore,
    review: &Review<'_>,
    decision: Decision<'_>,
) -> Result<Change, GatewayError> {
    let ((change, is_taken), _) = store.commit(review.check, |transaction| {
        let before = review.find(transaction)?;
        ChangeAction::Rebase.check_state(&before)?;
        review.check_version(&before)?;
        let stored = StoredRequest::read(transaction, &before)?;
        let request = stored.to_request(review, decision, &before);
        let (_, computed) =
            run_again(transaction, decision.limits, &request).map_err(to_conflict)?;
        let is_same = before.state == ChangeState::Submitted && computed.digest == before.digest;
        if is_same && review.comment.is_none() {
            transaction.discard_changes();
            return Ok((before, false));
        }
        let mut change = review.advance(transaction, &before, ChangeAction::Rebase)?;
        change.approvers = decision.business_object.object.definition.approvers().to_vec();
        let (limits, now) = (decision.limits, review.watch.elapsed());
        let change = computed.store(transaction, Some(&before), change, limits, now)?;
        (review.on_commit)(transaction, &change)?;
        change.store_event(transaction, review.events, review.traceparent)?;
        Ok::<_, GatewayError>((change, true))
    })?;
    if is_taken {
        review.publish(store, &change);
    }
    Ok(change)
}

/// Computes whether a change would still do what its difference shows. It commits nothing, but ingestions wait
/// meanwhile.
///
/// # Errors
/// As [`Review::find`]; the errors of the store.
pub fn check_applicability(
    store: &GuardedStore,
    review: &Review<'_>,
    decision: Decision<'_>,
) -> Result<Applicability, GatewayError> {
    store.dry_run(review.check, |transaction| {
        let change = review.find(transaction)?;
        if change.base + 2 == transaction.sequence() {
            // Nothing was committed since its own commit.
            return Ok(Applicability::Applies);
        }
        let stored = StoredRequest::read(transaction, &change)?;
        let request = stored.to_request(review, decision, &change);
        match run_again(transaction, decision.limits, &request) {
            Ok((_, computed)) if computed.digest == change.digest => Ok(Applicability::Applies),
            Ok(_) => Ok(Applicability::Differs),
            Err(error) if is_final(&error) => Ok(Applicability::Fails(error)),
            Err(error) => Err(error),
        }
    })
}

/// The request of a change as it was stored.
struct StoredRequest {
    text: Vec<u8>,
    minted: Vec<MintedIdentifier>,
}

impl StoredRequest {
    fn read(transaction: &Transaction<'_>, change: &Change) -> Result<Self, GatewayError> {
        let text = read_part(transaction, change, Part::Request)?;
        Ok(Self { text, minted: read_minted(transaction, change)? })
    }

    fn to_request<'r>(
        &'r self,
        review: &'r Review<'_>,
        decision: Decision<'r>,
        change: &'r Change,
    ) -> Request<'r> {
        Request {
            business_object: decision.business_object,
            mode: change.mode,
            on_error: OnError::Abort,
            retried_letter: None,
            review: ReviewStep::Replay(Replay {
                sequence: change.sequence,
                base: change.base,
                minted: &self.minted,
            }),
            bypass: change.bypassed.is_some(),
            audit: None,
            check: review.check,
            caller: &change.author,
            api_key: change.api_key.as_deref(),
            write_scope: decision.write_scope,
            traceparent: review.traceparent,
            idempotency_key: None,
            condition: None,
            languages: &change.languages,
            lists_objects: true,
            watch: review.watch,
            events: None,
            form: BodyForm::Data,
            body: Body::Json(&self.text),
        }
    }
}

/// Runs the request of a change in the transaction, with the identifiers that were minted first.
fn run_again(
    transaction: &mut Transaction<'_>,
    limits: &Limits,
    request: &Request<'_>,
) -> Result<(Applied, Computed), GatewayError> {
    let object = &request.business_object.object;
    request.watch.check_not_closed(object)?;
    check_versions(transaction, request)?;
    if !object.definition.enabled {
        let message = format!("the Business Object {:?} is disabled", object.definition.name);
        return Err(GatewayError::new(ErrorClass::Conflict, message));
    }
    // It nested within the limit when it was submitted. What its objects took from around them can be deeper.
    let limits = &Limits { nesting: MAX_NESTING, ..*limits };
    let applied = apply_whole_request(transaction, limits, request)?;
    let computed = Computed::read(transaction, request, &applied)?;
    Ok((applied, computed))
}

/// Returns whether an error says that the request itself can no longer be ingested.
fn is_final(error: &GatewayError) -> bool {
    matches!(
        error.class,
        ErrorClass::Malformed | ErrorClass::Conflict | ErrorClass::Invalid | ErrorClass::TooLarge
    )
}

/// Returns the error of a change whose request fails now although it did not when the change was stored.
fn to_conflict(mut error: GatewayError) -> GatewayError {
    if is_final(&error) {
        error.class = ErrorClass::Conflict;
        error.detail =
            format!("the change cannot be published as things are now: {}", error.detail);
    }
    error
}

/// Withdraws the open changes whose Business Objects are not stored any more, in commits of bounded size. Returns their
/// number.
///
/// # Errors
/// The errors of the store.
pub fn withdraw_abandoned(
    store: &GuardedStore,
    watch: &Watch,
    events: &EventBus,
    on_commit: StepHook<'_>,
) -> Result<u64, GatewayError> {
    let mut withdrawn = 0;
    let mut rows = OPEN.scan().reverse();
    loop {
        let read = store.read();
        let page = rows.next_page(&read, CHANGES_PER_COMMIT)?;
        if page.is_empty() {
            return Ok(withdrawn);
        }
        let mut abandoned = Vec::new();
        for open in page.iter().filter_map(|row| row.value().ok()) {
            if !is_defined(&read, &open.business_object)? {
                abandoned.push(open.id);
            }
        }
        drop(read);
        if abandoned.is_empty() {
            continue;
        }
        let (closed, _) = store.commit(&NoClient, |transaction| {
            let mut closed = Vec::new();
            for id in &abandoned {
                let Some(before) = read_stored(transaction, id)? else { continue };
                if !is_abandoned(transaction, &before)? {
                    continue;
                }
                let mut change = before.clone();
                let entry = HistoryEntry {
                    at: watch.stamp().to_rfc3339(),
                    by: None,
                    state: ChangeState::Withdrawn,
                    rebased: false,
                    comment: Some("The Business Object was deleted.".to_owned()),
                };
                change.add_step(transaction, entry)?;
                put_change(transaction, Some(&before), &mut change, watch.elapsed())?;
                on_commit(transaction, &change)?;
                change.store_event(transaction, Some(events), None)?;
                closed.push(change);
            }
            Ok::<_, GatewayError>(closed)
        })?;
        withdrawn += closed.len() as u64;
        for change in closed {
            let approvers = change.approvers.clone();
            change.publish_event(events, None, approvers);
        }
    }
}
