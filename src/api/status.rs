//! `/api/v1/status`: the gateway's status.
use crate::shapes;
use penstock_http::caller::caller;
use penstock_http::query::Query;
use penstock_http::reply::{Reply, ReplyResult};
use penstock_http::state::state;
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
    let status = state(depot).collect_status(caller(depot)).await?;
    Reply::json(&shapes::Status::from(status))
}
