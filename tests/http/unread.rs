//! Answers that clients do not read use up a total limit, with a cap for each client.
use penstock_test_support::prelude::*;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpSocket, TcpStream};

const OBJECTS: &str = "/api/v1/business-objects/Pump/objects?limit=1000";

/// Requests a page and reads the first bytes of its answer.
async fn ask(server: &TestApp, key: &str) -> (TcpStream, String) {
    let socket = TcpSocket::new_v4().unwrap();
    socket.set_recv_buffer_size(4096).unwrap();
    let mut stream = socket.connect(server.address).await.unwrap();
    let head =
        format!("GET {OBJECTS} HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {key}\r\n\r\n");
    stream.write_all(head.as_bytes()).await.unwrap();
    let mut begin = [0; 12];
    stream.read_exact(&mut begin).await.unwrap();
    (stream, String::from_utf8_lossy(&begin).into_owned())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_client_that_does_not_read_blocks_only_itself() {
    let server = TestApp::start(&["--service.limits.in-flight=26MiB"]).await;
    server.define().await;
    let objects: Vec<_> = (0..500).map(|n| json!({"name": "x".repeat(9_000 + n)})).collect();
    server.ingest("ADD", &json!(objects)).await.expect(200);
    let key = server.make_key(Role::User, None);
    let mut unread = Vec::new();
    let refused = loop {
        assert!(unread.len() < 20, "the gateway still sends answers although many are unread");
        let (stream, begin) = ask(&server, &key).await;
        if begin != "HTTP/1.1 200" {
            break begin;
        }
        unread.push(stream);
    };
    assert_eq!(refused, "HTTP/1.1 503");
    // A page has 4 MiB, and half of the quota is 13 MiB, so three pages fit.
    assert_eq!(unread.len(), 3);
    let caller = server.caller_with(&key);
    let answer = caller.get(OBJECTS).await;
    answer.problem(503);
    assert_eq!((answer.header("retry-after"), answer.header("etag")), ("1", ""));
    let query = json!({"query": "{ pumpConnection(first: 200) { nodes { name } } }"});
    caller.post("/graphql", &query).await.problem(503);
    // Small answers, and those of other clients.
    caller.get("/api/v1/limits").await.expect(200);
    server.ingest("ADD", &json!([{"name": "small"}])).await.expect(200);
    let page = server.get(OBJECTS).await.expect(200);
    assert!(page.body.len() > 4 << 20, "{}", page.body.len());
    drop(unread);
    let is_free = async || ask(&server, &key).await.1 == "HTTP/1.1 200";
    until("the quota is free again", is_free).await;
}

/// A read can be repeated, but the result of a change must reach the client. So results of changes have a separate
/// limit.
#[tokio::test(flavor = "multi_thread")]
async fn a_client_with_an_unread_page_can_ingest() {
    let server =
        TestApp::start(&["--service.limits.in-flight=8MiB", "--service.limits.body=8MiB"]).await;
    server.define().await;
    let objects: Vec<_> = (0..500).map(|n| json!({"name": "x".repeat(9_000 + n)})).collect();
    server.ingest("ADD", &json!(objects)).await.expect(200);
    let key = server.make_key(Role::Contributor, None);
    let (_unread, begin) = ask(&server, &key).await;
    assert_eq!(begin, "HTTP/1.1 200");
    // A page has 4 MiB, which is the whole quota of one client here.
    assert_eq!(ask(&server, &key).await.1, "HTTP/1.1 503");
    let body = json!({"data": [{"name": "small"}]});
    let path = "/api/v1/business-objects/Pump?mode=ADD";
    server.caller_with(&key).post(path, &body).await.expect(200);
}
