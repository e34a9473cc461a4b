//! `/admin/profile`: the caller's own account.
use super::form::{Form, FormErrors, take_form};
use super::frame::{Frame, PageReply, PageResult};
use super::menu::Section;
use super::users::{FIELDS, fill_form, set_password_from_form};
use super::{labels, words};
use askama::Template;
use penstock_auth::accounts::AccountEdit;
use penstock_auth::{Account, AccountSource};
use penstock_base::IfMatch;
use penstock_base::json::Json;
use penstock_http::caller::caller;
use penstock_http::query::Query;
use penstock_http::state::gateway;
use penstock_service::accounts::{change_own_account, find_own_account};
use salvo::{Depot, Request, handler};
use std::sync::Arc;

#[derive(Template)]
#[template(path = "admin/profile.html")]
struct Profile {
    frame: Frame,
    faults: FormErrors,
    account: Arc<Account>,
    filled: Form,
}

/// Shows the page.
#[handler]
pub(crate) async fn show_profile(req: &mut Request, depot: &mut Depot) -> PageResult {
    Query::read(req, &[])?;
    let account = find_own_account(caller(depot))?;
    let filled = fill_form(&account);
    Ok(build_profile_page(req, depot, account, filled, FormErrors::default()))
}

fn build_profile_page(
    req: &Request,
    depot: &Depot,
    account: Arc<Account>,
    filled: Form,
    faults: FormErrors,
) -> PageReply {
    let frame = Frame::new(req, depot, Section::Profile);
    let status = faults.status;
    PageReply::show_with_status(status, &Profile { frame, faults, account, filled })
}

/// Changes the caller's own names and organization.
#[handler]
pub(crate) async fn change_profile(req: &mut Request, depot: &mut Depot) -> PageResult {
    let (form, gateway) = (take_form(depot), gateway(depot)?);
    let account = find_own_account(caller(depot))?;
    let changed = async {
        let members = form.to_members(&["givenName", "familyName", "organization"]);
        let edit = AccountEdit::from_value(Json::Object(members))?;
        change_own_account(&gateway, caller(depot), IfMatch::Any, edit).await
    };
    Ok(match changed.await {
        Ok(_) => PageReply::redirect("/admin/profile", "Your profile was changed."),
        Err(error) => {
            build_profile_page(req, depot, account, form, FormErrors::from_error(error, FIELDS))
        }
    })
}

/// Sets the caller's own password.
#[handler]
pub(crate) async fn set_password(req: &mut Request, depot: &mut Depot) -> PageResult {
    let (form, gateway) = (take_form(depot), gateway(depot)?);
    let account = find_own_account(caller(depot))?;
    Ok(match set_password_from_form(&gateway, caller(depot), &account, &form).await {
        Ok(()) => {
            let words = "Your password was changed; your other sessions have ended.";
            PageReply::redirect("/admin/profile", words)
        }
        Err(error) => {
            let (filled, faults) = (fill_form(&account), FormErrors::from_error(error, FIELDS));
            build_profile_page(req, depot, account, filled, faults)
        }
    })
}
