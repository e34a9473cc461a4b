//! The problem document: the content of every error response.
use schemars::{JsonSchema, Schema};
use serde::{Deserialize, Serialize};
use serde_json::json;

/// Problem details (RFC 9457).
#[derive(Debug, Clone, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(transform = require_place)]
pub struct Problem {
    /// `about:blank`: the status identifies the kind of problem.
    pub r#type: &'static str,
    /// The status in words.
    pub title: &'static str,
    /// The status.
    pub status: u16,
    /// The cause in words. For an ingestion it begins with `Ingestion failed: `.
    pub detail: String,
    /// Every finding with its place.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub errors: Vec<Finding>,
    /// The path of the request.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub instance: Option<String>,
    /// The trace of the request, as in the lines of the log.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub trace_id: Option<String>,
}

/// Describes that every error response has its path and its trace. A line of a stream has neither.
fn require_place(problem: &mut Schema) {
    problem.insert(
        "required".to_owned(),
        json!(["type", "title", "status", "detail", "instance", "traceId"]),
    );
}

/// One finding: at a JSON Pointer into the body, or at a line and column of a text. In CSV, a pointer has the first line of
/// its record.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub struct Finding {
    /// JSON Pointer (RFC 6901).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pointer: Option<String>,
    /// From 1.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub line: Option<u64>,
    /// From 1, in characters.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub column: Option<u64>,
    /// What is wrong, and how to fix it.
    pub message: String,
    /// Which constraint is violated, if the finding is about a shape.
    #[serde(flatten, skip_serializing_if = "Option::is_none")]
    pub violation: Option<Box<ViolatedConstraint>>,
}

/// The constraint of a shape that a finding is about, and what violates it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ViolatedConstraint {
    /// The URI of the object that was validated.
    pub focus_node: String,
    /// The path to the value: an IRI, or a property path of SPARQL.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub path: Option<String>,
    /// The value: an IRI, or the lexical form of a literal.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub value: Option<String>,
    /// The IRI of the shape.
    pub shape: String,
    /// The IRI of the constraint component.
    pub constraint: String,
    /// `violation`, `warning` or `info`.
    pub severity: String,
}
