//! Exports, their files and their targets.
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
    /// From 1, without a gap, per target and Business Object name; 0 while it waits for space in the spool.
    pub(crate) sequence: u64,
    /// Its content.
    pub(crate) kind: ExportKind,
    /// Its status.
    pub(crate) status: ExportStatus,
    /// Number of objects in the file.
    pub(crate) object_count: u64,
    /// Bytes of the file.
    pub(crate) bytes: u64,
    /// `metadata.data_checksum` of the file.
    pub(crate) data_checksum: String,
    /// SHA-256 of the whole file, lowercase hex.
    pub(crate) sha256: String,
    /// The key in the bucket, prefix included.
    pub(crate) key: String,
    /// When it was created (RFC 3339, UTC); never before an export of an earlier sequence.
    pub(crate) created_at: String,
    /// Why that time, and the date in the key, may be wrong; absent if it is reliable.
    #[salvo(schema(required = false, nullable = false))]
    pub(crate) clock: Option<Doubt>,
    /// When it was delivered.
    #[salvo(schema(required = false))]
    pub(crate) delivered_at: Option<String>,
    /// Number of attempts so far.
    pub(crate) attempts: u64,
    /// Why the last attempt failed, in words.
    #[salvo(schema(required = false))]
    pub(crate) last_error: Option<String>,
    /// The account that pushed it; absent for an automatic export.
    #[salvo(schema(required = false, nullable = false))]
    pub(crate) pushed_by: Option<String>,
    /// The trace that the push was part of (W3C Trace Context).
    #[salvo(schema(required = false, nullable = false))]
    pub(crate) traceparent: Option<String>,
    /// Warnings of the view while rendering.
    #[salvo(schema(required = false))]
    pub(crate) warnings: Vec<String>,
}

/// Why a time may be wrong.
#[derive(ToSchema)]
#[salvo(schema(name = "Doubt", rename_all = "lowercase"))]
pub(crate) enum Doubt {
    /// The clock was not synchronised, or its time was long past.
    Unsynchronised,
    /// The clock was behind an earlier time, which is used instead.
    Behind,
}

/// The content of an export.
#[derive(ToSchema)]
#[salvo(schema(name = "ExportKind", rename_all = "lowercase"))]
pub(crate) enum ExportKind {
    Full,
    Incremental,
    Deleted,
}

/// The status of an export.
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

/// The result of a push.
#[derive(ToSchema)]
#[salvo(schema(name = "Push"))]
pub(crate) struct Push {
    /// The queued exports, one for each target.
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
    /// Number of objects in the file.
    pub(crate) object_count: u64,
    /// Its status.
    pub(crate) status: ExportStatus,
}

/// The file of an export (specification, 2.4).
#[derive(ToSchema)]
#[salvo(schema(name = "ExportFile"))]
pub(crate) struct ExportFile {
    /// The file's description of itself.
    pub(crate) metadata: ExportMetadata,
    /// Ordered by URI.
    pub(crate) data: Vec<BTreeMap<String, Value>>,
}

/// The description of an export file in the file.
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

/// A target and its state.
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
    /// Why the first export of its queue cannot be delivered, in words.
    #[salvo(schema(required = true))]
    pub(crate) blocked: Option<String>,
    /// The kind of cause.
    #[salvo(schema(required = true))]
    pub(crate) blocked_by: Option<Cause>,
    /// When that export first failed (RFC 3339).
    #[salvo(schema(required = true))]
    pub(crate) blocked_since: Option<String>,
    /// Failed attempts of that export since it became the first, or since the start.
    pub(crate) attempts: u64,
    /// When the next attempt is due (RFC 3339), unless the link recovers earlier.
    #[salvo(schema(required = true))]
    pub(crate) next_attempt: Option<String>,
    /// Why deliveries are paused although nothing failed, in words.
    #[salvo(schema(required = true))]
    pub(crate) paused: Option<String>,
    /// Number of waiting exports.
    pub(crate) depth: u64,
    /// Number of Business Objects whose automatic exports wait for space in the spool.
    pub(crate) waiting: u64,
    /// Bytes of waiting exports.
    pub(crate) bytes: u64,
    /// When the oldest waiting export was created (RFC 3339).
    #[salvo(schema(required = true))]
    pub(crate) oldest: Option<String>,
    /// Seconds since then; 0 if the clock has since been set back before that time.
    #[salvo(schema(required = true))]
    pub(crate) oldest_age_seconds: Option<u64>,
    /// When the last one was delivered (RFC 3339).
    #[salvo(schema(required = true))]
    pub(crate) last_delivery: Option<String>,
}

/// The result of a target's test.
#[derive(ToSchema)]
#[salvo(schema(name = "TargetTest", rename_all = "camelCase"))]
pub(crate) struct TargetTest {
    /// The bucketName.
    pub(crate) target: String,
    /// `directory` or `s3`.
    pub(crate) r#type: String,
    /// Whether nothing was found that would prevent a delivery.
    pub(crate) ok: bool,
    /// Whether the target was reached; null if that was not tried.
    #[salvo(schema(required = true))]
    pub(crate) reachable: Option<bool>,
    /// What prevents a delivery, or what could not be determined, in words.
    #[salvo(schema(required = true))]
    pub(crate) cause: Option<String>,
    /// The kind of cause; null if nothing prevents a delivery.
    #[salvo(schema(required = true))]
    pub(crate) caused_by: Option<Cause>,
    /// The response time in milliseconds.
    pub(crate) milliseconds: u64,
}

/// Why a target does not accept its exports.
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
