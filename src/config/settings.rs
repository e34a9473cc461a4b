//! The typed, checked and complete settings that the rest of the program uses.
use super::graph_template::GraphTemplate;
use super::key_template::KeyTemplate;
use super::mqtt::Source;
use super::webhooks::Webhook;
use super::window::Window;
use penstock_base::Role;
use penstock_base::telemetry::LogFormat;
use penstock_base::time_zone::Zone;
use std::collections::BTreeMap;
use std::net::IpAddr;
use std::path::PathBuf;
use std::time::Duration;

/// All settings.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Settings {
    /// `server.*`
    pub server: Server,
    /// `service.data-dir`
    pub data_dir: PathBuf,
    /// `service.base-url`, without a slash at its end.
    pub base_url: Option<String>,
    /// `service.definitions.dir`
    pub definitions_dir: Option<PathBuf>,
    /// `service.gateway-id`; by default it is generated at the first start and kept in the data directory.
    pub gateway_id: Option<String>,
    /// `service.namespace.auto-create`
    pub auto_create_namespaces: bool,
    /// `service.limits.*`
    pub limits: Limits,
    /// `service.sparql.*`
    pub sparql: Sparql,
    /// `service.review.*`
    pub review: ReviewSettings,
    /// `service.events.*`
    pub events: EventLimits,
    /// `security`, `service.security.*`, `framework.security.*`: authentication and authorization.
    pub security: Security,
    /// `service.export.*`
    pub targets: Targets,
    /// `service.sources.<name>.*`, by name.
    pub sources: BTreeMap<String, Source>,
    /// `service.webhooks.<name>.*`, by name.
    pub webhooks: BTreeMap<String, Webhook>,
    /// `service.log.level`: a filter as tracing's `EnvFilter` reads it.
    pub log_level: String,
    /// `service.log.format`
    pub log_format: LogFormat,
    /// The warnings about the configuration, a sentence each.
    pub warnings: Vec<String>,
    /// Every effective value, by name, with secrets masked.
    pub effective_values: Vec<EffectiveValue>,
}

/// An effective value: the one that overrides all others.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EffectiveValue {
    /// The setting.
    pub name: String,
    /// Its value; secrets are masked.
    pub value: String,
    /// Where it comes from.
    pub origin: String,
    /// A description of its effect.
    pub meaning: &'static str,
}

/// `server.*`
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Server {
    /// `server.address`
    pub address: IpAddr,
    /// `server.port`; with 0 the system chooses the port, and the log shows it.
    pub port: u16,
    /// `server.forward-headers-strategy`
    pub forward_headers: ForwardHeaders,
    /// `service.trusted-proxies`: addresses or networks (`10.0.0.0/8`) whose forwarded headers are trusted.
    pub trusted_proxies: Vec<(IpAddr, u8)>,
    /// `server.cors.allowed-origins`
    pub cors_allowed_origins: Vec<String>,
    /// `server.ssl.*`; without it the gateway serves plain HTTP.
    pub tls: Option<Tls>,
    /// `server.insecure-http`: whether plain HTTP is allowed beyond loopback.
    pub insecure_http: bool,
    /// `server.hsts.max-age`
    pub hsts_max_age: Duration,
    /// `server.connections`
    pub connections: usize,
    /// `server.connections-per-address`
    pub connections_per_address: usize,
}

impl Server {
    /// Returns an error if this address must not be served, because credentials would go over the network in the
    /// clear.
    pub fn check_serving_address(&self, address: IpAddr) -> Result<(), String> {
        if address.to_canonical().is_loopback() || self.tls.is_some() || self.insecure_http {
            return Ok(());
        }
        Err("plain HTTP is served only on loopback (127.0.0.1, ::1), because passwords and keys would go \
             over the network in the clear; set server.ssl.certificate or server.ssl.self-signed, or, \
             behind a proxy that terminates HTTPS, server.insecure-http=true"
            .to_owned())
    }

    /// Whether `service.trusted-proxies` names this address, also in its IPv4-mapped IPv6 form.
    pub fn is_trusted_proxy(&self, address: IpAddr) -> bool {
        self.trusted_proxies.iter().any(|network| is_within(address.to_canonical(), *network))
    }
}

fn is_within(address: IpAddr, (network, bits): (IpAddr, u8)) -> bool {
    let (address, network, width) = match (address, network) {
        (IpAddr::V4(a), IpAddr::V4(n)) => (u128::from(a.to_bits()), u128::from(n.to_bits()), 32),
        (IpAddr::V6(a), IpAddr::V6(n)) => (a.to_bits(), n.to_bits(), 128),
        _ => return false,
    };
    let host_bits = width - u32::from(bits).min(width);
    address.checked_shr(host_bits).unwrap_or(0) == network.checked_shr(host_bits).unwrap_or(0)
}

/// `server.ssl.*`
#[derive(Clone, PartialEq, Eq)]
pub struct Tls {
    /// `certificate` and `certificate-private-key`, each a file or the PEM text; `None` for `self-signed`.
    pub certificate: Option<(String, String)>,
    /// `trust-certificate`; `None` if clients are not asked for a certificate.
    pub client_authorities: Option<String>,
    /// `client-auth=need`
    pub client_certificate_needed: bool,
}

impl std::fmt::Debug for Tls {
    /// Omits the fields, because the private key may be present as text.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Tls")
            .field("self_signed", &self.certificate.is_none())
            .finish_non_exhaustive()
    }
}

/// `server.forward-headers-strategy`
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum ForwardHeaders {
    /// `none`: forwarded headers are ignored.
    #[default]
    None,
    /// `native` or `framework`: `Forwarded` and `X-Forwarded-*` of trusted proxies are used.
    Trusted,
}

/// `service.limits.*`
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// `body`: the maximum bytes of one request body, or of one NDJSON line.
    pub body_bytes: u64,
    /// `nesting`: the maximum levels of JSON.
    pub nesting: usize,
    /// `objects`: the maximum objects in one JSON request.
    pub objects: usize,
    /// `values`: the maximum JSON values in one JSON request, or in a chunk of NDJSON.
    pub values: usize,
    /// `in-flight`: the maximum bytes of all concurrent bodies.
    pub in_flight_bytes: u64,
    /// `memory`: the bytes that the process may use, in addition to the limit of its control group.
    pub memory_bytes: Option<u64>,
    /// `disk-reserve`: the bytes of the disk that are kept free.
    pub disk_reserve_bytes: u64,
    /// `idempotency-keys`: the number of answers kept for 24 h.
    pub idempotency_keys: usize,
    /// `idempotency-bytes`: the total bytes of those answers.
    pub idempotency_bytes: u64,
    /// `history`: the number of records kept, of ingestions and of delivered exports.
    pub history: usize,
    /// `rejected.bytes`: the maximum bytes of all dead letters.
    pub rejected_bytes: u64,
    /// `rejected.age`: how long dead letters are kept.
    pub rejected_age: Duration,
    /// `webhooks.events`: the maximum number of events that wait for one webhook.
    pub webhook_events: u64,
    /// `webhooks.bytes`: the maximum bytes of these events.
    pub webhook_bytes: u64,
    /// `sources`: the maximum bytes of the messages that all sources together hold.
    pub source_bytes: u64,
    /// `changes`: the maximum number of open changes under review.
    pub changes: u64,
    /// `change-bytes`: the maximum bytes of all changes.
    pub change_bytes: u64,
    /// `snapshot.memory`: the bytes that all snapshots together keep in memory of what commits change meanwhile.
    pub snapshot_memory_bytes: usize,
    /// `snapshot.disk`: the bytes that they keep in files.
    pub snapshot_disk_bytes: u64,
    /// `audit`: the number of events kept in the audit trail.
    pub audit: usize,
    /// `graphql.*`: the limits of one GraphQL request.
    pub graphql: GraphqlLimits,
    /// `shapes.*`: the limits of one validation.
    pub shapes: ShapesLimits,
    /// `sparql.*`: the limits of one SPARQL request.
    pub sparql: SparqlLimits,
}

/// `service.limits.graphql.*`
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct GraphqlLimits {
    /// `depth`: the maximum levels of fields.
    pub depth: usize,
    /// `complexity`: the maximum fields of the answer, computed before execution.
    pub complexity: u64,
    /// `rows`: the maximum objects of the answer.
    pub rows: u64,
    /// `scan`: the maximum objects to examine.
    pub scan: u64,
    /// `time`: the maximum execution time.
    pub time: Duration,
    /// `answer`: the maximum bytes of the answer.
    pub answer: u64,
    /// `fields`: the maximum fields of all Business Objects in the schema.
    pub fields: usize,
}

/// `service.limits.shapes.*`
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ShapesLimits {
    /// `time`: the maximum time of the validation of an ingestion.
    pub time: Duration,
    /// `memory`: the maximum memory of a validation, in bytes.
    pub memory: u64,
}

/// `service.limits.sparql.*`
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SparqlLimits {
    /// `time`: the maximum execution time of a query.
    pub time: Duration,
    /// `memory`: the maximum bytes of a query.
    pub memory: u64,
    /// `rows`: the maximum rows or triples of an answer.
    pub rows: u64,
    /// `update`: the maximum quads that a request inserts and removes.
    pub update: u64,
}

/// `service.review.*`
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ReviewSettings {
    /// `history`: how long closed changes are kept.
    pub history: Duration,
    /// `self-approval`: whether the author of a change may approve it.
    pub allows_self_approval: bool,
}

/// `service.sparql.*`
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Sparql {
    /// `update`: whether updates are allowed.
    pub allows_updates: bool,
    /// `services`: the endpoints that `SERVICE` may name.
    pub services: Vec<String>,
}

impl Limits {
    /// Returns these limits, reduced to fit into `memory` bytes. All concurrent bodies get a sixteenth, and one body
    /// half of that; the messages of sources get as much as all bodies. The values of the running change get a third, at a kilobyte each. The limits are never reduced
    /// below 8 MiB, 4 MiB and 10,000 values.
    #[must_use]
    pub fn fit_into_memory(self, memory: u64) -> Self {
        let bodies = (memory / 16).max(8 << 20);
        let values = usize::try_from(memory / (3 << 10)).unwrap_or(usize::MAX).max(10_000);
        Self {
            body_bytes: self.body_bytes.min(bodies / 2),
            in_flight_bytes: self.in_flight_bytes.min(bodies),
            source_bytes: self.source_bytes.min(bodies),
            values: self.values.min(values),
            ..self
        }
    }
}

/// `service.events.*`
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct EventLimits {
    /// `depth`: the number of events kept for listeners that reconnect.
    pub depth: usize,
    /// `listeners`: the maximum number of concurrent listeners.
    pub listeners: usize,
}

/// The settings of authentication and authorization.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Security {
    /// Sign-in through an OpenID provider (`security=oauth2` with the profile `oauth2` or `azuread`). Without it, the
    /// gateway uses its built-in accounts.
    pub oidc: Option<Oidc>,
    /// The access tokens of machines; without `issuer-uri` they are refused.
    pub resource_server: Option<ResourceServer>,
    /// The client id of each registration. The audience of an ID token is one of them.
    pub client_ids: Vec<String>,
    /// `service.security.claims.*`
    pub claims: Claims,
    /// `security.role.*`
    pub role_values: RoleValues,
    /// `service.security.jwt.algorithms`: the allowed signature algorithms of tokens.
    pub algorithms: Vec<String>,
    /// `service.security.ca-file`: certificates that are trusted for providers, in addition to the system's.
    pub ca_file: Option<PathBuf>,
    /// `service.security.session.*`
    pub session: SessionLimits,
}

/// `service.security.session.*`: the lifetime of a session, in elapsed time, independent of the clock.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SessionLimits {
    /// `idle`: the maximum time without a request.
    pub idle: Duration,
    /// `absolute`: the maximum time from the start of the session.
    pub absolute: Duration,
}

impl Default for SessionLimits {
    fn default() -> Self {
        Self { idle: Duration::from_mins(30), absolute: Duration::from_hours(12) }
    }
}

/// The registration and its provider (specification, 5.3).
#[derive(Clone, PartialEq, Eq, Default)]
pub struct Oidc {
    /// `service.security.registration`
    pub registration: String,
    /// `client-id`
    pub client_id: String,
    /// `client-secret`
    pub client_secret: String,
    /// `redirect-uri`, with its placeholders.
    pub redirect_uri: String,
    /// `client-authentication-method`; by default the discovery document decides.
    pub client_authentication: Option<ClientAuthentication>,
    /// `scope`
    pub scopes: Vec<String>,
    /// `provider.<id>.issuer-uri`
    pub issuer_uri: Option<String>,
    /// `provider.<id>.authorization-uri`
    pub authorization_uri: Option<String>,
    /// `provider.<id>.token-uri`
    pub token_uri: Option<String>,
    /// `provider.<id>.jwk-set-uri`
    pub jwk_set_uri: Option<String>,
    /// `provider.<id>.user-info-uri`
    pub user_info_uri: Option<String>,
    /// `provider.<id>.user-name-attribute`
    pub user_name_attribute: String,
}

/// How the client secret is sent to the token endpoint (RFC 6749, 2.3.1).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ClientAuthentication {
    /// `client_secret_basic`: in the header `Authorization`.
    Basic,
    /// `client_secret_post`: in the body.
    Post,
}

impl Oidc {
    /// Returns the issuer that accounts name: the configured one, or else the registration identifier.
    pub fn identity_issuer(&self) -> &str {
        self.issuer_uri.as_deref().unwrap_or(&self.registration)
    }
}

impl std::fmt::Debug for Oidc {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Oidc({}, client {:?})", self.registration, self.client_id)
    }
}

/// `framework.security.oauth2.resourceserver.jwt.*` and related settings (specification, 5.7).
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ResourceServer {
    /// `issuer-uri`
    pub issuer_uri: String,
    /// `jwk-set-uri`
    pub jwk_set_uri: Option<String>,
    /// `audiences`
    pub audiences: Vec<String>,
    /// The client id of the registration, if access tokens have it as their audience: the profile `azuread` with the
    /// issuer of version 2.0.
    pub client_id_audience: Option<String>,
    /// The issuer in the accounts of users, if users sign in at this provider. A token that such a user delegated acts
    /// as that user's account.
    pub sign_in_issuer: Option<String>,
    /// `service.security.defaultServiceAccountRole`
    pub default_role: Option<Role>,
    /// `service.security.serviceAccount.emailDomain`
    pub email_domain: Option<String>,
    /// `service.security.jwks.max-stale`: how long cached keys are used while the provider is unreachable.
    pub max_stale: Duration,
}

/// `service.security.claims.*`: the claims for each attribute; the first claim that is present counts.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Claims {
    /// `firstName`
    pub first_name: Vec<String>,
    /// `lastName`
    pub last_name: Vec<String>,
    /// `email`
    pub email: Vec<String>,
    /// `organization`
    pub organization: Vec<String>,
    /// `roles`
    pub roles: Vec<String>,
    /// `groups`
    pub groups: Vec<String>,
}

/// `security.role.*`: the value of the roles claim for each role.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct RoleValues {
    /// `admin`
    pub admin: String,
    /// `contributor`
    pub contributor: String,
    /// `user`
    pub user: String,
}

/// The targets of bucketNames.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Targets {
    /// `service.export.targets.<bucketName>.*`
    pub named: BTreeMap<String, Target>,
    /// `service.export.default.*`: the target for every bucketName without an entry.
    pub default: Option<Target>,
    /// `service.export.history`: the maximum bytes of delivered files kept for reading and replay.
    pub history_bytes: u64,
    /// `service.export.bandwidth`: bytes per second for all targets together.
    pub bandwidth: Option<u64>,
    /// `service.export.window` and its time zone.
    pub delivery_window: Option<DeliveryWindow>,
    /// `service.export.spool`: the maximum bytes of files that wait for their targets.
    pub spool_bytes: u64,
    /// `service.export.metadata`: whether the metadata of an export also has its kind, its sequence and its origin.
    pub has_extended_metadata: bool,
    /// `service.export.heartbeat`: the interval of heartbeats.
    pub heartbeat_interval: Option<Duration>,
}

/// The times of day at which exports are delivered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DeliveryWindow {
    /// `service.export.window`
    pub window: Window,
    /// `service.export.timezone`
    pub zone: Zone,
}

/// The compression of an exported object.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Compression {
    /// No compression.
    #[default]
    None,
    /// `gzip` (RFC 1952).
    Gzip,
    /// `zstd` (RFC 8878).
    Zstd,
}

/// The format of an exported file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum ExportFormat {
    /// `json`: one document with the metadata and the objects.
    #[default]
    Json,
    /// `jsonl`: one object a line. The metadata is an object of its own.
    JsonLines,
    /// The changes for a SPARQL store as N-Quads. Each quad is in the graph of the object that it belongs to.
    Quads,
    /// The whole graph for a SPARQL store as N-Triples, whatever the kind of the export is.
    Triples,
}

impl std::fmt::Display for ExportFormat {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Json => "json",
            Self::JsonLines => "jsonl",
            Self::Quads => "quads",
            Self::Triples => "triples",
        })
    }
}

/// An export target.
#[derive(Clone, PartialEq, Eq)]
pub struct Target {
    /// `type`
    pub kind: TargetKind,
    /// `prefix`: the prefix of every key.
    pub prefix: String,
    /// `key`: the template of the keys.
    pub key: KeyTemplate,
    /// `format`
    pub format: ExportFormat,
}

/// The kind of a target and its properties.
#[derive(Clone, PartialEq, Eq)]
pub enum TargetKind {
    /// `directory`: `path`, by default `<data-dir>/buckets/<bucketName>`.
    Directory {
        /// The directory that holds the bucket's directory, or `None` for `<data-dir>/buckets`.
        path: Option<PathBuf>,
    },
    /// `s3`
    S3 {
        /// `endpoint`: the URL of the server.
        endpoint: String,
        /// `region`
        region: String,
        /// `bucket`: the bucket's name there, by default the bucketName.
        bucket: Option<String>,
        /// `access-key-id`
        access_key_id: String,
        /// `secret-access-key`
        secret_access_key: String,
        /// `path-style`
        path_style: bool,
        /// `ca-file`: a file of PEM certificates that are trusted for this target.
        ca_file: Option<PathBuf>,
        /// `compression`
        compression: Compression,
    },
    /// `sparql`
    Sparql(SparqlStore),
}

/// A SPARQL store as a target.
#[derive(Clone, PartialEq, Eq)]
pub struct SparqlStore {
    /// `endpoint`: the URL that accepts updates, or that of the Graph Store Protocol.
    pub endpoint: String,
    /// `protocol`
    pub protocol: SparqlProtocol,
    /// `username` and `password`, or `bearer-token`
    pub login: SparqlLogin,
    /// `ca-file`: a file of PEM certificates that are trusted for this target.
    pub ca_file: Option<PathBuf>,
    /// `graph`: the template of the graphs.
    pub graph: GraphTemplate,
}

/// How exports are written to a SPARQL store.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum SparqlProtocol {
    /// `update`: SPARQL 1.1 Update.
    #[default]
    Update,
    /// `graph-store`: each delivery replaces the graph with the SPARQL 1.1 Graph Store HTTP Protocol.
    GraphStore,
}

/// The credentials for a SPARQL store.
#[derive(Clone, PartialEq, Eq, Default)]
pub enum SparqlLogin {
    /// None.
    #[default]
    Anonymous,
    /// `username` and `password` (RFC 7617).
    Basic {
        /// `username`
        username: String,
        /// `password`
        password: String,
    },
    /// `bearer-token` (RFC 6750).
    Bearer(String),
}

impl std::fmt::Debug for Target {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match &self.kind {
            TargetKind::Directory { path } => {
                write!(f, "Directory({path:?}, prefix {:?})", self.prefix)
            }
            TargetKind::S3 { endpoint, bucket, .. } => {
                write!(f, "S3({endpoint}, bucket {bucket:?}, prefix {:?})", self.prefix)
            }
            TargetKind::Sparql(SparqlStore { endpoint, protocol, graph, .. }) => {
                write!(f, "Sparql({endpoint}, {protocol:?}, graph {graph})")
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn networks_contain_their_addresses() {
        let net = |text: &str, bits| (text.parse().unwrap(), bits);
        let within = |address: &str, net| is_within(address.parse().unwrap(), net);
        assert!(within("10.1.2.3", net("10.0.0.0", 8)));
        assert!(!within("11.1.2.3", net("10.0.0.0", 8)));
        assert!(within("1.2.3.4", net("0.0.0.0", 0)));
        assert!(within("10.0.0.1", net("10.0.0.1", 32)));
        assert!(!within("10.0.0.2", net("10.0.0.1", 32)));
        assert!(within("fd00::1", net("fd00::", 8)));
        assert!(within("fd00::1", net("::", 0)));
        assert!(!within("10.0.0.1", net("::", 0)));
    }

    #[test]
    fn limits_shrink_to_fit_memory() {
        let sources = crate::Sources::default();
        let configured = crate::load(&sources).unwrap().settings.limits;
        assert_eq!(configured.fit_into_memory(1 << 30), configured);
        let of_a_gateway = configured.fit_into_memory(150 << 20);
        assert_eq!(of_a_gateway.in_flight_bytes, (150 << 20) / 16);
        assert_eq!(of_a_gateway.body_bytes, (150 << 20) / 32);
        assert_eq!(of_a_gateway.values, 51_200);
        let of_sources = Limits { source_bytes: 1 << 30, ..configured }.fit_into_memory(150 << 20);
        assert_eq!(of_sources.source_bytes, (150 << 20) / 16);
        let of_a_small_one = configured.fit_into_memory(1 << 20);
        assert_eq!((of_a_small_one.in_flight_bytes, of_a_small_one.body_bytes), (8 << 20, 4 << 20));
        assert_eq!(of_a_small_one.values, 10_000);
        let modest =
            Limits { body_bytes: 1 << 20, in_flight_bytes: 2 << 20, values: 100, ..configured };
        assert_eq!(modest.fit_into_memory(1 << 20), modest);
    }
}
