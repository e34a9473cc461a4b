//! The use cases, a module for each resource, and the opened gateway: its parts, its status, and how it recovers from a
//! failed disk.
//!
//! A use case is one function for each thing that a client can ask for. The REST API, the pages and the commands call
//! it. It states the role that it needs, because more than one surface calls it: [`Gateway::run`](gateway::Gateway::run)
//! checks the role, and so does each commit. The minimum role of a route only refuses a request before its body is read.

pub mod accounts;
pub mod api_keys;
pub mod audit;
pub mod backup;
pub mod blocking;
pub mod business_objects;
pub mod changes;
pub mod clock;
pub mod dead_letters;
pub mod definitions;
pub mod deletions;
pub mod exports;
pub mod gateway;
pub mod groups;
pub mod ingestions;
pub mod limits;
pub mod namespaces;
pub mod objects;
mod pages;
pub mod rdf;
pub mod recovery;
pub mod shapes_graphs;
pub mod sources;
pub mod sparql;
pub mod targets;
#[cfg(test)]
mod testing;
pub mod validations;
pub mod views;
pub mod webhooks;

pub use pages::FoundPage;
