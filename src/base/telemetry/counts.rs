//! The events that are counted by period.
use super::ring::{PeriodRings, RecentPeriods};

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
pub type RecentCounts = RecentPeriods<PeriodCounts>;
/// Counts events by period.
pub(super) type Counts = PeriodRings<PeriodCounts>;

#[cfg(test)]
mod tests {
    use super::super::ring::{MINUTE_SLOTS, QUARTER_SLOTS};
    use super::*;
    use std::time::Instant;

    #[test]
    fn a_snapshot_has_every_minute_and_every_quarter() {
        let recent = Counts::new(Instant::now());
        recent.update(|count| count.delivered += 1);
        let snapshot = recent.list();
        assert_eq!((snapshot.hour.len(), snapshot.day.len()), (MINUTE_SLOTS, QUARTER_SLOTS));
        for counts in [snapshot.hour, snapshot.day] {
            assert_eq!(counts.last().unwrap().delivered, 1);
            assert_eq!(counts.iter().map(|count| count.delivered).sum::<u64>(), 1);
        }
        assert!(size_of::<Counts>() < 8 << 10);
    }
}
