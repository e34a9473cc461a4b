//! The delay before the next delivery attempt, and the rate limit of the log lines about failures.
use super::cause::{Class, Failure};
use rand::Rng as _;
use std::time::{Duration, Instant};

/// Timeouts and retry intervals of deliveries.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Pace {
    /// The maximum delay before the second attempt after a transient failure. It doubles with each failure.
    pub first: Duration,
    /// The maximum delay before the second attempt if an operator has to fix the cause.
    pub first_unless_mended: Duration,
    /// The maximum delay between attempts.
    pub longest: Duration,
    /// The connect timeout.
    pub connect: Duration,
    /// The idle timeout of a connection.
    pub idle: Duration,
    /// The interval of probes while the link is down, and the timeout of each probe.
    pub probe: Duration,
    /// After a store request without a clear result, how long the gateway queries the server before it sends
    /// the file again.
    pub settle: Duration,
    /// The interval of the cleanup of abandoned uploads.
    pub sweep: Duration,
}

impl Default for Pace {
    fn default() -> Self {
        Self {
            first: Duration::from_secs(1),
            first_unless_mended: Duration::from_secs(30),
            longest: Duration::from_mins(5),
            connect: Duration::from_secs(8),
            idle: Duration::from_secs(10),
            probe: Duration::from_secs(4),
            settle: Duration::from_secs(5),
            sweep: Duration::from_hours(1),
        }
    }
}

impl Pace {
    /// Returns the delay before the next attempt: exponential backoff with full jitter, so that many gateways
    /// do not retry at once. It is never less than the server's `Retry-After`, up to the maximum delay.
    pub(super) fn wait(&self, failure: &Failure, failures: u64) -> Duration {
        let first = if failure.class.passes() { self.first } else { self.first_unless_mended };
        let doublings = u32::try_from(failures.saturating_sub(1)).unwrap_or(u32::MAX).min(16);
        let cap = first.saturating_mul(1 << doublings).min(self.longest);
        let jittered = cap.mul_f64(rand::rng().random_range(0.05..=1.0));
        jittered.max(failure.patience.unwrap_or_default().min(self.longest))
    }
}

/// Limits the log lines about a failing target: the first failure, then at intervals that grow to a day. A week
/// without a link is about a dozen lines.
#[derive(Debug, Default)]
pub(super) struct Announcements {
    /// The class logged last, when, and the number of lines logged so far.
    told: Option<(Class, Instant, usize)>,
}

const MINUTE: u64 = 60;
const HOUR: u64 = 60 * MINUTE;
const INTERVALS: [u64; 6] = [MINUTE, 5 * MINUTE, 30 * MINUTE, 2 * HOUR, 6 * HOUR, 24 * HOUR];

impl Announcements {
    /// Returns whether to log this failure. A different class is logged at most once a minute.
    pub(super) fn is_due(&mut self, class: Class, now: Instant) -> bool {
        let (due, times) = match self.told {
            None => (true, 0),
            Some((told, at, times)) => {
                let interval = INTERVALS.get(times - 1).or(INTERVALS.last()).copied();
                let interval = if told == class { interval } else { Some(MINUTE) };
                let interval = Duration::from_secs(interval.unwrap_or(MINUTE));
                (now.saturating_duration_since(at) >= interval, times)
            }
        };
        if due {
            self.told = Some((class, now, times + 1));
        }
        due
    }

    /// Resets the state after a success. Returns whether a failure had been logged.
    pub(super) fn over(&mut self) -> bool {
        self.told.take().is_some()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_grow_up_to_five_minutes() {
        let pace = Pace::default();
        let (link, policy) = (Failure::new(Class::Broken, ""), Failure::new(Class::Policy, ""));
        for failures in [1, 2, 5, 9, 10, 1_000, u64::MAX] {
            let wait = pace.wait(&link, failures);
            let cap = Duration::from_secs(1 << (failures - 1).min(9)).min(pace.longest);
            assert!(wait <= cap && wait >= cap / 21, "{failures}: {wait:?}");
            let wait = pace.wait(&policy, failures);
            let cap = Duration::from_secs(30 << (failures - 1).min(5)).min(pace.longest);
            assert!(wait <= cap && wait >= cap / 21, "{failures}: {wait:?}");
        }
        let asked = Failure { patience: Some(Duration::from_secs(7)), ..link };
        assert!(pace.wait(&asked, 1) >= Duration::from_secs(7));
    }

    #[test]
    fn a_week_offline_logs_about_a_dozen_lines() {
        let mut announcements = Announcements::default();
        let begun = Instant::now();
        let week = 7 * 24 * 30;
        let lines = (0..week)
            .filter(|two_minutes| {
                let now = begun + Duration::from_secs(two_minutes * 120);
                announcements.is_due(Class::Unreachable, now)
            })
            .count();
        assert!((8..=14).contains(&lines), "{lines}");
        assert!(announcements.over() && !announcements.over());
    }

    #[test]
    fn alternating_causes_do_not_flood_the_log() {
        let mut announcements = Announcements::default();
        let begun = Instant::now();
        let lines = (0..3_600)
            .filter(|second| {
                let class = if second % 2 == 0 { Class::Unreachable } else { Class::Broken };
                announcements.is_due(class, begun + Duration::from_secs(*second))
            })
            .count();
        assert!(lines <= 60, "{lines}");
    }
}
