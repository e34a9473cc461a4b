//! One session, independent of its connection.
use crate::handshake::Endpoint;
use crate::message_store::MessageStore;
use crate::subscriptions::Subscriptions;
use penstock_base::backoff::exponential_delay;
use penstock_base::blocking::spawn_blocking;
use rand::Rng as _;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::watch;

/// Retry intervals and timeouts of a session.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Timings {
    /// The maximum delay before the second attempt to connect. It doubles with each failure.
    pub(crate) first_connect_delay: Duration,
    /// The maximum delay between attempts to connect.
    pub(crate) max_connect_delay: Duration,
    /// The maximum delay before the second attempt to store messages. It doubles with each failure.
    pub(crate) first_store_delay: Duration,
    /// The maximum delay between attempts to store messages.
    pub(crate) max_store_delay: Duration,
    /// The delay before a refused subscription is sent again.
    pub(crate) subscribe_delay: Duration,
    /// The time in which the broker must answer SUBSCRIBE and UNSUBSCRIBE, while the gateway reads from it.
    pub(crate) subscribe_timeout: Duration,
    /// The time in which the broker must take what is sent to it.
    pub(crate) write_timeout: Duration,
}

impl Default for Timings {
    fn default() -> Self {
        Self {
            first_connect_delay: Duration::from_secs(1),
            max_connect_delay: Duration::from_mins(1),
            first_store_delay: Duration::from_secs(1),
            max_store_delay: Duration::from_secs(10),
            subscribe_delay: Duration::from_mins(1),
            subscribe_timeout: Duration::from_secs(30),
            write_timeout: Duration::from_secs(30),
        }
    }
}

/// Returns the delay before the next attempt: exponential backoff with jitter, so that many gateways do not retry at
/// once.
pub(crate) fn jittered_delay(first: Duration, failures: u64, max: Duration) -> Duration {
    exponential_delay(first, failures, max).mul_f64(rand::rng().random_range(0.5..=1.0))
}

/// What a session needs.
pub(crate) struct Session {
    pub(crate) endpoint: Endpoint,
    pub(crate) subscriptions: Subscriptions,
    pub(crate) store: Arc<dyn MessageStore>,
    pub(crate) timings: Timings,
    /// Becomes true when the session has to end.
    pub(crate) stopped: watch::Receiver<bool>,
}

impl Session {
    pub(crate) fn client_id(&self) -> &str {
        &self.endpoint.request.client_id
    }

    /// Resolves when the session has to end.
    pub(crate) async fn wait_for_stop(&self) {
        let mut stopped = self.stopped.clone();
        // The sender is gone only after the end of all sessions.
        let _ = stopped.wait_for(|stopped| *stopped).await;
    }

    /// Runs work of the store on a thread that may block.
    ///
    /// # Panics
    /// If the work has panicked; a panic ends the process anyway.
    pub(crate) async fn run_blocking<T: Send + 'static>(
        &self,
        work: impl FnOnce(&dyn MessageStore) -> T + Send + 'static,
    ) -> T {
        let store = self.store.clone();
        let done = spawn_blocking(move || work(&*store)).await;
        done.expect("the work does not panic, and the runtime outlives the sessions")
    }
}
