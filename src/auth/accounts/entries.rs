//! The accounts in memory.
use super::super::{Account, Identity};
use parking_lot::Mutex;
use std::collections::{BTreeMap, HashMap};
use std::ops::Bound;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// The minimum interval between two writes of a last login.
const LAST_LOGIN_WRITE_INTERVAL: Duration = Duration::from_mins(10);

/// The accounts by id, with the indexes for email and identity.
#[derive(Debug, Default)]
pub(super) struct AccountIndex {
    accounts: BTreeMap<String, Entry>,
    /// The ids of built-in accounts by email in lower case.
    emails: HashMap<String, String>,
    identities: HashMap<Identity, String>,
}

#[derive(Debug)]
pub(super) struct Entry {
    account: Arc<Account>,
    last_login_at: Option<Instant>,
    stored_login: Arc<LastLogin>,
}

/// A last login that is queued for the store.
#[derive(Debug, Default)]
pub(super) struct LastLogin(Mutex<PendingLogin>);

#[derive(Debug, Default)]
struct PendingLogin {
    at: String,
    /// Whether a deferred change that writes it is queued.
    queued: bool,
    written: Option<Instant>,
}

impl LastLogin {
    /// Sets the last login. Returns the delay after which it must be written, or `None` if a write is already queued.
    fn queue_write(&self, at: &str, now: Instant) -> Option<Duration> {
        let mut pending = self.0.lock();
        at.clone_into(&mut pending.at);
        if std::mem::replace(&mut pending.queued, true) {
            return None;
        }
        let next = pending.written.map_or(now, |written| written + LAST_LOGIN_WRITE_INTERVAL);
        Some(next.saturating_duration_since(now).max(Duration::from_secs(1)))
    }

    /// Returns the last login, to be written now.
    pub(super) fn take_for_write(&self, now: Instant) -> String {
        let mut pending = self.0.lock();
        pending.queued = false;
        pending.written = Some(now);
        pending.at.clone()
    }
}

impl AccountIndex {
    pub(super) fn len(&self) -> usize {
        self.accounts.len()
    }

    pub(super) fn get(&self, id: &str) -> Option<&Arc<Account>> {
        self.accounts.get(id).map(|entry| &entry.account)
    }

    /// Returns the built-in account with this email, ignoring case.
    pub(super) fn by_email(&self, email: &str) -> Option<&Arc<Account>> {
        self.get(self.emails.get(&email.to_lowercase())?)
    }

    pub(super) fn by_identity(&self, identity: &Identity) -> Option<&Arc<Account>> {
        self.get(self.identities.get(identity)?)
    }

    pub(super) fn iter_accounts(&self) -> impl Iterator<Item = &Arc<Account>> {
        self.accounts.values().map(|entry| &entry.account)
    }

    pub(super) fn iter_after(&self, id: Option<&str>) -> impl Iterator<Item = &Arc<Account>> {
        let from = id.map_or(Bound::Unbounded, Bound::Excluded);
        self.accounts.range::<str, _>((from, Bound::Unbounded)).map(|(_, entry)| &entry.account)
    }

    /// Returns when the last login happened, if it was since the start of the process.
    pub(super) fn last_login_at(&self, id: &str) -> Option<Instant> {
        self.accounts.get(id)?.last_login_at
    }

    /// Inserts an account, or replaces the one with its id. A replaced account's times of login are kept, because only
    /// [`Self::record_login`] changes them.
    pub(super) fn insert(&mut self, mut account: Arc<Account>) {
        let before = self.remove(&account.id);
        if let Some(Entry { account: before, .. }) = &before
            && before.last_login != account.last_login
        {
            let account = Arc::make_mut(&mut account);
            account.first_login.clone_from(&before.first_login);
            account.last_login.clone_from(&before.last_login);
        }
        match &account.identity {
            None => {
                self.emails.insert(account.email.to_lowercase(), account.id.clone());
            }
            Some(identity) => {
                self.identities.insert(identity.clone(), account.id.clone());
            }
        }
        let (seen, last) =
            before.map_or_else(Default::default, |entry| (entry.last_login_at, entry.stored_login));
        self.accounts
            .insert(account.id.clone(), Entry { account, last_login_at: seen, stored_login: last });
    }

    pub(super) fn remove(&mut self, id: &str) -> Option<Entry> {
        let entry = self.accounts.remove(id)?;
        match &entry.account.identity {
            None => self.emails.remove(&entry.account.email.to_lowercase()),
            Some(identity) => self.identities.remove(identity),
        };
        Some(entry)
    }

    /// Records a login. Returns the updated account. If no write is queued yet, also returns the last login and the
    /// delay after which it must be written.
    #[expect(clippy::type_complexity, reason = "two results, one of them optional")]
    pub(super) fn record_login(
        &mut self,
        id: &str,
        now: Instant,
        at: &str,
    ) -> Option<(Arc<Account>, Option<(Arc<LastLogin>, Duration)>)> {
        let entry = self.accounts.get_mut(id)?;
        let account = Arc::make_mut(&mut entry.account);
        account.first_login.get_or_insert_with(|| at.to_owned());
        account.last_login = Some(at.to_owned());
        entry.last_login_at = Some(now);
        let delay = entry.stored_login.queue_write(at, now);
        Some((entry.account.clone(), delay.map(|delay| (entry.stored_login.clone(), delay))))
    }
}
