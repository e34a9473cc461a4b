//! Events, and the names of their kinds. `penstock_base::events` writes them, so [`Event`] only describes them.
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde_json::Value;
use std::borrow::Cow;

/// An event in the JSON format of `CloudEvents` 1.0. In the stream each one is a `data:` line, with its `id:`
/// and its type as `event:`.
#[derive(Debug, Clone, JsonSchema)]
pub struct Event {
    /// `1.0`
    pub specversion: String,
    /// Its identifier, a whole number that increases with each event, for `Last-Event-ID`.
    pub id: String,
    /// The gateway: `service.base-url`, or a URN of its identifier.
    pub source: String,
    /// What happened.
    pub r#type: EventKind,
    /// What the event is about: the id of the ingestion, of the export, of the validation or of the change, or the name of
    /// the target or of the source.
    pub subject: String,
    /// When (RFC 3339, UTC).
    pub time: String,
    /// The trace of the request that caused the event (W3C Trace Context; the Distributed Tracing extension).
    #[schemars(skip_serializing_if = "Option::is_none")]
    pub traceparent: Option<String>,
    /// `application/json`
    pub datacontenttype: String,
    /// The record of the ingestion, the export, the target, or the validation, as its own resource shows it. Of
    /// a change only its id, `businessObject` and `state`. Of a source `source`, `businessObject`, `at` and, if it lost its
    /// connection, `cause`. For
    /// `penstock.events.lost` the number of lost events (`count`, null when unknown). For
    /// `penstock.events.position` an empty object.
    pub data: Value,
}

/// The kind of an event.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
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
    /// A target is blocked: the first export in its queue cannot be delivered. The data is its state. Only for webhooks.
    TargetBlocked,
    /// An Admin tests a webhook. Only for webhooks.
    WebhookTest,
    /// Events were dropped before this listener read them. Sent to that listener only, whatever kinds it asked for.
    Lost,
    /// The stream has reached this identifier without another event of the kinds that the listener asked for.
    Position,
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

    /// The kinds that a webhook can ask for.
    pub const FOR_WEBHOOKS: [Self; 12] = [
        Self::Ingestion,
        Self::Export,
        Self::Target,
        Self::TargetBlocked,
        Self::Validation,
        Self::SourceConnected,
        Self::SourceDisconnected,
        Self::ChangeDraft,
        Self::ChangeSubmitted,
        Self::ChangeApproved,
        Self::ChangeRejected,
        Self::ChangeWithdrawn,
    ];

    /// Returns the kinds for webhooks that a pattern selects: a name, the beginning of names with `.*`, or `*` for all.
    pub fn select_for_webhooks(pattern: &str) -> Vec<Self> {
        let is_selected = |kind: &Self| match pattern.strip_suffix('*') {
            Some("") => true,
            Some(prefix) => prefix.ends_with('.') && kind.name().starts_with(prefix),
            None => kind.name() == pattern,
        };
        Self::FOR_WEBHOOKS.into_iter().filter(is_selected).collect()
    }

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
            Self::TargetBlocked => "penstock.target.blocked",
            Self::WebhookTest => "penstock.webhook.test",
            Self::Lost => "penstock.events.lost",
            Self::Position => "penstock.events.position",
        }
    }
}

impl JsonSchema for EventKind {
    fn schema_name() -> Cow<'static, str> {
        "EventType".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        let sent = Self::ALL.into_iter().chain([Self::Lost, Self::Position]);
        json_schema!({
            "description": "What happened.",
            "type": "string",
            "enum": sent.map(Self::name).collect::<Vec<_>>(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_select_the_events_of_a_webhook() {
        let names = |pattern| -> Vec<&str> {
            EventKind::select_for_webhooks(pattern).into_iter().map(EventKind::name).collect()
        };
        assert_eq!(names("*").len(), EventKind::FOR_WEBHOOKS.len());
        assert_eq!(names("penstock.target.blocked"), ["penstock.target.blocked"]);
        assert_eq!(names("penstock.target.*").len(), 2);
        assert_eq!(names("penstock.change.*").len(), 5);
        for none in ["", "penstock", "penstock*", "penstock.events.lost", "penstock.webhook.test"] {
            assert_eq!(names(none), Vec::<&str>::new(), "{none}");
        }
        let all = EventKind::ALL.iter().all(|kind| EventKind::FOR_WEBHOOKS.contains(kind));
        assert!(all, "a webhook can ask for what a listener can ask for");
    }
}
