//! `/api/v1/status`: the gateway's status.
use crate::shapes;
use penstock_base::Role;
use penstock_http::caller::caller;
use penstock_http::query::Query;
use penstock_http::reply::{Reply, ReplyResult};
use penstock_http::state::{run_blocking, state};
use salvo::oapi::endpoint;
use salvo::{Depot, Request};

/// Returns the gateway's status: everything that monitoring of many gateways needs.
///
/// Only Admins see the fields (`fields`) of recent warnings and errors.
#[endpoint(
    operation_id = "getStatus",
    tags("Gateway"),
    responses((status_code = 200, description = "The status.", body = shapes::Status)),
)]
pub(super) async fn get_status(req: &mut Request, depot: &mut Depot) -> ReplyResult {
    Query::read(req, &[])?;
    let state = state(depot);
    let mut status = run_blocking(move || state.status()).await?;
    if caller(depot).role < Role::Admin {
        status.last_errors.iter_mut().for_each(|line| line.fields.clear());
    }
    Reply::json(&status)
}
