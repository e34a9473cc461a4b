//! Tests automatic exports with a model of a consumer, which applies the files in sequence order. After any series
//! of actions, the consumer has exactly the objects that the view shows. It is beside the code that it tests, because it
//! runs the parts of the exporter one step at a time, and other crates cannot.
mod action;
mod capacity;
mod commits;
mod consumer;
mod empty_run;
mod fixture;
mod holders;
mod lost;
mod reopened;
mod replaced;
mod retention;
mod successor;

use crate::ExportRequester;
use crate::cause::DeliveryOutcome;
use action::{NAMES, TARGETS, TestAction, TestDefinition, arbitrary_actions};
use fixture::{Fixture, test_uri};
use penstock_base::commit::NoClient;
use penstock_model::ingest::Mode;
use penstock_model::testing::{ingest_body, put_definition};
use penstock_resources::export::{ExportKind, ExportStatus};
use proptest::prelude::*;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::sync::Arc;

/// Returns the number of test cases, by default 40. `PENSTOCK_MODEL_CASES` overrides it.
fn case_count() -> u32 {
    std::env::var("PENSTOCK_MODEL_CASES").ok().and_then(|cases| cases.parse().ok()).unwrap_or(40)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: case_count(), ..ProptestConfig::default() })]

    #[test]
    fn a_consumer_that_applies_the_files_in_order_matches_the_view(actions in arbitrary_actions()) {
        assert_consumer_matches_view(Fixture::new(), actions);
    }

    #[test]
    fn the_consumer_matches_the_view_when_a_change_affects_more_objects_than_are_recorded(actions in arbitrary_actions()) {
        assert_consumer_matches_view(Fixture::with_max_holders(1), actions);
    }
}

/// Runs `work` and returns the lines that it logs.
fn capture_log<T>(work: impl FnOnce() -> T) -> (T, Vec<Value>) {
    let log = tempfile::NamedTempFile::new().unwrap();
    let writer = Arc::new(log.reopen().unwrap());
    let subscriber = tracing_subscriber::fmt().json().with_writer(writer).finish();
    let done = penstock_base::telemetry::with_subscriber(subscriber, work);
    let text = std::fs::read_to_string(log.path()).unwrap();
    (done, text.lines().map(|line| serde_json::from_str(line).unwrap()).collect())
}

fn assert_consumer_matches_view(mut fixture: Fixture, actions: Vec<TestAction>) {
    for action in actions {
        fixture = fixture.apply_action(action);
    }
    fixture.settle_all();
    fixture.assert_consumers_match();
}

#[test]
fn changes_under_a_definition_that_was_in_between_are_not_missed() {
    let define = |enabled, conditions| {
        let definition =
            TestDefinition { enabled, conditions, ..TestDefinition::exporting_to(&[1]) };
        TestAction::Define { of: 0, definition }
    };
    let actions = vec![
        TestAction::Ingest { of: 0, mode: Mode::Add, objects: vec![(0, 0, vec![])] },
        TestAction::Push { of: 0 },
        // The new plant is no member under these conditions.
        define(false, true),
        TestAction::Load { quads: vec![(true, 1, 2, 0)] },
        define(true, false),
    ];
    assert_consumer_matches_view(Fixture::new(), actions);
}

#[test]
fn changes_during_exports_are_not_missed() {
    write_changes_during_exports(Fixture::new());
}

#[test]
fn changes_to_more_objects_than_are_recorded_are_not_missed() {
    write_changes_during_exports(Fixture::with_max_holders(1));
}

fn write_changes_during_exports(mut fixture: Fixture) {
    fixture.load_quads(&[(true, 0, 0, 0)]);
    let (store, catalogue) = (fixture.store(), fixture.catalogue.clone());
    let writer = std::thread::spawn(move || {
        for round in 0..400_usize {
            let parts: Vec<Value> = (0..3)
                .filter(|part| (round >> part) % 2 == 0)
                .map(|part| json!({"uri": test_uri(3 + part), "name": format!("p{round}")}))
                .collect();
            let (mode, data) = if round % 5 == 4 {
                (Mode::Delete, json!({ "uri": test_uri(round % 3) }))
            } else {
                let data = json!({"uri": test_uri(round % 3), "name": format!("n{round}"), "parts": parts});
                (Mode::Replace, data)
            };
            let body = json!({ "data": [data] }).to_string();
            let business_object = catalogue.get(NAMES[0]).unwrap();
            let (store, watch) = (store.clone().into(), catalogue.watch());
            ingest_body(&store, watch, &business_object, mode, &body).unwrap();
        }
    });
    while !writer.is_finished() {
        for target in TARGETS {
            while fixture.deliver_next(target) {}
        }
        fixture.run_round();
    }
    writer.join().unwrap();
    fixture.settle_all();
    fixture.assert_consumers_match();
    let exports = fixture.consumer.files.values().map(BTreeMap::len).sum::<usize>();
    assert!(exports > 20, "{exports} exports ran during the changes");
}

#[test]
fn an_object_added_and_removed_between_two_exports_is_not_exported() {
    let mut fixture = Fixture::new();
    fixture.ingest_objects(0, Mode::Add, &[(0, 1, vec![])]);
    fixture.settle_all();
    fixture.ingest_objects(0, Mode::Add, &[(1, 1, vec![])]);
    fixture.ingest_objects(0, Mode::Delete, &[(1, 1, vec![])]);
    fixture.settle_all();
    fixture.assert_consumers_match();
    assert_eq!(fixture.consumer.plant_kinds("north"), [ExportKind::Full]);
    fixture.ingest_objects(0, Mode::Delete, &[(0, 1, vec![])]);
    fixture.settle_all();
    let files = &fixture.consumer.files[&("north".to_owned(), "Plant".to_owned())];
    let (kind, data) = &files[&2];
    assert_eq!((*kind, data), (ExportKind::Deleted, &vec![json!({ "uri": test_uri(0) })]));
}

#[test]
fn a_deletion_is_not_missed_after_exports_on_change_were_switched_off_and_on() {
    let mut fixture = Fixture::new();
    let on_change = TestDefinition::exporting_to(&[0]);
    fixture.define_object(0, &on_change);
    fixture.ingest_objects(0, Mode::Add, &[(0, 1, vec![])]);
    fixture.settle_all();
    // No round of the exporter removes the record of this one.
    fixture.ingest_objects(0, Mode::Add, &[(1, 1, vec![])]);
    fixture.define_object(
        0,
        &TestDefinition { on_change: false, ..TestDefinition::exporting_to(&[0]) },
    );
    fixture.define_object(0, &on_change);
    fixture.run_round();
    fixture.ingest_objects(0, Mode::Delete, &[(1, 1, vec![])]);
    fixture.settle_all();
    fixture.assert_consumers_match();
}

#[test]
fn an_export_of_an_earlier_definition_is_followed_by_a_full_one() {
    let mut fixture = Fixture::new();
    let pushed = TestDefinition { on_change: false, ..TestDefinition::exporting_to(&[0]) };
    fixture.define_object(0, &pushed);
    fixture.ingest_objects(0, Mode::Add, &[(0, 1, vec![])]);
    // Nothing records the changes after this push has rendered its file, until the definition is replaced.
    let earlier = fixture.catalogue.get(NAMES[0]).unwrap();
    fixture.define_object(0, &TestDefinition::exporting_to(&[0]));
    let pushed = fixture.exporter.push(&earlier, ExportRequester::gateway()).unwrap();
    assert_eq!(pushed.exports.len(), 1);
    fixture.settle_all();
    fixture.assert_consumers_match();
    assert_eq!(fixture.consumer.plant_kinds("north"), [ExportKind::Full, ExportKind::Full]);
}

#[test]
fn a_push_of_an_earlier_definition_is_not_the_last_export() {
    let mut fixture = Fixture::new();
    fixture.define_object(0, &TestDefinition::exporting_to(&[0]));
    fixture.ingest_objects(0, Mode::Add, &[(0, 1, vec![0])]);
    let earlier = fixture.catalogue.get(NAMES[0]).unwrap();
    let other = TestDefinition { other_mapping: true, ..TestDefinition::exporting_to(&[0]) };
    fixture.define_object(0, &other);
    fixture.settle_all();
    // This push has waited for its permit meanwhile.
    fixture.exporter.push(&earlier, ExportRequester::gateway()).unwrap();
    fixture.settle_all();
    fixture.assert_consumers_match();
    assert_eq!(fixture.consumer.plant_kinds("north"), [ExportKind::Full; 3]);
}

#[test]
fn a_target_that_was_removed_and_added_again_gets_a_full_export() {
    let mut fixture = Fixture::new();
    fixture.ingest_objects(0, Mode::Add, &[(0, 1, vec![])]);
    fixture.settle_all();
    fixture.define_object(0, &TestDefinition::exporting_to(&[0]));
    fixture.ingest_objects(0, Mode::Add, &[(1, 1, vec![])]);
    fixture.settle_all();
    fixture.define_object(0, &TestDefinition::exporting_to(&[0, 1]));
    fixture.settle_all();
    fixture.assert_consumers_match();
    assert_eq!(fixture.consumer.plant_kinds("north"), [ExportKind::Full, ExportKind::Incremental]);
    assert_eq!(fixture.consumer.plant_kinds("south"), [ExportKind::Full, ExportKind::Full]);
}

#[test]
fn a_target_that_may_lack_data_gets_a_full_export_and_retention_waits_for_it() {
    let mut fixture = Fixture::new();
    fixture.ingest_objects(0, Mode::Add, &[(0, 1, vec![])]);
    fixture.settle_all();
    fixture.ingest_objects(0, Mode::Replace, &[(0, 2, vec![])]);
    fixture.plan.try_now();
    fixture.run_round();
    let lacking = DeliveryOutcome::with_warning("It lacks data".to_owned(), true);
    assert!(fixture.deliver_with_outcome("north", &lacking));
    let listed = fixture.exporter.list(None, 1000).unwrap();
    assert!(listed.iter().any(|entry| entry.warnings == ["It lacks data"]), "{listed:?}");
    let plant = fixture.catalogue.get(NAMES[0]).unwrap();
    let cursor = crate::retention::read_cursor(&fixture.exporter.inner, &plant).unwrap();
    assert_eq!(cursor, None, "retention must not remove what the target lacks");
    fixture.settle_all();
    fixture.assert_consumers_match();
    assert_eq!(
        fixture.consumer.plant_kinds("north"),
        [ExportKind::Full, ExportKind::Incremental, ExportKind::Full]
    );
    assert_eq!(fixture.consumer.plant_kinds("south"), [ExportKind::Full, ExportKind::Incremental]);
    assert!(crate::retention::read_cursor(&fixture.exporter.inner, &plant).unwrap().is_some());
}

#[test]
fn a_new_target_does_not_block_deletions_while_there_are_no_objects() {
    for is_left_off in [false, true] {
        let mut fixture = Fixture::new();
        fixture.define_object(0, &TestDefinition::exporting_to(&[0]));
        fixture.ingest_objects(0, Mode::Add, &[(0, 1, vec![])]);
        fixture.settle_all();
        fixture.ingest_objects(0, Mode::Delete, &[(0, 1, vec![])]);
        if is_left_off {
            // The failed push has closed the generation that contains the deletion.
            fixture = fixture.apply_action(TestAction::Interrupt { push: Some(0) });
        }
        fixture.define_object(0, &TestDefinition::exporting_to(&[0, 1]));
        fixture.settle_all();
        fixture.assert_consumers_match();
        assert_eq!(fixture.consumer.plant_kinds("north"), [ExportKind::Full, ExportKind::Deleted]);
        assert_eq!(fixture.consumer.plant_kinds("south")[0], ExportKind::Full);
    }
}
