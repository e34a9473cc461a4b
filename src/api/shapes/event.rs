//! Events. `penstock_base::events` writes them, so these shapes only describe them.
#![expect(dead_code, reason = "`penstock_base::events` writes the events")]
use salvo_oapi::ToSchema;
use serde_json::Value;

/// An event in the JSON format of `CloudEvents` 1.0. In the stream each one is a `data:` line, with its `id:`
/// and its type as `event:`.
#[derive(ToSchema)]
#[salvo(schema(name = "Event"))]
pub(crate) struct Event {
    /// `1.0`
    pub(crate) specversion: String,
    /// Its identifier, a whole number that increases with each event, for `Last-Event-ID`.
    pub(crate) id: String,
    /// The gateway: `service.base-url`, or a URN of its identifier.
    pub(crate) source: String,
    /// What happened.
    pub(crate) r#type: EventType,
    /// What the event is about: the id of the ingestion, of the export, of the validation or of the change, or the name of
    /// the target or of the source.
    pub(crate) subject: String,
    /// When (RFC 3339, UTC).
    pub(crate) time: String,
    /// The trace of the request that caused the event (W3C Trace Context; the Distributed Tracing extension).
    #[salvo(schema(required = false, nullable = false))]
    pub(crate) traceparent: Option<String>,
    /// `application/json`
    pub(crate) datacontenttype: String,
    /// The record of the ingestion, the export, the target, or the validation, as its own resource shows it. Of
    /// a change only its id, `businessObject` and `state`. Of a source `source`, `businessObject`, `at` and, if it lost its
    /// connection, `cause`. For
    /// `penstock.events.lost` the number of lost events (`count`, null when unknown). For
    /// `penstock.events.position` an empty object.
    pub(crate) data: Value,
}

/// What happened.
#[derive(ToSchema)]
#[salvo(schema(name = "EventType"))]
pub(crate) enum EventType {
    #[salvo(schema(rename = "penstock.ingestion.committed"))]
    IngestionCommitted,
    #[salvo(schema(rename = "penstock.export.changed"))]
    ExportChanged,
    #[salvo(schema(rename = "penstock.target.changed"))]
    TargetChanged,
    #[salvo(schema(rename = "penstock.validation.finished"))]
    ValidationFinished,
    #[salvo(schema(rename = "penstock.source.connected"))]
    SourceConnected,
    #[salvo(schema(rename = "penstock.source.disconnected"))]
    SourceDisconnected,
    #[salvo(schema(rename = "penstock.change.draft"))]
    ChangeDraft,
    #[salvo(schema(rename = "penstock.change.submitted"))]
    ChangeSubmitted,
    #[salvo(schema(rename = "penstock.change.approved"))]
    ChangeApproved,
    #[salvo(schema(rename = "penstock.change.rejected"))]
    ChangeRejected,
    #[salvo(schema(rename = "penstock.change.withdrawn"))]
    ChangeWithdrawn,
    #[salvo(schema(rename = "penstock.events.lost"))]
    EventsLost,
    #[salvo(schema(rename = "penstock.events.position"))]
    EventsPosition,
}
