//! Tests automatic exports with a model of a consumer, which applies the files in sequence order. After any series
//! of actions, the consumer has exactly the objects that the view shows.
mod capacity;
mod empty_run;
mod holders;
mod reopened;
mod retention;

use super::automatic::{ExportPlan, run_due_exports};
use super::entry::{ExportEntry, Kind, Status};
use super::{ExportOptions, ExportRequester, Exporter, Inner};
use chrono::{TimeDelta, Utc};
use oxrdf::{Literal, NamedNode, NamedOrBlankNode, Quad, Term};
use penstock_base::clock::Stamp;
use penstock_base::commit::NoClient;
use penstock_base::disk::Disk;
use penstock_base::error::GatewayError;
use penstock_base::events::EventBus;
use penstock_config::Targets;
use penstock_model::catalogue::{Catalogue, CatalogueSettings, IfMatch, Requester};
use penstock_model::change_feed;
use penstock_model::ingest::{Body, Limits, Mode, Request, ingest};
use penstock_model::{members, view};
use penstock_store::{Read as _, Store};
use proptest::prelude::*;
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

const NAMES: [&str; 2] = ["Plant", "Part"];
const TARGETS: [&str; 2] = ["north", "south"];
const LIMITS: Limits = Limits {
    nesting: 128,
    objects: 1000,
    values: 100_000,
    idempotency_keys: 0,
    idempotency_bytes: 0,
    history: 10,
};
/// The size of a few files, so that exports sometimes wait for spool capacity.
const SPOOL: u64 = 1500;

#[derive(Debug, Clone)]
enum TestAction {
    Ingest { of: usize, mode: Mode, objects: Vec<(usize, usize, Vec<usize>)> },
    Load { quads: Vec<(bool, usize, usize, usize)> },
    Push { of: usize },
    RunSchedule { of: usize },
    RunRound,
    Interrupt { push: Option<usize> },
    Deliver { target: usize },
    Define { of: usize, definition: TestDefinition },
    Remove { of: usize },
    Restart,
}

#[derive(Debug, Clone)]
#[expect(clippy::struct_excessive_bools, reason = "each flag is a member of the definition")]
struct TestDefinition {
    on_change: bool,
    scheduled: bool,
    enabled: bool,
    conditions: bool,
    other_mapping: bool,
    targets: Vec<usize>,
}

impl TestDefinition {
    /// Returns a definition that exports to these targets on each change.
    fn exporting_to(targets: &[usize]) -> Self {
        Self {
            on_change: true,
            scheduled: false,
            enabled: true,
            conditions: false,
            other_mapping: false,
            targets: targets.to_vec(),
        }
    }

    fn to_json(&self, of: usize) -> Value {
        // Parts are top-level objects in one view and nested in the other, two levels deep.
        let config = match (of, self.other_mapping) {
            (0, false) => {
                "type: object\npath: Plant:.\nfields:\n  name: {type: string, path: <urn:name>}\n  parts:\n    \
                 type: array\n    path: <urn:part>\n    elements:\n      type: object\n      path: Part:.\n      \
                 fields:\n        name: {type: string, path: <urn:name>}\n        maker: {type: object, path: \
                 <urn:maker>/Maker:., fields: {name: {type: string, path: <urn:name>}}}\n"
            }
            (0, true) => {
                "type: object\npath: Plant:.\nfields:\n  parts:\n    type: array\n    path: <urn:part>\n    \
                 elements:\n      type: object\n      path: Part:.\n      fields:\n        name: {type: string, path: \
                 <urn:name>}\n"
            }
            (_, false) => {
                "type: object\npath: Part:.\nfields:\n  name: {type: string, path: <urn:name>}\n  maker: {type: \
                 object, path: <urn:maker>/Maker:., fields: {name: {type: string, path: <urn:name>}}}\n"
            }
            (_, true) => {
                "type: object\npath: Part:.\nfields:\n  name: {type: string, path: <urn:name>}\n"
            }
        };
        let conditions = if self.conditions {
            json!([{"predicate": "urn:part", "value": "urn:x-part:1"}])
        } else {
            json!([])
        };
        let targets: Vec<Value> =
            self.targets.iter().map(|t| json!({ "bucketName": TARGETS[*t] })).collect();
        json!({
            "name": NAMES[of],
            "config": config,
            "enabled": self.enabled,
            "conditions": conditions,
            "pushTargets": targets,
            "exportOnChange": self.on_change,
            "debounce": "0s",
            "schedule": self.scheduled.then_some("0 0 1 1 *"),
        })
    }
}

fn arbitrary_actions() -> impl Strategy<Value = Vec<TestAction>> {
    let objects =
        prop::collection::vec((0..3usize, 0..3usize, prop::collection::vec(0..3usize, 0..3)), 1..4);
    let mode = prop_oneof![
        3 => Just(Mode::Add), 2 => Just(Mode::Replace), 1 => Just(Mode::Update), 2 => Just(Mode::Delete)
    ];
    let defined = (
        prop::bool::weighted(0.8),
        any::<bool>(),
        prop::bool::weighted(0.9),
        prop::bool::weighted(0.3),
        any::<bool>(),
        prop::collection::btree_set(0..2usize, 0..3),
    )
        .prop_map(|(on_change, scheduled, enabled, conditions, other_mapping, targets)| {
            TestDefinition {
                on_change,
                scheduled,
                enabled,
                conditions,
                other_mapping,
                targets: targets.into_iter().collect(),
            }
        });
    let action = prop_oneof![
        8 => (0..2usize, mode, objects).prop_map(|(of, mode, objects)| TestAction::Ingest { of, mode, objects }),
        3 => prop::collection::vec((any::<bool>(), 0..9usize, 0..3usize, 0..9usize), 1..4)
            .prop_map(|quads| TestAction::Load { quads }),
        2 => (0..2usize).prop_map(|of| TestAction::Push { of }),
        1 => (0..2usize).prop_map(|of| TestAction::RunSchedule { of }),
        6 => Just(TestAction::RunRound),
        1 => prop::option::of(0..2usize).prop_map(|push| TestAction::Interrupt { push }),
        4 => (0..2usize).prop_map(|target| TestAction::Deliver { target }),
        2 => (0..2usize, defined).prop_map(|(of, definition)| TestAction::Define { of, definition }),
        1 => (0..2usize).prop_map(|of| TestAction::Remove { of }),
        1 => Just(TestAction::Restart),
    ];
    prop::collection::vec(action, 1..60)
}

/// Returns the URI of a plant, a part or a maker.
fn test_uri(number: usize) -> String {
    let kind = ["x-plant", "x-part", "x-maker"][number / 3 % 3];
    format!("urn:{kind}:{}", number % 3)
}

struct Fixture {
    dir: tempfile::TempDir,
    catalogue: Catalogue,
    exporter: Exporter,
    plan: ExportPlan,
    consumer: Consumer,
    /// The elapsed time in milliseconds, from which ages are computed.
    elapsed: Arc<AtomicU64>,
    /// The maximum number of containing objects for which a change is recorded.
    max_holders: usize,
}

/// A consumer of all targets. It keeps the files that it has read, by target, name and sequence.
#[derive(Default)]
struct Consumer {
    files: BTreeMap<(String, String), Files>,
}

type Files = BTreeMap<u64, (Kind, Vec<Value>)>;

impl Consumer {
    /// Returns the kinds of the plants' files in order.
    fn plant_kinds(&self, target: &str) -> Vec<Kind> {
        let files = &self.files[&(target.to_owned(), "Plant".to_owned())];
        files.values().map(|(kind, _)| *kind).collect()
    }

    /// Returns the consumer's objects of one name in one target, by URI.
    fn objects_of(&self, target: &str, name: &str) -> BTreeMap<String, Value> {
        let mut held = BTreeMap::new();
        let files = self.files.get(&(target.to_owned(), name.to_owned()));
        for (expected, (sequence, (kind, data))) in (1..).zip(files.into_iter().flatten()) {
            assert_eq!(*sequence, expected, "a gap in {target}/{name}");
            if *kind == Kind::Full {
                held.clear();
            }
            for object in data {
                let uri = object["uri"].as_str().unwrap().to_owned();
                if *kind == Kind::Deleted {
                    assert_eq!(object.as_object().unwrap().len(), 1);
                    held.remove(&uri);
                } else {
                    held.insert(uri, object.clone());
                }
            }
        }
        held
    }
}

fn open_exporter(
    dir: &Path,
    elapsed: &Arc<AtomicU64>,
    most_holders: usize,
) -> (Catalogue, Exporter) {
    let options = penstock_store::Options::default();
    let store = Store::open(&dir.join("store"), options, &mut |_| {}).unwrap();
    let settings = CatalogueSettings {
        base_url: Some("https://plant.example".to_owned()),
        gateway_id: "gateway-1".to_owned(),
        auto_create_namespaces: true,
    };
    let elapsed = Arc::clone(elapsed);
    let catalogue = Catalogue::open(store.clone(), settings)
        .unwrap()
        .with_elapsed(move || elapsed.load(Ordering::Relaxed))
        .with_max_holders(most_holders);
    let options = ExportOptions {
        targets: Targets { history_bytes: 1 << 30, ..Targets::default() },
        gateway_id: "gateway-1".to_owned(),
        data_dir: dir.to_owned(),
        history: 10_000,
        timings: super::DeliveryTimings::default(),
        events: EventBus::default(),
        spool: SPOOL,
        disk: Disk::new(dir.to_owned(), 0),
        catalogue: catalogue.clone(),
    };
    (catalogue, Exporter::open(store, options).unwrap())
}

impl Fixture {
    fn new() -> Self {
        Self::with_max_holders(10_000)
    }

    fn with_max_holders(most_holders: usize) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let elapsed = Arc::new(AtomicU64::new(1_000_000));
        let (catalogue, exporter) = open_exporter(dir.path(), &elapsed, most_holders);
        let (plan, consumer) = (ExportPlan::default(), Consumer::default());
        let mut fixture =
            Self { dir, catalogue, exporter, plan, consumer, elapsed, max_holders: most_holders };
        for of in 0..2 {
            fixture.define_object(
                of,
                &TestDefinition { scheduled: of == 0, ..TestDefinition::exporting_to(&[0, 1]) },
            );
        }
        fixture
    }

    fn exporter_inner(&self) -> Arc<Inner> {
        Arc::clone(&self.exporter.inner)
    }

    fn store(&self) -> Store {
        self.exporter.inner.queue.store.clone()
    }

    fn define_object(&mut self, of: usize, definition: &TestDefinition) {
        let body = definition.to_json(of).to_string();
        // The definitions are random, so a new one may exclude many members. Only `force` allows that.
        let by = Requester { force: true, ..Requester::new(&NoClient, "local") };
        self.catalogue.put(by, body.as_bytes(), IfMatch::Any, &|_| Ok(())).unwrap();
    }

    fn restart(self) -> Self {
        let Self { dir, catalogue, exporter, consumer, elapsed, max_holders: most_holders, .. } =
            self;
        drop((catalogue, exporter));
        let (catalogue, exporter) = open_exporter(dir.path(), &elapsed, most_holders);
        Self {
            dir,
            catalogue,
            exporter,
            plan: ExportPlan::default(),
            consumer,
            elapsed,
            max_holders: most_holders,
        }
    }

    fn run_round(&mut self) {
        run_due_exports(&self.exporter_inner(), &mut self.plan);
        self.consume_files();
    }

    fn consume_files(&mut self) {
        for entry in self.exporter.list(None, 100_000).unwrap() {
            if entry.status == Status::Waiting {
                continue;
            }
            let ExportEntry { target, business_object_name: name, .. } = &entry;
            let files = self.consumer.files.entry((target.clone(), name.clone())).or_default();
            files.entry(entry.sequence).or_insert_with(|| {
                let content = self.exporter.open_content(&entry.id).unwrap();
                let file: Value = serde_json::from_reader(content.file).unwrap();
                let data = file["data"].as_array().unwrap().clone();
                assert_eq!(data.len() as u64, entry.object_count);
                (entry.kind, data)
            });
        }
    }

    fn deliver_next(&mut self, target: &str) -> bool {
        let queue = &self.exporter.inner.queue;
        let Some(job) = queue.begin_delivery(target).unwrap() else { return false };
        queue.record_delivery(job.order, Stamp::of_system()).unwrap();
        true
    }

    fn ingest_objects(&self, of: usize, mode: Mode, objects: &[(usize, usize, Vec<usize>)]) {
        let Some(business_object) = self.catalogue.get(NAMES[of]) else { return };
        let data: Vec<Value> = objects
            .iter()
            .map(|(number, name, parts)| {
                let named = test_uri(number + 3 * of);
                let maker = |maker: &usize| json!({"uri": test_uri(6 + maker), "name": format!("m{name}")});
                match (mode, of) {
                    (Mode::Delete, _) => json!({ "uri": named }),
                    (_, 0) => json!({
                        "uri": named,
                        "name": format!("n{name}"),
                        "parts": parts.iter().map(|part| match name {
                            0 => json!({"uri": test_uri(3 + part)}),
                            _ => json!({"uri": test_uri(3 + part), "name": format!("p{name}"), "maker": maker(part)}),
                        }).collect::<Vec<_>>(),
                    }),
                    _ => json!({"uri": named, "name": format!("n{name}"), "maker": parts.first().map(maker)}),
                }
            })
            .collect();
        let body = json!({ "data": data }).to_string();
        let request = Request {
            business_object: &business_object,
            mode,
            check: &NoClient,
            caller: "local",
            api_key: None,
            traceparent: None,
            idempotency_key: None,
            lists_objects: true,
            watch: self.catalogue.watch(),
            events: None,
            body: Body::Json(body.as_bytes()),
        };
        // Many requests are refused: a different value exists, the view lacks a field, or the URI is unknown.
        let _ = ingest(&self.store().into(), &LIMITS, &request);
    }

    fn load_quads(&self, quads: &[(bool, usize, usize, usize)]) {
        let node = |iri: String| NamedNode::new(iri).unwrap();
        self.store()
            .transact::<_, GatewayError>(|t| {
                for (add, subject, property, object) in quads {
                    let graph = ["Plant", "Part", "Maker"][subject / 3];
                    let graph = node(format!("https://plant.example/id/{graph}/"));
                    let property = ["urn:name", "urn:part", "urn:maker"][*property];
                    let value: Term = if property == "urn:name" {
                        Literal::from(format!("l{object}")).into()
                    } else {
                        node(test_uri(*object)).into()
                    };
                    let subject: NamedOrBlankNode = node(test_uri(*subject)).into();
                    let quad = Quad::new(subject, node(property.to_owned()), value, graph);
                    if *add {
                        t.insert(quad.as_ref())?;
                    } else {
                        t.remove(quad.as_ref())?;
                    }
                }
                change_feed::record_changes(t, self.catalogue.watch())
            })
            .unwrap();
    }

    fn apply_action(mut self, action: TestAction) -> Self {
        match action {
            TestAction::Ingest { of, mode, objects } => self.ingest_objects(of, mode, &objects),
            TestAction::Load { quads } => self.load_quads(&quads),
            TestAction::Push { of } => {
                if let Some(business_object) = self.catalogue.get(NAMES[of]) {
                    // The push may fail: the Business Object is disabled or has no target, or the spool is full.
                    let _ = self.exporter.push(&business_object, ExportRequester::gateway());
                }
                self.consume_files();
            }
            TestAction::RunSchedule { of } => {
                if let Some(business_object) = self.catalogue.get(NAMES[of]) {
                    self.plan.run_now(&business_object.object.id, Utc::now() - TimeDelta::hours(1));
                }
                self.run_round();
            }
            TestAction::RunRound => self.run_round(),
            TestAction::Interrupt { push } => {
                self.exporter.inner.stopping.store(true, Ordering::Relaxed);
                match push.and_then(|of| self.catalogue.get(NAMES[of])) {
                    Some(business_object) => {
                        assert!(
                            self.exporter
                                .push(&business_object, ExportRequester::gateway())
                                .is_err()
                        );
                    }
                    None => self.run_round(),
                }
                self.exporter.inner.stopping.store(false, Ordering::Relaxed);
            }
            TestAction::Deliver { target } => {
                self.deliver_next(TARGETS[target]);
            }
            TestAction::Define { of, definition } => self.define_object(of, &definition),
            TestAction::Remove { of } => {
                let by = Requester::new(&NoClient, "local");
                let _ = self.catalogue.delete(by, NAMES[of], IfMatch::Any);
            }
            TestAction::Restart => return self.restart(),
        }
        self
    }

    /// Delivers everything and runs all due exports.
    fn settle_all(&mut self) {
        for _ in 0..30 {
            for target in TARGETS {
                while self.deliver_next(target) {}
            }
            self.plan.try_now();
            self.run_round();
        }
        let waiting: Vec<_> = self.exporter.inner.waiting.list_entries();
        assert_eq!(waiting, []);
    }

    fn assert_consumers_match(&mut self) {
        let store = self.store();
        for business_object in self.catalogue.list() {
            let definition = &business_object.object.definition;
            if !definition.export_on_change || !definition.enabled {
                continue;
            }
            let read = store.read();
            let mut shown = BTreeMap::new();
            for uri in members::list_members(&read, &business_object, None, 1000).unwrap() {
                let mut out = Vec::new();
                let root = &business_object.mapping.root;
                view::render_object(&read, root, &uri, &mut out, &mut Vec::new()).unwrap();
                let object: Value = serde_json::from_slice(&out).unwrap();
                shown.insert(uri.into_string(), object);
            }
            drop(read);
            for target in &definition.push_targets {
                let held = self.consumer.objects_of(&target.bucket_name, &definition.name);
                assert_eq!(held, shown, "{} in {}", definition.name, target.bucket_name);
            }
        }
        // No change records remain for finished exports.
        let range = penstock_store::DocumentRange { limit: 10, ..Default::default() };
        let exported: BTreeSet<String> = self
            .catalogue
            .list()
            .iter()
            .filter(|b| b.object.definition.enabled && !b.object.definition.push_targets.is_empty())
            .map(|b| b.object.id.clone())
            .collect();
        for (key, _) in store.read().read_documents("changes", range).unwrap() {
            let id = String::from_utf8(key.split(|b| *b == 0).next().unwrap().to_vec()).unwrap();
            assert!(!exported.contains(&id), "{key:?}");
        }
    }
}

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

fn assert_consumer_matches_view(mut fixture: Fixture, actions: Vec<TestAction>) {
    for action in actions {
        fixture = fixture.apply_action(action);
    }
    fixture.settle_all();
    fixture.assert_consumers_match();
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
            let request = Request {
                business_object: &catalogue.get(NAMES[0]).unwrap(),
                mode,
                check: &NoClient,
                caller: "local",
                api_key: None,
                traceparent: None,
                idempotency_key: None,
                lists_objects: true,
                watch: catalogue.watch(),
                events: None,
                body: Body::Json(body.as_bytes()),
            };
            ingest(&store.clone().into(), &LIMITS, &request).unwrap();
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
    assert_eq!(fixture.consumer.plant_kinds("north"), [Kind::Full]);
    fixture.ingest_objects(0, Mode::Delete, &[(0, 1, vec![])]);
    fixture.settle_all();
    let files = &fixture.consumer.files[&("north".to_owned(), "Plant".to_owned())];
    let (kind, data) = &files[&2];
    assert_eq!((*kind, data), (Kind::Deleted, &vec![json!({ "uri": test_uri(0) })]));
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
    assert_eq!(fixture.consumer.plant_kinds("north"), [Kind::Full, Kind::Incremental]);
    assert_eq!(fixture.consumer.plant_kinds("south"), [Kind::Full, Kind::Full]);
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
        assert_eq!(fixture.consumer.plant_kinds("north"), [Kind::Full, Kind::Deleted]);
        assert_eq!(fixture.consumer.plant_kinds("south")[0], Kind::Full);
    }
}
