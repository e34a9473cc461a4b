//! Browser sessions.
//!
//! Sessions are in memory, by the hash of their ids. Their begin and end are written to the store within a second, so
//! that they survive a restart of the service. The idle time is only in memory, and starts again with a restart. Ages
//! count the time since the machine was booted, independent of the clock, so a reboot ends all sessions.
//!
//! A session stores the generation of its account. A change that ends all sessions of an account (a new password, or
//! disabling it) increments the generation in the same commit.
mod era;

use super::accounts::{Accounts, disabled};
use super::audit::{Audit, Event};
use super::later::Later;
use super::{Account, Caller, Credential, Refusal, Role};
use era::Era;
use penstock_base::fault::Fault;
use penstock_config::SessionLimits;
use penstock_store::{DocumentRange, Read, Store, Transaction};
use rand::RngCore;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use std::collections::HashMap;
use std::fmt::Write;
use std::net::IpAddr;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use subtle::ConstantTimeEq;

/// The collection of the documents: the hash of the id to JSON.
pub const COLLECTION: &str = "sessions";

/// The maximum number of sessions in total and for each account. Beyond it, the longest idle sessions are ended.
const MOST: usize = 1000;
const MOST_OF_ONE: usize = 10;
/// The maximum size of a stored ID token in bytes. Without it, the provider asks the person to confirm the sign-out.
const LONGEST_TOKEN: usize = 8 << 10;

/// The sessions. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Sessions {
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    sessions: Mutex<HashMap<String, Session>>,
    accounts: Accounts,
    audit: Audit,
    later: Later,
    limits: SessionLimits,
    era: Era,
}

#[derive(Debug, Clone)]
struct Session {
    account: String,
    generation: u64,
    began: Duration,
    seen: Duration,
    id_token: Option<Arc<str>>,
}

/// A stored session.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Document {
    account: String,
    generation: u64,
    /// Milliseconds since the machine was booted.
    began: u64,
    era: String,
}

/// A new session.
pub struct Started {
    /// The random id, 256 bits in hexadecimal. It is the cookie's value, and is not stored.
    pub id: String,
    /// The CSRF token that unsafe requests of a page without script contain.
    pub csrf: String,
}

impl std::fmt::Debug for Started {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Started(..)")
    }
}

impl Sessions {
    /// Loads the sessions from before a restart of the service. Blocking.
    pub(super) fn open(
        store: &Store,
        (accounts, audit, later): (&Accounts, &Audit, &Later),
        limits: SessionLimits,
        data_dir: &Path,
    ) -> Result<Self, Fault> {
        let inner = Inner {
            sessions: Mutex::default(),
            accounts: accounts.clone(),
            audit: audit.clone(),
            later: later.clone(),
            limits,
            era: Era::of(data_dir),
        };
        let sessions = Self { inner: Arc::new(inner) };
        sessions.take_up(store)?;
        Ok(sessions)
    }

    fn take_up(&self, store: &Store) -> Result<(), Fault> {
        let now = era::now();
        let range = DocumentRange { limit: usize::MAX, ..DocumentRange::default() };
        let documents = store.read().documents(COLLECTION, range)?;
        let mut sessions = self.sessions();
        for (key, document) in documents {
            let hash = String::from_utf8_lossy(&key).into_owned();
            let session = serde_json::from_slice::<Document>(&document)
                .ok()
                .filter(|document| document.era == self.inner.era.name())
                .map(|document| Session {
                    account: document.account,
                    generation: document.generation,
                    began: Duration::from_millis(document.began),
                    seen: now,
                    id_token: None,
                })
                .filter(|session| self.account(session, now).is_ok());
            match session {
                Some(session) => {
                    sessions.insert(hash, session);
                }
                None => self.forget(hash),
            }
        }
        Ok(())
    }

    /// Begins a session. Keeps `id_token` in memory, and only there, for the sign-out at the provider. Never blocks.
    ///
    /// # Errors
    /// `Refusal::Forbidden` when the account has been disabled meanwhile.
    pub fn start(
        &self,
        account: &Account,
        id_token: Option<&str>,
        from: Option<IpAddr>,
    ) -> Result<Started, Refusal> {
        let account = self.inner.accounts.get(&account.id).filter(|account| account.enabled);
        let account = account.ok_or_else(disabled)?;
        let mut bytes = [0; 32];
        rand::rng().fill_bytes(&mut bytes);
        let id = hex(&bytes);
        let hash = hash(&id);
        let now = era::now();
        let session = Session {
            account: account.id.clone(),
            generation: account.generation,
            began: now,
            seen: now,
            id_token: id_token.filter(|token| token.len() <= LONGEST_TOKEN).map(Into::into),
        };
        self.keep(&hash, &session);
        let mut sessions = self.sessions();
        self.make_room(&mut sessions, &account.id, now);
        sessions.insert(hash, session);
        drop(sessions);
        self.tell("sign-in", &account, from, account.source().name());
        let csrf = Self::csrf(&id);
        Ok(Started { id, csrf })
    }

    /// Authenticates the caller with this session id. Never blocks.
    ///
    /// # Errors
    /// `Refusal::Invalid` when there is no such session, or it has ended. `Refusal::Forbidden` when its account is
    /// disabled.
    pub fn caller(&self, id: &str) -> Result<Caller, Refusal> {
        self.caller_at(id, era::now(), true)
    }

    /// Authenticates a request that a page sends automatically, which does not reset the idle time.
    ///
    /// # Errors
    /// As those of [`Self::caller`].
    pub fn onlooker(&self, id: &str) -> Result<Caller, Refusal> {
        self.caller_at(id, era::now(), false)
    }

    fn caller_at(&self, id: &str, now: Duration, is_use: bool) -> Result<Caller, Refusal> {
        let hash = hash(id);
        let mut sessions = self.sessions();
        let session = sessions.get_mut(&hash).ok_or_else(ended)?;
        match self.account(session, now) {
            Ok(account) => {
                if is_use {
                    session.seen = now;
                }
                let (role, credential) = (account.role, Credential::Session(hash));
                Ok(Caller { account: Some(account), role, credential, from: None })
            }
            Err(refusal) => {
                sessions.remove(&hash);
                drop(sessions);
                self.forget(hash);
                Err(refusal)
            }
        }
    }

    /// Returns the current role of the session with this hash; `None` when it has ended. Does not reset the idle time.
    pub(super) fn still(&self, hash: &str) -> Option<Role> {
        let session = self.sessions().get(hash)?.clone();
        self.account(&session, era::now()).ok().map(|account| account.role)
    }

    /// Returns the same as [`Self::still`], with the account as a transaction sees it. Memory has the end of a session
    /// before the request that ended it is answered.
    pub(super) fn still_in(
        &self,
        transaction: &Transaction<'_>,
        hash: &str,
    ) -> Result<Option<Role>, Fault> {
        let Some(session) = self.sessions().get(hash).cloned() else { return Ok(None) };
        let account = super::accounts::stored(transaction, &session.account)?.map(Arc::new);
        let account = self.account_of(&session, account, era::now());
        Ok(account.ok().map(|account| account.role))
    }

    /// Returns the account of a valid session.
    fn account(&self, session: &Session, now: Duration) -> Result<Arc<Account>, Refusal> {
        self.account_of(session, self.inner.accounts.get(&session.account), now)
    }

    /// Returns the same for this state of the account, if there is one.
    fn account_of(
        &self,
        session: &Session,
        account: Option<Arc<Account>>,
        now: Duration,
    ) -> Result<Arc<Account>, Refusal> {
        let SessionLimits { idle, absolute } = self.inner.limits;
        if now.saturating_sub(session.seen) > idle || now.saturating_sub(session.began) > absolute {
            return Err(ended());
        }
        let account = account.ok_or_else(ended)?;
        if !account.enabled {
            return Err(disabled());
        }
        if account.generation != session.generation {
            return Err(ended());
        }
        Ok(account)
    }

    /// Ends a session. Returns its `id_token` if this process began the session with one. Never blocks.
    pub fn end(&self, id: &str) -> Option<Arc<str>> {
        let hash = hash(id);
        let session = self.sessions().remove(&hash)?;
        self.forget(hash);
        if let Some(account) = self.inner.accounts.get(&session.account) {
            self.tell("sign-out", &account, None, account.source().name());
        }
        session.id_token
    }

    /// Keeps the session with this hash after the change that ended the other sessions of its account.
    pub fn renew(&self, hash: &str, account: &Account) {
        let mut sessions = self.sessions();
        if let Some(session) = sessions.get_mut(hash).filter(|s| s.account == account.id) {
            session.generation = account.generation;
            let session = session.clone();
            drop(sessions);
            self.keep(hash, &session);
        }
    }

    /// Returns the CSRF token of the session with this id. Pages derive it from the id without a lookup.
    pub fn csrf(id: &str) -> String {
        hex(&Sha256::new().chain_update("penstock csrf ").chain_update(id).finalize())
    }

    /// Returns whether this is the CSRF token of the session with this id.
    pub fn is_csrf(id: &str, token: &str) -> bool {
        Self::csrf(id).as_bytes().ct_eq(token.as_bytes()).into()
    }

    /// Removes ended sessions, and the longest idle ones beyond the limits.
    fn make_room(&self, sessions: &mut HashMap<String, Session>, account: &str, now: Duration) {
        let mut gone: Vec<String> = Vec::new();
        let of_one = sessions.values().filter(|session| session.account == account).count();
        if sessions.len() >= MOST {
            let ended = sessions.iter().filter(|(_, session)| self.account(session, now).is_err());
            gone.extend(ended.map(|(hash, _)| hash.clone()));
        }
        if of_one >= MOST_OF_ONE {
            gone.extend(idlest(sessions, |session| session.account == account));
        }
        if gone.is_empty() && sessions.len() >= MOST {
            gone.extend(idlest(sessions, |_| true));
        }
        for hash in gone {
            sessions.remove(&hash);
            self.forget(hash);
        }
    }

    fn keep(&self, hash: &str, session: &Session) {
        let document = Document {
            account: session.account.clone(),
            generation: session.generation,
            began: u64::try_from(session.began.as_millis()).unwrap_or(u64::MAX),
            era: self.inner.era.name().to_owned(),
        };
        let Ok(document) = serde_json::to_vec(&document) else { return };
        let key = hash.to_owned();
        self.inner.later.surely(move |t| Ok(t.put(COLLECTION, key.as_bytes(), &document)?));
    }

    fn forget(&self, hash: String) {
        self.inner.later.surely(move |t| Ok(t.delete(COLLECTION, hash.as_bytes())?));
    }

    fn tell(&self, what: &'static str, account: &Account, from: Option<IpAddr>, detail: &str) {
        let (account, detail) = (Some(account.id.clone()), detail.to_owned());
        self.inner.audit.record(Event { what, account, by: None, from, detail });
    }

    // Nothing panics while it is held.
    fn sessions(&self) -> MutexGuard<'_, HashMap<String, Session>> {
        self.inner.sessions.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn idlest(sessions: &HashMap<String, Session>, of: impl Fn(&Session) -> bool) -> Option<String> {
    let sessions = sessions.iter().filter(|(_, session)| of(session));
    sessions.min_by_key(|(_, session)| session.seen).map(|(hash, _)| hash.clone())
}

fn ended() -> Refusal {
    Refusal::Invalid("the session has ended; sign in again".to_owned())
}

fn hash(id: &str) -> String {
    hex(&Sha256::digest(id))
}

pub(super) fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::with_capacity(bytes.len() * 2), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}

#[cfg(test)]
mod tests;
