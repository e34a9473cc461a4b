//! How the gateway is, in one piece: what `/api/v1/status` answers, and the overview shows.
use super::Gateway;
use jiff::Timestamp;
use penstock_base::clock;
use penstock_base::disk;
use penstock_base::fault::Fault;
use penstock_base::memory::{self, Level};
use penstock_base::telemetry::{metrics, recent};
use penstock_base::time;
use penstock_export::TargetState;
use serde::Serialize;

/// How the gateway is.
#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Status {
    /// The version of Penstock.
    pub version: &'static str,
    /// `service.gateway-id`, configured or made.
    pub gateway_id: String,
    /// A number that is greater after each start.
    pub epoch: u32,
    /// Seconds since the start.
    pub uptime_seconds: u64,
    /// The store.
    pub store: Store,
    /// What waits to be delivered, over all targets.
    pub queue: Queue,
    /// Each target.
    pub targets: Vec<TargetState>,
    /// The disk of the data directory, and what is used of it.
    pub disk: Disk,
    /// The memory of the process.
    pub memory: Memory,
    /// What time it is.
    pub clock: clock::Report,
    /// The certificate of HTTPS; `None` without HTTPS.
    pub certificate: Option<Certificate>,
    /// What the configuration warned of at the start, and what an operator should know of now.
    pub warnings: Vec<String>,
    /// How many of those the configuration gave; they come first.
    #[serde(skip)]
    pub configuration_warnings: usize,
    /// The newest warnings and errors of the log, the newest first.
    pub last_errors: Vec<recent::Line>,
}

/// The store.
#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Store {
    /// The version of its format on disk; a version of Penstock opens its own and older ones.
    pub format: u32,
    /// The journal's newest sequence.
    pub sequence: u64,
    /// Quads held.
    pub quads: u64,
    /// Bytes of index entries that wait in memory for a checkpoint.
    pub write_back_bytes: u64,
    /// Why it takes no commits, if so.
    pub poisoned: Option<String>,
}

/// What waits to be delivered.
#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Queue {
    /// Exports that wait.
    pub depth: u64,
    /// Their bytes.
    pub bytes: u64,
    /// When the oldest was made (RFC 3339).
    pub oldest: Option<String>,
    /// Seconds that it has waited.
    pub oldest_age_seconds: Option<u64>,
    /// The bucketNames whose head does not get through.
    pub blocked: Vec<String>,
    /// Exports that an operator took out of the way.
    pub parked: u64,
    /// The Business Objects whose exports by themselves wait for room in the spool.
    pub waiting: Vec<String>,
}

/// The disk of the data directory, in bytes.
#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Disk {
    /// What is free; `None` when it cannot be told.
    pub free_bytes: Option<u64>,
    /// `service.limits.disk-reserve`
    pub reserve_bytes: u64,
    /// Whether less is free than that, so that ingestions and definitions get 507.
    pub in_reserve: bool,
    /// The journal.
    pub journal_bytes: u64,
    /// The quad index.
    pub index_bytes: u64,
    /// Exports that no target has taken yet, each counted for each target.
    pub spool_bytes: u64,
    /// `service.export.spool`
    pub spool_limit_bytes: u64,
    /// Delivered exports that are kept.
    pub history_bytes: u64,
}

/// The memory of the process, in bytes.
#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Memory {
    /// What it holds; `None` when it cannot be told.
    pub resident_bytes: Option<u64>,
    /// What of that the kernel cannot take back.
    pub held_bytes: Option<u64>,
    /// What it may have: its control group, or `service.limits.memory`; `None` when nothing bounds it.
    pub limit_bytes: Option<u64>,
    /// How much is left.
    pub level: Level,
}

/// The certificate of HTTPS.
#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Certificate {
    /// Whether the gateway made it itself.
    pub self_signed: bool,
    /// When it ends (RFC 3339); `None` when it does not.
    pub expires_at: Option<String>,
}

impl Gateway {
    /// How the gateway is. Blocks.
    pub fn status(&self) -> Result<Status, Fault> {
        let (stats, room) = (self.store.stats(), self.exporter.room());
        let targets = self.exporter.targets()?;
        let memory = Memory {
            resident_bytes: memory::resident(),
            held_bytes: memory::held(),
            limit_bytes: self.memory.limit(),
            level: self.memory.level(),
        };
        let mut warnings = self.settings.warnings.clone();
        let configuration_warnings = warnings.len();
        warnings.extend(memory.warning());
        Ok(Status {
            version: env!("CARGO_PKG_VERSION"),
            gateway_id: self.gateway_id.clone(),
            epoch: self.epoch,
            uptime_seconds: metrics::uptime().as_secs(),
            store: Store {
                format: penstock_store::FORMAT,
                sequence: stats.sequence,
                quads: stats.quads,
                write_back_bytes: stats.write_back_bytes,
                poisoned: self.store.poisoned(),
            },
            queue: Queue { parked: room.parked, ..self.queue(&targets) },
            targets,
            disk: Disk {
                free_bytes: disk::free(&self.settings.data_dir),
                reserve_bytes: self.settings.limits.disk_reserve,
                in_reserve: self.disk.is_in_reserve(),
                journal_bytes: stats.journal_bytes,
                index_bytes: stats.index_bytes,
                spool_bytes: room.waiting,
                spool_limit_bytes: room.limit,
                history_bytes: room.delivered,
            },
            memory,
            clock: self.clock.report(),
            certificate: self.settings.server.tls.as_ref().map(|tls| Certificate {
                self_signed: tls.certificate.is_none(),
                expires_at: certificate_end(),
            }),
            warnings,
            configuration_warnings,
            last_errors: recent::lines(),
        })
    }

    fn queue(&self, targets: &[TargetState]) -> Queue {
        Queue {
            depth: targets.iter().map(|target| target.depth).sum(),
            bytes: targets.iter().map(|target| target.bytes).sum(),
            // RFC 3339 in UTC, all of one form: their order as text is that in time.
            oldest: targets.iter().filter_map(|target| target.oldest.clone()).min(),
            oldest_age_seconds: targets.iter().filter_map(|target| target.oldest_age_seconds).max(),
            blocked: targets
                .iter()
                .filter(|target| target.blocked.is_some())
                .map(|target| target.name.clone())
                .collect(),
            parked: 0,
            waiting: self.exporter.waiting(),
        }
    }
}

impl Memory {
    /// Says what a level below [`Level::Ample`] means for clients, and what can be done.
    fn warning(&self) -> Option<String> {
        let refused = match self.level {
            Level::Ample => return None,
            Level::Low => "request bodies are still taken",
            Level::Short => {
                "bodies of more than 1 MiB get 503, and smaller ones are taken one at a time"
            }
        };
        let level = if self.level == Level::Short { "short" } else { "low" };
        Some(format!(
            "memory is {level}: {} of {} bytes are in use, so {refused}; give the gateway more \
             (service.limits.memory, or the limit of its control group), or send less at once",
            self.held_bytes.unwrap_or_default(),
            self.limit_bytes.unwrap_or_default(),
        ))
    }
}

fn certificate_end() -> Option<String> {
    let end = Timestamp::from_second(metrics::certificate_end()?).ok()?;
    Some(time::rfc3339_of(end))
}
