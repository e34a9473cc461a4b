//! Fields of objects with the same property, which the namespaces of their objects distinguish.
use super::*;

/// A machine with pumps, whose makers are nested, and valves, whose makers are resources.
fn machine() -> Shape {
    let maker = shape("Maker", vec![string("name")]);
    let pump = shape("Pump", vec![string("name"), field("maker", Value::Object(maker))]);
    let valve = shape("Valve", vec![string("name"), field("maker", Value::Resource)]);
    let part = |name: &str, shape| {
        let mut field: Field = many(field(name, Value::Object(shape)));
        if let FieldKind::Property(property) = &mut field.kind {
            property.predicate = NamedNode::new_unchecked("http://p/part");
        }
        field
    };
    shape("Machine", vec![string("name"), part("pumps", pump), part("valves", valve)])
}

#[test]
fn replacing_one_array_keeps_the_other() {
    let fixture = Fixture::new(machine());
    fixture.add(
        r#"{"uri": "urn:m", "name": "m", "pumps": [{"name": "p"}], "valves": [{"name": "v"}]}"#,
    );
    fixture.send(Mode::Update, r#"{"uri": "urn:m", "valves": [{"name": "w"}]}"#).unwrap();
    assert_eq!(
        fixture.view("urn:m"),
        r#"{"uri":"urn:m","name":"m","pumps":[{"uri":"http://x/Pump/1","name":"p"}],"valves":[{"uri":"http://x/Valve/2","name":"w"}]}"#
    );
}

#[test]
fn a_referenced_object_is_removed_only_if_its_field_nests_it() {
    for (maker, is_kept) in [
        (r#""valves": [{"name": "v", "maker": "http://x/Maker/9"}]"#, true),
        (r#""pumps": [{"name": "p", "maker": {"uri": "http://x/Maker/9"}}]"#, false),
    ] {
        let fixture = Fixture::new(machine());
        let name = oxrdf::Literal::from("maker");
        fixture.insert("http://x/Maker/9", "http://p/name", name, "http://x/Maker/");
        fixture.add(&format!(r#"{{"uri": "urn:m", "name": "m", {maker}}}"#));
        fixture.send(Mode::Replace, r#"{"uri": "urn:m", "name": "m"}"#).unwrap();
        let quads = fixture.quads();
        assert_eq!(quads.len(), 1 + usize::from(is_kept), "{quads:?}");
    }
}

#[test]
fn an_object_outside_the_namespaces_of_the_fields_is_refused() {
    let fixture = Fixture::new(machine());
    fixture.add(r#"{"uri": "urn:m", "name": "m"}"#);
    for (data, pointer) in [
        (r#"{"uri": "urn:m", "pumps": [{"uri": "urn:p"}]}"#, "/data/0/pumps/0"),
        (
            r#"{"uri": "urn:m", "pumps": [{"uri": "http://x/Valve/1", "name": "v"}]}"#,
            "/data/0/pumps/0",
        ),
        (
            r#"{"uri": "urn:m", "valves": [{"uri": "http://x/Valve/1"}, {"uri": "http://x/Pump/1"}]}"#,
            "/data/0/valves/1",
        ),
    ] {
        assert_eq!(fixture.expect_refusal(Mode::Add, data, ErrorClass::Invalid), [pointer]);
    }
    let other = NamedNode::new_unchecked("urn:other");
    fixture.insert("urn:m", "http://p/part", other, "urn:graph");
    fixture
        .send(Mode::Replace, r#"{"uri": "urn:m", "name": "m", "pumps": [{"name": "p"}]}"#)
        .unwrap();
    let (view, warnings) = fixture.view_with_warnings("urn:m");
    assert_eq!(
        view,
        r#"{"uri":"urn:m","name":"m","pumps":[{"uri":"http://x/Pump/1","name":"p"}],"valves":[]}"#
    );
    assert_eq!(warnings.len(), 1, "{warnings:?}");
    assert!(warnings[0].contains("<urn:other> is in no namespace of the fields"), "{warnings:?}");
}

#[test]
fn looking_for_a_required_value_among_those_of_another_field_is_limited() {
    let config = "
type: object
path: Thing:.
fields:
  name: {type: string, path: <urn:name>}
  count: {type: integer, path: <urn:value>, required: true}
  texts: {type: array, path: <urn:value>}
";
    let fixture = Fixture::new(compile(config).unwrap().root);
    let texts: Vec<String> = (0..300).map(|text| format!("\"{text}\"")).collect();
    let texts = texts.join(",");
    fixture.add(&format!(r#"{{"uri":"urn:t","count":1,"texts":[{texts}]}}"#));
    let integer = oxrdf::Literal::from(1);
    let node = NamedNode::new_unchecked;
    let quad = Quad::new(node("urn:t"), node("urn:value"), integer, node("http://x/Thing/"));
    let removed = fixture.store.transact(|transaction| transaction.remove(quad.as_ref()));
    assert!(removed.unwrap().0);
    let objects = |count: usize| vec![r#"{"uri":"urn:t","name":"a"}"#; count].join(",");
    assert_eq!(fixture.skip(Mode::Add, &objects(50)).unwrap().rejected.len(), 50);
    let error = fixture.skip(Mode::Add, &objects(100)).unwrap_err();
    assert_eq!(error.class, ErrorClass::TooLarge, "{error}");
}
