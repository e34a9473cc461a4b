//! The REST API.
//!
//! `routes` is the table of contents: every route with its minimum role, its handler and the problems it can answer.
//! Each resource has a file of its own. `shapes` has the types on the wire. `openapi` builds the document from the
//! table and the shapes.

pub mod api_keys;
pub mod audit;
mod backup;
pub mod business_objects;
mod clock;
mod docs;
mod events;
mod exports;
pub mod graphql;
mod health;
pub mod identifiers;
mod ingest;
mod ingestions;
mod limits;
mod metrics;
pub mod namespaces;
mod ndjson;
mod objects;
mod openapi;
pub mod push;
mod rdf;
mod routes;
mod schema;
mod shapes;
mod status;
mod targets;
pub mod users;

pub use routes::{api_routes, control_routes, document_routes, object_handler};

/// Returns an account in the form of the API, for the command line.
pub fn account_to_json(account: &penstock_auth::Account) -> serde_json::Value {
    serde_json::to_value(shapes::Account::from(account)).unwrap_or_default()
}

/// Returns an API key in the form of the API, for the command line.
pub fn api_key_to_json(key: &penstock_auth::keys::Key) -> serde_json::Value {
    serde_json::to_value(shapes::ApiKey::from(key)).unwrap_or_default()
}
