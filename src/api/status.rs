//! `/api/v1/status`: the gateway's status. Heartbeats have it too.
use penstock_auth::Authorized;
use penstock_http::access::MinimumRole::User;
use penstock_http::call::Call;
use penstock_http::operation::{Operation, get};
use penstock_http::problem::Problem;
use penstock_http::reply::{Reply, ReplyResult};
use penstock_http::state::State;
use penstock_resources::gateway::{Heartbeat, HeartbeatTimes, Status};

/// Returns the operations.
pub(super) fn operations() -> Vec<Operation> {
    vec![
        get("/api/v1/status", User, get_status)
            .describe(
                "getStatus",
                "Gateway",
                "Returns the gateway's status: everything that monitoring of many gateways needs.\n\nOnly Admins see \
                 the fields (`fields`) of recent warnings and errors.",
            )
            .answer::<Status>(200, "The status.")
            .problems(&[400]),
    ]
}

async fn get_status(call: Call<'_>) -> ReplyResult {
    Reply::json(&call.state().collect_status(call.caller()).await?)
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
    let document = Heartbeat { heartbeat: times, status: state.collect_status(by).await? };
    Ok(serialize_heartbeat(&document))
}

fn serialize_heartbeat(document: &Heartbeat) -> String {
    serde_json::to_string(document).expect("a status has only string keys")
}
