//! Validations of everything that a Business Object has.
use crate::names::wire_names;
use crate::problem::ViolatedConstraint;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A validation of everything that a Business Object has.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(rename = "ValidationRun")]
pub struct Validation {
    /// Its id.
    pub id: String,
    /// The id of the Business Object.
    pub business_object: String,
    /// The name of the Business Object when the validation was queued.
    pub business_object_name: String,
    /// Its state.
    pub state: ValidationState,
    /// Who requested it: an account's id, or `local`.
    pub requested_by: String,
    /// When it was queued (RFC 3339, UTC).
    pub queued_at: String,
    /// When it began to run (RFC 3339, UTC), or null.
    pub started_at: Option<String>,
    /// When it ended (RFC 3339, UTC), or null.
    pub ended_at: Option<String>,
    /// The sequence of the newest commit that it validates, or null before it runs.
    pub commit: Option<u64>,
    /// The shapes graphs, once it runs.
    pub shapes: Vec<UsedShapes>,
    /// The members of the Business Object.
    pub progress: Progress,
    /// Whether nothing was found, of whatever severity; null unless it is finished.
    pub conforms: Option<bool>,
    /// What was found so far.
    pub counts: SeverityCounts,
    /// The number of violations that the report lists: the first 10,000, and at most 8 MiB.
    pub listed: u64,
    /// Why it failed, or null.
    pub error: Option<String>,
}

/// The state of a validation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum ValidationState {
    /// It waits.
    Queued,
    /// It runs.
    Running,
    /// It has a report.
    Finished,
    /// An error ended it.
    Failed,
    /// A client ended it.
    Cancelled,
}

wire_names!(ValidationState {
    Queued: "queued",
    Running: "running",
    Finished: "finished",
    Failed: "failed",
    Cancelled: "cancelled",
});

impl ValidationState {
    /// Returns whether it waits or runs.
    pub fn is_open(self) -> bool {
        matches!(self, Self::Queued | Self::Running)
    }
}

/// A shapes graph that a validation uses.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct UsedShapes {
    /// Its name.
    pub name: String,
    /// Its version.
    pub version: u64,
}

/// The progress of a validation, in members of the Business Object.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "ValidationProgress")]
pub struct Progress {
    /// The number of validated ones.
    pub validated: u64,
    /// The number of all, or null before they are counted.
    pub expected: Option<u64>,
}

/// The number of violations by severity.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub struct SeverityCounts {
    /// `sh:Violation`
    pub violation: u64,
    /// `sh:Warning`
    pub warning: u64,
    /// `sh:Info`
    pub info: u64,
}

impl SeverityCounts {
    /// Returns the number of all.
    pub fn total(self) -> u64 {
        self.violation + self.warning + self.info
    }
}

/// A validation with its counts, and a page of its violations.
#[derive(Debug, Clone, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ValidationReport {
    /// The validation.
    #[serde(flatten)]
    pub validation: Validation,
    /// The counts by shape and constraint, the highest first: at most 1000. Empty before it has ended.
    pub constraints: Vec<ConstraintCount>,
    /// The number of violations of further shapes and constraints.
    pub other_count: u64,
    /// A page of the listed violations, in the order of the members. Empty before it has ended.
    pub items: Vec<ListedViolation>,
    /// The `cursor` of the next page, or null.
    pub next: Option<String>,
}

/// How often a constraint of a shape is violated.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ConstraintCount {
    /// The IRI of the shape, or of the nearest shape that it is part of.
    pub shape: String,
    /// The IRI of the constraint component.
    pub constraint: String,
    /// `violation`, `warning` or `info`.
    pub severity: String,
    /// The number of violations.
    pub count: u64,
}

/// A violation of a shape.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct ListedViolation {
    /// What is wrong.
    pub message: String,
    /// The constraint, and what violates it.
    #[serde(flatten)]
    pub violation: ViolatedConstraint,
}
