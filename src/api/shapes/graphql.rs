//! The response of GraphQL. `penstock_graphql` writes it, so these shapes only describe it.
#![expect(dead_code, reason = "`penstock_graphql` writes the responses")]
use salvo_oapi::ToSchema;
use serde_json::{Map, Value};

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
