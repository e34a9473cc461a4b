//! The REST API.
//!
//! `routes` is the table of contents. Each resource has a file of its own, which declares its operations: path, minimum
//! role, parameters, body, answers and problems. `openapi` builds the document from these and from the types of
//! `penstock_resources`.

mod api_keys;
mod audit;
mod backup;
mod business_objects;
mod change_owners;
mod changes;
mod clock;
mod definitions;
mod docs;
mod events;
mod exports;
mod graphql;
mod groups;
mod health;
mod identifiers;
mod ingest;
mod ingestions;
mod limits;
mod mapping_shapes;
mod metrics;
mod namespaces;
mod negotiation;
mod objects;
mod openapi;
mod push;
mod rdf;
mod rejected;
mod routes;
mod schema;
mod shapes_graphs;
mod sources;
mod sparql;
mod status;
mod stream;
mod targets;
mod users;
mod validations;
mod views;
mod webhooks;

pub use routes::{api_operations, control_operations, document_routes, object_handler};
pub use status::render_heartbeat;
