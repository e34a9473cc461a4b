//! Dumps and loads the graph as Turtle, N-Triples, N-Quads, `TriG`, RDF/XML and JSON-LD, in bounded memory.
//!
//! A dump that is loaded again gives the same quads, term by term. Blank nodes have no identity outside their
//! document, so loading it twice would store them twice. Therefore they are refused or replaced by IRIs.

mod dump;
mod graph;
mod load;
mod read;
mod skolem;

pub(crate) use dump::estimate_bytes;
pub use dump::{
    DumpOptions, Dumped, write_document, write_dump, write_graph_triples, write_triples,
};
pub use graph::{GraphWrite, WrittenGraph, has_quads, write_graph};
pub use load::{LoadError, LoadProgress, LoadTarget, load_document};
pub use read::LoadOptions;

use oxrdf::{GraphName, NamedNode};
pub use penstock_rdf::Format;

/// The name of the default graph, used in place of an IRI.
pub const DEFAULT_GRAPH: &str = "default";

/// Parses the name of a graph: an IRI, or `default`.
///
/// # Errors
/// Returns the reason why the text is neither.
pub fn parse_graph(text: &str) -> Result<GraphName, String> {
    if text == DEFAULT_GRAPH {
        return Ok(GraphName::DefaultGraph);
    }
    parse_iri(text).map(GraphName::from)
}

/// Parses an absolute IRI.
///
/// # Errors
/// Returns the reason why the text is not one.
pub fn parse_iri(text: &str) -> Result<NamedNode, String> {
    NamedNode::new(text).map_err(|error| format!("{text:?} is not an absolute IRI ({error})"))
}
