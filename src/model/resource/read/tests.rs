use super::*;
use crate::mapping;
use crate::resource::{Compiled, CompiledDefinition, condition_to_terms};
use crate::testing::compile_object;
use oxrdf::{NamedNode, Term};
use penstock_base::error::Place;
use proptest::prelude::*;
use serde_json::{Value, json};

const CONFIG: &str =
    "type: object\npath: Plant:.\nfields:\n  name: {type: string, path: <http://e/name>}\n";

/// Returns a body with one member changed.
fn with(name: &str, value: Value) -> Vec<u8> {
    let mut body = json!({
        "name": "Plants",
        "description": "All plants",
        "enabled": false,
        "config": CONFIG,
        "conditions": [{"predicate": "http://e/type", "value": "urn:e:Plant"}],
        "pushTargets": [{"bucketName": "plants"}],
    });
    body[name] = value;
    body.to_string().into_bytes()
}

/// Returns the findings of a body as (place, message).
fn findings(body: &[u8]) -> Vec<(String, String)> {
    let error = CompiledDefinition::from_json(body).unwrap_err();
    assert_eq!(error.class, ErrorClass::Invalid, "{error}");
    error
        .findings
        .into_iter()
        .map(|finding| {
            let place = match finding.place {
                Place::Pointer(pointer) => pointer,
                Place::Line { line, column } => format!("{line}:{column}"),
                Place::Whole => "whole".to_owned(),
            };
            (place, finding.message)
        })
        .collect()
}

#[track_caller]
fn refused(name: &str, value: Value, pointer: &str, words: &str) {
    let found = findings(&with(name, value));
    assert_eq!(found.len(), 1, "{found:?}");
    assert!(found[0].0 == pointer && found[0].1.contains(words), "{found:?}");
}

#[test]
fn reads_the_request_of_the_specification() {
    let CompiledDefinition { definition, mapping, conditions } =
        CompiledDefinition::from_json(&with("enabled", json!(false))).unwrap();
    assert_eq!(
        definition,
        Definition {
            name: "Plants".to_owned(),
            description: "All plants".to_owned(),
            enabled: false,
            config: CONFIG.to_owned(),
            conditions: vec![Condition {
                predicate: "http://e/type".to_owned(),
                value: "urn:e:Plant".to_owned(),
                ..Condition::default()
            }],
            push_targets: vec![PushTarget { bucket_name: "plants".to_owned() }],
            ..Definition::default()
        }
    );
    assert_eq!(mapping.root.namespace, "Plant");
    let term: Term = NamedNode::new_unchecked("urn:e:Plant").into();
    assert_eq!(conditions, [(NamedNode::new_unchecked("http://e/type"), term)]);
}

#[test]
fn only_name_and_config_are_required() {
    let body = json!({"name": "Plants", "config": CONFIG, "conditions": null}).to_string();
    let CompiledDefinition { definition, conditions, .. } =
        CompiledDefinition::from_json(body.as_bytes()).unwrap();
    assert!(definition.enabled && definition.push_targets.is_empty() && conditions.is_empty());
    let found = findings(b"{}");
    let pointers: Vec<&str> = found.iter().map(|(pointer, _)| pointer.as_str()).collect();
    assert_eq!(pointers, ["/name", "/config"]);
    assert_eq!(findings(b"[]")[0].0, "");
    assert_eq!(
        CompiledDefinition::from_json(b"{\"name\": 1, \"name\": 2}").unwrap_err().class,
        ErrorClass::Malformed
    );
}

#[test]
fn an_answer_may_be_sent_again() {
    for name in ANSWER_MEMBERS {
        CompiledDefinition::from_json(&with(name, json!(1))).unwrap();
    }
}

#[test]
fn prefixes_of_the_mapping_apply_to_conditions_and_their_text_is_kept() {
    let config = "prefixes: {ex: http://e/, urn: http://never/}\ntype: object\npath: Plant:.\nfields:\n  \
                  name: {type: string, path: ex:name}\n";
    let body = json!({
        "name": "Plants",
        "config": config,
        "conditions": [
            {"predicate": "rdf:type", "value": "ex:Plant"},
            {"predicate": "urn:x:y", "value": "http://e/Plant"},
        ],
    });
    let CompiledDefinition { definition, conditions, .. } =
        CompiledDefinition::from_json(body.to_string().as_bytes()).unwrap();
    assert_eq!(definition.conditions[0].predicate, "rdf:type");
    let whole: Vec<String> = conditions.iter().map(|(p, v)| format!("{p} {v}")).collect();
    assert_eq!(
        whole,
        [
            "<http://www.w3.org/1999/02/22-rdf-syntax-ns#type> <http://e/Plant>",
            "<urn:x:y> <http://e/Plant>"
        ]
    );
}

#[test]
fn config_may_be_an_object_and_its_errors_have_their_line() {
    let object = json!({"type": "object", "path": "Plant:.", "fields": {
        "size": {"type": "number", "path": "<http://e/size>"}}});
    let CompiledDefinition { definition, mapping, .. } =
        CompiledDefinition::from_json(&with("config", object.clone())).unwrap();
    assert_eq!(serde_json::from_str::<Value>(&definition.config).unwrap(), object);
    assert_eq!(mapping::compile(&definition.config).unwrap(), mapping);

    refused("config", json!(7), "/config", "not a number");
    refused("config", Value::Null, "/config", "missing");
    refused(
        "config",
        json!("type: object\npath: Plant:.\n"),
        "1:1",
        "config: root: `fields` is missing",
    );
    refused("config", json!("a: [1"), "1:6", "config: this is not valid YAML");
    let found =
        findings(&with("config", json!({"type": "object", "path": "Plant:.", "fields": {"a": 1}})));
    assert_eq!(found[0].0, "5:10", "{found:?}");
    let mut deep = json!(1);
    for _ in 0..400 {
        deep = json!({ "a": deep });
    }
    assert!(findings(&with("config", deep))[0].1.contains("brackets nest deeper"));
}

#[test]
fn all_findings_are_reported_at_once() {
    let body = json!({
        "name": "a/b",
        "describtion": "x",
        "enabled": "yes",
        "config": "type: object\npath: Plant:.\nfields:\n  a: {type: sting}\n  b: {type: string}\n",
        "conditions": [{"predicate": "<http://e/type>", "valu": "urn:e:P"}, 3],
        "pushTargets": [{"bucketName": "../x"}, {"bucketName": "ok-1"}, {"bucketName": "ok-1", "key": 1}, {}],
        "retention": 5,
        "schedule": "0 25 * * *",
        "timezone": "Berlin",
        "debounce": "5 minutes",
        "exportOnChange": "true",
    });
    let found = findings(body.to_string().as_bytes());
    let expected = [
        ("/name", "the character '/' is not allowed"),
        ("/enabled", "`enabled` must be true or false, not a string"),
        ("4:13", "config: field `a`: there is no type `sting`; did you mean `string`?"),
        ("5:6", "config: field `b`: the path names no property"),
        ("/conditions/0/predicate", "is in angle brackets; leave them out here"),
        ("/conditions/0/value", "`value` is missing"),
        ("/conditions/0/valu", "did you mean `value`?"),
        ("/conditions/1", "an object is expected, not a number"),
        ("/pushTargets/0/bucketName", "\"../x\" is not"),
        ("/pushTargets/2/bucketName", "listed twice"),
        ("/pushTargets/2/key", "known members are bucketName"),
        ("/pushTargets/3/bucketName", "`bucketName` is missing"),
        ("/exportOnChange", "must be true or false, not a string"),
        ("/retention", "must be a string, not a number"),
        ("/schedule", "the hour \"25\""),
        ("/timezone", "not a time zone"),
        ("/debounce", "`500ms`, `5s`"),
        ("/describtion", "did you mean `description`?"),
    ];
    assert_eq!(found.len(), expected.len(), "{found:#?}");
    for ((place, message), (at, words)) in found.iter().zip(expected) {
        assert!(
            place == at && message.contains(words),
            "{place}: {message}\nexpected {at}: {words}"
        );
    }
}

#[test]
fn the_findings_are_bounded() {
    let many: Vec<Value> = (0..5000).map(Value::from).collect();
    assert_eq!(findings(&with("conditions", json!(many))).len(), 1000);
    let mut body = json!({});
    for i in 0..5000 {
        body[format!("m{i}")] = json!(1);
    }
    assert_eq!(findings(body.to_string().as_bytes()).len(), 1000);
}

#[test]
fn names_are_checked() {
    let longest = "a".repeat(200);
    for good in ["Plant", "Plant (North), 100 %", "日本", longest.as_str(), "a.b"] {
        CompiledDefinition::from_json(&with("name", json!(good))).unwrap();
    }
    refused("name", json!(""), "/name", "it is empty");
    refused("name", json!("a".repeat(201)), "/name", "more than 200 characters");
    refused("name", json!("日".repeat(23)), "/name", "207 bytes in the keys of exports");
    refused("name", json!("a\u{7}"), "/name", "is not allowed");
    refused("name", json!("a\u{202e}b"), "/name", "the character '\\u{202e}' is not allowed");
    refused("name", json!(" a"), "/name", "white space");
    refused("name", json!(".."), "/name", "URLs do not keep it");
    refused("name", json!("0190a3c1-7f00-7000-8000-000000000000"), "/name", "looks like an id");
    refused("name", json!(["a"]), "/name", "must be a string, not an array");
}

#[test]
fn bucket_names_are_checked() {
    for bad in ["", "ab", "../", "../../x", "a..b", "-ab", "Abc", "a/b", "1.2.3.4", "a\0b"] {
        refused(
            "pushTargets",
            json!([{ "bucketName": bad }]),
            "/pushTargets/0/bucketName",
            "is not",
        );
    }
}

#[test]
fn a_target_that_leads_nowhere_is_refused_at_its_place() {
    let new = NewDefinition::from_json(&with("description", json!(""))).unwrap();
    let error = new.compile(&|name| Err(format!("{name} leads nowhere"))).unwrap_err();
    assert_eq!(
        error.findings,
        [Finding::at_pointer("/pushTargets/0/bucketName", "plants leads nowhere")]
    );
    assert!(error.detail.contains("\"Plants\" is not valid"), "{error}");
}

proptest! {
    #[test]
    fn arbitrary_members_never_panic(name in "[a-zA-Z]{0,12}", value in "[ -~]{0,40}") {
        let _ = CompiledDefinition::from_json(&with(&name, json!(value)));
    }
}

#[test]
fn a_condition_can_have_a_literal() {
    let conditions = json!([
        {"predicate": "rdf:a", "value": "released"},
        {"predicate": "rdf:a", "value": "a:b", "datatype": "xsd:string"},
        {"predicate": "rdf:a", "value": "1", "datatype": "xsd:integer"},
        {"predicate": "rdf:a", "value": "frei", "language": "DE"},
        {"predicate": "rdf:a", "value": "", "datatype": "xsd:string", "language": null},
        {"predicate": "rdf:a", "value": "urn:b"},
    ]);
    let body = with("conditions", conditions);
    let compiled = CompiledDefinition::from_json(&body).unwrap();
    let terms: Vec<String> =
        compiled.conditions.iter().map(|(_, value)| value.to_string()).collect();
    let integer = "\"1\"^^<http://www.w3.org/2001/XMLSchema#integer>";
    assert_eq!(terms, ["\"released\"", "\"a:b\"", integer, "\"frei\"@de", "\"\"", "<urn:b>"]);
    // What is stored has the same meaning without prefixes.
    let CompiledDefinition { mapping, conditions, .. } = compiled;
    let stored = Compiled { conditions, ..compile_object("1", "Plants", mapping) };
    let expanded = stored.expand_conditions();
    let again: Vec<_> = expanded.iter().map(|one| condition_to_terms(one).unwrap()).collect();
    assert_eq!(again, stored.conditions);

    let conditions = json!([
        {"predicate": "rdf:a", "value": ""},
        {"predicate": "rdf:a", "value": "a", "datatype": "integer"},
        {"predicate": "rdf:a", "value": "a", "datatype": "rdf:langString"},
        {"predicate": "rdf:a", "value": "a", "language": "no language"},
        {"predicate": "rdf:a", "value": "a", "language": "en", "datatype": "xsd:string"},
        {"predicate": "rdf:a", "value": 1},
    ]);
    let found = findings(&with("conditions", conditions));
    let expected = [
        ("/conditions/0/value", "it is empty"),
        ("/conditions/1/datatype", "not an absolute IRI"),
        ("/conditions/2/datatype", "has a `language`"),
        ("/conditions/3/language", "not a language tag"),
        ("/conditions/4/datatype", "not both"),
        ("/conditions/5/value", "must be a string, not a number"),
    ];
    assert_eq!(found.len(), expected.len(), "{found:?}");
    for ((pointer, message), (place, words)) in found.iter().zip(expected) {
        assert!(pointer == place && message.contains(words), "{pointer}: {message}");
    }
}
