//! `/api/v1/users`: the accounts.
use crate::shapes;
use penstock_auth::Account;
use penstock_auth::accounts::{AccountEdit, NewAccount, NewPassword};
use penstock_http::body;
use penstock_http::caller::caller;
use penstock_http::etag::{format_etag, read_preconditions};
use penstock_http::path::{encode_segment, path_parameter};
use penstock_http::problem::Problem;
use penstock_http::query::{Query, truncate_page};
use penstock_http::reply::{Reply, ReplyResult};
use penstock_http::service::origin;
use penstock_http::state::gateway;
use penstock_service::accounts;
use salvo::http::StatusCode;
use salvo::http::header::{ETAG, LOCATION};
use salvo::{Depot, Request};
use salvo_oapi::endpoint;
use std::sync::Arc;

/// Returns the account that `{id}` names, by id or by the email of a built-in one.
fn read_account(req: &Request, depot: &Depot) -> Result<Arc<Account>, Problem> {
    Ok(accounts::find_account(&gateway(depot)?, caller(depot), path_parameter(req, "id"))?)
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
    let (gateway, by) = (gateway(depot)?, caller(depot));
    let mut accounts = accounts::list_accounts(&gateway, by, after.as_deref(), limit + 1)?;
    let next = truncate_page(&mut accounts, limit, |account| &account.id);
    let items = accounts.iter().map(|account| shapes::Account::from(&**account)).collect();
    Reply::json(&shapes::Accounts { items, next })
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
    let new = NewAccount::from_json(body.bytes())?;
    let account = accounts::create_account(&gateway, caller(depot), new).await?;
    let prefix = &origin(depot).prefix;
    let id = encode_segment(&account.id);
    let location = format!("{prefix}/api/v1/users/{id}");
    Ok(account_reply(&account)?.with_status(StatusCode::CREATED).with_header(LOCATION, &location))
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
    account_reply(&*read_account(req, depot)?)
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
    account_reply(&*accounts::find_own_account(caller)?)
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
    let account = read_account(req, depot)?;
    let edit = AccountEdit::from_json(body.bytes())?;
    let if_match = read_preconditions(req, Some(account.version))?.if_match;
    let (by, id) = (caller(depot), &account.id);
    account_reply(&*accounts::change_account(&gateway, by, id, if_match, edit).await?)
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
    let account = accounts::find_own_account(caller(depot))?;
    let edit = AccountEdit::from_json(body.bytes())?;
    let if_match = read_preconditions(req, Some(account.version))?.if_match;
    account_reply(&*accounts::change_own_account(&gateway, caller(depot), if_match, edit).await?)
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
    let account = read_account(req, depot)?;
    let new = NewPassword::from_json(body.bytes(), &account.email)?;
    drop(body);
    accounts::set_password(&gateway, caller(depot), &account, new).await?;
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
    let account = accounts::find_own_account(caller(depot))?;
    let new = NewPassword::from_json(body.bytes(), &account.email)?;
    drop(body);
    accounts::set_password(&gateway, caller(depot), &account, new).await?;
    Ok(Reply::no_content())
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
    let account = read_account(req, depot)?;
    let if_match = read_preconditions(req, Some(account.version))?.if_match;
    accounts::delete_account(&gateway, caller(depot), &account.id, if_match).await?;
    Ok(Reply::no_content())
}
