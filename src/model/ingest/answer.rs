//! The answer to an ingestion.
use super::Mode;
use crate::changes::State;
use crate::dead_letters::ObjectError;
use penstock_base::error::{Finding, ViolatedConstraint};
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
    pub change: Option<State>,
    /// The number of objects of the request that did not exist before.
    pub created: u64,
    /// The number of existing objects of the request that changed, themselves or in a nested object.
    pub updated: u64,
    /// The number of existing objects of the request that did not change.
    pub unchanged: u64,
    /// The number of removed objects, including nested ones that nothing refers to any more.
    pub deleted: u64,
    /// The outcome of each object, in the order of the request.
    pub objects: Vec<Outcome>,
    /// The objects that were left out because of errors, in the order of the request.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub rejected: Vec<RejectedObject>,
    /// Warnings for the caller. What the request gave is stored nevertheless, except fields that the mapping ignores.
    pub warnings: Vec<Warning>,
}

/// An object that was left out because of errors.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RejectedObject {
    /// The id of the dead letter. `None` if none was stored: in the mode VALIDATE, or beyond the limit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub id: Option<String>,
    /// Its index in the request or stream, from 0.
    pub index: usize,
    /// Its line in the stream, from 1; `None` in a JSON body.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub line: Option<u64>,
    /// Its first errors.
    pub errors: Vec<ObjectError>,
}

/// The outcome of one object of the request.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Outcome {
    /// Its index in `data`, from 0.
    pub index: usize,
    /// Its URI, given or minted.
    pub uri: String,
    /// What the ingestion did with it.
    pub status: Status,
    /// The objects nested in it. A second mention of an object in the same request lists only those with a URI.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub nested: Vec<Nested>,
}

/// What the ingestion did with an object.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Status {
    /// It did not exist before.
    Created,
    /// It existed and changed.
    Updated,
    /// It existed and did not change.
    Unchanged,
    /// It was removed.
    Deleted,
    /// A DELETE named it, but it did not exist.
    Absent,
}

/// One nested object.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Nested {
    /// Its position in the request (JSON Pointer).
    pub pointer: String,
    /// Its URI, given or minted.
    pub uri: String,
}

/// A warning for the caller.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Warning {
    /// The position in the request (JSON Pointer).
    pub pointer: String,
    /// The message in plain text.
    pub message: String,
    /// Which constraint is violated, if the warning is about a shape.
    #[serde(flatten, default, skip_serializing_if = "Option::is_none")]
    pub violation: Option<ViolatedConstraint>,
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

    pub(super) fn push(&mut self, outcome: Outcome) {
        match outcome.status {
            Status::Created => self.created += 1,
            Status::Updated => self.updated += 1,
            Status::Unchanged => self.unchanged += 1,
            Status::Deleted => self.deleted += 1,
            Status::Absent => {}
        }
        self.objects.push(outcome);
    }
}

/// A bounded list of warnings: beyond the limit they are only counted.
#[derive(Debug, Default)]
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
