//! Keeps one session: connects, and connects again after each error.
use crate::connection::Connection;
use crate::lost::{Failures, LostConnection};
use crate::message_store::MessageStore;
use crate::packets::Protocol;
use crate::session::{Session, Timings, jittered_delay};
use penstock_service::sources::ConnectionError;
use std::time::Duration;
use tokio::time::{Instant, sleep};

/// After this many failures in a row, MQTT 3.1.1 is tried again.
const FAILURES_BEFORE_OLD_PROTOCOL: u64 = 10;

impl Session {
    /// Connects, and stores messages, until the session has to end. Then finishes the batch that is being stored,
    /// acknowledges it, and closes the connection.
    pub(crate) async fn run(self) {
        let mut failures = Failures::default();
        let mut has_mqtt_5 = false;
        loop {
            let ended = self.connect_once(&mut has_mqtt_5).await;
            let Err((lost, lasted)) = ended else {
                // While another machine has taken over, the gateway runs on and shows its sources.
                return self.store.update_state(&mut |state| state.connected_since = None);
            };
            let Timings { first_connect_delay, max_connect_delay, .. } = self.timings;
            let is_contested = failures.add(&lost, lasted, max_connect_delay);
            // The broker may have been replaced by one without MQTT 5.
            has_mqtt_5 &= failures.count() % FAILURES_BEFORE_OLD_PROTOCOL != 0;
            let cause = lost.describe(is_contested, self.client_id());
            self.store.report_disconnected(&cause);
            if lasted.is_some() {
                let contested = is_contested.then(|| ConnectionError::now(cause));
                self.store.update_state(&mut |state| state.contested.clone_from(&contested));
            }
            let delay = jittered_delay(first_connect_delay, failures.count(), max_connect_delay);
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
    async fn connect_once(
        &self,
        has_mqtt_5: &mut bool,
    ) -> Result<(), (LostConnection, Option<Duration>)> {
        let unopened = |cause: String| (LostConnection::from(cause), None::<Duration>);
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
        let ended = Connection::run(self, opened).await;
        ended.map_err(|lost| (lost.over(protocol), Some(since.elapsed())))
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
