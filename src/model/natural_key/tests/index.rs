//! The index of natural keys: what commits keep in it, and what they cost.
use super::*;
use crate::{namespace, natural_key};

#[test]
fn entries_of_removed_keys_are_removed() {
    let (gateway, pumps) = Gateway::with("Pumps", TAGGED);
    gateway.send(&pumps, Mode::Add, r#"{"uri": "urn:p:1", "tag": "P-1"}"#).unwrap();
    natural_key::remove_unused_entries(&gateway.store, gateway.catalogue.watch()).unwrap();
    assert_eq!(gateway.entries(), 1);
    gateway.define("Pumps", &TAGGED.replace("key: tag", "key: []")).unwrap();
    natural_key::remove_unused_entries(&gateway.store, gateway.catalogue.watch()).unwrap();
    assert_eq!(gateway.entries(), 0);
}

#[test]
fn a_refused_key_in_a_new_namespace_leaves_nothing() {
    let gateway = Gateway::new();
    let node = |iri: &str| NamedNode::new_unchecked(iri);
    for pump in ["urn:p:1", "urn:p:2"] {
        let (tag, graph) = (Literal::from("P-1"), node(&format!("{BASE}Pump/")));
        gateway.insert(&Quad::new(node(pump), node("http://e/tag"), tag, graph));
    }
    let error = gateway.define("Pumps", TAGGED).unwrap_err();
    assert!(error.detail.contains("`Pump` cannot take effect: 1 stored object "), "{error}");
    // The exporter removes what the check of the stored objects has added.
    natural_key::remove_unused_entries(&gateway.store, gateway.catalogue.watch()).unwrap();
    assert_eq!(gateway.entries(), 0);
    assert_eq!(namespace::get(&gateway.store.read(), "Pump").unwrap(), None);
    assert!(gateway.catalogue.find_saved("Pumps").is_none());
    // Another definition can use the namespace with another key.
    gateway.define("Pumps", &TAGGED.replace("key: tag", "key: []")).unwrap();
}

#[test]
fn keys_in_namespaces_that_concurrent_definitions_create_are_complete() {
    let gateway = Gateway::new();
    let node = |iri: &str| NamedNode::new_unchecked(iri);
    for number in 0..20 {
        let (tag, graph) = (Literal::from(format!("P-{number}")), node(&format!("{BASE}Valve/")));
        gateway.insert(&Quad::new(
            node(&format!("urn:v:{number}")),
            node("http://e/tag"),
            tag,
            graph,
        ));
    }
    let config = TAGGED.replace("path: Pump:.", "path: Valve:.");
    std::thread::scope(|scope| {
        for name in ["A", "B", "C"] {
            let (gateway, config) = (&gateway, &config);
            scope.spawn(move || drop(gateway.define(name, config).unwrap()));
        }
    });
    assert_eq!(gateway.entries(), 20);
    let valves = gateway.define("A", &config).unwrap();
    let answer = gateway.send(&valves, Mode::Merge, r#"{"tag": "P-7", "power": 3}"#).unwrap();
    assert_eq!(uris(&answer), ["urn:v:7"]);
}

#[test]
fn an_index_built_during_ingestion_is_complete() {
    let (gateway, unkeyed) = Gateway::with("Unkeyed", UNKEYED);
    let objects = |from: usize| {
        let elements = (from..from + 20).map(|n| format!("{{\"tag\": \"P-{n}\"}}"));
        elements.collect::<Vec<_>>().join(",")
    };
    for batch in 0..100 {
        gateway.send(&unkeyed, Mode::Add, &objects(batch * 20)).unwrap();
    }
    std::thread::scope(|scope| {
        scope.spawn(|| {
            for batch in 100..150 {
                gateway.send(&unkeyed, Mode::Add, &objects(batch * 20)).unwrap();
            }
        });
        let cleanup = scope.spawn(|| {
            for _ in 0..200 {
                natural_key::remove_unused_entries(&gateway.store, gateway.catalogue.watch())
                    .unwrap();
            }
        });
        gateway.define("Pumps", TAGGED).unwrap();
        cleanup.join().unwrap();
    });
    assert_eq!(gateway.entries(), 3000);
}

#[test]
fn entries_that_are_out_of_date_hide_no_object() {
    let (gateway, pumps) = Gateway::with("Pumps", TAGGED);
    gateway.send(&pumps, Mode::Add, r#"{"uri": "urn:z", "tag": "P-1"}"#).unwrap();
    let entry = ENTRIES.scan().first(&gateway.store.read()).unwrap().unwrap();
    let (key, key_uri, _) = entry.key().unwrap();
    let put = |t: &mut Transaction<'_>| {
        (10..40).try_for_each(|n| ENTRIES.put(t, (key, key_uri, &format!("urn:old:{n}")), ()))
    };
    gateway.store.transact(put).unwrap();
    assert_eq!(uris(&gateway.send(&pumps, Mode::Merge, r#"{"tag": "P-1"}"#).unwrap()), ["urn:z"]);
}

/// The work of a commit depends on what it changes, and not on what the changed objects are linked to.
#[test]
fn a_changed_parent_costs_the_same_with_any_number_of_parts() {
    let (gateway, pumps) = Gateway::with("Pumps", PUMP);
    let add = |number: u8, parts: usize| {
        let parts: Vec<_> = (0..parts).map(|part| json!({"position": format!("{part}")})).collect();
        json!({"site": "N", "number": number, "parts": parts}).to_string()
    };
    gateway.send(&pumps, Mode::Add, &format!("{}, {}", add(1, 2), add(2, 400))).unwrap();
    let count_steps = |number: u8| {
        let node = NamedNode::new_unchecked;
        let quad = Quad::new(
            node(format!("{BASE}Pump/N/{number}")),
            node("http://e/part".to_owned()),
            node(format!("urn:part:{number}")),
            node(format!("{BASE}Pump/")),
        );
        let before = gateway.store.step_count();
        gateway.insert(&quad);
        gateway.store.step_count() - before
    };
    assert_eq!(count_steps(1), count_steps(2));
}

#[test]
fn a_part_of_many_parents_costs_the_same_in_each() {
    let count_steps = |count: usize| {
        let (gateway, pumps) = Gateway::with("Pumps", PUMP);
        let send = |part: &Value| {
            let pump = |number: usize| json!({"site": "N", "number": number, "parts": [part]});
            let objects: Vec<String> = (0..count).map(|number| pump(number).to_string()).collect();
            gateway.send(&pumps, Mode::Merge, &objects.join(",")).unwrap()
        };
        send(&json!({"uri": "urn:part", "position": "1"}));
        let before = gateway.store.step_count();
        assert_eq!(send(&json!({"position": "1"})).unchanged, count as u64);
        gateway.store.step_count() - before
    };
    let (few, many) = (count_steps(100), count_steps(800));
    assert!(many < 20 * few, "{few}, {many}");
}

#[test]
fn a_part_with_the_uri_of_its_key_costs_the_same_with_any_number_of_parents() {
    let count_steps = |count: usize| {
        let (gateway, pumps) = Gateway::with("Pumps", PUMP);
        let pump = |number: usize, part: &Value| {
            json!({"site": "N", "number": number, "parts": [part]}).to_string()
        };
        let own = pump(0, &json!({"position": "1"}));
        let answer = gateway.send(&pumps, Mode::Add, &own).unwrap();
        let part = json!({"uri": answer.objects[0].nested[0].uri});
        let others: Vec<String> = (1..count).map(|number| pump(number, &part)).collect();
        gateway.send(&pumps, Mode::Add, &others.join(",")).unwrap();
        let before = gateway.store.step_count();
        let again = vec![own.as_str(); count].join(",");
        assert_eq!(gateway.send(&pumps, Mode::Add, &again).unwrap().unchanged, count as u64);
        gateway.store.step_count() - before
    };
    let (few, many) = (count_steps(100), count_steps(800));
    assert!(many < 20 * few, "{few}, {many}");
}

/// A change of the graph beside ingestion.
#[derive(Debug, Clone)]
enum RawChange {
    Insert(u8, u8, u8),
    Remove(u8, u8, u8),
    Link(u8, u8),
    Unlink(u8, u8),
}

fn any_raw_change() -> impl Strategy<Value = RawChange> {
    prop_oneof![
        (0..4_u8, 0..3_u8, 0..2_u8).prop_map(|(s, p, o)| RawChange::Insert(s, p, o)),
        (0..4_u8, 0..3_u8, 0..2_u8).prop_map(|(s, p, o)| RawChange::Remove(s, p, o)),
        (0..4_u8, 0..4_u8).prop_map(|(parent, child)| RawChange::Link(parent, child)),
        (0..4_u8, 0..4_u8).prop_map(|(parent, child)| RawChange::Unlink(parent, child)),
    ]
}

impl RawChange {
    fn apply(&self, transaction: &mut Transaction<'_>) {
        let node = |text: String| NamedNode::new_unchecked(text);
        let integer = node("http://www.w3.org/2001/XMLSchema#integer".to_owned());
        let value = |subject: u8, property: u8, value: u8| {
            let graph = node(format!("{BASE}{}/", if property == 2 { "Part" } else { "Pump" }));
            let (predicate, object) = match property {
                0 => ("http://e/site", Literal::from(format!("s{value}"))),
                1 => (
                    "http://e/number",
                    Literal::new_typed_literal(value.to_string(), integer.clone()),
                ),
                _ => ("http://e/position", Literal::from(format!("p{value}"))),
            };
            Quad::new(node(format!("urn:{subject}")), node(predicate.to_owned()), object, graph)
        };
        let link = |parent: u8, child: u8| {
            let child = node(format!("urn:{child}"));
            Quad::new(
                node(format!("urn:{parent}")),
                node("http://e/part".to_owned()),
                child,
                node(format!("{BASE}Pump/")),
            )
        };
        match *self {
            Self::Insert(s, p, o) => transaction.insert(value(s, p, o).as_ref()).unwrap(),
            Self::Remove(s, p, o) => transaction.remove(value(s, p, o).as_ref()).unwrap(),
            Self::Link(parent, child) => transaction.insert(link(parent, child).as_ref()).unwrap(),
            Self::Unlink(parent, child) => {
                transaction.remove(link(parent, child).as_ref()).unwrap()
            }
        };
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    /// Whatever changes the graph, the index has what a new one would have.
    #[test]
    fn the_index_that_commits_keep_is_the_one_that_is_built(
        commits in proptest::collection::vec(proptest::collection::vec(any_raw_change(), 1..8), 1..10),
    ) {
        let (gateway, _) = Gateway::with("Pumps", PUMP);
        for changes in commits {
            gateway.store.transact(|t| {
                for change in &changes {
                    change.apply(t);
                }
                change_feed::record_changes(t, gateway.catalogue.watch())
            }).unwrap();
        }
        let entries = || -> Vec<_> {
            let rows = ENTRIES.scan().read_all(&gateway.store.read()).unwrap();
            rows.iter().map(|row| row.key().unwrap()).collect()
        };
        let kept = entries();
        natural_key::rebuild_index(&gateway.store).unwrap();
        prop_assert_eq!(kept, entries());
    }
}
