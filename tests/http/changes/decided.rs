//! What a decision depends on, and what happens to it where it cannot be taken.
use super::{Person, Plant, Server};
use serde_json::{Value, json};
use std::time::Duration;

/// Reads whether a change still applies. The gateway leaves it out while other commits would wait too long for it.
async fn read_applicability(server: &Server, who: &Person, id: &str) -> Value {
    for _ in 0..600 {
        let path = format!("/api/v1/changes/{id}");
        let mut change = who.get(server, &path).await.expect(200).json();
        let applicability = change["applicability"].take();
        if !applicability.is_null() {
            return applicability;
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    panic!("the gateway does not say whether the change {id} applies");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_change_applies_until_its_object_is_changed() {
    let plant = Plant::new("optional", &[]).await;
    let Plant { server, author, approver, .. } = &plant;
    let stored = server.ingest("ADD", &json!([{"name": "one"}])).await.expect(200).json();
    let uri = &stored["objects"][0]["uri"];
    let path = "/api/v1/business-objects/Pump?mode=UPDATE&review=true";
    let body = json!({"data": [{"uri": uri, "name": "two"}]}).to_string();
    let change = author.send(server, "POST", path, &[], &body).await.expect(202).json();
    let id = change["id"].as_str().unwrap();
    server.ingest("ADD", &json!([{"name": "another"}])).await.expect(200);
    assert_eq!(read_applicability(server, approver, id).await, json!({"applies": true}));
    server.ingest("UPDATE", &json!([{"uri": uri, "flow": 7}])).await.expect(200);
    let applicability = read_applicability(server, approver, id).await;
    assert_eq!(applicability["applies"], false, "{applicability}");
    approver.step(server, id, "approve", "\"1\"").await.problem(409);
    approver.step(server, id, "rebase", "").await.expect(200);
    assert_eq!(read_applicability(server, approver, id).await, json!({"applies": true}));
    approver.step(server, id, "approve", "\"2\"").await.expect(200);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_change_cannot_have_a_condition() {
    let plant = Plant::new("required", &[]).await;
    let body = json!({"data": [{"name": "one"}]}).to_string();
    let path = "/api/v1/business-objects/Pump";
    let headers = [("If-Match", "*")];
    let answer = plant.author.send(&plant.server, "POST", path, &headers, &body).await;
    let problem = answer.problem(400);
    assert!(problem["detail"].as_str().unwrap().contains("If-Match"), "{problem}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_full_disk_loses_no_comment_and_repeats_an_approval() {
    let dir = tempfile::tempdir().unwrap();
    let plant = Plant::on(Server::start_in(dir.path(), &[]).await.unwrap(), "required").await;
    let mut ids = Vec::new();
    for name in ["one", "two"] {
        ids.push(plant.submit(name).await["id"].as_str().unwrap().to_owned());
    }
    let Plant { server, approver, .. } = plant;
    let approved = approver.step(&server, &ids[0], "approve", "\"1\"").await.expect(200).json();
    server.stop().await;
    let full = ["--service.limits.disk-reserve=1024GiB"];
    let server = Server::start_in(dir.path(), &full).await.unwrap();
    approver.step(&server, &ids[1], "approve", "\"1\"").await.problem(507);
    let repeated = approver.step(&server, &ids[0], "approve", "\"1\"").await.expect(200).json();
    assert_eq!(repeated, approved);
    let headers = [("Accept", "text/html"), ("Content-Type", "application/x-www-form-urlencoded")];
    let path = format!("/admin/changes/{}/approve", ids[1]);
    let form = "version=1&comment=checked+at+the+plant";
    let page = approver.send(&server, "POST", &path, &headers, form).await.expect(507).text();
    assert!(page.contains("The change was not approved"), "{page}");
    assert!(page.contains("checked at the plant</textarea>"), "{page}");
    server.stop().await;
}
