//! A rate limit for each client: a token bucket.
use parking_lot::Mutex;
use std::collections::HashMap;
use std::hash::Hash;
use std::time::{Duration, Instant};

/// The limits of a [`RateLimiter`].
#[derive(Debug, Clone, Copy)]
pub struct RateLimit {
    /// The maximum number of events of one client at once.
    pub burst: u32,
    /// The time after which one more event is allowed.
    pub interval: Duration,
    /// The number of clients from which on clients with a full quota are forgotten.
    pub max_idle_clients: usize,
    /// The number of clients from which on all are forgotten, and have their full quota again.
    pub max_clients: usize,
}

/// Counts the events of each client.
#[derive(Debug)]
pub struct RateLimiter<Who> {
    limit: RateLimit,
    clients: Mutex<HashMap<Who, Bucket>>,
}

/// The part of its quota that a client has used.
#[derive(Debug)]
struct Bucket {
    used: u32,
    since: Instant,
}

impl Bucket {
    /// Returns one event to the quota for each interval that has passed.
    fn refill(&mut self, interval: Duration, now: Instant) {
        let passed = now.duration_since(self.since).as_millis() / interval.as_millis();
        let passed = u32::try_from(passed).unwrap_or(u32::MAX);
        if passed >= self.used {
            (self.used, self.since) = (0, now);
        } else {
            self.used -= passed;
            self.since += interval * passed;
        }
    }
}

impl<Who: Eq + Hash> RateLimiter<Who> {
    /// Creates a limiter that has counted nothing.
    pub fn new(limit: RateLimit) -> Self {
        Self { limit, clients: Mutex::default() }
    }

    /// Counts an event of a client. Does not count one that exceeds the limit.
    ///
    /// # Errors
    /// The time that the client has to wait when it has reached its limit.
    pub fn count_event(&self, who: Who, now: Instant) -> Result<(), Duration> {
        let RateLimit { burst, interval, max_idle_clients, max_clients } = self.limit;
        // A panic cannot leave a bucket half changed.
        let mut clients = self.clients.lock();
        if clients.len() >= max_idle_clients && !clients.contains_key(&who) {
            clients.retain(|_, bucket| {
                bucket.refill(interval, now);
                bucket.used > 0
            });
            if clients.len() >= max_clients {
                clients.clear();
            }
        }
        let bucket = clients.entry(who).or_insert(Bucket { used: 0, since: now });
        bucket.refill(interval, now);
        if bucket.used >= burst {
            return Err(interval.saturating_sub(now.duration_since(bucket.since)));
        }
        bucket.used += 1;
        Ok(())
    }

    /// Returns the number of clients in memory.
    pub fn count_clients(&self) -> usize {
        self.clients.lock().len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const INTERVAL: Duration = Duration::from_secs(10);

    fn limiter() -> RateLimiter<u32> {
        let limits = (2, INTERVAL, 3, 5);
        let (burst, interval, max_idle_clients, max_clients) = limits;
        RateLimiter::new(RateLimit { burst, interval, max_idle_clients, max_clients })
    }

    #[test]
    fn each_client_has_a_burst_that_refills() {
        let (limiter, begin) = (limiter(), Instant::now());
        let count = |who, at| limiter.count_event(who, begin + at);
        assert_eq!([count(1, Duration::ZERO), count(1, Duration::ZERO)], [Ok(()), Ok(())]);
        assert_eq!(count(1, INTERVAL / 4), Err(INTERVAL * 3 / 4));
        assert_eq!(count(2, INTERVAL / 4), Ok(()));
        assert_eq!(count(1, INTERVAL), Ok(()));
        assert_eq!(count(1, INTERVAL * 3 / 2), Err(INTERVAL / 2));
        assert_eq!(
            [3, 3, 3].map(|intervals| count(1, INTERVAL * intervals).is_ok()),
            [true, true, false]
        );
    }

    #[test]
    fn clients_are_forgotten_when_there_are_too_many() {
        let (limiter, begin) = (limiter(), Instant::now());
        for who in 0..5 {
            limiter.count_event(who, begin).unwrap();
        }
        assert_eq!(limiter.count_clients(), 5);
        limiter.count_event(5, begin).unwrap();
        assert_eq!(limiter.count_clients(), 1);
        for who in 6..8 {
            limiter.count_event(who, begin + INTERVAL / 2).unwrap();
        }
        limiter.count_event(8, begin + INTERVAL).unwrap();
        assert_eq!(limiter.count_clients(), 3);
    }
}
