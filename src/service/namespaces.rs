//! The use cases of namespaces. Contributors define and delete them.
use crate::audit::change_event;
use crate::definitions::batch::DefinitionBatch;
use crate::definitions::content::Content;
use crate::definitions::kind::{Kind, Result, StoredKind};
use crate::gateway::Gateway;
use penstock_auth::{Authorized, Role};
use penstock_base::definition::{describe_definition, missing_error};
use penstock_base::error::{Finding, GatewayError};
use penstock_base::json::Json;
use penstock_base::managed::check_editable;
use penstock_base::{Preconditions, Put};
use penstock_model::namespace::{self, KnownNamespaces, Namespace};
use penstock_model::warnings;
use penstock_resources::definitions::DefinitionKind;
use penstock_resources::namespace::{self as shown, DefinedNamespace, Generator};
use penstock_resources::warning::Warning;
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

/// The namespaces.
#[derive(Debug)]
pub struct Namespaces;

impl Kind for Namespaces {
    const KIND: DefinitionKind = DefinitionKind::Namespace;
    const MIN_ROLE: Role = Role::Contributor;
    type New = DefinedNamespace;
    type Shown = shown::Namespace;

    fn name(shown: &shown::Namespace) -> &str {
        &shown.name
    }

    fn list(
        gateway: &Gateway,
        _: &Authorized,
        after: Option<&str>,
        limit: usize,
    ) -> Result<Vec<shown::Namespace>> {
        let known = gateway.catalogue.known_namespaces()?;
        let page = known.iter_after(after).take(limit);
        Ok(page.map(|one| show_namespace(one.clone(), &known)).collect())
    }

    fn find(gateway: &Gateway, _: &Authorized, name: &str) -> Result<shown::Namespace> {
        let known = gateway.catalogue.known_namespaces()?;
        let found = known.get(name).cloned().ok_or_else(|| missing_error(Self::KIND, name))?;
        Ok(show_namespace(found, &known))
    }
}

impl StoredKind for Namespaces {
    /// Creates a namespace, or changes one that is not used yet. Without a base it gets the default base.
    fn put(
        gateway: &Gateway,
        by: &Authorized,
        new: DefinedNamespace,
        conditions: Preconditions,
    ) -> Result<Put<shown::Namespace>> {
        gateway.auth.audit.flush();
        let default_base = gateway.catalogue.default_base(&new.name);
        let namespace = Namespace::from_definition(new, default_base.clone(), Generator::default());
        let ((put, is_changed), _) =
            gateway.store.commit::<_, GatewayError>(by, |transaction| {
                let name = &namespace.name;
                let before = namespace::get(transaction, name)?;
                conditions
                    .check_existence(before.is_some(), &describe_definition(Self::KIND, name))?;
                if before.is_none() {
                    gateway.auth.audit.check_namespace_rate(by)?;
                }
                let put = write_namespace(gateway, by, transaction, namespace.clone())?;
                let is_changed = before.as_ref() != Some(put.value());
                if is_changed {
                    check_editable(transaction, Self::KIND, name)?;
                }
                Ok((put, is_changed))
            })?;
        if is_changed {
            tracing::info!(namespace = namespace.name, by = by.id(), "A namespace was defined.");
        }
        let known = gateway.catalogue.known_namespaces()?;
        let has_default_base = put.is_created() && put.value().uri_base == default_base;
        Ok(put.map(|namespace| {
            let mut shown = show_namespace(namespace, &known);
            if has_default_base {
                shown.warnings.insert(0, default_base_warning(&shown));
            }
            shown
        }))
    }

    /// Deletes a namespace that is not used.
    fn delete(
        gateway: &Gateway,
        by: &Authorized,
        name: &str,
        conditions: Preconditions,
    ) -> Result<()> {
        gateway.auth.audit.flush();
        gateway.store.commit::<_, GatewayError>(by, |transaction| {
            check_editable(transaction, Self::KIND, name)?;
            // One that does not exist is 404, whatever the conditions.
            if namespace::get(transaction, name)?.is_some() {
                conditions.check_existence(true, &describe_definition(Self::KIND, name))?;
            }
            erase_namespace(gateway, by, transaction, name)
        })?;
        tracing::info!(namespace = name, by = by.id(), "A namespace was deleted.");
        Ok(())
    }

    fn read_members(_: &Gateway, name: &str, members: Vec<(String, Json)>) -> Result<Content> {
        namespace::read_definition(name, Json::Object(members)).map(Content::Namespace)
    }

    fn find_fingerprint(_: &Gateway, read: &dyn Read, name: &str) -> Result<Option<String>> {
        Ok(namespace::get(read, name)?.map(|namespace| namespace.fingerprint()))
    }

    fn describe(_: &DefinitionBatch<'_>, read: &dyn Read, name: &str) -> Result<Vec<String>> {
        let Some(there) = namespace::get(read, name)? else { return Ok(Vec::new()) };
        let generator = there.generator.name();
        Ok(vec![format!("uriBase: {}", there.uri_base), format!("generator: {generator}")])
    }

    fn erase(
        batch: &mut DefinitionBatch<'_>,
        transaction: &mut Transaction<'_>,
        name: &str,
    ) -> Result<()> {
        erase_namespace(batch.gateway, batch.by, transaction, name)
    }
}

/// Returns the namespace with this name, and how its use restricts changes of it.
///
/// # Errors
/// `ErrorClass::NotFound`.
pub async fn find_namespace_use(gateway: &Gateway, name: &str) -> Result<NamespaceUse> {
    let name = name.to_owned();
    let find = move |gateway: &Gateway| -> Result<NamespaceUse> {
        let known = gateway.catalogue.known_namespaces()?;
        let read = gateway.store.read();
        let found = namespace::get(&read, &name)?;
        let namespace = found.ok_or_else(|| missing_error(Namespaces::KIND, &name))?;
        Ok(NamespaceUse {
            unchangeable_reason: namespace::unchangeable_reason(&read, &namespace, None)?,
            undeletable_reason: namespace::undeletable_reason(&read, &namespace, None)?,
            namespace: show_namespace(namespace, &known),
        })
    };
    gateway.read(find).await
}

/// Returns what is shown of a namespace, with the warnings about it. `known` are the existing ones.
fn show_namespace(namespace: Namespace, known: &KnownNamespaces) -> shown::Namespace {
    let overlap = warnings::overlap_warning(&namespace, known, &[]);
    let warnings = overlap.into_iter().map(base_warning).collect();
    let Namespace { name, uri_base, generator, created_at } = namespace;
    shown::Namespace { name, uri_base, generator, created_at, warnings }
}

fn base_warning(message: String) -> Warning {
    Finding::at_pointer("/uriBase", message).into()
}

fn default_base_warning(created: &shown::Namespace) -> Warning {
    let shown::Namespace { name, uri_base, .. } = created;
    base_warning(format!(
        "the namespace `{name}` was created with the default base <{uri_base}>; until it is used, another \
         base can be set with `uriBase`"
    ))
}

/// Writes a namespace and the audit event of its change in their commit.
pub(crate) fn write_namespace(
    gateway: &Gateway,
    by: &Authorized,
    transaction: &mut Transaction<'_>,
    namespace: Namespace,
) -> Result<Put<Namespace>> {
    let before = namespace::get(transaction, &namespace.name)?;
    let put = gateway.catalogue.put_namespace(transaction, namespace)?;
    let after = put.value();
    if before.as_ref() != Some(after) {
        let what = if put.is_created() { "namespace.created" } else { "namespace.replaced" };
        let detail = format!("{:?} <{}>", after.name, after.uri_base);
        gateway.auth.audit.add_event(transaction, &change_event(by, what, detail))?;
    }
    Ok(put)
}

/// Deletes a namespace and writes the audit event in their commit.
fn erase_namespace(
    gateway: &Gateway,
    by: &Authorized,
    transaction: &mut Transaction<'_>,
    name: &str,
) -> Result<()> {
    namespace::delete(transaction, name)?;
    let event = change_event(by, "namespace.deleted", format!("{name:?}"));
    gateway.auth.audit.add_event(transaction, &event)
}
