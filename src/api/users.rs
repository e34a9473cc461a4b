//! `/api/v1/users`: the accounts.
use penstock_auth::Account;
use penstock_auth::accounts::{AccountEdit, NewAccount, NewPassword};
use penstock_http::access::MinimumRole::{Admin, User};
use penstock_http::call::Call;
use penstock_http::etag::{ChangeConditions, format_etag};
use penstock_http::operation::{Operation, delete, get, post, put};
use penstock_http::parameters::PageQuery;
use penstock_http::path::encode_segment;
use penstock_http::problem::Problem;
use penstock_http::query::UuidCursor;
use penstock_http::reply::{Reply, ReplyResult};
use penstock_resources::{Page, account};
use penstock_service::accounts;
use salvo::http::StatusCode;
use salvo::http::header::{ETAG, LOCATION};
use std::sync::Arc;

/// Returns the operations.
pub(super) fn operations() -> Vec<Operation> {
    vec![
        get("/api/v1/users", Admin, list_users)
            .describe(
                "listUsers",
                "Users",
                "Lists the accounts, ordered by id, which is the order of their creation.",
            )
            .answer::<Page<account::Account>>(200, "A page.")
            .problems(&[400]),
        post("/api/v1/users", Admin, create_user)
            .describe("createUser", "Users", "Creates a built-in account.")
            .body::<account::NewAccount>()
            .answer::<account::Account>(201, "Created.")
            .etag()
            .location()
            .problems(&[400, 408, 409, 413, 415, 422, 507]),
        // Before the operations with an id, since the router takes the first match.
        get("/api/v1/users/me", User, get_own_user)
            .describe(
                "getOwnUser",
                "Users",
                "Returns the account of the caller.\n\nAn API key that was created on the command line has no account. \
                 It gets a response of the same form, whose `id` is the key's, with the key's role, `source` `api-key`, \
                 and no `ETag`.",
            )
            .answer::<account::Account>(200, "The account, or the API key.")
            .answer_header("ETag", "The version in quotes; absent for an API key.")
            .problems(&[400, 404]),
        put("/api/v1/users/me", User, replace_own_user)
            .describe(
                "replaceOwnUser",
                "Users",
                "Changes the names and the organization of the caller's own account.",
            )
            .body::<account::AccountChange>()
            .answer::<account::Account>(200, "Changed, or unchanged.")
            .etag()
            .problems(&[400, 404, 408, 409, 412, 413, 415, 422, 507]),
        post("/api/v1/users/me/password", User, set_own_password)
            .describe(
                "setOwnPassword",
                "Users",
                "Sets the password of the caller's own account and ends its other sessions.",
            )
            .body::<account::NewPassword>()
            .empty_answer(204, "Set.")
            .problems(&[400, 404, 408, 409, 413, 415, 422, 507]),
        get("/api/v1/users/{id}", Admin, get_user)
            .describe("getUser", "Users", "Returns one account.")
            .parameter("id", "Its id, or the email of a built-in account.")
            .answer::<account::Account>(200, "The account.")
            .etag()
            .problems(&[400, 404]),
        put("/api/v1/users/{id}", Admin, replace_user)
            .describe(
                "replaceUser",
                "Users",
                "Changes an account.\n\nNames and organization that are absent are removed. Email, role and `enabled` \
                 stay if they are absent. For accounts of an identity provider only `enabled` can be changed.",
            )
            .parameter("id", "Its id, or the email of a built-in account.")
            .body::<account::AccountChange>()
            .answer::<account::Account>(200, "Changed, or unchanged.")
            .etag()
            .problems(&[400, 404, 408, 409, 412, 413, 415, 422, 507]),
        delete("/api/v1/users/{id}", Admin, delete_user)
            .describe(
                "deleteUser",
                "Users",
                "Deletes an account, its sessions, its API keys and its private views.",
            )
            .parameter("id", "Its id, or the email of a built-in account.")
            .parameter("If-Match", "Delete only this version.")
            .empty_answer(204, "Deleted.")
            .problems(&[400, 404, 409, 412, 507]),
        post("/api/v1/users/{id}/password", Admin, set_user_password)
            .describe("setPassword", "Users", "Sets the password of an account and ends its sessions.")
            .parameter("id", "Its id or its email.")
            .body::<account::NewPassword>()
            .empty_answer(204, "Set.")
            .problems(&[400, 404, 408, 409, 413, 415, 422, 507]),
    ]
}

/// Returns the account that `{id}` names, by id or by the email of a built-in one.
fn read_account(call: &Call<'_>) -> Result<Arc<Account>, Problem> {
    Ok(accounts::find_account(&call.gateway()?, call.caller(), call.path("id"))?)
}

/// Responds with one account and its entity tag.
fn account_reply(account: &Account) -> ReplyResult {
    Ok(Reply::json(&account::Account::from(account))?
        .with_header(ETAG, &format_etag(account.version)))
}

async fn list_users(call: Call<'_>, query: PageQuery<UuidCursor>) -> ReplyResult {
    let (gateway, after) = (call.gateway()?, query.after.as_deref());
    let accounts = accounts::list_accounts(&gateway, call.caller(), after, query.limit + 1)?;
    let page = query.page(accounts, |account| account.id.clone());
    Reply::json(&page.map(|account| account::Account::from(&*account)))
}

async fn create_user(mut call: Call<'_>) -> ReplyResult {
    let gateway = call.gateway()?;
    let body = call.read_small_json().await?;
    let new = NewAccount::from_json(body.bytes())?;
    let account = accounts::create_account(&gateway, call.caller(), new).await?;
    let location = call.locate(&format!("/api/v1/users/{}", encode_segment(&account.id)));
    Ok(account_reply(&account)?.with_status(StatusCode::CREATED).with_header(LOCATION, &location))
}

async fn get_user(call: Call<'_>) -> ReplyResult {
    account_reply(&*read_account(&call)?)
}

async fn get_own_user(call: Call<'_>) -> ReplyResult {
    let caller = call.caller();
    if caller.account.is_none()
        && let Some(key) = call.gateway()?.auth.keys.find_caller_key(caller)
    {
        return Reply::json(&account::Account::from(&*key));
    }
    account_reply(&*accounts::find_own_account(caller)?)
}

async fn replace_user(mut call: Call<'_>, conditions: ChangeConditions) -> ReplyResult {
    let gateway = call.gateway()?;
    let body = call.read_small_json().await?;
    let account = read_account(&call)?;
    let edit = AccountEdit::from_json(body.bytes())?;
    let if_match = conditions.check(Some(account.version))?.if_match;
    let (by, id) = (call.caller(), &account.id);
    account_reply(&*accounts::change_account(&gateway, by, id, if_match, edit).await?)
}

async fn replace_own_user(mut call: Call<'_>, conditions: ChangeConditions) -> ReplyResult {
    let gateway = call.gateway()?;
    let body = call.read_small_json().await?;
    let account = accounts::find_own_account(call.caller())?;
    let edit = AccountEdit::from_json(body.bytes())?;
    let if_match = conditions.check(Some(account.version))?.if_match;
    account_reply(&*accounts::change_own_account(&gateway, call.caller(), if_match, edit).await?)
}

async fn set_user_password(mut call: Call<'_>) -> ReplyResult {
    let gateway = call.gateway()?;
    let body = call.read_small_json().await?;
    let account = read_account(&call)?;
    let new = NewPassword::from_json(body.bytes(), &account.email)?;
    drop(body);
    accounts::set_password(&gateway, call.caller(), &account, new).await?;
    Ok(Reply::no_content())
}

async fn set_own_password(mut call: Call<'_>) -> ReplyResult {
    let gateway = call.gateway()?;
    let body = call.read_small_json().await?;
    let account = accounts::find_own_account(call.caller())?;
    let new = NewPassword::from_json(body.bytes(), &account.email)?;
    drop(body);
    accounts::set_password(&gateway, call.caller(), &account, new).await?;
    Ok(Reply::no_content())
}

async fn delete_user(call: Call<'_>, conditions: ChangeConditions) -> ReplyResult {
    let gateway = call.gateway()?;
    let account = read_account(&call)?;
    let if_match = conditions.check(Some(account.version))?.if_match;
    accounts::delete_account(&gateway, call.caller(), &account.id, if_match).await?;
    Ok(Reply::no_content())
}
