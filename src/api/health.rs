//! `/health/live` and `/health/ready`.
use crate::shapes;
use penstock_base::error::GatewayError;
use penstock_http::reply::{Reply, ReplyResult};
use penstock_http::state::gateway;
use salvo::Depot;
use salvo_oapi::endpoint;

/// Reports that the process runs.
#[endpoint(
    operation_id = "live",
    tags("Gateway"),
    responses((status_code = 200, description = "The process runs.", body = shapes::Health)),
)]
pub(super) async fn get_liveness() -> ReplyResult {
    Reply::json(&shapes::Health { status: "live" })
}

/// Reports whether the store is open and accepts changes. Targets and identity providers do not count.
#[endpoint(
    operation_id = "ready",
    tags("Gateway"),
    responses((status_code = 200, description = "The gateway is ready.", body = shapes::Health)),
)]
pub(super) async fn get_readiness(depot: &mut Depot) -> ReplyResult {
    if let Some(cause) = gateway(depot)?.store.poison_cause() {
        return Err(GatewayError::from(penstock_store::Error::Poisoned { cause }).into());
    }
    Reply::json(&shapes::Health { status: "ready" })
}
