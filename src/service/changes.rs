//! Changes under review: who sees them, and who takes which step.
//!
//! Everybody who may not see a change gets the same answer as for one that does not exist. Each step checks in its commit
//! who takes it, from the accounts, groups and definitions that the commit sees.
use crate::gateway::Gateway;
use penstock_auth::{Authorized, Caller, Role};
use penstock_base::error::{ErrorClass, GatewayError};
use penstock_base::principal::Principal;
use penstock_model::changes::{
    self, Applicability, Change, ChangeContent, ChangePage, DifferenceItem, Selection,
    missing_change_error,
};
use penstock_resources::change::ChangeState;

mod applicability;
pub(crate) mod audit_events;
mod pending;
pub(crate) mod recent_checks;
mod relation;
pub(crate) mod steps;
mod visible;
mod waiting;
pub(crate) mod waiting_counts;

pub use pending::{TouchingChanges, list_allowed_actions, list_touching_changes};
pub use relation::{Relation, RelationFilter, is_in_audience};
pub use steps::{ChangeStep, clean_up_changes, take_step};
pub use visible::VisibleChange;
pub use waiting::count_waiting_changes;

use applicability::check_applicability;
use relation::Viewer;
use visible::{add_unknown_owners, find_visible, show_in_list};

/// Selects changes.
#[derive(Debug, Clone, Default)]
pub struct ChangeFilter {
    /// Only those in this state.
    pub state: Option<ChangeState>,
    /// Only those in a state that a step can still change.
    pub only_open: bool,
    /// Only those of the Business Object with this id.
    pub business_object: Option<String>,
    /// Only those to which the caller has this relation.
    pub relation: Option<RelationFilter>,
}

/// A page of visible changes.
#[derive(Debug, Default)]
pub struct VisibleChanges {
    /// The changes, newest first.
    pub changes: Vec<VisibleChange>,
    /// Whether there are more.
    pub has_more: bool,
}

/// A change with a page of its difference.
#[derive(Debug)]
pub struct ChangeDetails {
    /// The change.
    pub visible: VisibleChange,
    /// The request and its warnings; only on the first page.
    pub content: Option<ChangeContent>,
    /// The page.
    pub difference: Vec<DifferenceItem>,
    /// The number of the next page.
    pub next_page: Option<u32>,
    /// Whether it would still do what the difference shows; only on the first page of an open change.
    pub applicability: Option<Applicability>,
}

/// Lists the changes that the caller may see and that the filter selects, newest first: at most `limit` after the one with
/// the id `after`.
///
/// # Errors
/// The errors of the store.
pub async fn list_changes(
    gateway: &Gateway,
    by: &Authorized,
    filter: ChangeFilter,
    after: Option<String>,
    limit: usize,
) -> Result<VisibleChanges, GatewayError> {
    gateway
        .run(by, Role::User, move |gateway, by| {
            list_visible(gateway, by, &filter, after.as_deref(), limit)
        })
        .await
}

/// Lists changes as [`list_changes`] does. Blocking.
///
/// # Errors
/// The errors of the store.
pub fn list_visible(
    gateway: &Gateway,
    by: &Caller,
    filter: &ChangeFilter,
    after: Option<&str>,
    limit: usize,
) -> Result<VisibleChanges, GatewayError> {
    let viewer = Viewer { gateway, by, transaction: None };
    let allows_self_approval = gateway.settings.review.allows_self_approval;
    let mut relations = Vec::new();
    let mut failure = None;
    let mut is_wanted = |change: &Change, approvers: &[Principal]| {
        let is_selected = filter.state.is_none_or(|state| state == change.state)
            && (!filter.only_open || change.state.is_open())
            && filter.business_object.as_ref().is_none_or(|id| *id == change.business_object);
        if !is_selected {
            return false;
        }
        match viewer.relation_to(change, approvers) {
            Ok(relation) => {
                let is_wanted = relation.may_see()
                    && filter
                        .relation
                        .is_none_or(|filter| relation.matches(filter, allows_self_approval));
                if is_wanted {
                    relations.push((relation, approvers.to_vec()));
                }
                is_wanted
            }
            Err(error) => {
                failure = Some(error);
                false
            }
        }
    };
    let watch = gateway.catalogue.watch();
    let is_open = filter.only_open || filter.state.is_some_and(ChangeState::is_open);
    let selection = if is_open { Selection::Open } else { Selection::All };
    let page = ChangePage { selection, after, limit };
    let listed = changes::list_changes(&gateway.store, watch, page, &mut is_wanted)?;
    if let Some(error) = failure {
        return Err(error);
    }
    let show = |(change, (relation, approvers))| show_in_list(change, relation, approvers);
    let changes = listed.changes.into_iter().zip(relations).map(show).collect();
    Ok(VisibleChanges { changes, has_more: listed.has_more })
}

/// Returns the memory in bytes for reading a change, or for running its request again. It is at most
/// `service.limits.in-flight`, so that a single change fits.
///
/// # Errors
/// `ErrorClass::NotFound` if the caller sees no such change.
pub async fn measure_change(
    gateway: &Gateway,
    by: &Authorized,
    id: String,
) -> Result<u64, GatewayError> {
    gateway
        .run(by, Role::User, move |gateway, by| {
            let change = find_visible(gateway, by, &id)?.change;
            Ok(change.memory_bytes().min(gateway.settings.limits.in_flight_bytes))
        })
        .await
}

/// Returns a change without its difference.
///
/// # Errors
/// `ErrorClass::NotFound` if the caller sees no such change.
pub async fn read_visible_change(
    gateway: &Gateway,
    by: &Authorized,
    id: String,
) -> Result<VisibleChange, GatewayError> {
    gateway
        .run(by, Role::User, move |gateway, by| {
            Ok(add_unknown_owners(gateway, find_visible(gateway, by, &id)?))
        })
        .await
}

/// Returns a change with a page of its difference, from 0. `version` is that of the page before.
///
/// # Errors
/// - `ErrorClass::NotFound` if the caller sees no such change
/// - `ErrorClass::Conflict` if it has another version
pub async fn read_change(
    gateway: &Gateway,
    by: &Authorized,
    id: String,
    version: Option<u64>,
    page: u32,
) -> Result<ChangeDetails, GatewayError> {
    gateway
        .run(by, Role::User, move |gateway, by| read_details(gateway, by, &id, version, page))
        .await
}

fn read_details(
    gateway: &Gateway,
    by: &Authorized,
    id: &str,
    version: Option<u64>,
    page: u32,
) -> Result<ChangeDetails, GatewayError> {
    let mut visible = find_visible(gateway, by, id)?;
    let is_checked = page == 0 && visible.change.state.is_open();
    let checked = &visible.change;
    let applicability = is_checked.then(|| check_applicability(gateway, by, checked)).flatten();
    let checked_version = checked.version;
    // A rebase replaces all parts in one commit, which one reader sees or not.
    let read = gateway.store.read();
    visible.change = changes::find_change(&read, id)?.ok_or_else(|| missing_change_error(id))?;
    if version.is_some_and(|version| version != visible.change.version) {
        return Err(GatewayError::new(
            ErrorClass::Conflict,
            format!("the change {id} is another version now; read it again from its first page"),
        ));
    }
    // A step that was taken meanwhile makes it the applicability of another version.
    let is_same = visible.change.version == checked_version && visible.change.state.is_open();
    let applicability = applicability.filter(|_| is_same);
    let content = match page {
        0 => Some(changes::read_content(&read, &visible.change)?),
        _ => None,
    };
    let difference = changes::read_difference(&read, &visible.change, page)?;
    let visible = add_unknown_owners(gateway, visible);
    let next_page = Some(page + 1).filter(|next| *next < visible.change.pages);
    Ok(ChangeDetails { visible, content, difference, next_page, applicability })
}
