//! The record of an account.
use super::password::Hash;
use penstock_resources::account::{self, AccountSource};
use penstock_resources::role::Role;
use serde::{Deserialize, Serialize};

/// The maximum length of a name, an email or an organization, in characters.
pub(super) const MAX_TEXT_CHARS: usize = 254;

/// Identifies an account of an identity provider. It is never an email.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Identity {
    /// The source. A person and a client of one issuer are never the same account.
    pub source: AccountSource,
    /// The issuer (`iss`); for a provider whose issuer is not configured, its registration id.
    pub issuer: String,
    /// The value of `user-name-attribute`; for a service account the `sub`.
    pub name: String,
}

/// The claims of a provider about an account at a sign-in. A field that is `None` leaves the account's value unchanged.
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
    /// The values of the claim with the groups, sorted. Unlike other fields, it always replaces the account's.
    pub group_claims: Vec<String>,
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
    /// The email; `admin` for the first account, synthetic for a service account.
    pub email: String,
    /// The organization.
    pub organization: Option<String>,
    /// The role. The API shows it as the list `roles` with one entry.
    pub role: Role,
    /// Whether it can sign in.
    pub enabled: bool,
    /// The identity at its provider; `None` for a built-in account.
    pub identity: Option<Identity>,
    /// The client id of a service account.
    pub client_id: Option<String>,
    /// The values of the claim with the groups at the last sign-in, or in the last token.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub group_claims: Vec<String>,
    /// The time of the first login (RFC 3339).
    pub first_login: Option<String>,
    /// The time of the last login (RFC 3339), to the minute.
    pub last_login: Option<String>,
    /// The hash of a built-in account's password.
    pub password: Option<Hash>,
    /// Whether the password is still the one in `<data-dir>/initial-admin-password`.
    #[serde(default)]
    pub initial_password: bool,
    /// The version: a number that each change except the last login raises by 1 or more.
    pub version: u64,
    /// The generation: incremented by each change that ends the account's sessions (a new password, or disabling it).
    #[serde(default)]
    pub generation: u64,
    /// The time of creation (RFC 3339).
    pub created_at: String,
}

impl Account {
    /// Returns the source of the account.
    pub fn source(&self) -> AccountSource {
        self.identity.as_ref().map_or(AccountSource::BuiltIn, |identity| identity.source)
    }

    /// Returns whether the account belongs to a client application.
    pub fn is_service_account(&self) -> bool {
        self.source() == AccountSource::ServiceAccount
    }

    /// Returns whether the account matches the provider's claims. Missing claims are ignored.
    pub(super) fn matches_profile(&self, profile: &Profile, role: Role) -> bool {
        let mut updated = self.clone();
        updated.apply_profile(profile, role);
        updated == *self
    }

    /// Updates the account with the provider's claims.
    pub(super) fn apply_profile(&mut self, profile: &Profile, role: Role) {
        let update = |claim: &Option<String>, known: &mut Option<String>| {
            if claim.is_some() {
                known.clone_from(claim);
            }
        };
        update(&profile.given_name, &mut self.given_name);
        update(&profile.family_name, &mut self.family_name);
        update(&profile.organization, &mut self.organization);
        update(&profile.client_id, &mut self.client_id);
        if let Some(email) = &profile.email {
            self.email.clone_from(email);
        }
        self.group_claims.clone_from(&profile.group_claims);
        self.role = role;
    }
}

impl From<&Account> for account::Account {
    fn from(account: &Account) -> Self {
        let (source, service_account) = (account.source(), account.is_service_account());
        let account = account.clone();
        let (issuer, subject) =
            account.identity.map(|identity| (identity.issuer, identity.name)).unzip();
        Self {
            id: account.id,
            given_name: account.given_name,
            family_name: account.family_name,
            email: Some(account.email),
            organization: account.organization,
            roles: vec![account.role],
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
