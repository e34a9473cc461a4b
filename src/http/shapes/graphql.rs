//! GraphQL over HTTP.
use salvo::oapi::ToSchema;
use serde_json::{Map, Value};

/// What is asked.
#[derive(ToSchema)]
#[salvo(schema(name = "GraphqlRequest", rename_all = "camelCase"))]
pub(in crate::http) struct GraphqlRequest {
    /// The document.
    pub(in crate::http) query: String,
    /// Which of its operations, where it has more than one.
    #[salvo(schema(required = false))]
    pub(in crate::http) operation_name: Option<String>,
    /// The values of its variables.
    #[salvo(schema(required = false, nullable = true))]
    pub(in crate::http) variables: Option<Map<String, Value>>,
    /// None is known.
    #[salvo(schema(required = false, nullable = true))]
    pub(in crate::http) extensions: Option<Map<String, Value>>,
}

/// What is answered.
#[derive(ToSchema)]
#[salvo(schema(name = "GraphqlResponse"))]
pub(in crate::http) struct GraphqlResponse {
    /// The result; absent when the document was not executed.
    #[salvo(schema(required = false, nullable = true))]
    pub(in crate::http) data: Option<Map<String, Value>>,
    /// What went wrong.
    #[salvo(schema(required = false))]
    pub(in crate::http) errors: Vec<GraphqlError>,
}

/// One thing that went wrong.
#[derive(ToSchema)]
#[salvo(schema(name = "GraphqlError"))]
pub(in crate::http) struct GraphqlError {
    /// What, in words.
    pub(in crate::http) message: String,
    /// Where in the document.
    #[salvo(schema(required = false))]
    pub(in crate::http) locations: Vec<GraphqlLocation>,
    /// Where in the result.
    #[salvo(schema(required = false))]
    pub(in crate::http) path: Vec<Value>,
    /// `code`, `of`, `figure` and `limit` of a query that is too dear.
    #[salvo(schema(required = false, nullable = false))]
    pub(in crate::http) extensions: Option<Map<String, Value>>,
}

/// A place in a document.
#[derive(ToSchema)]
#[salvo(schema(name = "GraphqlLocation"))]
pub(in crate::http) struct GraphqlLocation {
    /// From 1.
    pub(in crate::http) line: u64,
    /// From 1.
    pub(in crate::http) column: u64,
}
