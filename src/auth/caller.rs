//! Who sent a request.
use super::{Account, Role};
use jiff::Timestamp;
use std::net::IpAddr;
use std::sync::Arc;

/// Who sent a request, and what it may do.
#[derive(Debug, Clone)]
pub struct Caller {
    /// The account; `None` for local administration over the control socket, and for the API keys that
    /// it made.
    pub account: Option<Arc<Account>>,
    /// What this request may do: the account's role, or less (an API key's).
    pub role: Role,
    /// How it showed who it is.
    pub credential: Credential,
    /// Where the request came from.
    pub from: Option<IpAddr>,
}

/// How a caller showed who it is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Credential {
    /// The control socket, which only the service's own user and root can open.
    Local,
    /// A browser's session, by the hash of its id.
    Session(String),
    /// An API key.
    ApiKey {
        /// Its id.
        id: String,
        /// The id of the one Business Object that it is for.
        business_object: Option<String>,
    },
    /// An access token.
    Bearer {
        /// When it is no longer accepted; `None` where that is later than any time.
        expires_at: Option<Timestamp>,
    },
}

impl Caller {
    /// Local administration.
    pub fn local() -> Self {
        Self { account: None, role: Role::Admin, credential: Credential::Local, from: None }
    }

    /// The id of the API key that the request was sent with.
    pub fn api_key_id(&self) -> Option<&str> {
        match &self.credential {
            Credential::ApiKey { id, .. } => Some(id),
            _ => None,
        }
    }

    /// The id that the audit trail names as who acted: that of the API key, where one was used.
    pub fn actor(&self) -> &str {
        match &self.credential {
            Credential::ApiKey { id, .. } => id,
            _ => self.id(),
        }
    }

    /// The id that records and logs name: the account's, that of an API key without one, or `local`.
    pub fn id(&self) -> &str {
        match (&self.account, &self.credential) {
            (Some(account), _) => &account.id,
            (None, Credential::ApiKey { id, .. }) => id,
            (None, _) => "local",
        }
    }
}
