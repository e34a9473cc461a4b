//! Counts recent events: for each minute of the last hour, and each quarter of an hour of the last day. The counts
//! are only in memory, about 6 KB, and start from zero with the process.
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// The number of minutes and of quarters of an hour that are counted separately.
const MINUTE_SLOTS: usize = 60;
const QUARTER_SLOTS: usize = 96;
const MINUTE_SECONDS: u64 = 60;
const QUARTER_SECONDS: u64 = 15 * MINUTE_SECONDS;

/// The events of one period.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct PeriodCounts {
    /// Committed ingestions.
    pub ingestions: u64,
    /// Objects in these ingestions.
    pub objects: u64,
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
    rings: Mutex<(Ring<MINUTE_SLOTS>, Ring<QUARTER_SLOTS>)>,
}

/// The counts of the last `N` periods, which are numbered from the start.
#[derive(Debug)]
struct Ring<const N: usize> {
    counts: [PeriodCounts; N],
    /// The number of the newest period.
    newest: u64,
}

impl<const N: usize> Ring<N> {
    const fn new() -> Self {
        let none = PeriodCounts { ingestions: 0, objects: 0, delivered: 0, failed: 0 };
        Self { counts: [none; N], newest: 0 }
    }

    /// Returns the index of the period with this number.
    fn slot_index(number: u64) -> usize {
        // The remainder is less than `N`, which is a `usize`.
        usize::try_from(number % N as u64).unwrap_or_default()
    }

    /// Advances to the period with this number. The periods in between have no events.
    fn advance_to(&mut self, number: u64) {
        for number in (self.newest + 1..=number).rev().take(N) {
            if let Some(count) = self.counts.get_mut(Self::slot_index(number)) {
                *count = PeriodCounts::default();
            }
        }
        self.newest = self.newest.max(number);
    }

    fn add_to_period(&mut self, number: u64, what: impl Fn(&mut PeriodCounts)) {
        self.advance_to(number);
        if let Some(count) = self.counts.get_mut(Self::slot_index(self.newest)) {
            what(count);
        }
    }

    /// Returns all counts, the oldest first.
    fn list_counts(&mut self, number: u64) -> Vec<PeriodCounts> {
        self.advance_to(number);
        let (newer, older) = self.counts.split_at(Self::slot_index(self.newest) + 1);
        [older, newer].concat()
    }
}

impl Counts {
    pub(super) fn new(begun: Instant) -> Self {
        Self { begun, rings: Mutex::new((Ring::new(), Ring::new())) }
    }

    /// Counts an event that happens now.
    pub(super) fn count_event(&self, what: impl Fn(&mut PeriodCounts)) {
        let now = self.begun.elapsed().as_secs();
        let mut rings = self.lock_rings();
        rings.0.add_to_period(now / MINUTE_SECONDS, &what);
        rings.1.add_to_period(now / QUARTER_SECONDS, &what);
    }

    pub(super) fn take_snapshot(&self) -> RecentCounts {
        let since = self.begun.elapsed();
        let now = since.as_secs();
        let mut rings = self.lock_rings();
        RecentCounts {
            hour: rings.0.list_counts(now / MINUTE_SECONDS),
            day: rings.1.list_counts(now / QUARTER_SECONDS),
            since,
        }
    }

    // No code panics while it holds the lock.
    fn lock_rings(&self) -> MutexGuard<'_, (Ring<MINUTE_SLOTS>, Ring<QUARTER_SLOTS>)> {
        self.rings.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_ring_drops_older_periods_and_keeps_the_others_in_place() {
        let mut ring = Ring::<4>::new();
        let objects = |ring: &mut Ring<4>, number| {
            ring.list_counts(number).iter().map(|count| count.objects).collect::<Vec<_>>()
        };
        ring.add_to_period(0, |count| count.objects += 1);
        ring.add_to_period(0, |count| count.objects += 1);
        ring.add_to_period(1, |count| count.objects += 5);
        assert_eq!(objects(&mut ring, 1), [0, 0, 2, 5]);
        ring.add_to_period(3, |count| count.objects += 7);
        assert_eq!(objects(&mut ring, 3), [2, 5, 0, 7]);
        assert_eq!(objects(&mut ring, 4), [5, 0, 7, 0]);
        assert_eq!(objects(&mut ring, 6), [7, 0, 0, 0]);
        assert_eq!(objects(&mut ring, 1_000_000), [0, 0, 0, 0]);
        // An event that two threads count in the wrong order is not lost.
        ring.add_to_period(999_999, |count| count.objects += 1);
        assert_eq!(objects(&mut ring, 1_000_000), [0, 0, 0, 1]);
    }

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
