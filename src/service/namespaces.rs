//! The use cases of namespaces. Contributors define and delete them.
use crate::audit::change_event;
use crate::blocking::run_blocking;
use crate::gateway::Gateway;
use penstock_auth::{Authorized, Role};
use penstock_base::Preconditions;
use penstock_base::error::{ErrorClass, Finding, GatewayError};
use penstock_base::managed::check_editable;
use penstock_model::namespace::{self, KnownNamespaces, Namespace};
use penstock_model::warnings;
use penstock_resources::definitions::DefinitionKind;
use penstock_resources::namespace::{self as shown, DefinedNamespace, Generator};
use penstock_store::{Read, Transaction};

/// A namespace, and how its use restricts changes of it.
#[derive(Debug, Clone)]
pub struct NamespaceUse {
    /// The namespace.
    pub namespace: shown::Namespace,
    /// Why it can no longer be changed; `None` if it can.
    pub unchangeable_reason: Option<String>,
    /// Why it cannot be deleted; `None` if it can.
    pub undeletable_reason: Option<String>,
}

/// Lists at most `limit` namespaces after the name `after`, ordered by name.
pub async fn list_namespaces(
    gateway: &Gateway,
    after: Option<String>,
    limit: usize,
) -> Result<Vec<shown::Namespace>, GatewayError> {
    let catalogue = gateway.catalogue.clone();
    run_blocking(move || {
        let known = catalogue.known_namespaces()?;
        let page = known.iter_after(after.as_deref()).take(limit);
        Ok(page.map(|one| show_namespace(one.clone(), &known, false)).collect())
    })
    .await
}

/// Returns the namespace with this name.
///
/// # Errors
/// `ErrorClass::NotFound`.
pub async fn find_namespace(
    gateway: &Gateway,
    name: &str,
) -> Result<shown::Namespace, GatewayError> {
    let (catalogue, name) = (gateway.catalogue.clone(), name.to_owned());
    run_blocking(move || {
        let known = catalogue.known_namespaces()?;
        let found = known.get(&name).cloned().ok_or_else(|| missing_namespace_error(&name))?;
        Ok(show_namespace(found, &known, false))
    })
    .await
}

/// Returns the namespace with this name, and how its use restricts changes of it.
///
/// # Errors
/// `ErrorClass::NotFound`.
pub async fn find_namespace_use(
    gateway: &Gateway,
    name: &str,
) -> Result<NamespaceUse, GatewayError> {
    let (gateway, name) = (gateway.clone(), name.to_owned());
    run_blocking(move || {
        let known = gateway.catalogue.known_namespaces()?;
        let read = gateway.store.read();
        let namespace = require_namespace(&read, &name)?;
        Ok(NamespaceUse {
            unchangeable_reason: namespace::unchangeable_reason(&read, &namespace)?,
            undeletable_reason: namespace::undeletable_reason(&read, &namespace)?,
            namespace: show_namespace(namespace, &known, false),
        })
    })
    .await
}

fn require_namespace(read: &impl Read, name: &str) -> Result<Namespace, GatewayError> {
    namespace::get(read, name)?.ok_or_else(|| missing_namespace_error(name))
}

fn missing_namespace_error(name: &str) -> GatewayError {
    GatewayError::new(ErrorClass::NotFound, format!("there is no namespace {name:?}"))
}

/// Returns what is shown of a namespace, with the warnings about it. `known` are the existing ones.
fn show_namespace(
    namespace: Namespace,
    known: &KnownNamespaces,
    has_default_base: bool,
) -> shown::Namespace {
    let mut warnings = Vec::new();
    if has_default_base {
        let Namespace { name, uri_base, .. } = &namespace;
        warnings.push(Finding::at_pointer(
            "/uriBase",
            format!(
                "the namespace `{name}` was created with the default base <{uri_base}>; until it is used, another \
                 base can be set with `uriBase`"
            ),
        ));
    }
    let overlaps = warnings::overlap_warning(&namespace, known, &[]);
    warnings.extend(overlaps.map(|message| Finding::at_pointer("/uriBase", message)));
    let Namespace { name, uri_base, generator, created_at } = namespace;
    let warnings = warnings.into_iter().map(Into::into).collect();
    shown::Namespace { name, uri_base, generator, created_at, warnings }
}

/// Creates a namespace.
///
/// # Errors
/// As [`define_namespace`]; `ErrorClass::Invalid` if the namespace already exists.
pub async fn create_namespace(
    gateway: &Gateway,
    by: &Authorized,
    definition: DefinedNamespace,
) -> Result<shown::Namespace, GatewayError> {
    put_namespace(gateway, by, definition, None).await.map(|(namespace, _)| namespace)
}

/// Creates a namespace, or changes one that is not used yet. Returns true if it was created. Without a base it gets the
/// default base.
///
/// # Errors
/// The errors of [`namespace::put`]; `ErrorClass::PreconditionFailed` if a precondition is false; `ErrorClass::InsufficientStorage` when less than the reserve is free on the disk;
/// `ErrorClass::Forbidden` without the role Contributor.
pub async fn define_namespace(
    gateway: &Gateway,
    by: &Authorized,
    definition: DefinedNamespace,
    preconditions: Preconditions,
) -> Result<(shown::Namespace, bool), GatewayError> {
    put_namespace(gateway, by, definition, Some(preconditions)).await
}

async fn put_namespace(
    gateway: &Gateway,
    by: &Authorized,
    definition: DefinedNamespace,
    // `None` if it may not exist.
    preconditions: Option<Preconditions>,
) -> Result<(shown::Namespace, bool), GatewayError> {
    by.require_role(Role::Contributor)?;
    gateway.disk.check_reserve()?;
    let default_base = gateway.catalogue.default_base(&definition.name);
    let namespace =
        Namespace::from_definition(definition, default_base.clone(), Generator::default());
    let (gateway, by) = (gateway.clone(), by.clone());
    run_blocking(move || {
        gateway.auth.audit.flush();
        let ((namespace, created, changed), _) =
            gateway.store.commit::<_, GatewayError>(&by, |transaction| {
                let before = namespace::get(transaction, &namespace.name)?;
                match preconditions {
                    Some(conditions) => {
                        conditions.check_existence(before.is_some(), &describe(&namespace.name))?;
                    }
                    None if before.is_some() => return Err(taken_name_error(&namespace.name)),
                    None => {}
                }
                if before.is_none() {
                    gateway.auth.audit.check_namespace_rate(&by)?;
                }
                let (namespace, created) = write_namespace(&gateway, &by, transaction, namespace)?;
                let changed = before.as_ref() != Some(&namespace);
                if changed {
                    check_editable(transaction, DefinitionKind::Namespace, &namespace.name)?;
                }
                Ok((namespace, created, changed))
            })?;
        if changed {
            tracing::info!(namespace = namespace.name, by = by.id(), "A namespace was defined.");
        }
        let known = gateway.catalogue.known_namespaces()?;
        let has_default_base = created && namespace.uri_base == default_base;
        Ok((show_namespace(namespace, &known, has_default_base), created))
    })
    .await
}

/// Writes a namespace and the audit event of its change in their commit. Returns it, and true if it was created.
pub(crate) fn write_namespace(
    gateway: &Gateway,
    by: &Authorized,
    transaction: &mut Transaction<'_>,
    namespace: Namespace,
) -> Result<(Namespace, bool), GatewayError> {
    let before = namespace::get(transaction, &namespace.name)?;
    let (namespace, created) = gateway.catalogue.put_namespace(transaction, namespace)?;
    if before.as_ref() != Some(&namespace) {
        let what = if created { "namespace.created" } else { "namespace.replaced" };
        let detail = format!("{:?} <{}>", namespace.name, namespace.uri_base);
        gateway.auth.audit.add_event(transaction, &change_event(by, what, detail))?;
    }
    Ok((namespace, created))
}

/// Deletes a namespace and writes the audit event in their commit.
pub(crate) fn erase_namespace(
    gateway: &Gateway,
    by: &Authorized,
    transaction: &mut Transaction<'_>,
    name: &str,
) -> Result<(), GatewayError> {
    namespace::delete(transaction, name)?;
    let event = change_event(by, "namespace.deleted", format!("{name:?}"));
    gateway.auth.audit.add_event(transaction, &event)
}

fn describe(name: &str) -> String {
    format!("the namespace {name:?}")
}

fn taken_name_error(name: &str) -> GatewayError {
    let finding = Finding::at_pointer("/name", format!("the namespace {name:?} already exists"));
    GatewayError::with_findings(ErrorClass::Invalid, "This could not be saved.", vec![finding])
}

/// Deletes a namespace that is not used.
///
/// # Errors
/// The errors of [`namespace::delete`]; `ErrorClass::Forbidden` without the role Contributor;
/// `ErrorClass::PreconditionFailed` if it exists and a precondition is false.
pub async fn delete_namespace(
    gateway: &Gateway,
    by: &Authorized,
    name: &str,
    preconditions: Preconditions,
) -> Result<(), GatewayError> {
    by.require_role(Role::Contributor)?;
    let (gateway, by, name) = (gateway.clone(), by.clone(), name.to_owned());
    run_blocking(move || {
        gateway.auth.audit.flush();
        gateway.store.commit::<_, GatewayError>(&by, |transaction| {
            check_editable(transaction, DefinitionKind::Namespace, &name)?;
            // One that does not exist is 404, whatever the conditions.
            if namespace::get(transaction, &name)?.is_some() {
                preconditions.check_existence(true, &describe(&name))?;
            }
            erase_namespace(&gateway, &by, transaction, &name)
        })?;
        tracing::info!(namespace = name, by = by.id(), "A namespace was deleted.");
        Ok(())
    })
    .await
}
