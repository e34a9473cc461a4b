//! The process: it shuts down cleanly, and a kill loses no acknowledged data.
use penstock_test_support::prelude::*;
use std::io::{BufRead as _, BufReader, Write as _};
use std::net::TcpListener;
use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread::JoinHandle;

const CONFIG: &str = include_str!("process.yaml");
const DATA: &str = "--service.data-dir=data";
const INGEST: &str = "/api/v1/business-objects/Readings?mode=ADD";

#[test]
fn sigterm_shuts_it_down_cleanly_while_it_is_busy() {
    let dir = tempfile::tempdir().unwrap();
    let server = TestProcess::start(dir.path(), &[DATA]);
    define(server.client);
    let load = Load::start(server.client, 0);
    wait_for("some ingestions and an export are acknowledged", || {
        load.acknowledged.lock().unwrap().len() >= 20 && load.pushes.load(Ordering::SeqCst) >= 1
    });
    let status = server.stop_with_signal("TERM");
    let load = load.end();
    assert_eq!(status.code(), Some(0));

    let server = TestProcess::start(dir.path(), &[DATA]);
    check_objects(server.client, &load.acknowledged);
    check_exports(&server, dir.path(), load.pushes);
    server.stop();
}

#[test]
fn sigint_shuts_it_down_too() {
    let dir = tempfile::tempdir().unwrap();
    let server = TestProcess::start(dir.path(), &[DATA]);
    assert_eq!(server.stop_with_signal("INT").code(), Some(0));
}

/// The gateway reads the certificate after it has set up the handling of signals, and before it opens HTTP. The
/// certificate is a pipe, so that the signal arrives at that moment.
#[test]
fn sigterm_shuts_it_down_while_it_starts() {
    let dir = tempfile::tempdir().unwrap();
    let run = |program: &str, arguments: &[&str]| {
        Command::new(program).current_dir(dir.path()).args(arguments).succeed();
    };
    run("mkfifo", &["slow.pem"]);
    #[rustfmt::skip]
    run("openssl", &[
        "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "2", "-subj",
        "/CN=localhost", "-keyout", "own.key", "-out", "own.pem",
    ]);
    let mut child = penstock(dir.path())
        .args(["serve", "--server.port=0", DATA])
        .args(["--server.ssl.certificate=slow.pem", "--server.ssl.certificate-private-key=own.key"])
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    // Opening the pipe blocks until the server reads it.
    let mut slow =
        std::fs::OpenOptions::new().write(true).open(dir.path().join("slow.pem")).unwrap();
    signal(child.id(), "TERM");
    slow.write_all(&std::fs::read(dir.path().join("own.pem")).unwrap()).unwrap();
    drop(slow);
    let mut status = None;
    wait_for("the server has ended", || {
        status = child.try_wait().unwrap();
        status.is_some()
    });
    let status = status.unwrap();
    assert_eq!(status.code(), Some(0), "{status}");
}

/// After failed starts the gateway waits before it opens anything. Other programs send SIGHUP at any time.
#[test]
fn sighup_does_not_end_it_while_it_waits_to_start() {
    let dir = tempfile::tempdir().unwrap();
    std::fs::write(dir.path().join("starts"), "9\n").unwrap();
    let mut child = penstock(dir.path())
        .args(["serve", "--server.port=0", DATA])
        .env("RUNTIME_DIRECTORY", dir.path())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut log = BufReader::new(child.stderr.take().unwrap()).lines();
    assert!(log.any(|line| line.unwrap().contains("Waiting 295 s")), "it does not wait");
    signal(child.id(), "HUP");
    signal(child.id(), "TERM");
    let status = child.wait().unwrap();
    assert_eq!(status.code(), Some(0), "{status}");
}

/// systemd passes its sockets from descriptor 3 on. Here both are the same one.
#[test]
fn a_second_socket_of_systemd_and_another_port_cause_warnings() {
    let dir = tempfile::tempdir().unwrap();
    let socket = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", socket.local_addr().unwrap());
    let mut command = Command::new("/bin/sh");
    command
        .args(["-c", "exec \"$0\" serve \"$@\" 3<&0 4<&0"])
        .arg(binary())
        .args([DATA, "--server.port=9"])
        .current_dir(dir.path())
        .env_clear()
        .env("LISTEN_FDS", "2")
        .stdin(OwnedFd::from(socket));
    let server = TestProcess::spawn(&mut command);
    assert_eq!(server.url, url);
    server.wait_for_log("systemd passed several sockets");
    server.wait_for_log("server.port = \"9\" (from ");
    server.stop();
}

#[test]
fn sigkill_at_any_moment_loses_no_acknowledged_data() {
    let dir = tempfile::tempdir().unwrap();
    let server = TestProcess::start(dir.path(), &[DATA]);
    define(server.client);
    server.stop();

    let mut acknowledged = Vec::new();
    let mut pushes = 0;
    for round in 0..6 {
        let server = TestProcess::start(dir.path(), &[DATA]);
        let load = Load::start(server.client, round);
        wait_for("the round has begun", || {
            let is_pushed = round > 0 || load.pushes.load(Ordering::SeqCst) > 0;
            is_pushed && !load.acknowledged.lock().unwrap().is_empty()
        });
        std::thread::sleep(Duration::from_millis(rand::random_range(0..600)));
        server.kill();
        let load = load.end();
        acknowledged.extend(load.acknowledged);
        pushes += load.pushes;
    }

    let minted: BTreeSet<&str> = acknowledged.iter().map(|(uri, _)| uri.as_str()).collect();
    assert_eq!(minted.len(), acknowledged.len(), "a counter issued a number twice");
    let server = TestProcess::start(dir.path(), &[DATA]);
    check_objects(server.client, &acknowledged);
    check_exports(&server, dir.path(), pushes);
    server.stop();
}

#[test]
fn plain_http_beyond_loopback_needs_the_setting_insecure_http() {
    let dir = tempfile::tempdir().unwrap();
    let refused = penstock(dir.path())
        .args(["serve", "--server.port=0", "--server.address=0.0.0.0", DATA])
        .output()
        .unwrap();
    assert_eq!(refused.status.code(), Some(78));
    let said = String::from_utf8(refused.stderr).unwrap();
    assert!(said.contains("server.address"), "{said}");
    assert!(said.contains("server.insecure-http"), "{said}");
}

#[test]
fn one_data_directory_has_one_owner() {
    let dir = tempfile::tempdir().unwrap();
    let server = TestProcess::start(dir.path(), &[DATA]);
    let second = penstock(dir.path()).args(["serve", "--server.port=0", DATA]).output().unwrap();
    assert!(!second.status.success(), "two servers share one data directory");
    server.stop();
}

/// Clients that ingest and push until the server stops. They record what the server acknowledged.
struct Load {
    acknowledged: Arc<Mutex<Vec<(String, String)>>>,
    pushes: Arc<AtomicUsize>,
    threads: Vec<JoinHandle<()>>,
}

/// What the server acknowledged to the clients of a load.
struct Ended {
    /// The URI and label of each acknowledged object.
    acknowledged: Vec<(String, String)>,
    pushes: usize,
}

impl Load {
    fn start(client: Client, round: usize) -> Self {
        let acknowledged: Arc<Mutex<Vec<(String, String)>>> = Arc::default();
        let pushes: Arc<AtomicUsize> = Arc::default();
        let mut threads: Vec<_> = (0..3)
            .map(|thread| {
                let acknowledged = Arc::clone(&acknowledged);
                std::thread::spawn(move || {
                    for i in 0.. {
                        let label = format!("{round}-{thread}-{i}");
                        let object = json!({ "label": label, "samples": [{ "value": i }] });
                        let body = json!({ "data": [object] }).to_string();
                        let Ok(answer) = client.try_post(INGEST, body) else { return };
                        if answer.status == 503 {
                            return;
                        }
                        let answer = answer.expect(200).json();
                        let uri = answer["objects"][0]["uri"].string();
                        acknowledged.lock().unwrap().push((uri, label));
                    }
                })
            })
            .collect();
        let counted = Arc::clone(&pushes);
        threads.push(std::thread::spawn(move || {
            while let Ok(answer) = client.try_post("/api/v1/business-objects/Readings/push", "") {
                if answer.status == 503 {
                    return;
                }
                let push = answer.expect(202).json();
                let exports = push["exports"].list().len();
                counted.fetch_add(exports, Ordering::SeqCst);
                std::thread::sleep(Duration::from_millis(30));
            }
        }));
        Self { acknowledged, pushes, threads }
    }

    fn end(self) -> Ended {
        for thread in self.threads {
            thread.join().unwrap();
        }
        let acknowledged = std::mem::take(&mut *self.acknowledged.lock().unwrap());
        Ended { acknowledged, pushes: self.pushes.load(Ordering::SeqCst) }
    }
}

fn define(client: Client) {
    for (name, generator) in [("Readings", "counter"), ("Samples", "counter")] {
        let namespace = json!({
            "name": name,
            "uriBase": format!("https://readings.example/{name}/"),
            "generator": generator,
        });
        client.put(&format!("/api/v1/namespaces/{name}"), &namespace).expect(201);
    }
    let definition = json!({
        "name": "Readings", "config": CONFIG, "pushTargets": [{ "bucketName": "readings" }],
    });
    client.put("/api/v1/business-objects", &definition).expect(201);
}

/// Checks that every acknowledged object is stored completely.
#[track_caller]
fn check_objects(client: Client, acknowledged: &[(String, String)]) {
    assert!(!acknowledged.is_empty());
    for (uri, label) in acknowledged {
        let encoded = escaped(uri);
        let path = format!("/api/v1/business-objects/Readings/objects/{encoded}");
        let object = client.read(&path);
        assert_eq!(object["label"], **label, "{uri}");
        assert_eq!(object["samples"].as_array().map(Vec::len), Some(1), "{object}");
    }
}

/// Checks that the queue drains after the restart, and that the target has all files, complete and in order.
#[track_caller]
fn check_exports(server: &TestProcess, dir: &Path, pushes: usize) {
    assert!(pushes > 0, "no push was acknowledged");
    let client = server.client;
    let mut exports: Vec<Value> = Vec::new();
    wait_for("every export is delivered", || {
        exports = client.all("/api/v1/exports?limit=100");
        exports.iter().all(|e| e["status"] == "delivered")
    });
    exports.sort_by_key(|e| e["sequence"].as_u64());
    let sequences: Vec<u64> = exports.iter().filter_map(|e| e["sequence"].as_u64()).collect();
    let whole: Vec<u64> = (1..=sequences.len() as u64).collect();
    assert_eq!(sequences, whole, "a sequence is missing or repeated");
    assert!(sequences.len() >= pushes, "{} of {pushes} acknowledged exports", sequences.len());
    let delivered: Vec<&str> = exports.iter().filter_map(|e| e["deliveredAt"].as_str()).collect();
    assert!(delivered.is_sorted(), "delivered out of order: {delivered:?}");
    let mut last = 0;
    for export in &exports {
        let file = dir.join("data/buckets/readings").join(export["key"].text());
        penstock(dir).arg("verify-export").arg(&file).succeed();
        let count = export["objectCount"].as_u64().unwrap();
        assert!(count >= last, "a later export has fewer objects than an earlier one");
        last = count;
    }
}
