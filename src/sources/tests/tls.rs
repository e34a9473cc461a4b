//! TLS: certificates of the broker and of the client.
use super::broker::{Broker, free_port};
use super::fixture::{FakeStore, Setup};
use super::publisher::Publisher;
use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, DnType, IsCa, KeyPair};
use std::path::Path;
use std::sync::Arc;

/// An authority, and a folder for what it issues.
struct Authority<'a> {
    issuer: CertifiedIssuer<'a, KeyPair>,
    folder: &'a Path,
}

impl<'a> Authority<'a> {
    fn create(folder: &'a Path) -> Self {
        let mut params = CertificateParams::new(Vec::<String>::new()).unwrap();
        params.distinguished_name.push(DnType::CommonName, "authority");
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let key = KeyPair::generate().unwrap();
        let issuer = CertifiedIssuer::self_signed(params, key).unwrap();
        std::fs::write(folder.join("ca.pem"), issuer.pem()).unwrap();
        Self { issuer, folder }
    }

    /// Writes a certificate and its key into files that begin with this name.
    fn issue(&self, name: &str, host: &str) {
        let mut params = CertificateParams::new(vec![host.to_owned()]).unwrap();
        params.distinguished_name.push(DnType::CommonName, host);
        let key = KeyPair::generate().unwrap();
        let certificate = params.signed_by(&key, &self.issuer).unwrap();
        std::fs::write(self.folder.join(format!("{name}.pem")), certificate.pem()).unwrap();
        std::fs::write(self.folder.join(format!("{name}-key.pem")), key.serialize_pem()).unwrap();
    }
}

/// Writes the certificate of an authority into `ca.pem` of this folder.
pub(crate) fn write_authority(folder: &Path) {
    Authority::create(folder);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_broker_that_requires_a_client_certificate_gets_it() {
    let plain = free_port();
    let broker = Broker::start_with(|folder| {
        let authority = Authority::create(folder);
        authority.issue("server", "127.0.0.1");
        authority.issue("client", "gateway");
        let path = folder.display();
        format!(
            "allow_anonymous true\ncafile {path}/ca.pem\ncertfile {path}/server.pem\n\
             keyfile {path}/server-key.pem\nrequire_certificate true\nlistener {plain} 127.0.0.1\n"
        )
    });
    let file = |name: &str| broker.folder.path().join(name).to_str().unwrap().to_owned();
    let mut setup = Setup::new(broker.port, &["plant/#"]);
    setup.source.url.uses_tls = true;
    let why = setup.endpoint().open(false).await.err().unwrap();
    assert!(why.contains("UnknownIssuer") && why.contains("TLS handshake"), "{why}");
    setup.source.ca_file = Some(file("ca.pem").into());
    let why = setup.endpoint().open(false).await.err().expect("the broker requires a certificate");
    assert!(why.contains("ertificate") || why.contains("closed"), "{why}");
    let key = std::fs::read_to_string(file("client-key.pem")).unwrap();
    setup.source.client_certificate = Some(file("client.pem"));
    setup.source.client_key = Some(key);
    let store = Arc::new(FakeStore::default());
    let running = setup.run_subscribed(&store).await;
    let mut publisher = Publisher::connect(plain, "publisher").await;
    publisher.publish("plant/1", "one").await;
    store.wait_for(1).await;
    running.stop().await;
    setup.source.url.host = "localhost".to_owned();
    let why = setup.endpoint().open(false).await.err().expect("the certificate has another name");
    assert!(why.contains("NotValidForName") || why.contains("not valid for name"), "{why}");
    setup.source.ca_file = Some(file("missing.pem").into());
    let why = setup.endpoint().open(false).await.err().unwrap();
    assert!(why.starts_with("the source's `ca-file` cannot be used: "), "{why}");
}
