//! One gateway writes a backup: the old machine that comes back, a clone of its disk, and a server that does not refuse
//! a wrong `If-Match`.
use crate::sources::{Broker, READINGS, connection};
use penstock_test_support::backup::{
    Place, Site, add_well, define_wells, head_key, until_backup, until_replaced, until_shipped,
    wells,
};
use penstock_test_support::bucket::{BucketFault, MemoryBucket};
use penstock_test_support::exports::prelude::ceph;
use penstock_test_support::prelude::*;

#[test]
fn the_old_machine_and_a_clone_of_its_disk_change_nothing_until_they_take_over() {
    let mut site = Site::new(Place::create_at(ceph()));
    let broker_dir = tempfile::tempdir().unwrap();
    let broker = Broker::start(broker_dir.path(), None);
    let receiver = Receiver::start();
    site.more = receiver.settings("ops", "penstock.ingestion.committed");
    site.more.extend([
        "--service.sources.plant.type=mqtt".to_owned(),
        format!("--service.sources.plant.url=mqtt://127.0.0.1:{}", broker.port),
        "--service.sources.plant.subscriptions[0].topic=readings/#".to_owned(),
        "--service.sources.plant.subscriptions[0].business-object=Readings".to_owned(),
    ]);
    let server = site.start("old");
    let client = server.client;
    define_wells(client);
    client
        .put("/api/v1/business-objects", &json!({"name": "Readings", "config": READINGS}))
        .expect(201);
    add_well(client, 1);
    wait_for("the source is connected", || connection(client)["state"] == "connected");
    push_and_wait(client, "Wells");
    receiver.until("the first event", |received| !received.is_empty());
    until_shipped(client);
    let expected = wells(client);
    server.kill();
    site.restore("new", &[]).success();
    let server = site.start("new");
    assert_eq!(wells(server.client), expected);
    wait_for("the source is connected", || connection(server.client)["state"] == "connected");
    let of_new = until_shipped(server.client);
    server.stop();

    let content = site.place.content();
    let exported = exported(&site);
    let events = receiver.received().len();
    site.copy_disk("old", "clone");
    for machine in ["old", "clone"] {
        let server = site.start(machine);
        let client = server.client;
        let backup = until_replaced(client);
        assert!(backup["replacedBy"].text().contains(of_new["era"].text()), "{backup}");
        let status = client.read("/api/v1/status");
        let warnings = status["warnings"].list();
        assert!(warnings.iter().any(|warning| warning.has("take-over")), "{status}");
        server.wait_for_log("Another machine has taken over this gateway");
        let metrics = client.get("/metrics").expect(200).text();
        metrics.has_all(&["\npenstock_backup_replaced 1"]);
        let overview = client.send("GET", "/admin", &[HTML], "").unwrap().expect(200).text();
        assert!(overview.contains("Another gateway replaced this one."), "{overview}");
        // It still takes what is sent to it, and keeps what would leave it.
        add_well(client, 100);
        let pushed = client.post("/api/v1/business-objects/Wells/push", "").expect(202).json();
        let id = pushed["exports"][0]["id"].string();
        broker.publish("readings/a", [json!({"tag": machine, "value": 1}).to_string()].into_iter());
        wait_for("the event waits", || {
            client.read("/api/v1/webhooks")["items"][0]["waiting"].as_u64() >= Some(1)
        });
        assert!(client.read("/api/v1/targets")["items"][0]["paused"].is_string());
        assert!(connection(client)["state"] != "connected", "{}", connection(client));
        assert!(connection(client)["error"].has("has taken over"), "{}", connection(client));
        assert_eq!(client.read(&format!("/api/v1/exports/{id}"))["status"], "queued");
        server.stop();
        // The next start reads it from the disk, and from the bucket.
        let server = site.start(machine);
        until_replaced(server.client);
        assert_eq!(server.client.read(&format!("/api/v1/exports/{id}"))["status"], "queued");
        server.stop();
        assert!(site.place.content() == content, "{machine} changed the bucket");
        assert_eq!(self::exported(&site), exported);
        assert_eq!(receiver.received().len(), events);
    }

    // What waited leaves it once it takes over on purpose.
    let server = site.start("old");
    let client = server.client;
    until_replaced(client);
    site.command("old", &["offsite-backup", "take-over"]).succeed();
    let backup = until_shipped(client);
    assert_eq!((&of_new["number"], &backup["number"]), (&json!(2), &json!(3)));
    wait_for("the export is delivered", || {
        client.read("/api/v1/exports?limit=1")["items"][0]["status"] == "delivered"
    });
    receiver.until("the event", |received| received.len() > events);
    wait_for("the messages are stored", || {
        let readings = client.all("/api/v1/business-objects/Readings/objects?limit=10");
        readings.len() == 2
    });
    assert!(client.get("/metrics").text().contains("\npenstock_backup_replaced 0"));
    server.stop();
    let server = site.start("new");
    until_replaced(server.client);
    server.stop();
}

#[test]
fn a_damaged_state_keeps_no_gateway_from_starting() {
    let site = Site::with_directory();
    let server = site.start("old");
    let client = server.client;
    define_wells(client);
    add_well(client, 1);
    let begun = until_shipped(client);
    server.stop();
    let folder = site.data("old").join("backup");
    let zero = |name: &str| std::fs::write(folder.join(name), [0_u8; 700]).unwrap();

    // It continues with the copy.
    zero("state.json");
    let server = site.start("old");
    let client = server.client;
    server.wait_for_log("so the backup continues with its copy");
    add_well(client, 2);
    assert_eq!(until_shipped(client)["era"], begun["era"]);
    assert_eq!(push_and_wait(client, "Wells")["sequence"], 1);
    let warnings = client.read("/api/v1/status")["warnings"].to_string();
    assert!(warnings.contains("backup/state.json.damaged"), "{warnings}");
    assert!(folder.join("state.json.damaged").exists());
    server.stop();

    // Without one it serves, and sends nothing until it takes over.
    zero("state.json");
    zero("state.copy.json");
    let head = site.place.head();
    let server = site.start("old");
    let client = server.client;
    let backup =
        until_backup(client, "the backup is blocked", |backup| backup["state"] == "blocked");
    assert!(backup["cause"].has("take-over"), "{backup}");
    add_well(client, 3);
    assert!(client.read("/api/v1/targets")["items"][0]["paused"].has("take-over"));
    assert_eq!(site.place.head(), head);
    site.command("old", &["offsite-backup", "take-over"]).succeed();
    let taken = until_shipped(client);
    assert_eq!(taken["number"], 2);
    assert_eq!(push_and_wait(client, "Wells")["sequence"], 2);
    let expected = wells(client);
    server.stop();
    site.lose("old");
    site.restore("new", &[]).success();
    let server = site.start("new");
    assert_eq!(wells(server.client), expected);
    server.stop();
}

/// Returns the files of exports.
fn exported(site: &Site) -> Vec<String> {
    penstock_test_support::exports::prelude::files(&site.dir().join("exported"))
}

#[test]
fn of_two_clones_that_run_at_once_one_stops() {
    let site = Site::new(Place::create_at(ceph()));
    let server = site.start("one");
    define_wells(server.client);
    until_shipped(server.client);
    server.stop();
    site.copy_disk("one", "two");
    let servers = ["one", "two"].map(|machine| site.start(machine));
    let state =
        |server: &TestProcess| server.client.read("/api/v1/status")["backup"]["state"].string();
    let mut level = 0;
    wait_for("one of them is replaced", || {
        level += 1;
        for server in &servers {
            add_well(server.client, level);
        }
        servers.iter().any(|server| state(server) == "replaced")
    });
    // The other one continues: what it has is what the bucket has.
    let winner = servers.iter().find(|server| state(server) != "replaced").expect("one continues");
    add_well(winner.client, 0);
    until_shipped(winner.client);
    let expected = wells(winner.client);
    for server in servers {
        server.kill();
    }
    site.restore("new", &["--copy"]).success();
    let server = site.start("new");
    assert_eq!(wells(server.client), expected);
    server.stop();
}

#[test]
fn where_a_server_ignores_if_match_the_head_is_read_before_each_write() {
    let bucket = MemoryBucket::start();
    bucket.choose(|_, _| BucketFault::IgnorePreconditions);
    let server = bucket.server.clone();
    let site = Site::new(Place::Bucket { server, name: MemoryBucket::NAME.to_owned() });
    let server = site.start("old");
    let client = server.client;
    define_wells(client);
    add_well(client, 1);
    let backup = until_shipped(client);
    assert_eq!(backup["singleWriter"], false);
    let warnings = client.read("/api/v1/status")["warnings"].to_string();
    assert!(warnings.contains("does not refuse a wrong If-Match"), "{warnings}");
    let requests = bucket.requests();
    let of_head = requests.iter().filter(|(_, key)| *key == head_key());
    let methods: Vec<&str> = of_head.map(|(method, _)| method.as_str()).collect();
    let unread = methods.windows(2).any(|pair| pair == ["PUT", "PUT"]);
    assert!(!unread && methods.first() == Some(&"GET"), "{methods:?}");

    // Another machine takes over while this one runs. It notices before it overwrites the head.
    site.restore("new", &[]).success();
    let taken = site.place.head();
    add_well(client, 2);
    until_replaced(client);
    assert_eq!(site.place.head(), taken);
    server.stop();
    let server = site.start("new");
    until_shipped(server.client);
    server.stop();

    // A server that refuses a wrong `If-Match` is trusted.
    bucket.heal();
    let server = site.start("new");
    until_backup(server.client, "the server is trusted", |backup| backup["singleWriter"] == true);
    server.stop();
}
