//! API keys, and the audit trail.
use penstock_auth::{self as auth, audit, keys};
use salvo_oapi::ToSchema;
use serde::{Deserialize, Serialize};

/// An API key, without its secret.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[salvo(schema(name = "ApiKey", rename_all = "camelCase"))]
pub struct ApiKey {
    /// Its identifier.
    pub(crate) id: String,
    /// What it is for.
    pub(crate) name: String,
    /// Its role. It never exceeds its owner's current role.
    pub(crate) role: Role,
    /// The id of the account that owns it; null for the local administration.
    #[salvo(schema(required = true))]
    pub(crate) owner: Option<String>,
    /// The id of its Business Object if `businessObjects` has exactly one, otherwise null.
    #[salvo(schema(required = true))]
    pub(crate) business_object: Option<String>,
    /// The ids of its Business Objects; null for a key without this restriction. Deleted ones stay in the list.
    #[salvo(schema(required = true))]
    pub(crate) business_objects: Option<Vec<String>>,
    /// When it was created (RFC 3339, UTC).
    pub(crate) created_at: String,
    /// When it expires (RFC 3339, UTC).
    #[salvo(schema(required = true))]
    pub(crate) expires_at: Option<String>,
    /// When it was last used (RFC 3339, UTC), accurate to a few minutes.
    #[salvo(schema(required = true))]
    pub(crate) last_used: Option<String>,
}

/// The role of an API key. `Metrics` allows only `/metrics`. Each of the others includes those before it.
#[derive(Serialize, Deserialize, ToSchema)]
#[salvo(schema(name = "ApiKeyRole"))]
pub(crate) enum Role {
    Metrics,
    User,
    Contributor,
    Admin,
}

impl From<auth::Role> for Role {
    fn from(role: auth::Role) -> Self {
        match role {
            auth::Role::Metrics => Self::Metrics,
            auth::Role::User => Self::User,
            auth::Role::Contributor => Self::Contributor,
            auth::Role::Admin => Self::Admin,
        }
    }
}

impl From<&keys::Key> for ApiKey {
    fn from(key: &keys::Key) -> Self {
        let key = key.clone();
        let all = key.business_objects.as_deref();
        Self {
            id: key.id,
            name: key.name,
            role: key.role.into(),
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

/// The API key that was created.
#[derive(Serialize, ToSchema)]
#[salvo(schema(name = "MadeApiKey"))]
pub struct MadeApiKey {
    /// Its identifier.
    pub id: String,
    /// The key with its secret, which cannot be read again.
    pub key: String,
}

/// A page of API keys.
#[derive(Serialize, ToSchema)]
#[salvo(schema(name = "ApiKeys"))]
pub(crate) struct ApiKeys {
    /// Ordered by id.
    pub(crate) items: Vec<ApiKey>,
    /// The `cursor` of the next page, or null.
    #[salvo(schema(required = true))]
    pub(crate) next: Option<String>,
}

/// An event of the audit trail.
#[derive(Serialize, ToSchema)]
#[salvo(schema(name = "AuditEvent"))]
pub(crate) struct AuditEvent {
    /// Its number.
    pub(crate) id: String,
    /// When it happened (RFC 3339, UTC).
    pub(crate) at: String,
    /// The kind of event: `sign-in`, `sign-in.refused`, `request.refused`, `account.created`, `role.changed`,
    /// ...
    pub(crate) what: String,
    /// The id of the account that was changed, or that signed in.
    #[salvo(schema(required = true))]
    pub(crate) account: Option<String>,
    /// Who caused it (an account's id, an API key's, or `local`), if it was not the account itself.
    #[salvo(schema(required = true))]
    pub(crate) by: Option<String>,
    /// The address that the request came from.
    #[salvo(schema(required = true))]
    pub(crate) from: Option<String>,
    /// The reason or the change, in words.
    pub(crate) detail: String,
    /// How many times it happened.
    pub(crate) count: u64,
}

impl From<audit::Record> for AuditEvent {
    fn from(record: audit::Record) -> Self {
        Self {
            id: record.id.to_string(),
            at: record.at,
            what: record.what,
            account: record.account,
            by: record.by,
            from: record.from.map(|from| from.to_string()),
            detail: record.detail,
            count: record.count,
        }
    }
}

/// A page of the audit trail.
#[derive(Serialize, ToSchema)]
#[salvo(schema(name = "AuditEvents"))]
pub(crate) struct AuditEvents {
    /// Newest first.
    pub(crate) items: Vec<AuditEvent>,
    /// The `cursor` of the next page, or null.
    #[salvo(schema(required = true))]
    pub(crate) next: Option<String>,
}
