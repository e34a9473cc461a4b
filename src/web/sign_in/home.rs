//! `GET /`: redirects to the administration interface, or to the sign-in.
use super::pages::redirect;
use penstock_http::caller::find_visitor;
use penstock_http::origin::origin;
use penstock_http::return_path::sign_in_location;
use salvo::{Depot, Request, Response, handler};

#[handler]
pub(crate) async fn redirect_home(req: &mut Request, depot: &mut Depot, res: &mut Response) {
    match find_visitor(req, depot) {
        Some(_) => redirect(res, &format!("{}/admin", origin(depot).prefix)),
        None => redirect(res, &sign_in_location(origin(depot), "/")),
    }
}
