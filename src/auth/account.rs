//! One account.
use super::Role;
use serde::{Deserialize, Serialize};

/// Where an account comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Source {
    /// Made here, with a password kept here.
    BuiltIn,
    /// A person who signed in through an OpenID provider.
    OpenIdConnect,
    /// A client application that came with an access token.
    ServiceAccount,
}

/// What an account of another source is known by. Never an email.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Identity {
    /// The kind of source: a person and a client of one issuer are never the same account.
    pub source: Source,
    /// The issuer (`iss`); for a provider whose issuer is not configured, its registration id.
    pub issuer: String,
    /// The value of `user-name-attribute`; of a service account the `sub`.
    pub name: String,
}

/// What a provider says about an account at each sign-in.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Profile {
    /// The given name.
    pub given_name: Option<String>,
    /// The family name.
    pub family_name: Option<String>,
    /// The email.
    pub email: Option<String>,
    /// The organization.
    pub organization: Option<String>,
    /// The client id of a service account.
    pub client_id: Option<String>,
}

/// An account (specification, 2.5).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Account {
    /// Its identifier, a UUID of version 7.
    pub id: String,
    /// The given name.
    pub given_name: Option<String>,
    /// The family name.
    pub family_name: Option<String>,
    /// The email; of the first account `admin`; of a service account synthetic.
    pub email: String,
    /// The organization.
    pub organization: Option<String>,
    /// The role; the outside sees a list of one, `roles`.
    pub role: Role,
    /// Whether it may come in.
    pub enabled: bool,
    /// What it is known by at its source; `None` for a built-in one.
    pub identity: Option<Identity>,
    /// The client id of a service account.
    pub client_id: Option<String>,
    /// When it came in first (RFC 3339).
    pub first_login: Option<String>,
    /// When it came in last (RFC 3339).
    pub last_login: Option<String>,
    /// The Argon2id hash of a built-in account's password, as a PHC string.
    pub password: Option<String>,
}

impl Account {
    /// Where it comes from.
    pub fn source(&self) -> Source {
        self.identity.as_ref().map_or(Source::BuiltIn, |identity| identity.source)
    }

    /// Whether it is a client application's.
    pub fn is_service_account(&self) -> bool {
        self.source() == Source::ServiceAccount
    }
}
