//! Failed sign-ins: each failure increases the delay before the next attempt. The gateway counts failures for each
//! account at each address, and for each address. The gateway locks no account permanently: the right password works
//! after the delay, and from another address at once.
//!
//! After a successful sign-in, failures of other people at the same address do not delay the account, because many
//! people can share one address. The right password of such an account is accepted during the delay. A wrong one
//! gets the same answer as for an account that does not exist.
use parking_lot::Mutex;
use penstock_base::backoff::exponential_delay;
use penstock_base::network;
use sha2::{Digest, Sha256};
use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// How long failures count after the last one.
const FORGET_AFTER: Duration = Duration::from_mins(15);
/// The maximum number of entries in each of the two maps.
const MAX_ENTRIES: usize = 4096;

/// For an account at one address: the number of failures without a delay, and the maximum delay.
const ACCOUNT_LIMIT: (u32, Duration) = (3, Duration::from_mins(1));
/// The same for an address, which many people may share.
const ADDRESS_LIMIT: (u32, Duration) = (20, Duration::from_secs(30));

/// How long an address stays known for an account after a sign-in.
const KNOWN_FOR: Duration = Duration::from_hours(7 * 24);
/// The number of failures after which an address is no longer known for the account. Otherwise others at the same
/// address could guess passwords without limit
/// (NIST SP 800-63B: no more than 100 consecutive failures).
const MAX_FAILURES_WHILE_KNOWN: u32 = 100;

/// The failed sign-ins. Cheap to clone.
#[derive(Debug, Clone, Default)]
pub(super) struct Attempts {
    failures: Arc<Mutex<HashMap<AttemptKey, Failures>>>,
    /// The accounts that have signed in, each with its address, and their failures since then.
    known: Arc<Mutex<HashMap<AttemptKey, Failures>>>,
    /// The duration of the last password check, in microseconds.
    check_time: Arc<AtomicU64>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
struct AttemptKey {
    address: IpAddr,
    /// The digest of an account's email, because an email can be as long as a request.
    account: Option<[u8; 16]>,
}

#[derive(Debug, Clone, Copy)]
struct Failures {
    count: u32,
    last: Instant,
}

impl AttemptKey {
    fn for_account_and_address(email: &str, from: IpAddr) -> [Self; 2] {
        let address = network::network_of(from);
        let digest: [u8; 32] = Sha256::digest(email).into();
        let account = digest.first_chunk::<16>().copied();
        [Self { address, account }, Self { address, account: None }]
    }

    /// Returns the delay between the last failure and the next attempt.
    fn delay_after(&self, count: u32) -> Duration {
        let (free, longest) = if self.account.is_some() { ACCOUNT_LIMIT } else { ADDRESS_LIMIT };
        match count.checked_sub(free) {
            None => Duration::ZERO,
            Some(more) => exponential_delay(Duration::from_secs(1), u64::from(more) + 1, longest),
        }
    }
}

impl Attempts {
    /// Returns how long this account must wait at this address. Local administration never waits.
    pub(super) fn remaining_delay(
        &self,
        email: &str,
        from: Option<IpAddr>,
        now: Instant,
    ) -> Option<Duration> {
        let failures = self.failures.lock();
        let waits =
            AttemptKey::for_account_and_address(email, from?).into_iter().filter_map(|key| {
                let Failures { count, last } = failures.get(&key)?;
                let over = *last + key.delay_after(*count);
                (over > now).then(|| over - now)
            });
        waits.max()
    }

    /// Records a failed sign-in.
    pub(super) fn record_failure(&self, email: &str, from: Option<IpAddr>, now: Instant) {
        self.record_failure_in_delay(email, from);
        let Some(from) = from else { return };
        let mut failures = self.failures.lock();
        for key in AttemptKey::for_account_and_address(email, from) {
            if failures.len() >= MAX_ENTRIES && !failures.contains_key(&key) {
                evict_entries(&mut failures, now, FORGET_AFTER);
            }
            let entry = failures.entry(key).or_insert(Failures { count: 0, last: now });
            if now.duration_since(entry.last) > FORGET_AFTER {
                entry.count = 0;
            }
            *entry = Failures { count: entry.count.saturating_add(1), last: now };
        }
    }

    /// Records a failure during the delay of an account that is known at the address. The delay does not grow, the same
    /// as for other accounts, whose attempts are refused during the delay.
    pub(super) fn record_failure_in_delay(&self, email: &str, from: Option<IpAddr>) {
        let Some(from) = from else { return };
        let [account, _] = AttemptKey::for_account_and_address(email, from);
        if let Some(known) = self.known.lock().get_mut(&account) {
            known.count = known.count.saturating_add(1);
        }
    }

    /// Forgets the failures of an account after a successful sign-in. The failures of the address remain. Otherwise the
    /// owner of one account could try passwords of other accounts without limit.
    pub(super) fn record_success(&self, email: &str, from: Option<IpAddr>) {
        if let Some(from) = from {
            let [account, _] = AttemptKey::for_account_and_address(email, from);
            self.failures.lock().remove(&account);
        }
    }

    /// Returns how long the last password check took.
    pub(super) fn check_time(&self) -> Duration {
        Duration::from_micros(self.check_time.load(Ordering::Relaxed))
    }

    /// Records how long a password check took.
    pub(super) fn record_check_time(&self, time: Duration) {
        let micros = u64::try_from(time.as_micros()).unwrap_or(u64::MAX);
        self.check_time.store(micros, Ordering::Relaxed);
    }

    /// Records that an account has signed in from this address.
    pub(super) fn record_known_address(&self, email: &str, from: Option<IpAddr>, now: Instant) {
        let Some(from) = from else { return };
        let [account, _] = AttemptKey::for_account_and_address(email, from);
        let mut known = self.known.lock();
        if known.len() >= MAX_ENTRIES && !known.contains_key(&account) {
            evict_entries(&mut known, now, KNOWN_FOR);
        }
        known.insert(account, Failures { count: 0, last: now });
    }

    /// Returns whether the account has signed in from this address recently, with few failures since.
    pub(super) fn is_known(&self, email: &str, from: Option<IpAddr>, now: Instant) -> bool {
        let Some(from) = from else { return true };
        let [account, _] = AttemptKey::for_account_and_address(email, from);
        self.known.lock().get(&account).is_some_and(|known| {
            known.count < MAX_FAILURES_WHILE_KNOWN && now.duration_since(known.last) <= KNOWN_FOR
        })
    }
}

/// Removes the entries that are older than `after`. If the map is still full, removes the oldest one.
fn evict_entries(failures: &mut HashMap<AttemptKey, Failures>, now: Instant, after: Duration) {
    failures.retain(|_, entry| now.duration_since(entry.last) <= after);
    if failures.len() >= MAX_ENTRIES {
        let oldest = failures.iter().min_by_key(|(_, entry)| entry.last).map(|(key, _)| *key);
        if let Some(oldest) = oldest {
            failures.remove(&oldest);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HERE: Option<IpAddr> = Some(IpAddr::V4(std::net::Ipv4Addr::new(192, 0, 2, 1)));
    const THERE: Option<IpAddr> = Some(IpAddr::V4(std::net::Ipv4Addr::new(192, 0, 2, 2)));

    #[test]
    fn delays_grow_only_for_the_account_at_that_address() {
        let (attempts, now) = (Attempts::default(), Instant::now());
        let mut waits = Vec::new();
        for _ in 0..12 {
            attempts.record_failure("a", HERE, now);
            waits.push(attempts.remaining_delay("a", HERE, now).map_or(0, |wait| wait.as_secs()));
        }
        assert_eq!(waits, [0, 0, 1, 2, 4, 8, 16, 32, 60, 60, 60, 60]);
        assert_eq!(attempts.remaining_delay("a", HERE, now + Duration::from_mins(1)), None);
        assert_eq!(attempts.remaining_delay("a", THERE, now), None);
        assert_eq!(attempts.remaining_delay("b", HERE, now), None);
        attempts.record_success("a", HERE);
        assert_eq!(attempts.remaining_delay("a", HERE, now), None);
    }

    #[test]
    fn an_address_that_tries_many_accounts_waits_too() {
        let (attempts, now) = (Attempts::default(), Instant::now());
        for n in 0..40 {
            attempts.record_failure(&n.to_string(), HERE, now);
        }
        assert_eq!(attempts.remaining_delay("other", HERE, now), Some(ADDRESS_LIMIT.1));
        assert_eq!(attempts.remaining_delay("other", THERE, now), None);
        attempts.record_success("other", HERE);
        assert_eq!(attempts.remaining_delay("other", HERE, now), Some(ADDRESS_LIMIT.1));
        let later = now + FORGET_AFTER + Duration::from_secs(1);
        attempts.record_failure("other", HERE, later);
        assert_eq!(attempts.remaining_delay("other", HERE, later), None);
    }

    #[test]
    fn a_network_of_ipv6_counts_as_one_and_local_administration_never_waits() {
        let (attempts, now) = (Attempts::default(), Instant::now());
        let address =
            |last: u16| Some(std::net::Ipv6Addr::new(0x2001, 0xdb8, 0, 1, 0, 0, 0, last).into());
        for n in 0..5 {
            attempts.record_failure("a", address(n), now);
            attempts.record_failure("a", None, now);
        }
        assert!(attempts.remaining_delay("a", address(99), now).is_some());
        assert_eq!(attempts.remaining_delay("a", None, now), None);
        let mapped = Some("::ffff:192.0.2.1".parse().unwrap());
        for _ in 0..5 {
            attempts.record_failure("b", mapped, now);
        }
        assert!(attempts.remaining_delay("b", HERE, now).is_some());
    }

    #[test]
    fn an_account_is_known_where_it_signed_in_until_too_many_failures() {
        let (attempts, now) = (Attempts::default(), Instant::now());
        assert!(!attempts.is_known("a", HERE, now));
        attempts.record_known_address("a", HERE, now);
        assert!(attempts.is_known("a", HERE, now));
        assert!(!attempts.is_known("a", THERE, now) && !attempts.is_known("b", HERE, now));
        assert!(!attempts.is_known("a", HERE, now + KNOWN_FOR + Duration::from_secs(1)));
        for _ in 1..MAX_FAILURES_WHILE_KNOWN {
            attempts.record_failure("a", HERE, now);
            // Failures of others and elsewhere do not count.
            attempts.record_failure("b", HERE, now);
            attempts.record_failure("a", THERE, now);
        }
        assert!(attempts.is_known("a", HERE, now));
        attempts.record_failure("a", HERE, now);
        assert!(!attempts.is_known("a", HERE, now));
        attempts.record_known_address("a", HERE, now);
        assert!(attempts.is_known("a", HERE, now));
    }

    #[test]
    fn memory_is_bounded() {
        let (attempts, now) = (Attempts::default(), Instant::now());
        for n in 0..3 * u32::try_from(MAX_ENTRIES).unwrap() {
            let from = Some(IpAddr::V4(n.into()));
            attempts.record_failure("a", from, now + Duration::from_millis(n.into()));
        }
        for n in 0..u32::try_from(MAX_ENTRIES).unwrap() + 100 {
            let from = Some(IpAddr::V4(n.into()));
            attempts.record_known_address("a", from, now + Duration::from_millis(n.into()));
        }
        assert!(attempts.failures.lock().len() <= MAX_ENTRIES);
        assert!(attempts.known.lock().len() <= MAX_ENTRIES);
    }
}
