//! Limits bad credentials per source. Good credentials are never affected: the gateway checks a credential first,
//! and only the response to a bad one changes. The limit is not against guessing, because credentials cannot be
//! guessed. It slows down clients that retry without end, so it allows what a plant with one expired token sends.
use penstock_base::network;
use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// The maximum number of failures of one source at once.
const MAX_FAILURE_BURST: u32 = 1000;
/// The time after which one more failure is allowed.
const FAILURE_INTERVAL: Duration = Duration::from_millis(100);
/// The maximum number of sources whose failures are counted.
const MAX_SOURCES: usize = 4096;

/// The recent failures by source: an address, or an IPv6 network.
#[derive(Debug, Default)]
pub struct FailedAuthentications(Mutex<HashMap<Option<IpAddr>, Source>>);

#[derive(Debug)]
struct Source {
    /// The number of failures that are not forgotten yet.
    count: u32,
    since: Instant,
}

impl Source {
    /// Forgets one failure for each interval that has passed.
    fn forget_expired(&mut self, now: Instant) {
        let intervals = now.duration_since(self.since).as_millis() / FAILURE_INTERVAL.as_millis();
        let intervals = u32::try_from(intervals).unwrap_or(u32::MAX);
        if intervals >= self.count {
            (self.count, self.since) = (0, now);
        } else {
            self.count -= intervals;
            self.since += FAILURE_INTERVAL * intervals;
        }
    }
}

impl FailedAuthentications {
    /// Records a failure. If the source has too many, returns how long it has to wait.
    pub fn record_failure(&self, from: Option<IpAddr>) -> Option<Duration> {
        self.record_failure_at(from, Instant::now())
    }

    fn record_failure_at(&self, from: Option<IpAddr>, now: Instant) -> Option<Duration> {
        // Entries change by single assignments: a panic leaves them consistent.
        let mut sources = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if sources.len() >= MAX_SOURCES {
            sources.retain(|_, source| {
                source.forget_expired(now);
                source.count > 0
            });
            // So many sources at once are one attack, so they need no separate counts.
            if sources.len() >= MAX_SOURCES {
                sources.clear();
            }
        }
        let source =
            sources.entry(from.map(network::network_of)).or_insert(Source { count: 0, since: now });
        source.forget_expired(now);
        if source.count >= MAX_FAILURE_BURST {
            let wait = FAILURE_INTERVAL.saturating_sub(now.duration_since(source.since));
            return Some(Duration::from_secs(
                wait.as_millis().div_ceil(1000).try_into().unwrap_or(1),
            ));
        }
        source.count += 1;
        None
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
            assert!(failures.0.lock().unwrap().len() <= MAX_SOURCES);
        }
    }
}
