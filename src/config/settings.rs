//! Types of settings, and what they do.
use super::graph_template::GraphTemplate;
use super::key_template::KeyTemplate;
use super::setting::read_defaults;
use super::table::{Limits, Oidc, Server, SessionLimits, Settings};
use super::window::Window;
use penstock_base::time_zone::Zone;
use std::net::IpAddr;
use std::path::PathBuf;

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
}

impl Settings {
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

impl Limits {
    /// Returns these limits, reduced to fit into `memory` bytes. All concurrent bodies get a sixteenth, and one body
    /// half of that; the messages of sources get as much as all bodies. The values of the running change get a third, at
    /// a kilobyte each. The limits are never reduced below 8 MiB, 4 MiB and 10,000 values.
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

impl Default for Limits {
    fn default() -> Self {
        read_defaults()
    }
}

impl Default for SessionLimits {
    fn default() -> Self {
        read_defaults()
    }
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
