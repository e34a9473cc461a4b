//! API keys: credentials of plant systems. Their role never exceeds their owner's current role.
//!
//! Invariant: memory matches the store, except for the last use, which can be some minutes ahead in memory. A change
//! locks `writer`, commits, and replaces the key in memory before it unlocks `writer`.
//!
//! A key that was created on the command line belongs to local administration: it has no account, and keeps its role
//! until it is revoked or expires.
mod key;
mod new_key;
mod secret;
pub(crate) mod stored_key;

pub use key::Key;
pub use new_key::{NewApiKey, unknown_role_message};

use super::accounts::{ACCOUNTS, Accounts, account_disabled_error};
use super::audit::{Audit, Event};
use super::deferred_writes::DeferredWrites;
use super::{Account, AuthError, Caller, Credential, Requester};
use jiff::Timestamp;
use new_key::invalid_key_error;
use parking_lot::{Mutex, RwLock};
use penstock_base::clock::Clock;
use penstock_base::commit::CommitPart;
use penstock_base::error::{ErrorClass, Finding, GatewayError};
use penstock_base::shared::Shared;
use penstock_base::time;
use penstock_resources::role::Role;
use penstock_store::{Error, Format, Store, Transaction};
use secret::Secret;
use std::collections::{BTreeMap, HashMap};
use std::ops::Bound;
use std::sync::Arc;
use std::time::{Duration, Instant};
use stored_key::{KEYS, StoredKey};

/// The maximum number of keys.
const MAX_KEYS: usize = 10_000;
/// The maximum number of keys of an account whose role is below Admin.
const MAX_KEYS_PER_ACCOUNT: usize = 100;
/// The resolution of the last use.
const LAST_USE_RESOLUTION: Duration = Duration::from_mins(5);

/// The API keys. Cheap to clone.
#[derive(Debug, Clone)]
pub struct ApiKeys {
    inner: Shared<Inner>,
}

#[derive(Debug)]
struct Inner {
    entries: RwLock<Entries>,
    writer: Mutex<()>,
    accounts: Accounts,
    audit: Audit,
    deferred_writes: DeferredWrites,
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
    last_used_at: Option<Instant>,
}

impl ApiKeys {
    /// The prefix of every key. It distinguishes keys from access tokens, and secret scanners find keys by it.
    pub const PREFIX: &'static str = secret::PREFIX;

    /// Reads all keys from the store, and deletes those whose owner no longer exists. Blocking.
    pub(super) fn open(
        store: &Store,
        (accounts, audit, later): (&Accounts, &Audit, &DeferredWrites),
        clock: &Clock,
    ) -> Result<Self, GatewayError> {
        let read = store.read();
        let mut entries = Entries::default();
        for row in KEYS.scan().read_all(&read)? {
            let key = match row.value() {
                Ok(key) => Key::from(key),
                // A later version may have written it. The other keys must still work.
                Err(error) => {
                    let error = Error::from(error);
                    tracing::error!(%error, "An API key could not be read and is ignored; requests with it are refused.");
                    continue;
                }
            };
            match &key.owner {
                Some(owner) if accounts.get(owner).is_none() => {
                    // An account that could not be read keeps its keys, which do not work meanwhile.
                    if !ACCOUNTS.contains(&read, owner)? {
                        later.enqueue_always(move |t| Ok(row.delete(t)?));
                    }
                }
                _ => entries.insert(Arc::new(key)),
            }
        }
        drop(read);
        let inner = Inner {
            entries: RwLock::new(entries),
            writer: Mutex::default(),
            accounts: accounts.clone(),
            audit: audit.clone(),
            deferred_writes: later.clone(),
            clock: clock.clone(),
        };
        Ok(Self { inner: Shared::new(inner) })
    }

    /// Authenticates the caller that sent this key. Never blocks.
    ///
    /// # Errors
    /// `AuthError::Invalid` when the key is mistyped, unknown, revoked or expired. `AuthError::Forbidden` when its
    /// owner is disabled, or when it has the role `Metrics` and its owner is no longer an Admin.
    pub fn authenticate_key(&self, key: &str) -> Result<Caller, AuthError> {
        let unknown = |why: &str| AuthError::Invalid(why.to_owned());
        let digest = Secret::digest_of(key).ok_or_else(|| {
            unknown("the API key is mistyped or cut short: its checksum is wrong")
        })?;
        // Digests are not secret: the timing of their lookup reveals nothing about a key.
        let key = self.inner.entries.read().by_digest(&digest).cloned();
        let key = key.ok_or_else(|| unknown("the API key is unknown or has been revoked"))?;
        let (account, role) = self.effective_role(&key)?;
        self.record_use(&key);
        let business_objects = key.business_objects.clone();
        let credential = Credential::ApiKey { id: key.id.clone(), business_objects };
        Ok(Caller { account, role, credential, from: None })
    }

    /// Returns the current role of the key with this id; `None` when it is no longer valid. Never blocks.
    pub(super) fn current_role(&self, id: &str) -> Option<Role> {
        let key = self.inner.entries.read().by_id.get(id)?.key.clone();
        self.effective_role(&key).ok().map(|(_, role)| role)
    }

    /// Returns the same as [`Self::current_role`], as a transaction sees it.
    pub(super) fn current_role_in(
        &self,
        transaction: &Transaction<'_>,
        id: &str,
    ) -> Result<Option<Role>, GatewayError> {
        let Some(key) = KEYS.get(transaction, id)?.map(Key::from) else { return Ok(None) };
        let owner = match &key.owner {
            Some(owner) => ACCOUNTS.get(transaction, owner)?,
            None => None,
        };
        Ok(self.effective_role_with(&key, owner.map(Arc::new)).ok().map(|(_, role)| role))
    }

    /// Returns the time that decides whether keys have expired.
    pub(super) fn now(&self) -> Timestamp {
        self.inner.clock.now()
    }

    /// Returns the account of a key's owner, and the key's current role.
    fn effective_role(&self, key: &Key) -> Result<(Option<Arc<Account>>, Role), AuthError> {
        let owner = key.owner.as_ref().and_then(|owner| self.inner.accounts.get(owner));
        self.effective_role_with(key, owner)
    }

    /// Returns the same, for an owner whose account is in this state; `None` if the account was deleted.
    fn effective_role_with(
        &self,
        key: &Key,
        account: Option<Arc<Account>>,
    ) -> Result<(Option<Arc<Account>>, Role), AuthError> {
        if key.expires_at.is_some() && is_expired(key, self.now()) {
            return Err(AuthError::Invalid("the API key has expired".to_owned()));
        }
        if key.owner.is_none() {
            return Ok((None, key.role));
        }
        let account = account.ok_or_else(|| {
            AuthError::Invalid("the account of the API key was deleted".to_owned())
        })?;
        if !account.enabled {
            return Err(account_disabled_error());
        }
        if key.role == Role::Metrics && account.role < Role::Admin {
            let why = "an API key with the role Metrics works only while its owner is an Admin";
            return Err(AuthError::Forbidden(why.to_owned()));
        }
        let role = key.role.min(account.role);
        Ok((Some(account), role))
    }

    /// Returns the key with this id if the caller may manage it ([`may_manage`]).
    pub fn get(&self, by: &Caller, id: &str) -> Option<Arc<Key>> {
        self.inner
            .entries
            .read()
            .by_id
            .get(id)
            .map(|entry| entry.key.clone())
            .filter(|key| may_manage(by, key))
    }

    /// Returns the same as [`Self::get`].
    ///
    /// # Errors
    /// `ErrorClass::NotFound`.
    pub fn require_key(&self, by: &Caller, id: &str) -> Result<Arc<Key>, GatewayError> {
        self.get(by, id).ok_or_else(|| {
            GatewayError::new(
                ErrorClass::NotFound,
                format!("there is no API key with the id {id:?}"),
            )
        })
    }

    /// Returns the ids of an account's keys.
    pub fn list_ids_of(&self, owner: &str) -> Vec<String> {
        self.inner.entries.read().iter_owned_by(owner).map(|key| key.id.clone()).collect()
    }

    /// Returns the API key that a request was sent with.
    pub fn find_caller_key(&self, caller: &Caller) -> Option<Arc<Key>> {
        let Credential::ApiKey { id, .. } = &caller.credential else { return None };
        self.inner.entries.read().by_id.get(id).map(|entry| entry.key.clone())
    }

    /// Lists at most `limit` keys that the caller may manage, ordered by id, after the id `after`.
    pub fn list(&self, by: &Caller, after: Option<&str>, limit: usize) -> Vec<Arc<Key>> {
        let from = after.map_or(Bound::Unbounded, Bound::Excluded);
        let entries = self.inner.entries.read();
        let keys =
            entries.by_id.range::<str, _>((from, Bound::Unbounded)).map(|(_, entry)| &entry.key);
        keys.filter(|key| may_manage(by, key)).take(limit).cloned().collect()
    }

    /// Creates a key and returns it with its secret, which is not stored.
    ///
    /// # Errors
    /// `ErrorClass::Forbidden` when it would have more rights than the caller. `ErrorClass::Invalid` when it would be
    /// expired. `ErrorClass::Conflict` when the limit of keys is reached. `ErrorClass::TooManyRequests` when too many
    /// were created recently.
    pub fn create_key(
        &self,
        requester: &dyn Requester,
        new: NewApiKey,
    ) -> Result<(Arc<Key>, String), GatewayError> {
        let by = requester.caller();
        self.check_may_create(by, &new)?;
        let writer = self.inner.writer.lock();
        if self.inner.entries.read().by_id.len() >= MAX_KEYS {
            return Err(GatewayError::new(
                ErrorClass::Conflict,
                format!("the limit of {MAX_KEYS} API keys is reached; revoke some"),
            ));
        }
        if by.role < Role::Admin
            && let Some(account) = &by.account
            && self.inner.entries.read().iter_owned_by(&account.id).count() >= MAX_KEYS_PER_ACCOUNT
        {
            return Err(GatewayError::new(
                ErrorClass::Conflict,
                format!(
                    "this account has reached its limit of {MAX_KEYS_PER_ACCOUNT} API keys; revoke some"
                ),
            ));
        }
        self.inner.audit.check_rate_limit(by)?;
        let (secret, digest) = Secret::new();
        let business_objects = new.limit();
        let key = Key {
            id: uuid::Uuid::now_v7().to_string(),
            name: new.name,
            role: new.role,
            owner: by.account.as_ref().map(|account| account.id.clone()),
            business_objects,
            created_at: time::now_rfc3339(),
            expires_at: new.expires_at.map(|at| at.to_string()),
            last_used: None,
            digest,
        };
        let detail = format!("{:?} ({}) with the role {}", key.name, key.id, key.role);
        let created = key_event(by, "key.created", &key, detail);
        self.inner.audit.commit_with_events(requester, &[created], |transaction| {
            requester.check_role(transaction)?;
            if key.business_objects.as_ref().is_some_and(|all| all.len() > 1) {
                // An older version would know only the first of them.
                transaction.require_format(Format::V3);
            }
            Ok(KEYS.put(transaction, &key.id, &StoredKey::from(&key))?)
        })?;
        let key = Arc::new(key);
        self.inner.entries.write().insert(key.clone());
        drop(writer);
        Ok((key, secret.into_text()))
    }

    fn check_may_create(&self, by: &Caller, new: &NewApiKey) -> Result<(), GatewayError> {
        let refused = |pointer: &str, why: &str| {
            let finding = Finding::at_pointer(pointer, why);
            Err(GatewayError::with_findings(
                ErrorClass::Forbidden,
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
        if let Credential::ApiKey { id, business_objects } = &by.credential {
            if business_objects.is_some() {
                return refused(
                    "/businessObject",
                    "an API key that is limited to Business Objects cannot create API keys",
                );
            }
            let own = self
                .inner
                .entries
                .read()
                .by_id
                .get(id)
                .and_then(|entry| entry.key.expires_at.clone());
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
            return Err(invalid_key_error(vec![Finding::at_pointer("/expiresAt", why)]));
        }
        Ok(())
    }

    /// Revokes a key that the caller may manage ([`may_manage`]).
    ///
    /// # Errors
    /// `ErrorClass::NotFound`.
    pub fn revoke_key(&self, by: &dyn Requester, id: &str) -> Result<(), GatewayError> {
        let _writer = self.inner.writer.lock();
        let key = self.require_key(by.caller(), id)?;
        let detail = format!("{:?} ({})", key.name, key.id);
        let revoked = key_event(by.caller(), "key.revoked", &key, detail);
        self.inner.audit.commit_with_events(by, &[revoked], |transaction| {
            by.check_role(transaction)?;
            Ok(KEYS.delete(transaction, id)?)
        })?;
        self.inner.entries.write().remove(id);
        Ok(())
    }

    /// Revokes the keys of an account in the commit that deletes it: `delete` commits what it gets.
    pub(super) fn revoke_all_of(
        &self,
        owner: &Account,
        delete: impl FnOnce(CommitPart<'_>) -> Result<(), GatewayError>,
    ) -> Result<(), GatewayError> {
        let _writer = self.inner.writer.lock();
        let ids = self.list_ids_of(&owner.id);
        delete(&|transaction| ids.iter().try_for_each(|id| Ok(KEYS.delete(transaction, id)?)))?;
        let mut entries = self.inner.entries.write();
        for id in &ids {
            entries.remove(id);
        }
        Ok(())
    }

    /// Records the use of a key, at most once in each [`LAST_USE_RESOLUTION`].
    fn record_use(&self, key: &Arc<Key>) {
        let now = Instant::now();
        let fresh = |entry: &Entry| {
            entry.last_used_at.is_some_and(|used| now.duration_since(used) < LAST_USE_RESOLUTION)
        };
        if self.inner.entries.read().by_id.get(&key.id).is_none_or(fresh) {
            return;
        }
        let at = time::now_rfc3339();
        if let Some(entry) = self.inner.entries.write().by_id.get_mut(&key.id) {
            // Another request may have recorded it meanwhile.
            if fresh(entry) {
                return;
            }
            entry.last_used_at = Some(now);
            Arc::make_mut(&mut entry.key).last_used = Some(at.clone());
        }
        let id = key.id.clone();
        self.inner
            .deferred_writes
            .enqueue(move |transaction| write_last_use(transaction, &id, &at));
    }
}

impl Entries {
    fn by_digest(&self, digest: &str) -> Option<&Arc<Key>> {
        let key = &self.by_id.get(self.by_digest.get(digest)?)?.key;
        secret::is_same_digest(&key.digest, digest).then_some(key)
    }

    /// Lists the keys of an account.
    fn iter_owned_by(&self, owner: &str) -> impl Iterator<Item = &Arc<Key>> {
        let keys = self.by_id.values().map(|entry| &entry.key);
        keys.filter(move |key| key.owner.as_deref() == Some(owner))
    }

    fn insert(&mut self, key: Arc<Key>) {
        self.by_digest.insert(key.digest.clone(), key.id.clone());
        self.by_id.insert(key.id.clone(), Entry { key, last_used_at: None });
    }

    fn remove(&mut self, id: &str) {
        if let Some(entry) = self.by_id.remove(id) {
            self.by_digest.remove(&entry.key.digest);
        }
    }
}

fn is_expired(key: &Key, now: Timestamp) -> bool {
    // A key with a time that cannot be parsed counts as expired.
    key.expires_at.as_ref().is_some_and(|at| !at.parse::<Timestamp>().is_ok_and(|at| at > now))
}

/// Returns whether a caller may see and revoke a key. An Admin may manage every key, and every key may manage itself.
/// Otherwise the key must belong to the caller's account. A caller with an API key, or with a lower role than its
/// account, manages only keys whose role is not higher than its own.
fn may_manage(by: &Caller, key: &Key) -> bool {
    if by.role == Role::Admin {
        return true;
    }
    if by.actor_id() == key.id {
        return true;
    }
    let Some(own) = by.account.as_ref().filter(|own| Some(&own.id) == key.owner.as_ref()) else {
        return false;
    };
    let has_whole_account = by.api_key_id().is_none() && by.role == own.role;
    has_whole_account || key.role <= by.role
}

fn key_event(by: &Caller, what: &'static str, key: &Key, detail: String) -> Event {
    let (from, by) = (by.from, Some(by.actor_id().to_owned()));
    let account = key.owner.clone();
    let by = by.filter(|by| Some(by) != account.as_ref());
    Event { what, account, by, from, detail }
}

fn write_last_use(
    transaction: &mut Transaction<'_>,
    id: &str,
    at: &str,
) -> Result<(), GatewayError> {
    // The key may have been revoked meanwhile.
    let Some(mut key) = KEYS.get_readable(transaction, id)? else { return Ok(()) };
    key.last_used = Some(at.to_owned());
    Ok(KEYS.put(transaction, id, &key)?)
}

#[cfg(test)]
mod tests;
