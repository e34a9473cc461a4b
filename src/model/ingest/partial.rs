//! Partial acceptance (`onError=skip`): stores the valid objects of a request, exactly as if only they had been sent.
//!
//! An object with an error is rolled back, so that it does not affect the objects after it. Then the request runs again
//! without the rejected objects, and without those that refer to them. That run can reject others, for example an UPDATE
//! of an object that only a rejected one creates.
use super::change::{Applied, apply_objects};
use super::dependents::reject_dependents;
use super::rejections::Rejections;
use super::{Limits, Request};
use penstock_base::error::GatewayError;
use penstock_store::Transaction;

/// The maximum number of runs. If the last one rejects an object, nothing of the request is stored.
const MAX_RUNS: usize = 3;

/// Applies the valid objects of the request to the transaction without committing it. Discards all other changes of the
/// transaction.
///
/// # Errors
/// Returns the errors that concern the whole request; `ErrorClass::Invalid` if the last run rejects objects too.
pub(super) fn apply_valid_objects(
    transaction: &mut Transaction<'_>,
    limits: &Limits,
    request: &Request<'_>,
) -> Result<(Applied, Rejections), GatewayError> {
    let mut rejections = Rejections::default();
    let mut runs = 0;
    loop {
        rejections.begin_run();
        let applied = apply_objects(transaction, limits, request, Some(&mut rejections))?;
        runs += 1;
        if !rejections.has_new() {
            return Ok((applied, rejections));
        }
        if runs == MAX_RUNS {
            return Err(rejections.to_error(runs));
        }
        reject_dependents(transaction, limits, request, &mut rejections)?;
        transaction.discard_changes();
    }
}
