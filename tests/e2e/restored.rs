//! A gateway restored from a backup. It has no files of exports, and reports every export that is blocked by that.
use penstock_test_support::backup::{add_well, define_wells};
use penstock_test_support::prelude::*;

#[test]
fn exports_with_lost_files_report_it_and_can_be_parked() {
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path();
    let data = "--service.data-dir=data";
    let server = TestProcess::start(dir, &[data]);
    admin_key(dir, data);
    let definition = json!({
        "name": "Pump", "enabled": true, "pushTargets": [{"bucketName": "plant-exports"}],
        "config": "type: object\npath: Pump:.\nfields:\n  name: {type: string, path: <https://plant.example/name>}\n",
    });
    server.client.put("/api/v1/business-objects", &definition).expect(201);
    let body = json!({"data": [{"name": "P-101"}]}).to_string();
    server.client.post("/api/v1/business-objects/Pump", body).expect(200);
    let delivered = push_and_wait(server.client, "Pump");
    // A file with the name of the bucket's folder blocks the next export.
    let bucket = dir.join("data/buckets/plant-exports");
    std::fs::remove_dir_all(&bucket).unwrap();
    std::fs::write(&bucket, "").unwrap();
    let push = server.client.post("/api/v1/business-objects/Pump/push", "").expect(202).json();
    let waiting = push["exports"][0]["id"].string();
    penstock(dir).args(["backup", "monday", data]).succeed();
    server.stop();

    let restored = "--service.data-dir=restored";
    penstock(dir).args(["restore", "monday", restored]).succeed();
    let server = TestProcess::start(dir, &[restored]);
    let entry = |id: &str| -> Value { server.client.read(&format!("/api/v1/exports/{id}")) };
    wait_for("the export that lost its file is reported", || {
        entry(&waiting)["status"] == "blocked"
    });
    // The start finds that the file is missing. The first attempt finds that the target does not have it either, and
    // the error says what to do.
    wait_for("the gateway has queried the target", || {
        entry(&waiting)["lastError"].as_str().is_some_and(|why| why.contains("park"))
    });
    let blocked = entry(&waiting);
    let why = blocked["lastError"].text();
    assert!(why.contains("missing from the spool"), "{why}");
    let target = server.client.read("/api/v1/targets");
    assert!(target["items"][0]["blocked"].has("missing"), "{target}");
    // A delivered export stays in the history, without its file.
    let id = delivered["id"].text();
    assert_eq!(entry(id)["status"], "delivered");
    let content = server.client.get(&format!("/api/v1/exports/{id}/content")).expect(404).json();
    assert!(content["detail"].has("missing"), "{content}");

    // After parking it, the next export continues, with a sequence that was never used. It replaces the parked one, which
    // nobody can retry.
    server.client.post(&format!("/api/v1/exports/{waiting}/park"), "").expect(200);
    let refused = server.client.post(&format!("/api/v1/exports/{waiting}/retry"), "").expect(409);
    assert!(refused.json()["detail"].has("missing from the spool"));
    assert_eq!(entry(&waiting)["status"], "parked");
    let next = push_and_wait(server.client, "Pump");
    let number = |entry: &Value| entry["sequence"].as_u64().unwrap();
    assert_eq!(number(&next), number(&blocked) + 1_000_001);
    server.client.get(&format!("/api/v1/exports/{waiting}")).expect(404);
    server.stop();
}

#[test]
fn counters_that_began_after_the_backup_issue_no_number_again() {
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path();
    let begin = |data: &str| {
        let server = TestProcess::start(dir, &[data]);
        define_wells(server.client);
        let uri = add_well(server.client, 0);
        let sequence = push_and_wait(server.client, "Wells")["sequence"].as_u64();
        server.stop();
        (uri, sequence)
    };
    let (data, restored) = ("--service.data-dir=data", "--service.data-dir=restored");
    let server = TestProcess::start(dir, &[data]);
    admin_key(dir, data);
    penstock(dir).args(["backup", "monday", data]).succeed();
    server.stop();
    assert_eq!(begin(data), ("https://wells.example/1".to_owned(), Some(1)));
    penstock(dir).args(["restore", "monday", restored]).succeed();
    assert_eq!(begin(restored), ("https://wells.example/1000001".to_owned(), Some(1_000_001)));
}

/// The requests that define a group, a shapes graph and a Business Object with this text.
fn definitions_with(text: &str) -> [(&'static str, (&'static str, &'static str), String); 3] {
    let config = "type: object\npath: 'Wells:.'\nfields:\n  level: { type: integer, path: <https://wells.example/level> }\n";
    let shapes = "@prefix sh: <http://www.w3.org/ns/shacl#> . <https://wells.example/Shape> a sh:NodeShape ; sh:targetClass <https://wells.example/Well> .\n";
    [
        ("/api/v1/groups/shift", JSON, json!({ "claimValues": [text] }).to_string()),
        ("/api/v1/shapes/wells", TURTLE, format!("# {text}\n{shapes}")),
        (
            "/api/v1/business-objects",
            JSON,
            json!({ "name": "Wells", "config": config, "description": text }).to_string(),
        ),
    ]
}

#[test]
fn the_etag_of_a_lost_version_overwrites_no_other_content() {
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path();
    let (data, restored) = ("--service.data-dir=data", "--service.data-dir=restored");
    let define = |client: Client, text: &str| -> Vec<String> {
        let put = |(path, content_type, body): (&str, (&str, &str), String)| {
            let answer = client.send("PUT", path, &[content_type], body).unwrap();
            assert!([200, 201].contains(&answer.status), "{path}: {}", answer.text());
            answer.header("etag").to_owned()
        };
        definitions_with(text).into_iter().map(put).collect()
    };
    let server = TestProcess::start(dir, &[data]);
    // The others do not exist when the backup is written.
    let [.., (path, _, body)] = definitions_with("before");
    server.client.send("PUT", path, &[JSON], body).unwrap().expect(201);
    penstock(dir).args(["backup", "monday", data]).succeed();
    let lost = define(server.client, "lost");
    assert_eq!(lost, ["\"1\"", "\"1\"", "\"2\""]);
    server.stop();

    penstock(dir).args(["restore", "monday", restored]).succeed();
    let server = TestProcess::start(dir, &[restored]);
    let now = define(server.client, "another");
    assert_eq!(now, ["\"1000001\""; 3]);
    for (tag, (path, content_type, body)) in lost.iter().zip(definitions_with("mine")) {
        let headers = [content_type, ("If-Match", tag.as_str())];
        server.client.send("PUT", path, &headers, body).unwrap().expect(412);
    }
    server.stop();
}

#[test]
fn consumers_with_objects_that_the_backup_does_not_know_get_an_export_without_objects() {
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path();
    let (data, restored) = ("--service.data-dir=data", "--service.data-dir=restored");
    let server = TestProcess::start(dir, &[data]);
    define_wells(server.client);
    let count = |client: Client| push_and_wait(client, "Wells")["objectCount"].as_u64();
    let well = json!({ "data": [{ "uri": add_well(server.client, 0) }] }).to_string();
    assert_eq!(count(server.client), Some(1));
    server.client.post("/api/v1/business-objects/Wells?mode=DELETE", well).expect(200);
    assert_eq!(count(server.client), Some(0));
    penstock(dir).args(["backup", "monday", data]).succeed();
    add_well(server.client, 0);
    assert_eq!(count(server.client), Some(1));
    server.stop();

    penstock(dir).args(["restore", "monday", restored]).succeed();
    let server = TestProcess::start(dir, &[restored]);
    assert_eq!(count(server.client), Some(0));
    // Then consumers have nothing.
    let push = server.client.post("/api/v1/business-objects/Wells/push", "").expect(202).json();
    assert_eq!(push["exports"], json!([]));
    server.stop();
}
