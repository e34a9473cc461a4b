//! The bodies of requests. They only describe: the layers below read the bodies, and report every error with its place.
#![expect(dead_code, reason = "the fields are there to be described")]
use super::account::AccountRole;
use super::api_key::Role;
use super::namespace::Generator;
use salvo::oapi::ToSchema;
use serde::Deserialize;
use serde_json::Value;

/// A new built-in account.
#[derive(Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[salvo(schema(name = "NewUser", example = json!({
    "email": "operator@plant.example", "password": "correct horse battery staple", "roles": ["Contributor"],
})))]
pub(crate) struct NewAccount {
    /// The given name.
    #[salvo(schema(required = false, max_length = 254))]
    pub(crate) given_name: Option<String>,
    /// The family name.
    #[salvo(schema(required = false, max_length = 254))]
    pub(crate) family_name: Option<String>,
    /// The organization.
    #[salvo(schema(required = false, max_length = 254))]
    pub(crate) organization: Option<String>,
    /// Whether it may sign in; true when absent.
    #[salvo(schema(required = false))]
    pub(crate) enabled: Option<bool>,
    /// The name to sign in with, unique among the built-in accounts. It need not be an email.
    #[salvo(schema(min_length = 1, max_length = 254))]
    pub(crate) email: String,
    /// Its role, a list of one.
    #[salvo(schema(min_items = 1, max_items = 1))]
    pub(crate) roles: Vec<AccountRole>,
    /// The password.
    #[salvo(schema(min_length = 12, max_length = 1024))]
    pub(crate) password: String,
}

/// The new values of an account.
#[derive(Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[salvo(schema(name = "UserChange", example = json!({
    "givenName": "Ada", "familyName": "Byron", "roles": ["User"], "enabled": true,
})))]
pub(crate) struct AccountChange {
    /// The given name; removed when absent.
    #[salvo(schema(required = false, max_length = 254))]
    pub(crate) given_name: Option<String>,
    /// The family name; removed when absent.
    #[salvo(schema(required = false, max_length = 254))]
    pub(crate) family_name: Option<String>,
    /// The organization; removed when absent.
    #[salvo(schema(required = false, max_length = 254))]
    pub(crate) organization: Option<String>,
    /// The name to sign in with; unchanged when absent.
    #[salvo(schema(required = false, min_length = 1, max_length = 254))]
    pub(crate) email: Option<String>,
    /// Its role, a list of one; unchanged when absent.
    #[salvo(schema(required = false, min_items = 1, max_items = 1))]
    pub(crate) roles: Option<Vec<AccountRole>>,
    /// Whether it may sign in; unchanged when absent.
    #[salvo(schema(required = false))]
    pub(crate) enabled: Option<bool>,
    /// Accepted and ignored, like the eight fields that follow, so that a response can be sent back.
    #[salvo(schema(required = false))]
    pub(crate) id: Value,
    /// Like `id`.
    #[salvo(schema(required = false))]
    pub(crate) service_account: Value,
    /// Like `id`.
    #[salvo(schema(required = false))]
    pub(crate) source: Value,
    /// Like `id`.
    #[salvo(schema(required = false))]
    pub(crate) first_login: Value,
    /// Like `id`.
    #[salvo(schema(required = false))]
    pub(crate) last_login: Value,
    /// Like `id`.
    #[salvo(schema(required = false))]
    pub(crate) created_at: Value,
    /// Like `id`.
    #[salvo(schema(required = false))]
    pub(crate) issuer: Value,
    /// Like `id`.
    #[salvo(schema(required = false))]
    pub(crate) subject: Value,
    /// Like `id`.
    #[salvo(schema(required = false))]
    pub(crate) client_id: Value,
}

/// A new password.
#[derive(Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[salvo(schema(name = "NewPassword"))]
pub(crate) struct NewPassword {
    /// The current password, required for the caller's own account.
    #[salvo(schema(required = false))]
    pub(crate) current_password: Option<String>,
    /// The new password.
    #[salvo(schema(min_length = 12, max_length = 1024))]
    pub(crate) password: String,
}

/// A new API key.
#[derive(Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[salvo(schema(name = "NewApiKey", example = json!({"name": "line 4", "role": "Contributor"})))]
pub(crate) struct NewApiKey {
    /// What it is for.
    #[salvo(schema(min_length = 1, max_length = 200))]
    pub(crate) name: String,
    /// Its role; at most that of its creator.
    pub(crate) role: Role,
    /// When it expires (RFC 3339); never when absent.
    #[salvo(schema(required = false))]
    pub(crate) expires_at: Option<String>,
    /// The id or name of the Business Object that it is restricted to; all when absent.
    #[salvo(schema(required = false))]
    pub(crate) business_object: Option<String>,
}

/// The definition of a namespace.
#[derive(Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[salvo(schema(name = "NamespaceDefinition", example = json!({"generator": "counter"})))]
pub(crate) struct NamespaceDefinition {
    /// Its name, which must be that of the path.
    #[salvo(schema(required = false))]
    pub(crate) name: Option<String>,
    /// The prefix of every identifier; the default base when absent.
    #[salvo(schema(required = false))]
    pub(crate) uri_base: Option<String>,
    /// How the local part is generated; `uuid` when absent.
    #[salvo(schema(required = false))]
    pub(crate) generator: Option<Generator>,
    /// Accepted and ignored, so that a response can be sent back.
    #[salvo(schema(required = false))]
    pub(crate) created_at: Value,
    /// Like `createdAt`.
    #[salvo(schema(required = false))]
    pub(crate) warnings: Value,
}
