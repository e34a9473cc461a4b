//! The gauges: current values that are read at each scrape, in contrast to counters.
use crate::memory;
use jiff::Timestamp;
use penstock_resources::export::Target;
use penstock_resources::gateway::{BackupState, BackupStatus, MemoryLevel, Status};
use penstock_resources::source::Source;
use penstock_resources::webhook::Webhook;
use penstock_store::SnapshotStats;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::info::Info;
use prometheus_client::registry::Registry;
use std::borrow::Cow;
use std::sync::atomic::{AtomicI64, AtomicU64};
use std::time::Duration;

/// The names and values of the labels of a sample.
pub(super) type Labels<const N: usize> = [(&'static str, Cow<'static, str>); N];

/// The state at a scrape, which the HTTP layer collects.
#[derive(Debug, Clone, Default)]
pub struct Gauges {
    /// The gateway's status.
    pub status: Status,
    /// The snapshots of the store that are read.
    pub snapshots: SnapshotStats,
    /// The last finished validation of each Business Object.
    pub last_validations: Vec<ValidationGauges>,
    /// The parts of the status that could not be read. Their metrics are left out.
    pub unread: Vec<StatusPart>,
}

/// A part of the status that is read from stored records.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StatusPart {
    /// The dead letters.
    Rejected,
    /// The changes under review.
    Changes,
    /// Which definitions are as their files define them.
    Drift,
}

/// What the last finished validation of a Business Object has counted.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ValidationGauges {
    /// The name of the Business Object.
    pub business_object: String,
    /// The number of violations of each of [`SEVERITIES`].
    pub counts: [u64; 3],
}

/// The severities of violations.
const SEVERITIES: [&str; 3] = ["violation", "warning", "info"];

type IntegerGauge = Gauge<u64, AtomicU64>;
type FloatGauge = Gauge<f64, AtomicU64>;

/// Creates a registry of the current state for one scrape.
pub(super) fn build_registry(gauges: &Gauges, uptime: Duration) -> Registry {
    let Gauges { status, snapshots, last_validations, unread } = gauges;
    let mut registry = Registry::default();
    let own = registry.sub_registry_with_prefix("penstock");
    let mut whole = |name: &str, help: &str, value: u64| {
        let gauge = IntegerGauge::default();
        gauge.set(value);
        own.register(name, help, gauge);
    };
    whole("store_quads", "Quads stored", status.store.quads);
    whole("store_sequence", "The sequence of the newest commit", status.store.sequence);
    whole("store_journal_bytes", "Bytes of the journal on disk", status.disk.journal_bytes);
    whole("store_index_bytes", "Bytes of the quad index on disk", status.disk.index_bytes);
    whole(
        "store_write_back_bytes",
        "Bytes of index entries that have not been written by a checkpoint yet",
        status.store.write_back_bytes,
    );
    whole(
        "snapshots",
        "Snapshots of the store that exports, dumps and queries are reading",
        snapshots.count,
    );
    if let Some(free) = status.disk.free_bytes {
        whole("disk_free_bytes", "Bytes free on the disk of the data directory", free);
    }
    whole(
        "disk_reserve_bytes",
        "The disk_free_bytes below which ingestions are refused (service.limits.disk-reserve)",
        status.disk.reserve_bytes,
    );
    whole(
        "disk_in_reserve",
        "1 while free disk space is below service.limits.disk-reserve and ingestions are refused",
        status.disk.in_reserve.into(),
    );
    whole(
        "store_poisoned",
        "1 while the store refuses commits because a write to the disk failed",
        status.store.poisoned.is_some().into(),
    );
    whole(
        "spool_bytes",
        "Bytes on the disk of exports that are not delivered yet",
        status.disk.spool_bytes,
    );
    whole(
        "spool_limit_bytes",
        "The spool_bytes at which no more exports are created (service.export.spool)",
        status.disk.spool_limit_bytes,
    );
    if !unread.contains(&StatusPart::Rejected) {
        whole("dead_letters", "Dead letters that wait for a retry", status.rejected.dead_letters);
        whole("dead_letters_bytes", "Bytes of these dead letters", status.rejected.bytes);
    }
    if !unread.contains(&StatusPart::Changes) {
        whole(
            "changes_open",
            "Changes under review that are neither approved nor rejected nor withdrawn",
            status.changes.map_or(0, |changes| changes.open),
        );
        whole(
            "changes_bytes",
            "Bytes of all stored changes, closed ones included",
            status.changes.map_or(0, |changes| changes.bytes),
        );
    }
    whole(
        "exports_parked",
        "Exports that are parked: by an operator, or because a restore lost their files",
        status.queue.parked,
    );
    if !unread.contains(&StatusPart::Drift) {
        whole(
            "definitions_managed",
            "Definitions that are in files",
            status.definitions.managed as u64,
        );
        whole(
            "definitions_drifted",
            "Definitions that were changed or deleted since their files were applied",
            status.definitions.unwanted_count as u64,
        );
    }
    whole(
        "definitions_errors",
        "Errors because of which the files of service.definitions.dir were not applied",
        status.definitions.error_count as u64,
    );
    whole(
        "memory_limit_bytes",
        "Bytes of memory that the process may use; 0 without a limit",
        status.memory.limit_bytes.unwrap_or_default(),
    );
    whole(
        "memory_level",
        "0 with enough memory, 1 if it is low, 2 if it is short and request bodies are refused",
        match status.memory.level {
            MemoryLevel::Ample => 0,
            MemoryLevel::Low => 1,
            MemoryLevel::Short => 2,
        },
    );
    if let Some(synchronised) = status.clock.synchronised {
        whole(
            "clock_synchronised",
            "1 while the clock is synchronised with a time server",
            synchronised.into(),
        );
    }
    let ends = status.certificate.as_ref().and_then(|certificate| certificate.expires_at.as_ref());
    if let Some(at) = ends.and_then(|ends| ends.parse::<Timestamp>().ok()) {
        let expiry = Gauge::<i64, AtomicI64>::default();
        expiry.set(at.as_second());
        own.register(
            "certificate_expiry_timestamp_seconds",
            "When the certificate of HTTPS expires (Unix time)",
            expiry,
        );
    }
    if let Some(backup) = &status.backup {
        register_backup(own, backup);
    }
    register_snapshot_bytes(own, *snapshots);
    register_business_objects(
        own,
        "business_object_waiting",
        "1 while the automatic exports of a Business Object wait for spool space",
        &status.queue.waiting,
    );
    register_business_objects(
        own,
        "business_object_failing",
        "1 while the automatic exports of a Business Object fail, so that none is queued",
        &status.queue.failing,
    );
    register_validations(own, last_validations);
    register_targets(own, &status.targets);
    register_sources(own, &status.sources);
    register_webhooks(own, &status.webhooks);
    let up = FloatGauge::default();
    up.set(uptime.as_secs_f64());
    own.register("uptime_seconds", "Time since the start", up);
    own.register(
        "build",
        "The running version",
        Info::new([("version", env!("CARGO_PKG_VERSION"))]),
    );
    if let Some(bytes) = memory::resident_bytes() {
        let resident = IntegerGauge::default();
        resident.set(bytes);
        registry.register("process_resident_memory_bytes", "Resident memory", resident);
    }
    registry
}

fn register_backup(registry: &mut Registry, backup: &BackupStatus) {
    // A copy is held too, also while it starts. A lost state is `Blocked`.
    let is_replaced =
        backup.is_held && matches!(backup.state, BackupState::Replaced | BackupState::Blocked);
    // Alerts would fire for what such a gateway does not do any more.
    let of_sender = [
        (
            "backup_lag_seconds",
            "Age of the oldest commit that is not in the bucket of the backup; 0 if all are",
            backup.lag_seconds,
        ),
        (
            "backup_lag_bytes",
            "Bytes of the commits that are not in the bucket of the backup",
            backup.lag_bytes,
        ),
        (
            "backup_restorable",
            "1 while what this gateway wrote can be restored from the backup",
            backup.restorable.into(),
        ),
    ];
    let of_sender = of_sender.into_iter().filter(|_| !backup.is_held);
    let of_all = [
        (
            "backup_interval_seconds",
            "service.backup.interval: the longest time until a commit is sent, if the link allows",
            backup.interval_seconds,
        ),
        ("backup_bytes", "Bytes of the objects that a restore reads", backup.bytes),
        (
            "backup_replaced",
            "1 after another gateway took over the backup, or may have: this one sends nothing and reads no sources",
            is_replaced.into(),
        ),
    ];
    for (name, help, value) in of_all.into_iter().chain(of_sender) {
        let gauge = IntegerGauge::default();
        gauge.set(value);
        registry.register(name, help, gauge);
    }
    let sent = Family::<Labels<1>, Counter>::default();
    for (kind, bytes) in ["segment", "base"].into_iter().zip(backup.sent_bytes) {
        sent.get_or_create(&[("kind", kind.into())]).inc_by(bytes);
    }
    registry.register(
        "backup_sent_bytes",
        "Bytes of segments and bases that the bucket of the backup accepted since the start",
        sent,
    );
}

fn register_snapshot_bytes(registry: &mut Registry, snapshots: SnapshotStats) {
    let bytes = Family::<Labels<1>, IntegerGauge>::default();
    bytes.get_or_create(&[("place", "memory".into())]).set(snapshots.memory_bytes);
    bytes.get_or_create(&[("place", "file".into())]).set(snapshots.file_bytes);
    registry.register(
        "snapshot_bytes",
        "Bytes that these snapshots keep of what commits changed meanwhile",
        bytes,
    );
}

/// Registers 1 for each of these Business Objects. Admins define them, so the number of label values is limited.
fn register_business_objects(registry: &mut Registry, metric: &str, help: &str, names: &[String]) {
    let gauges = Family::<Labels<1>, IntegerGauge>::default();
    for name in names {
        gauges.get_or_create(&[("business_object", name.clone().into())]).set(1);
    }
    registry.register(metric, help, gauges);
}

/// Registers the last reports. A hundred are kept, so the number of label values is limited.
fn register_validations(registry: &mut Registry, last: &[ValidationGauges]) {
    let violations = Family::<Labels<2>, IntegerGauge>::default();
    for ValidationGauges { business_object, counts } in last {
        for (severity, count) in SEVERITIES.into_iter().zip(counts) {
            let name = business_object.clone().into();
            let labels = [("business_object", name), ("severity", severity.into())];
            violations.get_or_create(&labels).set(*count);
        }
    }
    registry.register(
        "validation_violations",
        "Violations that the last finished validation of a Business Object has counted",
        violations,
    );
}

fn register_targets(registry: &mut Registry, targets: &[Target]) {
    let waiting = Family::<Labels<1>, IntegerGauge>::default();
    let depth = Family::<Labels<1>, IntegerGauge>::default();
    let bytes = Family::<Labels<1>, IntegerGauge>::default();
    let oldest = Family::<Labels<1>, FloatGauge>::default();
    let blocked = Family::<Labels<1>, IntegerGauge>::default();
    let attempts = Family::<Labels<1>, IntegerGauge>::default();
    let last = Family::<Labels<1>, FloatGauge>::default();
    for target in targets {
        let label: Labels<1> = [("target", target.name.clone().into())];
        let age = u32::try_from(target.oldest_age_seconds.unwrap_or_default()).unwrap_or(u32::MAX);
        depth.get_or_create(&label).set(target.depth);
        bytes.get_or_create(&label).set(target.bytes);
        waiting.get_or_create(&label).set(target.waiting);
        oldest.get_or_create(&label).set(f64::from(age));
        blocked.get_or_create(&label).set(u64::from(target.blocked.is_some()));
        attempts.get_or_create(&label).set(target.attempts);
        last.get_or_create(&label).set(to_seconds(target.last_delivery.as_ref()));
    }
    registry.register(
        "target_failed_attempts",
        "Failed attempts to deliver the export at the head of the queue, since it got there or since the start",
        attempts,
    );
    registry.register(
        "target_last_delivery_timestamp_seconds",
        "When the last export was delivered (Unix time); 0 before the first",
        last,
    );
    registry.register(
        "target_waiting",
        "Business Objects whose automatic exports wait for spool space",
        waiting,
    );
    registry.register("target_queue_depth", "Exports in the queue", depth);
    registry.register("target_queue_bytes", "Bytes of the exports in the queue", bytes);
    registry.register("target_oldest_age_seconds", "Age of the oldest export in the queue", oldest);
    registry.register(
        "target_blocked",
        "1 while the export at the head of the queue cannot be delivered",
        blocked,
    );
}

fn register_sources(registry: &mut Registry, sources: &[Source]) {
    let connected = Family::<Labels<2>, IntegerGauge>::default();
    let blocked = Family::<Labels<2>, IntegerGauge>::default();
    let received = Family::<Labels<2>, Counter>::default();
    let acknowledged = Family::<Labels<2>, Counter>::default();
    let dead_letters = Family::<Labels<2>, Counter>::default();
    let waiting = Family::<Labels<2>, IntegerGauge>::default();
    let last = Family::<Labels<2>, FloatGauge>::default();
    let connections = sources
        .iter()
        .flat_map(|source| source.connections.iter().map(move |connection| (source, connection)));
    for (source, connection) in connections {
        let labels: Labels<2> = [
            ("source", source.name.clone().into()),
            ("business_object", connection.business_object.clone().into()),
        ];
        let is_connected = connection.connected_since.is_some();
        connected.get_or_create(&labels).set(is_connected.into());
        let is_blocked = is_connected && connection.error.is_some();
        blocked.get_or_create(&labels).set(is_blocked.into());
        received.get_or_create(&labels).inc_by(connection.received);
        acknowledged.get_or_create(&labels).inc_by(connection.acknowledged);
        dead_letters.get_or_create(&labels).inc_by(connection.dead_letters);
        waiting.get_or_create(&labels).set(connection.waiting_bytes);
        last.get_or_create(&labels).set(to_seconds(connection.last_message.as_ref()));
    }
    registry.register("source_connected", "1 while a source is connected to its broker", connected);
    registry.register(
        "source_blocked",
        "1 while a source is connected and its messages cannot be stored, or its broker refuses a subscription",
        blocked,
    );
    registry.register("source_messages", "Messages received, repeated ones included", received);
    registry.register(
        "source_acknowledged_messages",
        "Messages acknowledged, after they were stored",
        acknowledged,
    );
    registry.register("source_dead_letters", "Messages that became dead letters", dead_letters);
    registry.register("source_waiting_bytes", "Bytes of messages that wait to be stored", waiting);
    registry.register(
        "source_last_message_timestamp_seconds",
        "When the last message was received (Unix time); 0 before the first",
        last,
    );
}

fn register_webhooks(registry: &mut Registry, webhooks: &[Webhook]) {
    let waiting = Family::<Labels<1>, IntegerGauge>::default();
    let bytes = Family::<Labels<1>, IntegerGauge>::default();
    let blocked = Family::<Labels<1>, IntegerGauge>::default();
    let dropped = Family::<Labels<1>, Counter>::default();
    let delivered = Family::<Labels<1>, Counter>::default();
    let last = Family::<Labels<1>, FloatGauge>::default();
    for webhook in webhooks {
        let label: Labels<1> = [("webhook", webhook.name.clone().into())];
        waiting.get_or_create(&label).set(webhook.waiting);
        bytes.get_or_create(&label).set(webhook.bytes);
        blocked.get_or_create(&label).set(u64::from(webhook.blocked.is_some()));
        dropped.get_or_create(&label).inc_by(webhook.dropped);
        delivered.get_or_create(&label).inc_by(webhook.delivered);
        last.get_or_create(&label).set(to_seconds(webhook.last_delivery.as_ref()));
    }
    registry.register("webhook_waiting_events", "Events that wait for a webhook", waiting);
    registry.register("webhook_waiting_bytes", "Bytes of these events", bytes);
    registry.register(
        "webhook_blocked",
        "1 while the first event in the queue of a webhook cannot be delivered",
        blocked,
    );
    registry.register(
        "webhook_dropped_events",
        "Events dropped because the queue of a webhook was full",
        dropped,
    );
    registry.register("webhook_delivered_events", "Events that a webhook accepted", delivered);
    registry.register(
        "webhook_last_delivery_timestamp_seconds",
        "When a webhook accepted the last event (Unix time); 0 before the first",
        last,
    );
}

/// Returns a time (RFC 3339) in seconds since 1970, or 0 if there is none.
fn to_seconds(at: Option<&String>) -> f64 {
    let at = at.and_then(|at| at.parse::<Timestamp>().ok());
    at.map_or(0.0, |at| at.as_duration().as_secs_f64())
}
