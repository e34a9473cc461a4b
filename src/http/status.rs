//! `/api/v1/status`: how the gateway is.
use super::problem::Problem;
use super::query::Query;
use super::reply::{Outcome, Reply};
use super::shapes::{QueueStatus, Status, StoreStatus};
use super::state::{State, blocking, gateway, state};
use crate::clock::is_synchronised;
use crate::disk;
use crate::export::TargetState;
use crate::gateway::Gateway;
use crate::telemetry::metrics;
use penstock_store::Stats;
use salvo::oapi::endpoint;
use salvo::{Depot, Request};

/// How the gateway is: what it holds, what waits, and what room is left.
#[endpoint(
    operation_id = "getStatus",
    tags("Gateway"),
    responses((status_code = 200, description = "How it is.", body = Status)),
)]
pub(super) async fn get(req: &mut Request, depot: &mut Depot) -> Outcome {
    Query::read(req, &[])?;
    let (state, gateway) = (state(depot), gateway(depot)?);
    Reply::json(&blocking(move || now(&state, &gateway)).await?)
}

/// How the gateway is now. Blocks.
pub(super) fn now(state: &State, gateway: &Gateway) -> Result<Status, Problem> {
    Ok(Status {
        version: env!("CARGO_PKG_VERSION").to_owned(),
        store: store(gateway.store.stats()),
        queue: queue(gateway.exporter.targets()?),
        gateway_id: gateway.gateway_id.clone(),
        uptime_seconds: state.started.elapsed().as_secs(),
        disk_free_bytes: disk::free(&state.settings.data_dir),
        disk_in_reserve: gateway.disk.is_in_reserve(),
        memory_bytes: metrics::resident_bytes(),
        clock_synchronised: is_synchronised(),
    })
}

fn store(stats: Stats) -> StoreStatus {
    StoreStatus {
        sequence: stats.sequence,
        quads: stats.quads,
        journal_bytes: stats.journal_bytes,
        index_bytes: stats.index_bytes,
        write_back_bytes: stats.write_back_bytes,
    }
}

fn queue(targets: Vec<TargetState>) -> QueueStatus {
    QueueStatus {
        depth: targets.iter().map(|target| target.depth).sum(),
        bytes: targets.iter().map(|target| target.bytes).sum(),
        // RFC 3339 in UTC, all of one form: their order as text is that in time.
        oldest: targets.iter().filter_map(|target| target.oldest.clone()).min(),
        blocked: targets
            .into_iter()
            .filter(|target| target.blocked.is_some())
            .map(|target| target.name)
            .collect(),
    }
}
