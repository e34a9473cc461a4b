//! Keeps one session: connects, and connects again after each error.
use crate::connection::Connection;
use crate::message_store::MessageStore;
use crate::packets::Protocol;
use crate::session::{Session, Timings, jittered_delay};
use std::time::Duration;
use tokio::time::{Instant, sleep};

/// A connection that lasted this long was a success, so that the next failure is the first one again.
const STABLE_CONNECTION: Duration = Duration::from_secs(5);

/// After this many failures in a row, MQTT 3.1.1 is tried again.
const FAILURES_BEFORE_OLD_PROTOCOL: u64 = 10;

impl Session {
    /// Connects, and stores messages, until the session has to end. Then finishes the batch that is being stored,
    /// acknowledges it, and closes the connection.
    pub(crate) async fn run(self) {
        let mut failures = 0;
        let mut has_mqtt_5 = false;
        loop {
            let ended = self.connect_once(&mut has_mqtt_5).await;
            let Err((cause, lasted)) = ended else {
                // While another machine has taken over, the gateway runs on and shows its sources.
                return self.store.update_state(&mut |state| state.connected_since = None);
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

    /// Connects, and runs the connection until the session has to end.
    ///
    /// # Errors
    /// Why no connection was opened, or why it was lost, and how long it lasted.
    async fn connect_once(&self, has_mqtt_5: &mut bool) -> Result<(), (String, Duration)> {
        let unopened = |cause| (cause, Duration::ZERO);
        let checked = self.run_blocking(MessageStore::check_connectable).await;
        checked.map_err(|refused| unopened(refused.message))?;
        let opened = tokio::select! {
            opened = self.endpoint.open(*has_mqtt_5) => opened.map_err(unopened)?,
            () = self.wait_for_stop() => return Ok(()),
        };
        let protocol = opened.codec.protocol();
        *has_mqtt_5 |= protocol == Protocol::V5;
        let since = Instant::now();
        self.store.report_connected(protocol.name());
        self.report_expiry(opened.session_expiry);
        Connection::run(self, opened).await.map_err(|cause| (cause, since.elapsed()))
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
}
