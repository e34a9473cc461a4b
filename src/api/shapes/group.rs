//! Groups of accounts.
use penstock_service::groups::{GroupDetails, VisibleGroup};
use salvo_oapi::ToSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// A group of accounts. Only Admins see more than its name.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[salvo(schema(name = "Group", rename_all = "camelCase"))]
pub(crate) struct Group {
    /// Its name.
    pub(crate) name: String,
    /// The ids of the accounts that it lists.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[salvo(schema(required = false, nullable = false))]
    pub(crate) members: Option<Vec<String>>,
    /// The values of the group claim whose accounts are members.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[salvo(schema(required = false, nullable = false))]
    pub(crate) claim_values: Option<Vec<String>>,
    /// 1 at its creation, incremented by each change; in quotes it is the `ETag`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[salvo(schema(required = false, nullable = false))]
    pub(crate) version: Option<u64>,
    /// When it was created (RFC 3339, UTC).
    #[serde(skip_serializing_if = "Option::is_none")]
    #[salvo(schema(required = false, nullable = false))]
    pub(crate) created_at: Option<String>,
    /// When it was last changed (RFC 3339, UTC).
    #[serde(skip_serializing_if = "Option::is_none")]
    #[salvo(schema(required = false, nullable = false))]
    pub(crate) updated_at: Option<String>,
    /// Who changed it last: an account's id, or `local`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[salvo(schema(required = false, nullable = false))]
    pub(crate) updated_by: Option<String>,
}

/// A page of groups.
#[derive(Serialize, ToSchema)]
#[salvo(schema(name = "Groups"))]
pub(crate) struct Groups {
    /// Ordered by name.
    pub(crate) items: Vec<Group>,
    /// The `cursor` of the next page, or null.
    #[salvo(schema(required = true))]
    pub(crate) next: Option<String>,
}

/// The body that defines a group. The members of an answer may be sent back.
#[derive(Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[salvo(schema(name = "NewGroup", rename_all = "camelCase"))]
#[expect(dead_code, reason = "only describes the body")]
pub(crate) struct NewGroup {
    /// The ids or emails of its accounts.
    #[serde(default)]
    pub(crate) members: Vec<String>,
    /// The values of the claim `service.security.claims.groups` whose accounts are members.
    #[serde(default)]
    pub(crate) claim_values: Vec<String>,
    /// Its name, which must be that of the path.
    #[salvo(schema(required = false))]
    pub(crate) name: Option<String>,
    /// Accepted and ignored, like the three fields that follow, so that a response can be sent back.
    #[salvo(schema(required = false))]
    pub(crate) version: Value,
    /// Like `version`.
    #[salvo(schema(required = false))]
    pub(crate) created_at: Value,
    /// Like `version`.
    #[salvo(schema(required = false))]
    pub(crate) updated_at: Value,
    /// Like `version`.
    #[salvo(schema(required = false))]
    pub(crate) updated_by: Value,
}

impl From<VisibleGroup> for Group {
    fn from(VisibleGroup { name, details }: VisibleGroup) -> Self {
        let Some(GroupDetails { members, group }) = details else {
            return Self {
                name,
                members: None,
                claim_values: None,
                version: None,
                created_at: None,
                updated_at: None,
                updated_by: None,
            };
        };
        Self {
            name,
            members: Some(members),
            claim_values: Some(group.claim_values.clone()),
            version: Some(group.version),
            created_at: Some(group.created_at.clone()),
            updated_at: Some(group.updated_at.clone()),
            updated_by: Some(group.updated_by.clone()),
        }
    }
}
