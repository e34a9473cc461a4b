//! API keys.
use crate::role::Role;
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::json;

/// An API key, without its secret.
#[derive(Debug, Clone, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ApiKey {
    /// Its identifier.
    pub id: String,
    /// What it is for.
    pub name: String,
    /// Its role. It never exceeds its owner's current role.
    pub role: Role,
    /// The id of the account that owns it; null for the local administration.
    pub owner: Option<String>,
    /// The id of its Business Object if `businessObjects` has exactly one, otherwise null.
    pub business_object: Option<String>,
    /// The ids of its Business Objects; null for a key without this restriction. Deleted ones stay in the list.
    pub business_objects: Option<Vec<String>>,
    /// When it was created (RFC 3339, UTC).
    pub created_at: String,
    /// When it expires (RFC 3339, UTC).
    pub expires_at: Option<String>,
    /// When it was last used (RFC 3339, UTC), accurate to a few minutes.
    pub last_used: Option<String>,
}

/// The API key that was created.
#[derive(Serialize, JsonSchema)]
pub struct MadeApiKey {
    /// Its identifier.
    pub id: String,
    /// The key with its secret, which cannot be read again.
    pub key: String,
}

/// A new API key.
#[derive(JsonSchema)]
#[schemars(rename_all = "camelCase", deny_unknown_fields, example = json!({"name": "line 4", "role": "Contributor"}))]
pub struct NewApiKey {
    /// What it is for.
    #[schemars(length(min = 1, max = 200))]
    pub name: String,
    /// Its role; at most that of its creator.
    pub role: Role,
    /// When it expires (RFC 3339); never when absent.
    pub expires_at: Option<String>,
    /// The id or name of the Business Object that it is restricted to; all when neither this nor `businessObjects` is
    /// given.
    pub business_object: Option<String>,
    /// The ids or names of the Business Objects that it is restricted to, in addition to `businessObject`.
    #[schemars(length(min = 1, max = 100))]
    pub business_objects: Option<Vec<String>>,
}
