//! The gateway itself.
use super::export::Target;
use salvo::oapi::ToSchema;
use serde::Serialize;
use std::collections::BTreeMap;

/// The limits that requests meet (`service.limits.*`).
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[salvo(schema(name = "Limits"))]
pub(in crate::http) struct Limits {
    /// Bytes of one request body, or of one NDJSON line.
    pub(in crate::http) body: u64,
    /// Levels of JSON.
    pub(in crate::http) nesting: usize,
    /// Objects in one JSON request.
    pub(in crate::http) objects: usize,
    /// JSON values in one JSON request, or in a chunk of NDJSON.
    pub(in crate::http) values: usize,
    /// Bytes of all bodies at once.
    pub(in crate::http) in_flight: u64,
    /// Bytes of the disk that ingestions and definitions leave free.
    pub(in crate::http) disk_reserve: u64,
    /// Answers kept for 24 h under their `Idempotency-Key`.
    pub(in crate::http) idempotency_keys: usize,
    /// Bytes of those answers.
    pub(in crate::http) idempotency_bytes: u64,
    /// Records of ingestions, and of delivered exports, kept.
    pub(in crate::http) history: usize,
    /// What one GraphQL request may ask for.
    pub(in crate::http) graphql: GraphqlLimits,
}

/// What one GraphQL request may ask for (`service.limits.graphql.*`).
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[salvo(schema(name = "GraphqlLimits"))]
pub(in crate::http) struct GraphqlLimits {
    /// Levels of fields.
    pub(in crate::http) depth: usize,
    /// Fields of the answer, as told before the request is executed.
    pub(in crate::http) complexity: u64,
    /// Objects of the answer.
    pub(in crate::http) rows: u64,
    /// Objects that are looked at.
    pub(in crate::http) scan: u64,
    /// Seconds that it may take.
    pub(in crate::http) time_seconds: f64,
    /// Bytes of the answer, about.
    pub(in crate::http) answer: u64,
    /// Fields of all Business Objects in the schema.
    pub(in crate::http) fields: usize,
}

/// How the gateway is.
#[derive(ToSchema)]
#[salvo(schema(name = "Status", rename_all = "camelCase"))]
pub(in crate::http) struct Status {
    /// The version of Penstock.
    pub(in crate::http) version: String,
    /// The gateway's identifier.
    pub(in crate::http) gateway_id: String,
    /// A number that is greater after each start.
    pub(in crate::http) epoch: u32,
    /// Seconds since the start.
    pub(in crate::http) uptime_seconds: u64,
    /// The store.
    pub(in crate::http) store: StoreStatus,
    /// What waits to be delivered, over all targets.
    pub(in crate::http) queue: QueueStatus,
    /// Each target, ordered by name.
    pub(in crate::http) targets: Vec<Target>,
    /// The disk of the data directory, and what is used of it.
    pub(in crate::http) disk: DiskStatus,
    /// The memory of the process.
    pub(in crate::http) memory: MemoryStatus,
    /// What time it is.
    pub(in crate::http) clock: ClockStatus,
    /// The certificate of HTTPS; null without HTTPS.
    #[salvo(schema(required = true))]
    pub(in crate::http) certificate: Option<CertificateStatus>,
    /// What the configuration warned of at the start, and what an operator should know of now: memory that is low or
    /// short, Business Objects without a GraphQL type.
    pub(in crate::http) warnings: Vec<String>,
    /// The newest warnings and errors of the log, the newest first.
    pub(in crate::http) last_errors: Vec<LoggedError>,
}

/// The store.
#[derive(ToSchema)]
#[salvo(schema(name = "StoreStatus", rename_all = "camelCase"))]
pub(in crate::http) struct StoreStatus {
    /// The version of its format on disk; a version of Penstock opens its own and older ones.
    pub(in crate::http) format: u32,
    /// The journal's newest sequence.
    pub(in crate::http) sequence: u64,
    /// Quads held.
    pub(in crate::http) quads: u64,
    /// Bytes of index entries that wait in memory for a checkpoint.
    pub(in crate::http) write_back_bytes: u64,
    /// Why it takes no commits, in words; null while it does.
    #[salvo(schema(required = true))]
    pub(in crate::http) poisoned: Option<String>,
}

/// What waits to be delivered, over all targets.
#[derive(ToSchema)]
#[salvo(schema(name = "QueueStatus", rename_all = "camelCase"))]
pub(in crate::http) struct QueueStatus {
    /// Exports that wait.
    pub(in crate::http) depth: u64,
    /// Their bytes.
    pub(in crate::http) bytes: u64,
    /// When the oldest was made (RFC 3339); null when none waits.
    #[salvo(schema(required = true))]
    pub(in crate::http) oldest: Option<String>,
    /// Seconds that it has waited; null when none waits.
    #[salvo(schema(required = true))]
    pub(in crate::http) oldest_age_seconds: Option<u64>,
    /// The bucketNames whose head does not get through.
    pub(in crate::http) blocked: Vec<String>,
    /// Exports that an operator took out of the way.
    pub(in crate::http) parked: u64,
    /// The Business Objects whose exports by themselves wait for room in the spool.
    pub(in crate::http) waiting: Vec<String>,
}

/// The disk of the data directory, in bytes.
#[derive(ToSchema)]
#[salvo(schema(name = "DiskStatus", rename_all = "camelCase"))]
pub(in crate::http) struct DiskStatus {
    /// What is free; null when it cannot be told.
    #[salvo(schema(required = true))]
    pub(in crate::http) free_bytes: Option<u64>,
    /// `service.limits.disk-reserve`
    pub(in crate::http) reserve_bytes: u64,
    /// Whether less is free than that, so that ingestions and definitions get 507.
    pub(in crate::http) in_reserve: bool,
    /// The journal.
    pub(in crate::http) journal_bytes: u64,
    /// The quad index.
    pub(in crate::http) index_bytes: u64,
    /// Exports that no target has taken yet, each counted for each target.
    pub(in crate::http) spool_bytes: u64,
    /// `service.export.spool`
    pub(in crate::http) spool_limit_bytes: u64,
    /// Delivered exports that are kept.
    pub(in crate::http) history_bytes: u64,
}

/// The memory of the process, in bytes.
#[derive(ToSchema)]
#[salvo(schema(name = "MemoryStatus", rename_all = "camelCase"))]
pub(in crate::http) struct MemoryStatus {
    /// What it holds; null when it cannot be told.
    #[salvo(schema(required = true))]
    pub(in crate::http) resident_bytes: Option<u64>,
    /// What of that the kernel cannot take back.
    #[salvo(schema(required = true))]
    pub(in crate::http) held_bytes: Option<u64>,
    /// What it may have; null when nothing bounds it.
    #[salvo(schema(required = true))]
    pub(in crate::http) limit_bytes: Option<u64>,
    /// How much is left.
    pub(in crate::http) level: MemoryLevel,
}

/// How much memory is left.
#[derive(ToSchema)]
#[salvo(schema(name = "MemoryLevel", rename_all = "lowercase"))]
pub(in crate::http) enum MemoryLevel {
    /// Enough.
    Ample,
    /// Three quarters of the limit are in use.
    Low,
    /// Nine tenths: hardly any request bodies are taken.
    Short,
}

/// What time it is.
#[derive(ToSchema)]
#[salvo(schema(name = "ClockStatus", rename_all = "camelCase"))]
pub(in crate::http) struct ClockStatus {
    /// What the gateway takes for the time (RFC 3339).
    pub(in crate::http) now: String,
    /// What the system's clock says.
    pub(in crate::http) system: String,
    /// Whether the system's clock is synchronised; null when nothing is known about it.
    #[salvo(schema(required = true))]
    pub(in crate::http) synchronised: Option<bool>,
    /// What says so: `systemd-timesyncd`, or null.
    #[salvo(schema(required = true))]
    pub(in crate::http) source: Option<String>,
    /// When the clock was last known to be right (RFC 3339); null when it never was.
    #[salvo(schema(required = true))]
    pub(in crate::http) last_known: Option<String>,
    /// Milliseconds on a line that nobody sets and that goes on through restarts; only differences mean
    /// something.
    pub(in crate::http) elapsed: u64,
}

/// The certificate of HTTPS.
#[derive(ToSchema)]
#[salvo(schema(name = "CertificateStatus", rename_all = "camelCase"))]
pub(in crate::http) struct CertificateStatus {
    /// Whether the gateway made it itself.
    pub(in crate::http) self_signed: bool,
    /// When it ends (RFC 3339); null when it does not.
    #[salvo(schema(required = true))]
    pub(in crate::http) expires_at: Option<String>,
}

/// A warning or an error of the log.
#[derive(ToSchema)]
#[salvo(schema(name = "LoggedError"))]
pub(in crate::http) struct LoggedError {
    /// When (RFC 3339, UTC).
    pub(in crate::http) time: String,
    /// `warning`, or `error`, which means that an operator has to act.
    pub(in crate::http) level: String,
    /// The part of the gateway that says it, such as `export::deliver`.
    pub(in crate::http) code: String,
    /// What, in words.
    pub(in crate::http) text: String,
    /// How often it was told; time and particulars are those of the last time.
    pub(in crate::http) count: u64,
    /// The particulars; empty for those who are no Admin.
    pub(in crate::http) fields: BTreeMap<String, String>,
}

/// Whether the process lives, or is ready.
#[derive(Serialize, ToSchema)]
#[salvo(schema(name = "Health"))]
pub(in crate::http) struct Health {
    /// `live` or `ready`.
    pub(in crate::http) status: &'static str,
}
