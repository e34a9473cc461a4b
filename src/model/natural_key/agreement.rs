//! Checks the natural keys of a mapping against those of all other definitions, and against the bases of namespaces.
use super::NaturalKey;
use super::definition::{collect_keys, collect_keys_and_conflict, merge_key};
use crate::catalogue::entry::{list_definitions_with_key, list_keyed_namespaces, list_stored};
use crate::mapping::{KeyDefinition, Mapping};
use crate::namespace::{self, KnownNamespaces, Namespace};
use crate::resource::Compiled;
use penstock_base::error::{ErrorClass, Finding, GatewayError};
use penstock_resources::namespace::Generator;
use penstock_store::{Error, Read, Transaction};
use std::collections::BTreeSet;

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
    let mut others = list_definitions_with_key(transaction, &list_namespaces(&keys))?;
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
    for compiled in list_definitions_with_key(read, &list_namespaces(of))? {
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
        let stored = list_stored(transaction)?;
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
    for (name, business_object) in list_keyed_namespaces(read)? {
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
    let mut keyed = list_keyed_namespaces(read)?.into_iter();
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
