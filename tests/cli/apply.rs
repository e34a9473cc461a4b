//! `penstock apply` and `service.definitions.dir`, with the service running and without.
use crate::{DATA, penstock, run, serve, serve_for_admin};
use penstock_test_support::prelude::*;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::process::Output;

const PUMPS: &str = "\
- kind: BusinessObject
  name: Pumps
  config: |
    type: object
    path: Pump:.
    fields:
      name: {type: string, path: <http://v.example/name>}
- {name: Pump, generator: counter}
";
const LEADERS: &str = "kind: Group\nname: leaders\nclaimValues: [a]\n";

fn write(dir: &Path, name: &str, text: &str) {
    let folder = dir.join("definitions");
    if !folder.exists() {
        fs::create_dir(&folder).unwrap();
        fs::set_permissions(&folder, PermissionsExt::from_mode(0o755)).unwrap();
    }
    fs::write(folder.join(name), text).unwrap();
    fs::set_permissions(folder.join(name), PermissionsExt::from_mode(0o644)).unwrap();
}

fn apply(dir: &Path, more: &[&str]) -> Output {
    apply_to(dir, DATA, more)
}

fn apply_to(dir: &Path, data: &str, more: &[&str]) -> Output {
    run(dir, &[&["apply", "definitions", data], more].concat())
}

#[test]
fn a_folder_is_applied_with_and_without_a_running_service() {
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path();
    write(dir, "pumps.yaml", PUMPS);
    write(dir, "leaders.yaml", LEADERS);
    let (service, client) = serve_for_admin(dir);
    let shown = apply(dir, &["--dry-run"]).success().out();
    assert!(shown.contains("created BusinessObject \"Pumps\" (pumps.yaml)\n  + "), "{shown}");
    assert!(shown.ends_with("Dry run, nothing was changed: 3 created, 0 unchanged\n"), "{shown}");
    client.get("/api/v1/business-objects/Pumps").expect(404);

    let shown = apply(dir, &[]).success().out();
    let expected = "created Namespace \"Pump\" (pumps.yaml)\ncreated Group \"leaders\" (leaders.yaml)\n\
                    created BusinessObject \"Pumps\" (pumps.yaml)\n3 created, 0 unchanged\n";
    assert_eq!(shown, expected);
    client.get("/api/v1/business-objects/Pumps").expect(200);
    // The control socket only: over TCP there is no such path.
    client.post("/control/definitions", "{}").expect(404);
    // What the command applied stays editable, and the difference is shown.
    client.put("/api/v1/groups/leaders", &json!({"claimValues": ["b"]})).expect(200);
    let status = client.read("/api/v1/status");
    let drift =
        json!([{"kind": "Group", "name": "leaders", "file": "leaders.yaml", "state": "changed"}]);
    status["definitions"].includes(&json!({"managed": 3, "drift": drift}));
    service.stop();

    let answer = apply(dir, &["--json"]).json();
    answer.includes(&json!({"unchanged": 2}));
    assert_eq!(answer["changes"][0]["action"], "changed");
    write(dir, "pumps.yaml", &PUMPS.replace("type: string", "type: strong"));
    apply(dir, &[]).fails(1, "pumps.yaml:7:20: ");
    fs::set_permissions(dir.join("definitions/pumps.yaml"), PermissionsExt::from_mode(0o666))
        .unwrap();
    apply(dir, &[]).fails(1, "pumps.yaml: other users can write it");
    run(dir, &["apply", "nowhere", DATA]).fails(1, "nowhere: No such file");
    write(dir, "pumps.yaml", "# nothing\n");
    let pruned = apply(dir, &["--prune"]).success();
    let shown = pruned.out();
    shown.has_all(&["deleted BusinessObject \"Pumps\"", "deleted Namespace"]);
    let listed = pruned.err();
    assert!(listed.contains("to be deleted: BusinessObject \"Pumps\""), "{listed}");
}

/// Starts the service, and waits until it has applied the files.
fn serve_folder(dir: &Path, data: &str) -> TestProcess {
    let folder = "--service.definitions.dir=definitions";
    let service =
        TestProcess::spawn(&mut penstock(dir, &["serve", "--server.port=0", data, folder]));
    let client = service.client.with_key(create_key(dir, data, "wait", "User"));
    wait_for("the files are read", || {
        let status = client.read("/api/v1/status");
        status["definitions"]["running"] == json!(false)
    });
    service
}

fn refuse_deletion(client: Client, path: &str) {
    client.delete(path).expect(409);
}

#[test]
fn the_folder_of_the_service_is_applied_at_start_and_at_hangup() {
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path();
    write(dir, "pumps.yaml", PUMPS);
    write(dir, "leaders.yaml", LEADERS);
    let service = serve_folder(dir, DATA);
    let key = create_key(dir, DATA, "cli", "Admin");
    let client = service.client.with_key(key.clone());
    let put = client.put("/api/v1/groups/leaders", &json!({"claimValues": ["b"]}));
    let problem = put.expect(409).json();
    assert!(problem["detail"].has("leaders.yaml"), "{problem}");
    refuse_deletion(client, "/api/v1/business-objects/Pumps");
    refuse_deletion(client, "/api/v1/namespaces/Pump");
    // The same content is no change.
    client.put("/api/v1/groups/leaders", &json!({"claimValues": ["a"]})).expect(200);

    // A dry run of the folder shows what a reload changes, and the command does not change it.
    write(dir, "leaders.yaml", &LEADERS.replace("[a]", "[c]"));
    let shown = apply(dir, &["--dry-run"]).success().out();
    assert!(shown.starts_with("changed Group \"leaders\" (leaders.yaml)\n"), "{shown}");
    apply(dir, &[]).fails(1, "the group \"leaders\" is defined by the file leaders.yaml");
    signal(service.id(), "HUP");
    let claims = || client.get("/api/v1/groups/leaders").json()["claimValues"].clone();
    wait_for("the files are applied", || claims() == json!(["c"]));
    write(dir, "leaders.yaml", "kind: Group\nname: leaders\nclaimValue: [d]\n");
    signal(service.id(), "HUP");
    let errors = || client.get("/api/v1/status").json()["definitions"]["errors"].clone();
    wait_for("the error is in the status", || errors() != json!([]));
    assert!(errors()[0].text().starts_with("leaders.yaml:3:1: "), "{}", errors());
    service.stop();

    // A bad file does not stop the start, and what it has stays read-only.
    let service = serve_folder(dir, DATA);
    let client = service.client.with_key(key);
    let status: Value = client.read("/api/v1/status");
    let warnings = status["warnings"].to_string();
    warnings.has_all(&["leaders.yaml:3:1", "last good run"]);
    assert_eq!(client.get("/api/v1/groups/leaders").json()["claimValues"], json!(["c"]));
    refuse_deletion(client, "/api/v1/groups/leaders");
    service.stop();
}

#[test]
fn a_folder_that_is_larger_than_a_request_may_be_names_the_setting() {
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path();
    write(dir, "leaders.yaml", LEADERS);
    write(dir, "comment.yaml", &"# nothing\n".repeat(1000));
    let limited = ["serve", "--server.port=0", DATA, "--service.limits.body=4KiB"];
    let service = TestProcess::spawn(&mut penstock(dir, &limited));
    apply(dir, &[]).fails(1, "larger than service.limits.body allows (4096 bytes");
    service.stop();
    assert!(apply(dir, &[]).success().out().contains("created Group \"leaders\""));
}

#[test]
fn a_reload_with_files_that_cannot_be_used_changes_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path();
    write(dir, "pumps.yaml", PUMPS);
    write(dir, "leaders.yaml", LEADERS);
    let service = serve_folder(dir, DATA);
    let client = service.client.with_key(create_key(dir, DATA, "cli", "Admin"));
    let definitions = || client.read("/api/v1/status")["definitions"].clone();
    let claims = || client.get("/api/v1/groups/leaders").json()["claimValues"].clone();
    let reload = |expected: &str| {
        signal(service.id(), "HUP");
        wait_for(expected, || definitions()["errors"].to_string().contains(expected));
        assert_eq!((claims(), &definitions()["managed"]), (json!(["a"]), &json!(3)));
        client.get("/api/v1/business-objects/Pumps").expect(200);
    };
    let leaders = dir.join("definitions/leaders.yaml");
    let set_mode = |path: &Path, mode| {
        fs::set_permissions(path, PermissionsExt::from_mode(mode)).unwrap();
    };
    // One of the files is right, and is not applied either.
    write(dir, "leaders.yaml", &LEADERS.replace("[a]", "[b]"));
    write(dir, "pumps.yaml", &format!("{PUMPS}- [\n"));
    reload("pumps.yaml:");
    write(dir, "pumps.yaml", PUMPS);
    set_mode(&leaders, 0o646);
    reload("leaders.yaml: other users can write it (mode 646); run chmod go-w");
    set_mode(&leaders, 0o644);
    set_mode(&dir.join("definitions"), 0o777);
    reload("(mode 777)");
    set_mode(&dir.join("definitions"), 0o755);
    fs::remove_file(&leaders).unwrap();
    std::os::unix::fs::symlink("nowhere", &leaders).unwrap();
    reload("leaders.yaml: No such file");
    fs::remove_file(&leaders).unwrap();
    write(dir, "leaders.yaml", "");
    reload("leaders.yaml: it is empty");
    write(dir, "leaders.yaml", &LEADERS.replace("[a]", "[b]"));
    signal(service.id(), "HUP");
    wait_for("the files are applied", || claims() == json!(["b"]));
    wait_for("their result is known", || definitions()["errors"] == json!([]));
    service.stop();
}

#[test]
fn a_restored_gateway_still_knows_the_files_of_its_definitions() {
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path();
    write(dir, "pumps.yaml", PUMPS);
    write(dir, "leaders.yaml", LEADERS);
    let service = serve_folder(dir, DATA);
    let key = create_key(dir, DATA, "cli", "Admin");
    let client = service.client.with_key(key.clone());
    let version =
        |client: &Client| client.read("/api/v1/business-objects/Pumps")["version"].clone();
    let runs = |client: &Client| {
        let events = client.read("/api/v1/audit?what=definitions");
        events["items"].list().len()
    };
    assert_eq!((version(&client), runs(&client)), (json!(1), 1));
    run(dir, &["backup", "monday", DATA]).success();
    service.stop();
    let new = "--service.data-dir=new";
    run(dir, &["restore", "monday", new]).success();

    let service = serve_folder(dir, new);
    let client = service.client.with_key(key.clone());
    refuse_deletion(client, "/api/v1/groups/leaders");
    let status = client.read("/api/v1/status");
    status["definitions"].includes(&json!({"managed": 3, "drift": []}));
    assert_eq!((version(&client), runs(&client)), (json!(1), 1), "the same files change nothing");
    service.stop();
    // A gateway without the folder keeps them, and they can be changed.
    let service = serve(dir, "new");
    let client = service.client.with_key(key);
    // It finds out after it began to answer.
    wait_for("the definitions belong to no file", || {
        client.read("/api/v1/status")["definitions"]["drift"][0]["state"] == "unmanaged"
    });
    client.put("/api/v1/groups/leaders", &json!({"claimValues": ["b"]})).expect(200);
    service.stop();
    let shown = apply_to(dir, new, &["--prune", "--dry-run"]).success().out();
    assert!(shown.contains("changed Group \"leaders\""), "{shown}");
}
