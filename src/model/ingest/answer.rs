//! The answer to an ingestion.
use super::Mode;
use serde::{Deserialize, Serialize};

/// The answer to an ingestion.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Answer {
    /// Its identifier (a UUID).
    pub ingestion_id: String,
    /// The mode.
    pub mode: Mode,
    /// Objects of the request that were not there before.
    pub created: u64,
    /// Objects of the request that were there and changed, themselves or nested.
    pub updated: u64,
    /// Objects of the request that were there and stayed as they were.
    pub unchanged: u64,
    /// Objects removed, nested ones that nothing referred to any more included.
    pub deleted: u64,
    /// What became of each object, in the order of the request.
    pub objects: Vec<Outcome>,
    /// What the caller should know; nothing was dropped.
    pub warnings: Vec<Warning>,
}

/// What became of one object of the request.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Outcome {
    /// Its place in `data`, from 0.
    pub index: usize,
    /// Its URI, given or minted.
    pub uri: String,
    /// What became of it.
    pub status: Status,
    /// The objects nested in it. An object given a second time in one request lists only those with a URI.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub nested: Vec<Nested>,
}

/// What became of an object.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Status {
    /// It was not there before.
    Created,
    /// It was there and changed.
    Updated,
    /// It was there and stayed as it was.
    Unchanged,
    /// It was removed.
    Deleted,
    /// It was to be removed and was not there.
    Absent,
}

/// One nested object.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Nested {
    /// Where it stood in the request (JSON Pointer).
    pub pointer: String,
    /// Its URI, given or minted.
    pub uri: String,
}

/// Something the caller should know.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Warning {
    /// Where in the request (JSON Pointer).
    pub pointer: String,
    /// What, in words.
    pub message: String,
}

impl Answer {
    pub(super) fn new(mode: Mode) -> Self {
        Self {
            ingestion_id: uuid::Uuid::now_v7().to_string(),
            mode,
            created: 0,
            updated: 0,
            unchanged: 0,
            deleted: 0,
            objects: Vec::new(),
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

/// Warnings, bounded: past the bound they are counted.
#[derive(Debug, Default)]
pub(super) struct Warnings {
    named: Vec<Warning>,
    more: u64,
}

impl Warnings {
    const MOST: usize = 1000;

    pub(super) fn push(&mut self, pointer: &str, message: impl Into<String>) {
        if self.named.len() < Self::MOST {
            self.named.push(Warning { pointer: pointer.to_owned(), message: message.into() });
        } else {
            self.more += 1;
        }
    }

    pub(super) fn into_vec(mut self) -> Vec<Warning> {
        if self.more > 0 {
            let message = format!("and {} more warnings", self.more);
            self.named.push(Warning { pointer: String::new(), message });
        }
        self.named
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn warnings_past_the_bound_are_counted() {
        let mut warnings = Warnings::default();
        for _ in 0..Warnings::MOST + 3 {
            warnings.push("/data/0", "x");
        }
        let all = warnings.into_vec();
        assert_eq!(all.len(), Warnings::MOST + 1);
        assert_eq!(all[Warnings::MOST].message, "and 3 more warnings");
    }
}
