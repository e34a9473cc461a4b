//! Browser sessions.
//!
//! Sessions are in memory, by the hash of their ids. Their start and end are written to the store within a second, so
//! that they survive a restart of the service. The idle time is only in memory, and starts again with a restart. The
//! age of a session is computed from the time since the machine was booted, which does not depend on the clock. So a
//! reboot ends all sessions.
//!
//! A session stores the generation of its account. A change that ends all sessions of an account (a new password, or
//! disabling it) increments the generation in the same commit.
mod era;

use super::accounts::{Accounts, account_disabled_error};
use super::audit::{Audit, Event};
use super::deferred_writes::DeferredWrites;
use super::{Account, AuthError, Caller, Credential};
use era::Era;
use parking_lot::Mutex;
use penstock_base::collections;
use penstock_base::error::GatewayError;
use penstock_base::hex::encode_hex;
use penstock_base::shared::Shared;
use penstock_base::table::{AsJson, Table};
use penstock_config::{Security, SessionLimits};
use penstock_resources::account::AccountSource;
use penstock_resources::role::Role;
use penstock_store::{Store, Transaction};
use rand::RngCore;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use std::collections::HashMap;
use std::net::IpAddr;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;
use subtle::ConstantTimeEq;

/// The sessions, by the hash of their ids.
const SESSIONS: Table<String, AsJson<StoredSession>> = Table::new(collections::SESSIONS);

/// The maximum number of sessions in total and for each account. Beyond it, the gateway ends the session that has been
/// idle longest.
const MAX_SESSIONS: usize = 1000;
const MAX_SESSIONS_PER_ACCOUNT: usize = 10;
/// The maximum size in bytes of an ID token that is kept for the sign-out. Without one, the provider asks the person to
/// confirm the sign-out.
const MAX_ID_TOKEN_BYTES: usize = 8 << 10;

/// The sessions. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Sessions {
    inner: Shared<Inner>,
}

#[derive(Debug)]
struct Inner {
    sessions: Mutex<HashMap<String, Session>>,
    accounts: Accounts,
    audit: Audit,
    deferred_writes: DeferredWrites,
    limits: SessionLimits,
    era: Era,
}

#[derive(Clone)]
struct Session {
    account: String,
    generation: u64,
    began: Duration,
    last_used: Duration,
    id_token: Option<Arc<str>>,
}

impl std::fmt::Debug for Session {
    /// Omits the ID token.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Session").field("account", &self.account).finish_non_exhaustive()
    }
}

/// A stored session.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct StoredSession {
    account: String,
    generation: u64,
    /// Milliseconds since the machine was booted.
    began: u64,
    era: String,
}

/// A new session.
pub struct NewSession {
    /// The random id, 256 bits in hexadecimal. It is the cookie's value, and is not stored.
    pub id: String,
    /// The CSRF token that unsafe requests of a page without script contain.
    pub csrf: String,
}

impl std::fmt::Debug for NewSession {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("NewSession(..)")
    }
}

impl Sessions {
    /// Loads the sessions from before a restart of the service. Those of accounts that can no longer sign in have ended:
    /// another `security` or another provider turned off the sign-in with which they began. Blocking.
    pub(super) fn open(
        store: &Store,
        (accounts, audit, later): (&Accounts, &Audit, &DeferredWrites),
        security: &Security,
        data_dir: &Path,
    ) -> Result<Self, GatewayError> {
        let inner = Inner {
            sessions: Mutex::default(),
            accounts: accounts.clone(),
            audit: audit.clone(),
            deferred_writes: later.clone(),
            limits: security.session,
            era: Era::load_or_start(data_dir),
        };
        let sessions = Self { inner: Shared::new(inner) };
        sessions.load_sessions(store, security)?;
        Ok(sessions)
    }

    fn load_sessions(&self, store: &Store, security: &Security) -> Result<(), GatewayError> {
        let now = era::time_since_boot();
        let rows = SESSIONS.scan().read_all(&store.read())?;
        let mut sessions = self.inner.sessions.lock();
        for row in rows {
            let hash = String::from_utf8_lossy(row.key_bytes()).into_owned();
            let session = row
                .value()
                .ok()
                .filter(|document| document.era == self.inner.era.name())
                .map(|document| Session {
                    account: document.account,
                    generation: document.generation,
                    began: Duration::from_millis(document.began),
                    last_used: now,
                    id_token: None,
                })
                .filter(|session| {
                    let account = self.check_session(session, now);
                    account.is_ok_and(|account| can_sign_in(&account, security))
                });
            match session {
                Some(session) => {
                    sessions.insert(hash, session);
                }
                None => self.delete_session(hash),
            }
        }
        Ok(())
    }

    /// Starts a session. Keeps `id_token` only in memory, for the sign-out at the provider. Never blocks.
    ///
    /// # Errors
    /// `AuthError::Forbidden` when the account has been disabled meanwhile.
    pub fn start_session(
        &self,
        account: &Account,
        id_token: Option<&str>,
        from: Option<IpAddr>,
    ) -> Result<NewSession, AuthError> {
        let account = self.inner.accounts.get(&account.id).filter(|account| account.enabled);
        let account = account.ok_or_else(account_disabled_error)?;
        let mut bytes = [0; 32];
        rand::rng().fill_bytes(&mut bytes);
        let id = encode_hex(&bytes);
        let hash = hash_id(&id);
        let now = era::time_since_boot();
        let session = Session {
            account: account.id.clone(),
            generation: account.generation,
            began: now,
            last_used: now,
            id_token: id_token.filter(|token| token.len() <= MAX_ID_TOKEN_BYTES).map(Into::into),
        };
        self.store_session(&hash, &session);
        let mut sessions = self.inner.sessions.lock();
        self.evict_sessions(&mut sessions, &account.id, now);
        sessions.insert(hash, session);
        drop(sessions);
        self.record_event("sign-in", &account, from, account.source().name());
        let csrf = Self::csrf_token(&id);
        Ok(NewSession { id, csrf })
    }

    /// Authenticates the caller with this session id. Never blocks.
    ///
    /// # Errors
    /// `AuthError::Invalid` when there is no such session, or it has ended. `AuthError::Forbidden` when its account is
    /// disabled.
    pub fn authenticate_session(&self, id: &str) -> Result<Caller, AuthError> {
        self.authenticate_at(id, era::time_since_boot(), true)
    }

    /// Authenticates a request that a page sends automatically, which does not reset the idle time.
    ///
    /// # Errors
    /// As those of [`Self::authenticate_session`].
    pub fn authenticate_passive(&self, id: &str) -> Result<Caller, AuthError> {
        self.authenticate_at(id, era::time_since_boot(), false)
    }

    fn authenticate_at(&self, id: &str, now: Duration, is_use: bool) -> Result<Caller, AuthError> {
        let hash = hash_id(id);
        let mut sessions = self.inner.sessions.lock();
        let session = sessions.get_mut(&hash).ok_or_else(session_ended_error)?;
        match self.check_session(session, now) {
            Ok(account) => {
                if is_use {
                    session.last_used = now;
                }
                let (role, credential) = (account.role, Credential::Session(hash));
                Ok(Caller { account: Some(account), role, credential, from: None })
            }
            // `renew_generation` may follow. Otherwise the session stays ended.
            Err(error) if self.awaits_renewal(session, now) => Err(error),
            Err(error) => {
                sessions.remove(&hash);
                drop(sessions);
                self.delete_session(hash);
                Err(error)
            }
        }
    }

    /// Returns whether a session has ended only because its account has another generation.
    fn awaits_renewal(&self, session: &Session, now: Duration) -> bool {
        let account = self.inner.accounts.get(&session.account);
        account.is_some_and(|account| {
            let renewed = Session { generation: account.generation, ..session.clone() };
            self.check_session_with(&renewed, Some(account), now).is_ok()
        })
    }

    /// Returns the current role of the session with this hash; `None` when it has ended. Does not reset the idle time.
    pub(super) fn current_role(&self, hash: &str) -> Option<Role> {
        let session = self.inner.sessions.lock().get(hash)?.clone();
        self.check_session(&session, era::time_since_boot()).ok().map(|account| account.role)
    }

    /// Returns the same as [`Self::current_role`], with the account as a transaction sees it. The session is read from
    /// memory, which knows the end of a session before the request that ended it is answered.
    pub(super) fn current_role_in(
        &self,
        transaction: &Transaction<'_>,
        hash: &str,
    ) -> Result<Option<Role>, GatewayError> {
        let Some(session) = self.inner.sessions.lock().get(hash).cloned() else { return Ok(None) };
        let account = super::accounts::ACCOUNTS.get(transaction, &session.account)?.map(Arc::new);
        let account = self.check_session_with(&session, account, era::time_since_boot());
        Ok(account.ok().map(|account| account.role))
    }

    /// Returns the account of a valid session.
    fn check_session(&self, session: &Session, now: Duration) -> Result<Arc<Account>, AuthError> {
        self.check_session_with(session, self.inner.accounts.get(&session.account), now)
    }

    /// Returns the same, for an account in this state; `None` if it was deleted.
    fn check_session_with(
        &self,
        session: &Session,
        account: Option<Arc<Account>>,
        now: Duration,
    ) -> Result<Arc<Account>, AuthError> {
        let SessionLimits { idle, absolute } = self.inner.limits;
        if now.saturating_sub(session.last_used) > idle
            || now.saturating_sub(session.began) > absolute
        {
            return Err(session_ended_error());
        }
        let account = account.ok_or_else(session_ended_error)?;
        if !account.enabled {
            return Err(account_disabled_error());
        }
        if account.generation != session.generation {
            return Err(session_ended_error());
        }
        Ok(account)
    }

    /// Ends a session. Returns its `id_token`, if this process started the session with one. Never blocks.
    pub fn end_session(&self, id: &str) -> Option<Arc<str>> {
        let hash = hash_id(id);
        let session = self.inner.sessions.lock().remove(&hash)?;
        self.delete_session(hash);
        if let Some(account) = self.inner.accounts.get(&session.account) {
            self.record_event("sign-out", &account, None, account.source().name());
        }
        session.id_token
    }

    /// Ends every session, also those that are only in the store. Blocking.
    ///
    /// # Errors
    /// The errors of the store.
    pub fn end_all_sessions(&self, store: &Store) -> Result<(), GatewayError> {
        self.inner.sessions.lock().clear();
        store.transact(|transaction| SESSIONS.scan().delete(transaction, usize::MAX))?;
        Ok(())
    }

    /// Keeps the session with this hash after the change that ended the other sessions of its account.
    pub(super) fn renew_generation(&self, hash: &str, account: &Account) {
        let mut sessions = self.inner.sessions.lock();
        if let Some(session) = sessions.get_mut(hash).filter(|s| s.account == account.id) {
            session.generation = account.generation;
            // Under the lock: a sign-out that follows is written after this.
            self.store_session(hash, session);
        }
    }

    /// Returns the CSRF token of the session with this id. Pages derive it from the id without a lookup.
    pub fn csrf_token(id: &str) -> String {
        encode_hex(&Sha256::new().chain_update("penstock csrf ").chain_update(id).finalize())
    }

    /// Returns whether this is the CSRF token of the session with this id.
    pub fn is_csrf_token(id: &str, token: &str) -> bool {
        Self::csrf_token(id).as_bytes().ct_eq(token.as_bytes()).into()
    }

    /// Frees capacity for one more session of an account: removes ended sessions, or else the longest idle ones.
    fn evict_sessions(
        &self,
        sessions: &mut HashMap<String, Session>,
        account: &str,
        now: Duration,
    ) {
        let mut gone: Vec<String> = Vec::new();
        let of_one = sessions.values().filter(|session| session.account == account).count();
        if sessions.len() >= MAX_SESSIONS {
            let ended =
                sessions.iter().filter(|(_, session)| self.check_session(session, now).is_err());
            gone.extend(ended.map(|(hash, _)| hash.clone()));
        }
        if of_one >= MAX_SESSIONS_PER_ACCOUNT {
            gone.extend(find_idlest(sessions, |session| session.account == account));
        }
        if gone.is_empty() && sessions.len() >= MAX_SESSIONS {
            gone.extend(find_idlest(sessions, |_| true));
        }
        for hash in gone {
            sessions.remove(&hash);
            self.delete_session(hash);
        }
    }

    fn store_session(&self, hash: &str, session: &Session) {
        let document = StoredSession {
            account: session.account.clone(),
            generation: session.generation,
            began: u64::try_from(session.began.as_millis()).unwrap_or(u64::MAX),
            era: self.inner.era.name().to_owned(),
        };
        let key = hash.to_owned();
        self.inner.deferred_writes.enqueue_always(move |t| Ok(SESSIONS.put(t, &key, &document)?));
    }

    fn delete_session(&self, hash: String) {
        self.inner.deferred_writes.enqueue_always(move |t| Ok(SESSIONS.delete(t, &hash)?));
    }

    fn record_event(
        &self,
        what: &'static str,
        account: &Account,
        from: Option<IpAddr>,
        detail: &str,
    ) {
        let (account, detail) = (Some(account.id.clone()), detail.to_owned());
        self.inner.audit.record_event(Event { what, account, by: None, from, detail });
    }
}

/// Returns whether people sign in with accounts such as this one.
fn can_sign_in(account: &Account, security: &Security) -> bool {
    match (&account.identity, &security.oidc) {
        (None, None) => true,
        (Some(identity), Some(oidc)) => {
            identity.source == AccountSource::OpenIdConnect
                && identity.issuer == oidc.identity_issuer()
        }
        _ => false,
    }
}

fn find_idlest(
    sessions: &HashMap<String, Session>,
    of: impl Fn(&Session) -> bool,
) -> Option<String> {
    let sessions = sessions.iter().filter(|(_, session)| of(session));
    sessions.min_by_key(|(_, session)| session.last_used).map(|(hash, _)| hash.clone())
}

fn session_ended_error() -> AuthError {
    AuthError::Invalid("the session has ended; sign in again".to_owned())
}

fn hash_id(id: &str) -> String {
    encode_hex(&Sha256::digest(id))
}

#[cfg(test)]
mod tests;
