//! Ingestions: their responses and records.
use super::dead_letter::RejectedObject;
use super::export::Doubt;
use penstock_http::problem::ConstraintDocument;
use penstock_model::ingest::{self, Answer, Nested, OnError, Outcome, Record, Status};
use salvo_oapi::ToSchema;
use serde::Serialize;

/// The response to an ingestion, sent after the data is synced to disk.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[salvo(schema(name = "Ingestion"))]
pub(crate) struct Ingestion {
    /// Its identifier.
    ingestion_id: String,
    /// The mode.
    mode: Mode,
    /// For a chunk of a stream, the index of its first object in the stream.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[salvo(schema(skip))]
    first_index: Option<usize>,
    /// For a chunk of a stream, the index of its last object in the stream.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[salvo(schema(skip))]
    last_index: Option<usize>,
    /// Objects of the request that did not exist before.
    created: u64,
    /// Objects of the request that existed and were changed.
    updated: u64,
    /// Objects of the request that were not changed.
    unchanged: u64,
    /// Removed objects, including nested ones without any remaining reference.
    deleted: u64,
    /// The result of each object, in the order of the request; absent with `objects=false`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[salvo(schema(required = false, nullable = false))]
    objects: Option<Vec<IngestedObject>>,
    /// The objects that were left out because of errors, in the order of the request; only with `onError=skip`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[salvo(schema(required = false, nullable = false))]
    rejected: Option<Vec<RejectedObject>>,
    /// What the caller should know; nothing was dropped.
    warnings: Vec<Warning>,
}

impl Ingestion {
    /// Converts an answer, without the result of each object unless `lists_objects`. There may be a hundred thousand of
    /// these, so their texts are moved.
    pub(crate) fn from_answer(answer: Answer, lists_objects: bool, on_error: OnError) -> Self {
        let (objects, rejected) = (answer.objects, answer.rejected);
        // A repeated request gets the first answer, whatever its `onError` is now.
        let lists_rejected = on_error == OnError::Skip || !rejected.is_empty();
        Self {
            ingestion_id: answer.ingestion_id,
            mode: answer.mode.into(),
            first_index: None,
            last_index: None,
            created: answer.created,
            updated: answer.updated,
            unchanged: answer.unchanged,
            deleted: answer.deleted,
            objects: lists_objects.then(|| objects.into_iter().map(Into::into).collect()),
            rejected: lists_rejected.then(|| rejected.into_iter().map(Into::into).collect()),
            warnings: answer.warnings.into_iter().map(Into::into).collect(),
        }
    }

    /// Adds the place of the chunk in its stream.
    pub(crate) fn with_place(self, place: ChunkPlace) -> Self {
        Self { first_index: Some(place.first_index), last_index: Some(place.last_index), ..self }
    }
}

/// The place of a chunk in a stream: the indexes of its first and its last object, from 0.
#[derive(Debug, Clone, Copy, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct ChunkPlace {
    pub(crate) first_index: usize,
    pub(crate) last_index: usize,
}

/// How an ingestion changes stored data.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "UPPERCASE")]
#[salvo(schema(name = "Mode"))]
pub(crate) enum Mode {
    Add,
    Replace,
    Update,
    Merge,
    Delete,
    Validate,
}

impl From<ingest::Mode> for Mode {
    fn from(mode: ingest::Mode) -> Self {
        match mode {
            ingest::Mode::Add => Self::Add,
            ingest::Mode::Replace => Self::Replace,
            ingest::Mode::Update => Self::Update,
            ingest::Mode::Merge => Self::Merge,
            ingest::Mode::Delete => Self::Delete,
            ingest::Mode::Validate => Self::Validate,
        }
    }
}

/// What an ingestion does if an object has an error.
#[derive(ToSchema)]
#[salvo(schema(name = "OnError"))]
#[expect(dead_code, reason = "only describes the query parameter")]
pub(crate) enum OnErrorName {
    #[salvo(schema(rename = "abort"))]
    Abort,
    #[salvo(schema(rename = "skip"))]
    Skip,
}

/// The result of one object of the request.
#[derive(Serialize, ToSchema)]
#[salvo(schema(name = "IngestedObject"))]
pub(crate) struct IngestedObject {
    /// Its index in `data`, from 0.
    index: u64,
    /// Its URI, given or minted.
    uri: String,
    /// The result.
    status: IngestedStatus,
    /// The objects nested in it.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[salvo(schema(required = false))]
    nested: Vec<NestedObject>,
}

impl From<Outcome> for IngestedObject {
    fn from(Outcome { index, uri, status, nested }: Outcome) -> Self {
        Self {
            index: index as u64,
            uri,
            status: status.into(),
            nested: nested.into_iter().map(Into::into).collect(),
        }
    }
}

/// The result of an object.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "lowercase")]
#[salvo(schema(name = "IngestedStatus"))]
pub(crate) enum IngestedStatus {
    Created,
    Updated,
    Unchanged,
    Deleted,
    Absent,
}

impl From<Status> for IngestedStatus {
    fn from(status: Status) -> Self {
        match status {
            Status::Created => Self::Created,
            Status::Updated => Self::Updated,
            Status::Unchanged => Self::Unchanged,
            Status::Deleted => Self::Deleted,
            Status::Absent => Self::Absent,
        }
    }
}

/// One nested object.
#[derive(Serialize, ToSchema)]
#[salvo(schema(name = "NestedObject"))]
pub(crate) struct NestedObject {
    /// Its place in the request (JSON Pointer).
    pointer: String,
    /// Its URI, given or minted.
    uri: String,
}

impl From<Nested> for NestedObject {
    fn from(Nested { pointer, uri }: Nested) -> Self {
        Self { pointer, uri }
    }
}

/// Something the caller should know.
#[derive(Serialize, ToSchema)]
#[salvo(schema(name = "IngestionWarning"))]
pub(crate) struct Warning {
    /// The place in the request (JSON Pointer).
    pointer: String,
    /// The message.
    message: String,
    #[serde(flatten)]
    violation: ConstraintDocument,
}

impl From<ingest::Warning> for Warning {
    fn from(ingest::Warning { pointer, message, violation }: ingest::Warning) -> Self {
        Self { pointer, message, violation: violation.into() }
    }
}

/// The record of an ingestion.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[salvo(schema(name = "IngestionRecord"))]
pub(crate) struct IngestionRecord {
    /// Its identifier.
    id: String,
    /// The Business Object's id; absent for an update in SPARQL.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[salvo(schema(required = false, nullable = false))]
    business_object: Option<String>,
    /// The Business Object's name at that time; absent for an update in SPARQL.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[salvo(schema(required = false, nullable = false))]
    business_object_name: Option<String>,
    /// The mode.
    mode: RecordMode,
    /// The id of the caller's account.
    caller: String,
    /// The id of the API key of the request.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[salvo(schema(required = false, nullable = false))]
    api_key: Option<String>,
    /// The author of the change that it published.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[salvo(schema(required = false, nullable = false))]
    author: Option<String>,
    /// The account that approved the change.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[salvo(schema(required = false, nullable = false))]
    approved_by: Option<String>,
    /// The trace that the request was part of (W3C Trace Context).
    #[serde(skip_serializing_if = "Option::is_none")]
    #[salvo(schema(required = false, nullable = false))]
    traceparent: Option<String>,
    /// When it was committed (RFC 3339, UTC); never before an earlier one.
    at: String,
    /// Why that time may be wrong; absent if it is reliable.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[salvo(schema(required = false, nullable = false))]
    clock: Option<Doubt>,
    /// The journal's sequence of its commit.
    sequence: u64,
    /// Bytes of the body.
    bytes: u64,
    /// Like in the response.
    created: u64,
    /// Like in the response.
    updated: u64,
    /// Like in the response.
    unchanged: u64,
    /// Like in the response.
    deleted: u64,
    /// Objects that were left out because of errors.
    rejected: u64,
    /// The quads that an update in SPARQL changed. Its objects are not counted.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[salvo(schema(required = false, nullable = false))]
    quads: Option<QuadCounts>,
}

/// The mode of a recorded ingestion.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "UPPERCASE")]
#[salvo(schema(name = "RecordMode"))]
pub(crate) enum RecordMode {
    Add,
    Replace,
    Update,
    Merge,
    Delete,
    Validate,
    Sparql,
}

impl From<ingest::RecordMode> for RecordMode {
    fn from(mode: ingest::RecordMode) -> Self {
        match mode {
            ingest::RecordMode::Sparql => Self::Sparql,
            ingest::RecordMode::Ingestion(ingest::Mode::Add) => Self::Add,
            ingest::RecordMode::Ingestion(ingest::Mode::Replace) => Self::Replace,
            ingest::RecordMode::Ingestion(ingest::Mode::Update) => Self::Update,
            ingest::RecordMode::Ingestion(ingest::Mode::Merge) => Self::Merge,
            ingest::RecordMode::Ingestion(ingest::Mode::Delete) => Self::Delete,
            ingest::RecordMode::Ingestion(ingest::Mode::Validate) => Self::Validate,
        }
    }
}

/// The number of quads that an update changed.
#[derive(Serialize, ToSchema)]
#[salvo(schema(name = "QuadCounts"))]
pub(crate) struct QuadCounts {
    /// Quads that were not stored before.
    inserted: u64,
    /// Quads that are no longer stored.
    removed: u64,
}

impl From<ingest::QuadCounts> for QuadCounts {
    fn from(ingest::QuadCounts { inserted, removed }: ingest::QuadCounts) -> Self {
        Self { inserted, removed }
    }
}

/// The answer to an update in SPARQL, sent after its commit is synced to disk.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[salvo(schema(name = "SparqlUpdate"))]
pub(crate) struct SparqlUpdate {
    /// The identifier of its record.
    pub(crate) ingestion_id: String,
    /// Quads that were not stored before.
    pub(crate) inserted: u64,
    /// Quads that are no longer stored.
    pub(crate) removed: u64,
}

impl From<Record> for IngestionRecord {
    fn from(record: Record) -> Self {
        Self {
            id: record.id,
            business_object: record.business_object,
            business_object_name: record.business_object_name,
            mode: record.mode.into(),
            caller: record.caller,
            api_key: record.api_key,
            author: record.author,
            approved_by: record.approved_by,
            traceparent: record.traceparent,
            at: record.at,
            clock: record.clock.map(Into::into),
            sequence: record.sequence,
            bytes: record.bytes,
            created: record.created,
            updated: record.updated,
            unchanged: record.unchanged,
            deleted: record.deleted,
            rejected: record.rejected,
            quads: record.quads.map(Into::into),
        }
    }
}

/// A page of ingestions.
#[derive(Serialize, ToSchema)]
#[salvo(schema(name = "Ingestions"))]
pub(crate) struct Ingestions {
    /// Newest first.
    pub(crate) items: Vec<IngestionRecord>,
    /// The `cursor` of the next page, or null.
    #[salvo(schema(required = true))]
    pub(crate) next: Option<String>,
}
