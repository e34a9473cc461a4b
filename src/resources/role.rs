//! The roles of accounts and credentials.
use crate::names::wire_names;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};
use std::borrow::Cow;

/// A role, in ascending order: each includes the rights of those before it.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
#[schemars(
    rename = "ApiKeyRole",
    description = "The role of an API key. `Metrics` allows only `/metrics`. Each of the others includes those before it."
)]
pub enum Role {
    /// Can only read `/metrics`. Only for API keys of monitoring, never for an account.
    Metrics,
    /// Can read.
    User,
    /// Can ingest, push and edit namespaces.
    Contributor,
    /// Can do everything.
    Admin,
}

wire_names!(Role { Metrics: "Metrics", User: "User", Contributor: "Contributor", Admin: "Admin" });

impl Role {
    /// Returns the role with this name, ignoring case.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|role| role.name().eq_ignore_ascii_case(name))
    }
}

/// The schema of an account's role: every [`Role`] except `Metrics`.
#[derive(Debug, Clone, Copy)]
pub struct AccountRole;

impl JsonSchema for AccountRole {
    fn schema_name() -> Cow<'static, str> {
        "UserRole".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        let roles = Role::ALL.into_iter().filter(|role| *role != Role::Metrics);
        json_schema!({
            "description": "The role of an account. Each includes those before it.",
            "type": "string",
            "enum": roles.map(Role::name).collect::<Vec<_>>(),
        })
    }
}
