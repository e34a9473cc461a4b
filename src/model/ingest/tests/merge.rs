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
