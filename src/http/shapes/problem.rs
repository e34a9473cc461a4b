//! What every answer that is no success holds.
use salvo::oapi::ToSchema;

/// Problem details (RFC 9457).
#[derive(ToSchema)]
#[salvo(schema(name = "Problem", rename_all = "camelCase"))]
pub(in crate::http) struct Problem {
    /// `about:blank`: the status says what kind of problem it is.
    pub(in crate::http) r#type: String,
    /// The status in words.
    pub(in crate::http) title: String,
    /// The status.
    pub(in crate::http) status: u16,
    /// The cause in words. That of an ingestion begins `Ingestion failed: `.
    pub(in crate::http) detail: String,
    /// The path of the request.
    pub(in crate::http) instance: String,
    /// The trace that the request was part of, as the lines of the log have it.
    pub(in crate::http) trace_id: String,
    /// Every single finding with its place.
    #[salvo(schema(required = false))]
    pub(in crate::http) errors: Vec<Finding>,
}

/// One finding: at a JSON Pointer into the body, or at a line and column of a text.
#[derive(ToSchema)]
#[salvo(schema(name = "Finding"))]
pub(in crate::http) struct Finding {
    /// JSON Pointer (RFC 6901).
    #[salvo(schema(required = false, nullable = false))]
    pub(in crate::http) pointer: Option<String>,
    /// From 1.
    #[salvo(schema(required = false, nullable = false))]
    pub(in crate::http) line: Option<u64>,
    /// From 1, in characters.
    #[salvo(schema(required = false, nullable = false))]
    pub(in crate::http) column: Option<u64>,
    /// What is wrong, and how to mend it.
    pub(in crate::http) message: String,
}
