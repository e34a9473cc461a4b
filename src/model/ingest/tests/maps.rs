//! Maps: JSON objects whose member names are data.
use super::*;
use crate::ingest::{BatchedMessage, LockReason, MessageBatch, find_locked_fields};
use crate::mapping::MEMBER_KEY;
use crate::view::{ShownFact, ViewOutput, render_subject};
use oxrdf::Literal;
use penstock_base::json;
use penstock_store::{Pattern, Read, SubjectQuads};
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::ops::ControlFlow;

const MAPPING: &str = "
type: object
path: Pump:.
fields:
  name: {type: string, path: <urn:name>}
  sensors:
    type: map
    path: <urn:sensor>/Sensor:.
    key: {path: <urn:code>}
    elements:
      type: object
      fields:
        value: {type: number, path: <urn:value>}
        unit: {type: string, path: <urn:unit>}
  levels: {type: map, path: <urn:level>/Level:., key: {path: <urn:number>, type: integer}, elements: {type: number, path: <urn:value>}}
  marks: {type: map, path: <urn:marks>/Mark:., key: {path: <urn:code>}, elements: {type: array, path: <urn:mark>}}
  lines:
    type: map
    path: <urn:line>/Line:.
    key: {path: <urn:code>}
    elements: {type: map, path: <urn:cell>/Cell:., key: {path: <urn:code>}, elements: {type: languageMap, path: <urn:title>}}
";
const PUMP: &str = "http://x/Pump/1";

fn fixture() -> Fixture {
    Fixture::new(compile(MAPPING).unwrap().root)
}

/// Sends the pump with these members, which have no braces around them.
fn send(fixture: &Fixture, mode: Mode, members: &str) -> Result<Answer, GatewayError> {
    fixture.send(mode, &format!(r#"{{"uri":"{PUMP}",{members}}}"#))
}

/// Sends messages of a source in one batch.
fn send_messages(
    fixture: &Fixture,
    mode: Mode,
    payloads: &[String],
) -> Result<Answer, GatewayError> {
    let (mut text, mut messages) = (String::new(), Vec::new());
    for payload in payloads {
        let start = text.len();
        text.push_str(payload);
        messages.push(BatchedMessage {
            range: start..text.len(),
            topic: String::new(),
            fields: BTreeMap::new(),
            whole_bytes: None,
            error: None,
            internal_error: None,
        });
        text.push('\n');
    }
    let batch = MessageBatch { source: "plant", text: text.as_bytes(), messages: &messages };
    let request = fixture.request(mode, Body::Messages(batch));
    fixture.run(&Request { on_error: OnError::Skip, ..request })
}

/// Returns the view of the pump without its URI, and without those of its sensors.
fn view(fixture: &Fixture) -> String {
    let view = fixture.view(PUMP);
    let view = view.strip_prefix(&format!(r#"{{"uri":"{PUMP}""#)).unwrap().trim_start_matches(',');
    ["T1", "T2", "a%2Fb"].iter().fold(view.to_owned(), |view, name| {
        let uri = format!(r#""uri":"http://x/Sensor/1/{name}""#);
        view.replace(&format!("{uri},"), "").replace(&uri, "")
    })
}

#[test]
fn a_member_is_an_object_with_its_name_as_key() {
    let fixture = fixture();
    send(&fixture, Mode::Add, r#""sensors":{"T1":{"value":20.5}}"#).unwrap();
    let sensor = "<http://x/Sensor/1/T1>";
    assert_eq!(
        fixture.quads(),
        [
            format!("<{PUMP}> <urn:sensor> {sensor} <http://x/Pump/>"),
            format!("{sensor} <urn:code> \"T1\" <http://x/Sensor/>"),
            format!(
                "{sensor} <urn:value> \"20.5\"^^<http://www.w3.org/2001/XMLSchema#decimal> <http://x/Sensor/>"
            ),
        ]
    );
}

#[test]
fn maps_come_back_in_the_order_of_the_names() {
    let fixture = fixture();
    let given = r#""sensors":{"a/b":{},"T2":{"unit":"K"},"T1":{"value":1}},"levels":{"10":1.5,"2":-1},"marks":{"b":["y","x"],"a":[],"c":null},"lines":{"B":{"2":{"en":"two"}},"A":{}}"#;
    send(&fixture, Mode::Add, given).unwrap();
    let shown = r#""sensors":{"T1":{"value":1},"T2":{"unit":"K"},"a/b":{}},"levels":{"10":1.5,"2":-1},"marks":{"b":["x","y"]},"lines":{"B":{"2":{"en":"two"}}}}"#;
    assert_eq!(view(&fixture), shown);
    let whole = fixture.view(PUMP);
    let before = fixture.quads();
    for mode in [Mode::Add, Mode::Update, Mode::Replace, Mode::Merge] {
        assert_eq!(fixture.send(mode, &whole).unwrap().unchanged, 1, "{mode:?}");
        assert_eq!(fixture.quads(), before, "{mode:?}");
    }
}

#[test]
fn merge_touches_only_the_members_that_it_names() {
    let fixture = fixture();
    let given = r#""sensors":{"T1":{"value":1,"unit":"K"},"T2":{"value":2}},"levels":{"1":1,"2":2},"lines":{"A":{"1":{"en":"one","de":"eins"}}}"#;
    send(&fixture, Mode::Add, given).unwrap();
    let change =
        r#""sensors":{"T1":{"value":3}},"levels":{"1":null},"lines":{"A":{"1":{"de":null}}}"#;
    let answer = send(&fixture, Mode::Merge, change).unwrap();
    assert_eq!(answer.deleted, 1);
    let shown = r#""sensors":{"T1":{"value":3,"unit":"K"},"T2":{"value":2}},"levels":{"2":2},"lines":{"A":{"1":{"en":"one"}}}}"#;
    assert_eq!(view(&fixture), shown);
    send(&fixture, Mode::Merge, r#""sensors":{},"lines":{"A":{"1":{"en":null}}}"#).unwrap();
    let shown = r#""sensors":{"T1":{"value":3,"unit":"K"},"T2":{"value":2}},"levels":{"2":2}}"#;
    assert_eq!(view(&fixture), shown);
    send(&fixture, Mode::Merge, r#""sensors":null,"name":"Feed""#).unwrap();
    assert_eq!(view(&fixture), r#""name":"Feed","levels":{"2":2}}"#);
}

#[test]
fn update_and_replace_remove_the_members_that_they_unlink() {
    for mode in [Mode::Update, Mode::Replace] {
        let fixture = fixture();
        let given = r#""sensors":{"T1":{"value":1},"T2":{"value":2},"a/b":{}}"#;
        send(&fixture, Mode::Add, given).unwrap();
        // Something else refers to it.
        let other = NamedNode::new_unchecked("http://x/Sensor/1/T2");
        insert_quad(&fixture.store, "urn:other", "urn:about", other, "urn:g");
        let answer = send(&fixture, mode, r#""sensors":{"T1":{"value":4}}"#).unwrap();
        assert_eq!(answer.deleted, 1, "{mode:?}");
        assert_eq!(view(&fixture), r#""sensors":{"T1":{"value":4}}}"#);
        let quads = fixture.quads().join("\n");
        assert!(!quads.contains("a%2Fb") && quads.contains("<http://x/Sensor/1/T2> <urn:value>"));
    }
}

#[test]
fn names_that_cannot_be_keys_are_refused() {
    let fixture = fixture();
    let refused = |members: &str| {
        let error = send(&fixture, Mode::Add, members).unwrap_err();
        assert_eq!(error.class, ErrorClass::Invalid);
        assert!(!error.findings[0].message.contains(MEMBER_KEY), "{error}");
        pointers(&error)
    };
    assert_eq!(refused(r#""sensors":{"":{}}"#), ["/data/0/sensors/"]);
    assert_eq!(refused(r#""sensors":{"..":{}}"#), ["/data/0/sensors/.."]);
    assert_eq!(refused(r#""levels":{"one":1}"#), ["/data/0/levels/one"]);
    assert_eq!(refused(r#""levels":{"0":1,"-0":2}"#), ["/data/0/levels/-0"]);
    assert_eq!(refused(r#""levels":{"1":"x"}"#), ["/data/0/levels/1"]);
    assert_eq!(refused(r#""sensors":{"T1":{"value":"x"}}"#), ["/data/0/sensors/T1/value"]);
    assert_eq!(refused(r#""sensors":[{"value":1}]"#), ["/data/0/sensors"]);
    assert_eq!(refused(r#""sensors":{"T1":20.5}"#), ["/data/0/sensors/T1"]);
}

#[test]
fn the_error_of_a_name_that_is_no_number_says_how_numbers_are_written() {
    for name in ["07", " 7", "one"] {
        let error =
            send(&fixture(), Mode::Add, &format!(r#""levels":{{"{name}":1}}"#)).unwrap_err();
        let finding = error.findings[0].to_string();
        assert!(finding.contains("without leading zeros"), "{finding}");
    }
}

#[test]
fn another_value_of_a_member_is_a_conflict_in_add() {
    let fixture = fixture();
    send(&fixture, Mode::Add, r#""levels":{"1":1}"#).unwrap();
    let error = send(&fixture, Mode::Add, r#""levels":{"1":2,"2":2}"#).unwrap_err();
    assert_eq!(error.class, ErrorClass::Conflict);
    assert_eq!(pointers(&error), ["/data/0/levels/1"]);
}

#[test]
fn a_member_that_is_only_a_uri_keeps_its_fields() {
    let fixture = fixture();
    send(&fixture, Mode::Add, r#""sensors":{"T1":{"value":1}}"#).unwrap();
    let reference = r#""sensors":{"T1":{"uri":"http://x/Sensor/1/T1"}}"#;
    assert_eq!(send(&fixture, Mode::Replace, reference).unwrap().unchanged, 1);
    assert_eq!(view(&fixture), r#""sensors":{"T1":{"value":1}}}"#);
    let other = reference.replace("\"T1\":{", "\"T2\":{");
    let error = send(&fixture, Mode::Replace, &other).unwrap_err();
    assert_eq!(pointers(&error), ["/data/0/sensors/T2"]);
}

#[test]
fn members_without_a_name_or_with_that_of_another_one_are_hidden() {
    let fixture = fixture();
    send(&fixture, Mode::Add, r#""levels":{"1":1}"#).unwrap();
    for (uri, name) in [("urn:b", Some("1")), ("urn:c", None)] {
        let member = NamedNode::new_unchecked(uri);
        insert_quad(&fixture.store, PUMP, "urn:level", member, "http://x/Pump/");
        let value = Literal::from(5);
        insert_quad(&fixture.store, uri, "urn:value", value, "http://x/Level/");
        if let Some(name) = name {
            let integer = oxrdf::vocab::xsd::INTEGER;
            let name = Literal::new_typed_literal(name, integer);
            insert_quad(&fixture.store, uri, "urn:number", name, "http://x/Level/");
        }
    }
    let (shown, warnings) = fixture.view_with_warnings(PUMP);
    assert!(shown.ends_with(r#""levels":{"1":1}}"#), "{shown}");
    assert_eq!(warnings.len(), 2, "{warnings:?}");
    assert!(warnings.iter().all(|warning| warning.contains("left out")), "{warnings:?}");
    send(&fixture, Mode::Update, r#""levels":{"1":2}"#).unwrap();
    assert_eq!(view(&fixture), r#""levels":{"1":2}}"#);
    assert!(!fixture.quads().join("\n").contains("urn:c"));
}

#[test]
fn a_member_that_was_removed_comes_back_without_its_fields() {
    for (mode, without) in [
        (Mode::Merge, r#""sensors":{"T1":null}"#),
        (Mode::Update, r#""sensors":{"T2":{}}"#),
        (Mode::Replace, r#""sensors":{"T2":{}}"#),
    ] {
        let fixture = fixture();
        send(&fixture, Mode::Add, r#""sensors":{"T1":{"value":1,"unit":"K"},"T2":{}}"#).unwrap();
        let again = r#""sensors":{"T1":{"value":2},"T2":{}}"#;
        let texts = [without, again].map(|members| format!(r#"{{"uri":"{PUMP}",{members}}}"#));
        send_messages(&fixture, mode, &texts).unwrap();
        assert_eq!(view(&fixture), r#""sensors":{"T1":{"value":2},"T2":{}}}"#, "{mode:?}");
    }
}

#[test]
fn what_a_merge_removes_from_a_missing_member_changes_nothing() {
    let fixture = fixture();
    send(&fixture, Mode::Add, r#""name":"Feed","lines":{"A":{"1":{"en":"one"}}}"#).unwrap();
    let before = fixture.quads();
    for members in [
        r#""sensors":{"T9":null}"#,
        r#""lines":{"B":{"1":null}}"#,
        r#""lines":{"B":{"1":{"en":null}}}"#,
        r#""lines":{"A":{"2":{"en":null}}}"#,
    ] {
        let answer = send(&fixture, Mode::Merge, members).unwrap();
        assert_eq!((answer.unchanged, answer.deleted), (1, 0), "{members}");
        assert_eq!(fixture.quads(), before, "{members}");
    }
    let new = r#"{"uri":"urn:new","lines":{"B":{"1":{"en":null}}}}"#;
    assert!(fixture.send(Mode::Merge, new).is_err());
}

#[test]
fn the_last_member_of_a_required_map_stays() {
    let mapping =
        MAPPING.replace("path: <urn:line>/Line:.", "path: <urn:line>/Line:.\n    required: true");
    let fixture = Fixture::new(compile(&mapping).unwrap().root);
    send(&fixture, Mode::Add, r#""lines":{"A":{"1":{"en":"one"}},"B":{"1":{"en":"one"}}}"#)
        .unwrap();
    send(&fixture, Mode::Merge, r#""lines":{"A":{"1":{"en":null}}}"#).unwrap();
    let error = send(&fixture, Mode::Merge, r#""lines":{"B":{"1":{"en":null}}}"#).unwrap_err();
    assert_eq!(pointers(&error), ["/data/0/lines"]);
}

#[test]
fn the_work_of_a_merge_grows_only_with_its_members() {
    let count_steps = |count: usize| {
        let fixture = fixture();
        let lines = |text: &str| {
            let line = |name: usize| format!(r#""{name}":{{"1":{{"en":{text}}}}}"#);
            let lines: Vec<String> = (0..count).map(line).collect();
            format!(r#""name":"Feed","lines":{{{}}}"#, lines.join(","))
        };
        send(&fixture, Mode::Add, &lines(r#""one""#)).unwrap();
        let before = fixture.store.step_count();
        send(&fixture, Mode::Merge, &lines("null")).unwrap();
        assert_eq!(view(&fixture), r#""name":"Feed"}"#);
        fixture.store.step_count() - before
    };
    assert!(count_steps(800) < 20 * count_steps(50));
}

#[test]
fn the_uris_of_members_are_limited_together() {
    let mut fixture = fixture();
    fixture.limits.values = 100;
    let pump = format!("urn:{}", "x".repeat(1_000));
    let object = |count: u32| {
        let levels: Vec<String> = (0..count).map(|name| format!("\"{name}\":1")).collect();
        format!(r#"{{"uri":"{pump}","levels":{{{}}}}}"#, levels.join(","))
    };
    fixture.send(Mode::Add, &object(10)).unwrap();
    let error = fixture.send(Mode::Merge, &object(40)).unwrap_err();
    assert!(error.findings[0].to_string().contains("more than 25600 bytes together"), "{error}");
    // A request that leaves it out stores the others.
    let body = format!(r#"{{"data":[{},{{"uri":"{PUMP}","name":"Feed"}}]}}"#, object(40));
    let request = fixture.request(Mode::Merge, Body::Json(body.as_bytes()));
    let answer = fixture.run(&Request { on_error: OnError::Skip, ..request }).unwrap();
    assert_eq!((answer.created, answer.rejected.len()), (1, 1));
    assert!(fixture.view(&pump).contains(r#""9":1}"#), "it is as it was");
}

#[test]
fn messages_are_not_rejected_for_the_uris_of_others_in_their_batch() {
    let mut fixture = fixture();
    fixture.limits.values = 100;
    let message = |pump: &str, count: u32| {
        let levels: Vec<String> = (0..count).map(|name| format!("\"{name}\":1")).collect();
        format!(r#"{{"uri":"urn:{pump}:{}","levels":{{{}}}}}"#, "x".repeat(1_000), levels.join(","))
    };
    let messages = ["a", "b", "c"].map(|pump| message(pump, 10));
    let error = send_messages(&fixture, Mode::Add, &messages).unwrap_err();
    assert_eq!(error.class, ErrorClass::TooLarge, "{error}");
    assert_eq!(fixture.quads(), Vec::<String>::new());
    // The source halves such a batch.
    assert_eq!(send_messages(&fixture, Mode::Add, &messages[..2]).unwrap().created, 2);
    let answer = send_messages(&fixture, Mode::Add, &[message("d", 40)]).unwrap();
    assert_eq!((answer.created, answer.rejected.len()), (0, 1));
}

#[test]
fn a_member_takes_nothing_from_a_hidden_one_with_its_uri() {
    for mode in [Mode::Update, Mode::Replace] {
        let fixture = fixture();
        let member = "http://x/Sensor/1/T1";
        let link = NamedNode::new_unchecked(member);
        insert_quad(&fixture.store, PUMP, "urn:sensor", link, "http://x/Pump/");
        let unit = Literal::new_simple_literal("K");
        insert_quad(&fixture.store, member, "urn:unit", unit, "http://x/Sensor/");
        // A name in another graph is none.
        let name = Literal::new_simple_literal("T1");
        insert_quad(&fixture.store, member, "urn:code", name, "urn:g");
        send(&fixture, Mode::Add, r#""name":"Feed""#).unwrap();
        let (shown, warnings) = fixture.view_with_warnings(PUMP);
        assert!(!shown.contains("sensors") && warnings.len() == 1, "{shown}: {warnings:?}");
        send(&fixture, mode, r#""sensors":{"T1":{"value":1}}"#).unwrap();
        assert!(view(&fixture).contains(r#""sensors":{"T1":{"value":1}}"#), "{mode:?}");
    }
}

#[test]
fn forms_know_the_objects_in_maps_of_maps() {
    let mapping = "
type: object
path: Pump:.
fields:
  lines:
    type: map
    path: <urn:line>/Line:.
    key: {path: <urn:code>}
    elements:
      type: map
      path: <urn:cell>/Cell:.
      key: {path: <urn:code>}
      elements: {type: object, fields: {unit: {type: string, path: <urn:unit>}}}
";
    let fixture = Fixture::new(compile(mapping).unwrap().root);
    send(&fixture, Mode::Add, r#""lines":{"A":{"1":{"unit":"K"}}}"#).unwrap();
    let quads = fixture.quads().join("\n");
    let (_, cell) = quads.split_once("<urn:cell> <").unwrap();
    let (cell, _) = cell.split_once('>').unwrap();
    let other = Literal::new_simple_literal("C");
    insert_quad(&fixture.store, cell, "urn:unit", other, "http://x/Cell/");
    let shown = json::parse(fixture.view_with_warnings(PUMP).0.as_bytes(), 9).unwrap();
    let root = &fixture.business_object.mapping.root;
    let locked = find_locked_fields(&fixture.store.read(), root, &shown).unwrap();
    assert_eq!(locked.find_inside(&shown), Some(LockReason::SeveralValues));
}

#[test]
fn a_member_that_is_left_out_is_no_fact() {
    let fixture = fixture();
    send(
        &fixture,
        Mode::Add,
        r#""name":"Feed","marks":{"a":["x"]},"lines":{"A":{"1":{"en":"one"}}}"#,
    )
    .unwrap();
    let shown = |fixture: &Fixture| {
        let (read, uri) = (fixture.store.read(), NamedNode::new_unchecked(PUMP));
        let (mut about, mut facts) = (SubjectQuads::default(), String::new());
        read.read_subject(uri.as_ref().into(), &mut about).unwrap();
        let root = &fixture.business_object.mapping.root;
        let mut report = |fact: ShownFact<'_>| {
            writeln!(facts, "{fact:?}").unwrap();
            Ok(())
        };
        let (mut out, mut warnings) = (Vec::new(), Vec::new());
        let mut output = ViewOutput::new(&mut out, &mut warnings);
        output.report = Some(&mut report);
        render_subject(&read, root, &uri, &about, output).unwrap();
        facts
    };
    assert!(shown(&fixture).contains("urn:marks") && shown(&fixture).contains("urn:cell"));
    let removed = fixture.store.transact::<_, GatewayError>(|transaction| {
        let mut quads = Vec::new();
        transaction.for_each(&Pattern::default(), &mut |quad| {
            quads.push(quad);
            ControlFlow::Continue(())
        })?;
        for quad in quads {
            if ["urn:mark", "urn:title"].contains(&quad.predicate.as_str()) {
                transaction.remove(quad.as_ref())?;
                // A value that the field cannot show.
                let iri = NamedNode::new_unchecked("urn:x");
                let (subject, predicate) = (quad.subject, quad.predicate);
                let other = Quad::new(subject, predicate, iri, quad.graph_name);
                transaction.insert(other.as_ref())?;
            }
        }
        Ok(())
    });
    removed.unwrap();
    assert!(fixture.view_with_warnings(PUMP).0.ends_with(r#""name":"Feed"}"#));
    let facts = shown(&fixture);
    assert!(!facts.contains("urn:marks") && !facts.contains("urn:line"), "{facts}");
}

#[test]
fn a_member_that_lost_a_link_is_examined_once() {
    let config = "
type: object
path: Pump:.
fields:
  peer: {type: resource, path: <urn:peer>}
  sensors:
    type: map
    path: <urn:sensor>/Sensor:.
    key: {path: <urn:code>}
    elements:
      type: object
      fields:
        unit: {type: string, path: <urn:unit>}
        parts: {type: array, path: <urn:part>, elements: {type: object, path: Part:., fields: {name: {type: string, path: <urn:name>}}}}
";
    let count_steps = |count: usize| {
        let fixture = Fixture::new(compile(config).unwrap().root);
        let parts: Vec<String> = (0..count).map(|part| format!(r#"{{"name":"{part}"}}"#)).collect();
        let parts = parts.join(",");
        let added =
            send(&fixture, Mode::Add, &format!(r#""sensors":{{"A":{{"parts":[{parts}]}}}}"#));
        let sensor = added.unwrap().objects[0].nested[0].uri.clone();
        // Something else refers to the member, so it keeps its parts.
        fixture.add(&format!(r#"{{"uri":"urn:other","peer":"{sensor}"}}"#));
        let removal = format!(r#"{{"uri":"{PUMP}","sensors":{{"A":null}}}}"#);
        let again = format!(r#"{{"uri":"{PUMP}","sensors":{{"A":{{"unit":"K"}}}}}}"#);
        let before = fixture.store.step_count();
        fixture.send(Mode::Merge, &[removal, vec![again; count].join(",")].join(",")).unwrap();
        let steps = fixture.store.step_count() - before;
        assert!(fixture.view(PUMP).contains(r#""unit":"K","parts":[{"#));
        steps
    };
    let (few, many) = (count_steps(50), count_steps(400));
    assert!(many < 20 * few, "{few}, {many}");
}

#[test]
fn a_rejected_object_leaves_a_removed_member_to_those_that_follow() {
    let config = "
type: object
path: Pump:.
fields:
  sensors:
    type: map
    path: <urn:sensor>/Sensor:.
    key: {path: <urn:code>}
    elements:
      type: object
      fields:
        value: {type: number, path: <urn:value>}
        unit: {type: string, path: <urn:unit>, required: true}
";
    let fixture = Fixture::new(compile(config).unwrap().root);
    send(&fixture, Mode::Add, r#""sensors":{"A":{"value":1,"unit":"K"}}"#).unwrap();
    let removal = format!(r#"{{"uri":"{PUMP}","sensors":{{"A":null}}}}"#);
    let valid = r#"{"uri":"urn:other","sensors":{"B":{"unit":"K"}}}"#;
    // The member is new in each of these, so its unit is missing. There are more of them than runs of the request.
    let wrong = vec![format!(r#"{{"uri":"{PUMP}","sensors":{{"A":{{"value":2}}}}}}"#); 4].join(",");
    let answer = fixture.skip(Mode::Merge, &format!("{removal},{wrong},{valid}")).unwrap();
    assert_eq!((answer.updated, answer.created, answer.deleted), (1, 1, 1));
    assert_eq!(answer.rejected.len(), 4);
}
