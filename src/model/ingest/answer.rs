//! The answer to an ingestion.
use super::{Mode, OnError};
use penstock_base::error::Finding;
use penstock_resources::change::{ChangeState, SubmittedChange};
use penstock_resources::dead_letter::RejectedObject;
use penstock_resources::ingestion::{IngestedObject, IngestedStatus, Ingestion, Warning};
use serde::{Deserialize, Serialize};

/// The answer to an ingestion.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Answer {
    /// The UUID of the ingestion.
    pub ingestion_id: String,
    /// The mode of the request.
    pub mode: Mode,
    /// The change that the request became: its id is `ingestion_id`, and the graph stays as it is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub change: Option<ChangeState>,
    /// The number of objects of the request that did not exist before.
    pub created: u64,
    /// The number of existing objects of the request that changed, themselves or in a nested object.
    pub updated: u64,
    /// The number of existing objects of the request that did not change.
    pub unchanged: u64,
    /// The number of removed objects, including nested ones that nothing refers to any more.
    pub deleted: u64,
    /// The outcome of each object, in the order of the request.
    pub objects: Vec<IngestedObject>,
    /// The objects that were left out because of errors, in the order of the request.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub rejected: Vec<RejectedObject>,
    /// Warnings for the caller. What the request gave is stored nevertheless, except fields that the mapping ignores.
    pub warnings: Vec<Warning>,
}

impl Answer {
    pub(super) fn new(mode: Mode) -> Self {
        Self {
            ingestion_id: uuid::Uuid::now_v7().to_string(),
            mode,
            change: None,
            created: 0,
            updated: 0,
            unchanged: 0,
            deleted: 0,
            objects: Vec::new(),
            rejected: Vec::new(),
            warnings: Vec::new(),
        }
    }

    pub(super) fn push(&mut self, outcome: IngestedObject) {
        match outcome.status {
            IngestedStatus::Created => self.created += 1,
            IngestedStatus::Updated => self.updated += 1,
            IngestedStatus::Unchanged => self.unchanged += 1,
            IngestedStatus::Deleted => self.deleted += 1,
            IngestedStatus::Absent => {}
        }
        self.objects.push(outcome);
    }

    /// Returns the response, without the result of each object unless `lists_objects`. There may be a hundred thousand of
    /// these, so they are moved.
    pub fn into_ingestion(self, lists_objects: bool, on_error: OnError) -> Ingestion {
        // A repeated request gets the first answer, whatever its `onError` is now.
        let lists_rejected = on_error == OnError::Skip || !self.rejected.is_empty();
        Ingestion {
            ingestion_id: self.ingestion_id,
            mode: self.mode,
            first_index: None,
            last_index: None,
            created: self.created,
            updated: self.updated,
            unchanged: self.unchanged,
            deleted: self.deleted,
            objects: lists_objects.then_some(self.objects),
            rejected: lists_rejected.then_some(self.rejected),
            warnings: self.warnings,
        }
    }

    /// Returns the response of an ingestion that became a change in this state.
    pub fn into_submitted_change(self, state: ChangeState, lists_objects: bool) -> SubmittedChange {
        SubmittedChange {
            id: self.ingestion_id,
            state,
            mode: self.mode,
            created: self.created,
            updated: self.updated,
            unchanged: self.unchanged,
            deleted: self.deleted,
            objects: lists_objects.then_some(self.objects),
            warnings: self.warnings,
        }
    }
}

/// A bounded list of warnings: beyond the limit they are only counted.
#[derive(Debug, Clone, Default)]
pub(super) struct Warnings {
    named: Vec<Warning>,
    more: u64,
}

impl Warnings {
    const MAX_LISTED: usize = 1000;

    pub(super) fn push(&mut self, pointer: &str, message: impl Into<String>) {
        if self.named.len() < Self::MAX_LISTED {
            self.named.push(Warning {
                pointer: pointer.to_owned(),
                message: message.into(),
                violation: None,
            });
        } else {
            self.more += 1;
        }
    }

    pub(super) fn push_finding(&mut self, finding: Finding) {
        if self.named.len() < Self::MAX_LISTED {
            self.named.push(finding.into());
        } else {
            self.more += 1;
        }
    }

    pub(super) fn into_vec(mut self) -> Vec<Warning> {
        if self.more > 0 {
            let message = format!("and {} more warnings", self.more);
            self.named.push(Warning { pointer: String::new(), message, violation: None });
        }
        self.named
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn warnings_beyond_the_limit_are_only_counted() {
        let mut warnings = Warnings::default();
        for _ in 0..Warnings::MAX_LISTED + 3 {
            warnings.push("/data/0", "x");
        }
        let all = warnings.into_vec();
        assert_eq!(all.len(), Warnings::MAX_LISTED + 1);
        assert_eq!(all[Warnings::MAX_LISTED].message, "and 3 more warnings");
    }
}
