//! The cached keys of the issuer, so that a gateway without a connection to it continues to work.
//!
//! The keys are fetched at the start, once an hour, and when a token is signed with an unknown key: then at most
//! every 30 s, with one fetch for all waiting requests. The last fetched set is also in `<data-dir>/jwks.json`. While
//! the provider is unreachable, this set is used until it is older than `service.security.jwks.max-stale`, in elapsed
//! time.
use super::keys::PublicKeys;
use super::provider::Provider;
use crate::AuthError;
use penstock_base::clock::Clock;
use penstock_base::files::write_atomically;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use std::path::{Path, PathBuf};
use std::sync::{Arc, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};
use std::time::{Duration, Instant};
use tokio::sync::Mutex;

/// The file in the data directory.
const JWKS_FILE: &str = "jwks.json";
/// The minimum interval between two fetches that tokens cause.
const MIN_TOKEN_FETCH_INTERVAL: Duration = Duration::from_secs(30);
/// The interval of regular fetches.
const FETCH_INTERVAL: Duration = Duration::from_hours(1);
/// The interval of fetches while the provider is unreachable.
const FETCH_RETRY_INTERVAL: Duration = Duration::from_mins(1);

/// The keys of the issuer. Cheap to clone.
#[derive(Debug, Clone)]
pub(super) struct Jwks(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    provider: Provider,
    clock: Clock,
    file: PathBuf,
    max_stale: Duration,
    cached: RwLock<CachedKeys>,
    /// The start of the last fetch for a token. Locked during every fetch.
    fetching: Mutex<Option<Instant>>,
}

/// The cached keys and their state.
#[derive(Debug, Clone, Default)]
struct CachedKeys {
    keys: Arc<PublicKeys>,
    /// The set as it was fetched.
    text: Vec<u8>,
    /// The elapsed time of the fetch.
    fetched: u64,
    /// The elapsed time of the last write of the file.
    written: Option<u64>,
    /// The number of completed fetches, successful or not.
    attempts: u64,
    /// Whether the last one failed.
    failed: bool,
}

/// The format of the file.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct StoredJwks {
    issuer: String,
    jwk_set_uri: Option<String>,
    fetched: u64,
    jwks: Box<RawValue>,
}

/// The keys at one moment.
#[derive(Debug)]
pub(super) struct CurrentKeys {
    pub(super) keys: Arc<PublicKeys>,
    attempts: u64,
}

impl Jwks {
    /// Loads the keys from the file. Ignores them if they belong to another issuer. Blocking.
    pub(super) fn open(
        provider: Provider,
        data_dir: &Path,
        clock: Clock,
        max_stale: Duration,
    ) -> Self {
        let file = data_dir.join(JWKS_FILE);
        let mut cached = CachedKeys::default();
        match std::fs::read(&file) {
            Ok(bytes) => match read_file(&bytes, &provider) {
                Ok((text, keys, fetched)) => {
                    // In a restored store, the elapsed time may be earlier than that of the file.
                    let fetched = fetched.min(clock.elapsed());
                    tracing::info!(
                        keys = keys.len(),
                        "The keys of the token issuer were read from the data directory."
                    );
                    let keys = Arc::new(keys);
                    cached = CachedKeys { keys, text, fetched, written: Some(fetched), ..cached };
                }
                Err(why) => {
                    tracing::warn!(why, "The cached keys of the token issuer are not used.");
                }
            },
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {}
            Err(error) => {
                tracing::warn!(%error, "The cached keys of the token issuer could not be read.");
            }
        }
        let cached = RwLock::new(cached);
        Self(Arc::new(Shared {
            provider,
            clock,
            file,
            max_stale,
            cached,
            fetching: Mutex::default(),
        }))
    }

    /// Returns the cached keys. Fetches them if none can be used.
    pub(super) async fn current_keys(&self) -> Result<CurrentKeys, AuthError> {
        if let Ok(current) = self.usable_keys() {
            return Ok(current);
        }
        let attempts = self.lock_cached().attempts;
        self.fetch_once(attempts).await;
        self.usable_keys()
    }

    /// Fetches newer keys for a token that none of the `current` keys has signed. Returns the same keys if it is too
    /// early to fetch again. The flag says whether the last fetch succeeded.
    pub(super) async fn fetch_newer(
        &self,
        current: &CurrentKeys,
    ) -> Result<(CurrentKeys, bool), AuthError> {
        self.fetch_once(current.attempts).await;
        Ok((self.usable_keys()?, !self.lock_cached().failed))
    }

    /// Refreshes the keys until this is dropped.
    pub(super) async fn refresh_keys(self) {
        loop {
            let attempts = self.lock_cached().attempts;
            self.fetch_unless_done(attempts).await;
            let (failed, fetched) = {
                let cached = self.lock_cached();
                (cached.failed, cached.fetched)
            };
            let age = self.0.clock.elapsed_since(fetched);
            let wait = if failed {
                FETCH_RETRY_INTERVAL
            } else {
                FETCH_INTERVAL.saturating_sub(age).max(FETCH_RETRY_INTERVAL)
            };
            tokio::time::sleep(wait).await;
        }
    }

    fn usable_keys(&self) -> Result<CurrentKeys, AuthError> {
        let cached = self.lock_cached();
        if cached.keys.is_empty() {
            return Err(AuthError::Unavailable(
                "access tokens cannot be checked now: the keys of their issuer have not been fetched yet; \
                 the gateway's log says why"
                    .into(),
            ));
        }
        if self.0.clock.elapsed_since(cached.fetched) > self.0.max_stale {
            return Err(AuthError::Unavailable(
                "access tokens cannot be checked now: their issuer is unreachable, and its keys were \
                 fetched longer ago than service.security.jwks.max-stale allows"
                    .into(),
            ));
        }
        Ok(CurrentKeys { keys: cached.keys.clone(), attempts: cached.attempts })
    }

    /// Fetches the keys, unless another request has fetched them since `attempts` was read, or it is too early. A
    /// started fetch completes even if the client of its request disconnects.
    async fn fetch_once(&self, attempts: u64) {
        let jwks = self.clone();
        let fetching = tokio::spawn(async move {
            let mut begun = jwks.0.fetching.lock().await;
            let is_early = begun.is_some_and(|begun| begun.elapsed() < MIN_TOKEN_FETCH_INTERVAL);
            if jwks.lock_cached().attempts == attempts && !is_early {
                *begun = Some(Instant::now());
                jwks.fetch_now().await;
            }
        });
        // The task does not panic. If it is cancelled, the previous keys remain.
        let _ = fetching.await;
    }

    /// Fetches the keys, unless another task has fetched them since `attempts` was read.
    async fn fetch_unless_done(&self, attempts: u64) {
        let _fetching = self.0.fetching.lock().await;
        if self.lock_cached().attempts == attempts {
            self.fetch_now().await;
        }
    }

    async fn fetch_now(&self) {
        let fetched = self.0.provider.fetch_keys().await;
        let now = self.0.clock.elapsed();
        let to_write = {
            let mut cached = self.lock_cached_mut();
            cached.attempts += 1;
            let had_failed = std::mem::replace(&mut cached.failed, fetched.is_err());
            match fetched {
                Ok((text, keys)) => {
                    let is_new = cached.text != text;
                    if is_new || had_failed {
                        tracing::info!(
                            keys = keys.len(),
                            is_new,
                            "The keys of the token issuer were fetched."
                        );
                    }
                    let interval = u64::try_from(FETCH_INTERVAL.as_millis()).unwrap_or(u64::MAX);
                    let is_old = cached.written.is_none_or(|at| now.saturating_sub(at) >= interval);
                    cached.keys = Arc::new(keys);
                    cached.text = text;
                    cached.fetched = now;
                    (is_new || is_old).then(|| cached.text.clone())
                }
                Err(why) => {
                    if !had_failed {
                        let issuer = self.0.provider.issuer.as_str();
                        tracing::warn!(
                            issuer,
                            why,
                            "The keys of the token issuer could not be fetched; the gateway uses the cached keys."
                        );
                    }
                    None
                }
            }
        };
        if let Some(text) = to_write {
            self.write_file(text, now).await;
        }
    }

    async fn write_file(&self, text: Vec<u8>, fetched: u64) {
        let jwks = self.clone();
        let written = tokio::task::spawn_blocking(move || {
            let file = StoredJwks {
                issuer: jwks.0.provider.issuer.clone(),
                jwk_set_uri: jwks.0.provider.jwk_set_uri.clone(),
                fetched,
                jwks: serde_json::from_slice(&text)?,
            };
            write_atomically(&jwks.0.file, &serde_json::to_vec(&file)?)
        });
        match written.await {
            Ok(Ok(())) => self.lock_cached_mut().written = Some(fetched),
            Ok(Err(error)) => {
                tracing::warn!(%error, "The keys of the token issuer could not be saved in the data directory.");
            }
            Err(error) => {
                tracing::warn!(%error, "Saving the keys of the token issuer was interrupted.");
            }
        }
    }

    fn lock_cached(&self) -> RwLockReadGuard<'_, CachedKeys> {
        // A panic cannot leave the keys half changed.
        self.0.cached.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn lock_cached_mut(&self) -> RwLockWriteGuard<'_, CachedKeys> {
        self.0.cached.write().unwrap_or_else(PoisonError::into_inner)
    }
}

fn read_file(bytes: &[u8], provider: &Provider) -> Result<(Vec<u8>, PublicKeys, u64), String> {
    let file: StoredJwks = serde_json::from_slice(bytes).map_err(|error| error.to_string())?;
    if file.issuer != provider.issuer || file.jwk_set_uri != provider.jwk_set_uri {
        return Err("they belong to another issuer".to_owned());
    }
    let text = file.jwks.get().as_bytes().to_vec();
    let keys = PublicKeys::parse_set(&text)?;
    Ok((text, keys, file.fetched))
}
