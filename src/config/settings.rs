//! The settings as the rest of the program sees them: typed, checked, complete.
use super::window::Window;
use crate::auth::Role;
use chrono_tz::Tz;
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
    /// `service.security.insecure`: answer anyone on any address, until sign-in is there.
    pub insecure: bool,
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

/// `service.log.format`
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum LogFormat {
    /// Readable lines.
    #[default]
    Text,
    /// A JSON object a line.
    Json,
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
    /// `disk-reserve`: bytes of the disk that are kept free.
    pub disk_reserve: u64,
    /// `idempotency-keys`: answers kept for 24 h.
    pub idempotency_keys: usize,
    /// `idempotency-bytes`: of those answers.
    pub idempotency_bytes: u64,
    /// `history`: records of ingestions, and of delivered exports, kept.
    pub history: usize,
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
    /// `service.security.claims.*`
    pub claims: Claims,
    /// `security.role.*`
    pub role_values: RoleValues,
    /// `service.security.ca-file`: certificates that are trusted for providers beside the system's.
    pub ca_file: Option<PathBuf>,
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
    pub zone: Tz,
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
