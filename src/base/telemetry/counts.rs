//! Counts recent events: for each minute of the last hour, and each quarter of an hour of the last day. The counts
//! are only in memory, about 6 KB, and start from zero with the process.
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// The number of minutes and of quarters of an hour that are counted separately.
const MINUTES: usize = 60;
const QUARTERS: usize = 96;
const MINUTE: u64 = 60;
const QUARTER: u64 = 15 * MINUTE;

/// The events of one period.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Count {
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
pub struct Snapshot {
    /// Each of the last 60 minutes, the oldest first. The last one is still running.
    pub hour: Vec<Count>,
    /// Each of the last 96 quarters of an hour, the oldest first. The last one is still running.
    pub day: Vec<Count>,
    /// The time since counting began.
    pub since: Duration,
}

/// Counts events by period.
#[derive(Debug)]
pub(super) struct Counts {
    begun: Instant,
    rings: Mutex<(Ring<MINUTES>, Ring<QUARTERS>)>,
}

/// The counts of the last `N` periods, which are numbered from the start.
#[derive(Debug)]
struct Ring<const N: usize> {
    counts: [Count; N],
    /// The number of the newest period.
    newest: u64,
}

impl<const N: usize> Ring<N> {
    const fn new() -> Self {
        let none = Count { ingestions: 0, objects: 0, delivered: 0, failed: 0 };
        Self { counts: [none; N], newest: 0 }
    }

    /// Returns the index of the period with this number.
    fn place(number: u64) -> usize {
        // The remainder is less than `N`, which is a `usize`.
        usize::try_from(number % N as u64).unwrap_or_default()
    }

    /// Advances to the period with this number. The periods in between have no events.
    fn go_on(&mut self, number: u64) {
        for number in (self.newest + 1..=number).rev().take(N) {
            if let Some(count) = self.counts.get_mut(Self::place(number)) {
                *count = Count::default();
            }
        }
        self.newest = self.newest.max(number);
    }

    fn add(&mut self, number: u64, what: impl Fn(&mut Count)) {
        self.go_on(number);
        if let Some(count) = self.counts.get_mut(Self::place(self.newest)) {
            what(count);
        }
    }

    /// Returns all counts, the oldest first.
    fn all(&mut self, number: u64) -> Vec<Count> {
        self.go_on(number);
        let (newer, older) = self.counts.split_at(Self::place(self.newest) + 1);
        [older, newer].concat()
    }
}

impl Counts {
    pub(super) fn new(begun: Instant) -> Self {
        Self { begun, rings: Mutex::new((Ring::new(), Ring::new())) }
    }

    /// Counts an event that happens now.
    pub(super) fn add(&self, what: impl Fn(&mut Count)) {
        let now = self.begun.elapsed().as_secs();
        let mut rings = self.rings();
        rings.0.add(now / MINUTE, &what);
        rings.1.add(now / QUARTER, &what);
    }

    pub(super) fn snapshot(&self) -> Snapshot {
        let since = self.begun.elapsed();
        let now = since.as_secs();
        let mut rings = self.rings();
        Snapshot { hour: rings.0.all(now / MINUTE), day: rings.1.all(now / QUARTER), since }
    }

    // No code panics while it holds the lock.
    fn rings(&self) -> MutexGuard<'_, (Ring<MINUTES>, Ring<QUARTERS>)> {
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
            ring.all(number).iter().map(|count| count.objects).collect::<Vec<_>>()
        };
        ring.add(0, |count| count.objects += 1);
        ring.add(0, |count| count.objects += 1);
        ring.add(1, |count| count.objects += 5);
        assert_eq!(objects(&mut ring, 1), [0, 0, 2, 5]);
        ring.add(3, |count| count.objects += 7);
        assert_eq!(objects(&mut ring, 3), [2, 5, 0, 7]);
        assert_eq!(objects(&mut ring, 4), [5, 0, 7, 0]);
        assert_eq!(objects(&mut ring, 6), [7, 0, 0, 0]);
        assert_eq!(objects(&mut ring, 1_000_000), [0, 0, 0, 0]);
        // An event that two threads count in the wrong order is not lost.
        ring.add(999_999, |count| count.objects += 1);
        assert_eq!(objects(&mut ring, 1_000_000), [0, 0, 0, 1]);
    }

    #[test]
    fn a_snapshot_has_every_minute_and_every_quarter() {
        let recent = Counts::new(Instant::now());
        recent.add(|count| count.delivered += 1);
        let snapshot = recent.snapshot();
        assert_eq!((snapshot.hour.len(), snapshot.day.len()), (MINUTES, QUARTERS));
        for counts in [snapshot.hour, snapshot.day] {
            assert_eq!(counts.last().unwrap().delivered, 1);
            assert_eq!(counts.iter().map(|count| count.delivered).sum::<u64>(), 1);
        }
        assert!(size_of::<Counts>() < 8 << 10);
    }
}
