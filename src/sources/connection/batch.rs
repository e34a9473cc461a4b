//! Messages that wait to be stored, in the order in which they arrived.
use crate::capacity::Reservation;
use crate::reader::Publish;
use crate::session::Session;
use crate::subscriptions::{Subscriptions, matches_topic};
use jiff::Timestamp;
use penstock_service::sources::Message;
use std::collections::{BTreeSet, VecDeque};
use std::num::NonZeroU16;
use std::sync::Arc;

/// The maximum number of messages in one batch.
const MAX_BATCH_MESSAGES: usize = 1_000;
/// The maximum bytes of a batch. A longer message is a batch of its own.
const MAX_BATCH_BYTES: usize = 1 << 20;

/// A message that waits.
#[derive(Debug)]
struct Waiting {
    /// `None` if it is only acknowledged, because its subscription was removed.
    message: Option<Message>,
    held: Held,
}

/// What is kept of a message until it is acknowledged.
#[derive(Debug)]
struct Held {
    packet_id: Option<NonZeroU16>,
    /// Whether it is only acknowledged.
    is_dropped: bool,
    bytes: usize,
    reservation: Reservation,
}

/// The messages that follow the batch that is being stored.
#[derive(Debug, Default)]
pub(super) struct Gathered {
    messages: VecDeque<Waiting>,
    bytes: usize,
    from_pool: usize,
}

impl Gathered {
    /// Appends a message. It is only acknowledged if just a removed topic filter matches it: the broker had queued it
    /// before.
    pub(super) fn push(
        &mut self,
        publish: Publish,
        subscriptions: &Subscriptions,
        removed: &BTreeSet<String>,
    ) {
        let Publish { topic, packet_id, payload, truncated, reservation } = publish;
        let bytes = topic.len() + payload.len();
        let subscription = subscriptions.find(&topic);
        let is_dropped =
            subscription.is_none() && removed.iter().any(|filter| matches_topic(filter, &topic));
        let received_at = Timestamp::now();
        let message = Message { topic, payload, truncated, subscription, received_at };
        let message = (!is_dropped).then_some(message);
        self.bytes += bytes;
        self.from_pool += usize::from(reservation.is_from_pool());
        let held = Held { packet_id, is_dropped, bytes, reservation };
        self.messages.push_back(Waiting { message, held });
    }

    /// Removes the messages of the next batch; `None` if there are none. While a batch is stored the broker sends the
    /// next one, so a batch has at most half of the messages that the session may hold.
    pub(super) fn take_batch(&mut self, session: &Session) -> Option<Batch> {
        let receive_maximum = usize::from(session.endpoint.request.receive_maximum);
        let max_messages = (receive_maximum / 2).clamp(1, MAX_BATCH_MESSAGES);
        let mut messages = Vec::new();
        let mut held: Vec<Held> = Vec::new();
        let mut bytes = 0;
        while held.len() < max_messages
            && let Some(next) = self
                .messages
                .pop_front_if(|next| held.is_empty() || bytes + next.held.bytes <= MAX_BATCH_BYTES)
        {
            bytes += next.held.bytes;
            self.from_pool -= usize::from(next.held.reservation.is_from_pool());
            messages.extend(next.message);
            held.push(next.held);
        }
        self.bytes -= bytes;
        (!held.is_empty()).then(|| Batch { messages: Arc::new(messages), held, bytes })
    }

    /// Returns the number of messages.
    pub(super) fn len(&self) -> usize {
        self.messages.len()
    }

    /// Returns the bytes of the messages.
    pub(super) fn bytes(&self) -> usize {
        self.bytes
    }

    /// Returns whether a message takes capacity that other sessions could use.
    pub(super) fn is_from_pool(&self) -> bool {
        self.from_pool > 0
    }
}

/// Messages that are stored in one commit.
#[derive(Debug)]
pub(super) struct Batch {
    /// The messages, without those of removed subscriptions.
    pub(super) messages: Arc<Vec<Message>>,
    held: Vec<Held>,
    bytes: usize,
}

impl Batch {
    /// Returns the identifiers to acknowledge, in the order in which the messages arrived.
    pub(super) fn packet_ids(&self) -> impl Iterator<Item = NonZeroU16> {
        self.held.iter().filter_map(|held| held.packet_id)
    }

    /// Splits off what follows the first messages, of which this number is stored. `None` if nothing does.
    pub(super) fn split_unstored(&mut self, stored: usize) -> Option<Self> {
        let mut kept = self.held.iter().enumerate().filter(|(_, held)| !held.is_dropped);
        let (at, _) = kept.nth(stored)?;
        let held = self.held.split_off(at);
        let messages = self.messages.get(stored..).unwrap_or_default().to_vec();
        let bytes = held.iter().map(|held| held.bytes).sum();
        self.bytes -= bytes;
        Some(Self { messages: Arc::new(messages), held, bytes })
    }

    /// Returns the number of messages that are only acknowledged.
    pub(super) fn count_dropped(&self) -> usize {
        self.held.iter().filter(|held| held.is_dropped).count()
    }

    /// Returns the number of messages.
    pub(super) fn len(&self) -> usize {
        self.held.len()
    }

    /// Returns the bytes of the messages.
    pub(super) fn bytes(&self) -> usize {
        self.bytes
    }

    /// Returns whether a message takes capacity that other sessions could use.
    pub(super) fn is_from_pool(&self) -> bool {
        self.held.iter().any(|held| held.reservation.is_from_pool())
    }
}
