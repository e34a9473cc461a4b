//! HTTP: the routes, the shapes on the wire, and errors as problem details (RFC 9457).
//!
//! `router` is the table of contents: every route with its minimum role, its handler and the problems it can
//! answer. Each resource has a file of its own.
//!
//! Every request passes `service` before its route. `caller` authenticates it by its `credential`, and
//! `access` authorizes it. `page` refuses requests that pages of other sites send. `accept`, `body`, `query`,
//! `etag` and `origin` read the parts of a request. `reply` and `problem` are the two kinds of responses to
//! programs. `admin` and `sign_in` have the pages. `sending` limits the responses that are not sent yet.
//! `openapi` builds the document from the table and `shapes`.

mod accept;
mod access;
mod admin;
mod api_keys;
mod audit;
mod backup;
mod body;
mod business_objects;
mod caller;
mod clock;
mod credential;
mod docs;
mod etag;
mod events;
mod exports;
mod failures;
mod graphql;
mod health;
mod identifiers;
mod ingest;
mod ingestions;
mod limits;
mod metrics;
mod namespaces;
mod ndjson;
mod objects;
mod openapi;
mod origin;
mod problem;
mod push;
mod query;
mod rdf;
mod reply;
mod router;
mod schema;
mod sender_page;
mod sending;
mod service;
mod shapes;
mod sign_in;
mod state;
mod status;
mod targets;
mod users;

pub use router::list_routes;
pub use service::build_service;
pub use state::State;

/// Returns an account in the form of the API, for the command line.
pub fn account_to_json(account: &penstock_auth::Account) -> serde_json::Value {
    serde_json::to_value(shapes::Account::from(account)).unwrap_or_default()
}

/// Returns an API key in the form of the API, for the command line.
pub fn api_key_to_json(key: &penstock_auth::keys::Key) -> serde_json::Value {
    serde_json::to_value(shapes::ApiKey::from(key)).unwrap_or_default()
}
