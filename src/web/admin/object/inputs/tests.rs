use super::*;
use penstock_base::json;
use penstock_model::ingest::LockReason;
use penstock_model::mapping::compile;

const MAPPING: &str = "
type: object
path: Pump:.
key: tag
fields:
  tag: {type: string, path: <urn:tag>, required: true}
  flow: {type: number, path: <urn:flow>}
  marks: {type: array, path: <urn:mark>}
  parts: {type: array, path: <urn:part>, elements: {type: object, path: Part:., fields: {label: {type: string, path: <urn:label>}}}}
  areas: {type: array, path: <urn:area>, elements: {type: object, path: Area:., fields: {label: {type: string, path: <urn:label>}, rooms: {type: array, path: <urn:room>, elements: {type: object, path: Room:., fields: {label: {type: string, path: <urn:label>}}}}}}}
";

fn build(draft: &str, findings: &[Finding]) -> FormItems {
    let draft = json::parse(draft.as_bytes(), 20).unwrap();
    build_locked(&draft, findings, &LockedFields::default())
}

fn build_locked(draft: &Json, findings: &[Finding], locked: &LockedFields) -> FormItems {
    let source = FormSource { locked, unread: &[], changed_at: Some("/marks") };
    build_form(&compile(MAPPING).unwrap().root, draft, findings, source)
}

fn inputs(form: &FormItems) -> Vec<(&str, &str, InputKind)> {
    let inputs = form.items.iter().filter_map(|item| match item {
        FormItem::Input(input) => Some((input.name.as_str(), input.text.as_str(), input.kind)),
        _ => None,
    });
    inputs.collect()
}

#[test]
fn deep_values_are_json_and_a_key_is_fixed() {
    let form = build(
        r#"{"uri":"u:1","tag":"P","flow":1.50,"marks":["a"],"parts":[{"uri":"u:2","label":"seal"}],"areas":[]}"#,
        &[],
    );
    assert_eq!(
        inputs(&form),
        [
            ("v/flow", "1.50", InputKind::Line),
            ("v/marks/0", "a", InputKind::Line),
            ("v/parts/0/label", "seal", InputKind::Line),
            ("j/areas", "[]", InputKind::Json),
        ]
    );
    assert!(matches!(&form.items[0], FormItem::Fixed { value, .. } if value == "P"));
    let focused = form.items.iter().filter_map(|item| match item {
        FormItem::Input(input) if input.has_focus => Some(input.name.as_str()),
        _ => None,
    });
    assert_eq!(focused.collect::<Vec<_>>(), ["v/marks/0"]);
    let groups = form.items.iter().map(|item| match item {
        FormItem::Group { .. } => 1,
        FormItem::EndGroup { .. } => -1,
        _ => 0,
    });
    assert_eq!(groups.sum::<i32>(), 0);
}

#[test]
fn fields_that_would_lose_values_are_fixed() {
    let text =
        r#"{"uri":"u:1","flow":1.50,"marks":["a\u0000"],"areas":[{"uri":"u:2","label":"north"}]}"#;
    let draft = json::parse(text.as_bytes(), 20).unwrap();
    let mut locked = LockedFields::default();
    locked.lock("u:1", "flow", LockReason::SeveralValues);
    locked.lock("u:2", "label", LockReason::UnshownValues);
    let form = build_locked(&draft, &[], &locked);
    assert!(inputs(&form).is_empty(), "{:?}", inputs(&form));
    let fixed = form.items.iter().filter_map(|item| match item {
        FormItem::Fixed { caption, note, .. } => Some((caption.as_str(), *note)),
        _ => None,
    });
    let fixed: Vec<_> = fixed.collect();
    assert_eq!(
        fixed.iter().map(|(name, _)| *name).collect::<Vec<_>>(),
        ["tag", "flow", "marks", "areas"]
    );
    assert_eq!(fixed[1].1, explain_lock(LockReason::SeveralValues));
    assert_eq!(fixed[3].1, explain_lock(LockReason::UnshownValues));
}

#[test]
fn errors_are_at_the_fields_that_have_their_values() {
    let findings = [
        Finding::at_pointer("/data/0/flow", "a number is expected, not a string"),
        Finding::at_pointer("/data/0/areas/0/rooms", "an array is expected"),
        Finding::at_pointer("/data/0/unknown", "no such field"),
    ];
    let form = build(r#"{"uri":"u:1","tag":"P","flow":"12,5","areas":[{}]}"#, &findings);
    let [flow, areas, unknown] = form.errors.as_slice() else { panic!("{:?}", form.errors) };
    assert_eq!(flow.0.as_deref(), Some("field-1"));
    assert!(flow.1.starts_with("flow: \"12,5\" is not a number"), "{}", flow.1);
    assert_eq!(areas.0.as_deref(), Some("field-2"));
    assert_eq!(areas.1, "areas: /0/rooms: an array is expected");
    assert_eq!(*unknown, (None, "/unknown: no such field".to_owned()));
}

#[test]
fn codes_are_choices() {
    let mapping = "type: object\npath: Pump:.\nfields:\n  \
                   state: {type: string, path: <urn:state>, values: {0: off, 1: on, '?': on}}\n  \
                   old: {type: string, path: <urn:old>, values: [a, b]}\n  \
                   maker: {type: resource, path: <urn:maker>, base: 'http://m/'}\n";
    let draft = json::parse(br#"{"uri":"u:1","state":1,"old":"c"}"#, 20).unwrap();
    let locked = LockedFields::default();
    let source = FormSource { locked: &locked, unread: &[], changed_at: None };
    let form = build_form(&compile(mapping).unwrap().root, &draft, &[], source);
    assert_eq!(
        inputs(&form),
        [
            ("v/state", "1", InputKind::Choice),
            // A stored value without a code stays.
            ("v/old", "c", InputKind::Line),
            ("v/maker", "", InputKind::Line),
        ]
    );
    let FormItem::Input(state) = &form.items[0] else { panic!() };
    assert_eq!(state.choices, ["0", "1"]);
}

#[test]
fn a_text_that_is_not_json_is_shown_with_its_error() {
    let mapping = "type: object\npath: Pump:.\nfields:\n  state: {type: json, path: <urn:state>}\n";
    let draft = json::parse(br#"{"uri":"u:1","state":7}"#, 20).unwrap();
    let unread = UnreadText {
        pointer: "/state".to_owned(),
        text: "open".to_owned(),
        why: "it is not JSON".to_owned(),
    };
    let locked = LockedFields::default();
    let source = FormSource { locked: &locked, unread: &[unread], changed_at: None };
    let form = build_form(&compile(mapping).unwrap().root, &draft, &[], source);
    assert_eq!(inputs(&form), [("j/state", "open", InputKind::Json)]);
    let error = (Some("field-1".to_owned()), "state: it is not JSON".to_owned());
    assert_eq!(form.errors, [error]);
}
