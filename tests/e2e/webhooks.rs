//! Webhooks of a gateway that is killed: every acknowledged ingestion is reported, and twice only with the same id.
use penstock_test_support::prelude::*;
use penstock_test_support::receiver::{Received, SECRET};
use std::collections::HashMap;

#[test]
fn a_killed_gateway_loses_no_event_and_keeps_the_ids() {
    let (dir, receiver) = (tempfile::tempdir().unwrap(), Receiver::start());
    let mut arguments = receiver.settings("ops", "penstock.ingestion.committed");
    arguments.push("--service.data-dir=data".to_owned());
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let config = "type: object\npath: 'Pumps:.'\nfields:\n  uri: {type: id}\n  name: {type: string, path: <https://plant.example/name>}\n";
    let mut acknowledged: Vec<String> = Vec::new();
    for round in 0..4 {
        // In every other round the receiver is down, and the events wait.
        receiver.answer(if round % 2 == 0 { (200, "") } else { (503, "") });
        let server = TestProcess::start(dir.path(), &arguments);
        if round == 0 {
            let body = json!({"name": "Pump", "config": config});
            server.client.put("/api/v1/business-objects", &body).expect(201);
        }
        for n in 0..20 {
            let body = json!({"data": [{"name": format!("{round}-{n}")}]}).to_string();
            let answer = server.client.post("/api/v1/business-objects/Pump", body).expect(200);
            acknowledged.push(answer.json()["ingestionId"].string());
        }
        let log = server.kill();
        assert!(!log.contains(SECRET) && !log.contains("of-the-url"), "{log}");
    }
    receiver.answer((200, ""));
    let server = TestProcess::start(dir.path(), &arguments);
    let last = acknowledged.last().unwrap();
    receiver.until("the last event", |received| {
        received.iter().any(|one| one.status == 200 && one.event["subject"] == last.as_str())
    });
    wait_for("the queue is empty", || {
        let all: Value = server.client.read("/api/v1/webhooks");
        all["items"][0]["waiting"] == 0
    });
    let subject = |one: &Received| one.event["subject"].string();
    let mut ids: HashMap<String, String> = HashMap::new();
    for one in receiver.received() {
        let id = ids.entry(subject(&one)).or_insert_with(|| one.id.clone());
        assert_eq!((&*id, &one.headers["webhook-id"]), (&one.id, &one.id), "an id never changes");
        assert_eq!(one.path, "/hook-of-the-url?token=of-the-url");
    }
    let mut seen = BTreeSet::new();
    let mut accepted: Vec<String> = receiver.accepted().iter().map(subject).collect();
    accepted.retain(|one| seen.insert(one.clone()));
    assert_eq!(accepted, acknowledged);
    server.stop();
}
