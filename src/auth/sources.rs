//! The service accounts of sources: each source acts as one, which an Admin can disable.
use super::{Account, Auth, AuthError, Authorized, Caller, Credential, Identity, Profile};
use penstock_resources::account::AccountSource;
use penstock_resources::role::Role;
use std::sync::Arc;

/// The issuer of the identities of sources. It is no URL, so it is never the issuer of a token.
const ISSUER: &str = "urn:penstock:sources";

impl Auth {
    /// Authorizes the source with this name to write these Business Objects, by their ids. Creates its account at the
    /// first call. Blocking.
    ///
    /// # Errors
    /// `AuthError::Forbidden` when its account is disabled; `AuthError::Unavailable` when the store takes no commit.
    pub fn authorize_source(
        &self,
        name: &str,
        business_objects: Vec<String>,
    ) -> Result<Authorized, AuthError> {
        let identity = source_identity(name);
        let profile = Profile { email: Some(format!("source:{name}")), ..Profile::default() };
        let role = Role::Contributor;
        let account = self.accounts.sign_in_identity(&identity, &profile, role)?;
        let credential = Credential::Source { business_objects: business_objects.into() };
        let caller = Caller { account: Some(account), role, credential, from: None };
        self.authorize(caller, role).map_err(|_| {
            AuthError::Forbidden("the account of the source has no role that may write".to_owned())
        })
    }

    /// Returns the account of the source with this name, if it has one. Never blocks.
    pub fn find_source_account(&self, name: &str) -> Option<Arc<Account>> {
        self.accounts.find_by_identity(&source_identity(name))
    }
}

fn source_identity(name: &str) -> Identity {
    Identity {
        source: AccountSource::ServiceAccount,
        issuer: ISSUER.to_owned(),
        name: name.to_owned(),
    }
}
