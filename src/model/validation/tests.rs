use super::*;
use crate::catalogue::Catalogue;
use crate::testing::{
    catalogue_settings, insert_quad, open_store, put_definition, put_shapes_graph,
};
use oxrdf::Literal;
use penstock_store::Store;
use serde_json::json;
use std::time::Duration;
use tempfile::TempDir;

const SHAPES: &str = "@prefix sh: <http://www.w3.org/ns/shacl#> . @prefix p: <http://p/> .\n\
    <http://s/Pump> a sh:NodeShape ; sh:targetSubjectsOf p:name ; \
      sh:property [ sh:path p:name ; sh:minLength 3 ] .\n\
    <http://s/Motor> a sh:NodeShape ; sh:targetSubjectsOf p:speed ; \
      sh:property [ sh:path p:speed ; sh:maxInclusive 100 ] .";

fn limits() -> Limits {
    Limits {
        time: Duration::from_mins(1),
        deadline: None,
        memory: 64 << 20,
        violations: usize::MAX,
        cancellation: Cancellation::default(),
    }
}

/// Pumps, each with the same motor nested in it. The name of every third one is too short, and the motor is too fast.
struct Plant {
    _dir: TempDir,
    store: Store,
    pumps: Arc<Compiled>,
}

impl Plant {
    fn new(pumps: usize) -> Self {
        Self::with_shapes(pumps, SHAPES)
    }

    fn with_shapes(pumps: usize, shapes: &str) -> Self {
        let (dir, store) = open_store();
        put_shapes_graph(&store, "pumps", shapes);
        let catalogue = Catalogue::open(store.clone(), catalogue_settings()).unwrap();
        let config = "type: object\npath: Pump:.\nprefixes: {p: 'http://p/'}\nfields: \
             {name: {type: string, path: p:name}, \
             motors: {type: array, path: p:motor, elements: {type: object, path: 'Motor:.', fields: {speed: {type: integer, path: p:speed}}}}}";
        let bases = [("Pump", "http://x/pump/"), ("Motor", "http://x/motor/")];
        let namespaces =
            bases.map(|(name, base)| json!({"name": name, "uriBase": base, "generator": "manual"}));
        // The mode does not matter.
        let validation = json!({"shapes": ["pumps"], "mode": "off"});
        let definition = json!({"name": "Pump", "config": config, "namespaces": namespaces, "validation": validation});
        let pump_object = put_definition(&catalogue, &definition);
        let plant = Self { _dir: dir, store, pumps: pump_object };
        for number in 0..pumps {
            let pump = format!("http://x/pump/{number:05}");
            let name = Literal::from(if number % 3 == 0 { "n" } else { "north" });
            plant.insert(&pump, "http://p/name", name);
            plant.insert(&pump, "http://p/motor", NamedNode::new_unchecked("http://x/motor/1"));
        }
        plant.insert("http://x/motor/1", "http://p/speed", Literal::from(101));
        plant
    }

    fn insert(&self, subject: &str, predicate: &str, object: impl Into<Term>) {
        let graph = subject.trim_end_matches(|c: char| c.is_ascii_digit());
        insert_quad(&self.store, subject, predicate, object, graph);
    }

    fn validation(&self, limits: Limits) -> StoredValidation {
        StoredValidation::new(self.store.snapshot().unwrap(), &self.pumps, limits).unwrap()
    }
}

/// Returns the number of members, and the focus nodes of all violations.
fn validate_all(mut validation: StoredValidation) -> (usize, Vec<String>) {
    let (mut members, mut nodes) = (0, Vec::new());
    while let Some(batch) = validation.validate_batch().unwrap() {
        members += batch.members;
        nodes.extend(batch.violations.iter().map(|violation| violation.focus_node.to_string()));
    }
    (members, nodes)
}

#[test]
fn every_violation_counts_once_whatever_the_batches() {
    let plant = Plant::new(250);
    let validation = plant.validation(limits());
    assert_eq!(validation.shapes(), [("pumps".to_owned(), 1)]);
    assert_eq!(validation.count_members(&Cancellation::default()).unwrap(), 250);
    // Commits after the snapshot do not matter.
    plant.insert("http://x/pump/99999", "http://p/name", Literal::from("x"));
    let (members, nodes) = validate_all(validation);
    let motors = nodes.iter().filter(|node| *node == "<http://x/motor/1>").count();
    assert_eq!((members, nodes.len(), motors), (250, 84 + 1, 1), "{nodes:?}");
    let mut single = plant.validation(limits());
    single.batch_size = 1;
    assert_eq!(validate_all(single).1.len(), 84 + 1 + 1);
}

#[test]
fn the_values_of_a_property_are_targets_and_count_once() {
    let shapes = "@prefix sh: <http://www.w3.org/ns/shacl#> . @prefix p: <http://p/> .\n\
        <http://s/Motor> a sh:NodeShape ; sh:targetObjectsOf p:motor ; \
          sh:property [ sh:path p:power ; sh:minCount 1 ] .\n\
        <http://s/Name> a sh:NodeShape ; sh:targetObjectsOf p:name ; sh:minLength 3 .";
    let plant = Plant::with_shapes(250, shapes);
    plant.insert(
        "http://x/pump/00001",
        "http://p/motor",
        NamedNode::new_unchecked("http://x/motor/2"),
    );
    let (_, mut nodes) = validate_all(plant.validation(limits()));
    nodes.sort();
    assert_eq!(nodes, ["\"n\"", "<http://x/motor/1>", "<http://x/motor/2>"]);
}

#[test]
fn a_nested_object_that_is_a_member_counts_as_a_member() {
    let plant = Plant::new(3);
    let nested = NamedNode::new_unchecked("http://x/pump/00000");
    plant.insert("http://x/pump/00002", "http://p/motor", nested);
    let mut single = plant.validation(limits());
    single.batch_size = 1;
    assert_eq!(validate_all(single).1.len(), 1 + 1);
    assert_eq!(validate_all(plant.validation(limits())).1.len(), 1 + 1);
}

#[test]
fn a_batch_past_a_limit_is_halved_and_a_single_member_past_it_is_named() {
    let plant = Plant::new(8);
    let mut validation = plant.validation(Limits { memory: 1, ..limits() });
    let error = validation.validate_batch().unwrap_err();
    assert_eq!((error.class, validation.batch_size), (ErrorClass::Invalid, 1));
    assert!(error.detail.starts_with("http://x/pump/00000: "), "{error}");
    assert!(error.detail.contains("service.limits.shapes.memory"), "{error}");
}

#[test]
fn a_business_object_without_shapes_is_a_conflict() {
    let plant = Plant::new(0);
    let mut compiled = Compiled::clone(&plant.pumps);
    compiled.object.definition.validation = None;
    let snapshot = plant.store.snapshot().unwrap();
    let error = StoredValidation::new(snapshot, &compiled, limits()).unwrap_err();
    assert_eq!(error.class, ErrorClass::Conflict);
    assert!(error.detail.contains("`validation`"), "{error}");
}
