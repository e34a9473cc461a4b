//! The stored form of a change.
use crate::ingest::Mode;
use penstock_base::error::{ErrorClass, GatewayError};
use penstock_base::next_version;
use penstock_base::principal::Principal;
use penstock_resources::change::{ChangeState, ChangeStep};
use penstock_store::Read;
use serde::{Deserialize, Serialize};
use uuid::Uuid;

/// The maximum number of entries in a history. Beyond it the oldest rebase without a comment is removed.
const MAX_HISTORY: usize = 100;
/// The bytes of memory for each byte of a part: the text, the parsed items, and their form in the answer.
const BYTES_PER_BYTE: u64 = 4;

/// A change under review, without its request and its difference.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Change {
    /// Its id, which is that of the ingestion once it is published.
    pub id: String,
    /// Its state.
    pub state: ChangeState,
    /// A number that each step raises by 1 or more. The `ETag` is this number in quotes.
    pub version: u64,
    /// The Business Object's id.
    pub business_object: String,
    /// The Business Object's name at its creation.
    pub business_object_name: String,
    /// The mode of the ingestion.
    pub mode: Mode,
    /// The account that sent it: its id, that of an API key without an account, or `local`.
    pub author: String,
    /// The id of the API key that sent it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub api_key: Option<String>,
    /// The ids of the Business Objects that the API key was limited to; `None` without a limit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub write_scope: Option<Vec<String>>,
    /// The users and groups that see it though they did not send it, as the author gave them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub owners: Vec<Principal>,
    /// Who approved changes of the Business Object when the difference was computed. It counts once the Business Object is
    /// deleted.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub approvers: Vec<Principal>,
    /// The names of the other Business Objects that require a review and whose objects it changes nevertheless; `None`
    /// if its author has not sent `bypass=true`, so that it may change no such object.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bypassed: Option<Vec<String>>,
    /// When it was created (RFC 3339, UTC).
    pub created_at: String,
    /// When its last step was (RFC 3339, UTC).
    pub updated_at: String,
    /// The journal's sequence of the commit whose state the difference was computed from.
    pub base: u64,
    /// The counts of the ingestion.
    pub counts: ChangeCounts,
    /// The number of objects in the difference.
    pub items: u64,
    /// The number of pages of the difference.
    pub pages: u32,
    /// The size of the request in bytes.
    pub request_bytes: u64,
    /// Its steps, oldest first.
    pub history: Vec<HistoryEntry>,
    /// The languages of its author for the texts of shapes, the preferred one first. The warnings have the same texts each
    /// time that they are computed.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) languages: Vec<String>,
    /// The journal's sequence of the commit that created it.
    pub(crate) sequence: u64,
    /// The SHA-256 of the difference and of the warnings, in hexadecimal.
    pub(crate) digest: String,
    /// The bytes of its request, compressed.
    pub(crate) request_part_bytes: u64,
    /// The bytes of all its parts.
    pub(crate) part_bytes: u64,
    /// The size of its largest part in bytes, before it is compressed.
    pub(crate) max_part_bytes: u64,
    /// The bytes that it counts for.
    pub(crate) bytes: u64,
}

/// What an ingestion does, in objects.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct ChangeCounts {
    /// Objects of the request that do not exist yet.
    pub created: u64,
    /// Objects of the request that exist and change.
    pub updated: u64,
    /// Objects of the request that do not change.
    pub unchanged: u64,
    /// Removed objects, including nested ones that nothing refers to any more.
    pub deleted: u64,
}

/// A step of a change.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct HistoryEntry {
    /// When it was (RFC 3339, UTC).
    pub at: String,
    /// Who took it: the id of an account or of an API key without one, or `local`. `None` if the gateway did, because the
    /// Business Object was deleted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub by: Option<String>,
    /// The state after it.
    pub state: ChangeState,
    /// Whether the difference was computed again.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub rebased: bool,
    /// The comment on it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub comment: Option<String>,
}

/// A step that a client takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ChangeAction {
    /// Submits a draft.
    Submit,
    /// Publishes the change.
    Approve,
    /// Rejects the change.
    Reject,
    /// Withdraws the change.
    Withdraw,
    /// Computes the difference again.
    Rebase,
}

impl ChangeAction {
    /// All actions.
    pub const ALL: [Self; 5] =
        [Self::Submit, Self::Approve, Self::Reject, Self::Withdraw, Self::Rebase];

    /// Returns its name on the wire.
    pub fn name(self) -> &'static str {
        match self {
            Self::Submit => "submit",
            Self::Approve => "approve",
            Self::Reject => "reject",
            Self::Withdraw => "withdraw",
            Self::Rebase => "rebase",
        }
    }

    /// Returns the state after it.
    pub fn state(self) -> ChangeState {
        match self {
            Self::Submit | Self::Rebase => ChangeState::Submitted,
            Self::Approve => ChangeState::Approved,
            Self::Reject => ChangeState::Rejected,
            Self::Withdraw => ChangeState::Withdrawn,
        }
    }

    /// Returns whether it leads from this state to another one.
    pub fn is_allowed_from(self, state: ChangeState) -> bool {
        match self {
            Self::Submit => state == ChangeState::Draft,
            Self::Approve | Self::Reject => state == ChangeState::Submitted,
            Self::Withdraw | Self::Rebase => state.is_open(),
        }
    }

    /// Returns whether the action is still to be taken; false if it was taken before, so that repeating it changes nothing.
    ///
    /// # Errors
    /// `ErrorClass::Conflict` if the state does not allow it.
    pub(super) fn check_state(self, change: &Change) -> Result<bool, GatewayError> {
        if self.is_allowed_from(change.state) {
            Ok(true)
        } else if change.state == self.state() && self != Self::Rebase {
            Ok(false)
        } else {
            Err(GatewayError::new(
                ErrorClass::Conflict,
                format!(
                    "the change {} is in the state {}, which does not allow {}",
                    change.id,
                    change.state,
                    self.name()
                ),
            ))
        }
    }
}

impl From<HistoryEntry> for ChangeStep {
    fn from(HistoryEntry { at, by, state, rebased, comment }: HistoryEntry) -> Self {
        Self { at, by, state, rebased, comment }
    }
}

impl Change {
    /// Returns who approved it.
    pub fn approved_by(&self) -> Option<&str> {
        let last = self.history.iter().rev().find(|entry| entry.state == ChangeState::Approved)?;
        last.by.as_deref()
    }

    /// Returns the memory in bytes for reading it: its request and its largest page, and what they become in an answer.
    pub fn memory_bytes(&self) -> u64 {
        self.request_bytes.saturating_add(self.max_part_bytes).saturating_mul(BYTES_PER_BYTE)
    }

    /// Adds a step.
    ///
    /// # Errors
    /// `ErrorClass::Conflict` if the history is full; the errors of the store.
    pub(super) fn add_step(
        &mut self,
        read: &dyn Read,
        entry: HistoryEntry,
    ) -> Result<(), GatewayError> {
        if self.history.len() >= MAX_HISTORY && entry.state.is_open() {
            let silent = self.history.iter().position(|it| it.rebased && it.comment.is_none());
            let Some(oldest) = silent else {
                return Err(GatewayError::new(
                    ErrorClass::Conflict,
                    format!(
                        "the change {} has had {MAX_HISTORY} steps with comments; approve, reject or withdraw it",
                        self.id
                    ),
                ));
            };
            self.history.remove(oldest);
        }
        self.version = next_version(read, Some(self.version))?;
        self.state = entry.state;
        self.updated_at.clone_from(&entry.at);
        self.history.push(entry);
        Ok(())
    }

    pub(super) fn uuid(&self) -> Result<Uuid, GatewayError> {
        Uuid::parse_str(&self.id).map_err(|_| {
            let detail = format!("the id of the change {:?} is not a UUID", self.id);
            GatewayError::new(ErrorClass::Internal, detail)
        })
    }
}
