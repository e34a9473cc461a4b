//! Subscribes a connection to what the settings name, and unsubscribes it from what they no longer name.
//!
//! What is about to be subscribed to is stored before it is sent. So a topic that the settings lose later is
//! unsubscribed from, even if the gateway was killed in between.
use super::Connection;
use crate::message_store::MessageStore;
use crate::subscriptions::SubscriptionChanges;
use jiff::Timestamp;
use penstock_service::sources::StoredSession;
use std::collections::BTreeSet;
use std::num::NonZeroU16;
use tokio::time::Instant;

/// The maximum number of topic filters in one packet. Some brokers allow no more.
const MAX_FILTERS_PER_PACKET: usize = 8;

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
            self.subscribing.subscribed = stored.list_confirmed();
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
        self.save_confirmed().await;
        Ok(())
    }

    /// Takes the broker's answer to UNSUBSCRIBE.
    /// Refused topic filters are sent again with the next connection.
    pub(super) async fn finish_unsubscribe(
        &mut self,
        packet_id: NonZeroU16,
        refusals: &[Option<String>],
    ) {
        for (index, topic) in self.subscribing.take_answered(packet_id).into_iter().enumerate() {
            if let Some(Some(why)) = refusals.get(index) {
                let client_id = self.session.client_id();
                tracing::warn!(client_id, topic, why, "The broker refused to unsubscribe.");
                self.subscribing.subscribed.insert(topic);
            } else {
                self.subscribing.subscribed.remove(&topic);
            }
        }
        self.save_confirmed().await;
    }

    /// Stores what is confirmed once the broker has answered everything.
    async fn save_confirmed(&mut self) {
        if self.subscribing.unanswered.is_empty() {
            self.save_session(BTreeSet::new()).await;
        }
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
