//! Passwords: Argon2id (RFC 9106), one hash at a time, never on a thread that serves requests.
use argon2::password_hash::phc::{Output, ParamsString, PasswordHash, Salt};
use argon2::{Algorithm, Argon2, Block, Params, Version};
use penstock_base::blocking::spawn_blocking;
use penstock_base::error::{ErrorClass, GatewayError};
use penstock_base::network;
use penstock_base::permits::{Permit, Permits};
use rand::RngCore;
use rand::seq::IndexedRandom;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;
use subtle::ConstantTimeEq;
use tokio::sync::Semaphore;

/// The memory of one hash in KiB: OWASP's recommendation for two passes, and an amount that a gateway can spare for
/// a moment.
const MEMORY_KIB: u32 = 19 * 1024;
const PASSES: u32 = 2;
const LANES: u32 = 1;

/// The minimum size in KiB of an allocation that the C library returns to the system as soon as it is freed. For glibc
/// that is 32 MiB. It keeps smaller blocks, and other allocations split them: after a thousand hashes with blocks of
/// 19 MiB, the process had grown to gigabytes.
const MIN_RETURNED_KIB: usize = 33 * 1024;

/// The length of a new password in bytes.
pub(super) const PASSWORD_BYTES: std::ops::RangeInclusive<usize> = 12..=1024;

/// The maximum number of waiting hashes of unauthenticated clients in total, and for each address (for IPv6 its /64).
/// An attacker with many addresses must not be able to fill the queue quickly.
const MAX_WAITING_UNKNOWN: u64 = 64;
const MAX_WAITING_UNKNOWN_PER_ADDRESS: u64 = 8;
/// The same limits for known clients (see [`HashPermits`]).
const MAX_WAITING_KNOWN: u64 = 16;
const MAX_WAITING_KNOWN_PER_ADDRESS: u64 = 4;
/// The maximum time that a hash waits for its permit.
const PERMIT_TIMEOUT: Duration = Duration::from_secs(20);

/// Common passwords that are long enough. Attackers try them first.
const COMMON_PASSWORDS: [&str; 24] = [
    "000000000000",
    "111111111111",
    "1234567890123",
    "123123123123",
    "123456123456",
    "123456789012",
    "1234567891011",
    "123456789abc",
    "1q2w3e4r5t6y",
    "1qaz2wsx3edc",
    "administrator",
    "administrator1",
    "adminadminadmin",
    "adminpassword",
    "changeme1234",
    "changemechangeme",
    "iloveyou1234",
    "letmeinletmein",
    "password1234",
    "password12345",
    "passwordpassword",
    "penstockpenstock",
    "qwerty123456",
    "qwertyuiop123",
];

/// The hash of a password as a PHC string. Its `Debug` form does not show it.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Hash(String);

impl fmt::Debug for Hash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Hash(..)")
    }
}

fn current_argon2() -> Argon2<'static> {
    let params =
        Params::new(MEMORY_KIB, PASSES, LANES, None).expect("the parameters are within range");
    Argon2::new(Algorithm::Argon2id, Version::V0x13, params)
}

/// Computes the digest of a password. This is the only place that allocates the memory for it.
fn compute_digest(
    argon2: &Argon2<'_>,
    password: &str,
    salt: &[u8],
) -> Result<[u8; 32], argon2::Error> {
    let blocks = argon2.params().block_count();
    // The capacity beyond the blocks is never touched, and so uses no memory.
    let mut memory = Vec::with_capacity(blocks.max(MIN_RETURNED_KIB));
    memory.resize(blocks, Block::new());
    let mut digest = [0; 32];
    argon2.hash_password_into_with_memory(password.as_bytes(), salt, &mut digest, &mut memory)?;
    Ok(digest)
}

impl Hash {
    /// Hashes a password with a random salt. Blocking while it hashes; needs 19 MiB.
    ///
    /// # Errors
    /// `ErrorClass::Internal` if hashing fails.
    pub fn from_password(password: &str) -> Result<Self, GatewayError> {
        Self::from_password_with(&current_argon2(), password).map_err(|error| {
            tracing::error!(%error, "A password could not be hashed.");
            GatewayError::new(
                ErrorClass::Internal,
                "the password could not be hashed; the log says why",
            )
        })
    }

    pub(super) fn from_password_with(
        argon2: &Argon2<'_>,
        password: &str,
    ) -> Result<Self, argon2::password_hash::Error> {
        let mut salt = [0; 16];
        rand::rng().fill_bytes(&mut salt);
        let hash = PasswordHash {
            algorithm: Algorithm::Argon2id.ident(),
            version: Some(Version::V0x13.into()),
            params: ParamsString::try_from(argon2.params())?,
            salt: Some(Salt::new(&salt)?),
            hash: Some(Output::new(&compute_digest(argon2, password, &salt)?)?),
        };
        Ok(Self(hash.to_string()))
    }

    /// Returns a hash that matches no known password. Checking against it takes as long as checking any other.
    pub(super) fn unmatchable() -> Self {
        Self(
            "$argon2id$v=19$m=19456,t=2,p=1$cGVuc3RvY2stbm9ib2R5$\
             0Q2p2YX7p1mJYy1bqk0wqQvR0mX5n8mM1wq3u1q1v5Y"
                .to_owned(),
        )
    }

    /// Returns whether this is the hash of this password. Blocking, as [`Self::from_password`].
    pub(super) fn matches_password(&self, password: &str) -> bool {
        let Ok(PasswordHash { algorithm, version, params, salt, hash }) =
            PasswordHash::new(&self.0)
        else {
            return false;
        };
        let (Ok(params), Some(salt), Some(hash)) = (Params::try_from(&params), salt, hash) else {
            return false;
        };
        if algorithm != Algorithm::Argon2id.ident() || version != Some(Version::V0x13.into()) {
            return false;
        }
        let argon2 = Argon2::new(Algorithm::Argon2id, Version::V0x13, params);
        compute_digest(&argon2, password, salt.as_ref())
            .is_ok_and(|digest| digest.as_slice().ct_eq(hash.as_bytes()).into())
    }

    /// Returns whether it has the current parameters.
    pub(super) fn is_current(&self) -> bool {
        self.0.starts_with(&format!("$argon2id$v=19$m={MEMORY_KIB},t={PASSES},p={LANES}$"))
    }
}

/// Checks whether a password can be set.
///
/// # Errors
/// The reason as text.
pub fn check_password(password: &str, email: &str) -> Result<(), String> {
    let folded = password.to_lowercase();
    let repeats = password.chars().next().is_some_and(|c| password.chars().all(|other| other == c));
    if password.len() < *PASSWORD_BYTES.start() {
        Err(format!("it is too short: a password has at least {} bytes", PASSWORD_BYTES.start()))
    } else if password.len() > *PASSWORD_BYTES.end() {
        Err(format!("it is too long: a password has at most {} bytes", PASSWORD_BYTES.end()))
    } else if repeats || COMMON_PASSWORDS.contains(&folded.as_str()) {
        Err("it is a common password, one that is tried first; choose another one".to_owned())
    } else if folded == email.to_lowercase() {
        Err("it is the account's email; choose another one".to_owned())
    } else if password.contains(['\n', '\r', '\0']) {
        Err("it contains a line end or a NUL byte, which a form cannot send".to_owned())
    } else {
        Ok(())
    }
}

/// Generates a random password of 120 bits, without characters that are easily confused.
pub fn generate_password() -> String {
    const CHARACTERS: &[u8; 32] = b"abcdefghijkmnpqrstuvwxyz23456789";
    let mut rng = rand::rng();
    let mut password = String::new();
    for place in 0..24 {
        if place > 0 && place % 6 == 0 {
            password.push('-');
        }
        password.extend(CHARACTERS.choose(&mut rng).copied().map(char::from));
    }
    password
}

/// The permits and queues of hashing. Cheap to clone.
///
/// Known clients have their own queue: at most one waiting hash of an unknown client is ahead of theirs. Known are
/// local administration, signed-in callers, and an account at an address where it signed in recently.
#[derive(Debug, Clone)]
pub(super) struct HashPermits {
    running: Arc<Semaphore>,
    /// The permit of the only unknown client that may wait for `one`.
    next_unknown: Arc<Semaphore>,
    known: WaitQueue,
    unknown: WaitQueue,
}

impl Default for HashPermits {
    fn default() -> Self {
        Self {
            running: Arc::new(Semaphore::new(1)),
            next_unknown: Arc::new(Semaphore::new(1)),
            known: WaitQueue::new(MAX_WAITING_KNOWN, MAX_WAITING_KNOWN_PER_ADDRESS),
            unknown: WaitQueue::new(MAX_WAITING_UNKNOWN, MAX_WAITING_UNKNOWN_PER_ADDRESS),
        }
    }
}

impl HashPermits {
    /// Waits for the permit, and runs `work` on a blocking thread. Returns `None` if the queue is full, or after
    /// [`PERMIT_TIMEOUT`].
    pub(super) async fn run_with_permit<T: Send + 'static>(
        &self,
        (is_known, from): (bool, Option<IpAddr>),
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Option<T> {
        let from = from.map(network::network_of);
        let known = is_known.then(|| enter_queue(&self.known, from)).flatten();
        let is_known = known.is_some();
        let place = match known {
            Some(place) => place,
            None => enter_queue(&self.unknown, from)?,
        };
        let permit = async {
            let _next = if is_known { None } else { Some(self.next_unknown.acquire().await.ok()?) };
            self.running.clone().acquire_owned().await.ok()
        };
        let permit = tokio::time::timeout(PERMIT_TIMEOUT, permit).await.ok()??;
        drop(place);
        let work = spawn_blocking(move || {
            let done = work();
            // The permit is dropped here, so that it lasts as long as the work even if the client disconnects.
            drop(permit);
            done
        });
        work.await.ok()
    }
}

/// The waiting clients of one queue, by address. Local requests have no address.
type WaitQueue = Permits<Option<IpAddr>>;

/// Enters the queue. Returns `None` if the queue is full, or if this address has reached its limit. Local requests have
/// only the limit of the whole queue.
fn enter_queue(queue: &WaitQueue, from: Option<IpAddr>) -> Option<Permit<Option<IpAddr>>> {
    match from {
        Some(_) => queue.try_acquire(from, 1),
        None => queue.try_acquire_uncapped(from, 1),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use parking_lot::Mutex;

    #[test]
    fn a_hash_matches_only_its_password_and_is_salted() {
        let hash = Hash::from_password("correct horse battery").unwrap();
        assert!(hash.matches_password("correct horse battery"));
        assert!(!hash.matches_password("correct horse batterY"));
        assert!(hash.is_current());
        assert_ne!(hash, Hash::from_password("correct horse battery").unwrap());
        assert!(!format!("{hash:?}").contains("argon2"));
        assert!(!Hash("$argon2id$v=19$m=8,t=1,p=1$AAAAAAAAAAA$x".into()).is_current());
    }

    #[test]
    fn the_unmatchable_hash_costs_the_same_and_never_matches() {
        let unmatchable = Hash::unmatchable();
        assert!(unmatchable.is_current());
        // If it could not be parsed, the check would return at once.
        let parsed = PasswordHash::new(&unmatchable.0).unwrap();
        assert_eq!(parsed.hash.unwrap().as_bytes().len(), 32);
        assert!(!unmatchable.matches_password(""));
    }

    #[test]
    fn new_passwords_are_checked() {
        let long = "x1".repeat(513);
        for (bad, why) in [
            ("short", "too short"),
            (long.as_str(), "too long"),
            ("Password1234", "tried first"),
            ("xxxxxxxxxxxxxx", "tried first"),
            ("Someone@Plant.example", "email"),
            ("with a\nline end in it", "line end"),
        ] {
            let refused = check_password(bad, "someone@plant.example").unwrap_err();
            assert!(refused.contains(why), "{refused}");
        }
        for good in ["correct horse battery", "ümläüte sind güt", &generate_password()] {
            assert_eq!(check_password(good, "a"), Ok(()), "{good}");
        }
        assert_ne!(generate_password(), generate_password());
    }

    /// Holds the only permit until the sender is dropped.
    async fn hold_permit(permits: &HashPermits) -> std::sync::mpsc::Sender<()> {
        let (go, wait) = std::sync::mpsc::channel::<()>();
        let all = permits.clone();
        tokio::spawn(async move {
            all.run_with_permit((true, None), move || wait.recv().is_err()).await
        });
        while permits.running.available_permits() > 0 {
            tokio::task::yield_now().await;
        }
        go
    }

    fn nth_address(n: u64) -> IpAddr {
        IpAddr::V4(u32::try_from(n).unwrap().into())
    }

    #[tokio::test]
    async fn one_hashes_at_a_time_and_few_wait() {
        let permits = HashPermits::default();
        let go = hold_permit(&permits).await;
        let others: Vec<_> = (0..MAX_WAITING_UNKNOWN)
            .map(|n| {
                let permits = permits.clone();
                tokio::spawn(async move {
                    permits.run_with_permit((false, Some(nth_address(n))), move || n).await
                })
            })
            .collect();
        while permits.unknown.total_usage() < MAX_WAITING_UNKNOWN {
            tokio::task::yield_now().await;
        }
        assert_eq!(
            permits.run_with_permit((false, Some(nth_address(MAX_WAITING_UNKNOWN))), || ()).await,
            None
        );
        drop(go);
        for (n, other) in (0..).zip(others) {
            assert_eq!(other.await.unwrap(), Some(n));
        }
        assert_eq!((permits.unknown.total_usage(), permits.known.total_usage()), (0, 0));
    }

    #[tokio::test]
    async fn known_clients_wait_for_at_most_one_unknown_client() {
        let permits = HashPermits::default();
        let go = hold_permit(&permits).await;
        let order = Arc::new(Mutex::new(Vec::new()));
        let take = |is_known, n| {
            let (permits, order) = (permits.clone(), order.clone());
            tokio::spawn(async move {
                permits
                    .run_with_permit((is_known, Some(nth_address(n))), move || {
                        order.lock().push(n);
                    })
                    .await
            })
        };
        let mut all: Vec<_> = (0..MAX_WAITING_UNKNOWN).map(|n| take(false, n)).collect();
        while permits.unknown.total_usage() < MAX_WAITING_UNKNOWN {
            tokio::task::yield_now().await;
        }
        all.push(take(true, 1000));
        while permits.known.total_usage() < 1 {
            tokio::task::yield_now().await;
        }
        drop(go);
        for one in all {
            assert_eq!(one.await.unwrap(), Some(()));
        }
        let place = order.lock().iter().position(|n| *n == 1000).unwrap();
        assert!(place <= 1, "{place} were ahead");
    }

    #[test]
    fn one_address_has_a_share_of_the_queue() {
        let queue = WaitQueue::new(MAX_WAITING_UNKNOWN, MAX_WAITING_UNKNOWN_PER_ADDRESS);
        let own: Vec<_> = (0..MAX_WAITING_UNKNOWN_PER_ADDRESS)
            .map(|_| enter_queue(&queue, Some(nth_address(1))).unwrap())
            .collect();
        assert!(enter_queue(&queue, Some(nth_address(1))).is_none());
        assert!(
            enter_queue(&queue, Some(nth_address(2))).is_some()
                && enter_queue(&queue, None).is_some()
        );
        drop(own);
        assert!(enter_queue(&queue, Some(nth_address(1))).is_some());
        assert_eq!(queue.total_usage(), 0);
    }
}
