//! Failed sign-ins: each failure makes the next attempt wait longer, for the account from that address,
//! and for the address. Nobody is locked out for good: the right password gets in after the delay, and
//! from another address at once.
use crate::network;
use sha2::{Digest, Sha256};
use std::collections::HashMap;
use std::net::IpAddr;
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

/// The failures so far. Cheap to clone.
#[derive(Debug, Clone, Default)]
pub(super) struct Attempts {
    failures: Arc<Mutex<HashMap<Key, Failures>>>,
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
        let Some(from) = from else { return };
        let mut failures = self.failures();
        for key in Key::both(email, from) {
            if failures.len() >= MOST && !failures.contains_key(&key) {
                forget(&mut failures, now);
            }
            let entry = failures.entry(key).or_insert(Failures { count: 0, last: now });
            if now.duration_since(entry.last) > FORGET {
                entry.count = 0;
            }
            *entry = Failures { count: entry.count.saturating_add(1), last: now };
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
}

/// Makes room: of those whose time is over, or else of the oldest.
fn forget(failures: &mut HashMap<Key, Failures>, now: Instant) {
    failures.retain(|_, entry| now.duration_since(entry.last) <= FORGET);
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
    fn memory_is_bounded() {
        let (attempts, now) = (Attempts::default(), Instant::now());
        for n in 0..3 * u32::try_from(MOST).unwrap() {
            let from = Some(IpAddr::V4(n.into()));
            attempts.failed("a", from, now + Duration::from_millis(n.into()));
        }
        assert!(attempts.failures().len() <= MOST);
    }
}
