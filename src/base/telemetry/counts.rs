//! What happened of late: counts for each minute of the last hour, and each quarter of an hour of the last
//! day. They are in memory alone, some 6 KB, and begin anew with the process.
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// Minutes, and quarters of an hour, that are told apart.
const MINUTES: usize = 60;
const QUARTERS: usize = 96;
const MINUTE: u64 = 60;
const QUARTER: u64 = 15 * MINUTE;

/// What happened in one stretch of time.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Count {
    /// Ingestions that were committed.
    pub ingestions: u64,
    /// Objects in them.
    pub objects: u64,
    /// Exports delivered, each counted for each target.
    pub delivered: u64,
    /// Attempts to deliver that failed.
    pub failed: u64,
}

/// What happened of late.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Snapshot {
    /// Each of the last 60 minutes, the oldest first; the last one is under way.
    pub hour: Vec<Count>,
    /// Each of the last 96 quarters of an hour, the oldest first; the last one is under way.
    pub day: Vec<Count>,
    /// How long it has been counted.
    pub since: Duration,
}

/// Counts what happens.
#[derive(Debug)]
pub(super) struct Counts {
    begun: Instant,
    rings: Mutex<(Ring<MINUTES>, Ring<QUARTERS>)>,
}

/// Counts of the last `N` stretches of time, which are numbered from the start.
#[derive(Debug)]
struct Ring<const N: usize> {
    counts: [Count; N],
    /// The number of the newest.
    newest: u64,
}

impl<const N: usize> Ring<N> {
    const fn new() -> Self {
        let none = Count { ingestions: 0, objects: 0, delivered: 0, failed: 0 };
        Self { counts: [none; N], newest: 0 }
    }

    /// The place of a number.
    fn place(number: u64) -> usize {
        // Less than N, which is a usize.
        usize::try_from(number % N as u64).unwrap_or_default()
    }

    /// Goes on to this number; those in between had nothing.
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

    /// All, the oldest first.
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

    /// Counts what happened just now.
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

    // Nothing panics while it is held.
    fn rings(&self) -> MutexGuard<'_, (Ring<MINUTES>, Ring<QUARTERS>)> {
        self.rings.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_older_than_the_ring_is_forgotten_and_what_is_not_keeps_its_place() {
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
        // What two threads count in the wrong order is not lost.
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
