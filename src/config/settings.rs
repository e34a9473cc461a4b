//! The settings as the rest of the program sees them: typed, checked, complete.
use super::window::Window;
use penstock_base::Role;
use penstock_base::telemetry::LogFormat;
use penstock_base::time_zone::Zone;
use std::collections::BTreeMap;
use std::net::IpAddr;
use std::path::PathBuf;
use std::time::Duration;

/// Everything the configuration decides.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Settings {
    /// `server.*`
    pub server: Server,
    /// `service.data-dir`
    pub data_dir: PathBuf,
    /// `service.base-url`, without a slash at its end.
    pub base_url: Option<String>,
    /// `service.gateway-id`; without it one is made at the first start and kept in the data directory.
    pub gateway_id: Option<String>,
    /// `service.namespace.auto-create`
    pub auto_create_namespaces: bool,
    /// `service.limits.*`
    pub limits: Limits,
    /// `service.events.*`
    pub events: Events,
    /// Who may come in: `security`, `service.security.*`, `framework.security.*`
    pub security: Security,
    /// `service.export.*`
    pub targets: Targets,
    /// `service.log.level`: a filter as tracing's `EnvFilter` reads it.
    pub log_level: String,
    /// `service.log.format`
    pub log_format: LogFormat,
    /// What the operator should know of the configuration, a sentence each.
    pub warnings: Vec<String>,
    /// Every value in force, by name, as it may be shown.
    pub effective: Vec<Effective>,
}

/// One value in force.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Effective {
    /// The setting.
    pub name: String,
    /// Its value; a secret one is masked.
    pub value: String,
    /// Where it comes from.
    pub origin: String,
}

/// `server.*`
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Server {
    /// `server.address`
    pub address: IpAddr,
    /// `server.port`; 0 lets the system choose, and the log says which.
    pub port: u16,
    /// `server.forward-headers-strategy`
    pub forward_headers: ForwardHeaders,
    /// `service.trusted-proxies`: addresses or networks (`10.0.0.0/8`) whose forwarded headers are believed.
    pub trusted_proxies: Vec<(IpAddr, u8)>,
    /// `server.cors.allowed-origins`
    pub cors_allowed_origins: Vec<String>,
    /// `server.ssl.*`; without it HTTP is plain.
    pub tls: Option<Tls>,
    /// `server.insecure-http`: plain HTTP beyond loopback, too.
    pub insecure_http: bool,
    /// `server.hsts.max-age`
    pub hsts_max_age: Duration,
    /// `server.connections`
    pub connections: usize,
    /// `server.connections-per-address`
    pub connections_per_address: usize,
}

impl Server {
    /// Why this address may not be served: credentials would go over the network in the clear.
    pub fn may_serve(&self, address: IpAddr) -> Result<(), String> {
        if address.to_canonical().is_loopback() || self.tls.is_some() || self.insecure_http {
            return Ok(());
        }
        Err("plain HTTP is served on loopback alone (127.0.0.1, ::1), since passwords and keys would go \
             over the network in the clear; set server.ssl.certificate or server.ssl.self-signed, or, \
             behind a proxy that ends HTTPS, server.insecure-http=true"
            .to_owned())
    }

    /// Whether `service.trusted-proxies` names this address, also where it comes in as one of IPv6.
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
    /// `trust-certificate`, where clients are asked for a certificate.
    pub client_authorities: Option<String>,
    /// `client-auth=need`
    pub client_certificate_needed: bool,
}

impl std::fmt::Debug for Tls {
    /// The private key may stand there as text.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Tls")
            .field("self_signed", &self.certificate.is_none())
            .finish_non_exhaustive()
    }
}

/// `server.forward-headers-strategy`
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum ForwardHeaders {
    /// `none`: forwarded headers are not looked at.
    #[default]
    None,
    /// `native` or `framework`: `Forwarded` and `X-Forwarded-*` of trusted proxies are believed.
    Trusted,
}

/// `service.limits.*`
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// `body`: bytes of one request body, or of one NDJSON line.
    pub body: u64,
    /// `nesting`: levels of JSON.
    pub nesting: usize,
    /// `objects`: objects in one JSON request.
    pub objects: usize,
    /// `values`: JSON values in one JSON request, or in a chunk of NDJSON.
    pub values: usize,
    /// `in-flight`: bytes of all bodies at once.
    pub in_flight: u64,
    /// `memory`: bytes that the process may use, besides what its control group allows.
    pub memory: Option<u64>,
    /// `disk-reserve`: bytes of the disk that are kept free.
    pub disk_reserve: u64,
    /// `idempotency-keys`: answers kept for 24 h.
    pub idempotency_keys: usize,
    /// `idempotency-bytes`: of those answers.
    pub idempotency_bytes: u64,
    /// `history`: records of ingestions, and of delivered exports, kept.
    pub history: usize,
    /// `audit`: events of the audit trail kept.
    pub audit: usize,
    /// `graphql.*`: what one GraphQL request may ask for.
    pub graphql: GraphqlLimits,
}

/// `service.limits.graphql.*`
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct GraphqlLimits {
    /// `depth`: levels of fields.
    pub depth: usize,
    /// `complexity`: fields of the answer, as told beforehand.
    pub complexity: u64,
    /// `rows`: objects of the answer.
    pub rows: u64,
    /// `scan`: objects that are looked at.
    pub scan: u64,
    /// `time`: how long it may take.
    pub time: Duration,
    /// `answer`: bytes of the answer.
    pub answer: u64,
    /// `fields`: of all Business Objects in the schema.
    pub fields: usize,
}

impl Limits {
    /// These, and no more of what takes memory than fits into so many bytes of it: a sixteenth for all bodies
    /// at once, half of that for one, and a third for the values of the change under way, at a kilobyte each.
    /// Smaller ones than a small gateway's are not asked for.
    #[must_use]
    pub fn within(self, memory: u64) -> Self {
        let bodies = (memory / 16).max(8 << 20);
        let values = usize::try_from(memory / (3 << 10)).unwrap_or(usize::MAX).max(10_000);
        Self {
            body: self.body.min(bodies / 2),
            in_flight: self.in_flight.min(bodies),
            values: self.values.min(values),
            ..self
        }
    }
}

/// `service.events.*`
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Events {
    /// `depth`: events kept for those who were away.
    pub depth: usize,
    /// `listeners`: listeners at once.
    pub listeners: usize,
}

/// Who may come in.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Security {
    /// Sign-in through an OpenID provider (`security=oauth2` with a profile that has it); without it the
    /// accounts are built in.
    pub oidc: Option<Oidc>,
    /// The access tokens of machines; without `issuer-uri` there are none.
    pub resource_server: Option<ResourceServer>,
    /// The client id of each registration: ID tokens have one of them as their audience.
    pub client_ids: Vec<String>,
    /// `service.security.claims.*`
    pub claims: Claims,
    /// `security.role.*`
    pub role_values: RoleValues,
    /// `service.security.jwt.algorithms`: what tokens may be signed with.
    pub algorithms: Vec<String>,
    /// `service.security.ca-file`: certificates that are trusted for providers beside the system's.
    pub ca_file: Option<PathBuf>,
    /// `service.security.session.*`
    pub session: SessionLimits,
}

/// `service.security.session.*`: how long a session lasts, in time that has passed, whatever the clock
/// says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SessionLimits {
    /// `idle`: without a request.
    pub idle: Duration,
    /// `absolute`: from its start.
    pub absolute: Duration,
}

impl Default for SessionLimits {
    fn default() -> Self {
        Self { idle: Duration::from_mins(30), absolute: Duration::from_hours(12) }
    }
}

/// The registration and the provider of its id (specification, 5.3).
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
    /// `client-authentication-method`; without it what discovery says counts.
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

/// How the token endpoint gets the client secret (RFC 6749, 2.3.1).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ClientAuthentication {
    /// `client_secret_basic`: in the header `Authorization`.
    Basic,
    /// `client_secret_post`: in the body.
    Post,
}

impl Oidc {
    /// What accounts name as their issuer: the configured one, or else the registration identifier.
    pub fn identity_issuer(&self) -> &str {
        self.issuer_uri.as_deref().unwrap_or(&self.registration)
    }
}

impl std::fmt::Debug for Oidc {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Oidc({}, client {:?})", self.registration, self.client_id)
    }
}

/// `framework.security.oauth2.resourceserver.jwt.*` and what belongs to it (specification, 5.7).
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ResourceServer {
    /// `issuer-uri`
    pub issuer_uri: String,
    /// `jwk-set-uri`
    pub jwk_set_uri: Option<String>,
    /// `audiences`
    pub audiences: Vec<String>,
    /// The client id of the registration, where access tokens carry it as their audience: the profile
    /// `azuread` with the issuer of version 2.0.
    pub client_id_audience: Option<String>,
    /// The issuer that the accounts of persons name, when the provider that they sign in at is this one:
    /// a token that such a person delegated acts as that account.
    pub sign_in_issuer: Option<String>,
    /// `service.security.defaultServiceAccountRole`
    pub default_role: Option<Role>,
    /// `service.security.serviceAccount.emailDomain`
    pub email_domain: Option<String>,
    /// `service.security.jwks.max-stale`: how long keys are used while the provider is out of reach.
    pub max_stale: Duration,
}

/// `service.security.claims.*`: the claims that carry each piece, the first one present counts.
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
}

/// `security.role.*`: the value of the roles claim that makes each role.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct RoleValues {
    /// `admin`
    pub admin: String,
    /// `contributor`
    pub contributor: String,
    /// `user`
    pub user: String,
}

/// Where bucketNames lead.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Targets {
    /// `service.export.targets.<bucketName>.*`
    pub named: BTreeMap<String, Target>,
    /// `service.export.default.*`: for every bucketName without an entry.
    pub default: Option<Target>,
    /// `service.export.history`: bytes of delivered files kept for reading and replay.
    pub history_bytes: u64,
    /// `service.export.bandwidth`: bytes a second, all targets together.
    pub bandwidth: Option<u64>,
    /// `service.export.window`, and its time zone.
    pub times: Option<Times>,
    /// `service.export.spool`: bytes of files that wait for their targets.
    pub spool_bytes: u64,
}

/// When deliveries are made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Times {
    /// `service.export.window`
    pub window: Window,
    /// `service.export.timezone`
    pub zone: Zone,
}

/// How an object is compressed on its way.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Compression {
    /// It is not.
    #[default]
    None,
    /// `gzip` (RFC 1952).
    Gzip,
    /// `zstd` (RFC 8878).
    Zstd,
}

/// One export target.
#[derive(Clone, PartialEq, Eq)]
pub struct Target {
    /// `type`
    pub kind: TargetKind,
    /// `prefix`: what every key begins with.
    pub prefix: String,
}

/// What a target is.
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
        /// `ca-file`: PEM certificates that are trusted for this target.
        ca_file: Option<PathBuf>,
        /// `compression`
        compression: Compression,
    },
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
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn networks_hold_their_addresses() {
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
    fn requests_hold_no_more_than_memory_has_room_for() {
        let sources = crate::Sources::default();
        let configured = crate::load(&sources).unwrap().settings.limits;
        assert_eq!(configured.within(1 << 30), configured);
        let of_a_gateway = configured.within(150 << 20);
        assert_eq!(of_a_gateway.in_flight, (150 << 20) / 16);
        assert_eq!(of_a_gateway.body, (150 << 20) / 32);
        assert_eq!(of_a_gateway.values, 51_200);
        let of_a_small_one = configured.within(1 << 20);
        assert_eq!((of_a_small_one.in_flight, of_a_small_one.body), (8 << 20, 4 << 20));
        assert_eq!(of_a_small_one.values, 10_000);
        let modest = Limits { body: 1 << 20, in_flight: 2 << 20, values: 100, ..configured };
        assert_eq!(modest.within(1 << 20), modest);
    }
}
