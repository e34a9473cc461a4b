//! Publishes what happens in the gateway as `CloudEvents` at `/api/v1/events`.
//!
//! The newest events are kept in memory. A listener that reconnects continues after the last event that it got. If
//! events after that one were dropped, it gets an event that says so. Publishing never waits for a listener: each one
//! reads the kept events at its own pace.
//!
//! Invariant: identifiers grow by one with each event, and keep growing over restarts. A client that missed events
//! reads the resources again; dropped events cannot be read later.

mod listener;
mod ring;

pub use listener::Listener;

use crate::principal::Principal;
use crate::time;
use listener::Selection;
use ring::Ring;
use serde::Serialize;
use serde_json::value::to_raw_value;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::sync::{Semaphore, watch};

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
    /// One permit for each listener.
    listener_permits: Arc<Semaphore>,
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
}

/// The kind of an event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum EventKind {
    /// An ingestion was committed; the data is its record.
    Ingestion,
    /// An export changed; the data is its entry.
    Export,
    /// A target changed; the data is its state.
    Target,
    /// A validation of everything that a Business Object has ended; the data is the validation.
    Validation,
    /// A source has connected for a Business Object; the data has both.
    SourceConnected,
    /// A source has lost its connection, or could not connect; the data has the reason.
    SourceDisconnected,
    /// A change under review is a draft; the data has its id, Business Object and state.
    ChangeDraft,
    /// A change waits for an approver.
    ChangeSubmitted,
    /// A change was approved and published.
    ChangeApproved,
    /// A change was rejected.
    ChangeRejected,
    /// A change was withdrawn.
    ChangeWithdrawn,
    /// Events were dropped before this listener read them. Sent to that listener only, whatever kinds it asked for.
    Lost,
    /// The stream has reached this identifier without another event of the kinds that the listener asked for.
    Position,
}

/// One event as it is sent to listeners.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Event {
    /// The identifier.
    pub id: u64,
    /// The kind.
    pub kind: EventKind,
    /// The event in the JSON format of `CloudEvents` 1.0, on one line.
    pub json: Arc<str>,
    /// Who may see it; `None` if every listener may.
    pub audience: Option<Arc<Audience>>,
}

/// Who may see an event, beside Admins.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Audience {
    /// The account that caused it.
    pub author: String,
    /// The users and groups that the author named.
    pub owners: Vec<Principal>,
    /// The users and groups that decide about it; none if Admins do.
    pub approvers: Vec<Principal>,
}

impl EventKind {
    /// The kinds that a listener can ask for.
    pub const ALL: [Self; 11] = [
        Self::Ingestion,
        Self::Export,
        Self::Target,
        Self::Validation,
        Self::SourceConnected,
        Self::SourceDisconnected,
        Self::ChangeDraft,
        Self::ChangeSubmitted,
        Self::ChangeApproved,
        Self::ChangeRejected,
        Self::ChangeWithdrawn,
    ];

    /// Returns the name on the wire, the `CloudEvents` `type`.
    pub fn name(self) -> &'static str {
        match self {
            Self::Ingestion => "penstock.ingestion.committed",
            Self::Export => "penstock.export.changed",
            Self::Target => "penstock.target.changed",
            Self::Validation => "penstock.validation.finished",
            Self::SourceConnected => "penstock.source.connected",
            Self::SourceDisconnected => "penstock.source.disconnected",
            Self::ChangeDraft => "penstock.change.draft",
            Self::ChangeSubmitted => "penstock.change.submitted",
            Self::ChangeApproved => "penstock.change.approved",
            Self::ChangeRejected => "penstock.change.rejected",
            Self::ChangeWithdrawn => "penstock.change.withdrawn",
            Self::Lost => "penstock.events.lost",
            Self::Position => "penstock.events.position",
        }
    }
}

impl Default for EventOptions {
    fn default() -> Self {
        Self { source: "urn:penstock".to_owned(), epoch: 0, depth: 1000, listeners: 32 }
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
                source: options.source,
                ring: Mutex::new(Ring::new(before, options.depth)),
                newest: watch::Sender::new(before),
                listener_permits: Arc::new(Semaphore::new(options.listeners)),
            }),
        }
    }

    /// Publishes an event to all listeners. `subject` is the id of the resource that the event is about.
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
        let data = match to_raw_value(data) {
            Ok(data) => data,
            Err(error) => {
                tracing::error!(%error, kind = kind.name(), "Writing an event as JSON failed; it was not published.");
                return;
            }
        };
        let mut ring = self.lock_ring();
        let id = ring.newest_id() + 1;
        let event = self.build_event(id, trace, kind, subject, &data);
        ring.push(Event { audience: audience.map(Arc::new), ..event });
        self.inner.newest.send_replace(id);
    }

    /// Creates a listener for new events, or for the events after the identifier `after`. It gets no event with an
    /// audience. Returns `None` when the maximum number of listeners is reached.
    pub fn listen(&self, after: Option<u64>, kinds: &[EventKind]) -> Option<Listener> {
        self.listen_as(after, kinds, |_| false)
    }

    /// Creates a listener as [`Self::listen`], which gets the events whose audience `is_member` of.
    pub fn listen_as(
        &self,
        after: Option<u64>,
        kinds: &[EventKind],
        is_member: impl Fn(&Audience) -> bool + Send + Sync + 'static,
    ) -> Option<Listener> {
        let permit = Arc::clone(&self.inner.listener_permits).try_acquire_owned().ok()?;
        let newest = self.inner.newest.subscribe();
        let after = after.unwrap_or_else(|| self.lock_ring().newest_id());
        let selection = Selection { kinds: kinds.to_vec(), is_member: Box::new(is_member) };
        Some(Listener::new(self.clone(), newest, after, selection, permit))
    }

    fn lock_ring(&self) -> MutexGuard<'_, Ring> {
        self.inner.ring.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn build_event(
        &self,
        id: u64,
        trace: Option<&str>,
        kind: EventKind,
        subject: &str,
        data: &impl Serialize,
    ) -> Event {
        let event = CloudEvent {
            specversion: "1.0",
            id: &id.to_string(),
            source: &self.inner.source,
            kind: kind.name(),
            subject,
            time: &time::now_rfc3339(),
            datacontenttype: "application/json",
            traceparent: trace,
            data,
        };
        let json = serde_json::to_string(&event).expect("serialized data can be written again");
        Event { id, kind, json: json.into(), audience: None }
    }
}

/// The JSON format of `CloudEvents` 1.0.
#[derive(Serialize)]
struct CloudEvent<'a, D> {
    specversion: &'a str,
    id: &'a str,
    source: &'a str,
    #[serde(rename = "type")]
    kind: &'a str,
    subject: &'a str,
    time: &'a str,
    datacontenttype: &'a str,
    /// The Distributed Tracing extension.
    #[serde(skip_serializing_if = "Option::is_none")]
    traceparent: Option<&'a str>,
    data: &'a D,
}
