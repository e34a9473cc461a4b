//! Retention in the world of the model.
use super::{Defined, NAMES, TARGETS, World, uri};
use crate::By;
use crate::entry::Status;
use crate::{record, retention};
use oxrdf::NamedNode;
use penstock_base::commit::NoClient;
use penstock_model::catalogue::{IfMatch, Requester};
use penstock_model::ingest::Mode;
use penstock_model::members;
use penstock_store::Error;
use std::sync::atomic::Ordering;
use std::time::Duration;

impl World {
    /// Defines the plants with a retention of ten days.
    fn keep(&self, on_change: bool, targets: Vec<usize>) {
        self.keep_for("P10D", on_change, targets);
    }

    fn keep_for(&self, retention: &str, on_change: bool, targets: Vec<usize>) {
        let defined = Defined {
            on_change,
            scheduled: false,
            enabled: true,
            conditions: false,
            other_mapping: false,
            targets,
        };
        let mut definition = defined.json(0);
        definition["retention"] = retention.into();
        let body = definition.to_string();
        self.catalogue
            .put(Requester::new(&NoClient, "local"), body.as_bytes(), IfMatch::Any, &|_| Ok(()))
            .unwrap();
    }

    fn days_pass(&self, days: u64) {
        self.elapse(Duration::from_hours(24 * days));
    }

    /// Lets so much time pass.
    pub(super) fn elapse(&self, time: Duration) {
        let milliseconds = u64::try_from(time.as_millis()).unwrap();
        self.elapsed.fetch_add(milliseconds, Ordering::Relaxed);
    }

    /// Looks for objects whose time is over, and names the plants that are left.
    fn left(&self) -> Vec<String> {
        let plant = self.catalogue.get(NAMES[0]).unwrap();
        let time = plant.object.definition.automatic().unwrap().retention.unwrap();
        retention::sweep(&self.exporter.inner, &plant, time).unwrap();
        let left = members::page(&self.store().read(), &plant, None, 1000).unwrap();
        left.into_iter().map(NamedNode::into_string).collect()
    }

    fn held(&self, target: &str, name: &str) -> Vec<String> {
        self.consumer.holds(target, name).into_keys().collect()
    }
}

fn two_plants() -> World {
    let mut world = World::new();
    world.keep(true, vec![0, 1]);
    world.ingest(0, Mode::Add, &[(0, 1, vec![0]), (1, 1, vec![1])]);
    world.settle();
    world
}

#[test]
fn a_definition_that_was_replaced_removes_nothing() {
    let world = two_plants();
    world.days_pass(20);
    let replaced = world.catalogue.get("Plant").unwrap();
    let ten_days = replaced.object.definition.automatic().unwrap().retention.unwrap();
    world.keep_for("P90D", true, vec![0, 1]);
    retention::sweep(&world.exporter.inner, &replaced, ten_days).unwrap();
    assert_eq!(world.left(), [uri(0), uri(1)]);
    world.days_pass(90);
    assert_eq!(world.left(), Vec::<String>::new());
}

#[test]
fn what_many_objects_hold_keeps_all_of_them_when_it_changes() {
    let mut world = World::noting(1);
    world.keep(true, vec![0, 1]);
    world.ingest(0, Mode::Add, &[(0, 1, vec![0]), (1, 1, vec![0])]);
    world.settle();
    world.days_pass(9);
    world.ingest(1, Mode::Update, &[(0, 2, vec![])]);
    world.settle();
    world.days_pass(2);
    assert_eq!(world.left(), [uri(0), uri(1)]);
    world.days_pass(8);
    assert_eq!(world.left(), Vec::<String>::new());
}

#[test]
fn a_retention_that_was_taken_away_begins_to_count_anew() {
    let mut world = two_plants();
    let without = Defined {
        on_change: true,
        scheduled: false,
        enabled: true,
        conditions: false,
        other_mapping: false,
        targets: vec![0, 1],
    };
    world.define(0, &without);
    world.days_pass(9);
    world.ingest(0, Mode::Update, &[(1, 2, vec![1])]);
    world.settle();
    world.days_pass(2);
    world.keep(true, vec![0, 1]);
    assert_eq!(world.left(), [uri(0), uri(1)]);
    world.days_pass(10);
    assert_eq!(world.left(), Vec::<String>::new());
}

#[test]
fn what_every_target_has_is_removed_after_its_time_and_nobody_is_told() {
    let mut world = two_plants();
    world.days_pass(9);
    assert_eq!(world.left(), [uri(0), uri(1)]);
    world.ingest(0, Mode::Update, &[(1, 2, vec![1])]);
    world.settle();
    world.days_pass(2);
    assert_eq!(world.left(), [uri(1)]);
    world.settle();
    for target in TARGETS {
        assert_eq!(world.held(target, "Plant"), [uri(0), uri(1)]);
        // The other view, of the parts that were nested, says that one is gone.
        assert_eq!(world.held(target, "Part"), [uri(4)]);
    }
    // It may come back, as a new one.
    world.ingest(0, Mode::Add, &[(0, 1, vec![0])]);
    world.settle();
    world.days_pass(9);
    assert_eq!(world.left(), [uri(0)]);
}

#[test]
fn what_some_target_lacks_is_kept() {
    let mut world = two_plants();
    world.ingest(0, Mode::Update, &[(1, 2, vec![1])]);
    world.turn();
    while world.deliver("north") {}
    world.days_pass(20);
    // South has the first one, and not the change of the second.
    assert_eq!(world.left(), [uri(1)]);
    let listed = world.exporter.list(None, 100).unwrap().into_iter();
    let lacking: Vec<String> = listed
        .filter(|entry| entry.status == Status::Queued && entry.target == "south")
        .map(|entry| entry.id)
        .collect();
    assert!(!lacking.is_empty());
    for id in &lacking {
        world.exporter.park(&NoClient, id).unwrap();
    }
    assert_eq!(world.left(), [uri(1)], "a parked export holds back");
    for id in &lacking {
        world.exporter.retry(&NoClient, id).unwrap();
    }
    let mut world = world.restart();
    while world.deliver("south") {}
    assert_eq!(world.left(), Vec::<String>::new());
}

#[test]
fn what_was_there_before_its_retention_begins_to_count_with_it() {
    let mut world = World::new();
    world.ingest(0, Mode::Add, &[(0, 1, vec![])]);
    world.settle();
    world.days_pass(100);
    world.keep(false, vec![0]);
    assert_eq!(world.left(), [uri(0)]);
    world.exporter.push(&world.catalogue.get("Plant").unwrap(), By::gateway()).unwrap();
    world.settle();
    assert_eq!(world.left(), [uri(0)]);
    world.days_pass(9);
    assert_eq!(world.left(), [uri(0)]);
    world.days_pass(1);
    assert_eq!(world.left(), Vec::<String>::new());
}

#[test]
fn what_some_target_lacks_of_before_the_retention_is_kept() {
    let mut world = World::new();
    world.ingest(0, Mode::Add, &[(0, 1, vec![]), (1, 1, vec![])]);
    world.settle();
    // The change of the first is parked for one target, and that of the second is delivered.
    world.ingest(0, Mode::Replace, &[(0, 2, vec![])]);
    world.turn();
    while world.deliver("north") {}
    let listed = world.exporter.list(None, 100).unwrap().into_iter();
    let lacking: Vec<String> =
        listed.filter(|entry| entry.status == Status::Queued).map(|entry| entry.id).collect();
    assert_eq!(lacking.len(), 1);
    world.exporter.park(&NoClient, &lacking[0]).unwrap();
    world.ingest(0, Mode::Replace, &[(1, 2, vec![])]);
    world.settle();
    world.keep(true, vec![0, 1]);
    assert_eq!(world.left(), [uri(0), uri(1)], "it begins to count");
    world.days_pass(20);
    assert_eq!(world.left(), [uri(0), uri(1)]);
    world.exporter.retry(&NoClient, &lacking[0]).unwrap();
    while world.deliver("south") {}
    assert_eq!(world.left(), Vec::<String>::new());
}

#[test]
fn what_was_not_exported_when_the_retention_came_is_kept() {
    let mut world = World::new();
    world.ingest(0, Mode::Add, &[(0, 1, vec![])]);
    world.settle();
    world.ingest(0, Mode::Replace, &[(0, 2, vec![])]);
    world.keep(true, vec![0, 1]);
    assert_eq!(world.left(), [uri(0)], "it begins to count");
    world.days_pass(20);
    assert_eq!(world.left(), [uri(0)]);
    world.settle();
    assert_eq!(world.left(), Vec::<String>::new());
    for target in TARGETS {
        assert_eq!(world.consumer.holds(target, "Plant")[&uri(0)]["name"], "n2");
    }
}

#[test]
fn nothing_is_removed_while_a_record_of_the_queue_cannot_be_read() {
    let mut world = two_plants();
    let order = (1_u64 << 40).to_be_bytes();
    world.store().transact::<_, Error>(|t| t.put(record::EXPORTS, &order, b"{}")).unwrap();
    world = world.restart();
    world.days_pass(20);
    assert_eq!(world.left(), [uri(0), uri(1)]);
    world.store().transact::<_, Error>(|t| t.delete(record::EXPORTS, &order)).unwrap();
    let world = world.restart();
    assert_eq!(world.left(), Vec::<String>::new());
}
