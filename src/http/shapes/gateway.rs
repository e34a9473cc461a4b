//! The gateway itself.
use super::export::Target;
use salvo::oapi::ToSchema;
use serde::Serialize;
use std::collections::BTreeMap;

/// The limits that requests meet (`service.limits.*`).
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[salvo(schema(name = "Limits"))]
pub(crate) struct Limits {
    /// Bytes of one request body, or of one NDJSON line.
    pub(crate) body: u64,
    /// Levels of JSON.
    pub(crate) nesting: usize,
    /// Objects in one JSON request.
    pub(crate) objects: usize,
    /// JSON values in one JSON request, or in a chunk of NDJSON.
    pub(crate) values: usize,
    /// Bytes of all bodies at once.
    pub(crate) in_flight: u64,
    /// Bytes of the disk that ingestions and definitions leave free.
    pub(crate) disk_reserve: u64,
    /// Answers kept for 24 h under their `Idempotency-Key`.
    pub(crate) idempotency_keys: usize,
    /// Bytes of those answers.
    pub(crate) idempotency_bytes: u64,
    /// Records of ingestions, and of delivered exports, kept.
    pub(crate) history: usize,
    /// What one GraphQL request may ask for.
    pub(crate) graphql: GraphqlLimits,
}

/// What one GraphQL request may ask for (`service.limits.graphql.*`).
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[salvo(schema(name = "GraphqlLimits"))]
pub(crate) struct GraphqlLimits {
    /// Levels of fields.
    pub(crate) depth: usize,
    /// Fields of the answer, as told before the request is executed.
    pub(crate) complexity: u64,
    /// Objects of the answer.
    pub(crate) rows: u64,
    /// Objects that are looked at.
    pub(crate) scan: u64,
    /// Seconds that it may take.
    pub(crate) time_seconds: f64,
    /// Bytes of the answer, about.
    pub(crate) answer: u64,
    /// Fields of all Business Objects in the schema.
    pub(crate) fields: usize,
}

/// How the gateway is.
#[derive(ToSchema)]
#[salvo(schema(name = "Status", rename_all = "camelCase"))]
pub(crate) struct Status {
    /// The version of Penstock.
    pub(crate) version: String,
    /// The gateway's identifier.
    pub(crate) gateway_id: String,
    /// A number that is greater after each start.
    pub(crate) epoch: u32,
    /// Seconds since the start.
    pub(crate) uptime_seconds: u64,
    /// The store.
    pub(crate) store: StoreStatus,
    /// What waits to be delivered, over all targets.
    pub(crate) queue: QueueStatus,
    /// Each target, ordered by name.
    pub(crate) targets: Vec<Target>,
    /// The disk of the data directory, and what is used of it.
    pub(crate) disk: DiskStatus,
    /// The memory of the process.
    pub(crate) memory: MemoryStatus,
    /// What time it is.
    pub(crate) clock: ClockStatus,
    /// The certificate of HTTPS; null without HTTPS.
    #[salvo(schema(required = true))]
    pub(crate) certificate: Option<CertificateStatus>,
    /// What the configuration warned of at the start, and what an operator should know of now: memory that is low or
    /// short, Business Objects without a GraphQL type.
    pub(crate) warnings: Vec<String>,
    /// The newest warnings and errors of the log, the newest first.
    pub(crate) last_errors: Vec<LoggedError>,
}

/// The store.
#[derive(ToSchema)]
#[salvo(schema(name = "StoreStatus", rename_all = "camelCase"))]
pub(crate) struct StoreStatus {
    /// The version of its format on disk; a version of Penstock opens its own and older ones.
    pub(crate) format: u32,
    /// The journal's newest sequence.
    pub(crate) sequence: u64,
    /// Quads held.
    pub(crate) quads: u64,
    /// Bytes of index entries that wait in memory for a checkpoint.
    pub(crate) write_back_bytes: u64,
    /// Why it takes no commits, in words; null while it does.
    #[salvo(schema(required = true))]
    pub(crate) poisoned: Option<String>,
}

/// What waits to be delivered, over all targets.
#[derive(ToSchema)]
#[salvo(schema(name = "QueueStatus", rename_all = "camelCase"))]
pub(crate) struct QueueStatus {
    /// Exports that wait.
    pub(crate) depth: u64,
    /// Their bytes.
    pub(crate) bytes: u64,
    /// When the oldest was made (RFC 3339); null when none waits.
    #[salvo(schema(required = true))]
    pub(crate) oldest: Option<String>,
    /// Seconds that it has waited; null when none waits.
    #[salvo(schema(required = true))]
    pub(crate) oldest_age_seconds: Option<u64>,
    /// The bucketNames whose head does not get through.
    pub(crate) blocked: Vec<String>,
    /// Exports that an operator took out of the way.
    pub(crate) parked: u64,
    /// The Business Objects whose exports by themselves wait for room in the spool.
    pub(crate) waiting: Vec<String>,
}

/// The disk of the data directory, in bytes.
#[derive(ToSchema)]
#[salvo(schema(name = "DiskStatus", rename_all = "camelCase"))]
pub(crate) struct DiskStatus {
    /// What is free; null when it cannot be told.
    #[salvo(schema(required = true))]
    pub(crate) free_bytes: Option<u64>,
    /// `service.limits.disk-reserve`
    pub(crate) reserve_bytes: u64,
    /// Whether less is free than that, so that ingestions and definitions get 507.
    pub(crate) in_reserve: bool,
    /// The journal.
    pub(crate) journal_bytes: u64,
    /// The quad index.
    pub(crate) index_bytes: u64,
    /// Exports that no target has taken yet, each counted for each target.
    pub(crate) spool_bytes: u64,
    /// `service.export.spool`
    pub(crate) spool_limit_bytes: u64,
    /// Delivered exports that are kept.
    pub(crate) history_bytes: u64,
}

/// The memory of the process, in bytes.
#[derive(ToSchema)]
#[salvo(schema(name = "MemoryStatus", rename_all = "camelCase"))]
pub(crate) struct MemoryStatus {
    /// What it holds; null when it cannot be told.
    #[salvo(schema(required = true))]
    pub(crate) resident_bytes: Option<u64>,
    /// What of that the kernel cannot take back.
    #[salvo(schema(required = true))]
    pub(crate) held_bytes: Option<u64>,
    /// What it may have; null when nothing bounds it.
    #[salvo(schema(required = true))]
    pub(crate) limit_bytes: Option<u64>,
    /// How much is left.
    pub(crate) level: MemoryLevel,
}

/// How much memory is left.
#[derive(ToSchema)]
#[salvo(schema(name = "MemoryLevel", rename_all = "lowercase"))]
pub(crate) enum MemoryLevel {
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
pub(crate) struct ClockStatus {
    /// What the gateway takes for the time (RFC 3339).
    pub(crate) now: String,
    /// What the system's clock says.
    pub(crate) system: String,
    /// Whether the system's clock is synchronised; null when nothing is known about it.
    #[salvo(schema(required = true))]
    pub(crate) synchronised: Option<bool>,
    /// What says so: `systemd-timesyncd`, or null.
    #[salvo(schema(required = true))]
    pub(crate) source: Option<String>,
    /// When the clock was last known to be right (RFC 3339); null when it never was.
    #[salvo(schema(required = true))]
    pub(crate) last_known: Option<String>,
    /// Milliseconds on a line that nobody sets and that goes on through restarts; only differences mean
    /// something.
    pub(crate) elapsed: u64,
}

/// The certificate of HTTPS.
#[derive(ToSchema)]
#[salvo(schema(name = "CertificateStatus", rename_all = "camelCase"))]
pub(crate) struct CertificateStatus {
    /// Whether the gateway made it itself.
    pub(crate) self_signed: bool,
    /// When it ends (RFC 3339); null when it does not.
    #[salvo(schema(required = true))]
    pub(crate) expires_at: Option<String>,
}

/// A warning or an error of the log.
#[derive(ToSchema)]
#[salvo(schema(name = "LoggedError"))]
pub(crate) struct LoggedError {
    /// When (RFC 3339, UTC).
    pub(crate) time: String,
    /// `warning`, or `error`, which means that an operator has to act.
    pub(crate) level: String,
    /// The part of the gateway that says it, such as `export::deliver`.
    pub(crate) code: String,
    /// What, in words.
    pub(crate) text: String,
    /// How often it was told; time and particulars are those of the last time.
    pub(crate) count: u64,
    /// The particulars; empty for those who are no Admin.
    pub(crate) fields: BTreeMap<String, String>,
}

/// Whether the process lives, or is ready.
#[derive(Serialize, ToSchema)]
#[salvo(schema(name = "Health"))]
pub(crate) struct Health {
    /// `live` or `ready`.
    pub(crate) status: &'static str,
}
