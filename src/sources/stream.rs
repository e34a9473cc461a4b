//! Opens the TCP or TLS stream to a broker.
use penstock_base::blocking::spawn_blocking;
use penstock_base::files::read_pem;
use penstock_config::{BrokerUrl, Source};
use rustls::crypto::ring;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use rustls::{ClientConfig, RootCertStore};
use std::fmt::Display;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpStream, lookup_host};
use tokio::sync::Semaphore;
use tokio::time::timeout;
use tokio_rustls::TlsConnector;

/// The permits for lookups of host names.
static LOOKUPS: Semaphore = Semaphore::const_new(2);
/// The time in which an address of a host must accept a connection, unless it is the last one.
const ADDRESS_TIMEOUT: Duration = Duration::from_secs(3);

/// A stream to a broker.
pub(crate) trait Stream: AsyncRead + AsyncWrite + Send + Unpin {}

impl<T: AsyncRead + AsyncWrite + Send + Unpin> Stream for T {}

/// Opens a stream to the broker of a source. Reads the certificates again, so that renewed ones are used.
///
/// # Errors
/// What failed, and why.
pub(crate) async fn open(source: &Source) -> Result<Box<dyn Stream>, String> {
    let BrokerUrl { host, port, uses_tls } = &source.url;
    let stream = connect(host, *port).await.map_err(|error| {
        format!(
            "connecting to {host}:{port} failed: {error}; check that the broker runs, that `url` names it, and that \
             a firewall lets this machine connect"
        )
    })?;
    // Acknowledgements are small, and the broker waits for them.
    stream
        .set_nodelay(true)
        .map_err(|error| format!("connecting to {host}:{port} failed: {error}"))?;
    if !uses_tls {
        return Ok(Box::new(stream));
    }
    let owned = source.clone();
    let config = spawn_blocking(move || load_client_config(&owned))
        .await
        .map_err(|error| format!("reading the certificates failed: {error}"))??;
    let name = ServerName::try_from(host.clone())
        .map_err(|_| format!("{host:?} is not a name that a certificate can have"))?;
    let stream = TlsConnector::from(Arc::new(config))
        .connect(name, stream)
        .await
        .map_err(|error| {
            format!(
                "the TLS handshake with {host}:{port} failed: {error}; check the certificate of the broker, and \
                 whether `ca-file` has its authority"
            )
        })?;
    Ok(Box::new(stream))
}

/// Connects to a host. The lookup of its name blocks a thread, so only some run at once: those of unreachable name servers
/// must leave threads to others.
async fn connect(host: &str, port: u16) -> io::Result<TcpStream> {
    if let Ok(address) = host.parse::<IpAddr>() {
        return TcpStream::connect((address, port)).await;
    }
    let permit = LOOKUPS.acquire().await.map_err(io::Error::other)?;
    let host = host.to_owned();
    // The lookup continues, and keeps its permit, even if no caller waits for it any more.
    let lookup = tokio::spawn(async move {
        let addresses = lookup_host((host, port)).await.map(Iterator::collect::<Vec<SocketAddr>>);
        drop(permit);
        addresses
    });
    let addresses = lookup.await.map_err(io::Error::other)??;
    connect_to_any(&addresses, ADDRESS_TIMEOUT, TcpStream::connect).await
}

/// Connects to the first address that accepts a connection. Each but the last one has only the time `limit`: the kernel waits
/// for minutes, longer than the whole handshake may take.
async fn connect_to_any<T, F: Future<Output = io::Result<T>>>(
    addresses: &[SocketAddr],
    limit: Duration,
    connect: impl Fn(SocketAddr) -> F,
) -> io::Result<T> {
    let Some((last, others)) = addresses.split_last() else {
        return Err(io::Error::other("the name of the host has no address"));
    };
    for address in others {
        if let Ok(Ok(connected)) = timeout(limit, connect(*address)).await {
            return Ok(connected);
        }
    }
    connect(*last).await
}

/// Reads the certificates that are trusted for a source. Blocking.
fn load_trusted(source: &Source) -> Result<RootCertStore, String> {
    let mut trusted = RootCertStore::empty();
    if let Some(path) = &source.ca_file {
        let text = std::fs::read(path).map_err(|error| unreadable("ca-file", &error))?;
        for certificate in parse_certificates("ca-file", &text)? {
            trusted.add(certificate).map_err(|error| unusable("ca-file", error))?;
        }
    } else {
        // Single certificates of the system that rustls does not accept do not matter.
        trusted.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
    }
    Ok(trusted)
}

/// Reads the certificates of a source. Blocking.
fn load_client_config(source: &Source) -> Result<ClientConfig, String> {
    let trusted = load_trusted(source)?;
    let builder = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .map_err(|error| format!("TLS cannot be used: {error}"))?
        .with_root_certificates(trusted);
    let (Some(certificate), Some(key)) = (&source.client_certificate, &source.client_key) else {
        return Ok(builder.with_no_client_auth());
    };
    let read = |setting, value| read_pem(value).map_err(|error| unreadable(setting, &error));
    let chain = read("client-certificate", certificate)?;
    let chain = parse_certificates("client-certificate", &chain)?;
    let key = PrivateKeyDer::from_pem_slice(&read("client-key", key)?).map_err(|error| {
        unusable("client-key", format!("it has no private key in PEM format: {error}"))
    })?;
    builder.with_client_auth_cert(chain, key).map_err(|error| unusable("client-key", error))
}

/// Returns the error about a file of a setting. Every User sees it, so it does not have the path.
fn unreadable(setting: &str, error: &io::Error) -> String {
    unusable(setting, format!("the file cannot be read: {error}"))
}

fn parse_certificates(setting: &str, pem: &[u8]) -> Result<Vec<CertificateDer<'static>>, String> {
    let parsed: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(pem).collect();
    let certificates = parsed.map_err(|error| unusable(setting, error))?;
    if certificates.is_empty() {
        return Err(unusable(setting, "it has no certificate in PEM format"));
    }
    Ok(certificates)
}

/// Returns the error about a setting of the source.
fn unusable(setting: &str, why: impl Display) -> String {
    format!("the source's `{setting}` cannot be used: {why}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tests::{Setup, write_authority};

    #[tokio::test]
    async fn an_address_that_does_not_answer_does_not_hide_the_others() {
        let [silent, refusing, listening] =
            ["[2001:db8::1]:1883", "192.0.2.1:1883", "192.0.2.2:1883"]
                .map(|text| text.parse::<SocketAddr>().unwrap());
        let connect = |address: SocketAddr| async move {
            if address == silent {
                std::future::pending::<()>().await;
            }
            if address == refusing {
                return Err(io::Error::from(io::ErrorKind::ConnectionRefused));
            }
            Ok(address)
        };
        let addresses = [silent, refusing, listening];
        let connected = connect_to_any(&addresses, Duration::ZERO, connect).await;
        assert_eq!(connected.unwrap(), listening);
        assert!(connect_to_any(&addresses[1..2], Duration::ZERO, connect).await.is_err());
        assert!(connect_to_any(&[], Duration::ZERO, connect).await.is_err());
    }

    #[test]
    fn a_ca_file_is_trusted_instead_of_the_certificates_of_the_system() {
        let folder = tempfile::tempdir().unwrap();
        write_authority(folder.path());
        let mut source = Setup::new(1, &["plant/#"]).source;
        source.ca_file = Some(folder.path().join("ca.pem"));
        assert_eq!(load_trusted(&source).unwrap().len(), 1);
    }
}
