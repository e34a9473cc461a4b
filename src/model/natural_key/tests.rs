//! Tests of natural keys through definitions and ingestions.
mod index;
mod parts;

use crate::catalogue::{Catalogue, Requester};
use crate::change_feed;
use crate::ingest::{Answer, Body, Mode, OnError, Request, ingest};
use crate::natural_key::index::ENTRIES;
use crate::resource::{Compiled, CompiledDefinition};
use crate::testing::{
    LIMITS, catalogue_settings, ingest_body, insert_quad, list_quads, local_request, open_store,
};
use oxrdf::{Literal, NamedNode, Quad, Term};
use penstock_base::Preconditions;
use penstock_base::commit::{GuardedStore, NoClient};
use penstock_base::error::{ErrorClass, GatewayError};
use penstock_resources::ingestion::IngestedStatus;
use penstock_store::{Store, Transaction};
use proptest::prelude::*;
use serde_json::{Value, json};
use std::sync::Arc;
use tempfile::TempDir;

const BASE: &str = "https://plant.example/id/";

struct Gateway {
    store: Store,
    catalogue: Catalogue,
    _dir: TempDir,
}

impl Gateway {
    fn new() -> Self {
        let (dir, store) = open_store();
        let catalogue = Catalogue::open(store.clone(), catalogue_settings()).unwrap();
        Self { store, catalogue, _dir: dir }
    }

    fn with(name: &str, config: &str) -> (Self, Arc<Compiled>) {
        let gateway = Self::new();
        let compiled = gateway.define(name, config).unwrap();
        (gateway, compiled)
    }

    fn define(&self, name: &str, config: &str) -> Result<Arc<Compiled>, GatewayError> {
        self.define_with(&json!({"name": name, "config": config}), false)
    }

    fn define_with(&self, definition: &Value, force: bool) -> Result<Arc<Compiled>, GatewayError> {
        let definition = CompiledDefinition::from_json(definition.to_string().as_bytes())?;
        let requester = Requester { force, ..Requester::new(&NoClient, "local") };
        Ok(self.catalogue.put(requester, definition, Preconditions::default())?.into_value())
    }

    fn send(&self, to: &Compiled, mode: Mode, elements: &str) -> Result<Answer, GatewayError> {
        let body = format!("{{\"data\": [{elements}]}}");
        let store = GuardedStore::from(self.store.clone());
        ingest_body(&store, self.catalogue.watch(), to, mode, &body)
    }

    fn skip(&self, to: &Compiled, mode: Mode, elements: &str) -> Answer {
        let body = format!("{{\"data\": [{elements}]}}");
        let store = GuardedStore::from(self.store.clone());
        let request = local_request(self.catalogue.watch(), to, mode, Body::Json(body.as_bytes()));
        ingest(&store, &LIMITS, &Request { on_error: OnError::Skip, ..request }).unwrap()
    }

    fn quads(&self) -> Vec<String> {
        list_quads(&self.store.read())
    }

    /// Adds a quad beside ingestion.
    fn insert(&self, quad: &Quad) {
        let insert = |t: &mut Transaction<'_>| {
            t.insert(quad.as_ref())?;
            change_feed::record_changes(t, self.catalogue.watch())
        };
        self.store.transact(insert).unwrap();
    }

    fn entries(&self) -> usize {
        ENTRIES.scan().read_all(&self.store.read()).unwrap().len()
    }
}

fn uris(answer: &Answer) -> Vec<&str> {
    answer
        .objects
        .iter()
        .map(|object| object.uri.strip_prefix(BASE).unwrap_or(&object.uri))
        .collect()
}

fn statuses(answer: &Answer) -> Vec<IngestedStatus> {
    answer.objects.iter().map(|object| object.status).collect()
}

fn messages(error: &GatewayError) -> String {
    let found: Vec<String> = error.findings.iter().map(ToString::to_string).collect();
    format!("{}: {}", error.detail, found.join("; "))
}

const PUMP: &str = "
type: object
path: Pump:.
key: [site, number]
fields:
  site: {type: string, path: <http://e/site>, required: true}
  number: {type: integer, path: <http://e/number>, required: true}
  power: {type: number, path: <http://e/power>}
  parts:
    type: array
    elements:
      type: object
      path: <http://e/part>/Part:.
      key: position
      keyScope: parent
      fields:
        position: {type: string, path: <http://e/position>, required: true}
        maker: {type: string, path: <http://e/maker>}
";

const TAGGED: &str = "
type: object
path: Pump:.
key: tag
fields:
  tag: {type: string, path: <http://e/tag>, required: true}
  power: {type: number, path: <http://e/power>}
";

const UNKEYED: &str = "
type: object
path: Pump:.
fields:
  tag: {type: string, path: <http://e/tag>}
  power: {type: number, path: <http://e/power>}
";

#[test]
fn a_new_object_gets_the_uri_of_its_key() {
    let (gateway, pumps) = Gateway::with("Pumps", PUMP);
    let answer = gateway
        .send(
            &pumps,
            Mode::Add,
            r#"{"site": "N/1 ü", "number": 7, "parts": [{"position": "a b"}]}"#,
        )
        .unwrap();
    assert_eq!(uris(&answer), ["Pump/N%2F1%20%C3%BC/7"]);
    let nested: Vec<_> =
        answer.objects[0].nested.iter().map(|nested| nested.uri.as_str()).collect();
    assert_eq!(nested, [format!("{BASE}Part/N%252F1%2520%25C3%25BC%2F7/a%20b")]);
    assert_eq!(gateway.entries(), 0);
}

#[test]
fn the_same_key_is_the_same_object() {
    let (gateway, pumps) = Gateway::with("Pumps", PUMP);
    let pump = r#"{"site": "N", "number": 7, "parts": [{"position": "a"}, {"position": "b"}]}"#;
    let twice = gateway.send(&pumps, Mode::Add, &format!("{pump}, {pump}")).unwrap();
    assert_eq!(statuses(&twice), [IngestedStatus::Created, IngestedStatus::Unchanged]);
    let before = gateway.quads();
    let again = gateway.send(&pumps, Mode::Add, pump).unwrap();
    assert_eq!(statuses(&again), [IngestedStatus::Unchanged]);
    assert_eq!(gateway.quads(), before);
    let other = gateway.send(
        &pumps,
        Mode::Add,
        r#"{"site": "S", "number": 7, "parts": [{"position": "a"}]}"#,
    );
    assert_eq!(uris(&other.unwrap()), ["Pump/S/7"]);
    let changed =
        r#"{"site": "N", "number": 7, "power": 3}, {"site": "N", "number": 7, "power": 4}"#;
    assert_eq!(gateway.send(&pumps, Mode::Add, changed).unwrap_err().class, ErrorClass::Conflict);
}

#[test]
fn integers_count_by_value_and_keep_their_stored_form() {
    let (gateway, pumps) = Gateway::with("Pumps", PUMP);
    let pump = NamedNode::new_unchecked(format!("{BASE}Pump/N/7"));
    let (graph, xsd) = (format!("{BASE}Pump/"), "http://www.w3.org/2001/XMLSchema#integer");
    let seven = Literal::new_typed_literal("+007", NamedNode::new_unchecked(xsd));
    insert_quad(&gateway.store, pump.as_str(), "http://e/number", seven, &graph);
    insert_quad(&gateway.store, pump.as_str(), "http://e/site", Literal::from("N"), &graph);
    let answer = gateway.send(&pumps, Mode::Replace, r#"{"site": "N", "number": 7}"#).unwrap();
    assert_eq!(statuses(&answer), [IngestedStatus::Unchanged]);
    assert!(gateway.quads().iter().any(|quad| quad.contains("\"+007\"")));
}

#[test]
fn values_that_cannot_be_in_a_uri_are_refused() {
    let (gateway, pumps) = Gateway::with("Pumps", TAGGED);
    for value in ["", ".", ".."] {
        let error =
            gateway.send(&pumps, Mode::Add, &json!({"tag": value}).to_string()).unwrap_err();
        assert_eq!(error.class, ErrorClass::Invalid);
        assert!(
            messages(&error).contains("/data/0/tag: the value cannot be in the key"),
            "{error}"
        );
    }
    let error = gateway.send(&pumps, Mode::Add, r#"{"power": 1}"#).unwrap_err();
    assert!(
        messages(&error).ends_with("a value for each field of its key; there is none for tag"),
        "{error}"
    );
}

#[test]
fn a_missing_key_names_the_fields_without_a_value_and_why() {
    let config = "\
type: object
path: Pump:.
key: [line, tag]
fields:
  line: {type: string, path: <http://e/line>, required: true}
  tag: {type: string, path: <http://e/tag>, required: true, absent: [n/a, none]}
";
    let (gateway, pumps) = Gateway::with("Pumps", config);
    let error = gateway.send(&pumps, Mode::Add, r#"{"line": "L9", "tag": "n/a"}"#).unwrap_err();
    let words = r#"there is none for tag (`absent` is "n/a", "none")"#;
    assert!(messages(&error).ends_with(words), "{error}");
}

#[test]
fn a_key_with_a_too_long_uri_rejects_only_its_object() {
    let (gateway, pumps) = Gateway::with("Pumps", TAGGED);
    // In the URI, each character has nine bytes.
    let tag = "\u{20ac}".repeat(8000);
    let long = json!({"tag": tag}).to_string();
    for mode in [Mode::Add, Mode::Merge] {
        let error = gateway.send(&pumps, mode, &long).unwrap_err();
        assert_eq!(error.class, ErrorClass::Invalid, "{error}");
        assert!(messages(&error).contains("/data/0: the URI of its key would have"), "{error}");
    }
    let answer = gateway.skip(&pumps, Mode::Add, &format!(r#"{long}, {{"tag": "P-1"}}"#));
    assert_eq!((uris(&answer), answer.rejected.len()), (vec!["Pump/P-1"], 1));
    assert_eq!(gateway.send(&pumps, Mode::Delete, &long).unwrap().deleted, 0);
    // An object with a URI of its own does not need that of its key.
    let given = json!({"uri": "urn:p:1", "tag": tag, "power": 1}).to_string();
    gateway.send(&pumps, Mode::Add, &given).unwrap();
    let changed = json!({"tag": tag, "power": 2}).to_string();
    let answer = gateway.send(&pumps, Mode::Merge, &changed).unwrap();
    assert_eq!(uris(&answer), ["urn:p:1"]);
}

#[test]
fn a_given_uri_is_kept_and_found_by_its_key() {
    let (gateway, pumps) = Gateway::with("Pumps", TAGGED);
    let given = r#"{"uri": "urn:p:1", "tag": "P-1"}, {"tag": "P-1", "power": 3}"#;
    let answer = gateway.send(&pumps, Mode::Add, given).unwrap();
    assert_eq!(uris(&answer), ["urn:p:1", "urn:p:1"]);
    assert_eq!(gateway.entries(), 1);
    let answer = gateway.send(&pumps, Mode::Merge, r#"{"tag": "P-1", "power": 4}"#).unwrap();
    assert_eq!(
        (uris(&answer), statuses(&answer)),
        (vec!["urn:p:1"], vec![IngestedStatus::Updated])
    );
    let error = gateway.send(&pumps, Mode::Add, r#"{"uri": "urn:p:2", "tag": "P-1"}"#).unwrap_err();
    assert_eq!(error.class, ErrorClass::Invalid);
    assert!(messages(&error).contains("urn:p:1 has its key (tag) already"), "{error}");
    let answer = gateway.send(&pumps, Mode::Delete, r#"{"tag": "P-1"}"#).unwrap();
    assert_eq!((uris(&answer), answer.deleted), (vec!["urn:p:1"], 1));
    assert_eq!(gateway.entries(), 0);
    let answer = gateway.send(&pumps, Mode::Add, r#"{"tag": "P-1"}"#).unwrap();
    assert_eq!(uris(&answer), ["Pump/P-1"]);
}

#[test]
fn a_key_value_cannot_be_changed() {
    let (gateway, pumps) = Gateway::with("Pumps", TAGGED);
    gateway.send(&pumps, Mode::Add, r#"{"uri": "urn:p:1", "tag": "P-1"}"#).unwrap();
    for mode in [Mode::Add, Mode::Update, Mode::Replace, Mode::Merge] {
        let error = gateway.send(&pumps, mode, r#"{"uri": "urn:p:1", "tag": "P-2"}"#).unwrap_err();
        assert_eq!(error.class, ErrorClass::Invalid, "{mode}");
        assert!(messages(&error).contains("cannot be changed"), "{error}");
    }
}

#[test]
fn only_an_existing_object_is_updated_by_its_key() {
    let (gateway, pumps) = Gateway::with("Pumps", TAGGED);
    let error = gateway.send(&pumps, Mode::Update, r#"{"tag": "P-1", "power": 1}"#).unwrap_err();
    assert!(messages(&error).contains("no object has this key"), "{error}");
    gateway.send(&pumps, Mode::Add, r#"{"tag": "P-1"}"#).unwrap();
    let answer = gateway.send(&pumps, Mode::Update, r#"{"tag": "P-1", "power": 1}"#).unwrap();
    assert_eq!(statuses(&answer), [IngestedStatus::Updated]);
    let absent = gateway.send(&pumps, Mode::Delete, r#"{"tag": "P-9"}"#).unwrap();
    assert_eq!(statuses(&absent), [IngestedStatus::Absent]);
    let error = gateway.send(&pumps, Mode::Delete, r#"{"tag": "P-1", "power": 1}"#).unwrap_err();
    assert!(
        messages(&error).contains("DELETE takes only the uri or the fields of the key"),
        "{error}"
    );
}

#[test]
fn objects_that_share_a_key_and_a_taken_uri_are_conflicts() {
    let (gateway, pumps) = Gateway::with("Pumps", TAGGED);
    let insert = |uri: &str, tag: &str| {
        let node = |iri: &str| NamedNode::new_unchecked(iri);
        let quad = Quad::new(
            node(uri),
            node("http://e/tag"),
            Literal::from(tag),
            NamedNode::new_unchecked(format!("{BASE}Pump/")),
        );
        gateway.insert(&quad);
    };
    insert("urn:p:1", "P-1");
    insert("urn:p:2", "P-1");
    let error = gateway.send(&pumps, Mode::Add, r#"{"tag": "P-1"}"#).unwrap_err();
    assert_eq!(error.class, ErrorClass::Conflict);
    assert!(
        messages(&error).contains("urn:p:1") && messages(&error).contains("urn:p:2"),
        "{error}"
    );
    insert(&format!("{BASE}Pump/P-3"), "P-4");
    let error = gateway.send(&pumps, Mode::Add, r#"{"tag": "P-3"}"#).unwrap_err();
    assert_eq!(error.class, ErrorClass::Conflict);
    assert!(messages(&error).contains("whose object has another key now"), "{error}");
    let answer = gateway.send(&pumps, Mode::Add, r#"{"tag": "P-4"}"#).unwrap();
    assert_eq!(uris(&answer), ["Pump/P-3"]);
}

#[test]
fn a_key_is_added_to_stored_objects_and_finds_them() {
    let (gateway, pumps) = Gateway::with("Pumps", UNKEYED);
    let elements: Vec<String> = (0..2500).map(|n| format!("{{\"tag\": \"P-{n}\"}}")).collect();
    let minted = gateway.send(&pumps, Mode::Add, &elements.join(",")).unwrap();
    let pumps = gateway.define("Pumps", TAGGED).unwrap();
    assert_eq!(gateway.entries(), 2500);
    let again = gateway.send(&pumps, Mode::Add, &elements.join(",")).unwrap();
    assert_eq!((uris(&again), again.unchanged), (uris(&minted), 2500));
}

#[test]
fn a_key_that_stored_objects_lack_or_share_is_refused() {
    let (gateway, pumps) = Gateway::with("Pumps", UNKEYED);
    let data = r#"{"tag": "P-1"}, {"tag": "P-1"}, {"power": 3}"#;
    let answer = gateway.send(&pumps, Mode::Add, data).unwrap();
    let error = gateway.define("Pumps", TAGGED).unwrap_err();
    assert_eq!(error.class, ErrorClass::Conflict);
    assert!(error.detail.contains("2 stored objects"), "{error}");
    assert!(messages(&error).contains("shares the key \"P-1\" with"), "{error}");
    assert!(messages(&error).contains("has no single value for the key"), "{error}");
    for outcome in &answer.objects[1..] {
        let uri = json!({"uri": outcome.uri}).to_string();
        gateway.send(&pumps, Mode::Delete, &uri).unwrap();
    }
    gateway.define("Pumps", TAGGED).unwrap();
}

#[test]
fn a_key_in_a_new_parent_names_the_stored_objects_that_lack_it() {
    let parts = "type: object\npath: Part:.\nfields:\n  position: {type: string, path: <http://e/position>}\n  \
                 maker: {type: string, path: <http://e/maker>}\n";
    let (gateway, parts) = Gateway::with("Parts", parts);
    let data = r#"{"maker": "KSB"}, {"position": "a"}"#;
    let answer = gateway.send(&parts, Mode::Add, data).unwrap();
    let error = gateway.define("Pumps", PUMP).unwrap_err();
    assert_eq!(error.class, ErrorClass::Conflict);
    assert!(error.detail.contains("`Part` cannot take effect: 1 stored object"), "{error}");
    assert!(messages(&error).contains(&answer.objects[0].uri), "{error}");
    let uri = json!({"uri": answer.objects[0].uri}).to_string();
    gateway.send(&parts, Mode::Delete, &uri).unwrap();
    gateway.define("Pumps", PUMP).unwrap();
}

#[test]
fn a_key_finds_the_objects_that_a_new_namespace_has_already() {
    let gateway = Gateway::new();
    let node = |iri: &str| NamedNode::new_unchecked(iri);
    let graph = node(&format!("{BASE}Pump/"));
    gateway.insert(&Quad::new(node("urn:p:1"), node("http://e/tag"), Literal::from("P-1"), graph));
    let pumps = gateway.define("Pumps", TAGGED).unwrap();
    let answer = gateway.send(&pumps, Mode::Merge, r#"{"tag": "P-1", "power": 3}"#).unwrap();
    assert_eq!(uris(&answer), ["urn:p:1"]);
}

#[test]
fn a_definition_that_leaves_out_the_key_is_refused() {
    let (gateway, _) = Gateway::with("Pumps", PUMP);
    let without = PUMP.replace("key: [site, number]\n", "");
    let error = gateway.define("Pumps", &without).unwrap_err();
    assert_eq!(error.class, ErrorClass::Unconfirmed);
    assert!(error.detail.contains("the root (key: [site, number])"), "{error}");
    let without = PUMP.replace("      key: position\n      keyScope: parent\n", "");
    let error = gateway.define("Pumps", &without).unwrap_err();
    assert!(error.detail.contains("parts (key: [position])"), "{error}");
    gateway.define("Pumps", &PUMP.replace("key: [site, number]", "key: []")).unwrap();
    gateway.define_with(&json!({"name": "Pumps", "config": without}), true).unwrap();
}

#[test]
fn all_mappings_use_the_same_key_of_a_namespace() {
    let (gateway, _) = Gateway::with("Pumps", TAGGED);
    let other = TAGGED.replace("http://e/tag", "http://e/name");
    let error = gateway.define("Others", &other).unwrap_err();
    assert_eq!(error.class, ErrorClass::Invalid);
    assert!(messages(&error).contains("the Business Object \"Pumps\" has another key"), "{error}");
    gateway.define("Others", TAGGED).unwrap();
    gateway.define("Unkeyed", UNKEYED).unwrap();
}

#[test]
fn a_namespace_with_predictable_or_nested_identifiers_has_no_key() {
    let gateway = Gateway::new();
    let with = |namespaces: Value| {
        gateway.define_with(
            &json!({"name": "Pumps", "config": TAGGED, "namespaces": namespaces}),
            false,
        )
    };
    let error = with(json!([{"name": "Pump", "generator": "counter"}])).unwrap_err();
    assert!(messages(&error).contains("has the generator counter"), "{error}");
    let nested =
        json!([{"name": "Pump", "uriBase": "http://e/"}, {"name": "X", "uriBase": "http://e/x/"}]);
    let error = with(nested).unwrap_err();
    assert!(messages(&error).contains("is a prefix of the base of `X`"), "{error}");
    with(json!([{"name": "Pump", "uriBase": "http://e/"}])).unwrap();
    let inside = json!({
        "name": "Others",
        "config": UNKEYED.replace("Pump:.", "Other:."),
        "namespaces": [{"name": "Other", "uriBase": "http://e/other/"}],
    });
    let error = gateway.define_with(&inside, false).unwrap_err();
    assert_eq!(error.class, ErrorClass::Conflict);
    assert!(error.detail.contains("whose objects have a key"), "{error}");
}

fn any_pumps() -> impl Strategy<Value = Vec<(u8, u8, Vec<u8>)>> {
    let parts = proptest::collection::btree_set(0..4_u8, 0..3);
    let pump = (0..3_u8, 0..3_u8, parts.prop_map(|parts| parts.into_iter().collect()));
    proptest::collection::vec(pump, 1..12)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    /// What the objects are called depends on nothing but the data.
    #[test]
    fn the_graph_does_not_depend_on_how_the_data_is_sent(
        pumps in any_pumps(),
        (order, split) in (any::<u64>(), 1..6_usize),
        mode in prop_oneof![Just(Mode::Add), Just(Mode::Merge)],
    ) {
        // Equal keys have equal data, except for the parts: each mention adds its own in ADD.
        let element = |(site, number, parts): &(u8, u8, Vec<u8>)| {
            let parts: Vec<Value> = if mode == Mode::Merge {
                (0..*number).map(|part| json!({"position": format!("p {part}")})).collect()
            } else {
                parts.iter().map(|part| json!({"position": format!("p {part}"), "maker": format!("m{part}")})).collect()
            };
            json!({"site": format!("s/{site}"), "number": number, "power": site, "parts": parts}).to_string()
        };
        let once = {
            let (gateway, compiled) = Gateway::with("Pumps", PUMP);
            let all: Vec<String> = pumps.iter().map(element).collect();
            gateway.send(&compiled, mode, &all.join(",")).unwrap();
            gateway.quads()
        };
        let (gateway, compiled) = Gateway::with("Pumps", PUMP);
        let mut shuffled = pumps.clone();
        shuffled.extend(pumps.iter().rev().take(split).cloned());
        shuffled.sort_by_key(|(site, number, _)| (u64::from(*site) << 8 | u64::from(*number)).wrapping_mul(order | 1));
        std::thread::scope(|scope| {
            for half in [0, 1] {
                let (gateway, compiled, shuffled) = (&gateway, &compiled, &shuffled);
                scope.spawn(move || {
                    let mine: Vec<String> = shuffled.iter().skip(half).step_by(2).map(element).collect();
                    for request in mine.chunks(split) {
                        gateway.send(compiled, mode, &request.join(",")).unwrap();
                    }
                });
            }
        });
        prop_assert_eq!(gateway.quads(), once);
        prop_assert_eq!(gateway.entries(), 0);
    }
}

#[test]
fn a_key_can_be_added_to_objects_with_ordered_arrays() {
    let config = |key: &str| {
        format!(
            "type: object\npath: Pump:.\n{key}fields:\n  serial: {{type: string, path: <urn:serial>, required: true}}\n  \
             marks: {{type: array, ordered: true, path: <urn:mark>}}\n"
        )
    };
    let (gateway, pumps) = Gateway::with("Pumps", &config(""));
    gateway.send(&pumps, Mode::Add, r#"{"serial": "1", "marks": ["b", "a"]}"#).unwrap();
    gateway.define("Pumps", &config("key: serial\n")).unwrap();
}
