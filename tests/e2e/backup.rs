//! The continuous backup: a machine is lost, and a new one continues from the bucket.
use penstock_test_support::backup::{
    BackupKey, GATEWAY, Place, Site, add_well, define_wells, until_backup, until_shipped, wells,
};
use penstock_test_support::exports::prelude::{ceph, swift};
use penstock_test_support::prelude::*;
use std::process::Output;

#[test]
fn a_new_machine_continues_from_a_directory() {
    a_new_machine_continues(&Site::with_directory());
}

#[test]
fn a_new_machine_continues_from_ceph() {
    a_new_machine_continues(&Site::new(Place::create_at(ceph())));
}

#[test]
fn a_new_machine_continues_from_swift() {
    a_new_machine_continues(&Site::new(Place::create_at(swift())));
}

fn a_new_machine_continues(site: &Site) {
    let server = site.start("old");
    let client = server.client;
    define_wells(client);
    add_well(client, 0);
    push_and_wait(client, "Wells");
    until_shipped(client);
    for level in 1..20 {
        add_well(client, level);
    }
    let shipped = until_shipped(client);
    shipped.includes(&json!({"number": 1, "target": "backups", "cause": null, "holes": []}));
    let expected = wells(client);
    server.kill();
    site.lose("old");

    // A gateway without data does not begin again in silence.
    let refused = serve(site, "new");
    refused.fails(78, "penstock restore");
    refused.fails(78, "service.backup.new-era=true");
    assert!(!site.has_store("new"));

    // The whole state is in the bucket, and nothing else but the era and the head.
    offsite(site, "list").success().out().has_all(&[shipped["era"].text()]);
    offsite(site, "check").success();
    let keys = site.place.keys();
    let era = format!("_backup/{GATEWAY}/{}/", shipped["era"].text());
    let is_expected = |key: &String| key.starts_with(&era) || key.ends_with("/head.json");
    assert!(keys.iter().all(is_expected), "{keys:?}");

    site.restore("new", &[]).success();
    site.restore("new", &[]).fails(1, "is not empty");
    let server = site.start("new");
    let client = server.client;
    assert_eq!(wells(client), expected);
    let status = client.read("/api/v1/status");
    assert_eq!(status["gatewayId"], GATEWAY);
    // The old machine minted 20 identifiers, and made one export.
    assert_eq!(add_well(client, 20), "https://wells.example/1000021");
    assert_eq!(push_and_wait(client, "Wells")["sequence"], 1_000_002);

    // It ships into an era of its own, and can be lost too.
    let shipped = until_shipped(client);
    assert_eq!(shipped["number"], 2);
    let expected = wells(client);
    server.kill();
    site.lose("new");
    site.restore("third", &[]).success();
    let server = site.start("third");
    assert_eq!(wells(server.client), expected);
    assert_eq!(add_well(server.client, 21), "https://wells.example/2000022");
    server.stop();
}

#[test]
fn an_orderly_stop_sends_the_last_commits() {
    let site = Site::with_directory();
    let server = site.start("old");
    let client = server.client;
    define_wells(client);
    until_shipped(client);
    add_well(client, 1);
    let expected = wells(client);
    server.stop();
    let (_, newest) = quads(&site.data("old"));
    assert_eq!(site.place.head()["last"]["sequence"], newest);
    site.lose("old");
    site.restore("new", &[]).success();
    let server = site.start("new");
    assert_eq!(wells(server.client), expected);
    server.stop();
}

#[test]
fn a_stop_says_that_the_backup_lacks_commits() {
    let site = Site::with_directory();
    let mut server = site.start("old");
    define_wells(server.client);
    until_shipped(server.client);
    // Without its folder a directory is blocked.
    std::fs::remove_dir_all(site.dir().join("buckets/backups")).unwrap();
    add_well(server.client, 1);
    signal(server.id(), "TERM");
    wait_for("the gateway has stopped", || server.has_ended());
    server.wait_for_log("The backup does not have the last commits");
}

/// Runs `penstock serve` to its end, which it must reach soon.
fn serve(site: &Site, machine: &str) -> Output {
    site.command(machine, &["serve", "--server.port=0"]).output().unwrap()
}

fn offsite(site: &Site, action: &str) -> Output {
    site.command("reader", &["offsite-backup", action, "--from", "backups"]).output().unwrap()
}

#[test]
fn a_store_without_data_that_another_command_created_is_refused_beside_a_backup() {
    let site = Site::with_directory();
    let server = site.start("old");
    define_wells(server.client);
    until_shipped(server.client);
    server.kill();
    std::fs::create_dir(site.data("new")).unwrap();
    let data = "--service.data-dir=new";
    let create = ["api-key", "create", "--name", "first", "--role", "Admin", data];
    penstock(site.dir()).args(create).succeed();
    assert!(site.has_store("new"));
    let refused = serve(&site, "new");
    refused.fails(78, "penstock restore");
    refused.fails(78, "service.backup.new-era=true");
}

#[test]
fn an_empty_gateway_begins_a_new_era_if_it_is_told_to() {
    let mut site = Site::with_directory();
    let server = site.start("old");
    define_wells(server.client);
    let before = until_shipped(server.client);
    server.kill();
    std::fs::remove_file(site.dir().join("key-of-the-tests")).unwrap();
    site.more.push("--service.backup.new-era=true".to_owned());
    let server = site.start("new");
    let after = until_shipped(server.client);
    assert_eq!(after["number"], 2);
    assert!(after["era"] != before["era"], "{after}");
    server.stop();
    // A gateway with an era of its own does not begin another one.
    let server = site.start("new");
    assert_eq!(until_shipped(server.client)["era"], after["era"]);
    server.stop();
}

#[test]
fn a_moment_of_the_past_is_restored_as_a_copy_that_disturbs_nobody() {
    let site = Site::with_directory();
    let server = site.start("old");
    let client = server.client;
    define_wells(client);
    let begun = jiff::Timestamp::now();
    add_well(client, 1);
    until_shipped(client);
    let then = jiff::Timestamp::now();
    let expected = wells(client);
    add_well(client, 2);
    until_shipped(client);
    server.kill();

    let content = site.place.content();
    let long_before = (begun - jiff::SignedDuration::from_hours(1)).to_string();
    site.restore("none", &["--at", &long_before, "--copy"]).fails(1, "has no state of");
    assert!(!site.has_store("none"));
    site.restore("copy", &["--at", &then.to_string(), "--copy"]).success();
    let server = site.start("copy");
    let client = server.client;
    assert_eq!(wells(client), expected);
    until_backup(client, "the copy says so", |backup| backup["state"] == "copy");
    add_well(client, 3);
    let pushed = client.post("/api/v1/business-objects/Wells/push", "").expect(202).json();
    let id = pushed["exports"][0]["id"].text();
    let targets = client.read("/api/v1/targets");
    assert!(targets["items"][0]["paused"].is_string(), "{targets}");
    server.stop();
    let server = site.start("copy");
    let export = server.client.read(&format!("/api/v1/exports/{id}"));
    assert_eq!(export["status"], "queued");
    server.stop();
    assert!(site.place.content() == content, "the copy changed the bucket");
    assert!(!site.dir().join("exported").exists(), "the copy exported");

    // The same moment without `--copy` takes over.
    site.restore("back", &["--at", &then.to_string()]).success();
    let server = site.start("back");
    assert_eq!(wells(server.client), expected);
    assert_eq!(until_shipped(server.client)["number"], 2);
    server.stop();
}

#[test]
fn another_key_begins_another_era_and_a_recipient_restores_nothing() {
    let mut site = Site::with_directory();
    let first_key = site.key.clone();
    let server = site.start("old");
    define_wells(server.client);
    add_well(server.client, 1);
    let first = until_shipped(server.client);
    let before = wells(server.client);
    server.stop();
    let second_key = BackupKey::new(site.dir());
    site.key.clone_from(&second_key.recipient);
    let server = site.start("old");
    add_well(server.client, 2);
    let second = until_shipped(server.client);
    assert_eq!(second["number"], 2);
    let expected = wells(server.client);
    server.kill();
    site.lose("old");

    site.restore("new", &[]).fails(1, "is a recipient, which cannot decrypt");
    site.key.clone_from(&first_key);
    site.restore("new", &[]).fails(1, "is encrypted for the key with the fingerprint");
    assert!(!site.has_store("new"));
    // The era before is as it was.
    site.restore("copy", &["--era", first["era"].text(), "--copy"]).success();
    let server = site.start("copy");
    assert_eq!(wells(server.client), before);
    server.stop();
    site.key = second_key.identity;
    // The era before is named, and is no finding.
    offsite(&site, "check").success().out().has_all(&[first["era"].text(), "another key"]);
    site.restore("new", &[]).success();
    let server = site.start("new");
    assert_eq!(wells(server.client), expected);
    server.stop();
}

#[test]
fn a_target_without_a_key_is_refused_unless_that_is_meant() {
    let site = Site::with_directory();
    let mut settings = site.settings("old");
    settings.retain(|setting| !setting.starts_with("--service.backup.key="));
    let mut serve = penstock(site.dir());
    let refused = serve.args(["serve", "--server.port=0"]).args(&settings).output().unwrap();
    refused.fails(78, "service.backup.insecure");
    settings.push("--service.backup.insecure=true".to_owned());
    let server = TestProcess::start(site.dir(), &lent(&settings));
    define_wells(server.client);
    until_shipped(server.client);
    server.kill();
    assert!(
        !site.place.keys_with(".segment").is_empty() && site.place.keys_with(".age").is_empty()
    );
    // With a key, what is not encrypted is another era.
    let server = site.start("old");
    assert_eq!(until_shipped(server.client)["number"], 2);
    add_well(server.client, 2);
    until_shipped(server.client);
    assert!(!server.kill().contains(&site.key), "the log has the key");
    assert!(!site.place.keys_with(".segment.age").is_empty());
}
