//! GraphQL over HTTP.
use salvo::oapi::ToSchema;
use serde_json::{Map, Value};

/// A GraphQL request.
#[derive(ToSchema)]
#[salvo(schema(name = "GraphqlRequest", rename_all = "camelCase"))]
pub(crate) struct GraphqlRequest {
    /// The document.
    pub(crate) query: String,
    /// The operation to execute, if there is more than one.
    #[salvo(schema(required = false))]
    pub(crate) operation_name: Option<String>,
    /// The values of its variables.
    #[salvo(schema(required = false, nullable = true))]
    pub(crate) variables: Option<Map<String, Value>>,
    /// Not used; no extension is supported.
    #[salvo(schema(required = false, nullable = true))]
    pub(crate) extensions: Option<Map<String, Value>>,
}

/// A GraphQL response.
#[derive(ToSchema)]
#[salvo(schema(name = "GraphqlResponse"))]
pub(crate) struct GraphqlResponse {
    /// The result; absent when the document was not executed.
    #[salvo(schema(required = false, nullable = true))]
    pub(crate) data: Option<Map<String, Value>>,
    /// The errors.
    #[salvo(schema(required = false))]
    pub(crate) errors: Vec<GraphqlError>,
}

/// An error.
#[derive(ToSchema)]
#[salvo(schema(name = "GraphqlError"))]
pub(crate) struct GraphqlError {
    /// The message.
    pub(crate) message: String,
    /// Its places in the document.
    #[salvo(schema(required = false))]
    pub(crate) locations: Vec<GraphqlLocation>,
    /// Its place in the result.
    #[salvo(schema(required = false))]
    pub(crate) path: Vec<Value>,
    /// `code`, `of`, `figure` and `limit` of a query that exceeds a cost limit.
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
