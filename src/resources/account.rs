//! Accounts.
use crate::body::accept_answer;
use crate::names::wire_names;
use crate::role::{AccountRole, Role};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;

/// An account.
#[derive(Debug, Clone, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(rename = "User")]
pub struct Account {
    /// Its identifier, generated at its creation.
    pub id: String,
    /// The given name.
    pub given_name: Option<String>,
    /// The family name.
    pub family_name: Option<String>,
    /// The email, or the name that it signs in with. For a service account it is derived from the subject.
    /// `null` for an API key without an account.
    pub email: Option<String>,
    /// The organization.
    pub organization: Option<String>,
    /// Its role, a list of one.
    #[schemars(with = "Vec<AccountRole>", length(min = 1, max = 1))]
    pub roles: Vec<Role>,
    /// Whether it may sign in.
    pub enabled: bool,
    /// Whether it belongs to a client application.
    pub service_account: bool,
    /// Where it comes from.
    pub source: AccountSource,
    /// When it first signed in (RFC 3339, UTC).
    pub first_login: Option<String>,
    /// When it last signed in (RFC 3339, UTC), accurate to the minute.
    pub last_login: Option<String>,
    /// When it was created (RFC 3339, UTC).
    pub created_at: String,
    /// The issuer of its identity; absent for a built-in one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub issuer: Option<String>,
    /// Its subject at the issuer; absent for a built-in one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub subject: Option<String>,
    /// The client of a service account.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub client_id: Option<String>,
}

/// Where an account comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
#[schemars(rename = "UserSource")]
pub enum AccountSource {
    /// Created in the gateway, which stores the hash of its password.
    BuiltIn,
    /// A person who signed in through an OpenID provider.
    #[serde(rename = "openid-connect")]
    OpenIdConnect,
    /// A client application that authenticates with an access token.
    ServiceAccount,
    /// No account: an API key that was created on the command line.
    ApiKey,
}

wire_names!(AccountSource {
    BuiltIn: "built-in",
    OpenIdConnect: "openid-connect",
    ServiceAccount: "service-account",
    ApiKey: "api-key",
});

/// A new built-in account.
#[derive(JsonSchema)]
#[schemars(rename_all = "camelCase", deny_unknown_fields, rename = "NewUser", transform = accept_answer::<Account>, example = json!({
    "email": "operator@plant.example", "password": "correct horse battery staple", "roles": ["Contributor"],
}))]
pub struct NewAccount {
    /// The given name.
    #[schemars(length(max = 254))]
    pub given_name: Option<String>,
    /// The family name.
    #[schemars(length(max = 254))]
    pub family_name: Option<String>,
    /// The organization.
    #[schemars(length(max = 254))]
    pub organization: Option<String>,
    /// Whether it may sign in; true when absent.
    pub enabled: Option<bool>,
    /// The name to sign in with, unique among the built-in accounts. It need not be an email.
    #[schemars(length(min = 1, max = 254))]
    pub email: String,
    /// Its role, a list of one.
    #[schemars(length(min = 1, max = 1))]
    pub roles: Vec<AccountRole>,
    /// The password.
    #[schemars(length(min = 12, max = 1024))]
    pub password: String,
}

/// The new values of an account.
#[derive(JsonSchema)]
#[schemars(rename_all = "camelCase", deny_unknown_fields, rename = "UserChange", transform = accept_answer::<Account>, example = json!({
    "givenName": "Ada", "familyName": "Byron", "roles": ["User"], "enabled": true,
}))]
pub struct AccountChange {
    /// The given name; removed when absent.
    #[schemars(length(max = 254))]
    pub given_name: Option<String>,
    /// The family name; removed when absent.
    #[schemars(length(max = 254))]
    pub family_name: Option<String>,
    /// The organization; removed when absent.
    #[schemars(length(max = 254))]
    pub organization: Option<String>,
    /// The name to sign in with; unchanged when absent.
    #[schemars(length(min = 1, max = 254))]
    pub email: Option<String>,
    /// Its role, a list of one; unchanged when absent.
    #[schemars(length(min = 1, max = 1))]
    pub roles: Option<Vec<AccountRole>>,
    /// Whether it may sign in; unchanged when absent.
    pub enabled: Option<bool>,
}

/// A new password.
#[derive(JsonSchema)]
#[schemars(rename_all = "camelCase", deny_unknown_fields)]
pub struct NewPassword {
    /// The current password, required for the caller's own account.
    pub current_password: Option<String>,
    /// The new password.
    #[schemars(length(min = 12, max = 1024))]
    pub password: String,
}
