//! A provider whose certificate is signed by a private certificate authority.
use crate::{Browser, Gateway, Provider};
use std::path::{Path, PathBuf};
use std::process::Command;

/// A certificate authority, and a certificate that it signed for 127.0.0.1.
struct Certificates {
    dir: tempfile::TempDir,
}

impl Certificates {
    fn create() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let openssl = |arguments: &[&str]| {
            let output = Command::new("openssl").args(arguments).current_dir(dir.path()).output();
            let output = output.expect("openssl is installed");
            assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        };
        let key = ["req", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes"];
        openssl(
            &[
                &key[..],
                &[
                    "-x509",
                    "-days",
                    "2",
                    "-subj",
                    "/CN=Plant CA",
                    "-keyout",
                    "ca.key",
                    "-out",
                    "ca.pem",
                ],
            ]
            .concat(),
        );
        openssl(
            &[&key[..], &["-subj", "/CN=127.0.0.1", "-keyout", "key.pem", "-out", "request.pem"]]
                .concat(),
        );
        std::fs::write(
            dir.path().join("names"),
            "subjectAltName=IP:127.0.0.1\nbasicConstraints=CA:FALSE\n",
        )
        .unwrap();
        openssl(&[
            "x509",
            "-req",
            "-days",
            "2",
            "-in",
            "request.pem",
            "-CA",
            "ca.pem",
            "-CAkey",
            "ca.key",
            "-CAcreateserial",
            "-extfile",
            "names",
            "-out",
            "certificate.pem",
        ]);
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
    let page = Browser::new().get(format!("{}/oauth2/authorization/kc", untrusting.url)).await;
    page.expect(503, "Signing in is not possible right now");
    // The log arrives through a pipe, which may be later than the page.
    let begun = std::time::Instant::now();
    while !untrusting.log().contains("UnknownIssuer") {
        assert!(begun.elapsed().as_secs() < 20, "{}", untrusting.log());
        tokio::time::sleep(std::time::Duration::from_millis(20)).await;
    }

    let trusting = format!("--service.security.ca-file={}", ca.display());
    let gateway = Gateway::start_with_provider(&provider, &[&trusting]).await;
    let mut browser = Browser::with_ca_file(Some(&ca));
    assert_eq!(browser.sign_in(&gateway.url, "alice").await.status, 303);
    browser.get(format!("{}/admin", gateway.url)).await.expect(200, "Alice");
}
