//! The data directory and the backup of an earlier version are read with every record, and work continues with them.
//! `tests/fixtures/README.md` describes the fixture.
use penstock_test_support::prelude::*;
use std::fs;
use std::time::{SystemTime, UNIX_EPOCH};

const FIXTURE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/fixtures/0.1.0-2098865.tar.gz");
const DATA: &str = "--service.data-dir=data";
/// The settings that the fixture was written with. Nothing listens at port 1, so the target is unreachable.
const SETTINGS: [&str; 7] = [
    DATA,
    "--service.gateway-id=edge-fixture",
    "--service.export.targets.embedded.type=directory",
    "--service.export.targets.down.type=s3",
    "--service.export.targets.down.endpoint=http://127.0.0.1:1",
    "--service.export.targets.down.access-key-id=test",
    "--service.export.targets.down.secret-access-key=test",
];
/// The difference between the last number of a counter in a backup and the next one after the restore.
const RESTORE_GAP: u64 = 1_000_000;

#[test]
fn the_data_of_an_earlier_version_is_read_and_used() {
    let dir = unpack_fixture();
    let dir = dir.path();
    let server = start_with_closed_window(dir);
    assert_records(&server, dir, "data");
    assert_work_continues(server, dir, 0);

    let mut verify = penstock(dir);
    verify.args(["verify-export", "--bucket", "data/buckets/embedded"]);
    verify.succeed();
    penstock(dir).args(["verify", DATA]).succeed();
}

#[test]
fn the_backup_of_an_earlier_version_is_restored_and_used() {
    let dir = unpack_fixture();
    let dir = dir.path();
    fs::remove_dir_all(dir.join("data")).unwrap();
    penstock(dir).args(["restore", "backup", DATA]).succeed();
    let server = start_with_closed_window(dir);
    assert_records(&server, dir, "backup");
    let clock = penstock(dir).args(["clock", "show", "--json", DATA]).output().unwrap();
    let clock: Value = serde_json::from_slice(&clock.stdout).unwrap();
    assert!(clock["lastKnown"].is_string(), "{clock}");
    assert_work_continues(server, dir, RESTORE_GAP);
    penstock(dir).args(["verify", DATA]).succeed();
}

fn unpack_fixture() -> tempfile::TempDir {
    let dir = tempfile::tempdir().unwrap();
    Command::new("tar").args(["-xzf", FIXTURE]).current_dir(dir.path()).succeed();
    let requests = read_json(dir.path(), "requests.json");
    fs::write(dir.path().join("key-of-the-tests"), requests["keys"]["fixture"].text()).unwrap();
    dir
}

/// Starts the gateway in the state that the fixture's answers were read in: the spool is full, and the export window is
/// closed for hours, so that no export changes.
fn start_with_closed_window(dir: &Path) -> TestProcess {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
    let hour = (now.as_secs() / 3600 + 12) % 24;
    let window = format!("--service.export.window={hour:02}:00-{hour:02}:01");
    let arguments = [SETTINGS.as_slice(), &[&window, "--service.export.spool=1KiB"]].concat();
    TestProcess::start(dir, &arguments)
}

/// Asserts that every answer about the records, and the graph, is as the earlier version gave it.
fn assert_records(server: &TestProcess, dir: &Path, name: &str) {
    let expected = read_json(dir, &format!("{name}.json"));
    for earlier in expected["answers"].list() {
        let path = earlier["path"].text();
        let answer = server.client.get(path);
        assert_eq!(json!(answer.status), earlier["status"], "{path}: {}", answer.text());
        if answer.status != 200 {
            continue;
        }
        if path.ends_with("/content") {
            assert_eq!(answer.text(), earlier["body"].text(), "{path}");
            continue;
        }
        let body = serde_json::from_str(earlier["body"].text()).unwrap();
        let (today, earlier) = (stored_members(answer.json()), stored_members(body));
        assert_eq!(today["items"].list().len(), earlier["items"].list().len(), "{path}");
        for (today, earlier) in today["items"].list().iter().zip(earlier["items"].list()) {
            assert_eq!(today, earlier, "{path}");
        }
    }
    // Exports that wait for space have no record yet; they are computed from the changes since the last export. A
    // schedule of another Business Object, which was missed since then, waits too.
    wait_for("two exports of changes wait for space", || {
        let exports = server.client.read("/api/v1/exports");
        let waiting = exports["items"].list().iter().filter(|export| {
            export["status"] == "waiting" && export["businessObjectName"] == "Changing"
        });
        waiting.count() == 2
    });
    let dump = penstock(dir).args(["dump", "--format=nq", DATA]).output().unwrap();
    let mut graph: Vec<_> = str::from_utf8(&dump.stdout).unwrap().lines().collect();
    graph.sort_unstable();
    assert_eq!(json!(graph), expected["graph"]);
}

/// Returns a page without what is not a stored record, or changes when the gateway opens the data.
fn stored_members(mut page: Value) -> Value {
    let stored = page["items"].as_array_mut().unwrap();
    stored.retain(|item| item["status"] != "waiting" && item["what"] != "data.restored");
    for item in stored {
        // The test itself uses this key.
        if item["name"] == "fixture" {
            item["lastUsed"].take();
        }
        // Keys of an earlier version name at most one Business Object, in `businessObject`.
        if let Some(all) = item.as_object_mut().unwrap().remove("businessObjects") {
            let only = &item["businessObject"];
            let expected = if only.is_null() { Value::Null } else { json!([only]) };
            assert_eq!(all, expected, "{item}");
        }
        // No object was rejected.
        if let Some(rejected) = item.as_object_mut().unwrap().remove("rejected") {
            assert_eq!(rejected, 0, "{item}");
        }
        // The gateway words these itself when it answers or starts.
        if item["status"] == "blocked" {
            item["lastError"].take();
        }
        for warning in item["warnings"].as_array_mut().into_iter().flatten() {
            if warning["message"].is_string() {
                warning["message"].take();
            }
        }
    }
    page
}

/// Asserts that credentials, repeated requests, counters and the export queue work with the records. `gap` is what a
/// restore adds to counters.
fn assert_work_continues(server: TestProcess, dir: &Path, gap: u64) {
    let requests = read_json(dir, "requests.json");
    let client = server.client;
    let keys = &requests["keys"];
    let status = |name: &str, path: &str| {
        let bearer = format!("Bearer {}", keys[name].text());
        client.send("GET", path, &[("authorization", &bearer)], "").unwrap().status
    };
    assert_eq!(status("plant", "/api/v1/business-objects/Reading"), 200);
    assert_eq!(status("plant", "/api/v1/business-objects/Machine"), 403);
    assert_eq!(status("reader", "/api/v1/namespaces"), 200);
    assert_eq!(status("reader", "/api/v1/users"), 403);
    assert_eq!(status("meter", "/metrics"), 200);
    assert_eq!(status("revoked", "/api/v1/status"), 401);
    for (email, expected) in [("ada", 200), ("bob", 200), ("eve", 403), ("dora", 401)] {
        let credentials = json!({"email": email, "password": requests["password"]});
        let answer = client.post("/login", credentials.to_string());
        assert_eq!(answer.status, expected, "{email}: {}", answer.text());
    }

    if gap == 0 {
        assert_requests_are_repeatable(client, dir, &requests["repeatable"]);
    }

    let reading = json!({"data": [{"name": "after the upgrade"}]}).to_string();
    let answer = client.post("/api/v1/business-objects/Reading", reading).expect(200).json();
    let number = 9 + gap;
    assert_eq!(answer["objects"][0]["uri"], format!("https://plant.example/readings/{number}"));
    server.stop();

    // Now there is space, and deliveries are allowed.
    let server = TestProcess::start(dir, &SETTINGS);
    let export = wait_for_export(server.client, "embedded", 4 + gap, "delivered");
    // A restore cannot know what was delivered after the backup.
    let kind = if gap == 0 { "incremental" } else { "full" };
    assert_eq!(export["kind"], kind);
    wait_for_export(server.client, "down", 4 + gap, "queued");
    let first = wait_for_export(server.client, "down", 1, "blocked");
    let park = format!("/api/v1/exports/{}/park", first["id"].text());
    assert_eq!(server.client.post(&park, "").expect(200).json()["status"], "parked");
    server.stop();
}

/// Asserts that requests with an `Idempotency-Key` get their first answers. The clock of the data was reset, so no time
/// has passed for it. The clock of the backup counts the time since, where the machine's clock is synchronised.
///
/// Only the machine that wrote the fixture counts the time since, until it is started again. After 24 h it has forgotten
/// the answers.
fn assert_requests_are_repeatable(client: Client, dir: &Path, requests: &Value) {
    let clock = penstock(dir).args(["clock", "show", "--json", DATA]).output().unwrap();
    let clock: Value = serde_json::from_slice(&clock.stdout).unwrap();
    let elapsed = clock["elapsed"].as_u64().unwrap();
    for request in requests.list() {
        let first: Value = serde_json::from_str(request["answer"].text()).unwrap();
        if elapsed.saturating_sub(read_uuid_time(first["ingestionId"].text())) > 24 * 60 * 60 * 1000
        {
            eprintln!("skipped: this machine wrote the fixture more than 24 h ago");
            return;
        }
        let headers = [
            ("content-type", request["contentType"].text()),
            ("idempotency-key", request["key"].text()),
        ];
        let body = request["body"].text().to_owned();
        let answer = client.send("POST", request["path"].text(), &headers, body).unwrap();
        assert_eq!(answer.expect(200).text(), request["answer"].text());
    }
}

/// Returns the time in a UUID of version 7 (RFC 9562, 5.7), in milliseconds since 1970.
fn read_uuid_time(uuid: &str) -> u64 {
    u64::from_str_radix(&uuid.replace('-', "")[..12], 16).unwrap()
}

/// Waits until the export of the Business Object `Changing` with this target and sequence has this status.
fn wait_for_export(client: Client, target: &str, sequence: u64, status: &str) -> Value {
    let mut found = Value::Null;
    wait_for(&format!("{target} {sequence} is {status}"), || {
        let exports = client.read("/api/v1/exports?limit=200");
        let export = exports["items"].list().iter().find(|export| {
            export["businessObjectName"] == "Changing"
                && export["target"] == target
                && export["sequence"] == sequence
                && export["status"] == status
        });
        found = export.cloned().unwrap_or_default();
        !found.is_null()
    });
    found
}

fn read_json(dir: &Path, name: &str) -> Value {
    serde_json::from_slice(&fs::read(dir.join(name)).unwrap()).unwrap()
}
