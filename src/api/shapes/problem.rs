//! The content of every error response.
use salvo::oapi::ToSchema;

/// Problem details (RFC 9457).
#[derive(ToSchema)]
#[salvo(schema(name = "Problem", rename_all = "camelCase"))]
pub(crate) struct Problem {
    /// `about:blank`: the status identifies the kind of problem.
    pub(crate) r#type: String,
    /// The status in words.
    pub(crate) title: String,
    /// The status.
    pub(crate) status: u16,
    /// The cause in words. For an ingestion it begins with `Ingestion failed: `.
    pub(crate) detail: String,
    /// The path of the request.
    pub(crate) instance: String,
    /// The trace of the request, as in the lines of the log.
    pub(crate) trace_id: String,
    /// Every finding with its place.
    #[salvo(schema(required = false))]
    pub(crate) errors: Vec<Finding>,
}

/// One finding: at a JSON Pointer into the body, or at a line and column of a text.
#[derive(ToSchema)]
#[salvo(schema(name = "Finding"))]
pub(crate) struct Finding {
    /// JSON Pointer (RFC 6901).
    #[salvo(schema(required = false, nullable = false))]
    pub(crate) pointer: Option<String>,
    /// From 1.
    #[salvo(schema(required = false, nullable = false))]
    pub(crate) line: Option<u64>,
    /// From 1, in characters.
    #[salvo(schema(required = false, nullable = false))]
    pub(crate) column: Option<u64>,
    /// What is wrong, and how to fix it.
    pub(crate) message: String,
}
