//! Changes under review.
use crate::ingestion::{IngestedObject, IngestedStatus, Mode, Warning};
use crate::names::wire_names;
use crate::problem::Problem;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

/// The response to an ingestion that became a change, sent after it is synced to disk.
#[derive(Debug, Clone, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SubmittedChange {
    /// The id of the change.
    pub id: String,
    /// `submitted` or `draft`.
    pub state: ChangeState,
    /// The mode.
    pub mode: Mode,
    /// Objects of the request that do not exist yet.
    pub created: u64,
    /// Objects of the request that exist and would change.
    pub updated: u64,
    /// Objects of the request that would not change.
    pub unchanged: u64,
    /// Objects that would be removed, including nested ones without any remaining reference.
    pub deleted: u64,
    /// What would become of each object, in the order of the request; absent with `objects=false`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub objects: Option<Vec<IngestedObject>>,
    /// What the caller should know.
    pub warnings: Vec<Warning>,
}

/// The state of a change.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "lowercase")]
pub enum ChangeState {
    /// Its author has not submitted it yet.
    Draft,
    /// It waits for an approver.
    Submitted,
    /// It was approved and published.
    Approved,
    /// An approver has rejected it.
    Rejected,
    /// Its author or an owner has withdrawn it, or its Business Object was deleted.
    Withdrawn,
}

wire_names!(ChangeState, "state" {
    Draft: "draft", Submitted: "submitted", Approved: "approved", Rejected: "rejected", Withdrawn: "withdrawn",
});

impl ChangeState {
    /// Returns whether a step can still change it.
    pub fn is_open(self) -> bool {
        matches!(self, Self::Draft | Self::Submitted)
    }
}

/// What a caller is to a change.
#[derive(Debug, Clone, Copy, PartialEq, Eq, JsonSchema)]
#[schemars(rename_all = "lowercase")]
pub enum ChangeRole {
    /// It has sent the change.
    Author,
    /// The author has named it, or a group that it is in.
    Owner,
    /// It decides about the change.
    Approver,
}

/// A change under review.
#[derive(Debug, Clone, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Change {
    /// Its id; once it is published also that of the ingestion.
    pub id: String,
    /// Its state.
    pub state: ChangeState,
    /// A number that each step raises by 1 or more; in quotes it is the `ETag`.
    pub version: u64,
    /// The Business Object's id.
    pub business_object: String,
    /// The Business Object's name at that time.
    pub business_object_name: String,
    /// The mode of the ingestion.
    pub mode: Mode,
    /// The account that sent it.
    pub author: String,
    /// The API key that sent it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub api_key: Option<String>,
    /// The users and groups that see it too, as the author gave them.
    pub change_owners: Vec<String>,
    /// Those of them that do not exist; only for approvers and Admins, and not in lists.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub unknown_change_owners: Option<Vec<String>>,
    /// Who approves it; empty if Admins do.
    pub approvers: Vec<String>,
    /// Whether an Admin has sent it with `bypass=true`, so that it may change objects of other Business Objects that
    /// require a review. `warnings` name these.
    pub bypass: bool,
    /// The account that approved it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub approved_by: Option<String>,
    /// When it was created (RFC 3339, UTC).
    pub created_at: String,
    /// When its last step was (RFC 3339, UTC).
    pub updated_at: String,
    /// The journal's sequence of the commit whose state the difference was computed from.
    pub base: u64,
    /// Objects of the request that do not exist yet.
    pub created: u64,
    /// Objects of the request that exist and change.
    pub updated: u64,
    /// Objects of the request that do not change.
    pub unchanged: u64,
    /// Removed objects, including nested ones without any remaining reference.
    pub deleted: u64,
    /// The number of objects in the difference, including nested ones.
    pub changed_objects: u64,
    /// The size of the request in bytes.
    pub request_bytes: u64,
    /// Its steps, oldest first.
    pub history: Vec<ChangeStep>,
}

/// A step of a change.
#[derive(Debug, Clone, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ChangeStep {
    /// When it was (RFC 3339, UTC).
    pub at: String,
    /// Who took it; absent if the gateway did, because the Business Object was deleted.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub by: Option<String>,
    /// The state after it.
    pub state: ChangeState,
    /// Whether the difference was computed again.
    pub rebased: bool,
    /// The comment on it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub comment: Option<String>,
}

/// A change with its request and a page of its difference.
#[derive(Debug, Clone, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ChangeDetails {
    /// The change.
    #[serde(flatten)]
    pub change: Change,
    /// The request as received; only on the first page.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub request: Option<String>,
    /// What the ingestion warned of; only on the first page.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub warnings: Option<Vec<Warning>>,
    /// Whether it would still do what the difference shows; only on the first page of a draft or submitted change, and
    /// absent while that cannot be computed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub applicability: Option<ChangeApplicability>,
    /// What it would do, or did.
    pub difference: ChangeDifference,
}

/// Whether a change would still do what its difference shows.
#[derive(Debug, Clone, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ChangeApplicability {
    /// Whether it would.
    pub applies: bool,
    /// Why it cannot be published as things are now; absent if a rebase shows what it would do.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub problem: Option<Problem>,
}

/// A page of a difference: first the objects of the request, then nested and removed ones.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct ChangeDifference {
    /// The objects that change.
    pub items: Vec<ChangedObject>,
    /// The `cursor` of the next page, or null.
    pub next: Option<String>,
}

/// An object that a change creates, changes or removes.
#[derive(Debug, Clone, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ChangedObject {
    /// Its URI.
    pub uri: String,
    /// What the change does with it.
    pub status: IngestedStatus,
    /// Its index in `data`, from 0; absent for nested objects.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub index: Option<usize>,
    /// Whether it is removed because nothing refers to it any more.
    pub orphaned: bool,
    /// The object before, as its view; null if it does not exist, and for nested objects.
    #[schemars(with = "Option<serde_json::Value>")]
    pub before: Option<Box<RawValue>>,
    /// The object after, as its view; null if it does not exist, and for nested objects.
    #[schemars(with = "Option<serde_json::Value>")]
    pub after: Option<Box<RawValue>>,
    /// The quads about it that are added, as lines of N-Quads.
    pub added: Vec<String>,
    /// The quads about it that are removed.
    pub removed: Vec<String>,
}

/// The body of a step. It only describes.
#[derive(Debug, Clone, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct StepComment {
    /// What to say about it.
    #[schemars(length(max = 2000))]
    pub comment: Option<String>,
}
