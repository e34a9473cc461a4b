//! The shapes on the wire, as the OpenAPI document describes them.
//!
//! The layers below write most of them themselves; the contract tests (`tests/schemathesis`) hold what
//! is sent against what stands here.
#![expect(
    dead_code,
    clippy::struct_field_names,
    reason = "most fields are there to be described, under the names of the wire"
)]

use salvo::oapi::ToSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::BTreeMap;

/// The roles, the least first; each may do what those before it may.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Role {
    Anyone,
    User,
    Contributor,
    Admin,
}

/// Problem details (RFC 9457).
#[derive(ToSchema)]
#[salvo(schema(name = "Problem"))]
pub(super) struct Problem {
    /// `about:blank`: the status says what kind of problem it is.
    pub(super) r#type: String,
    /// The status in words.
    pub(super) title: String,
    /// The status.
    pub(super) status: u16,
    /// The cause in words. That of an ingestion begins `Ingestion failed: `.
    pub(super) detail: String,
    /// The path of the request.
    pub(super) instance: String,
    /// Every single finding with its place.
    #[salvo(schema(required = false))]
    pub(super) errors: Vec<Finding>,
}

/// One finding: at a JSON Pointer into the body, or at a line and column of a text.
#[derive(ToSchema)]
#[salvo(schema(name = "Finding"))]
pub(super) struct Finding {
    /// JSON Pointer (RFC 6901).
    #[salvo(schema(required = false, nullable = false))]
    pub(super) pointer: Option<String>,
    /// From 1.
    #[salvo(schema(required = false, nullable = false))]
    pub(super) line: Option<u64>,
    /// From 1, in characters.
    #[salvo(schema(required = false, nullable = false))]
    pub(super) column: Option<u64>,
    /// What is wrong, and how to mend it.
    pub(super) message: String,
}

/// A Business Object as it is defined.
#[derive(Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[salvo(schema(name = "BusinessObjectDefinition", example = json!({
    "name": "Pump",
    "description": "Pumps of the plant",
    "enabled": true,
    "config": "type: object\npath: Pump:.\nfields:\n  name:\n    type: string\n    path: <https://plant.example/name>\n",
    "conditions": [],
    "pushTargets": [{"bucketName": "plant-exports"}],
})))]
pub(super) struct Definition {
    /// Its name, unique on this gateway.
    #[salvo(schema(min_length = 1))]
    pub(super) name: String,
    /// Free text.
    #[salvo(schema(required = false))]
    pub(super) description: String,
    /// Whether it takes ingestions and exports; true when absent.
    #[salvo(schema(required = false))]
    pub(super) enabled: bool,
    /// The mapping as YAML (or JSON) text.
    pub(super) config: String,
    /// Which stored objects belong to it: all that satisfy every one.
    #[salvo(schema(required = false))]
    pub(super) conditions: Vec<Condition>,
    /// Where its exports go.
    #[salvo(schema(required = false))]
    pub(super) push_targets: Vec<PushTarget>,
    /// When full exports run by themselves: cron of 5 or 6 fields.
    #[salvo(schema(required = false))]
    pub(super) schedule: Option<String>,
    /// The IANA time zone of `schedule`; UTC when absent.
    #[salvo(schema(required = false))]
    pub(super) timezone: Option<String>,
    /// Whether changes are exported by themselves.
    #[salvo(schema(required = false))]
    pub(super) export_on_change: bool,
    /// How long an export on change waits for further changes (`5s`).
    #[salvo(schema(required = false))]
    pub(super) debounce: Option<String>,
    /// ISO 8601 duration after which unchanged, delivered objects are removed.
    #[salvo(schema(required = false))]
    pub(super) retention: Option<String>,
}

/// A Business Object.
#[derive(ToSchema)]
#[salvo(schema(name = "BusinessObject", rename_all = "camelCase"))]
pub(super) struct BusinessObject {
    /// Its identifier, made at its creation.
    pub(super) id: String,
    /// Its name, unique on this gateway.
    pub(super) name: String,
    /// Free text.
    pub(super) description: String,
    /// Whether it takes ingestions and exports.
    pub(super) enabled: bool,
    /// The mapping as YAML (or JSON) text.
    pub(super) config: String,
    /// Which stored objects belong to it: all that satisfy every one.
    pub(super) conditions: Vec<Condition>,
    /// Where its exports go.
    pub(super) push_targets: Vec<PushTarget>,
    /// When full exports run by themselves.
    #[salvo(schema(required = false))]
    pub(super) schedule: Option<String>,
    /// The time zone of `schedule`.
    #[salvo(schema(required = false))]
    pub(super) timezone: Option<String>,
    /// Whether changes are exported by themselves.
    pub(super) export_on_change: bool,
    /// How long an export on change waits for further changes.
    #[salvo(schema(required = false))]
    pub(super) debounce: Option<String>,
    /// After what time unchanged, delivered objects are removed.
    #[salvo(schema(required = false))]
    pub(super) retention: Option<String>,
    /// 1 at its creation, one more with each change; the `ETag` is this in quotes.
    pub(super) version: u64,
    /// When it was created (RFC 3339, UTC).
    pub(super) created_at: String,
    /// When it was last changed (RFC 3339, UTC).
    pub(super) updated_at: String,
    /// Namespaces that its last change created.
    pub(super) created_namespaces: Vec<String>,
}

/// One condition: some graph holds (object, predicate, value).
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[salvo(schema(name = "Condition"))]
pub(super) struct Condition {
    /// An IRI without angle brackets.
    pub(super) predicate: String,
    /// An IRI.
    pub(super) value: String,
}

/// One export target.
#[derive(Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[salvo(schema(name = "PushTarget", rename_all = "camelCase"))]
pub(super) struct PushTarget {
    /// A valid S3 bucket name.
    #[salvo(schema(min_length = 3, max_length = 63))]
    pub(super) bucket_name: String,
}

/// A page of Business Objects.
#[derive(ToSchema)]
#[salvo(schema(name = "BusinessObjects"))]
pub(super) struct BusinessObjects {
    /// Ordered by name.
    pub(super) items: Vec<BusinessObject>,
    /// The `cursor` of the next page, or null.
    #[salvo(schema(required = true))]
    pub(super) next: Option<String>,
}

/// What an ingestion carries.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[salvo(schema(name = "IngestionRequest", example = json!({"data": [{"name": "P-101"}]})))]
pub(super) struct IngestionRequest {
    /// Objects with the field names of the mapping; `uri` is optional.
    pub(super) data: Vec<BTreeMap<String, Value>>,
}

/// The answer to an ingestion, given only once it would survive a power cut.
#[derive(ToSchema)]
#[salvo(schema(name = "Ingestion", rename_all = "camelCase"))]
pub(super) struct Ingestion {
    /// Its identifier.
    pub(super) ingestion_id: String,
    /// The mode.
    pub(super) mode: Mode,
    /// Objects of the request that were not there before.
    pub(super) created: u64,
    /// Objects of the request that were there and changed.
    pub(super) updated: u64,
    /// Objects of the request that stayed as they were.
    pub(super) unchanged: u64,
    /// Objects removed, nested ones that nothing referred to any more included.
    pub(super) deleted: u64,
    /// What became of each object, in the order of the request; left out with `objects=false`.
    #[salvo(schema(required = false))]
    pub(super) objects: Vec<IngestedObject>,
    /// What the caller should know; nothing was dropped.
    pub(super) warnings: Vec<Warning>,
}

/// What an ingestion does with what is there.
#[derive(ToSchema)]
#[salvo(schema(name = "Mode", rename_all = "UPPERCASE"))]
pub(super) enum Mode {
    Add,
    Replace,
    Update,
    Delete,
    Validate,
}

/// What became of one object of the request.
#[derive(ToSchema)]
#[salvo(schema(name = "IngestedObject"))]
pub(super) struct IngestedObject {
    /// Its place in `data`, from 0.
    pub(super) index: u64,
    /// Its URI, given or minted.
    pub(super) uri: String,
    /// What became of it.
    pub(super) status: IngestedStatus,
    /// The objects nested in it.
    #[salvo(schema(required = false))]
    pub(super) nested: Vec<NestedObject>,
}

/// What became of an object.
#[derive(ToSchema)]
#[salvo(schema(name = "IngestedStatus", rename_all = "lowercase"))]
pub(super) enum IngestedStatus {
    Created,
    Updated,
    Unchanged,
    Deleted,
    Absent,
}

/// One nested object.
#[derive(ToSchema)]
#[salvo(schema(name = "NestedObject"))]
pub(super) struct NestedObject {
    /// Where it stood in the request (JSON Pointer).
    pub(super) pointer: String,
    /// Its URI, given or minted.
    pub(super) uri: String,
}

/// Something the caller should know.
#[derive(ToSchema)]
#[salvo(schema(name = "Warning"))]
pub(super) struct Warning {
    /// Where in the request (JSON Pointer).
    pub(super) pointer: String,
    /// What, in words.
    pub(super) message: String,
}

/// The record of an ingestion.
#[derive(ToSchema)]
#[salvo(schema(name = "IngestionRecord", rename_all = "camelCase"))]
pub(super) struct IngestionRecord {
    /// Its identifier.
    pub(super) id: String,
    /// The Business Object's id.
    pub(super) business_object: String,
    /// The Business Object's name then.
    pub(super) business_object_name: String,
    /// The mode.
    pub(super) mode: Mode,
    /// Who asked.
    pub(super) caller: String,
    /// When it was committed (RFC 3339, UTC).
    pub(super) at: String,
    /// The journal's sequence of its commit.
    pub(super) sequence: u64,
    /// Bytes of the body.
    pub(super) bytes: u64,
    /// As in the answer.
    pub(super) created: u64,
    /// As in the answer.
    pub(super) updated: u64,
    /// As in the answer.
    pub(super) unchanged: u64,
    /// As in the answer.
    pub(super) deleted: u64,
}

/// A page of ingestions.
#[derive(ToSchema)]
#[salvo(schema(name = "Ingestions"))]
pub(super) struct Ingestions {
    /// Newest first.
    pub(super) items: Vec<IngestionRecord>,
    /// The `cursor` of the next page, or null.
    #[salvo(schema(required = true))]
    pub(super) next: Option<String>,
}

/// A namespace as it is put.
#[derive(Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[salvo(schema(name = "NamespaceDefinition", example = json!({"generator": "counter"})))]
pub(super) struct NamespaceDefinition {
    /// Its name, which must be that of the path.
    #[salvo(schema(required = false))]
    pub(super) name: Option<String>,
    /// What every identifier begins with; the default base when absent.
    #[salvo(schema(required = false))]
    pub(super) uri_base: Option<String>,
    /// How the local part is made; `uuid` when absent.
    #[salvo(schema(required = false))]
    pub(super) generator: Option<Generator>,
    /// Taken and not looked at, so that an answer can be put back.
    #[salvo(schema(required = false))]
    pub(super) created_at: Option<String>,
}

/// A namespace.
#[derive(ToSchema)]
#[salvo(schema(name = "Namespace", rename_all = "camelCase"))]
pub(super) struct Namespace {
    /// Its name, as mappings write it.
    pub(super) name: String,
    /// What every identifier begins with; also the name of the graph.
    pub(super) uri_base: String,
    /// How the local part is made.
    pub(super) generator: Generator,
    /// When it was created (RFC 3339, UTC).
    pub(super) created_at: String,
}

/// How the local part of an identifier is made.
#[derive(Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
#[salvo(schema(name = "Generator", rename_all = "lowercase"))]
pub(super) enum Generator {
    Uuid,
    Counter,
    Alphanumeric,
    Manual,
}

/// A page of namespaces.
#[derive(ToSchema)]
#[salvo(schema(name = "Namespaces"))]
pub(super) struct Namespaces {
    /// Ordered by name.
    pub(super) items: Vec<Namespace>,
    /// The `cursor` of the next page, or null.
    #[salvo(schema(required = true))]
    pub(super) next: Option<String>,
}

/// One file for one Business Object and one target.
#[derive(ToSchema)]
#[salvo(schema(name = "Export", rename_all = "camelCase"))]
pub(super) struct Export {
    /// Its identifier.
    pub(super) id: String,
    /// The Business Object's id.
    pub(super) business_object: String,
    /// The Business Object's name, as in the key.
    pub(super) business_object_name: String,
    /// The bucketName.
    pub(super) target: String,
    /// From 1, without a gap, per target and Business Object name.
    pub(super) sequence: u64,
    /// What it holds.
    pub(super) kind: ExportKind,
    /// How far it has come.
    pub(super) status: ExportStatus,
    /// Objects in it.
    pub(super) object_count: u64,
    /// Bytes of the file.
    pub(super) bytes: u64,
    /// `metadata.data_checksum` of the file.
    pub(super) data_checksum: String,
    /// SHA-256 of the whole file, lowercase hex.
    pub(super) sha256: String,
    /// The key in the bucket, prefix included.
    pub(super) key: String,
    /// When it was made (RFC 3339, UTC).
    pub(super) created_at: String,
    /// When the target had taken it.
    #[salvo(schema(required = false))]
    pub(super) delivered_at: Option<String>,
    /// Attempts so far.
    pub(super) attempts: u64,
    /// Why the last attempt failed, in words.
    #[salvo(schema(required = false))]
    pub(super) last_error: Option<String>,
    /// What the view warned of while rendering.
    #[salvo(schema(required = false))]
    pub(super) warnings: Vec<String>,
}

/// What an export holds.
#[derive(ToSchema)]
#[salvo(schema(name = "ExportKind", rename_all = "lowercase"))]
pub(super) enum ExportKind {
    Full,
    Incremental,
    Deleted,
}

/// How far an export has come.
#[derive(ToSchema)]
#[salvo(schema(name = "ExportStatus", rename_all = "lowercase"))]
pub(super) enum ExportStatus {
    Queued,
    Delivering,
    Delivered,
    Blocked,
    Parked,
}

/// A page of exports.
#[derive(ToSchema)]
#[salvo(schema(name = "Exports"))]
pub(super) struct Exports {
    /// Newest first.
    pub(super) items: Vec<Export>,
    /// The `cursor` of the next page, or null.
    #[salvo(schema(required = true))]
    pub(super) next: Option<String>,
}

/// What a push did.
#[derive(ToSchema)]
#[salvo(schema(name = "Push"))]
pub(super) struct Push {
    /// The exports queued, one a target.
    pub(super) exports: Vec<PushedExport>,
    /// Why there are none.
    #[salvo(schema(required = false, nullable = false))]
    pub(super) reason: Option<String>,
}

/// One export that a push queued.
#[derive(ToSchema)]
#[salvo(schema(name = "PushedExport", rename_all = "camelCase"))]
pub(super) struct PushedExport {
    /// Its identifier.
    pub(super) id: String,
    /// From 1, without a gap, per target and Business Object name.
    pub(super) sequence: u64,
    /// The bucketName.
    pub(super) target: String,
    /// Objects in it.
    pub(super) object_count: u64,
    /// How far it has come.
    pub(super) status: ExportStatus,
}

/// A page of objects through the view.
#[derive(Serialize, ToSchema)]
#[salvo(schema(name = "Objects"))]
pub(super) struct Objects {
    /// Ordered by URI.
    pub(super) items: Vec<BTreeMap<String, Value>>,
    /// The `cursor` of the next page, or null.
    #[salvo(schema(required = true))]
    pub(super) next: Option<String>,
}

/// A page of objects, or one of them.
#[derive(Serialize, ToSchema)]
#[serde(untagged)]
#[salvo(schema(name = "ObjectsOrObject"))]
pub(super) enum ObjectsOrObject {
    Page(Objects),
    One(ViewedObject),
}

/// One object in the configured structure, its `uri` included.
#[derive(Serialize, ToSchema)]
#[salvo(schema(name = "Object"))]
pub(super) struct ViewedObject {
    /// Its URI.
    pub(super) uri: String,
}

/// The file of an export (specification, 2.4).
#[derive(ToSchema)]
#[salvo(schema(name = "ExportFile"))]
pub(super) struct ExportFile {
    /// What the file says of itself.
    pub(super) metadata: ExportMetadata,
    /// Ordered by URI.
    pub(super) data: Vec<BTreeMap<String, Value>>,
}

/// What an export file says of itself.
#[derive(ToSchema)]
#[salvo(schema(name = "ExportMetadata"))]
pub(super) struct ExportMetadata {
    /// `20260301T120000Z`
    pub(super) export_date: String,
    /// The Business Object's name.
    pub(super) object_type: String,
    /// Objects in `data`.
    pub(super) object_count: u64,
    /// SHA-256 of the bytes of `data`, lowercase hex.
    pub(super) data_checksum: String,
    /// `SHA-256`
    pub(super) checksum_algorithm: String,
}

/// A JSON Schema (2020-12).
#[derive(ToSchema)]
#[salvo(schema(name = "JsonSchema"))]
pub(super) struct JsonSchema {
    /// The dialect.
    #[salvo(schema(rename = "$schema"))]
    pub(super) schema: String,
}

/// A target and how it is.
#[derive(ToSchema)]
#[salvo(schema(name = "Target", rename_all = "camelCase"))]
pub(super) struct Target {
    /// The bucketName.
    pub(super) name: String,
    /// `directory` or `s3`.
    pub(super) r#type: String,
    /// Whether the last attempt reached it; null before the first.
    #[salvo(schema(required = true))]
    pub(super) reachable: Option<bool>,
    /// Why its head of the queue does not get through, in words.
    #[salvo(schema(required = true))]
    pub(super) blocked: Option<String>,
    /// Exports that wait for it.
    pub(super) depth: u64,
    /// Bytes that wait for it.
    pub(super) bytes: u64,
    /// When the oldest that waits was made (RFC 3339).
    #[salvo(schema(required = true))]
    pub(super) oldest: Option<String>,
    /// When the last one was delivered (RFC 3339).
    #[salvo(schema(required = true))]
    pub(super) last_delivery: Option<String>,
}

/// Every target.
#[derive(ToSchema)]
#[salvo(schema(name = "Targets"))]
pub(super) struct Targets {
    /// Ordered by name.
    pub(super) items: Vec<Target>,
    /// Always null: all targets are on one page.
    #[salvo(schema(required = true))]
    pub(super) next: Option<String>,
}

/// The limits that requests meet (`service.limits.*`).
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[salvo(schema(name = "Limits"))]
pub(super) struct Limits {
    /// Bytes of one request body, or of one NDJSON line.
    pub(super) body: u64,
    /// Levels of JSON.
    pub(super) nesting: usize,
    /// Objects in one JSON request.
    pub(super) objects: usize,
    /// Bytes of all bodies at once.
    pub(super) in_flight: u64,
    /// Answers kept for 24 h under their `Idempotency-Key`.
    pub(super) idempotency_keys: usize,
    /// Records of ingestions, and of delivered exports, kept.
    pub(super) history: usize,
}

/// How the gateway is.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[salvo(schema(name = "Status"))]
pub(super) struct Status {
    /// The version of Penstock.
    pub(super) version: String,
    /// The gateway's identifier.
    pub(super) gateway_id: String,
    /// Seconds since the start.
    pub(super) uptime_seconds: u64,
    /// What the store holds and uses.
    pub(super) store: StoreStatus,
    /// What waits to be delivered.
    pub(super) queue: QueueStatus,
    /// Bytes free on the disk of the data directory; null when it cannot be told.
    #[salvo(schema(required = true))]
    pub(super) disk_free_bytes: Option<u64>,
    /// Bytes of memory that the process holds; null when it cannot be told.
    #[salvo(schema(required = true))]
    pub(super) memory_bytes: Option<u64>,
    /// Whether the clock follows a time server; null when it cannot be told.
    #[salvo(schema(required = true))]
    pub(super) clock_synchronised: Option<bool>,
}

/// What the store holds and uses.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[salvo(schema(name = "StoreStatus"))]
pub(super) struct StoreStatus {
    /// The journal's newest sequence.
    pub(super) sequence: u64,
    /// Quads held.
    pub(super) quads: u64,
    /// Bytes of the journal on disk.
    pub(super) journal_bytes: u64,
    /// Bytes of the index on disk.
    pub(super) index_bytes: u64,
    /// Bytes of index entries that wait for a checkpoint.
    pub(super) write_back_bytes: u64,
}

/// What waits to be delivered, over all targets.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[salvo(schema(name = "QueueStatus"))]
pub(super) struct QueueStatus {
    /// Exports that wait.
    pub(super) depth: u64,
    /// Their bytes.
    pub(super) bytes: u64,
    /// When the oldest was made (RFC 3339); null when none waits.
    #[salvo(schema(required = true))]
    pub(super) oldest: Option<String>,
    /// The bucketNames whose head does not get through.
    pub(super) blocked: Vec<String>,
}

/// Whether the process lives, or is ready.
#[derive(Serialize, ToSchema)]
#[salvo(schema(name = "Health"))]
pub(super) struct Health {
    /// `live` or `ready`.
    pub(super) status: &'static str,
}
