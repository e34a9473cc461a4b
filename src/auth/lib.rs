//! Authentication and authorization: accounts, sessions, API keys, OpenID Connect, bearer tokens, and the audit trail.
//!
//! - `caller`, `auth_error`: who sent a request and with which role, and why it is refused
//! - `guard`: the check of a caller before, and inside, each commit on its behalf
//! - `account`, `accounts`: the account records and their storage
//! - `groups`: groups of accounts
//! - `password`, `attempts`: Argon2id, and the delays after failures
//! - `deferred_writes`: small writes that are committed within a second: last uses, sessions, sign-ins
//! - `sessions`, `keys`: the credentials that the gateway issues
//! - `audit`: the audit trail of accounts, credentials and definitions
//! - `oidc`: sign-in at an OpenID provider
//! - `discovery`, `fetch`: the cached metadata and keys of identity providers; fetching their documents
//! - `line_limit`: the lines that clients without credentials cause in the log
//! - `mapping`: claims as account fields and roles
//! - `roca`: detection of RSA keys of providers that can be factored
//! - `sources`: the service accounts of sources
//! - `tokens`: bearer tokens of an authorization server, and their service accounts

pub mod account;
pub mod accounts;
mod attempts;
pub mod audit;
pub mod auth_error;
pub mod caller;
mod deferred_writes;
mod discovery;
pub mod fetch;
#[cfg(test)]
mod fixture;
pub mod groups;
mod guard;
pub mod keys;
mod line_limit;
pub mod mapping;
pub mod oidc;
pub mod password;
mod roca;
pub mod sessions;
mod sources;
pub mod tokens;

pub use account::{Account, Identity, Profile};
pub use auth_error::AuthError;
pub use caller::{Caller, Credential, Requester};
pub use guard::Authorized;
pub use penstock_resources::account::AccountSource;
pub use penstock_resources::role::Role;

use accounts::Accounts;
use audit::Audit;
use deferred_writes::DeferredWrites;
use groups::Groups;
use keys::ApiKeys;
use oidc::Oidc;
use password::Hash;
use penstock_base::IfMatch;
use penstock_base::clock::Clock;
use penstock_base::commit::CommitPart;
use penstock_base::error::{ErrorClass, GatewayError};
use penstock_config::Settings;
use penstock_store::{Store, Transaction};
use sessions::Sessions;
use std::sync::Arc;
use tokens::Tokens;

/// The authentication and authorization state of the gateway. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Auth {
    /// The accounts.
    pub accounts: Accounts,
    /// The sessions of browsers.
    pub sessions: Sessions,
    /// The API keys.
    pub keys: ApiKeys,
    /// The groups of accounts.
    pub groups: Groups,
    /// The audit trail.
    pub audit: Audit,
    deferred_writes: DeferredWrites,
    /// Access tokens of client applications; `None` without `issuer-uri`.
    pub tokens: Option<Tokens>,
    /// Sign-in at an OpenID provider; `None` in the built-in mode.
    pub oidc: Option<Oidc>,
}

impl Auth {
    /// Loads accounts, sessions and keys from the store. In the built-in mode, a store without an account gets the
    /// account `admin`. Its random password is in `<data-dir>/initial-admin-password`. Blocking.
    pub fn open(
        store: &Store,
        settings: &Arc<Settings>,
        clock: &Clock,
    ) -> Result<Self, GatewayError> {
        let security = &settings.security;
        let later = DeferredWrites::start(store.clone()).map_err(|error| {
            GatewayError::new(
                ErrorClass::Internal,
                format!("starting the thread for deferred writes failed: {error}"),
            )
        })?;
        let audit = Audit::open(store.clone(), later.clone(), settings.limits.audit);
        let people = if security.oidc.is_some() {
            AccountSource::OpenIdConnect
        } else {
            AccountSource::BuiltIn
        };
        let dir = settings.data_dir.clone();
        let accounts = Accounts::open(store, &later, &audit, people, dir)?;
        let parts = (&accounts, &audit, &later);
        let sessions = Sessions::open(store, parts, security, &settings.data_dir)?;
        let keys = ApiKeys::open(store, parts, clock)?;
        let groups = Groups::open(store, &accounts, &audit)?;
        let tokens = Tokens::open(settings, &accounts, clock)?;
        let oidc = Oidc::open(security, clock)?;
        Ok(Self { accounts, sessions, keys, groups, audit, deferred_writes: later, tokens, oidc })
    }

    /// Sets the password of a built-in account, which ends its sessions, except the one that the caller sent. Blocking.
    ///
    /// # Errors
    /// As [`Accounts::set_password`].
    pub fn set_password(
        &self,
        by: &dyn Requester,
        id: &str,
        hash: Hash,
    ) -> Result<(), GatewayError> {
        let account = self.accounts.set_password(by, id, hash)?;
        if let Credential::Session(session) = &by.caller().credential {
            self.sessions.renew_generation(session, &account);
        }
        Ok(())
    }

    /// Deletes an account, its sessions and its API keys. `also` deletes in the same commit what else belongs to it.
    ///
    /// # Errors
    /// As for [`Accounts`]: `ErrorClass::NotFound`; `ErrorClass::PreconditionFailed`; `ErrorClass::Conflict` for the
    /// last Admin.
    pub fn delete_account(
        &self,
        by: &dyn Requester,
        id: &str,
        if_match: IfMatch,
        also: CommitPart<'_>,
    ) -> Result<(), GatewayError> {
        let account = self.accounts.require_account(id)?;
        self.keys.revoke_all_of(&account, |revoke| {
            self.accounts.delete(by, &account.id, if_match, &|transaction| {
                revoke(transaction)?;
                also(transaction)
            })
        })
    }

    /// Returns the current role of a caller, for work that outlasts its request. Returns `None` when its session has
    /// ended, its key or token is revoked or expired, or its account is disabled or deleted. Never blocks.
    pub fn current_role(&self, caller: &Caller) -> Option<Role> {
        match (&caller.credential, &caller.account) {
            (Credential::Local, _) => Some(Role::Admin),
            (Credential::Session(hash), _) => self.sessions.current_role(hash),
            (Credential::ApiKey { id, .. }, _) => self.keys.current_role(id),
            (Credential::Bearer { .. } | Credential::Source { .. }, account) => {
                let account = self.accounts.get(&account.as_ref()?.id)?;
                let lasts = self.is_current(caller);
                (account.enabled && lasts).then(|| account.role.min(caller.role))
            }
        }
    }

    /// Returns whether the access token of the caller, if it has one, is still accepted.
    fn is_current(&self, caller: &Caller) -> bool {
        match caller.credential {
            Credential::Bearer { expires_at } => expires_at.is_none_or(|at| self.keys.now() < at),
            _ => true,
        }
    }

    /// Returns the role of an account or API key as this transaction sees it; `None` if it is disabled, revoked, or
    /// does not exist. `id` is that of an account, of an API key without one, or `local`.
    ///
    /// # Errors
    /// The errors of the store.
    pub fn role_in(
        &self,
        transaction: &Transaction<'_>,
        id: &str,
    ) -> Result<Option<Role>, GatewayError> {
        if id == "local" {
            return Ok(Some(Role::Admin));
        }
        if let Some(account) = accounts::ACCOUNTS.get(transaction, id)? {
            return Ok(account.enabled.then_some(account.role));
        }
        self.keys.current_role_in(transaction, id)
    }

    /// Commits all deferred writes. Blocking.
    pub fn flush_deferred(&self) {
        self.deferred_writes.flush_all();
    }
}
