//! The cached keys of the issuer, so that a gateway without a connection to it continues to work.
//!
//! The keys are fetched at the start, once an hour, and when a token is signed with an unknown key: then at most
//! every 30 s, with one fetch for all waiting requests. The last fetched set is also in `<data-dir>/jwks.json`. While
//! the provider is unreachable, this set is used until it is older than `service.security.jwks.max-stale`, in elapsed
//! time.
use super::keys::PublicKeys;
use crate::AuthError;
use crate::discovery::{self, Cache, Cached, DiscoveryError};
use crate::fetch::{self, FetchError};
use parking_lot::Mutex;
use penstock_base::blocking::spawn_blocking;
use penstock_base::clock::Clock;
use penstock_base::error::GatewayError;
use penstock_base::files::write_atomically;
use penstock_base::shared::Shared;
use penstock_config::{ResourceServer, Settings};
use reqwest::Client;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

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
pub(super) struct Jwks(Shared<Inner>);

#[derive(Debug)]
struct Inner {
    client: Client,
    resource_server: ResourceServer,
    clock: Clock,
    file: PathBuf,
    /// The elapsed time of the last write of the file.
    written: Mutex<Option<u64>>,
    cache: Cache<FetchedKeys, String>,
}

/// The keys of one fetch. Cheap to clone.
#[derive(Debug, Clone)]
struct FetchedKeys {
    keys: Arc<PublicKeys>,
    /// The set as it was sent.
    text: Arc<[u8]>,
    /// The elapsed time of the fetch.
    fetched: u64,
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

/// The member of an issuer's metadata that the gateway reads.
#[derive(Debug, Deserialize)]
struct Metadata {
    jwks_uri: String,
}

type CachedKeys = Arc<Cached<FetchedKeys, String>>;

/// The keys at one moment.
#[derive(Debug)]
pub(super) struct CurrentKeys {
    pub(super) keys: Arc<PublicKeys>,
    cached: CachedKeys,
}

impl CurrentKeys {
    /// Returns whether the last fetch succeeded.
    pub(super) fn is_up_to_date(&self) -> bool {
        !self.cached.has_failed()
    }
}

impl Jwks {
    /// Loads the keys from the file. Ignores them if they belong to another issuer. Blocking.
    ///
    /// # Errors
    /// If the certificates of `service.security.ca-file` cannot be used.
    pub(super) fn open(
        settings: &Settings,
        resource_server: &ResourceServer,
        clock: Clock,
    ) -> Result<Self, GatewayError> {
        let client = fetch::build_client(settings.security.ca_file.as_deref())?;
        let file = settings.data_dir.join(JWKS_FILE);
        let mut stored = None;
        match std::fs::read(&file) {
            Ok(bytes) => match parse_file(&bytes, resource_server) {
                Ok(keys) => {
                    tracing::info!(
                        keys = keys.keys.len(),
                        "The keys of the token issuer were read from the data directory."
                    );
                    // In a restored store, the elapsed time may be earlier than that of the file.
                    let fetched = keys.fetched.min(clock.elapsed());
                    stored = Some(FetchedKeys { fetched, ..keys });
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
        let written = Mutex::new(stored.as_ref().map(|keys| keys.fetched));
        let resource_server = resource_server.clone();
        let cache = Cache::new(stored);
        Ok(Self(Shared::new(Inner { client, resource_server, clock, file, written, cache })))
    }

    /// Returns the cached keys. Fetches them if none can be used.
    pub(super) async fn current_keys(&self) -> Result<CurrentKeys, AuthError> {
        let cached = self.0.cache.current();
        match self.check_usable(&cached) {
            Ok(current) => Ok(current),
            Err(_) => self.fetch_for_token(cached).await,
        }
    }

    /// Fetches newer keys for a token that none of the `current` keys has signed. Returns the same keys if it is too
    /// early to fetch again.
    pub(super) async fn fetch_newer(&self, current: CurrentKeys) -> Result<CurrentKeys, AuthError> {
        self.fetch_for_token(current.cached).await
    }

    /// Refreshes the keys until this is dropped.
    pub(super) async fn refresh_keys(self) {
        let Inner { cache, .. } = &*self.0;
        loop {
            let _ = cache.refresh(&cache.current(), self.fetch_keys()).await;
            let wait = cache.current().time_to_refresh(FETCH_INTERVAL, FETCH_RETRY_INTERVAL);
            tokio::time::sleep(wait).await;
        }
    }

    /// Returns the keys, unless there are none, or they are too old.
    fn check_usable(&self, cached: &CachedKeys) -> Result<CurrentKeys, AuthError> {
        let Some(FetchedKeys { keys, fetched, .. }) = &cached.value else {
            return Err(AuthError::Unavailable(
                "access tokens cannot be checked now: the keys of their issuer have not been fetched yet; \
                 the gateway's log says why"
                    .into(),
            ));
        };
        if self.0.clock.elapsed_since(*fetched) > self.0.resource_server.max_stale {
            return Err(AuthError::Unavailable(
                "access tokens cannot be checked now: their issuer is unreachable, and its keys were \
                 fetched longer ago than service.security.jwks.max-stale allows"
                    .into(),
            ));
        }
        Ok(CurrentKeys { keys: keys.clone(), cached: cached.clone() })
    }

    /// Fetches the keys, unless another request has fetched them since `seen` was read, or it is too early. A
    /// started fetch completes even if the client of its request disconnects.
    async fn fetch_for_token(&self, seen: CachedKeys) -> Result<CurrentKeys, AuthError> {
        let jwks = self.clone();
        let fetching = tokio::spawn(async move {
            let cache = &jwks.0.cache;
            cache.refresh_on_demand(&seen, MIN_TOKEN_FETCH_INTERVAL, jwks.fetch_keys()).await;
        });
        // The task does not panic. If it is cancelled, the previous keys remain.
        let _ = fetching.await;
        self.check_usable(&self.0.cache.current())
    }

    /// Fetches the keys, logs changes, and saves the keys in the file.
    async fn fetch_keys(&self) -> Result<FetchedKeys, String> {
        let Inner { resource_server, cache, .. } = &*self.0;
        let before = cache.current();
        let fetched = self.fetch_key_set().await;
        match &fetched {
            Ok(new) => {
                let is_new = before.value.as_ref().is_none_or(|old| old.text != new.text);
                if is_new || before.has_failed() {
                    tracing::info!(
                        keys = new.keys.len(),
                        is_new,
                        "The keys of the token issuer were fetched."
                    );
                }
                self.save_keys(new, is_new).await;
            }
            Err(why) if !before.has_failed() => {
                let until_then = if self.check_usable(&before).is_ok() {
                    "the gateway uses the cached keys"
                } else {
                    "it has none that it can use, and access tokens get 503 until then"
                };
                tracing::warn!(
                    issuer = resource_server.issuer_uri,
                    why,
                    "The keys of the token issuer could not be fetched; the gateway tries again every minute; {until_then}."
                );
            }
            Err(_) => {}
        }
        fetched
    }

    async fn fetch_key_set(&self) -> Result<FetchedKeys, String> {
        let Inner { client, resource_server, clock, .. } = &*self.0;
        let uri = match &resource_server.jwk_set_uri {
            Some(uri) => uri.clone(),
            None => discover_jwk_set_uri(client, &resource_server.issuer_uri).await?,
        };
        let text = fetch::fetch_document(client, &uri).await.map_err(|error| error.to_string())?;
        let keys =
            PublicKeys::parse_set(&text).map_err(|why| format!("the keys at {uri}: {why}"))?;
        Ok(FetchedKeys { keys: Arc::new(keys), text: text.into(), fetched: clock.elapsed() })
    }

    /// Saves the keys in the file if they are new, or if the last write is an hour ago.
    async fn save_keys(&self, keys: &FetchedKeys, are_new: bool) {
        let (fetched, text) = (keys.fetched, keys.text.clone());
        let interval = u64::try_from(FETCH_INTERVAL.as_millis()).unwrap_or(u64::MAX);
        let written = *self.0.written.lock();
        if !are_new && written.is_some_and(|at| fetched.saturating_sub(at) < interval) {
            return;
        }
        let jwks = self.clone();
        let written = spawn_blocking(move || {
            let Inner { resource_server, file, .. } = &*jwks.0;
            let stored = StoredJwks {
                issuer: resource_server.issuer_uri.clone(),
                jwk_set_uri: resource_server.jwk_set_uri.clone(),
                fetched,
                jwks: serde_json::from_slice(&text)?,
            };
            write_atomically(file, &serde_json::to_vec(&stored)?)
        });
        match written.await {
            Ok(Ok(())) => *self.0.written.lock() = Some(fetched),
            Ok(Err(error)) => {
                tracing::warn!(%error, "The keys of the token issuer could not be saved in the data directory.");
            }
            Err(error) => {
                tracing::warn!(%error, "Saving the keys of the token issuer was interrupted.");
            }
        }
    }
}

/// Finds the address of an issuer's keys in its metadata.
async fn discover_jwk_set_uri(client: &Client, issuer: &str) -> Result<String, String> {
    let metadata: Metadata = match discovery::fetch_metadata(client, issuer).await {
        Ok(metadata) => metadata,
        Err(error @ DiscoveryError::Fetch(FetchError::NotFound { .. })) => {
            return Err(format!("{error}; check issuer-uri, or set jwk-set-uri"));
        }
        Err(error) => return Err(error.to_string()),
    };
    check_jwk_set_uri(issuer, metadata.jwks_uri)
}

fn check_jwk_set_uri(issuer: &str, uri: String) -> Result<String, String> {
    if issuer.starts_with("https://") && !uri.starts_with("https://") {
        return Err(format!("{issuer} names a jwks_uri that is not an https address"));
    }
    Ok(uri)
}

fn parse_file(bytes: &[u8], resource_server: &ResourceServer) -> Result<FetchedKeys, String> {
    let file: StoredJwks = serde_json::from_slice(bytes).map_err(|error| error.to_string())?;
    if file.issuer != resource_server.issuer_uri || file.jwk_set_uri != resource_server.jwk_set_uri
    {
        return Err("they belong to another issuer".to_owned());
    }
    let text = file.jwks.get().as_bytes();
    let keys = Arc::new(PublicKeys::parse_set(text)?);
    Ok(FetchedKeys { keys, text: text.into(), fetched: file.fetched })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_keys_of_an_https_issuer_have_an_https_address() {
        let check = |uri: &str| check_jwk_set_uri("https://a/", uri.to_owned());
        assert_eq!(check("https://a/jwks").unwrap(), "https://a/jwks");
        assert!(check("http://a/jwks").is_err());
    }
}
