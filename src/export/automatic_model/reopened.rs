//! A store that is reopened between a look at it and what is done about it, in the world of the model.
use super::{Defined, NAMES, World, uri};
use crate::entry::Kind;
use crate::make::{Making, all_targets};
use crate::retention::{self, Had};
use oxrdf::NamedNode;
use penstock_base::commit::NoClient;
use penstock_base::fault;
use penstock_model::catalogue::{IfMatch, Requester};
use penstock_model::ingest::Mode;
use penstock_store::Error;
use penstock_store::faults::{Failure, Faults, Operation};
use std::time::{Duration, Instant};

impl World {
    /// Lets a commit be seen and cut off again.
    fn cut_a_commit(&self) {
        let store = self.store();
        let faults = Faults::below(&self.dir.path().join("store"));
        faults.fail_only(Operation::Sync, 1, Failure::Io);
        let failed = store.transact::<_, Error>(|t| t.put("cut", b"key", b"value"));
        assert!(matches!(failed, Err(Error::Io { action: "syncing", .. })), "{failed:?}");
        store.reopen(&mut |_| {}).unwrap();
    }
}

#[test]
fn an_export_that_may_hold_what_was_cut_is_not_queued() {
    let world = World::new();
    world.ingest(0, Mode::Add, &[(0, 1, vec![0])]);
    let (inner, plant) = (world.inner(), world.catalogue.get(NAMES[0]).unwrap());
    let targets = all_targets(&plant);
    let queue = |cuts: bool| {
        let instance = world.store().read().instance();
        let mut making = Making::new(&inner, &plant, &targets, instance);
        let path = making.add_file();
        let rendered = making.rendering().full(&path).unwrap();
        if cuts {
            world.cut_a_commit();
        }
        making.queue(vec![(Kind::Full, rendered)], None, &mut |_, _| Ok(()), Instant::now())
    };
    let spooled = || std::fs::read_dir(world.exporter.spool()).unwrap().count();
    let refused = queue(true).unwrap_err();
    assert!(matches!(refused.kind, fault::Kind::Unavailable(_)), "{refused}");
    assert_eq!((world.exporter.list(None, 10).unwrap().len(), spooled()), (0, 0));
    assert_eq!(queue(false).unwrap().len(), 2);
}

#[test]
fn objects_are_not_removed_for_a_delivery_that_may_have_been_cut() {
    let mut world = World::new();
    let mut definition = Defined::to(&[0, 1]).json(0);
    definition["retention"] = "P10D".into();
    let body = definition.to_string();
    world
        .catalogue
        .put(Requester::new(&NoClient, "local"), body.as_bytes(), IfMatch::Any, &|_| Ok(()))
        .unwrap();
    world.ingest(0, Mode::Add, &[(0, 1, vec![0])]);
    world.settle();
    let plant = world.catalogue.get(NAMES[0]).unwrap();
    let time = plant.object.definition.automatic().unwrap().retention.unwrap();
    world.elapse(time + Duration::from_secs(1));
    let (inner, id) = (world.inner(), plant.object.id.as_str());
    let had = || {
        let instance = world.store().read().instance();
        let cursor = retention::cursor(&inner, &plant).unwrap().unwrap();
        Had::find(&inner, id, cursor, instance).unwrap().unwrap()
    };
    let plants = [NamedNode::new_unchecked(uri(0))];
    let remove = |had: &Had| {
        assert!(retention::remove(&inner, &plant, time, had, &plants).unwrap());
        world.store().stats().quads
    };
    let (before, quads) = (had(), world.store().stats().quads);
    world.cut_a_commit();
    assert_eq!(remove(&before), quads);
    assert!(remove(&had()) < quads);
}
