//! `/health/live` and `/health/ready`.
use penstock_base::error::GatewayError;
use penstock_http::access::MinimumRole::Anyone;
use penstock_http::call::Call;
use penstock_http::operation::{Operation, get};
use penstock_http::parameters::AnyQuery;
use penstock_http::reply::{Reply, ReplyResult};
use penstock_resources::gateway::Health;

/// Returns the operations.
pub(super) fn operations() -> Vec<Operation> {
    vec![
        get("/health/live", Anyone, get_liveness)
            .describe("live", "Gateway", "Reports that the process runs.")
            .answer::<Health>(200, "The process runs."),
        get("/health/ready", Anyone, get_readiness)
            .describe(
                "ready",
                "Gateway",
                "Reports whether the store is open and no write to it has failed. A full disk does not count, because \
                 reading and deliveries continue; nor do targets and identity providers.",
            )
            .answer::<Health>(200, "The gateway is ready."),
    ]
}

async fn get_liveness(_call: Call<'_>, _query: AnyQuery) -> ReplyResult {
    Reply::json(&Health { status: "live" })
}

async fn get_readiness(call: Call<'_>, _query: AnyQuery) -> ReplyResult {
    if let Some(cause) = call.gateway()?.store.poison_cause() {
        return Err(GatewayError::from(penstock_store::Error::Poisoned { cause }).into());
    }
    Reply::json(&Health { status: "ready" })
}
