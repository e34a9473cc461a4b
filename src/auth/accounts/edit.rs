//! Creates, changes and deletes accounts, on behalf of an Admin or of their owners.
use super::super::account::MAX_TEXT_CHARS;
use super::super::audit::Event;
use super::super::password::{self, Hash};
use super::super::{Account, Caller, Credential, Requester};
use super::{ACCOUNTS, Accounts, new_account};
use penstock_base::characters;
use penstock_base::commit::CommitPart;
use penstock_base::error::{ErrorClass, Finding, GatewayError};
use penstock_base::json::{self, Json, Members};
use penstock_base::{IfMatch, Preconditions, free_name};
use penstock_resources::account::AccountSource;
use penstock_resources::role::Role;
use std::fmt;
use std::sync::Arc;

/// The maximum nesting of a body.
const MAX_NESTING: usize = 8;

/// The read-only members of an answer. They are ignored in a request, so that a client can send an answer back.
const READ_ONLY_MEMBERS: [&str; 9] = [
    "id",
    "serviceAccount",
    "source",
    "firstLogin",
    "lastLogin",
    "createdAt",
    "issuer",
    "subject",
    "clientId",
];

/// The definition of a new built-in account.
#[derive(Clone, PartialEq, Eq)]
pub struct NewAccount {
    /// The given name.
    pub given_name: Option<String>,
    /// The family name.
    pub family_name: Option<String>,
    /// The email, which it signs in with.
    pub email: String,
    /// The organization.
    pub organization: Option<String>,
    /// The role.
    pub role: Role,
    /// Whether it can sign in.
    pub enabled: bool,
    /// The password.
    pub password: String,
}

/// A change of an account. Names and organization that are `None` are removed. All other fields that are `None` stay
/// as they are.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct AccountEdit {
    /// The given name.
    pub given_name: Option<String>,
    /// The family name.
    pub family_name: Option<String>,
    /// The email.
    pub email: Option<String>,
    /// The organization.
    pub organization: Option<String>,
    /// The role.
    pub role: Option<Role>,
    /// Whether it can sign in.
    pub enabled: Option<bool>,
}

/// A change of a password.
#[derive(Clone, PartialEq, Eq)]
pub struct NewPassword {
    /// The current password, which an account must give to change its own.
    pub current: Option<String>,
    /// The new password.
    pub password: String,
}

// These `Debug` forms do not show the password, because the log may contain them.
impl fmt::Debug for NewAccount {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "NewAccount({:?}, {})", self.email, self.role)
    }
}

impl fmt::Debug for NewPassword {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("NewPassword(..)")
    }
}

impl NewAccount {
    /// Reads the request body of a creation.
    ///
    /// # Errors
    /// `ErrorClass::Malformed` as [`json::parse`]; `ErrorClass::Invalid` with every finding.
    pub fn from_json(body: &[u8]) -> Result<Self, GatewayError> {
        Self::from_value(json::parse(body, MAX_NESTING)?)
    }

    /// Reads the value of such a body, or the fields of a form with the same names.
    ///
    /// # Errors
    /// `ErrorClass::Invalid` with every finding.
    pub fn from_value(value: Json) -> Result<Self, GatewayError> {
        let mut password = None;
        let AccountEdit { given_name, family_name, email, organization, role, enabled } =
            parse_members(value, true, |members, edit| {
                if edit.email.is_none() {
                    members.report_missing("email", "the account signs in with it");
                }
                password = parse_new_password(members, edit.email.as_deref().unwrap_or_default());
            })?;
        let (Some(email), Some(role), Some(password)) = (email, role, password) else {
            return Err(invalid_account_error(Vec::new()));
        };
        let enabled = enabled.unwrap_or(true);
        Ok(Self { given_name, family_name, email, organization, role, enabled, password })
    }
}

impl AccountEdit {
    /// Reads the request body of a change.
    ///
    /// # Errors
    /// As [`NewAccount::from_json`].
    pub fn from_json(body: &[u8]) -> Result<Self, GatewayError> {
        Self::from_value(json::parse(body, MAX_NESTING)?)
    }

    /// Reads the value of such a body, or the fields of a form with the same names.
    ///
    /// # Errors
    /// As [`NewAccount::from_value`].
    pub fn from_value(value: Json) -> Result<Self, GatewayError> {
        parse_members(value, false, |members, _| {
            if members.take("password").is_some() {
                members.add_finding(
                    "password",
                    "set it with a POST to this address followed by /password",
                );
            }
        })
    }

    /// Creates an edit that leaves the account as it is.
    pub fn unchanged_from(account: &Account) -> Self {
        Self {
            given_name: account.given_name.clone(),
            family_name: account.family_name.clone(),
            organization: account.organization.clone(),
            ..Self::default()
        }
    }
}

impl NewPassword {
    /// Reads the request body of a password change for the account with this email.
    ///
    /// # Errors
    /// As [`NewAccount::from_json`].
    pub fn from_json(body: &[u8], email: &str) -> Result<Self, GatewayError> {
        Self::from_value(json::parse(body, MAX_NESTING)?, email)
    }

    /// Reads the value of such a body, or the fields of a form with the same names.
    ///
    /// # Errors
    /// As [`NewAccount::from_value`].
    pub fn from_value(value: Json, email: &str) -> Result<Self, GatewayError> {
        let mut findings = Vec::new();
        let mut new = Self { current: None, password: String::new() };
        if let Some(mut members) = Members::of_object(value, "", &mut findings) {
            new.current = members.take_string("currentPassword");
            new.password = parse_new_password(&mut members, email).unwrap_or_default();
            members.report_unknown();
        }
        if findings.is_empty() {
            return Ok(new);
        }
        Err(GatewayError::with_findings(
            ErrorClass::Invalid,
            "the new password is not valid",
            findings,
        ))
    }
}

/// Reads the members that a new account and a change have in common, and the others with `more`.
fn parse_members(
    value: Json,
    is_new: bool,
    more: impl FnOnce(&mut Members<'_>, &AccountEdit),
) -> Result<AccountEdit, GatewayError> {
    let mut findings = Vec::new();
    let mut edit = AccountEdit::default();
    if let Some(mut members) = Members::of_object(value, "", &mut findings) {
        edit.given_name = parse_text(&mut members, "givenName");
        edit.family_name = parse_text(&mut members, "familyName");
        edit.organization = parse_text(&mut members, "organization");
        edit.email = parse_text(&mut members, "email");
        if let Some(Err(why)) = edit.email.as_deref().map(check_email) {
            members.add_finding("email", why);
        }
        match members.take_array("roles") {
            Some(roles) => match parse_role(&roles) {
                Ok(role) => edit.role = Some(role),
                Err(why) => members.add_finding("roles", why),
            },
            None if is_new => {
                members.report_missing("roles", "a list with User, Contributor or Admin");
            }
            None => {}
        }
        edit.enabled = members.take_boolean("enabled");
        more(&mut members, &edit);
        for member in READ_ONLY_MEMBERS {
            members.take(member);
        }
        members.report_unknown();
    }
    if findings.is_empty() { Ok(edit) } else { Err(invalid_account_error(findings)) }
}

/// Reads the member `password` and checks whether the password can be set.
fn parse_new_password(members: &mut Members<'_>, email: &str) -> Option<String> {
    let Some(password) = members.take_string("password") else {
        members.report_missing("password", "the account signs in with it");
        return None;
    };
    if let Err(why) = password::check_password(&password, email) {
        members.add_finding("password", format!("this password cannot be set: {why}"));
    }
    Some(password)
}

fn invalid_account_error(findings: Vec<Finding>) -> GatewayError {
    GatewayError::with_findings(ErrorClass::Invalid, "the account is not valid", findings)
}

/// Reads a short text; `None` if it is empty.
fn parse_text(members: &mut Members<'_>, member: &'static str) -> Option<String> {
    let text = members.take_string(member)?.trim().to_owned();
    if text.chars().count() > MAX_TEXT_CHARS {
        members.add_finding(member, format!("it is longer than {MAX_TEXT_CHARS} characters"));
    }
    if let Some(why) = characters::describe_deceptive(&text, characters::is_deceptive) {
        members.add_finding(member, why);
    }
    (!text.is_empty()).then_some(text)
}

fn parse_role(roles: &[Json]) -> Result<Role, String> {
    let [Json::String(name)] = roles else {
        return Err(
            "an account has exactly one role, which includes the rights of the lower ones: \
                    give a list with one of User, Contributor, Admin"
                .to_owned(),
        );
    };
    match Role::from_name(name) {
        Some(Role::Metrics) => {
            Err("the role Metrics is only for API keys; use one of User, Contributor, Admin".into())
        }
        Some(role) => Ok(role),
        None => Err(format!("there is no role {name:?}; use one of User, Contributor, Admin")),
    }
}

/// Checks an email. It does not need an `@`, because plants also use names without mail.
fn check_email(email: &str) -> Result<(), String> {
    if email.contains(char::is_whitespace) {
        Err("it contains white space; remove it".to_owned())
    } else if email.contains(['\u{200c}', '\u{200d}']) {
        Err("it contains U+200C or U+200D, which are invisible; remove them".to_owned())
    } else if email == "me" {
        Err("`me` is reserved for the account of the request; choose another one".to_owned())
    } else {
        Ok(())
    }
}

impl Accounts {
    /// Creates a built-in account.
    ///
    /// # Errors
    /// `ErrorClass::Conflict` when the email is taken, people sign in at an identity provider, or the limit is reached.
    pub fn create(
        &self,
        by: &dyn Requester,
        new: NewAccount,
        hash: Hash,
    ) -> Result<Arc<Account>, GatewayError> {
        if !self.allows_password_sign_in() {
            return Err(GatewayError::new(
                ErrorClass::Conflict,
                "people sign in at the identity provider (security=oauth2); the first sign-in creates their accounts",
            ));
        }
        let writer = self.inner.writer.lock();
        self.check_email_free(&new.email, None)?;
        self.check_capacity()?;
        let NewAccount { given_name, family_name, email, organization, role, enabled, password: _ } =
            new;
        let account = Account {
            given_name,
            family_name,
            organization,
            enabled,
            password: Some(hash),
            ..new_account(email, role)
        };
        let detail = format!("{} with the role {role}", account.email);
        let created = event_by_requester(by.caller(), "account.created", &account, detail);
        self.commit_account(&writer, by, account, &[created])
    }

    /// Changes an account.
    ///
    /// # Errors
    /// `ErrorClass::NotFound`; `ErrorClass::Forbidden` as [`Self::check_may_manage`]; `ErrorClass::PreconditionFailed`.
    /// `ErrorClass::Conflict` when the email is taken, the provider sets a field of the change, or no Admin would be
    /// left. `ErrorClass::TooManyRequests` when an account changes itself too often.
    pub fn change(
        &self,
        by: &dyn Requester,
        id: &str,
        if_match: IfMatch,
        edit: AccountEdit,
    ) -> Result<Arc<Account>, GatewayError> {
        let writer = self.inner.writer.lock();
        let before = self.require_account(id)?;
        Self::check_may_manage(by.caller(), &before)?;
        check_version(&before, if_match)?;
        let mut account = (*before).clone();
        account.given_name = edit.given_name;
        account.family_name = edit.family_name;
        account.organization = edit.organization;
        account.email = edit.email.unwrap_or(account.email);
        account.role = edit.role.unwrap_or(account.role);
        account.enabled = edit.enabled.unwrap_or(account.enabled);
        if account.source() == AccountSource::BuiltIn {
            self.check_email_free(&account.email, Some(&account.id))?;
        } else {
            check_provider_fields(&before, &account)?;
        }
        if account == *before {
            return Ok(before);
        }
        if account.role < Role::Admin || !account.enabled {
            self.check_not_last_admin(&before)?;
        }
        self.inner.audit.check_rate_limit(by.caller())?;
        let events = list_change_events(by.caller(), &before, &account);
        account.version += 1;
        if before.enabled && !account.enabled {
            account.generation += 1;
        }
        self.commit_account(&writer, by, account, &events)
    }

    /// Sets the password of a built-in account, which ends its sessions.
    ///
    /// # Errors
    /// `ErrorClass::NotFound`; `ErrorClass::Forbidden` as [`Self::check_may_manage`]; `ErrorClass::Conflict` for an
    /// account of another source; `ErrorClass::TooManyRequests` when an account changes itself too often.
    pub fn set_password(
        &self,
        by: &dyn Requester,
        id: &str,
        hash: Hash,
    ) -> Result<Arc<Account>, GatewayError> {
        let writer = self.inner.writer.lock();
        let before = self.require_account(id)?;
        Self::check_may_manage(by.caller(), &before)?;
        if before.source() != AccountSource::BuiltIn {
            return Err(GatewayError::new(
                ErrorClass::Conflict,
                "this account belongs to an identity provider, which manages its password; change it there",
            ));
        }
        let account = Account {
            password: Some(hash),
            initial_password: false,
            version: before.version + 1,
            generation: before.generation + 1,
            ..(*before).clone()
        };
        self.inner.audit.check_rate_limit(by.caller())?;
        let detail = "its other sessions have ended";
        let changed = event_by_requester(by.caller(), "password.changed", &account, detail);
        let account = self.commit_account(&writer, by, account, &[changed])?;
        self.discard_initial_password(&before);
        Ok(account)
    }

    /// Deletes an account. `also` deletes in the same commit what belongs to it. Its sessions end without it.
    ///
    /// # Errors
    /// `ErrorClass::NotFound`; `ErrorClass::Forbidden` as [`Self::check_may_manage`]; `ErrorClass::PreconditionFailed`;
    /// `ErrorClass::Conflict` for the last Admin.
    pub(crate) fn delete(
        &self,
        by: &dyn Requester,
        id: &str,
        if_match: IfMatch,
        also: CommitPart<'_>,
    ) -> Result<(), GatewayError> {
        let _writer = self.inner.writer.lock();
        let account = self.require_account(id)?;
        Self::check_may_manage(by.caller(), &account)?;
        check_version(&account, if_match)?;
        self.check_not_last_admin(&account)?;
        let deleted =
            event_by_requester(by.caller(), "account.deleted", &account, account.email.clone());
        self.inner.audit.commit_with_events(by, &[deleted], |transaction| {
            ACCOUNTS.delete(transaction, &account.id)?;
            free_name(transaction, account.version)?;
            also(transaction)
        })?;
        self.inner.entries.write().remove(&account.id);
        self.discard_initial_password(&account);
        Ok(())
    }

    /// Refuses an API key that changes the account it belongs to. Someone who finds the key must not be able to take
    /// over the account.
    ///
    /// # Errors
    /// `ErrorClass::Forbidden`.
    pub fn check_may_manage(by: &Caller, account: &Account) -> Result<(), GatewayError> {
        let is_own = by.account.as_ref().is_some_and(|own| own.id == account.id);
        if is_own && by.api_key_id().is_some() {
            return Err(GatewayError::new(
                ErrorClass::Forbidden,
                "an API key cannot change the account that it belongs to; sign in to change it (/login), or \
                 let another Admin do so",
            ));
        }
        Ok(())
    }

    /// Returns the account with this id, or the built-in account with this email.
    ///
    /// # Errors
    /// `ErrorClass::NotFound`.
    pub fn require_account(&self, id_or_email: &str) -> Result<Arc<Account>, GatewayError> {
        self.find_by_id_or_email(id_or_email).ok_or_else(|| {
            GatewayError::new(
                ErrorClass::NotFound,
                format!("there is no account with the id or email {id_or_email:?}"),
            )
        })
    }

    fn check_email_free(&self, email: &str, own_id: Option<&str>) -> Result<(), GatewayError> {
        match self.inner.entries.read().by_email(email) {
            Some(other) if Some(other.id.as_str()) != own_id => Err(GatewayError::with_findings(
                ErrorClass::Conflict,
                format!("another account already has the email {:?}", other.email),
                vec![Finding::at_pointer("/email", "this email is taken; choose another one")],
            )),
            _ => Ok(()),
        }
    }

    /// Refuses a change that would leave no Admin who can sign in.
    fn check_not_last_admin(&self, account: &Account) -> Result<(), GatewayError> {
        let people = self.inner.people;
        let counts = |account: &Account| {
            account.enabled && account.role == Role::Admin && account.source() == people
        };
        let others = |other: &Arc<Account>| other.id != account.id && counts(other);
        if !counts(account) || self.inner.entries.read().iter_accounts().any(others) {
            return Ok(());
        }
        Err(GatewayError::new(
            ErrorClass::Conflict,
            format!(
                "{:?} is the last enabled Admin; create another Admin first, \
                 or nobody can administer the gateway",
                account.email
            ),
        ))
    }
}

/// Refuses changes to the fields that the provider sets.
fn check_provider_fields(before: &Account, after: &Account) -> Result<(), GatewayError> {
    let changes = [
        ("/givenName", before.given_name != after.given_name),
        ("/familyName", before.family_name != after.family_name),
        ("/email", before.email != after.email),
        ("/organization", before.organization != after.organization),
        ("/roles", before.role != after.role),
    ];
    let findings: Vec<_> = changes
        .into_iter()
        .filter(|(_, changes)| *changes)
        .map(|(pointer, _)| Finding::at_pointer(pointer, "the identity provider sets it"))
        .collect();
    if findings.is_empty() {
        return Ok(());
    }
    Err(GatewayError::with_findings(
        ErrorClass::Conflict,
        "the identity provider sets the names and the role of this account at each sign-in; \
         change them there (here the account can be disabled, enabled and deleted)",
        findings,
    ))
}

fn check_version(account: &Account, if_match: IfMatch) -> Result<(), GatewayError> {
    let what = format!("the account {:?}", account.email);
    Preconditions::from(if_match).check_version(Some(account.version), &what)
}

fn event_by_requester(
    by: &Caller,
    what: &'static str,
    account: &Account,
    detail: impl Into<String>,
) -> Event {
    let is_own = by.account.as_ref().is_some_and(|own| own.id == account.id);
    let from = by.from;
    let by = match by.credential {
        Credential::Session(_) | Credential::Bearer { .. } if is_own => None,
        _ => Some(by.actor_id().to_owned()),
    };
    Event { what, account: Some(account.id.clone()), by, from, detail: detail.into() }
}

/// Lists the audit events of a change.
fn list_change_events(by: &Caller, before: &Account, after: &Account) -> Vec<Event> {
    let mut events = Vec::new();
    let mut add = |what, detail: String| events.push(event_by_requester(by, what, after, detail));
    if before.role != after.role {
        add("role.changed", format!("from {} to {}", before.role, after.role));
    }
    if before.enabled != after.enabled {
        let what = if after.enabled { "account.enabled" } else { "account.disabled" };
        add(what, after.email.clone());
    }
    let names = |account: &Account| {
        let Account { given_name, family_name, organization, .. } = account.clone();
        (given_name, family_name, organization)
    };
    if before.email != after.email {
        add("account.changed", format!("the email from {} to {}", before.email, after.email));
    } else if names(before) != names(after) {
        add("account.changed", "its names or its organization".to_owned());
    }
    events
}
