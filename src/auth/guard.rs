//! The guard of everything that is done on behalf of a caller: checked when a request comes in, after its
//! body has been read, and inside each commit that it makes.
use super::{Auth, Caller, Credential, Role};
use penstock_base::commit::CommitCheck;
use penstock_base::fault::{Fault, Kind};
use penstock_store::Transaction;
use std::fmt;
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
#[derive(Clone)]
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

// All accounts and keys stand behind it, which no log needs.
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

    /// What a commit on behalf of this caller fails with.
    fn refused(world: &World, by: &Authorized) -> Option<Kind> {
        let commit = penstock_base::commit::commit::<_, Fault>(&world.store, by, |_| Ok(()));
        commit.err().map(|fault| fault.kind)
    }

    /// Changes a stored document and not what is in memory, as if a change had just been committed.
    fn alter(world: &World, collection: &str, id: &str, members: &Value) {
        let change = |transaction: &mut Transaction<'_>| {
            let stored = transaction.document(collection, id.as_bytes())?.unwrap();
            let mut document: Value = serde_json::from_slice(&stored).unwrap();
            let members = members.as_object().unwrap().clone();
            document.as_object_mut().unwrap().extend(members);
            let document = document.to_string();
            Ok::<_, Fault>(transaction.put(collection, id.as_bytes(), document.as_bytes())?)
        };
        world.store.transact(change).unwrap();
    }

    fn remove(world: &World, collection: &str, id: &str) {
        let delete = |t: &mut Transaction<'_>| Ok::<_, Fault>(t.delete(collection, id.as_bytes())?);
        world.store.transact(delete).unwrap();
    }

    fn of_session(world: &World, account: &Account, least: Role) -> Authorized {
        let session = world.auth.sessions.start(account, None, None).unwrap();
        let caller = world.auth.sessions.caller(&session.id).unwrap();
        world.auth.authorize(caller, least).unwrap()
    }

    fn of_key(world: &World, by: &dyn Requester, role: Role) -> (String, Authorized) {
        let (key, secret) = world.auth.keys.create(by, new_key(role)).unwrap();
        let caller = world.auth.keys.caller(&secret).unwrap();
        (key.id.clone(), world.auth.authorize(caller, role).unwrap())
    }

    fn of_token(world: &World, account: &Account, expires_at: Option<Timestamp>) -> Authorized {
        let account = world.auth.accounts.get(&account.id);
        let credential = Credential::Bearer { expires_at };
        let caller = Caller { account, role: Role::Contributor, credential, from: None };
        world.auth.authorize(caller, Role::Contributor).unwrap()
    }

    #[test]
    fn a_commit_sees_what_was_committed_before_it_though_memory_does_not_yet() {
        let (gone, less) = (Some(Kind::Unauthorized), Some(Kind::Forbidden));
        let world = World::new();
        let each = [
            (json!({"enabled": false}), [gone, gone, gone]),
            (json!({"role": "User"}), [less, less, less]),
            // Another password ends sessions, and nothing else.
            (json!({"generation": 7}), [gone, None, None]),
            (Value::Null, [gone, gone, gone]),
        ];
        for (number, (members, expected)) in each.into_iter().enumerate() {
            let account = world.account(&format!("a{number}"), Role::Admin);
            let session = of_session(&world, &account, Role::Contributor);
            let (_, key) = of_key(&world, &session, Role::Contributor);
            let token = of_token(&world, &account, None);
            let all = [session, key, token];
            assert!(all.iter().all(|by| refused(&world, by).is_none()), "{members}");
            match members {
                Value::Null => remove(&world, accounts::COLLECTION, &account.id),
                _ => alter(&world, accounts::COLLECTION, &account.id, &members),
            }
            assert!(all.iter().all(|by| by.renewed().is_ok()), "memory knows of {members}");
            assert_eq!(all.each_ref().map(|by| refused(&world, by)), expected, "{members}");
        }
        let local = Authorized::local();
        for members in [Value::Null, json!({"expiresAt": "2020-01-01T00:00:00Z"})] {
            let (id, key) = of_key(&world, &local, Role::Admin);
            match members {
                Value::Null => remove(&world, keys::COLLECTION, &id),
                _ => alter(&world, keys::COLLECTION, &id, &members),
            }
            assert_eq!(refused(&world, &key), gone, "{members}");
        }
        assert_eq!(refused(&world, &local), None);
    }

    #[test]
    fn a_session_that_has_ended_and_a_token_that_has_expired_commit_nothing() {
        let world = World::new();
        let account = world.account("a", Role::Contributor);
        let session = world.auth.sessions.start(&account, None, None).unwrap();
        let caller = world.auth.sessions.caller(&session.id).unwrap();
        let by = world.auth.authorize(caller, Role::Contributor).unwrap();
        assert_eq!(refused(&world, &by), None);
        world.auth.sessions.end(&session.id);
        assert_eq!(refused(&world, &by), Some(Kind::Unauthorized));
        assert_eq!(by.renewed().unwrap_err().kind, Kind::Unauthorized);

        let hour = SignedDuration::from_hours(1);
        let now = Timestamp::now();
        assert_eq!(refused(&world, &of_token(&world, &account, Some(now + hour))), None);
        let expired = of_token(&world, &account, Some(now - hour));
        assert_eq!(refused(&world, &expired), Some(Kind::Unauthorized));
        assert_eq!(expired.renewed().unwrap_err().kind, Kind::Unauthorized);
    }

    #[test]
    fn who_has_a_lower_role_by_now_goes_on_with_that_and_makes_no_key_of_the_old_one() {
        let world = World::new();
        let account = world.account("a", Role::Admin);
        let by = of_session(&world, &account, Role::User);
        let edit = Edit { role: Some(Role::User), ..Edit::of(&account) };
        world.auth.accounts.change(&Authorized::local(), &account.id, IfMatch::Any, edit).unwrap();
        assert_eq!(refused(&world, &by), None);
        for by in [&by, &by.renewed().unwrap()] {
            let fault = world.auth.keys.create(by, new_key(Role::Admin)).unwrap_err();
            assert_eq!(fault.kind, Kind::Forbidden, "{fault}");
        }
        world.auth.keys.create(&by.renewed().unwrap(), new_key(Role::User)).unwrap();
        assert!(world.auth.authorize((*by.renewed().unwrap()).clone(), Role::Contributor).is_err());
    }
}
