//! The last value that was fetched from a provider. A failed fetch keeps it, so that the gateway works while the
//! provider is unreachable. Only one fetch runs at a time, and the callers that wait for it share its result.
use parking_lot::RwLock;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::sync::Mutex;

/// A cache of one value, with the error of the last fetch.
#[derive(Debug)]
pub(crate) struct Cache<T, E> {
    cached: RwLock<Arc<Cached<T, E>>>,
    /// The start of the last fetch on demand. Locked during every fetch.
    fetching: Mutex<Option<Instant>>,
}

/// The content of a cache at one moment.
#[derive(Debug)]
pub(crate) struct Cached<T, E> {
    /// The value of the last successful fetch, or the one that the cache began with.
    pub(crate) value: Option<T>,
    /// The result of the last fetch, and when it completed.
    last: Option<(Result<T, E>, Instant)>,
    /// The number of completed fetches, successful or not.
    fetches: u64,
}

impl<T: Clone, E: Clone> Cache<T, E> {
    /// Creates a cache. `value` was fetched by an earlier run of the gateway, if at all.
    pub(crate) fn new(value: Option<T>) -> Self {
        let cached = Arc::new(Cached { value, last: None, fetches: 0 });
        Self { cached: RwLock::new(cached), fetching: Mutex::default() }
    }

    /// Returns the content.
    pub(crate) fn current(&self) -> Arc<Cached<T, E>> {
        self.cached.read().clone()
    }

    /// Fetches a new value, unless another fetch has completed since `seen` was read. Returns the result of that
    /// fetch.
    pub(crate) async fn refresh(
        &self,
        seen: &Cached<T, E>,
        fetch: impl Future<Output = Result<T, E>>,
    ) -> Result<T, E> {
        let _fetching = self.fetching.lock().await;
        match self.result_since(seen) {
            Some(result) => result,
            None => self.store(fetch.await),
        }
    }

    /// Fetches a new value as [`Self::refresh`], for requests that clients can repeat at will: at most once per
    /// `min_interval`.
    pub(crate) async fn refresh_on_demand(
        &self,
        seen: &Cached<T, E>,
        min_interval: Duration,
        fetch: impl Future<Output = Result<T, E>>,
    ) {
        let mut begun = self.fetching.lock().await;
        let is_early = begun.is_some_and(|begun| begun.elapsed() < min_interval);
        if !is_early && self.result_since(seen).is_none() {
            *begun = Some(Instant::now());
            let _ = self.store(fetch.await);
        }
    }

    /// Returns the result of the last fetch, if it has completed since `seen` was read.
    fn result_since(&self, seen: &Cached<T, E>) -> Option<Result<T, E>> {
        let current = self.current();
        let (result, _) = current.last.as_ref().filter(|_| current.fetches != seen.fetches)?;
        Some(result.clone())
    }

    fn store(&self, result: Result<T, E>) -> Result<T, E> {
        let mut cached = self.cached.write();
        *cached = Arc::new(Cached {
            value: result.as_ref().ok().or(cached.value.as_ref()).cloned(),
            last: Some((result.clone(), Instant::now())),
            fetches: cached.fetches + 1,
        });
        result
    }
}

impl<T, E> Cached<T, E> {
    /// Returns whether the last fetch failed.
    pub(crate) fn has_failed(&self) -> bool {
        matches!(self.last, Some((Err(_), _)))
    }

    /// Returns how long it takes until the next regular fetch: `interval` after a successful one, `retry_interval` after
    /// a failed one. The first one is due at once.
    pub(crate) fn time_to_refresh(&self, interval: Duration, retry_interval: Duration) -> Duration {
        let Some((result, completed)) = &self.last else { return Duration::ZERO };
        let wait = if result.is_ok() { interval } else { retry_interval };
        wait.saturating_sub(completed.elapsed())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::Cell;

    const HOUR: Duration = Duration::from_hours(1);

    #[tokio::test]
    async fn callers_that_wait_for_a_fetch_share_its_result() {
        let (cache, count) = (Cache::<u32, &str>::new(None), Cell::new(0));
        let fetch = async || {
            count.set(count.get() + 1);
            tokio::task::yield_now().await;
            if count.get() == 1 { Err("away") } else { Ok(count.get()) }
        };
        for result in [Err("away"), Ok(2)] {
            let seen = cache.current();
            let both = tokio::join!(cache.refresh(&seen, fetch()), cache.refresh(&seen, fetch()));
            assert_eq!(both, (result, result));
            assert_eq!(cache.current().has_failed(), result.is_err());
        }
        assert_eq!((count.get(), cache.current().value), (2, Some(2)));
    }

    #[tokio::test]
    async fn a_failed_fetch_keeps_the_value_and_is_repeated_earlier() {
        let cache = Cache::new(Some(1));
        let until_next = || cache.current().time_to_refresh(HOUR, HOUR / 60);
        assert_eq!(until_next(), Duration::ZERO);
        assert_eq!(cache.refresh(&cache.current(), async { Err("away") }).await, Err("away"));
        assert_eq!(cache.current().value, Some(1));
        assert!(until_next() > Duration::ZERO && until_next() <= HOUR / 60);
        assert_eq!(cache.refresh(&cache.current(), async { Ok(2) }).await, Ok(2));
        assert_eq!(cache.current().value, Some(2));
        assert!(until_next() > HOUR / 2);
    }

    #[tokio::test]
    async fn fetches_on_demand_have_a_minimum_interval() {
        let cache = Cache::<u32, ()>::new(None);
        let demand = async |value, interval| {
            cache.refresh_on_demand(&cache.current(), interval, async { Ok(value) }).await;
            cache.current().value
        };
        // Regular fetches do not count.
        cache.refresh(&cache.current(), async { Ok(1) }).await.unwrap();
        assert_eq!(demand(2, HOUR).await, Some(2));
        assert_eq!(demand(3, HOUR).await, Some(2));
        assert_eq!(demand(4, Duration::ZERO).await, Some(4));
    }
}
