//! Automatic exports as an operator sees them: after a kill at any moment, with a clock that jumps, and with an
//! unreachable target.
use crate::clockless::Clock;
use penstock_test_support::prelude::*;

const DATA: &str = "--service.data-dir=data";
const URL: &str = "--service.base-url=https://tanks.example";
const CONFIG: &str = include_str!("automatic.yaml");

fn definition(more: &Value) -> Value {
    let mut definition =
        json!({"name": "Tanks", "config": CONFIG, "pushTargets": [{"bucketName": "tanks"}]});
    for (name, value) in more.as_object().unwrap() {
        definition[name] = value.clone();
    }
    definition
}

fn uri(number: usize) -> String {
    format!("https://tanks.example/id/Tanks/{number}")
}

/// Returns all exports that do not wait for disk space, oldest first.
fn exports(client: Client) -> Vec<Value> {
    let mut found = client.all("/api/v1/exports?limit=1000");
    found.retain(|export| export["status"] != "waiting");
    found.sort_by_key(|export| export["sequence"].as_u64());
    found
}

/// Returns the objects of a consumer that applied these files of a bucket in sequence order. Fails if a sequence is
/// missing.
fn consume(bucket: &Path, exports: &[Value]) -> BTreeMap<String, Value> {
    let mut held = BTreeMap::new();
    for (expected, export) in (1..).zip(exports) {
        assert_eq!(export["sequence"], expected, "a sequence is missing or repeated");
        let file = std::fs::read(bucket.join(export["key"].text())).unwrap();
        let file: Value = serde_json::from_slice(&file).unwrap();
        if export["kind"] == "full" {
            held.clear();
        }
        for object in file["data"].list() {
            let uri = object["uri"].string();
            if export["kind"] == "deleted" {
                held.remove(&uri);
            } else {
                held.insert(uri, object.clone());
            }
        }
    }
    held
}

fn shown(client: Client) -> BTreeMap<String, Value> {
    let page = client.read("/api/v1/business-objects/Tanks/objects?limit=1000");
    let items = page["items"].list().iter();
    items.map(|object| (object["uri"].string(), object.clone())).collect()
}

fn is_delivered(export: &Value) -> bool {
    export["status"] == "delivered"
}

#[test]
fn sigkill_at_any_moment_misses_no_change() {
    let dir = tempfile::tempdir().unwrap();
    let bucket = dir.path().join("data/buckets/tanks");
    let mut server = TestProcess::start(dir.path(), &[DATA, URL]);
    let body = definition(&json!({ "exportOnChange": true, "debounce": "20ms" }));
    server.client.put("/api/v1/business-objects", &body).expect(201);
    let (mut level, mut rounds) = (0, 0);
    // On a slow machine the first rounds may end before any export.
    while rounds < 6 || (rounds < 60 && exports(server.client).len() <= 6) {
        rounds += 1;
        let client = server.client;
        let first = level;
        let load = std::thread::spawn(move || {
            for step in first.. {
                let tank = uri(step % 7);
                let (mode, object) = if step % 4 == 3 {
                    ("DELETE", json!({ "uri": tank }))
                } else {
                    let valve = format!("urn:valve:{}", step % 3);
                    let valves = [json!({ "uri": valve, "state": format!("s{step}") })];
                    ("REPLACE", json!({ "uri": tank, "level": step, "valves": valves }))
                };
                let path = format!("/api/v1/business-objects/Tanks?mode={mode}");
                let body = json!({ "data": [object] }).to_string();
                match client.try_post(&path, body) {
                    Ok(answer) if answer.status == 200 => {}
                    _ => return step,
                }
            }
            unreachable!("the server was killed")
        });
        std::thread::sleep(Duration::from_millis(rand::random_range(100..600 + 100 * rounds)));
        server.kill();
        level = load.join().unwrap();
        server = TestProcess::start(dir.path(), &[DATA, URL]);
    }
    let client = server.client;
    wait_for("the consumer has what the view shows", || {
        let exports = exports(client);
        exports.iter().all(is_delivered) && consume(&bucket, &exports) == shown(client)
    });
    assert!(exports(client).len() > 6, "too few exports");
    server.stop();
}

#[test]
fn a_clock_that_jumps_by_a_year_neither_floods_nor_stops_a_schedule() {
    let dir = tempfile::tempdir().unwrap();
    let Some(clock) = Clock::at(dir.path(), "+0") else { return };
    let server = clock.start(dir.path(), &[DATA, URL]);
    let client = server.client;
    let body = definition(&json!({ "schedule": "*/4 * * * * *", "timezone": "Europe/Berlin" }));
    client.put("/api/v1/business-objects", &body).expect(201);
    let tank = json!({ "data": [{ "uri": uri(1), "level": 1 }] }).to_string();
    client.post("/api/v1/business-objects/Tanks?mode=ADD", tank).expect(200);
    let (mut seen, begun) = (0, Instant::now());
    for jump in ["+0", "+365d", "-365d", "+0"] {
        clock.set(jump);
        wait_for("the schedule runs", || exports(client).len() >= seen + 3);
        seen = exports(client).len();
    }
    let mut exports = exports(client);
    // The last one may be on its way.
    exports.retain(is_delivered);
    let mut dates: Vec<&str> = exports.iter().map(|export| export["key"].text()).collect();
    assert_eq!(&consume(&dir.path().join("data/buckets/tanks"), &exports), &shown(client));
    // `Tanks/Tanks-20260301T120000Z-...`: runs are due every four seconds, and each jump causes one late run.
    let is_late = |export: &&Value| {
        let second = export["key"].text()[25..27].parse::<u32>().unwrap();
        export["clock"] != "behind" && second % 4 >= 2
    };
    let late = exports.iter().filter(is_late).count();
    assert!(late <= 4, "{dates:?}");
    for key in &mut dates {
        *key = &key[12..27];
    }
    assert!(dates.is_sorted(), "a date is before that of an earlier sequence: {dates:?}");
    // While the clock is behind the date of an earlier export, exports repeat that date and are marked.
    let behind = |export: &&Value| export["clock"] == "behind";
    assert!(exports.iter().any(|export| behind(&export)), "{exports:?}");
    let unmarked = exports.iter().zip(dates).filter(|(export, _)| !behind(export));
    let mut unmarked: Vec<&str> = unmarked.map(|(_, date)| date).collect();
    let runs = unmarked.len();
    unmarked.dedup();
    assert_eq!(unmarked.len(), runs, "two runs in one second");
    assert!(exports.len() as u64 <= begun.elapsed().as_secs() / 4 + 8, "{}", exports.len());
    server.stop();
}

/// `PENSTOCK_QUEUE` sets the number of exports to queue. 10000 simulates a week.
#[test]
fn exports_queue_up_within_the_spool_and_drain_in_order() {
    let count: usize =
        std::env::var("PENSTOCK_QUEUE").ok().and_then(|n| n.parse().ok()).unwrap_or(300);
    let dir = tempfile::tempdir().unwrap();
    // The target's folder cannot be created while there is a file with its name.
    let away = dir.path().join("away");
    std::fs::write(&away, "").unwrap();
    // Each small export takes a block of the disk.
    let bytes = 4_096 * count;
    let target = format!("--service.export.targets.tanks.path={}", away.display());
    let spool = format!("--service.export.spool={bytes}");
    let arguments = [DATA, URL, "--service.export.targets.tanks.type=directory", &target, &spool];
    let server = TestProcess::start(dir.path(), &arguments);
    let client = server.client;
    let body = definition(&json!({ "exportOnChange": true, "debounce": "0s" }));
    client.put("/api/v1/business-objects", &body).expect(201);
    let change = |level: usize| {
        let tank = json!({ "data": [{ "uri": uri(level % 5), "level": level }] }).to_string();
        client.post("/api/v1/business-objects/Tanks?mode=REPLACE", tank).expect(200);
    };
    let mut pushed = 0;
    let mut early = 0;
    loop {
        change(pushed);
        let answer = client.post("/api/v1/business-objects/Tanks/push", "");
        if answer.status == 507 {
            let detail = answer.json()["detail"].string();
            assert!(detail.contains("service.export.spool"), "{detail}");
            break;
        }
        answer.expect(202);
        pushed += 1;
        // At this point the store's own caches are full.
        if pushed == count / 3 {
            early = server.memory_kb("VmRSS");
        }
    }
    let queued = exports(client).len();
    assert!((count..count + 10).contains(&queued), "{queued} of about {count}");
    // The gateway still accepts changes, and their export waits for spool capacity.
    (0..20).for_each(change);
    let mut waiting = Value::Null;
    wait_for("the export on change waits", || {
        let page = client.read("/api/v1/exports?limit=1");
        waiting = page["items"][0].clone();
        waiting["status"] == "waiting"
    });
    assert!(waiting["lastError"].has("spool"), "{waiting}");
    let path = format!("/api/v1/exports/{}", waiting["id"].text());
    assert_eq!(client.read(&path), waiting);
    client.post(&format!("{path}/park"), "").expect(409);
    let targets = client.read("/api/v1/targets");
    assert_eq!(targets["items"][0]["waiting"], 1, "{targets}");
    let status = client.read("/api/v1/status");
    assert_eq!(status["queue"]["waiting"], json!(["Tanks"]), "{status}");
    let metrics = client.get("/metrics").expect(200);
    let metrics = metrics.text();
    metrics.has_all(&[
        "penstock_business_object_waiting{business_object=\"Tanks\"} 1",
        "penstock_target_waiting{target=\"tanks\"} 1",
        "penstock_business_object_exports_total{business_object=\"Tanks\",kind=\"full\"} ",
    ]);
    let late = server.memory_kb("VmRSS");
    println!("{queued} exports of {bytes} bytes: {early} kB after a third, {late} kB");
    assert!(late < early + (16 << 10), "{early} kB after a third, {late} kB in the end");
    let logged = server.log().lines().filter(|line| line.contains("A delivery failed;")).count();
    assert!(logged <= 20, "{logged} lines about one failure");

    // A kill loses no export.
    server.kill();
    let server = TestProcess::start(dir.path(), &arguments);
    let client = server.client;
    assert!(exports(client).len() >= queued);
    std::fs::remove_file(&away).unwrap();
    let oldest = exports(client).into_iter().find(|export| !is_delivered(export)).unwrap();
    // The first attempt after the start may have delivered the export already.
    let retry = format!("/api/v1/exports/{}/retry", oldest["id"].text());
    let status = client.post(&retry, "").status;
    assert!(status == 200 || status == 409, "{status}");
    wait_for("everything is delivered", || {
        let targets = client.read("/api/v1/targets");
        targets["items"][0]["depth"] == 0 && targets["items"][0]["waiting"] == 0
    });
    let mut all = Vec::new();
    wait_for("the consumer has what the view shows", || {
        all = exports(client);
        all.iter().all(is_delivered) && {
            // The oldest files are no longer in the history, but they are in the bucket.
            consume(&away.join("tanks"), &all) == shown(client)
        }
    });
    let delivered: Vec<&str> = all.iter().filter_map(|e| e["deliveredAt"].as_str()).collect();
    assert!(delivered.is_sorted(), "delivered out of order");
    server.stop();
}

#[test]
fn a_stop_does_not_wait_for_a_schedule() {
    let dir = tempfile::tempdir().unwrap();
    let server = TestProcess::start(dir.path(), &[DATA, URL]);
    let body = definition(&json!({ "schedule": "0 3 * * *", "exportOnChange": true }));
    server.client.put("/api/v1/business-objects", &body).expect(201);
    assert_eq!(server.stop_with_signal("TERM").code(), Some(0));
}
