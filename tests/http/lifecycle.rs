//! Start and stop: one process at a time, the control socket, and the durability of acknowledged data.
use penstock_base::error::ErrorClass;
use penstock_test_support::prelude::*;
use std::os::unix::fs::PermissionsExt;
use tokio::io::AsyncWriteExt;

#[tokio::test(flavor = "multi_thread")]
async fn acknowledged_data_survives_a_restart() {
    let server = TestApp::plain().await;
    let defined = server.define().await;
    let pump = json!([{"uri": "https://plant.example/p/1", "name": "one"}]);
    server.ingest("ADD", &pump).await.expect(200);
    let id = server.get("/api/v1/status").await.json()["gatewayId"].clone();
    let dir = server.stop().await.unwrap();
    assert!(!dir.path().join("data/control.sock").exists());

    let server = TestApp::reopen(dir.path()).await;
    let there = server.read("/api/v1/business-objects/Pump").await;
    // Warnings depend on the data: the base of a namespace with data can no longer be chosen.
    let lasting = |object: &Value| {
        let mut object = object.clone();
        object.as_object_mut().unwrap().remove("warnings");
        object
    };
    assert_eq!(lasting(&there), lasting(&defined));
    let objects = server.items("/api/v1/business-objects/Pump/objects").await;
    assert_eq!(objects[0]["name"], "one");
    assert_eq!(server.get("/api/v1/status").await.json()["gatewayId"], id);
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_control_socket_is_private_and_replaces_a_stale_one() {
    let dir = tempfile::tempdir().unwrap();
    let socket = dir.path().join("data/control.sock");
    std::fs::create_dir(dir.path().join("data")).unwrap();
    drop(std::os::unix::net::UnixListener::bind(&socket).unwrap());
    let server = TestApp::reopen(dir.path()).await;
    assert_eq!(std::fs::metadata(&socket).unwrap().permissions().mode() & 0o777, 0o600);
    server.control("GET", "/api/v1/status", &[], "").await.expect(200);
    server.stop().await;
    assert!(!socket.exists());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_second_gateway_on_the_same_data_is_refused() {
    let server = TestApp::plain().await;
    let dir = server.dir();
    let error = TestApp::start_in(dir, &[]).await.err().expect("the data is in use");
    assert_eq!(error.class, ErrorClass::Conflict, "{error}");
    server.get("/health/ready").await.expect(200);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_address_in_use_is_refused() {
    let server = TestApp::plain().await;
    let port = format!("--server.port={}", server.address.port());
    let dir = tempfile::tempdir().unwrap();
    let error = TestApp::start_in(dir.path(), &[&port]).await.err().expect("the port is in use");
    assert_eq!(error.class, ErrorClass::Conflict, "{error}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_running_request_is_completed_before_the_stop() {
    let server = TestApp::with_pumps().await;
    let body = json!({"data": [{"name": "x"}]}).to_string();
    let (begin, end) = body.split_at(5);
    let lines = format!("Content-Type: application/json\r\nContent-Length: {}\r\n", body.len());
    // The gateway reads the body, so the request is running.
    let path = "POST /api/v1/business-objects/Pump";
    let mut stream = server.begin_body(&server.key, path, &lines).await;
    stream.write_all(begin.as_bytes()).await.unwrap();
    let stopping = tokio::spawn(server.stop());
    stream.write_all(end.as_bytes()).await.unwrap();
    let answer = read_rest(&mut stream).await;
    assert!(answer.starts_with("HTTP/1.1 200 "), "{answer}");
    let dir = stopping.await.unwrap().unwrap();
    let server = TestApp::reopen(dir.path()).await;
    assert_eq!(server.get("/api/v1/ingestions").await.json()["items"].list().len(), 1);
}
