//! HTTP: the routes, the shapes on the wire, the faults as problem details (RFC 9457).
//!
//! `router` is the table of contents: every route with its least role, its handler and the problems it
//! can answer. There is one file per resource. `service` is what every request passes before its
//! route; `access` lets on those who may use it, whom `caller` finds by their `credential`; `page` keeps
//! out what other sites' pages send. `body`, `query`, `etag`, `origin` read the parts of a request;
//! `reply` and `problem` are the two kinds of answers; `openapi` makes the document from the table and
//! `shapes`.

mod access;
mod backup;
mod body;
mod business_objects;
mod caller;
mod credential;
mod docs;
mod etag;
mod events;
mod exports;
mod failures;
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
mod reply;
mod router;
mod schema;
mod service;
mod shapes;
mod state;
mod status;
mod targets;

pub use service::service;
pub use state::State;
