//! Detects an object that one REPLACE or UPDATE gives more than once. Each message of a source counts as a request.
//!
//! Both modes state the final values of an object, so a second mention with other values is a contradiction within the
//! request. Mentions are compared property by property, because one object can occur under two shapes (a plant as an
//! object of the request and nested in another one). Only properties of both shapes are compared.
use super::node::{GivenField, GivenObject, GivenValue};
use crate::mapping::{self, Property, Shape};
use oxrdf::NamedNode;
use penstock_store::FastMap;
use std::collections::hash_map::{Entry, RandomState};
use std::hash::{BuildHasher, DefaultHasher, Hash, Hasher};

/// The values given so far for each object with a URI. They are stored as digests, which are small, under random keys.
#[derive(Debug, Default)]
pub(super) struct RepeatedObjects {
    given: FastMap<u128, u128>,
    /// The keys in `given` that were added since the savepoint; `None` without one.
    since_savepoint: Option<Vec<u128>>,
    keys: (RandomState, RandomState),
}

/// How a mention of a property compares with an earlier one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Mention {
    First,
    Same,
    Different,
}

impl RepeatedObjects {
    /// Records the values given for one property of one object, and compares them with an earlier mention. `None` means
    /// that the property is absent, in modes where that differs from empty.
    pub(super) fn record_mention(
        &mut self,
        uri: &NamedNode,
        property: &Property,
        given: Option<&[GivenValue<'_>]>,
    ) -> Mention {
        let place = self.digest_place(uri, property);
        let content = match given {
            None => self.compute_digest(|state| false.hash(state)),
            Some(values) => self.digest_values(property, values),
        };
        match self.given.entry(place) {
            Entry::Vacant(entry) => {
                entry.insert(content);
                if let Some(recent) = &mut self.since_savepoint {
                    recent.push(place);
                }
                Mention::First
            }
            Entry::Occupied(entry) if *entry.get() == content => Mention::Same,
            Entry::Occupied(_) => Mention::Different,
        }
    }

    /// Returns whether a mention of this property of this object was recorded.
    pub(super) fn has_mention(&self, uri: &NamedNode, property: &Property) -> bool {
        self.given.contains_key(&self.digest_place(uri, property))
    }

    pub(super) fn set_savepoint(&mut self) {
        self.since_savepoint.get_or_insert_default().clear();
    }

    /// Forgets what was recorded since the savepoint.
    pub(super) fn roll_back_to_savepoint(&mut self) {
        for place in self.since_savepoint.take().into_iter().flatten() {
            self.given.remove(&place);
        }
    }

    /// Returns the digest of a property of an object.
    fn digest_place(&self, uri: &NamedNode, property: &Property) -> u128 {
        self.compute_digest(|state| {
            uri.as_str().hash(state);
            property.predicate.as_str().hash(state);
            hash_kind(&property.value, state);
        })
    }

    /// Returns the digest of a set of values, regardless of their order unless the array is ordered.
    fn digest_values(&self, property: &Property, values: &[GivenValue<'_>]) -> u128 {
        let mut digests: Vec<u128> = values
            .iter()
            .map(|value| match value {
                GivenValue::Term(term) => self.compute_digest(|state| term.hash(state)),
                // The values of a named object are recorded under the object itself.
                GivenValue::Object(GivenObject { uri: Some(uri), .. }) => {
                    self.compute_digest(|state| oxrdf::Term::from(uri.clone()).hash(state))
                }
                GivenValue::Object(node) => self.digest_node(node),
            })
            .collect();
        if !property.is_ordered {
            digests.sort_unstable();
            digests.dedup();
        }
        self.compute_digest(|state| digests.hash(state))
    }

    /// Returns the digest of everything in a nested object without a URI.
    fn digest_node(&self, node: &GivenObject<'_>) -> u128 {
        let fields: Vec<(usize, Vec<u128>)> = node
            .given
            .iter()
            .map(|GivenField { field_index: place, values, .. }| {
                let mut digests: Vec<u128> = values
                    .iter()
                    .map(|value| match value {
                        GivenValue::Term(term) => self.compute_digest(|state| term.hash(state)),
                        GivenValue::Object(inner) => {
                            let content = self.digest_node(inner);
                            self.compute_digest(|state| {
                                inner.uri.hash(state);
                                content.hash(state);
                            })
                        }
                    })
                    .collect();
                if node.shape.property_at(*place).is_none_or(|property| !property.is_ordered) {
                    digests.sort_unstable();
                }
                (*place, digests)
            })
            .collect();
        self.compute_digest(|state| fields.hash(state))
    }

    fn compute_digest(&self, feed: impl Fn(&mut DefaultHasher)) -> u128 {
        let half = |key: &RandomState| {
            let mut state = key.build_hasher();
            feed(&mut state);
            u128::from(state.finish())
        };
        (half(&self.keys.0) << 64) | half(&self.keys.1)
    }
}

/// Hashes the kind of a property. Two fields of one property differ in the kind of their values or in the namespaces of
/// their objects. All other links, resources or nested objects, count as one kind.
fn hash_kind(value: &mapping::Value, state: &mut DefaultHasher) {
    match value {
        mapping::Value::Object(Shape { uri_prefix: Some(prefix), .. }) => prefix.hash(state),
        mapping::Value::Resource | mapping::Value::Object(_) => 0_u8.hash(state),
        mapping::Value::Literal(kind) => kind.hash(state),
    }
}
