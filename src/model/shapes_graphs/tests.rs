//! Shapes graphs in the catalogue, and in the definitions that name them.
use super::*;
use crate::catalogue::{Catalogue, DefinedGraph, Requester};
use crate::resource::{Compiled, CompiledDefinition};
use crate::testing::{catalogue_settings, open_store};
use penstock_base::commit::NoClient;
use penstock_base::error::Place;
use penstock_base::{IfMatch, Preconditions};
use penstock_store::Store;
use serde_json::{Value, json};
use tempfile::TempDir;

const TURTLE: TextFormat = TextFormat::Rdf(Format::Turtle);
const NAMED: &str = "\
@prefix sh: <http://www.w3.org/ns/shacl#> .
@prefix ex: <http://e/> .
# Pumps have names.
ex:Shape a sh:NodeShape ; sh:targetSubjectsOf ex:flow ; sh:property [ sh:path ex:name ; sh:minCount 1 ] .
";
/// A shapes graph of a later version.
const NEWER: &str = r#"{"name": "newer", "format": "text/turtle", "version": 4, "createdAt": "", "updatedAt": "",
    "updatedBy": "local", "text": "<http://e/S> a <http://www.w3.org/ns/shacl#Newer> ."}"#;

struct Fixture {
    store: Store,
    catalogue: Catalogue,
    _dir: TempDir,
}

fn requester() -> Requester<'static> {
    Requester::new(&NoClient, "local")
}

impl Fixture {
    fn new() -> Self {
        let (dir, store) = open_store();
        let catalogue = Catalogue::open(store.clone(), catalogue_settings()).unwrap();
        Self { store, catalogue, _dir: dir }
    }

    fn put(
        &self,
        name: &str,
        text: &str,
        if_match: IfMatch,
    ) -> Result<(Arc<DefinedGraph>, bool), GatewayError> {
        let new = NewGraph::check(name, text.as_bytes(), TURTLE)?;
        let (by, conditions) = (requester(), if_match.into());
        let put = self.catalogue.put_shapes_graph(by, &new, conditions, &|_, _, _| Ok(()))?;
        let is_created = put.is_created();
        Ok((put.into_value(), is_created))
    }

    fn delete(&self, name: &str) -> Result<(), GatewayError> {
        let (by, any) = (requester(), Preconditions::default());
        self.catalogue.delete_shapes_graph(by, name, any, &|_, _, _| Ok(()))
    }

    fn define(
        &self,
        validation: Option<&Value>,
        force: bool,
    ) -> Result<Arc<Compiled>, GatewayError> {
        let mut body = json!({
            "name": "Pumps",
            "config": "type: object\npath: Pump:.\nfields:\n  name: {type: string, path: <http://e/name>}\n",
        });
        if let Some(validation) = validation {
            body["validation"] = validation.clone();
        }
        let new = CompiledDefinition::from_json(body.to_string().as_bytes())?;
        let by = Requester { force, ..requester() };
        Ok(self.catalogue.put(by, new, Preconditions::default())?.into_value())
    }

    fn reopen(&self) -> Catalogue {
        Catalogue::open(self.store.clone(), catalogue_settings()).unwrap()
    }

    fn store_raw(&self, name: &str, document: &str) {
        self.store
            .transact::<_, Error>(|t| {
                t.put_document("shapes-graphs", name.as_bytes(), document.as_bytes())
            })
            .unwrap();
    }
}

#[track_caller]
fn class_of<T>(result: Result<T, GatewayError>) -> ErrorClass {
    result.err().unwrap().class
}

#[test]
fn a_shapes_graph_keeps_its_text_and_survives_a_restart() {
    let f = Fixture::new();
    let (first, created) = f.put("pumps", NAMED, IfMatch::Any).unwrap();
    assert!(created);
    assert_eq!(f.store.format(), StoreFormat::V3);
    let stored = SHAPES_GRAPHS.get(&f.store.read(), "pumps").unwrap().unwrap();
    assert_eq!((stored.text.as_str(), &stored.metadata), (NAMED, &first.metadata));
    // The same text changes nothing.
    let (again, created) = f.put("pumps", NAMED, IfMatch::Version(1)).unwrap();
    assert_eq!((&again.metadata, created), (&first.metadata, false));
    let (second, _) =
        f.put("pumps", &NAMED.replace("minCount 1", "minCount 2"), IfMatch::Any).unwrap();
    assert_eq!(second.metadata.version, 2);
    assert_eq!(second.metadata.created_at, first.metadata.created_at);
    assert_eq!(
        class_of(f.put("pumps", NAMED, IfMatch::Version(1))),
        ErrorClass::PreconditionFailed
    );
    let reopened = f.reopen().get_shapes_graph("pumps").unwrap();
    assert_eq!(reopened.metadata, second.metadata);
    assert!(reopened.fault.is_none());
    f.delete("pumps").unwrap();
    assert_eq!(class_of(f.delete("pumps")), ErrorClass::NotFound);
    assert!(f.reopen().list_shapes_graphs().is_empty());
}

#[test]
fn a_faulty_shapes_graph_changes_nothing() {
    let f = Fixture::new();
    f.put("pumps", NAMED, IfMatch::Any).unwrap();
    let error = f.put("pumps", "<http://e/S> a\n  nonsense .", IfMatch::Any).unwrap_err();
    assert_eq!(error.class, ErrorClass::Invalid);
    assert!(matches!(error.findings[0].place, Place::Line { line: 2, .. }), "{error}");
    let error = NewGraph::check("pumps", b"# \xC3\xA9\n a\xFF", TURTLE).unwrap_err();
    assert_eq!(error.findings[0].place, Place::Line { line: 2, column: 3 });
    let long = vec![b'\n'; MAX_GRAPH_BYTES + 1];
    assert_eq!(class_of(NewGraph::check("pumps", &long, TURTLE)), ErrorClass::TooLarge);
    for name in ["", ".", "..", " a", "a/b", "a\u{202E}b", &"a".repeat(65)] {
        let refused = NewGraph::check(name, NAMED.as_bytes(), TURTLE);
        assert_eq!(class_of(refused), ErrorClass::Invalid, "{name:?}");
    }
    assert_eq!(SHAPES_GRAPHS.get(&f.store.read(), "pumps").unwrap().unwrap().text, NAMED);
}

#[test]
fn there_are_at_most_a_hundred_shapes_graphs() {
    let f = Fixture::new();
    for number in 0..MAX_GRAPHS {
        f.put(&format!("graph-{number}"), NAMED, IfMatch::Any).unwrap();
    }
    assert_eq!(class_of(f.put("one-more", NAMED, IfMatch::Any)), ErrorClass::Conflict);
    f.put("graph-7", &NAMED.replace("minCount 1", "minCount 2"), IfMatch::Any).unwrap();
    f.delete("graph-8").unwrap();
    f.put("one-more", NAMED, IfMatch::Any).unwrap();
}

#[test]
fn a_definition_names_only_existing_shapes_graphs_and_keeps_them() {
    let f = Fixture::new();
    let both = json!({"shapes": ["pumps", "plant"], "mode": "reject"});
    f.define(None, false).unwrap();
    assert_eq!(f.store.format(), StoreFormat::V2);
    let error = f.define(Some(&both), false).unwrap_err();
    assert_eq!(error.class, ErrorClass::Invalid);
    let places: Vec<_> = error.findings.iter().map(|finding| finding.place.clone()).collect();
    let place = |index: u8| Place::Pointer(format!("/validation/shapes/{index}"));
    assert_eq!(places, [place(0), place(1)]);
    f.put("pumps", NAMED, IfMatch::Any).unwrap();
    let error = f.define(Some(&both), false).unwrap_err();
    assert_eq!(error.findings.len(), 1, "{error}");
    assert!(error.findings[0].message.contains("\"pumps\""), "{error}");
    f.put("plant", NAMED, IfMatch::Any).unwrap();
    f.define(Some(&both), false).unwrap();
    assert_eq!(f.catalogue.list_shapes_users().unwrap()["pumps"], ["Pumps"]);

    let error = f.delete("pumps").unwrap_err();
    assert_eq!(error.class, ErrorClass::Conflict);
    assert!(error.detail.contains("\"Pumps\""), "{error}");
    assert!(f.catalogue.get_shapes_graph("pumps").is_some());

    // A script from before `validation` existed must not switch it off.
    let error = f.define(None, false).unwrap_err();
    assert_eq!(error.class, ErrorClass::Unconfirmed);
    assert!(error.detail.contains("`validation`"), "{error}");
    let off = json!({"shapes": [], "mode": "off"});
    assert_eq!(f.define(Some(&off), false).unwrap().object.definition.validation, None);
    // What removes nothing is not a change.
    assert_eq!(f.define(Some(&off), false).unwrap().object.version, 3);
    f.define(Some(&both), false).unwrap();
    assert_eq!(f.define(None, true).unwrap().object.definition.validation, None);
    f.delete("pumps").unwrap();
}

#[test]
fn a_definition_with_validation_needs_the_newer_format() {
    let f = Fixture::new();
    f.define(Some(&json!({"shapes": [], "mode": "off"})), false).unwrap();
    assert_eq!(f.store.format(), StoreFormat::V2);
    f.define(Some(&json!({"shapes": [], "mode": "warn"})), false).unwrap();
    assert_eq!(f.store.format(), StoreFormat::V3);
}

#[test]
fn errors_of_validation_have_their_places() {
    let f = Fixture::new();
    for (validation, places) in [
        (json!([]), vec!["/validation"]),
        (json!({}), vec!["/validation/shapes", "/validation/mode"]),
        (json!({"shapes": "a", "mode": "reject"}), vec!["/validation/shapes"]),
        (
            json!({"shapes": ["a", 1], "mode": "refuse"}),
            vec!["/validation/shapes/1", "/validation/mode"],
        ),
        (json!({"shapes": ["a", "a"], "mode": "off"}), vec!["/validation/shapes/1"]),
        (json!({"shapes": [], "mode": "off", "more": 1}), vec!["/validation/more"]),
    ] {
        let error = f.define(Some(&validation), false).unwrap_err();
        let found: Vec<_> = error.findings.iter().map(|finding| finding.place.clone()).collect();
        let expected: Vec<_> =
            places.into_iter().map(|place| Place::Pointer(place.to_owned())).collect();
        assert_eq!(found, expected, "{validation}");
    }
}

#[test]
fn a_stored_graph_that_does_not_compile_refuses_what_it_protects() {
    let f = Fixture::new();
    f.put("newer", NAMED, IfMatch::Any).unwrap();
    f.put("lost", NAMED, IfMatch::Any).unwrap();
    f.put("pumps", NAMED, IfMatch::Any).unwrap();
    let all = json!({"shapes": ["pumps", "newer", "lost"], "mode": "reject"});
    f.define(Some(&all), false).unwrap();
    f.store_raw("newer", NEWER);
    f.store_raw("lost", "{");
    let catalogue = f.reopen();
    assert_eq!(catalogue.list_shapes_graphs().len(), 2);
    let pumps = catalogue.get("Pumps").unwrap();
    let warnings = catalogue.collect_warnings(std::slice::from_ref(&pumps)).unwrap().remove(0);
    let places: Vec<_> = warnings.iter().map(|finding| finding.place.clone()).collect();
    let place = |index: u8| Place::Pointer(format!("/validation/shapes/{index}"));
    assert!(places.contains(&place(1)) && places.contains(&place(2)), "{warnings:?}");
    // It stays stored, until it is replaced.
    assert_eq!(SHAPES_GRAPHS.get(&f.store.read(), "newer").unwrap().unwrap().metadata.version, 4);
    for name in ["newer", "lost"] {
        let new = NewGraph::check(name, NAMED.as_bytes(), TURTLE).unwrap();
        let put =
            catalogue
                .put_shapes_graph(requester(), &new, Preconditions::default(), &|_, _, _| Ok(()));
        put.unwrap();
    }
    assert_eq!(catalogue.get_shapes_graph("newer").unwrap().metadata.version, 5);
    let warnings = catalogue.collect_warnings(std::slice::from_ref(&pumps)).unwrap().remove(0);
    assert!(
        !warnings.iter().any(|finding| [place(1), place(2)].contains(&finding.place)),
        "{warnings:?}"
    );
}

#[test]
fn a_graph_is_compiled_again_only_if_its_text_changes() {
    let f = Fixture::new();
    f.put("pumps", NAMED, IfMatch::Any).unwrap();
    f.put("same", NAMED, IfMatch::Any).unwrap();
    let read = |name: &str, earlier: &CompiledGraphs| {
        let mut graphs = CompiledGraphs::default();
        let (_, graph) = graphs.read(&f.store.read(), name, earlier).unwrap();
        (graphs, graph)
    };
    let (first, graph) = read("pumps", &CompiledGraphs::default());
    let (second, same) = read("same", &first);
    assert!(Arc::ptr_eq(&graph, &same));
    f.put("same", &NAMED.replace("minCount 1", "minCount 2"), IfMatch::Any).unwrap();
    let (_, other) = read("same", &second);
    assert!(!Arc::ptr_eq(&graph, &other));
    // Without its text, nothing of it is used.
    f.store_raw("pumps", "{");
    let mut graphs = CompiledGraphs::default();
    let error = graphs.read(&f.store.read(), "pumps", &first).unwrap_err();
    assert_eq!(error.class, ErrorClass::Damaged);
}

#[test]
fn the_texts_of_all_graphs_have_a_maximum_size() {
    let f = Fixture::new();
    let padding = |bytes: usize| format!("{NAMED}#{}", "x".repeat(bytes - NAMED.len() - 1));
    f.put("a", &padding(MAX_GRAPH_BYTES), IfMatch::Any).unwrap();
    f.put("b", &padding(MAX_TOTAL_BYTES - MAX_GRAPH_BYTES), IfMatch::Any).unwrap();
    assert_eq!(class_of(f.put("c", NAMED, IfMatch::Any)), ErrorClass::Conflict);
    // One that is replaced counts once.
    f.put("b", NAMED, IfMatch::Any).unwrap();
    f.put("c", NAMED, IfMatch::Any).unwrap();
}
