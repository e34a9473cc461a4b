//! Exports, their files and their targets.
use crate::names::wire_names;
use crate::warning::Warning;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::BTreeMap;

/// One file for one Business Object and one target.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Export {
    /// Its identifier.
    pub id: String,
    /// The Business Object's id.
    pub business_object: String,
    /// The Business Object's name, as in the key.
    pub business_object_name: String,
    /// The bucketName.
    pub target: String,
    /// From 1, without a gap, per target and Business Object name; 0 while it waits for space in the spool.
    pub sequence: u64,
    /// Its content.
    pub kind: ExportKind,
    /// Its status.
    pub status: ExportStatus,
    /// Number of objects in the file.
    pub object_count: u64,
    /// Bytes of the file.
    pub bytes: u64,
    /// `metadata.data_checksum` of the file.
    pub data_checksum: String,
    /// SHA-256 of the whole file, lowercase hex.
    pub sha256: String,
    /// The key in the bucket, prefix included.
    pub key: String,
    /// When it was created (RFC 3339, UTC); never before an export of an earlier sequence.
    pub created_at: String,
    /// Why that time, and the date in the key, may be wrong; absent if it is reliable.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub clock: Option<Doubt>,
    /// The journal sequence of the commit whose state a full export shows. Absent for other kinds, and if later commits
    /// changed too much to keep that state while the export was rendered; then `warnings` says so.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub commit: Option<u64>,
    /// When it was delivered.
    pub delivered_at: Option<String>,
    /// Number of attempts so far.
    pub attempts: u64,
    /// Why the last attempt failed, in words.
    pub last_error: Option<String>,
    /// The account that pushed it; absent for an automatic export.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pushed_by: Option<String>,
    /// The trace that the push was part of (W3C Trace Context).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub traceparent: Option<String>,
    /// Warnings while rendering. The first one says so if the export mixes several commits.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub warnings: Vec<String>,
}

/// Why a time may be wrong.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Doubt {
    /// The clock was not synchronised, or its time was long past.
    Unsynchronised,
    /// The clock was behind an earlier time, which is used instead.
    Behind,
}

wire_names!(Doubt { Unsynchronised: "unsynchronised", Behind: "behind" });

/// The content of an export.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum ExportKind {
    /// All objects of the Business Object.
    Full,
    /// The objects changed since the last export.
    Incremental,
    /// The URIs of objects that were removed.
    Deleted,
}

wire_names!(ExportKind { Full: "full", Incremental: "incremental", Deleted: "deleted" });

/// The status of an export.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum ExportStatus {
    /// It waits for spool capacity. Its content and sequence are not decided yet. Its id is temporary, because it is not
    /// in the queue yet.
    Waiting,
    /// It is in the queue.
    Queued,
    /// It is being delivered.
    Delivering,
    /// The target confirmed it.
    Delivered,
    /// It is at the head of the queue and its last attempt failed. The gateway retries.
    Blocked,
    /// An operator removed it from the queue.
    Parked,
}

/// The result of a push.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct Push {
    /// The queued exports, one for each target.
    pub exports: Vec<PushedExport>,
    /// Why there are none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

/// One export that a push queued.
#[derive(Debug, Clone, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PushedExport {
    /// Its identifier.
    pub id: String,
    /// From 1, without a gap, per target and Business Object name.
    pub sequence: u64,
    /// The bucketName.
    pub target: String,
    /// Number of objects in the file.
    pub object_count: u64,
    /// Its status.
    pub status: ExportStatus,
}

impl From<Export> for PushedExport {
    fn from(export: Export) -> Self {
        Self {
            id: export.id,
            sequence: export.sequence,
            target: export.target,
            object_count: export.object_count,
            status: export.status,
        }
    }
}

// `penstock_export` writes the file as a stream, so this only describes it.
/// The file of an export (specification, 2.4).
#[derive(Debug, Clone, JsonSchema)]
pub struct ExportFile {
    /// The file's description of itself.
    pub metadata: ExportMetadata,
    /// Ordered by URI.
    pub data: Vec<BTreeMap<String, Value>>,
}

/// The description of an export file in the file.
#[derive(Debug, Clone, JsonSchema)]
pub struct ExportMetadata {
    /// `20260301T120000Z`
    pub export_date: String,
    /// The Business Object's name.
    pub object_type: String,
    /// Objects in `data`.
    pub object_count: u64,
    /// SHA-256 of the bytes of `data`, or of the lines, lowercase hex.
    pub data_checksum: String,
    /// `SHA-256`
    pub checksum_algorithm: String,
    /// As in the export. This and the members after it are only in extended metadata (`service.export.metadata`).
    #[schemars(skip_serializing_if = "Option::is_none")]
    pub kind: Option<ExportKind>,
    /// As in the export.
    #[schemars(skip_serializing_if = "Option::is_none")]
    pub sequence: Option<u64>,
    /// The id of the gateway.
    #[schemars(skip_serializing_if = "Option::is_none")]
    pub gateway_id: Option<String>,
    /// The id of the export.
    #[schemars(skip_serializing_if = "Option::is_none")]
    pub export_id: Option<String>,
    /// The version of the Business Object.
    #[schemars(skip_serializing_if = "Option::is_none")]
    pub schema_version: Option<u64>,
    /// The journal sequence of the last commit before the export was rendered. The export has every change up to it.
    #[schemars(skip_serializing_if = "Option::is_none")]
    pub commit: Option<u64>,
}

/// A target and its state.
#[derive(Debug, Clone, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Target {
    /// The bucketName.
    pub name: String,
    /// `directory`, `s3` or `sparql`.
    #[serde(rename = "type")]
    pub kind: &'static str,
    /// Whether the last attempt reached it; null before the first.
    pub reachable: Option<bool>,
    /// Why the first export of its queue cannot be delivered, in words.
    pub blocked: Option<String>,
    /// The kind of cause.
    pub blocked_by: Option<Cause>,
    /// When that export first failed (RFC 3339).
    pub blocked_since: Option<String>,
    /// Failed attempts of that export since it became the first, or since the start.
    pub attempts: u64,
    /// When the next attempt is due (RFC 3339), unless the link recovers earlier.
    pub next_attempt: Option<String>,
    /// Why deliveries are paused although nothing failed, in words.
    pub paused: Option<String>,
    /// What an operator should know although nothing failed, in words.
    pub remark: Option<String>,
    /// Valid settings that are probably mistakes.
    pub warnings: Vec<Warning>,
    /// Number of waiting exports.
    pub depth: u64,
    /// Number of Business Objects whose automatic exports wait for space in the spool.
    pub waiting: u64,
    /// Bytes of waiting exports.
    pub bytes: u64,
    /// When the oldest waiting export was created (RFC 3339).
    pub oldest: Option<String>,
    /// Seconds since then; 0 if the clock has since been set back before that time.
    pub oldest_age_seconds: Option<u64>,
    /// When the last one was delivered (RFC 3339).
    pub last_delivery: Option<String>,
    /// What the server answered to the last attempt: the status and its words. Only Admins see it, on a page.
    #[serde(skip)]
    pub answer: Option<String>,
}

/// The result of a target's test.
#[derive(Debug, Clone, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct TargetTest {
    /// The bucketName.
    pub target: String,
    /// `directory`, `s3` or `sparql`.
    #[serde(rename = "type")]
    pub kind: &'static str,
    /// Whether nothing was found that would prevent a delivery.
    pub ok: bool,
    /// Whether the target was reached; null if that was not tried.
    pub reachable: Option<bool>,
    /// What prevents a delivery, or what could not be determined, in words.
    pub cause: Option<String>,
    /// The kind of cause; null if nothing prevents a delivery.
    pub caused_by: Option<Cause>,
    /// The response time in milliseconds.
    pub milliseconds: u64,
    /// What the server answered, if it refused: the status and its words. Only a page shows it.
    #[serde(skip)]
    pub answer: Option<String>,
}

/// Why a target does not accept its exports.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Cause {
    /// The server cannot be reached: DNS failure, no route, connection refused, or connect timeout.
    Unreachable,
    /// The connection broke, or no answer arrived in time.
    Broken,
    /// The server is overloaded or has an internal error.
    Busy,
    /// The server rejects the credentials.
    Credentials,
    /// The bucket or the directory does not exist.
    Bucket,
    /// The credentials may not write to the bucket, or not read or list it.
    Policy,
    /// The quota of the bucket or the disk space of the directory is used up.
    Quota,
    /// The TLS certificate is not trusted, not valid now, or for another name.
    Certificate,
    /// The clocks of the gateway and of the server differ.
    Clock,
    /// Another object already exists under the key.
    Conflict,
    /// The gateway's own settings or files cause the failure.
    Gateway,
    /// The server refuses for a reason that the gateway does not recognize.
    Refused,
}
