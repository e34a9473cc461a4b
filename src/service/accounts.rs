//! The use cases of accounts. Admins manage all accounts; a client changes only the names and the password of its own.
use crate::gateway::Gateway;
use penstock_auth::accounts::{AccountEdit, Accounts, NewAccount, NewPassword};
use penstock_auth::{Account, AuthError, Authorized, Caller, Role};
use penstock_base::IfMatch;
use penstock_base::error::{ErrorClass, Finding, GatewayError};
use std::sync::Arc;

/// Lists at most `limit` accounts after the id `after`, ordered by id, which is the order of their creation.
///
/// # Errors
/// `ErrorClass::Forbidden` for others than Admins.
pub fn list_accounts(
    gateway: &Gateway,
    by: &Authorized,
    after: Option<&str>,
    limit: usize,
) -> Result<Vec<Arc<Account>>, GatewayError> {
    by.require_role(Role::Admin)?;
    gateway.auth.accounts.list(after, limit)
}

/// Returns the account with this id, or the built-in account with this email.
///
/// # Errors
/// `ErrorClass::NotFound`; `ErrorClass::Forbidden` for others than Admins.
pub fn find_account(
    gateway: &Gateway,
    by: &Authorized,
    id_or_email: &str,
) -> Result<Arc<Account>, GatewayError> {
    by.require_role(Role::Admin)?;
    gateway.auth.accounts.require_account(id_or_email)
}

/// Returns the caller's own account.
///
/// # Errors
/// `ErrorClass::NotFound` for local administration and for API keys without an account.
pub fn find_own_account(by: &Caller) -> Result<Arc<Account>, GatewayError> {
    by.account.clone().ok_or_else(|| {
        GatewayError::new(
            ErrorClass::NotFound,
            "local administration and API keys that were created on the command line have no account; sign in, or \
             use an API key of an account",
        )
    })
}

/// Creates a built-in account.
///
/// # Errors
/// The errors of [`Accounts::create`] and [`Accounts::hash_password`]; `ErrorClass::InsufficientStorage` when less than
/// the reserve is free on the disk; `ErrorClass::Forbidden` for others than Admins.
pub async fn create_account(
    gateway: &Gateway,
    by: &Authorized,
    new: NewAccount,
) -> Result<Arc<Account>, GatewayError> {
    by.require_role(Role::Admin)?;
    gateway.disk.check_reserve()?;
    let hash = gateway.auth.accounts.hash_password(&new.password).await?;
    gateway
        .run(by, Role::Admin, move |gateway, by| gateway.auth.accounts.create(by, new, hash))
        .await
}

/// Changes an account.
///
/// # Errors
/// The errors of [`Accounts::change`]; `ErrorClass::Forbidden` for others than Admins.
pub async fn change_account(
    gateway: &Gateway,
    by: &Authorized,
    id: &str,
    if_match: IfMatch,
    edit: AccountEdit,
) -> Result<Arc<Account>, GatewayError> {
    let id = id.to_owned();
    gateway
        .run(by, Role::Admin, move |gateway, by| {
            gateway.auth.accounts.change(by, &id, if_match, edit)
        })
        .await
}

/// Changes the names and the organization of the caller's own account.
///
/// # Errors
/// The errors of [`Accounts::change`]; `ErrorClass::NotFound` as [`find_own_account`]; `ErrorClass::Forbidden` when
/// `edit` changes anything else.
pub async fn change_own_account(
    gateway: &Gateway,
    by: &Authorized,
    if_match: IfMatch,
    edit: AccountEdit,
) -> Result<Arc<Account>, GatewayError> {
    let account = find_own_account(by)?;
    let others = [
        ("/email", edit.email.as_ref().is_some_and(|email| *email != account.email)),
        ("/roles", edit.role.is_some_and(|role| role != account.role)),
        ("/enabled", edit.enabled.is_some_and(|enabled| enabled != account.enabled)),
    ];
    let findings: Vec<_> = others
        .into_iter()
        .filter(|(_, differs)| *differs)
        .map(|(pointer, _)| {
            Finding::at_pointer(pointer, "only an Admin can change it, at /api/v1/users/{id}")
        })
        .collect();
    if !findings.is_empty() {
        let detail = "here you can change only your own names and organization";
        return Err(GatewayError::with_findings(ErrorClass::Forbidden, detail, findings));
    }
    gateway
        .run(by, Role::User, move |gateway, by| {
            gateway.auth.accounts.change(by, &account.id, if_match, edit)
        })
        .await
}

/// Sets the password of an account and ends its sessions, except the one that the caller sent. To change its own
/// password, an account must give the current one.
///
/// # Errors
/// The errors of [`Accounts::set_password`] and [`Accounts::hash_password`]; `ErrorClass::Invalid` for a missing or
/// wrong current password; `ErrorClass::Forbidden` for the account of another one, except for Admins.
pub async fn set_password(
    gateway: &Gateway,
    by: &Authorized,
    account: &Account,
    NewPassword { current, password }: NewPassword,
) -> Result<(), GatewayError> {
    let accounts = &gateway.auth.accounts;
    Accounts::check_may_manage(by, account)?;
    let is_own = by.account.as_ref().is_some_and(|own| own.id == account.id);
    let min_role = if is_own { Role::User } else { Role::Admin };
    by.require_role(min_role)?;
    if is_own {
        // A browser that is left signed in must not be enough to take over the account.
        let Some(current) = current else {
            return Err(wrong_password_error(
                "it is missing; to change your own password, send the current one",
            ));
        };
        let confirmed = accounts.confirm_password(account, &current, by.from).await;
        confirmed.map_err(|error| match error {
            AuthError::Invalid(_) => wrong_password_error("it is not the current password"),
            other => other.into(),
        })?;
    }
    let hash = accounts.hash_password(&password).await?;
    let id = account.id.clone();
    gateway.run(by, min_role, move |gateway, by| gateway.auth.set_password(by, &id, hash)).await
}

fn wrong_password_error(why: &str) -> GatewayError {
    let finding = Finding::at_pointer("/currentPassword", why);
    GatewayError::with_findings(ErrorClass::Invalid, "the password was not changed", vec![finding])
}

/// Deletes an account, its sessions, its API keys and the views that only it sees.
///
/// # Errors
/// The errors of [`penstock_auth::Auth::delete_account`]; `ErrorClass::Forbidden` for others than Admins.
pub async fn delete_account(
    gateway: &Gateway,
    by: &Authorized,
    id: &str,
    if_match: IfMatch,
) -> Result<(), GatewayError> {
    let id = id.to_owned();
    gateway
        .run(by, Role::Admin, move |gateway, by| {
            let account = gateway.auth.accounts.require_account(&id)?;
            gateway.views.delete_private_of(&account.id, |delete_views| {
                gateway.auth.delete_account(by, &account.id, if_match, delete_views)
            })
        })
        .await
}
