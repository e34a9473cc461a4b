//! Subscribes a connection to what the settings name, and unsubscribes it from what they no longer name.
//!
//! What is about to be subscribed to is stored before it is sent. So a topic that the settings lose later is
//! unsubscribed from, even if the gateway was killed in between.
use super::Connection;
use crate::message_store::MessageStore;
use crate::subscriptions::SubscriptionChanges;
use jiff::Timestamp;
use penstock_service::sources::StoredSession;
use std::collections::{BTreeMap, BTreeSet};
use std::num::NonZeroU16;
use std::time::Duration;
use tokio::time::Instant;

/// The maximum number of refused subscriptions that are named.
const MAX_NAMED_REFUSALS: usize = 5;
/// The maximum number of topic filters in one packet. Some brokers allow no more.
const MAX_FILTERS_PER_PACKET: usize = 8;

/// Subscriptions that were sent, and their results.
#[derive(Debug, Default)]
pub(super) struct Subscribing {
    last_packet_id: u16,
    /// The topic filters of each packet that the broker has not answered.
    unanswered: BTreeMap<NonZeroU16, Vec<String>>,
    /// How long the broker has not answered them while the gateway read from it.
    waited: Duration,
    /// What the broker has confirmed.
    subscribed: BTreeSet<String>,
    /// Why the broker refused a topic filter.
    refused: BTreeMap<String, String>,
    /// When the refused ones are sent again.
    pub(super) repeat_at: Option<Instant>,
    /// The topic filters that the settings no longer have. The broker may still have messages for them.
    pub(super) removed: BTreeSet<String>,
    /// What is stored about the session.
    stored: StoredSession,
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

    fn add_unanswered(&mut self, packet_id: NonZeroU16, topics: &[String]) {
        self.unanswered.insert(packet_id, topics.to_vec());
        self.waited = Duration::ZERO;
    }

    /// Returns the topic filters of a packet that the broker has answered.
    fn take_answered(&mut self, packet_id: NonZeroU16) -> Vec<String> {
        self.waited = Duration::ZERO;
        self.unanswered.remove(&packet_id).unwrap_or_default()
    }

    fn next_packet_id(&mut self) -> NonZeroU16 {
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

impl Connection<'_> {
    /// Sends the subscriptions that the broker does not have, and removes those that it should not have.
    pub(super) async fn begin_subscribing(
        &mut self,
        is_session_present: bool,
    ) -> Result<(), String> {
        let loaded = self.session.run_blocking(MessageStore::load_session).await;
        let stored = loaded.map_err(|error| format!("reading the session failed: {error}"))?;
        let wanted = self.session.subscriptions.topics();
        let protocol = self.codec.protocol();
        let changes = SubscriptionChanges::plan(&stored, is_session_present, &wanted, protocol);
        let SubscriptionChanges { subscribe, unsubscribe } = changes;
        if is_session_present {
            self.subscribing.subscribed.clone_from(&stored.topics);
            let removed = stored.removed.union(&unsubscribe);
            self.subscribing.removed =
                removed.filter(|topic| !wanted.contains(*topic)).cloned().collect();
        } else if !stored.topics.is_empty() {
            self.report_lost_session();
        }
        self.subscribing.stored = stored;
        let pending = subscribe.union(&unsubscribe).cloned().collect();
        self.save_session(pending).await;
        let unsubscribe: Vec<String> = unsubscribe.into_iter().collect();
        for topics in unsubscribe.chunks(MAX_FILTERS_PER_PACKET) {
            let packet_id = self.subscribing.next_packet_id();
            self.codec.unsubscribe(packet_id, topics, &mut self.output)?;
            self.subscribing.add_unanswered(packet_id, topics);
        }
        self.send_subscriptions(subscribe.into_iter().collect()).await
    }

    /// Reports that the broker no longer has the session of earlier connections.
    fn report_lost_session(&self) {
        let client_id = self.session.client_id();
        tracing::warn!(client_id, "The broker lost the session; messages may be missing.");
        self.session.store.update_state(&mut |state| {
            state.session_lost_at = Some(Timestamp::now());
        });
    }

    /// Sends the refused subscriptions again.
    pub(super) async fn subscribe_again(&mut self) -> Result<(), String> {
        self.subscribing.repeat_at = None;
        let refused = self.subscribing.refused.keys().cloned().collect();
        self.send_subscriptions(refused).await
    }

    async fn send_subscriptions(&mut self, topics: Vec<String>) -> Result<(), String> {
        for topics in topics.chunks(MAX_FILTERS_PER_PACKET) {
            let packet_id = self.subscribing.next_packet_id();
            self.codec.subscribe(packet_id, topics, &mut self.output)?;
            self.subscribing.add_unanswered(packet_id, topics);
        }
        self.flush().await
    }

    /// Takes the broker's answer to SUBSCRIBE.
    pub(super) async fn finish_subscribe(
        &mut self,
        packet_id: NonZeroU16,
        refusals: Vec<Option<String>>,
    ) -> Result<(), String> {
        let subscribing = &mut self.subscribing;
        let topics = subscribing.take_answered(packet_id);
        if topics.len() != refusals.len() {
            return Err("the broker's answer does not belong to a subscription".to_owned());
        }
        for (topic, refusal) in topics.into_iter().zip(refusals) {
            match refusal {
                None => {
                    subscribing.refused.remove(&topic);
                    subscribing.subscribed.insert(topic);
                }
                Some(why) => {
                    subscribing.subscribed.remove(&topic);
                    if subscribing.refused.insert(topic.clone(), why.clone()).is_none() {
                        let client_id = self.session.client_id();
                        tracing::warn!(client_id, topic, why, "The broker refused a subscription.");
                    }
                    let delay = self.session.timings.subscribe_delay;
                    subscribing.repeat_at = Some(Instant::now() + delay);
                }
            }
        }
        let error = self.describe_error();
        self.session.store.update_state(&mut |state| {
            super::set_error(&mut state.error, error.as_deref());
        });
        self.save_confirmed().await
    }

    /// Takes the broker's answer to UNSUBSCRIBE.
    /// Refused topic filters are sent again with the next connection.
    pub(super) async fn finish_unsubscribe(
        &mut self,
        packet_id: NonZeroU16,
        refusals: &[Option<String>],
    ) -> Result<(), String> {
        for (index, topic) in self.subscribing.take_answered(packet_id).into_iter().enumerate() {
            if let Some(Some(why)) = refusals.get(index) {
                let client_id = self.session.client_id();
                tracing::warn!(client_id, topic, why, "The broker refused to unsubscribe.");
                self.subscribing.subscribed.insert(topic);
            } else {
                self.subscribing.subscribed.remove(&topic);
            }
        }
        self.save_confirmed().await
    }

    /// Stores what is confirmed once the broker has answered everything.
    async fn save_confirmed(&mut self) -> Result<(), String> {
        if self.subscribing.unanswered.is_empty() {
            self.save_session(BTreeSet::new()).await;
        }
        Ok(())
    }

    /// Stores what the session is subscribed to, unless that is stored already. Without it, the gateway repeats
    /// subscriptions, so an error does not end the connection.
    async fn save_session(&mut self, mut pending: BTreeSet<String>) {
        let topics = self.subscribing.subscribed.clone();
        pending.retain(|topic| !topics.contains(topic));
        let session = StoredSession { topics, pending, removed: self.subscribing.removed.clone() };
        if session == self.subscribing.stored {
            return;
        }
        let saved = session.clone();
        match self.session.run_blocking(move |store| store.save_session(&saved)).await {
            Ok(()) => self.subscribing.stored = session,
            Err(error) => {
                let client_id = self.session.client_id();
                tracing::warn!(client_id, %error, "Storing the subscriptions of a session failed.");
            }
        }
    }
}
