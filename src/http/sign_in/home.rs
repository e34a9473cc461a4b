//! `GET /`: who is signed in, and where to go from here.
use super::location;
use super::pages::{Home, redirect, show_with};
use crate::auth::sessions::Sessions;
use crate::http::caller::visitor;
use crate::http::credential;
use crate::http::service::origin;
use crate::http::state::state;
use salvo::http::StatusCode;
use salvo::{Depot, Request, Response, handler};

#[handler]
pub(crate) async fn front(req: &mut Request, depot: &mut Depot, res: &mut Response) {
    let origin = origin(depot);
    let session = credential::session(req, &origin.scheme);
    let caller = visitor(req, depot);
    let (Some(session), Some(caller)) = (session, caller) else {
        return redirect(res, &location(depot, "/"));
    };
    let Some(account) = &caller.account else { return redirect(res, &location(depot, "/")) };
    let names = [account.given_name.as_deref(), account.family_name.as_deref()];
    let name = names.into_iter().flatten().collect::<Vec<_>>().join(" ");
    let csrf = Sessions::csrf(session);
    let page = Home {
        name: if name.is_empty() { &account.email } else { &name },
        email: &account.email,
        organization: account.organization.as_deref(),
        role: &format!("{:?}", caller.role),
        ..Home::new(&origin.prefix, &csrf)
    };
    let state = state(depot);
    let provider = state.gateway().ok().and_then(|gateway| gateway.auth.oidc.as_ref());
    let elsewhere = provider.and_then(|oidc| oidc.sign_out_origin()).unwrap_or_default();
    show_with(res, StatusCode::OK, &page, &elsewhere);
}
