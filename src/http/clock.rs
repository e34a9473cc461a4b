//! `/control/clock`, only for the control socket: the gateway's clock.
use super::caller::caller;
use super::query::Query;
use super::reply::{Outcome, Reply};
use super::state::{blocking, gateway};
use salvo::{Depot, Request, handler};

/// Returns what is known of the time.
#[handler]
pub(super) async fn get(req: &mut Request, depot: &mut Depot) -> Outcome {
    Query::read(req, &[])?;
    Reply::json(&gateway(depot)?.clock.report())
}

/// Forgets when the clock was last known to be right.
#[handler]
pub(super) async fn reset(req: &mut Request, depot: &mut Depot) -> Outcome {
    Query::read(req, &[])?;
    let (by, clock) = (caller(depot).clone(), gateway(depot)?.clock);
    let report = blocking(move || {
        clock.reset(&by)?;
        Ok(clock.report())
    });
    Reply::json(&report.await?)
}
