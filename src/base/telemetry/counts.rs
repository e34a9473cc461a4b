//! Counts recent events: for each minute of the last hour, and each quarter of an hour of the last day. The counts
//! are only in memory, about 6 KB, and start from zero with the process.
use super::ring::{PeriodRings, RecentPeriods};
use parking_lot::{Mutex, MutexGuard};
use std::time::{Duration, Instant};

/// The events of one period.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct PeriodCounts {
    /// Committed ingestions.
    pub ingestions: u64,
    /// Objects in these ingestions.
    pub objects: u64,
    /// Those of them that did not change, because they were stored with the same values already.
    pub unchanged: u64,
    /// Delivered exports, each counted for each target.
    pub delivered: u64,
    /// Failed delivery attempts.
    pub failed: u64,
}

/// The recent counts.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RecentCounts {
    /// Each of the last 60 minutes, the oldest first. The last one is still running.
    pub hour: Vec<PeriodCounts>,
    /// Each of the last 96 quarters of an hour, the oldest first. The last one is still running.
    pub day: Vec<PeriodCounts>,
    /// The time since counting began.
    pub since: Duration,
}

/// Counts events by period.
#[derive(Debug)]
pub(super) struct Counts {
    begun: Instant,
    rings: Mutex<PeriodRings<PeriodCounts>>,
}

impl Counts {
    pub(super) fn new(begun: Instant) -> Self {
        Self { begun, rings: Mutex::default() }
    }

    /// Counts an event that happens now.
    pub(super) fn count_event(&self, what: impl Fn(&mut PeriodCounts)) {
        self.lock_rings().update(self.begun.elapsed(), what);
    }

    pub(super) fn take_snapshot(&self) -> RecentCounts {
        let since = self.begun.elapsed();
        let RecentPeriods { hour, day } = self.lock_rings().list(since);
        RecentCounts { hour, day, since }
    }

    fn lock_rings(&self) -> MutexGuard<'_, PeriodRings<PeriodCounts>> {
        self.rings.lock()
    }
}

#[cfg(test)]
mod tests {
    use super::super::ring::{MINUTE_SLOTS, QUARTER_SLOTS};
    use super::*;

    #[test]
    fn a_snapshot_has_every_minute_and_every_quarter() {
        let recent = Counts::new(Instant::now());
        recent.count_event(|count| count.delivered += 1);
        let snapshot = recent.take_snapshot();
        assert_eq!((snapshot.hour.len(), snapshot.day.len()), (MINUTE_SLOTS, QUARTER_SLOTS));
        for counts in [snapshot.hour, snapshot.day] {
            assert_eq!(counts.last().unwrap().delivered, 1);
            assert_eq!(counts.iter().map(|count| count.delivered).sum::<u64>(), 1);
        }
        assert!(size_of::<Counts>() < 8 << 10);
    }
}
