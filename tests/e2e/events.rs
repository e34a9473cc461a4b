//! Events as an operator receives them with curl.
use penstock_test_support::prelude::*;
use std::process::Child;
use std::sync::mpsc::{Receiver, channel};
use std::{io::BufRead, io::BufReader, thread};

/// A running `curl -N` on the stream, and the `CloudEvents` that it prints.
struct Curl {
    child: Child,
    events: Receiver<Value>,
}

impl Curl {
    fn start(server: &TestProcess, dir: &Path, after: Option<&str>) -> Self {
        let mut command = Command::new("curl");
        let key = admin_key(dir, "--service.data-dir=data");
        command.args(["-sSN", "--fail-with-body", "-H", &format!("Apikey: {key}")]);
        if let Some(id) = after {
            command.args(["-H", &format!("Last-Event-ID: {id}")]);
        }
        let url = format!("http://{}/api/v1/events", server.client.address);
        let mut child = command.arg(url).stdout(Stdio::piped()).spawn().expect("curl is installed");
        let out = BufReader::new(child.stdout.take().unwrap());
        let (sender, events) = channel();
        let (begun, is_begun) = channel();
        thread::spawn(move || {
            for line in out.lines().map_while(Result::ok) {
                if line.starts_with("retry: ") {
                    let _ = begun.send(());
                }
                if let Some(data) = line.strip_prefix("data: ") {
                    let event: Value = serde_json::from_str(data).expect("data is JSON");
                    if event["type"] != "penstock.events.position" {
                        let _ = sender.send(event);
                    }
                }
            }
        });
        is_begun.recv_timeout(TEST_TIMEOUT).expect("the stream begins at once");
        Self { child, events }
    }

    fn next(&self) -> Value {
        self.events.recv_timeout(TEST_TIMEOUT).expect("another event comes")
    }
}

impl Drop for Curl {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[test]
fn curl_receives_events_and_the_loss_after_a_kill() {
    let dir = tempfile::tempdir().unwrap();
    let arguments = ["--service.data-dir=data"];
    let server = TestProcess::start(dir.path(), &arguments);
    define(&server, dir.path());
    let curl = Curl::start(&server, dir.path(), None);
    ingest(&server);
    let first = curl.next();
    assert_eq!(first["type"], "penstock.ingestion.committed");
    assert_eq!(first["data"]["created"], 1);
    server.client.post("/api/v1/business-objects/Pump/push", "").expect(202);
    let mut states = Vec::new();
    while !matches!(states.last(), Some((_, status)) if status == "blocked") {
        let event = curl.next();
        states.push((event["type"].clone(), event["data"]["status"].clone()));
    }
    let exports = json!(["queued", "delivering", "blocked"]);
    assert_eq!(json!(states.iter().map(|(_, status)| status).collect::<Vec<_>>()), exports);
    let target = curl.next();
    target.includes(&json!({"type": "penstock.target.changed", "subject": "plant-exports"}));
    assert!(target["data"]["blocked"].is_string(), "{target}");

    // Once the bucket's folder can be created, the export continues, and there is an event about the target.
    std::fs::remove_file(dir.path().join("data/buckets/plant-exports")).unwrap();
    // The gateway expects that this takes somebody a while, so its own attempt comes later. On a slow machine it may
    // have come first.
    let exports = server.client.read("/api/v1/exports");
    let retry = format!("/api/v1/exports/{}/retry", exports["items"][0]["id"].text());
    let answer = server.client.post(&retry, "");
    assert!(matches!(answer.status, 200 | 409), "{}", answer.json());
    let mut types = Vec::new();
    while !types.contains(&json!("penstock.target.changed")) {
        types.push(curl.next()["type"].clone());
    }
    assert_eq!(json!(types), json!(["penstock.export.changed", "penstock.target.changed"]));

    let last = target["id"].string();
    server.kill();
    let server = TestProcess::start(dir.path(), &arguments);
    let curl = Curl::start(&server, dir.path(), Some(&last));
    let lost = curl.next();
    assert_eq!(lost["type"], "penstock.events.lost");
    let number = |event: &Value| event["id"].text().parse::<u64>().unwrap();
    assert!(number(&lost) > number(&target));
    ingest(&server);
    let next = curl.next();
    assert_eq!(number(&next), number(&lost) + 1);

    // A stop does not wait for listeners.
    server.stop();
    let mut curl = curl;
    wait_for("curl sees the end of the stream", || curl.child.try_wait().unwrap().is_some());
    assert!(curl.child.wait().unwrap().success(), "the stream was cut instead of ended");
}

fn define(server: &TestProcess, dir: &Path) {
    // A file with the name of the bucket's folder blocks the export.
    std::fs::create_dir_all(dir.join("data/buckets")).unwrap();
    std::fs::write(dir.join("data/buckets/plant-exports"), "").unwrap();
    let definition = json!({
        "name": "Pump",
        "enabled": true,
        "config": "type: object\npath: Pump:.\nfields:\n  name: {type: string, path: <https://plant.example/name>}\n",
        "pushTargets": [{"bucketName": "plant-exports"}],
    });
    server.client.put("/api/v1/business-objects", &definition).expect(201);
}

fn ingest(server: &TestProcess) {
    let body = json!({"data": [{"name": "P-101"}]}).to_string();
    server.client.post("/api/v1/business-objects/Pump", body).expect(200);
}
