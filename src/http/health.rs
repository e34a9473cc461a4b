//! `/health/live` and `/health/ready`.
use super::reply::{Outcome, Reply};
use super::shapes;
use super::state::gateway;
use penstock_base::fault::Fault;
use salvo::Depot;
use salvo::oapi::endpoint;

/// Reports that the process runs.
#[endpoint(
    operation_id = "live",
    tags("Gateway"),
    responses((status_code = 200, description = "The process runs.", body = shapes::Health)),
)]
pub(super) async fn live() -> Outcome {
    Reply::json(&shapes::Health { status: "live" })
}

/// Reports whether the store is open and accepts changes. Targets and identity providers do not count.
#[endpoint(
    operation_id = "ready",
    tags("Gateway"),
    responses((status_code = 200, description = "The gateway is ready.", body = shapes::Health)),
)]
pub(super) async fn ready(depot: &mut Depot) -> Outcome {
    if let Some(cause) = gateway(depot)?.store.poisoned() {
        return Err(Fault::from(penstock_store::Error::Poisoned { cause }).into());
    }
    Reply::json(&shapes::Health { status: "ready" })
}
