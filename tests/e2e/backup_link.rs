//! The continuous backup over a link that is dead for a while or from the start, and with credentials that may not delete.
use penstock_test_support::backup::{
    Place, Site, add_well, define_wells, until_backup, until_shipped, wells,
};
use penstock_test_support::bucket::{BucketFault, MemoryBucket};
use penstock_test_support::exports::prelude::{Fault, Link, Server, ceph, new_name};
use penstock_test_support::prelude::*;
use tokio::runtime::Runtime;

#[test]
fn a_dead_link_delays_no_commit_and_all_of_it_follows_later() {
    let (runtime, server, name) = (Runtime::new().unwrap(), ceph(), new_name());
    runtime.block_on(server.create_plain(&name));
    let link = runtime.block_on(Link::to(&server.endpoint, || Fault::Pass));
    let direct = Place::Bucket { server: server.clone(), name: name.clone() };
    let site = Site::new(Place::Bucket { server: server.at(&link.endpoint), name });
    let gateway = site.start("old");
    define_wells(gateway.client);
    add_well(gateway.client, 0);
    let before = until_shipped(gateway.client);

    link.set(Fault::Refuse(u64::MAX));
    for level in 1..30 {
        add_well(gateway.client, level);
    }
    let blocked = until_backup(gateway.client, "the backup says why it waits", |backup| {
        backup["cause"].is_string() && backup["lagBytes"].as_u64() > Some(0)
    });
    assert_eq!(blocked["restorable"], true, "{blocked}");
    assert!(blocked["causeSince"].is_string(), "{blocked}");
    assert_eq!(direct.head()["last"]["sequence"], before["lastSequence"]);
    gateway.kill();
    // Nor does it delay the start.
    let gateway = site.start("old");
    add_well(gateway.client, 30);
    let expected = wells(gateway.client);
    assert_eq!(expected.len(), 31);

    link.set(Fault::Pass);
    runtime.block_on(link.listen());
    let after = until_shipped(gateway.client);
    assert_eq!([&after["era"], &after["cause"]], [&before["era"], &Value::Null]);
    gateway.kill();
    site.restore("new", &["--copy"]).success();
    let gateway = site.start("new");
    assert_eq!(wells(gateway.client), expected);
    gateway.stop();
}

#[test]
fn without_the_right_to_delete_everything_but_the_cleanup_works() {
    let (runtime, owner, name) = (Runtime::new().unwrap(), ceph(), new_name());
    let (user, server) = Server::user();
    runtime.block_on(owner.create_plain(&name));
    let rights = ["s3:GetObject", "s3:PutObject", "s3:ListBucket"];
    runtime.block_on(owner.allow(&name, &user, &rights));
    let site = Site::new(Place::Bucket { server, name });
    let gateway = site.start("old");
    define_wells(gateway.client);
    add_well(gateway.client, 1);
    let backup = until_shipped(gateway.client);
    assert_eq!(backup["mayDelete"], false);
    let warnings = gateway.client.read("/api/v1/status")["warnings"].to_string();
    assert!(warnings.contains("may not delete objects"), "{warnings}");
    let expected = wells(gateway.client);
    gateway.kill();
    site.restore("new", &[]).success();
    let gateway = site.start("new");
    assert_eq!(wells(gateway.client), expected);
    until_shipped(gateway.client);
    gateway.stop();
}

#[test]
fn a_first_start_without_a_link_asks_once_for_a_backup() {
    let bucket = MemoryBucket::start();
    bucket.choose(|_, _| BucketFault::Cut);
    let server = bucket.server.clone();
    let site = Site::new(Place::Bucket { server, name: MemoryBucket::NAME.to_owned() });
    let gateway = site.start("new");
    let log = gateway.kill();
    assert_eq!(log.matches("could not be found out before the start").count(), 1, "{log}");
}
