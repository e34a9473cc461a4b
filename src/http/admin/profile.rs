//! `/admin/profile`: the caller's own account.
use super::form::{Faults, form};
use super::frame::{self, Frame, Section};
use super::users::{FIELDS, Filled, Shown, body, password};
use crate::caller::caller;
use crate::problem::Problem;
use crate::query::Query;
use crate::state::gateway;
use crate::users::{alter, own, set_password};
use askama::Template;
use penstock_auth::Account;
use penstock_auth::accounts::Edit;
use penstock_base::IfMatch;
use salvo::{Depot, Request, Response, handler};

#[derive(Template)]
#[template(path = "admin/profile.html")]
struct Profile {
    frame: Frame,
    faults: Faults,
    shown: Shown,
    filled: Filled,
}

/// Shows the page.
#[handler]
pub(crate) async fn get(
    req: &mut Request,
    depot: &mut Depot,
    res: &mut Response,
) -> Result<(), Problem> {
    Query::read(req, &[])?;
    let account = own(depot)?;
    let filled = Filled::from(&*account);
    show((req, depot, res), &account, filled, Faults::default());
    Ok(())
}

fn show(
    (req, depot, res): (&Request, &Depot, &mut Response),
    account: &Account,
    filled: Filled,
    faults: Faults,
) {
    let frame = Frame::of(req, depot, res, Section::Profile);
    let status = faults.status;
    let page = Profile { frame, faults, shown: Shown::from(account), filled };
    frame::show_with(res, depot, status, &page);
}

/// Changes the caller's own names and organization.
#[handler]
pub(crate) async fn change(
    req: &mut Request,
    depot: &mut Depot,
    res: &mut Response,
) -> Result<(), Problem> {
    let (form, gateway) = (form(depot), gateway(depot)?);
    let account = own(depot)?;
    let names = ["givenName", "familyName", "organization"];
    let changed = match Edit::read(&body(&form, &names, false)) {
        Ok(edit) => alter(&gateway, caller(depot), &account.id, IfMatch::Any, edit).await,
        Err(fault) => Err(fault.into()),
    };
    match changed {
        Ok(_) => frame::done(res, depot, "/admin/profile", "Your profile was changed."),
        Err(problem) => {
            let filled = Filled { email: account.email.clone(), ..Filled::from(&form) };
            show((req, depot, res), &account, filled, Faults::of(&problem, FIELDS));
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
    let (form, gateway) = (form(depot), gateway(depot)?);
    let account = own(depot)?;
    let done = match password(&form, &account) {
        Ok(new) => set_password(depot, &gateway, &account, new)
            .await
            .map_err(|problem| Faults::of(&problem, FIELDS)),
        Err(faults) => Err(faults),
    };
    match done {
        Ok(()) => {
            let words = "Your password was changed; your other sessions have ended.";
            frame::done(res, depot, "/admin/profile", words);
        }
        Err(faults) => show((req, depot, res), &account, Filled::from(&*account), faults),
    }
    Ok(())
}
