//! Validations of everything that a Business Object has.
use penstock_http::problem::ConstraintDocument;
use penstock_service::validations::{self as service, Report, ValidationState};
use salvo_oapi::ToSchema;
use serde::Serialize;

/// A validation of everything that a Business Object has.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[salvo(schema(name = "ValidationRun", rename_all = "camelCase"))]
pub(crate) struct Validation {
    /// Its id.
    pub(crate) id: String,
    /// The id of the Business Object.
    business_object: String,
    /// The name of the Business Object when the validation was queued.
    business_object_name: String,
    /// Its state.
    state: State,
    /// Who requested it: an account's id, or `local`.
    requested_by: String,
    /// When it was queued (RFC 3339, UTC).
    queued_at: String,
    /// When it began to run (RFC 3339, UTC), or null.
    #[salvo(schema(required = true))]
    started_at: Option<String>,
    /// When it ended (RFC 3339, UTC), or null.
    #[salvo(schema(required = true))]
    ended_at: Option<String>,
    /// The sequence of the newest commit that it validates, or null before it runs.
    #[salvo(schema(required = true))]
    commit: Option<u64>,
    /// The shapes graphs, once it runs.
    shapes: Vec<UsedShapes>,
    /// The members of the Business Object.
    progress: Progress,
    /// Whether nothing was found, of whatever severity; null unless it is finished.
    #[salvo(schema(required = true))]
    conforms: Option<bool>,
    /// What was found so far.
    counts: SeverityCounts,
    /// The number of violations that the report lists: the first 10,000, and at most 8 MiB.
    listed: u64,
    /// Why it failed, or null.
    #[salvo(schema(required = true))]
    error: Option<String>,
}

/// The state of a validation.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "lowercase")]
#[salvo(schema(name = "ValidationState", rename_all = "lowercase"))]
pub(crate) enum State {
    Queued,
    Running,
    Finished,
    Failed,
    Cancelled,
}

/// A shapes graph that a validation uses.
#[derive(Serialize, ToSchema)]
#[salvo(schema(name = "UsedShapes"))]
pub(crate) struct UsedShapes {
    /// Its name.
    name: String,
    /// Its version.
    version: u64,
}

/// The progress of a validation, in members of the Business Object.
#[derive(Serialize, ToSchema)]
#[salvo(schema(name = "ValidationProgress"))]
pub(crate) struct Progress {
    /// The number of validated ones.
    validated: u64,
    /// The number of all, or null before they are counted.
    #[salvo(schema(required = true))]
    expected: Option<u64>,
}

/// The number of violations by severity.
#[derive(Serialize, ToSchema)]
#[salvo(schema(name = "SeverityCounts"))]
pub(crate) struct SeverityCounts {
    /// `sh:Violation`
    violation: u64,
    /// `sh:Warning`
    warning: u64,
    /// `sh:Info`
    info: u64,
}

impl From<service::Validation> for Validation {
    fn from(validation: service::Validation) -> Self {
        let service::Progress { validated, expected } = validation.progress;
        let service::SeverityCounts { violation, warning, info } = validation.counts;
        let used = |service::UsedShapes { name, version }| UsedShapes { name, version };
        Self {
            id: validation.id,
            business_object: validation.business_object,
            business_object_name: validation.business_object_name,
            state: match validation.state {
                ValidationState::Queued => State::Queued,
                ValidationState::Running => State::Running,
                ValidationState::Finished => State::Finished,
                ValidationState::Failed => State::Failed,
                ValidationState::Cancelled => State::Cancelled,
            },
            requested_by: validation.requested_by,
            queued_at: validation.queued_at,
            started_at: validation.started_at,
            ended_at: validation.ended_at,
            commit: validation.commit,
            shapes: validation.shapes.into_iter().map(used).collect(),
            progress: Progress { validated, expected },
            conforms: validation.conforms,
            counts: SeverityCounts { violation, warning, info },
            listed: validation.listed,
            error: validation.error,
        }
    }
}

/// A page of validations.
#[derive(Serialize, ToSchema)]
#[salvo(schema(name = "ValidationRuns"))]
pub(crate) struct Validations {
    /// The newest first.
    pub(crate) items: Vec<Validation>,
    /// The `cursor` of the next page, or null.
    #[salvo(schema(required = true))]
    pub(crate) next: Option<String>,
}

/// A validation with its counts, and a page of its violations.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[salvo(schema(name = "ValidationReport", rename_all = "camelCase"))]
pub(crate) struct ValidationReport {
    #[serde(flatten)]
    validation: Validation,
    /// The counts by shape and constraint, the highest first: at most 1000. Empty before it has ended.
    constraints: Vec<ConstraintCount>,
    /// The number of violations of further shapes and constraints.
    other_count: u64,
    /// A page of the listed violations, in the order of the members. Empty before it has ended.
    items: Vec<ListedViolation>,
    /// The `cursor` of the next page, or null.
    #[salvo(schema(required = true))]
    next: Option<String>,
}

/// How often a constraint of a shape is violated.
#[derive(Serialize, ToSchema)]
#[salvo(schema(name = "ConstraintCount"))]
pub(crate) struct ConstraintCount {
    /// The IRI of the shape, or of the nearest shape that it is part of.
    shape: String,
    /// The IRI of the constraint component.
    constraint: String,
    /// `violation`, `warning` or `info`.
    severity: String,
    /// The number of violations.
    count: u64,
}

/// A violation of a shape.
#[derive(Serialize, ToSchema)]
#[salvo(schema(name = "ListedViolation"))]
pub(crate) struct ListedViolation {
    /// What is wrong.
    message: String,
    #[serde(flatten)]
    violation: ConstraintDocument,
}

impl ValidationReport {
    pub(crate) fn new(
        Report { validation, constraints, other_count }: Report,
        page: Vec<service::ListedViolation>,
        next: Option<String>,
    ) -> Self {
        Self {
            validation: validation.into(),
            constraints: constraints.into_iter().map(Into::into).collect(),
            other_count,
            items: page.into_iter().map(Into::into).collect(),
            next,
        }
    }
}

impl From<service::ConstraintCount> for ConstraintCount {
    fn from(counted: service::ConstraintCount) -> Self {
        let service::ConstraintCount { shape, constraint, severity, count } = counted;
        Self { shape, constraint, severity: severity.name().to_owned(), count }
    }
}

impl From<service::ListedViolation> for ListedViolation {
    fn from(service::ListedViolation { violation, message }: service::ListedViolation) -> Self {
        Self { message, violation: Some(violation).into() }
    }
}
