//! The use cases of groups. Everybody reads their names, Admins read their members and change them.
use crate::blocking::run_blocking;
use crate::gateway::Gateway;
use penstock_auth::groups::{self, NewGroup, missing_group_error};
use penstock_auth::{Authorized, Role};
use penstock_base::IfMatch;
use penstock_base::error::GatewayError;
use penstock_resources::group::Group;

/// Lists at most `limit` groups after the name `after`, ordered by name.
pub fn list_groups(
    gateway: &Gateway,
    by: &Authorized,
    after: Option<&str>,
    limit: usize,
) -> Vec<Group> {
    let groups = gateway.auth.groups.list(after, limit);
    groups.iter().map(|group| show_group(gateway, by, group)).collect()
}

/// Returns the group with this name.
///
/// # Errors
/// `ErrorClass::NotFound`.
pub fn find_group(gateway: &Gateway, by: &Authorized, name: &str) -> Result<Group, GatewayError> {
    let group = gateway.auth.groups.get(name).ok_or_else(|| missing_group_error(name))?;
    Ok(show_group(gateway, by, &group))
}

/// Creates the group, or replaces the one of the same name. Returns true if it was created.
///
/// # Errors
/// - The errors of [`penstock_auth::groups::Groups::put`]
/// - `ErrorClass::Forbidden` without the role Admin
/// - `ErrorClass::InsufficientStorage` when less than the reserve is free on the disk
pub async fn define_group(
    gateway: &Gateway,
    by: &Authorized,
    name: &str,
    new: NewGroup,
    if_match: IfMatch,
    only_if_new: bool,
) -> Result<(Group, bool), GatewayError> {
    by.require_role(Role::Admin)?;
    gateway.disk.check_reserve()?;
    let (gateway, by, name) = (gateway.clone(), by.clone(), name.to_owned());
    run_blocking(move || {
        let (group, created) = gateway.auth.groups.put(&by, &name, &new, if_match, only_if_new)?;
        tracing::info!(group = name, version = group.version, by = by.id(), "A group was defined.");
        Ok((show_group(&gateway, &by, &group), created))
    })
    .await
}

/// Deletes a group.
///
/// # Errors
/// The errors of [`penstock_auth::groups::Groups::delete`]; `ErrorClass::Forbidden` without the role Admin.
pub async fn delete_group(
    gateway: &Gateway,
    by: &Authorized,
    name: &str,
    if_match: IfMatch,
) -> Result<(), GatewayError> {
    by.require_role(Role::Admin)?;
    let (gateway, by, name) = (gateway.clone(), by.clone(), name.to_owned());
    run_blocking(move || {
        gateway.auth.groups.delete(&by, &name, if_match)?;
        tracing::info!(group = name, by = by.id(), "A group was deleted.");
        Ok(())
    })
    .await
}

/// Returns what the caller may see of a group. Its members are those that exist.
fn show_group(gateway: &Gateway, by: &Authorized, group: &groups::Group) -> Group {
    let for_admin = (by.role == Role::Admin).then_some(group);
    Group {
        name: group.name.clone(),
        members: for_admin.map(|group| gateway.auth.groups.list_members(group)),
        claim_values: for_admin.map(|group| group.claim_values.clone()),
        version: for_admin.map(|group| group.version),
        created_at: for_admin.map(|group| group.created_at.clone()),
        updated_at: for_admin.map(|group| group.updated_at.clone()),
        updated_by: for_admin.map(|group| group.updated_by.clone()),
    }
}
