//! `/api/v1/status`: the gateway's status. Heartbeats have it too.
use crate::shapes;
use penstock_auth::Authorized;
use penstock_export::HeartbeatTimes;
use penstock_http::caller::caller;
use penstock_http::problem::Problem;
use penstock_http::query::Query;
use penstock_http::reply::{Reply, ReplyResult};
use penstock_http::state::{State, state};
use salvo::{Depot, Request};
use salvo_oapi::endpoint;

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
    Reply::json(&read_status(&state(depot), caller(depot)).await?)
}

/// Returns the document of a heartbeat: its times, and the status as this caller sees it.
///
/// # Errors
/// The errors of the store; 503 until the gateway is open.
pub async fn render_heartbeat(
    state: &State,
    by: &Authorized,
    times: HeartbeatTimes,
) -> Result<String, Problem> {
    let HeartbeatTimes { at, next_due, interval } = times;
    let heartbeat = shapes::HeartbeatTimes { at, next_due, interval_seconds: interval.as_secs() };
    let document = shapes::Heartbeat { heartbeat, status: read_status(state, by).await? };
    Ok(serialize_heartbeat(&document))
}

fn serialize_heartbeat(document: &shapes::Heartbeat) -> String {
    serde_json::to_string(document).expect("a status has only string keys")
}

async fn read_status(state: &State, by: &Authorized) -> Result<shapes::Status, Problem> {
    state.collect_status(by).await.map(shapes::Status::from)
}
