//! The use cases of Business Objects. Only Admins define them, because a mapping sees everything that is stored.
//!
//! `check` tries a definition out before it is saved, `derive` builds one from a sample, and `usage` collects what
//! depends on one. `audit_events` adds the audit events to a change of the catalogue.
mod audit_events;
mod check;
mod derive;
mod mapping_tree;
mod usage;

pub(crate) use audit_events::{add_audit_events, change_catalogue, deletion_end_event};
pub use check::{DefinitionCheck, NamespaceCheck, SampleCheck, check_definition};
pub use derive::{Derivation, default_vocabulary, derive_from_samples, derive_mapping};
pub use mapping_tree::{MappingTree, TreeNode};
pub use usage::{
    DeletionEffects, MAX_COUNTED_OBJECTS, collect_deletion_effects, list_last_exports,
};

use crate::changes::steps::withdraw_abandoned;
use crate::definitions::batch::DefinitionBatch;
use crate::definitions::content::Content;
use crate::definitions::kind::{FindVersion, Kind, Result, StoredKind};
use crate::gateway::Gateway;
use penstock_auth::{Account, Authorized, Role};
use penstock_base::error::{ErrorClass, Finding, GatewayError};
use penstock_base::json::Json;
use penstock_base::{Preconditions, Put};
use penstock_model::catalogue::Requester;
use penstock_model::resource::{Compiled, Definition, NewDefinition};
use penstock_resources::business_object::{BusinessObject, Review};
use penstock_resources::definitions::DefinitionKind;
use penstock_store::{Read, Transaction};
use serde_json::Value;
use std::sync::Arc;

/// The Business Objects.
#[derive(Debug)]
pub struct BusinessObjects;

/// A Business Object that a client sends.
#[derive(Debug)]
pub struct NewBusinessObject {
    /// Its definition.
    pub new: NewDefinition,
    /// The id or name of the one that it replaces, whose name it may change; `None` for the one of its name, if there is one.
    pub replaced: Option<String>,
    /// Whether it may remove many objects from the Business Object, and leave out protections.
    pub force: bool,
}

impl Kind for BusinessObjects {
    const KIND: DefinitionKind = DefinitionKind::BusinessObject;
    const STORED_VERSION: Option<FindVersion> = Some(|gateway, name| {
        let found = gateway.catalogue.get(name);
        let found = found.filter(|found| found.object.definition.name == name);
        found.map(|found| found.object.version)
    });
    type New = NewBusinessObject;
    type Shown = BusinessObject;

    fn name(shown: &BusinessObject) -> &str {
        &shown.definition.name
    }

    fn version(shown: &BusinessObject) -> Option<u64> {
        Some(shown.version)
    }

    fn list(
        gateway: &Gateway,
        _: &Authorized,
        after: Option<&str>,
        limit: usize,
    ) -> Result<Vec<BusinessObject>> {
        show_business_objects(gateway, &gateway.catalogue.list_page(after, limit))
    }

    fn find(gateway: &Gateway, _: &Authorized, id_or_name: &str) -> Result<BusinessObject> {
        show_one(gateway, find_business_object(gateway, id_or_name)?)
    }
}

impl StoredKind for BusinessObjects {
    fn put(
        gateway: &Gateway,
        by: &Authorized,
        NewBusinessObject { new, replaced, force }: NewBusinessObject,
        conditions: Preconditions,
    ) -> Result<Put<BusinessObject>> {
        let catalogue = &gateway.catalogue;
        // Before the errors of the definition; the commit checks it again.
        match &replaced {
            Some(id_or_name) => catalogue.check_exists(id_or_name)?,
            None => catalogue.check_conditions(&new.definition.name, conditions)?,
        }
        let new = new.compile(&|bucket| gateway.exporter.check_target(bucket))?;
        let put = change_catalogue(gateway, by, |requester| {
            let requester = Requester { force, ..requester };
            match &replaced {
                Some(id_or_name) => {
                    catalogue.replace(requester, id_or_name, new, conditions).map(Put::Replaced)
                }
                None => catalogue.put(requester, new, conditions),
            }
        })?;
        let shown = show_with_stored_values(gateway, Arc::clone(put.value()))?;
        Ok(put.map(|_| shown))
    }

    /// Deletes a Business Object. Its objects stay, and its open changes are withdrawn.
    fn delete(
        gateway: &Gateway,
        by: &Authorized,
        id_or_name: &str,
        conditions: Preconditions,
    ) -> Result<()> {
        change_catalogue(gateway, by, |requester| {
            gateway.catalogue.delete(requester, id_or_name, conditions)
        })?;
        report_withdrawal(withdraw_abandoned(gateway));
        Ok(())
    }

    fn read_members(gateway: &Gateway, _: &str, members: Vec<(String, Json)>) -> Result<Content> {
        let body = Json::Object(members).to_string();
        let new = NewDefinition::from_json(body.as_bytes())?;
        let compiled = new.compile(&|bucket| gateway.exporter.check_target(bucket))?;
        Ok(Content::BusinessObject(Box::new(compiled)))
    }

    fn find_fingerprint(gateway: &Gateway, _: &dyn Read, name: &str) -> Result<Option<String>> {
        Ok(gateway.catalogue.find_saved(name).map(|saved| saved.fingerprint()))
    }

    /// Returns the members of a definition, one or more lines for each. The mapping is last, as it was given.
    fn describe(batch: &DefinitionBatch<'_>, _: &dyn Read, name: &str) -> Result<Vec<String>> {
        let Some(definition) = batch.catalogue.find_definition(name) else { return Ok(Vec::new()) };
        let Ok(Value::Object(members)) = serde_json::to_value(&definition) else {
            return Ok(Vec::new());
        };
        let mut lines = Vec::new();
        for (name, value) in members.into_iter().filter(|(name, _)| name != "config") {
            let text = serde_json::to_string_pretty(&value).unwrap_or_default();
            lines.extend(format!("{name}: {text}").lines().map(str::to_owned));
        }
        lines.push("config:".to_owned());
        lines.extend(definition.config.lines().map(|line| format!("  {line}")));
        Ok(lines)
    }

    fn erase(
        batch: &mut DefinitionBatch<'_>,
        transaction: &mut Transaction<'_>,
        name: &str,
    ) -> Result<()> {
        batch.catalogue.delete(transaction, batch.requester, name)
    }
}

/// Returns the Business Object with this id or name.
///
/// # Errors
/// `ErrorClass::NotFound`.
pub fn find_business_object(gateway: &Gateway, id_or_name: &str) -> Result<Arc<Compiled>> {
    gateway.catalogue.get(id_or_name).ok_or_else(|| {
        GatewayError::new(
            ErrorClass::NotFound,
            format!("there is no Business Object with the id or name {id_or_name:?}"),
        )
    })
}

/// Returns the id of the Business Object with this id or name. Otherwise returns what was given: the id of a deleted one,
/// of which lists still have something.
pub fn find_business_object_id(gateway: &Gateway, id_or_name: &str) -> String {
    let found = gateway.catalogue.get(id_or_name);
    found.map_or_else(|| id_or_name.to_owned(), |found| found.object.id.clone())
}

/// Returns what is shown of a Business Object, with the warnings about it.
///
/// # Errors
/// The errors of the store.
pub async fn show_business_object(
    gateway: &Gateway,
    compiled: Arc<Compiled>,
) -> Result<BusinessObject> {
    gateway.read(|gateway| show_one(gateway, compiled)).await
}

/// Returns what is shown of a Business Object right after it was saved, with the warnings about its stored values too.
///
/// # Errors
/// The errors of the store.
pub async fn show_saved_business_object(
    gateway: &Gateway,
    compiled: Arc<Compiled>,
) -> Result<BusinessObject> {
    gateway.read(|gateway| show_with_stored_values(gateway, compiled)).await
}

/// Shows one with the warnings about its stored values too, which take longer.
fn show_with_stored_values(gateway: &Gateway, compiled: Arc<Compiled>) -> Result<BusinessObject> {
    let unshown = gateway.catalogue.check_stored_values(&compiled)?;
    let mut shown = show_one(gateway, compiled)?;
    shown.warnings.extend(unshown.into_iter().map(Into::into));
    Ok(shown)
}

fn show_one(gateway: &Gateway, compiled: Arc<Compiled>) -> Result<BusinessObject> {
    // One is shown for each.
    Ok(show_business_objects(gateway, &[compiled])?.swap_remove(0))
}

/// Returns what is shown of Business Objects, with the warnings about them, in their order. Blocking.
///
/// # Errors
/// The errors of the store.
pub fn show_business_objects(
    gateway: &Gateway,
    all: &[Arc<Compiled>],
) -> Result<Vec<BusinessObject>> {
    let warnings = gateway.catalogue.collect_warnings(all)?;
    let accounts = gateway.auth.accounts.list(None, usize::MAX)?;
    let show = |(compiled, mut warnings): (&Arc<Compiled>, Vec<Finding>)| {
        warnings.extend(check_approvers(gateway, &accounts, &compiled.object.definition));
        compiled.object.show(warnings)
    };
    Ok(all.iter().zip(warnings).map(show).collect())
}

/// Returns a warning if changes are reviewed and none of these accounts, all that there are, could approve them.
fn check_approvers(
    gateway: &Gateway,
    accounts: &[Arc<Account>],
    definition: &Definition,
) -> Option<Finding> {
    if definition.review() == Review::Off {
        return None;
    }
    let approvers = definition.approvers();
    let may_approve = |account: &Arc<Account>| {
        account.enabled
            && if approvers.is_empty() {
                account.role == Role::Admin
            } else {
                account.role >= Role::Contributor
                    && gateway.auth.groups.is_any_of(account, approvers)
            }
    };
    if accounts.iter().any(may_approve) {
        return None;
    }
    let message =
        "no enabled account could approve a change: approvers need at least the role Contributor";
    Some(Finding::at_pointer("/approvers", message))
}

/// Logs that the changes of a deleted Business Object could not be withdrawn. They count as withdrawn anyway.
pub(crate) fn report_withdrawal(withdrawn: Result<u64>) {
    if let Err(error) = withdrawn {
        tracing::warn!(
            cause = error.detail,
            "Withdrawing the changes of a deleted Business Object failed; the next cleanup does it."
        );
    }
}
