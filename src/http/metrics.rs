//! `/metrics`: the text format that Prometheus reads.
use super::reply::{Outcome, Reply};
use super::state::{blocking, state};
use crate::clock::is_synchronised;
use crate::disk;
use crate::export::TargetState;
use crate::gateway::Gateway;
use crate::telemetry::metrics::{self, CONTENT_TYPE, Gauges, TargetGauges, encode};
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
    let (stats, room) = (gateway.store.stats(), gateway.exporter.room());
    Ok(Gauges {
        quads: stats.quads,
        sequence: stats.sequence,
        journal_bytes: stats.journal_bytes,
        index_bytes: stats.index_bytes,
        write_back_bytes: stats.write_back_bytes,
        disk_free_bytes: disk::free(&gateway.settings.data_dir).unwrap_or_default(),
        disk_in_reserve: gateway.disk.is_in_reserve(),
        memory_limit_bytes: gateway.memory.limit().unwrap_or_default(),
        memory_level: gateway.memory.level() as u8,
        clock_synchronised: is_synchronised(),
        certificate_expiry_seconds: metrics::certificate_end(),
        spool_bytes: (room.waiting, room.limit),
        parked: room.parked,
        waiting: gateway.exporter.waiting(),
        poisoned: gateway.store.poisoned().is_some(),
        targets: gateway.exporter.targets()?.into_iter().map(target).collect(),
    })
}

fn target(state: TargetState) -> TargetGauges {
    let moment = |at: Option<String>| at.and_then(|at| at.parse::<Timestamp>().ok());
    let age = u32::try_from(state.oldest_age_seconds.unwrap_or_default()).unwrap_or(u32::MAX);
    TargetGauges {
        name: state.name,
        depth: state.depth,
        waiting: state.waiting,
        bytes: state.bytes,
        oldest_age_seconds: f64::from(age),
        blocked: state.blocked.is_some(),
        attempts: state.attempts,
        last_delivery_seconds: moment(state.last_delivery)
            .map_or(0.0, |at| at.as_duration().as_secs_f64()),
    }
}
