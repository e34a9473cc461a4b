//! The graph as it is written elsewhere: dumped and loaded as Turtle, N-Triples, N-Quads, `TriG`, RDF/XML
//! and JSON-LD, in bounded memory.
//!
//! What is dumped and loaded again is the same, term by term. Blank nodes have no identity outside of their
//! document, so that loading it twice would store them twice: they are refused, or made IRIs of.

mod blank_node;
mod dump;
mod format;
mod load;
mod skolem;
mod source;
mod xml;

pub use dump::{Dump, dump};
pub use format::Format;
pub use load::{Failed, Load, Loaded, Target, load};

use oxrdf::{GraphName, NamedNode};

/// The word that names the default graph where an IRI would name another.
pub const DEFAULT_GRAPH: &str = "default";

/// The graph that a text names: an IRI, or `default`.
///
/// # Errors
/// Why it is neither.
pub fn graph(text: &str) -> Result<GraphName, String> {
    if text == DEFAULT_GRAPH {
        return Ok(GraphName::DefaultGraph);
    }
    iri(text).map(GraphName::from)
}

/// The absolute IRI of a text.
///
/// # Errors
/// Why it is none.
pub fn iri(text: &str) -> Result<NamedNode, String> {
    NamedNode::new(text).map_err(|error| format!("{text:?} is no absolute IRI ({error})"))
}
