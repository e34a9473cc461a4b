//! Deliveries to a real S3 server with a wrong clock, and with a delivery window that closes.
use crate::clockless::{Clock, define, ingest};
use crate::s3::Account;
use penstock_test_support::prelude::*;

fn arguments(account: &Account) -> Vec<String> {
    let default = |name: &str, value: &str| format!("--service.export.default.{name}={value}");
    vec![
        "--service.data-dir=data".to_owned(),
        default("type", "s3"),
        default("endpoint", &account.endpoint),
        default("region", "default"),
        default("access-key-id", &account.key_id),
        default("secret-access-key", &account.secret),
        default("path-style", "true"),
    ]
}

fn verify(dir: &Path, account: &Account, bucket: &str) {
    penstock(dir)
        .args(["verify-export", "--bucket", &format!("{}/{bucket}/", account.endpoint)])
        .envs([("AWS_ACCESS_KEY_ID", &account.key_id), ("AWS_SECRET_ACCESS_KEY", &account.secret)])
        .env("AWS_REGION", "default")
        .succeed();
}

#[test]
fn a_gateway_without_a_clock_delivers_to_a_server_that_checks_times() {
    let account = Account::of_environment();
    let name = format!("clockless-{}", uuid::Uuid::now_v7());
    let bucket = account.create_bucket(&name);
    let dir = tempfile::tempdir().unwrap();
    let Some(clock) = Clock::at(dir.path(), "-20000d") else { return };
    let arguments = arguments(&account);
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let server = clock.start(dir.path(), &arguments);
    define(server.client, &name);
    ingest(server.client, 1);
    let entry = push_and_wait(server.client, "Wells");
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let (head, _) = runtime.block_on(bucket.head_object(entry["key"].text())).unwrap();
    let metadata = head.metadata.expect("the object has metadata");
    assert_eq!(metadata.get("clock").map(String::as_str), Some("unsynchronised"));
    verify(dir.path(), &account, &name);
    server.stop();
}

#[test]
fn a_window_that_closes_interrupts_an_upload_and_the_next_window_continues_it() {
    let account = Account::of_environment();
    let name = format!("window-{}", uuid::Uuid::now_v7());
    account.create_bucket(&name);
    let dir = tempfile::tempdir().unwrap();
    // The times before and after the end of the window are both within the clock skew that the server tolerates.
    let Some(clock) = Clock::at(dir.path(), "+0") else { return };
    let at = |minutes: i64| {
        let at = jiff::Timestamp::now() + jiff::SignedDuration::from_mins(minutes);
        at.strftime("%H:%M").to_string()
    };
    let mut arguments = arguments(&account);
    arguments.push(format!("--service.export.window={}-{}", at(-10), at(5)));
    arguments.push("--service.export.bandwidth=3MiB".to_owned());
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let server = clock.start(dir.path(), &arguments);
    let client = server.client;
    let config = "type: object\npath: 'Logs:.'\nfields:\n  text: { type: string, path: <https://logs.example/text> }\n";
    let definition =
        json!({ "name": "Logs", "config": config, "pushTargets": [{ "bucketName": name }] });
    client.put("/api/v1/business-objects", &definition).expect(201);
    let text = "x".repeat(60_000);
    for first in [0, 200, 400] {
        let data: Vec<Value> =
            (first..first + 200).map(|n| json!({ "text": format!("{n}{text}") })).collect();
        let body = json!({ "data": data }).to_string();
        client.post("/api/v1/business-objects/Logs", body).expect(200);
    }
    let push = client.post("/api/v1/business-objects/Logs/push", "").expect(202).json();
    let id = push["exports"][0]["id"].text();
    let record_file = dir.path().join(format!("data/uploads/{id}.upload"));
    let parts =
        || std::fs::read_to_string(&record_file).map_or(0, |text| text.lines().count().max(1) - 1);
    wait_for("the server has a part", || parts() >= 1);
    clock.set("+10m");
    wait_for("the upload is interrupted", || server.log().contains("the delivery window closed"));
    let before = std::fs::read_to_string(&record_file).unwrap();
    let sent_parts = parts();
    assert!(sent_parts < 7, "{sent_parts} parts are the whole file");
    let entry = client.read(&format!("/api/v1/exports/{id}"));
    assert_eq!([&entry["status"], &entry["attempts"]], [&json!("queued"), &json!(0)]);
    let targets = client.read("/api/v1/targets");
    assert!(targets["items"][0]["paused"].has("it opens at"), "{targets}");
    assert_eq!(targets["items"][0]["blocked"], Value::Null);
    std::thread::sleep(Duration::from_secs(2));
    assert_eq!(
        std::fs::read_to_string(&record_file).unwrap(),
        before,
        "a part was sent outside of the window"
    );

    clock.set("+0");
    let mut last = before.clone();
    wait_for("the export is delivered in the next window", || {
        last = std::fs::read_to_string(&record_file).unwrap_or(std::mem::take(&mut last));
        client.read(&format!("/api/v1/exports/{id}"))["status"] == "delivered"
    });
    assert!(last.starts_with(&before), "the upload started again:\n{before}\n{last}");
    verify(dir.path(), &account, &name);
    server.stop();
}
