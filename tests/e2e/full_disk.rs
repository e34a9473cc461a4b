//! A disk that fills up: at the reserve, ingestion is refused and everything else works. Ingestion continues when
//! there is space again.
use penstock_test_support::prelude::*;
use std::io::Write as _;

pub(crate) const DISK: &str = "PENSTOCK_TEST_SMALL_DISK";

/// Runs the test of this name on a file system of 160 MiB, in its own mount namespace.
pub(crate) fn on_a_small_disk(name: &str) {
    let dir = tempfile::tempdir().unwrap();
    let script = "mount -t tmpfs -o size=160m none \"$0\" || exit 77; exec \"$@\"";
    let run = Command::new("unshare")
        .args(["--map-root-user", "--mount", "sh", "-c", script])
        .arg(dir.path())
        .arg(std::env::current_exe().unwrap())
        .args(["--exact", name, "--nocapture"])
        .env(DISK, dir.path())
        .output();
    match run {
        Ok(run) if run.status.success() => {
            assert!(String::from_utf8_lossy(&run.stdout).contains("1 passed"), "{run:?}");
        }
        Ok(run) if run.status.code() == Some(101) => {
            panic!("{}", String::from_utf8_lossy(&run.stderr));
        }
        run => {
            assert!(std::env::var_os("CI").is_none(), "mounting is not possible here: {run:?}");
            eprintln!("{name} was not run, since nothing can be mounted here: {run:?}");
        }
    }
}

/// Fills the disk with a file and leaves `but` bytes free.
pub(crate) fn fill(dir: &Path, but: u64) -> PathBuf {
    let path = dir.join("filler");
    let mut file = std::fs::File::create(&path).unwrap();
    let block = vec![1; 64 << 10];
    while file.write_all(&block).is_ok() {}
    let length = file.metadata().unwrap().len();
    file.set_len(length.saturating_sub(but)).unwrap();
    path
}

fn definition(name: &str) -> Value {
    let config = format!(
        "type: object\npath: '{name}:.'\nfields:\n  label: {{ type: string, path: <https://disk.example/label> }}\n"
    );
    json!({
        "name": name, "description": "What is kept", "enabled": true, "config": config,
        "conditions": [], "pushTargets": [{ "bucketName": "kept" }],
    })
}

fn ingest(client: Client, mode: &str, name: &str) -> Answer {
    let mut object = json!({ "uri": format!("https://disk.example/{name}"), "label": name });
    if mode == "DELETE" {
        object.as_object_mut().unwrap().remove("label");
    }
    let path = format!("/api/v1/business-objects/Kept?mode={mode}");
    client.post(&path, json!({ "data": [object] }).to_string())
}

#[test]
fn the_reserve_is_kept_for_operations_that_free_space() {
    let Some(disk) = std::env::var_os(DISK).map(PathBuf::from) else {
        return on_a_small_disk("full_disk::the_reserve_is_kept_for_operations_that_free_space");
    };
    let server = TestProcess::start(&disk, &["--service.data-dir=data"]);
    let client = server.client;
    client.put("/api/v1/business-objects", &definition("Kept")).expect(201);
    for name in ["first", "second"] {
        ingest(client, "ADD", name).expect(200);
    }
    assert_eq!(client.read("/api/v1/limits")["diskReserve"], 64 << 20);
    assert_eq!(client.read("/api/v1/status")["disk"]["inReserve"], false);

    let filler = fill(&disk, 40 << 20);
    for mode in ["ADD", "REPLACE", "UPDATE"] {
        let refused = ingest(client, mode, "third").expect(507).json();
        let detail = refused["detail"].text();
        assert!(detail.starts_with("Ingestion failed: "), "{detail}");
        assert!(detail.contains("service.limits.disk-reserve"), "{detail}");
    }
    client.put("/api/v1/business-objects", &definition("Other")).expect(507);
    client.put("/api/v1/business-objects/Kept", &definition("Kept")).expect(507);
    let base =
        json!({ "name": "Some", "uriBase": "https://some.example/", "generator": "counter" });
    client.put("/api/v1/namespaces/Some", &base).expect(507);

    ingest(client, "VALIDATE", "third").expect(200);
    let objects = "/api/v1/business-objects/Kept/objects";
    assert_eq!(client.read(objects)["items"].list().len(), 2);
    client.post("/api/v1/business-objects/Kept/push", "").expect(202);
    wait_for("the export is delivered in the reserve", || {
        client.read("/api/v1/exports")["items"][0]["status"] == "delivered"
    });
    ingest(client, "DELETE", "second").expect(200);
    let status = client.read("/api/v1/status");
    assert_eq!(status["disk"]["inReserve"], true);
    let shortage = "Reading, DELETE and exports continue";
    assert!(status["warnings"].list().iter().any(|text| text.has(shortage)), "{status}");
    let logged = |line: &&Value| line["text"].has("full up to its reserve");
    let line = status["lastErrors"].list().iter().find(logged).unwrap();
    assert_eq!(line["level"], "error");
    let metrics = client.get("/metrics").expect(200).body;
    assert!(String::from_utf8_lossy(&metrics).contains("penstock_disk_in_reserve 1"));
    server.wait_for_log("full up to its reserve");

    // Even on a completely full disk, no data is lost and no recovery is needed.
    std::fs::remove_file(filler).unwrap();
    let filler = fill(&disk, 0);
    let refused = ingest(client, "ADD", "third").expect(507).json();
    assert!(refused["detail"].has("DELETE may be refused too"), "{refused}");
    client.get(objects).expect(200);
    client.get("/health/ready").expect(200);
    std::fs::remove_file(filler).unwrap();
    ingest(client, "ADD", "third").expect(200);
    assert_eq!(client.read(objects)["items"].list().len(), 2);
    server.stop();

    // It is in the log before any client asks.
    fill(&disk, 40 << 20);
    let serve = ["serve", "--server.port=0", "--service.data-dir=data"];
    let server = TestProcess::spawn(penstock(&disk).args(serve));
    server.wait_for_log("full up to its reserve");
    server.stop();
}

#[test]
fn the_first_start_waits_for_space_on_a_full_disk() {
    let Some(disk) = std::env::var_os(DISK).map(PathBuf::from) else {
        return on_a_small_disk("full_disk::the_first_start_waits_for_space_on_a_full_disk");
    };
    std::fs::create_dir(disk.join("data")).unwrap();
    let filler = fill(&disk, 0);
    // The server prints its address only when it is ready.
    let mut server = TestProcess::start_without_waiting(&disk, &["--service.data-dir=data"]);
    let client = server.client;
    let ready = || client.send("GET", "/health/ready", &[], "");
    wait_for("it reports the full disk", || {
        assert!(!server.has_ended(), "it ended");
        let is_reported = ready()
            .is_ok_and(|answer| answer.status == 503 && answer.text().contains("disk is full"));
        is_reported && server.log().contains("retries until there is")
    });
    std::fs::remove_file(filler).unwrap();
    wait_for("it is ready", || ready().is_ok_and(|answer| answer.status == 200));
    let log = server.kill();
    assert_eq!(log.matches("retries until there is").count(), 1, "{log}");
}
