//! The delay before the next delivery attempt, and the rate limit of the log lines about failures.
use super::cause::DeliveryFailure;
use penstock_base::backoff::exponential_delay;
use penstock_resources::export::Cause;
use rand::Rng as _;
use std::time::{Duration, Instant};

/// Timeouts and retry intervals of deliveries.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DeliveryTimings {
    /// The maximum delay before the second attempt after a transient failure. It doubles with each failure.
    pub first_delay: Duration,
    /// The maximum delay before the second attempt if an operator has to fix the cause.
    pub first_delay_if_operator_needed: Duration,
    /// The maximum delay between attempts.
    pub max_delay: Duration,
    /// The connect timeout.
    pub connect_timeout: Duration,
    /// The idle timeout of a connection.
    pub idle_timeout: Duration,
    /// The interval of probes while the link is down, and the timeout of each probe.
    pub probe_interval: Duration,
    /// How long the gateway queries the server after an upload without a clear result, before it sends the file
    /// again.
    pub settle_time: Duration,
    /// The interval of the cleanup of abandoned uploads.
    pub cleanup_interval: Duration,
}

impl Default for DeliveryTimings {
    fn default() -> Self {
        Self {
            first_delay: Duration::from_secs(1),
            first_delay_if_operator_needed: Duration::from_secs(30),
            max_delay: Duration::from_mins(5),
            connect_timeout: Duration::from_secs(8),
            idle_timeout: Duration::from_secs(10),
            probe_interval: Duration::from_secs(4),
            settle_time: Duration::from_secs(5),
            cleanup_interval: Duration::from_hours(1),
        }
    }
}

impl DeliveryTimings {
    /// Returns the delay before the next attempt: exponential backoff with full jitter, so that many gateways
    /// do not retry at once. It is never less than the server's `Retry-After`, up to the maximum delay.
    pub(super) fn next_delay(&self, failure: &DeliveryFailure, failures: u64) -> Duration {
        let first = if failure.is_transient() {
            self.first_delay
        } else {
            self.first_delay_if_operator_needed
        };
        let cap = exponential_delay(first, failures, self.max_delay);
        let jittered = cap.mul_f64(rand::rng().random_range(0.05..=1.0));
        jittered.max(failure.retry_after.unwrap_or_default().min(self.max_delay))
    }
}

/// Limits the log lines about a failing target. The first failure is logged, and later ones at intervals that grow
/// to a day. A week without a link adds about a dozen lines.
#[derive(Debug, Default)]
pub(super) struct FailureLogLimit {
    /// The class of the last logged failure, its time, and the number of lines logged so far.
    last_logged: Option<(Cause, Instant, usize)>,
}

const SECONDS_PER_MINUTE: u64 = 60;
const SECONDS_PER_HOUR: u64 = 60 * SECONDS_PER_MINUTE;
/// The intervals between two log lines about the same class of failure. The last one repeats.
const LOG_INTERVALS_SECONDS: [u64; 6] = [
    SECONDS_PER_MINUTE,
    5 * SECONDS_PER_MINUTE,
    30 * SECONDS_PER_MINUTE,
    2 * SECONDS_PER_HOUR,
    6 * SECONDS_PER_HOUR,
    24 * SECONDS_PER_HOUR,
];

impl FailureLogLimit {
    /// Returns whether to log this failure. A failure of another class than the last one is logged at most once a
    /// minute.
    pub(super) fn should_log(&mut self, class: Cause, now: Instant) -> bool {
        let (due, times) = match self.last_logged {
            None => (true, 0),
            Some((logged_class, at, times)) => {
                let interval =
                    LOG_INTERVALS_SECONDS.get(times - 1).or(LOG_INTERVALS_SECONDS.last()).copied();
                let interval =
                    if logged_class == class { interval } else { Some(SECONDS_PER_MINUTE) };
                let interval = Duration::from_secs(interval.unwrap_or(SECONDS_PER_MINUTE));
                (now.saturating_duration_since(at) >= interval, times)
            }
        };
        if due {
            self.last_logged = Some((class, now, times + 1));
        }
        due
    }

    /// Resets the state after a success. Returns whether a failure had been logged.
    pub(super) fn reset_after_success(&mut self) -> bool {
        self.last_logged.take().is_some()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_grow_up_to_five_minutes() {
        let timings = DeliveryTimings::default();
        let (link, policy) =
            (DeliveryFailure::new(Cause::Broken, ""), DeliveryFailure::new(Cause::Policy, ""));
        for failures in [1, 2, 5, 9, 10, 1_000, u64::MAX] {
            let wait = timings.next_delay(&link, failures);
            let cap = Duration::from_secs(1 << (failures - 1).min(9)).min(timings.max_delay);
            assert!(wait <= cap && wait >= cap / 21, "{failures}: {wait:?}");
            let wait = timings.next_delay(&policy, failures);
            let cap = Duration::from_secs(30 << (failures - 1).min(5)).min(timings.max_delay);
            assert!(wait <= cap && wait >= cap / 21, "{failures}: {wait:?}");
        }
        let asked = DeliveryFailure { retry_after: Some(Duration::from_secs(7)), ..link };
        assert!(timings.next_delay(&asked, 1) >= Duration::from_secs(7));
    }

    #[test]
    fn a_week_offline_logs_about_a_dozen_lines() {
        let mut log_limit = FailureLogLimit::default();
        let begun = Instant::now();
        let week = 7 * 24 * 30;
        let lines = (0..week)
            .filter(|two_minutes| {
                let now = begun + Duration::from_secs(two_minutes * 120);
                log_limit.should_log(Cause::Unreachable, now)
            })
            .count();
        assert!((8..=14).contains(&lines), "{lines}");
        assert!(log_limit.reset_after_success() && !log_limit.reset_after_success());
    }

    #[test]
    fn alternating_causes_do_not_flood_the_log() {
        let mut log_limit = FailureLogLimit::default();
        let begun = Instant::now();
        let lines = (0..3_600)
            .filter(|second| {
                let class = if second % 2 == 0 { Cause::Unreachable } else { Cause::Broken };
                log_limit.should_log(class, begun + Duration::from_secs(*second))
            })
            .count();
        assert!(lines <= 60, "{lines}");
    }
}
