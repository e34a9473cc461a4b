//! Passwords: Argon2id (RFC 9106), one hash at a time, never on a thread that serves requests.
use argon2::password_hash::phc::{Output, ParamsString, PasswordHash, Salt};
use argon2::{Algorithm, Argon2, Block, Params, Version};
use penstock_base::fault::{Fault, Kind};
use penstock_base::network;
use rand::RngCore;
use rand::seq::IndexedRandom;
use serde::{Deserialize, Serialize};
use std::collections::HashMap;
use std::fmt;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use subtle::ConstantTimeEq;
use tokio::sync::Semaphore;

/// The memory of one hash in KiB: OWASP's recommendation for two passes, and an amount that a gateway can spare for
/// a moment.
const MEMORY: u32 = 19 * 1024;
const PASSES: u32 = 2;
const LANES: u32 = 1;

/// The size in KiB from which the C library returns freed memory to the system at once: glibc does so from 32 MiB.
/// It keeps blocks of 19 MiB that other allocations have split. A thousand hashes then grew to gigabytes.
const RETURNED: usize = 33 * 1024;

/// The length of a new password in bytes.
const LENGTH: std::ops::RangeInclusive<usize> = 12..=1024;

/// The maximum number of waiting hashes for unauthenticated clients, and for one address among them (for IPv6 its
/// /64). An attacker with many addresses must not be able to fill the queue quickly.
const WAITING: usize = 64;
const WAITING_OF_ONE: usize = 8;
/// The same for known clients.
const WAITING_KNOWN: usize = 16;
const WAITING_KNOWN_OF_ONE: usize = 4;
/// How long a hash waits for its permit.
const PATIENCE: Duration = Duration::from_secs(20);

/// Common passwords that are long enough, but that attackers try first.
const COMMON: [&str; 24] = [
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

fn argon2() -> Argon2<'static> {
    let params = Params::new(MEMORY, PASSES, LANES, None).expect("the parameters are within range");
    Argon2::new(Algorithm::Argon2id, Version::V0x13, params)
}

/// Computes the digest of a password. This is the only place that allocates the memory for it.
fn digest(argon2: &Argon2<'_>, password: &str, salt: &[u8]) -> Result<[u8; 32], argon2::Error> {
    let blocks = argon2.params().block_count();
    // The capacity beyond the blocks is never touched, and so uses no memory.
    let mut memory = Vec::with_capacity(blocks.max(RETURNED));
    memory.resize(blocks, Block::new());
    let mut digest = [0; 32];
    argon2.hash_password_into_with_memory(password.as_bytes(), salt, &mut digest, &mut memory)?;
    Ok(digest)
}

impl Hash {
    /// Hashes a password with a random salt. Blocking while it hashes; needs 19 MiB.
    ///
    /// # Errors
    /// `Kind::Internal` if hashing fails.
    pub fn of(password: &str) -> Result<Self, Fault> {
        Self::with(&argon2(), password).map_err(|error| {
            tracing::error!(%error, "A password could not be hashed.");
            Fault::new(Kind::Internal, "the password could not be hashed; the log says why")
        })
    }

    pub(super) fn with(
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
            hash: Some(Output::new(&digest(argon2, password, &salt)?)?),
        };
        Ok(Self(hash.to_string()))
    }

    /// Returns a hash that matches no known password. Checking against it takes as long as checking any other.
    pub(super) fn of_nobody() -> Self {
        Self(
            "$argon2id$v=19$m=19456,t=2,p=1$cGVuc3RvY2stbm9ib2R5$\
             0Q2p2YX7p1mJYy1bqk0wqQvR0mX5n8mM1wq3u1q1v5Y"
                .to_owned(),
        )
    }

    /// Returns whether this is the hash of this password. Blocking, as [`Self::of`].
    pub(super) fn is_of(&self, password: &str) -> bool {
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
        digest(&argon2, password, salt.as_ref())
            .is_ok_and(|digest| digest.as_slice().ct_eq(hash.as_bytes()).into())
    }

    /// Returns whether it has the current parameters.
    pub(super) fn is_current(&self) -> bool {
        self.0.starts_with(&format!("$argon2id$v=19$m={MEMORY},t={PASSES},p={LANES}$"))
    }
}

/// Checks whether a password can be set.
///
/// # Errors
/// The reason as text.
pub fn check(password: &str, email: &str) -> Result<(), String> {
    let folded = password.to_lowercase();
    let repeats = password.chars().next().is_some_and(|c| password.chars().all(|other| other == c));
    if password.len() < *LENGTH.start() {
        Err(format!("it is too short: a password has at least {} bytes", LENGTH.start()))
    } else if password.len() > *LENGTH.end() {
        Err(format!("it is too long: a password has at most {} bytes", LENGTH.end()))
    } else if repeats || COMMON.contains(&folded.as_str()) {
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
pub fn random() -> String {
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
/// Known clients (local administration, signed-in callers, an account where it signed in recently) have their own
/// queue: at most one hash for an unknown client is ahead of them.
#[derive(Debug, Clone)]
pub(super) struct Turns {
    one: Arc<Semaphore>,
    /// Held by the one unknown client that may wait for `one`.
    next_unknown: Arc<Semaphore>,
    known: Waiting,
    unknown: Waiting,
}

impl Default for Turns {
    fn default() -> Self {
        Self {
            one: Arc::new(Semaphore::new(1)),
            next_unknown: Arc::new(Semaphore::new(1)),
            known: Waiting::new(WAITING_KNOWN, WAITING_KNOWN_OF_ONE),
            unknown: Waiting::new(WAITING, WAITING_OF_ONE),
        }
    }
}

impl Turns {
    /// Runs this work on a blocking thread, while no other hash runs. Returns `None` if too many are waiting, or if the
    /// permit does not come in time.
    pub(super) async fn take<T: Send + 'static>(
        &self,
        (is_known, from): (bool, Option<IpAddr>),
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Option<T> {
        let from = from.map(network::of);
        let known = is_known.then(|| self.known.enter(from)).flatten();
        let is_known = known.is_some();
        let place = match known {
            Some(place) => place,
            None => self.unknown.enter(from)?,
        };
        let turn = async {
            let _next = if is_known { None } else { Some(self.next_unknown.acquire().await.ok()?) };
            self.one.clone().acquire_owned().await.ok()
        };
        let turn = tokio::time::timeout(PATIENCE, turn).await.ok()??;
        drop(place);
        let work = tokio::task::spawn_blocking(move || {
            let done = work();
            // Dropped here, also if the client has disconnected meanwhile.
            drop(turn);
            done
        });
        work.await.ok()
    }
}

/// The waiting clients of one queue, by address. Cheap to clone.
#[derive(Debug, Clone)]
struct Waiting {
    places: Arc<Mutex<HashMap<Option<IpAddr>, usize>>>,
    most: usize,
    most_of_one: usize,
}

impl Waiting {
    fn new(most: usize, most_of_one: usize) -> Self {
        Self { places: Arc::default(), most, most_of_one }
    }

    /// Enters the queue. Returns `None` if the queue is full, or if this address has used its share. Local requests
    /// have no address, and can use the whole queue.
    fn enter(&self, from: Option<IpAddr>) -> Option<Place> {
        let mut places = self.places.lock().unwrap_or_else(PoisonError::into_inner);
        let own = places.get(&from).copied().unwrap_or_default();
        if places.values().sum::<usize>() >= self.most
            || (from.is_some() && own >= self.most_of_one)
        {
            return None;
        }
        places.insert(from, own + 1);
        Some(Place { waiting: self.clone(), from })
    }
}

/// A place in the queue, freed on drop.
struct Place {
    waiting: Waiting,
    from: Option<IpAddr>,
}

impl Drop for Place {
    fn drop(&mut self) {
        let mut places = self.waiting.places.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(own) = places.get_mut(&self.from) {
            *own -= 1;
            if *own == 0 {
                places.remove(&self.from);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_hash_matches_only_its_password_and_is_salted() {
        let hash = Hash::of("correct horse battery").unwrap();
        assert!(hash.is_of("correct horse battery"));
        assert!(!hash.is_of("correct horse batterY"));
        assert!(hash.is_current());
        assert_ne!(hash, Hash::of("correct horse battery").unwrap());
        assert!(!format!("{hash:?}").contains("argon2"));
        assert!(!Hash("$argon2id$v=19$m=8,t=1,p=1$AAAAAAAAAAA$x".into()).is_current());
    }

    #[test]
    fn checking_against_nobody_costs_the_same_and_never_matches() {
        let nobody = Hash::of_nobody();
        assert!(nobody.is_current());
        // It must be parsable, or else no time would be spent on it.
        let parsed = PasswordHash::new(&nobody.0).unwrap();
        assert_eq!(parsed.hash.unwrap().as_bytes().len(), 32);
        assert!(!nobody.is_of(""));
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
            let refused = check(bad, "someone@plant.example").unwrap_err();
            assert!(refused.contains(why), "{refused}");
        }
        for good in ["correct horse battery", "ümläüte sind güt", &random()] {
            assert_eq!(check(good, "a"), Ok(()), "{good}");
        }
        assert_ne!(random(), random());
    }

    /// Holds the only permit until the sender is dropped.
    async fn busy(turns: &Turns) -> std::sync::mpsc::Sender<()> {
        let (go, wait) = std::sync::mpsc::channel::<()>();
        let all = turns.clone();
        tokio::spawn(async move { all.take((true, None), move || wait.recv().is_err()).await });
        while turns.one.available_permits() > 0 {
            tokio::task::yield_now().await;
        }
        go
    }

    fn waiting(waiting: &Waiting) -> usize {
        waiting.places.lock().unwrap().values().sum()
    }

    fn address(n: usize) -> IpAddr {
        IpAddr::V4(u32::try_from(n).unwrap().into())
    }

    #[tokio::test]
    async fn one_hashes_at_a_time_and_few_wait() {
        let turns = Turns::default();
        let go = busy(&turns).await;
        let others: Vec<_> = (0..WAITING)
            .map(|n| {
                let turns = turns.clone();
                tokio::spawn(async move { turns.take((false, Some(address(n))), move || n).await })
            })
            .collect();
        while waiting(&turns.unknown) < WAITING {
            tokio::task::yield_now().await;
        }
        assert_eq!(turns.take((false, Some(address(WAITING))), || ()).await, None);
        drop(go);
        for (n, other) in others.into_iter().enumerate() {
            assert_eq!(other.await.unwrap(), Some(n));
        }
        assert_eq!((waiting(&turns.unknown), waiting(&turns.known)), (0, 0));
    }

    #[tokio::test]
    async fn known_clients_wait_for_at_most_one_unknown_client() {
        let turns = Turns::default();
        let go = busy(&turns).await;
        let order = Arc::new(Mutex::new(Vec::new()));
        let take = |is_known, n| {
            let (turns, order) = (turns.clone(), order.clone());
            tokio::spawn(async move {
                turns
                    .take((is_known, Some(address(n))), move || order.lock().unwrap().push(n))
                    .await
            })
        };
        let mut all: Vec<_> = (0..WAITING).map(|n| take(false, n)).collect();
        while waiting(&turns.unknown) < WAITING {
            tokio::task::yield_now().await;
        }
        all.push(take(true, 1000));
        while waiting(&turns.known) < 1 {
            tokio::task::yield_now().await;
        }
        drop(go);
        for one in all {
            assert_eq!(one.await.unwrap(), Some(()));
        }
        let place = order.lock().unwrap().iter().position(|n| *n == 1000).unwrap();
        assert!(place <= 1, "{place} were ahead");
    }

    #[test]
    fn one_address_has_a_share_of_the_queue() {
        let queue = Waiting::new(WAITING, WAITING_OF_ONE);
        let own: Vec<_> =
            (0..WAITING_OF_ONE).map(|_| queue.enter(Some(address(1))).unwrap()).collect();
        assert!(queue.enter(Some(address(1))).is_none());
        assert!(queue.enter(Some(address(2))).is_some() && queue.enter(None).is_some());
        drop(own);
        assert!(queue.enter(Some(address(1))).is_some());
        assert!(queue.places.lock().unwrap().is_empty());
    }
}
