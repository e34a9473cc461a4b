//! One event, and its form as a `CloudEvent`.
use crate::principal::Principal;
use crate::time;
use penstock_resources::event::EventKind;
use serde::Serialize;
use std::sync::Arc;

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

/// Where an event comes from.
#[derive(Clone, Copy)]
pub(super) struct EventOrigin<'a> {
    pub(super) source: &'a str,
    pub(super) trace: Option<&'a str>,
}

/// Returns a new identifier of an event for webhooks.
pub(super) fn new_event_id() -> String {
    uuid::Uuid::now_v7().to_string()
}

/// Returns an event in the JSON format of `CloudEvents` 1.0, on one line.
pub(super) fn render_event(
    id: &str,
    EventOrigin { source, trace }: EventOrigin<'_>,
    kind: EventKind,
    subject: &str,
    data: &impl Serialize,
) -> String {
    let event = CloudEvent {
        specversion: "1.0",
        id,
        source,
        kind: kind.name(),
        subject,
        time: &time::now_rfc3339(),
        datacontenttype: "application/json",
        traceparent: trace,
        data,
    };
    serde_json::to_string(&event).expect("serialized data can be written again")
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
