//! Documents around the objects: what these take from around them, and places in the documents.
use super::skip::letters;
use super::*;
use crate::ingest::{BatchedMessage, BodyForm, MessageBatch};
use serde_json::json;
use std::collections::BTreeMap;

const READINGS: &str = "
type: object
path: Readings:.
items: /groups/*/metrics/*
key: [device, tag]
prefixes: {v: 'https://plant.example/v/'}
fields:
  device: {type: string, path: v:device, required: true, outer: /device/id}
  tag: {type: string, path: v:tag, required: true, outer: '*'}
  group: {type: string, path: v:group, outer: '*1'}
  at: {type: dateTime, path: v:at, outer: time}
  value: {type: number, path: v:value}
  more:
    type: group
    fields:
      unit: {type: string, path: v:unit, outer: unit}
";

fn fixture(config: &str) -> Fixture {
    Fixture::with_definition(&json!({"name": "Readings", "config": config}))
}

fn document<'a>(fixture: &'a Fixture, mode: Mode, body: Body<'a>) -> Request<'a> {
    Request { form: BodyForm::Document, ..fixture.request(mode, body) }
}

fn send(fixture: &Fixture, text: &str) -> Result<Answer, GatewayError> {
    fixture.run(&document(fixture, Mode::Merge, Body::Json(text.as_bytes())))
}

/// Returns what the view shows of the objects of an answer, without their URIs.
fn shown(fixture: &Fixture, answer: &Answer) -> Vec<serde_json::Value> {
    let view = |uri: &str| {
        let mut view: serde_json::Value = serde_json::from_str(&fixture.view(uri)).unwrap();
        view.as_object_mut().unwrap().remove("uri");
        view
    };
    answer.objects.iter().map(|object| view(&object.uri)).collect()
}

#[test]
fn objects_take_what_is_around_them() {
    let fixture = fixture(READINGS);
    let text = r#"{
      "device": {"id": "D-1"}, "time": "2026-01-01T00:00:00Z", "ignored": [1],
      "groups": {
        "g1": {"unit": "bar", "metrics": {"a": {"value": 1.50}, "b": {"tag": "own", "more": {"unit": null}}}},
        "g2": {"time": "2026-02-02T00:00:00Z", "metrics": {"a": {"group": "h", "more": {"unit": "K"}}}}
      }}"#;
    let answer = send(&fixture, text).unwrap();
    assert_eq!((answer.created, answer.updated), (2, 1));
    assert!(answer.warnings.is_empty(), "{answer:?}");
    let at = "2026-01-01T00:00:00Z";
    let value: serde_json::Value = serde_json::from_str("1.50").unwrap();
    assert_eq!(
        shown(&fixture, &answer),
        [
            json!({"device": "D-1", "tag": "a", "group": "h", "at": "2026-02-02T00:00:00Z", "value": value,
                   "more": {"unit": "K"}}),
            json!({"device": "D-1", "tag": "own", "group": "g1", "at": at}),
            json!({"device": "D-1", "tag": "a", "group": "h", "at": "2026-02-02T00:00:00Z", "value": value,
                   "more": {"unit": "K"}}),
        ],
        "the first and the last have one key"
    );
    assert_eq!(send(&fixture, text).unwrap().created, 0);
}

#[test]
fn a_missing_key_names_what_is_not_around_its_object() {
    let fixture = fixture(READINGS);
    let error = send(&fixture, r#"{"groups": {"g1": {"metrics": {"a": {}}}}}"#).unwrap_err();
    let words = "field of its key; there is none for device (`outer` is /device/id)";
    assert!(error.detail.ends_with(words), "{error}");
}

#[test]
fn the_same_objects_in_data_and_in_documents_are_the_same_quads() {
    let bare = "type: object\npath: Readings:.\nfields: {name: {type: string, path: <urn:name>}, n: {type: number, path: <urn:n>}}";
    let objects = r#"{"uri": "urn:1", "name": "a\u00e4\n", "n": 1.50}, {"uri": "urn:2", "n": 1e3}"#;
    let plain = fixture(bare);
    plain.send(Mode::Add, objects).unwrap();
    for (config, text) in [
        (bare.to_owned(), format!("[{objects}]")),
        (format!("{bare}\nitems: /*"), format!("[{objects}]")),
        (format!("{bare}\nitems: /a/b/*"), format!("{{\"a\": {{\"x\": 1, \"b\": [{objects}]}}}}")),
        (
            format!("{bare}\nitems: /x"),
            format!("[{{\"x\": {}}}]", objects.replace("}, {", "}}, {\"x\": {")),
        ),
    ] {
        let fixture = fixture(&config);
        let body = Body::Json(text.as_bytes());
        let answer = fixture.run(&document(&fixture, Mode::Add, body)).unwrap();
        assert_eq!((answer.created, fixture.quads()), (2, plain.quads()), "{text}");
    }
    // Without the form, `items` does not count.
    let fixture = fixture(&format!("{bare}\nitems: /a/*"));
    fixture.send(Mode::Add, objects).unwrap();
    assert_eq!(fixture.quads(), plain.quads());
}

#[test]
fn errors_point_into_the_document() {
    let fixture = fixture(READINGS);
    let text = r#"{"device": {"id": 7}, "time": "yesterday",
      "groups": [{"metrics": [{"tag": "a", "value": "x"}, 5]}]}"#;
    let error = send(&fixture, text).unwrap_err();
    assert_eq!(error.class, ErrorClass::Invalid);
    assert_eq!(
        pointers(&error),
        ["/groups/0/metrics/0/value", "/device/id", "/time", "/groups/0/metrics/1"]
    );
    assert!(error.detail.contains("the first is /groups/0/metrics/0/value: "), "{error}");
    // In a list of documents, the places are in the list.
    let error = send(&fixture, &format!("[{text}]")).unwrap_err();
    assert_eq!(pointers(&error)[1], "/0/device/id");
    let star = r#"{"device": {"id": "D"}, "groups": {"g": {"metrics": {"": {"value": 1}}}}}"#;
    let error = send(&fixture, star).unwrap_err();
    assert!(pointers(&error)[0].starts_with("/groups/g/metrics/"), "{error}");
}

#[test]
fn a_dead_letter_holds_what_its_object_took() {
    let fixture = fixture(READINGS);
    let text = r#"{"device": {"id": "D"}, "time": "2026-01-01T00:00:00Z",
      "groups": [{"metrics": [{"tag": "a", "value": 1.0}, {"tag": "b", "value": true}]}]}"#;
    let request = document(&fixture, Mode::Merge, Body::Json(text.as_bytes()));
    let answer = fixture.run(&Request { on_error: OnError::Skip, ..request }).unwrap();
    assert_eq!((answer.created, answer.rejected.len()), (1, 1));
    let pointer = answer.rejected[0].errors[0].pointer.as_deref();
    assert_eq!(pointer, Some("/groups/0/metrics/1/value"));
    let kept = letters(&fixture.store, &answer.ingestion_id);
    assert_eq!(kept[0].0.errors, answer.rejected[0].errors);
    assert_eq!(kept[0].1, r#"{"tag":"b","value":true,"device":"D","at":"2026-01-01T00:00:00Z"}"#);
}

#[test]
fn lines_are_documents() {
    let fixture = fixture(READINGS);
    let text = concat!(
        r#"{"device": {"id": "D"}, "groups": [{"metrics": [{"tag": "a"}, {"tag": "b", "value": ""}]}]}"#,
        "\n{\"device\": \n\n",
        r#"{"device": {"id": "E"}, "groups": []}"#,
        "\n",
        r#"{"device": {"id": "F"}, "groups": [{"metrics": [{"tag": "c"}]}]}"#,
    );
    let body =
        Body::Lines { text: text.as_bytes(), first: 40, line_numbers: &[101, 102, 104, 105] };
    let request = Request { on_error: OnError::Skip, ..document(&fixture, Mode::Merge, body) };
    let answer = fixture.run(&request).unwrap();
    assert_eq!(answer.created, 2);
    let [value, unreadable] = answer.rejected.as_slice() else { panic!("{answer:?}") };
    assert_eq!((value.index, value.line, unreadable.line), (1, Some(101), Some(102)));
    assert_eq!(value.errors[0].pointer.as_deref(), Some("/groups/0/metrics/1/value"));
    assert_eq!(unreadable.errors[0].line, Some(102));
    let [warning] = answer.warnings.as_slice() else { panic!("{answer:?}") };
    assert!(warning.message.starts_with("line 104: the document has no objects"), "{warning:?}");
    let kept = letters(&fixture.store, &answer.ingestion_id);
    assert_eq!(kept[0].1, r#"{"tag":"b","value":"","device":"D"}"#);
    assert_eq!(kept[1].1, "{\"device\": ");
}

#[test]
fn a_document_without_objects_is_a_warning() {
    let fixture = fixture(READINGS);
    for text in ["{}", "[]", "5", r#"{"groups": {"g": {"metrics": 5}}}"#, r#"[{"groups": []}]"#] {
        let answer = send(&fixture, text).unwrap();
        assert_eq!((answer.objects.len(), answer.warnings.len()), (0, 1), "{text}");
    }
    assert!(fixture.quads().is_empty());
}

#[test]
fn a_deletion_takes_only_what_identifies_an_object() {
    let fixture = fixture(READINGS);
    let text = r#"{"device": {"id": "D"}, "time": "2026-01-01T00:00:00Z", "groups": {"g": {"unit": "K", "metrics": {"a": {}}}}}"#;
    assert_eq!(send(&fixture, text).unwrap().created, 1);
    let request = document(&fixture, Mode::Delete, Body::Json(text.as_bytes()));
    assert_eq!(fixture.run(&request).unwrap().deleted, 1);
    assert!(fixture.quads().is_empty());
}

#[test]
fn what_is_added_around_objects_does_not_count_as_nesting() {
    let config = "
type: object
path: Readings:.
items: /*
fields:
  n: {type: json, path: <urn:n>}
  a: {type: group, fields: {b: {type: group, fields: {m: {type: json, path: <urn:m>, outer: /0/n}}}}}
";
    let mut fixture = fixture(config);
    fixture.limits.nesting = 6;
    let text = r#"[{"uri": "urn:1", "n": [[[[]]]]}]"#;
    let run = |mode, body| fixture.run(&document(&fixture, mode, body)).unwrap();
    assert_eq!(run(Mode::Add, Body::Json(text.as_bytes())).created, 1);
    let deeper = text.replace("[]", "[[]]");
    let request = document(&fixture, Mode::Add, Body::Json(deeper.as_bytes()));
    assert_eq!(fixture.run(&request).unwrap_err().class, ErrorClass::Malformed);
}

#[test]
fn a_message_that_nests_too_deeply_is_rejected_as_it_is() {
    let config = "type: object\npath: Readings:.\nfields: {n: {type: json, path: <urn:n>}}";
    let mut fixture = fixture(config);
    fixture.limits.nesting = 3;
    let payloads = [r#"{"uri": "urn:1", "n": [[]]}"#, r#"{"uri": "urn:2", "n": [[[]]]}"#];
    let text = payloads.join("\n");
    let message = |range| BatchedMessage {
        range,
        topic: "plant".to_owned(),
        fields: BTreeMap::new(),
        whole_bytes: None,
        error: None,
        internal_error: None,
    };
    let first = payloads[0].len();
    let messages = [message(0..first), message(first + 1..text.len())];
    let batch = MessageBatch { source: "plant", text: text.as_bytes(), messages: &messages };
    let request = document(&fixture, Mode::Add, Body::Messages(batch));
    let answer = fixture.run(&Request { on_error: OnError::Skip, ..request }).unwrap();
    assert_eq!((answer.created, answer.rejected.len()), (1, 1));
    let kept = letters(&fixture.store, &answer.ingestion_id);
    assert_eq!(kept[0].1, payloads[1]);
}

#[test]
fn errors_about_a_document_of_a_stream_name_its_line() {
    let mut fixture = fixture(READINGS);
    let line = r#"{"device": {"id": "D"}, "groups": [{"metrics": [{"tag": "a"}, {"tag": "b"}]}]}"#;
    let text = format!("{line}\n{line}\n");
    let run = |fixture: &Fixture, text: &str| {
        let body = Body::Lines { text: text.as_bytes(), first: 40, line_numbers: &[101, 102] };
        fixture.run(&document(fixture, Mode::Merge, body)).unwrap_err()
    };
    let error = run(&fixture, &format!("{line}\n{{"));
    let begin = "Ingestion failed: a document of the stream cannot be read: line 102, column ";
    assert!(error.detail.starts_with(begin), "{error}");
    // Each object takes one character, and the name of the field counts.
    fixture.limits.body_bytes = text.len() as u64 + 3 * 7;
    let error = run(&fixture, &text);
    assert!(error.detail.starts_with("Ingestion failed: line 102: the documents and"), "{error}");
    fixture.limits.body_bytes = 1 << 20;
    // The document has fewer values than its objects with what they take.
    let values =
        r#"{"device": {"id": [1, 2, 3, 4, 5, 6, 7, 8, 9]}, "groups": [{"metrics": [{}, {}, {}]}]}"#;
    fixture.limits.values = 25;
    let error = run(&fixture, &format!("{{}}\n{values}\n"));
    assert!(error.detail.starts_with("Ingestion failed: line 102: the body, or"), "{error}");
}

#[test]
fn what_objects_take_counts_each_time() {
    let mut fixture = fixture(READINGS);
    let metrics: Vec<String> = (0..50).map(|tag| format!("{{\"tag\": \"{tag}\"}}")).collect();
    let text = format!(
        r#"{{"device": {{"id": "{}"}}, "groups": [{{"metrics": [{}]}}]}}"#,
        "D".repeat(100),
        metrics.join(", ")
    );
    assert_eq!(send(&fixture, &text).unwrap().created, 50);
    fixture.limits.body_bytes = 50 * 100;
    let error = send(&fixture, &text).unwrap_err();
    assert_eq!(error.class, ErrorClass::TooLarge, "{error}");
    assert!(error.detail.contains("service.limits.body"), "{error}");
    fixture.limits.body_bytes = 1 << 20;
    fixture.limits.objects = 49;
    let error = send(&fixture, &text).unwrap_err();
    assert_eq!(error.class, ErrorClass::TooLarge);
    assert_eq!(pointers(&error), ["/groups/0/metrics/49"]);
}

#[test]
fn the_form_belongs_to_a_repeated_request() {
    let fixture = fixture(
        "type: object\npath: Readings:.\nitems: /data/*\nfields: {name: {type: string, path: <urn:name>}}",
    );
    let body = Body::Json(br#"{"data": [{"uri": "urn:1", "name": "a"}]}"#);
    let request =
        |form| Request { form, idempotency_key: Some("k"), ..fixture.request(Mode::Add, body) };
    let first = fixture.run(&request(BodyForm::Document)).unwrap();
    assert_eq!(fixture.run(&request(BodyForm::Document)).unwrap(), first);
    let error = fixture.run(&request(BodyForm::Data)).unwrap_err();
    assert_eq!(error.class, ErrorClass::Conflict);
}
