//! The table of all settings: each is declared here with its field, name, type, range, default and meaning. Reading,
//! validation, the documentation, and suggestions for unknown names use it.
use super::broker_url::BrokerUrl;
use super::graph_template::GraphTemplate;
use super::key_template::KeyTemplate;
use super::kind::{
    WEBHOOK_URL, checked, checked_list, choice, duration, endpoint, event_types, flag, list,
    parsed, parsed_list, pem, size, some_of, template, text, url, whole,
};
use super::section::{Part, Scope, Section, Subsection, Unset, built, each, listed, sections};
use super::setting::Setting;
use super::types::{
    Backup, ClientAuthentication, Compression, DeliveryWindow, EffectiveValue, ExportFormat,
    ForwardHeaders, SparqlProtocol, Target, Tls,
};
use super::valid::{
    is_age_key, is_email_domain, is_filter, is_gateway_id, is_origin, is_prefix, is_profile,
    is_redirect_uri, is_registration, is_tenant, is_url, parse_address, parse_network,
};
use super::webhooks::{WebhookSecret, is_webhook_url};
use super::window::Window;
use penstock_base::Role;
use penstock_base::bucket_name::{BUCKET_NAME_RULE, check_bucket_name};
use penstock_base::events::EventKind;
use penstock_base::telemetry::LogFormat;
use penstock_base::time_zone::Zone;
use penstock_base::topic;
use std::collections::BTreeMap;
use std::net::IpAddr;
use std::path::PathBuf;
use std::sync::LazyLock;
use std::time::Duration;

const KIB: u64 = 1 << 10;
const MIB: u64 = 1 << 20;
const GIB: u64 = 1 << 30;
const TIB: u64 = 1 << 40;
/// In milliseconds, as are `MINUTE_MS` and `DAY_MS`.
const SECOND_MS: u64 = 1000;
const MINUTE_MS: u64 = 60_000;
const DAY_MS: u64 = 24 * 60 * MINUTE_MS;

/// The algorithms with a public key. With a shared secret, everyone who can check a token could also create one.
const ALGORITHMS: &[&str] =
    &["RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "EdDSA"];
const INCOMPLETE_SUBSCRIPTION: &str =
    "it is missing: a subscription needs topic and business-object";
const INCOMPLETE_WEBHOOK: &str = "it is missing: a webhook needs url, secret and events";

/// All settings, in the order of the documentation.
pub static SETTINGS: LazyLock<Vec<Setting>> = LazyLock::new(|| {
    let mut table = Vec::new();
    Settings::list("", &mut table);
    table
});

/// The target for every bucketName without an entry. Its settings are those of each target, see `targets`.
pub(super) struct DefaultTarget;

/// Finds the setting of this exact name.
pub(super) fn find_setting(name: &str) -> Option<&'static Setting> {
    SETTINGS.iter().find(|setting| setting.name == name)
}

sections! {
    /// All settings.
    #[derive(Debug, Clone, PartialEq, Eq)]
    pub struct Settings {
        profiles: Vec<String> = "profiles.active" => checked_list("names of profiles (letters, digits, - and _) with commas", is_profile).or_empty(), "The active profiles. The gateway also reads the `application-<profile>.*` files of each; later profiles override earlier ones.";
        server: Server = "server." => Subsection, "`server.*`";
        base_url: Option<String> = "service.base-url" => url(), "The public URL of the service. New namespaces get `<service.base-url>/id/<Namespace>/` as their URI base.";
        data_dir: PathBuf = "service.data-dir" => text().default("/var/lib/penstock"), "The directory for all data. Defaults to `$STATE_DIRECTORY`, which systemd sets, if that is present. The package's unit lets the service write nowhere else: for another directory, run `systemctl edit penstock`, add `[Service]` and `ReadWritePaths=/the/directory`, and give the directory to the user `penstock`.";
        value_index: bool = "service.store.value-index" => choice(&[("on", true), ("off", false)]).default("on"), "Whether values of fields are indexed. With `on`, SPARQL, GraphQL, the API and the pages find objects by their values, and list the first ones in the order of a field, without reading all of them. With `off`, answers are the same, and the index takes less disk space and less writing. A change rebuilds the index at the next start.";
        definitions_dir: Option<PathBuf> = "service.definitions.dir" => text(), "A folder with definitions of namespaces, shapes graphs, groups and Business Objects, in YAML or JSON, applied at the start and at SIGHUP. They are read-only in the API and the interface.";
        gateway_id: Option<String> = "service.gateway-id" => checked("1 to 64 of A-Z a-z 0-9 . _ -, but not . or .., which mean folders in paths", is_gateway_id), "The name of this gateway in export metadata and in default URI bases. Created at the first start, and kept.";
        trusted_proxies: Vec<(IpAddr, u8)> = "service.trusted-proxies" => parsed_list("IP addresses or networks, such as 10.0.0.0/8, with commas", parse_network).or_empty(), "Addresses or networks (`10.0.0.0/8`) of the proxies whose forwarded headers are trusted.";
        auto_create_namespaces: bool = "service.namespace.auto-create" => flag().default("true"), "Whether to create undefined namespaces that a mapping names.";
        limits: Limits = "service.limits." => Subsection, "`service.limits.*`";
        sparql: Sparql = "service.sparql." => Subsection, "`service.sparql.*`";
        review: ReviewSettings = "service.review." => Subsection, "`service.review.*`";
        events: EventLimits = "service.events." => Subsection, "`service.events.*`";
        targets: Targets = "service.export." => Subsection, "`service.export.*`";
        backup: Option<Backup> = "service.backup." => built::<BackupSettings>(), "`service.backup.*`; without a target there is no continuous backup.";
        sources: BTreeMap<String, Source> = "service.sources.<source>." => each::<Source>(), "`service.sources.<name>.*`, by name.";
        webhooks: BTreeMap<String, Webhook> = "service.webhooks.<webhook>." => each::<Webhook>(), "`service.webhooks.<name>.*`, by name.";
        log_level: String = "service.log.level" => checked("error, warn, info, debug, trace or off, also per part, such as info,penstock_http=debug", is_filter).default("info"), "The log level: `error`, `warn`, `info`, `debug`, `trace` or `off`, also for each part of the program (`info,penstock_http=debug`).";
        log_format: LogFormat = "service.log.format" => choice(&[("text", LogFormat::Text), ("json", LogFormat::Json)]).default("text"), "The format of the log: readable lines, or one JSON object per line.";
        security: Security = "" => built::<Security>(), "`security`, `service.security.*`, `framework.security.*`: authentication and authorization.";
        warnings: Vec<String> = "" => Unset, "The warnings about the configuration, a sentence each.";
        effective_values: Vec<EffectiveValue> = "" => Unset, "Every effective value, by name, with secrets masked.";
    }

    /// `server.*`
    #[derive(Debug, Clone, PartialEq, Eq)]
    pub struct Server {
        address: IpAddr = "address" => parsed("an IP address, such as 127.0.0.1 or ::1", parse_address).default("127.0.0.1"), "The IP address to listen on. Beyond loopback it needs HTTPS (`server.ssl.*`), or `server.insecure-http`. A socket passed by systemd takes precedence.";
        port: u16 = "port" => whole(0, 65_535).default("8080"), "The TCP port to listen on. With 0 the system chooses one, and the log shows it.";
        forward_headers: ForwardHeaders = "forward-headers-strategy" => choice(&[("none", ForwardHeaders::None), ("native", ForwardHeaders::Trusted), ("framework", ForwardHeaders::Trusted)]).default("none"), "Whether the gateway uses `Forwarded` and `X-Forwarded-*` of trusted proxies; `native` and `framework` are the same.";
        cors_allowed_origins: Vec<String> = "cors.allowed-origins" => checked_list("origins, such as https://app.example:8443, or *, with commas", is_origin).or_empty(), "Origins whose pages may call the API (CORS); `*` is any.";
        insecure_http: bool = "insecure-http" => flag().default("false"), "Allows plain HTTP beyond loopback. Passwords and keys then cross the network unencrypted, so use it only in a private network behind a proxy that terminates HTTPS.";
        tls: Option<Tls> = "ssl." => built::<TlsSettings>(), "`server.ssl.*`; without it the gateway serves plain HTTP.";
        connections: usize = "connections" => whole(1, 65_535).default("512"), "The maximum number of concurrent connections. Further ones wait in the system's queue.";
        connections_per_address: usize = "connections-per-address" => whole(1, 65_535).default("128"), "The maximum number of concurrent connections from one address (IPv6: from one /64). Further ones are closed. `service.trusted-proxies` are not counted.";
        hsts_max_age: Duration = "hsts.max-age" => duration(0, 3650 * DAY_MS).default("365d"), "How long browsers that used HTTPS refuse plain HTTP to this host (`Strict-Transport-Security`, RFC 6797). It applies to every port of the host. The header is not sent for an IP address, for `localhost`, or with `server.ssl.self-signed`, unless a trusted proxy terminates HTTPS. `0s` makes browsers forget it.";
    }

    /// `server.ssl.*`
    pub(super) struct TlsSettings {
        certificate: Option<String> = "certificate" => pem(), "The certificate chain for HTTPS, the server's certificate first. Files are read again at SIGHUP.";
        private_key: Option<String> = "certificate-private-key" => pem().secret(), "The certificate's private key.";
        is_self_signed: bool = "self-signed" => flag().default("false"), "HTTPS with a self-signed certificate, created at the first start and kept in `<data-dir>/tls`. Not together with `server.ssl.certificate`.";
        client_auth: &'static str = "client-auth" => choice(&[("none", "none"), ("want", "want"), ("need", "need")]).default("none"), "Whether clients are asked for a certificate: `need` refuses clients without a valid one, `want` only clients with an invalid one. A client certificate never replaces the credentials of a request.";
        client_authorities: Option<String> = "trust-certificate" => pem(), "The certificates of the authorities that issue client certificates.";
    }

    /// `service.limits.*`
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    pub struct Limits {
        body_bytes: u64 = "body" => size(KIB, GIB).default("16MiB"), "The maximum size of a request body, or of a line of NDJSON or a record of CSV. Less if memory is small, see `service.limits.memory`.";
        nesting: usize = "nesting" => whole(1, 1000).default("128"), "The maximum nesting of JSON in a request.";
        objects: usize = "objects" => whole(1, 1_000_000).default("10000"), "The maximum number of objects in one JSON request.";
        values: usize = "values" => whole(1, 100_000_000).default("150000"), "The maximum number of JSON values in one JSON request, or in a chunk of NDJSON or CSV. Each number, string, array and object counts, and each cell. It bounds the memory of a request, at up to a kilobyte a value. Less if memory is small.";
        in_flight_bytes: u64 = "in-flight" => size(KIB, TIB).default("64MiB"), "The maximum size of all concurrent request bodies together, and of all answers that wait to be read. Of the answers, one account or key may have half. Requests beyond it get 503. At least `service.limits.body`. Less if memory is small.";
        memory_bytes: Option<u64> = "memory" => size(MIB, TIB), "The memory limit of the process. From 75 % on, changes waiting in memory are written to the index. From 90 % on, a body of more than 1 MiB gets 503, and smaller ones are taken one at a time. Defaults to the limit of the control group (systemd's `MemoryHigh=` and `MemoryMax=`), otherwise none. What requests may hold is derived from it: a sixteenth for all bodies at once (at least 8 MiB), as much for the messages of all sources, half of that for one body, and a JSON value for each 3 KiB (at least 10,000). `GET /api/v1/limits` returns the results.";
        disk_reserve_bytes: u64 = "disk-reserve" => size(0, TIB).default("64MiB"), "Disk space in `service.data-dir` that ingestions and definitions leave free. If less is free they get 507; reading, `DELETE`, exports and compaction continue. The default is enough for a checkpoint and for deletions. A compaction takes about as much as the journal's base, so set more for large stores. 0 keeps nothing free.";
        idempotency_keys: usize = "idempotency-keys" => whole(0, 1_000_000).default("1000"), "The maximum number of requests with an `Idempotency-Key` whose answers are kept, each for 24 h. Beyond it the oldest are dropped. A stream is one request.";
        idempotency_bytes: u64 = "idempotency-bytes" => size(0, TIB).default("16MiB"), "The maximum total size of those answers. Beyond it the oldest are dropped. The newest is always kept.";
        history: usize = "history" => whole(0, 10_000_000).default("10000"), "The maximum number of records of ingestions that are kept, and of records of delivered exports.";
        rejected_bytes: u64 = "rejected.bytes" => size(0, TIB).default("64MiB"), "The maximum size of all dead letters: objects that ingestions rejected, kept until somebody retries or deletes them. Beyond it, the account with the most bytes loses the oldest of its API key with the most, so a flood from one account or key never evicts those of another. A lower limit takes effect at the next start. 0 keeps none, and removes those that are stored.";
        rejected_age: Duration = "rejected.age" => duration(MINUTE_MS, 3650 * DAY_MS).default("30d"), "How long dead letters are kept.";
        source_bytes: u64 = "sources" => size(MIB, TIB).default("8MiB"), "The maximum size of the messages that all sources together hold until they are stored. Beyond it the gateway stops reading from the brokers. Of a message that is longer than about half of it, or a third with many sources, only the first 64 KiB are kept, as a dead letter. Less if memory is small, see `service.limits.memory`.";
        webhook_events: u64 = "webhooks.events" => whole(8, 1_000_000).default("10000"), "The maximum number of events that wait for one webhook. Further ones are dropped until three quarters are left; then the webhook gets `penstock.events.lost` with their number.";
        webhook_bytes: u64 = "webhooks.bytes" => size(64 * KIB, TIB).default("16MiB"), "The maximum size of these events.";
        changes: u64 = "changes" => whole(1, 1_000_000).default("20000"), "The maximum number of open changes under review. One account may have a tenth of them. Further ones get 429.";
        change_bytes: u64 = "change-bytes" => size(MIB, TIB).default("256MiB"), "The maximum size of all changes under review, with their requests and differences, compressed. One account may have a tenth of it. Past it, the oldest changes that the account has withdrawn are removed. If that is not enough, new ones get 429, and a change that alone exceeds the share gets 413.";
        snapshot_memory_bytes: usize = "snapshot.memory" => size(MIB, TIB).default("8MiB"), "The maximum memory for snapshots. A snapshot is the state after one commit, which an export, a dump or a query reads. While it is read, the earlier content of what commits change is kept in memory, and beyond this limit in files.";
        snapshot_disk_bytes: u64 = "snapshot.disk" => size(0, TIB).default("256MiB"), "The maximum size of these files. They also leave 16 MiB of disk space free above `service.limits.disk-reserve`. Beyond it the oldest snapshot ends: a query gets 503, and an export or a dump continues with the newest state and a warning.";
        audit: usize = "audit" => whole(0, 10_000_000).default("10000"), "The maximum number of events in the audit trail. Five kinds are each guaranteed a fifth: changes of accounts and API keys, what Contributors do (with saved views), other changes, sign-ins, and refusals. Beyond it the oldest are deleted.";
        graphql: GraphqlLimits = "graphql." => Subsection, "`graphql.*`: the limits of one GraphQL request.";
        shapes: ShapesLimits = "shapes." => Subsection, "`shapes.*`: the limits of one validation.";
        sparql: SparqlLimits = "sparql." => Subsection, "`sparql.*`: the limits of one SPARQL request.";
    }

    /// `service.limits.graphql.*`
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    pub struct GraphqlLimits {
        depth: usize = "depth" => whole(1, 50).default("20"), "The maximum levels of fields of a GraphQL query. Introspection may always have 20.";
        complexity: u64 = "complexity" => whole(1, 100_000_000).default("100000"), "The maximum number of fields that a GraphQL query may ask for, computed before it is executed. A field below a page counts once for each item of the page (`first`), and one below a list 5 times.";
        rows: u64 = "rows" => whole(1, 10_000_000).default("10000"), "The maximum number of objects that a GraphQL query may ask for. The objects of its pages are checked before it is executed; during execution, nested ones count too.";
        scan: u64 = "scan" => whole(1, 1_000_000_000).default("1000000"), "The maximum number of objects that a GraphQL query may read if no index answers it. Beyond it the query fails; its list is never cut short.";
        time: Duration = "time" => duration(100, 60 * MINUTE_MS).default("10s"), "The time limit of a GraphQL query. It also waits this long for one of 4 slots.";
        answer: u64 = "answer" => size(KIB, GIB).default("4MiB"), "The approximate maximum size of an answer to a GraphQL query.";
        fields: usize = "fields" => whole(0, 1_000_000).default("20000"), "The maximum number of fields of all Business Objects in the GraphQL schema, including nested ones. The newest Business Objects that do not fit have no type there. Introspection and the SDL need about 10 KB of memory a field, and get 503 if less is available. Queries need only the types that they name.";
    }

    /// `service.limits.shapes.*`
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    pub struct ShapesLimits {
        time: Duration = "time" => duration(100, 60 * MINUTE_MS).default("10s"), "The time limit for validating the objects of an ingestion with the shapes of a Business Object. Other commits wait for it. Also the limit of each batch when everything stored is validated.";
        memory: u64 = "memory" => size(MIB, TIB).default("32MiB"), "The maximum memory of a validation, or of each batch when everything stored is validated.";
    }

    /// `service.limits.sparql.*`
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    pub struct SparqlLimits {
        time: Duration = "time" => duration(100, 60 * MINUTE_MS).default("10s"), "The time limit of a SPARQL query, including the time that its client takes to read the answer. Waiting for one of 2 slots does not count.";
        memory: u64 = "memory" => size(MIB, TIB).default("32MiB"), "The maximum memory of a SPARQL query, for its joins, groups and sorts. Two run at once.";
        rows: u64 = "rows" => whole(1, 1_000_000_000).default("100000"), "The maximum number of rows or triples in the answer to a SPARQL query.";
        update: u64 = "update" => whole(1, 10_000_000).default("100000"), "The maximum number of quads that a SPARQL update, or a write of a graph, inserts and removes in its one commit. It bounds the memory of a request.";
    }

    /// `service.sparql.*`
    #[derive(Debug, Clone, PartialEq, Eq, Default)]
    pub struct Sparql {
        allows_updates: bool = "update" => flag().default("false"), "Whether an Admin may change the graph with `POST /sparql/update` and `PUT`, `POST` and `DELETE` of `/sparql/graphs`. Otherwise these get 403.";
        services: Vec<String> = "services" => checked_list("http or https URLs without user, query and fragment, such as https://data.example/sparql, with commas", is_url).or_empty(), "The endpoints that `SERVICE` in a SPARQL query may name. Each is compared with the IRI in the query, character by character. Without it, `SERVICE` is refused.";
    }

    /// `service.review.*`
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    pub struct ReviewSettings {
        history: Duration = "history" => duration(MINUTE_MS, 3650 * DAY_MS).default("90d"), "How long changes are kept after they were approved, rejected or withdrawn.";
        allows_self_approval: bool = "self-approval" => flag().default("false"), "Whether the author of a change may approve it. By default another account must approve.";
    }

    /// `service.events.*`
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    pub struct EventLimits {
        depth: usize = "depth" => whole(1, 100_000).default("1000"), "The maximum number of events kept in memory, at most 4 MiB, for listeners that reconnect. A listener that missed more is notified.";
        listeners: usize = "listeners" => whole(0, 256).default("32"), "The maximum number of concurrent listeners to events. One account may have half of them. Further ones get 503.";
    }

    /// `service.export.*`: the targets of bucketNames.
    #[derive(Debug, Clone, PartialEq, Eq, Default)]
    pub struct Targets {
        history_bytes: u64 = "history" => size(0, TIB).default("64MiB"), "The maximum size of all delivered files that are kept for reading and replay. Beyond it the oldest are deleted.";
        spool_bytes: u64 = "spool" => size(0, TIB).default("256MiB"), "The maximum disk space of all files that wait for their targets. Each file takes whole blocks of 4 KiB, and counts once for each target. Beyond it, automatic exports wait and include later changes, and a push gets 507. The export that reaches the limit is completed.";
        has_extended_metadata: bool = "metadata" => choice(&[("standard", false), ("extended", true)]).default("standard"), "With `extended`, `metadata` of an export also has `kind`, `sequence`, `gateway_id`, `export_id`, `schema_version` and `commit`. An extended `json` file is written once for each target.";
        heartbeat_interval: Option<Duration> = "heartbeat" => duration(MINUTE_MS, 365 * DAY_MS), "The interval at which the gateway writes its status, as the role User sees it, to `<prefix>_status/<gateway>.json` in each bucket and directory target. Heartbeats do not wait in the queue, and are written outside of `service.export.window` too. Without it there are none.";
        bandwidth: Option<u64> = "bandwidth" => size(KIB, TIB), "Bytes per second for all deliveries together, averaged over a second. The overhead of headers and TLS does not count. Without it, deliveries use the whole link.";
        delivery_window: Option<DeliveryWindow> = "" => built::<WindowSettings>(), "`service.export.window` and its time zone.";
        named: BTreeMap<String, Target> = "targets.<bucketName>." => each::<TargetSettings>(), "`service.export.targets.<bucketName>.*`";
        default: Option<Target> = "default." => DefaultTarget, "`service.export.default.*`: the target for every bucketName without an entry.";
    }

    /// `service.export.window` and its time zone.
    pub(super) struct WindowSettings {
        window: Option<Window> = "window" => parsed("times of day from beginning to end, such as 22:00-06:00, with commas; not the same time twice", |text| text.parse().ok()), "Times of day at which exports are delivered. At the end of one, the running request (a file of up to 8 MiB, or a part of a longer one) is finished, and the rest waits for the next. If the clock is set, the window follows within a minute. A wrong clock moves the window and loses nothing. Without it, exports are always delivered.";
        zone: Zone = "timezone" => parsed("a time zone of the IANA database, such as Europe/Berlin or UTC", |text| text.parse().ok()).default("UTC"), "The time zone of `service.export.window`. Times that a change of the clocks skips or repeats count as the clock shows them.";
    }

    /// The settings of a target.
    pub(super) struct TargetSettings {
        kind: Option<&'static str> = "type" => choice(&[("s3", "s3"), ("directory", "directory"), ("sparql", "sparql")]), "The kind of target: an S3-compatible bucket, a directory, or a SPARQL store.";
        endpoint: Option<String> = "endpoint" => url().of_targets(&["s3", "sparql"]), "s3: the URL of the server. sparql: the URL that accepts updates, such as `https://store.example/update`; with `protocol=graph-store`, that of the Graph Store Protocol. Required.";
        region: String = "region" => text().of_targets(&["s3"]).or("us-east-1"), "s3: the region. Defaults to `us-east-1`.";
        bucket: Option<String> = "bucket" => checked(BUCKET_NAME_RULE, |text| check_bucket_name(text).is_ok()).of_targets(&["s3"]), "s3: the bucket's name on the server. Defaults to the bucketName.";
        prefix: String = "prefix" => checked("a prefix of keys: at most 512 bytes, no / at its beginning, no part of it empty, . or .., no control characters", is_prefix).of_targets(&["s3", "directory"]).or_empty(), "The prefix of every key.";
        key: KeyTemplate = "key" => template("a template of keys").of_targets(&["s3", "directory"]).or_empty(), "The template of every key, of `{prefix}`, `{name}` (the Business Object), `{kind}` (`full`, `incremental`, `deleted`), `{suffix}` (empty, `.incremental`, `.deleted`), `{date}` (`metadata.export_date`), `{yyyy}`, `{mm}`, `{dd}` (its parts), `{sequence}` and `{gateway}`. It begins with `{prefix}`, has `{name}` and `{sequence}`, has `/` or `-` between placeholders, and ends in `.json`. Quote it in YAML. Exports that are already queued keep their key. Defaults to `{prefix}{name}/{name}-{date}-{sequence}{suffix}.json`.";
        format: ExportFormat = "format" => choice(&[("json", ExportFormat::Json), ("jsonl", ExportFormat::JsonLines)]).of_targets(&["s3", "directory"]).or_empty(), "The format of the file: one JSON document, or one object a line. With `jsonl`, the key ends in `.jsonl`, and the metadata is an object of its own, whose key ends in `.meta.json`. Defaults to `json`.";
        access_key_id: Option<String> = "access-key-id" => text().of_targets(&["s3"]), "s3: the access key's id. Required.";
        secret_access_key: Option<String> = "secret-access-key" => text().secret().of_targets(&["s3"]), "s3: the access key's secret. Required.";
        path_style: bool = "path-style" => flag().of_targets(&["s3"]).or("true"), "s3: `endpoint/bucket/key` rather than `bucket.endpoint/key`. Defaults to `true`.";
        ca_file: Option<PathBuf> = "ca-file" => text().of_targets(&["s3", "sparql"]), "s3, sparql: a PEM file of certificates to trust for this target.";
        compression: Compression = "compression" => choice(&[("none", Compression::None), ("gzip", Compression::Gzip), ("zstd", Compression::Zstd)]).of_targets(&["s3"]).or_empty(), "s3: the compression of the object. The object then has a `Content-Encoding`; its key stays the same, and `sha256` in its metadata is that of the uncompressed file. Defaults to `none`.";
        path: Option<PathBuf> = "path" => text().of_targets(&["directory"]), "directory: the directory that holds the bucket's directory. Defaults to `<data-dir>/buckets`. The package's unit lets the service write only into its data directory. To allow another one, run `systemctl edit penstock` and add `[Service]` and `ReadWritePaths=-/the/directory`. Without the `-` the service does not start while that directory is missing.";
        protocol: SparqlProtocol = "protocol" => choice(&[("update", SparqlProtocol::Update), ("graph-store", SparqlProtocol::GraphStore)]).of_targets(&["sparql"]).or_empty(), "sparql: how exports are written. `update` sends SPARQL updates with what changed. With `graph-store`, every delivery replaces the whole graph (PUT). Defaults to `update`.";
        graph: GraphTemplate = "graph" => template("an absolute IRI with placeholders").of_targets(&["sparql"]).or_empty(), "sparql: the graph of each Business Object, with `{gateway}` and `{name}`. A placeholder that is missing is appended after a colon. Exports that are already queued keep their graph. Defaults to `urn:penstock:{gateway}:export:{name}`.";
        username: Option<String> = "username" => text().of_targets(&["sparql"]), "sparql: the name for HTTP Basic authentication.";
        password: Option<String> = "password" => text().secret().of_targets(&["sparql"]), "sparql: the password for HTTP Basic authentication.";
        bearer_token: Option<String> = "bearer-token" => text().secret().of_targets(&["sparql"]), "sparql: a token for the `Authorization` header, in place of a name and a password.";
    }

    /// `service.backup.*`
    pub(super) struct BackupSettings {
        target: Option<String> = "target" => checked(BUCKET_NAME_RULE, |text| check_bucket_name(text).is_ok()), "The bucketName of a configured target of type `s3` or `directory`. The gateway sends its journal there all the time, to `<prefix>_backup/<gateway-id>/`. Without it there is no continuous backup.";
        interval: Duration = "interval" => duration(SECOND_MS, 60 * MINUTE_MS).default("10s"), "The longest time from a commit until the gateway sends it, if the link allows. Without a commit nothing is sent.";
        base: Duration = "base" => duration(60 * MINUTE_MS, 365 * DAY_MS).default("7d"), "The interval at which the gateway sends the whole state (a base) again. It does so sooner if the changes since the last one outgrow it.";
        keep: Duration = "keep" => duration(DAY_MS, 3650 * DAY_MS).default("30d"), "How long earlier states stay in the bucket, by the bucket's own times. The newest base, and what follows it, always stay.";
        key: Option<String> = "key" => checked("an age identity (AGE-SECRET-KEY-1…) or recipient (age1…), as penstock offsite-backup new-key prints them", is_age_key).secret(), "The key that encrypts the backup: an age identity (`AGE-SECRET-KEY-1…`) or recipient (`age1…`). `penstock offsite-backup new-key` prints both. A recipient only encrypts; restoring and checking then need its identity. A changed key begins a new era. Without the identity, nobody can read the backup.";
        insecure: bool = "insecure" => flag().default("false"), "Allows a backup without a key. Everyone who can read the bucket can then read all data, with the hashes of passwords and API keys.";
        new_era: bool = "new-era" => flag().default("false"), "Lets a gateway that has no backup yet, such as one with an empty store, begin one, although the bucket has one of its `service.gateway-id`. It has no effect on a gateway that has begun its backup already.";
    }

    /// A source: an MQTT broker, and what the gateway subscribes to there.
    #[derive(Clone, PartialEq, Eq)]
    pub struct Source {
        kind: &'static str = "type" => choice(&[("mqtt", "mqtt")]).required("it is missing: mqtt"), "The kind of source: an MQTT broker. Required.";
        url: BrokerUrl = "url" => parsed("the URL of a broker without user and path, such as mqtts://broker.example or mqtt://127.0.0.1:1883", BrokerUrl::parse).required("it is missing: the URL of the broker"), "The URL of the broker: `mqtts://HOST` with TLS (port 8883), or `mqtt://HOST` (port 1883). Required.";
        client_id: Option<String> = "client-id" => text(), "The beginning of the client ids. Each Business Object of the source has its own session, whose client id is `<client-id>-<name>`; in the name, every character but letters and digits is written as `_` and its hexadecimal code. Defaults to `penstock-<gateway-id>-<source>`. With another client id the gateway has new sessions, and the broker keeps the old ones until they expire.";
        username: Option<String> = "username" => text(), "The user name at the broker.";
        password: Option<String> = "password" => text().secret(), "The password at the broker.";
        ca_file: Option<PathBuf> = "ca-file" => text(), "A PEM file of certificates to trust for this broker, instead of the system's.";
        client_certificate: Option<String> = "client-certificate" => pem(), "The client certificate for the broker, with the certificates of its issuers.";
        client_key: Option<String> = "client-key" => pem().secret(), "The private key of the client certificate.";
        session_expiry: Duration = "session-expiry" => duration(MINUTE_MS, 3650 * DAY_MS).or("7d"), "How long the broker keeps the sessions, with their messages, while the gateway is not connected (MQTT 5). Defaults to `7d`.";
        receive_maximum: u16 = "receive-maximum" => whole(1, 65_535).or("1000"), "The maximum number of messages of a session that the broker sends before they are acknowledged. Defaults to `1000`.";
        is_insecure: bool = "insecure" => flag().or_empty(), "Allows `mqtt://` beyond loopback. The password and all messages then cross the network unencrypted. Defaults to `false`.";
        subscriptions: Vec<Subscription> = "subscriptions[<n>]." => each::<Subscription>(), "The subscriptions, in their order.";
    }

    /// A subscription of a source.
    #[derive(Debug, Clone, PartialEq, Eq)]
    pub struct Subscription {
        topic: String = "topic" => checked("a topic filter, such as plant/+/pumps/#: + is a whole level, # the last one", |text| topic::check_filter(text).is_ok()).required(INCOMPLETE_SUBSCRIPTION), "A topic filter; `+` is one level, `#` at the end all further ones. Required.";
        business_object: String = "business-object" => text().required(INCOMPLETE_SUBSCRIPTION), "The name or the id of the Business Object that the messages are ingested into. Required.";
        mode: &'static str = "mode" => choice(&[("MERGE", "MERGE"), ("ADD", "ADD"), ("UPDATE", "UPDATE"), ("REPLACE", "REPLACE"), ("DELETE", "DELETE")]).or("MERGE"), "The mode of the ingestions. Defaults to `MERGE`.";
        is_document: bool = "form" => choice(&[("document", true)]).or_empty(), "`document` if a message is the document of a system, in which `items` of the mapping says where the objects are. Without it, a message is an object, an array of objects or `{\"data\": [ … ]}`.";
        fields: BTreeMap<String, String> = "fields.<field>" => checked("text in which {1} is the first level of the topic, such as {2} or line-{3}", |text| text.parse::<topic::Template>().is_ok()), "The value of a field of each object: text in which `{1}` is the first level of the message's topic, `{2}` the second, and so on. It is converted to the type of the field. In an environment variable, capitals of the field's name cannot be given; set it in a file.";
    }

    /// A webhook: where events are sent, and which.
    #[derive(Debug, Clone, PartialEq, Eq)]
    pub struct Webhook {
        url: String = "url" => checked(WEBHOOK_URL, is_webhook_url).required(INCOMPLETE_WEBHOOK), "The URL that events are sent to (`POST`). Beyond loopback it needs HTTPS, or `insecure`. Redirects are not followed. Required.";
        secret: WebhookSecret = "secret" => parsed("whsec_ and the Base64 of 24 to 64 bytes, such as the output of: echo whsec_$(openssl rand -base64 32)", |text| text.parse().ok()).secret().required(INCOMPLETE_WEBHOOK), "The secret that signs each request by Standard Webhooks (`webhook-signature`): `whsec_` and the Base64 of 24 to 64 random bytes, such as the output of `echo whsec_$(openssl rand -base64 32)`. Required.";
        events: Vec<EventKind> = "events" => event_types().required(INCOMPLETE_WEBHOOK), "The types of events to send: those of `GET /api/v1/events`, and `penstock.target.blocked`. `penstock.change.*` is all with this beginning, `*` is all. Required.";
        ca_file: Option<PathBuf> = "ca-file" => text(), "A PEM file of certificates to trust for this webhook, beside the system's.";
        is_insecure: bool = "insecure" => flag().or_empty(), "Allows `http://` beyond loopback. The events then cross the network unencrypted; the secret does not. Defaults to `false`.";
    }

    /// The settings of authentication and authorization.
    #[derive(Debug, Clone, PartialEq, Eq, Default)]
    pub struct Security {
        is_oauth2: bool = "security" => choice(&[("oauth2", true)]).or_empty(), "`oauth2` for sign-in through an OpenID provider, together with the profile `oauth2`; the profile `azuread` implies it. Without it, the gateway uses built-in accounts. `security.mode` means the same; nested YAML with `security.role` needs it: `security: {mode: oauth2, role: {…}}`.";
        registration: Option<String> = "service.security.registration" => checked("1 to 64 lowercase letters (a-z)", is_registration), "The registration identifier: 1 to 64 lowercase letters. `azure` with the profile `azuread`.";
        tenant: Option<String> = "service.security.tenant-id" => checked("the identifier or the domain of one tenant, not common, organizations or consumers", is_tenant), "The tenant, for the profile `azuread`. Required there.";
        ca_file: Option<PathBuf> = "service.security.ca-file" => text(), "A PEM file of certificates that are trusted for identity providers, beside the system's.";
        claims: Claims = "service.security.claims." => Subsection, "`service.security.claims.*`: the claims for each attribute; the first claim that is present counts.";
        service_account_role: Option<String> = "service.security.defaultServiceAccountRole" => text(), "The role of clients without an assigned one: `Admin`, `Contributor`, `User`, or the value that `security.role.*` maps to it, in any case. Without it they are rejected.";
        email_domain: Option<String> = "service.security.serviceAccount.emailDomain" => checked("a domain that starts with @, such as @machines.example", is_email_domain), "The domain (`@...`) of the emails of service accounts. Without it their email is only the `sub`.";
        max_stale: Duration = "service.security.jwks.max-stale" => duration(MINUTE_MS, 365 * DAY_MS).default("7d"), "How long the provider's keys are used while the provider is unreachable.";
        algorithms: Vec<String> = "service.security.jwt.algorithms" => some_of(ALGORITHMS).default("RS256"), "The algorithms (RFC 7518, 3.1; RFC 8037) that access tokens and ID tokens may be signed with.";
        session: SessionLimits = "service.security.session." => Subsection, "`service.security.session.*`: the lifetime of a session, in elapsed time, independent of the clock.";
        role_values: RoleValues = "security.role." => Subsection, "`security.role.*`: the value of the roles claim for each role.";
        oidc: Option<Oidc> = "framework.security.oauth2.client." => listed::<Oidc>(), "Sign-in through an OpenID provider (`security=oauth2` with the profile `oauth2` or `azuread`). Without it, the gateway uses its built-in accounts.";
        resource_server: Option<ResourceServer> = "framework.security.oauth2.resourceserver.jwt." => listed::<ResourceServer>(), "The access tokens of machines; without `issuer-uri` they are refused.";
        client_ids: Vec<String> = "" => Unset, "The client id of each registration. The audience of an ID token is one of them.";
    }

    /// `service.security.claims.*`
    #[derive(Debug, Clone, PartialEq, Eq, Default)]
    pub struct Claims {
        first_name: Vec<String> = "firstName" => list().default("given_name"), "The claims with the given name. The first one that is present counts.";
        last_name: Vec<String> = "lastName" => list().default("family_name"), "The claims with the family name.";
        email: Vec<String> = "email" => list().default("user_email,preferred_username"), "The claims with the email. `email,preferred_username` with the profile `azuread`.";
        organization: Vec<String> = "organization" => list().default("organization,companyname"), "The claims with the organization.";
        roles: Vec<String> = "roles" => list().default("roles"), "The claims with the roles. Dots lead into a claim that is an object (`realm_access.roles`), unless a claim has the whole name.";
        groups: Vec<String> = "groups" => list().default("groups"), "The claims with the groups, as names or ids. A value makes the account a member of each group that lists it in `claimValues`.";
    }

    /// `service.security.session.*`
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    pub struct SessionLimits {
        idle: Duration = "idle" => duration(MINUTE_MS, 365 * DAY_MS).default("30m"), "A session without a request ends after this time.";
        absolute: Duration = "absolute" => duration(MINUTE_MS, 365 * DAY_MS).default("12h"), "A session ends this long after its start, however much it is used. At least `service.security.session.idle`. Sessions survive a restart of the service, but not of the machine.";
    }

    /// `security.role.*`
    #[derive(Debug, Clone, PartialEq, Eq, Default)]
    pub struct RoleValues {
        admin: String = "admin" => text().default("ACCURIDS_ADMIN"), "The role value of an Admin.";
        contributor: String = "contributor" => text().default("ACCURIDS_CONTRIBUTOR"), "The role value of a Contributor.";
        user: String = "user" => text().default("ACCURIDS_USER"), "The role value of a User.";
    }

    /// The registration and its provider (specification, 5.3).
    #[derive(Clone, PartialEq, Eq, Default)]
    pub struct Oidc {
        registration: String = "" => Unset, "`service.security.registration`";
        client_id: String = "registration.<id>.client-id" => text().or_empty(), "The client id from the provider. Required for sign-in.";
        client_secret: String = "registration.<id>.client-secret" => text().secret().or_empty(), "The client secret from the provider. Required for sign-in.";
        client_authentication: Option<ClientAuthentication> = "registration.<id>.client-authentication-method" => choice(&[("client_secret_basic", ClientAuthentication::Basic), ("client_secret_post", ClientAuthentication::Post)]), "How the gateway sends the client secret to the token endpoint: in the header `Authorization`, or in the body. Defaults to the method in the discovery document, otherwise `client_secret_basic`.";
        redirect_uri: String = "registration.<id>.redirect-uri" => checked("{baseUrl}/login/oauth2/code/{registrationId}, or a URL with this ending, with no other placeholders", is_redirect_uri).default("{baseUrl}/login/oauth2/code/{registrationId}"), "The redirect URI. `{baseUrl}` is `service.base-url`, or without it the address that the request was sent to, by the forwarded headers of trusted proxies; `{registrationId}` is the registration identifier.";
        scopes: Vec<String> = "registration.<id>.scope" => list().default("profile,openid"), "The requested scopes, which must include `openid`.";
        grant_type: &'static str = "registration.<id>.authorization-grant-type" => choice(&[("authorization_code", "authorization_code")]).default("authorization_code"), "Always `authorization_code`.";
        issuer_uri: Option<String> = "provider.<id>.issuer-uri" => endpoint(), "The issuer. The gateway discovers the endpoints there (those given below override them), and checks the issuer of answers and ID tokens. Without it the three endpoints below are required, and no issuer is checked.";
        authorization_uri: Option<String> = "provider.<id>.authorization-uri" => endpoint(), "The authorization endpoint.";
        token_uri: Option<String> = "provider.<id>.token-uri" => endpoint(), "The token endpoint.";
        jwk_set_uri: Option<String> = "provider.<id>.jwk-set-uri" => endpoint(), "The JWKS endpoint.";
        user_info_uri: Option<String> = "provider.<id>.user-info-uri" => endpoint(), "The userinfo endpoint, for claims that the ID token lacks.";
        user_name_attribute: String = "provider.<id>.user-name-attribute" => text().default("sub"), "The claim that permanently identifies the user and the account. `oid` with the profile `azuread`.";
    }

    /// `framework.security.oauth2.resourceserver.jwt.*` and related settings (specification, 5.7).
    #[derive(Debug, Clone, PartialEq, Eq, Default)]
    pub struct ResourceServer {
        issuer_uri: String = "issuer-uri" => endpoint().or_empty(), "The issuer of access tokens, exactly as in their `iss`. Without it access tokens are refused.";
        jwk_set_uri: Option<String> = "jwk-set-uri" => endpoint(), "The issuer's JWKS endpoint. Discovered if it is not set.";
        audiences: Vec<String> = "audiences" => list().or_empty(), "The expected `aud` claim: one of these. Required with `issuer-uri`.";
        client_id_audience: Option<String> = "" => Unset, "The client id of the registration, if access tokens have it as their audience: the profile `azuread` with the issuer of version 2.0.";
        sign_in_issuer: Option<String> = "" => Unset, "The issuer in the accounts of users, if users sign in at this provider. A token that such a user delegated acts as that user's account.";
        default_role: Option<Role> = "" => Unset, "`service.security.defaultServiceAccountRole`";
        email_domain: Option<String> = "" => Unset, "`service.security.serviceAccount.emailDomain`";
        max_stale: Duration = "" => Unset, "`service.security.jwks.max-stale`: how long cached keys are used while the provider is unreachable.";
    }
}

#[cfg(test)]
mod tests {
    use super::super::kind::RawValue;
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn defaults_are_valid_and_names_are_distinct_even_as_environment_variables() {
        let mut seen = BTreeSet::new();
        for setting in SETTINGS.iter() {
            if let Some(default) = setting.default {
                let parsed = setting.kind.parse(&RawValue::Text(default.to_owned()));
                assert!(parsed.is_ok(), "{}: {:?}", setting.name, parsed.err());
            }
            let plain: String =
                setting.name.to_lowercase().chars().filter(|c| !"._-".contains(*c)).collect();
            assert!(seen.insert(plain), "{}", setting.name);
        }
    }
}
