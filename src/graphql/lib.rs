//! Answers GraphQL queries (edition of October 2021) about the stored data. docs/graphql.md describes the interface.
//!
//! | file | what |
//! |---|---|
//! | `query` | a query, as a client sends it. |
//! | `schema`, `built` | the current schema; how a document is prepared and executed. |
//! | `text` | adds what the library's parser lacks. |
//! | `validation`, `coercion`, `variables` | checks that the library omits: values and variables fit their types. |
//! | `introspection` | adds what the library's introspection lacks. |
//! | `model`, `names` | the types of Business Objects; GraphQL names derived from arbitrary names. |
//! | `types`, `system_types`, `gateway_types` | the schema's types: of Business Objects, shared ones, the gateway's own. |
//! | `system`, `field_definitions` | the names of shared types and fields; fields and arguments of the schema. |
//! | `cost` | the cost of a document, computed before it is executed. |
//! | `document`, `input` | a validated document, its arguments and filters. |
//! | `execution`, `sources` | a running operation; the parts of the gateway that it reads. |
//! | `root_fields`, `plan`, `objects`, `pages`, `out` | the answer: its root fields; planned, read level by level, written. |
//! | `user`, `business_objects`, `exports`, `summary` | the account that sent the query; definitions; exports; summaries. |
//! | `write` | a search of the pages as a query. |
//!
//! The schema is built on demand from the current catalogue. A request gets the schema when it begins and keeps it
//! until it ends, so a changed Business Object is visible from the next request on. An unused schema is dropped within
//! two minutes, so that a gateway without GraphQL clients does not keep it in memory.
//!
//! This layer is independent of HTTP; `api/graphql.rs` puts it on the wire.

mod built;
mod business_objects;
mod coercion;
mod cost;
mod document;
mod execution;
mod exports;
mod field_definitions;
mod gateway_types;
mod input;
mod introspection;
mod model;
mod names;
mod objects;
mod out;
mod pages;
mod plan;
mod query;
mod root_fields;
mod schema;
mod sources;
mod summary;
mod system;
mod system_types;
mod text;
mod types;
mod user;
mod validation;
mod variables;
mod write;

pub use query::{Query, check_request_size};
pub use schema::{Answer, GraphqlService};
pub use write::WrittenSearch;
