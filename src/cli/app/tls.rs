//! HTTPS: reads or creates the certificate, and reads it again while connections stay open.
mod validity;

use futures_util::stream::{self, Stream};
use jiff::{SignedDuration, Timestamp};
use penstock_base::error::{ErrorClass, GatewayError};
use penstock_base::files::{self, create_folders, rename_synced, write_atomically};
use penstock_base::telemetry::metrics;
use penstock_config::Tls;
use penstock_service::gateway::status::CERTIFICATE_WARNING_TIME;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::{ServerConfig, WebPkiClientVerifier};
use rustls::sign::CertifiedKey;
use rustls::{RootCertStore, crypto};
use salvo::conn::IntoConfigStream;
use std::borrow::Cow;
use std::fmt::Display;
use std::io::{self, ErrorKind};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::mpsc;

/// The folder in the data directory with the self-signed certificate and its key.
const TLS_FOLDER: &str = "tls";
const CERTIFICATE_FILE: &str = "certificate.pem";
const PRIVATE_KEY_FILE: &str = "private-key.pem";
/// The extension of a damaged file that was replaced.
const DAMAGED_EXTENSION: &str = "pem.damaged";
/// How often the log says again that the certificate has expired, or expires soon.
const EXPIRY_LOG_INTERVAL: Duration =
    if cfg!(test) { Duration::from_millis(1) } else { Duration::from_hours(24) };
/// The setting with the private key.
const PRIVATE_KEY: &str = "server.ssl.certificate-private-key";

/// Text in PEM format.
type Pem<'a> = Cow<'a, [u8]>;

/// The configurations of HTTPS: the first one, and later ones as they arrive.
pub(super) struct ServerConfigs {
    first: ServerConfig,
    later: mpsc::Receiver<ServerConfig>,
}

impl ServerConfigs {
    /// Creates the stream with its first configuration, and the sender for later ones.
    pub(super) fn new(first: ServerConfig) -> (Self, mpsc::Sender<ServerConfig>) {
        let (sender, later) = mpsc::channel(1);
        (Self { first, later }, sender)
    }
}

impl IntoConfigStream<ServerConfig> for ServerConfigs {
    type Stream = std::pin::Pin<Box<dyn Stream<Item = ServerConfig> + Send>>;

    fn into_stream(self) -> Self::Stream {
        let first = Some(self.first);
        Box::pin(stream::unfold((first, self.later), |(first, mut later)| async move {
            let next = match first {
                Some(first) => first,
                None => later.recv().await?,
            };
            Some((next, (None, later)))
        }))
    }
}

/// When the certificate is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ReadAt {
    /// At a start. A damaged self-signed certificate must not stop the gateway for good, so a new one is created.
    Start,
    /// At a reload. The certificate in use is better than a new one, which no client trusts.
    Reload,
}

/// Reads the certificate, or creates one if `server.ssl.self-signed` asks for it. Blocking.
///
/// # Errors
/// `ErrorClass::Invalid` when a configured file or value is not usable; the error names the setting.
pub(super) fn load_server_config(
    tls: &Tls,
    data_dir: &Path,
    at: ReadAt,
) -> Result<ServerConfig, GatewayError> {
    let (key, end) = match &tls.certificate {
        Some((certificate, private_key)) => parse_pair(
            &read_pem("server.ssl.certificate", certificate)?,
            &read_pem(PRIVATE_KEY, private_key)?,
        )?,
        None => load_self_signed(&data_dir.join(TLS_FOLDER), at)?,
    };
    let provider = Arc::new(crypto::ring::default_provider());
    let verifier = match &tls.client_authorities {
        None => WebPkiClientVerifier::no_client_auth(),
        Some(given) => {
            let name = "server.ssl.trust-certificate";
            let mut authorities = RootCertStore::empty();
            for authority in parse_certificates(name, &read_pem(name, given)?)? {
                authorities.add(authority).map_err(|error| invalid_setting(name, error))?;
            }
            let verifier =
                WebPkiClientVerifier::builder_with_provider(authorities.into(), provider.clone());
            let verifier = if tls.client_certificate_needed {
                verifier
            } else {
                verifier.allow_unauthenticated()
            };
            verifier.build().map_err(|error| invalid_setting(name, error))?
        }
    };
    let mut config = ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(|error| invalid_setting("server.ssl.certificate", error))?
        .with_client_cert_verifier(verifier)
        .with_cert_resolver(Arc::new(rustls::sign::SingleCertAndKey::from(key)));
    config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
    metrics::set_certificate_expiry(end.map(Timestamp::as_second));
    log_expiry(end);
    Ok(config)
}

/// Parses a certificate and its private key. Returns them with the time when the certificate expires.
fn parse_pair(
    certificate: &[u8],
    private_key: &[u8],
) -> Result<(CertifiedKey, Option<Timestamp>), GatewayError> {
    let chain = parse_certificates("server.ssl.certificate", certificate)?;
    let end = chain.first().and_then(|first| validity::not_after(first));
    let private_key = PrivateKeyDer::from_pem_slice(private_key).map_err(|error| {
        invalid_setting(PRIVATE_KEY, format!("it has no private key in PEM format: {error}"))
    })?;
    let provider = crypto::ring::default_provider();
    let key = CertifiedKey::from_der(chain, private_key, &provider).map_err(|error| {
        invalid_setting(
            PRIVATE_KEY,
            format!("it does not match the first certificate of server.ssl.certificate: {error}"),
        )
    })?;
    Ok((key, end))
}

/// Logs each day that the certificate has expired or expires soon, until this future is dropped: a gateway runs for longer
/// than the certificate that it read at its start. `read_end` returns when the one in use expires, in seconds since 1970.
pub(super) async fn log_expiry_daily(read_end: impl Fn() -> Option<i64>) {
    loop {
        tokio::time::sleep(EXPIRY_LOG_INTERVAL).await;
        log_expiry(read_end().and_then(|end| Timestamp::from_second(end).ok()));
    }
}

/// Logs that the certificate has expired or expires soon; the log may be the only place where an operator sees it.
fn log_expiry(end: Option<Timestamp>) {
    let Some(end) = end else { return };
    let left = end.duration_since(Timestamp::now());
    if left <= SignedDuration::ZERO {
        tracing::error!(
            %end,
            "The HTTPS certificate has expired, or the clock is wrong. Install a new certificate, and reload the service."
        );
    } else if left < CERTIFICATE_WARNING_TIME {
        tracing::warn!(
            %end,
            days = left.as_hours() / 24,
            "The HTTPS certificate expires soon. Install a new one, and reload the service."
        );
    }
}

/// Returns the PEM text of a setting: its value, or the content of the file that it names.
fn read_pem<'a>(name: &str, given: &'a str) -> Result<Pem<'a>, GatewayError> {
    files::read_pem(given).map_err(|error| {
        // The value may be a key in another form than PEM, which must not be in the log.
        let file = if name == PRIVATE_KEY { "the file that it names" } else { given };
        let remedy = files::remedy_of_unreadable(&error);
        invalid_setting(name, format!("reading {file} failed: {error}{remedy}"))
    })
}

fn parse_certificates(
    name: &str,
    pem: &[u8],
) -> Result<Vec<CertificateDer<'static>>, GatewayError> {
    let chain: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(pem).collect();
    let chain = chain
        .map_err(|error| invalid_setting(name, format!("it is not in PEM format: {error}")))?;
    if chain.is_empty() {
        return Err(invalid_setting(name, "it has no certificate in PEM format"));
    }
    Ok(chain)
}

fn invalid_setting(name: &str, why: impl Display) -> GatewayError {
    GatewayError::new(ErrorClass::Invalid, format!("{name}: {why}"))
}

/// Returns the self-signed certificate with its private key, and when it expires. They are created once and kept, so that
/// clients that trust the certificate continue to trust it. If they are damaged, a start creates new ones and keeps the
/// damaged files, which may be an operator's own. If files cannot be read or written otherwise, a start creates a certificate
/// only for this process: exports and sources need none.
fn load_self_signed(
    folder: &Path,
    at: ReadAt,
) -> Result<(CertifiedKey, Option<Timestamp>), GatewayError> {
    let (certificate, private_key) = (folder.join(CERTIFICATE_FILE), folder.join(PRIVATE_KEY_FILE));
    let failed = |action: &str, path: &Path, why: &dyn Display| {
        GatewayError::new(
            ErrorClass::Internal,
            format!("server.ssl.self-signed: {action} {} failed: {why}", path.display()),
        )
    };
    let create = || create_certificate().map_err(|error| failed("creating", &certificate, &error));
    let replace_unreadable = |path: &Path, error: &io::Error| {
        if at == ReadAt::Reload {
            return Err(failed("reading", path, error));
        }
        // It may be whole, so it stays.
        tracing::error!(
            %error,
            file = %path.display(),
            "The self-signed certificate for HTTPS or its private key cannot be read; the gateway uses another one, which no \
             client trusts. Let the user that Penstock runs as read both files, and reload the service."
        );
        let (made, key) = create()?;
        parse_pair(made.as_bytes(), key.as_bytes())
    };
    // A link whose target is missing, too.
    let is_there = certificate.symlink_metadata().is_ok();
    if is_there {
        let cause = match (std::fs::read(&certificate), std::fs::read(&private_key)) {
            (Ok(certificate), Ok(private_key)) => match parse_pair(&certificate, &private_key) {
                Ok(pair) => return Ok(pair),
                Err(error) => error.detail,
            },
            (Err(error), _) if !files::is_lost(&error) => {
                return replace_unreadable(&certificate, &error);
            }
            (_, Err(error)) if !files::is_lost(&error) => {
                return replace_unreadable(&private_key, &error);
            }
            (Err(error), _) | (_, Err(error)) => error.to_string(),
        };
        if at == ReadAt::Reload {
            let why = format!("{cause}; the next start creates a new certificate");
            return Err(failed("reading", &certificate, &why));
        }
        tracing::error!(
            cause,
            certificate = %certificate.display(),
            "The self-signed certificate for HTTPS or its private key is damaged; the gateway creates new ones, which \
             clients have to trust, and keeps the damaged files as *.damaged."
        );
    }
    let (made, key) = create()?;
    let keep_damaged =
        |path: &Path| match rename_synced(path, &path.with_extension(DAMAGED_EXTENSION)) {
            Err(error) if error.kind() != ErrorKind::NotFound => Err(error),
            _ => Ok(()),
        };
    // The certificate last: if it is missing, the private key is overwritten.
    let kept = if is_there {
        keep_damaged(&private_key).and_then(|()| keep_damaged(&certificate))
    } else {
        Ok(())
    };
    // The private key is written first, so that a certificate always has its key.
    let stored = kept
        .and_then(|()| create_folders(folder))
        .and_then(|()| write_atomically(&private_key, key.as_bytes()))
        .and_then(|()| write_atomically(&certificate, made.as_bytes()));
    match stored {
        Ok(()) => tracing::info!(
            certificate = %certificate.display(),
            "Created a self-signed certificate for HTTPS; clients need this file to trust the gateway."
        ),
        Err(error) if at == ReadAt::Reload => {
            return Err(failed("writing", &certificate, &error));
        }
        Err(error) => tracing::error!(
            %error,
            certificate = %certificate.display(),
            "The self-signed certificate for HTTPS could not be written; the next start creates another one, which clients \
             have to trust."
        ),
    }
    parse_pair(made.as_bytes(), key.as_bytes())
}

/// Creates a certificate for this host's name and for loopback. It is valid from 2020 on, because the clock may be
/// wrong, and does not expire (RFC 5280, 4.1.2.5), because nobody renews it on an unattended gateway.
fn create_certificate() -> Result<(String, String), rcgen::Error> {
    let host = nix::unistd::gethostname().ok().and_then(|name| name.into_string().ok());
    let host = host.filter(|name| !name.is_empty()).unwrap_or_else(|| "penstock".to_owned());
    let mut names = vec!["localhost".to_owned(), "127.0.0.1".to_owned(), "::1".to_owned()];
    if !names.contains(&host) {
        names.push(format!("{host}.local"));
        names.push(host.clone());
    }
    let mut parameters = rcgen::CertificateParams::new(names)?;
    parameters.distinguished_name = rcgen::DistinguishedName::new();
    parameters.distinguished_name.push(rcgen::DnType::CommonName, host);
    parameters.extended_key_usages = vec![rcgen::ExtendedKeyUsagePurpose::ServerAuth];
    parameters.not_before = rcgen::date_time_ymd(2020, 1, 1);
    parameters.not_after = rcgen::date_time_ymd(9999, 12, 31);
    let key = rcgen::KeyPair::generate()?;
    Ok((parameters.self_signed(&key)?.pem(), key.serialize_pem()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    fn load(tls: &Tls, data_dir: &Path) -> Result<ServerConfig, GatewayError> {
        load_server_config(tls, data_dir, ReadAt::Start)
    }

    fn tls_settings(certificate: Option<(&str, &str)>) -> Tls {
        Tls {
            certificate: certificate
                .map(|(certificate, key)| (certificate.to_owned(), key.to_owned())),
            client_authorities: None,
            client_certificate_needed: false,
        }
    }

    #[test]
    fn a_certificate_is_created_once_and_its_key_is_private() {
        let dir = tempfile::tempdir().unwrap();
        load(&tls_settings(None), dir.path()).unwrap();
        let file = |name| dir.path().join(TLS_FOLDER).join(name);
        let first = std::fs::read(file(CERTIFICATE_FILE)).unwrap();
        let mode = std::fs::metadata(file(PRIVATE_KEY_FILE)).unwrap().permissions().mode();
        assert_eq!(mode & 0o077, 0, "{mode:o}");
        load(&tls_settings(None), dir.path()).unwrap();
        assert_eq!(std::fs::read(file(CERTIFICATE_FILE)).unwrap(), first);
    }

    #[test]
    fn a_damaged_self_signed_certificate_is_created_again_at_a_start() {
        let dir = tempfile::tempdir().unwrap();
        load(&tls_settings(None), dir.path()).unwrap();
        let file = |name| dir.path().join(TLS_FOLDER).join(name);
        let (_, other_key) = create_certificate().unwrap();
        let elsewhere = dir.path().join("elsewhere.pem");
        // Bytes in place of the file; a link to a file that is missing, with none.
        let damages: [(&str, Option<&[u8]>); 5] = [
            (CERTIFICATE_FILE, Some(&[0; 600])),
            (CERTIFICATE_FILE, None),
            (PRIVATE_KEY_FILE, Some(b"")),
            (PRIVATE_KEY_FILE, Some(other_key.as_bytes())),
            (PRIVATE_KEY_FILE, None),
        ];
        for (name, bytes) in damages {
            let before = std::fs::read(file(CERTIFICATE_FILE)).unwrap();
            std::fs::remove_file(file(name)).unwrap();
            match bytes {
                Some(bytes) => std::fs::write(file(name), bytes).unwrap(),
                None => std::os::unix::fs::symlink(&elsewhere, file(name)).unwrap(),
            }
            let read_at = |at| load_server_config(&tls_settings(None), dir.path(), at);
            // What is in use stays so, and nothing is replaced meanwhile.
            let refused = read_at(ReadAt::Reload).unwrap_err();
            assert!(refused.detail.ends_with("; the next start creates a new certificate"));
            assert_eq!(std::fs::read(file(name)).ok().as_deref(), bytes);

            read_at(ReadAt::Start).unwrap();
            let after = std::fs::read(file(CERTIFICATE_FILE)).unwrap();
            assert_ne!(after, before, "{name}");
            let kept = file(name).with_extension(DAMAGED_EXTENSION);
            assert_eq!(std::fs::read(&kept).ok().as_deref(), bytes, "{name}");
            assert_eq!(std::fs::read_link(&kept).is_ok(), bytes.is_none(), "{name}");
            assert!(!elsewhere.exists());
            // The new one is kept.
            read_at(ReadAt::Reload).unwrap();
            read_at(ReadAt::Start).unwrap();
            assert_eq!(std::fs::read(file(CERTIFICATE_FILE)).unwrap(), after);
        }
        // A certificate of an operator is never replaced.
        let (certificate, _) = create_certificate().unwrap();
        let mine = tls_settings(Some((&certificate, &other_key)));
        load(&mine, dir.path()).unwrap_err();
    }

    #[test]
    fn a_self_signed_certificate_that_cannot_be_read_or_written_stays_and_stops_no_start() {
        let dir = tempfile::tempdir().unwrap();
        load(&tls_settings(None), dir.path()).unwrap();
        let folder = dir.path().join(TLS_FOLDER);
        let read_at = |at| load_server_config(&tls_settings(None), dir.path(), at);
        let refused = |error: GatewayError| assert_eq!(error.class, ErrorClass::Internal);
        for name in [CERTIFICATE_FILE, PRIVATE_KEY_FILE] {
            let (file, whole) = (folder.join(name), folder.join("whole"));
            rename_synced(&file, &whole).unwrap();
            // Reading this fails, as that of another user's file does.
            std::fs::create_dir(&file).unwrap();
            refused(read_at(ReadAt::Reload).unwrap_err());
            read_at(ReadAt::Start).unwrap();
            // Once it can be read, it is used again.
            std::fs::remove_dir(&file).unwrap();
            rename_synced(&whole, &file).unwrap();
            read_at(ReadAt::Reload).unwrap();
            assert_eq!(std::fs::read_dir(&folder).unwrap().count(), 2);
        }
        std::fs::remove_dir_all(&folder).unwrap();
        std::fs::write(&folder, "").unwrap();
        refused(read_at(ReadAt::Reload).unwrap_err());
        read_at(ReadAt::Start).unwrap();
        assert!(folder.is_file());
    }

    #[tokio::test]
    async fn the_end_of_the_certificate_is_checked_again_and_again() {
        let (checked, mut checks) = mpsc::unbounded_channel();
        let watching = tokio::spawn(log_expiry_daily(move || {
            checked.send(()).unwrap();
            None
        }));
        for _ in 0..3 {
            checks.recv().await.unwrap();
        }
        watching.abort();
    }

    #[test]
    fn a_key_of_another_certificate_is_refused() {
        let ((certificate, key), (_, other)) =
            (create_certificate().unwrap(), create_certificate().unwrap());
        let dir = tempfile::tempdir().unwrap();
        load(&tls_settings(Some((&certificate, &key))), dir.path()).unwrap();
        let refused = load(&tls_settings(Some((&certificate, &other))), dir.path()).unwrap_err();
        assert!(refused.detail.starts_with("server.ssl.certificate-private-key: "), "{refused}");
        let refused = load(&tls_settings(Some(("/nowhere", &other))), dir.path()).unwrap_err();
        assert!(
            refused.detail.starts_with("server.ssl.certificate: reading /nowhere")
                && refused.detail.ends_with("; put the file there, or correct the path"),
            "{refused}"
        );
        let not_pem = tls_settings(Some((&certificate, "MIIEvSecret")));
        let refused = load(&not_pem, dir.path()).unwrap_err();
        assert!(refused.detail.starts_with("server.ssl.certificate-private-key: reading"));
        assert!(!refused.detail.contains("MIIEvSecret"), "{refused}");
        let refused = load(&tls_settings(Some((&key, &key))), dir.path()).unwrap_err();
        assert!(refused.detail.contains("no certificate in PEM format"), "{refused}");
    }

    #[test]
    fn client_certificates_are_checked_against_their_authorities() {
        let (certificate, key) = create_certificate().unwrap();
        let dir = tempfile::tempdir().unwrap();
        let asking = |authorities: &str| Tls {
            client_authorities: Some(authorities.to_owned()),
            ..tls_settings(Some((&certificate, &key)))
        };
        load(&asking(&certificate), dir.path()).unwrap();
        let refused = load(&asking(&key), dir.path()).unwrap_err();
        assert!(refused.detail.starts_with("server.ssl.trust-certificate: "), "{refused}");
    }
}
