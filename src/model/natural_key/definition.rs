//! The natural keys of a mapping, and how two keys of one namespace differ.
use super::index::describe_value;
use super::{KeyDigest, KeyParent, KeyPart, NaturalKey};
use crate::mapping::{KeyScope, Mapping, Property, Shape};
use crate::namespace;
use penstock_store::{Error, Read};
use std::collections::BTreeSet;

/// Returns the natural keys of a mapping, each namespace once. Namespaces that are not defined have none.
pub(crate) fn collect_keys(read: &dyn Read, mapping: &Mapping) -> Result<Vec<NaturalKey>, Error> {
    let (keys, _) = collect_keys_and_conflict(read, mapping)?;
    Ok(keys)
}

/// Returns the natural keys of a mapping, and the reason why two of its objects do not agree on the key of a namespace.
pub(super) fn collect_keys_and_conflict(
    read: &dyn Read,
    mapping: &Mapping,
) -> Result<(Vec<NaturalKey>, Option<String>), Error> {
    let (mut keys, mut conflict) = (Vec::new(), None);
    let mut waiting = vec![(&mapping.root, None)];
    while let Some((shape, parent)) = waiting.pop() {
        if let Some(key) = NaturalKey::of_shape(read, shape, parent)? {
            conflict = conflict.or(merge_key(&mut keys, key));
        }
        waiting.extend(
            shape
                .iter_nested()
                .map(|(_, property, nested)| (nested, Some(ParentLink { shape, property }))),
        );
    }
    Ok((keys, conflict))
}

/// The link from a shape to the objects nested in it.
#[derive(Debug, Clone, Copy)]
struct ParentLink<'s> {
    shape: &'s Shape,
    property: &'s Property,
}

/// Adds a key, or its links to the key of the same namespace. Returns the reason why the two are different keys.
pub(crate) fn merge_key(keys: &mut Vec<NaturalKey>, key: NaturalKey) -> Option<String> {
    let Some(known) = keys.iter_mut().find(|known| known.namespace.name == key.namespace.name)
    else {
        keys.push(key);
        return None;
    };
    let difference = known.describe_difference(&key);
    if difference.is_none()
        && let (Some(known), Some(parent)) = (&mut known.parent, key.parent)
    {
        known.links.extend(parent.links);
        known.has_lists |= parent.has_lists;
    }
    difference
}

impl NaturalKey {
    /// Returns the key of a shape; `None` if it has none, or if a namespace is not defined.
    fn of_shape(
        read: &dyn Read,
        shape: &Shape,
        parent: Option<ParentLink<'_>>,
    ) -> Result<Option<Self>, Error> {
        let Some(fields) = shape.key_fields() else { return Ok(None) };
        let Some(namespace) = namespace::get(read, &shape.namespace)? else { return Ok(None) };
        let parent = match (fields.scope, parent) {
            (KeyScope::Parent, Some(link)) => {
                let Some(parent) = namespace::get(read, &link.shape.namespace)? else {
                    return Ok(None);
                };
                let links = BTreeSet::from([link.property.predicate.clone()]);
                Some(KeyParent {
                    prefix: parent.identifier_prefix(),
                    namespace: parent.name,
                    links,
                    has_lists: link.property.is_ordered,
                })
            }
            _ => None,
        };
        let properties = fields.indexes.iter().filter_map(|index| shape.property_at(*index));
        let parts = properties.map(|property| KeyPart {
            predicate: property.predicate.clone(),
            value: property.value.clone(),
        });
        let mut key = Self {
            prefix: namespace.identifier_prefix(),
            graph: namespace.graph_name().into(),
            namespace,
            parts: parts.collect(),
            parent,
            digest: KeyDigest::default(),
        };
        key.digest = key.compute_digest();
        Ok(Some(key))
    }

    /// Returns whether the entries of the key begin with this digest.
    pub(crate) fn has_digest(&self, digest: &[u8]) -> bool {
        self.digest == digest
    }

    /// Returns whether the index has the entries of this key if it has those of `other`.
    pub(crate) fn is_part_of(&self, other: &Self) -> bool {
        self.digest == other.digest
            && match (&self.parent, &other.parent) {
                (Some(own), Some(other)) => {
                    own.links.is_subset(&other.links) && own.has_lists <= other.has_lists
                }
                (None, None) => true,
                _ => false,
            }
    }

    /// Returns how another key of the same namespace differs; `None` if it is the same.
    pub(super) fn describe_difference(&self, other: &Self) -> Option<String> {
        if self.parts != other.parts {
            let (one, other) = (other.describe_parts(), self.describe_parts());
            return Some(format!("it is {one} in one, {other} in the other"));
        }
        let name = |key: &Self| key.parent.as_ref().map(|parent| parent.namespace.clone());
        let describe = |parent: Option<String>| match parent {
            Some(parent) => format!("in a parent in the namespace `{parent}`"),
            None => "in the whole namespace".to_owned(),
        };
        let (own, other) = (name(self), name(other));
        (own != other).then(|| {
            let (one, other) = (describe(other), describe(own));
            format!("it is unique {one} in one, {other} in the other")
        })
    }

    fn describe_parts(&self) -> String {
        let parts = self.parts.iter();
        let names =
            parts.map(|part| format!("{} ({})", part.predicate, describe_value(&part.value)));
        names.collect::<Vec<_>>().join(", ")
    }
}
