//! What becomes of a message does not depend on the other messages of its batch.
use super::{READINGS, objects, put, readings_source, start, start_with_readings, store_all};
use crate::server::Server;
use penstock_service::sources::{NotStoredCode, Stored};
use serde_json::{Value, json};

/// Messages with these payloads.
fn messages<'p>(payloads: &[&'p str]) -> Vec<(&'static str, &'p str)> {
    payloads.iter().map(|payload| ("plant/n", *payload)).collect()
}

/// Starts a gateway with a source of this mode, and one reading with the value 0.
async fn start_with_mode(mode: &str) -> Server {
    let mut settings = readings_source();
    settings.push(format!("--service.sources.line.subscriptions[0].mode={mode}"));
    let server = start(&settings).await;
    put(&server, "Readings", READINGS, &json!({})).await.expect(201);
    let data = json!({"data": [{"site": "n", "tag": "a", "value": 0}]});
    server.json("POST", "/api/v1/business-objects/Readings", &data).await.expect(200);
    server
}

#[tokio::test(flavor = "multi_thread")]
async fn the_last_message_about_an_object_counts_in_every_mode() {
    let [first, second] = [r#"{"tag": "a", "value": 1}"#, r#"{"tag": "a", "value": 2}"#];
    for (mode, expected, dead_letters) in [
        ("MERGE", json!(1), 0),
        ("UPDATE", json!(1), 0),
        ("REPLACE", json!(1), 0),
        // A field with one value has one already.
        ("ADD", json!(0), 3),
    ] {
        let server = start_with_mode(mode).await;
        let batch = messages(&[first, second, first]);
        let stored = store_all(&server, "Readings", &batch);
        assert_eq!(stored, (3 - dead_letters, dead_letters), "{mode}");
        assert_eq!(objects(&server, "Readings").await[0]["value"], expected, "{mode}");
    }
    // Within one message it stays a contradiction.
    let server = start_with_mode("UPDATE").await;
    let both = format!("[{first}, {second}]");
    assert_eq!(store_all(&server, "Readings", &messages(&[&both])), (1, 1));
    let server = start_with_mode("DELETE").await;
    store_all(&server, "Readings", &messages(&[r#"{"tag": "a"}"#, r#"{"tag": "a"}"#]));
    assert_eq!(objects(&server, "Readings").await, [] as [Value; 0]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_message_that_refers_to_an_object_of_an_invalid_message_is_stored() {
    let server = start_with_readings().await;
    let invalid = r#"{"uri": "urn:a", "tag": "a", "value": "x"}"#;
    let dependent = r#"{"tag": "b", "kind": "urn:a"}"#;
    assert_eq!(store_all(&server, "Readings", &messages(&[invalid, dependent])), (1, 1));
    let both = format!("[{invalid}, {}]", dependent.replace("\"b\"", "\"c\""));
    assert_eq!(store_all(&server, "Readings", &messages(&[&both])), (0, 2));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_violation_rejects_the_message_that_causes_it() {
    const SHAPES: &str = "\
@prefix sh: <http://www.w3.org/ns/shacl#> .
<urn:shape> a sh:NodeShape ; sh:targetSubjectsOf <https://plant.example/tag> ;
    sh:property [ sh:path <https://plant.example/value> ; sh:maxInclusive 10 ] .";
    let server = start_with_readings().await;
    let headers = [("Content-Type", "text/turtle")];
    server.send("PUT", "/api/v1/shapes/low", &headers, SHAPES).await.expect(201);
    let validation = json!({"validation": {"shapes": ["low"], "mode": "reject"}});
    put(&server, "Readings", READINGS, &validation).await.expect(200);
    // The second message mentions the object last, and is valid.
    let batch = messages(&[
        r#"{"tag": "a", "value": 50}"#,
        r#"{"tag": "a", "line": 1}"#,
        r#"{"tag": "b", "value": 5}"#,
    ]);
    assert_eq!(store_all(&server, "Readings", &batch), (2, 1));
    let letters = server.get("/api/v1/sources/line/rejected").await.expect(200).lines();
    assert_eq!(letters[0]["text"], r#"{"tag": "a", "value": 50}"#);
    let found = objects(&server, "Readings").await;
    let a = found.iter().find(|found| found["tag"] == "a").unwrap();
    assert_eq!((&a["line"], &a["value"]), (&json!(1), &Value::Null));
}

#[tokio::test(flavor = "multi_thread")]
async fn the_copies_of_long_topics_are_bounded() {
    let server = start_with_readings().await;
    let (long, many) = ("t".repeat(60_000), format!("[1{}]", ",1".repeat(9_999)));
    assert_eq!(store_all(&server, "Readings", &[(&format!("plant/{long}"), &many)]), (0, 1));
    // Each of these is below the limit.
    let (long, several) = ("t".repeat(4_000), format!("[1{}]", ",1".repeat(299)));
    let topic = format!("plant/{long}");
    let batch = [(topic.as_str(), several.as_str()); 8];
    assert_eq!(store_all(&server, "Readings", &batch), (0, 2_400));
    let records = server.get("/api/v1/ingestions").await.expect(200).json();
    assert!(records["items"].as_array().unwrap().len() >= 4, "{records}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_message_without_a_subscription_is_a_dead_letter() {
    use penstock_service::sources::{Message, store_messages};
    let server = start_with_readings().await;
    let message = Message {
        topic: "hall/1".to_owned(),
        payload: bytes::Bytes::from_static(b"{}"),
        truncated: None,
        subscription: None,
        received_at: jiff::Timestamp::now(),
    };
    let gateway = std::sync::Arc::new(server.gateway().clone());
    let stored =
        tokio::task::block_in_place(|| store_messages(&gateway, "line", "Readings", &[message]));
    assert_eq!(stored, Ok(Stored { messages: 1, dead_letters: 1, ..Stored::default() }));
    let letters = server.get("/api/v1/sources/line/rejected").await.expect(200).lines();
    let reason = letters[0]["errors"][0]["message"].as_str().unwrap();
    assert!(reason.contains("no subscription"), "{reason}");
}

#[tokio::test(flavor = "multi_thread")]
async fn invalid_messages_that_cannot_be_kept_are_counted() {
    let mut settings = readings_source();
    settings.push("--service.limits.rejected.bytes=0".to_owned());
    let server = start(&settings).await;
    put(&server, "Readings", READINGS, &json!({})).await.expect(201);
    let batch = messages(&["x", r#"{"tag": "a"}"#]);
    let stored = super::store_messages(server.gateway(), "line", "Readings", &batch);
    assert_eq!(stored, Ok(Stored { messages: 2, objects: 1, dead_letters: 0, dropped: 1 }));
    let status = server.get("/api/v1/status").await.expect(200).json();
    assert!(status["warnings"].to_string().contains("service.limits.rejected.bytes"), "{status}");
}

#[tokio::test(flavor = "multi_thread")]
async fn large_batches_wait_while_memory_is_short() {
    let mut settings = readings_source();
    // More than that is in use, always.
    settings.push("--service.limits.memory=1MiB".to_owned());
    let server = start(&settings).await;
    put(&server, "Readings", READINGS, &json!({})).await.expect(201);
    let large = format!(r#"{{"tag": "{}"}}"#, "t".repeat(2 << 20));
    let store = |payload: &str| {
        super::store_messages(server.gateway(), "line", "Readings", &messages(&[payload]))
    };
    assert_eq!(store(&large).unwrap_err().code, NotStoredCode::Unavailable);
    assert_eq!(store(r#"{"tag": "a"}"#).unwrap().objects, 1);
}
