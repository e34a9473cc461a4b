//! The last counts of the changes that wait for the approval of each caller.
use parking_lot::Mutex;
use penstock_auth::Role;
use penstock_model::changes::ChangeTotals;
use std::collections::HashMap;
use std::time::{Duration, Instant};

/// How long a count is used, unless a step of a change was taken meanwhile.
const MAX_AGE: Duration = Duration::from_secs(5);
/// The maximum number of callers whose counts are kept.
const MAX_CALLERS: usize = 1000;

/// The last count of each caller. Each page of the interface shows it, and counting reads all open changes.
#[derive(Debug, Default)]
pub(crate) struct WaitingCounts(Mutex<HashMap<CallerKey, KeptCount>>);

/// The id and the role of a caller.
pub(super) type CallerKey = (String, Role);

#[derive(Debug, Clone, Copy)]
pub(super) struct KeptCount {
    pub(super) count: Option<usize>,
    /// The totals of all changes then. Each step of a change changes them.
    pub(super) totals: ChangeTotals,
    pub(super) at: Instant,
}

impl WaitingCounts {
    /// Returns the count of a caller, if it is young, and no step was taken since.
    pub(super) fn find_count(
        &self,
        key: &CallerKey,
        totals: ChangeTotals,
        now: Instant,
    ) -> Option<KeptCount> {
        let counts = self.0.lock();
        let is_current = |kept: &&KeptCount| {
            kept.totals == totals && now.saturating_duration_since(kept.at) < MAX_AGE
        };
        counts.get(key).filter(is_current).copied()
    }

    pub(super) fn keep_count(&self, key: CallerKey, kept: KeptCount) {
        let mut counts = self.0.lock();
        if counts.len() >= MAX_CALLERS {
            counts.clear();
        }
        counts.insert(key, kept);
    }
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
