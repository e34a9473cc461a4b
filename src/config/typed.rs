//! Builds [`Settings`] from the values, and checks what depends on several values.
use super::error::ConfigError;
use super::graph_template::GraphTemplate;
use super::key_template::KeyTemplate;
use super::kind::{ParsedValue, SettingKind};
use super::load::{ParsedSetting, default_of};
use super::mqtt;
use super::security;
use super::settings::{
    Compression, DeliveryWindow, EventLimits, ExportFormat, ForwardHeaders, GraphqlLimits, Limits,
    ReviewSettings, Server, Settings, ShapesLimits, Sparql, SparqlLimits, SparqlLogin,
    SparqlProtocol, SparqlStore, Target, TargetKind, Targets, Tls,
};
use super::shared_graphs::warn_about_shared_graphs;
use super::webhooks;
use penstock_base::bucket_name::check_bucket_name;
use penstock_base::telemetry::LogFormat;
use std::collections::{BTreeMap, BTreeSet};
use std::net::{IpAddr, Ipv4Addr};
use std::time::Duration;

const TARGETS_PREFIX: &str = "service.export.targets.";
const DEFAULT_TARGET_PREFIX: &str = "service.export.default.";

/// Builds the settings. If there are errors already, defaults replace the missing values, and the caller discards the
/// result.
pub(super) fn build_settings(
    typed: &BTreeMap<String, ParsedSetting>,
    errors: &mut Vec<ConfigError>,
    warnings: &mut Vec<String>,
) -> Settings {
    let values = Values(typed);
    let settings = Settings {
        server: build_server(&values, errors),
        data_dir: values.get_text("service.data-dir").unwrap_or_default().into(),
        base_url: values.get_text("service.base-url"),
        definitions_dir: values.get_text("service.definitions.dir").map(Into::into),
        gateway_id: values.get_text("service.gateway-id"),
        auto_create_namespaces: values.get_flag("service.namespace.auto-create"),
        limits: Limits {
            body_bytes: values.get_number("service.limits.body"),
            nesting: values.get_count("service.limits.nesting"),
            objects: values.get_count("service.limits.objects"),
            values: values.get_count("service.limits.values"),
            in_flight_bytes: values.get_number("service.limits.in-flight"),
            memory_bytes: Some(values.get_number("service.limits.memory"))
                .filter(|bytes| *bytes > 0),
            disk_reserve_bytes: values.get_number("service.limits.disk-reserve"),
            idempotency_keys: values.get_count("service.limits.idempotency-keys"),
            idempotency_bytes: values.get_number("service.limits.idempotency-bytes"),
            history: values.get_count("service.limits.history"),
            rejected_bytes: values.get_number("service.limits.rejected.bytes"),
            rejected_age: values.get_duration("service.limits.rejected.age"),
            webhook_events: values.get_number("service.limits.webhooks.events"),
            webhook_bytes: values.get_number("service.limits.webhooks.bytes"),
            source_bytes: values.get_number("service.limits.sources"),
            changes: values.get_number("service.limits.changes"),
            change_bytes: values.get_number("service.limits.change-bytes"),
            snapshot_memory_bytes: values.get_count("service.limits.snapshot.memory"),
            snapshot_disk_bytes: values.get_number("service.limits.snapshot.disk"),
            audit: values.get_count("service.limits.audit"),
            graphql: GraphqlLimits {
                depth: values.get_count("service.limits.graphql.depth"),
                complexity: values.get_number("service.limits.graphql.complexity"),
                rows: values.get_number("service.limits.graphql.rows"),
                scan: values.get_number("service.limits.graphql.scan"),
                time: values.get_duration("service.limits.graphql.time"),
                answer: values.get_number("service.limits.graphql.answer"),
                fields: values.get_count("service.limits.graphql.fields"),
            },
            shapes: ShapesLimits {
                time: values.get_duration("service.limits.shapes.time"),
                memory: values.get_number("service.limits.shapes.memory"),
            },
            sparql: SparqlLimits {
                time: values.get_duration("service.limits.sparql.time"),
                memory: values.get_number("service.limits.sparql.memory"),
                rows: values.get_number("service.limits.sparql.rows"),
                update: values.get_number("service.limits.sparql.update"),
            },
        },
        sparql: Sparql {
            allows_updates: values.get_flag("service.sparql.update"),
            services: values.get_list("service.sparql.services"),
        },
        review: ReviewSettings {
            history: values.get_duration("service.review.history"),
            allows_self_approval: values.get_flag("service.review.self-approval"),
        },
        security: security::build_security(&values, errors, warnings),
        events: EventLimits {
            depth: values.get_count("service.events.depth"),
            listeners: values.get_count("service.events.listeners"),
        },
        targets: build_targets(&values, errors, warnings),
        sources: mqtt::build_sources(&values, errors),
        webhooks: webhooks::build_webhooks(&values, errors),
        log_level: values.get_text("service.log.level").unwrap_or_default(),
        log_format: match values.get_text("service.log.format").as_deref() {
            Some("json") => LogFormat::Json,
            _ => LogFormat::Text,
        },
        effective_values: Vec::new(),
        warnings: Vec::new(),
    };
    check_together(&settings, &values, errors, warnings);
    settings
}

/// Checks the names that replace a `<...>`.
pub(super) fn check_ids(typed: &BTreeMap<String, ParsedSetting>, errors: &mut Vec<ConfigError>) {
    let mut seen = BTreeSet::new();
    for (name, ParsedSetting { entry, .. }) in typed {
        if entry.setting.name.starts_with(TARGETS_PREFIX)
            && let Some(id) = &entry.id
            && seen.insert(id)
            && let Err(why) = check_bucket_name(id)
        {
            errors.push(entry.to_error(name, format!("the bucketName {why}")));
        }
    }
}

/// Warns about templates of keys that do not tell the kind of an export.
pub(super) fn warn_about_keys(typed: &BTreeMap<String, ParsedSetting>, warnings: &mut Vec<String>) {
    for (name, ParsedSetting { entry, value }) in typed {
        if entry.setting.kind == SettingKind::KeyTemplate
            && let ParsedValue::Text(text) = value
            && text.parse::<KeyTemplate>().is_ok_and(|template| !template.tells_kind())
        {
            warnings.push(format!(
                "{name} has neither {{kind}} nor {{suffix}}, so a consumer cannot tell incremental and deleted \
                 exports from full ones by their keys; add one of them"
            ));
        }
    }
}

fn check_together(
    settings: &Settings,
    values: &Values<'_>,
    errors: &mut Vec<ConfigError>,
    warnings: &mut Vec<String>,
) {
    check_ids(values.0, errors);
    mqtt::check_names(values.0, errors);
    webhooks::check_names(values.0, errors);
    warn_about_keys(values.0, warnings);
    warn_about_shared_graphs(&settings.targets, warnings);
    let mut report = |name: &str, message: String| {
        if let Some(ParsedSetting { entry, .. }) = values.0.get(name) {
            errors.push(entry.to_error(name, message));
        }
    };
    let address = settings.server.address;
    if let Err(why) = settings.server.check_serving_address(address) {
        report("server.address", why);
    } else if !address.is_loopback() && settings.server.tls.is_none() {
        warnings.push(format!(
            "plain HTTP is served on {address}: passwords and keys go over the network in the clear"
        ));
    }
    if settings.limits.in_flight_bytes < settings.limits.body_bytes {
        report(
            "service.limits.in-flight",
            format!(
                "expected at least service.limits.body, which is {} bytes",
                settings.limits.body_bytes
            ),
        );
    }
    if settings.server.forward_headers == ForwardHeaders::Trusted
        && settings.server.trusted_proxies.is_empty()
    {
        warnings.push(
            "server.forward-headers-strategy is on and service.trusted-proxies is empty, so forwarded headers are ignored".into(),
        );
    }
}

fn build_server(values: &Values<'_>, errors: &mut Vec<ConfigError>) -> Server {
    Server {
        address: match values.get("server.address") {
            Some(ParsedValue::Address(address)) => address,
            _ => IpAddr::V4(Ipv4Addr::LOCALHOST),
        },
        port: u16::try_from(values.get_number("server.port")).unwrap_or_default(),
        forward_headers: match values.get_text("server.forward-headers-strategy").as_deref() {
            Some("native" | "framework") => ForwardHeaders::Trusted,
            _ => ForwardHeaders::None,
        },
        trusted_proxies: match values.get("service.trusted-proxies") {
            Some(ParsedValue::Networks(networks)) => networks,
            _ => Vec::new(),
        },
        cors_allowed_origins: values.get_list("server.cors.allowed-origins"),
        tls: build_tls(values, errors),
        insecure_http: values.get_flag("server.insecure-http"),
        hsts_max_age: values.get_duration("server.hsts.max-age"),
        connections: values.get_count("server.connections"),
        connections_per_address: values.get_count("server.connections-per-address"),
    }
}

/// Builds `server.ssl.*`. Contradictory settings are errors, so that an operator never relies on protection that is
/// not active.
fn build_tls(values: &Values<'_>, errors: &mut Vec<ConfigError>) -> Option<Tls> {
    let certificate = values.get_text("server.ssl.certificate");
    let private_key = values.get_text("server.ssl.certificate-private-key");
    let self_signed = values.get_flag("server.ssl.self-signed");
    let client_auth = values.get_text("server.ssl.client-auth").unwrap_or_default();
    let trust = values.get_text("server.ssl.trust-certificate");
    let asks = client_auth != "none";
    match (&certificate, &private_key) {
        (Some(_), None) => report_missing(
            errors,
            "server.ssl.certificate-private-key".to_owned(),
            "it is missing: server.ssl.certificate needs its private key".to_owned(),
        ),
        (None, Some(_)) => report_missing(
            errors,
            "server.ssl.certificate".to_owned(),
            "it is missing: server.ssl.certificate-private-key needs it".to_owned(),
        ),
        _ => {}
    }
    let mut report = |name: &str, message: &str| {
        if let Some(ParsedSetting { entry, .. }) = values.0.get(name) {
            errors.push(entry.to_error(name, message.to_owned()));
        }
    };
    if certificate.is_some() && self_signed {
        report(
            "server.ssl.self-signed",
            "server.ssl.certificate is set as well; remove one of them",
        );
    }
    let on = certificate.is_some() || self_signed;
    if asks && !on {
        report(
            "server.ssl.client-auth",
            "it needs HTTPS: set server.ssl.certificate or server.ssl.self-signed",
        );
    }
    if asks && trust.is_none() {
        report(
            "server.ssl.client-auth",
            "it needs server.ssl.trust-certificate: the authorities that issue the clients' certificates",
        );
    }
    if !asks && trust.is_some() {
        report(
            "server.ssl.trust-certificate",
            "it has no effect while server.ssl.client-auth is none; set that to want or need",
        );
    }
    on.then(|| Tls {
        certificate: certificate.zip(private_key),
        client_authorities: trust.filter(|_| asks),
        client_certificate_needed: client_auth == "need",
    })
}

fn build_targets(
    values: &Values<'_>,
    errors: &mut Vec<ConfigError>,
    warnings: &mut Vec<String>,
) -> Targets {
    let entries = values.0.values().map(|typed| &typed.entry);
    let names: BTreeSet<String> = entries
        .filter(|entry| entry.setting.name.starts_with(TARGETS_PREFIX))
        .filter_map(|entry| entry.id.clone())
        .collect();
    let mut named = BTreeMap::new();
    for name in names {
        let prefix = if name.contains('.') {
            format!("{}[{name}].", TARGETS_PREFIX.trim_end_matches('.'))
        } else {
            format!("{TARGETS_PREFIX}{name}.")
        };
        named.extend(build_target(values, &prefix, errors, warnings).map(|target| (name, target)));
    }
    let default = build_target(values, DEFAULT_TARGET_PREFIX, errors, warnings);
    Targets {
        named,
        default,
        history_bytes: values.get_number("service.export.history"),
        spool_bytes: values.get_number("service.export.spool"),
        bandwidth: Some(values.get_number("service.export.bandwidth")).filter(|bytes| *bytes > 0),
        delivery_window: build_times(values),
        has_extended_metadata: values.get_text("service.export.metadata").as_deref()
            == Some("extended"),
        heartbeat_interval: Some(values.get_duration("service.export.heartbeat"))
            .filter(|interval| !interval.is_zero()),
    }
}

fn build_times(values: &Values<'_>) -> Option<DeliveryWindow> {
    let window = values.get_text("service.export.window")?.parse().ok()?;
    let zone = values.get_text("service.export.timezone")?.parse().ok()?;
    Some(DeliveryWindow { window, zone })
}

/// Builds the target whose properties begin with `prefix`. Returns `None` if there are none, or if one has an error.
fn build_target(
    values: &Values<'_>,
    prefix: &str,
    errors: &mut Vec<ConfigError>,
    warnings: &mut Vec<String>,
) -> Option<Target> {
    let given: Vec<&str> = values.0.keys().filter_map(|name| name.strip_prefix(prefix)).collect();
    if given.is_empty() {
        return None;
    }
    let text = |property: &str| values.get_text(&format!("{prefix}{property}"));
    let Some(kind) = text("type") else {
        report_missing(
            errors,
            format!("{prefix}type"),
            "it is missing: s3, directory or sparql".to_owned(),
        );
        return None;
    };
    let (required, foreign) = properties_of_type(&kind);
    for property in required.iter().filter(|property| !given.contains(property)) {
        let message =
            format!("it is missing: a target of type {kind} needs {}", required.join(", "));
        report_missing(errors, format!("{prefix}{property}"), message);
    }
    for property in foreign.iter().filter(|property| given.contains(property)) {
        warnings.push(format!("{prefix}{property} does nothing: the target's type is {kind}"));
    }
    let ca_file = text("ca-file").filter(|_| kind != "directory");
    if let Some(path) = &ca_file
        && let Err(error) = std::fs::File::open(path)
        && let Some(ParsedSetting { entry, .. }) = values.0.get(&format!("{prefix}ca-file"))
    {
        errors.push(
            entry.to_error(&format!("{prefix}ca-file"), format!("it cannot be read: {error}")),
        );
    }
    let kind = match kind.as_str() {
        "s3" => TargetKind::S3 {
            endpoint: text("endpoint")?,
            region: text("region").unwrap_or_else(|| "us-east-1".to_owned()),
            bucket: text("bucket"),
            access_key_id: text("access-key-id")?,
            secret_access_key: text("secret-access-key")?,
            path_style: values.get(&format!("{prefix}path-style"))
                != Some(ParsedValue::Flag(false)),
            ca_file: ca_file.map(Into::into),
            compression: match text("compression").as_deref() {
                Some("gzip") => Compression::Gzip,
                Some("zstd") => Compression::Zstd,
                _ => Compression::None,
            },
        },
        "sparql" => TargetKind::Sparql(SparqlStore {
            endpoint: text("endpoint")?,
            protocol: match text("protocol").as_deref() {
                Some("graph-store") => SparqlProtocol::GraphStore,
                _ => SparqlProtocol::Update,
            },
            login: build_login(values, prefix, errors, warnings),
            ca_file: ca_file.map(Into::into),
            graph: text("graph")
                .and_then(|graph| graph.parse::<GraphTemplate>().ok())
                .unwrap_or_default(),
        }),
        _ => TargetKind::Directory { path: text("path").map(Into::into) },
    };
    Some(Target {
        kind,
        prefix: text("prefix").unwrap_or_default(),
        key: text("key").and_then(|key| key.parse().ok()).unwrap_or_default(),
        format: match text("format").as_deref() {
            Some("jsonl") => ExportFormat::JsonLines,
            _ => ExportFormat::Json,
        },
    })
}

/// Returns the properties that a target of this type needs, and the ones that do nothing there.
fn properties_of_type(kind: &str) -> (&'static [&'static str], &'static [&'static str]) {
    match kind {
        "s3" => (
            &["endpoint", "access-key-id", "secret-access-key"],
            &["path", "protocol", "graph", "username", "password", "bearer-token"],
        ),
        "sparql" => (
            &["endpoint"],
            &[
                "path",
                "region",
                "bucket",
                "prefix",
                "key",
                "format",
                "access-key-id",
                "secret-access-key",
                "path-style",
                "compression",
            ],
        ),
        _ => (
            &[],
            &[
                "endpoint",
                "region",
                "bucket",
                "access-key-id",
                "secret-access-key",
                "path-style",
                "ca-file",
                "compression",
                "protocol",
                "graph",
                "username",
                "password",
                "bearer-token",
            ],
        ),
    }
}

/// Builds the credentials for a SPARQL store.
fn build_login(
    values: &Values<'_>,
    prefix: &str,
    errors: &mut Vec<ConfigError>,
    warnings: &mut Vec<String>,
) -> SparqlLogin {
    let text = |property: &str| values.get_text(&format!("{prefix}{property}"));
    let login = match (text("username"), text("password"), text("bearer-token")) {
        (None, None, None) => return SparqlLogin::Anonymous,
        (None, None, Some(token)) => SparqlLogin::Bearer(token),
        (Some(username), Some(password), None) => SparqlLogin::Basic { username, password },
        (None, Some(_), _) => {
            let message = "it is missing: `password` needs it".to_owned();
            report_missing(errors, format!("{prefix}username"), message);
            return SparqlLogin::Anonymous;
        }
        (Some(_), None, _) => {
            let message = "it is missing: `username` needs it".to_owned();
            report_missing(errors, format!("{prefix}password"), message);
            return SparqlLogin::Anonymous;
        }
        (Some(_), Some(_), Some(_)) => {
            if let Some(ParsedSetting { entry, .. }) =
                values.0.get(&format!("{prefix}bearer-token"))
            {
                let message = "it cannot be combined with `username` and `password`".to_owned();
                errors.push(entry.to_error(&format!("{prefix}bearer-token"), message));
            }
            return SparqlLogin::Anonymous;
        }
    };
    if let Some(endpoint) = text("endpoint")
        && endpoint.starts_with("http://")
        && !is_on_loopback(&endpoint)
    {
        warnings.push(format!(
            "{prefix}endpoint is plain HTTP: the credentials and the data go over the network in the clear"
        ));
    }
    login
}

/// Returns whether the host of a URL is this machine.
pub(super) fn is_on_loopback(url: &str) -> bool {
    let url = reqwest::Url::parse(url).ok();
    url.as_ref().and_then(reqwest::Url::host_str).is_some_and(|host| {
        let address = host.trim_start_matches('[').trim_end_matches(']').parse::<IpAddr>();
        host == "localhost" || address.is_ok_and(|address| address.is_loopback())
    })
}

/// Reports a missing value, unless there is already an error about the name.
pub(super) fn report_missing(errors: &mut Vec<ConfigError>, name: String, message: String) {
    if errors.iter().all(|error| error.name.as_ref() != Some(&name)) {
        errors.push(ConfigError::missing_value(name, message));
    }
}

/// The values by name. If the value of a name has an error, the default replaces it.
pub(super) struct Values<'a>(pub(super) &'a BTreeMap<String, ParsedSetting>);

impl Values<'_> {
    pub(super) fn get(&self, name: &str) -> Option<ParsedValue> {
        self.0.get(name).map(|typed| typed.value.clone()).or_else(|| default_of(name))
    }

    pub(super) fn get_text(&self, name: &str) -> Option<String> {
        match self.get(name) {
            Some(ParsedValue::Text(text)) => Some(text),
            _ => None,
        }
    }

    pub(super) fn get_list(&self, name: &str) -> Vec<String> {
        match self.get(name) {
            Some(ParsedValue::List(items)) => items,
            _ => Vec::new(),
        }
    }

    pub(super) fn get_flag(&self, name: &str) -> bool {
        matches!(self.get(name), Some(ParsedValue::Flag(true)))
    }

    pub(super) fn get_number(&self, name: &str) -> u64 {
        match self.get(name) {
            Some(ParsedValue::Number(number)) => number,
            _ => 0,
        }
    }

    pub(super) fn get_duration(&self, name: &str) -> Duration {
        Duration::from_millis(self.get_number(name))
    }

    pub(super) fn get_count(&self, name: &str) -> usize {
        usize::try_from(self.get_number(name)).unwrap_or(usize::MAX)
    }
}
