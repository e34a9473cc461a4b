//! Tests a full disk and a full spool with the model.
use super::fixture::SPOOL;
use super::*;
use crate::automatic::run_due_exports;
use crate::spool::BLOCK_BYTES;
use oxrdf::{Literal, NamedNode, Quad};
use penstock_base::disk::Disk;
use penstock_base::error::{self, GatewayError};
use penstock_model::change_feed;
use std::time::{Duration, Instant};

impl Fixture {
    /// Sets the disk reserve in bytes.
    fn set_disk_reserve(&mut self, bytes: u64) {
        let disk = Disk::new(self.dir.path().to_owned(), bytes);
        self.exporter.inner.get_mut().unwrap().options.disk = disk;
    }

    /// Adds plants with names of 8 MiB in total.
    fn add_large_plants(&self) {
        let node = |iri: String| NamedNode::new(iri).unwrap();
        let graph = node("https://plant.example/id/Plant/".to_owned());
        self.store()
            .transact::<_, GatewayError>(|t| {
                for number in 0..128 {
                    let plant = node(format!("urn:x-plant:large-{number}"));
                    let name = Literal::from("x".repeat(64 << 10));
                    let quad = Quad::new(plant, node("urn:name".to_owned()), name, graph.clone());
                    t.insert(quad.as_ref())?;
                }
                change_feed::record_changes(t, self.catalogue.watch())
            })
            .unwrap();
    }

    fn count_spooled(&self) -> usize {
        std::fs::read_dir(self.exporter.spool_folder()).unwrap().count()
    }
}

#[test]
fn a_large_export_leaves_half_of_the_reserve_and_is_retried_with_backoff() {
    let mut fixture = Fixture::new();
    fixture.add_large_plants();
    fixture.set_disk_reserve(u64::MAX);
    fixture.run_round();
    let waiting = fixture.exporter.list(None, 10).unwrap();
    assert_eq!(waiting.len(), 2);
    for entry in &waiting {
        assert_eq!((entry.status, entry.kind), (ExportStatus::Waiting, ExportKind::Full));
        let cause = entry.last_error.as_ref().unwrap();
        assert!(cause.contains("service.limits.disk-reserve"), "{cause}");
    }
    assert_eq!((fixture.plan.count_failures(), fixture.count_spooled()), (1, 0));
    fixture.run_round();
    assert_eq!(fixture.plan.count_failures(), 1, "the backoff has not ended");
    let plant = fixture.catalogue.get(NAMES[0]).unwrap();
    assert_eq!(
        fixture.exporter.push(&plant, ExportRequester::gateway()).unwrap_err().class,
        error::ErrorClass::InsufficientStorage
    );
    assert_eq!(fixture.count_spooled(), 0);
    assert_eq!(
        fixture.exporter.retry(&NoClient, &waiting[0].id).unwrap().status,
        ExportStatus::Waiting
    );
    fixture.run_round();
    assert_eq!(fixture.plan.count_failures(), 2, "the retry request ends the backoff");

    fixture.set_disk_reserve(0);
    fixture.run_round();
    assert_eq!(fixture.plan.count_failures(), 2, "the backoff is twice as long");
    fixture.settle_all();
    assert_eq!(fixture.plan.count_failures(), 0);
    fixture.assert_consumers_match();
}

#[test]
fn a_later_failure_of_another_kind_gets_the_usual_backoff() {
    let mut fixture = Fixture::new();
    fixture.add_large_plants();
    fixture.set_disk_reserve(u64::MAX);
    fixture.run_round();
    assert_eq!(fixture.plan.count_failures(), 1);
    fixture.set_disk_reserve(0);
    fixture.plan.simulate_freed_space();
    let spool = fixture.exporter.spool_folder().to_owned();
    std::fs::remove_dir(&spool).unwrap();
    std::fs::write(&spool, "").unwrap();
    fixture.run_round();
    assert_eq!(
        fixture.plan.count_failures(),
        2,
        "the retry came at once and failed for another reason"
    );
    fixture.run_round();
    assert_eq!(fixture.plan.count_failures(), 2, "the backoff has not ended");
    std::fs::remove_file(&spool).unwrap();
    std::fs::create_dir(&spool).unwrap();
    fixture.settle_all();
    fixture.assert_consumers_match();
}

#[test]
fn each_file_counts_with_the_blocks_that_it_takes_on_the_disk() {
    let mut fixture = Fixture::new();
    let pushed = TestDefinition { on_change: false, ..TestDefinition::exporting_to(&[0]) };
    fixture.define_object(0, &pushed);
    fixture.ingest_objects(0, Mode::Add, &[(0, 1, vec![])]);
    let plant = fixture.catalogue.get(NAMES[0]).unwrap();
    let push = |fixture: &Fixture| fixture.exporter.push(&plant, ExportRequester::gateway());
    let used = |fixture: &Fixture| fixture.exporter.spool_usage().waiting;
    for files in 0..SPOOL / BLOCK_BYTES {
        assert_eq!(used(&fixture), files * BLOCK_BYTES);
        push(&fixture).unwrap();
    }
    let refused = push(&fixture).unwrap_err();
    assert_eq!(refused.class, error::ErrorClass::InsufficientStorage);
    let newest = fixture.exporter.list(None, 1).unwrap().remove(0);
    assert!(newest.bytes < BLOCK_BYTES);
    fixture.exporter.park(&NoClient, &newest.id).unwrap();
    assert_eq!(used(&fixture), SPOOL);
    let mut fixture = fixture.restart();
    assert_eq!(used(&fixture), SPOOL);
    assert!(fixture.deliver_next(TARGETS[0]));
    assert_eq!(used(&fixture), SPOOL - BLOCK_BYTES);
    push(&fixture).unwrap();
}

#[test]
fn a_small_export_may_use_the_reserve() {
    let mut fixture = Fixture::new();
    fixture.set_disk_reserve(u64::MAX);
    fixture.ingest_objects(0, Mode::Add, &[(0, 1, vec![])]);
    fixture.run_round();
    let listed = fixture.exporter.list(None, 10).unwrap();
    let queued = listed.iter().filter(|entry| entry.status == ExportStatus::Queued);
    assert_eq!(queued.count(), 2);
}

#[test]
fn the_next_round_waits_for_the_debounce_after_a_backoff_ends() {
    let mut fixture = Fixture::new();
    fixture.settle_all();
    let mut definition = TestDefinition::exporting_to(&[0]).to_json(0);
    definition["debounce"] = "2s".into();
    put_definition(&fixture.catalogue, &definition);
    fixture.ingest_objects(0, Mode::Add, &[(0, 1, vec![])]);
    fixture.run_round();
    assert_eq!(
        fixture.consumer.objects_of("north", "Plant").into_keys().collect::<Vec<_>>(),
        [test_uri(0)]
    );
    // With undelivered exports, the next export would wait and not be attempted.
    while fixture.deliver_next("north") {}

    fixture.add_large_plants();
    fixture.set_disk_reserve(u64::MAX);
    let begun = Instant::now();
    while fixture.plan.count_failures() == 0 {
        assert!(begun.elapsed() < Duration::from_mins(1), "nothing failed");
        fixture.run_round();
    }
    fixture.plan.try_now();
    // The backoff has ended, but the changes are due again only in two seconds.
    let next = run_due_exports(&fixture.exporter_inner(), &mut fixture.plan);
    assert!(!next.is_due_now());
}
