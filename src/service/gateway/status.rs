//! The gateway's status, for `/api/v1/status` and the overview page.
use super::Gateway;
use crate::definitions::{Drift, DriftState, FolderOutcome, find_drift};
use crate::sources::{self, SourceInfo};
use jiff::Timestamp;
use penstock_auth::{Authorized, Role};
use penstock_base::clock;
use penstock_base::disk;
use penstock_base::error::GatewayError;
use penstock_base::memory::{self, Level};
use penstock_base::telemetry::{metrics, recent};
use penstock_base::time;
use penstock_export::{TargetState, WebhookState};
use penstock_model::changes::{self, ChangeTotals};
use penstock_model::dead_letters::{self, Totals};

/// The maximum number of warnings about definition files.
const MAX_DEFINITION_WARNINGS: usize = 20;
/// The maximum number of definitions that are listed as not being as their files define them.
const MAX_LISTED_DRIFT: usize = 20;

/// The maximum number of warnings about sources. `GET /api/v1/sources` has all.
const MAX_SOURCE_WARNINGS: usize = 20;

/// The gateway's status.
#[derive(Debug, Clone)]
pub struct Status {
    /// The version of Penstock.
    pub version: &'static str,
    /// `service.gateway-id`, configured or generated.
    pub gateway_id: String,
    /// A number that grows with each start.
    pub epoch: u32,
    /// Seconds since the start.
    pub uptime_seconds: u64,
    /// The store.
    pub store: StoreStatus,
    /// The export queue, over all targets.
    pub queue: QueueStatus,
    /// The state of each target.
    pub targets: Vec<TargetState>,
    /// The dead letters.
    pub rejected: RejectedStatus,
    /// The changes under review; `None` unless the caller is an Admin.
    pub changes: Option<ChangesStatus>,
    /// The definitions from files.
    pub definitions: DefinitionsStatus,
    /// The sources.
    pub sources: Vec<SourceInfo>,
    /// The webhooks; none unless the caller is an Admin.
    pub webhooks: Vec<WebhookState>,
    /// The disk of the data directory, and its use.
    pub disk: DiskStatus,
    /// The memory of the process.
    pub memory: MemoryStatus,
    /// The state of the clock.
    pub clock: clock::ClockReport,
    /// The HTTPS certificate; `None` without HTTPS.
    pub certificate: Option<CertificateStatus>,
    /// The warnings of the configuration at the start, and current warnings for the operator.
    pub warnings: Vec<String>,
    /// The number of `warnings` that come from the configuration; they are first.
    pub configuration_warnings: usize,
    /// The newest warnings and errors of the log, the newest first. Only Admins see their fields.
    pub last_errors: Vec<recent::LogLine>,
}

/// The store.
#[derive(Debug, Clone)]
pub struct StoreStatus {
    /// The number of the store's format. A version of Penstock that does not know it refuses the store.
    pub format: u32,
    /// The newest sequence of the journal.
    pub sequence: u64,
    /// The number of quads stored.
    pub quads: u64,
    /// Bytes of index entries in memory that wait for a checkpoint.
    pub write_back_bytes: u64,
    /// Why the store refuses commits, if it does.
    pub poisoned: Option<String>,
}

/// The export queue.
#[derive(Debug, Clone)]
pub struct QueueStatus {
    /// The number of exports that wait.
    pub depth: u64,
    /// Their bytes.
    pub bytes: u64,
    /// When the oldest was created (RFC 3339).
    pub oldest: Option<String>,
    /// Seconds that the oldest has waited.
    pub oldest_age_seconds: Option<u64>,
    /// The bucketNames whose first export cannot be delivered.
    pub blocked: Vec<String>,
    /// The number of exports that an operator parked.
    pub parked: u64,
    /// The Business Objects whose automatic exports wait for space in the spool.
    pub waiting: Vec<String>,
}

/// The dead letters: objects that ingestions rejected.
#[derive(Debug, Clone, Copy)]
pub struct RejectedStatus {
    /// What is stored, and what the limits removed.
    pub totals: Totals,
    /// `service.limits.rejected.bytes`
    pub limit_bytes: u64,
}

/// The changes under review.
#[derive(Debug, Clone, Copy)]
pub struct ChangesStatus {
    /// What is stored.
    pub totals: ChangeTotals,
    /// `service.limits.changes`
    pub limit_open: u64,
    /// `service.limits.change-bytes`
    pub limit_bytes: u64,
}

/// The definitions from files.
#[derive(Debug, Clone)]
pub struct DefinitionsStatus {
    /// The number of definitions that are in files.
    pub managed: usize,
    /// The first ones that are not as their files define them; those without a file are last.
    pub drift: Vec<Drift>,
    /// The number of definitions that are not as their files define them.
    pub drift_count: usize,
    /// The number of definitions that were changed or deleted since their files were applied.
    pub unwanted_count: usize,
    /// How the last run of `service.definitions.dir` ended.
    pub folder: FolderOutcome,
}

/// The disk of the data directory, in bytes.
#[derive(Debug, Clone)]
pub struct DiskStatus {
    /// Free bytes; `None` if unknown.
    pub free_bytes: Option<u64>,
    /// `service.limits.disk-reserve`
    pub reserve_bytes: u64,
    /// Whether less than `reserve_bytes` is free, so that ingestions and definitions get 507.
    pub in_reserve: bool,
    /// The journal.
    pub journal_bytes: u64,
    /// The quad index.
    pub index_bytes: u64,
    /// Undelivered exports, counted once for each target.
    pub spool_bytes: u64,
    /// `service.export.spool`
    pub spool_limit_bytes: u64,
    /// Delivered exports that are kept.
    pub history_bytes: u64,
}

/// The memory of the process, in bytes.
#[derive(Debug, Clone)]
pub struct MemoryStatus {
    /// Resident memory; `None` if unknown.
    pub resident_bytes: Option<u64>,
    /// The part of it that the kernel cannot reclaim.
    pub held_bytes: Option<u64>,
    /// The limit: that of the control group or `service.limits.memory`; `None` without a limit.
    pub limit_bytes: Option<u64>,
    /// How much memory is left.
    pub level: Level,
}

/// The HTTPS certificate.
#[derive(Debug, Clone)]
pub struct CertificateStatus {
    /// Whether the gateway created it.
    pub self_signed: bool,
    /// When it expires (RFC 3339); `None` if it does not.
    pub expires_at: Option<String>,
}

impl Gateway {
    /// Collects the gateway's status for this caller. Blocking.
    ///
    /// # Errors
    /// The errors of the store.
    pub fn collect_status(&self, by: &Authorized) -> Result<Status, GatewayError> {
        let (stats, spool) = (self.store.stats(), self.exporter.spool_usage());
        let targets = self.exporter.list_targets()?;
        let memory = MemoryStatus {
            resident_bytes: memory::resident_bytes(),
            held_bytes: memory::unreclaimable_bytes(),
            limit_bytes: self.memory.limit_bytes(),
            level: self.memory.current_level(),
        };
        let mut warnings = self.settings.warnings.clone();
        let configuration_warnings = warnings.len();
        warnings.extend(memory.describe_level());
        let mut definitions = self.collect_definitions()?;
        let sources = sources::collect_sources(self);
        let of_sources = sources.iter().flat_map(|source| source.warnings.iter().cloned());
        warnings.extend(of_sources.take(MAX_SOURCE_WARNINGS));
        let mut last_errors = recent::recent_lines();
        if by.role < Role::Admin {
            definitions.folder.redact();
            for line in &mut last_errors {
                line.fields.clear();
            }
        }
        warnings.extend(definitions.list_warnings());
        if by.role == Role::Admin {
            warnings.extend(self.warn_of_restore()?);
        }
        Ok(Status {
            version: env!("CARGO_PKG_VERSION"),
            gateway_id: self.gateway_id.clone(),
            epoch: self.epoch,
            uptime_seconds: metrics::uptime().as_secs(),
            store: StoreStatus {
                format: self.store.format().number(),
                sequence: stats.sequence,
                quads: stats.quads,
                write_back_bytes: stats.write_back_bytes,
                poisoned: self.store.poison_cause(),
            },
            queue: QueueStatus { parked: spool.parked, ..self.collect_queue(&targets) },
            targets,
            rejected: RejectedStatus {
                totals: dead_letters::read_totals(&self.store.read())?,
                limit_bytes: self.settings.limits.rejected_bytes,
            },
            changes: if by.role < Role::Admin {
                None
            } else {
                Some(ChangesStatus {
                    totals: changes::read_totals(&self.store.read())?,
                    limit_open: self.settings.limits.changes,
                    limit_bytes: self.settings.limits.change_bytes,
                })
            },
            definitions,
            sources,
            webhooks: if by.role < Role::Admin { Vec::new() } else { self.webhooks.list()? },
            disk: DiskStatus {
                free_bytes: disk::free_bytes_of(&self.settings.data_dir),
                reserve_bytes: self.settings.limits.disk_reserve_bytes,
                in_reserve: self.disk.is_in_reserve(),
                journal_bytes: stats.journal_bytes,
                index_bytes: stats.index_bytes,
                spool_bytes: spool.waiting,
                spool_limit_bytes: spool.limit,
                history_bytes: spool.delivered,
            },
            memory,
            clock: self.clock.report(),
            certificate: self.settings.server.tls.as_ref().map(|tls| CertificateStatus {
                self_signed: tls.certificate.is_none(),
                expires_at: format_certificate_end(),
            }),
            warnings,
            configuration_warnings,
            last_errors,
        })
    }

    /// Collects what is known of the definitions from files. Blocking.
    pub(super) fn collect_definitions(&self) -> Result<DefinitionsStatus, GatewayError> {
        let (managed, mut drift) = find_drift(self)?;
        drift.sort_by_key(|drift| drift.state == DriftState::Unmanaged);
        let drift_count = drift.len();
        let unwanted_count = drift.partition_point(|drift| drift.state != DriftState::Unmanaged);
        drift.truncate(MAX_LISTED_DRIFT);
        let folder = self.definition_files.outcome();
        Ok(DefinitionsStatus { managed, drift, drift_count, unwanted_count, folder })
    }

    fn collect_queue(&self, targets: &[TargetState]) -> QueueStatus {
        QueueStatus {
            depth: targets.iter().map(|target| target.depth).sum(),
            bytes: targets.iter().map(|target| target.bytes).sum(),
            // RFC 3339 in UTC with a fixed length: the order of the texts is that of the times.
            oldest: targets.iter().filter_map(|target| target.oldest.clone()).min(),
            oldest_age_seconds: targets.iter().filter_map(|target| target.oldest_age_seconds).max(),
            blocked: targets
                .iter()
                .filter(|target| target.blocked.is_some())
                .map(|target| target.name.clone())
                .collect(),
            parked: 0,
            waiting: self.exporter.list_waiting_names(),
        }
    }
}

impl DefinitionsStatus {
    /// Lists what an operator should look at.
    fn list_warnings(&self) -> Vec<String> {
        let FolderOutcome { errors, error_count, warnings, warning_count, .. } = &self.folder;
        let errors = errors.iter().map(|error| {
            format!(
                "service.definitions.dir was not applied, and the definitions of the last good run stay: {error}"
            )
        });
        let warnings = warnings.iter().map(|warning| format!("service.definitions.dir: {warning}"));
        let mut listed: Vec<String> =
            errors.chain(warnings).take(MAX_DEFINITION_WARNINGS).collect();
        let more = (error_count + warning_count).saturating_sub(listed.len());
        if more > 0 {
            listed.push(format!(
                "service.definitions.dir: {more} more; penstock apply --dry-run shows all"
            ));
        }
        listed
    }
}

impl MemoryStatus {
    /// Describes what a level other than [`Level::Ample`] means for clients, and what the operator can do.
    fn describe_level(&self) -> Option<String> {
        let refused = match self.level {
            Level::Ample => return None,
            Level::Low => "request bodies are still accepted",
            Level::Short => {
                "bodies of more than 1 MiB get 503, and smaller ones are accepted one at a time"
            }
        };
        let level = if self.level == Level::Short { "short" } else { "low" };
        Some(format!(
            "memory is {level}: {} of {} bytes are in use, so {refused}; give the gateway more memory \
             (service.limits.memory, or the limit of its control group), or send fewer requests at once",
            self.held_bytes.unwrap_or_default(),
            self.limit_bytes.unwrap_or_default(),
        ))
    }
}

fn format_certificate_end() -> Option<String> {
    let end = Timestamp::from_second(metrics::certificate_expiry()?).ok()?;
    Some(time::format_rfc3339(end))
}
