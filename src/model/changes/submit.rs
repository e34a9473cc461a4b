//! Stores what an ingestion would do as a change.
use super::compression::compress;
use super::difference::{Difference, compute_difference};
use super::read::{PARTS, Part};
use super::record::{Change, ChangeCounts, HistoryEntry};
use super::storage::{keep_limits, put_change};
use crate::ingest::{Answer, Applied, Limits, Request, Submission};
use crate::namespace::MintingState;
use penstock_base::error::{ErrorClass, GatewayError};
use penstock_base::events::{Audience, EventBus, EventKind};
use penstock_base::principal::Principal;
use penstock_resources::change::ChangeState;
use penstock_store::{Error, Transaction};
use serde::Serialize;

/// What was computed of a change, to be stored.
pub(super) struct Computed {
    pub(super) digest: String,
    counts: ChangeCounts,
    items: u64,
    parts: Vec<(Part, EncodedPart)>,
    minting: MintingState,
    /// The other Business Objects that require a review and whose objects it changes.
    bypassed: Vec<String>,
}

/// A part as it is stored.
struct EncodedPart {
    compressed: Vec<u8>,
    /// Its size before.
    size: u64,
}

impl Computed {
    /// Reads from the transaction what a run of the request changes in it.
    pub(super) fn read(
        transaction: &mut Transaction<'_>,
        request: &Request<'_>,
        applied: &Applied,
    ) -> Result<Self, GatewayError> {
        let Applied { answer, removed, minted, bypassed } = applied;
        let Difference { digest, items, pages, subjects } =
            compute_difference(transaction, request, answer, removed, bypassed)?;
        let names = minted.iter().map(|one| (one.namespace.as_str(), one.uri.as_str()));
        let minting = MintingState::read(transaction, names)?;
        let mut parts = vec![
            (Part::Minted, EncodedPart::of_json(minted)?),
            (Part::Warnings, EncodedPart::of_json(&answer.warnings)?),
            (Part::Subjects, EncodedPart::of_bytes(&subjects)?),
        ];
        let pages = pages.into_iter().map(|(compressed, size)| EncodedPart { compressed, size });
        parts.extend((0..).map(Part::Page).zip(pages));
        let (counts, bypassed) = (ChangeCounts::of_answer(answer), bypassed.clone());
        Ok(Self { digest, counts, items, parts, minting, bypassed })
    }

    /// Discards what the transaction changes, and stores the change with its parts. `before` is what is stored of it.
    pub(super) fn store(
        self,
        transaction: &mut Transaction<'_>,
        before: Option<&Change>,
        mut change: Change,
        limits: &Limits,
        now: u64,
    ) -> Result<Change, GatewayError> {
        transaction.discard_changes();
        self.minting.store(transaction)?;
        let id = change.uuid()?;
        let pages = self.parts.iter().filter(|(part, _)| matches!(part, Part::Page(_))).count();
        change.counts = self.counts;
        change.bypassed = change.bypassed.is_some().then_some(self.bypassed);
        change.digest = self.digest;
        change.items = self.items;
        change.pages = u32::try_from(pages).unwrap_or(u32::MAX);
        change.base = transaction.sequence().saturating_sub(1);
        change.part_bytes = change.request_part_bytes + self.minting.reserved_bytes();
        change.max_part_bytes = 0;
        for (part, EncodedPart { compressed, size }) in &self.parts {
            PARTS.put(transaction, part.key(id), compressed)?;
            change.part_bytes += compressed.len() as u64;
            change.max_part_bytes = change.max_part_bytes.max(*size);
        }
        for page in change.pages..before.map_or(0, |before| before.pages) {
            PARTS.delete(transaction, Part::Page(page).key(id))?;
        }
        put_change(transaction, before, &mut change, now)?;
        keep_limits(transaction, before, &change, limits)?;
        Ok(change)
    }
}

impl EncodedPart {
    fn of_json(value: &impl Serialize) -> Result<Self, GatewayError> {
        let json = serde_json::to_vec(value).map_err(|error| {
            GatewayError::new(ErrorClass::Internal, format!("serializing a change failed: {error}"))
        })?;
        Self::of_bytes(&json)
    }

    fn of_bytes(bytes: &[u8]) -> Result<Self, GatewayError> {
        Ok(Self { compressed: compress(bytes)?, size: bytes.len() as u64 })
    }
}

/// Stores what the request has changed in the transaction as a change, and discards it from the graph.
///
/// # Errors
/// `ErrorClass::TooLarge` and `ErrorClass::TooManyRequests` past the limits of changes.
pub(crate) fn store_submission(
    transaction: &mut Transaction<'_>,
    limits: &Limits,
    request: &Request<'_>,
    applied: &Applied,
    submission: Submission<'_>,
) -> Result<Change, GatewayError> {
    let computed = Computed::read(transaction, request, applied)?;
    let text = compress(request.body.text())?;
    let object = &request.business_object.object;
    let at = request.watch.stamp().to_rfc3339();
    let state = if submission.is_draft { ChangeState::Draft } else { ChangeState::Submitted };
    let scope = |all: &[&crate::resource::Compiled]| {
        all.iter().map(|one| one.object.id.clone()).collect::<Vec<_>>()
    };
    let change = Change {
        id: applied.answer.ingestion_id.clone(),
        state,
        version: 1,
        business_object: object.id.clone(),
        business_object_name: object.definition.name.clone(),
        mode: request.mode,
        author: request.caller.to_owned(),
        api_key: request.api_key.map(str::to_owned),
        write_scope: request.write_scope.map(scope),
        owners: submission.owners.to_vec(),
        approvers: object.definition.approvers().to_vec(),
        bypassed: request.bypass.then(Vec::new),
        created_at: at.clone(),
        updated_at: at.clone(),
        base: 0,
        counts: ChangeCounts::default(),
        items: 0,
        pages: 0,
        request_bytes: request.body.byte_len(),
        history: vec![HistoryEntry {
            at,
            by: Some(request.caller.to_owned()),
            state,
            rebased: false,
            comment: None,
        }],
        languages: request.languages.to_vec(),
        sequence: transaction.sequence(),
        digest: String::new(),
        request_part_bytes: text.len() as u64,
        part_bytes: 0,
        max_part_bytes: 0,
        bytes: 0,
    };
    let id = change.uuid()?;
    let change = computed.store(transaction, None, change, limits, request.watch.elapsed())?;
    PARTS.put(transaction, Part::Request.key(id), &text)?;
    Ok(change)
}

impl ChangeCounts {
    fn of_answer(answer: &Answer) -> Self {
        let Answer { created, updated, unchanged, deleted, .. } = *answer;
        Self { created, updated, unchanged, deleted }
    }
}

/// The data of an event about a change. Listeners read the change itself; the event has nothing of its content.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct ChangeEvent<'c> {
    id: &'c str,
    business_object: &'c str,
    state: ChangeState,
}

impl Change {
    /// Stores the event about the state of the change for webhooks, in the commit of the change.
    ///
    /// # Errors
    /// The errors of the store.
    pub(crate) fn store_event(
        &self,
        transaction: &mut Transaction<'_>,
        events: Option<&EventBus>,
        trace: Option<&str>,
    ) -> Result<(), Error> {
        let Some(events) = events else { return Ok(()) };
        events.store(transaction, trace, self.event_kind(), &self.id, &self.to_event())
    }

    fn event_kind(&self) -> EventKind {
        match self.state {
            ChangeState::Draft => EventKind::ChangeDraft,
            ChangeState::Submitted => EventKind::ChangeSubmitted,
            ChangeState::Approved => EventKind::ChangeApproved,
            ChangeState::Rejected => EventKind::ChangeRejected,
            ChangeState::Withdrawn => EventKind::ChangeWithdrawn,
        }
    }

    fn to_event(&self) -> ChangeEvent<'_> {
        ChangeEvent { id: &self.id, business_object: &self.business_object, state: self.state }
    }

    /// Publishes the state of the change to the listeners that may see it. `approvers` are the current ones.
    pub(crate) fn publish_event(
        &self,
        events: &EventBus,
        trace: Option<&str>,
        approvers: Vec<Principal>,
    ) {
        let audience =
            Audience { author: self.author.clone(), owners: self.owners.clone(), approvers };
        events.publish_to(audience, trace, self.event_kind(), &self.id, &self.to_event());
    }
}
