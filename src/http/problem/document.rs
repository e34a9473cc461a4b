//! The problem document: the content of every error response.
use super::Problem;
use penstock_base::error::{Finding, Place, ViolatedConstraint};
use salvo::http::StatusCode;
use salvo_oapi::ToSchema;
use serde::Serialize;

/// Problem details (RFC 9457).
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[salvo(schema(name = "Problem"))]
pub struct ProblemDocument {
    /// `about:blank`: the status identifies the kind of problem.
    r#type: &'static str,
    /// The status in words.
    title: &'static str,
    /// The status.
    status: u16,
    /// The cause in words. For an ingestion it begins with `Ingestion failed: `.
    detail: String,
    /// Every finding with its place.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[salvo(schema(required = false))]
    errors: Vec<FindingDocument>,
    /// The path of the request.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[salvo(schema(required = true, nullable = false))]
    pub(super) instance: Option<String>,
    /// The trace of the request, as in the lines of the log.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[salvo(schema(required = true, nullable = false))]
    pub(super) trace_id: Option<String>,
}

/// One finding: at a JSON Pointer into the body, or at a line and column of a text. In CSV, a pointer has the first line of
/// its record.
#[derive(Default, Serialize, ToSchema)]
#[salvo(schema(name = "Finding"))]
pub struct FindingDocument {
    /// JSON Pointer (RFC 6901).
    #[serde(skip_serializing_if = "Option::is_none")]
    #[salvo(schema(required = false, nullable = false))]
    pointer: Option<String>,
    /// From 1.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[salvo(schema(required = false, nullable = false))]
    line: Option<u64>,
    /// From 1, in characters.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[salvo(schema(required = false, nullable = false))]
    column: Option<u64>,
    /// What is wrong, and how to fix it.
    message: String,
    #[serde(flatten)]
    violation: ConstraintDocument,
}

/// The constraint of a shape that a finding is about, and what violates it.
#[derive(Default, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[salvo(schema(name = "ViolatedConstraint"))]
pub struct ConstraintDocument {
    /// The URI of the object that was validated.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[salvo(schema(required = false, nullable = false))]
    focus_node: Option<String>,
    /// The path to the value: an IRI, or a property path of SPARQL.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[salvo(schema(required = false, nullable = false))]
    path: Option<String>,
    /// The value: an IRI, or the lexical form of a literal.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[salvo(schema(required = false, nullable = false))]
    value: Option<String>,
    /// The IRI of the shape.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[salvo(schema(required = false, nullable = false))]
    shape: Option<String>,
    /// The IRI of the constraint component.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[salvo(schema(required = false, nullable = false))]
    constraint: Option<String>,
    /// `violation`, `warning` or `info`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[salvo(schema(required = false, nullable = false))]
    severity: Option<String>,
}

impl From<Option<ViolatedConstraint>> for ConstraintDocument {
    fn from(violation: Option<ViolatedConstraint>) -> Self {
        let Some(violation) = violation else { return Self::default() };
        let ViolatedConstraint { focus_node, path, value, shape, constraint, severity } = violation;
        Self {
            focus_node: Some(focus_node),
            path,
            value,
            shape: Some(shape),
            constraint: Some(constraint),
            severity: Some(severity),
        }
    }
}

impl From<Problem> for ProblemDocument {
    /// Converts everything but the path and the trace of the request.
    fn from(problem: Problem) -> Self {
        Self {
            r#type: "about:blank",
            title: reason_phrase(problem.status),
            status: problem.status.as_u16(),
            detail: problem.detail,
            errors: problem.errors.into_iter().map(FindingDocument::from).collect(),
            instance: None,
            trace_id: None,
        }
    }
}

impl From<Finding> for FindingDocument {
    fn from(Finding { place, record_line, message, violation, .. }: Finding) -> Self {
        let violation = violation.map(|violation| *violation).into();
        let finding = Self { line: record_line, message, violation, ..Self::default() };
        match place {
            Place::Pointer(pointer) => Self { pointer: Some(pointer), ..finding },
            Place::Line { line, column } => {
                Self { line: Some(line), column: Some(column), ..finding }
            }
            Place::Whole => finding,
        }
    }
}

/// Returns the reason phrase, which RFC 9457 requires as the title of `about:blank`.
pub(super) fn reason_phrase(status: StatusCode) -> &'static str {
    status.canonical_reason().unwrap_or("Error")
}
