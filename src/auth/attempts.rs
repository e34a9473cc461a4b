//! Failed sign-ins: each failure makes the next attempt wait longer, for the account from that address,
//! and for the address. Nobody is locked out for good: the right password gets in after the delay, and
//! from another address at once.
//!
//! Where an account has signed in lately, the failures of others at that address delay nobody: many people
//! can stand behind one address. The right password of such an account is accepted during the delay; a wrong
//! one gets the same answer as for an account that does not exist.
use penstock_base::network;
use sha2::{Digest, Sha256};
use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// Failures are forgotten after so long without another one.
const FORGET: Duration = Duration::from_mins(15);
/// Accounts and addresses that are remembered at once.
const MOST: usize = 4096;

/// Failures that cost nothing yet, and the longest delay, of an account from one address.
const ACCOUNT: (u32, Duration) = (3, Duration::from_mins(1));
/// The same of an address: many people may stand behind one.
const ADDRESS: (u32, Duration) = (20, Duration::from_secs(30));

/// How long an account and an address stay known to each other after a sign-in.
const KNOWN_FOR: Duration = Duration::from_hours(7 * 24);
/// Failures after which they no longer are, so that nobody behind the same address can guess without end
/// (NIST SP 800-63B: no more than 100 consecutive failures).
const MAX_FAILURES_WHILE_KNOWN: u32 = 100;

/// The failures so far. Cheap to clone.
#[derive(Debug, Clone, Default)]
pub(super) struct Attempts {
    failures: Arc<Mutex<HashMap<Key, Failures>>>,
    /// Accounts that have signed in, by the address that they came from, and the failures since.
    known: Arc<Mutex<HashMap<Key, Failures>>>,
    /// Microseconds that the last check of a password took.
    check_time: Arc<AtomicU64>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
struct Key {
    address: IpAddr,
    /// The digest of an account's email; a name can be as long as a request.
    account: Option<[u8; 16]>,
}

#[derive(Debug, Clone, Copy)]
struct Failures {
    count: u32,
    last: Instant,
}

impl Key {
    fn both(email: &str, from: IpAddr) -> [Self; 2] {
        let address = network::of(from);
        let digest: [u8; 32] = Sha256::digest(email).into();
        let account = digest.first_chunk::<16>().copied();
        [Self { address, account }, Self { address, account: None }]
    }

    /// How long after the last failure the next attempt may come.
    fn delay(&self, count: u32) -> Duration {
        let (free, longest) = if self.account.is_some() { ACCOUNT } else { ADDRESS };
        match count.checked_sub(free) {
            None => Duration::ZERO,
            Some(doublings) => Duration::from_secs(1 << doublings.min(16)).min(longest),
        }
    }
}

impl Attempts {
    // Nothing panics while it is held.
    fn failures(&self) -> MutexGuard<'_, HashMap<Key, Failures>> {
        self.failures.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// How long this account must wait at this address; local administration never waits.
    pub(super) fn wait(&self, email: &str, from: Option<IpAddr>, now: Instant) -> Option<Duration> {
        let failures = self.failures();
        let waits = Key::both(email, from?).into_iter().filter_map(|key| {
            let Failures { count, last } = failures.get(&key)?;
            let over = *last + key.delay(*count);
            (over > now).then(|| over - now)
        });
        waits.max()
    }

    /// Notes a failure.
    pub(super) fn failed(&self, email: &str, from: Option<IpAddr>, now: Instant) {
        self.failed_in_delay(email, from);
        let Some(from) = from else { return };
        let mut failures = self.failures();
        for key in Key::both(email, from) {
            if failures.len() >= MOST && !failures.contains_key(&key) {
                forget(&mut failures, now, FORGET);
            }
            let entry = failures.entry(key).or_insert(Failures { count: 0, last: now });
            if now.duration_since(entry.last) > FORGET {
                entry.count = 0;
            }
            *entry = Failures { count: entry.count.saturating_add(1), last: now };
        }
    }

    /// Notes a failure of an account that is known, which tried during the delay. The delay stays as it is,
    /// as it does for an account that has to wait.
    pub(super) fn failed_in_delay(&self, email: &str, from: Option<IpAddr>) {
        let Some(from) = from else { return };
        let [account, _] = Key::both(email, from);
        if let Some(known) = self.known().get_mut(&account) {
            known.count = known.count.saturating_add(1);
        }
    }

    /// Forgets the failures of an account that came in; those of the address stay, since whoever has one
    /// account could else try as often as he likes for others.
    pub(super) fn succeeded(&self, email: &str, from: Option<IpAddr>) {
        if let Some(from) = from {
            let [account, _] = Key::both(email, from);
            self.failures().remove(&account);
        }
    }

    /// How long the last check of a password took.
    pub(super) fn check_time(&self) -> Duration {
        Duration::from_micros(self.check_time.load(Ordering::Relaxed))
    }

    /// Notes how long a check of a password took.
    pub(super) fn note_check_time(&self, time: Duration) {
        let micros = u64::try_from(time.as_micros()).unwrap_or(u64::MAX);
        self.check_time.store(micros, Ordering::Relaxed);
    }

    /// Notes that an account has signed in from this address.
    pub(super) fn remember(&self, email: &str, from: Option<IpAddr>, now: Instant) {
        let Some(from) = from else { return };
        let [account, _] = Key::both(email, from);
        let mut known = self.known();
        if known.len() >= MOST && !known.contains_key(&account) {
            forget(&mut known, now, KNOWN_FOR);
        }
        known.insert(account, Failures { count: 0, last: now });
    }

    /// Whether the account has signed in from this address lately, with few failures since.
    pub(super) fn is_known(&self, email: &str, from: Option<IpAddr>, now: Instant) -> bool {
        let Some(from) = from else { return true };
        let [account, _] = Key::both(email, from);
        self.known().get(&account).is_some_and(|known| {
            known.count < MAX_FAILURES_WHILE_KNOWN && now.duration_since(known.last) <= KNOWN_FOR
        })
    }

    // Nothing panics while it is held.
    fn known(&self) -> MutexGuard<'_, HashMap<Key, Failures>> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Makes room: of those whose time is over, or else of the oldest.
fn forget(failures: &mut HashMap<Key, Failures>, now: Instant, after: Duration) {
    failures.retain(|_, entry| now.duration_since(entry.last) <= after);
    if failures.len() >= MOST {
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
    fn delays_grow_for_the_account_at_that_address_alone() {
        let (attempts, now) = (Attempts::default(), Instant::now());
        let mut waits = Vec::new();
        for _ in 0..12 {
            attempts.failed("a", HERE, now);
            waits.push(attempts.wait("a", HERE, now).map_or(0, |wait| wait.as_secs()));
        }
        assert_eq!(waits, [0, 0, 1, 2, 4, 8, 16, 32, 60, 60, 60, 60]);
        assert_eq!(attempts.wait("a", HERE, now + Duration::from_mins(1)), None);
        assert_eq!(attempts.wait("a", THERE, now), None);
        assert_eq!(attempts.wait("b", HERE, now), None);
        attempts.succeeded("a", HERE);
        assert_eq!(attempts.wait("a", HERE, now), None);
    }

    #[test]
    fn an_address_that_tries_many_accounts_waits_too() {
        let (attempts, now) = (Attempts::default(), Instant::now());
        for n in 0..40 {
            attempts.failed(&n.to_string(), HERE, now);
        }
        assert_eq!(attempts.wait("other", HERE, now), Some(ADDRESS.1));
        assert_eq!(attempts.wait("other", THERE, now), None);
        attempts.succeeded("other", HERE);
        assert_eq!(attempts.wait("other", HERE, now), Some(ADDRESS.1));
        let later = now + FORGET + Duration::from_secs(1);
        attempts.failed("other", HERE, later);
        assert_eq!(attempts.wait("other", HERE, later), None);
    }

    #[test]
    fn a_network_of_ipv6_counts_as_one_and_local_administration_never_waits() {
        let (attempts, now) = (Attempts::default(), Instant::now());
        let address =
            |last: u16| Some(std::net::Ipv6Addr::new(0x2001, 0xdb8, 0, 1, 0, 0, 0, last).into());
        for n in 0..5 {
            attempts.failed("a", address(n), now);
            attempts.failed("a", None, now);
        }
        assert!(attempts.wait("a", address(99), now).is_some());
        assert_eq!(attempts.wait("a", None, now), None);
        let mapped = Some("::ffff:192.0.2.1".parse().unwrap());
        for _ in 0..5 {
            attempts.failed("b", mapped, now);
        }
        assert!(attempts.wait("b", HERE, now).is_some());
    }

    #[test]
    fn an_account_is_known_where_it_signed_in_until_too_many_failures() {
        let (attempts, now) = (Attempts::default(), Instant::now());
        assert!(!attempts.is_known("a", HERE, now));
        attempts.remember("a", HERE, now);
        assert!(attempts.is_known("a", HERE, now));
        assert!(!attempts.is_known("a", THERE, now) && !attempts.is_known("b", HERE, now));
        assert!(!attempts.is_known("a", HERE, now + KNOWN_FOR + Duration::from_secs(1)));
        for _ in 1..MAX_FAILURES_WHILE_KNOWN {
            attempts.failed("a", HERE, now);
            // Failures of others and elsewhere do not count.
            attempts.failed("b", HERE, now);
            attempts.failed("a", THERE, now);
        }
        assert!(attempts.is_known("a", HERE, now));
        attempts.failed("a", HERE, now);
        assert!(!attempts.is_known("a", HERE, now));
        attempts.remember("a", HERE, now);
        assert!(attempts.is_known("a", HERE, now));
    }

    #[test]
    fn memory_is_bounded() {
        let (attempts, now) = (Attempts::default(), Instant::now());
        for n in 0..3 * u32::try_from(MOST).unwrap() {
            let from = Some(IpAddr::V4(n.into()));
            attempts.failed("a", from, now + Duration::from_millis(n.into()));
        }
        for n in 0..u32::try_from(MOST).unwrap() + 100 {
            let from = Some(IpAddr::V4(n.into()));
            attempts.remember("a", from, now + Duration::from_millis(n.into()));
        }
        assert!(attempts.failures().len() <= MOST);
        assert!(attempts.known().len() <= MOST);
    }
}
