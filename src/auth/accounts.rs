//! The accounts: documents of the store, all of them in memory too, found by id, email and identity.
//!
//! Invariant: what is in memory is what the store holds, but for the last login, which may be some
//! minutes ahead. A change takes `writer`, looks at what is there, commits, and swaps the account in
//! memory before it lets `writer` go. So of many first requests of one identity the first makes the
//! account, and the others find it.
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

/// The collection of documents that holds them: id to JSON.
pub const COLLECTION: &str = "accounts";

/// Accounts at most; each takes some 2.5 KB of memory, with what the store holds of it there.
const MOST: usize = 10_000;
/// How exact the last login is in memory, and how often it is written at most.
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
    /// Whose sign-in it is that the gateway offers to people.
    people: Source,
    data_dir: PathBuf,
}

impl Accounts {
    /// Reads all accounts from the store. Without sign-in at a provider (`people` is built-in), a store
    /// that has no built-in account gets `admin`. Blocks.
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

    /// The account with this id.
    pub fn get(&self, id: &str) -> Option<Arc<Account>> {
        self.entries().get(id).cloned()
    }

    /// The account that is known by this identity, if it has been made. Never blocks.
    pub fn find(&self, identity: &Identity) -> Option<Arc<Account>> {
        self.entries().by_identity(identity).cloned()
    }

    /// The account with this id, or the built-in one with this email.
    pub fn named(&self, id_or_email: &str) -> Option<Arc<Account>> {
        let entries = self.entries();
        entries.get(id_or_email).or_else(|| entries.by_email(id_or_email)).cloned()
    }

    /// Accounts after this id, by id.
    pub fn list(&self, after: Option<&str>, limit: usize) -> Result<Vec<Arc<Account>>, Fault> {
        Ok(self.entries().after(after).take(limit).cloned().collect())
    }

    /// The account that this identity signs in with, when nothing but its last login is to be written;
    /// `None` when [`Self::signed_in`] has to make or change it. Never blocks.
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

    /// The account that this identity signs in with: made at the first time (once, however many come at
    /// once), brought up to date each time. Blocks when it makes or changes the account.
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
                        format!("from {} to {}, as the provider says", before.role, account.role),
                    ));
                }
                let other =
                    Account { role: before.role, version: before.version, ..account.clone() };
                if other != *before {
                    let detail = "its provider says other names, email or organization than before";
                    events.push(event("account.changed", &account, detail));
                }
                (account, events)
            }
        };
        let account = self.save(&writer, &NoClient, account, &events).map_err(|fault| {
            Refusal::Unavailable(format!("the account cannot be kept now: {fault}"))
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

    /// Refuses one account more than fit.
    fn room(&self) -> Result<(), Fault> {
        if self.entries().len() < MOST {
            return Ok(());
        }
        Err(Fault::new(
            Kind::Conflict,
            format!("there are {MOST} accounts, which is as many as fit; delete some"),
        ))
    }

    /// Notes that an account came in just now, and gives it as it is then.
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

    /// Commits an account with what is told of it, and puts it in place in memory. The guard shows that
    /// nobody else changes the accounts.
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

    // Never held while a transaction begins: one that runs may ask for it.
    fn entries(&self) -> RwLockReadGuard<'_, Entries> {
        self.inner.entries.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn entries_mut(&self) -> RwLockWriteGuard<'_, Entries> {
        self.inner.entries.write().unwrap_or_else(PoisonError::into_inner)
    }
}

/// 403: the account may not come in.
pub(super) fn disabled() -> Refusal {
    Refusal::Forbidden("this account is disabled; an Admin can enable it".to_owned())
}

/// An account with an id of its own and nothing else.
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

/// What happened to an account by itself, or by its provider.
fn event(what: &'static str, account: &Account, detail: impl Into<String>) -> Event {
    Event { what, account: Some(account.id.clone()), by: None, from: None, detail: detail.into() }
}

fn write_seen(transaction: &mut Transaction<'_>, id: &str, seen: &str) -> Result<(), Fault> {
    // It may have been deleted meanwhile.
    let Some(document) = transaction.document(COLLECTION, id.as_bytes())? else { return Ok(()) };
    let Ok(mut account) = decode(id.as_bytes(), &document) else { return Ok(()) };
    account.first_login.get_or_insert_with(|| seen.to_owned());
    account.last_login = Some(seen.to_owned());
    Ok(transaction.put(COLLECTION, id.as_bytes(), &encode(&account))?)
}

/// An account as it is stored.
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
            // A later version may have written it; the others are served all the same.
            Err(error) => tracing::error!(%error, "An account was left out; it cannot sign in."),
        }
    }
    Ok(entries)
}

fn encode(account: &Account) -> Vec<u8> {
    serde_json::to_vec(account).expect("an account holds strings, numbers and names alone")
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
