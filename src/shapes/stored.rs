//! The triples of the store: those of a snapshot, with the changes of a transaction.
use crate::data::Triples;
use oxrdf::{NamedNode, NamedOrBlankNode, Quad, Term, Triple};
use penstock_base::error::GatewayError;
use penstock_store::{Error, Pattern, Read as _, Snapshot, Transaction};
use std::collections::{BTreeSet, HashMap, HashSet};
use std::ops::ControlFlow;
use std::sync::Arc;

/// The quads that a transaction adds to the state before it, and those that it removes.
#[derive(Debug, Default)]
pub struct Changes {
    added: HashMap<NamedOrBlankNode, Vec<Triple>>,
    removed: HashSet<Quad>,
}

impl Changes {
    /// Collects the changes of a transaction.
    ///
    /// # Errors
    /// As all reads of the store.
    pub fn collect(transaction: &Transaction<'_>) -> Result<Self, Error> {
        let mut changes = Self::default();
        transaction.for_each_change(&mut |quad, is_added| {
            if is_added {
                let triple = Triple::from(quad);
                changes.added.entry(triple.subject.clone()).or_default().push(triple);
            } else {
                changes.removed.insert(quad);
            }
        });
        Ok(changes)
    }

    /// Returns whether nothing was changed.
    pub fn is_empty(&self) -> bool {
        self.added.is_empty() && self.removed.is_empty()
    }

    /// Returns the changed subjects, each once.
    pub fn subjects(&self) -> BTreeSet<NamedNode> {
        let removed = self.removed.iter().map(|quad| &quad.subject);
        let subjects = self.added.keys().chain(removed).filter_map(|subject| match subject {
            NamedOrBlankNode::NamedNode(node) => Some(node.clone()),
            NamedOrBlankNode::BlankNode(_) => None,
        });
        subjects.collect()
    }

    /// Passes each changed triple to `visit`.
    pub fn for_each(&self, visit: &mut dyn FnMut(&NamedNode, &Term)) {
        for triple in self.added.values().flatten() {
            visit(&triple.predicate, &triple.object);
        }
        for quad in &self.removed {
            visit(&quad.predicate, &quad.object);
        }
    }
}

/// The triples of a state of the store.
#[derive(Debug, Clone)]
pub struct StoredTriples {
    snapshot: Arc<Snapshot>,
    changes: Option<Arc<Changes>>,
}

impl StoredTriples {
    /// Reads the state of a snapshot.
    pub fn new(snapshot: Arc<Snapshot>) -> Self {
        Self { snapshot, changes: None }
    }

    /// Reads the state after these changes of a transaction. `snapshot` is the state before them.
    pub fn with_changes(snapshot: Arc<Snapshot>, changes: Arc<Changes>) -> Self {
        Self { snapshot, changes: Some(changes) }
    }
}

impl Triples for StoredTriples {
    fn for_each(
        &self,
        subject: Option<&NamedOrBlankNode>,
        predicate: Option<&NamedNode>,
        object: Option<&Term>,
        visit: &mut dyn FnMut(Triple) -> ControlFlow<()>,
    ) -> Result<(), GatewayError> {
        // A triple can be in several graphs. Its quads follow each other only for some patterns.
        let mut seen = HashSet::new();
        let mut pass = |triple: Triple| {
            if seen.insert(triple.clone()) { visit(triple) } else { ControlFlow::Continue(()) }
        };
        if let Some(changes) = &self.changes {
            let is_match = |triple: &&Triple| {
                predicate.is_none_or(|sought| *sought == triple.predicate)
                    && object.is_none_or(|sought| *sought == triple.object)
            };
            let mut added = match subject {
                Some(subject) => changes.added.get(subject).into_iter().flatten().collect(),
                None => changes.added.values().flatten().collect::<Vec<_>>(),
            };
            added.retain(is_match);
            for triple in added {
                if pass(triple.clone()).is_break() {
                    return Ok(());
                }
            }
        }
        let pattern = Pattern {
            subject: subject.cloned(),
            predicate: predicate.cloned(),
            object: object.cloned(),
            graph: None,
        };
        self.snapshot.for_each(&pattern, &mut |quad| match &self.changes {
            Some(changes) if changes.removed.contains(&quad) => ControlFlow::Continue(()),
            _ => pass(Triple::from(quad)),
        })?;
        Ok(())
    }
}
