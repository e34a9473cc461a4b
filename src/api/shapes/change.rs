//! Changes under review.
use super::ingestion::{IngestedObject, IngestedStatus, Mode, Warning};
use penstock_http::problem::ProblemDocument;
use penstock_model::changes::{self, Applicability, HistoryEntry};
use penstock_model::ingest::Answer;
use penstock_service::changes::{ChangeDetails as Details, VisibleChange};
use salvo_oapi::ToSchema;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

/// The response to an ingestion that became a change, sent after it is synced to disk.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[salvo(schema(name = "SubmittedChange", rename_all = "camelCase"))]
pub(crate) struct SubmittedChange {
    /// The id of the change.
    pub(crate) id: String,
    /// `submitted` or `draft`.
    pub(crate) state: ChangeState,
    /// The mode.
    pub(crate) mode: Mode,
    /// Objects of the request that do not exist yet.
    pub(crate) created: u64,
    /// Objects of the request that exist and would change.
    pub(crate) updated: u64,
    /// Objects of the request that would not change.
    pub(crate) unchanged: u64,
    /// Objects that would be removed, including nested ones without any remaining reference.
    pub(crate) deleted: u64,
    /// What would become of each object, in the order of the request; absent with `objects=false`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[salvo(schema(required = false, nullable = false))]
    pub(crate) objects: Option<Vec<IngestedObject>>,
    /// What the caller should know.
    pub(crate) warnings: Vec<Warning>,
}

/// The state of a change.
#[derive(Debug, Clone, Copy, Serialize, ToSchema)]
#[serde(rename_all = "lowercase")]
#[salvo(schema(name = "ChangeState", rename_all = "lowercase"))]
pub(crate) enum ChangeState {
    Draft,
    Submitted,
    Approved,
    Rejected,
    Withdrawn,
}

/// What a caller is to a change.
#[derive(ToSchema)]
#[salvo(schema(name = "ChangeRole"))]
#[expect(dead_code, reason = "only describes the query parameter")]
pub(crate) enum ChangeRole {
    #[salvo(schema(rename = "author"))]
    Author,
    #[salvo(schema(rename = "owner"))]
    Owner,
    #[salvo(schema(rename = "approver"))]
    Approver,
}

/// A change under review.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[salvo(schema(name = "Change", rename_all = "camelCase"))]
pub(crate) struct Change {
    /// Its id; once it is published also that of the ingestion.
    pub(crate) id: String,
    /// Its state.
    pub(crate) state: ChangeState,
    /// 1 at its creation, incremented by each step; in quotes it is the `ETag`.
    pub(crate) version: u64,
    /// The Business Object's id.
    pub(crate) business_object: String,
    /// The Business Object's name at that time.
    pub(crate) business_object_name: String,
    /// The mode of the ingestion.
    pub(crate) mode: Mode,
    /// The account that sent it.
    pub(crate) author: String,
    /// The API key that sent it.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[salvo(schema(required = false, nullable = false))]
    pub(crate) api_key: Option<String>,
    /// The users and groups that see it too, as the author gave them.
    pub(crate) change_owners: Vec<String>,
    /// Those of them that do not exist; only for approvers and Admins, and not in lists.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[salvo(schema(required = false, nullable = false))]
    pub(crate) unknown_change_owners: Option<Vec<String>>,
    /// Who approves it; empty if Admins do.
    pub(crate) approvers: Vec<String>,
    /// Whether an Admin has sent it with `bypass=true`, so that it may change objects of other Business Objects that
    /// require a review. `warnings` name these.
    pub(crate) bypass: bool,
    /// The account that approved it.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[salvo(schema(required = false, nullable = false))]
    pub(crate) approved_by: Option<String>,
    /// When it was created (RFC 3339, UTC).
    pub(crate) created_at: String,
    /// When its last step was (RFC 3339, UTC).
    pub(crate) updated_at: String,
    /// The journal's sequence of the commit whose state the difference was computed from.
    pub(crate) base: u64,
    /// Objects of the request that do not exist yet.
    pub(crate) created: u64,
    /// Objects of the request that exist and change.
    pub(crate) updated: u64,
    /// Objects of the request that do not change.
    pub(crate) unchanged: u64,
    /// Removed objects, including nested ones without any remaining reference.
    pub(crate) deleted: u64,
    /// The number of objects in the difference, including nested ones.
    pub(crate) changed_objects: u64,
    /// The size of the request in bytes.
    pub(crate) request_bytes: u64,
    /// Its steps, oldest first.
    pub(crate) history: Vec<ChangeStep>,
}

/// A step of a change.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[salvo(schema(name = "ChangeStep", rename_all = "camelCase"))]
pub(crate) struct ChangeStep {
    /// When it was (RFC 3339, UTC).
    pub(crate) at: String,
    /// Who took it; absent if the gateway did, because the Business Object was deleted.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[salvo(schema(required = false, nullable = false))]
    pub(crate) by: Option<String>,
    /// The state after it.
    pub(crate) state: ChangeState,
    /// Whether the difference was computed again.
    pub(crate) rebased: bool,
    /// The comment on it.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[salvo(schema(required = false, nullable = false))]
    pub(crate) comment: Option<String>,
}

/// A page of changes.
#[derive(Serialize, ToSchema)]
#[salvo(schema(name = "Changes"))]
pub(crate) struct Changes {
    /// Newest first.
    pub(crate) items: Vec<Change>,
    /// The `cursor` of the next page, or null.
    #[salvo(schema(required = true))]
    pub(crate) next: Option<String>,
}

/// A change with its request and a page of its difference.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[salvo(schema(name = "ChangeDetails", rename_all = "camelCase"))]
pub(crate) struct ChangeDetails {
    #[serde(flatten)]
    pub(crate) change: Change,
    /// The request as received; only on the first page.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[salvo(schema(required = false, nullable = false))]
    pub(crate) request: Option<String>,
    /// What the ingestion warned of; only on the first page.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[salvo(schema(required = false, nullable = false))]
    pub(crate) warnings: Option<Vec<Warning>>,
    /// Whether it would still do what the difference shows; only on the first page of a draft or submitted change, and
    /// absent while that cannot be computed.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[salvo(schema(required = false, nullable = false))]
    pub(crate) applicability: Option<ChangeApplicability>,
    /// What it would do, or did.
    pub(crate) difference: ChangeDifference,
}

/// Whether a change would still do what its difference shows.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[salvo(schema(name = "ChangeApplicability", rename_all = "camelCase"))]
pub(crate) struct ChangeApplicability {
    /// Whether it would.
    pub(crate) applies: bool,
    /// Why it cannot be published as things are now; absent if a rebase shows what it would do.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[salvo(schema(required = false, nullable = false))]
    pub(crate) problem: Option<ProblemDocument>,
}

/// A page of a difference: first the objects of the request, then nested and removed ones.
#[derive(Serialize, ToSchema)]
#[salvo(schema(name = "ChangeDifference"))]
pub(crate) struct ChangeDifference {
    /// The objects that change.
    pub(crate) items: Vec<ChangedObject>,
    /// The `cursor` of the next page, or null.
    #[salvo(schema(required = true))]
    pub(crate) next: Option<String>,
}

/// An object that a change creates, changes or removes.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[salvo(schema(name = "ChangedObject", rename_all = "camelCase"))]
pub(crate) struct ChangedObject {
    /// Its URI.
    pub(crate) uri: String,
    /// What the change does with it.
    pub(crate) status: IngestedStatus,
    /// Its index in `data`, from 0; absent for nested objects.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[salvo(schema(required = false, nullable = false))]
    pub(crate) index: Option<u64>,
    /// Whether it is removed because nothing refers to it any more.
    pub(crate) orphaned: bool,
    /// The object before, as its view; null if it does not exist, and for nested objects.
    #[salvo(schema(value_type = Option<serde_json::Value>))]
    pub(crate) before: Option<Box<RawValue>>,
    /// The object after, as its view; null if it does not exist, and for nested objects.
    #[salvo(schema(value_type = Option<serde_json::Value>))]
    pub(crate) after: Option<Box<RawValue>>,
    /// The quads about it that are added, as lines of N-Quads.
    pub(crate) added: Vec<String>,
    /// The quads about it that are removed.
    pub(crate) removed: Vec<String>,
}

/// The body of a step.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[salvo(schema(name = "StepComment"))]
#[expect(dead_code, reason = "only describes the body")]
pub(crate) struct StepComment {
    /// What to say about it.
    #[salvo(schema(required = false, max_length = 2000))]
    pub(crate) comment: Option<String>,
}

impl SubmittedChange {
    /// Converts the answer of an ingestion that became a change in this state.
    pub(crate) fn from_answer(answer: Answer, state: changes::State, lists_objects: bool) -> Self {
        let Answer { objects, warnings, .. } = answer;
        Self {
            id: answer.ingestion_id,
            state: state.into(),
            mode: answer.mode.into(),
            created: answer.created,
            updated: answer.updated,
            unchanged: answer.unchanged,
            deleted: answer.deleted,
            objects: lists_objects.then(|| objects.into_iter().map(Into::into).collect()),
            warnings: warnings.into_iter().map(Into::into).collect(),
        }
    }
}

impl From<changes::State> for ChangeState {
    fn from(state: changes::State) -> Self {
        match state {
            changes::State::Draft => Self::Draft,
            changes::State::Submitted => Self::Submitted,
            changes::State::Approved => Self::Approved,
            changes::State::Rejected => Self::Rejected,
            changes::State::Withdrawn => Self::Withdrawn,
        }
    }
}

impl From<VisibleChange> for Change {
    fn from(visible: VisibleChange) -> Self {
        let VisibleChange { change, approvers, unknown_owners, relation: _ } = visible;
        let texts = |all: Vec<_>| all.into_iter().map(String::from).collect();
        Self {
            approved_by: change.approved_by().map(str::to_owned),
            id: change.id,
            state: change.state.into(),
            version: change.version,
            business_object: change.business_object,
            business_object_name: change.business_object_name,
            mode: change.mode.into(),
            author: change.author,
            api_key: change.api_key,
            change_owners: texts(change.owners),
            unknown_change_owners: unknown_owners.map(texts),
            approvers: texts(approvers),
            bypass: change.bypassed.is_some(),
            created_at: change.created_at,
            updated_at: change.updated_at,
            base: change.base,
            created: change.counts.created,
            updated: change.counts.updated,
            unchanged: change.counts.unchanged,
            deleted: change.counts.deleted,
            changed_objects: change.items,
            request_bytes: change.request_bytes,
            history: change.history.into_iter().map(Into::into).collect(),
        }
    }
}

impl From<HistoryEntry> for ChangeStep {
    fn from(HistoryEntry { at, by, state, rebased, comment }: HistoryEntry) -> Self {
        Self { at, by, state: state.into(), rebased, comment }
    }
}

impl ChangeDetails {
    /// Converts a change with a page of its difference, and the cursor of the next page.
    pub(crate) fn from_details(details: Details, next: Option<String>) -> Self {
        let Details { visible, content, difference, next_page: _, applicability } = details;
        let (request, warnings) = match content {
            Some(content) => {
                let text = String::from_utf8_lossy(&content.request).into_owned();
                (Some(text), Some(content.warnings.into_iter().map(Into::into).collect()))
            }
            None => (None, None),
        };
        let items = difference.into_iter().map(Into::into).collect();
        Self {
            change: visible.into(),
            request,
            warnings,
            applicability: applicability.map(Into::into),
            difference: ChangeDifference { items, next },
        }
    }
}

impl From<Applicability> for ChangeApplicability {
    fn from(applicability: Applicability) -> Self {
        match applicability {
            Applicability::Applies => Self { applies: true, problem: None },
            Applicability::Differs => Self { applies: false, problem: None },
            Applicability::Fails(error) => {
                let problem = penstock_http::problem::Problem::from(error);
                Self { applies: false, problem: Some(problem.into()) }
            }
        }
    }
}

impl From<changes::DifferenceItem> for ChangedObject {
    fn from(item: changes::DifferenceItem) -> Self {
        Self {
            uri: item.uri,
            status: item.status.into(),
            index: item.index.map(|index| index as u64),
            orphaned: item.orphaned,
            before: item.before,
            after: item.after,
            added: item.added,
            removed: item.removed,
        }
    }
}
