//! A disk without room, in the world of the model.
use super::{Defined, NAMES, World, uri};
use crate::By;
use crate::automatic::turn;
use crate::entry::{Kind, Status};
use oxrdf::{Literal, NamedNode, Quad};
use penstock_base::commit::NoClient;
use penstock_base::disk::Disk;
use penstock_base::fault::{self, Fault};
use penstock_model::catalogue::{IfMatch, Requester};
use penstock_model::changes;
use penstock_model::ingest::Mode;
use std::sync::Arc;
use std::time::{Duration, Instant};

impl World {
    /// Keeps so much of the disk in reserve.
    fn reserve(&mut self, bytes: u64) {
        let disk = Disk::new(self.dir.path().to_owned(), bytes);
        Arc::get_mut(&mut self.exporter.inner).unwrap().options.disk = disk;
    }

    /// Gives the first plant names of 8 MiB in all.
    fn grow(&self) {
        let node = |iri: String| NamedNode::new(iri).unwrap();
        let graph = node("https://plant.example/id/Plant/".to_owned());
        self.store()
            .transact::<_, Fault>(|t| {
                for number in 0..128 {
                    let plant = node(format!("urn:x-plant:large-{number}"));
                    let name = Literal::from("x".repeat(64 << 10));
                    let quad = Quad::new(plant, node("urn:name".to_owned()), name, graph.clone());
                    t.insert(quad.as_ref())?;
                }
                changes::note(t, self.catalogue.watch())
            })
            .unwrap();
    }

    fn spooled(&self) -> usize {
        std::fs::read_dir(self.exporter.spool()).unwrap().count()
    }
}

#[test]
fn a_long_export_leaves_half_of_the_reserve_and_is_not_tried_again_at_once() {
    let mut world = World::new();
    world.grow();
    world.reserve(u64::MAX);
    world.turn();
    let waiting = world.exporter.list(None, 10).unwrap();
    assert_eq!(waiting.len(), 2);
    for entry in &waiting {
        assert_eq!((entry.status, entry.kind), (Status::Waiting, Kind::Full));
        let cause = entry.last_error.as_ref().unwrap();
        assert!(cause.contains("service.limits.disk-reserve"), "{cause}");
    }
    assert_eq!((world.plan.failures(), world.spooled()), (1, 0));
    world.turn();
    assert_eq!(world.plan.failures(), 1, "it waits");
    let plant = world.catalogue.get(NAMES[0]).unwrap();
    assert_eq!(world.exporter.push(&plant, By::gateway()).unwrap_err().kind, fault::Kind::NoRoom);
    assert_eq!(world.spooled(), 0);
    assert_eq!(world.exporter.retry(&NoClient, &waiting[0].id).unwrap().status, Status::Waiting);
    world.turn();
    assert_eq!(world.plan.failures(), 2, "somebody asked for it");

    world.reserve(0);
    world.turn();
    assert_eq!(world.plan.failures(), 2, "it waits for twice as long");
    world.settle();
    assert_eq!(world.plan.failures(), 0);
    world.check();
}

#[test]
fn what_fails_once_there_is_room_again_waits_as_long_as_anything() {
    let mut world = World::new();
    world.grow();
    world.reserve(u64::MAX);
    world.turn();
    assert_eq!(world.plan.failures(), 1);
    world.reserve(0);
    world.plan.has_more_room();
    let spool = world.exporter.spool().to_owned();
    std::fs::remove_dir(&spool).unwrap();
    std::fs::write(&spool, "").unwrap();
    world.turn();
    assert_eq!(world.plan.failures(), 2, "it was tried at once, and something else went wrong");
    world.turn();
    assert_eq!(world.plan.failures(), 2, "it waits");
    std::fs::remove_file(&spool).unwrap();
    std::fs::create_dir(&spool).unwrap();
    world.settle();
    world.check();
}

#[test]
fn a_small_export_may_use_the_reserve() {
    let mut world = World::new();
    world.reserve(u64::MAX);
    world.ingest(0, Mode::Add, &[(0, 1, vec![])]);
    world.turn();
    let listed = world.exporter.list(None, 10).unwrap();
    let queued = listed.iter().filter(|entry| entry.status == Status::Queued);
    assert_eq!(queued.count(), 2);
}

#[test]
fn what_failed_is_waited_for_once_its_wait_is_over_too() {
    let mut world = World::new();
    world.settle();
    let mut definition = Defined::to(&[0]).json(0);
    definition["debounce"] = "2s".into();
    let body = definition.to_string();
    world
        .catalogue
        .put(Requester::new(&NoClient, "local"), body.as_bytes(), IfMatch::Any, &|_| Ok(()))
        .unwrap();
    world.ingest(0, Mode::Add, &[(0, 1, vec![])]);
    world.turn();
    assert_eq!(world.consumer.holds("north", "Plant").into_keys().collect::<Vec<_>>(), [uri(0)]);
    // What waits for its target would hold it up before it is tried.
    while world.deliver("north") {}

    world.grow();
    world.reserve(u64::MAX);
    let begun = Instant::now();
    while world.plan.failures() == 0 {
        assert!(begun.elapsed() < Duration::from_mins(1), "nothing failed");
        world.turn();
    }
    world.plan.try_now();
    // What changed is due again in two seconds, and the wait after the failure is over before.
    let next = turn(&world.inner(), &mut world.plan);
    assert!(!next.is_now());
}
