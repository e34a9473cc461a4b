//! `penstock backup`, `restore` and `verify`, with the service running and without.
use crate::{DATA, run, serve};
use penstock_test_support::prelude::*;
use std::fs;

const SHAPES: &str = "<urn:S> a <http://www.w3.org/ns/shacl#NodeShape> ; <http://www.w3.org/ns/shacl#targetNode> <urn:a> .";

#[test]
fn a_running_service_is_backed_up_and_restored_elsewhere() {
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path();
    let service = serve(dir, "data");
    let key = create_key(dir, DATA, "cli", "Admin");
    let client = service.client.with_key(key.clone());
    let pump = json!({"uriBase": "https://example.org/pump/", "generator": "counter"});
    client.put("/api/v1/namespaces/Pump", &pump).expect(201);
    client.send("PUT", "/api/v1/shapes/pumps", &[TURTLE], SHAPES).unwrap().expect(201);
    client.put("/api/v1/business-objects", &definition()).expect(201);
    let view = json!({"name": "all", "businessObject": "Pump", "shared": true});
    let view = client.post("/api/v1/views", view.to_string()).expect(201).json();
    let backup = run(dir, &["backup", "monday", "--json", DATA]).json();
    assert!(backup["documents"].as_u64() >= Some(2), "{backup}");
    let exists = "monday: File exists (os error 17); write to another file";
    run(dir, &["backup", "monday", DATA]).fails(1, exists);
    run(dir, &["restore", "monday", DATA]).fails(1, "data is not empty");
    for command in [&["verify"][..], &["serve", "--server.port=0"], &["demo", "--exit"]] {
        let stop = "in use by another process; stop the service first";
        run(dir, &[command, &[DATA]].concat()).fails(1, stop);
    }
    // Backups are available only at the control socket.
    client.get("/control/backup").expect(404);
    service.stop();
    let verified = run(dir, &["verify", "--json", DATA]).json();
    assert_eq!((&verified["whole"], &verified["faults"]), (&true.into(), &Value::Array(vec![])));
    // At shutdown the service commits deferred writes, such as the last use of a key.
    assert!(verified["sequence"].as_u64() >= backup["sequence"].as_u64(), "{verified}, {backup}");
    // The same for a store that no process has open.
    let again = run(dir, &["backup", "tuesday", "--json", DATA]).json();
    again.includes(&json!({"sequence": verified["sequence"], "documents": verified["documents"]}));

    let restored = run(dir, &["restore", "monday", "--json", "--service.data-dir=new"]).json();
    assert_eq!(restored["documents"], backup["documents"]);
    assert_eq!(restored["sequence"].as_u64(), backup["sequence"].as_u64().map(|n| n + 1_000_000));
    let service = serve(dir, "new");
    let client = service.client.with_key(key);
    assert!(client.get("/api/v1/namespaces/Pump").text().contains("/pump/"));
    assert_eq!(client.get("/api/v1/shapes/pumps").expect(200).text(), SHAPES);
    assert_eq!(client.read(&format!("/api/v1/views/{}", view["id"].text())), view);
    service.stop();
    let id = |data: &str| fs::read_to_string(dir.join(data).join("gateway-id")).unwrap();
    assert_eq!(id("data"), id("new"));
}

#[test]
fn a_backup_whose_file_cannot_be_written_names_it_and_is_logged_as_sent_only() {
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path();
    let service = serve(dir, "data");
    // No process may write a file: each write fails, as on a full disk.
    let limited = r#"trap "" XFSZ; ulimit -f 0; exec "$0" backup monday "$1""#;
    let mut command = Command::new("/bin/sh");
    command.args(["-c", limited]).arg(binary()).arg(DATA).current_dir(dir).env_clear();
    command.output().unwrap().fails(1, "monday: writing failed: ");
    assert!(!dir.join("monday").exists());
    run(dir, &["backup", "monday", DATA]).success();
    service.wait_for_log("A backup was sent to `penstock backup`");
    assert!(!service.log().contains("A backup was written"), "{}", service.log());
    service.stop();
}

#[test]
fn a_backup_whose_name_is_too_long_is_refused_before_it_is_made() {
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path();
    let service = serve(dir, "data");
    let key = create_key(dir, DATA, "cli", "Admin");
    run(dir, &["backup", &"x".repeat(256), DATA]).fails(1, "File name too long");
    assert!(data_events(&service, &key).is_empty());
    service.stop();
}

/// Runs a command that the kernel kills at its first write to a file.
fn kill_at_first_write(dir: &Path, arguments: &[&str]) {
    let limited = r#"ulimit -f 0; exec /usr/bin/env --default-signal=XFSZ "$0" "$@""#;
    let mut command = Command::new("/bin/sh");
    command.args(["-c", limited]).arg(binary()).args(arguments).current_dir(dir).env_clear();
    let killed = command.output().unwrap();
    assert_eq!(killed.status.code(), None, "{}", killed.err());
}

#[test]
fn a_backup_or_dump_that_is_killed_leaves_nothing_under_its_name() {
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path();
    let service = serve(dir, "data");
    fs::write(dir.join("one.nt"), "<urn:x:a> <urn:x:p> \"1\" .\n").unwrap();
    run(dir, &["load", "one.nt", DATA]).success();
    let files = dir.join("files");
    fs::create_dir(&files).unwrap();
    let count = || fs::read_dir(&files).unwrap().count();
    for (done, [command, name]) in
        [["backup", "files/monday"], ["dump", "files/all.nq"]].into_iter().enumerate()
    {
        kill_at_first_write(dir, &[command, name, DATA]);
        assert!(!dir.join(name).exists());
        assert_eq!(count(), done + 1, "it left the temporary file");
        run(dir, &[command, name, DATA]).success();
        assert!(dir.join(name).exists());
        assert_eq!(count(), done + 1, "the next one has removed it");
    }
    service.stop();
}

/// Returns the events `data.*` of the audit trail, the oldest first, each with its detail.
fn data_events(service: &TestProcess, key: &str) -> Vec<(String, String)> {
    let client = service.client.with_key(key.to_owned());
    let page = client.read("/api/v1/audit?what=data");
    let text = |event: &Value, name: &str| event[name].string();
    let events = page["items"].list().iter().rev();
    events
        .map(|event| {
            assert_eq!(event["by"], "local", "{event}");
            (text(event, "what"), text(event, "detail"))
        })
        .collect()
}

#[test]
fn the_audit_log_has_backups_dumps_loads_and_restores() {
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path();
    fs::write(dir.join("one.nt"), "<urn:x:a> <urn:x:p> \"1\" .\n").unwrap();
    fs::write(dir.join("bad.nt"), "oops\n").unwrap();
    let service = serve(dir, "data");
    let key = create_key(dir, DATA, "cli", "Admin");
    let act = |name: &str| {
        run(dir, &["load", "one.nt", DATA]).success();
        run(dir, &["load", "bad.nt", DATA]).fails(1, "");
        run(dir, &["dump", "--graph", "default", "--format", "nt", DATA]).success();
        run(dir, &["backup", name, DATA]).success();
    };
    act("monday");
    service.stop();
    act("tuesday");
    let restore = ["restore", "tuesday", "--service.data-dir=new"];
    run(dir, &restore).success();

    let expected = [
        ("data.loaded", "1 quads, 1 of them new; without a graph: the default graph"),
        (
            "data.loaded",
            "0 quads, 0 of them new; without a graph: the default graph; not finished: ",
        ),
        ("data.dumped", "1 quads of the default graph"),
        ("data.backed-up", "1 quads and "),
    ];
    let is = |found: &[(String, String)], expected: &[(&str, &str)]| {
        assert_eq!(found.len(), expected.len(), "{found:#?}");
        for ((what, detail), (expected, begin)) in found.iter().zip(expected) {
            assert!(what == expected && detail.starts_with(begin), "{what} {detail}, not {begin}");
        }
    };
    let mut again = expected;
    again[0].1 = "1 quads, 0 of them new";
    let service = serve(dir, "data");
    is(&data_events(&service, &key), &[expected, again].concat());
    service.stop();
    // The backup of Tuesday lacks only the event about itself.
    let restored = [&expected[..], &again[..3], &[("data.restored", "at 20")]].concat();
    for _ in 0..2 {
        let service = serve(dir, "new");
        is(&data_events(&service, &key), &restored);
        service.stop();
    }
}

#[test]
fn a_damaged_store_and_a_truncated_backup_are_reported() {
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path();
    run(dir, &["verify", DATA]).fails(1, "there is no data directory");
    serve(dir, "data").stop();
    run(dir, &["backup", "whole", DATA]);
    let whole = fs::read(dir.join("whole")).unwrap();
    fs::write(dir.join("cut"), &whole[..whole.len() - 1]).unwrap();
    let refused = run(dir, &["restore", "cut", "--service.data-dir=new"]);
    refused.fails(1, "cut is damaged at byte");
    refused.fails(1, "nothing was restored into new: restore again before");
    // The service begins no empty gateway in its place.
    let started = run(dir, &["serve", "--server.port=0", "--service.data-dir=new"]);
    started.fails(65, "new/store did not finish");
    fs::write(dir.join("other.json"), "{}".repeat(100)).unwrap();
    let other = "other.json is not a file of penstock backup";
    run(dir, &["restore", "other.json", "--service.data-dir=new"]).fails(1, other);
    run(dir, &["restore", "whole", "--service.data-dir=new"]).success();
    let segment = dir.join("data/store/journal/00000000000000000001.journal");
    let mut bytes = fs::read(&segment).unwrap();
    bytes[60] ^= 1;
    fs::write(&segment, bytes).unwrap();
    let output = run(dir, &["verify", "--json", DATA]);
    assert_eq!(output.status.code(), Some(1));
    let verified: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert!(verified["faults"][0].has("0001.journal is damaged at byte 40"), "{verified}");
}

#[test]
fn a_restore_that_was_killed_is_run_again_before_a_start() {
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path();
    let new = "--service.data-dir=new";
    serve(dir, "data").stop();
    run(dir, &["backup", "monday", DATA]).success();
    // Its first write is that of the note.
    kill_at_first_write(dir, &["restore", "monday", new]);
    let assert_refused = || {
        let started = run(dir, &["serve", "--server.port=0", new]);
        started.fails(65, "new/store did not finish");
        started.fails(65, "run the restore again");
    };
    assert_refused();
    // What a later kill leaves.
    fs::remove_file(dir.join("new/restored.new")).unwrap();
    fs::write(dir.join("new/restored"), "{}").unwrap();
    assert_refused();
    fs::create_dir(dir.join("new/store")).unwrap();
    fs::write(dir.join("new/store/lock"), "").unwrap();
    assert_refused();
    run(dir, &["export", "list", new]).fails(1, "new/store did not finish");
    run(dir, &["backup", "tuesday", new]).fails(1, "new/store did not finish");
    run(dir, &["restore", "monday", new]).success();
    serve(dir, "new").stop();
}

/// Returns the warning of the status about a restore, if there is one.
fn restore_warning(client: &Client) -> Option<String> {
    let status = client.read("/api/v1/status");
    let warnings = status["warnings"].list().iter();
    let mut warnings = warnings.map(JsonExt::string);
    warnings.find(|warning| warning.contains("a backup was restored"))
}

#[test]
fn what_a_restore_brings_back_is_listed_or_ended() {
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path();
    let service = serve(dir, "data");
    let admin = create_key(dir, DATA, "admin", "Admin");
    let leaked = create_key(dir, DATA, "leaked", "User");
    assert_eq!(restore_warning(&service.client.with_key(admin.clone())), None);
    run(dir, &["backup", "monday", DATA]).success();
    let client = service.client.with_key(admin.clone());
    let keys = client.read("/api/v1/api-keys");
    let of_leaked = keys["items"].list().iter().find(|key| key["name"] == "leaked");
    let path = format!("/api/v1/api-keys/{}", of_leaked.unwrap()["id"].text());
    client.delete(&path).expect(204);
    service.client.with_key(leaked.clone()).get("/api/v1/status").expect(401);
    service.stop();

    // Without options the revoked key is valid again, and listed until it is revoked again.
    run(dir, &["restore", "monday", "--service.data-dir=new"]).success();
    for start in ["first", "second"] {
        let service = serve(dir, "new");
        let client = service.client.with_key(admin.clone());
        let as_leaked = service.client.with_key(leaked.clone());
        let warning = restore_warning(&client).unwrap();
        assert!(warning.contains("1 account (admin)"), "{start}: {warning}");
        // Only an Admin learns the names.
        if start == "first" {
            warning.has_all(&["2 API keys (", "\"leaked\" ("]);
            assert_eq!(restore_warning(&as_leaked), None);
            client.delete(&path).expect(204);
        } else {
            assert!(warning.contains("1 API key (\"admin\""), "{warning}");
            as_leaked.get("/api/v1/status").expect(401);
        }
        service.stop();
    }

    // With the option no key works, and a new one stays.
    let ended = ["restore", "monday", "--revoke-keys", "--sign-out", "--service.data-dir=ended"];
    run(dir, &ended).success();
    // A second restore is refused, and leaves what the first start has to do.
    let again = run(dir, &["restore", "monday", "--service.data-dir=ended"]);
    again.fails(1, "ended is not empty");
    let service = serve(dir, "ended");
    for key in [&admin, &leaked] {
        service.client.with_key(key.clone()).get("/api/v1/status").expect(401);
    }
    let new = create_key(dir, "--service.data-dir=ended", "new", "Admin");
    let warning = restore_warning(&service.client.with_key(new.clone())).unwrap();
    assert!(warning.contains("no API keys and 1 account (admin)"), "{warning}");
    service.stop();
    let service = serve(dir, "ended");
    let client = service.client.with_key(new);
    let revoked = client.read("/api/v1/audit?what=key.revoked");
    assert_eq!(revoked["items"].list().len(), 2, "{revoked}");
    service.stop();
}
