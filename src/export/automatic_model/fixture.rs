//! An exporter with plants and parts, its targets, and the consumer of their files.
use super::consumer::Consumer;
use super::*;
use crate::automatic::{ExportPlan, run_due_exports};
use crate::spool::BLOCK_BYTES;
use crate::{DeliveryTimings, ExportOptions, Exporter, ExporterParts};
use chrono::{TimeDelta, Utc};
use oxrdf::{Literal, NamedNode, NamedOrBlankNode, Quad, Term};
use penstock_base::Preconditions;
use penstock_base::clock::Stamp;
use penstock_base::disk::Disk;
use penstock_base::error::GatewayError;
use penstock_base::events::EventBus;
use penstock_base::shared::Shared;
use penstock_config::{ExportFormat, KeyTemplate, Target, TargetKind, Targets};
use penstock_model::catalogue::{Catalogue, Requester};
use penstock_model::change_feed;
use penstock_model::resource::CompiledDefinition;
use penstock_model::testing::{catalogue_settings, list_members, render_object};
use penstock_store::{Read as _, Store};
use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// What a few files take on the disk, so that exports sometimes wait for spool capacity.
pub(super) const SPOOL: u64 = 5 * BLOCK_BYTES;

/// Returns the URI of a plant, a part or a maker.
pub(super) fn test_uri(number: usize) -> String {
    let kind = ["x-plant", "x-part", "x-maker"][number / 3 % 3];
    format!("urn:{kind}:{}", number % 3)
}

pub(super) struct Fixture {
    pub(super) dir: tempfile::TempDir,
    pub(super) catalogue: Catalogue,
    pub(super) exporter: Exporter,
    pub(super) plan: ExportPlan,
    pub(super) consumer: Consumer,
    /// The elapsed time in milliseconds, from which ages are computed.
    pub(super) elapsed: Arc<AtomicU64>,
    /// The maximum number of containing objects for which a change is recorded.
    pub(super) max_holders: usize,
}

/// Returns targets that differ in the format and the keys of their files.
fn configured_targets() -> Targets {
    let target = |key: KeyTemplate, format| Target {
        kind: TargetKind::Directory { path: None },
        prefix: String::new(),
        key,
        format,
    };
    let by_kind = "{prefix}{kind}/{name}/{sequence}.json".parse().unwrap();
    let targets = [
        target(KeyTemplate::default(), ExportFormat::Json),
        target(by_kind, ExportFormat::JsonLines),
    ];
    Targets {
        named: TARGETS.map(str::to_owned).into_iter().zip(targets).collect(),
        history_bytes: 1 << 30,
        has_extended_metadata: true,
        ..Targets::default()
    }
}

fn open_exporter(
    dir: &Path,
    elapsed: &Arc<AtomicU64>,
    most_holders: usize,
) -> (Catalogue, Exporter) {
    let options = penstock_store::Options::default();
    let store = Store::open(&dir.join("store"), options, &mut |_| {}).unwrap();
    let elapsed = Arc::clone(elapsed);
    let catalogue = Catalogue::open(store.clone(), catalogue_settings())
        .unwrap()
        .with_elapsed(move || elapsed.load(Ordering::Relaxed))
        .with_max_holders(most_holders);
    let options = ExportOptions {
        targets: configured_targets(),
        gateway_id: "gateway-1".to_owned(),
        data_dir: dir.to_owned(),
        history: 10_000,
        timings: DeliveryTimings::default(),
        events: EventBus::default(),
        spool: SPOOL,
        disk: Disk::new(dir.to_owned(), 0),
        catalogue: catalogue.clone(),
    };
    (catalogue, Exporter::open(store, options).unwrap())
}

impl Fixture {
    pub(super) fn new() -> Self {
        Self::with_max_holders(10_000)
    }

    pub(super) fn with_max_holders(most_holders: usize) -> Self {
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

    pub(super) fn exporter_inner(&self) -> Shared<ExporterParts> {
        self.exporter.inner.clone()
    }

    pub(super) fn store(&self) -> Store {
        self.exporter.inner.queue.store.clone()
    }

    pub(super) fn define_object(&mut self, of: usize, definition: &TestDefinition) {
        let body = definition.to_json(of).to_string();
        let definition = CompiledDefinition::from_json(body.as_bytes()).unwrap();
        // The definitions are random, so a new one may exclude many members. Only `force` allows that.
        let by = Requester { force: true, ..Requester::new(&NoClient, "local") };
        self.catalogue.put(by, definition, Preconditions::default()).unwrap();
    }

    pub(super) fn restart(self) -> Self {
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

    pub(super) fn run_round(&mut self) {
        run_due_exports(&self.exporter_inner(), &mut self.plan);
        self.consume_files();
    }

    pub(super) fn consume_files(&mut self) {
        self.consumer.read_files(&self.exporter);
    }

    pub(super) fn deliver_next(&mut self, target: &str) -> bool {
        self.deliver_with_outcome(target, &DeliveryOutcome::default())
    }

    pub(super) fn deliver_with_outcome(&mut self, target: &str, outcome: &DeliveryOutcome) -> bool {
        let ExporterParts { queue, uploads, .. } = &*self.exporter.inner;
        let Some(job) = queue.begin_delivery(target).unwrap() else { return false };
        let at = Stamp::of_system();
        let entry = queue.record_delivery(job.order, at, outcome, uploads).unwrap();
        if outcome.needs_full {
            self.catalogue.watch().mark(&entry.business_object);
        }
        true
    }

    pub(super) fn ingest_objects(
        &self,
        of: usize,
        mode: Mode,
        objects: &[(usize, usize, Vec<usize>)],
    ) {
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
        // Many requests are refused: a different value exists, the view lacks a field, or the URI is unknown.
        let (store, watch) = (self.store().into(), self.catalogue.watch());
        let _ = ingest_body(&store, watch, &business_object, mode, &body);
    }

    pub(super) fn load_quads(&self, quads: &[(bool, usize, usize, usize)]) {
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

    pub(super) fn apply_action(mut self, action: TestAction) -> Self {
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
                let _ = self.catalogue.delete(by, NAMES[of], Preconditions::default());
            }
            TestAction::Restart => return self.restart(),
        }
        self
    }

    /// Delivers everything and runs all due exports.
    pub(super) fn settle_all(&mut self) {
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

    pub(super) fn assert_consumers_match(&mut self) {
        let store = self.store();
        for business_object in self.catalogue.list() {
            let definition = &business_object.object.definition;
            if !definition.export_on_change || !definition.enabled {
                continue;
            }
            let read = store.read();
            let mut shown = BTreeMap::new();
            for uri in list_members(&read, &business_object) {
                let (object, _) = render_object(&read, &business_object, &uri);
                shown.insert(uri, serde_json::from_str::<Value>(&object).unwrap());
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
