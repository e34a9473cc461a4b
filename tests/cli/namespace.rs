//! `penstock namespace move`: with the service running, without it, and after an interruption.
use crate::backup::{DATA, fails, read_json, run};
use crate::data::try_to_serve;
use crate::serve;
use crate::server::create_key;
use penstock_base::disk::Disk;
use penstock_model::change_feed::Watch;
use penstock_model::namespace::moving::{self, MoveTarget};
use penstock_store::{Options, Store};
use serde_json::{Value, json};
use std::path::Path;

const NEW: &str = "https://plant.example/id/Pump/";

/// Serves, defines a Business Object without `service.base-url`, and ingests pumps. Returns the default base.
fn ingest_pumps(dir: &Path) -> String {
    let service = serve(dir, "data");
    let client = service.client.with_key(create_key(dir, DATA, "cli", "Admin"));
    let pumps = json!({
        "name": "Pumps",
        "config": "type: object\npath: Pump:.\nfields: {name: {type: string, path: <http://v.example/name>}, feeds: {type: resource, path: <http://v.example/feeds>}}",
        "namespaces": [{"name": "Pump", "generator": "counter"}],
        "pushTargets": [{"bucketName": "lake"}],
        "exportOnChange": true,
        "debounce": "1s",
    });
    client.put("/api/v1/business-objects", &pumps).expect(201);
    let base = client.get("/api/v1/namespaces/Pump").json()["uriBase"].as_str().unwrap().to_owned();
    assert!(base.starts_with("urn:penstock:"), "{base}");
    let data = json!({"data": [{"name": "P-1"}, {"name": "P-2", "feeds": format!("{base}1")}]});
    client.post("/api/v1/business-objects/Pumps", data.to_string()).expect(200);
    service.stop();
    base
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// Serves, and checks that all pumps have their new URIs and that the next one continues the counter.
fn check_moved(dir: &Path) {
    let service = serve(dir, "data");
    let client = service.client.with_key(create_key(dir, DATA, "cli", "Admin"));
    let objects = client.get("/api/v1/business-objects/Pumps/objects").expect(200).json();
    let shown: Vec<(&Value, &Value)> = objects["items"]
        .as_array()
        .unwrap()
        .iter()
        .map(|one| (&one["uri"], &one["feeds"]))
        .collect();
    let uri = |number| json!(format!("{NEW}{number}"));
    assert_eq!(shown, [(&uri(1), &Value::Null), (&uri(2), &uri(1))], "{objects}");
    let added = client.post("/api/v1/business-objects/Pumps", r#"{"data": [{"name": "P-3"}]}"#);
    assert_eq!(added.expect(200).json()["objects"][0]["uri"], uri(3));
    let events = client.get("/api/v1/audit?what=namespace").expect(200).json();
    let moves =
        events["items"].as_array().unwrap().iter().filter(|one| one["what"] == "namespace.moved");
    assert_eq!(moves.count(), 1, "{events}");
    service.stop();
    let dump = text(&run(dir, &["dump", DATA]).stdout);
    assert!(dump.contains(&format!("<{NEW}>")) && !dump.contains("urn:penstock"), "{dump}");
}

#[test]
fn a_namespace_is_moved_while_the_service_is_stopped() {
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path();
    let base = ingest_pumps(dir);
    let service = serve(dir, "data");
    let command = ["namespace", "move", "Pump", NEW, DATA];
    fails(&run(dir, &command), "in use by another process; stop the service");
    service.stop();

    fails(&run(dir, &["namespace", "move", "None", NEW, DATA]), "there is no namespace \"None\"");
    fails(&run(dir, &["namespace", "move", "Pump", "nowhere", DATA]), "not an absolute IRI");
    let checked = read_json(&run(dir, &[&command[..], &["--dry-run", "--json"]].concat()));
    assert_eq!((&checked["moved"], &checked["quads"]), (&json!(false), &json!(3)), "{checked}");
    let moved = run(dir, &command);
    assert!(moved.status.success(), "{moved:?}");
    let out = text(&moved.stdout);
    assert!(out.contains(&format!("from <{base}> to <{NEW}>: 3 quads")), "{out}");
    assert!(out.contains("The next export of these Business Objects is full: Pumps."), "{out}");
    let again = run(dir, &command);
    assert!(again.status.success() && text(&again.stdout).contains("already"), "{again:?}");
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
    fails(&run(dir, &["dump", DATA]), &remedy);
    fails(&run(dir, &["api-key", "list", DATA]), &remedy);
    fails(&run(dir, &["namespace", "move", "Pump", "http://other.example/", DATA]), &remedy);
    assert!(run(dir, &["backup", "half", DATA]).status.success());

    let moved = read_json(&run(dir, &["namespace", "move", "Pump", NEW, "--json", DATA]));
    assert_eq!((&moved["moved"], &moved["quads"]), (&json!(true), &json!(3)), "{moved}");
    assert_eq!(moved["fullExports"], json!(["Pumps"]));
    check_moved(dir);
}
