//! `/api/v1/status`: how the gateway is.
use super::caller::caller;
use super::query::Query;
use super::reply::{Outcome, Reply};
use super::shapes;
use super::state::{blocking, state};
use penstock_base::Role;
use salvo::oapi::endpoint;
use salvo::{Depot, Request};

/// How the gateway is: everything that whoever looks after many of them asks for.
///
/// The particulars of the log's newest warnings and errors (`fields`) are for Admins.
#[endpoint(
    operation_id = "getStatus",
    tags("Gateway"),
    responses((status_code = 200, description = "How it is.", body = shapes::Status)),
)]
pub(super) async fn get(req: &mut Request, depot: &mut Depot) -> Outcome {
    Query::read(req, &[])?;
    let state = state(depot);
    let mut status = blocking(move || state.status()).await?;
    if caller(depot).role < Role::Admin {
        status.last_errors.iter_mut().for_each(|line| line.fields.clear());
    }
    Reply::json(&status)
}
