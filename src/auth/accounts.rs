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

pub use edit::{Edit, New, NewPassword};

use super::account::Source;
use super::attempts::Attempts;
use super::audit::{Audit, Event};
use super::later::Later;
use super::password;
use super::{Account, Identity, Profile, Refusal, Role};
use entries::Entries;
use penstock_base::commit::{CommitCheck, NoClient};
use penstock_base::fault::{Fault, Kind};
use penstock_base::time;
use penstock_store::{Corruption, DocumentRange, Read, Store, Transaction};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};
use std::time::{Duration, Instant};

/// The collection of the documents: id to JSON.
pub const COLLECTION: &str = "accounts";

/// The maximum number of accounts. Each takes about 2.5 KB of memory, including the memory of the store for it.
const MOST: usize = 10_000;
/// The resolution of the last login in memory, and the minimum interval between two writes of it.
const SEEN: Duration = Duration::from_mins(1);
const SEEN_WRITTEN: Duration = Duration::from_mins(10);

/// The accounts. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Accounts {
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    entries: RwLock<Entries>,
    writer: Mutex<()>,
    audit: Audit,
    later: Later,
    turns: password::Turns,
    attempts: Attempts,
    /// The source of the accounts that people sign in with.
    people: Source,
    data_dir: PathBuf,
}

impl Accounts {
    /// Reads all accounts from the store. Creates the account `admin` if `people` is built-in and the store has no
    /// built-in account. Blocking.
    pub(super) fn open(
        store: &Store,
        later: &Later,
        audit: &Audit,
        people: Source,
        data_dir: PathBuf,
    ) -> Result<Self, Fault> {
        let inner = Inner {
            entries: RwLock::new(read(store)?),
            writer: Mutex::default(),
            audit: audit.clone(),
            later: later.clone(),
            turns: password::Turns::default(),
            attempts: Attempts::default(),
            people,
            data_dir,
        };
        let accounts = Self { inner: Arc::new(inner) };
        accounts.initial()?;
        Ok(accounts)
    }

    /// Returns the account with this id.
    pub fn get(&self, id: &str) -> Option<Arc<Account>> {
        self.entries().get(id).cloned()
    }

    /// Returns the account with this identity, if it exists. Never blocks.
    pub fn find(&self, identity: &Identity) -> Option<Arc<Account>> {
        self.entries().by_identity(identity).cloned()
    }

    /// Returns the account with this id, or the built-in account with this email.
    pub fn named(&self, id_or_email: &str) -> Option<Arc<Account>> {
        let entries = self.entries();
        entries.get(id_or_email).or_else(|| entries.by_email(id_or_email)).cloned()
    }

    /// Lists at most `limit` accounts after this id, ordered by id.
    pub fn list(&self, after: Option<&str>, limit: usize) -> Result<Vec<Arc<Account>>, Fault> {
        Ok(self.entries().after(after).take(limit).cloned().collect())
    }

    /// Returns the account of this identity if only its last login changes. Returns `None` if [`Self::signed_in`]
    /// has to create or update the account. Never blocks.
    ///
    /// # Errors
    /// `Refusal::Forbidden` when it is disabled.
    pub fn recognised(
        &self,
        identity: &Identity,
        profile: &Profile,
        role: Role,
    ) -> Option<Result<Arc<Account>, Refusal>> {
        let account = self.entries().by_identity(identity)?.clone();
        if !account.enabled {
            return Some(Err(disabled()));
        }
        if !account.is_as(profile, role) {
            return None;
        }
        Some(Ok(self.seen(&account.id).unwrap_or(account)))
    }

    /// Returns the account of this identity: created at the first sign-in, updated at each later one. Concurrent
    /// first sign-ins create one account. Blocking when it creates or changes the account.
    ///
    /// # Errors
    /// `Refusal::Forbidden` when it is disabled; `Refusal::Unavailable` when the store takes no commit.
    pub fn signed_in(
        &self,
        identity: &Identity,
        profile: &Profile,
        role: Role,
    ) -> Result<Arc<Account>, Refusal> {
        if let Some(recognised) = self.recognised(identity, profile, role) {
            return recognised;
        }
        let writer = self.write();
        // Another request may have done it while this one waited.
        if let Some(recognised) = self.recognised(identity, profile, role) {
            return recognised;
        }
        let before = self.entries().by_identity(identity).cloned();
        let (account, events) = match before {
            None => self.provisioned(identity, profile, role)?,
            Some(before) => {
                let mut account = (*before).clone();
                account.update(profile, role);
                account.version += 1;
                let mut events = Vec::new();
                if account.role != before.role {
                    events.push(event(
                        "role.changed",
                        &account,
                        format!("from {} to {}, set by the provider", before.role, account.role),
                    ));
                }
                let other =
                    Account { role: before.role, version: before.version, ..account.clone() };
                if other != *before {
                    let detail = "the provider changed its names, email or organization";
                    events.push(event("account.changed", &account, detail));
                }
                (account, events)
            }
        };
        let account = self.save(&writer, &NoClient, account, &events).map_err(|fault| {
            Refusal::Unavailable(format!("storing the account failed: {fault}"))
        })?;
        drop(writer);
        Ok(self.seen(&account.id).unwrap_or(account))
    }

    fn provisioned(
        &self,
        identity: &Identity,
        profile: &Profile,
        role: Role,
    ) -> Result<(Account, Vec<Event>), Refusal> {
        self.room().map_err(|fault| Refusal::Unavailable(fault.detail))?;
        let mut account = blank(identity.name.clone(), role);
        account.identity = Some(identity.clone());
        account.update(profile, role);
        let detail = format!(
            "{} of {} with the role {role}, at its first sign-in: {}",
            identity.source.name(),
            identity.issuer,
            account.email
        );
        let created = event("account.created", &account, detail);
        Ok((account, vec![created]))
    }

    /// Fails if the limit of accounts is reached.
    fn room(&self) -> Result<(), Fault> {
        if self.entries().len() < MOST {
            return Ok(());
        }
        Err(Fault::new(
            Kind::Conflict,
            format!("the limit of {MOST} accounts is reached; delete some"),
        ))
    }

    /// Records a login of the account now, and returns the updated account.
    fn seen(&self, id: &str) -> Option<Arc<Account>> {
        let now = Instant::now();
        let entries = self.entries();
        if entries.seen(id).is_some_and(|seen| now.duration_since(seen) < SEEN) {
            return entries.get(id).cloned();
        }
        drop(entries);
        let mut entries = self.entries_mut();
        let (account, write) = entries.see(id, now, &time::rfc3339())?;
        drop(entries);
        if let Some((cell, delay)) = write {
            let id = id.to_owned();
            self.inner.later.after(delay, move |transaction| {
                let seen = cell.take_up(Instant::now());
                write_seen(transaction, &id, &seen)
            });
        }
        Some(account)
    }

    /// Commits an account with its audit events, then replaces it in memory. The guard proves that no other change of
    /// accounts is running.
    fn save(
        &self,
        _writer: &MutexGuard<'_, ()>,
        check: &dyn CommitCheck,
        account: Account,
        events: &[Event],
    ) -> Result<Arc<Account>, Fault> {
        let document = encode(&account);
        self.inner.audit.commit(check, events, |transaction| {
            Ok(transaction.put(COLLECTION, account.id.as_bytes(), &document)?)
        })?;
        let account = Arc::new(account);
        self.entries_mut().insert(account.clone());
        Ok(account)
    }

    // A panic while a lock is held cannot leave the entries half changed: the process ends with it.
    fn write(&self) -> MutexGuard<'_, ()> {
        self.inner.writer.lock().unwrap_or_else(PoisonError::into_inner)
    }

    // Never locked while a transaction begins: a running transaction may wait for this lock.
    fn entries(&self) -> RwLockReadGuard<'_, Entries> {
        self.inner.entries.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn entries_mut(&self) -> RwLockWriteGuard<'_, Entries> {
        self.inner.entries.write().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Creates the error for a disabled account (403).
pub(super) fn disabled() -> Refusal {
    Refusal::Forbidden("this account is disabled; an Admin can enable it".to_owned())
}

/// Creates an account with a new id, an email and a role; all else is empty.
fn blank(email: String, role: Role) -> Account {
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
        first_login: None,
        last_login: None,
        password: None,
        initial_password: false,
        version: 1,
        generation: 0,
        created_at: time::rfc3339(),
    }
}

/// Creates the event of a change that has no requester: by the account's sign-in or its provider.
fn event(what: &'static str, account: &Account, detail: impl Into<String>) -> Event {
    Event { what, account: Some(account.id.clone()), by: None, from: None, detail: detail.into() }
}

fn write_seen(transaction: &mut Transaction<'_>, id: &str, seen: &str) -> Result<(), Fault> {
    // The account may have been deleted meanwhile.
    let Some(document) = transaction.document(COLLECTION, id.as_bytes())? else { return Ok(()) };
    let Ok(mut account) = decode(id.as_bytes(), &document) else { return Ok(()) };
    account.first_login.get_or_insert_with(|| seen.to_owned());
    account.last_login = Some(seen.to_owned());
    Ok(transaction.put(COLLECTION, id.as_bytes(), &encode(&account))?)
}

/// Reads an account from the store.
pub(super) fn stored(read: &impl Read, id: &str) -> Result<Option<Account>, Fault> {
    let document = read.document(COLLECTION, id.as_bytes())?;
    Ok(document.map(|document| decode(id.as_bytes(), &document)).transpose()?)
}

fn read(store: &Store) -> Result<Entries, Fault> {
    let range = DocumentRange { limit: usize::MAX, ..DocumentRange::default() };
    let documents = store.read().documents(COLLECTION, range)?;
    let mut entries = Entries::default();
    for (id, document) in documents {
        match decode(&id, &document) {
            Ok(account) => entries.insert(Arc::new(account)),
            // A later version may have written it. The other accounts must still work.
            Err(error) => {
                tracing::error!(%error, "An account could not be read and is ignored; it cannot sign in.");
            }
        }
    }
    Ok(entries)
}

fn encode(account: &Account) -> Vec<u8> {
    serde_json::to_vec(account).expect("an account contains only strings, numbers and enum names")
}

fn decode(id: &[u8], document: &[u8]) -> Result<Account, penstock_store::Error> {
    serde_json::from_slice(document).map_err(|error| {
        let path = PathBuf::from(COLLECTION).join(&*String::from_utf8_lossy(id));
        let what = format!("the account is not readable: {error}");
        Corruption { path, offset: 0, what }.into()
    })
}

#[cfg(test)]
mod tests;
