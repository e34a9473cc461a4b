mod interrupted;
mod waiting;

use super::*;
use crate::catalogue::{Catalogue, Requester};
use crate::change_feed::{read_age, read_cursor};
use crate::changes::{Decision, Review, publish_change, rebase_change};
use crate::dead_letters;
use crate::ingest::{Answer, Body, Mode, OnError, Request, find_write_history, ingest};
use crate::namespace;
use crate::rdf::Format;
use crate::resource::Compiled;
use crate::shapes_graphs::{self, NewGraph, TextFormat};
use crate::testing::{
    LIMITS, catalogue_settings, insert_quad, list_members, list_quads, local_request,
    put_definition, put_namespace, render_object,
};
use crate::views::{ViewContent, ViewRequester, Views};
use oxrdf::{Literal, NamedNode};
use penstock_base::collections::{ALL, Collection};
use penstock_base::commit::{GuardedStore, NoClient};
use penstock_base::{IfMatch, Preconditions};
use penstock_store::{DocumentRange, Options, Read};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use tempfile::TempDir;

const OLD: &str = "http://old.example/Pump/";
const NEW: &str = "https://plant.example/id/Pump/";

const PUMPS: &str = "\
type: object
path: Pump:.
prefixes: {v: 'http://v.example/'}
fields:
  name: {type: string, path: v:name}
  feeds: {type: resource, path: v:feeds}
  motor: {type: object, path: 'v:motor/Motor:.', fields: {power: {type: integer, path: v:power}}}
";
const ORDERS: &str = "\
type: object
path: Order:.
prefixes: {v: 'http://v.example/'}
fields:
  text: {type: string, path: v:text}
  pump: {type: resource, path: v:pump}
";
const VALVES: &str = "\
type: object
path: Valve:.
prefixes: {v: 'http://v.example/'}
fields:
  name: {type: string, path: v:name}
";

/// A store with pumps, orders that refer to them, and valves that do not.
struct Plant {
    dir: TempDir,
    store: Store,
    catalogue: Catalogue,
}

fn open(dir: &Path) -> Store {
    Store::open(&dir.join("store"), Options::default(), &mut |_| {}).unwrap()
}

impl Plant {
    fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let store = open(dir.path());
        for (name, base) in [
            ("Pump", OLD),
            ("Motor", "http://old.example/Motor/"),
            ("Order", "http://e/Order/"),
            ("Valve", "http://e/Valve/"),
        ] {
            put_namespace(&store, name, base, namespace::Generator::Counter);
        }
        let plant = Self::reopen(dir, store);
        for (name, config) in [("Pumps", PUMPS), ("Orders", ORDERS), ("Valves", VALVES)] {
            plant.define(&json!({
                "name": name, "config": config, "exportOnChange": true, "retention": "P1D",
                "pushTargets": [{"bucketName": "north"}],
            }));
        }
        for number in 1..=10 {
            let pump = json!({"name": format!("pump {number} of {OLD}1"), "feeds": format!("{OLD}1"), "motor": {"power": number}});
            plant.ingest("Pumps", Some(&format!("key-{number}")), &pump);
            plant.ingest("Orders", None, &json!({"text": "x", "pump": format!("{OLD}{number}")}));
            plant.ingest("Valves", None, &json!({"name": "v"}));
        }
        put_shapes(&plant, "first", &format!("<{OLD}S> a sh:NodeShape ; sh:targetNode <{OLD}1> ."));
        plant
    }

    fn reopen(dir: TempDir, store: Store) -> Self {
        let catalogue = Catalogue::open(store.clone(), catalogue_settings()).unwrap();
        let catalogue = catalogue.with_elapsed(|| 7);
        Self { dir, store, catalogue }
    }

    fn define(&self, definition: &Value) -> Arc<Compiled> {
        put_definition(&self.catalogue, definition)
    }

    fn get(&self, name: &str) -> Arc<Compiled> {
        self.catalogue.get(name).unwrap()
    }

    /// Ingests one object and returns its URI.
    fn ingest(&self, name: &str, key: Option<&str>, object: &Value) -> String {
        let (business_object, watch) = (self.get(name), self.catalogue.watch().clone());
        let body = json!({"data": [object]}).to_string();
        let mut request =
            local_request(&watch, &business_object, Mode::Add, Body::Json(body.as_bytes()));
        request.idempotency_key = key;
        self.run(&request).objects[0].uri.clone()
    }

    fn run(&self, request: &Request<'_>) -> Answer {
        ingest(&GuardedStore::from(self.store.clone()), &LIMITS, request).unwrap()
    }

    fn disk(&self) -> Disk {
        Disk::new(self.dir.path().to_owned(), 0)
    }

    fn plan(&self, name: &str, base: &str) -> Result<Option<MovePlan>, GatewayError> {
        plan_move(&self.store, name, base, &mut |_| {})
    }

    /// Moves a namespace, and opens the catalogue again.
    fn move_to(self, name: &str, base: &str) -> (Self, FinishedMove) {
        let plan = self.plan(name, base).unwrap().unwrap();
        begin_move(self.target(&self.disk()), &plan).unwrap();
        let moved = self.continue_move().unwrap();
        (Self::reopen(self.dir, self.store), moved)
    }

    fn continue_move(&self) -> Result<FinishedMove, GatewayError> {
        continue_move(self.target(&self.disk()), &mut |_| {}, &mut |_, _| Ok(()))
    }

    fn target<'a>(&'a self, disk: &'a Disk) -> MoveTarget<'a> {
        MoveTarget { store: &self.store, disk, watch: self.catalogue.watch() }
    }

    fn quads(&self) -> Vec<String> {
        list_quads(&self.store.read())
    }

    /// Returns all documents but those of the clock, without times and sequences.
    fn documents(&self) -> BTreeMap<(String, String), String> {
        let read = self.store.read();
        let mut all = BTreeMap::new();
        for Collection { name, .. } in ALL {
            let range = DocumentRange { limit: usize::MAX, ..DocumentRange::default() };
            for (key, value) in read.read_documents(name, range).unwrap() {
                let value = match serde_json::from_slice::<Value>(&value) {
                    // Random.
                    _ if *name == "watched" => String::new(),
                    Ok(mut value) => {
                        remove_times(&mut value);
                        value.to_string()
                    }
                    Err(_) => format!("{value:?}"),
                };
                let key = if *name == "namespace-moves" {
                    String::new()
                } else {
                    String::from_utf8_lossy(&key).into_owned()
                };
                all.insert(((*name).to_owned(), key), value);
            }
        }
        all
    }
}

fn remove_times(value: &mut Value) {
    match value {
        Value::Object(members) => {
            for name in ["updatedAt", "startedAt", "finished"] {
                members.remove(name);
            }
            members.values_mut().for_each(remove_times);
        }
        Value::Array(items) => items.iter_mut().for_each(remove_times),
        _ => {}
    }
}

/// Rewrites IRIs in angle brackets.
fn rebased(quads: Vec<String>, from: &str, to: &str) -> Vec<String> {
    let rewrite = |quad: String| quad.replace(&format!("<{from}"), &format!("<{to}"));
    let mut quads: Vec<String> = quads.into_iter().map(rewrite).collect();
    quads.sort();
    quads
}

#[test]
fn every_quad_has_the_new_uris_and_literals_stay() {
    let plant = Plant::new();
    let predicate = format!("{OLD}vocabulary");
    insert_quad(&plant.store, "http://e/x", &predicate, Literal::from(OLD), "http://e/g");
    let typed = Literal::new_typed_literal("5", NamedNode::new_unchecked(format!("{OLD}unit")));
    insert_quad(&plant.store, "http://e/x", "http://e/p", typed, "http://e/g");
    let before = plant.quads();
    let expected = rebased(before.clone(), OLD, NEW);
    let (plant, moved) = plant.move_to("Pump", NEW);
    let expected: Vec<String> = expected
        .iter()
        .map(|quad| quad.replace(&format!("^^<{NEW}"), &format!("^^<{OLD}")))
        .collect();
    assert_eq!(plant.quads(), expected);
    let changed = before.iter().filter(|quad| !expected.contains(quad)).count();
    assert_eq!((moved.quads, moved.from.as_str(), moved.to.as_str()), (changed as u64, OLD, NEW));
    assert!(moved.documents > 0);
    assert_eq!(find_pending_move(&plant.store.read()).unwrap(), None);

    let pumps = plant.get("Pumps");
    let members = list_members(&plant.store.read(), &pumps);
    assert_eq!(members.len(), 10);
    assert!(members.iter().all(|uri| uri.starts_with(NEW)), "{members:?}");
    let (shown, warnings) = render_object(&plant.store.read(), &pumps, &format!("{NEW}2"));
    let shown: Value = serde_json::from_str(&shown).unwrap();
    assert_eq!((&shown["feeds"], warnings.len()), (&json!(format!("{NEW}1")), 0));
    assert_eq!(shown["name"], json!(format!("pump 2 of {OLD}1")));
    assert_eq!(shown["motor"]["uri"], "http://old.example/Motor/2");
}

#[test]
fn saved_views_find_the_new_uris() {
    let plant = Plant::new();
    let (old, new, about) = (format!("{OLD}1"), format!("{NEW}1"), format!("about {OLD}1"));
    let filters = [
        ("feeds", OLD),
        ("feeds", "text"),
        ("feeds", &*old),
        ("feeds", &*about),
        ("uri", &*old),
        ("motor.uri", &*old),
        // The texts that this one is compared with stay.
        ("name", &*old),
        ("gone", OLD),
    ];
    let filters =
        filters.map(|(field, value)| json!({"field": field, "test": "eq", "value": value}));
    let business_object = plant.get("Pumps").object.id.clone();
    let body =
        json!({"name": OLD, "businessObject": business_object, "shared": true, "filters": filters});
    let content = ViewContent::from_json(body.to_string().as_bytes()).unwrap();
    let by = ViewRequester { check: &NoClient, id: "local", on_commit: &|_, _| Ok(()) };
    let views = Views::open(&plant.store).unwrap();
    let view = views.begin_change().create(by, None, content).unwrap();
    let (plant, _) = plant.move_to("Pump", NEW);
    let moved = Views::open(&plant.store).unwrap().get(&view.id).unwrap();
    let values: Vec<&str> = moved.content.filters.iter().map(|one| one.value.as_str()).collect();
    assert_eq!(values, [NEW, "text", &*new, &*about, &*new, &*new, &*old, OLD]);
    assert_eq!((moved.content.name.as_str(), moved.version), (OLD, 2));
}

#[test]
fn counters_continue_and_the_old_base_issues_no_number_again() {
    let (plant, _) = Plant::new().move_to("Pump", NEW);
    assert_eq!(plant.ingest("Pumps", None, &json!({"name": "new"})), format!("{NEW}11"));
    put_namespace(&plant.store, "Again", OLD, namespace::Generator::Counter);
    let again = namespace::get(&plant.store.read(), "Again").unwrap().unwrap();
    let (minted, _) = plant.store.transact(|t| namespace::mint_identifier(t, &again)).unwrap();
    assert_eq!(minted.as_str(), format!("{OLD}11"));
}

#[test]
fn a_repeated_request_gets_its_answer_with_the_new_uri() {
    let plant = Plant::new();
    let (pumps, watch) = (plant.get("Pumps"), plant.catalogue.watch().clone());
    let chunk = Body::Lines { text: b"{\"name\": \"new\"}\n", first: 1, line_numbers: &[1] };
    let mut request = local_request(&watch, &pumps, Mode::Add, chunk);
    request.idempotency_key = Some("stream");
    plant.run(&request);
    let (plant, _) = plant.move_to("Pump", NEW);
    let pump = json!({"name": format!("pump 3 of {OLD}1"), "feeds": format!("{OLD}1"), "motor": {"power": 3}});
    assert_eq!(plant.ingest("Pumps", Some("key-3"), &pump), format!("{NEW}3"));
    // A chunk is still one, and no request.
    let sums = ["idempotency-order", "idempotency-chunks"].map(|order| {
        let sums = plant.store.read().read_document("bounded-sums", order.as_bytes()).unwrap();
        let sums: [u8; 16] = sums.unwrap().try_into().unwrap();
        let (entries, bytes) = sums.split_at(8);
        [entries, bytes].map(|sum| u64::from_be_bytes(sum.try_into().unwrap()))
    });
    let range = DocumentRange { limit: usize::MAX, ..DocumentRange::default() };
    let answers = plant.store.read().read_documents("idempotency", range).unwrap();
    let bytes: u64 = answers.iter().map(|(_, answer)| answer.len() as u64).sum();
    let [[requests, request_bytes], [chunks, chunk_bytes]] = sums;
    assert_eq!((requests, chunks), (10, 1));
    assert_eq!(request_bytes + chunk_bytes, bytes);
}

#[test]
fn the_next_export_is_full_for_each_business_object_that_shows_a_rewritten_uri() {
    let (plant, moved) = Plant::new().move_to("Pump", NEW);
    assert_eq!(moved.full_exports, ["Pumps", "Orders"]);
    let read = plant.store.read();
    for (name, uri, is_affected) in [
        ("Pumps", format!("{NEW}1"), true),
        ("Orders", "http://e/Order/1".to_owned(), true),
        ("Valves", "http://e/Valve/1".to_owned(), false),
    ] {
        let id = plant.get(name).object.id.clone();
        let cursor = read_cursor(&read, &id).unwrap().unwrap();
        assert_eq!(cursor.needs_full_export(), is_affected, "{name}");
        // Retention must not remove an object before the export with its new URI is delivered.
        assert_eq!(read_age(&read, &id, &uri).unwrap(), Some((7, cursor.open)), "{name}");
        let changed = crate::change_feed::list_changed(&read, &id, 1, None, 100).unwrap();
        assert_eq!(changed.len(), 10);
        assert!(changed.iter().any(|changed| changed.uri == uri), "{changed:?}");
    }
}

#[test]
fn the_history_of_an_object_begins_before_the_move() {
    let (plant, _) = Plant::new().move_to("Pump", NEW);
    let third = "http://third.example/Pump#";
    let (plant, _) = plant.move_to("Pump", third);

    let history = find_write_history(&plant.store, &format!("{third}4")).unwrap();
    assert_eq!(history.named_by.len(), 1);
    let elsewhere = find_write_history(&plant.store, "http://third.example/Other#4").unwrap();
    assert_eq!(elsewhere.named_by.len(), 0);
}

#[test]
fn definitions_follow_and_get_the_next_version() {
    let plant = Plant::new();
    let base = "http://old.example/vocabulary#";
    put_namespace(&plant.store, "Words", base, namespace::Generator::Manual);
    let config = format!(
        "type: object\npath: Order:.\nprefixes: {{w: '{base}', v: 'http://v.example/'}}\nfields:\n  \
         # <{base}text> is the text\n  text: {{type: string, path: w:text}}\n  full: {{type: string, path: <{base}full>}}\n  \
         other: {{type: string, path: v:other}}\n"
    );
    let definition = json!({
        "name": "Texts", "config": config,
        "namespaces": [{"name": "Words", "uriBase": base}],
        "conditions": [{"predicate": "w:kind", "value": format!("{base}order")}, {"predicate": "v:a", "value": "v:b"}],
    });
    let before = plant.define(&definition);
    let plan = plant.plan("Words", "urn:words:").unwrap().unwrap();
    assert!(plan.warnings.iter().any(|warning| warning.contains("\"Texts\"")), "{plan:?}");
    assert!(!plan.warnings.iter().any(|warning| warning.contains("Pumps")), "{plan:?}");
    let (plant, _) = plant.move_to("Words", "urn:words:");
    let after = plant.get("Texts");
    let definition = &after.object.definition;
    assert_eq!(after.object.version, before.object.version + 1);
    assert_eq!(after.object.updated_by.as_deref(), Some("local"));
    assert_eq!(definition.config, config.replace(base, "urn:words:"));
    assert_eq!(definition.namespaces[0].uri_base.as_deref(), Some("urn:words:"));
    let given: Vec<[&str; 2]> = definition
        .conditions
        .iter()
        .map(|one| [one.predicate.as_str(), one.value.as_str()])
        .collect();
    assert_eq!(given, [["w:kind", "urn:words:order"], ["v:a", "v:b"]]);
    assert_eq!(after.conditions[0].0.as_str(), "urn:words:kind");
    assert_eq!(after.conditions[1].0.as_str(), "http://v.example/a");
    assert_eq!(plant.get("Valves").object.version, 1);
}

/// Stores a shapes graph in Turtle.
fn put_shapes(plant: &Plant, name: &str, text: &str) {
    let text = format!("@prefix sh: <http://www.w3.org/ns/shacl#> .\n{text}");
    let new = NewGraph::check(name, text.as_bytes(), TextFormat::Rdf(Format::Turtle)).unwrap();
    let by = Requester::new(&NoClient, "someone");
    let put =
        plant.catalogue.put_shapes_graph(by, &new, Preconditions::default(), &|_, _, _| Ok(()));
    put.unwrap();
}

#[test]
fn shapes_graphs_follow_and_get_the_next_version() {
    let plant = Plant::new();
    let shapes = format!(
        "@prefix pump: <{OLD}> .\n# Pumps like {OLD}1\npump:Shape a sh:NodeShape ; sh:targetNode pump:1, <{OLD}2> ;\n  \
         sh:property [ sh:path <http://v.example/name> ; sh:minCount 1 ; sh:message \"not in {OLD}\" ] .\n"
    );
    put_shapes(&plant, "pumps", &shapes);
    put_shapes(&plant, "others", &shapes.replace("old.example", "other.example"));
    let plan = plant.plan("Pump", NEW).unwrap().unwrap();
    assert!(plan.warnings.iter().any(|warning| warning.contains("\"pumps\"")), "{plan:?}");
    assert!(!plan.warnings.iter().any(|warning| warning.contains("\"others\"")), "{plan:?}");
    let (plant, _) = plant.move_to("Pump", NEW);
    let read =
        |name: &str| shapes_graphs::SHAPES_GRAPHS.get(&plant.store.read(), name).unwrap().unwrap();
    let pumps = read("pumps");
    for line in [
        format!("@prefix pump: <{NEW}> ."),
        format!("# Pumps like {OLD}1"),
        format!("sh:message \"not in {OLD}\""),
        format!("sh:targetNode pump:1, <{NEW}2> ;"),
    ] {
        assert!(pumps.text.contains(&line), "{}", pumps.text);
    }
    assert_eq!((pumps.metadata.version, pumps.metadata.updated_by.as_str()), (2, "local"));
    assert_eq!(read("others").metadata.version, 1);
    assert!(plant.catalogue.get_shapes_graph("pumps").unwrap().fault.is_none());
}

#[test]
fn a_shapes_graph_that_cannot_be_rewritten_refuses_the_move() {
    let plant = Plant::new();
    let relative =
        "@base <http://old.example/> . <Shape> a sh:NodeShape ; sh:targetNode <Pump/1> .";
    put_shapes(&plant, "relative", relative);
    let error = plant.plan("Pump", NEW).unwrap_err();
    assert_eq!(error.class, ErrorClass::Conflict);
    let text = error.to_string();
    assert!(text.contains("\"relative\"") && text.contains(&format!("<{OLD}1>")), "{text}");
}

#[test]
fn a_definition_that_cannot_be_rewritten_refuses_the_move() {
    let plant = Plant::new();
    put_namespace(&plant.store, "Words", "http://w.example/a/", namespace::Generator::Manual);
    plant.define(&json!({
        "name": "Texts",
        "config": "type: object\npath: Order:.\nprefixes: {w: 'http://w.example/'}\nfields: {text: {type: string, path: w:a/text}}",
    }));
    let before = (plant.quads(), plant.documents());
    let error = plant.plan("Words", "urn:words:").unwrap_err();
    assert_eq!(error.class, ErrorClass::Conflict);
    let text = error.to_string();
    assert!(text.contains("\"Texts\"") && text.contains("<http://w.example/a/text>"), "{text}");
    assert_eq!((plant.quads(), plant.documents()), before);
}

#[test]
fn a_move_that_would_merge_or_lose_objects_is_refused_before_anything_is_changed() {
    let object = |plant: &Plant, uri: &str| {
        insert_quad(&plant.store, uri, "http://e/p", Literal::from("x"), "http://e/g");
    };
    let none: Prepare<'_> = &|_| {};
    let cases: [(Prepare<'_>, &str, &str, ErrorClass, &str); 11] = [
        (none, "Pump", "http://e/Valve/", ErrorClass::Conflict, "\"Valve\" has the base"),
        (none, "Pump", "http://e/Valve", ErrorClass::Conflict, "gives the same identifiers"),
        (none, "Pump", "no iri", ErrorClass::Invalid, "not an absolute IRI"),
        (none, "Nothing", NEW, ErrorClass::NotFound, "no namespace \"Nothing\""),
        (
            &|plant| object(plant, &format!("{NEW}3")),
            "Pump",
            NEW,
            ErrorClass::Conflict,
            "which exists",
        ),
        (
            &|plant| {
                insert_quad(
                    &plant.store,
                    "http://e/x",
                    "http://e/p",
                    NamedNode::new_unchecked(format!("{NEW}3")),
                    "http://e/g",
                );
            },
            "Pump",
            NEW,
            ErrorClass::Conflict,
            "which exists",
        ),
        (
            &|plant| insert_quad(&plant.store, "http://e/x", "http://e/p", Literal::from(1), NEW),
            "Pump",
            NEW,
            ErrorClass::Conflict,
            "which exists",
        ),
        // The identifier would become one of the valves' namespace.
        (
            &|plant| object(plant, &format!("{OLD}Valve/77")),
            "Pump",
            "http://e/",
            ErrorClass::Conflict,
            "lies in the namespace \"Valve\"",
        ),
        (
            &|plant| object(plant, &format!("{OLD}new/77")),
            "Pump",
            "http://old.example/Pump/new/",
            ErrorClass::Conflict,
            "third base",
        ),
        (
            &|plant| object(plant, &format!("{OLD}Pump/77")),
            "Pump",
            "http://old.example/",
            ErrorClass::Conflict,
            "third base",
        ),
        (
            &|plant| {
                put_namespace(
                    &plant.store,
                    "Bare",
                    "http://bare.example/a",
                    namespace::Generator::Manual,
                );
                insert_quad(
                    &plant.store,
                    "http://bare.example/a/",
                    "http://e/p",
                    Literal::from(1),
                    "http://bare.example/a",
                );
            },
            "Bare",
            "http://bare.example/b/",
            ErrorClass::Conflict,
            "would both become",
        ),
    ];
    for (prepare, name, base, class, words) in cases {
        let plant = Plant::new();
        prepare(&plant);
        let before = (plant.quads(), plant.documents());
        let error = plant.plan(name, base).unwrap_err();
        assert_eq!(error.class, class, "{error}");
        assert!(error.to_string().contains(words), "{words}: {error}");
        assert_eq!((plant.quads(), plant.documents()), before, "{words}");
    }
}

#[test]
fn a_namespace_moves_into_its_own_base_and_out_of_it_again() {
    let plant = Plant::new();
    let before = plant.quads();
    let plan = plant.plan("Pump", "http://old.example/").unwrap().unwrap();
    assert!(plan.warnings.iter().any(|warning| warning.contains("`Motor`")), "{plan:?}");
    let (plant, _) = plant.move_to("Pump", "http://old.example/Pump/plant/");
    assert_eq!(plant.quads(), rebased(before.clone(), OLD, "http://old.example/Pump/plant/"));
    let (plant, _) = plant.move_to("Pump", "http://old.example/");
    assert!(plant.quads().iter().any(|quad| quad.starts_with("<http://old.example/Motor/1>")));
    let (plant, _) = plant.move_to("Pump", "http://old.example/Pump");
    let (plant, _) = plant.move_to("Pump", OLD);
    assert_eq!(plant.quads(), before);
    assert_eq!(plant.plan("Pump", OLD).unwrap(), None);
}

/// Prepares a store in which a move is refused.
type Prepare<'a> = &'a dyn Fn(&Plant);

#[test]
fn elements_of_ordered_arrays_keep_their_uris_after_a_move() {
    let dir = tempfile::tempdir().unwrap();
    let store = open(dir.path());
    for (name, base) in [("Recipe", OLD), ("Step", "http://e/Step/")] {
        put_namespace(&store, name, base, namespace::Generator::Counter);
    }
    let plant = Plant::reopen(dir, store);
    let config = format!(
        "type: object\npath: Recipe:.\nfields:\n  steps: {{type: array, ordered: true, path: <{OLD}step>/Step:., \
         elements: {{type: object, fields: {{name: {{type: string, path: <urn:name>}}}}}}}}\n"
    );
    plant.define(&json!({"name": "Recipes", "config": config}));
    let recipe = |base: &str| json!({"uri": format!("{base}1"), "steps": [{"name": "heat"}]});
    plant.ingest("Recipes", None, &recipe(OLD));
    let (plant, _) = plant.move_to("Recipe", NEW);
    let before = plant.quads();
    plant.ingest("Recipes", None, &recipe(NEW));
    assert_eq!(plant.quads(), before);
}
