//! Sources: what becomes of their messages, and what clients see of them. No broker listens here; `tests/e2e/sources.rs`
//! has one.
use crate::audit::until_event;
use bytes::Bytes;
use jiff::Timestamp;
use penstock_service::gateway::Gateway;
use penstock_service::sources::{self, Message, NotStored, NotStoredCode, Stored};
use penstock_test_support::prelude::*;

const READINGS: &str = include_str!("readings.yaml");

/// Returns the settings of a source named `line` with these subscriptions.
fn source(subscriptions: &[&str]) -> Vec<String> {
    let all = ["type=mqtt", "url=mqtt://127.0.0.1:9"].iter().chain(subscriptions);
    all.map(|setting| format!("--service.sources.line.{setting}")).collect()
}

/// Returns the settings of a source that ingests readings, with the site from the topic.
fn readings_source() -> Vec<String> {
    source(&[
        "subscriptions[0].topic=plant/+/#",
        "subscriptions[0].business-object=Readings",
        "subscriptions[0].fields.site={2}",
    ])
}

async fn put(server: &TestApp, name: &str, config: &str, more: &Value) -> Answer {
    let mut body = json!({"name": name, "config": config});
    body.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    server.put("/api/v1/business-objects", &body).await
}

async fn start_with_readings() -> TestApp {
    let server = TestApp::start(&lent(&readings_source())).await;
    put(&server, "Readings", READINGS, &json!({})).await.expect(201);
    server
}

/// Stores messages as a connection does, all of the first subscription. Each is a topic and a payload.
pub(crate) fn store_messages(
    gateway: &Gateway,
    source: &str,
    business_object: &str,
    messages: &[(&str, &str)],
) -> Result<Stored, NotStored> {
    let message = |(topic, payload): &(&str, &str)| Message {
        topic: (*topic).to_owned(),
        payload: Bytes::copy_from_slice(payload.as_bytes()),
        truncated: None,
        subscription: Some(0),
        received_at: Timestamp::now(),
    };
    let messages: Vec<Message> = messages.iter().map(message).collect();
    let gateway = Arc::new(gateway.clone());
    tokio::task::block_in_place(|| {
        sources::store_messages(&gateway, source, business_object, &messages)
    })
}

/// Stores messages of the source `line`, of which none has to wait. Returns the numbers of objects and of dead letters.
fn store_all(server: &TestApp, business_object: &str, messages: &[(&str, &str)]) -> (u64, u64) {
    let stored = store_messages(server.gateway(), "line", business_object, messages).unwrap();
    assert_eq!((stored.messages, stored.dropped), (messages.len(), 0));
    (stored.objects, stored.dead_letters)
}

async fn objects(server: &TestApp, name: &str) -> Vec<Value> {
    let path = format!("/api/v1/business-objects/{name}/objects");
    server.items(&path).await
}

#[tokio::test(flavor = "multi_thread")]
async fn invalid_messages_become_dead_letters_and_their_neighbours_are_stored() {
    let server = start_with_readings().await;
    let messages = [
        ("plant/north/x", r#"{"tag": "a", "value": 1}"#),
        ("plant/north/x", r#"{"tag": "#),
        ("plant/south", r#"[{"tag": "b", "value": 2}, {"tag": "c", "value": "x"}]"#),
        ("plant/south", r#" {"data": [{"tag": "d"}]} "#),
        ("plant/south", r#"{"value": 3}"#),
        ("plant/south", r#"{"tag": "e", "site": "south"}"#),
        ("plant/south", "1"),
        // It clears a retained message, and is no data.
        ("plant/south", ""),
    ];
    let stored = store_all(&server, "Readings", &messages);
    assert_eq!(stored, (3, 5));
    let found = objects(&server, "Readings").await;
    let mut names: Vec<_> =
        found.iter().map(|found| (found["site"].clone(), found["tag"].clone())).collect();
    names.sort_by_key(|(_, tag)| tag.to_string());
    let expected = [("north", "a"), ("south", "b"), ("south", "d")];
    assert_eq!(names, expected.map(|(site, tag)| (json!(site), json!(tag))));

    // One batch is one ingestion, by the account of the source.
    let records = server.read("/api/v1/ingestions").await;
    let [record] = records["items"].list() else { panic!("{records}") };
    assert_eq!((&record["mode"], &record["rejected"]), (&json!("MERGE"), &json!(5)));
    let shown = server.read("/api/v1/sources/line").await;
    assert_eq!(record["caller"], shown["account"]);

    // The same messages again change nothing.
    let again = store_all(&server, "Readings", &messages[..1]);
    assert_eq!(again, (1, 0));
    assert_eq!(objects(&server, "Readings").await.len(), 3);

    let letters = server.get("/api/v1/sources/line/rejected").await.expect(200).lines();
    let texts: Vec<_> = letters.iter().map(|letter| letter["text"].text()).collect();
    assert_eq!(
        texts,
        [
            r#"{"tag": "#,
            r#"{"tag": "c", "value": "x"}"#,
            r#"{"value": 3}"#,
            r#"{"tag": "e", "site": "south"}"#,
            "1"
        ]
    );
    assert_eq!(letters[0]["topic"], "plant/north/x");
    let reason = letters[3]["errors"][0]["message"].text();
    assert!(reason.contains("in the payload and in the topic"), "{reason}");
    server.get("/api/v1/sources/other/rejected").await.problem(404);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_dead_letter_of_a_source_is_retried_with_the_fields_of_its_topic() {
    let server = start_with_readings().await;
    let messages = [("plant/north", r#"{"tag": "#), ("plant/north", "[]x"), ("plant/north", "1")];
    store_messages(server.gateway(), "line", "Readings", &messages).unwrap();
    let letters = server.get("/api/v1/sources/line/rejected").await.expect(200).lines();
    let path = |n: usize, rest: &str| {
        format!("/api/v1/sources/line/rejected/{}{rest}", letters[n]["id"].text())
    };
    server.post_empty(&path(0, "/retry")).await.problem(400);
    let corrected = json!({"tag": "z", "value": 5});
    let answer = server.post(&path(0, "/retry"), &corrected).await.expect(200).json();
    assert_eq!((&answer["mode"], &answer["created"]), (&json!("MERGE"), &json!(1)));
    server.post(&path(0, "/retry"), &corrected).await.problem(404);
    assert_eq!(objects(&server, "Readings").await[0]["site"], "north");
    // A value of the corrected object counts more than that of the topic.
    let moved = json!({"tag": "z", "site": "east"});
    server.post(&path(1, "/retry"), &moved).await.expect(200);
    assert_eq!(objects(&server, "Readings").await.len(), 2);

    server.delete(&path(2, "")).await.expect(204);
    server.delete(&path(2, "")).await.problem(404);
    assert!(server.get("/api/v1/sources/line/rejected").await.expect(200).body.is_empty());
    // It belongs to the source and not to a client's ingestion with the same id.
    server.delete("/api/v1/sources/other/rejected/x").await.problem(404);
}

#[tokio::test(flavor = "multi_thread")]
async fn levels_of_the_topic_get_the_type_of_their_fields() {
    let settings = source(&[
        "subscriptions[0].topic=#",
        "subscriptions[0].business-object=Readings",
        "subscriptions[0].fields.site=site-{1}",
        "subscriptions[0].fields.line={2}",
        "subscriptions[0].fields.active={3}",
    ]);
    let server = TestApp::start(&lent(&settings)).await;
    put(&server, "Readings", READINGS, &json!({})).await.expect(201);
    let messages = [
        ("n/7/true", r#"{"tag": "a"}"#),
        ("n/seven/true", r#"{"tag": "b"}"#),
        ("n//1", r#"{"tag": "c"}"#),
        ("n/7", r#"{"tag": "d"}"#),
    ];
    let stored = store_all(&server, "Readings", &messages);
    assert_eq!(stored, (2, 2));
    let mut found = objects(&server, "Readings").await;
    found.sort_by_key(|found| found["tag"].to_string());
    found[0].includes(&json!({"site": "site-n", "line": 7, "active": true}));
    // An empty level is no value.
    assert_eq!((&found[1]["tag"], &found[1]["line"]), (&json!("c"), &Value::Null));
    let letters = server.get("/api/v1/sources/line/rejected").await.expect(200).lines();
    assert!(letters[1]["errors"][0]["message"].has("no level 3"));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_payload_without_key_and_uri_is_a_dead_letter_in_every_mode() {
    let settings = source(&[
        "subscriptions[0].topic=notes",
        "subscriptions[0].business-object=Notes",
        "subscriptions[0].mode=ADD",
    ]);
    let server = TestApp::start(&lent(&settings)).await;
    let config = "type: object\npath: Notes:.\nfields: {text: {type: string, path: <urn:text>}}";
    put(&server, "Notes", config, &json!({})).await.expect(201);
    let messages =
        [("notes", r#"{"text": "a"}"#), ("notes", r#"{"uri": "urn:note:b", "text": "b"}"#)];
    let stored = store_all(&server, "Notes", &messages);
    assert_eq!(stored, (1, 1));
    let warnings = server.read("/api/v1/sources/line").await["warnings"].clone();
    let has_no_key = |warning: &Value| warning["message"].has("has no key");
    assert!(warnings.list().iter().any(has_no_key), "{warnings}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_message_over_a_limit_is_a_dead_letter() {
    let mut settings = readings_source();
    settings.push("--service.limits.values=50".to_owned());
    let server = TestApp::start(&lent(&settings)).await;
    put(&server, "Readings", READINGS, &json!({})).await.expect(201);
    let many: Vec<Value> = (0..40).map(|n| json!({"tag": n.to_string()})).collect();
    let many = json!(many).to_string();
    let small: Vec<String> = (0..60).map(|n| json!({"tag": n.to_string()}).to_string()).collect();
    let mut messages = vec![("plant/n", many.as_str())];
    messages.extend(small.iter().map(|payload| ("plant/n", payload.as_str())));
    let stored = store_all(&server, "Readings", &messages);
    assert_eq!(stored, (60, 1));
    // They were stored in several commits, none of which is larger than a request may be.
    let records = server.read("/api/v1/ingestions").await;
    assert!(records["items"].list().len() > 2, "{records}");

    let gateway = Arc::new(server.gateway().clone());
    let message = Message {
        topic: "plant/n".to_owned(),
        payload: Bytes::from_static(br#"[{"tag": "#),
        truncated: Some(1 << 30),
        subscription: Some(0),
        received_at: Timestamp::now(),
    };
    let stored = tokio::task::block_in_place(|| {
        sources::store_messages(&gateway, "line", "Readings", &[message])
    });
    assert_eq!(stored, Ok(Stored { messages: 1, dead_letters: 1, ..Stored::default() }));
    let letters = server.get("/api/v1/sources/line/rejected").await.expect(200).lines();
    assert_eq!(letters[1]["messageBytes"], 1 << 30);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_error_of_the_whole_batch_does_not_block_its_other_messages() {
    let server = start_with_readings().await;
    let locked = [("plant/n", r#"{"tag": "locked", "kind": "urn:locked"}"#)];
    store_messages(server.gateway(), "line", "Readings", &locked).unwrap();
    // A commit that changes this object without a review is refused as a whole.
    let conditions = json!([{"predicate": "https://plant.example/kind", "value": "urn:locked"}]);
    let more = json!({"review": "required", "conditions": conditions});
    put(&server, "Locked", READINGS, &more).await.expect(201);
    let payloads: Vec<String> = (0..20)
        .map(|n| {
            let tag = if n == 13 { "locked".to_owned() } else { format!("t{n}") };
            json!({"tag": tag, "value": 2}).to_string()
        })
        .collect();
    let messages: Vec<_> = payloads.iter().map(|payload| ("plant/n", payload.as_str())).collect();
    let stored = store_all(&server, "Readings", &messages);
    assert_eq!(stored, (19, 1));
    let letters = server.get("/api/v1/sources/line/rejected").await.expect(200).lines();
    assert!(letters[0]["errors"][0]["message"].has("Locked"), "{letters:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn messages_wait_while_they_cannot_be_stored() {
    let server = TestApp::start(&lent(&readings_source())).await;
    let message = [("plant/n", r#"{"tag": "a"}"#)];
    let store = || store_messages(server.gateway(), "line", "Readings", &message);
    let code = |stored: Result<Stored, NotStored>| stored.unwrap_err().code;
    assert_eq!(code(store()), NotStoredCode::NotDefined);
    let defined = put(&server, "Readings", READINGS, &json!({})).await.expect(201).json();
    assert_eq!(store(), Ok(Stored { messages: 1, objects: 1, ..Stored::default() }));

    put(&server, "Readings", READINGS, &json!({"enabled": false})).await.expect(200);
    assert_eq!(code(store()), NotStoredCode::Disabled);
    put(&server, "Readings", READINGS, &json!({"enabled": true})).await.expect(200);
    store().unwrap();

    let source = server.read("/api/v1/sources/line").await;
    let account = format!("/api/v1/users/{}", source["account"].text());
    server.put(&account, &json!({"enabled": false})).await.expect(200);
    assert_eq!(code(store()), NotStoredCode::Revoked);
    assert_eq!(server.read("/api/v1/sources/line").await["enabled"], false);
    server.put(&account, &json!({"enabled": true})).await.expect(200);
    store().unwrap();
    // None of the attempts has left a dead letter.
    assert!(server.get("/api/v1/sources/line/rejected").await.expect(200).body.is_empty());

    let path = format!("/api/v1/business-objects/{}", defined["id"].text());
    server.delete(&path).await.expect(204);
    assert_eq!(code(store()), NotStoredCode::NotDefined);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_source_changes_only_what_its_business_objects_name() {
    let server = start_with_readings().await;
    let config = "type: object\npath: Notes:.\nfields: {text: {type: string, path: <urn:text>}}";
    put(&server, "Notes", config, &json!({})).await.expect(201);
    let note = json!({"data": [{"uri": "urn:note", "text": "a"}]});
    server.post("/api/v1/business-objects/Notes", &note).await.expect(200);
    let messages =
        [("plant/n", r#"{"uri": "urn:note", "tag": "a"}"#), ("plant/n", r#"{"tag": "b"}"#)];
    let stored = store_all(&server, "Readings", &messages);
    assert_eq!(stored, (1, 1));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_review_that_is_required_second_is_refused() {
    let server = TestApp::start(&lent(&readings_source())).await;
    let required = json!({"review": "required"});
    put(&server, "Readings", READINGS, &required).await.refused(409, "the source \"line\"");
    put(&server, "Readings", READINGS, &json!({"review": "optional"})).await.expect(201);
    put(&server, "Readings", READINGS, &required).await.problem(409);
    let path = "/api/v1/business-objects?force=true";
    let body = json!({"name": "Readings", "config": READINGS, "review": "required"});
    server.put(path, &body).await.problem(409);
    // Others may require one.
    put(&server, "Others", &READINGS.replace("Readings", "Others"), &required).await.expect(201);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_subscription_that_comes_second_stays_off() {
    let dir = tempfile::tempdir().unwrap();
    let server = TestApp::reopen(dir.path()).await;
    put(&server, "Readings", READINGS, &json!({"review": "required"})).await.expect(201);
    server.stop().await;
    let settings = readings_source();
    let server = TestApp::start_in(dir.path(), &lent(&settings)).await.unwrap();
    let message = [("plant/n", r#"{"tag": "a"}"#)];
    let refused = store_messages(server.gateway(), "line", "Readings", &message).unwrap_err();
    assert_eq!(refused.code, NotStoredCode::ReviewRequired);
    let source = server.read("/api/v1/sources/line").await;
    assert_eq!(source["connections"][0]["state"], "off");
    let status = server.read("/api/v1/status").await;
    assert!(status["warnings"].to_string().contains("stays off"), "{status}");
    assert!(objects(&server, "Readings").await.is_empty());
    // It can still be changed, as long as the review stays.
    let more = json!({"review": "required", "description": "of the plant"});
    put(&server, "Readings", READINGS, &more).await.expect(200);
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn clients_see_the_connections_and_can_test_them() {
    let server = start_with_readings().await;
    let listed = server.items("/api/v1/sources").await;
    let source = &listed[0];
    assert_eq!((&source["name"], &source["url"]), (&json!("line"), &json!("mqtt://127.0.0.1:9")));
    let connection = &source["connections"][0];
    assert_eq!(connection["businessObject"], "Readings");
    let client_id = connection["clientId"].text();
    assert!(client_id.starts_with("penstock-") && client_id.ends_with("-line-Readings"));
    server.get("/api/v1/sources/other").await.problem(404);
    let test = server.post_empty("/api/v1/sources/line/test").await.expect(200).json();
    assert_eq!((&test["ok"], &test["protocol"]), (&json!(false), &Value::Null));
    assert!(!test["cause"].text().is_empty());
    until_event(&server, "source.tested", "line").await;
    let metrics = server.page("/metrics").await;
    let line = "penstock_source_connected{source=\"line\",business_object=\"Readings\"} 0";
    assert!(metrics.contains(line), "{metrics}");

    let person = server.cookie_of(Role::User);
    let page = person.page("/admin/sources").await;
    assert!(page.contains("/admin/sources/line"), "{page}");
    let page = person.page("/admin/sources/line").await;
    assert!(page.contains("plant/+/#") && page.contains("site: {2}"), "{page}");
    assert!(!page.contains("Test connection"), "{page}");
}
