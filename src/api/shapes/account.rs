//! Accounts.
use penstock_auth as auth;
use salvo::oapi::ToSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// An account.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[salvo(schema(name = "User", rename_all = "camelCase"))]
pub(crate) struct Account {
    /// Its identifier, generated at its creation.
    pub(crate) id: String,
    /// The given name.
    #[salvo(schema(required = true))]
    pub(crate) given_name: Option<String>,
    /// The family name.
    #[salvo(schema(required = true))]
    pub(crate) family_name: Option<String>,
    /// The email, or the name that it signs in with. For a service account it is derived from the subject.
    /// `null` for an API key without an account.
    #[salvo(schema(required = true))]
    pub(crate) email: Option<String>,
    /// The organization.
    #[salvo(schema(required = true))]
    pub(crate) organization: Option<String>,
    /// Its role, a list of one.
    #[salvo(schema(min_items = 1, max_items = 1))]
    pub(crate) roles: Vec<AccountRole>,
    /// Whether it may sign in.
    pub(crate) enabled: bool,
    /// Whether it belongs to a client application.
    pub(crate) service_account: bool,
    /// Where it comes from.
    pub(crate) source: Source,
    /// When it first signed in (RFC 3339, UTC).
    #[salvo(schema(required = true))]
    pub(crate) first_login: Option<String>,
    /// When it last signed in (RFC 3339, UTC), accurate to the minute.
    #[salvo(schema(required = true))]
    pub(crate) last_login: Option<String>,
    /// When it was created (RFC 3339, UTC).
    pub(crate) created_at: String,
    /// The issuer of its identity; absent for a built-in one.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[salvo(schema(required = false))]
    pub(crate) issuer: Option<String>,
    /// Its subject at the issuer; absent for a built-in one.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[salvo(schema(required = false))]
    pub(crate) subject: Option<String>,
    /// The client of a service account.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[salvo(schema(required = false))]
    pub(crate) client_id: Option<String>,
}

/// Where an account comes from.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
#[salvo(schema(name = "UserSource", rename_all = "kebab-case"))]
pub(crate) enum Source {
    BuiltIn,
    #[serde(rename = "openid-connect")]
    #[salvo(schema(rename = "openid-connect"))]
    OpenIdConnect,
    ServiceAccount,
    /// No account: an API key that was created on the command line.
    ApiKey,
}

/// The role of an account. Each includes those before it.
#[derive(Serialize, Deserialize, ToSchema)]
#[salvo(schema(name = "UserRole"))]
pub(crate) enum AccountRole {
    User,
    Contributor,
    Admin,
}

impl From<auth::Role> for AccountRole {
    fn from(role: auth::Role) -> Self {
        match role {
            auth::Role::Metrics | auth::Role::User => Self::User,
            auth::Role::Contributor => Self::Contributor,
            auth::Role::Admin => Self::Admin,
        }
    }
}

impl From<&auth::keys::Key> for Account {
    /// Represents an API key without an account.
    fn from(key: &auth::keys::Key) -> Self {
        Self {
            id: key.id.clone(),
            given_name: None,
            family_name: None,
            email: None,
            organization: None,
            roles: vec![key.role.into()],
            enabled: true,
            service_account: false,
            source: Source::ApiKey,
            first_login: None,
            last_login: key.last_used.clone(),
            created_at: key.created_at.clone(),
            issuer: None,
            subject: None,
            client_id: None,
        }
    }
}

impl From<&auth::Account> for Account {
    fn from(account: &auth::Account) -> Self {
        let account = account.clone();
        let source = match account.source() {
            auth::AccountSource::BuiltIn => Source::BuiltIn,
            auth::AccountSource::OpenIdConnect => Source::OpenIdConnect,
            auth::AccountSource::ServiceAccount => Source::ServiceAccount,
        };
        let role = account.role.into();
        let service_account = account.is_service_account();
        let (issuer, subject) =
            account.identity.map(|identity| (identity.issuer, identity.name)).unzip();
        Self {
            id: account.id,
            given_name: account.given_name,
            family_name: account.family_name,
            email: Some(account.email),
            organization: account.organization,
            roles: vec![role],
            enabled: account.enabled,
            service_account,
            source,
            first_login: account.first_login,
            last_login: account.last_login,
            created_at: account.created_at,
            issuer,
            subject,
            client_id: account.client_id,
        }
    }
}

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

/// A page of accounts.
#[derive(ToSchema)]
#[salvo(schema(name = "Users"))]
pub(crate) struct Accounts {
    /// Ordered by id.
    pub(crate) items: Vec<Account>,
    /// The `cursor` of the next page, or null.
    #[salvo(schema(required = true))]
    pub(crate) next: Option<String>,
}
