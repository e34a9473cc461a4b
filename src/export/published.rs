//! The form in which exports and targets are published: in events, in GraphQL and by commands. The REST API has a form
//! of its own, which agrees with this one.
use super::cause::FailureClass;
use super::entry::ExportEntry;
use super::targets::TargetState;
use penstock_base::clock::Doubt;
use serde::Serialize;

/// The published form of an export.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct PublishedExport<'a> {
    id: &'a str,
    business_object: &'a str,
    business_object_name: &'a str,
    target: &'a str,
    sequence: u64,
    kind: &'a str,
    status: &'a str,
    object_count: u64,
    bytes: u64,
    data_checksum: &'a str,
    sha256: &'a str,
    key: &'a str,
    created_at: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    clock: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    commit: Option<u64>,
    delivered_at: Option<&'a str>,
    attempts: u64,
    last_error: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pushed_by: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    traceparent: Option<&'a str>,
    #[serde(skip_serializing_if = "<[String]>::is_empty")]
    warnings: &'a [String],
}

/// The published form of a target.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct PublishedTarget<'a> {
    name: &'a str,
    r#type: &'a str,
    reachable: Option<bool>,
    blocked: Option<&'a str>,
    blocked_by: Option<&'a str>,
    blocked_since: Option<&'a str>,
    attempts: u64,
    next_attempt: Option<&'a str>,
    paused: Option<&'a str>,
    remark: Option<&'a str>,
    depth: u64,
    waiting: u64,
    bytes: u64,
    oldest: Option<&'a str>,
    oldest_age_seconds: Option<u64>,
    last_delivery: Option<&'a str>,
}

impl<'a> From<&'a ExportEntry> for PublishedExport<'a> {
    fn from(entry: &'a ExportEntry) -> Self {
        Self {
            id: &entry.id,
            business_object: &entry.business_object,
            business_object_name: &entry.business_object_name,
            target: &entry.target,
            sequence: entry.sequence,
            kind: entry.kind.name(),
            status: entry.status.name(),
            object_count: entry.object_count,
            bytes: entry.bytes,
            data_checksum: &entry.data_checksum,
            sha256: &entry.sha256,
            key: &entry.key,
            created_at: &entry.created_at,
            clock: entry.clock.map(Doubt::name),
            commit: entry.commit,
            delivered_at: entry.delivered_at.as_deref(),
            attempts: entry.attempts,
            last_error: entry.last_error.as_deref(),
            pushed_by: entry.pushed_by.as_deref(),
            traceparent: entry.traceparent.as_deref(),
            warnings: &entry.warnings,
        }
    }
}

impl<'a> From<&'a TargetState> for PublishedTarget<'a> {
    fn from(target: &'a TargetState) -> Self {
        Self {
            name: &target.name,
            r#type: target.kind,
            reachable: target.reachable,
            blocked: target.blocked.as_deref(),
            blocked_by: target.blocked_by.map(FailureClass::name),
            blocked_since: target.blocked_since.as_deref(),
            attempts: target.attempts,
            next_attempt: target.next_attempt.as_deref(),
            paused: target.paused.as_deref(),
            remark: target.remark.as_deref(),
            depth: target.depth,
            waiting: target.waiting,
            bytes: target.bytes,
            oldest: target.oldest.as_deref(),
            oldest_age_seconds: target.oldest_age_seconds,
            last_delivery: target.last_delivery.as_deref(),
        }
    }
}
