//! The terms of an evaluation: codes of the store, and numbers.
use oxrdf::{NamedNode, NamedNodeRef};
use penstock_store::TermCode;

/// The term in all positions of a pattern that only checks the limits. See [`crate::plan`]. It has a blank, so that
/// neither a request nor a quad can have it.
pub(crate) const CHECK: NamedNodeRef<'_> = NamedNodeRef::new_unchecked("penstock check");

/// The beginning of the name of conditions that the objects of a pattern have to meet. Their number follows, and the property.
/// See [`crate::prefilter`].
const CONDITIONS: &str = "penstock conditions ";

/// A term during the evaluation of one request. Equal if and only if the terms are.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) enum InternalTerm {
    /// A term that quads of the store can have.
    Stored(TermCode),
    /// Any other term, by its number in the [`Dataset`](crate::dataset::Dataset).
    Computed(u32),
    /// [`CHECK`].
    Check,
    /// The name of [`name_conditions`].
    Conditions(usize),
}

impl InternalTerm {
    pub(crate) const DEFAULT_GRAPH: Self = Self::Stored(TermCode::DEFAULT_GRAPH);

    /// Returns whether it is an IRI or a blank node of the store.
    pub(crate) fn is_name(&self) -> bool {
        matches!(self, Self::Stored(code) if code.subject_order().is_some())
    }
}

/// Returns the name of the conditions with this number, for the predicate or the graph of a pattern.
pub(crate) fn name_conditions(number: usize, property: Option<&NamedNode>) -> NamedNode {
    let property = property.map(NamedNode::as_str).unwrap_or_default();
    NamedNode::new_unchecked(format!("{CONDITIONS}{number} {property}"))
}

/// Returns the number of the conditions that have this name.
pub(crate) fn to_conditions(name: &NamedNode) -> Option<usize> {
    name.as_str().strip_prefix(CONDITIONS)?.split(' ').next()?.parse().ok()
}
