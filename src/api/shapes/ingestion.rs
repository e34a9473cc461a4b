//! Ingestions: their requests, responses and records.
use salvo::oapi::ToSchema;
use serde::Deserialize;
use serde_json::Value;
use std::collections::BTreeMap;

/// The body of an ingestion.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[salvo(schema(name = "IngestionRequest", example = json!({"data": [{"name": "P-101"}]})))]
pub(crate) struct IngestionRequest {
    /// Objects with the field names of the mapping; `uri` is optional.
    pub(crate) data: Vec<BTreeMap<String, Value>>,
}

/// The response to an ingestion, sent after the data is synced to disk.
#[derive(ToSchema)]
#[salvo(schema(name = "Ingestion", rename_all = "camelCase"))]
pub(crate) struct Ingestion {
    /// Its identifier.
    pub(crate) ingestion_id: String,
    /// The mode.
    pub(crate) mode: Mode,
    /// Objects of the request that did not exist before.
    pub(crate) created: u64,
    /// Objects of the request that existed and were changed.
    pub(crate) updated: u64,
    /// Objects of the request that were not changed.
    pub(crate) unchanged: u64,
    /// Removed objects, including nested ones without any remaining reference.
    pub(crate) deleted: u64,
    /// The result of each object, in the order of the request; absent with `objects=false`.
    #[salvo(schema(required = false))]
    pub(crate) objects: Vec<IngestedObject>,
    /// What the caller should know; nothing was dropped.
    pub(crate) warnings: Vec<Warning>,
}

/// How an ingestion changes stored data.
#[derive(ToSchema)]
#[salvo(schema(name = "Mode", rename_all = "UPPERCASE"))]
pub(crate) enum Mode {
    Add,
    Replace,
    Update,
    Delete,
    Validate,
}

/// The result of one object of the request.
#[derive(ToSchema)]
#[salvo(schema(name = "IngestedObject"))]
pub(crate) struct IngestedObject {
    /// Its index in `data`, from 0.
    pub(crate) index: u64,
    /// Its URI, given or minted.
    pub(crate) uri: String,
    /// The result.
    pub(crate) status: IngestedStatus,
    /// The objects nested in it.
    #[salvo(schema(required = false))]
    pub(crate) nested: Vec<NestedObject>,
}

/// The result of an object.
#[derive(ToSchema)]
#[salvo(schema(name = "IngestedStatus", rename_all = "lowercase"))]
pub(crate) enum IngestedStatus {
    Created,
    Updated,
    Unchanged,
    Deleted,
    Absent,
}

/// One nested object.
#[derive(ToSchema)]
#[salvo(schema(name = "NestedObject"))]
pub(crate) struct NestedObject {
    /// Its place in the request (JSON Pointer).
    pub(crate) pointer: String,
    /// Its URI, given or minted.
    pub(crate) uri: String,
}

/// Something the caller should know.
#[derive(ToSchema)]
#[salvo(schema(name = "Warning"))]
pub(crate) struct Warning {
    /// The place in the request (JSON Pointer).
    pub(crate) pointer: String,
    /// The message.
    pub(crate) message: String,
}

/// The record of an ingestion.
#[derive(ToSchema)]
#[salvo(schema(name = "IngestionRecord", rename_all = "camelCase"))]
pub(crate) struct IngestionRecord {
    /// Its identifier.
    pub(crate) id: String,
    /// The Business Object's id.
    pub(crate) business_object: String,
    /// The Business Object's name at that time.
    pub(crate) business_object_name: String,
    /// The mode.
    pub(crate) mode: Mode,
    /// The id of the caller's account.
    pub(crate) caller: String,
    /// The id of the API key of the request.
    #[salvo(schema(required = false, nullable = false))]
    pub(crate) api_key: Option<String>,
    /// The trace that the request was part of (W3C Trace Context).
    #[salvo(schema(required = false, nullable = false))]
    pub(crate) traceparent: Option<String>,
    /// When it was committed (RFC 3339, UTC); never before an earlier one.
    pub(crate) at: String,
    /// Why that time may be wrong; absent if it is reliable.
    #[salvo(schema(required = false, nullable = false))]
    pub(crate) clock: Option<super::export::Doubt>,
    /// The journal's sequence of its commit.
    pub(crate) sequence: u64,
    /// Bytes of the body.
    pub(crate) bytes: u64,
    /// Like in the response.
    pub(crate) created: u64,
    /// Like in the response.
    pub(crate) updated: u64,
    /// Like in the response.
    pub(crate) unchanged: u64,
    /// Like in the response.
    pub(crate) deleted: u64,
}

/// A page of ingestions.
#[derive(ToSchema)]
#[salvo(schema(name = "Ingestions"))]
pub(crate) struct Ingestions {
    /// Newest first.
    pub(crate) items: Vec<IngestionRecord>,
    /// The `cursor` of the next page, or null.
    #[salvo(schema(required = true))]
    pub(crate) next: Option<String>,
}
