//! The natural keys of mappings. All mappings that give the objects of a namespace a key must agree on it.
use super::index::{self, ENTRIES};
use super::{KeyParent, KeyPart, NaturalKey};
use crate::catalogue;
use crate::change_feed::Watch;
use crate::mapping::{KeyDefinition, KeyScope, Mapping, Property, Shape};
use crate::namespace::{self, KnownNamespaces, Namespace};
use crate::resource::Compiled;
use penstock_base::error::{ErrorClass, Finding, GatewayError};
use penstock_resources::namespace::Generator;
use penstock_store::{Error, Read, Store, Transaction};
use std::collections::BTreeSet;

/// The number of entries that one commit removes.
const ENTRIES_PER_CLEANUP: usize = 1000;

/// Returns the natural keys of a mapping, each namespace once. Namespaces that are not defined have none.
pub(crate) fn collect_keys(read: &dyn Read, mapping: &Mapping) -> Result<Vec<NaturalKey>, Error> {
    let (keys, _) = collect_keys_and_conflict(read, mapping)?;
    Ok(keys)
}

/// Returns the natural keys of a mapping, and the reason why two of its objects do not agree on the key of a namespace.
fn collect_keys_and_conflict(
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
            digest: index::KeyDigest::default(),
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
    fn describe_difference(&self, other: &Self) -> Option<String> {
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
        let names = parts
            .map(|part| format!("{} ({})", part.predicate, index::describe_value(&part.value)));
        names.collect::<Vec<_>>().join(", ")
    }
}

/// Checks the keys of a mapping against those of all other definitions, and against its namespaces.
///
/// # Errors
/// `ErrorClass::Invalid` if two mappings do not agree on the key of a namespace, or if a namespace cannot have a key.
pub(crate) fn check_keys(
    transaction: &Transaction<'_>,
    id: Option<&str>,
    mapping: &Mapping,
) -> Result<(), GatewayError> {
    let keys = collect_keys(transaction, mapping)?;
    if keys.is_empty() {
        return Ok(());
    }
    let mut others = catalogue::list_definitions_with_key(transaction, &list_namespaces(&keys))?;
    others.retain(|other| Some(other.object.id.as_str()) != id);
    OtherKeys::collect(transaction, others)?.check(transaction, "", mapping)?;
    Ok(())
}

/// Returns the keys that stored definitions have for the namespaces of these keys.
pub(super) fn read_stored_keys(
    read: &dyn Read,
    of: &[NaturalKey],
) -> Result<Vec<NaturalKey>, Error> {
    let mut keys = Vec::new();
    for compiled in catalogue::list_definitions_with_key(read, &list_namespaces(of))? {
        for key in collect_keys(read, &compiled.mapping)? {
            merge_key(&mut keys, key);
        }
    }
    Ok(keys)
}

fn list_namespaces(keys: &[NaturalKey]) -> BTreeSet<&str> {
    keys.iter().map(|key| key.namespace.name.as_str()).collect()
}

/// The keys that those of a mapping must agree with.
#[derive(Debug)]
pub(crate) struct OtherKeys {
    namespaces: Vec<Namespace>,
    /// The name of each Business Object with its keys.
    keys: Vec<(String, Vec<NaturalKey>)>,
}

impl OtherKeys {
    /// Reads the keys of the stored definitions with these ids.
    pub(crate) fn read(
        transaction: &Transaction<'_>,
        counts: impl Fn(&str) -> bool,
    ) -> Result<Self, GatewayError> {
        let stored = catalogue::list_stored(transaction)?;
        let compiled = stored.into_iter().filter_map(|(_, compiled)| compiled);
        Self::collect(transaction, compiled.filter(|compiled| counts(&compiled.object.id)))
    }

    /// Collects the keys of these definitions.
    fn collect(
        transaction: &Transaction<'_>,
        definitions: impl IntoIterator<Item = Compiled>,
    ) -> Result<Self, GatewayError> {
        let mut keys = Vec::new();
        for Compiled { object, mapping, .. } in definitions {
            keys.push((object.definition.name, collect_keys(transaction, &mapping)?));
        }
        Ok(Self { namespaces: namespace::list(transaction, None, usize::MAX)?, keys })
    }

    /// Checks the keys of the mapping of the Business Object `name`, returns them, and adds them, so that the next mapping
    /// must agree with them too.
    ///
    /// # Errors
    /// As [`check_keys`].
    pub(crate) fn check(
        &mut self,
        transaction: &Transaction<'_>,
        name: &str,
        mapping: &Mapping,
    ) -> Result<Vec<NaturalKey>, GatewayError> {
        let (keys, conflict) = collect_keys_and_conflict(transaction, mapping)?;
        if let Some(difference) = conflict {
            return Err(invalid_key_error(format!(
                "the mapping has two keys for the objects of one namespace: {difference}; use the same key, or another namespace"
            )));
        }
        for key in &keys {
            self.check_namespace(key)?;
        }
        for (business_object, others) in &self.keys {
            for other in others {
                let key = keys.iter().find(|key| key.namespace.name == other.namespace.name);
                if let Some(difference) = key.and_then(|key| other.describe_difference(key)) {
                    return Err(invalid_key_error(format!(
                        "the Business Object {business_object:?} has another key for the objects of the namespace `{}`: \
                         {difference}; all mappings use the same one",
                        other.namespace.name
                    )));
                }
            }
        }
        self.keys.push((name.to_owned(), keys.clone()));
        Ok(keys)
    }

    /// Checks that no identifier can be equal to a key in the namespace.
    fn check_namespace(&self, key: &NaturalKey) -> Result<(), GatewayError> {
        let Namespace { name, generator, .. } = &key.namespace;
        if matches!(generator, Generator::Counter | Generator::Alphanumeric) {
            return Err(invalid_key_error(format!(
                "the namespace `{name}` has the generator {}, so an identifier could be equal to a key; use uuid or manual",
                generator.name()
            )));
        }
        let inside = self
            .namespaces
            .iter()
            .find(|other| other.name != *name && other.uri_base.starts_with(&key.prefix));
        if let Some(inside) = inside {
            return Err(invalid_key_error(format!(
                "the base of the namespace `{name}` is a prefix of the base of `{}`, so a key could be equal to an identifier \
                 there; use a namespace with another base",
                inside.name
            )));
        }
        Ok(())
    }
}

fn invalid_key_error(message: String) -> GatewayError {
    GatewayError::with_findings(
        ErrorClass::Invalid,
        "the key of the mapping is not valid",
        vec![Finding::at_pointer("/config", message)],
    )
}

/// Checks the base of a new namespace: it must not begin with the base of a namespace with a key. `known` are the namespaces
/// that there are.
///
/// # Errors
/// `ErrorClass::Conflict`.
pub(crate) fn check_new_base(
    read: &dyn Read,
    new: &Namespace,
    known: &KnownNamespaces,
) -> Result<(), GatewayError> {
    let around = known.find_overlaps(new, &[]).around;
    if around.is_empty() {
        return Ok(());
    }
    for (name, business_object) in catalogue::list_keyed_namespaces(read)? {
        if let Some(other) = around.iter().find(|other| other.name == name) {
            return Err(GatewayError::new(
                ErrorClass::Conflict,
                format!(
                    "the base {:?} begins with the base {:?} of the namespace {name:?}, whose objects have a key in the \
                     Business Object {business_object:?}; a key could be equal to an identifier in the new namespace. Choose \
                     another base",
                    new.uri_base, other.uri_base
                ),
            ));
        }
    }
    Ok(())
}

/// Checks the new base of a namespace that has data: keys must not be equal to identifiers in another namespace.
///
/// # Errors
/// `ErrorClass::Conflict`.
pub(crate) fn check_moved_base(
    read: &dyn Read,
    moved: &Namespace,
    others: &KnownNamespaces,
) -> Result<(), GatewayError> {
    check_new_base(read, moved, others)?;
    let mut keyed = catalogue::list_keyed_namespaces(read)?.into_iter();
    let inside = others.find_overlaps(moved, &[]).inside.into_iter().next();
    match (keyed.find(|(name, _)| *name == moved.name), inside) {
        (Some((_, business_object)), Some(inside)) => Err(GatewayError::new(
            ErrorClass::Conflict,
            format!(
                "the base {:?} is a prefix of the base {:?} of the namespace {:?}, and the Business Object \
                 {business_object:?} gives the objects of {:?} a key; a key could be equal to an identifier there. Choose \
                 another base",
                moved.uri_base, inside.uri_base, inside.name, moved.name
            ),
        )),
        _ => Ok(()),
    }
}

/// Checks that a new mapping does not leave out a key that the stored one has. An empty key (`key: []`) removes it.
/// Objects of the two mappings correspond by the names of the fields that lead to them.
///
/// # Errors
/// `ErrorClass::Unconfirmed`, which names the objects.
pub(crate) fn check_omitted_key(before: &Mapping, after: &Mapping) -> Result<(), GatewayError> {
    let mut omitted = Vec::new();
    let mut waiting = vec![(&before.root, &after.root, String::new())];
    while let Some((before, after, path)) = waiting.pop() {
        if before.key_fields().is_some() && after.key == KeyDefinition::Omitted {
            let place = if path.is_empty() { "the root" } else { path.as_str() };
            omitted.push(format!("{place} (key: [{}])", before.key_names().join(", ")));
        }
        for (field, _, nested) in before.iter_nested() {
            let mut others = after.iter_nested();
            if let Some((_, _, other)) = others.find(|(other, _, _)| other.name == field.name) {
                let separator = if path.is_empty() { "" } else { "." };
                waiting.push((nested, other, format!("{path}{separator}{}", field.name)));
            }
        }
    }
    if omitted.is_empty() {
        return Ok(());
    }
    let message =
        "add the key; or write `key: []` to remove it, or send the request again with ?force=true";
    Err(GatewayError::with_findings(
        ErrorClass::Unconfirmed,
        format!(
            "the definition leaves out `key`, which the stored one has: {}",
            omitted.join(", ")
        ),
        vec![Finding::at_pointer("/config", message)],
    ))
}

/// Removes the entries of keys that no definition has any more and for which none is being created, in small commits.
/// Blocking.
pub(crate) fn remove_unused_entries(store: &Store, watch: &Watch) -> Result<(), GatewayError> {
    let mut after = Vec::new();
    loop {
        let row = ENTRIES.scan().after_bytes(after).first(&store.read())?;
        let Some(row) = row else { return Ok(()) };
        let Some((digest, ..)) = row.key_or_log() else {
            after = row.key_bytes().to_vec();
            continue;
        };
        remove_entries(store, &digest, &|transaction| watch.uses_key_digest(transaction, &digest))?;
        // No entry of the digest sorts after this.
        after = [digest.as_slice(), &[u8::MAX; 32]].concat();
    }
}

/// Removes all entries that begin with a digest, until `is_used` returns true in a commit.
pub(super) fn remove_entries(
    store: &Store,
    digest: &[u8],
    is_used: &dyn Fn(&Transaction<'_>) -> Result<bool, GatewayError>,
) -> Result<(), GatewayError> {
    loop {
        let (removed, _) = store.transact::<_, GatewayError>(|transaction| {
            if is_used(transaction)? {
                return Ok(0);
            }
            Ok(ENTRIES.scan().prefix::<Vec<u8>>(digest).delete(transaction, ENTRIES_PER_CLEANUP)?)
        })?;
        if removed < ENTRIES_PER_CLEANUP {
            return Ok(());
        }
    }
}
