//! Who may come in: accounts, sessions, API keys, OpenID Connect, bearer tokens, and the audit trail.
//!
//! | file | what |
//! |---|---|
//! | `role`, `caller`, `refusal` | what a request may do, who sent it, and why it may not |
//! | `account`, `accounts` | the records, and where they are kept |
//! | `password`, `attempts` | Argon2id, and the delays after failures |
//! | `sessions`, `keys` | the credentials that the gateway gives out itself |
//! | `audit` | what happened to all of them |
//! | `oidc` | sign-in by the authorization code flow |
//! | `tokens` | bearer tokens of an authorization server, and the service accounts they make |

pub mod account;
pub mod accounts;
pub mod audit;
pub mod caller;
mod fetch;
pub mod keys;
pub mod mapping;
pub mod oidc;
pub mod refusal;
pub mod role;
pub mod sessions;
pub mod tokens;

pub use account::{Account, Identity, Profile, Source};
pub use caller::{Caller, Credential};
pub use refusal::Refusal;
pub use role::Role;

use crate::clock::Clock;
use crate::config::Settings;
use crate::fault::Fault;
use accounts::Accounts;
use audit::Audit;
use keys::Keys;
use oidc::Oidc;
use penstock_store::Store;
use sessions::Sessions;
use std::sync::Arc;
use tokens::Tokens;

/// Everything that knows who may come in. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Auth {
    /// The accounts.
    pub accounts: Accounts,
    /// The sessions of browsers.
    pub sessions: Sessions,
    /// The API keys.
    pub keys: Keys,
    /// The audit trail.
    pub audit: Audit,
    /// Access tokens of machines; `None` without `issuer-uri`.
    pub tokens: Option<Tokens>,
    /// Sign-in at an OpenID provider; `None` when the accounts are built in.
    pub oidc: Option<Oidc>,
}

impl Auth {
    /// Opens what is kept in the store. In the built-in mode a store without an account gets `admin`,
    /// whose random password stands in `<data-dir>/initial-admin-password`. Blocks.
    pub fn open(store: &Store, settings: &Arc<Settings>, clock: &Clock) -> Result<Self, Fault> {
        let _ = store;
        let accounts = Accounts {};
        let tokens = Tokens::open(settings, &accounts, clock)?;
        let oidc = Oidc::open(&settings.security, clock)?;
        Ok(Self { accounts, sessions: Sessions {}, keys: Keys {}, audit: Audit {}, tokens, oidc })
    }
}
