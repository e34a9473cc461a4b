//! Ordered arrays.
use super::*;
use crate::change_feed::{self, HolderLinks};
use crate::ingest::{LockReason, find_locked_fields};
use crate::list::{List, changed_objects};
use crate::unshown::check_stored_values;
use oxrdf::vocab::rdf;
use oxrdf::{Literal, QuadRef, Term};
use penstock_base::json;
use penstock_store::{Pattern, Read, Transaction};
use std::collections::BTreeSet;
use std::ops::ControlFlow;

const MAPPING: &str = "
type: object
path: Recipe:.
fields:
  name: {type: string, path: <urn:name>}
  marks: {type: array, ordered: true, path: <urn:mark>}
  states: {type: array, ordered: true, path: <urn:state>, elements: {type: string, values: {0: 'off', 1: 'on'}}}
  steps:
    type: array
    ordered: true
    path: <urn:step>/Step:.
    elements:
      type: object
      fields:
        name: {type: string, path: <urn:name>}
        tools: {type: array, ordered: true, path: <urn:tool>/Tool:., elements: {type: object, fields: {name: {type: string, path: <urn:name>}}}}
";
const MODES: [Mode; 4] = [Mode::Add, Mode::Update, Mode::Replace, Mode::Merge];

fn fixture() -> Fixture {
    Fixture::new(compile(MAPPING).unwrap().root)
}

/// Sends an object of this URI with these members, which have no braces around them.
fn send(fixture: &Fixture, mode: Mode, members: &str) -> Result<Answer, GatewayError> {
    fixture.send(mode, &format!(r#"{{"uri":"urn:r",{members}}}"#))
}

fn refusal(fixture: &Fixture, mode: Mode, members: &str) -> String {
    let before = fixture.quads();
    let error = send(fixture, mode, members).unwrap_err();
    assert_eq!(fixture.quads(), before);
    error.findings[0].to_string()
}

/// Returns the view of the members from this one on, without the braces of the object.
fn view_from(fixture: &Fixture, member: &str) -> String {
    let view = fixture.view("urn:r");
    let begin = view.find(&format!("\"{member}\":")).unwrap();
    view[begin..].strip_suffix('}').unwrap().to_owned()
}

fn node(iri: &str) -> Term {
    NamedNode::new_unchecked(iri).into()
}

#[test]
fn an_array_is_a_list_with_its_order_and_repeated_values() {
    let fixture = fixture();
    send(&fixture, Mode::Add, r#""marks":["b","a","b"]"#).unwrap();
    let list = "<urn:penstock:@list:urn%3Ar:urn%3Amark";
    let graph = "<http://x/Recipe/>";
    let (first, rest, nil) = (rdf::FIRST, rdf::REST, rdf::NIL);
    let mut expected = vec![format!("<urn:r> <urn:mark> {list}:0> {graph}")];
    for (at, value) in ["b", "a", "b"].iter().enumerate() {
        let next = if at == 2 { nil.to_string() } else { format!("{list}:{}>", at + 1) };
        expected.push(format!("{list}:{at}> {first} \"{value}\" {graph}"));
        expected.push(format!("{list}:{at}> {rest} {next} {graph}"));
    }
    expected.sort();
    assert_eq!(fixture.quads(), expected);
    assert_eq!(view_from(&fixture, "marks"), r#""marks":["b","a","b"],"states":[],"steps":[]"#);
    assert_eq!(fixture.members(), ["urn:r"]);
    for mode in MODES {
        assert_eq!(
            send(&fixture, mode, r#""marks":["b","a","b"]"#).unwrap().unchanged,
            1,
            "{mode:?}"
        );
    }
    assert_eq!(fixture.quads(), expected);
}

#[test]
fn an_array_is_one_value() {
    let fixture = fixture();
    send(&fixture, Mode::Add, r#""name":"x","marks":["a","b","c"]"#).unwrap();
    for other in [r#"["a","b"]"#, r#"["a","c","b"]"#, r#"["a","b","c","c"]"#] {
        let error = send(&fixture, Mode::Add, &format!("\"marks\":{other}")).unwrap_err();
        assert_eq!(error.class, ErrorClass::Conflict, "{error}");
    }
    send(&fixture, Mode::Add, r#""marks":[]"#).unwrap();
    for (mode, marks) in
        [(Mode::Update, r#"["c"]"#), (Mode::Merge, r#"["c","a"]"#), (Mode::Replace, r#"["a"]"#)]
    {
        send(&fixture, mode, &format!(r#""name":"x","marks":{marks}"#)).unwrap();
        assert!(fixture.view("urn:r").contains(&format!("\"marks\":{marks}")));
        let nodes =
            fixture.quads().iter().filter(|quad| quad.starts_with("<urn:penstock:@list:")).count();
        assert_eq!(nodes, marks.matches(',').count() * 2 + 2, "{mode:?}");
    }
    for (mode, members) in [
        (Mode::Merge, r#""marks":null"#),
        (Mode::Merge, r#""marks":[]"#),
        (Mode::Update, r#""marks":[]"#),
        (Mode::Replace, r#""name":"x""#),
    ] {
        send(&fixture, Mode::Update, r#""marks":["a","b"]"#).unwrap();
        send(&fixture, mode, members).unwrap();
        assert_eq!(fixture.quads(), [r#"<urn:r> <urn:name> "x" <http://x/Recipe/>"#]);
    }
}

#[test]
fn each_place_needs_a_value() {
    let fixture = fixture();
    send(&fixture, Mode::Add, r#""states":[1,0,1]"#).unwrap();
    assert!(fixture.view("urn:r").contains(r#""states":[1,0,1]"#));
    let error = refusal(&fixture, Mode::Update, r#""marks":["a",null]"#);
    assert!(error.starts_with("/data/0/marks/1") && error.contains("remove it"), "{error}");
    let error = refusal(&fixture, Mode::Update, r#""states":[2]"#);
    assert!(error.starts_with("/data/0/states"), "{error}");
    let error = refusal(
        &fixture,
        Mode::Update,
        r#""steps":[{"uri":"urn:penstock:@list:urn%3Aa:urn%3Ab:0"}]"#,
    );
    assert!(error.starts_with("/data/0/steps/0/uri") && error.contains("no object"), "{error}");
    let absent = "type: object\npath: A:.\nfields:\n  all: {type: array, ordered: true, path: <urn:a>, absent: NA}\n";
    let fixture = Fixture::new(compile(absent).unwrap().root);
    let error = refusal(&fixture, Mode::Add, r#""all":["x","NA"]"#);
    assert!(error.starts_with("/data/0/all/1"), "{error}");
}

#[test]
fn objects_get_a_uri_from_their_place_and_are_created_each_time() {
    let fixture = fixture();
    let steps =
        r#""steps":[{"name":"heat","tools":[{"name":"oven"},{"name":"rack"}]},{"name":"cool"}]"#;
    send(&fixture, Mode::Add, steps).unwrap();
    let (quads, shown) = (fixture.quads(), view_from(&fixture, "steps"));
    assert!(
        shown.contains("http://x/Step/list-") && shown.contains("http://x/Tool/list-"),
        "{shown}"
    );
    for mode in MODES {
        assert_eq!(send(&fixture, mode, &shown).unwrap().unchanged, 1, "{mode:?}");
        send(&fixture, mode, steps).unwrap();
        assert_eq!(fixture.quads(), quads, "{mode:?}");
    }
    // What the element at this place had before is gone.
    for mode in [Mode::Merge, Mode::Update, Mode::Replace] {
        send(&fixture, mode, steps).unwrap();
        send(&fixture, mode, r#""steps":[{"tools":[{"name":"oven"}]}]"#).unwrap();
        let quads = fixture.quads();
        assert!(quads.iter().all(|quad| !quad.contains("heat")
            && !quad.contains("rack")
            && !quad.contains("cool")));
        assert_eq!(quads.len(), 1 + 2 + 1 + 2 + 1, "{mode:?}: {quads:?}");
    }
    send(&fixture, Mode::Merge, r#""steps":null"#).unwrap();
    assert_eq!(fixture.quads(), Vec::<String>::new());
}

#[test]
fn a_place_whose_uri_another_element_has_is_after_the_array() {
    let fixture = fixture();
    send(&fixture, Mode::Add, r#""steps":[{"name":"a"}]"#).unwrap();
    let shown = view_from(&fixture, "steps");
    let (_, uri) = shown.split_once(r#"{"uri":""#).unwrap();
    let (uri, _) = uri.split_once('"').unwrap();
    let steps = format!(r#""steps":[{{"name":"b"}},{{"uri":"{uri}","name":"a"}}]"#);
    send(&fixture, Mode::Update, &steps).unwrap();
    let moved = format!("{}2", uri.strip_suffix('0').unwrap());
    let shown = view_from(&fixture, "steps");
    assert!(shown.contains(&format!(r#"[{{"uri":"{moved}","name":"b""#)), "{shown}");
    assert!(shown.contains(&format!(r#",{{"uri":"{uri}","name":"a""#)), "{shown}");
}

#[test]
fn update_keeps_objects_with_a_uri_of_their_own() {
    let fixture = fixture();
    send(&fixture, Mode::Add, r#""steps":[{"uri":"urn:s","name":"own"},{"name":"placed"}]"#)
        .unwrap();
    send(&fixture, Mode::Update, r#""steps":[{"uri":"urn:t","name":"new"}]"#).unwrap();
    let quads = fixture.quads().join("\n");
    assert!(quads.contains("<urn:s>") && !quads.contains("placed"), "{quads}");
    send(&fixture, Mode::Replace, r#""steps":[{"uri":"urn:s"}]"#).unwrap();
    let quads = fixture.quads().join("\n");
    assert!(quads.contains("<urn:s>") && !quads.contains("<urn:t>"), "{quads}");
    // The same object can be in two places.
    send(&fixture, Mode::Replace, r#""steps":[{"uri":"urn:s"},{"uri":"urn:s"}]"#).unwrap();
    assert_eq!(view_from(&fixture, "steps").matches(r#""uri":"urn:s""#).count(), 2);
    fixture.send(Mode::Delete, r#"{"uri":"urn:r"}"#).unwrap();
    assert_eq!(fixture.quads(), Vec::<String>::new());
}

#[test]
fn two_mentions_with_another_order_contradict_each_other() {
    let fixture = fixture();
    let twice = |one: &str, other: &str| {
        fixture.send(
            Mode::Replace,
            &format!(r#"{{"uri":"urn:r","marks":{one}}},{{"uri":"urn:r","marks":{other}}}"#),
        )
    };
    assert!(twice(r#"["a","b"]"#, r#"["b","a"]"#).is_err());
    assert!(twice(r#"["a","b"]"#, r#"["a","b"]"#).is_ok());
}

#[test]
fn lists_of_other_software_are_shown_and_rewritten() {
    let fixture = fixture();
    let text = |text: &str| Term::from(Literal::new_simple_literal(text));
    let add = |subject: &str, value: Term, rest: &str| {
        fixture.insert(subject, rdf::FIRST.as_str(), value, "urn:g");
        fixture.insert(subject, rdf::REST.as_str(), node(rest), "urn:g");
    };
    send(&fixture, Mode::Add, r#""name":"x""#).unwrap();
    add("urn:l:1", text("b"), "urn:l:2");
    add("urn:l:2", text("a"), rdf::NIL.as_str());
    fixture.insert("urn:r", "urn:mark", node("urn:l:1"), "http://x/Recipe/");
    assert!(fixture.view("urn:r").contains(r#""marks":["b","a"]"#));
    assert_eq!(send(&fixture, Mode::Add, r#""marks":["b","a"]"#).unwrap().unchanged, 1);
    send(&fixture, Mode::Update, r#""marks":["b"]"#).unwrap();
    assert!(fixture.view("urn:r").contains(r#""marks":["b"]"#));
    assert!(fixture.quads().iter().any(|quad| quad.starts_with("<urn:l:1>")), "it stays");
    send(&fixture, Mode::Update, r#""marks":[]"#).unwrap();
    fixture.insert("urn:r", "urn:mark", rdf::NIL.into_owned(), "http://x/Recipe/");
    assert!(fixture.view("urn:r").contains(r#""marks":[]"#));
    send(&fixture, Mode::Add, r#""marks":["c"]"#).unwrap();
    assert!(fixture.view("urn:r").contains(r#""marks":["c"]"#));
    add("urn:l:3", text("a"), "urn:l:3");
    for (value, what) in [(text("plain"), "not a list"), (node("urn:l:3"), "a cyclic list")] {
        send(&fixture, Mode::Update, r#""marks":[]"#).unwrap();
        fixture.insert("urn:r", "urn:mark", value, "http://x/Recipe/");
        let (view, warnings) = fixture.view_with_warnings("urn:r");
        assert!(view.contains(r#""marks":[]"#), "{view}");
        assert!(warnings.len() == 1 && warnings[0].contains(what), "{warnings:?}");
        let error = send(&fixture, Mode::Add, r#""marks":["a"]"#).unwrap_err();
        assert_eq!(error.class, ErrorClass::Conflict);
    }
}

#[test]
fn a_key_finds_the_elements_of_an_array() {
    let mapping = "
type: object
path: Recipe:.
fields:
  steps:
    type: array
    ordered: true
    path: <urn:step>/Step:.
    elements:
      type: object
      key: no
      keyScope: parent
      fields: {no: {type: integer, path: <urn:no>, required: true}, name: {type: string, path: <urn:name>}}
";
    let fixture = Fixture::with_generator(compile(mapping).unwrap().root, Generator::Uuid);
    send(&fixture, Mode::Add, r#""steps":[{"no":2,"name":"b"},{"no":1,"name":"a"}]"#).unwrap();
    send(&fixture, Mode::Merge, r#""steps":[{"no":1,"name":"c"},{"no":2}]"#).unwrap();
    let shown = view_from(&fixture, "steps");
    let [first, second] =
        [r#""no":1,"name":"c""#, r#""no":2,"name":"b""#].map(|one| shown.find(one));
    assert!(first.is_some() && first < second, "{shown}");
    send(&fixture, Mode::Merge, r#""steps":[{"no":2}]"#).unwrap();
    assert!(!fixture.quads().join("\n").contains("\"c\""));
}

#[test]
fn an_element_takes_nothing_from_the_one_that_had_its_place() {
    let mapping = "
type: object
path: Recipe:.
fields:
  steps:
    type: array
    ordered: true
    path: <urn:step>/Step:.
    elements:
      type: object
      fields:
        name: {type: string, path: <urn:name>}
        tool:
          type: object
          path: <urn:tool>/Tool:.
          key: no
          keyScope: parent
          fields:
            no: {type: integer, path: <urn:no>, required: true}
            size: {type: integer, path: <urn:size>}
            maker: {type: object, path: <urn:maker>/Maker:., fields: {name: {type: string, path: <urn:name>}}}
            bolt: {type: object, path: <urn:bolt>/Bolt:., key: no, keyScope: parent, fields: {no: {type: integer, path: <urn:no>, required: true}, size: {type: integer, path: <urn:size>}}}
        parts:
          type: array
          path: <urn:part>/Part:.
          elements:
            type: object
            key: no
            keyScope: parent
            fields: {no: {type: integer, path: <urn:no>, required: true}, size: {type: integer, path: <urn:size>}, hue: {type: string, path: <urn:hue>}}
";
    let new_fixture = || Fixture::with_generator(compile(mapping).unwrap().root, Generator::Uuid);
    let tool =
        r#""tool":{"no":1,"size":7,"maker":{"uri":"urn:m","name":"M"},"bolt":{"no":1,"size":3}}"#;
    let first = format!(r#"{{"name":"a",{tool},"parts":[{{"no":1,"hue":"red"}}]}}"#);
    let second = r#"{"name":"b","tool":{"no":1,"bolt":{"no":1}},"parts":[{"no":1,"size":5}]}"#;
    for mode in [Mode::Update, Mode::Replace, Mode::Merge] {
        let (fixture, fresh) = (new_fixture(), new_fixture());
        send(&fixture, Mode::Add, &format!(r#""steps":[{first},{second}]"#)).unwrap();
        send(&fixture, mode, &format!(r#""steps":[{second}]"#)).unwrap();
        send(&fresh, Mode::Add, &format!(r#""steps":[{second}]"#)).unwrap();
        assert_eq!(fixture.quads(), fresh.quads(), "{mode:?}");
        // What the request refers to keeps its values.
        send(&fixture, Mode::Replace, &format!(r#""steps":[{first}]"#)).unwrap();
        send(&fixture, mode, r#""steps":[{"tool":{"no":1,"maker":{"uri":"urn:m"}}}]"#).unwrap();
        let shown = view_from(&fixture, "steps");
        assert!(shown.contains(r#""no":1,"maker":{"uri":"urn:m","name":"M"}}"#), "{shown}");
    }
}

#[test]
fn what_changes_a_list_changes_its_object() {
    let fixture = fixture();
    send(&fixture, Mode::Add, r#""marks":["a","b"],"steps":[{"uri":"urn:s","name":"x"}]"#).unwrap();
    let links = HolderLinks::of_mapping(&fixture.business_object.mapping.root);
    let holders = |uri: &str| {
        let changed = [NamedNode::new_unchecked(uri)];
        let found = links.find_holders(&fixture.store.read(), changed, 10).unwrap().unwrap();
        found.into_iter().map(NamedNode::into_string).collect::<Vec<_>>()
    };
    assert_eq!(holders("urn:s"), ["urn:r"]);
    let graph = "http://x/Recipe/";
    // The list of a property that the mapping does not have.
    let other = "urn:penstock:@list:urn%3Aq:urn%3Aother:0";
    fixture.insert("urn:q", "urn:other", node(other), graph);
    fixture.insert(other, rdf::FIRST.as_str(), node("urn:s"), graph);
    assert_eq!(holders("urn:s"), ["urn:r"]);
    fixture.insert("urn:other", "urn:mark", node("urn:l:1"), graph);
    fixture.insert("urn:l:1", rdf::REST.as_str(), node("urn:l:2"), graph);
    assert_eq!(holders("urn:l:2"), ["urn:other"]);
    let roots = BTreeSet::from([NamedNode::new_unchecked("urn:r")]);
    let nested = links.find_nested(&fixture.store.read(), &roots, &|| Ok(())).unwrap();
    assert!(nested.iter().map(NamedNode::as_str).eq(["urn:s"]), "{nested:?}");

    let link = |transaction: &Transaction<'_>| {
        let pattern = Pattern {
            subject: Some(NamedNode::new_unchecked("urn:r").into()),
            predicate: Some(NamedNode::new_unchecked("urn:mark")),
            ..Pattern::default()
        };
        let mut found = None;
        transaction.for_each(&pattern, &mut |quad| {
            found = Some(quad);
            ControlFlow::Break(())
        })?;
        Ok::<_, GatewayError>(found.unwrap())
    };
    let removed = fixture.store.transact::<_, GatewayError>(|transaction| {
        let link = link(transaction)?;
        let Term::NamedNode(head) = &link.object else { panic!("{link}") };
        let about_head = transaction.quads_about(&head.clone().into())?;
        transaction.remove(about_head[0].as_ref())?;
        assert_eq!(changed_objects(transaction)?, [(NamedNode::new_unchecked("urn:r"), true)]);
        transaction.insert(about_head[0].as_ref())?;
        transaction.remove(link.as_ref())?;
        change_feed::record_changes(transaction, &fixture.watch)
    });
    removed.unwrap();
    assert!(fixture.quads().iter().all(|quad| !quad.contains("urn%3Amark")), "its list goes too");
}

#[test]
fn what_one_request_writes_and_unlinks_leaves_no_node() {
    let fixture = fixture();
    let step = |tool: &str| format!(r#""steps":[{{"name":"x","tools":[{{"name":"{tool}"}}]}}]"#);
    let object = |members: &str| format!(r#"{{"uri":"urn:r",{members}}}"#);
    let merge = |members: [&str; 2]| {
        fixture.send(Mode::Merge, &members.map(object).join(",")).unwrap();
        fixture.quads()
    };
    let quads = merge([&step("oven"), r#""name":"n","steps":[{"name":"y"}]"#]);
    assert!(quads.iter().all(|quad| !quad.contains("urn%3Atool")), "{quads:?}");
    let quads = merge([&step("rack"), r#""steps":null"#]);
    assert_eq!(quads, [r#"<urn:r> <urn:name> "n" <http://x/Recipe/>"#]);
}

#[test]
fn an_element_that_something_refers_to_stays() {
    for mode in [Mode::Update, Mode::Replace, Mode::Merge] {
        let fixture = fixture();
        let steps = |name: &str| format!(r#""steps":[{{"name":"{name}"}},{{"name":"b"}}]"#);
        send(&fixture, mode_that_creates(mode), &steps("a")).unwrap();
        let shown = view_from(&fixture, "steps");
        let (_, uri) = shown.split_once(r#"{"uri":""#).unwrap();
        let (uri, _) = uri.split_once('"').unwrap();
        fixture.insert("urn:other", "urn:about", node(uri), "urn:g");
        send(&fixture, mode, &steps("c")).unwrap();
        let quads = fixture.quads();
        assert!(quads.contains(&format!(r#"<{uri}> <urn:name> "a" <http://x/Step/>"#)), "{mode:?}");
        let moved = format!("{}2", uri.strip_suffix('0').unwrap());
        assert!(
            view_from(&fixture, "steps").contains(&format!(r#"[{{"uri":"{moved}","name":"c""#))
        );
        send(&fixture, mode, &steps("c")).unwrap();
        assert_eq!(fixture.quads(), quads, "{mode:?}");
        assert_eq!(send(&fixture, Mode::Add, &steps("c")).unwrap().unchanged, 1, "{mode:?}");
        // An array that ADD creates takes nothing from it either.
        send(&fixture, Mode::Merge, r#""name":"x","steps":null"#).unwrap();
        send(&fixture, Mode::Add, &steps("d")).unwrap();
        assert!(
            view_from(&fixture, "steps").contains(&format!(r#"[{{"uri":"{moved}","name":"d""#))
        );
        assert_eq!(send(&fixture, Mode::Add, &steps("d")).unwrap().unchanged, 1, "{mode:?}");
    }
}

fn mode_that_creates(mode: Mode) -> Mode {
    if mode == Mode::Update { Mode::Add } else { mode }
}

#[test]
fn add_of_an_array_with_other_elements_is_a_conflict() {
    let fixture = fixture();
    let steps = r#""steps":[{"name":"a","tools":[{"name":"t"}]},{"name":"b"}]"#;
    send(&fixture, Mode::Add, steps).unwrap();
    assert_eq!(send(&fixture, Mode::Add, steps).unwrap().unchanged, 1);
    for other in [
        steps.replace("\"b\"", "\"c\""),
        steps.replace(r#"{"name":"b"}"#, r#"{"name":"b","tools":[{"name":"t"}]}"#),
        steps.replace(r#"{"name":"t"}"#, "{}"),
        steps.replace(r#","tools":[{"name":"t"}]"#, ""),
        steps.replace(r#","tools":[{"name":"t"}]"#, r#","tools":[]"#),
    ] {
        let before = fixture.quads();
        let error = send(&fixture, Mode::Add, &other).unwrap_err();
        assert_eq!(error.class, ErrorClass::Conflict, "{other}: {error}");
        assert_eq!(fixture.quads(), before);
    }
}

#[test]
fn the_work_of_add_grows_only_with_the_given_array() {
    let count_steps = |count: usize, marks: &str| {
        let fixture = fixture();
        let stored = vec![r#""a""#; count].join(",");
        send(&fixture, Mode::Add, &format!(r#""marks":[{stored}]"#)).unwrap();
        let before = fixture.store.step_count();
        let sent = send(&fixture, Mode::Add, &format!(r#""marks":[{marks}]"#));
        assert_eq!(sent.is_ok(), marks.is_empty());
        fixture.store.step_count() - before
    };
    for marks in ["", r#""a","a""#] {
        assert!(count_steps(1_600, marks) < 2 * count_steps(100, marks), "{marks}");
    }
}

#[test]
fn a_field_that_is_not_ordered_leaves_out_the_link_to_a_list() {
    let mapping = "
type: object
path: Recipe:.
fields:
  name: {type: string, path: <urn:name>}
  marks: {type: array, path: <urn:mark>, elements: resource}
  steps: {type: object, path: <urn:step>/Step:., fields: {name: {type: string, path: <urn:name>}}}
";
    let mut fixture = fixture();
    let all = r#""marks":["a"],"steps":[{"name":"x"}]"#;
    send(&fixture, Mode::Add, all).unwrap();
    fixture.business_object.mapping = compile(mapping).unwrap();
    let (view, warnings) = fixture.view_with_warnings("urn:r");
    assert_eq!(view, r#"{"uri":"urn:r","marks":[]}"#);
    assert!(
        warnings.len() == 2 && warnings[0].contains("the list of an ordered array"),
        "{warnings:?}"
    );
    let read = fixture.store.read();
    let found = check_stored_values(&read, &fixture.business_object.mapping).unwrap();
    assert_eq!(found.len(), 2, "{found:?}");
    let shown = json::parse(view.as_bytes(), 9).unwrap();
    let root = &fixture.business_object.mapping.root;
    let locked = find_locked_fields(&read, root, &shown).unwrap();
    assert_eq!(locked.find(&shown, "marks"), Some(LockReason::UnshownValues));
    assert_eq!(locked.find(&shown, "steps"), Some(LockReason::UnshownValues));
    drop(read);
    let error = send(&fixture, Mode::Add, r#""steps":{"name":"y"}"#).unwrap_err();
    assert_eq!(error.class, ErrorClass::Conflict);
    send(&fixture, Mode::Replace, r#""name":"n""#).unwrap();
    assert_eq!(fixture.quads(), [r#"<urn:r> <urn:name> "n" <http://x/Recipe/>"#]);
    let error = refusal(&fixture, Mode::Add, r#""marks":["urn:penstock:@list:urn%3Aa:urn%3Ab:0"]"#);
    assert!(error.contains("no object"), "{error}");
}

#[test]
fn the_empty_list_is_no_value_of_a_required_array() {
    let mapping = MAPPING.replace("path: <urn:mark>", "path: <urn:mark>, required: true");
    let fixture = Fixture::new(compile(&mapping).unwrap().root);
    fixture.insert("urn:r", "urn:mark", rdf::NIL.into_owned(), "http://x/Recipe/");
    let error = refusal(&fixture, Mode::Add, r#""name":"x""#);
    assert!(error.contains("required"), "{error}");
}

#[test]
fn nodes_with_too_long_iris_are_refused() {
    let fixture = fixture();
    let uri = format!("urn:{}", "%20".repeat(20_000));
    let error =
        fixture.send(Mode::Add, &format!(r#"{{"uri":"{uri}","marks":["a"]}}"#)).unwrap_err();
    assert!(error.findings[0].to_string().contains("shorter uri"), "{error}");
}

#[test]
fn the_iris_of_nodes_are_limited_together() {
    let mut fixture = fixture();
    fixture.limits.values = 100;
    let uri = format!("urn:{}", "x".repeat(1_000));
    let object = |count: usize| {
        format!(r#"{{"uri":"{uri}","marks":[{}]}}"#, vec![r#""a""#; count].join(","))
    };
    fixture.send(Mode::Add, &object(10)).unwrap();
    let before = fixture.quads();
    let error = fixture.send(Mode::Update, &object(40)).unwrap_err();
    assert!(error.findings[0].to_string().contains("more than 25600 bytes together"), "{error}");
    assert_eq!(fixture.quads(), before);
}

#[test]
fn long_lists_of_other_software_are_no_value() {
    let fixture = fixture();
    let inserted = fixture.store.transact::<_, GatewayError>(|transaction| {
        let graph = NamedNode::new_unchecked("urn:g");
        for at in 0..=10_000 {
            let [own, next] =
                [at, at + 1].map(|at| NamedNode::new_unchecked(format!("urn:l:{at}")));
            let value = Literal::from(at);
            transaction.insert(QuadRef::new(&own, rdf::FIRST, &value, &graph))?;
            let next = if at == 10_000 { rdf::NIL } else { next.as_ref() };
            transaction.insert(QuadRef::new(&own, rdf::REST, next, &graph))?;
        }
        Ok(())
    });
    inserted.unwrap();
    let read = |head: &str| List::read(&fixture.store.read(), NamedNode::new_unchecked(head));
    assert_eq!(read("urn:l:1").unwrap().unwrap().values().len(), 10_000);
    assert!(read("urn:l:0").unwrap().unwrap_err().contains("10,000"));
}
