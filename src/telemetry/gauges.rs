//! What is, as against what happened: read at each scrape.
use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::info::Info;
use prometheus_client::registry::Registry;
use std::sync::atomic::AtomicU64;
use std::time::Duration;

/// The state that a scrape shows; the HTTP layer gathers it.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Gauges {
    /// Quads held.
    pub quads: u64,
    /// The sequence of the newest commit.
    pub sequence: u64,
    /// Bytes of the journal on disk.
    pub journal_bytes: u64,
    /// Bytes of the quad index on disk.
    pub index_bytes: u64,
    /// Bytes of index entries that wait for a checkpoint.
    pub write_back_bytes: u64,
    /// Bytes free on the disk of the data directory.
    pub disk_free_bytes: u64,
    /// Whether less is free than `service.limits.disk-reserve`.
    pub disk_in_reserve: bool,
    /// Whether the store takes no commits since a write failed.
    pub poisoned: bool,
    /// Each target's queue.
    pub targets: Vec<TargetGauges>,
}

/// The queue of one target.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct TargetGauges {
    /// The bucketName.
    pub name: String,
    /// Exports that wait.
    pub depth: u64,
    /// Bytes that wait.
    pub bytes: u64,
    /// How long the oldest has waited; 0 when nothing waits.
    pub oldest_age_seconds: f64,
    /// Whether its head does not get through.
    pub blocked: bool,
    /// Failed attempts at its head.
    pub attempts: u64,
    /// When the last export was delivered, in seconds since 1970; 0 before the first.
    pub last_delivery_seconds: f64,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Target {
    target: String,
}

type Whole = Gauge<u64, AtomicU64>;
type Real = Gauge<f64, AtomicU64>;

/// A registry of the state, made for one scrape.
pub(super) fn registry(gauges: &Gauges, uptime: Duration) -> Registry {
    let mut registry = Registry::default();
    let own = registry.sub_registry_with_prefix("penstock");
    let mut whole = |name: &str, help: &str, value: u64| {
        let gauge = Whole::default();
        gauge.set(value);
        own.register(name, help, gauge);
    };
    whole("store_quads", "Quads held", gauges.quads);
    whole("store_sequence", "The sequence of the newest commit", gauges.sequence);
    whole("store_journal_bytes", "Bytes of the journal on disk", gauges.journal_bytes);
    whole("store_index_bytes", "Bytes of the quad index on disk", gauges.index_bytes);
    whole(
        "store_write_back_bytes",
        "Bytes of index entries that wait for a checkpoint",
        gauges.write_back_bytes,
    );
    whole(
        "disk_free_bytes",
        "Bytes free on the disk of the data directory",
        gauges.disk_free_bytes,
    );
    whole(
        "disk_in_reserve",
        "1 while less is free than service.limits.disk-reserve, and ingestions are refused",
        gauges.disk_in_reserve.into(),
    );
    whole(
        "store_poisoned",
        "1 while the store takes no commits since a write to the disk failed",
        gauges.poisoned.into(),
    );
    targets(own, &gauges.targets);
    let up = Real::default();
    up.set(uptime.as_secs_f64());
    own.register("uptime_seconds", "Time since the start", up);
    own.register(
        "build",
        "The version that runs",
        Info::new([("version", env!("CARGO_PKG_VERSION"))]),
    );
    if let Some(bytes) = resident_bytes() {
        let resident = Whole::default();
        resident.set(bytes);
        registry.register("process_resident_memory_bytes", "Resident memory", resident);
    }
    registry
}

fn targets(registry: &mut Registry, targets: &[TargetGauges]) {
    let depth = Family::<Target, Whole>::default();
    let bytes = Family::<Target, Whole>::default();
    let oldest = Family::<Target, Real>::default();
    let blocked = Family::<Target, Whole>::default();
    let attempts = Family::<Target, Whole>::default();
    let last = Family::<Target, Real>::default();
    for target in targets {
        let label = Target { target: target.name.clone() };
        depth.get_or_create(&label).set(target.depth);
        bytes.get_or_create(&label).set(target.bytes);
        oldest.get_or_create(&label).set(target.oldest_age_seconds);
        blocked.get_or_create(&label).set(u64::from(target.blocked));
        attempts.get_or_create(&label).set(target.attempts);
        last.get_or_create(&label).set(target.last_delivery_seconds);
    }
    registry.register(
        "target_failed_attempts",
        "Failed attempts to deliver the head of the queue, since it came there or since the start",
        attempts,
    );
    registry.register(
        "target_last_delivery_timestamp_seconds",
        "When the last export was delivered (Unix time); 0 before the first",
        last,
    );
    registry.register("target_queue_depth", "Exports that wait", depth);
    registry.register("target_queue_bytes", "Bytes of the exports that wait", bytes);
    registry.register("target_oldest_age_seconds", "How long the oldest export has waited", oldest);
    registry.register(
        "target_blocked",
        "1 while the head of the queue does not get through",
        blocked,
    );
}

/// The resident memory of this process (`proc_pid_status(5)`), in bytes; `None` when it cannot be told.
pub fn resident_bytes() -> Option<u64> {
    let text = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = text.lines().find_map(|line| line.strip_prefix("VmRSS:"))?;
    let kilobytes: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some(kilobytes * 1024)
}
