//! `GET /`: redirects to the administration interface, or to the sign-in.
use super::pages::redirect;
use super::sign_in_location;
use crate::caller::find_visitor;
use crate::service::origin;
use salvo::{Depot, Request, Response, handler};

#[handler]
pub(crate) async fn front(req: &mut Request, depot: &mut Depot, res: &mut Response) {
    match find_visitor(req, depot) {
        Some(_) => redirect(res, &format!("{}/admin", origin(depot).prefix)),
        None => redirect(res, &sign_in_location(depot, "/")),
    }
}
