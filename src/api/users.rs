//! `/api/v1/users`: the accounts.
use crate::shapes;
use penstock_auth::accounts::{AccountEdit, Accounts, NewAccount, NewPassword};
use penstock_auth::{Account, AuthError, Authorized, Credential};
use penstock_base::IfMatch;
use penstock_base::error::{ErrorClass, Finding, GatewayError};
use penstock_http::body;
use penstock_http::caller::caller;
use penstock_http::etag::{format_etag, read_if_match};
use penstock_http::path::{encode_segment, path_parameter};
use penstock_http::problem::Problem;
use penstock_http::query::{Query, page_reply};
use penstock_http::reply::{Reply, ReplyResult};
use penstock_http::service::origin;
use penstock_http::state::{gateway, run_blocking};
use penstock_service::gateway::Gateway;
use salvo::http::StatusCode;
use salvo::http::header::{ETAG, LOCATION};
use salvo::oapi::endpoint;
use salvo::{Depot, Request};
use std::sync::Arc;

/// Returns the account that `{id}` names, by id or by the email of a built-in one.
pub fn find_account(req: &Request, gateway: &Gateway) -> Result<Arc<Account>, Problem> {
    let id = path_parameter(req, "id");
    gateway.auth.accounts.find_by_id_or_email(id).ok_or_else(|| {
        Problem::not_found(format!("there is no account with the id or email {id:?}"))
    })
}

/// Returns the caller's own account.
pub fn own_account(depot: &Depot) -> Result<Arc<Account>, Problem> {
    caller(depot).account.clone().ok_or_else(|| {
        Problem::not_found(
            "local administration and API keys that were created on the command line have no account; sign in, or \
             use an API key of an account",
        )
    })
}

/// Responds with one account and its entity tag.
fn account_reply(account: &Account) -> ReplyResult {
    Ok(Reply::json(&shapes::Account::from(account))?
        .with_header(ETAG, &format_etag(account.version)))
}

/// Lists the accounts, ordered by id, which is the order of their creation.
#[endpoint(
    operation_id = "listUsers",
    tags("Users"),
    parameters(
        ("limit" = Option<u32>, Query, description = "Items of a page, 1 to 1000; 100 when absent.", minimum = 1, maximum = 1000),
        ("cursor" = Option<String>, Query, description = "The `next` of the previous page."),
    ),
    responses((status_code = 200, description = "A page.", body = shapes::Accounts)),
)]
pub(super) async fn list_users(req: &mut Request, depot: &mut Depot) -> ReplyResult {
    let query = Query::read(req, &["limit", "cursor"])?;
    let (limit, after) = (query.read_limit()?, query.read_uuid_cursor()?);
    let accounts = gateway(depot)?.auth.accounts.list(after.as_deref(), limit + 1)?;
    let items = accounts.iter().map(|account| shapes::Account::from(&**account)).collect();
    page_reply(items, limit, |account: &shapes::Account| &account.id)
}

/// Creates a built-in account.
#[endpoint(
    operation_id = "createUser",
    tags("Users"),
    request_body(content = shapes::NewAccount, content_type = "application/json"),
    responses((status_code = 201, description = "Created.", body = shapes::Account,
        headers(("ETag" = String, description = "The version in quotes."),
                ("Location" = String, description = "Its path.")))),
)]
pub(super) async fn create_user(req: &mut Request, depot: &mut Depot) -> ReplyResult {
    Query::read(req, &[])?;
    let gateway = gateway(depot)?;
    let body = body::read_small_json(req, depot).await?;
    let account =
        create_account(&gateway, caller(depot), NewAccount::from_json(body.bytes())?).await?;
    let prefix = &origin(depot).prefix;
    let id = encode_segment(&account.id);
    let location = format!("{prefix}/api/v1/users/{id}");
    Ok(account_reply(&account)?.with_status(StatusCode::CREATED).with_header(LOCATION, &location))
}

/// Creates an account on behalf of this caller.
pub async fn create_account(
    gateway: &Gateway,
    by: &Authorized,
    new: NewAccount,
) -> Result<Arc<Account>, Problem> {
    gateway.disk.check_reserve()?;
    let accounts = gateway.auth.accounts.clone();
    let hash = accounts.hash_password(&new.password).await?;
    let by = by.clone();
    run_blocking(move || Ok(accounts.create(&by, new, hash)?)).await
}

/// Returns one account.
#[endpoint(
    operation_id = "getUser",
    tags("Users"),
    parameters(("id" = String, Path, description = "Its id, or the email of a built-in account.")),
    responses((status_code = 200, description = "The account.", body = shapes::Account,
        headers(("ETag" = String, description = "The version in quotes.")))),
)]
pub(super) async fn get_user(req: &mut Request, depot: &mut Depot) -> ReplyResult {
    Query::read(req, &[])?;
    account_reply(&*find_account(req, &gateway(depot)?)?)
}

/// Returns the account of the caller.
///
/// An API key that was created on the command line has no account. It gets a response of the same form, whose
/// `id` is the key's, with the key's role, `source` `api-key`, and no `ETag`.
#[endpoint(
    operation_id = "getOwnUser",
    tags("Users"),
    responses((status_code = 200, description = "The account, or the API key.", body = shapes::Account,
        headers(("ETag" = String, description = "The version in quotes; absent for an API key.")))),
)]
pub(super) async fn get_own_user(req: &mut Request, depot: &mut Depot) -> ReplyResult {
    Query::read(req, &[])?;
    let caller = caller(depot);
    if caller.account.is_none()
        && let Some(key) = gateway(depot)?.auth.keys.find_caller_key(caller)
    {
        return Reply::json(&shapes::Account::from(&*key));
    }
    account_reply(&*own_account(depot)?)
}

/// Changes an account.
///
/// Names and organization that are absent are removed. Email, role and `enabled` stay if they are absent. For
/// accounts of an identity provider only `enabled` can be changed.
#[endpoint(
    operation_id = "replaceUser",
    tags("Users"),
    parameters(
        ("id" = String, Path, description = "Its id, or the email of a built-in account."),
        ("If-Match" = Option<String>, Header, description = "Change only this version."),
    ),
    request_body(content = shapes::AccountChange, content_type = "application/json"),
    responses((status_code = 200, description = "Changed, or unchanged.", body = shapes::Account,
        headers(("ETag" = String, description = "The version in quotes.")))),
)]
pub(super) async fn replace_user(req: &mut Request, depot: &mut Depot) -> ReplyResult {
    Query::read(req, &[])?;
    let gateway = gateway(depot)?;
    let body = body::read_small_json(req, depot).await?;
    let account = find_account(req, &gateway)?;
    let edit = AccountEdit::from_json(body.bytes())?;
    change_and_reply(req, depot, gateway, account, edit).await
}

/// Changes the names and the organization of the caller's own account.
#[endpoint(
    operation_id = "replaceOwnUser",
    tags("Users"),
    parameters(("If-Match" = Option<String>, Header, description = "Change only this version.")),
    request_body(content = shapes::AccountChange, content_type = "application/json"),
    responses((status_code = 200, description = "Changed, or unchanged.", body = shapes::Account,
        headers(("ETag" = String, description = "The version in quotes.")))),
)]
pub(super) async fn replace_own_user(req: &mut Request, depot: &mut Depot) -> ReplyResult {
    Query::read(req, &[])?;
    let gateway = gateway(depot)?;
    let body = body::read_small_json(req, depot).await?;
    let account = own_account(depot)?;
    let edit = AccountEdit::from_json(body.bytes())?;
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
        return Err(GatewayError::with_findings(ErrorClass::Forbidden, detail, findings).into());
    }
    change_and_reply(req, depot, gateway, account, edit).await
}

async fn change_and_reply(
    req: &Request,
    depot: &Depot,
    gateway: Gateway,
    account: Arc<Account>,
    edit: AccountEdit,
) -> ReplyResult {
    let if_match = read_if_match(req, Some(account.version))?;
    account_reply(&*change_account(&gateway, caller(depot), &account.id, if_match, edit).await?)
}

/// Changes an account on behalf of this caller.
pub async fn change_account(
    gateway: &Gateway,
    by: &Authorized,
    id: &str,
    if_match: IfMatch,
    edit: AccountEdit,
) -> Result<Arc<Account>, Problem> {
    let (accounts, by, id) = (gateway.auth.accounts.clone(), by.clone(), id.to_owned());
    run_blocking(move || Ok(accounts.change(&by, &id, if_match, edit)?)).await
}

/// Sets the password of an account and ends its sessions.
#[endpoint(
    operation_id = "setPassword",
    tags("Users"),
    parameters(("id" = String, Path, description = "Its id or its email.")),
    request_body(content = shapes::NewPassword, content_type = "application/json"),
    responses((status_code = 204, description = "Set.")),
)]
pub(super) async fn set_user_password(req: &mut Request, depot: &mut Depot) -> ReplyResult {
    Query::read(req, &[])?;
    let gateway = gateway(depot)?;
    let body = body::read_small_json(req, depot).await?;
    let account = find_account(req, &gateway)?;
    let new = NewPassword::from_json(body.bytes(), &account.email)?;
    drop(body);
    set_password(depot, &gateway, &account, new).await?;
    Ok(Reply::no_content())
}

/// Sets the password of the caller's own account and ends its other sessions.
#[endpoint(
    operation_id = "setOwnPassword",
    tags("Users"),
    request_body(content = shapes::NewPassword, content_type = "application/json"),
    responses((status_code = 204, description = "Set.")),
)]
pub(super) async fn set_own_password(req: &mut Request, depot: &mut Depot) -> ReplyResult {
    Query::read(req, &[])?;
    let gateway = gateway(depot)?;
    let body = body::read_small_json(req, depot).await?;
    let account = own_account(depot)?;
    let new = NewPassword::from_json(body.bytes(), &account.email)?;
    drop(body);
    set_password(depot, &gateway, &account, new).await?;
    Ok(Reply::no_content())
}

/// Sets the password of an account on behalf of the caller. The caller's own session stays valid.
pub async fn set_password(
    depot: &Depot,
    gateway: &Gateway,
    account: &Account,
    NewPassword { current, password }: NewPassword,
) -> Result<(), Problem> {
    let by = caller(depot).clone();
    let accounts = gateway.auth.accounts.clone();
    Accounts::check_may_manage(&by, account)?;
    // A browser that is left signed in must not be enough to take over the account.
    if by.account.as_ref().is_some_and(|own| own.id == account.id) {
        let Some(current) = current else {
            return Err(wrong_password(
                "it is missing; to change your own password, send the current one",
            ));
        };
        let confirmed = accounts.confirm_password(account, &current, origin(depot).client).await;
        confirmed.map_err(|error| match error {
            AuthError::Invalid(_) => wrong_password("it is not the current password"),
            other => other.into(),
        })?;
    }
    let hash = accounts.hash_password(&password).await?;
    let credential = by.credential.clone();
    let id = account.id.clone();
    let account = run_blocking(move || Ok(accounts.set_password(&by, &id, hash)?)).await?;
    if let Credential::Session(session) = credential {
        gateway.auth.sessions.renew_generation(&session, &account);
    }
    Ok(())
}

fn wrong_password(why: &str) -> Problem {
    let finding = Finding::at_pointer("/currentPassword", why);
    GatewayError::with_findings(ErrorClass::Invalid, "the password was not changed", vec![finding])
        .into()
}

/// Deletes an account, its sessions and its API keys.
#[endpoint(
    operation_id = "deleteUser",
    tags("Users"),
    parameters(
        ("id" = String, Path, description = "Its id, or the email of a built-in account."),
        ("If-Match" = Option<String>, Header, description = "Delete only this version."),
    ),
    responses((status_code = 204, description = "Deleted.")),
)]
pub(super) async fn delete_user(req: &mut Request, depot: &mut Depot) -> ReplyResult {
    Query::read(req, &[])?;
    let gateway = gateway(depot)?;
    let account = find_account(req, &gateway)?;
    let if_match = read_if_match(req, Some(account.version))?;
    delete_account(gateway, caller(depot), &account.id, if_match).await?;
    Ok(Reply::no_content())
}

/// Deletes an account, its sessions and its API keys, on behalf of this caller.
pub async fn delete_account(
    gateway: Gateway,
    by: &Authorized,
    id: &str,
    if_match: IfMatch,
) -> Result<(), Problem> {
    let (by, id) = (by.clone(), id.to_owned());
    run_blocking(move || Ok(gateway.auth.delete_account(&by, &id, if_match)?)).await
}
