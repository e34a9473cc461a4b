//! What the operations of an update have changed so far: later operations of the same request see it.
use crate::internal_term::InternalTerm;
use oxrdf::{GraphName, Quad, Term};
use std::collections::{HashMap, HashSet};

/// Quads that were added to the state before the request, and quads that were removed from it.
#[derive(Debug, Default)]
pub(crate) struct Delta {
    added: HashSet<Quad>,
    removed: HashSet<Quad>,
}

impl Delta {
    /// Records that a quad was added, which did not exist.
    pub(crate) fn record_insertion(&mut self, quad: Quad) {
        if !self.removed.remove(&quad) {
            self.added.insert(quad);
        }
    }

    /// Records that a quad was removed, which existed.
    pub(crate) fn record_removal(&mut self, quad: Quad) {
        if !self.added.remove(&quad) {
            self.removed.insert(quad);
        }
    }

    /// Returns the changes as codes, unless there are none.
    pub(crate) fn to_codes(&self, encode: impl Fn(Term) -> InternalTerm) -> Option<CodedDelta> {
        if self.added.is_empty() && self.removed.is_empty() {
            return None;
        }
        let encode_quad = |quad: &Quad| {
            let graph = match &quad.graph_name {
                GraphName::NamedNode(node) => encode(node.clone().into()),
                GraphName::BlankNode(node) => encode(node.clone().into()),
                GraphName::DefaultGraph => InternalTerm::DEFAULT_GRAPH,
            };
            let subject = encode(Term::from(quad.subject.clone()));
            let predicate = encode(quad.predicate.clone().into());
            [subject, predicate, encode(quad.object.clone()), graph]
        };
        let mut coded = CodedDelta::default();
        for quad in &self.added {
            let quad = encode_quad(quad);
            coded.added.entry(quad[0].clone()).or_default().push(quad);
        }
        coded.removed = self.removed.iter().map(encode_quad).collect();
        Some(coded)
    }
}

/// A [`Delta`] in the form of one operation's evaluation.
#[derive(Debug, Default)]
pub(crate) struct CodedDelta {
    /// By subject.
    added: HashMap<InternalTerm, Vec<[InternalTerm; 4]>>,
    removed: HashSet<[InternalTerm; 4]>,
}

impl CodedDelta {
    /// Returns the added quads that match a pattern.
    pub(crate) fn find_added(&self, pattern: [Option<&InternalTerm>; 4]) -> Vec<[InternalTerm; 4]> {
        let is_match = |quad: &&[InternalTerm; 4]| {
            pattern
                .iter()
                .zip(quad.iter())
                .all(|(sought, term)| sought.is_none_or(|sought| sought == term))
        };
        match pattern[0] {
            Some(subject) => {
                let quads = self.added.get(subject).into_iter().flatten();
                quads.filter(is_match).cloned().collect()
            }
            None => self.added.values().flatten().filter(is_match).cloned().collect(),
        }
    }

    /// Returns whether a quad of the store was removed.
    pub(crate) fn is_removed(&self, quad: &[InternalTerm; 4]) -> bool {
        self.removed.contains(quad)
    }

    /// Returns the graphs of the added quads.
    pub(crate) fn added_graphs(&self) -> HashSet<InternalTerm> {
        self.added.values().flatten().map(|quad| quad[3].clone()).collect()
    }
}
