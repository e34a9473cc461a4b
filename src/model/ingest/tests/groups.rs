//! Fields in groups: modes apply to each of them.
use super::*;
use crate::ingest::{LockReason, LockedFields, find_locked_fields};
use crate::mapping::UnknownFields;
use oxrdf::Literal;
use penstock_base::json;

fn machine() -> Shape {
    let motor = shape("Motor", vec![string("name"), number("power").in_group("plate")]);
    shape(
        "Machine",
        vec![
            string("name"),
            number("low").in_group("limits"),
            many(string("tags")).in_group("limits"),
            number("high").in_group("more").in_group("limits"),
            field("motor", Value::Object(motor)).in_group("drive"),
        ],
    )
}

const WHOLE: &str = r#"{"uri":"urn:m","name":"Press","limits":{"low":1,"tags":["a"],"more":{"high":9}},"drive":{"motor":{"uri":"urn:e","name":"E","plate":{"power":7}}}}"#;

fn fixture() -> Fixture {
    let fixture = Fixture::new(machine());
    fixture.send(Mode::Add, WHOLE).unwrap();
    assert_eq!(fixture.view("urn:m"), WHOLE);
    fixture
}

#[test]
fn modes_apply_to_each_field() {
    let change =
        r#"{"uri": "urn:m", "limits": {"low": 2, "tags": null, "more": null}, "drive": null}"#;
    let changed = WHOLE.replace("\"low\":1", "\"low\":2");
    for (mode, expected) in [
        (Mode::Update, changed.as_str()),
        (Mode::Merge, r#"{"uri":"urn:m","name":"Press","limits":{"low":2,"tags":[]}}"#),
        (Mode::Replace, r#"{"uri":"urn:m","limits":{"low":2,"tags":[]}}"#),
    ] {
        let fixture = fixture();
        fixture.send(mode, change).unwrap();
        assert_eq!(fixture.view("urn:m"), expected, "{mode:?}");
        assert_eq!(fixture.send(mode, change).unwrap().unchanged, 1);
    }
    let error = fixture().send(Mode::Add, change).unwrap_err();
    assert!(error.findings[0].to_string().starts_with("/data/0/limits/low: "), "{error}");
}

#[test]
fn unknown_members_of_groups_are_refused_or_left_out() {
    let mut fixture = fixture();
    let object = r#"{"uri": "urn:m", "limits": {"lwo": 3, "low": 4}, "limits.low": 5}"#;
    let error = fixture.send(Mode::Merge, object).unwrap_err();
    let found: Vec<String> = error.findings.iter().map(ToString::to_string).collect();
    assert!(found[0].starts_with("/data/0/limits/lwo: the mapping has no field"), "{found:?}");
    assert!(found[0].ends_with("in this group; did you mean \"low\"?"), "{found:?}");
    assert!(found[1].starts_with("/data/0/limits.low: the mapping has no field"), "{found:?}");
    fixture.business_object.mapping.unknown_fields = UnknownFields::Ignore;
    let answer = fixture.send(Mode::Merge, object).unwrap();
    assert_eq!(answer.warnings.len(), 2);
    assert_eq!(fixture.view("urn:m"), WHOLE.replace("\"low\":1", "\"low\":4"));
}

#[test]
fn fields_in_groups_are_locked_by_their_whole_name() {
    let fixture = fixture();
    let second = Literal::new_simple_literal("second");
    insert_quad(&fixture.store, "urn:m", "http://p/low", second.clone(), "urn:g");
    insert_quad(&fixture.store, "urn:e", "http://p/power", second, "urn:g");
    let (view, _) = fixture.view_with_warnings("urn:m");
    let view = json::parse(view.as_bytes(), 20).unwrap();
    let root = &fixture.business_object.mapping.root;
    let locked = find_locked_fields(&fixture.store.read(), root, &view).unwrap();
    let mut expected = LockedFields::default();
    expected.lock("urn:m", "limits.low", LockReason::SeveralValues);
    expected.lock("urn:e", "plate.power", LockReason::SeveralValues);
    assert_eq!(locked, expected);
}
