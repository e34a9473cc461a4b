//! HTTP: the routes, the shapes on the wire, the faults as problem details (RFC 9457).
//!
//! `router` is the table of contents: every route with its least role, its handler and the problems it
//! can answer. There is one file per resource. `service` is what every request passes before its
//! route; `access` lets on those who may use it, whom `caller` finds by their `credential`; `page` keeps
//! out what other sites' pages send. `accept`, `body`, `query`, `etag`, `origin` read the parts of a request;
//! `reply` and `problem` are the two kinds of answers to programs, `admin` and `sign_in` have the pages;
//! `sending` bounds what is not yet sent of all of them; `openapi` makes the document from the table and
//! `shapes`.

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
mod page;
mod problem;
mod push;
mod query;
mod rdf;
mod reply;
mod router;
mod schema;
mod sending;
mod service;
mod shapes;
mod share;
mod sign_in;
mod state;
mod status;
mod targets;
mod users;

pub use router::routes;
pub use service::service;
pub use state::State;

/// An account as the API answers it, for the command line.
pub fn user(account: &penstock_auth::Account) -> serde_json::Value {
    serde_json::to_value(shapes::Account::from(account)).unwrap_or_default()
}

/// An API key as the API answers it, for the command line.
pub fn api_key(key: &penstock_auth::keys::Key) -> serde_json::Value {
    serde_json::to_value(shapes::ApiKey::from(key)).unwrap_or_default()
}
