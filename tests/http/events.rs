//! Events over HTTP: their content, their order, and how a listener continues after an interruption.
use http_body_util::{BodyExt, Empty};
use hyper::body::{Bytes, Incoming};
use hyper::{Request, Response};
use hyper_util::rt::TokioIo;
use penstock_test_support::prelude::*;
use std::io::Read as _;
use tokio::net::TcpStream;
use tokio::time::timeout;

/// An open stream of events.
pub(crate) struct EventStream {
    response: Response<Incoming>,
    text: String,
}

/// One block of the stream.
#[derive(Debug, Default)]
pub(crate) struct Block {
    id: String,
    pub(crate) event: String,
    pub(crate) data: Value,
}

impl EventStream {
    /// Starts a stream for this caller.
    pub(crate) async fn start(caller: &Caller, path: &str, more: &[(&str, &str)]) -> Self {
        let address = caller.address;
        let stream = TcpStream::connect(address).await.unwrap();
        let (mut sender, connection) =
            hyper::client::conn::http1::handshake(TokioIo::new(stream)).await.unwrap();
        tokio::spawn(connection);
        let own = caller.headers.iter().map(|(name, value)| (*name, value.as_str()));
        let mut request = Request::builder().uri(path).header("Host", address.to_string());
        for (name, value) in own.chain(more.iter().copied()) {
            request = request.header(name, value);
        }
        let response = sender.send_request(request.body(Empty::<Bytes>::new()).unwrap()).await;
        let response = response.unwrap();
        assert_eq!(response.status(), 200);
        assert_eq!(response.headers()["content-type"], "text/event-stream");
        assert_eq!(response.headers()["cache-control"], "no-store");
        Self { response, text: String::new() }
    }

    /// Returns the next block, or `None` at the end of the stream.
    async fn block(&mut self) -> Option<Block> {
        loop {
            if let Some(end) = self.text.find("\n\n") {
                let text: String = self.text.drain(..end + 2).collect();
                let mut block = Block::default();
                for line in text.lines() {
                    match line.split_once(": ") {
                        Some(("id", id)) => id.clone_into(&mut block.id),
                        Some(("event", event)) => event.clone_into(&mut block.event),
                        Some(("data", data)) => block.data = serde_json::from_str(data).unwrap(),
                        _ => assert!(line.is_empty() || line == ":" || line == "retry: 2000"),
                    }
                }
                return Some(block);
            }
            let frame = timeout(TEST_TIMEOUT, self.response.frame()).await.unwrap()?.unwrap();
            self.text.push_str(std::str::from_utf8(&frame.into_data().unwrap()).unwrap());
        }
    }

    pub(crate) async fn event(&mut self) -> Block {
        loop {
            let block = self.block().await.expect("the stream continues");
            if block.data.is_null() {
                // A comment has nothing else: some clients would dispatch any other field, even without data.
                assert_eq!((&*block.id, &*block.event), ("", ""));
                continue;
            }
            block.data.includes(&json!({"id": block.id, "type": block.event}));
            if block.event == "penstock.events.position" {
                assert_eq!(block.data["data"], json!({}));
                continue;
            }
            return block;
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn ingestions_and_exports_are_reported_in_order() {
    let server = TestApp::start(&["--service.base-url=http://127.0.0.1/plant"]).await;
    server.define().await;
    let mut all = EventStream::start(&server, "/api/v1/events", &[]).await;
    let exports = "/api/v1/events?types=penstock.export.changed";
    let mut exports = EventStream::start(&server, exports, &[]).await;
    let opening = all.block().await.unwrap();
    assert_eq!(opening.event, "penstock.events.position");
    let seen: u64 = opening.id.parse().unwrap();

    let answer = server.ingest("ADD", &json!([{"name": "one"}])).await.expect(200).json();
    // Requests that store nothing cause no events.
    server.ingest("VALIDATE", &json!([{"name": "two"}])).await.expect(200);
    server.ingest("ADD", &json!([{"unknown": 1}])).await.problem(422);
    let export = json!(server.push("Pump").await);

    let ingestion = all.event().await;
    assert_eq!(ingestion.id, (seen + 1).to_string());
    assert_eq!(ingestion.event, "penstock.ingestion.committed");
    let event = &ingestion.data;
    assert_eq!(event["specversion"], "1.0");
    assert_eq!(event["source"], "http://127.0.0.1/plant");
    assert_eq!(event["datacontenttype"], "application/json");
    assert_eq!(event["subject"], answer["ingestionId"]);
    let record = format!("/api/v1/ingestions/{}", answer["ingestionId"].text());
    assert_eq!(event["data"], server.get(&record).await.json());

    for listening in [&mut all, &mut exports] {
        for status in ["queued", "delivering", "delivered"] {
            let event = listening.event().await;
            assert_eq!(event.event, "penstock.export.changed");
            assert_eq!((&event.data["subject"], &event.data["data"]["id"]), (&export, &export));
            assert_eq!(event.data["data"]["status"], status);
        }
    }
    let entry = format!("/api/v1/exports/{}", export.text());
    let entry = server.get(&entry).await.json();

    // A listener that reconnects continues after its last event.
    let last = [("Last-Event-ID", &*(seen + 3).to_string())];
    let mut again = EventStream::start(&server, "/api/v1/events", &last).await;
    assert_eq!(again.event().await.data["data"], entry);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_compressed_stream_has_each_event_at_once() {
    let server = TestApp::with_pumps().await;
    for coding in ["gzip", "zstd"] {
        let headers = [("Accept-Encoding", coding)];
        let mut stream = EventStream::start(&server, "/api/v1/events", &headers).await;
        assert_eq!(stream.response.headers()["content-encoding"], coding);
        let pump = json!([{"uri": format!("https://plant.example/{coding}"), "name": "p"}]);
        server.ingest("ADD", &pump).await.expect(200);
        let mut packed = Vec::new();
        loop {
            let frame =
                timeout(TEST_TIMEOUT, stream.response.frame()).await.unwrap().unwrap().unwrap();
            packed.extend_from_slice(&frame.into_data().unwrap());
            // The stream has not ended, so only what is flushed can be read.
            let mut text = Vec::new();
            let _ = match coding {
                "gzip" => flate2::read::GzDecoder::new(&packed[..]).read_to_end(&mut text),
                _ => zstd::stream::read::Decoder::new(&packed[..]).unwrap().read_to_end(&mut text),
            };
            if String::from_utf8_lossy(&text).contains("event: penstock.ingestion.committed") {
                break;
            }
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn lost_events_are_reported_across_a_restart() {
    let server = TestApp::start(&["--service.events.depth=2"]).await;
    server.define().await;
    let mut listening = EventStream::start(&server, "/api/v1/events", &[]).await;
    let first = listening.block().await.unwrap().id;
    let mut ids = Vec::new();
    for _ in 0..5 {
        server.ingest("ADD", &json!([{"name": "one"}])).await.expect(200);
        ids.push(listening.event().await.id);
    }
    let path = "/api/v1/events?types=penstock.target.changed";
    let mut late = EventStream::start(&server, path, &[("Last-Event-ID", &first)]).await;
    let lost = late.event().await;
    assert_eq!((lost.event.as_str(), &lost.id), ("penstock.events.lost", &ids[2]));
    assert_eq!(lost.data["data"]["count"], 3);

    // A stop ends the streams instead of waiting for them.
    let dir = server.stop().await.unwrap();
    assert!(listening.block().await.is_none());
    let server = TestApp::reopen(dir.path()).await;
    let mut after = EventStream::start(&server, path, &[("Last-Event-ID", &ids[4])]).await;
    let lost = after.event().await;
    assert_eq!(lost.event, "penstock.events.lost");
    assert_eq!(lost.data["data"]["count"], Value::Null);
    assert!(lost.id.parse::<u64>().unwrap() > ids[4].parse().unwrap(), "{lost:?} after {ids:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn invalid_requests_for_events_are_refused() {
    let server = TestApp::start(&["--service.events.listeners=1"]).await;
    server
        .get("/api/v1/events?types=penstock.export.changed,x")
        .await
        .refused(400, "penstock.target.changed");
    server.get_with("/api/v1/events", &[("Last-Event-ID", "x")]).await.problem(400);

    let mut one = EventStream::start(&server, "/api/v1/events", &[]).await;
    one.block().await.unwrap();
    let refused = server.get("/api/v1/events").await;
    refused.problem(503);
    assert!(refused.header("retry-after").parse::<u64>().unwrap() > 0);
    drop(one);
    // The permit is free again as soon as the gateway notices that the listener disconnected.
    until("the permit is free again", async || {
        server.send("HEAD", "/api/v1/events", &[], "").await.status == 200
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_revoked_listener_gets_no_more_events() {
    let server = TestApp::with_pumps().await;
    let request = json!({"name": "listener", "role": "User"});
    let made = server.post("/api/v1/api-keys", &request).await.expect(201).json();
    let key = made["key"].text();
    let listener = server.caller_with(key);
    let mut revoked = EventStream::start(&listener, "/api/v1/events", &[]).await;
    let mut other = EventStream::start(&server, "/api/v1/events", &[]).await;
    server.ingest("ADD", &json!([{"name": "one"}])).await.expect(200);
    revoked.event().await;
    let path = format!("/api/v1/api-keys/{}", made["id"].text());
    server.delete(&path).await.expect(204);
    server.ingest("ADD", &json!([{"name": "two"}])).await.expect(200);
    assert!(revoked.block().await.is_none(), "the stream must have ended");
    other.event().await;
    other.event().await;
    listener.get("/api/v1/events").await.problem(401);
}
