//! Objects of a request that fit the mapping, ready to be written.
use crate::mapping::Shape;
use oxrdf::{NamedNode, Term};

/// One object of the request, its own or nested.
#[derive(Debug)]
pub(super) struct Node<'m> {
    pub(super) shape: &'m Shape,
    /// Where it stood (JSON Pointer), for the answer and for findings.
    pub(super) pointer: String,
    pub(super) uri: Option<NamedNode>,
    /// The fields present, in the mapping's order: what is minted must not depend on the order given.
    pub(super) given: Vec<Given<'m>>,
}

/// A field that is present; an empty array is present without a value.
#[derive(Debug)]
pub(super) struct Given<'m> {
    /// The field's place in its shape.
    pub(super) place: usize,
    pub(super) values: Vec<Value<'m>>,
}

/// One value of a field.
#[derive(Debug)]
pub(super) enum Value<'m> {
    Term(Term),
    Object(Node<'m>),
}

impl Node<'_> {
    /// Whether it names an object and says nothing about it.
    pub(super) fn is_reference(&self) -> bool {
        self.uri.is_some() && self.given.is_empty()
    }

    /// Whether some field has a value.
    pub(super) fn has_values(&self) -> bool {
        self.given.iter().any(|given| !given.values.is_empty())
    }
}
