//! IRIs in place of blank nodes (RDF 1.1 Concepts, 3.5).
use oxrdf::{BlankNode, GraphName, NamedNode, NamedOrBlankNode, Quad, Term};
use std::collections::HashMap;

/// Blank nodes without a label of their own that one document may have; each takes some 40 bytes.
const MOST: usize = 1_000_000;

/// What becomes of blank nodes. The same document gives the same IRIs, so that it can be loaded again.
#[derive(Debug)]
pub(super) struct Skolem {
    /// What the IRIs begin with; without it blank nodes are refused.
    base: Option<String>,
    /// Whether every blank node of the format has a label.
    all_have_labels: bool,
    /// The numbers of those without a label, in the order of the document.
    numbers: HashMap<String, usize>,
}

impl Skolem {
    /// A labelled node becomes `<base>` and its label, another one `<base>.` and its number.
    pub(super) fn new(base: Option<String>, all_have_labels: bool) -> Self {
        Self { base, all_have_labels, numbers: HashMap::new() }
    }

    /// The quad without blank nodes; else why it cannot be had.
    pub(super) fn quad(&mut self, mut quad: Quad) -> Result<Quad, String> {
        if let NamedOrBlankNode::BlankNode(node) = &quad.subject {
            quad.subject = self.iri(node)?.into();
        }
        if let Term::BlankNode(node) = &quad.object {
            quad.object = self.iri(node)?.into();
        }
        if let GraphName::BlankNode(node) = &quad.graph_name {
            quad.graph_name = self.iri(node)?.into();
        }
        Ok(quad)
    }

    fn iri(&mut self, node: &BlankNode) -> Result<NamedNode, String> {
        let Some(base) = &self.base else {
            return Err(
                "there is a blank node, and Penstock keeps none: it would be stored anew each time the \
                 document is loaded; --skolemize IRI makes IRIs of them that begin with IRI, which must \
                 be this document's own"
                    .to_owned(),
            );
        };
        let label = node.as_str();
        // What the parser makes up is a random number of 128 bits.
        let text = if self.all_have_labels
            || label.len() < 30
            || node.as_ref().unique_id().is_none()
        {
            format!("{base}{label}")
        } else {
            let next = self.numbers.len() + 1;
            if next > MOST && !self.numbers.contains_key(label) {
                return Err(format!(
                    "the document has more than {MOST} blank nodes without a label; write it as N-Quads, where \
                     each has one"
                ));
            }
            let number = *self.numbers.entry(label.to_owned()).or_insert(next);
            // No label begins with a full stop.
            format!("{base}.{number}")
        };
        super::iri(&text)
    }
}
