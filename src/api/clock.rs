//! `/control/clock`, only over the control socket: the gateway's clock.
use penstock_http::caller::caller;
use penstock_http::query::Query;
use penstock_http::reply::{Reply, ReplyResult};
use penstock_http::state::{gateway, run_blocking};
use salvo::{Depot, Request, handler};

/// Returns the state of the clock.
#[handler]
pub(super) async fn get(req: &mut Request, depot: &mut Depot) -> ReplyResult {
    Query::read(req, &[])?;
    Reply::json(&gateway(depot)?.clock.report())
}

/// Resets the clock: forgets when it was last known to be right.
#[handler]
pub(super) async fn reset(req: &mut Request, depot: &mut Depot) -> ReplyResult {
    Query::read(req, &[])?;
    let (by, clock) = (caller(depot).clone(), gateway(depot)?.clock);
    let report = run_blocking(move || {
        clock.reset(&by)?;
        Ok(clock.report())
    });
    Reply::json(&report.await?)
}
