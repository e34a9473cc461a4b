//! The types of settings.
use super::graph_template::GraphTemplate;
use super::key_template::KeyTemplate;
use super::window::Window;
use penstock_base::time_zone::Zone;
use std::path::PathBuf;
use std::time::Duration;

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

/// How the client secret is sent to the token endpoint (RFC 6749, 2.3.1).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ClientAuthentication {
    /// `client_secret_basic`: in the header `Authorization`.
    Basic,
    /// `client_secret_post`: in the body.
    Post,
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

/// `service.backup.*`: the continuous backup.
#[derive(Clone, PartialEq, Eq)]
pub struct Backup {
    /// `target`: the bucketName of a configured bucket or directory.
    pub target: String,
    /// `interval`: the longest time from a commit until it is sent.
    pub interval: Duration,
    /// `base`: the interval between bases.
    pub base: Duration,
    /// `keep`: how long earlier states stay in the bucket.
    pub keep: Duration,
    /// `key`: an age identity or recipient. `None` only with `insecure`.
    pub key: Option<String>,
    /// `insecure`: whether there may be no key.
    pub insecure: bool,
    /// `new-era`: whether a gateway without an era of its own begins one beside those in the bucket.
    pub new_era: bool,
}

impl std::fmt::Debug for Backup {
    /// Omits the key.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Backup")
            .field("target", &self.target)
            .field("has_key", &self.key.is_some())
            .finish_non_exhaustive()
    }
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
