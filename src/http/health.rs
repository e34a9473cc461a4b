//! `/health/live` and `/health/ready`.
use super::problem::Problem;
use super::reply::{Outcome, Reply};
use super::shapes;
use super::state::gateway;
use salvo::Depot;
use salvo::oapi::endpoint;

/// The process lives.
#[endpoint(
    operation_id = "live",
    tags("Gateway"),
    responses((status_code = 200, description = "It lives.", body = shapes::Health)),
)]
pub(super) async fn live() -> Outcome {
    Reply::json(&shapes::Health { status: "live" })
}

/// The store is open and takes changes. Targets and identity providers have no say in it.
#[endpoint(
    operation_id = "ready",
    tags("Gateway"),
    responses((status_code = 200, description = "It is ready.", body = shapes::Health)),
)]
pub(super) async fn ready(depot: &mut Depot) -> Outcome {
    if let Some(cause) = gateway(depot)?.store.poisoned() {
        tracing::error!(cause, "The gateway is not ready: the store takes no changes.");
        return Err(Problem::unavailable(
            30,
            "the store takes no changes since a write to the disk failed; mend the disk and restart \
             the gateway, whose log says why",
        ));
    }
    Reply::json(&shapes::Health { status: "ready" })
}
