//! Groups of accounts: documents of the store, all of them also in memory.
//!
//! An account is in a group if the group lists it, or lists a value of its group claim (`Account::group_claims`). A group
//! that this version cannot read has no members, so that a damaged record gives no rights.
//!
//! Invariant: a change locks `writer`, commits, and replaces the group in memory before it unlocks `writer`.
use super::accounts::{self, Accounts};
use super::audit::{Audit, Event};
use super::{Account, Caller, Requester};
use parking_lot::{Mutex, MutexGuard, RwLock};
use penstock_base::collections;
use penstock_base::definition::{MAX_NAME_CHARACTERS, check_conditions, check_name, missing_error};
use penstock_base::error::{ErrorClass, Finding, GatewayError};
use penstock_base::json::{self, Json, Members};
use penstock_base::managed::check_editable;
use penstock_base::principal::Principal;
use penstock_base::shared::Shared;
use penstock_base::table::{AsJson, Table};
use penstock_base::time;
use penstock_base::{Preconditions, Put, free_name, next_version};
use penstock_resources::definitions::DefinitionKind;
use penstock_store::{Error, Format, Read, Store, Transaction, UnreadableDocument};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Bound;
use std::sync::Arc;

/// The groups, by name.
const GROUPS: Table<String, AsJson<Group>> = Table::new(collections::GROUPS);

/// The maximum number of groups.
const MAX_GROUPS: usize = 1000;
/// The maximum number of members that a group lists, and of claim values.
const MAX_MEMBERS: usize = 10_000;
/// The maximum length of a claim value in bytes.
const MAX_CLAIM_VALUE_BYTES: usize = 256;
/// The maximum nesting of a body.
const MAX_NESTING: usize = 8;

/// A group.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Group {
    /// Its name.
    pub name: String,
    /// The ids of the accounts that it lists, sorted. Some may no longer exist.
    pub members: Vec<String>,
    /// The values of the group claim whose accounts are members, sorted.
    pub claim_values: Vec<String>,
    /// A number that each change raises by 1 or more.
    pub version: u64,
    /// When it was created (RFC 3339, UTC).
    pub created_at: String,
    /// When it was last changed (RFC 3339, UTC).
    pub updated_at: String,
    /// Who changed it last: an account's id, or `local`.
    pub updated_by: String,
}

/// What a client defines about a group.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct NewGroup {
    /// Its name.
    pub name: String,
    /// The ids or emails of its members.
    pub members: Vec<String>,
    /// The values of the group claim.
    pub claim_values: Vec<String>,
}

/// The groups. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Groups {
    inner: Shared<Inner>,
}

#[derive(Debug)]
struct Inner {
    store: Store,
    entries: RwLock<BTreeMap<String, Arc<Group>>>,
    writer: Mutex<()>,
    accounts: Accounts,
    audit: Audit,
}

impl Group {
    /// Returns whether the account is a member.
    pub fn has_member(&self, account: &Account) -> bool {
        self.members.binary_search(&account.id).is_ok()
            || account
                .group_claims
                .iter()
                .any(|value| self.claim_values.binary_search(value).is_ok())
    }

    /// Returns a text that every change of the group changes.
    pub fn fingerprint(&self) -> String {
        format!("{} {}", self.created_at, self.version)
    }

    /// Returns whether both list the same accounts and values.
    fn has_content_of(&self, other: &Self) -> bool {
        (&self.members, &self.claim_values) == (&other.members, &other.claim_values)
    }
}

impl NewGroup {
    /// Reads the body of a PUT of the group `name`. It may have the read-only members of an answer; they have no effect.
    ///
    /// # Errors
    /// `ErrorClass::Malformed` as [`json::parse`]; `ErrorClass::Invalid` with every finding.
    pub fn from_json(name: &str, body: &[u8]) -> Result<Self, GatewayError> {
        let body = json::parse(body, MAX_NESTING)?;
        let mut findings = Vec::new();
        let mut new = Self { name: name.to_owned(), ..Self::default() };
        if let Err(why) = check_name(DefinitionKind::Group, name, MAX_NAME_CHARACTERS, &['/', '"'])
        {
            findings.push(Finding::at_pointer("", why));
        }
        if let Some(mut members) = Members::of_object(body, "", &mut findings) {
            if let Some(given) = members.take_string("name")
                && given != name
            {
                members.add_finding("name", format!("the body names {given:?}, the path {name:?}"));
            }
            new.members = read_texts(&mut members, "members");
            new.claim_values = read_texts(&mut members, "claimValues");
            for read_only in ["version", "createdAt", "updatedAt", "updatedBy"] {
                members.take(read_only);
            }
            members.report_unknown();
        }
        if findings.is_empty() { Ok(new) } else { Err(invalid_group_error(name, findings)) }
    }
}

/// Reads an array of texts; none if it is absent.
fn read_texts(members: &mut Members<'_>, name: &'static str) -> Vec<String> {
    let mut texts = Vec::new();
    for (index, element) in members.take_array(name).unwrap_or_default().into_iter().enumerate() {
        let why = match element {
            Json::String(text) if text.is_empty() => "it is empty; remove it".to_owned(),
            Json::String(text) if text.len() > MAX_CLAIM_VALUE_BYTES => {
                format!("it is longer than {MAX_CLAIM_VALUE_BYTES} bytes")
            }
            Json::String(text) => {
                texts.push(text);
                continue;
            }
            other => format!("expected a string, not {}", other.kind_name()),
        };
        let place = format!("{}/{index}", members.pointer_to(name));
        members.findings().push(Finding::at_pointer(place, why));
    }
    if texts.len() > MAX_MEMBERS {
        members.add_finding(name, format!("it has more than {MAX_MEMBERS} elements"));
    }
    texts
}

fn invalid_group_error(name: &str, findings: Vec<Finding>) -> GatewayError {
    let detail = match findings.as_slice() {
        [one] => format!("the group {name:?} is not valid: {one}"),
        many => format!("the group {name:?} is not valid: {} errors were found", many.len()),
    };
    GatewayError::with_findings(ErrorClass::Invalid, detail, findings)
}

impl Groups {
    /// Reads all groups from the store.
    pub(super) fn open(
        store: &Store,
        accounts: &Accounts,
        audit: &Audit,
    ) -> Result<Self, GatewayError> {
        let mut entries = BTreeMap::new();
        for row in GROUPS.scan().read_all(&store.read())? {
            match row.value() {
                Ok(group) => _ = entries.insert(group.name.clone(), Arc::new(group)),
                Err(error) => log_unreadable(&String::from_utf8_lossy(row.key_bytes()), &error),
            }
        }
        let inner = Inner {
            store: store.clone(),
            entries: RwLock::new(entries),
            writer: Mutex::default(),
            accounts: accounts.clone(),
            audit: audit.clone(),
        };
        Ok(Self { inner: Shared::new(inner) })
    }

    /// Returns the group with this name.
    pub fn get(&self, name: &str) -> Option<Arc<Group>> {
        self.inner.entries.read().get(name).cloned()
    }

    /// Lists at most `limit` groups after this name, ordered by name.
    pub fn list(&self, after: Option<&str>, limit: usize) -> Vec<Arc<Group>> {
        let from = after.map_or(Bound::Unbounded, Bound::Excluded);
        let entries = self.inner.entries.read();
        entries
            .range::<str, _>((from, Bound::Unbounded))
            .take(limit)
            .map(|(_, group)| group.clone())
            .collect()
    }

    /// Returns the ids of the accounts that a group lists and that exist.
    pub fn list_members(&self, group: &Group) -> Vec<String> {
        let exists = |id: &&String| self.inner.accounts.get(id).is_some();
        group.members.iter().filter(exists).cloned().collect()
    }

    /// Creates the group or replaces the one of the same name. The same content changes nothing: version and `updatedAt`
    /// stay. Blocking.
    ///
    /// # Errors
    /// - `ErrorClass::Invalid` if an account does not exist
    /// - `ErrorClass::PreconditionFailed`
    /// - `ErrorClass::Conflict` if there are [`MAX_GROUPS`] others
    pub fn put(
        &self,
        by: &dyn Requester,
        new: &NewGroup,
        conditions: Preconditions,
    ) -> Result<Put<Arc<Group>>, GatewayError> {
        let members = self.resolve_members(new)?;
        let _writer = self.inner.writer.lock();
        let name = &new.name;
        let there = self.get(name);
        let version = there.as_ref().map(|there| there.version);
        check_conditions(DefinitionKind::Group, name, version, conditions)?;
        let (store, caller) = (&self.inner.store, by.caller());
        let group = build_group(&store.read(), caller, members, new, there.as_deref())?;
        if let Some(there) = there.as_ref().filter(|there| there.has_content_of(&group)) {
            return Ok(Put::Replaced(there.clone()));
        }
        if there.is_none() {
            check_room(self.inner.entries.read().len())?;
        }
        let event = describe_change(by.caller(), there.as_deref(), &group);
        self.inner.audit.commit_with_events(by, &[event], |transaction| {
            check_editable(transaction, DefinitionKind::Group, name)?;
            store_group(transaction, &group)
        })?;
        let group = Arc::new(group);
        self.inner.entries.write().insert(name.clone(), group.clone());
        Ok(Put::new(group, there.is_some()))
    }

    /// Begins several changes in one commit. Other changes of groups wait for its end.
    pub fn begin_batch(&self) -> GroupsBatch<'_> {
        let writer = self.inner.writer.lock();
        GroupsBatch { groups: self, _writer: writer, changes: BTreeMap::new() }
    }

    /// Deletes a group. Who was its member loses the rights that come from it. Blocking.
    ///
    /// # Errors
    /// `ErrorClass::NotFound` and `ErrorClass::PreconditionFailed`.
    pub fn delete(
        &self,
        by: &dyn Requester,
        name: &str,
        conditions: Preconditions,
    ) -> Result<(), GatewayError> {
        let _writer = self.inner.writer.lock();
        let there = self.get(name).ok_or_else(|| missing_error(DefinitionKind::Group, name))?;
        check_conditions(DefinitionKind::Group, name, Some(there.version), conditions)?;
        let event = change_event(by.caller(), "group.deleted", format!("{name:?}"));
        self.inner.audit.commit_with_events(by, &[event], |transaction| {
            check_editable(transaction, DefinitionKind::Group, name)?;
            GROUPS.delete(transaction, name)?;
            Ok(free_name(transaction, there.version)?)
        })?;
        self.inner.entries.write().remove(name);
        Ok(())
    }

    /// Returns whether an account is one of these users, or in one of these groups. Never blocks.
    pub fn is_any_of(&self, account: &Account, principals: &[Principal]) -> bool {
        principals.iter().any(|principal| match principal {
            Principal::User(user) => self.is_user(account, user),
            Principal::Group(name) => self.get(name).is_some_and(|group| group.has_member(account)),
        })
    }

    /// As [`Self::is_any_of`], as this transaction sees the account and the groups. An account that is disabled or does not
    /// exist is none of them.
    ///
    /// # Errors
    /// The errors of the store.
    pub fn is_any_of_in(
        &self,
        transaction: &Transaction<'_>,
        account: &str,
        principals: &[Principal],
    ) -> Result<bool, GatewayError> {
        let Some(account) = accounts::ACCOUNTS.get(transaction, account)?.filter(|it| it.enabled)
        else {
            return Ok(false);
        };
        for principal in principals {
            let is_meant = match principal {
                Principal::User(user) => self.is_user(&account, user),
                Principal::Group(name) => {
                    let group = match GROUPS.get(transaction, name) {
                        Err(Error::Unreadable(error)) => {
                            log_unreadable(name, &error);
                            None
                        }
                        group => group?,
                    };
                    group.is_some_and(|group| group.has_member(&account))
                }
            };
            if is_meant {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Returns whether a user or a group with this name exists.
    pub fn exists(&self, principal: &Principal) -> bool {
        match principal {
            Principal::User(user) => self.inner.accounts.find_user(user).is_some(),
            Principal::Group(name) => self.get(name).is_some(),
        }
    }

    fn is_user(&self, account: &Account, id_or_email: &str) -> bool {
        account.id == id_or_email
            // Other accounts may have the email too.
            || account.email.to_lowercase() == id_or_email.to_lowercase()
                && self.inner.accounts.find_user(id_or_email).is_some_and(|it| it.id == account.id)
    }

    /// Returns the ids of accounts that are given by id or email.
    fn resolve_members(&self, new: &NewGroup) -> Result<BTreeSet<String>, GatewayError> {
        let mut ids = BTreeSet::new();
        let mut findings = Vec::new();
        for (index, id_or_email) in new.members.iter().enumerate() {
            if let Some(account) = self.inner.accounts.find_user(id_or_email) {
                ids.insert(account.id.clone());
            } else if findings.len() < json::MAX_FINDINGS {
                let message = format!(
                    "no account has the id {id_or_email:?}, and not exactly one has it as its email"
                );
                let public_message = Some(
                    "a member is not an account; Admins see the id or email that was given"
                        .to_owned(),
                );
                let pointer = format!("/members/{index}");
                findings.push(Finding { public_message, ..Finding::at_pointer(pointer, message) });
            }
        }
        if findings.is_empty() { Ok(ids) } else { Err(invalid_group_error(&new.name, findings)) }
    }
}

/// Several changes of groups in one commit. It holds the lock of changes. The caller makes one transaction with all of them,
/// and then calls [`GroupsBatch::publish`]. Without that, memory stays as the store is.
#[derive(Debug)]
pub struct GroupsBatch<'g> {
    groups: &'g Groups,
    _writer: MutexGuard<'g, ()>,
    /// The new groups by name; `None` for a deleted one.
    changes: BTreeMap<String, Option<Arc<Group>>>,
}

impl GroupsBatch<'_> {
    /// Saves a group in the transaction. Returns it, or `None` if it equals the stored one.
    ///
    /// # Errors
    /// As [`Groups::put`].
    pub fn put(
        &mut self,
        transaction: &mut Transaction<'_>,
        by: &Caller,
        new: &NewGroup,
    ) -> Result<Option<Arc<Group>>, GatewayError> {
        let members = self.groups.resolve_members(new)?;
        let there = self.groups.get(&new.name);
        let group = build_group(transaction, by, members, new, there.as_deref())?;
        if there.as_ref().is_some_and(|there| there.has_content_of(&group)) {
            return Ok(None);
        }
        if there.is_none() {
            let is_new = |name: &&String| self.groups.get(name).is_none();
            let added = self.changes.keys().filter(is_new).count();
            check_room(self.groups.inner.entries.read().len() + added)?;
        }
        store_group(transaction, &group)?;
        let event = describe_change(by, there.as_deref(), &group);
        self.groups.inner.audit.add_event(transaction, &event)?;
        let group = Arc::new(group);
        self.changes.insert(new.name.clone(), Some(group.clone()));
        Ok(Some(group))
    }

    /// Returns the group as this batch leaves it.
    pub fn get(&self, name: &str) -> Option<Arc<Group>> {
        self.changes.get(name).cloned().unwrap_or_else(|| self.groups.get(name))
    }

    /// Deletes a group in the transaction.
    ///
    /// # Errors
    /// The errors of the store.
    pub fn delete(
        &mut self,
        transaction: &mut Transaction<'_>,
        by: &Caller,
        name: &str,
    ) -> Result<(), GatewayError> {
        GROUPS.delete(transaction, name)?;
        if let Some(there) = self.groups.get(name) {
            free_name(transaction, there.version)?;
        }
        let event = change_event(by, "group.deleted", format!("{name:?}"));
        self.groups.inner.audit.add_event(transaction, &event)?;
        self.changes.insert(name.to_owned(), None);
        Ok(())
    }

    /// Shows all changes, which are committed.
    pub fn publish(self) {
        let entries = &self.groups.inner.entries;
        let mut entries = entries.write();
        for (name, group) in self.changes {
            match group {
                Some(group) => entries.insert(name, group),
                None => entries.remove(&name),
            };
        }
    }
}

/// Builds the new content of a group with these members.
fn build_group(
    read: &dyn Read,
    by: &Caller,
    members: BTreeSet<String>,
    new: &NewGroup,
    there: Option<&Group>,
) -> Result<Group, Error> {
    let claim_values: BTreeSet<String> = new.claim_values.iter().cloned().collect();
    let now = time::now_rfc3339();
    Ok(Group {
        name: new.name.clone(),
        members: members.into_iter().collect(),
        claim_values: claim_values.into_iter().collect(),
        version: next_version(read, there.map(|there| there.version))?,
        created_at: there.map_or_else(|| now.clone(), |there| there.created_at.clone()),
        updated_at: now,
        updated_by: by.id().to_owned(),
    })
}

/// Stores a group.
fn store_group(transaction: &mut Transaction<'_>, group: &Group) -> Result<(), GatewayError> {
    transaction.require_format(Format::V3);
    Ok(GROUPS.put(transaction, &group.name, group)?)
}

/// Checks that there may be one group more than this number.
fn check_room(count: usize) -> Result<(), GatewayError> {
    if count < MAX_GROUPS {
        return Ok(());
    }
    Err(GatewayError::new(
        ErrorClass::Conflict,
        format!("the limit of {MAX_GROUPS} groups is reached; delete some"),
    ))
}

/// Builds the event of a change, which names the members that it adds and removes.
fn describe_change(by: &Caller, before: Option<&Group>, after: &Group) -> Event {
    let what = if before.is_some() { "group.replaced" } else { "group.created" };
    let none = Vec::new();
    let list_new = |sign: &str, all: &[String], than: &[String]| {
        let new = all.iter().filter(|one| !than.contains(one));
        new.map(|one| format!("{sign}{one}")).collect::<Vec<_>>()
    };
    let (members, values) =
        before.map_or((&none, &none), |before| (&before.members, &before.claim_values));
    let mut changes = list_new("+", &after.members, members);
    changes.extend(list_new("-", members, &after.members));
    changes.extend(list_new("+claim ", &after.claim_values, values));
    changes.extend(list_new("-claim ", values, &after.claim_values));
    let detail = format!("{:?}, version {}: {}", after.name, after.version, changes.join(", "));
    change_event(by, what, detail)
}

fn change_event(by: &Caller, what: &'static str, detail: String) -> Event {
    Event { what, account: None, by: Some(by.actor_id().to_owned()), from: by.from, detail }
}

fn log_unreadable(name: &str, error: &UnreadableDocument) {
    tracing::error!(%name, %error, "A group could not be read and has no members.");
}

#[cfg(test)]
mod tests {
    use super::super::fixture::Fixture;
    use super::super::{AccountSource, Authorized, Identity, Profile, Role};
    use super::*;
    use penstock_base::IfMatch;

    fn put(fixture: &Fixture, name: &str, members: &[&str], values: &[&str]) -> Arc<Group> {
        let texts = |all: &[&str]| all.iter().map(|one| (*one).to_owned()).collect();
        let (members, claim_values) = (texts(members), texts(values));
        let new = NewGroup { name: name.to_owned(), members, claim_values };
        let by = Authorized::local();
        fixture.auth.groups.put(&by, &new, Preconditions::default()).unwrap().into_value()
    }

    fn principals(texts: &[&str]) -> Vec<Principal> {
        texts.iter().map(|text| Principal::parse(text).unwrap()).collect()
    }

    #[test]
    fn members_are_listed_by_id_or_email_or_come_from_a_claim() {
        let fixture = Fixture::new();
        let ada = fixture.create_account("ada", Role::User);
        let bob = fixture.create_account("bob", Role::User);
        let identity = Identity {
            source: AccountSource::ServiceAccount,
            issuer: "i".to_owned(),
            name: "line 4".to_owned(),
        };
        let sign_in = |claims: &[&str]| {
            let group_claims = claims.iter().map(|one| (*one).to_owned()).collect();
            let profile = Profile { group_claims, ..Profile::default() };
            fixture.auth.accounts.sign_in_identity(&identity, &profile, Role::User).unwrap()
        };
        let first = put(&fixture, "shift 1", &[&ada.email, &ada.id], &["9f-1"]);
        assert_eq!((first.members.clone(), first.version), (vec![ada.id.clone()], 1));
        assert_eq!(put(&fixture, "shift 1", &[&ada.id], &["9f-1"]).version, 1, "nothing changed");
        let groups = &fixture.auth.groups;
        let meant = principals(&["group:shift 1"]);
        assert!(groups.is_any_of(&ada, &meant) && !groups.is_any_of(&bob, &meant));
        // The last sign-in or token decides.
        assert!(groups.is_any_of(&sign_in(&["9f-1", "x"]), &meant));
        assert!(!groups.is_any_of(&sign_in(&[]), &meant));
        assert!(groups.is_any_of(&bob, &principals(&["group:none", "user:BOB"])));
        assert!(!groups.is_any_of(&bob, &principals(&["group:none", "user:ada"])));
        let error = NewGroup { members: vec!["carl".to_owned()], ..NewGroup::default() };
        let by = Authorized::local();
        let error = groups.put(&by, &error, Preconditions::default()).unwrap_err();
        assert_eq!((error.class, error.findings.len()), (ErrorClass::Invalid, 1));
    }

    #[test]
    fn a_commit_sees_a_changed_group_before_memory_does() {
        let fixture = Fixture::new();
        let ada = fixture.create_account("ada", Role::User);
        put(&fixture, "shift 1", &["ada"], &[]);
        let meant = principals(&["group:shift 1"]);
        let is_meant = || {
            let check = |transaction: &mut Transaction<'_>| {
                fixture.auth.groups.is_any_of_in(transaction, &ada.id, &meant)
            };
            fixture.store.transact::<_, GatewayError>(check).unwrap().0
        };
        assert!(is_meant());
        let remove = |transaction: &mut Transaction<'_>| {
            Ok::<_, GatewayError>(GROUPS.delete(transaction, "shift 1")?)
        };
        fixture.store.transact(remove).unwrap();
        assert!(fixture.auth.groups.is_any_of(&ada, &meant) && !is_meant());
    }

    #[test]
    fn groups_survive_a_restart_and_have_audit_events() {
        let fixture = Fixture::new();
        let ada = fixture.create_account("ada", Role::User);
        put(&fixture, "a", &[&ada.id], &["v"]);
        put(&fixture, "a", &[], &["v"]);
        put(&fixture, "b", &[], &[]);
        fixture.auth.groups.delete(&Authorized::local(), "b", IfMatch::Version(1).into()).unwrap();
        let again =
            Groups::open(&fixture.store, &fixture.auth.accounts, &fixture.auth.audit).unwrap();
        assert_eq!(again.list(None, 10), fixture.auth.groups.list(None, 10));
        let filter = crate::audit::Filter { what: Some("group".to_owned()), ..Default::default() };
        let events = fixture.auth.audit.list(&filter, None, 10).unwrap();
        let details: Vec<_> = events.iter().map(|event| event.detail.clone()).collect();
        let removed = format!("\"a\", version 2: -{}", ada.id);
        assert_eq!(details[2], removed, "{details:?}");
        assert_eq!(details.len(), 4);
    }
}
