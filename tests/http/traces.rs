//! The trace of a request (W3C Trace Context): in answers, problems, records and events.
use penstock_base::events::EventKind;
use penstock_test_support::prelude::*;

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
    let server = TestApp::plain().await;
    let sent = sent();
    let trace = [("traceparent", sent.as_str())];
    assert_has_trace(server.get_with("/health/live", &trace).await.header("traceparent"));
    for path in ["/api/v1/exports/none", "/api/v1/none", "/api/v1/status?x"] {
        let answer = server.get_with(path, &trace).await;
        assert_eq!(answer.json()["traceId"], ID, "{path}");
        assert_has_trace(answer.header("traceparent"));
    }
    // Unauthenticated clients, and requests with no header, several, or an invalid one.
    let answer = server.anonymous().get_with("/api/v1/status", &trace).await;
    assert_eq!(answer.problem(401)["traceId"], ID);
    let none = server.get("/api/v1/none").await.problem(404);
    let made = none["traceId"].string();
    assert!(made.len() == 32 && made != ID, "{none}");
    let twice = [trace[0], trace[0]];
    for headers in [&twice[..], &[("traceparent", "\u{1f600}")], &[("traceparent", "00-0-0-0")]] {
        let answer = server.get_with("/api/v1/none", headers).await;
        let id = answer.problem(404)["traceId"].string();
        assert!(id.len() == 32 && id != ID && id != made, "{headers:?}: {id}");
        assert!(answer.header("traceparent").contains(&id));
    }
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_effects_of_a_request_name_its_trace() {
    let server = TestApp::with_pumps().await;
    let gateway = server.gateway().clone();
    let mut events =
        gateway.events.listen("a", None, &[EventKind::Ingestion, EventKind::Export]).unwrap();
    let sent = sent();
    let headers = [JSON, ("traceparent", sent.as_str())];
    let body = json!({"data": [{"name": "P-1"}]}).to_string();
    let pump = "/api/v1/business-objects/Pump";
    let answer = server.send("POST", pump, &headers, body).await.expect(200).json();
    let id = answer["ingestionId"].text();
    let record = server.read(&format!("/api/v1/ingestions/{id}")).await;
    assert_has_trace(record["traceparent"].text());
    // The id of the key is next to its owner.
    assert!(record["apiKey"].is_string(), "{record}");
    let push = server.send("POST", &format!("{pump}/push"), &headers[1..], "").await.expect(202);
    let export = push.json()["exports"][0]["id"].string();
    until("the export is delivered", async || {
        let entry = server.read(&format!("/api/v1/exports/{export}")).await;
        assert_has_trace(entry["traceparent"].text());
        entry["status"] == "delivered"
    })
    .await;
    let mut delivered = false;
    let mut kinds = Vec::new();
    while !delivered {
        for event in events.next().await {
            let event: Value = serde_json::from_str(&event.json).unwrap();
            assert_has_trace(event["traceparent"].text());
            delivered = event["data"]["status"] == "delivered";
            kinds.push(event["type"].string());
        }
    }
    assert_eq!(kinds.first().unwrap(), "penstock.ingestion.committed");
    drop((events, gateway));
    server.stop().await;
}
