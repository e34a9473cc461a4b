//! Retries of dead letters: an ingestion whose success removes the dead letter in the same commit. After an error the dead
//! letter stays, with the new errors.
use super::{Limits, Request, ReviewStep};
use crate::dead_letters::{DeadLetter, find_letter, list_first_errors, replace_errors};
use crate::namespace::moving;
use crate::namespace::moving::rebase::Rebase;
use penstock_base::error::{ErrorClass, GatewayError};
use penstock_store::Transaction;

/// Returns the dead letter that the request retries, if it retries one.
///
/// # Errors
/// `ErrorClass::NotFound` if it does not exist, for example because another retry has removed it.
pub(super) fn find_retried_letter(
    transaction: &Transaction<'_>,
    request: &Request<'_>,
) -> Result<Option<DeadLetter>, GatewayError> {
    let Some(id) = request.retried_letter else { return Ok(None) };
    find_letter(transaction, id)?.map(Some).ok_or_else(|| missing_letter_error(id))
}

/// Returns the moves of namespaces since the request was received: when it retries a dead letter, or computes a change
/// again. They are ordered, oldest first. The text has the IRIs as they were then, and nothing in the store has them any
/// more.
pub(super) fn list_moves_since_receipt(
    transaction: &Transaction<'_>,
    request: &Request<'_>,
) -> Result<Vec<Rebase>, GatewayError> {
    let received = match request.review {
        ReviewStep::Replay(change) => Some(change.sequence),
        _ => find_retried_letter(transaction, request)?.map(|letter| letter.sequence),
    };
    match received {
        Some(sequence) => moving::list_rebases_since(transaction, sequence),
        None => Ok(Vec::new()),
    }
}

/// Returns the error of a dead letter that does not exist.
pub fn missing_letter_error(id: &str) -> GatewayError {
    GatewayError::new(
        ErrorClass::NotFound,
        format!("there is no dead letter {id:?}; it was retried, deleted or removed by a limit"),
    )
}

/// Discards the changes of a retry that failed, and stores its errors with the dead letter. Returns the number of other
/// dead letters that this evicted.
///
/// # Errors
/// Returns `error` itself if it is not about the object, so that nothing is committed.
pub(super) fn keep_letter(
    transaction: &mut Transaction<'_>,
    letter: DeadLetter,
    error: &GatewayError,
    limits: &Limits,
) -> Result<u64, GatewayError> {
    transaction.discard_changes();
    if !matches!(error.class, ErrorClass::Malformed | ErrorClass::Conflict | ErrorClass::Invalid) {
        return Err(error.clone());
    }
    replace_errors(transaction, letter, list_first_errors(error), limits.rejected_bytes)
}
