//! `/metrics`: the Prometheus text format.
use super::reply::{Outcome, Reply};
use crate::telemetry::metrics::encode;
use salvo::oapi::endpoint;

/// The metrics in the Prometheus text format.
#[endpoint(
    operation_id = "metrics",
    tags("Gateway"),
    responses((status_code = 200, description = "The metrics.", body = String,
        content_type = "application/openmetrics-text")),
)]
pub(super) async fn get() -> Outcome {
    Ok(Reply::bytes("application/openmetrics-text; version=1.0.0; charset=utf-8", encode()))
}
