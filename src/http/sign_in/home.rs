//! `GET /`: redirects to the administration interface, or to the sign-in.
use super::location;
use super::pages::redirect;
use crate::caller::visitor;
use crate::service::origin;
use salvo::{Depot, Request, Response, handler};

#[handler]
pub(crate) async fn front(req: &mut Request, depot: &mut Depot, res: &mut Response) {
    match visitor(req, depot) {
        Some(_) => redirect(res, &format!("{}/admin", origin(depot).prefix)),
        None => redirect(res, &location(depot, "/")),
    }
}
