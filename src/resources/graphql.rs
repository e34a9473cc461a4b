//! Requests of GraphQL and their responses. `penstock_graphql` reads and writes them, so these types only describe them.
use schemars::JsonSchema;
use serde_json::{Map, Value};

/// A GraphQL request.
#[derive(Debug, Clone, JsonSchema)]
#[schemars(rename_all = "camelCase")]
pub struct GraphqlRequest {
    /// The document.
    pub query: String,
    /// The operation to execute, if there is more than one.
    pub operation_name: Option<String>,
    /// The values of its variables.
    pub variables: Option<Map<String, Value>>,
    /// Not used; no extension is supported.
    pub extensions: Option<Map<String, Value>>,
}

/// A GraphQL response.
#[derive(Debug, Clone, JsonSchema)]
pub struct GraphqlResponse {
    /// The result; absent when the document was not executed, null when a field failed that must not be null.
    #[schemars(skip_serializing_if = "Option::is_none", extend("x-nullable" = true))]
    pub data: Option<Map<String, Value>>,
    /// The errors.
    #[schemars(skip_serializing_if = "Vec::is_empty")]
    pub errors: Vec<GraphqlError>,
}

/// An error.
#[derive(Debug, Clone, JsonSchema)]
pub struct GraphqlError {
    /// The message.
    pub message: String,
    /// Its places in the document.
    #[schemars(skip_serializing_if = "Vec::is_empty")]
    pub locations: Vec<GraphqlLocation>,
    /// Its place in the result.
    #[schemars(skip_serializing_if = "Vec::is_empty")]
    pub path: Vec<Value>,
    /// `code`, `of`, `figure` and `limit` of a query that exceeds a cost limit.
    #[schemars(skip_serializing_if = "Option::is_none")]
    pub extensions: Option<Map<String, Value>>,
}

/// A place in a document.
#[derive(Debug, Clone, JsonSchema)]
pub struct GraphqlLocation {
    /// From 1.
    pub line: u64,
    /// From 1.
    pub column: u64,
}
