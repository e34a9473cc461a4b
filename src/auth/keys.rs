//! API keys: credentials of plant systems. Their role never exceeds their owner's current role.
//!
//! Invariant: memory matches the store, except for the last use, which can be some minutes ahead in memory. A change
//! locks `writer`, commits, and replaces the key in memory before it unlocks `writer`.
//!
//! A key that was created on the command line belongs to local administration: it has no account, and keeps its role
//! until it is revoked or expires.
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

/// The collection of the documents: id to JSON.
pub const COLLECTION: &str = "api-keys";

/// The maximum number of keys.
const MOST: usize = 10_000;
/// The maximum number of keys of one account that is not an Admin's.
const MOST_OF_ONE: usize = 100;
/// The maximum length of a name in characters.
const LONGEST: usize = 200;
/// The resolution of the last use.
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

/// An API key without its secret.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Key {
    /// Its identifier, a UUID of version 7.
    pub id: String,
    /// The name, which says what the key is for.
    pub name: String,
    /// The role, which the owner's role limits.
    pub role: Role,
    /// The id of the owner's account; `None` for local administration.
    pub owner: Option<String>,
    /// The id of the only Business Object that it can be used for; `None` for all.
    pub business_object: Option<String>,
    /// The time of creation (RFC 3339, UTC).
    pub created_at: String,
    /// The time of expiry (RFC 3339, UTC).
    pub expires_at: Option<String>,
    /// The time of the last use (RFC 3339, UTC), to some minutes.
    pub last_used: Option<String>,
    /// The SHA-256 of the key, in hexadecimal.
    pub digest: String,
}

/// The definition of a new API key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct New {
    /// The name, which says what the key is for.
    pub name: String,
    /// The role.
    pub role: Role,
    /// The time of expiry.
    pub expires_at: Option<Timestamp>,
    /// The only Business Object that it can be used for, by id or name; [`Self::resolved`] replaces a name by the id.
    pub business_object: Option<String>,
}

impl New {
    /// Reads the request body of a creation.
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
                        format!("{text:?} is not an RFC 3339 time such as 2027-01-31T12:00:00Z"),
                    ),
                }
            }
            new.business_object = members.string("businessObject");
            members.end();
        }
        if findings.is_empty() { Ok(new) } else { Err(invalid(findings)) }
    }

    /// Returns it with the id of the Business Object in place of its name.
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

/// Formats the error text for an unknown role.
pub fn no_role(name: &str) -> String {
    format!("there is no role {name:?}; use one of Metrics, User, Contributor, Admin")
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
    /// The prefix of every key. It distinguishes keys from access tokens, and secret scanners find keys by it.
    pub const PREFIX: &'static str = secret::PREFIX;

    /// Reads all keys from the store, and deletes those whose owner no longer exists. Blocking.
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
                // A later version may have written it. The other keys must still work.
                Err(error) => {
                    tracing::error!(%error, "An API key could not be read and is ignored; requests with it are refused.");
                    continue;
                }
            };
            match &key.owner {
                Some(owner) if accounts.get(owner).is_none() => {
                    // An account that could not be read keeps its keys, which do not work meanwhile.
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

    /// Authenticates the caller that sent this key. Never blocks.
    ///
    /// # Errors
    /// `Refusal::Invalid` when the key is mistyped, unknown, revoked or expired. `Refusal::Forbidden` when its owner is
    /// disabled, or when it has the role `Metrics` and its owner is no longer an Admin.
    pub fn caller(&self, key: &str) -> Result<Caller, Refusal> {
        let unknown = |why: &str| Refusal::Invalid(why.to_owned());
        let digest = Secret::digest_of(key).ok_or_else(|| {
            unknown("the API key is mistyped or cut short: its checksum is wrong")
        })?;
        // Digests are not secret: the timing of their lookup reveals nothing about a key.
        let key = self.entries().by_digest(&digest).cloned();
        let key = key.ok_or_else(|| unknown("the API key is unknown or has been revoked"))?;
        let (account, role) = self.worth(&key)?;
        self.used(&key);
        let credential =
            Credential::ApiKey { id: key.id.clone(), business_object: key.business_object.clone() };
        Ok(Caller { account, role, credential, from: None })
    }

    /// Returns the current role of the key with this id; `None` when it is no longer valid. Never blocks.
    pub(super) fn still(&self, id: &str) -> Option<Role> {
        let key = self.entries().by_id.get(id)?.key.clone();
        self.worth(&key).ok().map(|(_, role)| role)
    }

    /// Returns the same as [`Self::still`], as a transaction sees it.
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

    /// Returns the time that decides whether keys have expired.
    pub(super) fn now(&self) -> Timestamp {
        self.inner.clock.now()
    }

    /// Returns the account of a key's owner, and the key's current role.
    fn worth(&self, key: &Key) -> Result<(Option<Arc<Account>>, Role), Refusal> {
        let owner = key.owner.as_ref().and_then(|owner| self.inner.accounts.get(owner));
        self.worth_to(key, owner)
    }

    /// Returns the same for this account of the owner, if there is one.
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
            .ok_or_else(|| Refusal::Invalid("the account of the API key was deleted".to_owned()))?;
        if !account.enabled {
            return Err(disabled());
        }
        if key.role == Role::Metrics && account.role < Role::Admin {
            let why = "an API key with the role Metrics works only while its owner is an Admin";
            return Err(Refusal::Forbidden(why.to_owned()));
        }
        let role = key.role.min(account.role);
        Ok((Some(account), role))
    }

    /// Returns the key with this id if the caller may manage it ([`manages`]).
    pub fn get(&self, by: &Caller, id: &str) -> Option<Arc<Key>> {
        self.entries().by_id.get(id).map(|entry| entry.key.clone()).filter(|key| manages(by, key))
    }

    /// Returns the ids of an account's keys.
    pub fn ids_of(&self, owner: &str) -> Vec<String> {
        self.entries().of(owner).map(|key| key.id.clone()).collect()
    }

    /// Returns the API key that a request was sent with.
    pub fn of_caller(&self, caller: &Caller) -> Option<Arc<Key>> {
        let Credential::ApiKey { id, .. } = &caller.credential else { return None };
        self.entries().by_id.get(id).map(|entry| entry.key.clone())
    }

    /// Lists at most `limit` keys after `after`, by id, that the caller may manage.
    pub fn list(&self, by: &Caller, after: Option<&str>, limit: usize) -> Vec<Arc<Key>> {
        let from = after.map_or(Bound::Unbounded, Bound::Excluded);
        let entries = self.entries();
        let keys =
            entries.by_id.range::<str, _>((from, Bound::Unbounded)).map(|(_, entry)| &entry.key);
        keys.filter(|key| manages(by, key)).take(limit).cloned().collect()
    }

    /// Creates a key and returns it with its secret, which is not stored.
    ///
    /// # Errors
    /// `Kind::Forbidden` when it would have more rights than the caller. `Kind::Invalid` when it would be expired.
    /// `Kind::Conflict` when the limit of keys is reached. `Kind::TooMany` when too many were created recently.
    pub fn create(&self, by: &dyn Requester, new: New) -> Result<(Arc<Key>, String), Fault> {
        let requester = by;
        let by = requester.caller();
        self.may_make(by, &new)?;
        let writer = self.write();
        if self.entries().by_id.len() >= MOST {
            return Err(Fault::new(
                Kind::Conflict,
                format!("the limit of {MOST} API keys is reached; revoke some"),
            ));
        }
        if by.role < Role::Admin
            && let Some(account) = &by.account
            && self.entries().of(&account.id).count() >= MOST_OF_ONE
        {
            return Err(Fault::new(
                Kind::Conflict,
                format!(
                    "this account has reached its limit of {MOST_OF_ONE} API keys; revoke some"
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
                format!("the API key cannot be created: {why}"),
                vec![finding],
            ))
        };
        if new.role > by.role {
            return refused(
                "/role",
                &format!("the role cannot be higher than {}, the role of this request", by.role),
            );
        }
        if new.role == Role::Metrics && by.role < Role::Admin {
            return refused("/role", "only an Admin can create API keys with the role Metrics");
        }
        if let Credential::ApiKey { id, business_object } = &by.credential {
            if business_object.is_some() {
                return refused(
                    "/businessObject",
                    "an API key for one Business Object cannot create API keys",
                );
            }
            let own = self.entries().by_id.get(id).and_then(|entry| entry.key.expires_at.clone());
            let own = own.and_then(|at| at.parse::<Timestamp>().ok());
            if own.is_some_and(|own| new.expires_at.is_none_or(|at| at > own)) {
                return refused(
                    "/expiresAt",
                    "it cannot expire later than the API key that creates it",
                );
            }
        }
        if new.expires_at.is_some_and(|at| at <= self.inner.clock.now()) {
            let why = "this time is in the past";
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

    /// Revokes the keys of a deleted account.
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

    /// Records the use of a key, at most every few minutes.
    fn used(&self, key: &Arc<Key>) {
        let now = Instant::now();
        let fresh = |entry: &Entry| entry.used.is_some_and(|used| now.duration_since(used) < USED);
        if self.entries().by_id.get(&key.id).is_none_or(fresh) {
            return;
        }
        let at = time::rfc3339();
        if let Some(entry) = self.entries_mut().by_id.get_mut(&key.id) {
            // Another request may have recorded it meanwhile.
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

    /// Lists the keys of an account.
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
    // A time that cannot be parsed counts as expired.
    key.expires_at.as_ref().is_some_and(|at| !at.parse::<Timestamp>().is_ok_and(|at| at > now))
}

/// Returns whether a caller may see and revoke a key. An Admin may manage every key, and a key itself. Otherwise the
/// key must belong to the caller's account. A credential with a lower role than the account, such as an API key,
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
    // The key may have been revoked meanwhile.
    let Some(document) = transaction.document(COLLECTION, id.as_bytes())? else { return Ok(()) };
    let Ok(mut key) = decode(id.as_bytes(), &document) else { return Ok(()) };
    key.last_used = Some(at.to_owned());
    Ok(transaction.put(COLLECTION, id.as_bytes(), &encode(&key))?)
}

fn encode(key: &Key) -> Vec<u8> {
    serde_json::to_vec(key).expect("a key contains only strings and enum names")
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
