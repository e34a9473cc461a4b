//! Webhooks: what a receiver gets, in which order, and what an Admin sees of it.
use crate::audit::until_event;
use penstock_base::events::EventKind;
use penstock_test_support::prelude::*;
use penstock_test_support::receiver::{Received, SECRET};
use std::net::TcpListener;

const INGESTIONS: &str = "penstock.ingestion.committed";

async fn start(settings: &[String]) -> TestApp {
    TestApp::start(&lent(settings)).await
}

async fn restart(dir: &Path, settings: &[String]) -> TestApp {
    TestApp::start_in(dir, &lent(settings)).await.unwrap()
}

/// Ingests this many pumps, one after the other. Returns the ids of the ingestions.
async fn ingest(server: &TestApp, count: usize) -> Vec<String> {
    let mut ids = Vec::new();
    for _ in 0..count {
        let answer = server.ingest("ADD", &json!([{"name": "P"}])).await.expect(200).json();
        ids.push(answer["ingestionId"].string());
    }
    ids
}

fn subjects(received: &[Received]) -> Vec<String> {
    received.iter().map(|one| one.event["subject"].string()).collect()
}

/// Returns the webhook in the status of an Admin.
async fn webhook(server: &TestApp) -> Value {
    server.read("/api/v1/status").await["webhooks"][0].take()
}

/// Waits until the webhook satisfies a condition.
async fn until_webhook(server: &TestApp, is_met: impl Fn(&Value) -> bool) -> Value {
    until_some("the webhook satisfies a condition", async || {
        Some(webhook(server).await).filter(&is_met)
    })
    .await
}

#[tokio::test(flavor = "multi_thread")]
async fn events_arrive_signed_and_in_order_and_only_those_that_were_asked_for() {
    let (some, all) = (Receiver::start(), Receiver::start());
    let settings = [
        some.settings("some", "penstock.ingestion.committed,penstock.change.*"),
        all.settings("all", "*"),
    ];
    let server = start(&settings.concat()).await;
    server.define_with(&json!({"review": "optional"})).await;
    let ids = ingest(&server, 5).await;
    let path = "/api/v1/business-objects/Pump?review=true";
    let change = server.post(path, &json!({"data": [{"name": "Q"}]})).await.expect(202);
    let export = json!(server.push("Pump").await);

    let received = some.until("the change", |received| received.len() == 6);
    assert_eq!(subjects(&received[..5]), ids);
    for (one, id) in received.iter().zip(&ids) {
        assert_eq!(
            (&one.event["type"], &one.event["data"]["id"]),
            (&json!(INGESTIONS), &json!(id))
        );
        assert_eq!(one.event["id"], one.id.as_str());
        assert_eq!(one.headers["content-type"], "application/json");
        assert!(one.headers["user-agent"].starts_with("Penstock/"));
        assert_eq!(one.path, "/hook-of-the-url?token=of-the-url");
    }
    let submitted = &received[5].event;
    assert_eq!(submitted["type"], "penstock.change.submitted");
    let change = change.json();
    let mut members: Vec<_> = submitted["data"].as_object().unwrap().keys().cloned().collect();
    members.sort();
    assert_eq!(members, ["businessObject", "id", "state"]);
    submitted["data"].includes(&json!({"id": change["id"], "state": "submitted"}));

    let delivered = |one: &Received| {
        one.event["subject"] == export && one.event["data"]["status"] == "delivered"
    };
    let received = all.until("the delivery", |received| received.iter().any(delivered));
    let of_export = received.iter().filter(|one| one.event["subject"] == export);
    let states: Vec<_> = of_export.map(|one| one.event["data"]["status"].clone()).collect();
    assert_eq!(states, ["queued", "delivering", "delivered"]);
    let mut ids: Vec<_> = received.iter().map(|one| &one.id).collect();
    ids.sort();
    ids.dedup();
    assert_eq!(ids.len(), received.len(), "each event has its own id");
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_lone_event_waits_for_no_other() {
    let receiver = Receiver::start();
    let server = start(&receiver.settings("ops", "penstock.source.connected")).await;
    for count in 1..=200 {
        let events = &server.gateway().events;
        events.publish_unstored(None, EventKind::SourceConnected, "line-1", &json!({}));
        receiver.until("the event", |received| received.len() == count);
    }
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_failing_receiver_gets_every_event_again_with_its_id_also_after_a_restart() {
    let receiver = Receiver::start();
    receiver.answer((500, ""));
    let settings = receiver.settings("ops", INGESTIONS);
    let server = start(&settings).await;
    server.define().await;
    let ids = ingest(&server, 40).await;
    let tried = receiver.until("tried twice", |received| received.len() > 1);
    assert!(tried.iter().all(|one| one.id == tried[0].id), "the first event blocks the others");
    let state = until_webhook(&server, |webhook| webhook["attempts"].as_u64() > Some(1)).await;
    assert_eq!((&state["waiting"], &state["blockedBy"]), (&json!(40), &json!("busy")));
    assert!(state["blocked"].has("answered 500"), "{state}");
    assert!(state["blockedSince"].is_string() && state["nextAttempt"].is_string(), "{state}");
    assert_eq!(state["lastDelivery"], Value::Null);
    let metrics = server.page("/metrics").await;
    assert!(metrics.contains("penstock_webhook_waiting_events{webhook=\"ops\"} 40"), "{metrics}");
    assert!(metrics.contains("penstock_webhook_blocked{webhook=\"ops\"} 1"), "{metrics}");
    let dir = server.stop().await.unwrap();

    receiver.answer((200, ""));
    let server = restart(dir.path(), &settings).await;
    let later = ingest(&server, 1).await;
    receiver.until("all", |received| received.iter().filter(|one| one.status == 200).count() >= 41);
    let state = until_webhook(&server, |webhook| webhook["waiting"] == 0).await;
    state.includes(&json!({"delivered": 41, "dropped": 0, "blocked": null}));
    assert!(state["lastDelivery"].is_string(), "{state}");
    let accepted = receiver.accepted();
    assert_eq!(subjects(&accepted), [ids, later].concat());
    assert_eq!(accepted[0].id, tried[0].id);
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_receiver_that_is_gone_gets_nothing_until_a_test_succeeds_or_the_next_start() {
    let (receiver, other) = (Receiver::start(), Receiver::start());
    receiver.answer((410, ""));
    let settings =
        [receiver.settings("ops", INGESTIONS), other.settings("other", INGESTIONS)].concat();
    let server = start(&settings).await;
    server.define().await;
    ingest(&server, 1).await;
    let state = until_webhook(&server, |webhook| webhook["disabledSince"].is_string()).await;
    assert_eq!(state["nextAttempt"], Value::Null);
    // The other webhook shows that later events wake the workers.
    ingest(&server, 2).await;
    other.until("three", |received| received.len() == 3);
    until_webhook(&server, |webhook| webhook["waiting"] == 3).await;
    assert_eq!(receiver.received().len(), 1);
    let path = "/api/v1/webhooks/ops/test";
    assert_eq!(server.post_empty(path).await.expect(200).json()["ok"], false);
    assert!(webhook(&server).await["disabledSince"].is_string());
    assert_eq!(receiver.received().len(), 2);

    // After the restart the first event has its id, and disables the webhook again.
    let dir = server.stop().await.unwrap();
    let server = restart(dir.path(), &settings).await;
    let received = receiver.until("the first event", |received| received.len() == 3);
    assert_eq!(received[2].id, received[0].id);
    until_webhook(&server, |webhook| webhook["disabledSince"].is_string()).await;
    receiver.answer((200, ""));
    assert_eq!(server.post_empty(path).await.expect(200).json()["ok"], true);
    receiver.until("the test and three events", |received| received.len() == 7);
    let state = until_webhook(&server, |webhook| webhook["waiting"] == 0).await;
    assert_eq!(state["disabledSince"], Value::Null);
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_answer_counts_by_its_status_however_its_body_ends() {
    let receiver = Receiver::start();
    // The rest of these bodies never follows.
    receiver.answer((500, "Content-Length: 1000\r\n\r\nno space left\n"));
    let server = start(&receiver.settings("ops", INGESTIONS)).await;
    server.define().await;
    ingest(&server, 1).await;
    let state = until_webhook(&server, |webhook| webhook["blocked"].is_string()).await;
    assert!(state["blocked"].text().ends_with("answered 500 no space left"), "{state}");
    assert_eq!(state["blockedBy"], "busy");
    let long = format!("Content-Length: 100000000\r\n\r\n{}", "x".repeat(64 << 10));
    receiver.answer((500, long.leak()));
    until_webhook(&server, |webhook| {
        webhook["blocked"].as_str().is_some_and(|text| text.contains("answered 500 xxx"))
    })
    .await;
    receiver.answer((200, "Content-Length: 1000\r\n\r\nstalled"));
    let state = until_webhook(&server, |webhook| webhook["waiting"] == 0).await;
    assert_eq!((&state["delivered"], &state["blocked"]), (&json!(1), &Value::Null));
    assert_eq!(receiver.accepted().len(), 1);
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_long_retry_after_is_respected() {
    let receiver = Receiver::start();
    receiver.answer((429, "Retry-After: 1800\r\n"));
    let server = start(&receiver.settings("ops", INGESTIONS)).await;
    server.define().await;
    let before = jiff::Timestamp::now();
    ingest(&server, 1).await;
    let state = until_webhook(&server, |webhook| webhook["nextAttempt"].is_string()).await;
    let next: jiff::Timestamp = state["nextAttempt"].text().parse().unwrap();
    // Times are shown in whole milliseconds.
    assert!(next.as_second() - before.as_second() >= 1799, "{state}");
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_full_queue_drops_events_and_reports_how_many() {
    let receiver = Receiver::start();
    receiver.answer((503, "Retry-After: 1\r\n"));
    let mut settings = receiver.settings("ops", INGESTIONS);
    settings.push("--service.limits.webhooks.events=8".to_owned());
    let server = start(&settings).await;
    server.define().await;
    let ids = ingest(&server, 20).await;
    let state = webhook(&server).await;
    assert_eq!((&state["waiting"], &state["dropped"]), (&json!(8), &json!(12)));
    receiver.answer((200, ""));
    let is_lost = |one: &Received| one.event["type"] == "penstock.events.lost";
    receiver.until("the loss", |received| received.iter().any(is_lost));
    let after = ingest(&server, 1).await;
    receiver.until("the next event", |received| {
        received.iter().any(|one| one.event["subject"] == after[0].as_str())
    });
    let accepted = receiver.accepted();
    assert_eq!(subjects(&accepted[..8]), ids[..8]);
    assert_eq!(accepted[8].event["data"]["count"], 12);
    assert_eq!((accepted.len(), subjects(&accepted[9..])), (10, after));
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_test_event_needs_no_queue_and_a_redirect_is_not_followed() {
    let (receiver, elsewhere) = (Receiver::start(), Receiver::start());
    let server = start(&receiver.settings("ops", "penstock.change.*")).await;
    let test = async || server.post_empty("/api/v1/webhooks/ops/test").await.expect(200).json();
    let result = test().await;
    assert_eq!((&result["ok"], &result["cause"]), (&json!(true), &Value::Null));
    until_event(&server, "webhook.tested", "ops").await;
    let received = receiver.received();
    assert_eq!(received[0].event["type"], "penstock.webhook.test");
    assert_eq!(received[0].event["subject"], "ops");

    let location = format!("Location: http://{}/\r\n", elsewhere.address);
    receiver.answer((307, &*location.leak()));
    let result = test().await;
    assert_eq!(result["ok"], false);
    assert!(result["cause"].has("not followed"), "{result}");
    assert!(elsewhere.received().is_empty());
    let state = webhook(&server).await;
    assert_eq!((&state["waiting"], &state["delivered"]), (&json!(0), &json!(0)));
    server.post_empty("/api/v1/webhooks/none/test").await.problem(404);
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn only_admins_see_webhooks_and_nobody_sees_the_secret_or_the_token() {
    let receiver = Receiver::start();
    receiver.answer((401, ""));
    let server = start(&receiver.settings("ops", "*")).await;
    server.define().await;
    ingest(&server, 1).await;
    until_webhook(&server, |webhook| webhook["blocked"].is_string()).await;
    let key = server.with_key(Role::User, None);
    let answer = key.get("/api/v1/status").await;
    assert_eq!(answer.expect(200).json()["webhooks"], json!([]));
    for path in ["/api/v1/status", "/api/v1/webhooks", "/admin/targets", "/metrics", "/admin"] {
        let text = server.page(path).await;
        for hidden in [SECRET, "MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw", "of-the-url"] {
            assert!(!text.contains(hidden), "{path} shows {hidden}");
        }
    }
    let page = server.page("/admin/targets").await;
    assert!(page.contains("Webhooks") && page.contains("refuses the event"), "{page}");
    let settings = server.page("/admin/settings").await;
    for hidden in ["MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw", "of-the-url"] {
        assert!(!settings.contains(hidden), "the settings show {hidden}");
    }
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_blocked_target_is_reported() {
    let receiver = Receiver::start();
    let mut settings = receiver.settings("ops", "penstock.target.blocked");
    // No server listens there.
    settings.extend(s3_settings("plant-exports", "http://127.0.0.1:9", "secret"));
    let server = start(&settings).await;
    server.define().await;
    ingest(&server, 1).await;
    server.push("Pump").await;
    let received = receiver.until("one event", |received| !received.is_empty());
    let event = &received[0].event;
    event.includes(&json!({"type": "penstock.target.blocked", "subject": "plant-exports"}));
    assert_eq!(event["data"]["blockedBy"], "unreachable");
    assert!(event["data"]["blocked"].has("127.0.0.1:9"), "{event}");
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_blocked_target_is_reported_again_when_the_cause_is_another_one() {
    let receiver = Receiver::start();
    let address = format!("127.0.0.1:{}", free_port());
    let mut settings = receiver.settings("ops", "penstock.target.blocked");
    settings.extend(s3_settings("plant-exports", &format!("http://{address}"), "secret"));
    let server = start(&settings).await;
    server.define().await;
    ingest(&server, 1).await;
    server.push("Pump").await;
    receiver.until("one event", |received| !received.is_empty());
    // Now a server listens there, and closes each connection.
    let listener = TcpListener::bind(address).unwrap();
    std::thread::spawn(move || listener.incoming().for_each(drop));
    let received = receiver.until("another event", |received| received.len() > 1);
    let causes: Vec<_> = received.iter().map(|one| &one.event["data"]["blockedBy"]).collect();
    assert_eq!(causes[0], "unreachable");
    assert!(causes.windows(2).all(|pair| pair[0] != pair[1]), "{causes:?}");
    assert_eq!(
        received[1].event["data"]["blockedSince"],
        received[0].event["data"]["blockedSince"]
    );
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_restored_gateway_sends_the_number_of_old_events() {
    let receiver = Receiver::start();
    receiver.answer((500, ""));
    let settings = receiver.settings("ops", INGESTIONS);
    let server = start(&settings).await;
    server.define().await;
    ingest(&server, 3).await;
    let dir = server.stop().await.unwrap();
    let tried = receiver.received().len();
    // As `penstock restore` leaves the directory.
    std::fs::write(dir.path().join("data/restored"), "for a test").unwrap();
    receiver.answer((200, ""));
    let server = restart(dir.path(), &settings).await;
    let after = ingest(&server, 1).await;
    let received = receiver.until("two events", |received| received.len() == tried + 2);
    let lost = &received[tried].event;
    assert_eq!(
        (&lost["type"], &lost["data"]["count"]),
        (&json!("penstock.events.lost"), &json!(3))
    );
    assert_eq!(subjects(&received[tried + 1..]), after);
    let state = until_webhook(&server, |webhook| webhook["waiting"] == 0).await;
    assert_eq!((&state["delivered"], &state["dropped"]), (&json!(2), &json!(3)));
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_queue_of_a_removed_webhook_is_deleted() {
    let receiver = Receiver::start();
    receiver.answer((500, ""));
    let settings = receiver.settings("ops", INGESTIONS);
    let server = start(&settings).await;
    server.define().await;
    ingest(&server, 3).await;
    assert_eq!(webhook(&server).await["waiting"], 3);
    let dir = server.stop().await.unwrap();
    let server = restart(dir.path(), &[]).await;
    assert_eq!(server.read("/api/v1/webhooks").await["items"], json!([]));
    server.stop().await;
    receiver.answer((200, ""));
    let server = restart(dir.path(), &settings).await;
    let state = webhook(&server).await;
    assert_eq!((&state["waiting"], &state["delivered"]), (&json!(0), &json!(0)));
    server.stop().await;
}
