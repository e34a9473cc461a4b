//! Accounts.
use penstock_auth as auth;
use salvo_oapi::ToSchema;
use serde::{Deserialize, Serialize};

/// An account.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[salvo(schema(name = "User", rename_all = "camelCase"))]
pub struct Account {
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

/// A page of accounts.
#[derive(Serialize, ToSchema)]
#[salvo(schema(name = "Users"))]
pub(crate) struct Accounts {
    /// Ordered by id.
    pub(crate) items: Vec<Account>,
    /// The `cursor` of the next page, or null.
    #[salvo(schema(required = true))]
    pub(crate) next: Option<String>,
}
