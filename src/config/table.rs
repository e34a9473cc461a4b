//! The table of all settings. Validation, the documentation of the settings, and suggestions for unknown names use
//! it.
use super::kind::SettingKind;

/// A setting.
#[derive(Debug, Clone, Copy)]
pub struct Setting {
    /// Its name. A part in angle brackets is a placeholder for any name.
    pub name: &'static str,
    /// The kind of its value.
    pub kind: SettingKind,
    /// Its default, in the form of a configuration file.
    pub default: Option<&'static str>,
    /// Whether its value is masked wherever it would be shown.
    pub is_secret: bool,
    /// The types of targets that it applies to; empty for all, and for settings of other things.
    pub kinds: &'static [&'static str],
    /// A description of its effect.
    pub meaning: &'static str,
}

const fn setting(name: &'static str, kind: SettingKind, meaning: &'static str) -> Setting {
    Setting { name, kind, default: None, is_secret: false, kinds: &[], meaning }
}

impl Setting {
    const fn with_default(self, default: &'static str) -> Self {
        Self { default: Some(default), ..self }
    }

    const fn as_secret(self) -> Self {
        Self { is_secret: true, ..self }
    }

    const fn for_kinds(self, kinds: &'static [&'static str]) -> Self {
        Self { kinds, ..self }
    }
}

const KIB: u64 = 1 << 10;
const GIB: u64 = 1 << 30;
const TIB: u64 = 1 << 40;

/// The algorithms with a public key. With a shared secret, everyone who can check a token could also create one.
const ALGORITHMS: &[&str] =
    &["RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "EdDSA"];
/// In milliseconds, as is `DAY`.
const MINUTE_MS: u64 = 60_000;
const DAY_MS: u64 = 24 * 60 * MINUTE_MS;

/// All settings, in the order of the documentation.
pub static SETTINGS: &[Setting] = &[
    setting("profiles.active", SettingKind::Profiles, "The active profiles. The gateway also reads the `application-<profile>.*` files of each; later profiles override earlier ones."),
    setting("server.address", SettingKind::Address, "The IP address to listen on. Beyond loopback it needs HTTPS (`server.ssl.*`), or `server.insecure-http`. A socket passed by systemd takes precedence.").with_default("127.0.0.1"),
    setting("server.port", SettingKind::Whole { min: 0, max: 65_535 }, "The TCP port to listen on. With 0 the system chooses one, and the log shows it.").with_default("8080"),
    setting("server.forward-headers-strategy", SettingKind::Choice(&["none", "native", "framework"]), "Whether the gateway uses `Forwarded` and `X-Forwarded-*` of trusted proxies; `native` and `framework` are the same.").with_default("none"),
    setting("server.cors.allowed-origins", SettingKind::Origins, "Origins whose pages may call the API (CORS); `*` is any."),
    setting("server.insecure-http", SettingKind::Flag, "Allows plain HTTP beyond loopback. Passwords and keys then cross the network unencrypted, so use it only in a private network behind a proxy that terminates HTTPS.").with_default("false"),
    setting("server.ssl.certificate", SettingKind::Pem, "The certificate chain for HTTPS, the server's certificate first. Files are read again at SIGHUP."),
    setting("server.ssl.certificate-private-key", SettingKind::Pem, "The certificate's private key.").as_secret(),
    setting("server.ssl.self-signed", SettingKind::Flag, "HTTPS with a self-signed certificate, created at the first start and kept in `<data-dir>/tls`. Not together with `server.ssl.certificate`.").with_default("false"),
    setting("server.ssl.client-auth", SettingKind::Choice(&["none", "want", "need"]), "Whether clients are asked for a certificate: `need` refuses clients without a valid one, `want` only clients with an invalid one. A client certificate never replaces the credentials of a request.").with_default("none"),
    setting("server.ssl.trust-certificate", SettingKind::Pem, "The certificates of the authorities that issue client certificates."),
    setting("server.connections", SettingKind::Whole { min: 1, max: 65_535 }, "The maximum number of concurrent connections. Further ones wait in the system's queue.").with_default("512"),
    setting("server.connections-per-address", SettingKind::Whole { min: 1, max: 65_535 }, "The maximum number of concurrent connections from one address (IPv6: from one /64). Further ones are closed. `service.trusted-proxies` are not counted.").with_default("128"),
    setting("server.hsts.max-age", SettingKind::Duration { min: 0, max: 3650 * DAY_MS }, "How long browsers that used HTTPS refuse plain HTTP to this host (`Strict-Transport-Security`, RFC 6797). It applies to every port of the host. The header is not sent for an IP address, for `localhost`, or with `server.ssl.self-signed`, unless a trusted proxy terminates HTTPS. `0s` makes browsers forget it.").with_default("365d"),
    setting("service.base-url", SettingKind::Url, "The public URL of the service. New namespaces get `<service.base-url>/id/<Namespace>/` as their URI base."),
    setting("service.data-dir", SettingKind::Text, "The directory for all data. Defaults to `$STATE_DIRECTORY`, which systemd sets, if that is present.").with_default("/var/lib/penstock"),
    setting("service.definitions.dir", SettingKind::Text, "A folder with definitions of namespaces, shapes graphs, groups and Business Objects, in YAML or JSON, applied at the start and at SIGHUP. They are read-only in the API and the interface."),
    setting("service.gateway-id", SettingKind::GatewayId, "The name of this gateway in export metadata and in default URI bases. Created at the first start, and kept."),
    setting("service.trusted-proxies", SettingKind::Networks, "Addresses or networks (`10.0.0.0/8`) of the proxies whose forwarded headers are trusted."),
    setting("service.namespace.auto-create", SettingKind::Flag, "Whether to create undefined namespaces that a mapping names.").with_default("true"),
    setting("service.limits.body", SettingKind::Size { min: KIB, max: GIB }, "The maximum size of a request body, or of a line of NDJSON or a record of CSV. Less if memory is small, see `service.limits.memory`.").with_default("16MiB"),
    setting("service.limits.nesting", SettingKind::Whole { min: 1, max: 1000 }, "The maximum nesting of JSON in a request.").with_default("128"),
    setting("service.limits.objects", SettingKind::Whole { min: 1, max: 1_000_000 }, "The maximum number of objects in one JSON request.").with_default("10000"),
    setting("service.limits.values", SettingKind::Whole { min: 1, max: 100_000_000 }, "The maximum number of JSON values in one JSON request, or in a chunk of NDJSON or CSV. Each number, string, array and object counts, and each cell. It bounds the memory of a request, at up to a kilobyte a value. Less if memory is small.").with_default("150000"),
    setting("service.limits.in-flight", SettingKind::Size { min: KIB, max: TIB }, "The maximum size of all concurrent request bodies together, and of all answers that wait to be read. Of the answers, one account or key may have half. Requests beyond it get 503. At least `service.limits.body`. Less if memory is small.").with_default("64MiB"),
    setting("service.limits.memory", SettingKind::Size { min: 1 << 20, max: TIB }, "The memory limit of the process. From 75 % on, changes waiting in memory are written to the index. From 90 % on, a body of more than 1 MiB gets 503, and smaller ones are taken one at a time. Defaults to the limit of the control group (systemd's `MemoryHigh=` and `MemoryMax=`), otherwise none. What requests may hold is derived from it: a sixteenth for all bodies at once (at least 8 MiB), as much for the messages of all sources, half of that for one body, and a JSON value for each 3 KiB (at least 10,000). `GET /api/v1/limits` returns the results."),
    setting("service.limits.disk-reserve", SettingKind::Size { min: 0, max: TIB }, "Disk space in `service.data-dir` that ingestions and definitions leave free. If less is free they get 507; reading, `DELETE`, exports and compaction continue. The default is enough for a checkpoint and for deletions. A compaction takes about as much as the journal's base, so set more for large stores. 0 keeps nothing free.").with_default("64MiB"),
    setting("service.limits.idempotency-keys", SettingKind::Whole { min: 0, max: 1_000_000 }, "The maximum number of answers to requests with an `Idempotency-Key` that are kept, each for 24 h. Beyond it the oldest are dropped.").with_default("1000"),
    setting("service.limits.idempotency-bytes", SettingKind::Size { min: 0, max: TIB }, "The maximum total size of those answers. Beyond it the oldest are dropped. The newest is always kept.").with_default("16MiB"),
    setting("service.limits.history", SettingKind::Whole { min: 0, max: 10_000_000 }, "The maximum number of records of ingestions that are kept, and of records of delivered exports.").with_default("10000"),
    setting("service.limits.rejected.bytes", SettingKind::Size { min: 0, max: TIB }, "The maximum size of all dead letters: objects that ingestions rejected, kept until somebody retries or deletes them. Beyond it, the account with the most bytes loses the oldest of its API key with the most, so a flood from one account or key never evicts those of another. A lower limit takes effect at the next start. 0 keeps none, and removes those that are stored.").with_default("64MiB"),
    setting("service.limits.rejected.age", SettingKind::Duration { min: MINUTE_MS, max: 3650 * DAY_MS }, "How long dead letters are kept.").with_default("30d"),
    setting("service.limits.sources", SettingKind::Size { min: 1 << 20, max: TIB }, "The maximum size of the messages that all sources together hold until they are stored. Beyond it the gateway stops reading from the brokers. Of a message that is longer than about a third of it, only the first 64 KiB are kept, as a dead letter. Less if memory is small, see `service.limits.memory`.").with_default("8MiB"),
    setting("service.limits.webhooks.events", SettingKind::Whole { min: 8, max: 1_000_000 }, "The maximum number of events that wait for one webhook. Further ones are dropped until three quarters are left; then the webhook gets `penstock.events.lost` with their number.").with_default("10000"),
    setting("service.limits.webhooks.bytes", SettingKind::Size { min: 64 * KIB, max: TIB }, "The maximum size of these events.").with_default("16MiB"),
    setting("service.limits.changes", SettingKind::Whole { min: 1, max: 1_000_000 }, "The maximum number of open changes under review. One account may have a tenth of them. Further ones get 429.").with_default("20000"),
    setting("service.limits.change-bytes", SettingKind::Size { min: 1 << 20, max: TIB }, "The maximum size of all changes under review, with their requests and differences, compressed. One account may have a tenth of it. Past it, the oldest changes that the account has withdrawn are removed. If that is not enough, new ones get 429, and a change that alone exceeds the share gets 413.").with_default("256MiB"),
    setting("service.limits.snapshot.memory", SettingKind::Size { min: 1 << 20, max: TIB }, "The maximum memory for snapshots. A snapshot is the state after one commit, which an export, a dump or a query reads. While it is read, the earlier content of what commits change is kept in memory, and beyond this limit in files.").with_default("8MiB"),
    setting("service.limits.snapshot.disk", SettingKind::Size { min: 0, max: TIB }, "The maximum size of these files. They also leave 16 MiB of disk space free above `service.limits.disk-reserve`. Beyond it the oldest snapshot ends: a query gets 503, and an export or a dump continues with the newest state and a warning.").with_default("256MiB"),
    setting("service.limits.audit", SettingKind::Whole { min: 0, max: 10_000_000 }, "The maximum number of events in the audit log. Changes to accounts and API keys, steps of changes under review, other changes, sign-ins and refusals are guaranteed a fifth each. Beyond it the oldest are deleted.").with_default("10000"),
    setting("service.limits.graphql.depth", SettingKind::Whole { min: 1, max: 50 }, "The maximum levels of fields of a GraphQL query. Introspection may always have 20.").with_default("20"),
    setting("service.limits.graphql.complexity", SettingKind::Whole { min: 1, max: 100_000_000 }, "The maximum number of fields that a GraphQL query may ask for, computed before it is executed. A field below a page counts once for each item of the page (`first`), and one below a list 5 times.").with_default("100000"),
    setting("service.limits.graphql.rows", SettingKind::Whole { min: 1, max: 10_000_000 }, "The maximum number of objects that a GraphQL query may ask for. The objects of its pages are checked before it is executed; during execution, nested ones count too.").with_default("10000"),
    setting("service.limits.graphql.scan", SettingKind::Whole { min: 1, max: 1_000_000_000 }, "The maximum number of objects that a GraphQL query may read if no index answers it. Beyond it the query fails; its list is never cut short.").with_default("1000000"),
    setting("service.limits.graphql.time", SettingKind::Duration { min: 100, max: 60 * MINUTE_MS }, "The time limit of a GraphQL query. It also waits this long for one of 4 slots.").with_default("10s"),
    setting("service.limits.graphql.answer", SettingKind::Size { min: KIB, max: GIB }, "The approximate maximum size of an answer to a GraphQL query.").with_default("4MiB"),
    setting("service.limits.graphql.fields", SettingKind::Whole { min: 0, max: 1_000_000 }, "The maximum number of fields of all Business Objects in the GraphQL schema, including nested ones. The newest Business Objects that do not fit have no type there. Introspection and the SDL need about 10 KB of memory a field, and get 503 if less is available. Queries need only the types that they name.").with_default("20000"),
    setting("service.limits.shapes.time", SettingKind::Duration { min: 100, max: 60 * MINUTE_MS }, "The time limit for validating the objects of an ingestion with the shapes of a Business Object. Other commits wait for it. Also the limit of each batch when everything stored is validated.").with_default("10s"),
    setting("service.limits.shapes.memory", SettingKind::Size { min: 1 << 20, max: TIB }, "The maximum memory of a validation, or of each batch when everything stored is validated.").with_default("32MiB"),
    setting("service.limits.sparql.time", SettingKind::Duration { min: 100, max: 60 * MINUTE_MS }, "The time limit of a SPARQL query, including the time that its client takes to read the answer. Waiting for one of 2 slots does not count.").with_default("10s"),
    setting("service.limits.sparql.memory", SettingKind::Size { min: 1 << 20, max: TIB }, "The maximum memory of a SPARQL query, for its joins, groups and sorts. Two run at once.").with_default("32MiB"),
    setting("service.limits.sparql.rows", SettingKind::Whole { min: 1, max: 1_000_000_000 }, "The maximum number of rows or triples in the answer to a SPARQL query.").with_default("100000"),
    setting("service.limits.sparql.update", SettingKind::Whole { min: 1, max: 10_000_000 }, "The maximum number of quads that a SPARQL update, or a write of a graph, inserts and removes in its one commit. It bounds the memory of a request.").with_default("100000"),
    setting("service.sparql.update", SettingKind::Flag, "Whether an Admin may change the graph with `POST /sparql/update` and `PUT`, `POST` and `DELETE` of `/sparql/graphs`. Otherwise these get 403.").with_default("false"),
    setting("service.sparql.services", SettingKind::Urls, "The endpoints that `SERVICE` in a SPARQL query may name. Each is compared with the IRI in the query, character by character. Without it, `SERVICE` is refused."),
    setting("service.review.history", SettingKind::Duration { min: MINUTE_MS, max: 3650 * DAY_MS }, "How long changes are kept after they were approved, rejected or withdrawn.").with_default("90d"),
    setting("service.review.self-approval", SettingKind::Flag, "Whether the author of a change may approve it. By default another account must approve.").with_default("false"),
    setting("service.events.depth", SettingKind::Whole { min: 1, max: 100_000 }, "The maximum number of events kept in memory, at most 4 MiB, for listeners that reconnect. A listener that missed more is notified.").with_default("1000"),
    setting("service.events.listeners", SettingKind::Whole { min: 0, max: 256 }, "The maximum number of concurrent listeners to events. One account may have half of them. Further ones get 503.").with_default("32"),
    setting("service.export.history", SettingKind::Size { min: 0, max: TIB }, "The maximum size of all delivered files that are kept for reading and replay. Beyond it the oldest are deleted.").with_default("64MiB"),
    setting("service.export.spool", SettingKind::Size { min: 0, max: TIB }, "The maximum size of all files that wait for their targets; each file counts once for each target. Beyond it, automatic exports wait and include later changes, and a push gets 507. The export that reaches the limit is completed.").with_default("256MiB"),
    setting("service.export.metadata", SettingKind::Choice(&["standard", "extended"]), "With `extended`, `metadata` of an export also has `kind`, `sequence`, `gateway_id`, `export_id`, `schema_version` and `commit`. An extended `json` file is written once for each target.").with_default("standard"),
    setting("service.export.heartbeat", SettingKind::Duration { min: MINUTE_MS, max: 365 * DAY_MS }, "The interval at which the gateway writes its status, as the role User sees it, to `<prefix>_status/<gateway>.json` in each bucket and directory target. Heartbeats do not wait in the queue, and are written outside of `service.export.window` too. Without it there are none."),
    setting("service.export.bandwidth", SettingKind::Size { min: KIB, max: TIB }, "Bytes per second for all deliveries together, averaged over a second. The overhead of headers and TLS does not count. Without it, deliveries use the whole link."),
    setting("service.export.window", SettingKind::Window, "Times of day at which exports are delivered. At the end of one, the running request (a file of up to 8 MiB, or a part of a longer one) is finished, and the rest waits for the next. If the clock is set, the window follows within a minute. A wrong clock moves the window and loses nothing. Without it, exports are always delivered."),
    setting("service.export.timezone", SettingKind::TimeZone, "The time zone of `service.export.window`. Times that a change of the clocks skips or repeats count as the clock shows them.").with_default("UTC"),
    setting("service.export.targets.<bucketName>.type", SettingKind::Choice(&["s3", "directory", "sparql"]), "The kind of target: an S3-compatible bucket, a directory, or a SPARQL store."),
    setting("service.export.targets.<bucketName>.endpoint", SettingKind::Url, "s3: the URL of the server. sparql: the URL that accepts updates, such as `https://store.example/update`; with `protocol=graph-store`, that of the Graph Store Protocol. Required.").for_kinds(&["s3", "sparql"]),
    setting("service.export.targets.<bucketName>.region", SettingKind::Text, "s3: the region. Defaults to `us-east-1`.").for_kinds(&["s3"]),
    setting("service.export.targets.<bucketName>.bucket", SettingKind::Bucket, "s3: the bucket's name on the server. Defaults to the bucketName.").for_kinds(&["s3"]),
    setting("service.export.targets.<bucketName>.prefix", SettingKind::Prefix, "The prefix of every key.").for_kinds(&["s3", "directory"]),
    setting("service.export.targets.<bucketName>.key", SettingKind::KeyTemplate, "The template of every key, of `{prefix}`, `{name}` (the Business Object), `{kind}` (`full`, `incremental`, `deleted`), `{suffix}` (empty, `.incremental`, `.deleted`), `{date}` (`metadata.export_date`), `{yyyy}`, `{mm}`, `{dd}` (its parts), `{sequence}` and `{gateway}`. It begins with `{prefix}`, has `{name}` and `{sequence}`, has `/` or `-` between placeholders, and ends in `.json`. Quote it in YAML. Exports that are already queued keep their key. Defaults to `{prefix}{name}/{name}-{date}-{sequence}{suffix}.json`.").for_kinds(&["s3", "directory"]),
    setting("service.export.targets.<bucketName>.format", SettingKind::Choice(&["json", "jsonl"]), "The format of the file: one JSON document, or one object a line. With `jsonl`, the key ends in `.jsonl`, and the metadata is an object of its own, whose key ends in `.meta.json`. Defaults to `json`.").for_kinds(&["s3", "directory"]),
    setting("service.export.targets.<bucketName>.access-key-id", SettingKind::Text, "s3: the access key's id. Required.").for_kinds(&["s3"]),
    setting("service.export.targets.<bucketName>.secret-access-key", SettingKind::Text, "s3: the access key's secret. Required.").as_secret().for_kinds(&["s3"]),
    setting("service.export.targets.<bucketName>.path-style", SettingKind::Flag, "s3: `endpoint/bucket/key` rather than `bucket.endpoint/key`. Defaults to `true`.").for_kinds(&["s3"]),
    setting("service.export.targets.<bucketName>.ca-file", SettingKind::Text, "s3, sparql: a PEM file of certificates to trust for this target.").for_kinds(&["s3", "sparql"]),
    setting("service.export.targets.<bucketName>.compression", SettingKind::Choice(&["none", "gzip", "zstd"]), "s3: the compression of the object. The object then has a `Content-Encoding`; its key stays the same, and `sha256` in its metadata is that of the uncompressed file. Defaults to `none`.").for_kinds(&["s3"]),
    setting("service.export.targets.<bucketName>.path", SettingKind::Text, "directory: the directory that holds the bucket's directory. Defaults to `<data-dir>/buckets`. The package's unit lets the service write only into its data directory. To allow another one, run `systemctl edit penstock` and add `[Service]` and `ReadWritePaths=/the/directory`.").for_kinds(&["directory"]),
    setting("service.export.targets.<bucketName>.protocol", SettingKind::Choice(&["update", "graph-store"]), "sparql: how exports are written. `update` sends SPARQL updates with what changed. With `graph-store`, every delivery replaces the whole graph (PUT). Defaults to `update`.").for_kinds(&["sparql"]),
    setting("service.export.targets.<bucketName>.graph", SettingKind::GraphTemplate, "sparql: the graph of each Business Object, with `{gateway}` and `{name}`. A placeholder that is missing is appended after a colon. Exports that are already queued keep their graph. Defaults to `urn:penstock:{gateway}:export:{name}`.").for_kinds(&["sparql"]),
    setting("service.export.targets.<bucketName>.username", SettingKind::Text, "sparql: the name for HTTP Basic authentication.").for_kinds(&["sparql"]),
    setting("service.export.targets.<bucketName>.password", SettingKind::Text, "sparql: the password for HTTP Basic authentication.").as_secret().for_kinds(&["sparql"]),
    setting("service.export.targets.<bucketName>.bearer-token", SettingKind::Text, "sparql: a token for the `Authorization` header, in place of a name and a password.").as_secret().for_kinds(&["sparql"]),
    setting("service.export.default.type", SettingKind::Choice(&["s3", "directory", "sparql"]), "The kind of target for every bucketName without an entry."),
    setting("service.export.default.endpoint", SettingKind::Url, "`endpoint` of every bucketName without an entry."),
    setting("service.export.default.region", SettingKind::Text, "`region` of every bucketName without an entry."),
    setting("service.export.default.bucket", SettingKind::Bucket, "`bucket` of every bucketName without an entry: one bucket for all of them."),
    setting("service.export.default.prefix", SettingKind::Prefix, "`prefix` of every bucketName without an entry."),
    setting("service.export.default.key", SettingKind::KeyTemplate, "`key` of every bucketName without an entry."),
    setting("service.export.default.format", SettingKind::Choice(&["json", "jsonl"]), "`format` of every bucketName without an entry."),
    setting("service.export.default.access-key-id", SettingKind::Text, "`access-key-id` of every bucketName without an entry."),
    setting("service.export.default.secret-access-key", SettingKind::Text, "`secret-access-key` of every bucketName without an entry.").as_secret(),
    setting("service.export.default.path-style", SettingKind::Flag, "`path-style` of every bucketName without an entry."),
    setting("service.export.default.ca-file", SettingKind::Text, "`ca-file` of every bucketName without an entry."),
    setting("service.export.default.compression", SettingKind::Choice(&["none", "gzip", "zstd"]), "`compression` of every bucketName without an entry."),
    setting("service.export.default.path", SettingKind::Text, "`path` of every bucketName without an entry."),
    setting("service.export.default.protocol", SettingKind::Choice(&["update", "graph-store"]), "`protocol` of every bucketName without an entry."),
    setting("service.export.default.graph", SettingKind::GraphTemplate, "`graph` of every bucketName without an entry."),
    setting("service.export.default.username", SettingKind::Text, "`username` of every bucketName without an entry."),
    setting("service.export.default.password", SettingKind::Text, "`password` of every bucketName without an entry.").as_secret(),
    setting("service.export.default.bearer-token", SettingKind::Text, "`bearer-token` of every bucketName without an entry.").as_secret(),
    setting("service.sources.<source>.type", SettingKind::Choice(&["mqtt"]), "The kind of source: an MQTT broker. Required."),
    setting("service.sources.<source>.url", SettingKind::Broker, "The URL of the broker: `mqtts://HOST` with TLS (port 8883), or `mqtt://HOST` (port 1883). Required."),
    setting("service.sources.<source>.client-id", SettingKind::Text, "The beginning of the client ids. Each Business Object of the source has its own session, whose client id is `<client-id>-<name>`; in the name, every character but letters and digits is written as `_` and its hexadecimal code. Defaults to `penstock-<gateway-id>-<source>`. With another client id the gateway has new sessions, and the broker keeps the old ones until they expire."),
    setting("service.sources.<source>.username", SettingKind::Text, "The user name at the broker."),
    setting("service.sources.<source>.password", SettingKind::Text, "The password at the broker.").as_secret(),
    setting("service.sources.<source>.ca-file", SettingKind::Text, "A PEM file of certificates to trust for this broker, instead of the system's."),
    setting("service.sources.<source>.client-certificate", SettingKind::Pem, "The client certificate for the broker, with the certificates of its issuers."),
    setting("service.sources.<source>.client-key", SettingKind::Pem, "The private key of the client certificate.").as_secret(),
    setting("service.sources.<source>.session-expiry", SettingKind::Duration { min: MINUTE_MS, max: 3650 * DAY_MS }, "How long the broker keeps the sessions, with their messages, while the gateway is not connected (MQTT 5). Defaults to `7d`."),
    setting("service.sources.<source>.receive-maximum", SettingKind::Whole { min: 1, max: 65_535 }, "The maximum number of messages of a session that the broker sends before they are acknowledged. Defaults to `1000`."),
    setting("service.sources.<source>.insecure", SettingKind::Flag, "Allows `mqtt://` beyond loopback. The password and all messages then cross the network unencrypted. Defaults to `false`."),
    setting("service.sources.<source>.subscriptions[<n>].topic", SettingKind::TopicFilter, "A topic filter; `+` is one level, `#` at the end all further ones. Required."),
    setting("service.sources.<source>.subscriptions[<n>].business-object", SettingKind::Text, "The name or the id of the Business Object that the messages are ingested into. Required."),
    setting("service.sources.<source>.subscriptions[<n>].mode", SettingKind::Choice(&["MERGE", "ADD", "UPDATE", "REPLACE", "DELETE"]), "The mode of the ingestions. Defaults to `MERGE`."),
    setting("service.sources.<source>.subscriptions[<n>].fields.<field>", SettingKind::TopicTemplate, "The value of a field of each object: text in which `{1}` is the first level of the message's topic, `{2}` the second, and so on. It is converted to the type of the field. In an environment variable, capitals of the field's name cannot be given; set it in a file."),
    setting("service.webhooks.<webhook>.url", SettingKind::WebhookUrl, "The URL that events are sent to (`POST`). Beyond loopback it needs HTTPS, or `insecure`. Redirects are not followed. Required."),
    setting("service.webhooks.<webhook>.secret", SettingKind::WebhookSecret, "The secret that signs each request by Standard Webhooks (`webhook-signature`): `whsec_` and the Base64 of 24 to 64 random bytes, such as the output of `echo whsec_$(openssl rand -base64 32)`. Required.").as_secret(),
    setting("service.webhooks.<webhook>.events", SettingKind::EventTypes, "The types of events to send: those of `GET /api/v1/events`, and `penstock.target.blocked`. `penstock.change.*` is all with this beginning, `*` is all. Required."),
    setting("service.webhooks.<webhook>.ca-file", SettingKind::Text, "A PEM file of certificates to trust for this webhook, beside the system's."),
    setting("service.webhooks.<webhook>.insecure", SettingKind::Flag, "Allows `http://` beyond loopback. The events then cross the network unencrypted; the secret does not. Defaults to `false`."),
    setting("service.log.level", SettingKind::Filter, "The log level: `error`, `warn`, `info`, `debug`, `trace` or `off`, also for each part of the program (`info,penstock_http=debug`).").with_default("info"),
    setting("service.log.format", SettingKind::Choice(&["text", "json"]), "The format of the log: readable lines, or one JSON object per line.").with_default("text"),
    setting("security", SettingKind::Choice(&["oauth2"]), "`oauth2` for sign-in through an OpenID provider, together with the profile `oauth2`; the profile `azuread` implies it. Without it, the gateway uses built-in accounts. `security.mode` means the same; nested YAML with `security.role` needs it: `security: {mode: oauth2, role: {…}}`."),
    setting("service.security.registration", SettingKind::Registration, "The registration identifier: 1 to 64 lowercase letters. `azure` with the profile `azuread`."),
    setting("service.security.tenant-id", SettingKind::Tenant, "The tenant, for the profile `azuread`. Required there."),
    setting("service.security.ca-file", SettingKind::Text, "A PEM file of certificates that are trusted for identity providers, beside the system's."),
    setting("service.security.claims.firstName", SettingKind::List, "The claims with the given name. The first one that is present counts.").with_default("given_name"),
    setting("service.security.claims.lastName", SettingKind::List, "The claims with the family name.").with_default("family_name"),
    setting("service.security.claims.email", SettingKind::List, "The claims with the email. `email,preferred_username` with the profile `azuread`.").with_default("user_email,preferred_username"),
    setting("service.security.claims.organization", SettingKind::List, "The claims with the organization.").with_default("organization,companyname"),
    setting("service.security.claims.roles", SettingKind::List, "The claims with the roles. Dots lead into a claim that is an object (`realm_access.roles`), unless a claim has the whole name.").with_default("roles"),
    setting("service.security.claims.groups", SettingKind::List, "The claims with the groups, as names or ids. A value makes the account a member of each group that lists it in `claimValues`.").with_default("groups"),
    setting("service.security.defaultServiceAccountRole", SettingKind::Text, "The role of clients without an assigned one: `Admin`, `Contributor`, `User`, or the value that `security.role.*` maps to it, in any case. Without it they are rejected."),
    setting("service.security.serviceAccount.emailDomain", SettingKind::EmailDomain, "The domain (`@...`) of the emails of service accounts. Without it their email is only the `sub`."),
    setting("service.security.jwks.max-stale", SettingKind::Duration { min: MINUTE_MS, max: 365 * DAY_MS }, "How long the provider's keys are used while the provider is unreachable.").with_default("7d"),
    setting("service.security.jwt.algorithms", SettingKind::Choices(ALGORITHMS), "The algorithms (RFC 7518, 3.1; RFC 8037) that access tokens and ID tokens may be signed with.").with_default("RS256"),
    setting("service.security.session.idle", SettingKind::Duration { min: MINUTE_MS, max: 365 * DAY_MS }, "A session without a request ends after this time.").with_default("30m"),
    setting("service.security.session.absolute", SettingKind::Duration { min: MINUTE_MS, max: 365 * DAY_MS }, "A session ends this long after its start, however much it is used. At least `service.security.session.idle`. Sessions survive a restart of the service, but not of the machine.").with_default("12h"),
    setting("security.role.admin", SettingKind::Text, "The role value of an Admin.").with_default("ACCURIDS_ADMIN"),
    setting("security.role.contributor", SettingKind::Text, "The role value of a Contributor.").with_default("ACCURIDS_CONTRIBUTOR"),
    setting("security.role.user", SettingKind::Text, "The role value of a User.").with_default("ACCURIDS_USER"),
    setting("framework.security.oauth2.client.registration.<id>.client-id", SettingKind::Text, "The client id from the provider. Required for sign-in."),
    setting("framework.security.oauth2.client.registration.<id>.client-secret", SettingKind::Text, "The client secret from the provider. Required for sign-in.").as_secret(),
    setting("framework.security.oauth2.client.registration.<id>.client-authentication-method", SettingKind::Choice(&["client_secret_basic", "client_secret_post"]), "How the gateway sends the client secret to the token endpoint: in the header `Authorization`, or in the body. Defaults to the method in the discovery document, otherwise `client_secret_basic`."),
    setting("framework.security.oauth2.client.registration.<id>.redirect-uri", SettingKind::RedirectUri, "The redirect URI. `{baseUrl}` is `service.base-url`, or without it the address that the request was sent to, by the forwarded headers of trusted proxies; `{registrationId}` is the registration identifier.").with_default("{baseUrl}/login/oauth2/code/{registrationId}"),
    setting("framework.security.oauth2.client.registration.<id>.scope", SettingKind::List, "The requested scopes, which must include `openid`.").with_default("profile,openid"),
    setting("framework.security.oauth2.client.registration.<id>.authorization-grant-type", SettingKind::Choice(&["authorization_code"]), "Always `authorization_code`.").with_default("authorization_code"),
    setting("framework.security.oauth2.client.provider.<id>.issuer-uri", SettingKind::Endpoint, "The issuer. The gateway discovers the endpoints there (those given below override them), and checks the issuer of answers and ID tokens. Without it the three endpoints below are required, and no issuer is checked."),
    setting("framework.security.oauth2.client.provider.<id>.authorization-uri", SettingKind::Endpoint, "The authorization endpoint."),
    setting("framework.security.oauth2.client.provider.<id>.token-uri", SettingKind::Endpoint, "The token endpoint."),
    setting("framework.security.oauth2.client.provider.<id>.jwk-set-uri", SettingKind::Endpoint, "The JWKS endpoint."),
    setting("framework.security.oauth2.client.provider.<id>.user-info-uri", SettingKind::Endpoint, "The userinfo endpoint, for claims that the ID token lacks."),
    setting("framework.security.oauth2.client.provider.<id>.user-name-attribute", SettingKind::Text, "The claim that permanently identifies the user and the account. `oid` with the profile `azuread`.").with_default("sub"),
    setting("framework.security.oauth2.resourceserver.jwt.issuer-uri", SettingKind::Endpoint, "The issuer of access tokens, exactly as in their `iss`. Without it access tokens are refused."),
    setting("framework.security.oauth2.resourceserver.jwt.jwk-set-uri", SettingKind::Endpoint, "The issuer's JWKS endpoint. Discovered if it is not set."),
    setting("framework.security.oauth2.resourceserver.jwt.audiences", SettingKind::List, "The expected `aud` claim: one of these. Required with `issuer-uri`."),
];

/// The profiles that turn on sign-in (specification, 5.1 and 5.6).
pub(super) const SIGN_IN_PROFILES: [&str; 2] = ["oauth2", "azuread"];

/// Finds the setting of this exact name.
pub(super) fn find_setting(name: &str) -> Option<&'static Setting> {
    SETTINGS.iter().find(|setting| setting.name == name)
}

#[cfg(test)]
mod tests {
    use super::super::kind::RawValue;
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn defaults_are_valid_and_names_are_distinct_even_as_environment_variables() {
        let mut seen = BTreeSet::new();
        for setting in SETTINGS {
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
