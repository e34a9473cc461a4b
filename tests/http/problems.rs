//! Every error answer is a problem document (RFC 9457).
use penstock_base::cursor::encode_cursor;
use penstock_test_support::prelude::*;
use tokio::io::AsyncWriteExt as _;

#[tokio::test(flavor = "multi_thread")]
async fn the_framework_s_errors_are_problems_too() {
    let server = TestApp::plain().await;
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
    let server = TestApp::plain().await;
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
    // The cursors of entries that are no longer kept.
    let unknown = encode_cursor(&[Some("019f0000-0000-7000-8000-000000000000")]);
    for list in ["ingestions", "exports"] {
        let problem = server.get(&format!("/api/v1/{list}?cursor={unknown}")).await.problem(400);
        assert!(problem["detail"].has("start again without"), "{list}: {problem}");
    }
    server.get("/api/v1/status?x").await.problem(400);
}

#[tokio::test(flavor = "multi_thread")]
async fn bodies_must_be_json_in_utf8_without_an_unknown_coding() {
    let server = TestApp::plain().await;
    let body = definition().to_string();
    for headers in [
        &[][..],
        &[("Content-Type", "text/plain")],
        &[FORM],
        &[NDJSON],
        &[("Content-Type", "application/json; charset=latin1")],
        &[JSON, ("Content-Encoding", "br")],
    ] {
        let answer = server.send("PUT", "/api/v1/business-objects", headers, body.clone()).await;
        answer.problem(415);
    }
    let headers = [("Content-Type", "application/json; charset=\"UTF-8\"")];
    server.send("PUT", "/api/v1/business-objects", &headers, body).await.expect(201);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_byte_order_mark_before_json_does_not_count() {
    let server = TestApp::plain().await;
    let definition = format!("\u{feff}{}", definition());
    server.send("PUT", "/api/v1/business-objects", &[JSON], definition).await.expect(201);
    let pump = "/api/v1/business-objects/Pump";
    let document = format!("{pump}?form=document");
    for (path, media_type, text) in [
        (pump, JSON, r#"{"data": [{"name": "a"}]}"#),
        (document.as_str(), JSON, r#"{"name": "b"}"#),
        (pump, NDJSON, "{\"name\": \"c\"}\n{\"name\": \"d\"}\n"),
    ] {
        let body = format!("\u{feff}{text}");
        server.send("POST", path, &[media_type], body).await.expect(200);
    }
    let objects = server.items(&format!("{pump}/objects")).await;
    let mut names: Vec<&str> = objects.iter().map(|object| object["name"].text()).collect();
    names.sort_unstable();
    assert_eq!(names, ["a", "b", "c", "d"]);
    // Within the text it is no white space.
    let twice = "\u{feff}\u{feff}{\"data\": []}";
    server.send("POST", pump, &[JSON], twice).await.problem(400);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_body_over_the_limit_is_refused_with_any_framing() {
    let server = TestApp::start(&["--service.limits.body=2000"]).await;
    let long = json!({"data": [{"name": "x".repeat(3000)}]}).to_string();
    let answer = server.send("PUT", "/api/v1/business-objects", &[JSON], long).await;
    assert!(answer.problem(413)["detail"].has("2000"));

    // The body is chunked, so its length is not known in advance.
    let lines =
        "Connection: close\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n";
    let mut stream = server.begin("PUT /api/v1/business-objects", lines).await;
    let chunk = format!("bb8\r\n{}\r\n0\r\n\r\n", "x".repeat(3000));
    stream.write_all(chunk.as_bytes()).await.unwrap();
    let answer = read_rest(&mut stream).await;
    assert!(answer.starts_with("HTTP/1.1 413 "), "{answer}");
}

#[tokio::test(flavor = "multi_thread")]
async fn bodies_over_the_in_flight_quota_get_503() {
    let server =
        TestApp::start(&["--service.limits.body=1MiB", "--service.limits.in-flight=1MiB"]).await;
    let lines = "Content-Type: application/json\r\nContent-Length: 1048576\r\n";
    // After 100 Continue, this body holds the whole quota.
    let stream = server.begin_body(&server.key, "PUT /api/v1/business-objects", lines).await;
    let refused = server.put("/api/v1/business-objects", &definition()).await;
    refused.problem(503);
    assert_eq!(refused.header("retry-after"), "1");
    server.get("/api/v1/status").await.expect(200);
    drop(stream);
    let answer = until_some("the quota is free", async || {
        let answer = server.put("/api/v1/business-objects", &definition()).await;
        (answer.status != 503).then_some(answer)
    });
    answer.await.expect(201);
}

#[tokio::test(flavor = "multi_thread")]
async fn stalled_small_bodies_use_no_quota_of_ingestion() {
    let server =
        TestApp::start(&["--service.limits.body=1MiB", "--service.limits.in-flight=1MiB"]).await;
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
            expect_continue(&mut stream).await;
            waiting.push(stream);
        }
    }
    server.define().await;
    server.ingest("ADD", &json!([{"name": "x".repeat(500_000)}])).await.expect(200);
    let login = json!({"email": "admin", "password": "wrong"}).to_string();
    // A new unauthenticated client gets the slot of the oldest body.
    connect(server.address, "POST", "/login", &[JSON], login.clone()).await.problem(401);
    let socket = tokio::net::TcpSocket::new_v4().unwrap();
    socket.bind("127.0.0.2:0".parse().unwrap()).unwrap();
    let mut other = socket.connect(server.address).await.unwrap();
    let head = "POST /login HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nContent-Type: application/json\r\n";
    let text = format!("{head}Content-Length: {}\r\n\r\n{login}", login.len());
    other.write_all(text.as_bytes()).await.unwrap();
    let refused = read_rest(&mut other).await;
    assert!(refused.starts_with("HTTP/1.1 401 "), "{refused}");
    assert!(refused.contains("application/problem+json"), "{refused}");
    drop(waiting);
    let long = json!({"query": "x".repeat(65_536)});
    server.post("/graphql", &long).await.problem(413);
    server.put("/api/v1/users/me", &long).await.problem(413);
}
