//! The accounts, kept with the store's commits and found by id, email and identity.
use super::{Account, Identity, Profile, Refusal, Role};
use crate::fault::Fault;
use std::sync::Arc;

/// The accounts. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Accounts {}

impl Accounts {
    /// The account with this id.
    pub fn get(&self, id: &str) -> Option<Arc<Account>> {
        let _ = id;
        todo!("accounts")
    }

    /// The account of this identity.
    pub fn find(&self, identity: &Identity) -> Option<Arc<Account>> {
        let _ = identity;
        todo!("accounts")
    }

    /// As [`Self::signed_in`] where there is nothing to write but the last login; never blocks.
    pub fn recognised(
        &self,
        identity: &Identity,
        profile: &Profile,
        role: Role,
    ) -> Option<Result<Arc<Account>, Refusal>> {
        let _ = (identity, profile, role);
        todo!("accounts")
    }

    /// The account that this identity signs in with: made at the first time (once, however many come at
    /// once), brought up to date each time, `last_login` included (written at most once a minute).
    ///
    /// # Errors
    /// `Refusal::Forbidden` when it is disabled; `Refusal::Unavailable` when the store takes no commit.
    pub fn signed_in(
        &self,
        identity: &Identity,
        profile: &Profile,
        role: Role,
    ) -> Result<Arc<Account>, Refusal> {
        let _ = (identity, profile, role);
        todo!("accounts")
    }

    /// Accounts after this id, by id.
    pub fn list(&self, after: Option<&str>, limit: usize) -> Result<Vec<Arc<Account>>, Fault> {
        let _ = (after, limit);
        todo!("accounts")
    }
}
