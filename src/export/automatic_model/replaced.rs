//! Tests what follows a restore: full exports replace those whose files are gone, and the old machine changes nothing.
use super::*;
use crate::automatic::{ExportPlan, run_due_exports};
use crate::backoff::RetryRule;
use crate::backup::data_dir::{has_lost_exports, record_lost_exports};
use crate::cause::DeliveryFailure;
use crate::delivery::DAMAGED_FILE;
use crate::history::MAX_REPLACED_PER_COMMIT;
use crate::lost::Outcome;
use crate::spool::BLOCK_BYTES;
use crate::uploads::{DROPPED, UploadRecord};
use crate::{lost, sweep};
use penstock_store::faults::{Failure, Faults};
use penstock_store::{Error, Transaction};
use std::fs;

/// Returns a definition whose exports only a push creates.
fn pushed(enabled: bool) -> TestDefinition {
    TestDefinition { on_change: false, enabled, ..TestDefinition::exporting_to(&[0]) }
}

/// Returns the names of the Business Objects in the queue, newest first.
fn queued_names(fixture: &Fixture) -> Vec<String> {
    let entries = fixture.exporter.list(None, 100).unwrap();
    let queued = entries.into_iter().filter(|entry| entry.status == ExportStatus::Queued);
    queued.map(|entry| entry.business_object_name).collect()
}

#[test]
fn what_cannot_be_read_or_exported_does_not_keep_others_from_being_replaced() {
    let mut fixture = Fixture::new();
    for (of, name) in NAMES.iter().enumerate() {
        fixture.define_object(of, &pushed(true));
        fixture.ingest_objects(of, Mode::Add, &[(0, 1, vec![])]);
        let object = fixture.catalogue.get(name).unwrap();
        fixture.exporter.push(&object, ExportRequester::gateway()).unwrap();
    }
    lose_files(&fixture);
    fixture.define_object(0, &pushed(false));
    let of_the_future = |t: &mut Transaction<'_>| {
        t.put_document("exports", &100_u64.to_be_bytes(), br#"{"entries":[]}"#)
    };
    fixture.store().transact::<_, Error>(of_the_future).unwrap();
    let mut fixture = fixture.restart();
    let replace = |fixture: &Fixture| lost::replace_all(&fixture.exporter.inner).unwrap();
    assert_eq!(replace(&fixture), Outcome::NeedsPerson, "one is disabled");
    assert_eq!(queued_names(&fixture), [NAMES[1]]);
    fixture.define_object(0, &pushed(true));
    for _ in 0..2 {
        assert_eq!(replace(&fixture), Outcome::Replaced);
        assert_eq!(queued_names(&fixture), [NAMES[0], NAMES[1]], "each is replaced once");
    }
}

#[test]
fn what_a_full_disk_keeps_from_being_replaced_is_tried_again() {
    let mut fixture = Fixture::new();
    fixture.define_object(0, &pushed(true));
    fixture.ingest_objects(0, Mode::Add, &[(0, 1, vec![])]);
    let object = fixture.catalogue.get(NAMES[0]).unwrap();
    fixture.exporter.push(&object, ExportRequester::gateway()).unwrap();
    lose_files(&fixture);
    fs::create_dir_all(fixture.dir.path().join("backup")).unwrap();
    record_lost_exports(fixture.dir.path(), true).unwrap();
    let fixture = fixture.restart();
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let must_retry = || runtime.block_on(lost::replace_lost_exports(&fixture.exporter.inner));
    let faults = Faults::inject_below(&fixture.dir.path().join("store"));
    // The first commit parks the export, the second one queues the full one.
    for nth in [1, 4] {
        faults.fail_nth(nth, Failure::DiskFull, true);
        assert!(must_retry(), "{:?}", faults.first_failure());
        faults.clear_plan();
        if fixture.store().poison_cause().is_some() {
            fixture.store().reopen(&mut |_| {}).unwrap();
        }
        assert!(has_lost_exports(fixture.dir.path()));
    }
    assert!(!must_retry());
    assert!(!has_lost_exports(fixture.dir.path()));
    assert_eq!(queued_names(&fixture), [NAMES[0]]);
}

#[test]
fn an_export_whose_file_cannot_be_read_now_is_not_lost() {
    let mut fixture = Fixture::new();
    fixture.define_object(0, &pushed(true));
    fixture.ingest_objects(0, Mode::Add, &[(0, 1, vec![])]);
    let object = fixture.catalogue.get(NAMES[0]).unwrap();
    let pushed = fixture.exporter.push(&object, ExportRequester::gateway()).unwrap().exports;
    let file = fixture.exporter.spool_folder().join(format!("{}.json", pushed[0].id));
    fs::remove_file(&file).unwrap();
    std::os::unix::fs::symlink(&file, &file).unwrap();
    let fixture = fixture.restart();
    assert_eq!(lost::replace_all(&fixture.exporter.inner).unwrap(), Outcome::Replaced);
    let entries = fixture.exporter.list(None, 100).unwrap();
    let found: Vec<_> = entries.iter().map(|entry| (&entry.id, entry.status)).collect();
    assert_eq!(found, [(&pushed[0].id, ExportStatus::Blocked)]);
}

#[test]
fn a_restored_export_whose_file_is_damaged_is_replaced_like_a_missing_one() {
    let mut fixture = Fixture::new();
    fixture.define_object(0, &pushed(true));
    fixture.ingest_objects(0, Mode::Add, &[(0, 1, vec![])]);
    let object = fixture.catalogue.get(NAMES[0]).unwrap();
    // More than one commit removes.
    let damaged: Vec<_> = (0..=MAX_REPLACED_PER_COMMIT)
        .flat_map(|_| fixture.exporter.push(&object, ExportRequester::gateway()).unwrap().exports)
        .collect();
    let spool = fixture.exporter.spool_folder().to_owned();
    let file_of = |id: &str| spool.join(format!("{id}.json"));
    for entry in &damaged {
        fs::write(file_of(&entry.id), "{").unwrap();
    }
    let mut fixture = fixture.restart();
    for _ in 0..2 {
        assert_eq!(lost::replace_all(&fixture.exporter.inner).unwrap(), Outcome::Replaced);
        assert_eq!(queued_names(&fixture), [NAMES[0]], "it is replaced once");
    }
    let usage = fixture.exporter.spool_usage();
    assert_eq!((usage.parked, usage.waiting), (damaged.len() as u64, BLOCK_BYTES));
    let parked = fixture.exporter.get(&damaged[0].id).unwrap().unwrap();
    assert_eq!(parked.status, ExportStatus::Parked);
    assert!(parked.last_error.unwrap().contains("is damaged"));
    assert!(fixture.deliver_next(TARGETS[0]));
    for entry in &damaged {
        assert_eq!(fixture.exporter.get(&entry.id).unwrap(), None);
        assert!(!file_of(&entry.id).exists());
    }
}

#[test]
fn a_parked_export_whose_bytes_have_changed_ends_with_a_full_export() {
    for is_retried in [false, true] {
        let mut fixture = Fixture::new();
        fixture.define_object(0, &pushed(true));
        fixture.ingest_objects(0, Mode::Add, &[(0, 1, vec![])]);
        let object = fixture.catalogue.get(NAMES[0]).unwrap();
        let push = |fixture: &Fixture| {
            let pushed = fixture.exporter.push(&object, ExportRequester::gateway()).unwrap();
            pushed.exports[0].id.clone()
        };
        let (changed, whole) = (push(&fixture), push(&fixture));
        let queue = &fixture.exporter.inner.queue;
        // Only its SHA-256 is wrong, which a delivery finds.
        let job = queue.begin_delivery(TARGETS[0]).unwrap().unwrap();
        let rule = RetryRule::of_targets(fixture.exporter.inner.options.timings);
        let failure = DeliveryFailure::of_gateway(DAMAGED_FILE);
        queue.record_failure(TARGETS[0], job.order, failure, &rule);
        for id in [&changed, &whole] {
            fixture.exporter.park(&NoClient, id).unwrap();
        }
        if is_retried {
            fixture.exporter.retry(&NoClient, &changed).unwrap();
            fixture.exporter.park(&NoClient, &changed).unwrap();
        }
        push(&fixture);
        assert!(fixture.deliver_next(TARGETS[0]));
        let is_kept = |id: &str| fixture.exporter.get(id).unwrap().is_some();
        assert_eq!(is_kept(&changed), is_retried, "somebody may have restored its file");
        assert!(is_kept(&whole), "it can be retried");
    }
}

/// Removes the files of all exports.
fn lose_files(fixture: &Fixture) {
    for entry in fixture.exporter.list(None, 100).unwrap() {
        fs::remove_file(fixture.exporter.spool_folder().join(format!("{}.json", entry.id)))
            .unwrap();
    }
}

#[test]
fn only_files_that_a_restore_did_not_lose_are_errors_at_the_start() {
    for is_restored in [true, false] {
        let mut fixture = Fixture::new();
        fixture.define_object(0, &pushed(true));
        fixture.ingest_objects(0, Mode::Add, &[(0, 1, vec![])]);
        let object = fixture.catalogue.get(NAMES[0]).unwrap();
        fixture.exporter.push(&object, ExportRequester::gateway()).unwrap();
        lose_files(&fixture);
        fs::create_dir_all(fixture.dir.path().join("backup")).unwrap();
        record_lost_exports(fixture.dir.path(), is_restored).unwrap();
        let (fixture, lines) = capture_log(|| fixture.restart());
        let log = format!("{lines:?}");
        assert_eq!(log.contains("is missing or damaged"), !is_restored, "{log}");
        assert!(!log.contains("the gateway delivers them"), "{log}");
        assert_eq!(lost::replace_all(&fixture.exporter.inner).unwrap(), Outcome::Replaced);
        assert_eq!(queued_names(&fixture), [NAMES[0]]);
        // The full export has a file.
        let (_, lines) = capture_log(|| fixture.restart());
        let log = format!("{lines:?}");
        assert!(log.contains("the gateway delivers them"), "{log}");
    }
}

#[test]
fn exports_whose_files_are_gone_take_no_capacity() {
    for is_restored in [true, false] {
        let mut fixture = Fixture::new();
        fixture.define_object(0, &TestDefinition::exporting_to(&[0]));
        fixture.ingest_objects(0, Mode::Add, &[(0, 1, vec![])]);
        let object = fixture.catalogue.get(NAMES[0]).unwrap();
        let mut pushed = Vec::new();
        while let Ok(one) = fixture.exporter.push(&object, ExportRequester::gateway()) {
            pushed.extend(one.exports);
        }
        lose_files(&fixture);
        if is_restored {
            fixture = fixture.restart();
            assert_eq!(lost::replace_all(&fixture.exporter.inner).unwrap(), Outcome::Replaced);
        } else {
            for entry in &pushed {
                fixture.exporter.park(&NoClient, &entry.id).unwrap();
            }
        }
        let usage = fixture.exporter.spool_usage();
        assert_eq!((usage.parked, usage.waiting), (pushed.len() as u64, 0));
        let fixture = fixture.restart();
        assert_eq!(fixture.exporter.spool_usage().waiting, 0, "also after a restart");
        // What replaces them can be created.
        fixture.ingest_objects(0, Mode::Add, &[(1, 1, vec![])]);
        run_due_exports(&fixture.exporter_inner(), &mut ExportPlan::default());
        assert_eq!(queued_names(&fixture), [NAMES[0]]);
    }
}

/// Restarts, and returns the number of commits of the start.
fn count_commits_of_start(fixture: Fixture) -> (Fixture, u64) {
    let before = fixture.store().stats().sequence;
    let fixture = fixture.restart();
    let count = fixture.store().stats().sequence - before;
    (fixture, count)
}

#[test]
fn many_exports_without_files_are_corrected_and_parked_in_small_commits() {
    let mut fixture = Fixture::new();
    fixture.define_object(0, &TestDefinition::exporting_to(&[0, 1]));
    fixture.ingest_objects(0, Mode::Add, &[(0, 1, vec![])]);
    let object = fixture.catalogue.get(NAMES[0]).unwrap();
    for _ in 0..3 {
        fixture.exporter.push(&object, ExportRequester::gateway()).unwrap();
    }
    let (fixture, _) = count_commits_of_start(fixture);
    let (fixture, usual) = count_commits_of_start(fixture);
    lose_files(&fixture);
    let (fixture, count) = count_commits_of_start(fixture);
    // One has at most four of the six.
    assert_eq!(count - usual, 2, "the corrections");
    let before = fixture.store().stats().sequence;
    assert_eq!(lost::replace_all(&fixture.exporter.inner).unwrap(), Outcome::Replaced);
    assert_eq!(fixture.exporter.spool_usage().parked, 6);
    assert_eq!(fixture.store().stats().sequence - before, 2, "the parking");
}

/// Records that an upload of this export has begun.
fn record_upload(fixture: &Fixture, export_id: &str, upload: &str) {
    let record = UploadRecord {
        target: "north".to_owned(),
        place: "https://s3.example/plant".to_owned(),
        key: "Plant/1.json".to_owned(),
        upload: upload.to_owned(),
        part_size: 1,
        length: 1,
        sha256: String::new(),
    };
    fixture.exporter.inner.uploads.record_upload(export_id, &record).unwrap();
}

#[test]
fn a_parked_export_without_its_file_ends_once_its_upload_is_cleaned_up() {
    for (upload, is_open) in [("2~abc", true), (DROPPED, false)] {
        let mut fixture = Fixture::new();
        fixture.define_object(0, &pushed(true));
        fixture.ingest_objects(0, Mode::Add, &[(0, 1, vec![])]);
        let object = fixture.catalogue.get(NAMES[0]).unwrap();
        let push = |fixture: &Fixture| {
            let pushed = fixture.exporter.push(&object, ExportRequester::gateway()).unwrap();
            pushed.exports[0].id.clone()
        };
        let lost = push(&fixture);
        record_upload(&fixture, &lost, upload);
        fixture.exporter.park(&NoClient, &lost).unwrap();
        lose_files(&fixture);

        push(&fixture);
        assert!(fixture.deliver_next(TARGETS[0]));
        assert_eq!(fixture.exporter.get(&lost).unwrap().is_some(), is_open);
        if is_open {
            // It was never delivered, so its upload is aborted, not completed.
            let abandoned = sweep::find_abandoned(&fixture.exporter.inner, &lost).unwrap();
            assert!(abandoned.is_some_and(|upload| !upload.delivered));
            fixture.exporter.inner.uploads.remove_record(&lost);
            push(&fixture);
            assert!(fixture.deliver_next(TARGETS[0]));
            assert_eq!(fixture.exporter.get(&lost).unwrap(), None);
        }
    }
}

#[test]
fn a_full_export_replaces_all_parked_ones_without_files() {
    let mut fixture = Fixture::new();
    fixture.define_object(0, &pushed(true));
    fixture.ingest_objects(0, Mode::Add, &[(0, 1, vec![])]);
    let object = fixture.catalogue.get(NAMES[0]).unwrap();
    let push = |fixture: &Fixture| {
        fixture.exporter.push(&object, ExportRequester::gateway()).unwrap().exports
    };
    // More than one commit removes.
    let lost: Vec<_> = (0..=MAX_REPLACED_PER_COMMIT).flat_map(|_| push(&fixture)).collect();
    lose_files(&fixture);
    for entry in &lost {
        fixture.exporter.park(&NoClient, &entry.id).unwrap();
    }
    let full = push(&fixture);
    assert!(fixture.deliver_next(TARGETS[0]));
    let is_left = |fixture: &Fixture| {
        let listed = fixture.exporter.list(None, 100).unwrap();
        listed.into_iter().map(|entry| entry.id).collect::<Vec<_>>() == [full[0].id.clone()]
    };
    assert!(is_left(&fixture));
    assert_eq!(fixture.exporter.spool_usage().parked, 0);
    assert!(is_left(&fixture.restart()));
}

#[test]
fn a_machine_that_was_replaced_cleans_up_no_uploads() {
    let fixture = Fixture::new();
    let inner = &fixture.exporter.inner;
    let id = "0199c1d2-7d3e-7000-8000-000000000001";
    record_upload(&fixture, id, "1");
    let is_abandoned = || sweep::find_abandoned(inner, id).unwrap().is_some();
    assert!(is_abandoned());
    inner.uplink.hold("replaced".to_owned());
    assert!(!is_abandoned());
    inner.uplink.release();
    assert!(is_abandoned());
}
