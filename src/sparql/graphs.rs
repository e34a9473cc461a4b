//! The RDF dataset of a request (SPARQL 1.1 Query, section 13): which graphs it reads.
use crate::internal_term::InternalTerm;

/// The graphs that a request reads.
#[derive(Debug, Default)]
pub(crate) struct Graphs {
    /// The graphs that make up the default graph; `None`: all graphs of the store.
    pub(crate) default: Option<Vec<InternalTerm>>,
    /// The named graphs; `None`: all named graphs of the store.
    pub(crate) named: Option<Vec<InternalTerm>>,
}

impl Graphs {
    /// Returns whether a graph is one of the named graphs.
    pub(crate) fn is_named(&self, graph: &InternalTerm) -> bool {
        *graph != InternalTerm::DEFAULT_GRAPH
            && self.named.as_ref().is_none_or(|named| named.contains(graph))
    }

    /// Returns whether a graph is part of the default graph. `None` is the unnamed graph.
    pub(crate) fn is_default(&self, graph: Option<&InternalTerm>) -> bool {
        let Some(default) = &self.default else { return true };
        match graph {
            Some(graph) => default.contains(graph),
            None => default.contains(&InternalTerm::DEFAULT_GRAPH),
        }
    }
}
