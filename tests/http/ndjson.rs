//! NDJSON over HTTP: each chunk is an ingestion, and an error ends the stream at its position.
use penstock_test_support::prelude::*;
use std::fmt::Write;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

const PUMP: &str = "/api/v1/business-objects/Pump";
/// The head of a stream of lines.
const CHUNKED: &str =
    "Connection: close\r\nTransfer-Encoding: chunked\r\nContent-Type: application/x-ndjson\r\n";

async fn send(server: &TestApp, query: &str, headers: &[(&str, &str)], text: String) -> Answer {
    let headers = [headers, &[NDJSON]].concat();
    server.send("POST", &format!("{PUMP}{query}"), &headers, text).await
}

fn lines(range: std::ops::Range<usize>) -> String {
    range.fold(String::new(), |mut text, index| {
        let _ = writeln!(text, "{{\"uri\":\"https://plant.example/p/{index}\",\"name\":\"p\"}}");
        text
    })
}

#[tokio::test(flavor = "multi_thread")]
async fn each_chunk_has_its_line() {
    let server = TestApp::with_pumps().await;
    let answer = send(&server, "", &[], lines(0..2500)).await.expect(200);
    assert_eq!(answer.header("content-type"), "application/x-ndjson");
    let answer = answer.lines();
    let ranges: Vec<_> =
        answer.iter().map(|line| json!([line["firstIndex"], line["lastIndex"]])).collect();
    assert_eq!(json!(ranges), json!([[0, 999], [1000, 1999], [2000, 2499]]));
    assert!(answer.iter().all(|line| line.get("objects").is_none()));
    assert_eq!(answer[2]["created"], 500);
    let records = server.get("/api/v1/ingestions").await.json();
    assert_eq!(records["items"].list().len(), 3);

    let object = "{\"uri\":\"https://plant.example/p/7\"}".to_owned();
    let answer = send(&server, "?objects=true&mode=DELETE", &[], object).await;
    assert_eq!(answer.expect(200).lines()[0]["objects"][0]["status"], "deleted");
    assert!(send(&server, "", &[], "\n \n".to_owned()).await.expect(200).body.is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn an_error_in_the_first_chunk_is_the_status() {
    let server = TestApp::with_pumps().await;
    let problem =
        send(&server, "", &[], format!("{{\"nam\":1}}\n{}", lines(0..10))).await.problem(422);
    assert!(problem["detail"].text().starts_with("Ingestion failed: "));
    assert_eq!(server.get("/api/v1/status").await.json()["store"]["quads"], 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_later_error_ends_the_stream_and_says_where_to_continue() {
    let server = TestApp::start(&["--service.limits.body=100000"]).await;
    server.define().await;
    let text = format!("{}{{\"nam\":1}}\n{}", lines(0..1500), lines(1500..3500));
    let key = [("Idempotency-Key", "k")];
    let answer = send(&server, "", &key, text).await.expect(200).lines();
    assert_eq!(answer.len(), 2);
    let failed = &answer[1];
    failed.includes(&json!({"status": 422, "firstIndex": 1000, "lastIndex": 1999}));
    assert!(failed["errors"][0]["pointer"].has("1500"), "{failed}");
    let stored = server.get("/api/v1/ingestions").await.json();
    assert_eq!(stored["items"].list().len(), 1);

    // The corrected stream is sent again with its key: finished chunks get their first answer, and the others are
    // ingested.
    let again = send(&server, "", &key, lines(0..3500)).await.expect(200).lines();
    assert_eq!(again[0], answer[0]);
    assert_eq!(again.len(), 4);
    assert_eq!(again.iter().map(|line| line["created"].as_u64().unwrap()).sum::<u64>(), 3500);

    let long = format!("{}{{\"name\":\"{}\"}}\n", lines(0..1000), "x".repeat(100_000));
    let answer = send(&server, "", &[], long).await.expect(200).lines();
    assert_eq!((&answer[1]["status"], &answer[1]["firstIndex"]), (&json!(413), &json!(1000)));
}

#[tokio::test(flavor = "multi_thread")]
async fn chunks_are_answered_before_the_stream_ends() {
    let server = TestApp::with_pumps().await;
    let mut stream = server.begin(&format!("POST {PUMP}"), CHUNKED).await;
    let chunk = |text: String| format!("{:x}\r\n{text}\r\n", text.len());
    stream.write_all(chunk(lines(0..1000)).as_bytes()).await.unwrap();
    let mut answer = String::new();
    let mut piece = [0; 4096];
    while !answer.contains("\"lastIndex\":999") {
        let read = stream.read(&mut piece).await.unwrap();
        assert!(read > 0, "{answer}");
        answer.push_str(std::str::from_utf8(&piece[..read]).unwrap());
    }
    stream.write_all(chunk(lines(1000..1001)).as_bytes()).await.unwrap();
    stream.write_all(b"0\r\n\r\n").await.unwrap();
    stream.read_to_string(&mut answer).await.unwrap();
    assert!(answer.starts_with("HTTP/1.1 200 "), "{answer}");
    assert!(answer.contains("\"firstIndex\":1000,\"lastIndex\":1000"), "{answer}");
}

/// A stream whose lines are sent one by one, and whose answer is read line by line.
struct SlowStream {
    stream: TcpStream,
    answer: String,
}

impl SlowStream {
    async fn begin(server: &TestApp, key: &str) -> Self {
        let stream = server.begin_as(key, &format!("POST {PUMP}"), CHUNKED).await;
        Self { stream, answer: String::new() }
    }

    /// Sends a chunk of the stream and returns its line of the answer.
    async fn chunk(&mut self, from: usize) -> Value {
        let text = lines(from..from + 1000);
        let text = format!("{:x}\r\n{text}\r\n", text.len());
        self.stream.write_all(text.as_bytes()).await.unwrap();
        let wanted = format!("\"firstIndex\":{from},");
        let mut piece = [0; 4096];
        loop {
            let line =
                self.answer.lines().find(|line| line.contains(&wanted) && line.ends_with('}'));
            if let Some(line) = line {
                return serde_json::from_str(line).unwrap();
            }
            let read = self.stream.read(&mut piece).await.unwrap();
            assert!(read > 0, "{}", self.answer);
            self.answer.push_str(std::str::from_utf8(&piece[..read]).unwrap());
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stream_ends_when_its_credential_is_revoked() {
    let server = TestApp::with_pumps().await;
    let stored = async || server.get("/api/v1/status").await.json()["store"]["quads"].clone();

    let key = server.make_key(Role::Contributor, None);
    let mut stream = SlowStream::begin(&server, &key).await;
    assert_eq!(stream.chunk(0).await["created"], 1000);
    let keys = server.get("/api/v1/api-keys").await.json();
    let mut keys = keys["items"].list().iter();
    let id = keys.find(|key| key["role"] == "Contributor").unwrap()["id"].string();
    server.delete(&format!("/api/v1/api-keys/{id}")).await.expect(204);
    let before = stored().await;
    assert_eq!(stream.chunk(1000).await["status"], 401);
    assert_eq!(stored().await, before);

    for (change, status) in
        [(json!({"enabled": false}), 409), (json!({"enabled": true}), 200), (Value::Null, 404)]
    {
        server.define_with(&json!({"enabled": true})).await;
        let mut stream = SlowStream::begin(&server, &server.key).await;
        assert_eq!(stream.chunk(0).await["unchanged"], 1000);
        if change.is_null() {
            server.delete(PUMP).await.expect(204);
        } else {
            server.define_with(&change).await;
        }
        let line = stream.chunk(1000).await;
        if status == 200 {
            assert_eq!(line["created"], 1000, "{line}");
        } else {
            assert_eq!(line["status"], status, "{line}");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stream_uses_the_current_mapping() {
    let server = TestApp::with_pumps().await;
    let mut stream = SlowStream::begin(&server, &server.key).await;
    assert_eq!(stream.chunk(0).await["created"], 1000);
    let config = definition()["config"].string();
    let config = config.replace("https://plant.example/name", "https://plant.example/label");
    server.define_with(&json!({"config": config})).await;
    assert_eq!(stream.chunk(1000).await["created"], 1000);
    for (object, name) in [(0, Value::Null), (1000, json!("p"))] {
        let uri = escaped(&format!("https://plant.example/p/{object}"));
        let shown = server.read(&format!("{PUMP}/objects/{uri}")).await;
        assert_eq!(shown["name"], name, "{shown}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_slow_body_is_accepted_only_with_a_valid_credential() {
    let server = TestApp::with_pumps().await;
    let key = server.make_key(Role::Contributor, Some("Pump"));
    let body = r#"{"data": [{"name": "late"}]}"#;
    let lines = format!("Content-Type: application/json\r\nContent-Length: {}\r\n", body.len());
    // The gateway has authorized the request and reads the body.
    let mut stream = server.begin_body(&key, &format!("POST {PUMP}"), &lines).await;
    server.define_with(&json!({"enabled": false})).await;
    stream.write_all(body.as_bytes()).await.unwrap();
    let answer = read_rest(&mut stream).await;
    assert!(answer.starts_with("HTTP/1.1 409 "), "{answer}");
    assert_eq!(server.get("/api/v1/status").await.json()["store"]["quads"], 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_texts_of_dead_letters_count_among_the_bodies_in_memory() {
    let limits = ["--service.limits.body=1MiB", "--service.limits.in-flight=1MiB"];
    let server = TestApp::start(&limits).await;
    server.define().await;
    let skip = format!("{PUMP}?onError=skip");
    let answer = server.send("POST", &skip, &[JSON], "{\"data\": [1]}").await;
    let answer = answer.expect(200).json();
    let list = format!("/api/v1/ingestions/{}/rejected", answer["ingestionId"].text());
    assert_eq!(server.get(&list).await.expect(200).lines().len(), 1);
    // The stream holds the whole quota.
    let mut stream = SlowStream::begin(&server, &server.key).await;
    stream.chunk(0).await;
    server.get(&list).await.refused(503, "service.limits.in-flight");
}
