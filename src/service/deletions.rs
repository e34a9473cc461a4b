//! Deletes Business Objects together with their objects, in the background. A deletion continues after a restart, and
//! while the disk is full it uses the reserve.
use crate::business_objects::{change_catalogue, deletion_end_event, report_withdrawal};
use crate::changes::steps::withdraw_abandoned;
use crate::gateway::Gateway;
use penstock_auth::{Authorized, Role};
use penstock_base::IfMatch;
use penstock_base::backoff::exponential_delay;
use penstock_base::error::GatewayError;
use penstock_model::catalogue::{Change, Requester};
use penstock_model::resource::Compiled;
use penstock_resources::business_object::DeletionCount;
use penstock_store::Transaction;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::sync::watch;

/// The delay after the first commit of a deletion that failed. It doubles with each failure.
const FIRST_RETRY_DELAY: Duration = Duration::from_secs(1);
/// The maximum delay after a commit that failed.
const MAX_RETRY_DELAY: Duration = Duration::from_mins(1);
/// The maximum pause after a commit.
const MAX_PAUSE: Duration = Duration::from_secs(1);

/// Counts what the deletion of a Business Object with its objects would do. Stops after more than `limit` members.
///
/// # Errors
/// - `ErrorClass::Forbidden` without the role Admin
/// - `ErrorClass::Conflict` if the members of another Business Object are unknown
pub async fn count_deletion(
    gateway: &Gateway,
    by: &Authorized,
    compiled: Arc<Compiled>,
    limit: u64,
) -> Result<DeletionCount, GatewayError> {
    gateway
        .run(by, Role::Admin, move |gateway, _| gateway.catalogue.count_deletion(&compiled, limit))
        .await
}

/// Begins to delete the Business Object with this id or name together with its objects. If that has begun already,
/// nothing changes. `bypass` deletes objects that require a review too.
///
/// # Errors
/// - `ErrorClass::NotFound`, `ErrorClass::PreconditionFailed`, and `ErrorClass::Forbidden` without the role Admin
/// - `ErrorClass::Conflict` if the members of this or another Business Object are unknown, and if it requires a review
pub async fn begin_deletion(
    gateway: &Gateway,
    by: &Authorized,
    id_or_name: &str,
    if_match: IfMatch,
    bypass: bool,
) -> Result<Arc<Compiled>, GatewayError> {
    let id_or_name = id_or_name.to_owned();
    let begin = move |gateway: &Gateway, by: &Authorized| {
        change_catalogue(gateway, by, |requester| {
            let requester = Requester { bypass, ..requester };
            gateway.catalogue.begin_deletion(requester, &id_or_name, if_match.into())
        })
    };
    gateway.run(by, Role::Admin, begin).await
}

/// Continues all deletions until `stop` becomes true. A commit that fails is repeated.
pub async fn run_deletions(gateway: Gateway, mut stop: watch::Receiver<bool>) {
    let mut failures: u64 = 0;
    while !*stop.borrow_and_update() {
        let started = Instant::now();
        let delay = match gateway.read(continue_deletions).await {
            Ok(true) => {
                failures = 0;
                // A commit holds the lock of the catalogue's changes. Others get the same time for theirs.
                tokio::select! {
                    () = tokio::time::sleep(started.elapsed().min(MAX_PAUSE)) => continue,
                    _ = stop.wait_for(|stop| *stop) => return,
                }
            }
            Ok(false) => None,
            Err(error) => {
                failures = failures.saturating_add(1);
                if failures.is_power_of_two() {
                    tracing::warn!(
                        failures,
                        cause = %error,
                        "Deleting the objects of a Business Object failed; the gateway retries it."
                    );
                }
                Some(exponential_delay(FIRST_RETRY_DELAY, failures, MAX_RETRY_DELAY))
            }
        };
        tokio::select! {
            () = gateway.catalogue.wait_for_deletion() => {}
            () = sleep(delay) => {}
            _ = stop.wait_for(|stop| *stop) => return,
        }
    }
}

async fn sleep(delay: Option<Duration>) {
    match delay {
        Some(delay) => tokio::time::sleep(delay).await,
        None => std::future::pending().await,
    }
}

/// Makes one commit of each deletion. Returns whether there were any. A deletion that fails does not stop the others: its
/// error is returned if none of them made a commit.
pub(crate) fn continue_deletions(gateway: &Gateway) -> Result<bool, GatewayError> {
    let history = gateway.settings.limits.history;
    let mut results = Vec::new();
    for id in gateway.catalogue.list_deletions() {
        // After a restart that follows the last commit, nothing would know of them any more.
        gateway.validations.remove_reports(&id);
        let add_event = |transaction: &mut Transaction<'_>, change: &Change<'_>| {
            let event = deletion_end_event(gateway, change);
            gateway.auth.audit.add_event(transaction, &event)
        };
        results.push(gateway.catalogue.continue_deletion(
            &id,
            history,
            &gateway.events,
            &add_event,
        ));
        if gateway.catalogue.get(&id).is_none() {
            gateway.validations.remove_reports(&id);
        }
    }
    if results.iter().any(|result| matches!(result, Ok(false))) {
        report_withdrawal(withdraw_abandoned(gateway));
    }
    if results.iter().any(Result::is_ok) {
        return Ok(true);
    }
    results.into_iter().next().unwrap_or(Ok(false))
}

#[cfg(test)]
mod tests;
