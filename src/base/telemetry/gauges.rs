//! The gauges: current values that are read at each scrape, in contrast to counters.
use crate::memory;
use penstock_store::SnapshotStats;
use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::info::Info;
use prometheus_client::registry::Registry;
use std::sync::atomic::{AtomicI64, AtomicU64};
use std::time::Duration;

/// The state at a scrape, which the HTTP layer collects.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Gauges {
    /// Quads stored.
    pub quads: u64,
    /// The sequence of the newest commit.
    pub sequence: u64,
    /// Bytes of the journal on disk.
    pub journal_bytes: u64,
    /// Bytes of the quad index on disk.
    pub index_bytes: u64,
    /// Bytes of index entries that have not been written by a checkpoint yet.
    pub write_back_bytes: u64,
    /// The snapshots of the store that are read.
    pub snapshots: SnapshotStats,
    /// Bytes free on the disk of the data directory.
    pub disk_free_bytes: u64,
    /// Whether free disk space is below `service.limits.disk-reserve`.
    pub disk_in_reserve: bool,
    /// Whether the store refuses commits because a write failed.
    pub poisoned: bool,
    /// Bytes that the process may use; 0 without a limit.
    pub memory_limit_bytes: u64,
    /// 0 with enough memory, 1 if it is low, 2 if it is short.
    pub memory_level: u8,
    /// Whether the clock is synchronised; `None` if that is unknown.
    pub clock_synchronised: Option<bool>,
    /// When the certificate of HTTPS expires, in seconds since 1970; `None` without a certificate that expires.
    pub certificate_expiry_seconds: Option<i64>,
    /// Bytes of exports that are not delivered yet, and their limit.
    pub spool_bytes_and_limit: (u64, u64),
    /// Dead letters, and their bytes.
    pub dead_letters_and_bytes: (u64, u64),
    /// Open changes under review, and the bytes of all changes.
    pub changes_and_bytes: (u64, u64),
    /// Exports that an operator parked.
    pub parked: u64,
    /// The names of the Business Objects whose automatic exports wait for spool space.
    pub waiting_business_objects: Vec<String>,
    /// The last finished validation of each Business Object.
    pub last_validations: Vec<ValidationGauges>,
    /// The queue of each target.
    pub targets: Vec<TargetGauges>,
    /// The connections of the sources.
    pub sources: Vec<SourceGauges>,
    /// The queues of the webhooks.
    pub webhooks: Vec<WebhookGauges>,
    /// The definitions from files.
    pub definitions: DefinitionGauges,
}

/// The definitions from files.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct DefinitionGauges {
    /// The definitions that are in files.
    pub managed: u64,
    /// The ones of them that were changed or deleted since their files were applied.
    pub drifted: u64,
    /// The errors in the files of `service.definitions.dir`.
    pub errors: u64,
}

/// The queue of a webhook.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct WebhookGauges {
    /// The name of the webhook.
    pub name: String,
    /// The events that wait.
    pub waiting: u64,
    /// Their bytes.
    pub waiting_bytes: u64,
    /// Whether the first one cannot be delivered.
    pub blocked: bool,
    /// The events dropped because the queue was full.
    pub dropped: u64,
    /// The events delivered.
    pub delivered: u64,
    /// When the last event was delivered, in seconds since 1970; 0 before the first.
    pub last_delivery_seconds: f64,
}

/// The connection of a source for one Business Object. The counts begin at the start.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct SourceGauges {
    /// The name of the source.
    pub source: String,
    /// The Business Object as the settings name it.
    pub business_object: String,
    /// Whether it is connected.
    pub connected: bool,
    /// The messages that were received.
    pub received: u64,
    /// The messages that were acknowledged.
    pub acknowledged: u64,
    /// The messages that became dead letters.
    pub dead_letters: u64,
    /// The bytes of messages that wait to be stored.
    pub waiting_bytes: u64,
    /// When the last message was received, in seconds since 1970; 0 before the first.
    pub last_message_seconds: f64,
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

/// The queue of one target.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct TargetGauges {
    /// The bucketName.
    pub name: String,
    /// Exports in the queue.
    pub depth: u64,
    /// Business Objects whose automatic exports wait for spool space.
    pub waiting: u64,
    /// Bytes of the exports in the queue.
    pub bytes: u64,
    /// The age of the oldest export in the queue; 0 if the queue is empty.
    pub oldest_age_seconds: f64,
    /// Whether the export at the head of the queue cannot be delivered.
    pub blocked: bool,
    /// Failed attempts to deliver the export at the head of the queue.
    pub attempts: u64,
    /// When the last export was delivered, in seconds since 1970; 0 before the first.
    pub last_delivery_seconds: f64,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct TargetLabel {
    target: String,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct SourceLabels {
    source: String,
    business_object: String,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct WebhookLabel {
    webhook: String,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct BusinessObjectLabel {
    business_object: String,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct ViolationLabels {
    business_object: String,
    severity: &'static str,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct PlaceLabel {
    place: &'static str,
}

type IntegerGauge = Gauge<u64, AtomicU64>;
type FloatGauge = Gauge<f64, AtomicU64>;

/// Creates a registry of the current state for one scrape.
pub(super) fn build_registry(gauges: &Gauges, uptime: Duration) -> Registry {
    let mut registry = Registry::default();
    let own = registry.sub_registry_with_prefix("penstock");
    let mut whole = |name: &str, help: &str, value: u64| {
        let gauge = IntegerGauge::default();
        gauge.set(value);
        own.register(name, help, gauge);
    };
    whole("store_quads", "Quads stored", gauges.quads);
    whole("store_sequence", "The sequence of the newest commit", gauges.sequence);
    whole("store_journal_bytes", "Bytes of the journal on disk", gauges.journal_bytes);
    whole("store_index_bytes", "Bytes of the quad index on disk", gauges.index_bytes);
    whole(
        "store_write_back_bytes",
        "Bytes of index entries that have not been written by a checkpoint yet",
        gauges.write_back_bytes,
    );
    whole(
        "snapshots",
        "Snapshots of the store that exports, dumps and queries are reading",
        gauges.snapshots.count,
    );
    whole(
        "disk_free_bytes",
        "Bytes free on the disk of the data directory",
        gauges.disk_free_bytes,
    );
    whole(
        "disk_in_reserve",
        "1 while free disk space is below service.limits.disk-reserve and ingestions are refused",
        gauges.disk_in_reserve.into(),
    );
    whole(
        "store_poisoned",
        "1 while the store refuses commits because a write to the disk failed",
        gauges.poisoned.into(),
    );
    whole(
        "spool_bytes",
        "Bytes of exports that are not delivered yet",
        gauges.spool_bytes_and_limit.0,
    );
    whole(
        "spool_limit_bytes",
        "Bytes of undelivered exports at which no more exports are created (service.export.spool)",
        gauges.spool_bytes_and_limit.1,
    );
    whole("dead_letters", "Dead letters that wait for a retry", gauges.dead_letters_and_bytes.0);
    whole("dead_letters_bytes", "Bytes of these dead letters", gauges.dead_letters_and_bytes.1);
    whole(
        "changes_open",
        "Changes under review that are neither approved nor rejected nor withdrawn",
        gauges.changes_and_bytes.0,
    );
    whole(
        "changes_bytes",
        "Bytes of all stored changes, closed ones included",
        gauges.changes_and_bytes.1,
    );
    whole("exports_parked", "Exports that an operator parked", gauges.parked);
    whole("definitions_managed", "Definitions that are in files", gauges.definitions.managed);
    whole(
        "definitions_drifted",
        "Definitions that were changed or deleted since their files were applied",
        gauges.definitions.drifted,
    );
    whole(
        "definitions_errors",
        "Errors because of which the files of service.definitions.dir were not applied",
        gauges.definitions.errors,
    );
    whole(
        "memory_limit_bytes",
        "Bytes of memory that the process may use; 0 without a limit",
        gauges.memory_limit_bytes,
    );
    whole(
        "memory_level",
        "0 with enough memory, 1 if it is low, 2 if it is short and request bodies are refused",
        gauges.memory_level.into(),
    );
    if let Some(synchronised) = gauges.clock_synchronised {
        whole(
            "clock_synchronised",
            "1 while the clock is synchronised with a time server",
            synchronised.into(),
        );
    }
    if let Some(seconds) = gauges.certificate_expiry_seconds {
        let expiry = Gauge::<i64, AtomicI64>::default();
        expiry.set(seconds);
        own.register(
            "certificate_expiry_timestamp_seconds",
            "When the certificate of HTTPS expires (Unix time)",
            expiry,
        );
    }
    register_snapshot_bytes(own, gauges.snapshots);
    register_waiting(own, &gauges.waiting_business_objects);
    register_validations(own, &gauges.last_validations);
    register_targets(own, &gauges.targets);
    register_sources(own, &gauges.sources);
    register_webhooks(own, &gauges.webhooks);
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

fn register_snapshot_bytes(registry: &mut Registry, snapshots: SnapshotStats) {
    let bytes = Family::<PlaceLabel, IntegerGauge>::default();
    bytes.get_or_create(&PlaceLabel { place: "memory" }).set(snapshots.memory_bytes);
    bytes.get_or_create(&PlaceLabel { place: "file" }).set(snapshots.file_bytes);
    registry.register(
        "snapshot_bytes",
        "Bytes that these snapshots keep of what commits changed meanwhile",
        bytes,
    );
}

/// Registers one label value for each Business Object that waits now. Admins define Business Objects, so the number
/// of label values is limited.
fn register_waiting(registry: &mut Registry, names: &[String]) {
    let waiting = Family::<BusinessObjectLabel, IntegerGauge>::default();
    for name in names {
        waiting.get_or_create(&BusinessObjectLabel { business_object: name.clone() }).set(1);
    }
    registry.register(
        "business_object_waiting",
        "1 while the automatic exports of a Business Object wait for spool space",
        waiting,
    );
}

/// Registers the last reports. A hundred are kept, so the number of label values is limited.
fn register_validations(registry: &mut Registry, last: &[ValidationGauges]) {
    let violations = Family::<ViolationLabels, IntegerGauge>::default();
    for ValidationGauges { business_object, counts } in last {
        for (severity, count) in SEVERITIES.into_iter().zip(counts) {
            let business_object = business_object.clone();
            let labels = ViolationLabels { business_object, severity };
            violations.get_or_create(&labels).set(*count);
        }
    }
    registry.register(
        "validation_violations",
        "Violations that the last finished validation of a Business Object has counted",
        violations,
    );
}

fn register_targets(registry: &mut Registry, targets: &[TargetGauges]) {
    let waiting = Family::<TargetLabel, IntegerGauge>::default();
    let depth = Family::<TargetLabel, IntegerGauge>::default();
    let bytes = Family::<TargetLabel, IntegerGauge>::default();
    let oldest = Family::<TargetLabel, FloatGauge>::default();
    let blocked = Family::<TargetLabel, IntegerGauge>::default();
    let attempts = Family::<TargetLabel, IntegerGauge>::default();
    let last = Family::<TargetLabel, FloatGauge>::default();
    for target in targets {
        let label = TargetLabel { target: target.name.clone() };
        depth.get_or_create(&label).set(target.depth);
        bytes.get_or_create(&label).set(target.bytes);
        waiting.get_or_create(&label).set(target.waiting);
        oldest.get_or_create(&label).set(target.oldest_age_seconds);
        blocked.get_or_create(&label).set(u64::from(target.blocked));
        attempts.get_or_create(&label).set(target.attempts);
        last.get_or_create(&label).set(target.last_delivery_seconds);
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

fn register_sources(registry: &mut Registry, sources: &[SourceGauges]) {
    let connected = Family::<SourceLabels, IntegerGauge>::default();
    let received = Family::<SourceLabels, Counter>::default();
    let acknowledged = Family::<SourceLabels, Counter>::default();
    let dead_letters = Family::<SourceLabels, Counter>::default();
    let waiting = Family::<SourceLabels, IntegerGauge>::default();
    let last = Family::<SourceLabels, FloatGauge>::default();
    for source in sources {
        let labels = SourceLabels {
            source: source.source.clone(),
            business_object: source.business_object.clone(),
        };
        connected.get_or_create(&labels).set(u64::from(source.connected));
        received.get_or_create(&labels).inc_by(source.received);
        acknowledged.get_or_create(&labels).inc_by(source.acknowledged);
        dead_letters.get_or_create(&labels).inc_by(source.dead_letters);
        waiting.get_or_create(&labels).set(source.waiting_bytes);
        last.get_or_create(&labels).set(source.last_message_seconds);
    }
    registry.register("source_connected", "1 while a source is connected to its broker", connected);
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

fn register_webhooks(registry: &mut Registry, webhooks: &[WebhookGauges]) {
    let waiting = Family::<WebhookLabel, IntegerGauge>::default();
    let bytes = Family::<WebhookLabel, IntegerGauge>::default();
    let blocked = Family::<WebhookLabel, IntegerGauge>::default();
    let dropped = Family::<WebhookLabel, Counter>::default();
    let delivered = Family::<WebhookLabel, Counter>::default();
    let last = Family::<WebhookLabel, FloatGauge>::default();
    for webhook in webhooks {
        let label = WebhookLabel { webhook: webhook.name.clone() };
        waiting.get_or_create(&label).set(webhook.waiting);
        bytes.get_or_create(&label).set(webhook.waiting_bytes);
        blocked.get_or_create(&label).set(u64::from(webhook.blocked));
        dropped.get_or_create(&label).inc_by(webhook.dropped);
        delivered.get_or_create(&label).inc_by(webhook.delivered);
        last.get_or_create(&label).set(webhook.last_delivery_seconds);
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
