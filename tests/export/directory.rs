//! A push delivers a valid file to the target's directory.
use nix::sys::stat::Mode;
use penstock_base::commit::NoClient;
use penstock_base::error;
use penstock_export::verify;
use penstock_resources::export::ExportKind;
use penstock_test_support::exports::prelude::*;
use sha2::{Digest, Sha256};
use std::os::unix::fs::symlink;

#[tokio::test(flavor = "multi_thread")]
async fn a_push_delivers_a_file_to_the_directory() {
    let plant = Plant::with_pumps(0..1203, 5);
    let exporter = plant.open(embedded());
    let entry = push_one(&exporter, &pump("Pump 1/ü", &["plant-a"]));
    assert_eq!((entry.sequence, entry.object_count, entry.kind), (1, 1203, ExportKind::Full));
    assert_eq!(entry.status, ExportStatus::Queued);
    let spooled =
        std::fs::read(exporter.spool_folder().join(format!("{}.json", entry.id))).unwrap();

    let delivered = run_until_delivered(&exporter, &entry).await;
    assert_eq!(delivered.attempts, 1);
    assert!(delivered.delivered_at.is_some());

    assert_eq!(files(&plant.bucket("plant-a")), [entry.key.as_str()]);
    assert!(entry.key.starts_with("Pump%201%2F%C3%BC/Pump%201%2F%C3%BC-"), "{}", entry.key);
    assert!(entry.key.ends_with("Z-000000000001.json"), "{}", entry.key);
    let path = plant.bucket("plant-a").join(&entry.key);
    let bytes = std::fs::read(&path).unwrap();
    assert_eq!(bytes, spooled);
    assert_eq!(entry.sha256, format!("{:x}", Sha256::digest(&bytes)));

    let verified = verify::verify_file(&path).unwrap();
    assert_eq!((verified.object_count, verified.object_type.as_str()), (1203, "Pump 1/ü"));
    assert_eq!(verified.data_checksum, entry.data_checksum);
    let json: Value = serde_json::from_slice(&bytes).unwrap();
    let uris: Vec<&str> = json["data"].list().iter().map(|o| o["uri"].text()).collect();
    assert_eq!(uris.len(), 1203);
    assert!(uris.is_sorted());
}

/// What is written below the mount point of a disk that is not mounted does not reach the consumers.
#[tokio::test(flavor = "multi_thread")]
#[expect(clippy::disallowed_methods, reason = "the files need not outlive a power cut")]
async fn a_folder_that_is_gone_blocks_the_target_until_it_is_back() {
    let (plant, out) = (Plant::with_pumps(0..3, 5), tempfile::tempdir().unwrap());
    let targets = ["plant-a", "plant-b"].map(|name| (name.to_owned(), directory(out.path())));
    let targets = Targets { named: targets.into(), ..embedded() };
    // The history keeps one record, of another target.
    let open = || {
        let options = ExportOptions { history: 1, ..plant.options(targets.clone()) };
        Exporter::open(plant.store.clone(), options).unwrap()
    };
    let exporter = open();
    run_until_delivered(&exporter, &push_pump(&exporter)).await;
    run_until_delivered(&exporter, &push_one(&exporter, &pump("Pump", &["plant-b"]))).await;
    drop(exporter);
    let (root, elsewhere) = (out.path().join("plant-a"), out.path().join("elsewhere"));
    std::fs::rename(&root, &elsewhere).unwrap();

    let exporter = open();
    let entry = push_pump(&exporter);
    let tested = exporter.test_target("plant-a").await.unwrap();
    assert_eq!((tested.ok, tested.caused_by), (false, Some(Cause::Bucket)), "{tested:?}");
    let running = run(&exporter);
    let blocked = until_status(&exporter, &entry.id, ExportStatus::Blocked).await;
    let cause = blocked.last_error.unwrap();
    assert!(cause.contains("has no folder `plant-a`"), "{cause}");
    assert_eq!(find_target(&exporter, "plant-a").blocked_by, Some(Cause::Bucket));
    assert!(!root.exists());

    std::fs::rename(&elsewhere, &root).unwrap();
    exporter.retry(&NoClient, &entry.id).unwrap();
    until_delivered(&exporter, &entry).await;
    running.stop().await;
    assert_eq!(files(&root).len(), 2);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_folder_that_is_gone_is_missed_although_its_only_export_is_replayed() {
    let (plant, out) = (Plant::with_pumps(0..3, 5), tempfile::tempdir().unwrap());
    let exporter = plant.open(plant_a(directory(out.path())));
    let entry = push_pump(&exporter);
    run_until_delivered(&exporter, &entry).await;
    exporter.replay(&NoClient, &entry.id).unwrap();
    drop(exporter);
    std::fs::remove_dir_all(out.path().join("plant-a")).unwrap();
    let exporter = plant.open(plant_a(directory(out.path())));
    let tested = exporter.test_target("plant-a").await.unwrap();
    assert_eq!((tested.ok, tested.caused_by), (false, Some(Cause::Bucket)), "{tested:?}");
}

/// A folder that has no export yet may be gone without a loss.
#[tokio::test(flavor = "multi_thread")]
async fn a_folder_without_exports_is_created() {
    let (plant, out) = (Plant::with_pumps(0..3, 5), tempfile::tempdir().unwrap());
    let exporter = plant.open(plant_a(directory(&out.path().join("new"))));
    let entry = push_pump(&exporter);
    exporter.park(&NoClient, &entry.id).unwrap();
    let tested = exporter.test_target("plant-a").await.unwrap();
    assert!(tested.ok && tested.cause.unwrap().contains("does not exist yet"));
    exporter.retry(&NoClient, &entry.id).unwrap();
    run_until_delivered(&exporter, &entry).await;
    assert_eq!(files(&out.path().join("new/plant-a")), [entry.key]);
}

/// Other users who can write to the directory must not be able to redirect what the gateway writes there.
#[tokio::test(flavor = "multi_thread")]
async fn links_below_the_root_are_not_followed() {
    let plant = Plant::with_pumps(0..3, 5);
    let exporter = plant.open(embedded());
    let entry = push_pump(&exporter);
    let elsewhere = plant.dir.path().join("elsewhere");
    let victim = elsewhere.join("victim");
    std::fs::create_dir(&elsewhere).unwrap();
    std::fs::write(&victim, "precious").unwrap();
    // The root itself is the operator's choice.
    std::fs::create_dir_all(plant.dir.path().join("buckets")).unwrap();
    std::fs::create_dir(plant.dir.path().join("real")).unwrap();
    symlink(plant.dir.path().join("real"), plant.bucket("plant-a")).unwrap();
    let folder = plant.bucket("plant-a").join("Pump");
    symlink(&elsewhere, &folder).unwrap();

    let running = run(&exporter);
    let blocked = until_status(&exporter, &entry.id, ExportStatus::Blocked).await;
    let cause = blocked.last_error.unwrap();
    assert!(cause.contains("`Pump` is a link or a file, not a folder; remove it"), "{cause}");
    running.stop().await;

    std::fs::remove_file(&folder).unwrap();
    std::fs::create_dir(&folder).unwrap();
    symlink(&victim, folder.join(format!(".{}.part", entry.id))).unwrap();
    exporter.retry(&NoClient, &entry.id).unwrap();
    run_until_delivered(&exporter, &entry).await;
    assert_eq!(std::fs::read(&victim).unwrap(), b"precious");
    let path = plant.bucket("plant-a").join(&entry.key);
    assert!(path.symlink_metadata().unwrap().is_file());
    verify::verify_file(&path).unwrap();
    assert_eq!(std::fs::read_dir(&elsewhere).unwrap().count(), 1);
}

/// A FIFO would block the thread that opens it for ever.
#[tokio::test(flavor = "multi_thread")]
async fn what_is_no_regular_file_blocks_the_target() {
    type Plants = (&'static str, fn(&Path));
    let obstacles: [Plants; 3] = [
        ("is a FIFO", |path| nix::unistd::mkfifo(path, Mode::S_IRWXU).unwrap()),
        ("is a link", |path| symlink("/etc/hostname", path).unwrap()),
        ("is a folder", |path| std::fs::create_dir(path).unwrap()),
    ];
    for (reason, put_obstacle) in obstacles {
        let plant = Plant::with_pumps(0..3, 5);
        let exporter = plant.open(embedded());
        let entry = push_pump(&exporter);
        let path = plant.bucket("plant-a").join(&entry.key);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        put_obstacle(&path);
        let running = run(&exporter);
        let blocked = until_status(&exporter, &entry.id, ExportStatus::Blocked).await;
        running.stop().await;
        let cause = blocked.last_error.unwrap();
        assert!(
            cause.contains(reason) && cause.contains("not a regular file; remove it"),
            "{cause}"
        );
    }
}

#[test]
fn one_render_serves_every_target() {
    let plant = Plant::with_pumps(0..3, 1);
    let exporter = plant.open(embedded());
    let push = exporter
        .push(&pump("Pump", &["plant-a", "plant-b", "plant-a"]), ExportRequester::gateway())
        .unwrap();
    let targets: Vec<_> = push.exports.iter().map(|e| (e.target.as_str(), e.sequence)).collect();
    assert_eq!(targets, [("plant-a", 1), ("plant-b", 1)]);
    assert_eq!(push.exports[0].sha256, push.exports[1].sha256);
    let contents = push.exports.iter().map(|e| exporter.open_content(&e.id).unwrap());
    assert!(contents.map(|content| content.length).all(|length| length == push.exports[0].bytes));
}

#[test]
fn sequences_continue_for_each_target_and_name() {
    let plant = Plant::with_pumps(0..1, 1);
    let exporter = plant.open(embedded());
    let mut first = pump("Pump", &["plant-a"]);
    assert_eq!(push_one(&exporter, &first).sequence, 1);
    assert_eq!(push_one(&exporter, &first).sequence, 2);
    // A Business Object that was deleted and created again has another id, but the same name.
    first.object.id = "another".to_owned();
    assert_eq!(push_one(&exporter, &first).sequence, 3);
    assert_eq!(push_one(&exporter, &pump("Pump", &["plant-b"])).sequence, 1);
    assert_eq!(push_one(&exporter, &pump("Valve", &["plant-a"])).sequence, 1);
}

#[test]
fn disabled_business_objects_and_those_without_targets_are_refused() {
    let plant = Plant::with_pumps(0..1, 1);
    let exporter = plant.open(embedded());
    let mut disabled = pump("Pump", &["plant-a"]);
    disabled.object.definition.enabled = false;
    let error = exporter.push(&disabled, ExportRequester::gateway()).unwrap_err();
    assert_eq!(error.class, error::ErrorClass::Conflict);
    assert!(error.detail.contains("disabled"), "{error}");
    let error = exporter.push(&pump("Pump", &[]), ExportRequester::gateway()).unwrap_err();
    assert_eq!(error.class, error::ErrorClass::Conflict);
    assert!(error.detail.contains("pushTargets"), "{error}");
    assert!(plant.spooled().is_empty());
}
