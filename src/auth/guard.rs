//! Authorizes everything that is done on behalf of a caller. The check runs when a request arrives, after its body
//! has been read, and inside each commit.
use super::{Auth, Caller, Credential, Role};
use penstock_base::commit::CommitCheck;
use penstock_base::fault::{Fault, Kind};
use penstock_store::Transaction;
use std::fmt;
use std::ops::Deref;

/// The requester of a change to accounts or credentials: the caller that the change is recorded for, and the check
/// of its commit.
pub trait Requester: CommitCheck {
    /// Returns the caller.
    fn caller(&self) -> &Caller;

    /// Checks that the caller still has the role in [`Self::caller`] or a higher one, for changes that depend on it.
    ///
    /// # Errors
    /// As [`CommitCheck::check`].
    fn check_role(&self, transaction: &Transaction<'_>) -> Result<(), Fault>;
}

/// A caller that may use a route. Only [`Auth::authorize`] creates it. Cheap to clone.
#[derive(Clone)]
pub struct Authorized {
    caller: Caller,
    /// The minimum role of the route.
    least: Role,
    /// `None` for local administration, which cannot be revoked.
    auth: Option<Auth>,
}

impl Authorized {
    /// Authorizes local administration: the control socket, and commands that open the data directory themselves.
    pub fn local() -> Self {
        Self { caller: Caller::local(), least: Role::Admin, auth: None }
    }

    /// Returns the caller with its current role, if it may still use the route. Never blocks.
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

/// Returns the role if there is one and it suffices.
fn check(role: Option<Role>, least: Role) -> Result<Role, Fault> {
    match role {
        Some(role) if role >= least => Ok(role),
        Some(role) => Err(Fault::new(
            Kind::Forbidden,
            format!("this needs the role {least}, but the credential now has the role {role}"),
        )),
        None => Err(Fault::new(
            Kind::Unauthorized,
            "the session, API key, access token or account of this request has ended or was disabled meanwhile; \
                 sign in again, or use another API key (`penstock api-key create`, or the page /admin/keys)",
        )),
    }
}

// Without `auth`: it holds all accounts and keys, which no log needs.
impl fmt::Debug for Authorized {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Authorized")
            .field("caller", &self.caller.actor())
            .field("least", &self.least)
            .finish_non_exhaustive()
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
    /// Authorizes a caller for a route with this minimum role, or returns the caller if its role is lower.
    ///
    /// # Errors
    /// The caller, if its role is too low.
    pub fn authorize(&self, caller: Caller, least: Role) -> Result<Authorized, Caller> {
        if caller.role < least {
            return Err(caller);
        }
        Ok(Authorized { caller, least, auth: Some(self.clone()) })
    }

    /// Returns the role of a caller as this transaction sees it. Accounts and API keys are read from the store, because
    /// memory follows their commits with a delay. So every revocation that was committed before counts. For sessions,
    /// memory is ahead of the store.
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

// Tests use callers without authorization.
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

#[cfg(test)]
mod tests {
    use super::super::world::World;
    use super::super::{Account, accounts, keys};
    use super::*;
    use crate::accounts::Edit;
    use jiff::{SignedDuration, Timestamp};
    use penstock_base::IfMatch;
    use penstock_store::Read as _;
    use serde_json::{Value, json};

    fn new_key(role: Role) -> keys::New {
        keys::New { name: "line 4".to_owned(), role, expires_at: None, business_object: None }
    }

    /// Returns the error of a commit on behalf of this caller.
    fn refused(fixture: &World, by: &Authorized) -> Option<Kind> {
        let commit = penstock_base::commit::commit::<_, Fault>(&fixture.store, by, |_| Ok(()));
        commit.err().map(|fault| fault.kind)
    }

    /// Changes a stored document but not memory, as if a change had just been committed.
    fn alter(fixture: &World, collection: &str, id: &str, members: &Value) {
        let change = |transaction: &mut Transaction<'_>| {
            let stored = transaction.document(collection, id.as_bytes())?.unwrap();
            let mut document: Value = serde_json::from_slice(&stored).unwrap();
            let members = members.as_object().unwrap().clone();
            document.as_object_mut().unwrap().extend(members);
            let document = document.to_string();
            Ok::<_, Fault>(transaction.put(collection, id.as_bytes(), document.as_bytes())?)
        };
        fixture.store.transact(change).unwrap();
    }

    fn remove(fixture: &World, collection: &str, id: &str) {
        let delete = |t: &mut Transaction<'_>| Ok::<_, Fault>(t.delete(collection, id.as_bytes())?);
        fixture.store.transact(delete).unwrap();
    }

    fn of_session(fixture: &World, account: &Account, least: Role) -> Authorized {
        let session = fixture.auth.sessions.start(account, None, None).unwrap();
        let caller = fixture.auth.sessions.caller(&session.id).unwrap();
        fixture.auth.authorize(caller, least).unwrap()
    }

    fn of_key(fixture: &World, by: &dyn Requester, role: Role) -> (String, Authorized) {
        let (key, secret) = fixture.auth.keys.create(by, new_key(role)).unwrap();
        let caller = fixture.auth.keys.caller(&secret).unwrap();
        (key.id.clone(), fixture.auth.authorize(caller, role).unwrap())
    }

    fn of_token(fixture: &World, account: &Account, expires_at: Option<Timestamp>) -> Authorized {
        let account = fixture.auth.accounts.get(&account.id);
        let credential = Credential::Bearer { expires_at };
        let caller = Caller { account, role: Role::Contributor, credential, from: None };
        fixture.auth.authorize(caller, Role::Contributor).unwrap()
    }

    #[test]
    fn a_commit_sees_earlier_commits_before_memory_does() {
        let (gone, less) = (Some(Kind::Unauthorized), Some(Kind::Forbidden));
        let fixture = World::new();
        let each = [
            (json!({"enabled": false}), [gone, gone, gone]),
            (json!({"role": "User"}), [less, less, less]),
            // A new password ends only sessions.
            (json!({"generation": 7}), [gone, None, None]),
            (Value::Null, [gone, gone, gone]),
        ];
        for (number, (members, expected)) in each.into_iter().enumerate() {
            let account = fixture.account(&format!("a{number}"), Role::Admin);
            let session = of_session(&fixture, &account, Role::Contributor);
            let (_, key) = of_key(&fixture, &session, Role::Contributor);
            let token = of_token(&fixture, &account, None);
            let all = [session, key, token];
            assert!(all.iter().all(|by| refused(&fixture, by).is_none()), "{members}");
            match members {
                Value::Null => remove(&fixture, accounts::COLLECTION, &account.id),
                _ => alter(&fixture, accounts::COLLECTION, &account.id, &members),
            }
            assert!(all.iter().all(|by| by.renewed().is_ok()), "memory knows of {members}");
            assert_eq!(all.each_ref().map(|by| refused(&fixture, by)), expected, "{members}");
        }
        let local = Authorized::local();
        for members in [Value::Null, json!({"expiresAt": "2020-01-01T00:00:00Z"})] {
            let (id, key) = of_key(&fixture, &local, Role::Admin);
            match members {
                Value::Null => remove(&fixture, keys::COLLECTION, &id),
                _ => alter(&fixture, keys::COLLECTION, &id, &members),
            }
            assert_eq!(refused(&fixture, &key), gone, "{members}");
        }
        assert_eq!(refused(&fixture, &local), None);
    }

    #[test]
    fn a_session_that_has_ended_and_a_token_that_has_expired_commit_nothing() {
        let fixture = World::new();
        let account = fixture.account("a", Role::Contributor);
        let session = fixture.auth.sessions.start(&account, None, None).unwrap();
        let caller = fixture.auth.sessions.caller(&session.id).unwrap();
        let by = fixture.auth.authorize(caller, Role::Contributor).unwrap();
        assert_eq!(refused(&fixture, &by), None);
        fixture.auth.sessions.end(&session.id);
        assert_eq!(refused(&fixture, &by), Some(Kind::Unauthorized));
        assert_eq!(by.renewed().unwrap_err().kind, Kind::Unauthorized);

        let hour = SignedDuration::from_hours(1);
        let now = Timestamp::now();
        assert_eq!(refused(&fixture, &of_token(&fixture, &account, Some(now + hour))), None);
        let expired = of_token(&fixture, &account, Some(now - hour));
        assert_eq!(refused(&fixture, &expired), Some(Kind::Unauthorized));
        assert_eq!(expired.renewed().unwrap_err().kind, Kind::Unauthorized);
    }

    #[test]
    fn a_demoted_caller_continues_with_its_lower_role_and_creates_no_key_with_the_old_one() {
        let fixture = World::new();
        let account = fixture.account("a", Role::Admin);
        let by = of_session(&fixture, &account, Role::User);
        let edit = Edit { role: Some(Role::User), ..Edit::of(&account) };
        fixture
            .auth
            .accounts
            .change(&Authorized::local(), &account.id, IfMatch::Any, edit)
            .unwrap();
        assert_eq!(refused(&fixture, &by), None);
        for by in [&by, &by.renewed().unwrap()] {
            let fault = fixture.auth.keys.create(by, new_key(Role::Admin)).unwrap_err();
            assert_eq!(fault.kind, Kind::Forbidden, "{fault}");
        }
        fixture.auth.keys.create(&by.renewed().unwrap(), new_key(Role::User)).unwrap();
        assert!(
            fixture.auth.authorize((*by.renewed().unwrap()).clone(), Role::Contributor).is_err()
        );
    }
}
