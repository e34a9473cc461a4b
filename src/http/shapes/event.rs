//! Events.
use salvo::oapi::ToSchema;
use serde_json::Value;

/// An event in the JSON format of `CloudEvents` 1.0; the stream has each in a `data:` line, with its
/// `id:` and its type as `event:`.
#[derive(ToSchema)]
#[salvo(schema(name = "Event"))]
pub(crate) struct Event {
    /// `1.0`
    pub(crate) specversion: String,
    /// Its identifier, a whole number that grows with each event; `Last-Event-ID` takes it.
    pub(crate) id: String,
    /// The gateway: `service.base-url`, or a URN of its identifier.
    pub(crate) source: String,
    /// What happened.
    pub(crate) r#type: EventType,
    /// What it happened to: the id of the ingestion or of the export, the name of the target.
    pub(crate) subject: String,
    /// When (RFC 3339, UTC).
    pub(crate) time: String,
    /// The trace that the request was part of which this comes from (W3C Trace Context; the Distributed
    /// Tracing extension).
    #[salvo(schema(required = false, nullable = false))]
    pub(crate) traceparent: Option<String>,
    /// `application/json`
    pub(crate) datacontenttype: String,
    /// The record of the ingestion, the export, or the target, as its own resource shows it; of
    /// `penstock.events.lost` how many events are gone (`count`, null when that is not known); of
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
    #[salvo(schema(rename = "penstock.events.lost"))]
    EventsLost,
    #[salvo(schema(rename = "penstock.events.position"))]
    EventsPosition,
}
