//! `/api/v1/limits`: the limits for requests.
use crate::shapes;
use penstock_http::query::Query;
use penstock_http::reply::{Reply, ReplyResult};
use penstock_http::state::state;
use salvo::{Depot, Request};
use salvo_oapi::endpoint;

/// Returns the limits for requests (`service.limits.*`).
#[endpoint(
    operation_id = "getLimits",
    tags("Gateway"),
    responses((status_code = 200, description = "The limits.", body = shapes::Limits)),
)]
pub(super) async fn get_limits(req: &mut Request, depot: &mut Depot) -> ReplyResult {
    Query::read(req, &[])?;
    Reply::json(&shapes::Limits::from(&state(depot).settings().limits))
}
