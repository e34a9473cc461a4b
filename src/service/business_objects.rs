//! The use cases of Business Objects. Only Admins define them, because a mapping sees everything that is stored.
//!
//! `check` tries a definition out before it is saved, `derive` builds one from a sample, and `usage` collects what
//! depends on one.
mod check;
mod derive;
mod mapping_tree;
mod usage;

pub use check::{DefinitionCheck, NamespaceCheck, SampleCheck, check_definition};
pub use derive::{Derivation, default_vocabulary, derive_from_samples, derive_mapping};
pub use mapping_tree::{MappingTree, TreeNode};
pub use usage::{
    DeletionEffects, MAX_COUNTED_OBJECTS, collect_deletion_effects, list_last_exports,
};

use crate::audit::change_event;
use crate::blocking::run_blocking;
use crate::changes::withdraw_abandoned;
use crate::deletions::beginning_event;
use crate::gateway::Gateway;
use penstock_auth::{Account, Authorized, Caller, Role};
use penstock_base::IfMatch;
use penstock_base::error::{ErrorClass, Finding, GatewayError};
use penstock_model::catalogue::{Action, Change, Requester};
use penstock_model::resource::{Compiled, Definition, NewDefinition};
use penstock_resources::business_object::{BusinessObject, Review};
use penstock_store::Transaction;
use std::sync::Arc;

/// Under which conditions a definition is saved.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct SaveConditions {
    /// The version that the definition may replace.
    pub if_match: IfMatch,
    /// Whether it may replace none.
    pub only_if_new: bool,
    /// Whether it may remove many objects from the Business Object.
    pub force: bool,
}

/// Returns the Business Object with this id or name.
///
/// # Errors
/// `ErrorClass::NotFound`.
pub fn find_business_object(
    gateway: &Gateway,
    id_or_name: &str,
) -> Result<Arc<Compiled>, GatewayError> {
    gateway.catalogue.get(id_or_name).ok_or_else(|| {
        GatewayError::new(
            ErrorClass::NotFound,
            format!("there is no Business Object with the id or name {id_or_name:?}"),
        )
    })
}

/// Returns what is shown of a Business Object, with the warnings about it.
///
/// # Errors
/// The errors of the store.
pub async fn show_business_object(
    gateway: &Gateway,
    compiled: Arc<Compiled>,
) -> Result<BusinessObject, GatewayError> {
    let gateway = gateway.clone();
    run_blocking(move || {
        let shown = show_business_objects(&gateway, &[compiled])?;
        Ok(shown.into_iter().next().expect("there is one for each Business Object"))
    })
    .await
}

/// Returns what is shown of Business Objects, with the warnings about them, in their order. Blocking.
///
/// # Errors
/// The errors of the store.
pub fn show_business_objects(
    gateway: &Gateway,
    all: &[Arc<Compiled>],
) -> Result<Vec<BusinessObject>, GatewayError> {
    let warnings = gateway.catalogue.collect_warnings(all)?;
    let accounts = gateway.auth.accounts.list(None, usize::MAX)?;
    let show = |(compiled, mut warnings): (&Arc<Compiled>, Vec<Finding>)| {
        warnings.extend(check_approvers(gateway, &accounts, &compiled.object.definition));
        compiled.object.show(warnings)
    };
    Ok(all.iter().zip(warnings).map(show).collect())
}

/// Lists at most `limit` Business Objects after the name `after`, ordered by name.
///
/// # Errors
/// The errors of the store.
pub async fn list_business_objects(
    gateway: &Gateway,
    after: Option<String>,
    limit: usize,
) -> Result<Vec<BusinessObject>, GatewayError> {
    let gateway = gateway.clone();
    run_blocking(move || {
        let page = gateway.catalogue.list_page(after.as_deref(), limit);
        show_business_objects(&gateway, &page)
    })
    .await
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

/// Creates the Business Object of this definition, or replaces the one of the same name. Returns true if it was
/// created.
///
/// # Errors
/// - The errors of [`NewDefinition::compile`] and [`penstock_model::catalogue::Catalogue::put`]
/// - `ErrorClass::Forbidden` without the role Admin
/// - `ErrorClass::InsufficientStorage` when less than the reserve is free on the disk
pub async fn define_business_object(
    gateway: &Gateway,
    by: &Authorized,
    new: NewDefinition,
    conditions: SaveConditions,
) -> Result<(Arc<Compiled>, bool), GatewayError> {
    let SaveConditions { if_match, only_if_new, force } = conditions;
    change_catalogue(gateway, by, force, move |gateway, by| {
        if only_if_new {
            // Before the errors of the definition; the commit checks it again.
            gateway.catalogue.check_new(&new.definition.name)?;
        }
        gateway.disk.check_reserve()?;
        let new = new.compile(&|bucket| gateway.exporter.check_target(bucket))?;
        gateway.catalogue.put(by, new, if_match, only_if_new)
    })
    .await
}

/// Replaces the Business Object with this id or name. Its name may change.
///
/// # Errors
/// As [`define_business_object`], and `ErrorClass::NotFound`.
pub async fn redefine_business_object(
    gateway: &Gateway,
    by: &Authorized,
    id_or_name: &str,
    new: NewDefinition,
    if_match: IfMatch,
    force: bool,
) -> Result<Arc<Compiled>, GatewayError> {
    let id_or_name = id_or_name.to_owned();
    change_catalogue(gateway, by, force, move |gateway, by| {
        gateway.disk.check_reserve()?;
        // Before the errors of the definition; the commit checks it again.
        gateway.catalogue.check_exists(&id_or_name)?;
        let new = new.compile(&|bucket| gateway.exporter.check_target(bucket))?;
        gateway.catalogue.replace(by, &id_or_name, new, if_match)
    })
    .await
}

/// Deletes the Business Object with this id or name. Its objects stay, and its open changes are withdrawn.
///
/// # Errors
/// - `ErrorClass::NotFound`, `ErrorClass::PreconditionFailed`, and `ErrorClass::Forbidden` without the role Admin
/// - `ErrorClass::Conflict` while it is being deleted with its objects
pub async fn delete_business_object(
    gateway: &Gateway,
    by: &Authorized,
    id_or_name: &str,
    if_match: IfMatch,
) -> Result<(), GatewayError> {
    let id_or_name = id_or_name.to_owned();
    change_catalogue(gateway, by, false, move |gateway, by| {
        gateway.catalogue.delete(by, &id_or_name, if_match)?;
        report_withdrawal(withdraw_abandoned(gateway));
        Ok(())
    })
    .await
}

/// Logs that the changes of a deleted Business Object could not be withdrawn. They count as withdrawn anyway.
pub(crate) fn report_withdrawal(withdrawn: Result<u64, GatewayError>) {
    if let Err(error) = withdrawn {
        tracing::warn!(
            cause = error.detail,
            "Withdrawing the changes of a deleted Business Object failed; the next cleanup does it."
        );
    }
}

/// Runs a change of the catalogue for an Admin. Its audit events are in its commit.
pub(crate) async fn change_catalogue<T: Send + 'static>(
    gateway: &Gateway,
    by: &Authorized,
    force: bool,
    change: impl FnOnce(&Gateway, Requester<'_>) -> Result<T, GatewayError> + Send + 'static,
) -> Result<T, GatewayError> {
    by.require_role(Role::Admin)?;
    let (gateway, by) = (gateway.clone(), by.clone());
    run_blocking(move || {
        gateway.auth.audit.flush();
        let add_events = |transaction: &mut Transaction<'_>, change: &Change<'_>| {
            add_audit_events(&gateway, &by, transaction, change)
        };
        let requester =
            Requester { force, on_commit: Some(&add_events), ..Requester::new(&by, by.id()) };
        change(&gateway, requester)
    })
    .await
}

/// Adds the audit events of a change to its commit: one for the Business Object, one for all created namespaces and one
/// for all changed ones. A mapping may name a thousand namespaces, so they have no events of their own.
pub(crate) fn add_audit_events(
    gateway: &Gateway,
    by: &Caller,
    transaction: &mut Transaction<'_>,
    change: &Change<'_>,
) -> Result<(), GatewayError> {
    let audit = &gateway.auth.audit;
    for (what, is_new) in [("namespace.created", true), ("namespace.replaced", false)] {
        let of_kind = change.namespaces.iter().filter(|(_, created)| *created == is_new);
        let named: Vec<String> = of_kind
            .map(|(namespace, _)| format!("{:?} <{}>", namespace.name, namespace.uri_base))
            .collect();
        if !named.is_empty() {
            let detail = format!("{}, for the Business Object {:?}", named.join(", "), change.name);
            audit.add_event(transaction, &change_event(by, what, detail))?;
        }
    }
    let what = match change.action {
        Action::Created => "business-object.created",
        Action::Replaced => "business-object.replaced",
        Action::Deleted | Action::DeletedWithObjects(_) => "business-object.deleted",
        Action::DeletionBegun(members) => {
            return audit.add_event(transaction, &beginning_event(by, change, members));
        }
    };
    let forced = change
        .forced
        .map_or_else(String::new, |loss| format!(", force=true: {loss} no longer belong to it"));
    let detail = format!("{:?} ({}), version {}{forced}", change.name, change.id, change.version);
    audit.add_event(transaction, &change_event(by, what, detail))
}
