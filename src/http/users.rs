//! `/api/v1/users`: the accounts.
use super::body;
use super::business_objects::{SEGMENT, path};
use super::caller::caller;
use super::etag::{etag, if_match};
use super::problem::Problem;
use super::query::{Query, page};
use super::reply::{Outcome, Reply};
use super::service::origin;
use super::shapes;
use super::state::{blocking, gateway};
use penstock_auth::accounts::{Accounts, Edit, New, NewPassword};
use penstock_auth::{Account, Authorized, Credential, Refusal};
use penstock_base::IfMatch;
use penstock_base::fault::{Fault, Finding, Kind};
use penstock_service::gateway::Gateway;
use percent_encoding::utf8_percent_encode;
use salvo::http::StatusCode;
use salvo::http::header::{ETAG, LOCATION};
use salvo::oapi::endpoint;
use salvo::{Depot, Request};
use std::sync::Arc;

/// Returns the account that `{id}` names, by id or by the email of a built-in one.
pub(super) fn named(req: &Request, gateway: &Gateway) -> Result<Arc<Account>, Problem> {
    let id = path(req, "id");
    gateway.auth.accounts.named(id).ok_or_else(|| {
        Problem::not_found(format!("there is no account with the id or email {id:?}"))
    })
}

/// Returns the caller's own account.
pub(super) fn own(depot: &Depot) -> Result<Arc<Account>, Problem> {
    caller(depot).account.clone().ok_or_else(|| {
        Problem::not_found(
            "local administration and API keys that were created on the command line have no account; sign in, or \
             use an API key of an account",
        )
    })
}

/// Responds with one account and its entity tag.
fn answer(account: &Account) -> Outcome {
    Ok(Reply::json(&shapes::Account::from(account))?.header(ETAG, &etag(account.version)))
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
pub(super) async fn list(req: &mut Request, depot: &mut Depot) -> Outcome {
    let query = Query::read(req, &["limit", "cursor"])?;
    let (limit, after) = (query.limit()?, query.uuid_cursor()?);
    let accounts = gateway(depot)?.auth.accounts.list(after.as_deref(), limit + 1)?;
    let items = accounts.iter().map(|account| shapes::Account::from(&**account)).collect();
    page(items, limit, |account: &shapes::Account| &account.id)
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
pub(super) async fn create(req: &mut Request, depot: &mut Depot) -> Outcome {
    Query::read(req, &[])?;
    let gateway = gateway(depot)?;
    let body = body::few(req, depot).await?;
    let account = make(&gateway, caller(depot), New::read(body.bytes())?).await?;
    let prefix = &origin(depot).prefix;
    let id = utf8_percent_encode(&account.id, SEGMENT);
    let location = format!("{prefix}/api/v1/users/{id}");
    Ok(answer(&account)?.status(StatusCode::CREATED).header(LOCATION, &location))
}

/// Creates an account on behalf of this caller.
pub(super) async fn make(
    gateway: &Gateway,
    by: &Authorized,
    new: New,
) -> Result<Arc<Account>, Problem> {
    gateway.disk.take_in()?;
    let accounts = gateway.auth.accounts.clone();
    let hash = accounts.hash(&new.password).await?;
    let by = by.clone();
    blocking(move || Ok(accounts.create(&by, new, hash)?)).await
}

/// Returns one account.
#[endpoint(
    operation_id = "getUser",
    tags("Users"),
    parameters(("id" = String, Path, description = "Its id, or the email of a built-in account.")),
    responses((status_code = 200, description = "The account.", body = shapes::Account,
        headers(("ETag" = String, description = "The version in quotes.")))),
)]
pub(super) async fn get(req: &mut Request, depot: &mut Depot) -> Outcome {
    Query::read(req, &[])?;
    answer(&*named(req, &gateway(depot)?)?)
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
pub(super) async fn me(req: &mut Request, depot: &mut Depot) -> Outcome {
    Query::read(req, &[])?;
    let caller = caller(depot);
    if caller.account.is_none()
        && let Some(key) = gateway(depot)?.auth.keys.of_caller(caller)
    {
        return Reply::json(&shapes::Account::from(&*key));
    }
    answer(&*own(depot)?)
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
pub(super) async fn replace(req: &mut Request, depot: &mut Depot) -> Outcome {
    Query::read(req, &[])?;
    let gateway = gateway(depot)?;
    let body = body::few(req, depot).await?;
    let account = named(req, &gateway)?;
    let edit = Edit::read(body.bytes())?;
    change(req, depot, gateway, account, edit).await
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
pub(super) async fn replace_me(req: &mut Request, depot: &mut Depot) -> Outcome {
    Query::read(req, &[])?;
    let gateway = gateway(depot)?;
    let body = body::few(req, depot).await?;
    let account = own(depot)?;
    let edit = Edit::read(body.bytes())?;
    let others = [
        ("/email", edit.email.as_ref().is_some_and(|email| *email != account.email)),
        ("/roles", edit.role.is_some_and(|role| role != account.role)),
        ("/enabled", edit.enabled.is_some_and(|enabled| enabled != account.enabled)),
    ];
    let findings: Vec<_> = others
        .into_iter()
        .filter(|(_, differs)| *differs)
        .map(|(pointer, _)| {
            Finding::at(pointer, "only an Admin can change it, at /api/v1/users/{id}")
        })
        .collect();
    if !findings.is_empty() {
        let detail = "here you can change only your own names and organization";
        return Err(Fault::with(Kind::Forbidden, detail, findings).into());
    }
    change(req, depot, gateway, account, edit).await
}

async fn change(
    req: &Request,
    depot: &Depot,
    gateway: Gateway,
    account: Arc<Account>,
    edit: Edit,
) -> Outcome {
    let asked = if_match(req, Some(account.version))?;
    answer(&*alter(&gateway, caller(depot), &account.id, asked, edit).await?)
}

/// Changes an account on behalf of this caller.
pub(super) async fn alter(
    gateway: &Gateway,
    by: &Authorized,
    id: &str,
    asked: IfMatch,
    edit: Edit,
) -> Result<Arc<Account>, Problem> {
    let (accounts, by, id) = (gateway.auth.accounts.clone(), by.clone(), id.to_owned());
    blocking(move || Ok(accounts.change(&by, &id, asked, edit)?)).await
}

/// Sets the password of an account and ends its sessions.
#[endpoint(
    operation_id = "setPassword",
    tags("Users"),
    parameters(("id" = String, Path, description = "Its id or its email.")),
    request_body(content = shapes::NewPassword, content_type = "application/json"),
    responses((status_code = 204, description = "Set.")),
)]
pub(super) async fn others_password(req: &mut Request, depot: &mut Depot) -> Outcome {
    Query::read(req, &[])?;
    let gateway = gateway(depot)?;
    let body = body::few(req, depot).await?;
    let account = named(req, &gateway)?;
    let new = NewPassword::read(body.bytes(), &account.email)?;
    drop(body);
    set_password(depot, &gateway, &account, new).await?;
    Ok(Reply::nothing())
}

/// Sets the password of the caller's own account and ends its other sessions.
#[endpoint(
    operation_id = "setOwnPassword",
    tags("Users"),
    request_body(content = shapes::NewPassword, content_type = "application/json"),
    responses((status_code = 204, description = "Set.")),
)]
pub(super) async fn own_password(req: &mut Request, depot: &mut Depot) -> Outcome {
    Query::read(req, &[])?;
    let gateway = gateway(depot)?;
    let body = body::few(req, depot).await?;
    let account = own(depot)?;
    let new = NewPassword::read(body.bytes(), &account.email)?;
    drop(body);
    set_password(depot, &gateway, &account, new).await?;
    Ok(Reply::nothing())
}

/// Sets the password of an account on behalf of the caller. The caller's own session stays valid.
pub(super) async fn set_password(
    depot: &Depot,
    gateway: &Gateway,
    account: &Account,
    NewPassword { current, password }: NewPassword,
) -> Result<(), Problem> {
    let by = caller(depot).clone();
    let accounts = gateway.auth.accounts.clone();
    Accounts::check_manages(&by, account)?;
    // A browser that is left signed in must not be enough to take over the account.
    if by.account.as_ref().is_some_and(|own| own.id == account.id) {
        let Some(current) = current else {
            return Err(wrong("it is missing; to change your own password, send the current one"));
        };
        let confirmed = accounts.confirm_password(account, &current, origin(depot).client).await;
        confirmed.map_err(|refusal| match refusal {
            Refusal::Invalid(_) => wrong("it is not the current password"),
            other => other.into(),
        })?;
    }
    let hash = accounts.hash(&password).await?;
    let credential = by.credential.clone();
    let id = account.id.clone();
    let account = blocking(move || Ok(accounts.set_password(&by, &id, hash)?)).await?;
    if let Credential::Session(session) = credential {
        gateway.auth.sessions.renew(&session, &account);
    }
    Ok(())
}

fn wrong(why: &str) -> Problem {
    let finding = Finding::at("/currentPassword", why);
    Fault::with(Kind::Invalid, "the password was not changed", vec![finding]).into()
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
pub(super) async fn delete(req: &mut Request, depot: &mut Depot) -> Outcome {
    Query::read(req, &[])?;
    let gateway = gateway(depot)?;
    let account = named(req, &gateway)?;
    let asked = if_match(req, Some(account.version))?;
    remove(gateway, caller(depot), &account.id, asked).await?;
    Ok(Reply::nothing())
}

/// Deletes an account, its sessions and its API keys, on behalf of this caller.
pub(super) async fn remove(
    gateway: Gateway,
    by: &Authorized,
    id: &str,
    asked: IfMatch,
) -> Result<(), Problem> {
    let (by, id) = (by.clone(), id.to_owned());
    blocking(move || Ok(gateway.auth.delete_account(&by, &id, asked)?)).await
}
