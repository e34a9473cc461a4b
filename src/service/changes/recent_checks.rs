//! The last computations of whether open changes would still do what their differences show.
use parking_lot::Mutex;
use penstock_model::changes::{Applicability, Change};
use std::collections::VecDeque;
use std::time::Instant;

/// The number of computed applicabilities that are kept.
const MAX_RECENT_CHECKS: usize = 64;

/// The last computations of whether changes still do what their differences show. Each runs the request again, and other
/// commits wait meanwhile, so all together take at most a fifth of the time.
#[derive(Debug, Default)]
pub(crate) struct ApplicabilityChecks(pub(super) Mutex<RecentChecks>);

#[derive(Debug, Default)]
pub(super) struct RecentChecks {
    /// The newest last.
    results: VecDeque<RecentCheck>,
    /// When the next computation may begin.
    pub(super) next: Option<Instant>,
}

#[derive(Debug)]
struct RecentCheck {
    id: String,
    version: u64,
    /// The newest sequence of the store then.
    sequence: u64,
    result: Applicability,
}

impl RecentChecks {
    /// Returns the result for this version of a change, if no commit came since.
    pub(super) fn find(&self, change: &Change, sequence: u64) -> Option<&Applicability> {
        let is_it = |check: &&RecentCheck| {
            check.id == change.id && check.version == change.version && check.sequence == sequence
        };
        self.results.iter().find(is_it).map(|check| &check.result)
    }

    /// Keeps the result for this version of a change at this sequence of the store.
    pub(super) fn keep(&mut self, change: &Change, sequence: u64, result: Applicability) {
        if self.results.len() == MAX_RECENT_CHECKS {
            self.results.pop_front();
        }
        self.results.push_back(RecentCheck {
            id: change.id.clone(),
            version: change.version,
            sequence,
            result,
        });
    }
}
