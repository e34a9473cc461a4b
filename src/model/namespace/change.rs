//! Creates, changes and deletes namespaces.
use super::known::{KnownNamespaces, NamespaceCache, record_change};
use super::minting::COUNTERS;
use super::moving::rebase::Rebase;
use super::{NAMESPACES, Namespace, check_base, check_name, get, has_data};
use crate::catalogue::entry::find_namespace_user;
use crate::natural_key;
use penstock_base::Put;
use penstock_base::definition::missing_error;
use penstock_base::error::{ErrorClass, GatewayError};
use penstock_base::table::{AsJson, Row};
use penstock_resources::definitions::DefinitionKind;
use penstock_resources::namespace::{DefinedNamespace, Generator};
use penstock_store::{Error, Read, Transaction};

/// The maximum number of namespaces. All of them are in memory.
pub(super) const MAX_NAMESPACES: usize = if cfg!(test) { 200 } else { 10_000 };

/// Creates a namespace, or changes one that is not used yet. Writing the same content again has no effect, even if the
/// namespace is used.
///
/// # Errors
/// - `ErrorClass::Invalid` for an invalid name or base
/// - `ErrorClass::Conflict` for a change of a used namespace, or a base that gives the same identifiers as another
///   namespace
pub fn put(
    transaction: &mut Transaction<'_>,
    namespace: Namespace,
) -> Result<Put<Namespace>, GatewayError> {
    put_with_cache(transaction, &NamespaceCache::default(), namespace)
}

/// As [`put`], with the namespaces in memory.
pub(crate) fn put_with_cache(
    transaction: &mut Transaction<'_>,
    cache: &NamespaceCache,
    namespace: Namespace,
) -> Result<Put<Namespace>, GatewayError> {
    put_for_business_object(transaction, cache, namespace, None)
}

/// Creates or changes a namespace that the definition of a Business Object defines. An existing namespace keeps its base
/// and its generator if the definition has none. It may be changed as long as it
/// holds no data and no other Business Object names it.
///
/// # Errors
/// As [`put`].
pub(crate) fn define_namespace(
    transaction: &mut Transaction<'_>,
    cache: &NamespaceCache,
    definition: &DefinedNamespace,
    default_base: String,
    business_object: Option<&str>,
) -> Result<Put<Namespace>, GatewayError> {
    let before = get(transaction, &definition.name)?;
    let (base, generator) = before.map_or_else(
        || (default_base, Generator::default()),
        |before| (before.uri_base, before.generator),
    );
    let namespace = Namespace::from_definition(definition.clone(), base, generator);
    put_for_business_object(transaction, cache, namespace, business_object)
}

/// As [`put`], but a reference by the Business Object with the id `business_object` does not count as use.
fn put_for_business_object(
    transaction: &mut Transaction<'_>,
    cache: &NamespaceCache,
    mut namespace: Namespace,
    business_object: Option<&str>,
) -> Result<Put<Namespace>, GatewayError> {
    check_name(&namespace.name).map_err(|why| GatewayError::new(ErrorClass::Invalid, why))?;
    check_base(&namespace.uri_base).map_err(|why| GatewayError::new(ErrorClass::Invalid, why))?;

    let before = get(transaction, &namespace.name)?;
    if let Some(before) = &before {
        if before.uri_base == namespace.uri_base && before.generator == namespace.generator {
            return Ok(Put::Replaced(before.clone()));
        }
        if let Some(why) = unchangeable_reason(transaction, before, business_object)? {
            return Err(GatewayError::new(
                ErrorClass::Conflict,
                format!(
                    "the namespace {:?} is used and cannot be changed ({why}); define another one",
                    namespace.name
                ),
            ));
        }
    }
    let known = cache.current(transaction)?;
    if before.is_none() && known.len() >= MAX_NAMESPACES {
        return Err(GatewayError::new(
            ErrorClass::Conflict,
            format!(
                "the limit of {MAX_NAMESPACES} namespaces is reached; delete some that are not used"
            ),
        ));
    }
    check_base_is_free(&namespace, &known)?;
    natural_key::check_new_base(transaction, &namespace, &known)?;
    // Then the next change need not copy what is in memory.
    drop(known);
    namespace.created_at =
        before.as_ref().map_or_else(penstock_base::time::now_rfc3339, |b| b.created_at.clone());
    NAMESPACES.put(transaction, &namespace.name, &namespace)?;
    record_change(transaction, &namespace.name)?;
    Ok(Put::new(namespace, before.is_some()))
}

/// Checks that no other namespace mints the identifiers of this one.
pub(super) fn check_base_is_free(
    namespace: &Namespace,
    known: &KnownNamespaces,
) -> Result<(), GatewayError> {
    let Some(owner) = known.find_same_base(namespace) else { return Ok(()) };
    let explanation = if owner.uri_base == namespace.uri_base {
        String::new()
    } else {
        format!(", which gives the same identifiers as {:?}", namespace.uri_base)
    };
    Err(GatewayError::new(
        ErrorClass::Conflict,
        format!(
            "the namespace {:?} has the base {:?} already{explanation}; each namespace needs its own base",
            owner.name, owner.uri_base
        ),
    ))
}

/// Deletes a namespace that is not used. Its counter is kept; a new namespace with the same base continues it.
///
/// # Errors
/// `ErrorClass::NotFound`; `ErrorClass::Conflict` if a mapping names it or its graph holds quads.
pub fn delete(transaction: &mut Transaction<'_>, name: &str) -> Result<(), GatewayError> {
    let namespace =
        get(transaction, name)?.ok_or_else(|| missing_error(DefinitionKind::Namespace, name))?;
    if let Some(why) = undeletable_reason(transaction, &namespace, None)? {
        return Err(GatewayError::new(
            ErrorClass::Conflict,
            format!("the namespace {name:?} is used: {why}"),
        ));
    }
    NAMESPACES.delete(transaction, name)?;
    record_change(transaction, name)?;
    Ok(())
}

/// Returns why a namespace can no longer be changed; `None` if it can. Ignores the use by the Business Object with the id
/// `business_object`.
pub fn unchangeable_reason(
    read: &dyn Read,
    namespace: &Namespace,
    business_object: Option<&str>,
) -> Result<Option<String>, Error> {
    if let Some(why) = undeletable_reason(read, namespace, business_object)? {
        return Ok(Some(why));
    }
    let has_counter = COUNTERS.contains(read, &namespace.uri_base)?;
    Ok(has_counter.then(|| "its counter has issued numbers".to_owned()))
}

/// Returns why a namespace cannot be deleted; `None` if it can. Ignores the use by the Business Object with the id
/// `business_object`.
pub fn undeletable_reason(
    read: &dyn Read,
    namespace: &Namespace,
    business_object: Option<&str>,
) -> Result<Option<String>, Error> {
    if let Some(object) = find_namespace_user(read, &namespace.name, business_object)? {
        return Ok(Some(format!("the mapping of the Business Object {object:?} names it")));
    }
    Ok(has_data(read, namespace)?.then(|| "its graph holds data".to_owned()))
}

/// Gives the stored namespace that moves its new base. Returns whether this changes it.
pub(super) fn rewrite_namespace(
    transaction: &mut Transaction<'_>,
    rebase: &Rebase,
    row: &Row<String, AsJson<Namespace>>,
) -> Result<bool, GatewayError> {
    let stored = row.value()?;
    if stored.name != rebase.to().name || stored.uri_base == rebase.to().uri_base {
        return Ok(false);
    }
    // No gateway is running that has the namespaces in memory, so their number stays.
    NAMESPACES.put(transaction, &stored.name, rebase.to())?;
    Ok(true)
}
