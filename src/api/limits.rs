//! `/api/v1/limits`: the limits for requests.
use penstock_http::access::MinimumRole::User;
use penstock_http::call::Call;
use penstock_http::operation::{Operation, get};
use penstock_http::reply::{Reply, ReplyResult};
use penstock_resources::gateway::Limits;
use penstock_service::limits::describe_limits;

/// Returns the operations.
pub(super) fn operations() -> Vec<Operation> {
    vec![
        get("/api/v1/limits", User, get_limits)
            .describe(
                "getLimits",
                "Gateway",
                "Returns the limits for requests (`service.limits.*`).",
            )
            .answer::<Limits>(200, "The limits.")
            .problems(&[400]),
    ]
}

async fn get_limits(call: Call<'_>) -> ReplyResult {
    Reply::json(&describe_limits(&call.state().settings().limits))
}
