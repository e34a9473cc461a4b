//! Start and stop: one process at a time, the control socket, and the durability of acknowledged data.
use crate::server::Server;
use penstock_base::error::ErrorClass;
use serde_json::{Value, json};
use std::os::unix::fs::PermissionsExt;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpStream, UnixStream};

#[tokio::test(flavor = "multi_thread")]
async fn acknowledged_data_survives_a_restart() {
    let server = Server::start(&[]).await;
    let defined = server.define().await;
    server
        .ingest("ADD", &json!([{"uri": "https://plant.example/p/1", "name": "one"}]))
        .await
        .expect(200);
    let id = server.get("/api/v1/status").await.json()["gatewayId"].clone();
    let dir = server.stop().await.unwrap();
    assert!(!dir.path().join("data/control.sock").exists());

    let server = Server::start_in(dir.path(), &[]).await.unwrap();
    let there = server.get("/api/v1/business-objects/Pump").await.expect(200).json();
    // Warnings depend on the data: the base of a namespace with data can no longer be chosen.
    let lasting = |object: &Value| {
        let mut object = object.clone();
        object.as_object_mut().unwrap().remove("warnings");
        object
    };
    assert_eq!(lasting(&there), lasting(&defined));
    let objects = server.get("/api/v1/business-objects/Pump/objects").await.expect(200).json();
    assert_eq!(objects["items"][0]["name"], "one");
    assert_eq!(server.get("/api/v1/status").await.json()["gatewayId"], id);
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_control_socket_is_private_and_replaces_a_stale_one() {
    let dir = tempfile::tempdir().unwrap();
    let socket = dir.path().join("data/control.sock");
    std::fs::create_dir(dir.path().join("data")).unwrap();
    drop(std::os::unix::net::UnixListener::bind(&socket).unwrap());
    let server = Server::start_in(dir.path(), &[]).await.unwrap();
    assert_eq!(std::fs::metadata(&socket).unwrap().permissions().mode() & 0o777, 0o600);
    let mut stream = UnixStream::connect(&socket).await.unwrap();
    // On the control socket any host is accepted.
    stream
        .write_all(b"GET /api/v1/status HTTP/1.1\r\nHost: penstock\r\nConnection: close\r\n\r\n")
        .await
        .unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await.unwrap();
    assert!(answer.starts_with("HTTP/1.1 200 "), "{answer}");
    server.stop().await;
    assert!(!socket.exists());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_second_gateway_on_the_same_data_is_refused() {
    let server = Server::start(&[]).await;
    let dir = server.dir();
    let error = Server::start_in(dir, &[]).await.err().expect("the data is in use");
    assert_eq!(error.class, ErrorClass::Conflict, "{error}");
    server.get("/health/ready").await.expect(200);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_address_in_use_is_refused() {
    let server = Server::start(&[]).await;
    let port = format!("--server.port={}", server.address.port());
    let dir = tempfile::tempdir().unwrap();
    let error = Server::start_in(dir.path(), &[&port]).await.err().expect("the port is in use");
    assert_eq!(error.class, ErrorClass::Conflict, "{error}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_running_request_is_completed_before_the_stop() {
    let server = Server::start(&[]).await;
    server.define().await;
    let mut stream = TcpStream::connect(server.address).await.unwrap();
    let body = json!({"data": [{"name": "x"}]}).to_string();
    let (begin, end) = body.split_at(5);
    let head = format!(
        "POST /api/v1/business-objects/Pump HTTP/1.1\r\nHost: localhost\r\n{}\
         Content-Type: application/json\r\nExpect: 100-continue\r\nContent-Length: {}\r\n\r\n",
        server.authorization(),
        body.len()
    );
    stream.write_all(head.as_bytes()).await.unwrap();
    // The gateway reads the body, so the request is running.
    let mut go_on = [0; 25];
    stream.read_exact(&mut go_on).await.unwrap();
    assert_eq!(&go_on, b"HTTP/1.1 100 Continue\r\n\r\n");
    stream.write_all(begin.as_bytes()).await.unwrap();
    let stopping = tokio::spawn(server.stop());
    stream.write_all(end.as_bytes()).await.unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await.unwrap();
    assert!(answer.starts_with("HTTP/1.1 200 "), "{answer}");
    let dir = stopping.await.unwrap().unwrap();
    let server = Server::start_in(dir.path(), &[]).await.unwrap();
    assert_eq!(server.get("/api/v1/ingestions").await.json()["items"].as_array().unwrap().len(), 1);
}
