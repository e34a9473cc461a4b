//! Exports, their files and their targets.
use penstock_base::clock;
use penstock_export::{
    ExportEntry, FailureClass, Kind, ProbeResult, PushResult, Status, TargetState,
};
use salvo_oapi::ToSchema;
use serde::Serialize;
use serde_json::Value;
use std::collections::BTreeMap;

/// One file for one Business Object and one target.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[salvo(schema(name = "Export"))]
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
    #[serde(skip_serializing_if = "Option::is_none")]
    #[salvo(schema(required = false, nullable = false))]
    pub(crate) clock: Option<Doubt>,
    /// The journal sequence of the commit whose state a full export shows. Absent for other kinds, and if later commits
    /// changed too much to keep that state while the export was rendered; then `warnings` says so.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[salvo(schema(required = false, nullable = false))]
    pub(crate) commit: Option<u64>,
    /// When it was delivered.
    #[salvo(schema(required = false))]
    pub(crate) delivered_at: Option<String>,
    /// Number of attempts so far.
    pub(crate) attempts: u64,
    /// Why the last attempt failed, in words.
    #[salvo(schema(required = false))]
    pub(crate) last_error: Option<String>,
    /// The account that pushed it; absent for an automatic export.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[salvo(schema(required = false, nullable = false))]
    pub(crate) pushed_by: Option<String>,
    /// The trace that the push was part of (W3C Trace Context).
    #[serde(skip_serializing_if = "Option::is_none")]
    #[salvo(schema(required = false, nullable = false))]
    pub(crate) traceparent: Option<String>,
    /// Warnings while rendering. The first one says so if the export mixes several commits.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[salvo(schema(required = false))]
    pub(crate) warnings: Vec<String>,
}

/// Why a time may be wrong.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "lowercase")]
#[salvo(schema(name = "Doubt"))]
pub(crate) enum Doubt {
    /// The clock was not synchronised, or its time was long past.
    Unsynchronised,
    /// The clock was behind an earlier time, which is used instead.
    Behind,
}

/// The content of an export.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "lowercase")]
#[salvo(schema(name = "ExportKind"))]
pub(crate) enum ExportKind {
    Full,
    Incremental,
    Deleted,
}

/// The status of an export.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "lowercase")]
#[salvo(schema(name = "ExportStatus"))]
pub(crate) enum ExportStatus {
    Waiting,
    Queued,
    Delivering,
    Delivered,
    Blocked,
    Parked,
}

/// A page of exports.
#[derive(Serialize, ToSchema)]
#[salvo(schema(name = "Exports"))]
pub(crate) struct Exports {
    /// Newest first.
    pub(crate) items: Vec<Export>,
    /// The `cursor` of the next page, or null.
    #[salvo(schema(required = true))]
    pub(crate) next: Option<String>,
}

/// The result of a push.
#[derive(Serialize, ToSchema)]
#[salvo(schema(name = "Push"))]
pub(crate) struct Push {
    /// The queued exports, one for each target.
    pub(crate) exports: Vec<PushedExport>,
    /// Why there are none.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[salvo(schema(required = false, nullable = false))]
    pub(crate) reason: Option<String>,
}

/// One export that a push queued.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[salvo(schema(name = "PushedExport"))]
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

// `penstock_export` writes the file as a stream, so this only describes it.
/// The file of an export (specification, 2.4).
#[derive(ToSchema)]
#[salvo(schema(name = "ExportFile"))]
#[expect(dead_code, reason = "it describes the file, which is streamed")]
pub(crate) struct ExportFile {
    /// The file's description of itself.
    pub(crate) metadata: ExportMetadata,
    /// Ordered by URI.
    pub(crate) data: Vec<BTreeMap<String, Value>>,
}

/// The description of an export file in the file.
#[derive(ToSchema)]
#[salvo(schema(name = "ExportMetadata"))]
#[expect(dead_code, reason = "it describes the file, which is streamed")]
pub(crate) struct ExportMetadata {
    /// `20260301T120000Z`
    pub(crate) export_date: String,
    /// The Business Object's name.
    pub(crate) object_type: String,
    /// Objects in `data`.
    pub(crate) object_count: u64,
    /// SHA-256 of the bytes of `data`, or of the lines, lowercase hex.
    pub(crate) data_checksum: String,
    /// `SHA-256`
    pub(crate) checksum_algorithm: String,
    /// As in the export. This and the members after it are only in extended metadata (`service.export.metadata`).
    #[salvo(schema(required = false, nullable = false))]
    pub(crate) kind: Option<ExportKind>,
    /// As in the export.
    #[salvo(schema(required = false, nullable = false))]
    pub(crate) sequence: Option<u64>,
    /// The id of the gateway.
    #[salvo(schema(required = false, nullable = false))]
    pub(crate) gateway_id: Option<String>,
    /// The id of the export.
    #[salvo(schema(required = false, nullable = false))]
    pub(crate) export_id: Option<String>,
    /// The version of the Business Object.
    #[salvo(schema(required = false, nullable = false))]
    pub(crate) schema_version: Option<u64>,
    /// The journal sequence of the last commit before the export was rendered. The export has every change up to it.
    #[salvo(schema(required = false, nullable = false))]
    pub(crate) commit: Option<u64>,
}

/// A target and its state.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[salvo(schema(name = "Target"))]
pub(crate) struct Target {
    /// The bucketName.
    pub(crate) name: String,
    /// `directory`, `s3` or `sparql`.
    pub(crate) r#type: &'static str,
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
    /// What an operator should know although nothing failed, in words.
    #[salvo(schema(required = true))]
    pub(crate) remark: Option<String>,
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
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[salvo(schema(name = "TargetTest"))]
pub(crate) struct TargetTest {
    /// The bucketName.
    pub(crate) target: String,
    /// `directory`, `s3` or `sparql`.
    pub(crate) r#type: &'static str,
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
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "lowercase")]
#[salvo(schema(name = "Cause"))]
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
#[derive(Serialize, ToSchema)]
#[salvo(schema(name = "Targets"))]
pub(crate) struct Targets {
    /// Ordered by name.
    pub(crate) items: Vec<Target>,
    /// Always null: all targets are on one page.
    #[salvo(schema(required = true))]
    pub(crate) next: Option<String>,
}

impl From<ExportEntry> for Export {
    fn from(entry: ExportEntry) -> Self {
        Self {
            id: entry.id,
            business_object: entry.business_object,
            business_object_name: entry.business_object_name,
            target: entry.target,
            sequence: entry.sequence,
            kind: entry.kind.into(),
            status: entry.status.into(),
            object_count: entry.object_count,
            bytes: entry.bytes,
            data_checksum: entry.data_checksum,
            sha256: entry.sha256,
            key: entry.key,
            created_at: entry.created_at,
            clock: entry.clock.map(Doubt::from),
            commit: entry.commit,
            delivered_at: entry.delivered_at,
            attempts: entry.attempts,
            last_error: entry.last_error,
            pushed_by: entry.pushed_by,
            traceparent: entry.traceparent,
            warnings: entry.warnings,
        }
    }
}

impl From<clock::Doubt> for Doubt {
    fn from(doubt: clock::Doubt) -> Self {
        match doubt {
            clock::Doubt::Unsynchronised => Self::Unsynchronised,
            clock::Doubt::Behind => Self::Behind,
        }
    }
}

impl From<Kind> for ExportKind {
    fn from(kind: Kind) -> Self {
        match kind {
            Kind::Full => Self::Full,
            Kind::Incremental => Self::Incremental,
            Kind::Deleted => Self::Deleted,
        }
    }
}

impl From<Status> for ExportStatus {
    fn from(status: Status) -> Self {
        match status {
            Status::Waiting => Self::Waiting,
            Status::Queued => Self::Queued,
            Status::Delivering => Self::Delivering,
            Status::Delivered => Self::Delivered,
            Status::Blocked => Self::Blocked,
            Status::Parked => Self::Parked,
        }
    }
}

impl From<PushResult> for Push {
    fn from(push: PushResult) -> Self {
        Self {
            exports: push.exports.into_iter().map(PushedExport::from).collect(),
            reason: push.reason,
        }
    }
}

impl From<ExportEntry> for PushedExport {
    fn from(entry: ExportEntry) -> Self {
        Self {
            id: entry.id,
            sequence: entry.sequence,
            target: entry.target,
            object_count: entry.object_count,
            status: entry.status.into(),
        }
    }
}

impl From<TargetState> for Target {
    fn from(target: TargetState) -> Self {
        Self {
            name: target.name,
            r#type: target.kind,
            reachable: target.reachable,
            blocked: target.blocked,
            blocked_by: target.blocked_by.and_then(Cause::from_class),
            blocked_since: target.blocked_since,
            attempts: target.attempts,
            next_attempt: target.next_attempt,
            paused: target.paused,
            remark: target.remark,
            depth: target.depth,
            waiting: target.waiting,
            bytes: target.bytes,
            oldest: target.oldest,
            oldest_age_seconds: target.oldest_age_seconds,
            last_delivery: target.last_delivery,
        }
    }
}

impl From<ProbeResult> for TargetTest {
    fn from(result: ProbeResult) -> Self {
        Self {
            target: result.target,
            r#type: result.kind,
            ok: result.ok,
            reachable: result.reachable,
            cause: result.cause,
            caused_by: result.caused_by.and_then(Cause::from_class),
            milliseconds: result.milliseconds,
        }
    }
}

impl Cause {
    /// Returns the cause, or `None` for an interruption, which is no failure.
    pub(super) fn from_class(class: FailureClass) -> Option<Self> {
        Some(match class {
            FailureClass::Unreachable => Self::Unreachable,
            FailureClass::Broken => Self::Broken,
            FailureClass::Busy => Self::Busy,
            FailureClass::Credentials => Self::Credentials,
            FailureClass::Bucket => Self::Bucket,
            FailureClass::Policy => Self::Policy,
            FailureClass::Quota => Self::Quota,
            FailureClass::Certificate => Self::Certificate,
            FailureClass::Clock => Self::Clock,
            FailureClass::Conflict => Self::Conflict,
            FailureClass::Gateway => Self::Gateway,
            FailureClass::Refused => Self::Refused,
            FailureClass::Closed => return None,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use penstock_export::{PublishedExport, PublishedTarget};

    /// Asserts that two forms are the same JSON, with their members in the same order.
    fn assert_same_form(wire: &impl Serialize, published: &impl Serialize) {
        let to_text = |json: serde_json::Result<String>| json.unwrap();
        assert_eq!(to_text(serde_json::to_string(wire)), to_text(serde_json::to_string(published)));
    }

    fn export(kind: Kind, status: Status) -> ExportEntry {
        ExportEntry {
            id: "1".to_owned(),
            business_object: "2".to_owned(),
            business_object_name: "Pump".to_owned(),
            target: "plant-exports".to_owned(),
            sequence: 3,
            kind,
            status,
            object_count: 4,
            bytes: 5,
            data_checksum: "6".to_owned(),
            sha256: "7".to_owned(),
            key: "8".to_owned(),
            created_at: "9".to_owned(),
            clock: None,
            commit: None,
            delivered_at: None,
            attempts: 0,
            last_error: None,
            pushed_by: None,
            traceparent: None,
            warnings: Vec::new(),
        }
    }

    #[test]
    fn events_have_the_form_of_the_api() {
        let statuses = [
            Status::Waiting,
            Status::Queued,
            Status::Delivering,
            Status::Delivered,
            Status::Blocked,
            Status::Parked,
        ];
        let mut exports: Vec<_> =
            statuses.into_iter().map(|status| export(Kind::Full, status)).collect();
        exports.push(export(Kind::Incremental, Status::Queued));
        exports.push(ExportEntry {
            clock: Some(clock::Doubt::Unsynchronised),
            commit: Some(15),
            delivered_at: Some("10".to_owned()),
            last_error: Some("11".to_owned()),
            pushed_by: Some("12".to_owned()),
            traceparent: Some("13".to_owned()),
            warnings: vec!["14".to_owned()],
            ..export(Kind::Deleted, Status::Delivered)
        });
        for entry in exports {
            assert_same_form(&Export::from(entry.clone()), &PublishedExport::from(&entry));
        }
        for class in [None, Some(FailureClass::Unreachable), Some(FailureClass::Refused)] {
            let text = |text: &str| class.map(|_| text.to_owned());
            let target = TargetState {
                name: "plant-exports".to_owned(),
                kind: "s3",
                reachable: class.map(|_| true),
                blocked: text("1"),
                blocked_by: class,
                answer: text("403"),
                blocked_since: text("2"),
                attempts: 3,
                next_attempt: text("4"),
                paused: text("5"),
                remark: text("6"),
                depth: 6,
                waiting: 7,
                bytes: 8,
                oldest: text("9"),
                oldest_age_seconds: class.map(|_| 10),
                last_delivery: text("11"),
            };
            assert_same_form(&Target::from(target.clone()), &PublishedTarget::from(&target));
        }
    }
}
