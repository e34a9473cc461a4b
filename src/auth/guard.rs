//! The guard of everything that is done on behalf of a caller: checked when a request comes in, after its
//! body has been read, and inside each commit that it makes.
use super::{Auth, Caller, Credential, Role};
use crate::commit::CommitCheck;
use crate::fault::{Fault, Kind};
use penstock_store::Transaction;
use std::ops::Deref;

/// Who asks for a change of accounts or credentials: the caller that it is recorded for, and the check of its
/// commit.
pub trait Requester: CommitCheck {
    /// The caller.
    fn caller(&self) -> &Caller;

    /// Checks that the caller's role is still the one that [`Self::caller`] has, or a higher one: for changes
    /// that are decided by it.
    ///
    /// # Errors
    /// As [`CommitCheck::check`].
    fn check_role(&self, transaction: &Transaction<'_>) -> Result<(), Fault>;
}

/// A caller that may use a route. [`Auth::authorize`] makes it, and nothing else; cheap to clone.
#[derive(Debug, Clone)]
pub struct Authorized {
    caller: Caller,
    /// The role that the route asks for.
    least: Role,
    /// `None` for local administration, which cannot be revoked.
    auth: Option<Auth>,
}

impl Authorized {
    /// Local administration: the control socket, and commands that open the data directory themselves.
    pub fn local() -> Self {
        Self { caller: Caller::local(), least: Role::Admin, auth: None }
    }

    /// The same caller with the role that it has now, if it may still use the route. Never blocks.
    ///
    /// # Errors
    /// `Kind::Unauthorized` when the credential has ended; `Kind::Forbidden` when its role no longer suffices.
    pub fn renewed(&self) -> Result<Self, Fault> {
        let Some(auth) = &self.auth else { return Ok(self.clone()) };
        let role = check(auth.still(&self.caller), self.least)?;
        let caller = Caller { role: role.min(self.caller.role), ..self.caller.clone() };
        Ok(Self { caller, ..self.clone() })
    }

    fn check_in(&self, transaction: &Transaction<'_>, least: Role) -> Result<(), Fault> {
        let Some(auth) = &self.auth else { return Ok(()) };
        check(auth.role_in(transaction, &self.caller)?, least).map(drop)
    }
}

/// The role, if it is there and suffices.
fn check(role: Option<Role>, least: Role) -> Result<Role, Fault> {
    match role {
        Some(role) if role >= least => Ok(role),
        Some(role) => Err(Fault::new(
            Kind::Forbidden,
            format!("it needs the role {least}, and by now this credential has {role}"),
        )),
        None => Err(Fault::new(
            Kind::Unauthorized,
            "the session, the API key, the access token or the account that this request was sent with \
                 has ended or was disabled meanwhile; sign in again, or use another API key (`penstock api-key create`, \
                 or the page /admin/keys)",
        )),
    }
}

impl Deref for Authorized {
    type Target = Caller;

    fn deref(&self) -> &Caller {
        &self.caller
    }
}

impl CommitCheck for Authorized {
    fn check(&self, transaction: &Transaction<'_>) -> Result<(), Fault> {
        self.check_in(transaction, self.least)
    }
}

impl Requester for Authorized {
    fn caller(&self) -> &Caller {
        &self.caller
    }

    fn check_role(&self, transaction: &Transaction<'_>) -> Result<(), Fault> {
        self.check_in(transaction, self.caller.role)
    }
}

impl Auth {
    /// Lets a caller use a route that asks for this role; gives the caller back when its role is less.
    ///
    /// # Errors
    /// The caller.
    pub fn authorize(&self, caller: Caller, least: Role) -> Result<Authorized, Caller> {
        if caller.role < least {
            return Err(caller);
        }
        Ok(Authorized { caller, least, auth: Some(self.clone()) })
    }

    /// What a caller may do by what this transaction sees. Accounts and API keys are read from the store and
    /// not from memory, which follows their commits: so a revocation that was committed before counts. Of
    /// sessions memory is ahead of the store.
    fn role_in(
        &self,
        transaction: &Transaction<'_>,
        caller: &Caller,
    ) -> Result<Option<Role>, Fault> {
        match &caller.credential {
            Credential::Local => Ok(Some(Role::Admin)),
            Credential::Session(hash) => self.sessions.still_in(transaction, hash),
            Credential::ApiKey { id, .. } => self.keys.still_in(transaction, id),
            Credential::Bearer { expires_at } => {
                let Some(account) = &caller.account else { return Ok(None) };
                let account = super::accounts::stored(transaction, &account.id)?;
                let account = account.filter(|account| {
                    account.enabled && expires_at.is_none_or(|at| self.keys.now() < at)
                });
                Ok(account.map(|account| account.role.min(caller.role)))
            }
        }
    }
}

// What tests do by callers of their own making.
#[cfg(test)]
impl CommitCheck for Caller {
    fn check(&self, _transaction: &Transaction<'_>) -> Result<(), Fault> {
        Ok(())
    }
}

#[cfg(test)]
impl Requester for Caller {
    fn caller(&self) -> &Caller {
        self
    }

    fn check_role(&self, _transaction: &Transaction<'_>) -> Result<(), Fault> {
        Ok(())
    }
}
