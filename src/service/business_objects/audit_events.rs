//! The audit events of changes of the catalogue, in their commits.
use crate::audit::change_event;
use crate::definitions::kind::Result;
use crate::gateway::Gateway;
use penstock_auth::audit::Event;
use penstock_auth::{Authorized, Caller};
use penstock_base::Put;
use penstock_model::catalogue::{Action, Change, Requester};
use penstock_store::Transaction;

/// Runs a change of the catalogue. Its audit events are in its commit.
pub(crate) fn change_catalogue<T>(
    gateway: &Gateway,
    by: &Authorized,
    change: impl FnOnce(Requester<'_>) -> Result<T>,
) -> Result<T> {
    gateway.auth.audit.flush();
    let add_events = |transaction: &mut Transaction<'_>, change: &Change<'_>| {
        add_audit_events(gateway, by, transaction, change)
    };
    change(Requester { on_commit: Some(&add_events), ..Requester::new(by, by.id()) })
}

/// Adds the audit events of a change to its commit: one for the Business Object, one for all created namespaces and one
/// for all changed ones. A mapping may name a thousand namespaces, so they have no events of their own.
pub(crate) fn add_audit_events(
    gateway: &Gateway,
    by: &Caller,
    transaction: &mut Transaction<'_>,
    change: &Change<'_>,
) -> Result<()> {
    let audit = &gateway.auth.audit;
    for (what, is_new) in [("namespace.created", true), ("namespace.replaced", false)] {
        let of_kind = change.namespaces.iter().filter(|put| put.is_created() == is_new);
        let named: Vec<String> = of_kind
            .map(Put::value)
            .map(|namespace| format!("{:?} <{}>", namespace.name, namespace.uri_base))
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
            return audit.add_event(transaction, &deletion_start_event(by, change, members));
        }
    };
    let forced = change
        .forced
        .map_or_else(String::new, |loss| format!(", force=true: {loss} no longer belong to it"));
    let detail = format!("{:?} ({}), version {}{forced}", change.name, change.id, change.version);
    audit.add_event(transaction, &change_event(by, what, detail))
}

/// Builds the audit event of the beginning of a deletion.
fn deletion_start_event(by: &Caller, change: &Change<'_>, members: u64) -> Event {
    let Change { name, id, version, .. } = change;
    let bypass = if change.bypassed { ", bypass=true" } else { "" };
    let detail = format!("{name:?} ({id}), version {version}, with {members} objects{bypass}");
    change_event(by, "business-object.deletion-begun", detail)
}

/// Builds the audit event of the end of a deletion. It names the account that has begun it.
pub(crate) fn deletion_end_event(gateway: &Gateway, change: &Change<'_>) -> Event {
    let Change { name, id, version, action, .. } = change;
    let deleted = match action {
        Action::DeletedWithObjects(deleted) => *deleted,
        _ => 0,
    };
    let compiled = gateway.catalogue.get(id);
    let by = compiled.and_then(|compiled| compiled.object.updated_by.clone());
    let detail = format!("{name:?} ({id}), version {version}, with {deleted} objects");
    Event { what: "business-object.deleted", account: None, by, from: None, detail }
}
