//! `/admin/users`: the accounts.
use super::definitions::describe_conflict;
use super::form::{Form, FormErrors, NOT_SAVED, take_form};
use super::frame::{Frame, PageReply, PageResult};
use super::labels;
use super::menu::Section;
use super::pager::Pager;
use super::words;
use askama::Template;
use penstock_auth::accounts::{AccountEdit, NewAccount, NewPassword};
use penstock_auth::{Account, AccountSource, Authorized};
use penstock_base::error::{ErrorClass, Finding, GatewayError};
use penstock_base::json::Json;
use penstock_http::caller::caller;
use penstock_http::parameters::page_of;
use penstock_http::path::path_parameter;
use penstock_http::problem::Problem;
use penstock_http::query::{Query, UuidCursor};
use penstock_http::state::gateway;
use penstock_service::accounts::{self, find_account};
use penstock_service::api_keys::list_keys;
use penstock_service::gateway::Gateway;
use salvo::{Depot, Request, handler};
use std::sync::Arc;

/// Rows of one page.
const ROWS_PER_PAGE: usize = 50;
/// The choices of the role.
const ROLES: [(&str, &str); 3] = [
    ("User", "User: reads everything except users, audit trail and settings"),
    ("Contributor", "Contributor: also ingests, exports, and manages namespaces"),
    ("Admin", "Admin: may do everything"),
];
/// The fields that can have errors.
pub(super) const FIELDS: &[&str] = &[
    "givenName",
    "familyName",
    "email",
    "organization",
    "roles",
    "enabled",
    "password",
    "currentPassword",
    "again",
];

#[derive(Template)]
#[template(path = "admin/users.html")]
struct List {
    frame: Frame,
    rows: Vec<Arc<Account>>,
    pager: Pager,
    /// The provider where users sign in, if it is not this gateway.
    provider: Option<String>,
}

#[derive(Template)]
#[template(path = "admin/user_new.html")]
struct Creation {
    frame: Frame,
    faults: FormErrors,
    filled: Form,
    roles: [(&'static str, &'static str); 3],
}

#[derive(Template)]
#[template(path = "admin/user.html")]
struct One {
    frame: Frame,
    faults: FormErrors,
    account: Arc<Account>,
    filled: Form,
    roles: [(&'static str, &'static str); 3],
}

#[derive(Template)]
#[template(path = "admin/user_delete.html")]
struct Deletion {
    frame: Frame,
    account: Arc<Account>,
    keys: String,
}

/// Fills the form of an account with its values.
pub(super) fn fill_form(account: &Account) -> Form {
    Form::with_values([
        ("givenName", account.given_name.clone()),
        ("familyName", account.family_name.clone()),
        ("email", Some(account.email.clone())),
        ("organization", account.organization.clone()),
        ("roles", Some(account.role.name().to_owned())),
        ("enabled", account.enabled.then(String::new)),
        ("version", Some(account.version.to_string())),
    ])
}

/// Reads the fields of an account's form.
fn read_members(form: &Form) -> Vec<(String, Json)> {
    let mut members = form.to_members(&["givenName", "familyName", "email", "organization"]);
    let role = form.trimmed("roles").unwrap_or_default();
    members.push(("roles".to_owned(), Json::Array(vec![Json::String(role)])));
    members.push(("enabled".to_owned(), Json::Bool(form.is_ticked("enabled"))));
    members
}

/// Sets the password of an account to the one in the form. Both entries of it must match.
pub(super) async fn set_password_from_form(
    gateway: &Gateway,
    by: &Authorized,
    account: &Account,
    form: &Form,
) -> Result<(), GatewayError> {
    let mut members = vec![("password".to_owned(), Json::String(form.text("password")))];
    if form.is_ticked("currentPassword") {
        let current = Json::String(form.text("currentPassword"));
        members.push(("currentPassword".to_owned(), current));
    }
    let new = NewPassword::from_value(Json::Object(members), &account.email)?;
    if form.text("again") != new.password {
        let finding =
            Finding::at_pointer("/again", "the passwords do not match; type the new one twice");
        return Err(GatewayError::with_findings(ErrorClass::Invalid, NOT_SAVED, vec![finding]));
    }
    accounts::set_password(gateway, by, account, new).await
}

/// Returns the account that the path names.
fn read_account(req: &Request, depot: &Depot) -> Result<Arc<Account>, Problem> {
    Ok(find_account(&gateway(depot)?, caller(depot), path_parameter(req, "id"))?)
}

fn page_path(account: &Account) -> String {
    format!("/admin/users/{}", account.id)
}

/// Shows the list.
#[handler]
pub(crate) async fn list_users(req: &mut Request, depot: &mut Depot) -> PageResult {
    let query = Query::read(req, &["cursor"])?;
    let (after, gateway) = (query.read_cursor::<UuidCursor>()?, gateway(depot)?);
    let accounts =
        accounts::list_accounts(&gateway, caller(depot), after.as_deref(), ROWS_PER_PAGE + 1)?;
    let frame = Frame::new(req, depot, Section::Users);
    let key = |account: &Arc<Account>| account.id.clone();
    let page = page_of(accounts, ROWS_PER_PAGE, key);
    Ok(PageReply::show(&List {
        pager: Pager::for_query(&frame, "/admin/users", &query, page.next.as_deref()),
        rows: page.items,
        provider: gateway.auth.oidc.as_ref().map(|oidc| oidc.registration().to_owned()),
        frame,
    }))
}

/// Shows the form for a new account.
#[handler]
pub(crate) async fn show_new_user(req: &mut Request, depot: &mut Depot) -> PageResult {
    Query::read(req, &[])?;
    if !gateway(depot)?.auth.accounts.allows_password_sign_in() {
        return Err(Problem::not_found(
            "users sign in at the identity provider; their accounts are created at the first sign-in",
        ));
    }
    let filled =
        Form::with_values([("roles", Some("User".to_owned())), ("enabled", Some(String::new()))]);
    Ok(build_new_user_page(req, depot, filled, FormErrors::default()))
}

fn build_new_user_page(
    req: &Request,
    depot: &Depot,
    filled: Form,
    faults: FormErrors,
) -> PageReply {
    let frame = Frame::new(req, depot, Section::Users);
    let status = faults.status;
    PageReply::show_with_status(status, &Creation { frame, faults, filled, roles: ROLES })
}

/// Creates an account.
#[handler]
pub(crate) async fn create_user(req: &mut Request, depot: &mut Depot) -> PageResult {
    let (form, gateway) = (take_form(depot), gateway(depot)?);
    let mut members = read_members(&form);
    members.push(("password".to_owned(), Json::String(form.text("password"))));
    let created = async {
        let new = NewAccount::from_value(Json::Object(members))?;
        accounts::create_account(&gateway, caller(depot), new).await
    };
    Ok(match created.await {
        Ok(account) => {
            let words = format!("The account {} was created.", account.email);
            PageReply::redirect("/admin/users", words)
        }
        Err(error) => build_new_user_page(req, depot, form, FormErrors::from_error(error, FIELDS)),
    })
}

/// Shows one account.
#[handler]
pub(crate) async fn show_user(req: &mut Request, depot: &mut Depot) -> PageResult {
    Query::read(req, &[])?;
    let account = read_account(req, depot)?;
    let filled = fill_form(&account);
    Ok(build_user_page(req, depot, account, filled, FormErrors::default()))
}

fn build_user_page(
    req: &Request,
    depot: &Depot,
    account: Arc<Account>,
    filled: Form,
    faults: FormErrors,
) -> PageReply {
    let frame = Frame::new(req, depot, Section::Users);
    let status = faults.status;
    let page = One { frame, faults, account, filled, roles: ROLES };
    PageReply::show_with_status(status, &page)
}

/// Changes an account. Of an identity provider's account only `enabled` can be changed here.
#[handler]
pub(crate) async fn change_user(req: &mut Request, depot: &mut Depot) -> PageResult {
    let (form, gateway) = (take_form(depot), gateway(depot)?);
    let account = read_account(req, depot)?;
    let changed = async {
        let edit = if account.source() == AccountSource::BuiltIn {
            AccountEdit::from_value(Json::Object(read_members(&form)))?
        } else {
            let enabled = Some(form.is_ticked("enabled"));
            AccountEdit { enabled, ..AccountEdit::unchanged_from(&account) }
        };
        let if_match = form.if_match();
        accounts::change_account(&gateway, caller(depot), &account.id, if_match, edit).await
    };
    Ok(match changed.await {
        Ok(account) => {
            let words = format!("The account {} was changed.", account.email);
            PageReply::redirect(page_path(&account), words)
        }
        Err(mut error) => {
            if error.class == ErrorClass::PreconditionFailed {
                error.detail = describe_conflict("account");
            }
            build_user_page(req, depot, account, form, FormErrors::from_error(error, FIELDS))
        }
    })
}

/// Sets the password of another account. The caller's own is set on the profile page.
#[handler]
pub(crate) async fn set_password(req: &mut Request, depot: &mut Depot) -> PageResult {
    let (form, gateway) = (take_form(depot), gateway(depot)?);
    let account = read_account(req, depot)?;
    Ok(match set_password_from_form(&gateway, caller(depot), &account, &form).await {
        Ok(()) => {
            let words =
                format!("The password of {} was set, and its sessions were ended.", account.email);
            PageReply::redirect(page_path(&account), words)
        }
        Err(error) => {
            let (filled, faults) = (fill_form(&account), FormErrors::from_error(error, FIELDS));
            build_user_page(req, depot, account, filled, faults)
        }
    })
}

/// Asks for confirmation before an account is deleted.
#[handler]
pub(crate) async fn confirm_deletion(req: &mut Request, depot: &mut Depot) -> PageResult {
    Query::read(req, &[])?;
    let account = read_account(req, depot)?;
    let keys = list_keys(&gateway(depot)?, caller(depot), None, usize::MAX);
    let keys = keys.iter().filter(|key| key.owner.as_ref() == Some(&account.id)).count();
    Ok(PageReply::show(&Deletion {
        frame: Frame::new(req, depot, Section::Users),
        account,
        keys: words::format_count(keys as u64, "API key", "API keys"),
    }))
}

/// Deletes an account.
#[handler]
pub(crate) async fn delete_user(req: &mut Request, depot: &mut Depot) -> PageResult {
    let (form, gateway) = (take_form(depot), gateway(depot)?);
    let account = read_account(req, depot)?;
    Ok(
        match accounts::delete_account(&gateway, caller(depot), &account.id, form.if_match()).await
        {
            Ok(()) => {
                let words = format!("The account {} was deleted.", account.email);
                PageReply::redirect("/admin/users", words)
            }
            Err(error) => PageReply::redirect_with_error(page_path(&account), error.detail),
        },
    )
}
