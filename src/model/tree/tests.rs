use super::*;
use crate::ingest::Mode;
use crate::mapping::compile;
use crate::testing::{Fixture, ingest_body, insert_quad};
use oxrdf::Literal as Term;
use penstock_base::commit::GuardedStore;
use serde_json::{Value as Json, json};

const MAPPING: &str = "
type: object
path: Pump:.
fields:
  name: {type: string, path: <urn:name>}
  marks: {type: array, path: <urn:mark>}
  next: {type: object, path: <urn:next>/Pump:., fields: {name: {type: string, path: <urn:name>}}}
  readings: {type: array, path: <urn:reading>, elements: {type: object, path: Reading:., fields: {at: {type: dateTime, path: <urn:at>}}}}
  areas: {type: array, path: <urn:area>, elements: {type: object, path: Area:., fields: {label: {type: string, path: <urn:label>}, rooms: {type: array, path: <urn:room>, elements: {type: object, path: Room:., fields: {label: {type: string, path: <urn:label>}}}}}}}
";
const URI: &str = "urn:pump:1";

fn fixture_with(object: &Json) -> Fixture {
    let fixture = Fixture::new(compile(MAPPING).unwrap().root);
    let store = GuardedStore::from(fixture.store.clone());
    let body = json!({"data": [object]}).to_string();
    ingest_body(&store, &fixture.watch, &fixture.business_object, Mode::Replace, &body).unwrap();
    fixture
}

fn read(fixture: &Fixture, window: Option<(&str, usize)>) -> Vec<TreeField> {
    let window = window.map(|(field, from)| FieldWindow { field: field.to_owned(), from });
    let root = &fixture.business_object.mapping.root;
    let uri = NamedNode::new_unchecked(URI);
    read_tree(&fixture.store.read(), root, &uri, window.as_ref()).unwrap().fields.unwrap()
}

fn texts(field: &TreeField) -> Vec<&str> {
    let texts = field.values.iter().map(|value| match value {
        TreeValue::Literal { text, .. } => text.as_str(),
        TreeValue::Resource(iri) => iri.as_str(),
        TreeValue::Object(tree) => tree.uri.as_str(),
    });
    texts.collect()
}

#[test]
fn a_window_has_some_elements_of_one_field() {
    let marks: Vec<String> = (100..150).map(|n| n.to_string()).collect();
    let fixture = fixture_with(&json!({"uri": URI, "name": "Feed", "marks": marks}));
    let fields = read(&fixture, None);
    assert_eq!((fields[1].values.len(), fields[1].first, fields[1].total), (20, 0, 50));
    assert_eq!(texts(&fields[0]), ["Feed"]);
    let window = read(&fixture, Some(("marks", 40)));
    let [marks] = window.as_slice() else { panic!("{window:?}") };
    assert_eq!(texts(marks), (140..150).map(|n| n.to_string()).collect::<Vec<_>>());
    assert!(read(&fixture, Some(("marks", 400)))[0].values.is_empty());
    assert!(read(&fixture, Some(("none", 0))).is_empty());
}

#[test]
fn objects_with_a_time_begin_with_the_newest() {
    let time = |n: usize| format!("2026-03-{:02}T00:00:00Z", (n * 7) % 29 + 1);
    let readings: Vec<Json> =
        (0..29).map(|n| json!({"uri": format!("urn:r:{n:02}"), "at": time(n)})).collect();
    let fixture = fixture_with(&json!({"uri": URI, "name": "Feed", "readings": readings}));
    let newest = read(&fixture, None);
    let mut sorted: Vec<usize> = (0..29).collect();
    sorted.sort_by_key(|n| std::cmp::Reverse(time(*n)));
    let uris = |from: usize, to: usize| -> Vec<String> {
        sorted[from..to].iter().map(|n| format!("urn:r:{n:02}")).collect()
    };
    assert_eq!(texts(&newest[3]), uris(0, 5));
    assert_eq!((newest[3].newest_by.as_deref(), newest[3].is_flat), (Some("at"), true));
    assert_eq!(texts(&read(&fixture, Some(("readings", 5)))[0]), uris(5, 25));
}

#[test]
fn an_object_that_is_nested_in_itself_is_only_named() {
    let next = json!({"uri": URI, "name": "Feed", "next": {"uri": "urn:pump:2", "name": "Drain"}});
    let fixture = fixture_with(&next);
    let fields = read(&fixture, None);
    let [TreeValue::Object(next)] = fields[2].values.as_slice() else { panic!("{fields:?}") };
    assert_eq!(next.label.as_deref(), Some("Drain"));
    insert_quad(&fixture.store, URI, "urn:next", NamedNode::new_unchecked(URI), "urn:g");
    let fields = read(&fixture, None);
    let itself = ObjectTree { uri: NamedNode::new_unchecked(URI), label: None, fields: None };
    assert_eq!(fields[2].values, [TreeValue::Object(itself)]);
    assert!(fields[2].notes[0].starts_with("2 values are stored"), "{:?}", fields[2].notes);
}

#[test]
fn values_that_a_field_cannot_show_are_notes() {
    let fixture = fixture_with(&json!({"uri": URI, "name": "Feed"}));
    insert_quad(&fixture.store, URI, "urn:next", Term::new_simple_literal("text"), "urn:g");
    let fields = read(&fixture, None);
    assert_eq!((fields[2].total, fields[2].notes.len()), (0, 1));
    assert!(fields[2].notes[0].contains("\"text\" is not an IRI"), "{:?}", fields[2].notes);
}

#[test]
fn nested_objects_have_fewer_elements_and_all_of_them_are_counted() {
    let rooms: Vec<Json> = (0..9).map(|n| json!({"label": format!("R{n}")})).collect();
    let areas: Vec<Json> =
        (0..30).map(|n| json!({"label": format!("A{n}"), "rooms": rooms})).collect();
    let fixture = fixture_with(&json!({"uri": URI, "name": "Feed", "areas": areas}));
    let fields = read(&fixture, None);
    assert_eq!((fields[4].values.len(), fields[4].total), (20, 30));
    assert!(!fields[4].is_flat);
    let TreeValue::Object(area) = &fields[4].values[0] else { panic!("{fields:?}") };
    let rooms = &area.fields.as_ref().unwrap()[1];
    assert_eq!((rooms.values.len(), rooms.total, rooms.is_flat), (5, 9, true));
}

#[test]
fn long_texts_are_cut_and_a_page_has_a_limited_size() {
    let long = "x".repeat(2_000);
    let fixture = fixture_with(&json!({"uri": URI, "name": long, "marks": ["short"]}));
    let fields = read(&fixture, None);
    let [TreeValue::Literal { text, is_cut }] = fields[0].values.as_slice() else {
        panic!("{fields:?}")
    };
    assert_eq!((text.len(), *is_cut), (1_000, true));
    assert_eq!(fields[1].values, [TreeValue::Literal { text: "short".to_owned(), is_cut: false }]);
    let stored = fixture.store.read();
    let mut reader = TreeReader {
        read: &stored,
        nested_left: MAX_NESTED,
        ordered_left: MAX_ORDERED,
        members_left: MAX_MEMBERS,
        windowed_left: MAX_MEMBERS,
        bytes_left: 500,
    };
    assert!(reader.take_bytes(450) && !reader.take_bytes(1), "the first one always fits");
}

const MAP: &str = "
type: object
path: Pump:.
fields:
  levels: {type: map, path: <urn:level>/Level:., key: {path: <urn:code>}, elements: {type: number, path: <urn:value>}}
";

#[test]
fn a_map_has_only_the_members_that_the_view_shows() {
    let fixture = Fixture::new(compile(MAP).unwrap().root);
    fixture.send(Mode::Add, r#"{"uri": "urn:pump:1", "levels": {"A": 1, "B": 2}}"#).unwrap();
    for (member, name, value) in [("urn:w", Some("C"), None), ("urn:y", None, Some("8"))] {
        let link = NamedNode::new_unchecked(member);
        insert_quad(&fixture.store, URI, "urn:level", link, "http://x/Pump/");
        let values = [("urn:code", name), ("urn:value", value)];
        for (property, text) in values.into_iter().filter_map(|(of, text)| Some((of, text?))) {
            let text = Term::new_simple_literal(text);
            insert_quad(&fixture.store, member, property, text, "http://x/Level/");
        }
    }
    assert_eq!(fixture.view_with_warnings(URI).0, r#"{"uri":"urn:pump:1","levels":{"A":1,"B":2}}"#);
    let levels = read(&fixture, None).remove(0);
    assert_eq!((levels.total, levels.values.len()), (2, 2));
    let notes = levels.notes.join("\n");
    assert!(notes.contains("<urn:y> is a member of the map without a name"), "{notes}");
    assert!(notes.contains("<urn:w> is a member of the map without a value"), "{notes}");
}

#[test]
fn windows_have_all_members_of_a_map_that_is_too_large_to_be_read() {
    let fixture = Fixture::new(compile(MAP).unwrap().root);
    let levels: Vec<String> = (0..40).map(|level| format!("\"{level}\": 1")).collect();
    let object = format!(r#"{{"uri": "{URI}", "levels": {{{}}}}}"#, levels.join(","));
    fixture.send(Mode::Add, &object).unwrap();
    let levels = read(&fixture, None).remove(0);
    assert_eq!((levels.total, levels.covered, levels.values.len()), (40, 20, 20));
    assert!(levels.notes[0].contains("includes those that the view leaves out"), "{levels:?}");
    let rest = read(&fixture, Some(("levels", 20))).remove(0);
    assert_eq!((rest.total, rest.covered), (40, 20));
    let all: BTreeSet<&str> = texts(&levels).into_iter().chain(texts(&rest)).collect();
    assert_eq!(all.len(), 40);
    // What the view leaves out does not shift the next window. It comes last, by its URI.
    let link = NamedNode::new_unchecked("zzz:w");
    insert_quad(&fixture.store, URI, "urn:level", link, "http://x/Pump/");
    let name = Term::new_simple_literal("C");
    insert_quad(&fixture.store, "zzz:w", "urn:code", name, "http://x/Level/");
    let last = read(&fixture, Some(("levels", 30))).remove(0);
    assert_eq!((last.total, last.covered, last.values.len()), (41, 11, 10));
    assert!(last.notes[1].contains("<zzz:w> is a member of the map without a value"), "{last:?}");
}

#[test]
fn other_maps_on_the_first_page_do_not_change_what_the_next_one_has() {
    let mapping = "
type: object
path: Pump:.
fields:
  first: {type: map, path: <urn:first>/First:., key: {path: <urn:code>}, elements: {type: number, path: <urn:value>}}
  levels: {type: map, path: <urn:level>/Level:., key: {path: <urn:code>}, elements: {type: number, path: <urn:value>}}
";
    let fixture = Fixture::new(compile(mapping).unwrap().root);
    let members: Vec<String> = (0..25).map(|level| format!("\"{level}\": 1")).collect();
    let members = members.join(",");
    let object = format!(r#"{{"uri": "{URI}", "first": {{{members}}}, "levels": {{{members}}}}}"#);
    fixture.send(Mode::Add, &object).unwrap();
    // The view leaves it out, and its URI comes first.
    let link = NamedNode::new_unchecked("a:w");
    insert_quad(&fixture.store, URI, "urn:level", link, "http://x/Pump/");
    let name = Term::new_simple_literal("C");
    insert_quad(&fixture.store, "a:w", "urn:code", name, "http://x/Level/");
    let [first, levels]: [TreeField; 2] = read(&fixture, None).try_into().unwrap();
    assert_eq!((first.total, first.covered, first.values.len()), (25, 20, 20));
    assert_eq!((levels.total, levels.covered, levels.values.len()), (26, 19, 19));
    let rest = read(&fixture, Some(("levels", levels.covered))).remove(0);
    assert_eq!((rest.total, rest.covered), (25, 6));
    let all: BTreeSet<&str> = texts(&levels).into_iter().chain(texts(&rest)).collect();
    assert_eq!(all.len(), 25);
}

#[test]
fn a_page_reads_few_members_of_many_maps() {
    let fields: Vec<String> = (0..4)
        .map(|map| {
            format!(
                "  m{map}: {{type: map, path: <urn:m{map}>/M{map}:., key: {{path: <urn:code>}}, elements: {{type: number, path: <urn:value>}}}}\n"
            )
        })
        .collect();
    let mapping = format!("type: object\npath: Pump:.\nfields:\n{}", fields.concat());
    let fixture = Fixture::new(compile(&mapping).unwrap().root);
    let members: Vec<String> = (0..31).map(|level| format!("\"{level}\": 1")).collect();
    let maps: Vec<String> =
        (0..4).map(|map| format!("\"m{map}\": {{{}}}", members.join(","))).collect();
    let object = format!(r#"{{"uri": "{URI}", {}}}"#, maps.join(","));
    fixture.send(Mode::Add, &object).unwrap();
    let read_counts = |fields: &[TreeField]| -> Vec<(usize, usize)> {
        fields.iter().map(|field| (field.covered, field.total)).collect()
    };
    assert_eq!(read_counts(&read(&fixture, None)), [(20, 31), (10, 31), (0, 31), (0, 31)]);
    assert_eq!(read_counts(&read(&fixture, Some(("m3", 0)))), [(20, 31)]);
}
