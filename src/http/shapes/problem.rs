//! What every answer that is no success holds.
use salvo::oapi::ToSchema;

/// Problem details (RFC 9457).
#[derive(ToSchema)]
#[salvo(schema(name = "Problem", rename_all = "camelCase"))]
pub(crate) struct Problem {
    /// `about:blank`: the status says what kind of problem it is.
    pub(crate) r#type: String,
    /// The status in words.
    pub(crate) title: String,
    /// The status.
    pub(crate) status: u16,
    /// The cause in words. That of an ingestion begins `Ingestion failed: `.
    pub(crate) detail: String,
    /// The path of the request.
    pub(crate) instance: String,
    /// The trace that the request was part of, as the lines of the log have it.
    pub(crate) trace_id: String,
    /// Every single finding with its place.
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
    /// What is wrong, and how to mend it.
    pub(crate) message: String,
}
