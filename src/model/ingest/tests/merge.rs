//! MERGE, and what mappings and requests say about single objects: `types`, `unknownFields`, `If-Match`.
use super::*;
use crate::ingest::ObjectCondition;
use crate::mapping::UnknownFields;
use crate::testing::{ingest_body, open_store, put_definition};
use crate::view::compute_etag;
use penstock_resources::ingestion::Warning;
use penstock_store::Read;
use serde_json::json;

fn warnings(answer: &Answer) -> Vec<String> {
    let text = |warning: &Warning| format!("{} {}", warning.pointer, warning.message);
    answer.warnings.iter().map(text).collect()
}

#[test]
fn merge_creates_an_object_or_replaces_the_given_fields() {
    let fixture = Fixture::new(machine());
    let created = r#"{"uri": "urn:m", "name": "Press", "weight": 1, "tags": ["a"], "motor": {"uri": "urn:e", "power": 1}}"#;
    assert_eq!(
        fixture.send(Mode::Merge, created).unwrap().objects[0].status,
        IngestedStatus::Created
    );
    let changed = r#"{"uri": "urn:m", "weight": 2, "tags": ["b"], "motor": {"name": "e"}}"#;
    assert_eq!(
        fixture.send(Mode::Merge, changed).unwrap().objects[0].status,
        IngestedStatus::Updated
    );
    assert_eq!(
        fixture.view("urn:m"),
        r#"{"uri":"urn:m","id":"urn:m","name":"Press","weight":2,"tags":["b"],"motor":{"uri":"urn:e","name":"e","power":1},"parts":[]}"#
    );
    assert_eq!(fixture.send(Mode::Merge, changed).unwrap().unchanged, 1);
}

#[test]
fn null_removes_the_values_of_a_field() {
    let fixture = Fixture::new(machine());
    fixture.add(r#"{"uri": "urn:m", "name": "x", "weight": 1, "tags": ["a"], "motor": {"uri": "urn:e", "power": 1}}"#);
    let nulls =
        r#"{"uri": "urn:m", "weight": null, "tags": null, "motor": {"power": null, "name": "e"}}"#;
    fixture.send(Mode::Merge, nulls).unwrap();
    assert_eq!(
        fixture.view("urn:m"),
        r#"{"uri":"urn:m","id":"urn:m","name":"x","tags":[],"motor":{"uri":"urn:e","name":"e"},"parts":[]}"#
    );
}

#[test]
fn null_is_refused_for_a_required_field() {
    let fixture =
        Fixture::new(shape("Thing", vec![required(string("name")), many(string("tags"))]));
    fixture.add(r#"{"uri": "urn:t", "name": "a"}"#);
    fixture.send(Mode::Merge, r#"{"uri": "urn:t", "tags": ["x"]}"#).unwrap();
    let found = fixture.expect_refusal(
        Mode::Merge,
        r#"{"uri": "urn:t", "name": null}"#,
        ErrorClass::Invalid,
    );
    assert_eq!(found, ["/data/0/name"]);
}

#[test]
fn an_object_without_uri_and_key_cannot_be_merged() {
    let fixture = Fixture::new(machine());
    let found = fixture.expect_refusal(Mode::Merge, r#"{"name": "x"}"#, ErrorClass::Invalid);
    assert_eq!(found, ["/data/0"]);
}

#[test]
fn unlinked_objects_are_removed_and_named() {
    let fixture = Fixture::new(machine());
    fixture.add(
        r#"{"uri": "urn:m", "name": "m", "parts": [{"uri": "urn:p", "name": "p"}, {"uri": "urn:q", "name": "q"}]},
           {"uri": "urn:n", "parts": [{"uri": "urn:q"}]}"#,
    );
    let answer = fixture.send(Mode::Merge, r#"{"uri": "urn:m", "parts": []}"#).unwrap();
    assert_eq!((answer.updated, answer.deleted), (1, 1));
    let mut found = warnings(&answer);
    found.sort();
    assert_eq!(
        found,
        [
            "/data/0/parts urn:p was removed, because nothing refers to it any more",
            "/data/0/parts urn:q is no longer linked here; it stays stored",
        ]
    );
}

#[test]
fn what_was_nested_in_an_unlinked_object_is_named_too() {
    let part = shape("Part", vec![string("name")]);
    let motor = shape("Motor", vec![string("name"), field("part", Value::Object(part))]);
    let fixture =
        Fixture::new(shape("Machine", vec![string("name"), field("motor", Value::Object(motor))]));
    fixture.add(
        r#"{"uri": "urn:m", "name": "m", "motor": {"uri": "urn:o", "name": "o", "part": {"uri": "urn:p", "name": "p"}}}"#,
    );
    let answer = fixture.send(Mode::Merge, r#"{"uri": "urn:m", "motor": null}"#).unwrap();
    assert_eq!(
        warnings(&answer),
        [
            "/data/0/motor urn:o was removed, because nothing refers to it any more",
            " urn:p was removed, because the object that it was nested in was removed",
        ]
    );
    // A link that a later mention sets again is not missing.
    fixture.add(r#"{"uri": "urn:n", "motor": {"uri": "urn:k", "name": "k"}}"#);
    let twice = r#"{"uri": "urn:n", "motor": null, "name": "n"}, {"uri": "urn:n", "motor": {"uri": "urn:k"}}"#;
    assert_eq!(warnings(&fixture.send(Mode::Merge, twice).unwrap()), Vec::<String>::new());
}

#[test]
fn an_unlinked_member_of_another_business_object_stays() {
    let (_dir, store) = open_store();
    let catalogue = Catalogue::open(store.clone(), catalogue_settings()).unwrap();
    let name = "name: {type: string, path: <urn:name>}";
    let line = format!(
        "type: object\npath: Line:.\nfields:\n  pump: {{type: object, path: <urn:pump>/Pump:., fields: {{{name}}}}}"
    );
    let line = put_definition(&catalogue, &json!({"name": "Lines", "config": line}));
    let pumps = format!("type: object\npath: Pump:.\nfields: {{{name}}}");
    put_definition(&catalogue, &json!({"name": "Pumps", "config": pumps}));
    let guarded = GuardedStore::from(store.clone());
    let send = |data: &str| {
        let body = format!("{{\"data\": [{data}]}}");
        ingest_body(&guarded, catalogue.watch(), &line, Mode::Merge, &body).unwrap()
    };
    send(r#"{"uri": "urn:l", "pump": {"uri": "urn:p", "name": "p"}}"#);
    let answer = send(r#"{"uri": "urn:l", "pump": null}"#);
    assert_eq!(answer.deleted, 0);
    let pump = NamedNode::new_unchecked("urn:p");
    assert_eq!(store.read().quads_about(&pump.into()).unwrap().len(), 1);
}

#[test]
fn the_last_mention_of_an_object_wins() {
    let fixture = Fixture::new(machine());
    let twice = r#"{"uri": "urn:m", "name": "a"}, {"uri": "urn:m", "name": "b"}"#;
    fixture.send(Mode::Merge, twice).unwrap();
    assert!(fixture.view("urn:m").contains(r#""name":"b""#));
}

/// Creates a machine with this many tags.
fn machine_with_tags(count: usize) -> Fixture {
    let fixture = Fixture::new(machine());
    let tags: Vec<String> = (0..count).map(|tag| format!("\"{tag}\"")).collect();
    let tags = tags.join(",");
    fixture.add(&format!(r#"{{"uri": "urn:m", "name": "a", "tags": [{tags}]}}"#));
    fixture
}

#[test]
fn the_work_of_repeated_objects_grows_only_with_what_is_given() {
    let count_steps = |mode, object: &str, count: usize| {
        let fixture = machine_with_tags(count);
        let before = fixture.store.step_count();
        fixture.send(mode, &vec![object; count].join(",")).unwrap();
        fixture.store.step_count() - before
    };
    for (mode, object) in [
        (Mode::Add, r#"{"uri": "urn:m", "name": "a", "tags": ["0"]}"#),
        (Mode::Update, r#"{"uri": "urn:m", "name": "b"}"#),
        (Mode::Merge, r#"{"uri": "urn:m", "name": "b"}"#),
    ] {
        let (few, many) = (count_steps(mode, object, 200), count_steps(mode, object, 1_600));
        assert!(many < 20 * few, "{mode}: {few}, {many}");
    }
}

#[test]
fn one_value_of_a_required_field_is_enough_for_repeated_objects() {
    let thing = || shape("Thing", vec![required(many(string("tags"))), string("name")]);
    let count_steps = |count: usize| {
        let fixture = Fixture::new(thing());
        let tags: Vec<String> = (0..count).map(|tag| format!("\"{tag}\"")).collect();
        fixture.add(&format!(r#"{{"uri": "urn:t", "tags": [{}]}}"#, tags.join(",")));
        let before = fixture.store.step_count();
        let objects = vec![r#"{"uri": "urn:t", "name": "a"}"#; count].join(",");
        assert_eq!(fixture.add(&objects).unchanged, count as u64 - 1);
        fixture.store.step_count() - before
    };
    let (few, many) = (count_steps(200), count_steps(1_600));
    assert!(many < 20 * few, "{few}, {many}");
    let fixture = Fixture::new(thing());
    let other = r#"{"uri": "urn:t", "name": "a"}"#;
    assert_eq!(fixture.expect_refusal(Mode::Add, other, ErrorClass::Invalid), ["/data/0/tags"]);
}

#[test]
fn repeated_objects_are_written_alike_with_few_and_with_many_values() {
    let send = |count: usize, mode, objects: &[&str]| {
        let fixture = machine_with_tags(count);
        let objects = objects.iter().map(|members| format!(r#"{{"uri": "urn:m", {members}}}"#));
        fixture.send(mode, &objects.collect::<Vec<_>>().join(",")).map(|answer| {
            let view = fixture.view("urn:m");
            let (_, shown) = view.split_once(r#""id":"urn:m","#).unwrap();
            ((answer.updated, answer.unchanged), shown.to_owned())
        })
    };
    for count in [1, 200] {
        let merged = [r#""weight": 1"#, r#""weight": 2, "tags": ["x"]"#, r#""name": null"#];
        let shown = r#""weight":2,"tags":["x"],"parts":[]}"#.to_owned();
        assert_eq!(send(count, Mode::Merge, &merged), Ok(((3, 0), shown)));
        let shown = r#""name":"a","weight":1,"tags":["x"],"parts":[]}"#.to_owned();
        let updated = [r#""weight": 1, "tags": ["x"]"#; 3];
        assert_eq!(send(count, Mode::Update, &updated), Ok(((1, 2), shown)));
        let shown = r#""weight":1,"tags":[],"parts":[]}"#.to_owned();
        assert_eq!(send(count, Mode::Replace, &[r#""weight": 1"#; 3]), Ok(((1, 2), shown)));
        let added = [r#""tags": ["0"]"#, r#""tags": [], "weight": 1"#, r#""weight": 2"#];
        let error = send(count, Mode::Add, &added).unwrap_err();
        assert_eq!(pointers(&error), ["/data/2/weight"], "{error}");
    }
}

#[test]
fn types_are_written_with_an_object_and_removed_with_it() {
    let typed = "type: object\npath: Pump:.\ntypes: [brick:Pump, <urn:Asset>]\nfields: {name: {type: string, path: <urn:name>}}";
    let fixture = Fixture::with_definition(&json!({
        "name": "Pumps", "config": typed,
        "conditions": [{"predicate": "rdf:type", "value": "brick:Pump"}],
    }));
    let answer = fixture.add(r#"{"uri": "urn:p", "name": "a"}"#);
    assert_eq!(answer.warnings, []);
    assert_eq!(fixture.members(), ["urn:p"]);
    assert_eq!(fixture.quads().len(), 3);
    for mode in [Mode::Add, Mode::Replace, Mode::Update, Mode::Merge] {
        let again = fixture.send(mode, r#"{"uri": "urn:p", "name": "a"}"#).unwrap();
        assert_eq!(again.unchanged, 1, "{mode}");
    }
    assert_eq!(fixture.view("urn:p"), r#"{"uri":"urn:p","name":"a"}"#);
    fixture.send(Mode::Delete, r#"{"uri": "urn:p"}"#).unwrap();
    assert_eq!(fixture.quads(), Vec::<String>::new());
}

#[test]
fn ignored_fields_are_named_once() {
    let mut fixture = Fixture::new(machine());
    fixture.business_object.mapping.unknown_fields = UnknownFields::Ignore;
    let answer = fixture.add(
        r#"{"uri": "urn:m", "name": "a", "colour": 1}, {"uri": "urn:n", "colour": {}, "motor": {"uri": "urn:e", "power": 1, "colour": []}}"#,
    );
    assert_eq!(
        warnings(&answer),
        [
            "/data/0/colour the mapping has no field \"colour\"; it is left out everywhere",
            "/data/1/motor/colour the mapping has no field \"colour\"; it is left out everywhere",
        ]
    );
}

#[test]
fn an_object_that_has_changed_is_not_written() {
    let fixture = Fixture::new(machine());
    fixture.add(r#"{"uri": "urn:m", "name": "a"}"#);
    let send = |condition: &ObjectCondition, mode, data: &str| {
        let body = format!("{{\"data\": [{data}]}}");
        let request = fixture.request(mode, Body::Json(body.as_bytes()));
        fixture.run(&Request { condition: Some(condition), ..request })
    };
    let seen = ObjectCondition::HasTag(vec![compute_etag(fixture.view("urn:m").as_bytes())]);
    send(&seen, Mode::Merge, r#"{"uri": "urn:m", "name": "b"}"#).unwrap();
    for (mode, data) in
        [(Mode::Merge, r#"{"uri": "urn:m", "name": "c"}"#), (Mode::Delete, r#"{"uri": "urn:m"}"#)]
    {
        let error = send(&seen, mode, data).unwrap_err();
        assert_eq!(error.class, ErrorClass::PreconditionFailed);
        assert!(error.detail.contains("urn:m has changed since it was read"), "{error}");
    }
    let exists = ObjectCondition::Exists;
    let error = send(&exists, Mode::Add, r#"{"uri": "urn:x", "name": "c"}"#).unwrap_err();
    assert_eq!(error.class, ErrorClass::PreconditionFailed);
    for data in ["", r#"{"uri": "urn:m", "name": "b"}, {"uri": "urn:m", "name": "b"}"#] {
        assert_eq!(send(&exists, Mode::Merge, data).unwrap_err().class, ErrorClass::Malformed);
    }
    assert!(fixture.view("urn:m").contains(r#""name":"b""#));
}
