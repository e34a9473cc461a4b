//! The accounts: documents of the store, all of them also in memory, found by id, email and identity.
//!
//! Invariant: memory matches the store, except for the last login, which can be some minutes ahead in memory. A
//! change locks `writer`, reads the current state, commits, and replaces the account in memory before it unlocks
//! `writer`. So the first of many concurrent first requests of one identity creates the account, and the others
//! find it.
mod edit;
mod entries;
mod initial;
mod sign_in;

pub use edit::{AccountEdit, NewAccount, NewPassword};

use super::attempts::Attempts;
use super::audit::{Audit, Event};
use super::deferred_writes::DeferredWrites;
use super::password;
use super::{Account, AuthError, Identity, Profile};
use entries::AccountIndex;
use parking_lot::{Mutex, MutexGuard, RwLock};
use penstock_base::collections;
use penstock_base::commit::{CommitCheck, NoClient};
use penstock_base::error::{ErrorClass, GatewayError};
use penstock_base::next_version_named;
use penstock_base::shared::Shared;
use penstock_base::table::{AsJson, Table};
use penstock_base::time;
use penstock_resources::account::AccountSource;
use penstock_resources::role::Role;
use penstock_store::{Error, Format, Store, Transaction};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// The accounts, by id.
pub(super) const ACCOUNTS: Table<String, AsJson<Account>> = Table::new(collections::ACCOUNTS);

/// The maximum number of accounts. Each takes about 2.5 KB of memory, including the memory of the store for it.
const MAX_ACCOUNTS: usize = 10_000;
/// The resolution of the last login in memory.
const LAST_LOGIN_RESOLUTION: Duration = Duration::from_mins(1);

/// The accounts. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Accounts {
    inner: Shared<Inner>,
}

#[derive(Debug)]
struct Inner {
    /// To avoid a deadlock, no transaction begins while this lock is held: a running transaction may wait for the lock.
    entries: RwLock<AccountIndex>,
    writer: Mutex<()>,
    audit: Audit,
    deferred_writes: DeferredWrites,
    hash_permits: password::HashPermits,
    attempts: Attempts,
    /// The source of the accounts that people sign in with.
    people: AccountSource,
    data_dir: PathBuf,
}

impl Accounts {
    /// Reads all accounts from the store. Creates the account `admin` if `people` is built-in and the store has no
    /// built-in account. Blocking.
    pub(super) fn open(
        store: &Store,
        later: &DeferredWrites,
        audit: &Audit,
        people: AccountSource,
        data_dir: PathBuf,
    ) -> Result<Self, GatewayError> {
        let inner = Inner {
            entries: RwLock::new(load_accounts(store)?),
            writer: Mutex::default(),
            audit: audit.clone(),
            deferred_writes: later.clone(),
            hash_permits: password::HashPermits::default(),
            attempts: Attempts::default(),
            people,
            data_dir,
        };
        let accounts = Self { inner: Shared::new(inner) };
        accounts.create_initial_account()?;
        Ok(accounts)
    }

    /// Returns the account with this id.
    pub fn get(&self, id: &str) -> Option<Arc<Account>> {
        self.inner.entries.read().get(id).cloned()
    }

    /// Returns the account with this identity, if it exists. Never blocks.
    pub fn find_by_identity(&self, identity: &Identity) -> Option<Arc<Account>> {
        self.inner.entries.read().by_identity(identity).cloned()
    }

    /// Returns the account with this id, or the built-in account with this email.
    pub fn find_by_id_or_email(&self, id_or_email: &str) -> Option<Arc<Account>> {
        let entries = self.inner.entries.read();
        entries.get(id_or_email).or_else(|| entries.by_email(id_or_email)).cloned()
    }

    /// Returns the account with this id, or the only one with this email, ignoring case. An email of a built-in account
    /// is its own, whatever the emails of a provider are.
    pub fn find_user(&self, id_or_email: &str) -> Option<Arc<Account>> {
        if let Some(found) = self.find_by_id_or_email(id_or_email) {
            return Some(found);
        }
        let email = id_or_email.to_lowercase();
        let entries = self.inner.entries.read();
        let mut found =
            entries.iter_accounts().filter(|account| account.email.to_lowercase() == email);
        let only = found.next()?;
        found.next().is_none().then(|| only.clone())
    }

    /// Lists at most `limit` accounts after this id, ordered by id.
    pub fn list(
        &self,
        after: Option<&str>,
        limit: usize,
    ) -> Result<Vec<Arc<Account>>, GatewayError> {
        Ok(self.inner.entries.read().iter_after(after).take(limit).cloned().collect())
    }

    /// Returns the account of this identity if only its last login changes. Returns `None` if
    /// [`Self::sign_in_identity`] has to create or update the account. Never blocks.
    ///
    /// # Errors
    /// `AuthError::Forbidden` when it is disabled.
    pub fn sign_in_if_unchanged(
        &self,
        identity: &Identity,
        profile: &Profile,
        role: Role,
    ) -> Option<Result<Arc<Account>, AuthError>> {
        let account = self.inner.entries.read().by_identity(identity)?.clone();
        if !account.enabled {
            return Some(Err(account_disabled_error()));
        }
        if !account.matches_profile(profile, role) {
            return None;
        }
        Some(Ok(self.record_login(&account.id).unwrap_or(account)))
    }

    /// Returns the account of this identity: created at the first sign-in, updated at each later one. Concurrent
    /// first sign-ins create one account. Blocking when it creates or changes the account.
    ///
    /// # Errors
    /// `AuthError::Forbidden` when it is disabled; `AuthError::Unavailable` when the store takes no commit.
    pub fn sign_in_identity(
        &self,
        identity: &Identity,
        profile: &Profile,
        role: Role,
    ) -> Result<Arc<Account>, AuthError> {
        if let Some(signed_in) = self.sign_in_if_unchanged(identity, profile, role) {
            return signed_in;
        }
        let writer = self.inner.writer.lock();
        // Another request may have created or updated the account while this one waited.
        if let Some(signed_in) = self.sign_in_if_unchanged(identity, profile, role) {
            return signed_in;
        }
        let before = self.inner.entries.read().by_identity(identity).cloned();
        let (account, events) = match before {
            None => self.provision_account(identity, profile, role)?,
            Some(before) => {
                let mut account = (*before).clone();
                account.apply_profile(profile, role);
                account.version += 1;
                let mut events = Vec::new();
                if account.role != before.role {
                    events.push(event_without_requester(
                        "role.changed",
                        &account,
                        format!("from {} to {}, set by the provider", before.role, account.role),
                    ));
                }
                let other =
                    Account { role: before.role, version: before.version, ..account.clone() };
                if other != *before {
                    let detail = "the provider changed its names, email, organization or groups";
                    events.push(event_without_requester("account.changed", &account, detail));
                }
                (account, events)
            }
        };
        let account =
            self.commit_account(&writer, &NoClient, account, &events).map_err(|error| {
                AuthError::Unavailable(format!("storing the account failed: {error}"))
            })?;
        drop(writer);
        Ok(self.record_login(&account.id).unwrap_or(account))
    }

    fn provision_account(
        &self,
        identity: &Identity,
        profile: &Profile,
        role: Role,
    ) -> Result<(Account, Vec<Event>), AuthError> {
        self.check_capacity().map_err(|error| AuthError::Unavailable(error.detail))?;
        let mut account = new_account(identity.name.clone(), role);
        account.identity = Some(identity.clone());
        account.apply_profile(profile, role);
        let detail = format!(
            "{} of {} with the role {role}, at its first sign-in: {}",
            identity.source.name(),
            identity.issuer,
            account.email
        );
        let created = event_without_requester("account.created", &account, detail);
        Ok((account, vec![created]))
    }

    /// Fails if the limit of accounts is reached.
    fn check_capacity(&self) -> Result<(), GatewayError> {
        if self.inner.entries.read().len() < MAX_ACCOUNTS {
            return Ok(());
        }
        Err(GatewayError::new(
            ErrorClass::Conflict,
            format!("the limit of {MAX_ACCOUNTS} accounts is reached; delete some"),
        ))
    }

    /// Records a login of the account now, and returns the updated account.
    fn record_login(&self, id: &str) -> Option<Arc<Account>> {
        let now = Instant::now();
        let entries = self.inner.entries.read();
        if entries
            .last_login_at(id)
            .is_some_and(|seen| now.duration_since(seen) < LAST_LOGIN_RESOLUTION)
        {
            return entries.get(id).cloned();
        }
        drop(entries);
        let mut entries = self.inner.entries.write();
        let (account, write) = entries.record_login(id, now, &time::now_rfc3339())?;
        drop(entries);
        if let Some((cell, delay)) = write {
            let id = id.to_owned();
            self.inner.deferred_writes.enqueue_after(delay, move |transaction| {
                let seen = cell.take_for_write(Instant::now());
                write_last_login(transaction, &id, &seen)
            });
        }
        Some(account)
    }

    /// Commits an account with its audit events, then replaces it in memory. The guard proves that no other change of
    /// accounts is running.
    fn commit_account(
        &self,
        _writer: &MutexGuard<'_, ()>,
        check: &dyn CommitCheck,
        mut account: Account,
        events: &[Event],
    ) -> Result<Arc<Account>, GatewayError> {
        let before = self.get(&account.id);
        let before = before.as_ref().map(|before| (before.email.as_str(), before.version));
        self.inner.audit.commit_with_events(check, events, |transaction| {
            if !account.group_claims.is_empty() {
                // An older version would drop them.
                transaction.require_format(Format::V3);
            }
            if before.is_none_or(|(_, before)| before < account.version) {
                account.version = next_version_named(transaction, before, &account.email)?;
            }
            Ok(ACCOUNTS.put(transaction, &account.id, &account)?)
        })?;
        let account = Arc::new(account);
        self.inner.entries.write().insert(account.clone());
        Ok(account)
    }
}

/// Creates the error for a disabled account (403).
pub(super) fn account_disabled_error() -> AuthError {
    AuthError::Forbidden("this account is disabled; an Admin can enable it".to_owned())
}

/// Creates an enabled account with a new id, this email and this role. All other fields are empty.
fn new_account(email: String, role: Role) -> Account {
    Account {
        id: uuid::Uuid::now_v7().to_string(),
        given_name: None,
        family_name: None,
        email,
        organization: None,
        role,
        enabled: true,
        identity: None,
        client_id: None,
        group_claims: Vec::new(),
        first_login: None,
        last_login: None,
        password: None,
        initial_password: false,
        version: 1,
        generation: 0,
        created_at: time::now_rfc3339(),
    }
}

/// Creates the event of a change that has no requester, because a sign-in or the provider caused it.
fn event_without_requester(
    what: &'static str,
    account: &Account,
    detail: impl Into<String>,
) -> Event {
    Event { what, account: Some(account.id.clone()), by: None, from: None, detail: detail.into() }
}

fn write_last_login(
    transaction: &mut Transaction<'_>,
    id: &str,
    seen: &str,
) -> Result<(), GatewayError> {
    // The account may have been deleted meanwhile.
    let Some(mut account) = ACCOUNTS.get_readable(transaction, id)? else { return Ok(()) };
    account.first_login.get_or_insert_with(|| seen.to_owned());
    account.last_login = Some(seen.to_owned());
    Ok(ACCOUNTS.put(transaction, id, &account)?)
}

fn load_accounts(store: &Store) -> Result<AccountIndex, GatewayError> {
    let mut entries = AccountIndex::default();
    for row in ACCOUNTS.scan().read_all(&store.read())? {
        match row.value() {
            Ok(account) => entries.insert(Arc::new(account)),
            // A later version may have written it. The other accounts must still work.
            Err(error) => {
                let error = Error::from(error);
                tracing::error!(%error, "An account could not be read and is ignored; it cannot sign in.");
            }
        }
    }
    Ok(entries)
}

#[cfg(test)]
mod tests;
