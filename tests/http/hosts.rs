//! The host that a request names (RFC 9112, 3.2; RFC 9110, 7.2).
use penstock_test_support::prelude::*;
use std::net::SocketAddr;
use tokio::io::AsyncWriteExt;
use tokio::net::TcpStream;

/// Sends the head of a request exactly as it is, and returns the whole answer.
async fn send_raw(address: SocketAddr, head: &str) -> String {
    let mut stream = TcpStream::connect(address).await.unwrap();
    stream.write_all(head.as_bytes()).await.unwrap();
    stream.write_all(b"Connection: close\r\n\r\n").await.unwrap();
    read_rest(&mut stream).await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_request_names_one_valid_host() {
    let server = TestApp::plain().await;
    let key = format!("Authorization: Bearer {}\r\n", server.key);
    for (version, hosts, status, why) in [
        ("1.1", "Host: localhost\r\n", 200, ""),
        ("1.1", "Host: 127.0.0.1:8080\r\n", 200, ""),
        ("1.0", "", 200, ""),
        ("1.1", "", 400, "has no Host"),
        ("1.1", "Host:\r\n", 400, "is not a host"),
        ("1.1", "Host: a@b\r\n", 400, "is not a host"),
        ("1.1", "Host: user@localhost\r\n", 400, "is not a host"),
        ("1.1", "Host: localhost:80x\r\n", 400, "is not a host"),
        ("1.1", "Host: localhost, localhost\r\n", 400, "is not a host"),
        ("1.1", "Host: localhost\r\nHost: localhost\r\n", 400, "2 Host lines"),
        ("1.1", "Host: localhost\r\nHost: evil.example\r\n", 400, "2 Host lines"),
    ] {
        for path in ["/health/live", "/api/v1/status", "/nothing"] {
            let head = format!("GET {path} HTTP/{version}\r\n{hosts}{key}");
            let answer = send_raw(server.address, &head).await;
            let status = if path == "/nothing" && status == 200 { 404 } else { status };
            let line = format!("HTTP/{version} {status} ");
            assert!(answer.starts_with(&line), "{path} {hosts:?}: {answer}");
            assert!(answer.contains(why), "{path} {hosts:?}: {answer}");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_authority_of_an_absolute_target_has_priority_over_the_host() {
    let server = TestApp::start(&["--service.base-url=http://own.example"]).await;
    let cookie = server.sign_in(Role::User);
    for (authority, host, status) in [
        ("own.example", "own.example", 200),
        ("own.example", "evil.example", 200),
        ("localhost:8080", "evil.example", 200),
        ("evil.example", "own.example", 403),
        ("user@own.example", "own.example", 400),
    ] {
        let head = format!(
            "GET http://{authority}/api/v1/status HTTP/1.1\r\nHost: {host}\r\nCookie: {cookie}\r\n"
        );
        let answer = send_raw(server.address, &head).await;
        let line = format!("HTTP/1.1 {status} ");
        assert!(answer.starts_with(&line), "{authority} with {host}: {answer}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn health_accepts_any_host_and_refusals_name_the_settings() {
    let server = TestApp::start(&["--service.base-url=https://own.example/gate"]).await;
    let probe = [("Host", "10-1-2-3.pods.example")];
    for path in ["/health/live", "/health/ready", "/gate/health/ready"] {
        server.anonymous().get_with(path, &probe).await.expect(200);
    }
    let refused = server.anonymous().get_with("/login", &probe).await.problem(403);
    refused["detail"].text().has_all(&[
        "service.base-url",
        "server.forward-headers-strategy=native",
        "service.trusted-proxies",
    ]);
}

#[tokio::test(flavor = "multi_thread")]
async fn answers_over_https_have_strict_transport_security() {
    let proxied =
        ["--server.forward-headers-strategy=native", "--service.trusted-proxies=127.0.0.1"];
    let server = TestApp::start(&proxied).await;
    let policy = async |server: &TestApp, path: &str, headers: &[(&str, &str)]| {
        let answer = server.anonymous().get_with(path, headers).await;
        answer.header("strict-transport-security").to_owned()
    };
    let https = [("X-Forwarded-Proto", "https"), ("X-Forwarded-Host", "gw.example")];
    for path in ["/health/live", "/login", "/api/v1/status", "/nothing"] {
        assert_eq!(policy(&server, path, &https).await, "max-age=31536000", "{path}");
    }
    let http = [("X-Forwarded-Proto", "http"), ("X-Forwarded-Host", "gw.example")];
    assert_eq!(policy(&server, "/login", &http).await, "");
    assert_eq!(policy(&server, "/login", &[("X-Forwarded-Proto", "https")]).await, "");

    let server = TestApp::start(&[&proxied[..], &["--server.hsts.max-age=0s"]].concat()).await;
    assert_eq!(policy(&server, "/login", &https).await, "max-age=0");
    // Headers of an untrusted proxy do not count.
    let server = TestApp::plain().await;
    assert_eq!(policy(&server, "/login", &https).await, "");
}
