//! The settings as the rest of the program sees them: typed, checked, complete.
use std::collections::BTreeMap;
use std::net::IpAddr;
use std::path::PathBuf;

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

/// Where bucketNames lead.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Targets {
    /// `service.export.targets.<bucketName>.*`
    pub named: BTreeMap<String, Target>,
    /// `service.export.default.*`: for every bucketName without an entry.
    pub default: Option<Target>,
    /// `service.export.history`: bytes of delivered files kept for reading and replay.
    pub history_bytes: u64,
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
