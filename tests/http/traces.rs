//! The trace of a request (W3C Trace Context): in answers, problems, records and events.
use crate::server::{Server, connect};
use penstock_base::events::EventKind;
use serde_json::{Value, json};
use std::time::{Duration, Instant};

const ID: &str = "0af7651916cd43dd8448eb211c80319c";

fn sent() -> String {
    format!("00-{ID}-b7ad6b7169203331-01")
}

/// Asserts that the header has the sent trace id, and a span id of the gateway.
#[track_caller]
fn assert_has_trace(header: &str) {
    assert!(header.starts_with(&format!("00-{ID}-")) && header.ends_with("-01"), "{header}");
    assert_ne!(header, sent());
}

#[tokio::test(flavor = "multi_thread")]
async fn every_answer_is_part_of_a_trace() {
    let server = Server::start(&[]).await;
    let sent = sent();
    let trace = [("traceparent", sent.as_str())];
    assert_has_trace(server.send("GET", "/health/live", &trace, "").await.header("traceparent"));
    for path in ["/api/v1/exports/none", "/api/v1/none", "/api/v1/status?x"] {
        let answer = server.send("GET", path, &trace, "").await;
        assert_eq!(answer.json()["traceId"], ID, "{path}");
        assert_has_trace(answer.header("traceparent"));
    }
    // Unauthenticated clients, and requests with no header, several, or an invalid one.
    let answer = connect(server.address, "GET", "/api/v1/status", &trace, "").await;
    assert_eq!(answer.problem(401)["traceId"], ID);
    let none = server.get("/api/v1/none").await.problem(404);
    let made = none["traceId"].as_str().unwrap().to_owned();
    assert!(made.len() == 32 && made != ID, "{none}");
    let twice = [trace[0], trace[0]];
    for headers in [&twice[..], &[("traceparent", "\u{1f600}")], &[("traceparent", "00-0-0-0")]] {
        let answer = server.send("GET", "/api/v1/none", headers, "").await;
        let id = answer.problem(404)["traceId"].as_str().unwrap().to_owned();
        assert!(id.len() == 32 && id != ID && id != made, "{headers:?}: {id}");
        assert!(answer.header("traceparent").contains(&id));
    }
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_effects_of_a_request_name_its_trace() {
    let server = Server::start(&[]).await;
    server.define().await;
    let gateway = server.gateway().clone();
    let mut events =
        gateway.events.listen("a", None, &[EventKind::Ingestion, EventKind::Export]).unwrap();
    let sent = sent();
    let headers = [("Content-Type", "application/json"), ("traceparent", sent.as_str())];
    let body = json!({"data": [{"name": "P-1"}]}).to_string();
    let pump = "/api/v1/business-objects/Pump";
    let answer = server.send("POST", pump, &headers, body).await.expect(200).json();
    let id = answer["ingestionId"].as_str().unwrap();
    let record = server.get(&format!("/api/v1/ingestions/{id}")).await.expect(200).json();
    assert_has_trace(record["traceparent"].as_str().unwrap());
    // The id of the key is next to its owner.
    assert!(record["apiKey"].is_string(), "{record}");
    let push = server.send("POST", &format!("{pump}/push"), &headers[1..], "").await.expect(202);
    let export = push.json()["exports"][0]["id"].as_str().unwrap().to_owned();
    let begun = Instant::now();
    loop {
        let entry = server.get(&format!("/api/v1/exports/{export}")).await.expect(200).json();
        assert_has_trace(entry["traceparent"].as_str().unwrap());
        if entry["status"] == "delivered" {
            break;
        }
        assert!(begun.elapsed() < Duration::from_mins(1), "{entry}");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    let mut delivered = false;
    let mut kinds = Vec::new();
    while !delivered {
        for event in events.next().await {
            let event: Value = serde_json::from_str(&event.json).unwrap();
            assert_has_trace(event["traceparent"].as_str().unwrap());
            delivered = event["data"]["status"] == "delivered";
            kinds.push(event["type"].as_str().unwrap().to_owned());
        }
    }
    assert_eq!(kinds.first().unwrap(), "penstock.ingestion.committed");
    drop((events, gateway));
    server.stop().await;
}
