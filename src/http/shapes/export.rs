//! Exports, their files, and the targets that they go to.
use salvo::oapi::ToSchema;
use serde_json::Value;
use std::collections::BTreeMap;

/// One file for one Business Object and one target.
#[derive(ToSchema)]
#[salvo(schema(name = "Export", rename_all = "camelCase"))]
pub(crate) struct Export {
    /// Its identifier.
    pub(crate) id: String,
    /// The Business Object's id.
    pub(crate) business_object: String,
    /// The Business Object's name, as in the key.
    pub(crate) business_object_name: String,
    /// The bucketName.
    pub(crate) target: String,
    /// From 1, without a gap, per target and Business Object name; 0 while it waits for room.
    pub(crate) sequence: u64,
    /// What it holds.
    pub(crate) kind: ExportKind,
    /// How far it has come.
    pub(crate) status: ExportStatus,
    /// Objects in it.
    pub(crate) object_count: u64,
    /// Bytes of the file.
    pub(crate) bytes: u64,
    /// `metadata.data_checksum` of the file.
    pub(crate) data_checksum: String,
    /// SHA-256 of the whole file, lowercase hex.
    pub(crate) sha256: String,
    /// The key in the bucket, prefix included.
    pub(crate) key: String,
    /// When it was made (RFC 3339, UTC); never before one of an earlier sequence.
    pub(crate) created_at: String,
    /// Why that time, and the date in the key, may be wrong; absent where nothing is to be doubted.
    #[salvo(schema(required = false, nullable = false))]
    pub(crate) clock: Option<Doubt>,
    /// When the target had taken it.
    #[salvo(schema(required = false))]
    pub(crate) delivered_at: Option<String>,
    /// Attempts so far.
    pub(crate) attempts: u64,
    /// Why the last attempt failed, in words.
    #[salvo(schema(required = false))]
    pub(crate) last_error: Option<String>,
    /// The account that pushed it; absent for one that was made by itself.
    #[salvo(schema(required = false, nullable = false))]
    pub(crate) pushed_by: Option<String>,
    /// The trace that the push was part of (W3C Trace Context).
    #[salvo(schema(required = false, nullable = false))]
    pub(crate) traceparent: Option<String>,
    /// What the view warned of while rendering.
    #[salvo(schema(required = false))]
    pub(crate) warnings: Vec<String>,
}

/// Why a time may be wrong.
#[derive(ToSchema)]
#[salvo(schema(name = "Doubt", rename_all = "lowercase"))]
pub(crate) enum Doubt {
    /// The clock was not synchronised, or said a time that is long over.
    Unsynchronised,
    /// The clock was behind an earlier time, which stands here instead.
    Behind,
}

/// What an export holds.
#[derive(ToSchema)]
#[salvo(schema(name = "ExportKind", rename_all = "lowercase"))]
pub(crate) enum ExportKind {
    Full,
    Incremental,
    Deleted,
}

/// How far an export has come.
#[derive(ToSchema)]
#[salvo(schema(name = "ExportStatus", rename_all = "lowercase"))]
pub(crate) enum ExportStatus {
    Waiting,
    Queued,
    Delivering,
    Delivered,
    Blocked,
    Parked,
}

/// A page of exports.
#[derive(ToSchema)]
#[salvo(schema(name = "Exports"))]
pub(crate) struct Exports {
    /// Newest first.
    pub(crate) items: Vec<Export>,
    /// The `cursor` of the next page, or null.
    #[salvo(schema(required = true))]
    pub(crate) next: Option<String>,
}

/// What a push did.
#[derive(ToSchema)]
#[salvo(schema(name = "Push"))]
pub(crate) struct Push {
    /// The exports queued, one a target.
    pub(crate) exports: Vec<PushedExport>,
    /// Why there are none.
    #[salvo(schema(required = false, nullable = false))]
    pub(crate) reason: Option<String>,
}

/// One export that a push queued.
#[derive(ToSchema)]
#[salvo(schema(name = "PushedExport", rename_all = "camelCase"))]
pub(crate) struct PushedExport {
    /// Its identifier.
    pub(crate) id: String,
    /// From 1, without a gap, per target and Business Object name.
    pub(crate) sequence: u64,
    /// The bucketName.
    pub(crate) target: String,
    /// Objects in it.
    pub(crate) object_count: u64,
    /// How far it has come.
    pub(crate) status: ExportStatus,
}

/// The file of an export (specification, 2.4).
#[derive(ToSchema)]
#[salvo(schema(name = "ExportFile"))]
pub(crate) struct ExportFile {
    /// What the file says of itself.
    pub(crate) metadata: ExportMetadata,
    /// Ordered by URI.
    pub(crate) data: Vec<BTreeMap<String, Value>>,
}

/// What an export file says of itself.
#[derive(ToSchema)]
#[salvo(schema(name = "ExportMetadata"))]
pub(crate) struct ExportMetadata {
    /// `20260301T120000Z`
    pub(crate) export_date: String,
    /// The Business Object's name.
    pub(crate) object_type: String,
    /// Objects in `data`.
    pub(crate) object_count: u64,
    /// SHA-256 of the bytes of `data`, lowercase hex.
    pub(crate) data_checksum: String,
    /// `SHA-256`
    pub(crate) checksum_algorithm: String,
}

/// A target and how it is.
#[derive(ToSchema)]
#[salvo(schema(name = "Target", rename_all = "camelCase"))]
pub(crate) struct Target {
    /// The bucketName.
    pub(crate) name: String,
    /// `directory` or `s3`.
    pub(crate) r#type: String,
    /// Whether the last attempt reached it; null before the first.
    #[salvo(schema(required = true))]
    pub(crate) reachable: Option<bool>,
    /// Why its head of the queue does not get through, in words.
    #[salvo(schema(required = true))]
    pub(crate) blocked: Option<String>,
    /// What kind of cause that is.
    #[salvo(schema(required = true))]
    pub(crate) blocked_by: Option<Cause>,
    /// When its head first failed (RFC 3339).
    #[salvo(schema(required = true))]
    pub(crate) blocked_since: Option<String>,
    /// Failed attempts at its head since it came there, or since the start.
    pub(crate) attempts: u64,
    /// When the next attempt is due (RFC 3339), unless the link is back before.
    #[salvo(schema(required = true))]
    pub(crate) next_attempt: Option<String>,
    /// Why nothing is delivered now though nothing is wrong, in words.
    #[salvo(schema(required = true))]
    pub(crate) paused: Option<String>,
    /// Exports that wait for it.
    pub(crate) depth: u64,
    /// Business Objects whose exports by themselves wait for room in the spool.
    pub(crate) waiting: u64,
    /// Bytes that wait for it.
    pub(crate) bytes: u64,
    /// When the oldest that waits was made (RFC 3339).
    #[salvo(schema(required = true))]
    pub(crate) oldest: Option<String>,
    /// Seconds that it has waited; 0 where the clock says that it was made later.
    #[salvo(schema(required = true))]
    pub(crate) oldest_age_seconds: Option<u64>,
    /// When the last one was delivered (RFC 3339).
    #[salvo(schema(required = true))]
    pub(crate) last_delivery: Option<String>,
}

/// What a test of a target found.
#[derive(ToSchema)]
#[salvo(schema(name = "TargetTest", rename_all = "camelCase"))]
pub(crate) struct TargetTest {
    /// The bucketName.
    pub(crate) target: String,
    /// `directory` or `s3`.
    pub(crate) r#type: String,
    /// Whether nothing was found that is in the way of a delivery.
    pub(crate) ok: bool,
    /// Whether it was reached; null when that was not tried.
    #[salvo(schema(required = true))]
    pub(crate) reachable: Option<bool>,
    /// What is in the way, or what could not be told, in words.
    #[salvo(schema(required = true))]
    pub(crate) cause: Option<String>,
    /// What kind of cause that is; null when nothing is in the way.
    #[salvo(schema(required = true))]
    pub(crate) caused_by: Option<Cause>,
    /// How long the answer took.
    pub(crate) milliseconds: u64,
}

/// Why a target does not take its exports.
#[derive(ToSchema)]
#[salvo(schema(name = "Cause", rename_all = "lowercase"))]
pub(crate) enum Cause {
    Unreachable,
    Broken,
    Busy,
    Credentials,
    Bucket,
    Policy,
    Quota,
    Certificate,
    Clock,
    Conflict,
    Gateway,
    Refused,
}

/// Every target.
#[derive(ToSchema)]
#[salvo(schema(name = "Targets"))]
pub(crate) struct Targets {
    /// Ordered by name.
    pub(crate) items: Vec<Target>,
    /// Always null: all targets are on one page.
    #[salvo(schema(required = true))]
    pub(crate) next: Option<String>,
}
