//! `/admin/users`: the accounts.
use super::form::{Form, FormErrors, take_form};
use super::frame::{self, Frame, Section};
use super::pager::Pager;
use super::words;
use askama::Template;
use penstock_api::users::{
    change_account, create_account, delete_account, find_account, set_password,
};
use penstock_auth::accounts::{AccountEdit, NewAccount, NewPassword};
use penstock_auth::{Account, AccountSource, Role};
use penstock_base::IfMatch;
use penstock_http::caller::caller;
use penstock_http::problem::Problem;
use penstock_http::query::{Query, truncate_page};
use penstock_http::state::gateway;
use salvo::{Depot, Request, Response, handler};
use serde_json::json;

/// Rows of one page.
const ROWS_PER_PAGE: usize = 50;
/// The choices of the role.
const ROLES: [(&str, &str); 3] = [
    ("User", "User: reads everything except users, audit trail and settings"),
    ("Contributor", "Contributor: also ingests, exports, and manages namespaces"),
    ("Admin", "Admin: may do everything"),
];

#[derive(Template)]
#[template(path = "admin/users.html")]
struct List {
    frame: Frame,
    rows: Vec<Shown>,
    pager: Pager,
    /// The provider where users sign in, if it is not this gateway.
    provider: Option<String>,
}

#[derive(Template)]
#[template(path = "admin/user_new.html")]
struct Creation {
    frame: Frame,
    faults: FormErrors,
    filled: AccountFields,
    roles: [(&'static str, &'static str); 3],
}

#[derive(Template)]
#[template(path = "admin/user.html")]
struct One {
    frame: Frame,
    faults: FormErrors,
    shown: Shown,
    filled: AccountFields,
    roles: [(&'static str, &'static str); 3],
    version: u64,
}

#[derive(Template)]
#[template(path = "admin/user_delete.html")]
struct Deletion {
    frame: Frame,
    shown: Shown,
    version: u64,
    keys: String,
}

/// An account in a list or on its page.
pub(super) struct Shown {
    pub(super) id: String,
    pub(super) name: String,
    pub(super) given_name: String,
    pub(super) family_name: String,
    pub(super) email: String,
    pub(super) organization: String,
    pub(super) role: Role,
    pub(super) is_service_account: bool,
    pub(super) is_enabled: bool,
    pub(super) is_built_in: bool,
    pub(super) source: &'static str,
    pub(super) first_login: String,
    pub(super) last_login: String,
    pub(super) created: String,
    /// Its subject at its provider, and the issuer.
    pub(super) identity: Option<(String, String)>,
    pub(super) client_id: Option<String>,
}

impl From<&Account> for Shown {
    fn from(account: &Account) -> Self {
        let text = |value: &Option<String>| value.clone().unwrap_or_default();
        let time = |at: &Option<String>| {
            at.as_deref().map_or_else(|| "never".into(), words::format_minute)
        };
        Self {
            id: account.id.clone(),
            name: words::display_name(account),
            given_name: text(&account.given_name),
            family_name: text(&account.family_name),
            email: account.email.clone(),
            organization: text(&account.organization),
            role: account.role,
            is_service_account: account.is_service_account(),
            is_enabled: account.enabled,
            is_built_in: account.source() == AccountSource::BuiltIn,
            source: match account.source() {
                AccountSource::BuiltIn => "Built in",
                AccountSource::OpenIdConnect => "OpenID Connect",
                AccountSource::ServiceAccount => "Access token",
            },
            first_login: time(&account.first_login),
            last_login: time(&account.last_login),
            created: words::format_minute(&account.created_at),
            identity: account
                .identity
                .as_ref()
                .map(|identity| (identity.name.clone(), identity.issuer.clone())),
            client_id: account.client_id.clone(),
        }
    }
}

/// The values in the fields of an account's form.
#[derive(Default)]
pub(super) struct AccountFields {
    pub(super) given_name: String,
    pub(super) family_name: String,
    pub(super) email: String,
    pub(super) organization: String,
    pub(super) role: String,
    pub(super) enabled: bool,
}

impl From<&Account> for AccountFields {
    fn from(account: &Account) -> Self {
        let text = |value: &Option<String>| value.clone().unwrap_or_default();
        Self {
            given_name: text(&account.given_name),
            family_name: text(&account.family_name),
            email: account.email.clone(),
            organization: text(&account.organization),
            role: account.role.name().to_owned(),
            enabled: account.enabled,
        }
    }
}

impl From<&Form> for AccountFields {
    fn from(form: &Form) -> Self {
        let text = |name| form.trimmed(name).unwrap_or_default();
        Self {
            given_name: text("givenName"),
            family_name: text("familyName"),
            email: text("email"),
            organization: text("organization"),
            role: text("roles"),
            enabled: form.is_ticked("enabled"),
        }
    }
}

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
];

/// Returns the body that the API expects: these fields, and with `is_whole` also the role and `enabled`.
pub(super) fn account_body(form: &Form, names: &[&str], is_whole: bool) -> Vec<u8> {
    let mut members = form.to_members(names);
    if is_whole {
        members.insert("roles".into(), json!([form.trimmed("roles").unwrap_or_default()]));
        members.insert("enabled".into(), json!(form.is_ticked("enabled")));
    }
    serde_json::Value::Object(members).to_string().into_bytes()
}

/// Reads the new password from the form. Both entries of it must match.
pub(super) fn read_new_password(form: &Form, account: &Account) -> Result<NewPassword, FormErrors> {
    let (typed, again) = (form.text("password"), form.text("again"));
    let mut members = serde_json::Map::new();
    members.insert("password".into(), typed.clone().into());
    if form.is_ticked("currentPassword") {
        members.insert("currentPassword".into(), form.text("currentPassword").into());
    }
    let body = serde_json::Value::Object(members).to_string();
    let read = NewPassword::from_json(body.as_bytes(), &account.email);
    let new = read.map_err(|error| FormErrors::from_problem(&error.into(), FIELDS))?;
    if typed != again {
        return Err(FormErrors::for_field(
            "again",
            "the passwords do not match; type the new one twice",
        ));
    }
    Ok(new)
}

/// Returns the condition that the account still has the version with which the form was loaded.
fn read_version(form: &Form) -> IfMatch {
    let version = form.trimmed("version").and_then(|version| version.parse().ok());
    version.map_or(IfMatch::Any, IfMatch::Version)
}

/// Shows the list.
#[handler]
pub(crate) async fn list(
    req: &mut Request,
    depot: &mut Depot,
    res: &mut Response,
) -> Result<(), Problem> {
    let query = Query::read(req, &["cursor"])?;
    let after = query.read_uuid_cursor()?;
    let auth = gateway(depot)?.auth;
    let mut accounts = auth.accounts.list(after.as_deref(), ROWS_PER_PAGE + 1)?;
    let next = truncate_page(&mut accounts, ROWS_PER_PAGE, |account| &account.id);
    let frame = Frame::for_caller(req, depot, res, Section::Users);
    let page = List {
        rows: accounts.iter().map(|account| Shown::from(&**account)).collect(),
        pager: Pager::new(&frame, "/admin/users", &[], after.is_none(), next.as_deref()),
        provider: auth.oidc.as_ref().map(|oidc| oidc.registration().to_owned()),
        frame,
    };
    frame::show_page(res, depot, &page);
    Ok(())
}

/// Shows the form for a new account.
#[handler]
pub(crate) async fn creation(
    req: &mut Request,
    depot: &mut Depot,
    res: &mut Response,
) -> Result<(), Problem> {
    Query::read(req, &[])?;
    if !gateway(depot)?.auth.accounts.allows_password_sign_in() {
        return Err(Problem::not_found(
            "users sign in at the identity provider; their accounts are created at the first sign-in",
        ));
    }
    let filled =
        AccountFields { role: "User".to_owned(), enabled: true, ..AccountFields::default() };
    render_new_user(req, depot, res, FormErrors::default(), filled);
    Ok(())
}

fn render_new_user(
    req: &Request,
    depot: &Depot,
    res: &mut Response,
    faults: FormErrors,
    filled: AccountFields,
) {
    let frame = Frame::for_caller(req, depot, res, Section::Users);
    let status = faults.status;
    frame::show_page_with_status(
        res,
        depot,
        status,
        &Creation { frame, faults, filled, roles: ROLES },
    );
}

/// Creates an account.
#[handler]
pub(crate) async fn create(
    req: &mut Request,
    depot: &mut Depot,
    res: &mut Response,
) -> Result<(), Problem> {
    let (form, gateway) = (take_form(depot), gateway(depot)?);
    let filled = AccountFields::from(&form);
    let names = ["givenName", "familyName", "email", "organization"];
    let mut sent = form.to_members(&names);
    sent.insert("password".into(), form.text("password").into());
    sent.insert("roles".into(), json!([filled.role]));
    sent.insert("enabled".into(), json!(filled.enabled));
    let sent = serde_json::Value::Object(sent).to_string();
    let made = match NewAccount::from_json(sent.as_bytes()) {
        Ok(new) => create_account(&gateway, caller(depot), new).await,
        Err(error) => Err(error.into()),
    };
    match made {
        Ok(account) => {
            let words = format!("The account {} was created.", account.email);
            frame::redirect_with_notice(res, depot, "/admin/users", &words);
        }
        Err(problem) => {
            render_new_user(req, depot, res, FormErrors::from_problem(&problem, FIELDS), filled);
        }
    }
    Ok(())
}

/// Shows one account.
#[handler]
pub(crate) async fn one(
    req: &mut Request,
    depot: &mut Depot,
    res: &mut Response,
) -> Result<(), Problem> {
    Query::read(req, &[])?;
    let account = find_account(req, &gateway(depot)?)?;
    let filled = AccountFields::from(&*account);
    render_user((req, depot, res), &account, filled, FormErrors::default());
    Ok(())
}

fn render_user(
    (req, depot, res): (&Request, &Depot, &mut Response),
    account: &Account,
    filled: AccountFields,
    faults: FormErrors,
) {
    let frame = Frame::for_caller(req, depot, res, Section::Users);
    let status = faults.status;
    let page = One {
        frame,
        faults,
        shown: Shown::from(account),
        filled,
        roles: ROLES,
        version: account.version,
    };
    frame::show_page_with_status(res, depot, status, &page);
}

/// Changes an account. Of an identity provider's account only `enabled` can be changed here.
#[handler]
pub(crate) async fn change(
    req: &mut Request,
    depot: &mut Depot,
    res: &mut Response,
) -> Result<(), Problem> {
    let (form, gateway) = (take_form(depot), gateway(depot)?);
    let account = find_account(req, &gateway)?;
    let is_built_in = account.source() == AccountSource::BuiltIn;
    let names = ["givenName", "familyName", "email", "organization"];
    let edit = if is_built_in {
        AccountEdit::from_json(&account_body(&form, &names, true)).map_err(Problem::from)
    } else {
        Ok(AccountEdit {
            enabled: Some(form.is_ticked("enabled")),
            ..AccountEdit::unchanged_from(&account)
        })
    };
    let changed = match edit {
        Ok(edit) => {
            change_account(&gateway, caller(depot), &account.id, read_version(&form), edit).await
        }
        Err(problem) => Err(problem),
    };
    match changed {
        Ok(account) => {
            let words = format!("The account {} was changed.", account.email);
            frame::redirect_with_notice(
                res,
                depot,
                &format!("/admin/users/{}", account.id),
                &words,
            );
        }
        Err(problem) => {
            let filled = if is_built_in {
                AccountFields::from(&form)
            } else {
                AccountFields {
                    enabled: form.is_ticked("enabled"),
                    ..AccountFields::from(&*account)
                }
            };
            render_user(
                (req, depot, res),
                &account,
                filled,
                FormErrors::from_problem(&problem, FIELDS),
            );
        }
    }
    Ok(())
}

/// Sets the password of another account. The caller's own is set on the profile page.
#[handler]
pub(crate) async fn set(
    req: &mut Request,
    depot: &mut Depot,
    res: &mut Response,
) -> Result<(), Problem> {
    let (form, gateway) = (take_form(depot), gateway(depot)?);
    let account = find_account(req, &gateway)?;
    let done = match read_new_password(&form, &account) {
        Ok(new) => set_password(depot, &gateway, &account, new)
            .await
            .map_err(|problem| FormErrors::from_problem(&problem, FIELDS)),
        Err(faults) => Err(faults),
    };
    match done {
        Ok(()) => {
            let words =
                format!("The password of {} was set, and its sessions were ended.", account.email);
            frame::redirect_with_notice(
                res,
                depot,
                &format!("/admin/users/{}", account.id),
                &words,
            );
        }
        Err(faults) => {
            render_user((req, depot, res), &account, AccountFields::from(&*account), faults);
        }
    }
    Ok(())
}

/// Asks for confirmation before an account is deleted.
#[handler]
pub(crate) async fn deletion(
    req: &mut Request,
    depot: &mut Depot,
    res: &mut Response,
) -> Result<(), Problem> {
    Query::read(req, &[])?;
    let gateway = gateway(depot)?;
    let account = find_account(req, &gateway)?;
    let keys = gateway.auth.keys.list(caller(depot), None, usize::MAX);
    let keys = keys.iter().filter(|key| key.owner.as_ref() == Some(&account.id)).count();
    let page = Deletion {
        frame: Frame::for_caller(req, depot, res, Section::Users),
        shown: Shown::from(&*account),
        version: account.version,
        keys: words::format_count(keys as u64, "API key", "API keys"),
    };
    frame::show_page(res, depot, &page);
    Ok(())
}

/// Deletes an account.
#[handler]
pub(crate) async fn delete(
    req: &mut Request,
    depot: &mut Depot,
    res: &mut Response,
) -> Result<(), Problem> {
    let (form, gateway) = (take_form(depot), gateway(depot)?);
    let account = find_account(req, &gateway)?;
    match delete_account(gateway, caller(depot), &account.id, read_version(&form)).await {
        Ok(()) => {
            let words = format!("The account {} was deleted.", account.email);
            frame::redirect_with_notice(res, depot, "/admin/users", &words);
        }
        Err(problem) => {
            frame::redirect_with_error(
                res,
                depot,
                &format!("/admin/users/{}", account.id),
                problem.detail(),
            );
        }
    }
    Ok(())
}
