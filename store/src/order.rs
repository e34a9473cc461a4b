//! The sort order of the quads of a subject.
use oxrdf::{GraphNameRef, Quad, TermRef};
use std::cmp::Ordering;

/// Sorts by predicate, then object, then graph, all by code point. Literals come before IRIs, IRIs before
/// blank nodes, and the default graph before all others.
pub(crate) fn sort_quads(quads: &mut [Quad]) {
    quads.sort_unstable_by(compare_quads);
}

fn compare_quads(a: &Quad, b: &Quad) -> Ordering {
    a.predicate
        .as_str()
        .cmp(b.predicate.as_str())
        .then_with(|| object_rank(a.object.as_ref()).cmp(&object_rank(b.object.as_ref())))
        .then_with(|| graph_rank(a.graph_name.as_ref()).cmp(&graph_rank(b.graph_name.as_ref())))
}

type Rank<'a> = (u8, &'a str, &'a str, &'a str);

fn object_rank(term: TermRef<'_>) -> Rank<'_> {
    match term {
        TermRef::Literal(literal) => (
            0,
            literal.value(),
            literal.language().unwrap_or_default(),
            literal.datatype().as_str(),
        ),
        TermRef::NamedNode(iri) => (1, iri.as_str(), "", ""),
        TermRef::BlankNode(node) => (2, node.as_str(), "", ""),
        // No quad has one: the store refuses it.
        TermRef::Triple(_) => (3, "", "", ""),
    }
}

fn graph_rank(graph: GraphNameRef<'_>) -> (u8, &str) {
    match graph {
        GraphNameRef::DefaultGraph => (0, ""),
        GraphNameRef::NamedNode(iri) => (1, iri.as_str()),
        GraphNameRef::BlankNode(node) => (2, node.as_str()),
    }
}
