//! Tests a scheduled run that has nothing to export.
use super::*;
use chrono::{TimeDelta, Utc};

#[test]
fn a_run_without_objects_logs_the_reason_that_a_push_gives() {
    let mut fixture = Fixture::new();
    let defined = TestDefinition {
        on_change: false,
        scheduled: true,
        conditions: true,
        ..TestDefinition::exporting_to(&[0])
    };
    fixture.define_object(0, &defined);
    fixture.run_round();
    let business_object = fixture.catalogue.get(NAMES[0]).unwrap();
    fixture.plan.run_now(&business_object.object.id, Utc::now() - TimeDelta::hours(1));
    let ((), lines) = capture_log(|| fixture.run_round());
    let reason = fixture
        .exporter
        .push(&business_object, ExportRequester::gateway())
        .unwrap()
        .reason
        .unwrap();
    assert!(reason.contains("urn:x-part:1"), "{reason}");
    let runs: Vec<_> = lines
        .iter()
        .filter(|line| line["fields"]["message"] == "A run of the schedule had nothing to export.")
        .collect();
    assert_eq!(runs.len(), 1, "{lines:?}");
    assert_eq!(runs[0]["fields"]["reason"], reason);
}

/// Lets the automatic export of a new plant fail, because the spool is no folder.
fn fail_run(fixture: &mut Fixture) -> String {
    fixture.settle_all();
    let spool = fixture.exporter.spool_folder().to_owned();
    std::fs::remove_dir(&spool).unwrap();
    std::fs::write(&spool, "").unwrap();
    fixture.ingest_objects(0, Mode::Add, &[(0, 1, vec![])]);
    fixture.run_round();
    let id = fixture.catalogue.get(NAMES[0]).unwrap().object.id.clone();
    let run = fixture.exporter.find_empty_run(&id).unwrap();
    assert!(run.is_error);
    assert!(fixture.exporter.list_failing().contains(&(NAMES[0].to_owned(), run.cause)));
    std::fs::remove_file(&spool).unwrap();
    std::fs::create_dir(&spool).unwrap();
    id
}

#[test]
fn a_later_run_that_finds_nothing_to_do_clears_the_error_of_a_run() {
    let mut fixture = Fixture::new();
    let id = fail_run(&mut fixture);
    // Consumers never had the plant, so nothing is left to export.
    fixture.ingest_objects(0, Mode::Delete, &[(0, 1, vec![])]);
    fixture.settle_all();
    assert!(!fixture.exporter.find_empty_run(&id).is_some_and(|run| run.is_error));
    assert!(fixture.exporter.list_failing().iter().all(|(name, _)| name != NAMES[0]));
}

#[test]
fn a_business_object_without_automatic_exports_has_no_error_of_a_run() {
    let mut fixture = Fixture::new();
    let id = fail_run(&mut fixture);
    let disabled = TestDefinition { enabled: false, ..TestDefinition::exporting_to(&[0, 1]) };
    fixture.define_object(0, &disabled);
    fixture.run_round();
    assert_eq!(fixture.exporter.find_empty_run(&id), None);
}
