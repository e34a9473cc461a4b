//! `/metrics`: the text format that Prometheus reads.
use super::reply::{Outcome, Reply};
use super::state::{blocking, state};
use crate::disk;
use crate::export::TargetState;
use crate::gateway::Gateway;
use crate::telemetry::metrics::{CONTENT_TYPE, Gauges, TargetGauges, encode};
use jiff::Timestamp;
use salvo::Depot;
use salvo::oapi::endpoint;

/// The metrics in the text format of `OpenMetrics`, which Prometheus reads.
#[endpoint(
    operation_id = "metrics",
    tags("Gateway"),
    responses((status_code = 200, description = "The metrics.", body = String,
        content_type = "application/openmetrics-text")),
)]
pub(super) async fn get(depot: &mut Depot) -> Outcome {
    let state = state(depot);
    // What is counted is told even while the store is being opened.
    let text = blocking(move || {
        let gauges = state.gateway().map_or_else(|_| Ok(Gauges::default()), gauges)?;
        Ok(encode(&gauges))
    });
    Ok(Reply::bytes(CONTENT_TYPE, text.await?))
}

fn gauges(gateway: &Gateway) -> Result<Gauges, super::problem::Problem> {
    let stats = gateway.store.stats();
    Ok(Gauges {
        quads: stats.quads,
        sequence: stats.sequence,
        journal_bytes: stats.journal_bytes,
        index_bytes: stats.index_bytes,
        write_back_bytes: stats.write_back_bytes,
        disk_free_bytes: disk::free(&gateway.settings.data_dir).unwrap_or_default(),
        disk_in_reserve: gateway.disk.is_in_reserve(),
        poisoned: gateway.store.poisoned().is_some(),
        targets: gateway.exporter.targets()?.into_iter().map(target).collect(),
    })
}

fn target(state: TargetState) -> TargetGauges {
    let moment = |at: Option<String>| at.and_then(|at| at.parse::<Timestamp>().ok());
    let age = moment(state.oldest)
        .map_or(0.0, |at| (Timestamp::now() - at).total(jiff::Unit::Second).unwrap_or(0.0));
    TargetGauges {
        name: state.name,
        depth: state.depth,
        bytes: state.bytes,
        oldest_age_seconds: age.max(0.0),
        blocked: state.blocked.is_some(),
        attempts: state.attempts,
        last_delivery_seconds: moment(state.last_delivery)
            .map_or(0.0, |at| at.as_duration().as_secs_f64()),
    }
}
