//! A query, as a client sends it.
use async_graphql::{Name, Value};
use penstock_base::error::{ErrorClass, GatewayError};
use serde_json::{Map, Value as Json};

/// The maximum number of bytes of a request. Parsing dominates the cost of a document.
pub(super) const MAX_REQUEST_BYTES: usize = 64 << 10;

/// A query.
#[derive(Debug, Default)]
pub struct Query {
    /// The document.
    pub document: String,
    /// The name of the operation to execute, if the document has several.
    pub operation: Option<String>,
    /// The values of the variables.
    pub variables: Map<String, Json>,
    /// Whether mutations are refused.
    pub reads_only: bool,
}

impl Query {
    /// Creates a query without the name of an operation. `variables` is an object or null.
    ///
    /// # Errors
    /// Describes what is wrong.
    pub fn new(document: String, variables: Json) -> Result<Self, String> {
        let variables = match variables {
            Json::Null => Map::new(),
            Json::Object(variables) => variables,
            _ => return Err("variables must be an object or null".into()),
        };
        Ok(Self { document, operation: None, variables, reads_only: false })
    }

    /// Creates a query from the parameters of a request: `query`, `operationName`, `variables` and `extensions` (GraphQL
    /// over HTTP, 5.1). Ignores unknown ones, as the specification requires.
    ///
    /// # Errors
    /// Describes what is wrong.
    pub fn from_members(mut members: Map<String, Json>) -> Result<Self, String> {
        let document = match members.remove("query") {
            Some(Json::String(document)) => document,
            Some(_) => return Err("query must be a string".into()),
            None => return Err("query is missing: the GraphQL document, as a string".into()),
        };
        let operation = match members.remove("operationName") {
            None | Some(Json::Null) => None,
            Some(Json::String(name)) if name.is_empty() => None,
            Some(Json::String(name)) => Some(name),
            Some(_) => return Err("operationName must be a string or null".into()),
        };
        let query = Self::new(document, members.remove("variables").unwrap_or_default())?;
        match members.remove("extensions") {
            None | Some(Json::Null | Json::Object(_)) => Ok(Self { operation, ..query }),
            Some(_) => Err("extensions must be an object or null".into()),
        }
    }
}

/// Checks the size of a request: the document with its variables.
///
/// # Errors
/// `ErrorClass::TooLarge` when it has more than [`MAX_REQUEST_BYTES`].
pub fn check_request_size(bytes: usize) -> Result<(), GatewayError> {
    if bytes <= MAX_REQUEST_BYTES {
        return Ok(());
    }
    Err(GatewayError::new(
        ErrorClass::TooLarge,
        format!("a GraphQL request may have at most {MAX_REQUEST_BYTES} bytes"),
    ))
}

/// Converts the value of a variable. Numbers of `serde_json` keep all their digits here, and the library's own conversion
/// through serde would turn such numbers into objects.
pub(super) fn convert_value(value: Json) -> Value {
    match value {
        Json::Null => Value::Null,
        Json::Bool(flag) => Value::Boolean(flag),
        Json::Number(number) => Value::Number(number),
        Json::String(text) => Value::String(text),
        Json::Array(items) => Value::List(items.into_iter().map(convert_value).collect()),
        Json::Object(members) => Value::Object(
            members
                .into_iter()
                .map(|(name, value)| (Name::new(name), convert_value(value)))
                .collect(),
        ),
    }
}
