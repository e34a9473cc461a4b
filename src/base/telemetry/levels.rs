//! Levels of recent periods: the queue, the disk and the memory.
use super::ring::{PeriodRings, RecentPeriods};

/// The levels at one moment, or the worst ones of a period.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Levels {
    /// Queued exports over all targets, each counted for each target.
    pub queued: u64,
    /// Free bytes on the disk of the data directory; `None` if unknown.
    pub disk_free_bytes: Option<u64>,
    /// Resident memory of the process; `None` if unknown.
    pub memory_bytes: Option<u64>,
}

/// The recent levels. A period without a measurement has none.
pub type RecentLevels = RecentPeriods<Option<Levels>>;
/// Keeps levels by period.
pub(super) type LevelHistory = PeriodRings<Option<Levels>>;

impl Levels {
    /// Returns the worse of both for each level.
    fn worst_of(self, other: Self) -> Self {
        let least = |one: Option<u64>, other: Option<u64>| one.into_iter().chain(other).min();
        Self {
            queued: self.queued.max(other.queued),
            disk_free_bytes: least(self.disk_free_bytes, other.disk_free_bytes),
            memory_bytes: self.memory_bytes.max(other.memory_bytes),
        }
    }
}

impl LevelHistory {
    /// Adds levels that were measured now.
    pub(super) fn add(&self, levels: Levels) {
        self.update(|slot| *slot = Some(slot.map_or(levels, |before| before.worst_of(levels))));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Instant;

    #[test]
    fn a_period_has_its_worst_levels_and_one_without_a_measurement_has_none() {
        let history = LevelHistory::new(Instant::now());
        let levels = |queued, disk, memory| Levels {
            queued,
            disk_free_bytes: Some(disk),
            memory_bytes: Some(memory),
        };
        history.add(levels(1, 900, 50));
        history.add(levels(0, 800, 70));
        history.add(Levels { queued: 0, disk_free_bytes: None, memory_bytes: None });
        let RecentLevels { hour, day, .. } = history.list();
        for periods in [hour, day] {
            assert_eq!(periods.last().copied().flatten(), Some(levels(1, 800, 70)));
            assert_eq!(periods.iter().flatten().count(), 1);
        }
        assert!(size_of::<LevelHistory>() < 8 << 10);
    }
}
