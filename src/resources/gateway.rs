//! The gateway itself: its limits, its status and its heartbeats.
use crate::definitions::DefinitionKind;
use crate::export::Target;
use crate::source::Source;
use crate::webhook::Webhook;
use schemars::JsonSchema;
use serde::Serialize;
use std::collections::BTreeMap;

/// The limits for requests (`service.limits.*`).
#[derive(Debug, Clone, Copy, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Limits {
    /// Bytes of one request body, or of one NDJSON line.
    pub body: u64,
    /// Levels of JSON nesting.
    pub nesting: usize,
    /// Objects in one JSON request.
    pub objects: usize,
    /// JSON values in one JSON request, or in a chunk of NDJSON.
    pub values: usize,
    /// Bytes of all concurrent request bodies.
    pub in_flight: u64,
    /// Bytes of disk space that ingestions and definitions leave free.
    pub disk_reserve: u64,
    /// Responses kept for 24 h under their `Idempotency-Key`.
    pub idempotency_keys: usize,
    /// Bytes of those responses.
    pub idempotency_bytes: u64,
    /// Records of ingestions and of delivered exports that are kept.
    pub history: usize,
    /// Bytes of all dead letters.
    pub rejected_bytes: u64,
    /// Seconds for which dead letters are kept.
    pub rejected_age_seconds: u64,
    /// Bytes of the messages that all sources together hold.
    pub sources: u64,
    /// Events that wait for one webhook.
    pub webhook_events: u64,
    /// Bytes of these events.
    pub webhook_bytes: u64,
    /// Open changes under review.
    pub changes: u64,
    /// Bytes of all changes.
    pub change_bytes: u64,
    /// Bytes that all snapshots together keep in memory.
    pub snapshot_memory_bytes: usize,
    /// Bytes that they keep in files.
    pub snapshot_disk_bytes: u64,
    /// The limits of one GraphQL request.
    pub graphql: GraphqlLimits,
    /// The limits of one SPARQL request.
    pub sparql: SparqlLimits,
    /// The limits of one validation.
    pub shapes: ShapesLimits,
}

/// The limits of one validation (`service.limits.shapes.*`).
#[derive(Debug, Clone, Copy, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ShapesLimits {
    /// Seconds of the validation of an ingestion.
    pub time_seconds: f64,
    /// Bytes of memory of a validation.
    pub memory: u64,
}

/// The limits of one SPARQL request (`service.limits.sparql.*`).
#[derive(Debug, Clone, Copy, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SparqlLimits {
    /// Seconds of a query, including the time that its client takes.
    pub time_seconds: f64,
    /// Bytes of memory of a query.
    pub memory: u64,
    /// Rows or triples of an answer.
    pub rows: u64,
    /// Quads that a request inserts and removes.
    pub update: u64,
}

/// The limits of one GraphQL request (`service.limits.graphql.*`).
#[derive(Debug, Clone, Copy, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct GraphqlLimits {
    /// Levels of fields.
    pub depth: usize,
    /// Fields of the response, calculated before the request is executed.
    pub complexity: u64,
    /// Objects in the response.
    pub rows: u64,
    /// Objects that are read.
    pub scan: u64,
    /// Seconds of execution.
    pub time_seconds: f64,
    /// Bytes of the response, approximately.
    pub answer: u64,
    /// Fields of all Business Objects in the schema.
    pub fields: usize,
}

/// The gateway's status.
#[derive(Debug, Clone, Default, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Status {
    /// The version of Penstock.
    pub version: &'static str,
    /// The gateway's identifier.
    pub gateway_id: String,
    /// A number that increases with each start.
    pub epoch: u32,
    /// Seconds since the start.
    pub uptime_seconds: u64,
    /// The store.
    pub store: StoreStatus,
    /// The export queue of all targets.
    pub queue: QueueStatus,
    /// Each target, ordered by name.
    pub targets: Vec<Target>,
    /// The dead letters.
    pub rejected: RejectedStatus,
    /// The changes under review; `null` unless the caller is an Admin.
    pub changes: Option<ChangesStatus>,
    /// The definitions from files.
    pub definitions: DefinitionsStatus,
    /// The continuous backup; null without `service.backup.target`.
    pub backup: Option<BackupStatus>,
    /// The sources.
    pub sources: Vec<Source>,
    /// The webhooks, ordered by name; empty unless the caller is an Admin.
    pub webhooks: Vec<Webhook>,
    /// The disk of the data directory, and its use.
    pub disk: DiskStatus,
    /// The memory of the process.
    pub memory: MemoryStatus,
    /// The time.
    pub clock: ClockStatus,
    /// The certificate of HTTPS; null without HTTPS.
    pub certificate: Option<CertificateStatus>,
    /// Warnings of the configuration at the start, and current conditions that need attention: memory that is
    /// low or short, a disk that is full up to its reserve, automatic exports that fail, times of records that are ahead of
    /// the clock, a certificate that expires soon, Business Objects without a GraphQL type.
    pub warnings: Vec<String>,
    /// Recent warnings and errors of the log, newest first.
    pub last_errors: Vec<LoggedError>,
}

/// A heartbeat in a bucket: the status, and when it was collected.
#[derive(Debug, Clone, Serialize)]
pub struct Heartbeat {
    /// Its times.
    pub heartbeat: HeartbeatTimes,
    /// The status.
    #[serde(flatten)]
    pub status: Status,
}

/// When a heartbeat was made, and when the next one is due.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct HeartbeatTimes {
    /// When the status was collected (RFC 3339).
    pub at: String,
    /// When the next heartbeat is due (RFC 3339).
    pub next_due: String,
    /// The interval of heartbeats.
    pub interval_seconds: u64,
}

/// The store.
#[derive(Debug, Clone, Default, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct StoreStatus {
    /// The number of its format, which rises with the first record that older versions of Penstock would misread.
    /// A version that does not know it refuses the store.
    pub format: u32,
    /// The newest sequence of the journal.
    pub sequence: u64,
    /// Number of stored quads.
    pub quads: u64,
    /// Bytes of index entries in memory that wait for a checkpoint.
    pub write_back_bytes: u64,
    /// Why the store accepts no commits, in words; null while it does.
    pub poisoned: Option<String>,
}

/// The export queue of all targets.
#[derive(Debug, Clone, Default, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct QueueStatus {
    /// Number of waiting exports.
    pub depth: u64,
    /// Bytes of waiting exports.
    pub bytes: u64,
    /// When the oldest was created (RFC 3339); null when none waits.
    pub oldest: Option<String>,
    /// Seconds since then; null when none waits.
    pub oldest_age_seconds: Option<u64>,
    /// The bucketNames whose first export cannot be delivered.
    pub blocked: Vec<String>,
    /// Number of parked exports.
    pub parked: u64,
    /// The Business Objects whose automatic exports wait for space in the spool.
    pub waiting: Vec<String>,
    /// The Business Objects whose last automatic export failed. `warnings` of the status has the causes.
    pub failing: Vec<String>,
}

/// The disk of the data directory, in bytes.
#[derive(Debug, Clone, Default, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct DiskStatus {
    /// Free bytes; null when unknown.
    pub free_bytes: Option<u64>,
    /// `service.limits.disk-reserve`
    pub reserve_bytes: u64,
    /// Whether less than the reserve is free, so that ingestions and definitions get 507.
    pub in_reserve: bool,
    /// Bytes of the journal.
    pub journal_bytes: u64,
    /// Bytes of the quad index.
    pub index_bytes: u64,
    /// Bytes that undelivered exports take on the disk, counted once for each target.
    pub spool_bytes: u64,
    /// `service.export.spool`
    pub spool_limit_bytes: u64,
    /// Bytes of delivered exports that are kept.
    pub history_bytes: u64,
}

/// The memory of the process, in bytes.
#[derive(Debug, Clone, Default, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct MemoryStatus {
    /// Memory that the process uses; null when unknown.
    pub resident_bytes: Option<u64>,
    /// The part of it that the kernel cannot reclaim.
    pub held_bytes: Option<u64>,
    /// The memory limit; null without a limit.
    pub limit_bytes: Option<u64>,
    /// How much memory is left.
    pub level: MemoryLevel,
}

/// How much memory is left.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum MemoryLevel {
    /// Less than three quarters of the limit are in use.
    #[default]
    Ample,
    /// Three quarters of the limit are in use.
    Low,
    /// Nine tenths are in use: request bodies are hardly accepted.
    Short,
}

/// The time.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ClockStatus {
    /// The gateway's time (RFC 3339).
    pub now: String,
    /// The time of the system's clock.
    pub system: String,
    /// Whether the system's clock is synchronised; null when unknown.
    pub synchronised: Option<bool>,
    /// The source of that information: `systemd-timesyncd`, or null.
    pub source: Option<&'static str>,
    /// When the clock was last known to be right (RFC 3339); null if it never was.
    pub last_known: Option<String>,
    /// The time that new records repeat, because an earlier one was recorded while the clock was more than a minute
    /// ahead of `now` (RFC 3339); null otherwise.
    pub repeated_time: Option<String>,
    /// Milliseconds of a counter that is never set and continues across restarts. Only differences are
    /// meaningful.
    pub elapsed: u64,
}

/// The certificate of HTTPS.
#[derive(Debug, Clone, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct CertificateStatus {
    /// Whether the gateway created it.
    pub self_signed: bool,
    /// When it expires (RFC 3339); null if it does not.
    pub expires_at: Option<String>,
}

/// A warning or an error of the log.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct LoggedError {
    /// When it was last logged (RFC 3339, UTC).
    pub time: String,
    /// `warning`, or `error`, which means that an operator has to act.
    pub level: &'static str,
    /// The part of the gateway that logged it, such as `export::deliver`.
    pub code: String,
    /// The message.
    pub text: String,
    /// How often it was logged. Time and fields are those of the last time.
    pub count: u64,
    /// The fields of the log line; empty unless the caller is an Admin.
    pub fields: BTreeMap<&'static str, String>,
}

/// The dead letters: objects that ingestions rejected, and that wait for a retry.
#[derive(Debug, Clone, Copy, Default, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct RejectedStatus {
    /// Their number.
    pub dead_letters: u64,
    /// Their bytes.
    pub bytes: u64,
    /// The maximum bytes (`service.limits.rejected.bytes`).
    pub limit_bytes: u64,
    /// Dead letters that this limit has removed.
    pub evicted: u64,
    /// Dead letters that `service.limits.rejected.age` has removed.
    pub expired: u64,
}

/// The changes under review.
#[derive(Debug, Clone, Copy, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ChangesStatus {
    /// The number of changes that are drafts or submitted.
    pub open: u64,
    /// The maximum number of them (`service.limits.changes`).
    pub limit_open: u64,
    /// The number of changes that are approved, rejected or withdrawn.
    pub closed: u64,
    /// The bytes of all of them.
    pub bytes: u64,
    /// The maximum bytes (`service.limits.change-bytes`).
    pub limit_bytes: u64,
}

/// The definitions from files: `penstock apply` and `service.definitions.dir`.
#[derive(Debug, Clone, Default, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct DefinitionsStatus {
    /// The number of definitions that are in files.
    pub managed: usize,
    /// The first 20 definitions that are not as their files define them.
    pub drift: Vec<Drift>,
    /// The number of definitions that are not as their files define them.
    pub drift_count: usize,
    /// The number of definitions that were changed or deleted since their files were applied. Only pages and metrics show
    /// it.
    #[serde(skip)]
    pub unwanted_count: usize,
    /// Whether the gateway applies the files of `service.definitions.dir` now.
    pub running: bool,
    /// When a run of `service.definitions.dir` ended last; null if none has since the start.
    pub applied_at: Option<String>,
    /// Why its files were not applied: the first 20 errors, each with file, line and column. The definitions of the last good
    /// run stay. Only Admins see ids and emails of accounts.
    pub errors: Vec<String>,
    /// The number of errors.
    pub error_count: usize,
}

/// The continuous backup (`service.backup.*`).
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct BackupStatus {
    /// What it does.
    pub state: BackupState,
    /// The bucketName (`service.backup.target`).
    pub target: String,
    /// Seconds from a commit until it is sent at the latest, if the link allows (`service.backup.interval`).
    pub interval_seconds: u64,
    /// The era that this gateway writes; null before its first one.
    pub era: Option<String>,
    /// The number of that era.
    pub number: Option<u64>,
    /// The sequence of the newest commit in the bucket; null before the first one.
    pub last_sequence: Option<u64>,
    /// The time by which it was made, by the gateway's clock (RFC 3339).
    pub last_at: Option<String>,
    /// The age of the oldest commit that is not in the bucket, in seconds, exact to the interval; 0 if all are. It is by the
    /// gateway's clock, so setting that changes it. Until the bucket is read after a start, it counts from what the data
    /// directory knows.
    pub lag_seconds: u64,
    /// Bytes of the commits that are not in the bucket.
    pub lag_bytes: u64,
    /// The sequence of the newest complete base; null before the first one.
    pub base_sequence: Option<u64>,
    /// When that base was made (RFC 3339).
    pub base_at: Option<String>,
    /// Whether another base is being made or sent.
    pub base_pending: bool,
    /// Bytes of the objects that a restore reads.
    pub bytes: u64,
    /// Whether what this gateway wrote can be restored.
    pub restorable: bool,
    /// Whether the bucket prevents that two gateways write one backup; false in directories, and in buckets that ignore
    /// `If-Match`. Null until that is tested.
    pub single_writer: Option<bool>,
    /// Whether the credentials may delete. Otherwise nothing is merged or deleted. Null until that is tested.
    pub may_delete: Option<bool>,
    /// The commits that cannot be restored one by one, because they left the journal before they were sent: mostly because
    /// the disk was full. The oldest first, at most 32: of more, the closest are shown as one.
    pub holes: Vec<BackupHole>,
    /// Why nothing is sent; null while it is.
    pub cause: Option<String>,
    /// Since when (RFC 3339).
    pub cause_since: Option<String>,
    /// The era that replaced this gateway's; null unless `state` is `replaced`.
    pub replaced_by: Option<String>,
    /// Whether exports, sources and webhooks stand still: another gateway took over, or may have, or the store is a copy.
    /// Only metrics show it.
    #[serde(skip)]
    pub is_held: bool,
    /// What needs attention, a sentence each. `warnings` of the status has it too.
    pub warnings: Vec<String>,
    /// Bytes of segments, and of bases, that were sent since the start. Only metrics show them.
    #[serde(skip)]
    pub sent_bytes: [u64; 2],
}

impl BackupStatus {
    /// Whether the lag is more than ten times the interval.
    pub fn is_late(&self) -> bool {
        self.lag_seconds > self.interval_seconds.saturating_mul(10)
    }

    /// Whether this gateway has no backup of its own to send any more.
    pub fn is_stopped(&self) -> bool {
        matches!(self.state, BackupState::Replaced | BackupState::Copy)
    }
}

/// What the continuous backup does.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum BackupState {
    /// It reads what the bucket has.
    #[default]
    Starting,
    /// It sends the first base of its era. Until that is complete, only an earlier era can be restored.
    FirstBase,
    /// It sends what is committed.
    Running,
    /// It cannot send; it retries.
    Blocked,
    /// Another gateway took over. This one sends nothing more: no exports, no events, and nothing to the backup. It
    /// reads no sources.
    Replaced,
    /// This store is a copy for a look (`penstock restore --copy`). It sends nothing and reads no sources.
    Copy,
}

/// Commits that the journal did not keep until they were sent, mostly because the disk was full.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
pub struct BackupHole {
    /// The sequence of the first one.
    pub from: u64,
    /// The sequence of the last one.
    pub to: u64,
}

/// A definition that is not as its file defines it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
#[schemars(rename = "DefinitionDrift")]
pub struct Drift {
    /// `Namespace`, `Shapes`, `Group` or `BusinessObject`.
    #[schemars(with = "String")]
    pub kind: DefinitionKind,
    /// Its name.
    pub name: String,
    /// The file that defined it last.
    pub file: String,
    /// `changed` or `deleted` since the file was applied, or `unmanaged`: no file has it any more.
    #[schemars(with = "String")]
    pub state: DriftState,
}

/// How a definition differs from its file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum DriftState {
    /// It was changed since the file was applied.
    Changed,
    /// It was deleted since the file was applied.
    Deleted,
    /// No file has it any more.
    Unmanaged,
}

/// Whether the process runs, or is ready.
#[derive(Debug, Clone, Copy, Serialize, JsonSchema)]
pub struct Health {
    /// `live` or `ready`.
    pub status: &'static str,
}
