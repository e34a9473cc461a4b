//! What a decision depends on, and what happens to it where it cannot be taken.
use super::Plant;
use penstock_test_support::prelude::*;

/// Reads whether a change still applies. The gateway leaves it out while other commits would wait too long for it.
async fn read_applicability(who: &Person, id: &str) -> Value {
    let path = format!("/api/v1/changes/{id}");
    until_some("the gateway says whether the change applies", async || {
        Some(who.read(&path).await["applicability"].take()).filter(|found| !found.is_null())
    })
    .await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_change_applies_until_its_object_is_changed() {
    let plant = Plant::new("optional", &[]).await;
    let Plant { server, author, approver, .. } = &plant;
    let stored = server.ingest("ADD", &json!([{"name": "one"}])).await.expect(200).json();
    let uri = &stored["objects"][0]["uri"];
    let path = "/api/v1/business-objects/Pump?mode=UPDATE&review=true";
    let body = json!({"data": [{"uri": uri, "name": "two"}]});
    let change = author.post(path, &body).await.expect(202).json();
    let id = change["id"].text();
    server.ingest("ADD", &json!([{"name": "another"}])).await.expect(200);
    assert_eq!(read_applicability(approver, id).await, json!({"applies": true}));
    server.ingest("UPDATE", &json!([{"uri": uri, "flow": 7}])).await.expect(200);
    let applicability = read_applicability(approver, id).await;
    assert_eq!(applicability["applies"], false, "{applicability}");
    approver.step(id, "approve", "\"1\"").await.problem(409);
    approver.step(id, "rebase", "").await.expect(200);
    assert_eq!(read_applicability(approver, id).await, json!({"applies": true}));
    approver.step(id, "approve", "\"2\"").await.expect(200);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_change_cannot_have_a_condition() {
    let plant = Plant::new("required", &[]).await;
    let body = json!({"data": [{"name": "one"}]}).to_string();
    let path = "/api/v1/business-objects/Pump";
    let headers = [JSON, ("If-Match", "*")];
    let answer = plant.author.send("POST", path, &headers, body).await;
    answer.refused(400, "If-Match");
    // A step looks only at `If-Match`.
    let path = format!("/api/v1/changes/{}/withdraw", plant.submit("two").await["id"].string());
    plant.author.send("POST", &path, &[("If-None-Match", "1")], "").await.expect(200);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_full_disk_loses_no_comment_and_repeats_an_approval() {
    let dir = tempfile::tempdir().unwrap();
    let plant = Plant::on(TestApp::reopen(dir.path()).await, "required").await;
    let mut ids = Vec::new();
    for name in ["one", "two"] {
        ids.push(plant.submit(name).await["id"].string());
    }
    let Plant { server, approver, .. } = plant;
    let approved = approver.step(&ids[0], "approve", "\"1\"").await.expect(200).json();
    server.stop().await;
    let full = ["--service.limits.disk-reserve=1024GiB"];
    let server = TestApp::start_in(dir.path(), &full).await.unwrap();
    let approver = approver.at(&server);
    approver.step(&ids[1], "approve", "\"1\"").await.problem(507);
    let repeated = approver.step(&ids[0], "approve", "\"1\"").await.expect(200).json();
    assert_eq!(repeated, approved);
    let path = format!("/admin/changes/{}/approve", ids[1]);
    let form = "version=1&comment=checked+at+the+plant";
    let page = approver.send("POST", &path, &[HTML, FORM], form).await.expect(507).text();
    assert!(page.contains("The change was not approved"), "{page}");
    assert!(page.contains("checked at the plant</textarea>"), "{page}");
    server.stop().await;
}
