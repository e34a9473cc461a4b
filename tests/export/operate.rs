//! An operator parks, retries and replays exports. The history stays within its limits.
use crate::support::{
    Plant, directory, embedded, files, find_target, pump, push_one, run, until, until_status,
};
use penstock_base::commit::NoClient;
use penstock_base::error::ErrorClass;
use penstock_config::Targets;
use penstock_export::{ExportRequester, Exporter};
use penstock_resources::export::ExportStatus;

#[tokio::test(flavor = "multi_thread")]
async fn a_parked_entry_does_not_block_the_others_and_returns_to_its_place() {
    let plant = Plant::new();
    plant.pumps(0..1, 1);
    let business_object = pump("Pump", &["plant-a"]);
    let exporter = plant.open(embedded());
    let entries: Vec<_> = (0..3).map(|_| push_one(&exporter, &business_object)).collect();
    assert_eq!(exporter.park(&NoClient, &entries[0].id).unwrap().status, ExportStatus::Parked);
    assert_eq!(exporter.park(&NoClient, &entries[0].id).unwrap_err().class, ErrorClass::Conflict);
    assert_eq!(exporter.park(&NoClient, &entries[1].id).unwrap().status, ExportStatus::Parked);
    drop(exporter);

    let plant = plant.restart();
    let exporter = plant.open(embedded());
    assert_eq!(exporter.retry(&NoClient, &entries[1].id).unwrap().status, ExportStatus::Queued);
    let running = run(&exporter);
    let (second, third) = (
        until_status(&exporter, &entries[1].id, ExportStatus::Delivered).await,
        until_status(&exporter, &entries[2].id, ExportStatus::Delivered).await,
    );
    assert!(second.delivered_at <= third.delivered_at);
    assert_eq!(exporter.get(&entries[0].id).unwrap().unwrap().status, ExportStatus::Parked);
    assert_eq!(exporter.retry(&NoClient, &entries[0].id).unwrap().status, ExportStatus::Queued);
    until_status(&exporter, &entries[0].id, ExportStatus::Delivered).await;
    assert_eq!(exporter.retry(&NoClient, &entries[0].id).unwrap_err().class, ErrorClass::Conflict);
    running.stop().await;
    assert_eq!(files(&plant.bucket("plant-a")).len(), 3);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_replayed_entry_is_delivered_again_under_its_own_key() {
    let plant = Plant::new();
    plant.pumps(0..1, 1);
    let exporter = plant.open(embedded());
    let entry = push_one(&exporter, &pump("Pump", &["plant-a"]));
    assert_eq!(exporter.replay(&NoClient, &entry.id).unwrap_err().class, ErrorClass::Conflict);
    assert_eq!(exporter.replay(&NoClient, "unknown").unwrap_err().class, ErrorClass::NotFound);
    let running = run(&exporter);
    until_status(&exporter, &entry.id, ExportStatus::Delivered).await;
    std::fs::remove_dir_all(plant.bucket("plant-a")).unwrap();
    exporter.replay(&NoClient, &entry.id).unwrap();
    let again = until_status(&exporter, &entry.id, ExportStatus::Delivered).await;
    running.stop().await;
    assert_eq!((again.attempts, again.sequence), (2, 1));
    assert_eq!(files(&plant.bucket("plant-a")), [entry.key]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_blocked_target_does_not_block_others_and_continues_after_a_fix() {
    let plant = Plant::new();
    plant.pumps(0..1, 1);
    let blocked = plant.dir.path().join("blocked");
    std::fs::write(&blocked, "a file where a directory should be").unwrap();
    let mut targets = Targets { history_bytes: 1 << 20, ..Targets::default() };
    targets.named.insert("plant-a".to_owned(), directory(&blocked));
    targets.named.insert("plant-b".to_owned(), directory(&plant.dir.path().join("open")));
    let exporter = plant.open(targets);
    let push =
        exporter.push(&pump("Pump", &["plant-a", "plant-b"]), ExportRequester::gateway()).unwrap();
    let running = run(&exporter);
    until_status(&exporter, &push.exports[1].id, ExportStatus::Delivered).await;
    let entry = until_status(&exporter, &push.exports[0].id, ExportStatus::Blocked).await;
    assert!(entry.attempts > 0 && entry.last_error.is_some());
    let state = find_target(&exporter, "plant-a");
    assert_eq!((state.blocked, state.depth), (entry.last_error, 1));

    std::fs::remove_file(&blocked).unwrap();
    exporter.retry(&NoClient, &entry.id).unwrap();
    let entry = until_status(&exporter, &entry.id, ExportStatus::Delivered).await;
    assert!(entry.attempts > 1 && entry.last_error.is_none());
    running.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_history_keeps_the_newest_records_and_files() {
    let plant = Plant::new();
    plant.pumps(0..1, 1);
    let business_object = pump("Pump", &["plant-a"]);
    let first = push_one(&plant.open(embedded()), &business_object);
    let mut options =
        plant.options(Targets { history_bytes: first.bytes * 2, ..Targets::default() });
    options.history = 3;
    let exporter = Exporter::open(plant.store.clone(), options).unwrap();
    let mut entries = vec![first];
    entries.extend((0..4).map(|_| push_one(&exporter, &business_object)));
    let running = run(&exporter);
    until_status(&exporter, &entries[4].id, ExportStatus::Delivered).await;
    running.stop().await;

    let kept: Vec<u64> = exporter.list(None, 100).unwrap().iter().map(|e| e.sequence).collect();
    assert_eq!(kept, [5, 4, 3]);
    assert_eq!(exporter.get(&entries[0].id).unwrap(), None);
    assert_eq!(plant.spooled().len(), 2);
    let error = exporter.open_content(&entries[2].id).unwrap_err();
    assert_eq!(
        (error.class, error.detail.contains("no longer kept")),
        (ErrorClass::NotFound, true)
    );
    assert_eq!(exporter.replay(&NoClient, &entries[2].id).unwrap_err().class, ErrorClass::Conflict);
    assert_eq!(exporter.open_content(&entries[4].id).unwrap().length, entries[4].bytes);
    assert_eq!(push_one(&exporter, &business_object).sequence, 6);
}

#[test]
fn an_unknown_bucket_name_lists_the_known_ones() {
    let plant = Plant::new();
    let mut targets = embedded();
    targets.named.insert("plant-a".to_owned(), directory(plant.dir.path()));
    let exporter = plant.open(targets);
    assert_eq!(exporter.check_target("plant-a"), Ok(()));
    assert!(exporter.check_target("plant-b").unwrap_err().contains("`plant-a`"));
    assert!(exporter.check_target("../etc").unwrap_err().contains("../etc"));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_failed_attempt_shows_as_blocked() {
    let plant = Plant::new();
    plant.pumps(0..1, 1);
    let blocked = plant.dir.path().join("blocked");
    std::fs::write(&blocked, "").unwrap();
    let mut targets = embedded();
    targets.named.insert("plant-a".to_owned(), directory(&blocked));
    let exporter = plant.open(targets);
    let entry = push_one(&exporter, &pump("Pump", &["plant-a"]));
    let running = run(&exporter);
    until(&exporter, &entry.id, |entry| entry.attempts >= 2).await;
    running.stop().await;
    assert_eq!(exporter.get(&entry.id).unwrap().unwrap().status, ExportStatus::Blocked);
}
