//! API keys: credentials of plant systems, worth at most what their owner is now.
//!
//! Invariant: what is in memory is what the store holds, but for the last use, which may be some minutes
//! ahead. A change takes `writer`, commits, and swaps the key in memory before it lets `writer` go.
//!
//! A key that the command line made belongs to the local administration: it has no account, and is worth
//! its role until it is revoked or expires.
mod secret;

use super::accounts::{Accounts, disabled};
use super::audit::{Audit, Event};
use super::later::Later;
use super::{Account, Caller, Credential, Refusal, Requester, Role};
use jiff::Timestamp;
use penstock_base::characters;
use penstock_base::clock::Clock;
use penstock_base::fault::{Fault, Finding, Kind};
use penstock_base::json::{self, Members};
use penstock_base::time;
use penstock_store::{Corruption, DocumentRange, Read, Store, Transaction};
use secret::Secret;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, HashMap};
use std::ops::Bound;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};
use std::time::{Duration, Instant};

/// The collection of documents that holds them: id to JSON.
pub const COLLECTION: &str = "api-keys";

/// Keys at most.
const MOST: usize = 10_000;
/// Keys of one account at most, where it is no Admin's.
const MOST_OF_ONE: usize = 100;
/// Characters of a name.
const LONGEST: usize = 200;
/// How exact the last use is.
const USED: Duration = Duration::from_mins(5);

/// The API keys. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Keys {
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    store: Store,
    entries: RwLock<Entries>,
    writer: Mutex<()>,
    accounts: Accounts,
    audit: Audit,
    later: Later,
    clock: Clock,
}

#[derive(Debug, Default)]
struct Entries {
    by_id: BTreeMap<String, Entry>,
    by_digest: HashMap<String, String>,
}

#[derive(Debug)]
struct Entry {
    key: Arc<Key>,
    used: Option<Instant>,
}

/// An API key, without what it is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Key {
    /// Its identifier, a UUID of version 7.
    pub id: String,
    /// What it is for, in its owner's words.
    pub name: String,
    /// What it may do, unless its owner may less.
    pub role: Role,
    /// The account that it belongs to; `None` for the local administration.
    pub owner: Option<String>,
    /// The id of the one Business Object that it is for.
    pub business_object: Option<String>,
    /// When it was made (RFC 3339, UTC).
    pub created_at: String,
    /// When it expires (RFC 3339, UTC).
    pub expires_at: Option<String>,
    /// When it was used last (RFC 3339, UTC), to some minutes.
    pub last_used: Option<String>,
    /// The SHA-256 of the key, in hexadecimal.
    pub digest: String,
}

/// An API key in the making.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct New {
    /// What it is for.
    pub name: String,
    /// What it may do.
    pub role: Role,
    /// When it expires.
    pub expires_at: Option<Timestamp>,
    /// The one Business Object that it is for, by id or name; to be made an id before the key is.
    pub business_object: Option<String>,
}

impl New {
    /// Reads the body of a creation.
    ///
    /// # Errors
    /// `Kind::Malformed` as [`json::parse`]; `Kind::Invalid` with every finding.
    pub fn read(body: &[u8]) -> Result<Self, Fault> {
        let mut findings = Vec::new();
        let mut new =
            Self { name: String::new(), role: Role::User, expires_at: None, business_object: None };
        if let Some(mut members) = Members::of(json::parse(body, 8)?, "", &mut findings) {
            match members.string("name") {
                Some(name) => match check_name(&name) {
                    Ok(name) => new.name = name,
                    Err(why) => members.find("name", why),
                },
                None => members.require("name", "it says what the key is for"),
            }
            match members.string("role") {
                Some(role) => match Role::named(&role) {
                    Some(role) => new.role = role,
                    None => members.find("role", no_role(&role)),
                },
                None => members.require("role", "one of Metrics, User, Contributor, Admin"),
            }
            if let Some(text) = members.string("expiresAt") {
                match text.parse::<Timestamp>() {
                    Ok(at) => new.expires_at = Some(at),
                    Err(_) => members.find(
                        "expiresAt",
                        format!("{text:?} is no time in RFC 3339, such as 2027-01-31T12:00:00Z"),
                    ),
                }
            }
            new.business_object = members.string("businessObject");
            members.end();
        }
        if findings.is_empty() { Ok(new) } else { Err(invalid(findings)) }
    }

    /// The same with the id of the Business Object in place of its name.
    ///
    /// # Errors
    /// `Kind::Invalid` when there is no such Business Object.
    pub fn resolve(mut self, find_id: impl Fn(&str) -> Option<String>) -> Result<Self, Fault> {
        if let Some(name) = &mut self.business_object {
            let Some(id) = find_id(name) else {
                let why = format!("there is no Business Object with the id or name {name:?}");
                return Err(invalid(vec![Finding::at("/businessObject", why)]));
            };
            *name = id;
        }
        Ok(self)
    }
}

/// What a role may be called.
pub fn no_role(name: &str) -> String {
    format!("there is no role {name:?}; it is one of Metrics, User, Contributor, Admin")
}

fn invalid(findings: Vec<Finding>) -> Fault {
    Fault::with(Kind::Invalid, "the API key is not valid", findings)
}

fn check_name(name: &str) -> Result<String, String> {
    let name = name.trim();
    if name.is_empty() {
        Err("it is empty; say what the key is for".to_owned())
    } else if name.chars().count() > LONGEST {
        Err(format!("it is longer than {LONGEST} characters"))
    } else if let Some(why) = characters::describe_deceptive(name, characters::is_deceptive) {
        Err(why)
    } else {
        Ok(name.to_owned())
    }
}

impl Keys {
    /// What every key begins with, so that it is told from an access token and found by secret scanners.
    pub const PREFIX: &'static str = secret::PREFIX;

    /// Reads all keys from the store; those whose owner is gone are let go. Blocks.
    pub(super) fn open(
        store: &Store,
        (accounts, audit, later): (&Accounts, &Audit, &Later),
        clock: &Clock,
    ) -> Result<Self, Fault> {
        let range = DocumentRange { limit: usize::MAX, ..DocumentRange::default() };
        let read = store.read();
        let documents = read.documents(COLLECTION, range)?;
        let mut entries = Entries::default();
        for (id, document) in documents {
            let key = match decode(&id, &document) {
                Ok(key) => key,
                // A later version may have written it; the others are served all the same.
                Err(error) => {
                    tracing::error!(%error, "An API key was left out; it lets nobody in.");
                    continue;
                }
            };
            match &key.owner {
                Some(owner) if accounts.get(owner).is_none() => {
                    // An account that was left out keeps its keys; they let nobody in meanwhile.
                    if read.document(super::accounts::COLLECTION, owner.as_bytes())?.is_none() {
                        later.surely(move |t| Ok(t.delete(COLLECTION, &id)?));
                    }
                }
                _ => entries.insert(Arc::new(key)),
            }
        }
        drop(read);
        let inner = Inner {
            store: store.clone(),
            entries: RwLock::new(entries),
            writer: Mutex::default(),
            accounts: accounts.clone(),
            audit: audit.clone(),
            later: later.clone(),
            clock: clock.clone(),
        };
        Ok(Self { inner: Arc::new(inner) })
    }

    /// Who has this key. Never blocks.
    ///
    /// # Errors
    /// `Refusal::Invalid` when it is mistyped, unknown, revoked or expired; `Refusal::Forbidden` when its
    /// owner is disabled, or no Admin any more where it is one of `Metrics`.
    pub fn caller(&self, key: &str) -> Result<Caller, Refusal> {
        let unknown = |why: &str| Refusal::Invalid(why.to_owned());
        let digest = Secret::digest_of(key).ok_or_else(|| {
            unknown("the API key is mistyped or cut short: its checksum is wrong")
        })?;
        // Digests are no secret: what can be measured of looking one up says nothing about a key.
        let key = self.entries().by_digest(&digest).cloned();
        let key = key.ok_or_else(|| unknown("the API key is unknown or has been revoked"))?;
        let (account, role) = self.worth(&key)?;
        self.used(&key);
        let credential =
            Credential::ApiKey { id: key.id.clone(), business_object: key.business_object.clone() };
        Ok(Caller { account, role, credential, from: None })
    }

    /// What the key with this id may do now; `None` when it is worth nothing any more. Never blocks.
    pub(super) fn still(&self, id: &str) -> Option<Role> {
        let key = self.entries().by_id.get(id)?.key.clone();
        self.worth(&key).ok().map(|(_, role)| role)
    }

    /// The same by what a transaction sees.
    pub(super) fn still_in(
        &self,
        transaction: &Transaction<'_>,
        id: &str,
    ) -> Result<Option<Role>, Fault> {
        let Some(document) = transaction.document(COLLECTION, id.as_bytes())? else {
            return Ok(None);
        };
        let key = decode(id.as_bytes(), &document)?;
        let owner = match &key.owner {
            Some(owner) => super::accounts::stored(transaction, owner)?,
            None => None,
        };
        Ok(self.worth_to(&key, owner.map(Arc::new)).ok().map(|(_, role)| role))
    }

    /// The time by which keys expire.
    pub(super) fn now(&self) -> Timestamp {
        self.inner.clock.now()
    }

    /// The account that a key belongs to, and what it may do now.
    fn worth(&self, key: &Key) -> Result<(Option<Arc<Account>>, Role), Refusal> {
        let owner = key.owner.as_ref().and_then(|owner| self.inner.accounts.get(owner));
        self.worth_to(key, owner)
    }

    /// The same with the account that owns it, if there is one.
    fn worth_to(
        &self,
        key: &Key,
        account: Option<Arc<Account>>,
    ) -> Result<(Option<Arc<Account>>, Role), Refusal> {
        if key.expires_at.is_some() && is_over(key, self.now()) {
            return Err(Refusal::Invalid("the API key has expired".to_owned()));
        }
        if key.owner.is_none() {
            return Ok((None, key.role));
        }
        let account = account
            .ok_or_else(|| Refusal::Invalid("the account of the API key is gone".to_owned()))?;
        if !account.enabled {
            return Err(disabled());
        }
        if key.role == Role::Metrics && account.role < Role::Admin {
            let why =
                "an API key with the role Metrics is worth nothing once its owner is no Admin";
            return Err(Refusal::Forbidden(why.to_owned()));
        }
        let role = key.role.min(account.role);
        Ok((Some(account), role))
    }

    /// One key by id, if the caller may manage it ([`manages`]).
    pub fn get(&self, by: &Caller, id: &str) -> Option<Arc<Key>> {
        self.entries().by_id.get(id).map(|entry| entry.key.clone()).filter(|key| manages(by, key))
    }

    /// The ids of the keys of an account.
    pub fn ids_of(&self, owner: &str) -> Vec<String> {
        self.entries().of(owner).map(|key| key.id.clone()).collect()
    }

    /// The API key that a request came with.
    pub fn of_caller(&self, caller: &Caller) -> Option<Arc<Key>> {
        let Credential::ApiKey { id, .. } = &caller.credential else { return None };
        self.entries().by_id.get(id).map(|entry| entry.key.clone())
    }

    /// The keys that the caller may manage, by id, those after `after`.
    pub fn list(&self, by: &Caller, after: Option<&str>, limit: usize) -> Vec<Arc<Key>> {
        let from = after.map_or(Bound::Unbounded, Bound::Excluded);
        let entries = self.entries();
        let keys =
            entries.by_id.range::<str, _>((from, Bound::Unbounded)).map(|(_, entry)| &entry.key);
        keys.filter(|key| manages(by, key)).take(limit).cloned().collect()
    }

    /// Makes a key and gives it, once.
    ///
    /// # Errors
    /// `Kind::Forbidden` when it would be worth more than what made it; `Kind::Invalid` when it would be
    /// expired; `Kind::Conflict` when there are too many; `Kind::TooMany` when too many were made of late.
    pub fn create(&self, by: &dyn Requester, new: New) -> Result<(Arc<Key>, String), Fault> {
        let requester = by;
        let by = requester.caller();
        self.may_make(by, &new)?;
        let writer = self.write();
        if self.entries().by_id.len() >= MOST {
            return Err(Fault::new(
                Kind::Conflict,
                format!("there are {MOST} API keys, which is as many as fit; revoke some"),
            ));
        }
        if by.role < Role::Admin
            && let Some(account) = &by.account
            && self.entries().of(&account.id).count() >= MOST_OF_ONE
        {
            return Err(Fault::new(
                Kind::Conflict,
                format!(
                    "this account has {MOST_OF_ONE} API keys, as many as it may have; revoke some"
                ),
            ));
        }
        self.inner.audit.pace(by)?;
        let (secret, digest) = Secret::new();
        let key = Key {
            id: uuid::Uuid::now_v7().to_string(),
            name: new.name,
            role: new.role,
            owner: by.account.as_ref().map(|account| account.id.clone()),
            business_object: new.business_object,
            created_at: time::rfc3339(),
            expires_at: new.expires_at.map(|at| at.to_string()),
            last_used: None,
            digest,
        };
        let detail = format!("{:?} ({}) with the role {}", key.name, key.id, key.role);
        let created = event(by, "key.created", &key, detail);
        let document = encode(&key);
        self.inner.audit.commit(requester, &[created], |transaction| {
            requester.check_role(transaction)?;
            Ok(transaction.put(COLLECTION, key.id.as_bytes(), &document)?)
        })?;
        let key = Arc::new(key);
        self.entries_mut().insert(key.clone());
        drop(writer);
        Ok((key, secret.into_text()))
    }

    fn may_make(&self, by: &Caller, new: &New) -> Result<(), Fault> {
        let refused = |pointer: &str, why: &str| {
            let finding = Finding::at(pointer, why);
            Err(Fault::with(
                Kind::Forbidden,
                format!("no such API key may be made: {why}"),
                vec![finding],
            ))
        };
        if new.role > by.role {
            return refused(
                "/role",
                &format!("it may not be worth more than the {} that makes it", by.role),
            );
        }
        if new.role == Role::Metrics && by.role < Role::Admin {
            return refused("/role", "the metrics are for Admins, and for keys that they make");
        }
        if let Credential::ApiKey { id, business_object } = &by.credential {
            if business_object.is_some() {
                return refused("/businessObject", "a key for one Business Object makes no keys");
            }
            let own = self.entries().by_id.get(id).and_then(|entry| entry.key.expires_at.clone());
            let own = own.and_then(|at| at.parse::<Timestamp>().ok());
            if own.is_some_and(|own| new.expires_at.is_none_or(|at| at > own)) {
                return refused("/expiresAt", "it may not outlast the key that makes it");
            }
        }
        if new.expires_at.is_some_and(|at| at <= self.inner.clock.now()) {
            let why = "this time is over already";
            return Err(invalid(vec![Finding::at("/expiresAt", why)]));
        }
        Ok(())
    }

    /// Revokes a key that the caller may manage ([`manages`]).
    ///
    /// # Errors
    /// `Kind::NotFound`.
    pub fn revoke(&self, by: &dyn Requester, id: &str) -> Result<(), Fault> {
        let _writer = self.write();
        let key = self.get(by.caller(), id).ok_or_else(|| {
            Fault::new(Kind::NotFound, format!("there is no API key with the id {id:?}"))
        })?;
        let detail = format!("{:?} ({})", key.name, key.id);
        let revoked = event(by.caller(), "key.revoked", &key, detail);
        self.inner.audit.commit(by, &[revoked], |transaction| {
            by.check_role(transaction)?;
            Ok(transaction.delete(COLLECTION, id.as_bytes())?)
        })?;
        self.entries_mut().remove(id);
        Ok(())
    }

    /// Revokes the keys of an account that is gone.
    pub(super) fn revoke_of(&self, owner: &Account) -> Result<(), Fault> {
        let _writer = self.write();
        let ids: Vec<String> = self.entries().of(&owner.id).map(|key| key.id.clone()).collect();
        self.inner.store.transact::<_, Fault>(|transaction| {
            ids.iter().try_for_each(|id| Ok(transaction.delete(COLLECTION, id.as_bytes())?))
        })?;
        let mut entries = self.entries_mut();
        for id in &ids {
            entries.remove(id);
        }
        Ok(())
    }

    /// Notes that a key was used just now, every few minutes.
    fn used(&self, key: &Arc<Key>) {
        let now = Instant::now();
        let fresh = |entry: &Entry| entry.used.is_some_and(|used| now.duration_since(used) < USED);
        if self.entries().by_id.get(&key.id).is_none_or(fresh) {
            return;
        }
        let at = time::rfc3339();
        if let Some(entry) = self.entries_mut().by_id.get_mut(&key.id) {
            // Another request may have been first.
            if fresh(entry) {
                return;
            }
            entry.used = Some(now);
            Arc::make_mut(&mut entry.key).last_used = Some(at.clone());
        }
        let id = key.id.clone();
        self.inner.later.soon(move |transaction| write_used(transaction, &id, &at));
    }

    // A panic while a lock is held cannot leave the entries half changed: the process ends with it.
    fn write(&self) -> MutexGuard<'_, ()> {
        self.inner.writer.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn entries(&self) -> RwLockReadGuard<'_, Entries> {
        self.inner.entries.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn entries_mut(&self) -> RwLockWriteGuard<'_, Entries> {
        self.inner.entries.write().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Entries {
    fn by_digest(&self, digest: &str) -> Option<&Arc<Key>> {
        let key = &self.by_id.get(self.by_digest.get(digest)?)?.key;
        secret::is_same(&key.digest, digest).then_some(key)
    }

    /// The keys of an account.
    fn of(&self, owner: &str) -> impl Iterator<Item = &Arc<Key>> {
        let keys = self.by_id.values().map(|entry| &entry.key);
        keys.filter(move |key| key.owner.as_deref() == Some(owner))
    }

    fn insert(&mut self, key: Arc<Key>) {
        self.by_digest.insert(key.digest.clone(), key.id.clone());
        self.by_id.insert(key.id.clone(), Entry { key, used: None });
    }

    fn remove(&mut self, id: &str) {
        if let Some(entry) = self.by_id.remove(id) {
            self.by_digest.remove(&entry.key.digest);
        }
    }
}

fn is_over(key: &Key, now: Timestamp) -> bool {
    // A time that cannot be read is over.
    key.expires_at.as_ref().is_some_and(|at| !at.parse::<Timestamp>().is_ok_and(|at| at > now))
}

/// Whether a caller may see and revoke a key. An Admin may manage every key, and a key itself. Else the key must
/// belong to the caller's account, and a credential that is worth less than the account, as an API key may be,
/// manages only keys of its own role or a lower one.
fn manages(by: &Caller, key: &Key) -> bool {
    if by.role == Role::Admin {
        return true;
    }
    if by.actor() == key.id {
        return true;
    }
    let Some(own) = by.account.as_ref().filter(|own| Some(&own.id) == key.owner.as_ref()) else {
        return false;
    };
    let has_whole_account = by.api_key_id().is_none() && by.role == own.role;
    has_whole_account || key.role <= by.role
}

fn event(by: &Caller, what: &'static str, key: &Key, detail: String) -> Event {
    let (from, by) = (by.from, Some(by.actor().to_owned()));
    let account = key.owner.clone();
    let by = by.filter(|by| Some(by) != account.as_ref());
    Event { what, account, by, from, detail }
}

fn write_used(transaction: &mut Transaction<'_>, id: &str, at: &str) -> Result<(), Fault> {
    // It may have been revoked meanwhile.
    let Some(document) = transaction.document(COLLECTION, id.as_bytes())? else { return Ok(()) };
    let Ok(mut key) = decode(id.as_bytes(), &document) else { return Ok(()) };
    key.last_used = Some(at.to_owned());
    Ok(transaction.put(COLLECTION, id.as_bytes(), &encode(&key))?)
}

fn encode(key: &Key) -> Vec<u8> {
    serde_json::to_vec(key).expect("a key holds strings and names alone")
}

fn decode(id: &[u8], document: &[u8]) -> Result<Key, penstock_store::Error> {
    serde_json::from_slice(document).map_err(|error| {
        let path = PathBuf::from(COLLECTION).join(&*String::from_utf8_lossy(id));
        let what = format!("the API key is not readable: {error}");
        Corruption { path, offset: 0, what }.into()
    })
}

#[cfg(test)]
mod tests;
