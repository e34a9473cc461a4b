//! Business Objects: named, configured JSON views of the graph.
//!
//! - `resource` has the definitions that clients send
//! - `mapping` compiles the YAML of a definition
//! - `csv` reads the records of CSV as JSON, and writes them
//! - `derive` derives a mapping from samples
//! - `namespace` stores the namespaces, and mints identifiers in them
//! - `catalogue` stores the definitions, and keeps them compiled in memory
//! - `natural_key` finds objects by the key of their mapping
//! - `ingest` converts JSON into quads
//! - `view` converts quads into JSON
//! - `write_scope` limits what an API key for certain Business Objects may change, and `visible` what it sees
//! - `list` reads and writes ordered arrays
//! - `members` decides which objects belong to a Business Object
//! - `search` finds members by their values, and the objects that refer to an object
//! - `source_text` reads YAML and JSON files with the positions of their values
//! - `shapes_graphs` stores the shapes graphs that users define
//! - `views` stores how people look at Business Objects
//! - `changes` keeps ingestions until they are approved
//! - `dead_letters` keeps the objects that ingestions rejected
//! - `change_feed` records changes for automatic exports
//! - `protection` validates what a commit changes
//! - `validation` validates everything that a Business Object has
//! - `tree` reads one object for a page: its fields, and nested objects down to a limit
//! - `neighbours` finds what an object refers to, what refers to it, and what contains it
//! - `warnings` finds what is probably unintended in a definition, `unshown` stored values that its fields cannot show
//! - `messages` has the messages of sources
//! - `rdf` dumps and loads the whole graph
//! - `testing` has the fixtures of tests and benches

pub mod catalogue;
pub mod change_feed;
pub mod changes;
pub mod csv;
pub mod dead_letters;
pub mod derive;
pub mod ingest;
pub mod list;
pub mod mapping;
pub mod members;
pub mod messages;
pub mod namespace;
mod natural_key;
pub mod neighbours;
pub mod protection;
pub mod rdf;
pub mod resource;
pub mod search;
pub mod shapes_graphs;
pub mod source_text;
#[cfg(any(test, feature = "testing"))]
pub mod testing;
pub mod tree;
mod unshown;
pub mod validation;
pub mod view;
pub mod views;
pub mod visible;
pub mod warnings;
mod write_scope;
