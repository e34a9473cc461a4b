//! The audit trail.
use schemars::JsonSchema;
use serde::Serialize;

/// An event of the audit trail.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct AuditEvent {
    /// Its number.
    pub id: String,
    /// When it happened (RFC 3339, UTC).
    pub at: String,
    /// The kind of event: `sign-in`, `sign-in.refused`, `request.refused`, `account.created`, `role.changed`,
    /// ...
    pub what: String,
    /// The id of the account that was changed, or that signed in.
    pub account: Option<String>,
    /// Who caused it (an account's id, an API key's, or `local`), if it was not the account itself.
    pub by: Option<String>,
    /// The address that the request came from.
    pub from: Option<String>,
    /// The reason or the change, in words.
    pub detail: String,
    /// How many times it happened.
    pub count: u64,
}
