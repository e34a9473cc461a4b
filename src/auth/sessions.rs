//! The sessions of browsers.
use super::{Account, Caller, Refusal};
use std::sync::Arc;

/// The sessions. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Sessions {}

/// A session that has just begun.
#[derive(Debug)]
pub struct Started {
    /// The random id, 256 bits in base64url: the cookie's value, kept nowhere else.
    pub id: String,
    /// The token that an unsafe request of a page without script carries (CSRF).
    pub csrf: String,
}

impl Sessions {
    /// Begins a session. `id_token` is kept for a sign-out at the provider.
    pub fn start(&self, account: &Account, id_token: Option<&str>) -> Result<Started, Refusal> {
        let _ = (account, id_token);
        todo!("accounts")
    }

    /// Who has the session with this id.
    pub fn caller(&self, id: &str) -> Result<Caller, Refusal> {
        let _ = id;
        todo!("accounts")
    }

    /// Ends it; gives the `id_token` it was begun with.
    pub fn end(&self, id: &str) -> Option<Arc<str>> {
        let _ = id;
        todo!("accounts")
    }

    /// Whether this is the CSRF token of the session with this id.
    pub fn is_csrf(id: &str, token: &str) -> bool {
        let _ = (id, token);
        todo!("accounts")
    }
}
