//! The rule by which failed deliveries are retried, the failures of a delivery so far, and the rate limit of the log
//! lines about them.
use super::cause::DeliveryFailure;
use penstock_base::backoff::exponential_delay;
use penstock_base::time;
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

/// The maximum `Retry-After` of a webhook's receiver that is respected.
const MAX_WEBHOOK_RETRY_AFTER: Duration = Duration::from_hours(1);
/// The maximum delay of a webhook while the clocks differ. That of the gateway is often set soon after the start.
const MAX_WEBHOOK_CLOCK_DELAY: Duration = Duration::from_secs(30);

/// How soon a failed delivery is retried.
#[derive(Debug, Clone, Copy)]
pub(super) struct RetryRule {
    timings: DeliveryTimings,
    /// The maximum `Retry-After` that is respected.
    max_retry_after: Duration,
    /// The maximum delay while the clocks differ.
    max_clock_delay: Duration,
}

impl RetryRule {
    /// Returns the rule for exports to targets.
    pub(super) fn of_targets(timings: DeliveryTimings) -> Self {
        let max = timings.max_delay;
        Self { timings, max_retry_after: max, max_clock_delay: max }
    }

    /// Returns the rule for events to webhooks.
    pub(super) fn of_webhooks(timings: DeliveryTimings) -> Self {
        let (max_retry_after, max_clock_delay) = (MAX_WEBHOOK_RETRY_AFTER, MAX_WEBHOOK_CLOCK_DELAY);
        Self { timings, max_retry_after, max_clock_delay }
    }

    /// Returns the delay before the next attempt: exponential backoff with full jitter, so that many gateways
    /// do not retry at once. It is never less than the server's `Retry-After`, up to its maximum.
    fn next_delay(&self, failure: &DeliveryFailure, failures: u64) -> Duration {
        let first = if failure.is_transient() {
            self.timings.first_delay
        } else {
            self.timings.first_delay_if_operator_needed
        };
        let cap = exponential_delay(first, failures, self.timings.max_delay);
        let mut delay = cap.mul_f64(rand::rng().random_range(0.05..=1.0));
        if failure.class == Cause::Clock {
            delay = delay.min(self.max_clock_delay);
        }
        delay.max(failure.retry_after.unwrap_or_default().min(self.max_retry_after))
    }
}

/// The failures of a delivery since its last success.
#[derive(Debug, Clone)]
pub(super) struct FailedAttempts {
    /// The number of failures in a row.
    pub(super) count: u64,
    pub(super) last: DeliveryFailure,
    /// When the first failure happened (RFC 3339).
    pub(super) since: String,
    /// The delay before the next attempt.
    pub(super) delay: Duration,
    /// When the next attempt is due (RFC 3339).
    pub(super) next_attempt: String,
}

impl FailedAttempts {
    /// Adds a failure to those before it.
    pub(super) fn add(before: Option<Self>, failure: DeliveryFailure, rule: &RetryRule) -> Self {
        let (count, since) = match before {
            Some(before) => (before.count + 1, before.since),
            None => (1, time::now_rfc3339()),
        };
        let delay = rule.next_delay(&failure, count);
        Self { count, last: failure, since, delay, next_attempt: time::rfc3339_after(delay) }
    }
}

/// Limits the log lines about a failing target or webhook. The first failure is logged, and later ones at intervals that
/// grow to a day. A week without a link adds about a dozen lines.
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
        let rule = RetryRule::of_targets(timings);
        let (link, policy) =
            (DeliveryFailure::new(Cause::Broken, ""), DeliveryFailure::new(Cause::Policy, ""));
        for failures in [1, 2, 5, 9, 10, 1_000, u64::MAX] {
            let wait = rule.next_delay(&link, failures);
            let cap = Duration::from_secs(1 << (failures - 1).min(9)).min(timings.max_delay);
            assert!(wait <= cap && wait >= cap / 21, "{failures}: {wait:?}");
            let wait = rule.next_delay(&policy, failures);
            let cap = Duration::from_secs(30 << (failures - 1).min(5)).min(timings.max_delay);
            assert!(wait <= cap && wait >= cap / 21, "{failures}: {wait:?}");
        }
        let asked = |delay| DeliveryFailure { retry_after: Some(delay), ..link.clone() };
        let seven = Duration::from_secs(7);
        assert!(rule.next_delay(&asked(seven), 1) >= seven);
        let day = asked(Duration::from_hours(24));
        assert_eq!(rule.next_delay(&day, 1), timings.max_delay);
        assert_eq!(RetryRule::of_webhooks(timings).next_delay(&day, 1), MAX_WEBHOOK_RETRY_AFTER);
    }

    #[test]
    fn a_webhook_waits_less_while_the_clocks_differ() {
        let rule = RetryRule::of_webhooks(DeliveryTimings::default());
        let clock = DeliveryFailure::new(Cause::Clock, "");
        assert!(
            (1..100).all(|failures| rule.next_delay(&clock, failures) <= MAX_WEBHOOK_CLOCK_DELAY)
        );
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
