//! GraphQL over HTTP.
use salvo::oapi::ToSchema;
use serde_json::{Map, Value};

/// What is asked.
#[derive(ToSchema)]
#[salvo(schema(name = "GraphqlRequest", rename_all = "camelCase"))]
pub(crate) struct GraphqlRequest {
    /// The document.
    pub(crate) query: String,
    /// Which of its operations, where it has more than one.
    #[salvo(schema(required = false))]
    pub(crate) operation_name: Option<String>,
    /// The values of its variables.
    #[salvo(schema(required = false, nullable = true))]
    pub(crate) variables: Option<Map<String, Value>>,
    /// None is known.
    #[salvo(schema(required = false, nullable = true))]
    pub(crate) extensions: Option<Map<String, Value>>,
}

/// What is answered.
#[derive(ToSchema)]
#[salvo(schema(name = "GraphqlResponse"))]
pub(crate) struct GraphqlResponse {
    /// The result; absent when the document was not executed.
    #[salvo(schema(required = false, nullable = true))]
    pub(crate) data: Option<Map<String, Value>>,
    /// What went wrong.
    #[salvo(schema(required = false))]
    pub(crate) errors: Vec<GraphqlError>,
}

/// One thing that went wrong.
#[derive(ToSchema)]
#[salvo(schema(name = "GraphqlError"))]
pub(crate) struct GraphqlError {
    /// What, in words.
    pub(crate) message: String,
    /// Where in the document.
    #[salvo(schema(required = false))]
    pub(crate) locations: Vec<GraphqlLocation>,
    /// Where in the result.
    #[salvo(schema(required = false))]
    pub(crate) path: Vec<Value>,
    /// `code`, `of`, `figure` and `limit` of a query that is too dear.
    #[salvo(schema(required = false, nullable = false))]
    pub(crate) extensions: Option<Map<String, Value>>,
}

/// A place in a document.
#[derive(ToSchema)]
#[salvo(schema(name = "GraphqlLocation"))]
pub(crate) struct GraphqlLocation {
    /// From 1.
    pub(crate) line: u64,
    /// From 1.
    pub(crate) column: u64,
}
