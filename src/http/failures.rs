//! Limits bad credentials per source. Good credentials are never affected: the gateway checks a credential first,
//! and only the response to a bad one changes. The limit is not against guessing, because credentials cannot be
//! guessed. It slows down clients that retry without end, so it allows what a plant with one expired token sends.
use penstock_base::network;
use penstock_base::rate_limit::{RateLimit, RateLimiter};
use std::net::IpAddr;
use std::time::{Duration, Instant};

/// The maximum number of failures of one source at once.
const MAX_FAILURE_BURST: u32 = 1000;
/// The time after which one more failure is allowed.
const FAILURE_INTERVAL: Duration = Duration::from_millis(100);
/// The maximum number of sources whose failures are counted. So many sources at once are one attack, so they need no
/// separate counts.
const MAX_SOURCES: usize = 4096;

/// The recent failures by source: an address, or an IPv6 network.
#[derive(Debug)]
pub(super) struct FailedAuthentications(RateLimiter<Option<IpAddr>>);

impl Default for FailedAuthentications {
    fn default() -> Self {
        Self(RateLimiter::new(RateLimit {
            burst: MAX_FAILURE_BURST,
            interval: FAILURE_INTERVAL,
            max_idle_clients: MAX_SOURCES,
            max_clients: MAX_SOURCES,
        }))
    }
}

impl FailedAuthentications {
    /// Records a failure. If the source has too many, returns how long it has to wait, in whole seconds.
    pub(super) fn record_failure(&self, from: Option<IpAddr>) -> Option<Duration> {
        self.record_failure_at(from, Instant::now())
    }

    fn record_failure_at(&self, from: Option<IpAddr>, now: Instant) -> Option<Duration> {
        let wait = self.0.count_event(from.map(network::network_of), now).err()?;
        let seconds = wait.as_millis().div_ceil(1000).try_into().unwrap_or(1);
        Some(Duration::from_secs(seconds))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_source_has_a_burst_that_refills() {
        let failures = FailedAuthentications::default();
        let begin = Instant::now();
        let from = |text: &str| Some(text.parse().unwrap());
        for _ in 0..MAX_FAILURE_BURST {
            assert_eq!(failures.record_failure_at(from("10.0.0.1"), begin), None);
        }
        assert_eq!(
            failures.record_failure_at(from("10.0.0.1"), begin),
            Some(Duration::from_secs(1))
        );
        assert_eq!(failures.record_failure_at(from("10.0.0.2"), begin), None);
        let later = begin + FAILURE_INTERVAL * 2;
        assert_eq!(failures.record_failure_at(from("10.0.0.1"), later), None);
        assert_eq!(failures.record_failure_at(from("10.0.0.1"), later), None);
        assert!(failures.record_failure_at(from("10.0.0.1"), later).is_some());
    }

    #[test]
    fn an_ipv6_network_is_one_source_and_memory_is_limited() {
        let failures = FailedAuthentications::default();
        let now = Instant::now();
        for i in 0..MAX_FAILURE_BURST {
            assert_eq!(
                failures.record_failure_at(Some(format!("fd00::{i:x}").parse().unwrap()), now),
                None
            );
        }
        assert!(failures.record_failure_at(Some("fd00::ffff".parse().unwrap()), now).is_some());
        for i in 0..u32::try_from(MAX_SOURCES).unwrap() * 2 {
            failures.record_failure_at(Some(IpAddr::V4(i.into())), now);
            assert!(failures.0.count_clients() <= MAX_SOURCES);
        }
    }
}
