//! The use cases of groups. Everybody reads their names, Admins read their members and change them.
use crate::definitions::batch::DefinitionBatch;
use crate::definitions::content::Content;
use crate::definitions::kind::{FindVersion, Kind, Result, StoredKind};
use crate::gateway::Gateway;
use penstock_auth::groups::{self, NewGroup};
use penstock_auth::{Authorized, Role};
use penstock_base::definition::missing_error;
use penstock_base::json::Json;
use penstock_base::{Preconditions, Put};
use penstock_resources::definitions::DefinitionKind;
use penstock_resources::group::Group;
use penstock_store::{Read, Transaction};

/// The groups.
#[derive(Debug)]
pub struct Groups;

impl Kind for Groups {
    const KIND: DefinitionKind = DefinitionKind::Group;
    const STORED_VERSION: Option<FindVersion> =
        Some(|gateway, name| gateway.auth.groups.get(name).map(|group| group.version));
    type New = NewGroup;
    type Shown = Group;

    fn name(shown: &Group) -> &str {
        &shown.name
    }

    fn version(shown: &Group) -> Option<u64> {
        shown.version
    }

    fn list(
        gateway: &Gateway,
        by: &Authorized,
        after: Option<&str>,
        limit: usize,
    ) -> Result<Vec<Group>> {
        let groups = gateway.auth.groups.list(after, limit);
        Ok(groups.iter().map(|group| show_group(gateway, by, group)).collect())
    }

    fn find(gateway: &Gateway, by: &Authorized, name: &str) -> Result<Group> {
        let found = gateway.auth.groups.get(name);
        let group = found.ok_or_else(|| missing_error(Self::KIND, name))?;
        Ok(show_group(gateway, by, &group))
    }
}

impl StoredKind for Groups {
    fn put(
        gateway: &Gateway,
        by: &Authorized,
        new: NewGroup,
        conditions: Preconditions,
    ) -> Result<Put<Group>> {
        let put = gateway.auth.groups.put(by, &new, conditions)?;
        let groups::Group { name, version, .. } = &**put.value();
        tracing::info!(group = name, version, by = by.id(), "A group was defined.");
        Ok(put.map(|group| show_group(gateway, by, &group)))
    }

    fn delete(
        gateway: &Gateway,
        by: &Authorized,
        name: &str,
        conditions: Preconditions,
    ) -> Result<()> {
        gateway.auth.groups.delete(by, name, conditions)?;
        tracing::info!(group = name, by = by.id(), "A group was deleted.");
        Ok(())
    }

    fn read_members(_: &Gateway, name: &str, members: Vec<(String, Json)>) -> Result<Content> {
        let body = Json::Object(members).to_string();
        NewGroup::from_json(name, body.as_bytes()).map(Content::Group)
    }

    fn find_fingerprint(gateway: &Gateway, _: &dyn Read, name: &str) -> Result<Option<String>> {
        Ok(gateway.auth.groups.get(name).map(|group| group.fingerprint()))
    }

    fn describe(batch: &DefinitionBatch<'_>, _: &dyn Read, name: &str) -> Result<Vec<String>> {
        let Some(group) = batch.groups.get(name) else { return Ok(Vec::new()) };
        let list = |name: &str, values: &[String]| {
            let elements = values.iter().map(|value| format!("  - {value}"));
            std::iter::once(format!("{name}:")).chain(elements).collect::<Vec<_>>()
        };
        Ok([list("members", &group.members), list("claimValues", &group.claim_values)].concat())
    }

    fn erase(
        batch: &mut DefinitionBatch<'_>,
        transaction: &mut Transaction<'_>,
        name: &str,
    ) -> Result<()> {
        batch.groups.delete(transaction, batch.by, name)
    }
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
