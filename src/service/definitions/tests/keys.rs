use super::pruning::apply_and_prune;
use super::*;
use oxrdf::{Literal, NamedNode, Quad};

const BASE: &str = "https://plant.example/Valve/";
const VALVES: &str = "name: Valve\nuriBase: https://plant.example/Valve/\ngenerator: uuid\n";

/// A Business Object over the valves, with a key or without one.
fn object(name: &str, key: &str) -> String {
    format!(
        "name: {name}\nconfig: |\n  type: object\n  path: Valve:.\n  key: {key}\n  fields:\n    \
         a: {{type: string, path: <urn:a>, required: true}}\n    \
         b: {{type: string, path: <urn:b>, required: true}}\n"
    )
}

fn plant(one: &str, other: &str) -> Vec<DefinitionFile> {
    let (one, other) = (object("One", one), object("Other", other));
    files(&[("n.yaml", VALVES), ("one.yaml", &one), ("other.yaml", &other)])
}

/// Stores a valve beside ingestion, as `penstock load` does.
fn insert(gateway: &Gateway, local: &str, a: &str, b: &str) {
    let subject = NamedNode::new(format!("{BASE}{local}")).unwrap();
    let insert = |transaction: &mut penstock_store::Transaction<'_>| {
        for (predicate, value) in [("urn:a", a), ("urn:b", b)] {
            let quad = Quad::new(
                subject.clone(),
                NamedNode::new(predicate).unwrap(),
                Literal::new_simple_literal(value),
                NamedNode::new(BASE).unwrap(),
            );
            transaction.insert(quad.as_ref())?;
        }
        penstock_model::change_feed::record_changes(transaction, gateway.catalogue.watch())
    };
    gateway.store.commit::<_, GatewayError>(&Authorized::local(), insert).unwrap();
}

fn ingest_one(gateway: &Gateway, a: &str) -> String {
    let body = serde_json::json!({"data": [{"a": a, "b": "x"}]}).to_string();
    let one = gateway.catalogue.get("One").unwrap();
    let watch = gateway.catalogue.watch();
    let answer = ingest_body(&gateway.store, watch, &one, Mode::Merge, &body).unwrap();
    answer.objects[0].uri.clone()
}

#[test]
fn a_key_that_stored_objects_share_is_one_error() {
    let dir = tempfile::tempdir().unwrap();
    let gateway = open_gateway(dir.path(), &[]);
    apply(&gateway, &plant("[]", "[]"), &in_folder()).unwrap();
    insert(&gateway, "1", "same", "x");
    insert(&gateway, "2", "same", "y");
    let error = apply(&gateway, &plant("a", "a"), &in_folder()).unwrap_err();
    let text = messages(&error);
    assert_eq!(error.class, ErrorClass::Conflict, "{text}");
    assert_eq!(text.matches("cannot take effect").count(), 1, "{text}");
    assert!(text.contains("one.yaml:1:1: ") && !text.contains("other.yaml"), "{text}");
    assert!(gateway.catalogue.get("One").unwrap().object.definition.config.contains("key: []"));
}

#[test]
fn definitions_of_one_run_change_their_key_together() {
    let dir = tempfile::tempdir().unwrap();
    let gateway = open_gateway(dir.path(), &[]);
    apply(&gateway, &plant("a", "a"), &in_folder()).unwrap();
    insert(&gateway, "1", "P-1", "B-1");
    let found = ingest_one(&gateway, "P-1");
    assert_eq!(found, format!("{BASE}1"));
    // One of them alone would have another key than the other.
    let error = apply(&gateway, &plant("b", "a"), &in_folder()).unwrap_err();
    let text = messages(&error);
    assert_eq!(text.matches("has another key").count(), 1, "{text}");
    let report = apply(&gateway, &plant("b", "b"), &in_folder()).unwrap();
    assert_eq!(
        actions(&report),
        ["changed BusinessObject \"One\"", "changed BusinessObject \"Other\""]
    );
    insert(&gateway, "2", "P-2", "B-2");
    let body = serde_json::json!({"data": [{"a": "P-2", "b": "B-2"}]}).to_string();
    let other = gateway.catalogue.get("Other").unwrap();
    let watch = gateway.catalogue.watch();
    let answer = ingest_body(&gateway.store, watch, &other, Mode::Merge, &body).unwrap();
    assert_eq!(answer.objects[0].uri, format!("{BASE}2"));
}

#[test]
fn a_key_takes_effect_in_a_new_namespace_whose_graph_has_objects() {
    let dir = tempfile::tempdir().unwrap();
    let gateway = open_gateway(dir.path(), &[]);
    insert(&gateway, "1", "P-1", "x");
    let report = apply(&gateway, &plant("a", "a"), &in_folder()).unwrap();
    assert_eq!(report.changes.len(), 3, "{report:?}");
    assert_eq!(ingest_one(&gateway, "P-1"), format!("{BASE}1"));
    assert_eq!(ingest_one(&gateway, "P-2"), format!("{BASE}P-2"));
}

#[test]
fn the_definitions_of_one_commit_are_checked_together() {
    let dir = tempfile::tempdir().unwrap();
    let gateway = open_gateway(dir.path(), &[]);
    let object = |name: &str, key: &str| {
        format!(
            "name: {name}\nconfig: |\n  type: object\n  path: Pump:.\n  key: {key}\n  fields:\n    \
             a: {{type: string, path: <urn:a>, required: true}}\n    \
             b: {{type: string, path: <urn:b>, required: true}}\n"
        )
    };
    let (one, other, same) = (object("One", "a"), object("Other", "b"), object("Other", "a"));
    let before = gateway.store.stats().sequence;
    let bad = files(&[("one.yaml", &one), ("other.yaml", &other)]);
    let error = apply(&gateway, &bad, &in_folder()).unwrap_err();
    let text = messages(&error);
    assert!(text.contains("other.yaml:") && text.contains("\"One\" has another key"), "{text}");
    assert_eq!(gateway.store.stats().sequence, before);
    assert!(gateway.catalogue.get("One").is_none());
    let good = files(&[("one.yaml", &one), ("other.yaml", &same)]);
    let report = apply(&gateway, &good, &in_folder()).unwrap();
    assert_eq!(
        actions(&report),
        ["created BusinessObject \"One\"", "created BusinessObject \"Other\""]
    );
}

#[test]
fn a_pruned_definition_is_not_in_the_way_of_a_new_one() {
    let dir = tempfile::tempdir().unwrap();
    let gateway = open_gateway(dir.path(), &[]);
    let (one, other, same) = (object("One", "a"), object("Other", "b"), object("Same", "b"));
    apply(&gateway, &files(&[("n.yaml", VALVES), ("one.yaml", &one)]), &in_folder()).unwrap();
    insert(&gateway, "1", "P-1", "B-1");
    let renamed = files(&[("n.yaml", VALVES), ("other.yaml", &other)]);
    // Without --prune both would have the key.
    let text = messages(&apply(&gateway, &renamed, &in_folder()).unwrap_err());
    assert!(text.contains("\"One\" has another key"), "{text}");
    let report = apply_and_prune(&gateway, &renamed);
    assert_eq!(
        actions(&report),
        ["created BusinessObject \"Other\"", "deleted BusinessObject \"One\""]
    );
    assert!(gateway.catalogue.get("One").is_none());
    // The key of the deleted one is that of the new one, and its index stays.
    let report = apply_and_prune(&gateway, &files(&[("n.yaml", VALVES), ("same.yaml", &same)]));
    assert_eq!(
        actions(&report),
        ["created BusinessObject \"Same\"", "deleted BusinessObject \"Other\""]
    );
    let body = serde_json::json!({"data": [{"a": "P-1", "b": "B-1"}]}).to_string();
    let same = gateway.catalogue.get("Same").unwrap();
    let watch = gateway.catalogue.watch();
    let answer = ingest_body(&gateway.store, watch, &same, Mode::Merge, &body).unwrap();
    assert_eq!(answer.objects[0].uri, format!("{BASE}1"));
}

#[test]
fn a_namespace_can_take_the_base_of_a_pruned_one_without_data() {
    let dir = tempfile::tempdir().unwrap();
    let gateway = open_gateway(dir.path(), &[]);
    let one = object("One", "a");
    let both = files(&[("n.yaml", VALVES), ("one.yaml", &one)]);
    apply(&gateway, &both, &in_folder()).unwrap();
    let renamed = files(&[("n.yaml", &VALVES.replace("name: Valve", "name: Tube"))]);
    let text = messages(&apply(&gateway, &renamed, &in_folder()).unwrap_err());
    assert!(text.contains("the namespace \"Valve\" has the base"), "{text}");
    let report = apply_and_prune(&gateway, &renamed);
    let expected = [
        "created Namespace \"Tube\"",
        "deleted BusinessObject \"One\"",
        "deleted Namespace \"Valve\"",
    ];
    assert_eq!(actions(&report), expected);
    // Another spelling of the base gives the same identifiers.
    let pipe = VALVES.replace("name: Valve", "name: Pipe").replace("/Valve/", "/Valve");
    let report = apply_and_prune(&gateway, &files(&[("n.yaml", &pipe)]));
    assert_eq!(actions(&report), ["created Namespace \"Pipe\"", "deleted Namespace \"Tube\""]);
    let report = apply_and_prune(&gateway, &renamed);
    assert_eq!(actions(&report), ["created Namespace \"Tube\"", "deleted Namespace \"Pipe\""]);

    // One with data stays, and so does everything else.
    let tubes = object("One", "a").replace("Valve:", "Tube:");
    let with_tubes = [&renamed[..], &files(&[("one.yaml", &tubes)])].concat();
    apply(&gateway, &with_tubes, &in_folder()).unwrap();
    insert(&gateway, "1", "P-1", "B-1");
    let prune = ApplyOptions { prunes_all: true, ..in_folder() };
    let error = apply(&gateway, &files(&[("n.yaml", VALVES)]), &prune).unwrap_err();
    assert_eq!(error.class, ErrorClass::Conflict, "{error}");
    assert!(gateway.catalogue.get("One").is_some());
}
