//! Business Objects: named, configured JSON views of the graph.
//!
//! - `resource` has the definitions that clients send
//! - `mapping` compiles the YAML of a definition
//! - `derive` derives a mapping from samples
//! - `catalogue` stores the definitions, and keeps them compiled in memory
//! - `ingest` converts JSON into quads
//! - `view` converts quads into JSON
//! - `members` decides which objects belong
//! - `search` finds some of them
//! - `change_feed` records changes for automatic exports
//! - `warnings` finds what is probably unintended in a definition

pub mod catalogue;
pub mod change_feed;
pub mod derive;
pub mod ingest;
pub mod mapping;
pub mod members;
pub mod namespace;
pub mod rdf;
pub mod resource;
pub mod search;
pub mod view;
pub mod warnings;
