//! What a validation is about: the objects to validate, and what a shapes graph reads beside them.
use oxrdf::{NamedNode, Term};
use std::collections::{BTreeSet, HashSet};

/// The objects that are validated.
#[derive(Debug, Clone, Default)]
pub struct Scope {
    /// The members of the Business Object: what a `ShEx` schema validates.
    pub members: BTreeSet<NamedNode>,
    /// The objects nested in them. SHACL's targets choose among both.
    pub nested: BTreeSet<NamedNode>,
    /// What else these objects make targets of SHACL: the values of `sh:targetObjectsOf`, and those of `sh:targetNode` that
    /// they refer to. They need not be stored, and may be literals.
    pub values: HashSet<Term>,
}

impl Scope {
    /// Returns whether there is nothing to validate.
    pub fn is_empty(&self) -> bool {
        self.members.is_empty() && self.nested.is_empty() && self.values.is_empty()
    }

    /// Returns whether a term is validated.
    pub fn contains(&self, term: &Term) -> bool {
        self.values.contains(term)
            || matches!(term, Term::NamedNode(node) if self.members.contains(node) || self.nested.contains(node))
    }

    /// Keeps the members and nested objects for which `is_kept` holds.
    ///
    /// # Errors
    /// The first error of `is_kept`.
    pub fn retain<E>(
        &mut self,
        mut is_kept: impl FnMut(&NamedNode) -> Result<bool, E>,
    ) -> Result<(), E> {
        for nodes in [&mut self.members, &mut self.nested] {
            for node in std::mem::take(nodes) {
                if is_kept(&node)? {
                    nodes.insert(node);
                }
            }
        }
        Ok(())
    }
}

/// The properties that a shapes graph reads: objects that have them must be validated when what they refer to changes.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Properties {
    /// Those from the validated object to a value.
    pub forward: BTreeSet<NamedNode>,
    /// Those from a value to the validated object (`sh:inversePath`, `^`).
    pub inverse: BTreeSet<NamedNode>,
}

/// The targets of a shapes graph that need not be subjects. They may be literals.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Targets {
    /// The values of `sh:targetNode`.
    pub nodes: HashSet<Term>,
    /// The values of `sh:targetObjectsOf`.
    pub objects_of: BTreeSet<NamedNode>,
}
