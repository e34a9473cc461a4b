//! Tests a store that is reopened between a read and the write that depends on it.
use super::*;
use crate::builder::ExportBuilder;
use crate::make::all_targets;
use crate::retention::{self, DeliveredState};
use oxrdf::NamedNode;
use penstock_base::error;
use penstock_model::ingest::KeptObjects;
use penstock_store::Error;
use penstock_store::faults::{Failure, Faults, Operation};
use std::time::{Duration, Instant};

impl Fixture {
    /// Makes a commit visible to readers and then cuts it off by reopening the store.
    fn lose_a_commit(&self) {
        let store = self.store();
        let faults = Faults::inject_below(&self.dir.path().join("store"));
        faults.fail_nth_of(Operation::Sync, 1, Failure::Io);
        let failed = store.transact::<_, Error>(|t| t.put_document("cut", b"key", b"value"));
        assert!(matches!(failed, Err(Error::Io { action: "syncing", .. })), "{failed:?}");
        store.reopen(&mut |_| {}).unwrap();
    }
}

#[test]
fn an_export_that_may_contain_a_lost_commit_is_not_queued() {
    let fixture = Fixture::new();
    fixture.ingest_objects(0, Mode::Add, &[(0, 1, vec![0])]);
    let (inner, plant) = (fixture.exporter_inner(), fixture.catalogue.get(NAMES[0]).unwrap());
    let targets = all_targets(&plant);
    let queue = |cuts: bool| {
        let mut builder = ExportBuilder::new(&inner, &plant, &targets);
        let path = builder.add_file();
        let rendered = builder.render_full(&path).unwrap();
        if cuts {
            fixture.lose_a_commit();
        }
        builder.enqueue(
            vec![(ExportKind::Full, rendered)],
            None,
            &mut |_, _| Ok(()),
            Instant::now(),
        )
    };
    let spooled = || std::fs::read_dir(fixture.exporter.spool_folder()).unwrap().count();
    let refused = queue(true).unwrap_err();
    assert!(matches!(refused.class, error::ErrorClass::Unavailable(_)), "{refused}");
    assert_eq!((fixture.exporter.list(None, 10).unwrap().len(), spooled()), (0, 0));
    assert_eq!(queue(false).unwrap().len(), 2);
}

#[test]
fn the_files_of_an_export_whose_commit_was_cut_off_do_not_stay() {
    let fixture = Fixture::new();
    fixture.ingest_objects(0, Mode::Add, &[(0, 1, vec![0])]);
    let (inner, plant) = (fixture.exporter_inner(), fixture.catalogue.get(NAMES[0]).unwrap());
    let targets = all_targets(&plant);
    let faults = Faults::inject_below(&fixture.dir.path().join("store"));
    let queue = |fails: bool| {
        let mut builder = ExportBuilder::new(&inner, &plant, &targets);
        let path = builder.add_file();
        let rendered = builder.render_full(&path).unwrap();
        if fails {
            faults.fail_nth_of(Operation::Sync, 1, Failure::Io);
        }
        builder.enqueue(
            vec![(ExportKind::Full, rendered)],
            None,
            &mut |_, _| Ok(()),
            Instant::now(),
        )
    };
    let spooled = || std::fs::read_dir(fixture.exporter.spool_folder()).unwrap().count();
    queue(true).unwrap_err();
    assert_eq!(spooled(), 2, "the next start may find the commit");
    fixture.store().reopen(&mut |_| {}).unwrap();
    assert_eq!((queue(false).unwrap().len(), spooled()), (2, 2));
}

#[test]
fn objects_are_not_removed_if_the_delivery_commit_may_be_lost() {
    let mut fixture = Fixture::new();
    let mut definition = TestDefinition::exporting_to(&[0, 1]).to_json(0);
    definition["retention"] = "P10D".into();
    put_definition(&fixture.catalogue, &definition);
    fixture.ingest_objects(0, Mode::Add, &[(0, 1, vec![0])]);
    fixture.settle_all();
    let plant = fixture.catalogue.get(NAMES[0]).unwrap();
    let time = plant.object.definition.parse_automatic().unwrap().retention.unwrap();
    fixture.advance_elapsed(time + Duration::from_secs(1));
    let (inner, id) = (fixture.exporter_inner(), plant.object.id.as_str());
    let delivered = || {
        let instance = fixture.store().read().instance();
        let cursor = retention::read_cursor(&inner, &plant).unwrap().unwrap();
        DeliveredState::collect(&inner.queue, id, cursor, instance).unwrap().unwrap()
    };
    let plants = [NamedNode::new_unchecked(test_uri(0))];
    let remove = |delivered: &DeliveredState| {
        let kept = retention::remove_objects(&inner, &plant, time, delivered, &plants);
        assert_eq!(kept.unwrap(), Some(KeptObjects::default()));
        fixture.store().stats().quads
    };
    let (before, quads) = (delivered(), fixture.store().stats().quads);
    fixture.lose_a_commit();
    assert_eq!(remove(&before), quads);
    assert!(remove(&delivered()) < quads);
}
