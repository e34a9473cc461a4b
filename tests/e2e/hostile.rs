//! Broken and malicious clients: the service still answers all other clients.
use crate::define_notes;
use penstock_test_support::prelude::*;
use std::io::{ErrorKind, Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use tokio::net::TcpSocket;

const DATA: &str = "--service.data-dir=data";

fn assert_still_answers(client: Client) {
    assert_eq!(client.get("/health/ready").status, 200);
}

/// Sends these bytes. Returns everything that the server answers until it closes the connection.
fn send_raw(client: Client, bytes: &[u8]) -> String {
    let mut stream = TcpStream::connect(client.address).unwrap();
    stream.set_read_timeout(Some(TEST_TIMEOUT)).unwrap();
    // The server may answer and close the connection before it has read all bytes.
    let _ = stream.write_all(bytes);
    let mut answer = Vec::new();
    match stream.read_to_end(&mut answer) {
        Err(error) if error.kind() != ErrorKind::ConnectionReset => panic!("{error}"),
        _ => {}
    }
    String::from_utf8_lossy(&answer).into_owned()
}

#[test]
fn ten_thousand_idle_connections_of_one_address_block_no_other_client() {
    let dir = tempfile::tempdir().unwrap();
    let server = TestProcess::start(dir.path(), &[DATA]);
    let address = server.client.address;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let open = runtime.block_on(async {
        let mut open = Vec::new();
        for _ in 0..10_000 {
            let socket = TcpSocket::new_v4().unwrap();
            socket.bind(SocketAddr::from((Ipv4Addr::new(127, 0, 0, 2), 0))).unwrap();
            // The server immediately closes connections above the limit, so they are closed here too.
            if let Ok(stream) = socket.connect(address).await {
                open.push(stream);
            }
            let is_closed = |stream: &tokio::net::TcpStream| {
                matches!(stream.try_read(&mut [0]), Ok(0)) || stream.peer_addr().is_err()
            };
            if open.len() > 600 {
                tokio::time::sleep(Duration::from_millis(50)).await;
                open.retain(|stream| !is_closed(stream));
            }
        }
        open
    });
    assert_still_answers(server.client);
    assert!(open.len() >= 128, "{} connections are left", open.len());
    drop(open);
    server.stop();
}

#[test]
fn clients_that_send_a_byte_now_and_then_are_disconnected() {
    let dir = tempfile::tempdir().unwrap();
    let server = TestProcess::start(dir.path(), &[DATA]);
    let mut slow: Vec<_> =
        (0..100).map(|_| TcpStream::connect(server.client.address).unwrap()).collect();
    for stream in &mut slow {
        stream.set_read_timeout(Some(Duration::from_millis(1))).unwrap();
        stream.write_all(b"GET /health/live HTTP/1.1\r\nHost: localhost\r\nX-Slow: ").unwrap();
    }
    assert_still_answers(server.client);
    let begun = Instant::now();
    // A byte each second does not reset the timeout, which covers the whole head.
    while !slow.is_empty() {
        assert!(begun.elapsed() < TEST_TIMEOUT, "{} slow connections are still open", slow.len());
        slow.retain_mut(|stream| {
            let closed = match stream.read(&mut [0; 512]) {
                Ok(0) => true,
                Ok(_) => false,
                Err(error) => !matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut),
            };
            !closed && stream.write_all(b"a").is_ok()
        });
        std::thread::sleep(Duration::from_secs(1));
    }
    assert_still_answers(server.client);
    server.stop();
}

/// If a body stops, the server waits as long as a client may pause. Then it frees the capacity of that body.
#[test]
fn clients_whose_body_stops_are_disconnected() {
    let dir = tempfile::tempdir().unwrap();
    // Capacity for ten bodies.
    let limits = ["--service.limits.body=100KiB", "--service.limits.in-flight=1000KiB"];
    let server = TestProcess::start(dir.path(), &[&[DATA][..], &limits].concat());
    let client = server.client;
    define_notes(client, &json!([]));
    let key = admin_key(dir.path(), DATA);
    let head = format!(
        "POST /api/v1/business-objects/Notes HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {key}\r\n\
         Content-Type: application/json\r\nContent-Length: 102400\r\n\r\n{{\"data\": ["
    );
    let mut slow = Vec::new();
    let good = json!({ "data": [{ "text": "good" }] }).to_string();
    let post = || client.post("/api/v1/business-objects/Notes", good.clone()).status;
    wait_for("there is no capacity for one more body", || {
        // An incomplete body is refused if it arrives while the complete one uses the capacity. Then the next
        // incomplete body takes its place.
        let mut stream = TcpStream::connect(client.address).unwrap();
        stream.set_read_timeout(Some(TEST_TIMEOUT)).unwrap();
        stream.write_all(head.as_bytes()).unwrap();
        slow.push(stream);
        std::thread::sleep(Duration::from_millis(50));
        post() == 503
    });
    assert_still_answers(client);
    for stream in &mut slow {
        let mut answer = Vec::new();
        let _ = stream.read_to_end(&mut answer);
        let answer = String::from_utf8_lossy(&answer);
        let is_refused = ["HTTP/1.1 408", "HTTP/1.1 503"].iter().any(|s| answer.starts_with(s));
        assert!(answer.is_empty() || is_refused, "{answer}");
    }
    wait_for("the capacity of the incomplete bodies is free again", || post() == 200);
    server.stop();
}

#[test]
fn heads_that_are_too_large_are_refused() {
    let dir = tempfile::tempdir().unwrap();
    let server = TestProcess::start(dir.path(), &[DATA]);
    let long = "a".repeat(200_000);
    let many = "X-Many: a\r\n".repeat(2_000);
    for head in [
        format!("GET /{long} HTTP/1.1\r\nHost: localhost\r\n\r\n"),
        format!("GET /health/live HTTP/1.1\r\nHost: localhost\r\nX-Long: {long}\r\n\r\n"),
        format!("GET /health/live HTTP/1.1\r\nHost: localhost\r\n{many}\r\n"),
    ] {
        let answer = send_raw(server.client, head.as_bytes());
        assert!(
            answer.is_empty() || answer.starts_with("HTTP/1.1 4"),
            "{}",
            &answer[..answer.len().min(300)]
        );
    }
    assert_still_answers(server.client);
    server.stop();
}

/// Sends bytes that two parsers could read as different numbers of requests (RFC 9112, 6.3 and 11.2). The server must
/// not answer the request that is hidden in the body of the other one.
#[test]
fn no_request_is_hidden_in_another() {
    let dir = tempfile::tempdir().unwrap();
    let server = TestProcess::start(dir.path(), &[DATA]);
    let hidden = "GET /hidden HTTP/1.1\r\nHost: localhost\r\n\r\n";
    let post = "POST /health/live HTTP/1.1\r\nHost: localhost\r\n";
    for shape in [
        format!("{post}Content-Length: 6\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n{hidden}"),
        format!("{post}Transfer-Encoding: chunked\r\nContent-Length: 5\r\n\r\n0\r\n\r\n{hidden}"),
        format!("{post}Content-Length: 0\r\nContent-Length: {}\r\n\r\n{hidden}", hidden.len()),
        format!("{post}Content-Length: 0, {}\r\n\r\n{hidden}", hidden.len()),
        format!("{post}Content-Length: +0\r\n\r\n{hidden}"),
        format!("{post}Transfer-Encoding: xchunked\r\n\r\n0\r\n\r\n{hidden}"),
        format!("{post}Transfer-Encoding : chunked\r\n\r\n0\r\n\r\n{hidden}"),
        format!("{post}Transfer-Encoding: chunked, identity\r\n\r\n0\r\n\r\n{hidden}"),
        format!("{post}Transfer-Encoding: chunked\r\n\r\n-1\r\n{hidden}"),
        format!("{post}Transfer-Encoding: chunked\r\n\r\nffffffffffffffff1\r\n{hidden}"),
        format!("{post}X: a\r\n b\r\nContent-Length: 0\r\n\r\n{hidden}"),
    ] {
        let answer = send_raw(server.client, shape.as_bytes());
        let answers = answer.matches("HTTP/1.1 ").count();
        assert!(answers <= 1, "{shape:?}\nwas answered {answers} times:\n{answer}");
        assert!(!answer.contains("/hidden"), "{shape:?}\n{answer}");
    }
    assert_still_answers(server.client);
    server.stop();
}
