//! How many changes wait for the approval of a caller.
use super::relation::Viewer;
use crate::gateway::Gateway;
use parking_lot::Mutex;
use penstock_auth::{Authorized, Caller, Role};
use penstock_base::error::GatewayError;
use penstock_model::changes::{ChangeTotals, iter_open_changes, read_totals};
use penstock_resources::business_object::Review;
use penstock_resources::change::ChangeState;
use std::collections::{HashMap, HashSet};
use std::time::{Duration, Instant};

/// How long a count is used, unless a step of a change was taken meanwhile.
const MAX_AGE: Duration = Duration::from_secs(5);
/// The maximum number of callers whose counts are kept.
const MAX_CALLERS: usize = 1000;

/// The last count of each caller. Each page of the interface shows it, and counting reads all open changes.
#[derive(Debug, Default)]
pub(crate) struct WaitingCounts(Mutex<HashMap<CallerKey, KeptCount>>);

/// The id and the role of a caller.
type CallerKey = (String, Role);

#[derive(Debug, Clone, Copy)]
struct KeptCount {
    count: Option<usize>,
    /// The totals of all changes then. Each step of a change changes them.
    totals: ChangeTotals,
    at: Instant,
}

impl WaitingCounts {
    /// Returns the count of a caller, if it is young, and no step was taken since.
    fn find_count(&self, key: &CallerKey, totals: ChangeTotals, now: Instant) -> Option<KeptCount> {
        let counts = self.0.lock();
        let is_current = |kept: &&KeptCount| {
            kept.totals == totals && now.saturating_duration_since(kept.at) < MAX_AGE
        };
        counts.get(key).filter(is_current).copied()
    }

    fn keep_count(&self, key: CallerKey, kept: KeptCount) {
        let mut counts = self.0.lock();
        if counts.len() >= MAX_CALLERS {
            counts.clear();
        }
        counts.insert(key, kept);
    }
}

/// Counts the submitted changes that the caller may approve, up to `max_count`. Returns `None` if it approves changes of no
/// Business Object. After a change of a definition or a group, the count may be of some seconds before.
///
/// # Errors
/// The errors of the store.
pub async fn count_waiting_changes(
    gateway: &Gateway,
    by: &Authorized,
    max_count: usize,
) -> Result<Option<usize>, GatewayError> {
    if by.role < Role::Contributor || by.business_objects().is_some() {
        return Ok(None);
    }
    gateway
        .run(by, Role::Contributor, move |gateway, by| {
            let (key, at) = ((by.id().to_owned(), by.role), Instant::now());
            let totals = read_totals(&gateway.store.read())?;
            if let Some(kept) = gateway.waiting_counts.find_count(&key, totals, at) {
                return Ok(kept.count);
            }
            let count = count_waiting(gateway, by, max_count)?;
            gateway.waiting_counts.keep_count(key, KeptCount { count, totals, at });
            Ok(count)
        })
        .await
}

fn count_waiting(
    gateway: &Gateway,
    by: &Caller,
    max_count: usize,
) -> Result<Option<usize>, GatewayError> {
    let viewer = Viewer { gateway, by, transaction: None };
    let own = Some(by.id()).filter(|_| !gateway.settings.review.allows_self_approval);
    let mut approved = HashSet::new();
    let mut has_reviews = false;
    for compiled in gateway.catalogue.list() {
        let definition = &compiled.object.definition;
        if viewer.is_approver(definition.approvers())? {
            has_reviews |= definition.review() != Review::Off;
            approved.insert(compiled.object.id.clone());
        }
    }
    let mut count = 0;
    if !approved.is_empty() {
        for open in iter_open_changes(&gateway.store) {
            let open = open?;
            let is_waiting = open.state == ChangeState::Submitted
                && own != Some(open.author.as_str())
                && approved.contains(&open.business_object);
            count += usize::from(is_waiting);
            if count >= max_count {
                break;
            }
        }
    }
    Ok(Some(count).filter(|count| has_reviews || *count > 0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_count_is_used_for_some_seconds_and_until_a_step_is_taken() {
        let counts = WaitingCounts::default();
        let key = |name: &str, role| (name.to_owned(), role);
        let ada = key("ada", Role::Admin);
        let (totals, at) = (ChangeTotals::default(), Instant::now());
        counts.keep_count(ada.clone(), KeptCount { count: Some(3), totals, at });
        let find = |key, totals, age| {
            counts.find_count(&key, totals, at + age).map(|kept: KeptCount| kept.count)
        };
        assert_eq!(find(ada.clone(), totals, MAX_AGE / 2), Some(Some(3)));
        assert_eq!(find(ada.clone(), totals, MAX_AGE), None);
        let later = ChangeTotals { open: 1, ..totals };
        assert_eq!(find(ada.clone(), later, Duration::ZERO), None);
        assert_eq!(find(key("ada", Role::Contributor), totals, Duration::ZERO), None);
        assert_eq!(find(key("bob", Role::Admin), totals, Duration::ZERO), None);
        for number in 0..MAX_CALLERS {
            let count = KeptCount { count: None, totals, at };
            counts.keep_count(key(&number.to_string(), Role::Admin), count);
        }
        assert_eq!(find(ada, totals, Duration::ZERO), None);
        assert!(counts.0.lock().len() <= MAX_CALLERS);
    }
}
