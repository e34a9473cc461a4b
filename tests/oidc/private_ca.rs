//! A provider whose certificate is signed by a private certificate authority.
use crate::browser::SIGN_IN;
use crate::{Browser, Gateway};
use penstock_test_support::prelude::*;

/// A certificate authority, and a certificate that it signed for 127.0.0.1.
struct Certificates {
    dir: tempfile::TempDir,
}

impl Certificates {
    fn create() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let openssl = |arguments: &str| {
            let mut command = Command::new("openssl");
            let output = command.args(arguments.split(' ')).current_dir(dir.path()).output();
            let output = output.expect("openssl is installed");
            assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        };
        let names = "subjectAltName=IP:127.0.0.1\nbasicConstraints=CA:FALSE\n";
        std::fs::write(dir.path().join("names"), names).unwrap();
        let key = "req -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes";
        openssl(&format!("{key} -x509 -days 2 -subj /CN=Plant -keyout ca.key -out ca.pem"));
        openssl(&format!("{key} -subj /CN=127.0.0.1 -keyout key.pem -out request.pem"));
        openssl(
            "x509 -req -days 2 -in request.pem -CA ca.pem -CAkey ca.key -CAcreateserial -extfile names \
             -out certificate.pem",
        );
        Self { dir }
    }

    fn path(&self, file: &str) -> PathBuf {
        self.dir.path().join(file)
    }
}

fn text(path: &Path) -> &str {
    path.to_str().unwrap()
}

#[tokio::test]
async fn a_private_ca_is_trusted_only_by_its_file() {
    let certificates = Certificates::create();
    let (certificate, key) = (certificates.path("certificate.pem"), certificates.path("key.pem"));
    let tls = [("TLS_CERT", text(&certificate)), ("TLS_KEY", text(&key))];
    let Some(provider) = Provider::start(&tls) else { return };
    let ca = certificates.path("ca.pem");

    let untrusting = Gateway::start_with_provider(&provider, &[]).await;
    let page = untrusting.browser().get(SIGN_IN).await;
    page.expect(503, "Signing in is not possible right now");
    // The log arrives through a pipe, which may be later than the page.
    until("the log names the cause", async || untrusting.log().contains("UnknownIssuer")).await;

    let trusting = format!("--service.security.ca-file={}", ca.display());
    let gateway = Gateway::start_with_provider(&provider, &[&trusting]).await;
    let mut browser = Browser::new(&gateway.url, Some(&ca));
    assert_eq!(browser.sign_in("alice").await.status, 303);
    browser.get("/admin").await.expect(200, "Alice");
}
