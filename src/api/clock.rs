//! `/control/clock`, only over the control socket: the gateway's clock.
use penstock_http::access::MinimumRole::Local;
use penstock_http::call::Call;
use penstock_http::operation::{Operation, get, post};
use penstock_http::reply::{Reply, ReplyResult};
use penstock_service::clock;

/// Returns the operations of the control socket.
pub(super) fn operations() -> Vec<Operation> {
    vec![get("/control/clock", Local, get_clock), post("/control/clock/reset", Local, reset_clock)]
}

/// Returns the state of the clock.
async fn get_clock(call: Call<'_>) -> ReplyResult {
    Reply::json(&call.gateway()?.clock.report())
}

/// Resets the clock: forgets when it was last known to be right.
async fn reset_clock(call: Call<'_>) -> ReplyResult {
    Reply::json(&clock::reset_clock(&call.gateway()?, call.caller()).await?)
}
