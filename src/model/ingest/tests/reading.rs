//! Other ways to write a value: `accept`, `timeZone`, `absent` and `default`.
use super::*;
use crate::csv::{CsvFormat, CsvHeader};
use oxrdf::Literal;
use oxrdf::vocab::xsd;

const MAPPING: &str = "
type: object
path: Pump:.
timeZone: Europe/Berlin
absent: [NA]
fields:
  name: {type: string, path: <urn:name>, accept: scalar, default: unnamed}
  flow: {type: number, path: <urn:flow>, accept: {decimal: ',', group: '.'}, absent: [-9999, '']}
  stages: {type: integer, path: <urn:stages>, accept: [text, number]}
  running: {type: boolean, path: <urn:running>, accept: {true: [1, 'on'], false: [0, 'off']}}
  started: {type: dateTime, path: <urn:started>, accept: [iso, unix-ms]}
  limits: {type: array, path: <urn:limit>, absent: [-1], elements: {type: number, accept: text}}
  motor:
    type: object
    path: <urn:motor>/Motor:.
    fields:
      uri: {type: id}
      kind: {type: string, path: <urn:kind>, default: AC, required: true}
      power: {type: number, path: <urn:power>}
      tags: {type: array, path: <urn:tag>, elements: {type: string}}
";

fn fixture() -> Fixture {
    Fixture::new(compile(MAPPING).unwrap().root)
}

/// Returns the view of an object without its URI.
fn view(fixture: &Fixture, uri: &str) -> String {
    fixture.view(uri).replace(&format!(r#""uri":"{uri}","#), "")
}

#[test]
fn values_in_other_forms_are_stored_and_shown_in_the_canonical_one() {
    let fixture = fixture();
    let sent = r#"{"uri":"urn:p","name":17,"flow":"1.234,50","stages":"1e1","running":"on",
        "started":1732700000500,"limits":["1.5",-1,2,-1.0]}"#;
    fixture.send(Mode::Add, sent).unwrap();
    let shown = view(&fixture, "urn:p");
    assert_eq!(
        shown,
        r#"{"name":"17","flow":1234.50,"stages":10,"running":true,"started":"2024-11-27T09:33:20.5Z","limits":[1.5,2]}"#
    );
    let quads = fixture.quads();
    for mode in [Mode::Add, Mode::Replace, Mode::Update, Mode::Merge] {
        let again = fixture.send(mode, &fixture.view("urn:p")).unwrap();
        assert_eq!((again.unchanged, again.warnings), (1, vec![]), "{mode}");
        let again = fixture.send(mode, sent).unwrap();
        assert_eq!(again.unchanged, 1, "{mode}");
    }
    assert_eq!(fixture.quads(), quads);
}

#[test]
fn an_error_names_what_the_field_accepts() {
    let fixture = fixture();
    let sent = r#"{"uri":"urn:p","flow":"1.23,5","stages":1.5,"running":2,"started":"soon","limits":["x"]}"#;
    let error = fixture.send(Mode::Add, sent).unwrap_err();
    assert_eq!(error.class, ErrorClass::Invalid);
    assert_eq!(
        pointers(&error),
        [
            "/data/0/flow",
            "/data/0/stages",
            "/data/0/running",
            "/data/0/started",
            "/data/0/limits/0"
        ]
    );
    let messages: Vec<&str> =
        error.findings.iter().map(|finding| finding.message.as_str()).collect();
    assert_eq!(
        messages[0],
        "a number is expected, not the string \"1.23,5\"; the field also accepts `{decimal: \",\", group: \".\"}`"
    );
    assert!(messages[1].ends_with("; the field also accepts `text`, `number`"), "{messages:?}");
    assert!(messages[2].ends_with("`{true: [1, \"on\"], false: [0, \"off\"]}`"), "{messages:?}");
    assert!(messages[3].ends_with("; the field also accepts `iso`, `unix-ms`"), "{messages:?}");
}

#[test]
fn a_number_with_another_separator_is_shown_as_it_is_written() {
    let error = fixture().send(Mode::Add, r#"{"uri":"urn:p","flow":"3.5"}"#).unwrap_err();
    let message = &error.findings[0].message;
    assert_eq!(message, r#"a number is expected, not the string "3.5"; write "3,5""#);
}

#[test]
fn an_error_names_the_mapping_that_would_take_the_value() {
    let fixture = Fixture::new(
        compile(
            "type: object\npath: Pump:.\nfields:\n  name: {type: string, path: <urn:name>}\n  \
             flow: {type: number, path: <urn:flow>}\n  stages: {type: integer, path: <urn:stages>}\n  \
             maker: {type: resource, path: <urn:maker>}\n  state: {type: string, path: <urn:state>, values: [run]}\n",
        )
        .unwrap()
        .root,
    );
    for (member, hint) in [
        (r#""flow":" +12.50""#, "; send it as a number, or write `accept: text` in the mapping"),
        (r#""flow":"12,50""#, "or write `accept: {decimal: \",\"}` in the mapping"),
        (r#""flow":"1.234,5""#, "not the string \"1.234,5\""),
        (r#""flow":"fast""#, "not the string \"fast\""),
        (r#""stages":"7""#, "`accept: text` in the mapping"),
        (r#""stages":"7,5""#, "not the string \"7,5\""),
        (r#""name":4711"#, "; send it in quotes, or write `accept: scalar` in the mapping"),
        (r#""maker":"KSB""#, "; if it is a code, write `base` or `values` in the mapping"),
        (r#""maker":"urn: x""#, "Invalid IRI code point ' '"),
    ] {
        let sent = format!(r#"{{"uri":"urn:p",{member}}}"#);
        let error = fixture.send(Mode::Add, &sent).unwrap_err();
        let message = &error.findings[0].message;
        assert!(message.ends_with(hint), "{member}: {message}");
    }
    let coded = fixture.send(Mode::Add, r#"{"uri":"urn:p","state":1}"#).unwrap_err();
    assert!(!coded.findings[0].message.contains("accept: scalar"), "{coded}");
}

#[test]
fn local_times_get_the_offset_of_the_time_zone() {
    let fixture = fixture();
    let answer =
        fixture.send(Mode::Add, r#"{"uri":"urn:p","started":"2026-10-25T02:30:00"}"#).unwrap();
    assert_eq!(answer.warnings[0].pointer, "/data/0/started");
    assert!(answer.warnings[0].message.contains("occurs twice"));
    assert!(fixture.view("urn:p").contains(r#""started":"2026-10-25T02:30:00+02:00""#));
    let skipped = r#"{"uri":"urn:q","started":"2026-03-29 02:30"}"#;
    let refused = fixture.expect_refusal(Mode::Add, skipped, ErrorClass::Invalid);
    assert_eq!(refused, ["/data/0/started"]);
}

#[test]
fn absent_values_are_no_values_in_every_mode() {
    let fixture = fixture();
    fixture.send(Mode::Add, r#"{"uri":"urn:p","name":"P","flow":-9999.0,"stages":2}"#).unwrap();
    assert_eq!(view(&fixture, "urn:p"), r#"{"name":"P","stages":2,"limits":[]}"#);
    fixture.send(Mode::Update, r#"{"uri":"urn:p","flow":1,"stages":"NA"}"#).unwrap();
    assert_eq!(view(&fixture, "urn:p"), r#"{"name":"P","flow":1,"stages":2,"limits":[]}"#);
    fixture.send(Mode::Merge, r#"{"uri":"urn:p","flow":"","stages":"NA"}"#).unwrap();
    assert_eq!(view(&fixture, "urn:p"), r#"{"name":"P","limits":[]}"#);
    let refused = fixture.expect_refusal(
        Mode::Add,
        r#"{"uri":"urn:q","motor":{"uri":"urn:m","kind":"NA","power":-9999}},{"uri":"urn:r","flow":""}"#,
        ErrorClass::Invalid,
    );
    // The kind has a default. An object whose only value is absent has nothing to store.
    assert_eq!(refused, ["/data/1"]);
}

#[test]
fn the_canonical_form_of_an_absent_value_is_no_value_either() {
    let mapping = "
type: object
path: Pump:.
fields:
  flow: {type: number, path: <urn:flow>, accept: {decimal: ',', group: '.'}, absent: -9999}
  at: {type: dateTime, path: <urn:at>, accept: unix, absent: '1970-01-01T00:00:00Z'}
  state: {type: resource, path: <urn:state>, values: {RUN: <urn:Running>, ON: <urn:Running>, OFF: <urn:Off>}, absent: RUN}
  limits: {type: array, path: <urn:limit>, absent: -1, elements: {type: number, accept: text}}
  steps: {type: array, ordered: true, path: <urn:step>, absent: -1, elements: {type: number, accept: text}}
";
    let fixture = Fixture::new(compile(mapping).unwrap().root);
    let stored = r#"{"uri":"urn:p","flow":1,"at":"2026-01-01T00:00:00Z","state":"OFF","limits":[2],"steps":[]}"#;
    let absent = r#"{"uri":"urn:p","flow":"-9.999,0","at":0,"state":"ON"}"#;
    fixture.send(Mode::Add, stored).unwrap();
    let quads = fixture.quads();
    for mode in [Mode::Add, Mode::Update] {
        assert_eq!(fixture.send(mode, absent).unwrap().unchanged, 1, "{mode}");
        assert_eq!(fixture.quads(), quads, "{mode}");
    }
    fixture.send(Mode::Update, r#"{"uri":"urn:p","limits":[" -1.0 ","3"]}"#).unwrap();
    fixture.send(Mode::Merge, absent).unwrap();
    assert_eq!(fixture.view("urn:p"), r#"{"uri":"urn:p","limits":[3],"steps":[]}"#);
    assert_eq!(fixture.quads().len(), 1);
    let steps = r#"{"uri":"urn:p","steps":[1,"-1.0"]}"#;
    let refused = fixture.expect_refusal(Mode::Merge, steps, ErrorClass::Invalid);
    assert_eq!(refused, ["/data/0/steps/1"]);
}

#[test]
fn an_absent_value_in_place_of_a_group_is_no_value() {
    let mapping = "
type: object
path: Pump:.
absent: ''
fields:
  name: {type: string, path: <urn:name>}
  device:
    type: group
    fields:
      serial: {type: string, path: <urn:serial>}
      limits: {type: group, absent: [none, 0], fields: {low: {type: number, path: <urn:low>}}}
";
    let fixture = Fixture::new(compile(mapping).unwrap().root);
    fixture.send(Mode::Add, r#"{"uri":"urn:q","name":"Q","device":""}"#).unwrap();
    assert_eq!(fixture.view("urn:q"), r#"{"uri":"urn:q","name":"Q"}"#);
    let whole = r#"{"uri":"urn:p","name":"P","device":{"serial":"S","limits":{"low":1}}}"#;
    for (device, merged) in [
        (r#""""#, r#"{"uri":"urn:p","name":"P"}"#),
        (r#"{"limits":"none"}"#, r#"{"uri":"urn:p","name":"P","device":{"serial":"S"}}"#),
        (r#"{"limits":0.0}"#, r#"{"uri":"urn:p","name":"P","device":{"serial":"S"}}"#),
    ] {
        fixture.send(Mode::Replace, whole).unwrap();
        let sent = format!(r#"{{"uri":"urn:p","name":"P","device":{device}}}"#);
        for mode in [Mode::Add, Mode::Update] {
            assert_eq!(fixture.send(mode, &sent).unwrap().unchanged, 1, "{mode} {device}");
        }
        fixture.send(Mode::Merge, &sent).unwrap();
        assert_eq!(fixture.view("urn:p"), merged, "{device}");
    }
    // The list of the inner group replaces that of the root.
    let other = r#"{"uri":"urn:p","device":{"limits":""}}"#;
    let refused = fixture.expect_refusal(Mode::Merge, other, ErrorClass::Invalid);
    assert_eq!(refused, ["/data/0/device/limits"]);
}

#[test]
fn a_default_is_checked_as_what_is_sent() {
    let mapping = "
type: object
path: Pump:.
fields:
  motor: {type: object, path: <urn:part>/Motor:., default: {uri: 'urn:m', power: 5}, fields: {power: {type: number, path: <urn:power>}}}
  valve: {type: object, path: <urn:part>/Valve:., fields: {size: {type: number, path: <urn:size>}}}
  stages: {type: integer, path: <urn:stages>}
";
    let fixture = Fixture::new(compile(mapping).unwrap().root);
    let error = fixture.send(Mode::Add, r#"{"uri":"urn:p","stages":1}"#).unwrap_err();
    assert_eq!(pointers(&error), ["/data/0/motor"]);
    assert!(error.detail.contains("is not in the namespace \"Motor\""), "{error}");
}

#[test]
fn a_stored_value_that_means_no_value_is_not_shown() {
    let fixture = fixture();
    fixture.send(Mode::Add, r#"{"uri":"urn:p","name":"P","limits":[2]}"#).unwrap();
    for (property, value) in [("urn:flow", "-9999"), ("urn:limit", "-1.0")] {
        let value = Literal::new_typed_literal(value, xsd::DECIMAL);
        insert_quad(&fixture.store, "urn:p", property, value, "http://x/Pump/");
    }
    let (shown, warnings) = fixture.view_with_warnings("urn:p");
    assert_eq!(shown, r#"{"uri":"urn:p","name":"P","limits":[2]}"#);
    assert_eq!(warnings.len(), 2, "{warnings:?}");
    assert!(warnings[0].starts_with("/flow: ") && warnings[0].contains("no value by `absent`"));
    assert!(warnings[1].starts_with("/limits: "), "{warnings:?}");
    fixture.send(Mode::Replace, &shown).unwrap();
    assert_eq!(fixture.view("urn:p"), shown);
    assert_eq!(fixture.quads().len(), 2);
}

#[test]
fn only_an_object_that_is_created_gets_defaults() {
    for mode in [Mode::Add, Mode::Replace, Mode::Merge] {
        let fixture = fixture();
        fixture
            .send(
                mode,
                r#"{"uri":"urn:p","name":null,"stages":1,"motor":{"uri":"urn:m","power":5}}"#,
            )
            .unwrap();
        assert_eq!(
            view(&fixture, "urn:p"),
            r#"{"name":"unnamed","stages":1,"limits":[],"motor":{"uri":"urn:m","kind":"AC","power":5,"tags":[]}}"#,
            "{mode}"
        );
    }
    let fixture = fixture();
    fixture.send(Mode::Add, r#"{"uri":"urn:p","name":"P","stages":1}"#).unwrap();
    fixture.send(Mode::Replace, r#"{"uri":"urn:p","stages":1}"#).unwrap();
    assert_eq!(view(&fixture, "urn:p"), r#"{"stages":1,"limits":[]}"#);
    for mode in [Mode::Add, Mode::Update, Mode::Merge] {
        fixture.send(mode, r#"{"uri":"urn:p","stages":1}"#).unwrap();
        assert_eq!(view(&fixture, "urn:p"), r#"{"stages":1,"limits":[]}"#, "{mode}");
    }
    // The view of a reference has empty arrays, and no value.
    fixture.send(Mode::Add, r#"{"uri":"urn:r","name":"R","motor":{"uri":"urn:o"}}"#).unwrap();
    let shown = fixture.view("urn:r");
    assert!(shown.contains(r#""motor":{"uri":"urn:o","tags":[]}"#), "{shown}");
    for mode in [Mode::Add, Mode::Replace, Mode::Update, Mode::Merge] {
        assert_eq!(fixture.send(mode, &shown).unwrap().unchanged, 1, "{mode}");
        assert_eq!(fixture.view("urn:r"), shown, "{mode}");
    }
    // Several mentions of a new object are one object.
    let twice = r#"{"uri":"urn:a","motor":{"uri":"urn:n","power":1}},{"uri":"urn:b","motor":{"uri":"urn:n","power":1}}"#;
    fixture.send(Mode::Replace, twice).unwrap();
    assert!(fixture.view("urn:b").contains(r#""kind":"AC""#));
}

#[test]
fn cells_of_csv_are_texts_of_these_values() {
    let fixture = fixture();
    let format = CsvFormat {
        delimiter: ';',
        array_delimiter: Some('|'),
        decimal_comma: true,
        ..CsvFormat::default()
    };
    let header = "uri;name;flow;stages;running;started;limits";
    let header = CsvHeader::read(header.as_bytes(), format, 1).unwrap();
    let send = |record: &str| {
        let body = Body::Records {
            text: record.as_bytes(),
            header: &header,
            first: 0,
            line_numbers: &[2],
        };
        fixture.run(&fixture.request(Mode::Merge, body))
    };
    send("urn:p;17; 1.234,5 ;1e1;off;1732700000500;1.5|-1|2\n").unwrap();
    assert_eq!(
        view(&fixture, "urn:p"),
        r#"{"name":"17","flow":1234.5,"stages":10,"running":false,"started":"2024-11-27T09:33:20.5Z","limits":[1.5,2]}"#
    );
    // An empty cell leaves the value, an absent one removes it.
    send("urn:p;NA;-9999;;1;;\n").unwrap();
    assert_eq!(
        view(&fixture, "urn:p"),
        r#"{"stages":10,"running":true,"started":"2024-11-27T09:33:20.5Z","limits":[1.5,2]}"#
    );
    // As in JSON, an absent value in place of an array is no value.
    let body =
        Body::Records { text: b"urn:p;;;;;;-1\n", header: &header, first: 0, line_numbers: &[2] };
    assert_eq!(fixture.run(&fixture.request(Mode::Update, body)).unwrap().unchanged, 1);
    // The form decides: `12.5` has no groups of three digits.
    let error = send("urn:p;;12.5;;;;\n").unwrap_err();
    assert_eq!(pointers(&error), ["/data/0/flow"]);
    assert!(!error.detail.contains("decimalComma"), "{}", error.detail);
}
