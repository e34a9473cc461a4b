//! HTTPS with curl and openssl: both versions of HTTP, server and client certificates, failed handshakes.
use penstock_test_support::prelude::*;
use std::io::{ErrorKind, Read as _, Write as _};
use std::net::TcpStream;
use std::process::Output;

/// A server with HTTPS.
struct Https {
    gateway: TestProcess,
    /// The URL with the host name of the certificate.
    url: String,
}

impl Https {
    fn start(dir: &Path, arguments: &[&str]) -> Self {
        let serve = ["serve", "--server.port=0", "--service.data-dir=data"];
        let gateway = TestProcess::spawn(penstock(dir).args(serve).args(arguments));
        let url = gateway.url.replace("127.0.0.1", "localhost");
        assert!(url.starts_with("https://"), "{url}");
        Self { gateway, url }
    }

    fn curl(&self, dir: &Path, arguments: &[&str]) -> Output {
        Command::new("curl")
            .current_dir(dir)
            .args([
                "-sS",
                "--max-time",
                "60",
                "-w",
                "%{http_code} %{http_version}",
                "-o",
                "/dev/null",
            ])
            .args(arguments)
            .arg(format!("{}/health/live", self.url))
            .output()
            .unwrap()
    }

    #[track_caller]
    fn assert_curl_prints(&self, dir: &Path, arguments: &[&str], expected: &str) {
        let output = self.curl(dir, arguments);
        assert_eq!(String::from_utf8_lossy(&output.stdout), expected, "{output:?}");
    }
}

/// Returns a command that writes `NAME.key` and the certificate `NAME.pem`, which is valid for two days.
fn request_certificate(dir: &Path, name: &str) -> Command {
    let mut command = Command::new("openssl");
    command
        .current_dir(dir)
        .args(["req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes"])
        .args(["-days", "2", "-subj", &format!("/CN={name}")])
        .args(["-keyout", &format!("{name}.key"), "-out", &format!("{name}.pem")]);
    command
}

const OURS: [&str; 2] = ["--cacert", "data/tls/certificate.pem"];

#[test]
fn it_speaks_both_versions_with_a_self_signed_certificate() {
    let dir = tempfile::tempdir().unwrap();
    let server = Https::start(dir.path(), &["--server.ssl.self-signed=true"]);
    server.assert_curl_prints(dir.path(), &[&OURS[..], &["--http2"]].concat(), "200 2");
    server.assert_curl_prints(dir.path(), &[&OURS[..], &["--http1.1"]].concat(), "200 1.1");
    let unknown = server.curl(dir.path(), &[]);
    assert_eq!(unknown.status.code(), Some(60), "an unknown certificate is trusted: {unknown:?}");
    // Handshakes that must fail: an old version, and a cipher that is not offered.
    for old in [&["-tls1_1"][..], &["-tls1_2", "-cipher", "AES128-SHA"]] {
        let address = server.url.trim_start_matches("https://");
        let output = Command::new("openssl")
            .args(["s_client", "-connect", address])
            .args(old)
            .stdin(Stdio::null())
            .output()
            .unwrap();
        assert!(!output.status.success(), "{old:?}: {output:?}");
    }
    // A client that does not use TLS at all must fail too.
    let address = server.url.replace("https://", "http://");
    assert!(!Command::new("curl").args(["-sS", &address]).output().unwrap().status.success());
    server.assert_curl_prints(dir.path(), &OURS, "200 2");
}

#[test]
fn clients_that_stop_during_the_handshake_are_disconnected() {
    let dir = tempfile::tempdir().unwrap();
    let server = Https::start(dir.path(), &["--server.ssl.self-signed=true"]);
    let address = server.url.trim_start_matches("https://").replace("localhost", "127.0.0.1");
    // No data, the beginning of a ClientHello, and one that announces 16 KiB.
    let mut silent: Vec<_> = [&b""[..], b"\x16\x03\x01", b"\x16\x03\x01\x40\x00\x01"]
        .iter()
        .cycle()
        .take(90)
        .map(|bytes| {
            let mut stream = TcpStream::connect(&address).unwrap();
            stream.set_read_timeout(Some(TEST_TIMEOUT)).unwrap();
            stream.write_all(bytes).unwrap();
            stream
        })
        .collect();
    server.assert_curl_prints(dir.path(), &OURS, "200 2");
    for stream in &mut silent {
        // The connection ends, with or without an alert before.
        if let Err(error) = stream.read_to_end(&mut Vec::new()) {
            assert_eq!(error.kind(), ErrorKind::ConnectionReset, "it is still open: {error}");
        }
    }
    server.assert_curl_prints(dir.path(), &OURS, "200 2");
}

#[test]
fn heads_of_http_2_that_are_too_large_are_refused() {
    let dir = tempfile::tempdir().unwrap();
    let server = Https::start(dir.path(), &["--server.ssl.self-signed=true"]);
    let long = format!("X-Long: {}", "a".repeat(100_000));
    let many: Vec<String> =
        (0..3000).map(|n| format!("X-Many-{n}: aaaaaaaaaaaaaaaaaaaaaaaaa")).collect();
    let many: Vec<&str> = many.iter().flat_map(|header| ["-H", header.as_str()]).collect();
    for headers in [&["-H", long.as_str()][..], &many] {
        let output = server.curl(dir.path(), &[&OURS[..], &["--http2"], headers].concat());
        let said = String::from_utf8_lossy(&output.stdout);
        assert!(said.starts_with("431 ") || said.starts_with("000 "), "{said}");
    }
    server.assert_curl_prints(dir.path(), &OURS, "200 2");
}

#[test]
fn a_new_certificate_is_read_at_sighup_and_a_broken_one_changes_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let make = |name: &str| {
        request_certificate(dir.path(), name)
            .args(["-addext", "subjectAltName=DNS:localhost"])
            .succeed();
    };
    let use_of = |name: &str| {
        for end in ["pem", "key"] {
            let new = dir.path().join(format!("{name}.{end}"));
            std::fs::copy(new, dir.path().join(format!("used.{end}"))).unwrap();
        }
    };
    make("first");
    make("second");
    use_of("first");
    let server = Https::start(
        dir.path(),
        &["--server.ssl.certificate=used.pem", "--server.ssl.certificate-private-key=used.key"],
    );
    // A certificate that is valid for two days expires soon.
    wait_for("the log says that the certificate expires", || {
        server.gateway.log().contains("The HTTPS certificate expires soon.")
    });
    server.assert_curl_prints(dir.path(), &["--cacert", "first.pem"], "200 2");
    let policy = |host: &str| {
        let host = format!("Host: {host}");
        let arguments = ["--cacert", "first.pem", "-H", &host, "-D", "head"];
        server.assert_curl_prints(dir.path(), &arguments, "200 2");
        let head = std::fs::read_to_string(dir.path().join("head")).unwrap();
        head.lines()
            .find_map(|line| Some(line.strip_prefix("strict-transport-security: ")?.to_owned()))
    };
    assert_eq!(policy("gw.example").as_deref(), Some("max-age=31536000"));
    assert_eq!(policy("localhost"), None);
    use_of("second");
    signal(server.gateway.id(), "HUP");
    wait_for("the new certificate is served", || {
        server.curl(dir.path(), &["--cacert", "second.pem"]).status.success()
    });
    std::fs::write(dir.path().join("used.pem"), "no certificate").unwrap();
    signal(server.gateway.id(), "HUP");
    wait_for("the log says that it is broken", || {
        server.gateway.log().contains("no certificate in PEM format")
    });
    server.gateway.wait_for_log("The log level and the definition files were read again");
    server.assert_curl_prints(dir.path(), &["--cacert", "second.pem"], "200 2");
    // So it is with a key in a credential of the unit.
    std::fs::copy(dir.path().join("first.pem"), dir.path().join("used.pem")).unwrap();
    signal(server.gateway.id(), "HUP");
    wait_for("the log says when another key is read", || {
        let log = server.gateway.log();
        log.contains("does not match the first certificate") && log.contains("only at a restart")
    });
}

#[test]
fn another_data_directory_needs_a_restart_however_often_it_is_reloaded() {
    let dir = tempfile::tempdir().unwrap();
    let configure = |data: &str| {
        let text = format!("service.data-dir: {data}\nserver.ssl.self-signed: true\n");
        std::fs::write(dir.path().join("application.yaml"), text).unwrap();
    };
    configure("data");
    let server = TestProcess::spawn(penstock(dir.path()).args(["serve", "--server.port=0"]));
    configure("elsewhere");
    for reloads in 1..=2 {
        signal(server.id(), "HUP");
        wait_for("the certificate is read again", || {
            server.log().matches("were read again").count() == reloads
        });
    }
    assert!(!dir.path().join("elsewhere").exists(), "it has another certificate");
    server.stop();
}

#[test]
fn clients_without_a_valid_certificate_are_refused() {
    let dir = tempfile::tempdir().unwrap();
    for (name, signed) in [("ca", None), ("client", Some("ca")), ("other-ca", None)] {
        let mut made = request_certificate(dir.path(), name);
        match signed {
            Some(by) => {
                made.args(["-CA", &format!("{by}.pem"), "-CAkey", &format!("{by}.key")]);
                made.args(["-addext", "basicConstraints=critical,CA:FALSE"]);
                made.args(["-addext", "extendedKeyUsage=clientAuth"]);
            }
            None => drop(made.args(["-addext", "keyUsage=critical,keyCertSign"])),
        }
        made.succeed();
    }
    let server = Https::start(
        dir.path(),
        &[
            "--server.ssl.self-signed=true",
            "--server.ssl.client-auth=need",
            "--server.ssl.trust-certificate=ca.pem",
        ],
    );
    let with = |name: &str| {
        let (cert, key) = (format!("{name}.pem"), format!("{name}.key"));
        server.curl(dir.path(), &[&OURS[..], &["--cert", &cert, "--key", &key]].concat())
    };
    assert_eq!(with("client").stdout, b"200 2");
    assert!(
        !server.curl(dir.path(), &OURS).status.success(),
        "a client without a certificate was accepted"
    );
    assert!(!with("other-ca").status.success(), "a client of another authority was accepted");
}
