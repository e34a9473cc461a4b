//! Ingestions: what they carry, what they answer, what is kept of them.
use salvo::oapi::ToSchema;
use serde::Deserialize;
use serde_json::Value;
use std::collections::BTreeMap;

/// What an ingestion carries.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[salvo(schema(name = "IngestionRequest", example = json!({"data": [{"name": "P-101"}]})))]
pub(in crate::http) struct IngestionRequest {
    /// Objects with the field names of the mapping; `uri` is optional.
    pub(in crate::http) data: Vec<BTreeMap<String, Value>>,
}

/// The answer to an ingestion, given only once it would survive a power cut.
#[derive(ToSchema)]
#[salvo(schema(name = "Ingestion", rename_all = "camelCase"))]
pub(in crate::http) struct Ingestion {
    /// Its identifier.
    pub(in crate::http) ingestion_id: String,
    /// The mode.
    pub(in crate::http) mode: Mode,
    /// Objects of the request that were not there before.
    pub(in crate::http) created: u64,
    /// Objects of the request that were there and changed.
    pub(in crate::http) updated: u64,
    /// Objects of the request that stayed as they were.
    pub(in crate::http) unchanged: u64,
    /// Objects removed, nested ones that nothing referred to any more included.
    pub(in crate::http) deleted: u64,
    /// What became of each object, in the order of the request; left out with `objects=false`.
    #[salvo(schema(required = false))]
    pub(in crate::http) objects: Vec<IngestedObject>,
    /// What the caller should know; nothing was dropped.
    pub(in crate::http) warnings: Vec<Warning>,
}

/// What an ingestion does with what is there.
#[derive(ToSchema)]
#[salvo(schema(name = "Mode", rename_all = "UPPERCASE"))]
pub(in crate::http) enum Mode {
    Add,
    Replace,
    Update,
    Delete,
    Validate,
}

/// What became of one object of the request.
#[derive(ToSchema)]
#[salvo(schema(name = "IngestedObject"))]
pub(in crate::http) struct IngestedObject {
    /// Its place in `data`, from 0.
    pub(in crate::http) index: u64,
    /// Its URI, given or minted.
    pub(in crate::http) uri: String,
    /// What became of it.
    pub(in crate::http) status: IngestedStatus,
    /// The objects nested in it.
    #[salvo(schema(required = false))]
    pub(in crate::http) nested: Vec<NestedObject>,
}

/// What became of an object.
#[derive(ToSchema)]
#[salvo(schema(name = "IngestedStatus", rename_all = "lowercase"))]
pub(in crate::http) enum IngestedStatus {
    Created,
    Updated,
    Unchanged,
    Deleted,
    Absent,
}

/// One nested object.
#[derive(ToSchema)]
#[salvo(schema(name = "NestedObject"))]
pub(in crate::http) struct NestedObject {
    /// Where it stood in the request (JSON Pointer).
    pub(in crate::http) pointer: String,
    /// Its URI, given or minted.
    pub(in crate::http) uri: String,
}

/// Something the caller should know.
#[derive(ToSchema)]
#[salvo(schema(name = "Warning"))]
pub(in crate::http) struct Warning {
    /// Where in the request (JSON Pointer).
    pub(in crate::http) pointer: String,
    /// What, in words.
    pub(in crate::http) message: String,
}

/// The record of an ingestion.
#[derive(ToSchema)]
#[salvo(schema(name = "IngestionRecord", rename_all = "camelCase"))]
pub(in crate::http) struct IngestionRecord {
    /// Its identifier.
    pub(in crate::http) id: String,
    /// The Business Object's id.
    pub(in crate::http) business_object: String,
    /// The Business Object's name then.
    pub(in crate::http) business_object_name: String,
    /// The mode.
    pub(in crate::http) mode: Mode,
    /// Who asked.
    pub(in crate::http) caller: String,
    /// The id of the API key that it was asked with.
    #[salvo(schema(required = false, nullable = false))]
    pub(in crate::http) api_key: Option<String>,
    /// The trace that the request was part of (W3C Trace Context).
    #[salvo(schema(required = false, nullable = false))]
    pub(in crate::http) traceparent: Option<String>,
    /// When it was committed (RFC 3339, UTC); never before an earlier one.
    pub(in crate::http) at: String,
    /// Why that time may be wrong; absent where nothing is to be doubted.
    #[salvo(schema(required = false, nullable = false))]
    pub(in crate::http) clock: Option<super::export::Doubt>,
    /// The journal's sequence of its commit.
    pub(in crate::http) sequence: u64,
    /// Bytes of the body.
    pub(in crate::http) bytes: u64,
    /// As in the answer.
    pub(in crate::http) created: u64,
    /// As in the answer.
    pub(in crate::http) updated: u64,
    /// As in the answer.
    pub(in crate::http) unchanged: u64,
    /// As in the answer.
    pub(in crate::http) deleted: u64,
}

/// A page of ingestions.
#[derive(ToSchema)]
#[salvo(schema(name = "Ingestions"))]
pub(in crate::http) struct Ingestions {
    /// Newest first.
    pub(in crate::http) items: Vec<IngestionRecord>,
    /// The `cursor` of the next page, or null.
    #[salvo(schema(required = true))]
    pub(in crate::http) next: Option<String>,
}
