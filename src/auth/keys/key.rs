//! An API key, and how it is shown.
use penstock_resources::account::AccountSource;
use penstock_resources::role::Role;
use penstock_resources::{account, api_key};
use std::sync::Arc;

/// An API key without its secret.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Key {
    /// Its identifier, a UUID of version 7.
    pub id: String,
    /// The name, which says what the key is for.
    pub name: String,
    /// The role, which the owner's role limits.
    pub role: Role,
    /// The id of the owner's account; `None` for local administration.
    pub owner: Option<String>,
    /// The ids of the only Business Objects that it can be used for, at least one; `None` for all. A Business Object
    /// that was deleted stays among them, so that no deletion extends a key.
    pub business_objects: Option<Arc<[String]>>,
    /// The time of creation (RFC 3339, UTC).
    pub created_at: String,
    /// The time of expiry (RFC 3339, UTC).
    pub expires_at: Option<String>,
    /// The time of the last use (RFC 3339, UTC), to some minutes.
    pub last_used: Option<String>,
    /// The SHA-256 of the key, in hexadecimal.
    pub digest: String,
}

impl From<&Key> for api_key::ApiKey {
    fn from(key: &Key) -> Self {
        let key = key.clone();
        let all = key.business_objects.as_deref();
        Self {
            id: key.id,
            name: key.name,
            role: key.role,
            owner: key.owner,
            business_object: match all {
                Some([only]) => Some(only.clone()),
                _ => None,
            },
            business_objects: all.map(<[String]>::to_vec),
            created_at: key.created_at,
            expires_at: key.expires_at,
            last_used: key.last_used,
        }
    }
}

impl From<&Key> for account::Account {
    /// Represents an API key without an account.
    fn from(key: &Key) -> Self {
        Self {
            id: key.id.clone(),
            given_name: None,
            family_name: None,
            email: None,
            organization: None,
            roles: vec![key.role],
            enabled: true,
            service_account: false,
            source: AccountSource::ApiKey,
            first_login: None,
            last_login: key.last_used.clone(),
            created_at: key.created_at.clone(),
            issuer: None,
            subject: None,
            client_id: None,
        }
    }
}
