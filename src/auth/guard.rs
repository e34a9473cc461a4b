//! Authorizes everything that is done on behalf of a caller. The check runs when a request arrives, after its body
//! has been read, and inside each commit.
use super::caller::Requester;
use super::keys::ApiKeys;
use super::{Auth, Caller, Credential};
use penstock_base::commit::CommitCheck;
use penstock_base::error::{ErrorClass, GatewayError};
use penstock_resources::role::Role;
use penstock_store::Transaction;
use std::fmt;
use std::ops::Deref;

/// A caller that may use a route, from [`Auth::authorize`], or local administration. Cheap to clone.
#[derive(Clone)]
pub struct Authorized {
    caller: Caller,
    /// The minimum role of the route and of the use case. Commits check it.
    min_role: Role,
    /// `None` for local administration, which cannot be revoked.
    auth: Option<Auth>,
}

impl Authorized {
    /// Authorizes local administration: the control socket, and commands that open the data directory themselves.
    pub fn local() -> Self {
        Self { caller: Caller::local(), min_role: Role::Admin, auth: None }
    }

    /// Returns the same caller with at most this role.
    #[must_use]
    pub fn limited_to(&self, role: Role) -> Self {
        let caller = Caller { role: role.min(self.caller.role), ..self.caller.clone() };
        Self { caller, ..self.clone() }
    }

    /// Returns the caller with its current role, if it may still use the route. Never blocks.
    ///
    /// # Errors
    /// `ErrorClass::Unauthorized` when the credential has ended; `ErrorClass::Forbidden` when its role no longer
    /// suffices.
    pub fn with_current_role(&self) -> Result<Self, GatewayError> {
        let Some(auth) = &self.auth else { return Ok(self.clone()) };
        let role = require_role(auth.current_role(&self.caller), self.min_role)?;
        let caller = Caller { role: role.min(self.caller.role), ..self.caller.clone() };
        Ok(Self { caller, ..self.clone() })
    }

    /// Returns the same caller for work that needs this role too. Its commits check it.
    #[must_use]
    pub fn with_min_role(&self, min_role: Role) -> Self {
        Self { min_role: self.min_role.max(min_role), ..self.clone() }
    }

    /// Checks that the caller has at least this role, whatever the minimum role of its route.
    ///
    /// # Errors
    /// `ErrorClass::Forbidden` when its role is lower.
    pub fn require_role(&self, min_role: Role) -> Result<(), GatewayError> {
        let role = self.caller.role;
        if role >= min_role {
            return Ok(());
        }
        Err(GatewayError::new(
            ErrorClass::Forbidden,
            format!("this request needs the role {min_role}, and the credential has {role}"),
        ))
    }

    fn check_role_in(
        &self,
        transaction: &Transaction<'_>,
        min_role: Role,
    ) -> Result<(), GatewayError> {
        let Some(auth) = &self.auth else { return Ok(()) };
        require_role(auth.current_role_in(transaction, &self.caller)?, min_role).map(drop)
    }
}

/// Returns the role if it is at least the minimum role. `None` is the role of a credential that has ended.
fn require_role(role: Option<Role>, min_role: Role) -> Result<Role, GatewayError> {
    match role {
        Some(role) if role >= min_role => Ok(role),
        Some(role) => Err(GatewayError::new(
            ErrorClass::Forbidden,
            format!("this needs the role {min_role}, but the credential now has the role {role}"),
        )),
        None => Err(GatewayError::new(
            ErrorClass::Unauthorized,
            "the session, API key, access token or account of this request has ended or was disabled meanwhile; \
                 sign in again, or use another API key (`penstock api-key create`, or the page /admin/keys)",
        )),
    }
}

// Leaves out `auth`, which holds all accounts and keys.
impl fmt::Debug for Authorized {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Authorized")
            .field("caller", &self.caller.actor_id())
            .field("min_role", &self.min_role)
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
    fn check_commit(&self, transaction: &Transaction<'_>) -> Result<(), GatewayError> {
        self.check_role_in(transaction, self.min_role)
    }
}

impl Requester for Authorized {
    fn caller(&self) -> &Caller {
        &self.caller
    }

    fn check_role(&self, transaction: &Transaction<'_>) -> Result<(), GatewayError> {
        self.check_role_in(transaction, self.caller.role)
    }
}

impl Auth {
    /// Authorizes a caller for a route with this minimum role.
    ///
    /// # Errors
    /// The caller, if its role is too low.
    pub fn authorize(&self, caller: Caller, min_role: Role) -> Result<Authorized, Caller> {
        if caller.role < min_role {
            return Err(caller);
        }
        Ok(Authorized { caller, min_role, auth: Some(self.clone()) })
    }

    /// Returns the role of a caller as this transaction sees it. Accounts and API keys are read from the store, because
    /// memory is updated after their commits. So every revocation that was committed before counts. Sessions are read
    /// from memory, which is ahead of the store.
    fn current_role_in(
        &self,
        transaction: &Transaction<'_>,
        caller: &Caller,
    ) -> Result<Option<Role>, GatewayError> {
        match &caller.credential {
            Credential::Local => Ok(Some(Role::Admin)),
            Credential::Session(hash) => self.sessions.current_role_in(transaction, hash),
            Credential::ApiKey { id, .. } => self.keys.current_role_in(transaction, id),
            Credential::Bearer { .. } | Credential::Source { .. } => {
                let Some(account) = &caller.account else { return Ok(None) };
                let account = super::accounts::ACCOUNTS.get(transaction, &account.id)?;
                let account = account.filter(|account| account.enabled && self.is_current(caller));
                Ok(account.map(|account| account.role.min(caller.role)))
            }
        }
    }
}

impl ApiKeys {
    /// Revokes every key on behalf of local administration, each with its event. Blocking.
    ///
    /// # Errors
    /// The errors of the store. Some keys may be revoked then.
    pub fn revoke_all(&self) -> Result<(), GatewayError> {
        let by = Authorized::local();
        let keys = self.list(by.caller(), None, usize::MAX);
        keys.iter().try_for_each(|key| self.revoke_key(&by, &key.id))
    }
}

// Tests use a caller as a requester whose commits are not checked.
#[cfg(test)]
impl CommitCheck for Caller {
    fn check_commit(&self, _transaction: &Transaction<'_>) -> Result<(), GatewayError> {
        Ok(())
    }
}

#[cfg(test)]
impl Requester for Caller {
    fn caller(&self) -> &Caller {
        self
    }

    fn check_role(&self, _transaction: &Transaction<'_>) -> Result<(), GatewayError> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::super::Account;
    use super::super::fixture::{Fixture, new_key};
    use super::*;
    use crate::accounts::AccountEdit;
    use jiff::{SignedDuration, Timestamp};
    use penstock_base::IfMatch;
    use penstock_base::commit::GuardedStore;
    use penstock_store::Read as _;
    use serde_json::{Value, json};

    /// Returns the error of a commit on behalf of this caller.
    fn commit_error(fixture: &Fixture, by: &Authorized) -> Option<ErrorClass> {
        let commit =
            penstock_base::commit::commit::<_, GatewayError>(&fixture.store, by, |_| Ok(()));
        commit.err().map(|error| error.class)
    }

    /// Changes a stored document but not memory, as if a change had just been committed.
    fn alter_document(fixture: &Fixture, collection: &str, id: &str, members: &Value) {
        let change = |transaction: &mut Transaction<'_>| {
            let stored = transaction.read_document(collection, id.as_bytes())?.unwrap();
            let mut document: Value = serde_json::from_slice(&stored).unwrap();
            let members = members.as_object().unwrap().clone();
            document.as_object_mut().unwrap().extend(members);
            let document = document.to_string();
            Ok::<_, GatewayError>(transaction.put_document(
                collection,
                id.as_bytes(),
                document.as_bytes(),
            )?)
        };
        fixture.store.transact(change).unwrap();
    }

    fn remove_document(fixture: &Fixture, collection: &str, id: &str) {
        let delete = |t: &mut Transaction<'_>| {
            Ok::<_, GatewayError>(t.delete_document(collection, id.as_bytes())?)
        };
        fixture.store.transact(delete).unwrap();
    }

    fn authorize_session(fixture: &Fixture, account: &Account, least: Role) -> Authorized {
        let session = fixture.auth.sessions.start_session(account, None, None).unwrap();
        let caller = fixture.auth.sessions.authenticate_session(&session.id).unwrap();
        fixture.auth.authorize(caller, least).unwrap()
    }

    fn authorize_key(fixture: &Fixture, by: &dyn Requester, role: Role) -> (String, Authorized) {
        let (key, secret) = fixture.auth.keys.create_key(by, new_key(role)).unwrap();
        let caller = fixture.auth.keys.authenticate_key(&secret).unwrap();
        (key.id.clone(), fixture.auth.authorize(caller, role).unwrap())
    }

    fn authorize_token(
        fixture: &Fixture,
        account: &Account,
        expires_at: Option<Timestamp>,
    ) -> Authorized {
        let account = fixture.auth.accounts.get(&account.id);
        let credential = Credential::Bearer { expires_at };
        let caller = Caller { account, role: Role::Contributor, credential, from: None };
        fixture.auth.authorize(caller, Role::Contributor).unwrap()
    }

    #[test]
    fn a_commit_sees_earlier_commits_before_memory_does() {
        let (gone, less) = (Some(ErrorClass::Unauthorized), Some(ErrorClass::Forbidden));
        let fixture = Fixture::new();
        let each = [
            (json!({"enabled": false}), [gone, gone, gone]),
            (json!({"role": "User"}), [less, less, less]),
            // A new password ends only sessions.
            (json!({"generation": 7}), [gone, None, None]),
            (Value::Null, [gone, gone, gone]),
        ];
        for (number, (members, expected)) in each.into_iter().enumerate() {
            let account = fixture.create_account(&format!("a{number}"), Role::Admin);
            let session = authorize_session(&fixture, &account, Role::Contributor);
            let (_, key) = authorize_key(&fixture, &session, Role::Contributor);
            let token = authorize_token(&fixture, &account, None);
            let all = [session, key, token];
            assert!(all.iter().all(|by| commit_error(&fixture, by).is_none()), "{members}");
            match members {
                Value::Null => remove_document(&fixture, "accounts", &account.id),
                _ => alter_document(&fixture, "accounts", &account.id, &members),
            }
            assert!(
                all.iter().all(|by| by.with_current_role().is_ok()),
                "memory knows of {members}"
            );
            assert_eq!(all.each_ref().map(|by| commit_error(&fixture, by)), expected, "{members}");
        }
        let local = Authorized::local();
        for members in [Value::Null, json!({"expiresAt": "2020-01-01T00:00:00Z"})] {
            let (id, key) = authorize_key(&fixture, &local, Role::Admin);
            match members {
                Value::Null => remove_document(&fixture, "api-keys", &id),
                _ => alter_document(&fixture, "api-keys", &id, &members),
            }
            assert_eq!(commit_error(&fixture, &key), gone, "{members}");
        }
        assert_eq!(commit_error(&fixture, &local), None);
    }

    #[test]
    fn a_use_case_can_require_more_than_the_route() {
        let fixture = Fixture::new();
        let account = fixture.create_account("a", Role::Contributor);
        let by = authorize_session(&fixture, &account, Role::User);
        assert_eq!(by.require_role(Role::Contributor), Ok(()));
        let error = by.require_role(Role::Admin).unwrap_err();
        assert_eq!(error.class, ErrorClass::Forbidden);
        assert_eq!(Authorized::local().require_role(Role::Admin), Ok(()));
        // Its commits require it too.
        let account = fixture.create_account("b", Role::Admin);
        let by = authorize_session(&fixture, &account, Role::User);
        let more = by.with_min_role(Role::Admin);
        assert_eq!(commit_error(&fixture, &more), None);
        let contributor = json!({"role": "Contributor"});
        alter_document(&fixture, "accounts", &account.id, &contributor);
        let errors = [by, more].map(|by| commit_error(&fixture, &by));
        assert_eq!(errors, [None, Some(ErrorClass::Forbidden)]);
    }

    #[test]
    fn a_session_that_has_ended_and_a_token_that_has_expired_commit_nothing() {
        let fixture = Fixture::new();
        let account = fixture.create_account("a", Role::Contributor);
        let session = fixture.auth.sessions.start_session(&account, None, None).unwrap();
        let caller = fixture.auth.sessions.authenticate_session(&session.id).unwrap();
        let by = fixture.auth.authorize(caller, Role::Contributor).unwrap();
        assert_eq!(commit_error(&fixture, &by), None);
        fixture.auth.sessions.end_session(&session.id);
        assert_eq!(commit_error(&fixture, &by), Some(ErrorClass::Unauthorized));
        assert_eq!(by.with_current_role().unwrap_err().class, ErrorClass::Unauthorized);
        // Nor does it see what a commit would do.
        let store = GuardedStore::from(fixture.store.clone());
        let seen = store.dry_run::<(), GatewayError>(&by, |_| panic!("the requester is checked"));
        assert_eq!(seen.unwrap_err().class, ErrorClass::Unauthorized);

        let hour = SignedDuration::from_hours(1);
        let now = Timestamp::now();
        assert_eq!(
            commit_error(&fixture, &authorize_token(&fixture, &account, Some(now + hour))),
            None
        );
        let expired = authorize_token(&fixture, &account, Some(now - hour));
        assert_eq!(commit_error(&fixture, &expired), Some(ErrorClass::Unauthorized));
        assert_eq!(expired.with_current_role().unwrap_err().class, ErrorClass::Unauthorized);
    }

    #[test]
    fn a_demoted_caller_continues_with_its_lower_role_and_creates_no_key_with_the_old_one() {
        let fixture = Fixture::new();
        let account = fixture.create_account("a", Role::Admin);
        let by = authorize_session(&fixture, &account, Role::User);
        let edit = AccountEdit { role: Some(Role::User), ..AccountEdit::unchanged_from(&account) };
        fixture
            .auth
            .accounts
            .change(&Authorized::local(), &account.id, IfMatch::Any, edit)
            .unwrap();
        assert_eq!(commit_error(&fixture, &by), None);
        for by in [&by, &by.with_current_role().unwrap()] {
            let error = fixture.auth.keys.create_key(by, new_key(Role::Admin)).unwrap_err();
            assert_eq!(error.class, ErrorClass::Forbidden, "{error}");
        }
        fixture
            .auth
            .keys
            .create_key(&by.with_current_role().unwrap(), new_key(Role::User))
            .unwrap();
        assert!(
            fixture
                .auth
                .authorize((*by.with_current_role().unwrap()).clone(), Role::Contributor)
                .is_err()
        );
    }
}
