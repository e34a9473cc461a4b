//! Stores what an ingestion would do as a change.
use super::compression::compress;
use super::difference::{Difference, compute_difference};
use super::storage::{Part, make_place, put_change};
use super::{Change, ChangeCounts, HistoryEntry, PARTS, State};
use crate::ingest::{Answer, Applied, Limits, Request, Submission};
use crate::namespace::MintingState;
use penstock_base::error::{ErrorClass, GatewayError};
use penstock_base::events::{Audience, EventBus, EventKind};
use penstock_base::principal::Principal;
use penstock_store::Transaction;
use serde::Serialize;

/// What was computed of a change, to be stored.
pub(super) struct Computed {
    pub(super) difference: Difference,
    pub(super) counts: ChangeCounts,
    parts: Vec<(Part, Vec<u8>)>,
    minting: MintingState,
    /// The other Business Objects that require a review and whose objects it changes.
    bypassed: Vec<String>,
}

impl Computed {
    /// Reads from the transaction what a run of the request changes in it.
    pub(super) fn read(
        transaction: &mut Transaction<'_>,
        request: &Request<'_>,
        applied: &Applied,
    ) -> Result<Self, GatewayError> {
        let Applied { answer, removed, minted, bypassed } = applied;
        let root = &request.business_object.mapping.root;
        let mut difference = compute_difference(transaction, root, answer, removed, bypassed)?;
        let names = minted.iter().map(|one| (one.namespace.as_str(), one.uri.as_str()));
        let minting = MintingState::read(transaction, names)?;
        let mut parts = vec![
            (Part::Minted, encode_part(minted)?),
            (Part::Warnings, encode_part(&answer.warnings)?),
        ];
        let pages = (0..).map(Part::Page).zip(std::mem::take(&mut difference.pages));
        parts.extend(pages);
        let (counts, bypassed) = (ChangeCounts::of_answer(answer), bypassed.clone());
        Ok(Self { difference, counts, parts, minting, bypassed })
    }

    /// Discards what the transaction changes, and stores the change with its parts. `before` is what is stored of it, and
    /// `request` its text if it is new.
    pub(super) fn store(
        self,
        transaction: &mut Transaction<'_>,
        before: Option<&Change>,
        mut change: Change,
        request: Option<&[u8]>,
        (limits, now): (&Limits, u64),
    ) -> Result<Change, GatewayError> {
        transaction.discard_changes();
        self.minting.store(transaction)?;
        let mut parts = self.parts;
        let mut part_bytes = match before {
            Some(before) => before.request_part_bytes,
            None => 0,
        };
        if let Some(text) = request {
            let text = compress(text)?;
            part_bytes = text.len() as u64;
            change.request_part_bytes = part_bytes;
            parts.push((Part::Request, text));
        }
        let is_other = |(part, _): &&(Part, Vec<u8>)| *part != Part::Request;
        part_bytes += self.minting.reserved_bytes();
        part_bytes +=
            parts.iter().filter(is_other).map(|(_, bytes)| bytes.len() as u64).sum::<u64>();
        change.part_bytes = part_bytes;
        change.counts = self.counts;
        change.bypassed = change.bypassed.is_some().then_some(self.bypassed);
        change.digest = self.difference.digest;
        change.items = self.difference.items;
        let pages = parts.iter().filter(|(part, _)| matches!(part, Part::Page(_))).count();
        change.pages = u32::try_from(pages).unwrap_or(u32::MAX);
        change.base = transaction.sequence().saturating_sub(1);
        let bytes = part_bytes.saturating_add(change.encode()?.len() as u64);
        make_place(transaction, &change.author, before, bytes, limits)?;
        let id = change.id_bytes()?;
        for page in change.pages..before.map_or(0, |before| before.pages) {
            transaction.delete_document(PARTS, &Part::Page(page).key(id))?;
        }
        for (part, bytes) in &parts {
            transaction.put_document(PARTS, &part.key(id), bytes)?;
        }
        put_change(transaction, before, &mut change, now)?;
        Ok(change)
    }
}

fn encode_part(value: &impl Serialize) -> Result<Vec<u8>, GatewayError> {
    let json = serde_json::to_vec(value).map_err(|error| {
        GatewayError::new(ErrorClass::Internal, format!("serializing a change failed: {error}"))
    })?;
    compress(&json)
}

/// Stores what the request has changed in the transaction as a change, and discards it from the graph.
///
/// # Errors
/// `ErrorClass::TooManyRequests` past the limits of changes.
pub(crate) fn store_submission(
    transaction: &mut Transaction<'_>,
    limits: &Limits,
    request: &Request<'_>,
    applied: &Applied,
    submission: Submission<'_>,
) -> Result<Change, GatewayError> {
    let computed = Computed::read(transaction, request, applied)?;
    let object = &request.business_object.object;
    let at = request.watch.stamp().to_rfc3339();
    let state = if submission.is_draft { State::Draft } else { State::Submitted };
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
        sequence: transaction.sequence(),
        digest: String::new(),
        request_part_bytes: 0,
        part_bytes: 0,
        bytes: 0,
        closed: None,
    };
    let now = request.watch.elapsed();
    computed.store(transaction, None, change, Some(request.body.text()), (limits, now))
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
    state: State,
}

impl Change {
    /// Publishes the state of the change to the listeners that may see it. `approvers` are the current ones.
    pub(crate) fn publish_event(
        &self,
        events: &EventBus,
        trace: Option<&str>,
        approvers: Vec<Principal>,
    ) {
        let kind = match self.state {
            State::Draft => EventKind::ChangeDraft,
            State::Submitted => EventKind::ChangeSubmitted,
            State::Approved => EventKind::ChangeApproved,
            State::Rejected => EventKind::ChangeRejected,
            State::Withdrawn => EventKind::ChangeWithdrawn,
        };
        let audience =
            Audience { author: self.author.clone(), owners: self.owners.clone(), approvers };
        let (id, business_object) = (self.id.as_str(), self.business_object.as_str());
        let data = ChangeEvent { id, business_object, state: self.state };
        events.publish_to(audience, trace, kind, id, &data);
    }
}
