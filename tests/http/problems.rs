//! Every error answer is a problem document (RFC 9457).
use crate::server::{Server, connect, definition, exchange};
use penstock_base::Role;
use serde_json::json;
use tokio::io::{AsyncReadExt, AsyncWriteExt};

#[tokio::test(flavor = "multi_thread")]
async fn the_framework_s_errors_are_problems_too() {
    let server = Server::start(&[]).await;
    let nothing = server.get("/api/v1/nothing").await;
    assert_eq!(nothing.problem(404)["instance"], "/api/v1/nothing");
    assert_eq!(server.get("/nothing").await.problem(404)["type"], "about:blank");
    let wrong = server.send("PATCH", "/api/v1/business-objects", &[], "").await;
    wrong.problem(405);
    assert_eq!(wrong.header("allow"), "GET, HEAD, PUT");
    // Any other path can be a minted URI, but not that of a route.
    for (path, allowed) in [("/logout", "POST"), ("/sparql/update", "POST")] {
        for method in ["GET", "HEAD", "DELETE"] {
            let wrong = server.send(method, path, &[], "").await;
            assert_eq!((wrong.status, wrong.header("allow")), (405, allowed), "{method} {path}");
        }
    }
    let head = server.send("HEAD", "/api/v1/business-objects/none", &[], "").await;
    assert_eq!((head.status, head.body.len()), (404, 0));
    server.get("/api/v1/business-objects/%zz").await.problem(400);
    server.get("/api/v1/business-objects/%FF").await.problem(400);
    server.get("/api/v1/business-objects?x=%").await.problem(400);
}

#[tokio::test(flavor = "multi_thread")]
async fn parameters_are_read_strictly() {
    let server = Server::start(&[]).await;
    for bad in [
        "limit=0",
        "limit=1001",
        "limit=x",
        "limit=%2B1",
        "limit=",
        "cursor=zz",
        "cursor=",
        "other=1",
        "limit=1&limit=2",
    ] {
        server.get(&format!("/api/v1/business-objects?{bad}")).await.problem(400);
    }
    server.get("/api/v1/ingestions?cursor=6162").await.problem(400);
    server.get("/api/v1/status?x").await.problem(400);
}

#[tokio::test(flavor = "multi_thread")]
async fn bodies_must_be_json_in_utf8_without_an_unknown_coding() {
    let server = Server::start(&[]).await;
    let body = definition().to_string();
    for headers in [
        &[][..],
        &[("Content-Type", "text/plain")],
        &[("Content-Type", "application/x-www-form-urlencoded")],
        &[("Content-Type", "application/x-ndjson")],
        &[("Content-Type", "application/json; charset=latin1")],
        &[("Content-Type", "application/json"), ("Content-Encoding", "br")],
    ] {
        let answer = server.send("PUT", "/api/v1/business-objects", headers, body.clone()).await;
        answer.problem(415);
    }
    let headers = [("Content-Type", "application/json; charset=\"UTF-8\"")];
    server.send("PUT", "/api/v1/business-objects", &headers, body).await.expect(201);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_body_over_the_limit_is_refused_with_any_framing() {
    let server = Server::start(&["--service.limits.body=2000"]).await;
    let long = json!({"data": [{"name": "x".repeat(3000)}]}).to_string();
    let answer = server
        .send("PUT", "/api/v1/business-objects", &[("Content-Type", "application/json")], long)
        .await;
    assert!(answer.problem(413)["detail"].as_str().unwrap().contains("2000"));

    // The body is chunked, so its length is not known in advance.
    let mut stream = tokio::net::TcpStream::connect(server.address).await.unwrap();
    let head = format!(
        "PUT /api/v1/business-objects HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n{}\
         Content-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n",
        server.authorization()
    );
    let chunk = format!("bb8\r\n{}\r\n0\r\n\r\n", "x".repeat(3000));
    stream.write_all(format!("{head}{chunk}").as_bytes()).await.unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await.unwrap();
    assert!(answer.starts_with("HTTP/1.1 413 "), "{answer}");
}

#[tokio::test(flavor = "multi_thread")]
async fn bodies_over_the_in_flight_quota_get_503() {
    let server =
        Server::start(&["--service.limits.body=1MiB", "--service.limits.in-flight=1MiB"]).await;
    let mut stream = tokio::net::TcpStream::connect(server.address).await.unwrap();
    let head = format!(
        "PUT /api/v1/business-objects HTTP/1.1\r\nHost: localhost\r\n{}\
         Content-Type: application/json\r\nExpect: 100-continue\r\n\
         Content-Length: 1048576\r\n\r\n",
        server.authorization()
    );
    stream.write_all(head.as_bytes()).await.unwrap();
    // After 100 Continue, this body holds the whole quota.
    let mut go_on = [0; 25];
    stream.read_exact(&mut go_on).await.unwrap();
    let refused = server.json("PUT", "/api/v1/business-objects", &definition()).await;
    refused.problem(503);
    assert_eq!(refused.header("retry-after"), "1");
    server.get("/api/v1/status").await.expect(200);
    drop(stream);
    let begun = std::time::Instant::now();
    loop {
        let answer = server.json("PUT", "/api/v1/business-objects", &definition()).await;
        if answer.status != 503 {
            answer.expect(201);
            break;
        }
        assert!(begun.elapsed().as_secs() < 30);
        tokio::time::sleep(std::time::Duration::from_millis(10)).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn stalled_small_bodies_use_no_quota_of_ingestion() {
    let server =
        Server::start(&["--service.limits.body=1MiB", "--service.limits.in-flight=1MiB"]).await;
    let user = server.make_key(Role::User, None);
    let known = format!("Authorization: Bearer {user}\r\n");
    let mut waiting = Vec::new();
    // Unauthenticated clients may have 8 concurrent bodies from one address.
    for (path, shown, bodies) in [
        ("/login", "", 4),
        ("/logout", "", 4),
        ("/graphql", &*known, 8),
        ("/api/v1/api-keys", &*known, 8),
    ] {
        for _ in 0..bodies {
            let mut stream = tokio::net::TcpStream::connect(server.address).await.unwrap();
            let head = format!(
                "POST {path} HTTP/1.1\r\nHost: localhost\r\n{shown}Content-Type: application/json\r\n\
                 Expect: 100-continue\r\nContent-Length: 10240\r\n\r\n"
            );
            stream.write_all(head.as_bytes()).await.unwrap();
            // After 100 Continue, the gateway waits for this body.
            let mut go_on = [0; 25];
            stream.read_exact(&mut go_on).await.unwrap();
            assert!(go_on.starts_with(b"HTTP/1.1 100 "), "{path}");
            waiting.push(stream);
        }
    }
    server.define().await;
    server.ingest("ADD", &json!([{"name": "x".repeat(500_000)}])).await.expect(200);
    let login = json!({"email": "admin", "password": "wrong"}).to_string();
    let json_type = [("Content-Type", "application/json")];
    // A new unauthenticated client gets the slot of the oldest body.
    connect(server.address, "POST", "/login", &json_type, login.clone()).await.problem(401);
    let socket = tokio::net::TcpSocket::new_v4().unwrap();
    socket.bind("127.0.0.2:0".parse().unwrap()).unwrap();
    let other = socket.connect(server.address).await.unwrap();
    exchange(other, "localhost", "POST", "/login", &json_type, login).await.problem(401);
    drop(waiting);
    let long = json!({"query": "x".repeat(65_536)});
    server.json("POST", "/graphql", &long).await.problem(413);
    server.json("PUT", "/api/v1/users/me", &long).await.problem(413);
}
