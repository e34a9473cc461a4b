//! One account.
use super::Role;
use super::password::Hash;
use serde::{Deserialize, Serialize};

/// Where an account comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Source {
    /// Made here, with a password kept here.
    BuiltIn,
    /// A person who signed in through an OpenID provider.
    #[serde(rename = "openid-connect")]
    OpenIdConnect,
    /// A client application that came with an access token.
    ServiceAccount,
}

impl Source {
    /// Its name on the wire.
    pub fn name(self) -> &'static str {
        match self {
            Self::BuiltIn => "built-in",
            Self::OpenIdConnect => "openid-connect",
            Self::ServiceAccount => "service-account",
        }
    }
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

/// What a provider says about an account at each sign-in. What it does not say stays as it was.
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
    /// When it came in last (RFC 3339), to the minute.
    pub last_login: Option<String>,
    /// The hash of a built-in account's password.
    pub password: Option<Hash>,
    /// Whether the password is still the one in `<data-dir>/initial-admin-password`.
    #[serde(default)]
    pub initial_password: bool,
    /// 1 when it was made, one more with each change but that of the last login.
    pub version: u64,
    /// One more with each change that ends its sessions: another password, disabled.
    #[serde(default)]
    pub generation: u64,
    /// When it was made (RFC 3339).
    pub created_at: String,
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

    /// Whether it is what its provider says. What the provider does not say does not count.
    pub(super) fn is_as(&self, profile: &Profile, role: Role) -> bool {
        let same = |said: &Option<String>, known: &Option<String>| said.is_none() || said == known;
        same(&profile.given_name, &self.given_name)
            && same(&profile.family_name, &self.family_name)
            && same(&profile.organization, &self.organization)
            && same(&profile.client_id, &self.client_id)
            && profile.email.as_ref().is_none_or(|email| *email == self.email)
            && role == self.role
    }

    /// Brings it up to date with what its provider says.
    pub(super) fn update(&mut self, profile: &Profile, role: Role) {
        let said = |said: &Option<String>, known: &mut Option<String>| {
            if said.is_some() {
                known.clone_from(said);
            }
        };
        said(&profile.given_name, &mut self.given_name);
        said(&profile.family_name, &mut self.family_name);
        said(&profile.organization, &mut self.organization);
        said(&profile.client_id, &mut self.client_id);
        if let Some(email) = &profile.email {
            self.email.clone_from(email);
        }
        self.role = role;
    }
}
