//! Business Objects: named, configured JSON views of the graph.
//!
//! `resource` is what a client defines, `mapping` the compiled form of its YAML, `derive` guesses one from
//! samples, `catalogue` is where the definitions are kept; `ingest` turns JSON into quads, `view` turns
//! quads back into JSON, `members` says which objects belong, `search` finds some of them, `changes` notes
//! what changed for exports by themselves, `warnings` says what is probably not meant in a definition.

pub mod catalogue;
pub mod changes;
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
