//! Tests the queue against a small model, with random pushes, deliveries, failures, operator actions and restarts.
//! Each target keeps its order and its sequences, and the spool has exactly the files that are needed.
use super::backoff::RetryRule;
use super::cause::{DeliveryFailure, DeliveryOutcome};
use super::file::{FinishedFile, MetadataSource};
use super::key::FileSettings;
use super::queue::{ExportQueue, HistoryLimits, NewExport, NewExports, QueueTarget, TargetFile};
use super::record::file_name;
use super::spool::Spool;
use super::uploads::UploadFolder;
use super::{DeliveryTimings, ExportRequester};
use penstock_base::clock::Stamp;
use penstock_base::commit::NoClient;
use penstock_resources::export::{Cause, ExportKind, ExportStatus};
use penstock_store::Store;
use proptest::prelude::*;
use std::collections::{BTreeMap, BTreeSet};

const LIMITS: HistoryLimits = HistoryLimits { records: 4, bytes: 25 };
const BYTES: u64 = 10;

#[derive(Debug, Clone)]
enum TestAction {
    Push { name: usize, targets: Vec<usize> },
    Deliver { target: usize },
    Fail { target: usize },
    Park { nth: usize },
    Retry { nth: usize },
    Replay { nth: usize },
    Restart { orphan: bool },
}

#[derive(Debug, Clone)]
struct KnownEntry {
    target: String,
    sequence: u64,
    status: ExportStatus,
    kept: bool,
}

/// The expected state: all entries by their order, and the orders of the queued ones by place.
#[derive(Debug, Default)]
struct Model {
    entries: BTreeMap<u64, (String, KnownEntry)>,
    places: BTreeMap<u64, u64>,
    next: u64,
    sequences: BTreeMap<(String, String), u64>,
}

impl Model {
    fn head_of(&self, target: &str) -> Option<u64> {
        let of = |order: &&u64| self.entries[order].1.target == target;
        self.places.values().find(of).copied()
    }

    fn deliver_entry(&mut self, order: u64) {
        self.places.retain(|_, waiting| *waiting != order);
        self.entries.get_mut(&order).unwrap().1.status = ExportStatus::Delivered;
        let delivered = |model: &Self| -> Vec<u64> {
            let done = model
                .entries
                .iter()
                .filter(|(_, (_, known))| known.status == ExportStatus::Delivered);
            done.map(|(order, _)| *order).collect()
        };
        while delivered(self).len() > LIMITS.records {
            self.entries.remove(&delivered(self)[0]);
        }
        loop {
            let kept: Vec<u64> =
                delivered(self).into_iter().filter(|order| self.entries[order].1.kept).collect();
            if kept.len() as u64 * BYTES <= LIMITS.bytes {
                break;
            }
            self.entries.get_mut(&kept[0]).unwrap().1.kept = false;
        }
    }

    fn nth_entry(&self, nth: usize) -> Option<(u64, String, ExportStatus)> {
        let (order, (id, known)) = self.entries.iter().nth(nth % self.entries.len().max(1))?;
        Some((*order, id.clone(), known.status))
    }
}

fn arbitrary_actions() -> impl Strategy<Value = Vec<TestAction>> {
    let action = prop_oneof![
        4 => (0..2usize, prop::collection::btree_set(0..3usize, 1..3))
            .prop_map(|(name, targets)| TestAction::Push { name, targets: targets.into_iter().collect() }),
        4 => (0..3usize).prop_map(|target| TestAction::Deliver { target }),
        1 => (0..3usize).prop_map(|target| TestAction::Fail { target }),
        1 => (0..100usize).prop_map(|nth| TestAction::Park { nth }),
        1 => (0..100usize).prop_map(|nth| TestAction::Retry { nth }),
        1 => (0..100usize).prop_map(|nth| TestAction::Replay { nth }),
        1 => any::<bool>().prop_map(|orphan| TestAction::Restart { orphan }),
    ];
    prop::collection::vec(action, 1..40)
}

fn open_queue(store: &Store, dir: &std::path::Path) -> ExportQueue {
    let spool = Spool::open(dir.join("spool")).unwrap();
    let events = penstock_base::events::EventBus::default();
    ExportQueue::open(store.clone(), spool, LIMITS, events, false).unwrap()
}

fn assert_queue_matches(queue: &ExportQueue, model: &Model) {
    let listed = queue.list(None, 1000).unwrap();
    let entries: Vec<_> = model.entries.values().rev().collect();
    assert_eq!(listed.len(), entries.len());
    for (entry, (id, known)) in listed.iter().zip(entries) {
        assert_eq!(&entry.id, id);
        assert_eq!((&entry.target, entry.sequence), (&known.target, known.sequence));
        let waiting =
            |status| if status == ExportStatus::Blocked { ExportStatus::Queued } else { status };
        assert_eq!(waiting(entry.status), known.status, "{id}");
        assert_eq!(queue.open_content(id).is_ok(), known.kept);
    }
    let files: BTreeSet<String> = model
        .entries
        .values()
        .filter(|(_, known)| known.kept)
        .map(|(id, _)| file_name(id))
        .collect();
    let found = std::fs::read_dir(queue.spool.folder()).unwrap();
    let found: BTreeSet<String> =
        found.map(|f| f.unwrap().file_name().into_string().unwrap()).collect();
    assert_eq!(found, files);
    for target in 0..3 {
        let target = format!("target-{target}");
        let waiting: Vec<u64> = model
            .places
            .values()
            .filter(|o| model.entries[o].1.target == target)
            .copied()
            .collect();
        let state = queue.lock_state();
        let target_queue = state.queues.get(&target);
        let found: Vec<u64> = target_queue
            .iter()
            .flat_map(|target_queue| target_queue.waiting.values())
            .map(|(order, _)| *order)
            .collect();
        assert_eq!(found, waiting);
        assert_eq!(
            target_queue.map_or(0, |target_queue| target_queue.bytes),
            waiting.len() as u64 * BYTES
        );
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, ..ProptestConfig::default() })]

    #[test]
    fn the_queue_does_what_the_model_does(actions in arbitrary_actions()) {
        let dir = tempfile::tempdir().unwrap();
        let store = Store::open(&dir.path().join("store"), penstock_store::Options::default(), &mut |_| ()).unwrap();
        let mut queue = open_queue(&store, dir.path());
        let uploads = UploadFolder::new(dir.path().join("uploads"));
        let mut model = Model::default();
        let finished = FinishedFile { objects: 1, bytes: BYTES, data_checksum: String::new(), sha256: String::new() };
        for action in actions {
            match action {
                TestAction::Push { name, targets } => {
                    let name = format!("name-{name}");
                    let first = model.next;
                    let targets: Vec<_> = (first..)
                        .zip(targets)
                        .map(|(order, target)| (format!("id-{order}"), format!("target-{target}")))
                        .collect();
                    let files = targets
                        .iter()
                        .map(|(id, _)| TargetFile { id: id.clone(), finished: finished.clone(), sequence: None })
                        .collect();
                    let queue_targets: Vec<_> = targets
                        .iter()
                        .map(|(_, name)| QueueTarget { name: name.clone(), files: FileSettings::default(), place: None })
                        .collect();
                    let export = NewExport { kind: ExportKind::Full, objects: 1, warnings: Vec::new(), files };
                    let source = MetadataSource {
                        export_date: "20260301T120000Z".to_owned(),
                        object_type: &name,
                        gateway_id: "gateway-1",
                        schema_version: 1,
                        commit: 1,
                        is_extended: false,
                    };
                    for (id, _) in &targets {
                        std::fs::write(queue.spool.path(&file_name(id)), vec![b' '; 10]).unwrap();
                    }
                    let added = queue.enqueue_files(&NewExports {
                        business_object: "id",
                        source: &source,
                        exports: &[export],
                        targets: &queue_targets,
                        commit: None,
                        covers: None,
                        by: ExportRequester::gateway(),
                        created_at: Stamp::of_system(),
                    }, &mut |_, _| Ok(())).unwrap();
                    for ((order, entry), (id, target)) in (first..).zip(added).zip(targets) {
                        let sequence = model.sequences.entry((target.clone(), name.clone())).or_default();
                        *sequence += 1;
                        prop_assert_eq!(entry.sequence, *sequence);
                        let known = KnownEntry { target, sequence: *sequence, status: ExportStatus::Queued, kept: true };
                        model.entries.insert(order, (id, known));
                        model.places.insert(order, order);
                        model.next = order + 1;
                    }
                }
                TestAction::Deliver { target } | TestAction::Fail { target } => {
                    let target = format!("target-{target}");
                    let job = queue.begin_delivery(&target).unwrap();
                    prop_assert_eq!(job.as_ref().map(|job| job.order), model.head_of(&target));
                    let Some(job) = job else { continue };
                    prop_assert!(queue.park(&NoClient, &job.entry.id).is_err());
                    if matches!(action, TestAction::Deliver { .. }) {
                        queue.record_delivery(job.order, Stamp::of_system(), &DeliveryOutcome::default(), &uploads).unwrap();
                        model.deliver_entry(job.order);
                    } else {
                        let failure = DeliveryFailure::new(Cause::Unreachable, "the target is unreachable");
                        queue.record_failure(&target, job.order, failure, &RetryRule::of_targets(DeliveryTimings::default()));
                        prop_assert_eq!(queue.list(None, 1000).unwrap().iter().find(|e| e.id == job.entry.id).unwrap().status, ExportStatus::Blocked);
                    }
                }
                TestAction::Park { nth } => {
                    let Some((order, id, status)) = model.nth_entry(nth) else { continue };
                    prop_assert_eq!(queue.park(&NoClient, &id).is_ok(), status == ExportStatus::Queued);
                    if status == ExportStatus::Queued {
                        model.entries.get_mut(&order).unwrap().1.status = ExportStatus::Parked;
                        model.places.retain(|_, waiting| *waiting != order);
                    }
                }
                TestAction::Retry { nth } => {
                    let Some((order, id, status)) = model.nth_entry(nth) else { continue };
                    prop_assert_eq!(queue.retry(&NoClient, &id).is_ok(), status != ExportStatus::Delivered);
                    if status == ExportStatus::Parked {
                        model.entries.get_mut(&order).unwrap().1.status = ExportStatus::Queued;
                        let place = queue.find_entry(&queue.lock_state(), &id).unwrap().unwrap().1.place;
                        model.places.insert(place, order);
                    }
                }
                TestAction::Replay { nth } => {
                    let Some((order, id, status)) = model.nth_entry(nth) else { continue };
                    let may = status == ExportStatus::Delivered && model.entries[&order].1.kept;
                    prop_assert_eq!(queue.replay(&NoClient, &id).is_ok(), may);
                    if may {
                        model.entries.get_mut(&order).unwrap().1.status = ExportStatus::Queued;
                        model.places.insert(model.next, order);
                        model.next += 1;
                    }
                }
                TestAction::Restart { orphan } => {
                    if orphan {
                        std::fs::write(queue.spool.path("orphan.json"), "{").unwrap();
                    }
                    drop(queue);
                    queue = open_queue(&store, dir.path());
                    // The restart may assign orders again that no entry uses any more.
                    model.next = queue.lock_state().next_order;
                }
            }
            assert_queue_matches(&queue, &model);
        }
    }
}
