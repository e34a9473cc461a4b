//! The objects of a request after the check against the mapping, ready to be written.
use crate::mapping::Shape;
use oxrdf::{NamedNode, Term};

/// One object of the request, top-level or nested.
#[derive(Debug)]
pub(super) struct GivenObject<'m> {
    pub(super) shape: &'m Shape,
    /// Its position in the request (JSON Pointer), for the answer and for findings.
    pub(super) pointer: String,
    pub(super) uri: Option<NamedNode>,
    /// The given fields, in the order of the mapping: minted identifiers must not depend on the order in the request.
    pub(super) given: Vec<GivenField<'m>>,
}

/// A field that the request gives. An empty array is a given field without values.
#[derive(Debug)]
pub(super) struct GivenField<'m> {
    /// The index of the field in its shape.
    pub(super) field_index: usize,
    pub(super) values: Vec<GivenValue<'m>>,
}

/// One value of a field.
#[derive(Debug)]
pub(super) enum GivenValue<'m> {
    Term(Term),
    Object(GivenObject<'m>),
}

impl GivenObject<'_> {
    /// Returns whether the object is only a URI without fields.
    pub(super) fn is_reference(&self) -> bool {
        self.uri.is_some() && self.given.is_empty()
    }

    /// Rewrites the IRIs of the object, of those nested in it, and those that they refer to. Literals stay. `rewrite`
    /// returns `None` for an IRI that stays.
    pub(super) fn rewrite_iris(&mut self, rewrite: &dyn Fn(&str) -> Option<String>) {
        let replace = |iri: &mut NamedNode| {
            if let Some(new) = rewrite(iri.as_str()) {
                *iri = NamedNode::new_unchecked(new);
            }
        };
        self.uri.as_mut().map(replace);
        for value in self.given.iter_mut().flat_map(|given| &mut given.values) {
            match value {
                GivenValue::Object(nested) => nested.rewrite_iris(rewrite),
                GivenValue::Term(Term::NamedNode(iri)) => replace(iri),
                GivenValue::Term(_) => {}
            }
        }
    }

    /// Returns whether a field has a value.
    pub(super) fn has_values(&self) -> bool {
        self.given.iter().any(|given| !given.values.is_empty())
    }
}
