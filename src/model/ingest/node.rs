//! The objects of a request after the check against the mapping, ready to be written.
use crate::mapping::{Property, Shape};
use oxrdf::{NamedNode, Term};
use penstock_store::FastSet;
use std::collections::HashSet;

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
    /// What a MERGE replaces, if other stored values stay. `None` if all values are given.
    pub(super) partial: Option<Box<Partial<'m>>>,
}

/// The part of a field that a MERGE replaces. The other stored values stay.
#[derive(Debug)]
pub(super) enum Partial<'m> {
    /// The texts of a language map in these languages, in lower case.
    Languages(FastSet<String>),
    /// The members that it removes from a map.
    Members(RemovedMembers<'m>),
}

/// The members that a MERGE removes from a map.
#[derive(Debug, Default)]
pub(super) struct RemovedMembers<'m> {
    /// Each member, with only its key.
    pub(super) keys: Vec<GivenObject<'m>>,
    /// The URIs of the stored members among them.
    pub(super) uris: HashSet<NamedNode>,
}

/// One value of a field.
#[derive(Debug)]
pub(super) enum GivenValue<'m> {
    Term(Term),
    Object(GivenObject<'m>),
}

impl<'m> GivenField<'m> {
    /// Creates a field of which all values are given.
    pub(super) fn new(field_index: usize, values: Vec<GivenValue<'m>>) -> Self {
        Self { field_index, values, partial: None }
    }

    /// Returns whether stored values of the field can stay beside the given ones.
    pub(super) fn keeps_others(&self) -> bool {
        self.partial.is_some()
    }

    /// Returns whether the field removes some of its stored values, and keeps others.
    pub(super) fn removes_some(&self) -> bool {
        match self.partial.as_deref() {
            None => false,
            Some(Partial::Languages(languages)) => !languages.is_empty(),
            Some(Partial::Members(removed)) => !removed.keys.is_empty(),
        }
    }

    /// Returns whether a stored value of the field stays beside the given ones.
    pub(super) fn keeps(&self, stored: &Term) -> bool {
        match (self.partial.as_deref(), stored) {
            (None, _) => false,
            (Some(Partial::Members(removed)), Term::NamedNode(uri)) => !removed.uris.contains(uri),
            (Some(Partial::Languages(languages)), stored) => {
                find_language(stored).is_none_or(|language| !languages.contains(&language))
            }
            (Some(Partial::Members(_)), _) => true,
        }
    }

    /// Returns whether the field has a value that is stored.
    pub(super) fn adds_some(&self) -> bool {
        self.values.iter().any(|value| match value {
            GivenValue::Term(_) => true,
            GivenValue::Object(object) => !object.only_removes(),
        })
    }
}

/// Returns the language of a text in lower case, because tags are equal whatever their case. Other terms have none.
pub(super) fn find_language(term: &Term) -> Option<String> {
    let Term::Literal(literal) = term else { return None };
    literal.language().map(str::to_ascii_lowercase)
}

impl<'m> GivenObject<'m> {
    /// Returns the field with the value of a member of a map, if the request gives only a part of the value.
    pub(super) fn find_partial_value(&self) -> Option<&'m Property> {
        let (place, property) = self.shape.map_member()?.value?;
        let given = self.given.first().filter(|given| given.field_index == place)?;
        given.keeps_others().then_some(property)
    }

    /// Returns whether the object is a member of a map of which a MERGE removes some values, and adds none.
    pub(super) fn only_removes(&self) -> bool {
        self.find_partial_value().is_some()
            && self.given.first().is_some_and(|given| !given.adds_some())
    }

    /// Returns whether the object is only a URI without fields. The name of a member of a map is no field.
    pub(super) fn is_reference(&self) -> bool {
        self.uri.is_some()
            && match self.given.as_slice() {
                [] => true,
                [only] => {
                    self.shape.map_member().is_some_and(|map| map.key_index == only.field_index)
                }
                _ => false,
            }
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
        self.given.iter().any(GivenField::adds_some)
    }
}
