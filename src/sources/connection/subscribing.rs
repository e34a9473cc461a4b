//! The state of a connection's subscriptions.
use penstock_service::sources::StoredSession;
use std::collections::{BTreeMap, BTreeSet};
use std::num::NonZeroU16;
use std::time::Duration;
use tokio::time::Instant;

/// The maximum number of refused subscriptions that are named.
const MAX_NAMED_REFUSALS: usize = 5;

/// Subscriptions that were sent, and their results.
#[derive(Debug, Default)]
pub(super) struct Subscribing {
    last_packet_id: u16,
    /// The topic filters of each packet that the broker has not answered.
    pub(super) unanswered: BTreeMap<NonZeroU16, Vec<String>>,
    /// How long the broker has not answered them while the gateway read from it.
    waited: Duration,
    /// What the broker has confirmed.
    pub(super) subscribed: BTreeSet<String>,
    /// Why the broker refused a topic filter.
    pub(super) refused: BTreeMap<String, String>,
    /// When the refused ones are sent again.
    pub(super) repeat_at: Option<Instant>,
    /// The topic filters that the settings no longer have. The broker may still have messages for them.
    pub(super) removed: BTreeSet<String>,
    /// What is stored about the session.
    pub(super) stored: StoredSession,
}

impl Subscribing {
    /// Describes the refused subscriptions; `None` if there are none.
    pub(super) fn describe_refusals(&self) -> Option<String> {
        let named = self.refused.iter().take(MAX_NAMED_REFUSALS);
        let mut refused: Vec<String> =
            named.map(|(topic, why)| format!("subscribing to {topic:?} failed: {why}")).collect();
        let more = self.refused.len().saturating_sub(MAX_NAMED_REFUSALS);
        if more > 0 {
            refused.push(format!("{more} more failed"));
        }
        (!refused.is_empty()).then(|| refused.join("; "))
    }

    /// Adds time in which the broker could have answered.
    ///
    /// # Errors
    /// It has not answered within `limit`.
    pub(super) fn count_time(&mut self, passed: Duration, limit: Duration) -> Result<(), String> {
        if self.unanswered.is_empty() {
            return Ok(());
        }
        self.waited += passed;
        // The first time may have begun before the packet was sent.
        if self.waited > limit + passed {
            let seconds = limit.as_secs();
            return Err(format!(
                "the broker has not answered SUBSCRIBE or UNSUBSCRIBE for {seconds} s"
            ));
        }
        Ok(())
    }

    pub(super) fn add_unanswered(&mut self, packet_id: NonZeroU16, topics: &[String]) {
        self.unanswered.insert(packet_id, topics.to_vec());
        self.waited = Duration::ZERO;
    }

    /// Returns the topic filters of a packet that the broker has answered.
    pub(super) fn take_answered(&mut self, packet_id: NonZeroU16) -> Vec<String> {
        self.waited = Duration::ZERO;
        self.unanswered.remove(&packet_id).unwrap_or_default()
    }

    pub(super) fn next_packet_id(&mut self) -> NonZeroU16 {
        loop {
            self.last_packet_id = self.last_packet_id.wrapping_add(1);
            if let Some(id) = NonZeroU16::new(self.last_packet_id)
                && !self.unanswered.contains_key(&id)
            {
                return id;
            }
        }
    }
}
