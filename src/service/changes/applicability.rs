//! Whether an open change would still do what its difference shows.
use super::steps::{check_author, with_definitions};
use crate::gateway::Gateway;
use penstock_auth::Authorized;
use penstock_base::IfMatch;
use penstock_base::error::{ErrorClass, GatewayError};
use penstock_base::principal::Principal;
use penstock_model::changes::{self, Applicability, Change, Review};
use penstock_store::Transaction;
use std::cell::Cell;
use std::time::{Duration, Instant};

/// The longest pause that a reader waits for, before its change is computed again.
const MAX_PAUSE: Duration = Duration::from_secs(1);

/// Computes whether an open change would still do what its difference shows; `None` if that cannot be computed now.
pub(super) fn check_applicability(
    gateway: &Gateway,
    by: &Authorized,
    change: &Change,
) -> Option<Applicability> {
    let mut recent = gateway.applicability_checks.0.try_lock()?;
    let sequence = gateway.store.stats().sequence;
    if let Some(result) = recent.find(change, sequence) {
        return Some(result.clone());
    }
    if let Some(pause) = recent.next.map(|next| next.saturating_duration_since(Instant::now())) {
        if pause > MAX_PAUSE {
            return None;
        }
        std::thread::sleep(pause);
    }
    let (result, begun) = compute_applicability(gateway, by, change);
    recent.next = begun.map(|begun| Instant::now() + begun.elapsed() * 4);
    let result = match result {
        Ok(result) => result,
        Err(error) if can_fail_with(&error.class) => Applicability::Fails(error),
        Err(_) => return None,
    };
    recent.keep(change, sequence, result.clone());
    Some(result)
}

/// Returns whether an error says that the change cannot be published, and not that the gateway cannot do it now.
fn can_fail_with(class: &ErrorClass) -> bool {
    matches!(
        class,
        ErrorClass::Malformed
            | ErrorClass::Conflict
            | ErrorClass::Invalid
            | ErrorClass::TooLarge
            | ErrorClass::Damaged
    )
}

/// Also returns when other commits began to wait for it; `None` if they did not.
fn compute_applicability(
    gateway: &Gateway,
    by: &Authorized,
    change: &Change,
) -> (Result<Applicability, GatewayError>, Option<Instant>) {
    let begun = Cell::new(None);
    let authorize = |transaction: &Transaction<'_>, change: &Change, _: &[Principal]| {
        begun.set(Some(Instant::now()));
        check_author(gateway, transaction, change)
    };
    let review = Review {
        id: &change.id,
        check: by,
        authorize: &authorize,
        on_commit: &|_, _| Ok(()),
        by: by.id(),
        if_match: IfMatch::Any,
        comment: None,
        traceparent: None,
        watch: gateway.catalogue.watch(),
        events: None,
    };
    let result = with_definitions(gateway, change, |decision| {
        changes::check_applicability(&gateway.store, &review, decision)
    });
    (result, begun.get())
}
