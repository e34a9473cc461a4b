//! When memory runs short, large bodies are refused, small ones are accepted, and the process continues.
use crate::define_notes;
use penstock_test_support::prelude::*;
use std::io::Write as _;
use std::net::TcpStream;

#[test]
fn large_bodies_are_refused_and_small_ones_accepted_one_at_a_time() {
    let dir = tempfile::tempdir().unwrap();
    let data = "--service.data-dir=data";
    // The limit is less than any process uses.
    let server = TestProcess::start(dir.path(), &[data, "--service.limits.memory=1MiB"]);
    let client = server.client;
    define_notes(client, &json!([]));

    let path = "/api/v1/business-objects/Notes";
    let body = |bytes: usize| json!({ "data": [{ "text": "x".repeat(bytes) }] }).to_string();
    let refused = client.post(path, body(2 << 20)).expect(503);
    assert!(refused.headers.contains_key("retry-after"));
    let detail = refused.json()["detail"].string();
    assert!(detail.contains("memory is short"), "{detail}");
    client.post(path, body(1000)).expect(200);

    let key = admin_key(dir.path(), data);
    let head = format!(
        "POST {path} HTTP/1.1\r\nHost: {}\r\nAuthorization: Bearer {key}\r\n\
         Content-Type: application/json\r\nContent-Length: 100\r\n\r\n{{",
        client.address
    );
    let headers = [("content-type", "application/json")];
    let mut open = Vec::new();
    wait_for("a second body is refused", || {
        // This request has an incomplete body. It may itself be refused while another one is processed.
        let mut stream = TcpStream::connect(client.address).unwrap();
        stream.write_all(head.as_bytes()).unwrap();
        open.push(stream);
        client.send("POST", path, &headers, body(10)).unwrap().status == 503
    });
    drop(open);
    wait_for("it is accepted once the other bodies are gone", || {
        client.send("POST", path, &headers, body(10)).unwrap().status == 200
    });

    let status = client.read("/api/v1/status");
    status["memory"].includes(&json!({"level": "short", "limitBytes": 1 << 20}));
    let warning = status["warnings"][0].text();
    assert!(warning.starts_with("memory is short: "), "{warning}");
    let metrics = client.get("/metrics").expect(200);
    assert!(metrics.text().contains("penstock_memory_level 2\n"), "{}", metrics.text());
    client.get("/health/ready").expect(200);
    wait_for("the log says so", || server.log().contains("Memory is short"));
    server.stop();
}

#[test]
fn an_error_that_occurs_a_thousand_times_does_not_fill_the_log() {
    let dir = tempfile::tempdir().unwrap();
    let server = TestProcess::start(dir.path(), &["--service.data-dir=data"]);
    let client = server.client;
    define_notes(client, &json!([]));
    let begun = Instant::now();
    for number in 0..1000 {
        let body = json!({ "data": [{ "txet": number }] }).to_string();
        client.post("/api/v1/business-objects/Notes", body).expect(422);
    }
    for _ in 0..100 {
        let body = json!({ "data": [{ "text": "good" }] }).to_string();
        client.post("/api/v1/business-objects/Notes", body).expect(200);
    }
    let minutes = usize::try_from(begun.elapsed().as_secs() / 60).unwrap() + 1;
    let count = |text: &str| server.log().matches(text).count();
    wait_for("each one is logged", || count("An ingestion was done.") == 100);
    let refused = count("An ingestion was refused.");
    assert!((1..=60 * minutes).contains(&refused), "{refused} lines");
    let status = client.read("/api/v1/status");
    // After a minute there is a line about those that were left out.
    let mut errors = status["lastErrors"].list().iter();
    let error = errors.find(|error| error["text"] == "An ingestion was refused.").unwrap();
    assert_eq!(error["count"], refused, "{status}");
    assert_eq!(error["code"], "business_object::ingest::run", "{error}");
    assert!(error["fields"]["cause"].has("txet"), "{error}");
    server.stop();
}
