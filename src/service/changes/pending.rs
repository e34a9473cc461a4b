//! The open changes of an object, and the steps that a caller may take with a change.
use super::relation::Viewer;
use super::steps::minimum_role;
use super::visible::{VisibleChange, show_in_list};
use crate::gateway::Gateway;
use penstock_auth::{Authorized, Caller, Role};
use penstock_base::error::{ErrorClass, GatewayError};
use penstock_model::changes::{
    ChangeAction, SubjectHashes, current_approvers, find_change, is_touched, iter_open_changes,
};

/// The maximum number of open changes that are searched for an object.
const MAX_SEARCHED_CHANGES: usize = 1000;
/// The maximum number of objects in the differences that are searched for an object.
const MAX_SEARCHED_OBJECTS: u64 = 1_000_000;

/// The open changes that touch an object, as a caller sees them.
#[derive(Debug)]
pub struct TouchingChanges {
    /// The changes, newest first.
    pub changes: Vec<VisibleChange>,
    /// Whether all open changes were searched, and could be read.
    pub is_complete: bool,
}

/// Returns the steps that the caller may take with a change in its present state.
pub fn list_allowed_actions(
    gateway: &Gateway,
    by: &Caller,
    visible: &VisibleChange,
) -> Vec<ChangeAction> {
    let allows_self_approval = gateway.settings.review.allows_self_approval;
    let is_allowed = |action: &ChangeAction| {
        by.business_objects().is_none()
            && by.role >= minimum_role(*action)
            && action.is_allowed_from(visible.change.state)
            && visible.relation.check_action(*action, allows_self_approval).is_ok()
    };
    ChangeAction::ALL.into_iter().filter(is_allowed).collect()
}

/// Returns the open changes that touch an object and that the caller may see. It searches a bounded number of them.
///
/// # Errors
/// The errors of the store.
pub async fn list_touching_changes(
    gateway: &Gateway,
    by: &Authorized,
    uri: String,
) -> Result<TouchingChanges, GatewayError> {
    gateway.run(by, Role::User, move |gateway, by| find_touching(gateway, by, &uri)).await
}

fn find_touching(
    gateway: &Gateway,
    by: &Caller,
    uri: &str,
) -> Result<TouchingChanges, GatewayError> {
    let viewer = Viewer { gateway, by, transaction: None };
    let found = TouchingChanges { changes: Vec::new(), is_complete: true };
    let object = SubjectHashes::of_object(&gateway.store.read(), uri)?;
    let mut search = Search { viewer, object, changes: 0, objects: 0, found };
    for open in iter_open_changes(&gateway.store) {
        let open = open?;
        if search.changes >= MAX_SEARCHED_CHANGES || search.objects >= MAX_SEARCHED_OBJECTS {
            search.found.is_complete = false;
            break;
        }
        match search.visit_change(&open.id) {
            Ok(()) => {}
            // What cannot be read does not hide the others, nor the object.
            Err(error) if error.class == ErrorClass::Internal => {
                let (change, cause) = (&open.id, &error.detail);
                tracing::warn!(change, cause, "An open change was left out of a search.");
                search.found.is_complete = false;
            }
            Err(error) => return Err(error),
        }
    }
    Ok(search.found)
}

/// A search for the open changes of an object.
struct Search<'s> {
    viewer: Viewer<'s>,
    object: SubjectHashes,
    /// How many changes it has read.
    changes: usize,
    /// How many objects their differences have.
    objects: u64,
    found: TouchingChanges,
}

impl Search<'_> {
    fn visit_change(&mut self, id: &str) -> Result<(), GatewayError> {
        self.changes += 1;
        let gateway = self.viewer.gateway;
        // A view for each change, so that commits wait only for one.
        let read = gateway.store.read();
        let Some(change) = find_change(&read, id)?.filter(|change| change.state.is_open()) else {
            return Ok(());
        };
        let approvers = current_approvers(&read, gateway.catalogue.watch(), &change)?;
        let relation = self.viewer.relation_to(&change, &approvers)?;
        if !relation.may_see() {
            return Ok(());
        }
        self.objects += change.items;
        if is_touched(&read, &change, &self.object)? {
            self.found.changes.push(show_in_list(change, relation, approvers));
        }
        Ok(())
    }
}
