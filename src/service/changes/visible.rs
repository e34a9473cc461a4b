//! A change as a caller sees it.
use super::relation::{Relation, Viewer};
use crate::gateway::Gateway;
use penstock_auth::Caller;
use penstock_base::error::GatewayError;
use penstock_base::principal::Principal;
use penstock_model::changes::{Change, current_approvers, find_change, missing_change_error};
use penstock_resources::change;

/// A change as a caller sees it.
#[derive(Debug, Clone)]
pub struct VisibleChange {
    /// The change.
    pub change: Change,
    /// What the caller is to it.
    pub relation: Relation,
    /// Who approves it now; none if Admins do.
    pub approvers: Vec<Principal>,
    /// The owners that do not exist; `None` if the caller may not know, and in lists.
    pub unknown_owners: Option<Vec<Principal>>,
}

impl From<VisibleChange> for change::Change {
    fn from(visible: VisibleChange) -> Self {
        let VisibleChange { change, approvers, unknown_owners, relation: _ } = visible;
        let texts = |all: Vec<_>| all.into_iter().map(String::from).collect();
        Self {
            approved_by: change.approved_by().map(str::to_owned),
            id: change.id,
            state: change.state,
            version: change.version,
            business_object: change.business_object,
            business_object_name: change.business_object_name,
            mode: change.mode,
            author: change.author,
            api_key: change.api_key,
            change_owners: texts(change.owners),
            unknown_change_owners: unknown_owners.map(texts),
            approvers: texts(approvers),
            bypass: change.bypassed.is_some(),
            created_at: change.created_at,
            updated_at: change.updated_at,
            base: change.base,
            created: change.counts.created,
            updated: change.counts.updated,
            unchanged: change.counts.unchanged,
            deleted: change.counts.deleted,
            changed_objects: change.items,
            request_bytes: change.request_bytes,
            history: change.history.into_iter().map(Into::into).collect(),
        }
    }
}

/// Shows a change without the owners that do not exist: looking each of them up is for one change.
pub(super) fn show_in_list(
    change: Change,
    relation: Relation,
    approvers: Vec<Principal>,
) -> VisibleChange {
    VisibleChange { change, relation, approvers, unknown_owners: None }
}

/// Adds the owners that do not exist, if the caller may know them.
pub(super) fn add_unknown_owners(gateway: &Gateway, visible: VisibleChange) -> VisibleChange {
    let VisibleChange { change, relation, .. } = &visible;
    let may_probe = relation.is_approver || relation.is_admin;
    let unknown = |owner: &&Principal| !gateway.auth.groups.exists(owner);
    let unknown_owners = may_probe.then(|| change.owners.iter().filter(unknown).cloned().collect());
    VisibleChange { unknown_owners, ..visible }
}

/// Returns the change with this id, without the owners that do not exist.
pub(super) fn find_visible(
    gateway: &Gateway,
    by: &Caller,
    id: &str,
) -> Result<VisibleChange, GatewayError> {
    let read = gateway.store.read();
    let change = find_change(&read, id)?.ok_or_else(|| missing_change_error(id))?;
    let approvers = current_approvers(&read, gateway.catalogue.watch(), &change)?;
    let viewer = Viewer { gateway, by, transaction: None };
    let relation = viewer.relation_to(&change, &approvers)?;
    if !relation.may_see() {
        return Err(missing_change_error(id));
    }
    Ok(show_in_list(change, relation, approvers))
}
