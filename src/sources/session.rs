//! Keeps one session: connects, and connects again after each error.
use crate::connection::{Connection, Ended};
use crate::handshake::Endpoint;
use crate::message_store::MessageStore;
use crate::packets::Protocol;
use crate::subscriptions::Subscriptions;
use penstock_base::backoff::exponential_delay;
use rand::Rng as _;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::watch;
use tokio::time::{Instant, sleep};

/// A connection that lasted this long was a success, so that the next failure is the first one again.
const STABLE_CONNECTION: Duration = Duration::from_secs(5);

/// After this many failures in a row, MQTT 3.1.1 is tried again.
const FAILURES_BEFORE_OLD_PROTOCOL: u64 = 10;

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

/// One session: what it needs, independent of its connection.
pub(crate) struct Session {
    pub(crate) endpoint: Endpoint,
    pub(crate) subscriptions: Subscriptions,
    pub(crate) store: Arc<dyn MessageStore>,
    pub(crate) timings: Timings,
    /// Becomes true when the session has to end.
    pub(crate) stopped: watch::Receiver<bool>,
}

impl Session {
    /// Connects, and stores messages, until the session has to end. Then finishes the batch that is being stored,
    /// acknowledges it, and closes the connection.
    pub(crate) async fn run(self) {
        let mut failures = 0;
        let mut has_mqtt_5 = false;
        loop {
            let (cause, lasted) = match self.connect_once(&mut has_mqtt_5).await {
                Attempt::Stopped => return,
                Attempt::Failed(cause) => (cause, Duration::ZERO),
                Attempt::Lost(cause, lasted) => (cause, lasted),
            };
            if lasted >= STABLE_CONNECTION {
                failures = 0;
            }
            failures += 1;
            // The broker may have been replaced by one without MQTT 5.
            has_mqtt_5 &= failures % FAILURES_BEFORE_OLD_PROTOCOL != 0;
            self.store.report_disconnected(&cause);
            let Timings { first_connect_delay, max_connect_delay, .. } = self.timings;
            let delay = jittered_delay(first_connect_delay, failures, max_connect_delay);
            tokio::select! {
                () = sleep(delay) => {}
                () = self.wait_for_stop() => return,
            }
        }
    }

    async fn connect_once(&self, has_mqtt_5: &mut bool) -> Attempt {
        if let Err(refused) = self.run_blocking(MessageStore::check_connectable).await {
            return Attempt::Failed(refused.message);
        }
        let opened = tokio::select! {
            opened = self.endpoint.open(*has_mqtt_5) => opened,
            () = self.wait_for_stop() => return Attempt::Stopped,
        };
        let opened = match opened {
            Ok(opened) => opened,
            Err(cause) => return Attempt::Failed(cause),
        };
        let protocol = opened.codec.protocol();
        *has_mqtt_5 |= protocol == Protocol::V5;
        let since = Instant::now();
        self.store.report_connected(protocol.name());
        self.report_expiry(opened.session_expiry);
        match Connection::run(self, opened).await {
            Ended::Stopped => Attempt::Stopped,
            Ended::Lost(cause) => Attempt::Lost(cause, since.elapsed()),
        }
    }

    /// Reports that the broker keeps the session for a shorter time than the settings say.
    fn report_expiry(&self, granted: Option<Duration>) {
        let wanted = self.endpoint.request.session_expiry;
        let shorter = granted.filter(|granted| *granted < wanted);
        if let Some(granted) = shorter {
            tracing::warn!(
                client_id = self.client_id(),
                ?granted,
                ?wanted,
                "The broker keeps the session for a shorter time than session-expiry."
            );
        }
        self.store.update_state(&mut |state| state.shorter_expiry = shorter);
    }

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
        let done = tokio::task::spawn_blocking(move || work(&*store)).await;
        done.expect("the work does not panic, and the runtime outlives the sessions")
    }
}

/// How an attempt to keep a connection ended.
enum Attempt {
    /// The session has to end.
    Stopped,
    /// No connection was opened, for this cause.
    Failed(String),
    /// The connection was lost for this cause, after this time.
    Lost(String, Duration),
}
