//! Publishes what happens in the gateway as `CloudEvents` at `/api/v1/events`.
//!
//! The newest events are kept in memory. A listener that reconnects continues after the last event that it got. If
//! events after that one were dropped, it gets an event that says so. Publishing never waits for a listener: each one
//! reads the kept events at its own pace.
//!
//! [`webhook_queues`] keeps events for webhooks, which get each of them. Their identifiers are others than those here.
//!
//! Invariant: identifiers grow by one with each event, and keep growing over restarts. A client that missed events
//! reads the resources again; dropped events cannot be read later.

mod event;
mod listener;
mod ring;
pub mod webhook_queues;

pub use event::{Audience, Event};
pub use listener::Listener;
pub use penstock_resources::event::EventKind;

use crate::permits::Permits;
use event::{EventOrigin, new_event_id, render_event};
use parking_lot::{Mutex, MutexGuard};
use penstock_store::{Error, Transaction};
use ring::Ring;
use serde::Serialize;
use serde_json::value::{RawValue, to_raw_value};
use std::sync::Arc;
use tokio::sync::watch;
use webhook_queues::{WebhookQueueOptions, WebhookQueues};

/// The bus of events. Cheap to clone; publishing never blocks and never fails.
#[derive(Debug, Clone)]
pub struct EventBus {
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    source: String,
    ring: Mutex<Ring>,
    /// The identifier of the newest event.
    newest: watch::Sender<u64>,
    /// One for each listener.
    listener_permits: Permits<String>,
    webhooks: WebhookQueues,
}

/// The options of a bus.
#[derive(Debug, Clone)]
pub struct EventOptions {
    /// The `source` of every event (`CloudEvents` 1.0, 3.1.1): a URI of the gateway.
    pub source: String,
    /// Identifiers begin after `epoch << 32`. They keep growing if the epoch is greater than all earlier ones.
    pub epoch: u32,
    /// `service.events.depth`: the maximum number of events kept.
    pub depth: usize,
    /// `service.events.listeners`: the maximum number of concurrent listeners.
    pub listeners: usize,
    /// The webhooks.
    pub webhooks: WebhookQueueOptions,
}

impl Default for EventOptions {
    fn default() -> Self {
        Self {
            source: "urn:penstock".to_owned(),
            epoch: 0,
            depth: 1000,
            listeners: 32,
            webhooks: WebhookQueueOptions::default(),
        }
    }
}

impl Default for EventBus {
    fn default() -> Self {
        Self::new(EventOptions::default())
    }
}

impl EventBus {
    /// Creates a bus without events.
    pub fn new(options: EventOptions) -> Self {
        let before = u64::from(options.epoch) << 32;
        Self {
            inner: Arc::new(Inner {
                webhooks: WebhookQueues::new(
                    options.webhooks,
                    options.source.clone(),
                    options.epoch,
                ),
                source: options.source,
                ring: Mutex::new(Ring::new(before, options.depth)),
                newest: watch::Sender::new(before),
                listener_permits: Permits::for_accounts(options.listeners),
            }),
        }
    }

    /// Returns the queues of webhooks.
    pub fn webhooks(&self) -> &WebhookQueues {
        &self.inner.webhooks
    }

    /// Stores an event for webhooks in the commit of what it is about. [`Self::publish`] follows after the commit.
    ///
    /// # Errors
    /// The errors of the store.
    pub fn store(
        &self,
        transaction: &mut Transaction<'_>,
        trace: Option<&str>,
        kind: EventKind,
        subject: &str,
        data: &impl Serialize,
    ) -> Result<(), Error> {
        if let Some(json) = self.render_for_webhooks(trace, kind, subject, data) {
            self.inner.webhooks.store_event(transaction, kind, &json)?;
        }
        Ok(())
    }

    /// Publishes an event about something that is in no commit, to all listeners and to webhooks.
    pub fn publish_unstored(
        &self,
        trace: Option<&str>,
        kind: EventKind,
        subject: &str,
        data: &impl Serialize,
    ) {
        self.push_event(None, trace, kind, subject, data);
        self.notify_webhooks(trace, kind, subject, data);
    }

    /// Publishes an event about something that is in no commit, to webhooks only.
    pub fn notify_webhooks(
        &self,
        trace: Option<&str>,
        kind: EventKind,
        subject: &str,
        data: &impl Serialize,
    ) {
        if let Some(json) = self.render_for_webhooks(trace, kind, subject, data) {
            self.inner.webhooks.add_pending(kind, json);
        }
    }

    /// Returns an event that tests a webhook, with its identifier. It is in no queue.
    pub fn render_test_event(&self, webhook: &str) -> (String, String) {
        let id = new_event_id();
        let data = serde_json::json!({});
        let json = render_event(&id, self.origin(None), EventKind::WebhookTest, webhook, &data);
        (id, json)
    }

    /// Returns an event with an identifier of its own, if a webhook wants it.
    fn render_for_webhooks(
        &self,
        trace: Option<&str>,
        kind: EventKind,
        subject: &str,
        data: &impl Serialize,
    ) -> Option<String> {
        if !self.inner.webhooks.wants(kind) {
            return None;
        }
        let data = serialize_data(kind, data)?;
        Some(render_event(&new_event_id(), self.origin(trace), kind, subject, &data))
    }

    /// Publishes an event to all listeners. `subject` is the id of the resource that the event is about. If it is in a
    /// commit, [`Self::store`] has stored it there for webhooks.
    pub fn publish(&self, kind: EventKind, subject: &str, data: &impl Serialize) {
        self.publish_in_trace(None, kind, subject, data);
    }

    /// Publishes an event that is part of a trace (the header `traceparent`), as [`Self::publish`].
    pub fn publish_in_trace(
        &self,
        trace: Option<&str>,
        kind: EventKind,
        subject: &str,
        data: &impl Serialize,
    ) {
        self.push_event(None, trace, kind, subject, data);
    }

    /// Publishes an event as [`Self::publish_in_trace`], to those listeners that may see it.
    pub fn publish_to(
        &self,
        audience: Audience,
        trace: Option<&str>,
        kind: EventKind,
        subject: &str,
        data: &impl Serialize,
    ) {
        self.push_event(Some(audience), trace, kind, subject, data);
    }

    fn push_event(
        &self,
        audience: Option<Audience>,
        trace: Option<&str>,
        kind: EventKind,
        subject: &str,
        data: &impl Serialize,
    ) {
        let Some(data) = serialize_data(kind, data) else { return };
        let mut ring = self.lock_ring();
        let id = ring.newest_id() + 1;
        let event = self.build_event(id, trace, kind, subject, &data);
        ring.push(Event { audience: audience.map(Arc::new), ..event });
        self.inner.newest.send_replace(id);
        drop(ring);
        self.inner.webhooks.report_added(kind);
    }

    fn origin<'o>(&'o self, trace: Option<&'o str>) -> EventOrigin<'o> {
        EventOrigin { source: &self.inner.source, trace }
    }

    fn lock_ring(&self) -> MutexGuard<'_, Ring> {
        self.inner.ring.lock()
    }

    fn build_event(
        &self,
        id: u64,
        trace: Option<&str>,
        kind: EventKind,
        subject: &str,
        data: &impl Serialize,
    ) -> Event {
        let json = render_event(&id.to_string(), self.origin(trace), kind, subject, data);
        Event { id, kind, json: json.into(), audience: None }
    }
}

fn serialize_data(kind: EventKind, data: &impl Serialize) -> Option<Box<RawValue>> {
    to_raw_value(data)
        .inspect_err(|error| {
            tracing::error!(%error, kind = kind.name(), "Writing an event as JSON failed; it was not published.");
        })
        .ok()
}
