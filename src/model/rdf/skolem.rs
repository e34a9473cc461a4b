//! Replaces blank nodes by IRIs (RDF 1.1 Concepts, 3.5).
use oxrdf::{BlankNode, GraphName, NamedNode, NamedOrBlankNode, Quad, Term};
use std::collections::HashMap;

/// The maximum number of blank nodes without a label in one document. Each needs about 40 bytes.
const MAX_UNLABELLED_NODES: usize = 1_000_000;

/// Replaces or refuses blank nodes. The same document gives the same IRIs, so that it can be loaded again.
#[derive(Debug)]
pub(super) struct Skolemizer {
    /// The prefix of the IRIs. Without it, blank nodes are refused.
    base: Option<String>,
    /// How a client gives the prefix, for the error that names it.
    option: &'static str,
    /// Whether every blank node of the format has a label.
    all_have_labels: bool,
    /// The numbers of blank nodes without a label, in the order of the document.
    numbers: HashMap<String, usize>,
}

impl Skolemizer {
    /// Creates a skolemizer. A blank node with a label becomes the IRI `<base><label>`, one without a label becomes
    /// `<base>.<number>`.
    pub(super) fn new(base: Option<String>, option: &'static str, all_have_labels: bool) -> Self {
        Self { base, option, all_have_labels, numbers: HashMap::new() }
    }

    /// Replaces the blank nodes of a quad, or returns why the quad is refused.
    pub(super) fn replace_blank_nodes(&mut self, mut quad: Quad) -> Result<Quad, String> {
        if let NamedOrBlankNode::BlankNode(node) = &quad.subject {
            quad.subject = self.iri_for_node(node)?.into();
        }
        if let Term::BlankNode(node) = &quad.object {
            quad.object = self.iri_for_node(node)?.into();
        }
        if let GraphName::BlankNode(node) = &quad.graph_name {
            quad.graph_name = self.iri_for_node(node)?.into();
        }
        Ok(quad)
    }

    fn iri_for_node(&mut self, node: &BlankNode) -> Result<NamedNode, String> {
        let Some(base) = &self.base else {
            return Err(format!(
                "there is a blank node, which Penstock does not store: each load of the document would add \
                 another one; with {}, blank nodes become IRIs that begin with IRI, which must \
                 be unique to this document",
                self.option
            ));
        };
        let label = node.as_str();
        // The parser's own labels are random numbers of 128 bits.
        let text = if self.all_have_labels
            || label.len() < 30
            || node.as_ref().unique_id().is_none()
        {
            format!("{base}{label}")
        } else {
            let next = self.numbers.len() + 1;
            if next > MAX_UNLABELLED_NODES && !self.numbers.contains_key(label) {
                return Err(format!(
                    "the document has more than {MAX_UNLABELLED_NODES} blank nodes without a label; write it as N-Quads, where \
                     each has one"
                ));
            }
            let number = *self.numbers.entry(label.to_owned()).or_insert(next);
            // No label begins with a full stop.
            format!("{base}.{number}")
        };
        super::parse_iri(&text)
    }
}
