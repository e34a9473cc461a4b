//! The gateway itself.
use salvo::oapi::ToSchema;
use serde::Serialize;

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
}

/// How the gateway is.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[salvo(schema(name = "Status"))]
pub(in crate::http) struct Status {
    /// The version of Penstock.
    pub(in crate::http) version: String,
    /// The gateway's identifier.
    pub(in crate::http) gateway_id: String,
    /// Seconds since the start.
    pub(in crate::http) uptime_seconds: u64,
    /// What the store holds and uses.
    pub(in crate::http) store: StoreStatus,
    /// What waits to be delivered.
    pub(in crate::http) queue: QueueStatus,
    /// Bytes free on the disk of the data directory; null when it cannot be told.
    #[salvo(schema(required = true))]
    pub(in crate::http) disk_free_bytes: Option<u64>,
    /// Whether less than `diskReserve` is free, so that ingestions and definitions get 507.
    pub(in crate::http) disk_in_reserve: bool,
    /// Bytes of memory that the process holds; null when it cannot be told.
    #[salvo(schema(required = true))]
    pub(in crate::http) memory_bytes: Option<u64>,
    /// Whether the clock follows a time server; null when it cannot be told.
    #[salvo(schema(required = true))]
    pub(in crate::http) clock_synchronised: Option<bool>,
}

/// What the store holds and uses.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[salvo(schema(name = "StoreStatus"))]
pub(in crate::http) struct StoreStatus {
    /// The journal's newest sequence.
    pub(in crate::http) sequence: u64,
    /// Quads held.
    pub(in crate::http) quads: u64,
    /// Bytes of the journal on disk.
    pub(in crate::http) journal_bytes: u64,
    /// Bytes of the index on disk.
    pub(in crate::http) index_bytes: u64,
    /// Bytes of index entries that wait for a checkpoint.
    pub(in crate::http) write_back_bytes: u64,
}

/// What waits to be delivered, over all targets.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[salvo(schema(name = "QueueStatus"))]
pub(in crate::http) struct QueueStatus {
    /// Exports that wait.
    pub(in crate::http) depth: u64,
    /// Their bytes.
    pub(in crate::http) bytes: u64,
    /// When the oldest was made (RFC 3339); null when none waits.
    #[salvo(schema(required = true))]
    pub(in crate::http) oldest: Option<String>,
    /// The bucketNames whose head does not get through.
    pub(in crate::http) blocked: Vec<String>,
}

/// Whether the process lives, or is ready.
#[derive(Serialize, ToSchema)]
#[salvo(schema(name = "Health"))]
pub(in crate::http) struct Health {
    /// `live` or `ready`.
    pub(in crate::http) status: &'static str,
}
