//! `/control/clock`, only over the control socket: the gateway's clock.
use crate::shapes;
use penstock_http::caller::caller;
use penstock_http::query::Query;
use penstock_http::reply::{Reply, ReplyResult};
use penstock_http::state::gateway;
use penstock_service::clock::reset_clock;
use salvo::{Depot, Request, handler};

/// Returns the state of the clock.
#[handler]
pub(super) async fn get(req: &mut Request, depot: &mut Depot) -> ReplyResult {
    Query::read(req, &[])?;
    Reply::json(&shapes::ClockStatus::from(gateway(depot)?.clock.report()))
}

/// Resets the clock: forgets when it was last known to be right.
#[handler]
pub(super) async fn reset(req: &mut Request, depot: &mut Depot) -> ReplyResult {
    Query::read(req, &[])?;
    let report = reset_clock(&gateway(depot)?, caller(depot)).await?;
    Reply::json(&shapes::ClockStatus::from(report))
}
