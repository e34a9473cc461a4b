//! The gateway itself.
use super::export::Target;
use super::source::Source;
use super::webhook::Webhook;
use penstock_base::clock::ClockReport;
use penstock_base::memory::Level;
use penstock_base::telemetry::recent::LogLine;
use penstock_service::definitions;
use penstock_service::gateway::status;
use salvo_oapi::ToSchema;
use serde::Serialize;
use std::collections::BTreeMap;

/// The gateway's status.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[salvo(schema(name = "Status"))]
pub(crate) struct Status {
    /// The version of Penstock.
    pub(crate) version: &'static str,
    /// The gateway's identifier.
    pub(crate) gateway_id: String,
    /// A number that increases with each start.
    pub(crate) epoch: u32,
    /// Seconds since the start.
    pub(crate) uptime_seconds: u64,
    /// The store.
    pub(crate) store: StoreStatus,
    /// The export queue of all targets.
    pub(crate) queue: QueueStatus,
    /// Each target, ordered by name.
    pub(crate) targets: Vec<Target>,
    /// The dead letters.
    pub(crate) rejected: RejectedStatus,
    /// The changes under review; `null` unless the caller is an Admin.
    pub(crate) changes: Option<ChangesStatus>,
    /// The definitions from files.
    pub(crate) definitions: DefinitionsStatus,
    /// The sources.
    pub(crate) sources: Vec<Source>,
    /// The webhooks, ordered by name; empty unless the caller is an Admin.
    pub(crate) webhooks: Vec<Webhook>,
    /// The disk of the data directory, and its use.
    pub(crate) disk: DiskStatus,
    /// The memory of the process.
    pub(crate) memory: MemoryStatus,
    /// The time.
    pub(crate) clock: ClockStatus,
    /// The certificate of HTTPS; null without HTTPS.
    #[salvo(schema(required = true))]
    pub(crate) certificate: Option<CertificateStatus>,
    /// Warnings of the configuration at the start, and current conditions that need attention: memory that is
    /// low or short, Business Objects without a GraphQL type.
    pub(crate) warnings: Vec<String>,
    /// Recent warnings and errors of the log, newest first.
    pub(crate) last_errors: Vec<LoggedError>,
}

/// A heartbeat in a bucket: the status, and when it was collected.
#[derive(Serialize)]
pub(crate) struct Heartbeat {
    pub(crate) heartbeat: HeartbeatTimes,
    #[serde(flatten)]
    pub(crate) status: Status,
}

/// When a heartbeat was made, and when the next one is due.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct HeartbeatTimes {
    /// When the status was collected (RFC 3339).
    pub(crate) at: String,
    /// When the next heartbeat is due (RFC 3339).
    pub(crate) next_due: String,
    /// The interval of heartbeats.
    pub(crate) interval_seconds: u64,
}

/// The store.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[salvo(schema(name = "StoreStatus"))]
pub(crate) struct StoreStatus {
    /// The number of its format, which rises with the first record that older versions of Penstock would misread.
    /// A version that does not know it refuses the store.
    pub(crate) format: u32,
    /// The newest sequence of the journal.
    pub(crate) sequence: u64,
    /// Number of stored quads.
    pub(crate) quads: u64,
    /// Bytes of index entries in memory that wait for a checkpoint.
    pub(crate) write_back_bytes: u64,
    /// Why the store accepts no commits, in words; null while it does.
    #[salvo(schema(required = true))]
    pub(crate) poisoned: Option<String>,
}

/// The export queue of all targets.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[salvo(schema(name = "QueueStatus"))]
pub(crate) struct QueueStatus {
    /// Number of waiting exports.
    pub(crate) depth: u64,
    /// Bytes of waiting exports.
    pub(crate) bytes: u64,
    /// When the oldest was created (RFC 3339); null when none waits.
    #[salvo(schema(required = true))]
    pub(crate) oldest: Option<String>,
    /// Seconds since then; null when none waits.
    #[salvo(schema(required = true))]
    pub(crate) oldest_age_seconds: Option<u64>,
    /// The bucketNames whose first export cannot be delivered.
    pub(crate) blocked: Vec<String>,
    /// Number of parked exports.
    pub(crate) parked: u64,
    /// The Business Objects whose automatic exports wait for space in the spool.
    pub(crate) waiting: Vec<String>,
}

/// The disk of the data directory, in bytes.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[salvo(schema(name = "DiskStatus"))]
pub(crate) struct DiskStatus {
    /// Free bytes; null when unknown.
    #[salvo(schema(required = true))]
    pub(crate) free_bytes: Option<u64>,
    /// `service.limits.disk-reserve`
    pub(crate) reserve_bytes: u64,
    /// Whether less than the reserve is free, so that ingestions and definitions get 507.
    pub(crate) in_reserve: bool,
    /// Bytes of the journal.
    pub(crate) journal_bytes: u64,
    /// Bytes of the quad index.
    pub(crate) index_bytes: u64,
    /// Bytes of undelivered exports, counted once for each target.
    pub(crate) spool_bytes: u64,
    /// `service.export.spool`
    pub(crate) spool_limit_bytes: u64,
    /// Bytes of delivered exports that are kept.
    pub(crate) history_bytes: u64,
}

/// The memory of the process, in bytes.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[salvo(schema(name = "MemoryStatus"))]
pub(crate) struct MemoryStatus {
    /// Memory that the process uses; null when unknown.
    #[salvo(schema(required = true))]
    pub(crate) resident_bytes: Option<u64>,
    /// The part of it that the kernel cannot reclaim.
    #[salvo(schema(required = true))]
    pub(crate) held_bytes: Option<u64>,
    /// The memory limit; null without a limit.
    #[salvo(schema(required = true))]
    pub(crate) limit_bytes: Option<u64>,
    /// How much memory is left.
    pub(crate) level: MemoryLevel,
}

/// How much memory is left.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "lowercase")]
#[salvo(schema(name = "MemoryLevel"))]
pub(crate) enum MemoryLevel {
    /// Less than three quarters of the limit are in use.
    Ample,
    /// Three quarters of the limit are in use.
    Low,
    /// Nine tenths are in use: request bodies are hardly accepted.
    Short,
}

/// The time.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[salvo(schema(name = "ClockStatus"))]
pub(crate) struct ClockStatus {
    /// The gateway's time (RFC 3339).
    pub(crate) now: String,
    /// The time of the system's clock.
    pub(crate) system: String,
    /// Whether the system's clock is synchronised; null when unknown.
    #[salvo(schema(required = true))]
    pub(crate) synchronised: Option<bool>,
    /// The source of that information: `systemd-timesyncd`, or null.
    #[salvo(schema(required = true))]
    pub(crate) source: Option<&'static str>,
    /// When the clock was last known to be right (RFC 3339); null if it never was.
    #[salvo(schema(required = true))]
    pub(crate) last_known: Option<String>,
    /// Milliseconds of a counter that is never set and continues across restarts. Only differences are
    /// meaningful.
    pub(crate) elapsed: u64,
}

/// The certificate of HTTPS.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[salvo(schema(name = "CertificateStatus"))]
pub(crate) struct CertificateStatus {
    /// Whether the gateway created it.
    pub(crate) self_signed: bool,
    /// When it expires (RFC 3339); null if it does not.
    #[salvo(schema(required = true))]
    pub(crate) expires_at: Option<String>,
}

/// A warning or an error of the log.
#[derive(Serialize, ToSchema)]
#[salvo(schema(name = "LoggedError"))]
pub(crate) struct LoggedError {
    /// When it was last logged (RFC 3339, UTC).
    pub(crate) time: String,
    /// `warning`, or `error`, which means that an operator has to act.
    pub(crate) level: &'static str,
    /// The part of the gateway that logged it, such as `export::deliver`.
    pub(crate) code: String,
    /// The message.
    pub(crate) text: String,
    /// How often it was logged. Time and fields are those of the last time.
    pub(crate) count: u64,
    /// The fields of the log line; empty unless the caller is an Admin.
    pub(crate) fields: BTreeMap<&'static str, String>,
}

/// The dead letters: objects that ingestions rejected, and that wait for a retry.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[salvo(schema(name = "RejectedStatus"))]
pub(crate) struct RejectedStatus {
    /// Their number.
    pub(crate) dead_letters: u64,
    /// Their bytes.
    pub(crate) bytes: u64,
    /// The maximum bytes (`service.limits.rejected.bytes`).
    pub(crate) limit_bytes: u64,
    /// Dead letters that this limit has removed.
    pub(crate) evicted: u64,
    /// Dead letters that `service.limits.rejected.age` has removed.
    pub(crate) expired: u64,
}

/// The changes under review.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[salvo(schema(name = "ChangesStatus"))]
pub(crate) struct ChangesStatus {
    /// The number of changes that are drafts or submitted.
    pub(crate) open: u64,
    /// The maximum number of them (`service.limits.changes`).
    pub(crate) limit_open: u64,
    /// The number of changes that are approved, rejected or withdrawn.
    pub(crate) closed: u64,
    /// The bytes of all of them.
    pub(crate) bytes: u64,
    /// The maximum bytes (`service.limits.change-bytes`).
    pub(crate) limit_bytes: u64,
}

/// The definitions from files: `penstock apply` and `service.definitions.dir`.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[salvo(schema(name = "DefinitionsStatus", rename_all = "camelCase"))]
pub(crate) struct DefinitionsStatus {
    /// The number of definitions that are in files.
    pub(crate) managed: usize,
    /// The first 20 definitions that are not as their files define them.
    pub(crate) drift: Vec<Drift>,
    /// The number of definitions that are not as their files define them.
    pub(crate) drift_count: usize,
    /// Whether the gateway applies the files of `service.definitions.dir` now.
    pub(crate) running: bool,
    /// When a run of `service.definitions.dir` ended last; null if none has since the start.
    #[salvo(schema(required = true))]
    pub(crate) applied_at: Option<String>,
    /// Why its files were not applied: the first 20 errors, each with file, line and column. The definitions of the last good
    /// run stay. Only Admins see ids and emails of accounts.
    pub(crate) errors: Vec<String>,
    /// The number of errors.
    pub(crate) error_count: usize,
}

/// A definition that is not as its file defines it.
#[derive(Serialize, ToSchema)]
#[salvo(schema(name = "DefinitionDrift"))]
pub(crate) struct Drift {
    /// `Namespace`, `Shapes`, `Group` or `BusinessObject`.
    pub(crate) kind: &'static str,
    /// Its name.
    pub(crate) name: String,
    /// The file that defined it last.
    pub(crate) file: String,
    /// `changed` or `deleted` since the file was applied, or `unmanaged`: no file has it any more.
    pub(crate) state: &'static str,
}

impl From<definitions::Drift> for Drift {
    fn from(definitions::Drift { id, file, state }: definitions::Drift) -> Self {
        Self { kind: id.kind.name(), name: id.name, file, state: state.name() }
    }
}

/// Whether the process runs, or is ready.
#[derive(Serialize, ToSchema)]
#[salvo(schema(name = "Health"))]
pub(crate) struct Health {
    /// `live` or `ready`.
    pub(crate) status: &'static str,
}

impl From<status::Status> for Status {
    fn from(status: status::Status) -> Self {
        Self {
            version: status.version,
            gateway_id: status.gateway_id,
            epoch: status.epoch,
            uptime_seconds: status.uptime_seconds,
            store: StoreStatus {
                format: status.store.format,
                sequence: status.store.sequence,
                quads: status.store.quads,
                write_back_bytes: status.store.write_back_bytes,
                poisoned: status.store.poisoned,
            },
            queue: QueueStatus {
                depth: status.queue.depth,
                bytes: status.queue.bytes,
                oldest: status.queue.oldest,
                oldest_age_seconds: status.queue.oldest_age_seconds,
                blocked: status.queue.blocked,
                parked: status.queue.parked,
                waiting: status.queue.waiting,
            },
            targets: status.targets.into_iter().map(Target::from).collect(),
            rejected: RejectedStatus {
                dead_letters: status.rejected.totals.letters,
                bytes: status.rejected.totals.bytes,
                limit_bytes: status.rejected.limit_bytes,
                evicted: status.rejected.totals.evicted,
                expired: status.rejected.totals.expired,
            },
            changes: status.changes.map(|changes| ChangesStatus {
                open: changes.totals.open,
                limit_open: changes.limit_open,
                closed: changes.totals.closed,
                bytes: changes.totals.bytes(),
                limit_bytes: changes.limit_bytes,
            }),
            sources: status.sources.into_iter().map(Source::from).collect(),
            webhooks: status.webhooks.into_iter().map(Webhook::from).collect(),
            definitions: DefinitionsStatus {
                managed: status.definitions.managed,
                drift: status.definitions.drift.into_iter().map(Drift::from).collect(),
                drift_count: status.definitions.drift_count,
                running: status.definitions.folder.is_running,
                applied_at: status.definitions.folder.applied_at,
                errors: status.definitions.folder.errors,
                error_count: status.definitions.folder.error_count,
            },
            disk: DiskStatus {
                free_bytes: status.disk.free_bytes,
                reserve_bytes: status.disk.reserve_bytes,
                in_reserve: status.disk.in_reserve,
                journal_bytes: status.disk.journal_bytes,
                index_bytes: status.disk.index_bytes,
                spool_bytes: status.disk.spool_bytes,
                spool_limit_bytes: status.disk.spool_limit_bytes,
                history_bytes: status.disk.history_bytes,
            },
            memory: MemoryStatus {
                resident_bytes: status.memory.resident_bytes,
                held_bytes: status.memory.held_bytes,
                limit_bytes: status.memory.limit_bytes,
                level: match status.memory.level {
                    Level::Ample => MemoryLevel::Ample,
                    Level::Low => MemoryLevel::Low,
                    Level::Short => MemoryLevel::Short,
                },
            },
            clock: ClockStatus::from(status.clock),
            certificate: status.certificate.map(|certificate| CertificateStatus {
                self_signed: certificate.self_signed,
                expires_at: certificate.expires_at,
            }),
            warnings: status.warnings,
            last_errors: status.last_errors.into_iter().map(LoggedError::from).collect(),
        }
    }
}

impl From<ClockReport> for ClockStatus {
    fn from(report: ClockReport) -> Self {
        Self {
            now: report.now,
            system: report.system,
            synchronised: report.synchronised,
            source: report.source,
            last_known: report.last_known,
            elapsed: report.elapsed,
        }
    }
}

impl From<LogLine> for LoggedError {
    fn from(line: LogLine) -> Self {
        Self {
            time: line.time,
            level: line.level,
            code: line.code,
            text: line.text,
            count: line.count,
            fields: line.fields,
        }
    }
}
