//! Tests retention with the model.
use super::*;
use crate::retention;
use penstock_model::testing::list_members;
use penstock_store::Error;
use std::sync::atomic::Ordering;
use std::time::Duration;

impl Fixture {
    /// Defines the plants with a retention of ten days.
    fn set_retention(&self, on_change: bool, targets: &[usize]) {
        self.set_retention_period("P10D", on_change, targets);
    }

    fn set_retention_period(&self, retention: &str, on_change: bool, targets: &[usize]) {
        let defined = TestDefinition { on_change, ..TestDefinition::exporting_to(targets) };
        let mut definition = defined.to_json(0);
        definition["retention"] = retention.into();
        put_definition(&self.catalogue, &definition);
    }

    fn days_pass(&self, days: u64) {
        self.advance_elapsed(Duration::from_hours(24 * days));
    }

    /// Advances the elapsed time.
    pub(super) fn advance_elapsed(&self, time: Duration) {
        let milliseconds = u64::try_from(time.as_millis()).unwrap();
        self.elapsed.fetch_add(milliseconds, Ordering::Relaxed);
    }

    /// Removes objects past their retention and returns the remaining plants.
    fn remaining_plants(&self) -> Vec<String> {
        let plant = self.catalogue.get(NAMES[0]).unwrap();
        let time = plant.object.definition.parse_automatic().unwrap().retention.unwrap();
        retention::remove_expired(&self.exporter.inner, &plant, time).unwrap();
        list_members(&self.store().read(), &plant)
    }

    fn consumer_uris(&self, target: &str, name: &str) -> Vec<String> {
        self.consumer.objects_of(target, name).into_keys().collect()
    }
}

fn two_plants() -> Fixture {
    let mut fixture = Fixture::new();
    fixture.set_retention(true, &[0, 1]);
    fixture.ingest_objects(0, Mode::Add, &[(0, 1, vec![0]), (1, 1, vec![1])]);
    fixture.settle_all();
    fixture
}

#[test]
fn a_definition_that_was_replaced_removes_nothing() {
    let fixture = two_plants();
    fixture.days_pass(20);
    let replaced = fixture.catalogue.get("Plant").unwrap();
    let ten_days = replaced.object.definition.parse_automatic().unwrap().retention.unwrap();
    fixture.set_retention_period("P90D", true, &[0, 1]);
    retention::remove_expired(&fixture.exporter.inner, &replaced, ten_days).unwrap();
    assert_eq!(fixture.remaining_plants(), [test_uri(0), test_uri(1)]);
    fixture.days_pass(90);
    assert_eq!(fixture.remaining_plants(), Vec::<String>::new());
}

#[test]
fn a_change_to_a_shared_part_restarts_the_retention_of_all_plants_with_it() {
    let mut fixture = Fixture::with_max_holders(1);
    fixture.set_retention(true, &[0, 1]);
    fixture.ingest_objects(0, Mode::Add, &[(0, 1, vec![0]), (1, 1, vec![0])]);
    fixture.settle_all();
    fixture.days_pass(9);
    fixture.ingest_objects(1, Mode::Update, &[(0, 2, vec![])]);
    fixture.settle_all();
    fixture.days_pass(2);
    assert_eq!(fixture.remaining_plants(), [test_uri(0), test_uri(1)]);
    fixture.days_pass(8);
    assert_eq!(fixture.remaining_plants(), Vec::<String>::new());
}

#[test]
fn a_retention_that_is_removed_and_set_again_restarts() {
    let mut fixture = two_plants();
    fixture.define_object(0, &TestDefinition::exporting_to(&[0, 1]));
    fixture.days_pass(9);
    fixture.ingest_objects(0, Mode::Update, &[(1, 2, vec![1])]);
    fixture.settle_all();
    fixture.days_pass(2);
    fixture.set_retention(true, &[0, 1]);
    assert_eq!(fixture.remaining_plants(), [test_uri(0), test_uri(1)]);
    fixture.days_pass(10);
    assert_eq!(fixture.remaining_plants(), Vec::<String>::new());
}

#[test]
fn objects_that_every_target_has_are_removed_without_a_deletion_export() {
    let mut fixture = two_plants();
    fixture.days_pass(9);
    assert_eq!(fixture.remaining_plants(), [test_uri(0), test_uri(1)]);
    fixture.ingest_objects(0, Mode::Update, &[(1, 2, vec![1])]);
    fixture.settle_all();
    fixture.days_pass(2);
    assert_eq!(fixture.remaining_plants(), [test_uri(1)]);
    fixture.settle_all();
    for target in TARGETS {
        assert_eq!(fixture.consumer_uris(target, "Plant"), [test_uri(0), test_uri(1)]);
        // The part that was nested in the plant is removed too, and a deletion is exported for `Part`.
        assert_eq!(fixture.consumer_uris(target, "Part"), [test_uri(4)]);
    }
    // The removed plant can be added again as a new object.
    fixture.ingest_objects(0, Mode::Add, &[(0, 1, vec![0])]);
    fixture.settle_all();
    fixture.days_pass(9);
    assert_eq!(fixture.remaining_plants(), [test_uri(0)]);
}

#[test]
fn objects_that_a_target_lacks_are_kept() {
    let mut fixture = two_plants();
    fixture.ingest_objects(0, Mode::Update, &[(1, 2, vec![1])]);
    fixture.run_round();
    while fixture.deliver_next("north") {}
    fixture.days_pass(20);
    // The target south has the first plant, but not the change of the second.
    assert_eq!(fixture.remaining_plants(), [test_uri(1)]);
    let listed = fixture.exporter.list(None, 100).unwrap().into_iter();
    let lacking: Vec<String> = listed
        .filter(|entry| entry.status == ExportStatus::Queued && entry.target == "south")
        .map(|entry| entry.id)
        .collect();
    assert!(!lacking.is_empty());
    for id in &lacking {
        fixture.exporter.park(&NoClient, id).unwrap();
    }
    assert_eq!(fixture.remaining_plants(), [test_uri(1)], "a parked export blocks the removal");
    for id in &lacking {
        fixture.exporter.retry(&NoClient, id).unwrap();
    }
    let mut fixture = fixture.restart();
    while fixture.deliver_next("south") {}
    assert_eq!(fixture.remaining_plants(), Vec::<String>::new());
}

#[test]
fn existing_objects_start_to_age_when_the_retention_is_set() {
    let mut fixture = Fixture::new();
    fixture.ingest_objects(0, Mode::Add, &[(0, 1, vec![])]);
    fixture.settle_all();
    fixture.days_pass(100);
    fixture.set_retention(false, &[0]);
    assert_eq!(fixture.remaining_plants(), [test_uri(0)]);
    fixture
        .exporter
        .push(&fixture.catalogue.get("Plant").unwrap(), ExportRequester::gateway())
        .unwrap();
    fixture.settle_all();
    assert_eq!(fixture.remaining_plants(), [test_uri(0)]);
    fixture.days_pass(9);
    assert_eq!(fixture.remaining_plants(), [test_uri(0)]);
    fixture.days_pass(1);
    assert_eq!(fixture.remaining_plants(), Vec::<String>::new());
}

#[test]
fn objects_with_an_undelivered_change_from_before_the_retention_are_kept() {
    let mut fixture = Fixture::new();
    fixture.ingest_objects(0, Mode::Add, &[(0, 1, vec![]), (1, 1, vec![])]);
    fixture.settle_all();
    // The change of the first plant is parked for one target, the change of the second is delivered.
    fixture.ingest_objects(0, Mode::Replace, &[(0, 2, vec![])]);
    fixture.run_round();
    while fixture.deliver_next("north") {}
    let listed = fixture.exporter.list(None, 100).unwrap().into_iter();
    let lacking: Vec<String> =
        listed.filter(|entry| entry.status == ExportStatus::Queued).map(|entry| entry.id).collect();
    assert_eq!(lacking.len(), 1);
    fixture.exporter.park(&NoClient, &lacking[0]).unwrap();
    fixture.ingest_objects(0, Mode::Replace, &[(1, 2, vec![])]);
    fixture.settle_all();
    fixture.set_retention(true, &[0, 1]);
    assert_eq!(fixture.remaining_plants(), [test_uri(0), test_uri(1)], "the ages start now");
    fixture.days_pass(20);
    assert_eq!(fixture.remaining_plants(), [test_uri(0), test_uri(1)]);
    fixture.exporter.retry(&NoClient, &lacking[0]).unwrap();
    while fixture.deliver_next("south") {}
    assert_eq!(fixture.remaining_plants(), Vec::<String>::new());
}

#[test]
fn objects_not_exported_when_the_retention_is_set_are_kept() {
    let mut fixture = Fixture::new();
    fixture.ingest_objects(0, Mode::Add, &[(0, 1, vec![])]);
    fixture.settle_all();
    fixture.ingest_objects(0, Mode::Replace, &[(0, 2, vec![])]);
    fixture.set_retention(true, &[0, 1]);
    assert_eq!(fixture.remaining_plants(), [test_uri(0)], "the ages start now");
    fixture.days_pass(20);
    assert_eq!(fixture.remaining_plants(), [test_uri(0)]);
    fixture.settle_all();
    assert_eq!(fixture.remaining_plants(), Vec::<String>::new());
    for target in TARGETS {
        assert_eq!(fixture.consumer.objects_of(target, "Plant")[&test_uri(0)]["name"], "n2");
    }
}

#[test]
fn nothing_is_removed_while_a_queue_record_is_unreadable() {
    let mut fixture = two_plants();
    let order = (1_u64 << 40).to_be_bytes();
    fixture.store().transact::<_, Error>(|t| t.put_document("exports", &order, b"{}")).unwrap();
    fixture = fixture.restart();
    fixture.days_pass(20);
    assert_eq!(fixture.remaining_plants(), [test_uri(0), test_uri(1)]);
    fixture.store().transact::<_, Error>(|t| t.delete_document("exports", &order)).unwrap();
    let fixture = fixture.restart();
    assert_eq!(fixture.remaining_plants(), Vec::<String>::new());
}
