//! `penstock namespace move`: with the service running, without it, and after an interruption.
use crate::data::try_to_serve;
use crate::{DATA, run, serve, serve_for_admin};
use penstock_base::disk::Disk;
use penstock_model::change_feed::Watch;
use penstock_model::namespace::moving::{self, MoveTarget};
use penstock_store::{Options, Store};
use penstock_test_support::prelude::*;

const NEW: &str = "https://plant.example/id/Pump/";

/// Serves, defines a Business Object without `service.base-url`, and ingests pumps. Returns the default base.
fn ingest_pumps(dir: &Path) -> String {
    let (service, client) = serve_for_admin(dir);
    let pumps = json!({
        "name": "Pumps",
        "config": "type: object\npath: Pump:.\nfields: {name: {type: string, path: <http://v.example/name>}, feeds: {type: resource, path: <http://v.example/feeds>}}",
        "namespaces": [{"name": "Pump", "generator": "counter"}],
        "pushTargets": [{"bucketName": "lake"}],
        "exportOnChange": true,
        "debounce": "1s",
    });
    client.put("/api/v1/business-objects", &pumps).expect(201);
    let base = client.get("/api/v1/namespaces/Pump").json()["uriBase"].string();
    assert!(base.starts_with("urn:penstock:"), "{base}");
    let data = json!({"data": [{"name": "P-1"}, {"name": "P-2", "feeds": format!("{base}1")}]});
    client.post("/api/v1/business-objects/Pumps", data.to_string()).expect(200);
    service.stop();
    base
}

/// Serves, and checks that all pumps have their new URIs and that the next one continues the counter.
fn check_moved(dir: &Path) {
    let (service, client) = serve_for_admin(dir);
    let objects = client.read("/api/v1/business-objects/Pumps/objects");
    let shown: Vec<(&Value, &Value)> =
        objects["items"].list().iter().map(|one| (&one["uri"], &one["feeds"])).collect();
    let uri = |number| json!(format!("{NEW}{number}"));
    assert_eq!(shown, [(&uri(1), &Value::Null), (&uri(2), &uri(1))], "{objects}");
    let added = client.post("/api/v1/business-objects/Pumps", r#"{"data": [{"name": "P-3"}]}"#);
    assert_eq!(added.expect(200).json()["objects"][0]["uri"], uri(3));
    let events = client.read("/api/v1/audit?what=namespace");
    let moves = events["items"].list().iter().filter(|one| one["what"] == "namespace.moved");
    assert_eq!(moves.count(), 1, "{events}");
    service.stop();
    let dump = run(dir, &["dump", DATA]).out();
    assert!(dump.contains(&format!("<{NEW}>")) && !dump.contains("urn:penstock"), "{dump}");
}

#[test]
fn a_namespace_is_moved_while_the_service_is_stopped() {
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path();
    let base = ingest_pumps(dir);
    let service = serve(dir, "data");
    let command = ["namespace", "move", "Pump", NEW, DATA];
    run(dir, &command).fails(1, "in use by another process; stop the service");
    service.stop();

    run(dir, &["namespace", "move", "None", NEW, DATA]).fails(1, "there is no namespace \"None\"");
    run(dir, &["namespace", "move", "Pump", "nowhere", DATA]).fails(1, "not an absolute IRI");
    let checked = run(dir, &[&command[..], &["--dry-run", "--json"]].concat()).json();
    assert_eq!((&checked["moved"], &checked["quads"]), (&json!(false), &json!(3)), "{checked}");
    let moved = run(dir, &command);
    assert!(moved.status.success(), "{moved:?}");
    let out = moved.out();
    assert!(out.contains(&format!("from <{base}> to <{NEW}>: 3 quads")), "{out}");
    assert!(out.contains("The next export of these Business Objects is full: Pumps."), "{out}");
    let again = run(dir, &command);
    assert!(again.status.success() && again.out().contains("already"), "{again:?}");
    check_moved(dir);
    for wrong in [&["namespace"][..], &["namespace", "move", "Pump"]] {
        assert_eq!(run(dir, wrong).status.code(), Some(2));
    }
}

#[test]
fn the_service_does_not_start_until_an_interrupted_move_is_finished() {
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path();
    ingest_pumps(dir);
    let data = dir.join("data");
    let store = Store::open(&data.join("store"), Options::default(), &mut |_| {}).unwrap();
    let plan = moving::plan_move(&store, "Pump", NEW, &mut |_| {}).unwrap().unwrap();
    let target = MoveTarget { store: &store, disk: &Disk::new(data, 0), watch: &Watch::default() };
    moving::begin_move(target, &plan).unwrap();
    drop(store);

    let remedy = format!("`penstock namespace move \"Pump\" '{NEW}'`");
    let (status, log) = try_to_serve(dir);
    assert_eq!(status, Some(65), "{log}");
    assert!(log.contains(&remedy), "{log}");
    run(dir, &["dump", DATA]).fails(1, &remedy);
    run(dir, &["api-key", "list", DATA]).fails(1, &remedy);
    run(dir, &["namespace", "move", "Pump", "http://other.example/", DATA]).fails(1, &remedy);
    run(dir, &["backup", "half", DATA]).success();

    let moved = run(dir, &["namespace", "move", "Pump", NEW, "--json", DATA]).json();
    moved.includes(&json!({"moved": true, "quads": 3, "fullExports": ["Pumps"]}));
    check_moved(dir);
}
