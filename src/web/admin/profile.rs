//! `/admin/profile`: the caller's own account.
use super::form::{FormErrors, take_form};
use super::frame::{self, Frame, Section};
use super::users::{AccountFields, FIELDS, Shown, account_body, read_new_password};
use askama::Template;
use penstock_api::users::{change_account, own_account, set_password};
use penstock_auth::Account;
use penstock_auth::accounts::AccountEdit;
use penstock_base::IfMatch;
use penstock_http::caller::caller;
use penstock_http::problem::Problem;
use penstock_http::query::Query;
use penstock_http::state::gateway;
use salvo::{Depot, Request, Response, handler};

#[derive(Template)]
#[template(path = "admin/profile.html")]
struct Profile {
    frame: Frame,
    faults: FormErrors,
    shown: Shown,
    filled: AccountFields,
}

/// Shows the page.
#[handler]
pub(crate) async fn get(
    req: &mut Request,
    depot: &mut Depot,
    res: &mut Response,
) -> Result<(), Problem> {
    Query::read(req, &[])?;
    let account = own_account(depot)?;
    let filled = AccountFields::from(&*account);
    render_profile((req, depot, res), &account, filled, FormErrors::default());
    Ok(())
}

fn render_profile(
    (req, depot, res): (&Request, &Depot, &mut Response),
    account: &Account,
    filled: AccountFields,
    faults: FormErrors,
) {
    let frame = Frame::for_caller(req, depot, res, Section::Profile);
    let status = faults.status;
    let page = Profile { frame, faults, shown: Shown::from(account), filled };
    frame::show_page_with_status(res, depot, status, &page);
}

/// Changes the caller's own names and organization.
#[handler]
pub(crate) async fn change(
    req: &mut Request,
    depot: &mut Depot,
    res: &mut Response,
) -> Result<(), Problem> {
    let (form, gateway) = (take_form(depot), gateway(depot)?);
    let account = own_account(depot)?;
    let names = ["givenName", "familyName", "organization"];
    let changed = match AccountEdit::from_json(&account_body(&form, &names, false)) {
        Ok(edit) => change_account(&gateway, caller(depot), &account.id, IfMatch::Any, edit).await,
        Err(error) => Err(error.into()),
    };
    match changed {
        Ok(_) => {
            frame::redirect_with_notice(res, depot, "/admin/profile", "Your profile was changed.");
        }
        Err(problem) => {
            let filled =
                AccountFields { email: account.email.clone(), ..AccountFields::from(&form) };
            render_profile(
                (req, depot, res),
                &account,
                filled,
                FormErrors::from_problem(&problem, FIELDS),
            );
        }
    }
    Ok(())
}

/// Sets the caller's own password.
#[handler]
pub(crate) async fn set(
    req: &mut Request,
    depot: &mut Depot,
    res: &mut Response,
) -> Result<(), Problem> {
    let (form, gateway) = (take_form(depot), gateway(depot)?);
    let account = own_account(depot)?;
    let done = match read_new_password(&form, &account) {
        Ok(new) => set_password(depot, &gateway, &account, new)
            .await
            .map_err(|problem| FormErrors::from_problem(&problem, FIELDS)),
        Err(faults) => Err(faults),
    };
    match done {
        Ok(()) => {
            let words = "Your password was changed; your other sessions have ended.";
            frame::redirect_with_notice(res, depot, "/admin/profile", words);
        }
        Err(faults) => {
            render_profile((req, depot, res), &account, AccountFields::from(&*account), faults);
        }
    }
    Ok(())
}
