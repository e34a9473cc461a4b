//! Exports that were queued when the gateway stopped are delivered after the next start, in order.
use penstock_export::verify;
use penstock_test_support::exports::prelude::*;

#[tokio::test(flavor = "multi_thread")]
async fn queued_exports_are_delivered_in_order_after_a_restart() {
    let plant = Plant::with_pumps(0..3, 1);
    let business_object = pump("Pump", &["plant-a"]);
    let exporter = plant.open(embedded());
    let queued: Vec<_> = (0..5).map(|_| push_one(&exporter, &business_object)).collect();
    drop(exporter);

    let plant = plant.restart();
    let exporter = plant.open(embedded());
    let listed = exporter.list(None, 100).unwrap();
    let newest_first: Vec<_> = queued.iter().rev().cloned().collect();
    assert_eq!(listed, newest_first);
    let target = find_target(&exporter, "plant-a");
    assert_eq!((target.depth, target.oldest), (5, Some(queued[0].created_at.clone())));

    let last = run_until_delivered(&exporter, &queued[4]).await;
    let mut delivered = exporter.list(None, 100).unwrap();
    assert!(delivered.iter().all(|entry| entry.status == ExportStatus::Delivered));
    delivered.reverse();
    assert!(delivered.is_sorted_by_key(|entry| entry.sequence));
    assert!(delivered.is_sorted_by_key(|entry| entry.delivered_at.clone()));
    assert_eq!(files(&plant.bucket("plant-a")).len(), 5);
    let next = push_one(&exporter, &business_object);
    assert_eq!(next.sequence, last.sequence + 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_restart_and_a_restore_keep_formats_and_extended_metadata() {
    let (plant, out) = (Plant::with_pumps(0..3, 1), tempfile::tempdir().unwrap());
    let mut configured = Targets { has_extended_metadata: true, ..embedded() };
    let mut plain = embedded();
    for (name, format) in [("lines", ExportFormat::JsonLines), ("documents", ExportFormat::Json)] {
        configured.named.insert(name.to_owned(), Target { format, ..directory(out.path()) });
        plain.named.insert(name.to_owned(), directory(out.path()));
    }
    let pumps = pump("Pump", &["lines", "documents"]);
    let exporter = plant.open(configured);
    let push = || exporter.push(&pumps, ExportRequester::gateway()).unwrap().exports;
    let queued = [push(), push()].concat();
    drop(exporter);
    let backup = tempfile::tempdir().unwrap();
    let plant = plant.copy_store_to(backup.path());

    // The settings at the next start do not matter for queued exports.
    let exporter = plant.open(plain.clone());
    let running = run(&exporter);
    for entry in &queued {
        until_delivered(&exporter, entry).await;
    }
    running.stop().await;
    drop(exporter);
    let read_all = || -> BTreeMap<String, Vec<u8>> {
        let read = |key: String| (key.clone(), std::fs::read(out.path().join(key)).unwrap());
        files(out.path()).into_iter().map(read).collect()
    };
    let delivered = read_all();
    assert_eq!(delivered.len(), 6);
    for entry in &queued {
        let path = out.path().join(&entry.target).join(&entry.key);
        let extended = verify::verify_file(&path).unwrap().extended.unwrap();
        assert_eq!((extended.sequence, &extended.export_id), (entry.sequence, &entry.id));
        // The check of a consumer without Penstock.
        let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/check-export");
        Command::new(script).arg(&path).succeed();
    }

    // The restored store has the exports in its queue, without their files. The targets have them; what a target has
    // lost of the metadata is in the store.
    let lines = queued.iter().find(|entry| entry.target == "lines").unwrap();
    let metadata = out.path().join("lines").join(lines.metadata_key().unwrap());
    std::fs::remove_file(metadata).unwrap();
    let plant = plant.restore_store_from(backup.path());
    std::fs::remove_dir_all(plant.dir.path().join("spool")).unwrap();
    let exporter = plant.open(plain);
    let running = run(&exporter);
    for entry in &queued {
        until_delivered(&exporter, entry).await;
    }
    running.stop().await;
    assert_eq!(read_all(), delivered);
}

#[test]
fn a_file_without_an_entry_is_removed() {
    let plant = Plant::with_pumps(0..1, 1);
    let exporter = plant.open(embedded());
    let entry = push_pump(&exporter);
    drop(exporter);
    // A crash between writing the file and the commit leaves a file without an entry.
    std::fs::write(plant.dir.path().join("spool/0190-orphan.json"), "{").unwrap();
    let plant = plant.restart();
    let exporter = plant.open(embedded());
    assert_eq!(plant.spooled(), [format!("{}.json", entry.id)]);
    assert_eq!(exporter.get(&entry.id).unwrap(), Some(entry));
}

#[tokio::test(flavor = "multi_thread")]
async fn an_entry_without_its_file_is_blocked_until_it_is_parked() {
    let plant = Plant::with_pumps(0..1, 1);
    let business_object = pump("Pump", &["plant-a"]);
    let exporter = plant.open(embedded());
    let (lost, whole) =
        (push_one(&exporter, &business_object), push_one(&exporter, &business_object));
    drop(exporter);
    std::fs::remove_file(plant.dir.path().join(format!("spool/{}.json", lost.id))).unwrap();

    let plant = plant.restart();
    let exporter = plant.open(embedded());
    let entry = exporter.get(&lost.id).unwrap().unwrap();
    assert_eq!(entry.status, ExportStatus::Blocked);
    assert!(entry.last_error.unwrap().contains("missing from the spool"));
    let running = run(&exporter);
    until_entry(&exporter, &lost.id, |entry| entry.attempts > 0).await;
    assert_eq!(status_of(&exporter, &whole), ExportStatus::Queued);
    park(&exporter, &lost).await;
    until_delivered(&exporter, &whole).await;
    running.stop().await;
    // The full export after it replaces it.
    assert_eq!(exporter.get(&lost.id).unwrap(), None);
    assert_eq!(exporter.spool_usage().parked, 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_unrecorded_delivery_is_repeated_under_the_same_key() {
    let plant = Plant::with_pumps(0..1, 1);
    let exporter = plant.open(embedded());
    let entry = push_pump(&exporter);
    let path = plant.bucket("plant-a").join(&entry.key);
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::fs::copy(exporter.spool_folder().join(format!("{}.json", entry.id)), &path).unwrap();
    run_until_delivered(&exporter, &entry).await;
    assert_eq!(files(&plant.bucket("plant-a")), [entry.key]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_start_without_the_configured_targets_keeps_their_exports_queued() {
    let plant = Plant::with_pumps(0..1, 1);
    let business_object = pump("Pump", &["plant-a"]);
    let out = tempfile::tempdir().unwrap();
    let targets = plant_a(directory(out.path()));
    let exporter = plant.open(targets.clone());
    let entries = [push_one(&exporter, &business_object), push_one(&exporter, &business_object)];
    drop(exporter);

    let plant = plant.restart();
    let exporter = plant.open(embedded());
    let running = run(&exporter);
    let blocked =
        until_entry(&exporter, &entries[0].id, |entry| entry.status == ExportStatus::Blocked).await;
    running.stop().await;
    let cause = blocked.last_error.unwrap();
    assert!(cause.contains("service.export.targets.plant-a"), "{cause}");
    let state = find_target(&exporter, "plant-a");
    assert_eq!((state.blocked_by, state.depth), (Some(Cause::Gateway), 2));
    assert_eq!(files(&plant.bucket("plant-a")), Vec::<String>::new());
    drop(exporter);

    let plant = plant.restart();
    let exporter = plant.open(targets);
    run_until_delivered(&exporter, &entries[1]).await;
    assert_eq!(files(&out.path().join("plant-a")), entries.map(|entry| entry.key));
}

#[tokio::test(flavor = "multi_thread")]
async fn exports_queued_for_the_embedded_directory_go_to_a_target_configured_later() {
    let plant = Plant::with_pumps(0..1, 1);
    let exporter = plant.open(embedded());
    let entry = push_pump(&exporter);
    drop(exporter);
    let plant = plant.restart();
    let out = tempfile::tempdir().unwrap();
    let targets = plant_a(directory(out.path()));
    let exporter = plant.open(targets);
    run_until_delivered(&exporter, &entry).await;
    assert_eq!(files(&out.path().join("plant-a")), [entry.key]);
}
