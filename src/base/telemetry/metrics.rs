//! The metrics, in the two text formats that Prometheus reads.
//!
//! Metrics belong to the process, so functions give access to them. Counters are updated as events happen. The
//! current state is passed as [`Gauges`] at each scrape.
use parking_lot::Mutex;
use prometheus_client::encoding::text::{encode_eof, encode_registry};
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::registry::Registry;
use std::borrow::Cow;
use std::collections::HashSet;
use std::fmt::Write as _;
use std::sync::LazyLock;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::{Duration, Instant};

use super::counts::Counts;
pub use super::counts::{PeriodCounts, RecentCounts};
use super::gauges::{self, Labels};
pub use super::gauges::{Gauges, StatusPart, ValidationGauges};
use super::levels::LevelHistory;
pub use super::levels::{Levels, RecentLevels};

/// A text format for metrics.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    /// The text format of Prometheus, version 0.0.4.
    Text,
    /// `OpenMetrics` 1.0.
    OpenMetrics,
}

impl Format {
    /// Returns the media type, with its version.
    pub fn content_type(self) -> &'static str {
        match self {
            Self::Text => "text/plain; version=0.0.4; charset=utf-8",
            Self::OpenMetrics => "application/openmetrics-text; version=1.0.0; charset=utf-8",
        }
    }
}

/// The maximum number of Business Objects with a label of their own.
const MAX_LABELLED_NAMES: usize = 200;
/// The value for a certificate that does not expire.
const NO_EXPIRY: i64 = i64::MAX;

/// The methods with a label of their own. Clients can send any other word.
const METHODS: [&str; 7] = ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"];

static METRICS: LazyLock<Metrics> = LazyLock::new(|| Metrics::new().with_samples_of_alerts());

/// Counts an ingestion. `outcome` is `committed`, `validated`, `replayed` or `refused`; objects and bytes count only
/// if it is `committed`.
pub fn count_ingestion(outcome: &'static str, objects: u64, bytes: u64, seconds: f64) {
    METRICS.ingestions.get_or_create(&[("outcome", outcome.into())]).inc();
    METRICS.ingestion_seconds.observe(seconds);
    if outcome == "committed" {
        METRICS.counts.update(|count| {
            count.ingestions += 1;
            count.objects += objects;
        });
        METRICS.ingested_objects.inc_by(objects);
        METRICS.ingested_bytes.inc_by(bytes);
    }
}

/// Counts objects of a committed ingestion that did not change. [`count_ingestion`] counts them too.
pub fn count_unchanged_objects(objects: u64) {
    METRICS.counts.update(|count| count.unchanged += objects);
}

/// Counts objects that ingestions rejected and left out.
pub fn count_rejected_objects(objects: u64) {
    METRICS.rejected_objects.inc_by(objects);
}

/// Counts dead letters that a limit removed. `reason` is `evicted` or `expired`.
pub fn count_removed_dead_letters(reason: &'static str, letters: u64) {
    METRICS.removed_dead_letters.get_or_create(&[("reason", reason.into())]).inc_by(letters);
}

/// Counts a validation of everything that a Business Object has. `result` is `finished`, `failed` or `cancelled`.
pub fn count_validation(result: &'static str, objects: u64, seconds: f64) {
    METRICS.validations.get_or_create(&[("result", result.into())]).inc();
    METRICS.validated_objects.inc_by(objects);
    METRICS.validation_seconds.observe(seconds);
}

/// Counts an export that was rendered and queued.
pub fn count_queued_export(objects: u64, bytes: u64, seconds: f64) {
    METRICS.exports.inc();
    METRICS.exported_objects.inc_by(objects);
    METRICS.exported_bytes.inc_by(bytes);
    METRICS.export_seconds.observe(seconds);
}

/// Counts a queued export of a Business Object. Each name takes memory until the process ends, so those after the
/// first [`MAX_LABELLED_NAMES`] share one label.
pub fn count_business_object_export(name: &str, kind: &'static str, objects: u64) {
    let mut names = METRICS.names.lock();
    let is_known =
        names.contains(name) || (names.len() < MAX_LABELLED_NAMES && names.insert(name.to_owned()));
    drop(names);
    let name = if is_known { name.to_owned().into() } else { "other".into() };
    let label: Labels<2> = [("business_object", name), ("kind", kind.into())];
    METRICS.business_object_exports.get_or_create(&label).inc();
    METRICS.business_object_objects.get_or_create(&label).inc_by(objects);
}

/// Counts a delivery attempt that has ended.
pub fn count_delivery(target: &str, delivered: bool, bytes: u64, seconds: f64) {
    let outcome = if delivered { "delivered" } else { "failed" };
    let label: (&str, Cow<'static, str>) = ("target", target.to_owned().into());
    METRICS.deliveries.get_or_create(&[label.clone(), ("outcome", outcome.into())]).inc();
    METRICS.delivery_seconds.observe(seconds);
    METRICS.counts.update(|count| {
        count.delivered += u64::from(delivered);
        count.failed += u64::from(!delivered);
    });
    if delivered {
        METRICS.delivered_bytes.get_or_create(&[label]).inc_by(bytes);
    }
}

/// Counts an answered HTTP request. `route` is the pattern that matched, never the requested path, because each
/// label value takes memory until the process ends.
pub fn count_http_request(route: &str, method: &str, status: u16, seconds: f64) {
    let method = METHODS.into_iter().find(|known| *known == method).unwrap_or("other");
    let request: Labels<3> = [
        ("route", route.to_owned().into()),
        ("method", method.into()),
        ("status", status.to_string().into()),
    ];
    METRICS.http_requests.get_or_create(&request).inc();
    METRICS.http_seconds.observe(seconds);
}

/// Returns the counts of the last hour and the last day.
pub fn recent_counts() -> RecentCounts {
    METRICS.counts.list()
}

/// Records levels that were measured now.
pub fn record_levels(levels: Levels) {
    METRICS.levels.add(levels);
}

/// Returns the levels of the last hour and the last day.
pub fn recent_levels() -> RecentLevels {
    METRICS.levels.list()
}

/// Writes all counters, and `gauges`. The first call starts the uptime, so call [`start_counting`] before it.
pub fn encode_metrics(gauges: &Gauges, format: Format) -> String {
    let mut text = String::new();
    let now = gauges::build_registry(gauges, METRICS.started.elapsed());
    let written = encode_registry(&mut text, &METRICS.registry)
        .and_then(|()| encode_registry(&mut text, &now))
        .and_then(|()| encode_eof(&mut text));
    debug_assert!(written.is_ok(), "writing to a String cannot fail");
    match format {
        Format::Text => to_text_format(&text),
        Format::OpenMetrics => text,
    }
}

/// Converts `OpenMetrics` to the text format of Prometheus. The samples are the same, but the comments differ. The
/// text format describes a metric under the names of its samples, which end in `_total` for a counter and in `_info`
/// for an info. An info is a gauge, and there is neither `# UNIT` nor `# EOF`.
fn to_text_format(open_metrics: &str) -> String {
    let mut text = String::with_capacity(open_metrics.len());
    // `# HELP` comes before `# TYPE`, which determines the suffix.
    let mut help = "";
    for line in open_metrics.lines() {
        if let Some(described) = line.strip_prefix("# HELP ") {
            help = described;
        } else if let Some((name, kind)) =
            line.strip_prefix("# TYPE ").and_then(|typed| typed.rsplit_once(' '))
        {
            let (suffix, kind) = match kind {
                "counter" => ("_total", "counter"),
                "info" => ("_info", "gauge"),
                "unknown" => ("", "untyped"),
                other => ("", other),
            };
            let words = help.strip_prefix(name).unwrap_or_default();
            let _ = write!(text, "# HELP {name}{suffix}{words}\n# TYPE {name}{suffix} {kind}\n");
        } else if !line.starts_with('#') {
            text.push_str(line);
            text.push('\n');
        }
    }
    text
}

/// Returns the uptime of the process, which starts with the first call of this function, of [`start_counting`] or of
/// [`encode_metrics`].
pub fn uptime() -> Duration {
    METRICS.started.elapsed()
}

/// Sets the expiry of the certificate of HTTPS, in seconds since 1970; `None` if it does not expire.
pub fn set_certificate_expiry(at: Option<i64>) {
    METRICS.certificate.store(at.unwrap_or(NO_EXPIRY), Ordering::Relaxed);
}

/// Returns the expiry of the certificate of HTTPS; `None` without a certificate that expires.
pub fn certificate_expiry() -> Option<i64> {
    Some(METRICS.certificate.load(Ordering::Relaxed)).filter(|at| *at != NO_EXPIRY)
}

/// Starts counting, and with it the uptime.
pub fn start_counting() {
    LazyLock::force(&METRICS);
}

/// Creates a histogram with buckets from a millisecond to half a minute.
fn new_duration_histogram() -> Histogram {
    Histogram::new([
        0.001, 0.002, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0,
    ])
}

/// Creates a histogram with buckets from a tenth of a second to two hours.
fn new_run_histogram() -> Histogram {
    Histogram::new([0.1, 0.5, 1.0, 5.0, 10.0, 30.0, 60.0, 300.0, 1800.0, 7200.0])
}

/// Declares the metrics that are updated as events happen: field, type, constructor, name and help.
macro_rules! metrics {
    ($($field:ident: $type:ty = $create:path, $name:literal, $help:literal;)+) => {
        struct Metrics {
            started: Instant,
            counts: Counts,
            levels: LevelHistory,
            registry: Registry,
            /// The Business Objects with a label of their own.
            names: Mutex<HashSet<String>>,
            certificate: AtomicI64,
            $($field: $type,)+
        }

        impl Metrics {
            fn new() -> Self {
                let started = Instant::now();
                let mut registry = Registry::with_prefix("penstock");
                $(
                    let $field: $type = $create();
                    registry.register($name, $help, $field.clone());
                )+
                Self {
                    started,
                    counts: Counts::new(started),
                    levels: LevelHistory::new(started),
                    registry,
                    names: Mutex::default(),
                    certificate: AtomicI64::new(NO_EXPIRY),
                    $($field,)+
                }
            }
        }
    };
}

impl Metrics {
    /// Adds the samples that alerts compare, with the value 0. Prometheus does not count how a counter began: `increase`
    /// would miss everything until the first scrape that has the sample, after each start.
    fn with_samples_of_alerts(self) -> Self {
        drop(self.ingestions.get_or_create(&[("outcome", "refused".into())]));
        for reason in ["evicted", "expired"] {
            drop(self.removed_dead_letters.get_or_create(&[("reason", reason.into())]));
        }
        self
    }
}

metrics! {
    ingestions: Family<Labels<1>, Counter> = Family::default, "ingestions", "Ingestions, by outcome";
    ingested_objects: Counter = Counter::default, "ingested_objects", "Objects committed";
    ingested_bytes: Counter = Counter::default,
        "ingested_bytes", "Bytes of request bodies whose objects were committed";
    rejected_objects: Counter = Counter::default,
        "rejected_objects", "Objects that ingestions with onError=skip rejected";
    removed_dead_letters: Family<Labels<1>, Counter> = Family::default, "dead_letters_removed",
        "Dead letters removed by service.limits.rejected.bytes (evicted) and .age (expired)";
    ingestion_seconds: Histogram = new_duration_histogram,
        "ingestion_seconds", "Time from a request body to its commit";
    validations: Family<Labels<1>, Counter> = Family::default,
        "validation_runs", "Validations of everything that a Business Object has, by result";
    validated_objects: Counter = Counter::default,
        "validation_objects", "Members of Business Objects that these validations have read";
    validation_seconds: Histogram = new_run_histogram,
        "validation_seconds", "Duration of these validations";
    exports: Counter = Counter::default, "exports_queued", "Exports rendered and queued";
    exported_objects: Counter = Counter::default,
        "exported_objects", "Objects in the exports that were queued";
    exported_bytes: Counter = Counter::default,
        "exported_bytes", "Bytes of the exports that were queued";
    export_seconds: Histogram = new_duration_histogram,
        "export_render_seconds", "Time to render an export";
    business_object_exports: Family<Labels<2>, Counter> = Family::default, "business_object_exports",
        "Exports queued, one for each target, by Business Object and kind";
    business_object_objects: Family<Labels<2>, Counter> = Family::default,
        "business_object_exported_objects", "Objects in these exports";
    deliveries: Family<Labels<2>, Counter> = Family::default,
        "deliveries", "Delivery attempts, by target and outcome";
    delivered_bytes: Family<Labels<1>, Counter> = Family::default,
        "delivered_bytes", "Bytes delivered to targets";
    delivery_seconds: Histogram = new_duration_histogram,
        "delivery_seconds", "Duration of a delivery attempt";
    http_requests: Family<Labels<3>, Counter> = Family::default,
        "http_requests", "HTTP requests answered, by route, method and status";
    http_seconds: Histogram = new_duration_histogram,
        "http_seconds", "Time to answer an HTTP request";
}

#[cfg(test)]
mod tests {
    use super::*;
    use penstock_resources::export::Target;
    use penstock_resources::gateway::{
        BackupState, BackupStatus, DiskStatus, QueueStatus, Status, StoreStatus,
    };
    use penstock_resources::source::{ConnectionStatus, Source, SourceConnection};
    use penstock_store::SnapshotStats;

    fn sample_value(text: &str, line: &str) -> f64 {
        let found = text.lines().find_map(|l| l.strip_prefix(line));
        found.map_or(0.0, |rest| rest.trim().parse().unwrap())
    }

    fn status_with_quads(quads: u64) -> Status {
        Status { store: StoreStatus { quads, ..StoreStatus::default() }, ..Status::default() }
    }

    #[test]
    fn events_are_counted_and_gauges_are_shown() {
        let before = encode_metrics(&Gauges::default(), Format::OpenMetrics);
        count_ingestion("committed", 3, 100, 0.01);
        count_ingestion("refused", 7, 900, 0.01);
        count_delivery("plant", true, 50, 0.2);
        count_delivery("plant", false, 50, 0.2);
        count_http_request("/health/live", "BREW", 405, 0.001);
        let target = Target {
            name: "plant".to_owned(),
            kind: "directory",
            reachable: Some(false),
            blocked: Some("it is full".to_owned()),
            blocked_by: None,
            blocked_since: None,
            attempts: 3,
            next_attempt: None,
            paused: None,
            remark: None,
            warnings: Vec::new(),
            depth: 2,
            waiting: 1,
            bytes: 10,
            oldest: None,
            oldest_age_seconds: Some(2),
            last_delivery: Some("1970-01-01T00:00:12.500Z".to_owned()),
            answer: None,
        };
        let gauges = Gauges {
            status: Status { targets: vec![target], ..status_with_quads(42) },
            snapshots: SnapshotStats { count: 2, memory_bytes: 3, file_bytes: 4 },
            ..Gauges::default()
        };
        let after = encode_metrics(&gauges, Format::OpenMetrics);
        let grown = |line: &str| sample_value(&after, line) - sample_value(&before, line);
        let close = |a: f64, b: f64| (a - b).abs() < 1e-9;
        assert!(close(grown("penstock_ingestions_total{outcome=\"committed\"}"), 1.0));
        assert!(
            close(grown("penstock_ingested_objects_total"), 3.0),
            "refused objects do not count"
        );
        assert!(close(
            grown("penstock_deliveries_total{target=\"plant\",outcome=\"failed\"}"),
            1.0
        ));
        assert!(close(grown("penstock_delivered_bytes_total{target=\"plant\"}"), 50.0));
        assert!(after.contains("method=\"other\""), "{after}");
        assert!(after.contains("penstock_store_quads 42\n"), "{after}");
        assert!(after.contains("penstock_snapshots 2\n"), "{after}");
        assert!(after.contains("penstock_snapshot_bytes{place=\"memory\"} 3\n"), "{after}");
        assert!(after.contains("penstock_snapshot_bytes{place=\"file\"} 4\n"), "{after}");
        assert!(after.contains("penstock_target_blocked{target=\"plant\"} 1\n"), "{after}");
        let last = "penstock_target_last_delivery_timestamp_seconds{target=\"plant\"}";
        assert!(close(sample_value(&after, last), 12.5), "{after}");
        assert!(after.contains(&format!("version=\"{}\"", env!("CARGO_PKG_VERSION"))), "{after}");
        assert!(sample_value(&after, "process_resident_memory_bytes") > 1e6, "{after}");
        assert!(after.ends_with("# EOF\n") && after.matches("# EOF").count() == 1);
    }

    #[test]
    fn business_objects_whose_exports_fail_are_shown_until_they_succeed() {
        let encode = |failing| {
            let queue = QueueStatus { failing, ..QueueStatus::default() };
            let status = Status { queue, ..Status::default() };
            encode_metrics(&Gauges { status, ..Gauges::default() }, Format::Text)
        };
        let failing = "penstock_business_object_failing{business_object=\"Pumps\"} 1\n";
        let text = encode(vec!["Pumps".to_owned()]);
        assert!(text.contains(failing), "{text}");
        assert!(!encode(Vec::new()).contains("penstock_business_object_failing{"));
    }

    #[test]
    fn free_space_that_is_unknown_is_not_shown_as_none() {
        let encode = |free_bytes| {
            let disk = DiskStatus { free_bytes, reserve_bytes: 5, ..DiskStatus::default() };
            let status = Status { disk, ..Status::default() };
            encode_metrics(&Gauges { status, ..Gauges::default() }, Format::Text)
        };
        let text = encode(Some(7));
        assert!(text.contains("\npenstock_disk_free_bytes 7\n"), "{text}");
        assert!(text.contains("\npenstock_disk_reserve_bytes 5\n"), "{text}");
        assert!(!encode(None).contains("penstock_disk_free_bytes"));
    }

    #[test]
    fn what_alerts_compare_begins_at_zero() {
        let metrics = Metrics::new().with_samples_of_alerts();
        let mut text = String::new();
        encode_registry(&mut text, &metrics.registry).unwrap();
        for sample in [
            "ingestions_total{outcome=\"refused\"}",
            "dead_letters_removed_total{reason=\"evicted\"}",
            "dead_letters_removed_total{reason=\"expired\"}",
        ] {
            assert!(text.contains(&format!("\npenstock_{sample} 0\n")), "{sample} in {text}");
        }
    }

    #[test]
    fn a_source_that_is_connected_and_stores_nothing_is_blocked() {
        let encode = |since: Option<&str>, error: Option<&str>| {
            let connection = SourceConnection {
                business_object: "Pumps".to_owned(),
                business_object_id: None,
                state: ConnectionStatus::Connected,
                client_id: "edge-plant".to_owned(),
                protocol: Some("5"),
                connected_since: since.map(str::to_owned),
                messages_per_minute: 0,
                received: 0,
                acknowledged: 0,
                dead_letters: 0,
                dropped: 0,
                waiting_messages: 0,
                waiting_bytes: 0,
                last_message: None,
                error: error.map(str::to_owned),
                error_at: None,
            };
            let source = Source {
                name: "plant".to_owned(),
                r#type: "mqtt",
                url: "mqtt://broker.example:1883".to_owned(),
                account: None,
                enabled: true,
                subscriptions: Vec::new(),
                connections: vec![connection],
                warnings: Vec::new(),
            };
            let status = Status { sources: vec![source], ..Status::default() };
            encode_metrics(&Gauges { status, ..Gauges::default() }, Format::Text)
        };
        let (since, refused) = (Some("2026-03-01T12:00:00.000Z"), Some("not authorized"));
        for (since, error, connected, blocked) in
            [(since, None, 1, 0), (since, refused, 1, 1), (None, refused, 0, 0)]
        {
            let text = encode(since, error);
            for (name, value) in [("connected", connected), ("blocked", blocked)] {
                let labels = "{source=\"plant\",business_object=\"Pumps\"}";
                let sample = format!("\npenstock_source_{name}{labels} {value}\n");
                assert!(text.contains(&sample), "{sample} in {text}");
            }
        }
    }

    #[test]
    fn a_backup_is_measured_only_if_there_is_one() {
        let text = encode_metrics(&Gauges::default(), Format::Text);
        assert!(!text.contains("penstock_backup_"), "{text}");
        let backup = BackupStatus {
            state: BackupState::Running,
            interval_seconds: 10,
            lag_seconds: 90,
            lag_bytes: 1200,
            bytes: 5,
            restorable: true,
            sent_bytes: [7, 8],
            ..BackupStatus::default()
        };
        let encode = |backup: &BackupStatus| {
            let status = Status { backup: Some(backup.clone()), ..status_with_quads(1) };
            encode_metrics(&Gauges { status, ..Gauges::default() }, Format::Text)
        };
        let text = encode(&backup);
        for sample in [
            "interval_seconds 10",
            "lag_seconds 90",
            "lag_bytes 1200",
            "bytes 5",
            "restorable 1",
            "replaced 0",
            "sent_bytes_total{kind=\"segment\"} 7",
            "sent_bytes_total{kind=\"base\"} 8",
        ] {
            assert!(text.contains(&format!("\npenstock_backup_{sample}\n")), "{sample} in {text}");
        }
        // No alert about the backup of a gateway that has none of its own any more.
        let held = BackupStatus { is_held: true, restorable: false, ..backup.clone() };
        for (state, replaced) in [
            (BackupState::Replaced, 1),
            (BackupState::Copy, 0),
            // A copy that starts.
            (BackupState::Starting, 0),
            // The state in the data directory was lost.
            (BackupState::Blocked, 1),
        ] {
            let text = encode(&BackupStatus { state, ..held.clone() });
            assert!(text.contains(&format!("\npenstock_backup_replaced {replaced}\n")), "{text}");
            assert!(!text.contains("backup_restorable") && !text.contains("backup_lag"), "{text}");
        }
        // A link that is down replaces nothing.
        let text = encode(&BackupStatus { state: BackupState::Blocked, ..backup });
        assert!(text.contains("\npenstock_backup_replaced 0\n"), "{text}");
        assert!(text.contains("\npenstock_backup_restorable 1\n"), "{text}");
    }

    #[test]
    fn the_text_format_has_the_same_samples_under_their_own_names() {
        count_http_request("/health/live", "GET", 200, 0.001);
        let gauges = Gauges { status: status_with_quads(42), ..Gauges::default() };
        let [text, open, later] = [Format::Text, Format::OpenMetrics, Format::Text]
            .map(|format| encode_metrics(&gauges, format));
        for described in [
            "# HELP penstock_http_requests_total HTTP requests answered, by route, method and status.\n\
             # TYPE penstock_http_requests_total counter\npenstock_http_requests_total{",
            "# TYPE penstock_http_seconds histogram\npenstock_http_seconds_sum ",
            "# TYPE penstock_build_info gauge\npenstock_build_info{",
            "# TYPE penstock_store_quads gauge\npenstock_store_quads 42\n",
        ] {
            assert!(text.contains(described), "{described:?} in {text}");
        }
        // Other tests count at the same time, so compare the names and not the values. They may be the first to count something.
        let names = |text: &str| -> HashSet<String> {
            let samples = text.lines().filter(|line| !line.starts_with('#'));
            samples.filter_map(|line| line.split(['{', ' ']).next().map(str::to_owned)).collect()
        };
        assert!(names(&text).is_subset(&names(&open)) && names(&open).is_subset(&names(&later)));
        let typed: HashSet<_> = text
            .lines()
            .filter_map(|line| line.strip_prefix("# TYPE ")?.split_once(' '))
            .map(|(_, kind)| kind)
            .collect();
        assert_eq!(typed, HashSet::from(["counter", "gauge", "histogram"]));
        assert!(!text.contains("# EOF") && !text.contains("# UNIT"));
    }
}
