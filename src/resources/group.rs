//! Groups of accounts.
use crate::body::{accept_answer, refuse_null};
use schemars::JsonSchema;
use serde::Serialize;

/// A group of accounts. Only Admins see more than its name.
#[derive(Debug, Clone, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Group {
    /// Its name.
    pub name: String,
    /// The ids of the accounts that it lists.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub members: Option<Vec<String>>,
    /// The values of the group claim whose accounts are members.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub claim_values: Option<Vec<String>>,
    /// A number that each change raises by 1 or more; in quotes it is the `ETag`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub version: Option<u64>,
    /// When it was created (RFC 3339, UTC).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub created_at: Option<String>,
    /// When it was last changed (RFC 3339, UTC).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub updated_at: Option<String>,
    /// Who changed it last: an account's id, or `local`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub updated_by: Option<String>,
}

/// The body that defines a group. The members of an answer may be sent back.
#[derive(JsonSchema)]
#[schemars(rename_all = "camelCase", deny_unknown_fields, transform = refuse_null, transform = accept_answer::<Group>)]
pub struct NewGroup {
    /// The ids or emails of its accounts.
    pub members: Option<Vec<String>>,
    /// The values of the claim `service.security.claims.groups` whose accounts are members.
    pub claim_values: Option<Vec<String>>,
    /// Its name, which must be that of the path.
    pub name: Option<String>,
}
