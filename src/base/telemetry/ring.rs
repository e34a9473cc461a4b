//! Rings of recent periods: each minute of the last hour, and each quarter of an hour of the last day. They are only in
//! memory, about 6 KB each, and begin with the process.
use parking_lot::Mutex;
use std::time::{Duration, Instant};

/// The number of minutes and of quarters of an hour that are kept separately.
pub(super) const MINUTE_SLOTS: usize = 60;
pub(super) const QUARTER_SLOTS: usize = 96;
const MINUTE_SECONDS: u64 = 60;
const QUARTER_SECONDS: u64 = 15 * MINUTE_SECONDS;

/// What is known about each recent period.
#[derive(Debug)]
pub(super) struct PeriodRings<T> {
    begun: Instant,
    rings: Mutex<(Ring<T, MINUTE_SLOTS>, Ring<T, QUARTER_SLOTS>)>,
}

/// What is known about the recent periods.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RecentPeriods<T> {
    /// Each of the last 60 minutes, the oldest first. The last one is still running.
    pub hour: Vec<T>,
    /// Each of the last 96 quarters of an hour, the oldest first. The last one is still running.
    pub day: Vec<T>,
    /// The time since the first period began.
    pub since: Duration,
}

impl<T: Copy + Default> PeriodRings<T> {
    pub(super) fn new(begun: Instant) -> Self {
        Self { begun, rings: Mutex::default() }
    }

    /// Updates the periods that are running.
    pub(super) fn update(&self, what: impl Fn(&mut T)) {
        let seconds = self.begun.elapsed().as_secs();
        let mut rings = self.rings.lock();
        let (minutes, quarters) = &mut *rings;
        minutes.update(seconds / MINUTE_SECONDS, &what);
        quarters.update(seconds / QUARTER_SECONDS, &what);
    }

    /// Returns all periods.
    pub(super) fn list(&self) -> RecentPeriods<T> {
        let since = self.begun.elapsed();
        let mut rings = self.rings.lock();
        let (minutes, quarters) = &mut *rings;
        RecentPeriods {
            hour: minutes.list(since.as_secs() / MINUTE_SECONDS),
            day: quarters.list(since.as_secs() / QUARTER_SECONDS),
            since,
        }
    }
}

/// The last `N` periods, which are numbered from the start.
#[derive(Debug)]
struct Ring<T, const N: usize> {
    slots: [T; N],
    /// The number of the newest period.
    newest: u64,
}

impl<T: Copy + Default, const N: usize> Default for Ring<T, N> {
    fn default() -> Self {
        Self { slots: [T::default(); N], newest: 0 }
    }
}

impl<T: Copy + Default, const N: usize> Ring<T, N> {
    /// Returns the index of the period with this number.
    fn slot_index(number: u64) -> usize {
        // The remainder is less than `N`, which is a `usize`.
        usize::try_from(number % N as u64).unwrap_or_default()
    }

    /// Advances to the period with this number. The periods in between are unknown.
    fn advance_to(&mut self, number: u64) {
        for number in (self.newest + 1..=number).rev().take(N) {
            if let Some(slot) = self.slots.get_mut(Self::slot_index(number)) {
                *slot = T::default();
            }
        }
        self.newest = self.newest.max(number);
    }

    fn update(&mut self, number: u64, what: impl Fn(&mut T)) {
        self.advance_to(number);
        if let Some(slot) = self.slots.get_mut(Self::slot_index(self.newest)) {
            what(slot);
        }
    }

    /// Returns all periods, the oldest first.
    fn list(&mut self, number: u64) -> Vec<T> {
        self.advance_to(number);
        let (newer, older) = self.slots.split_at(Self::slot_index(self.newest) + 1);
        [older, newer].concat()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_ring_drops_older_periods_and_keeps_the_others_in_place() {
        let mut ring = Ring::<u64, 4>::default();
        ring.update(0, |count| *count += 1);
        ring.update(0, |count| *count += 1);
        ring.update(1, |count| *count += 5);
        assert_eq!(ring.list(1), [0, 0, 2, 5]);
        ring.update(3, |count| *count += 7);
        assert_eq!(ring.list(3), [2, 5, 0, 7]);
        assert_eq!(ring.list(4), [5, 0, 7, 0]);
        assert_eq!(ring.list(6), [7, 0, 0, 0]);
        assert_eq!(ring.list(1_000_000), [0, 0, 0, 0]);
        // An event that two threads report in the wrong order is not lost.
        ring.update(999_999, |count| *count += 1);
        assert_eq!(ring.list(1_000_000), [0, 0, 0, 1]);
    }
}
