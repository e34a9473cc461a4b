use super::*;
use crate::mapping::Literal;

#[test]
fn nested_objects_get_identifiers_and_graphs_of_their_own() {
    let fixture = Fixture::new(machine());
    let answer = fixture.add(
        r#"{"name": "Press", "weight": 1.50, "tags": ["b", "a"], "motor": {"power": 2e3, "maker": {"uri": "urn:k", "name": "M"}},
           "parts": [{"name": "p1"}, {"name": "p2", "maker": {"uri": "urn:k"}}]}"#,
    );
    assert_eq!((answer.created, answer.updated, answer.unchanged, answer.deleted), (1, 0, 0, 0));
    assert_eq!(answer.warnings, []);
    let outcome = &answer.objects[0];
    assert_eq!((outcome.index, outcome.uri.as_str()), (0, "http://x/Machine/1"));
    assert_eq!(outcome.status, IngestedStatus::Created);
    let nested: Vec<_> =
        outcome.nested.iter().map(|n| (n.pointer.as_str(), n.uri.as_str())).collect();
    assert_eq!(
        nested,
        [
            ("/data/0/motor", "http://x/Motor/1"),
            ("/data/0/motor/maker", "urn:k"),
            ("/data/0/parts/0", "http://x/Part/1"),
            ("/data/0/parts/1", "http://x/Part/2"),
            ("/data/0/parts/1/maker", "urn:k"),
        ]
    );
    let decimal = "<http://www.w3.org/2001/XMLSchema#decimal>";
    let double = "<http://www.w3.org/2001/XMLSchema#double>";
    assert_eq!(
        fixture.quads(),
        [
            "<http://x/Machine/1> <http://p/motor> <http://x/Motor/1> <http://x/Machine/>"
                .to_owned(),
            "<http://x/Machine/1> <http://p/name> \"Press\" <http://x/Machine/>".to_owned(),
            "<http://x/Machine/1> <http://p/parts> <http://x/Part/1> <http://x/Machine/>"
                .to_owned(),
            "<http://x/Machine/1> <http://p/parts> <http://x/Part/2> <http://x/Machine/>"
                .to_owned(),
            "<http://x/Machine/1> <http://p/tags> \"a\" <http://x/Machine/>".to_owned(),
            "<http://x/Machine/1> <http://p/tags> \"b\" <http://x/Machine/>".to_owned(),
            format!(
                "<http://x/Machine/1> <http://p/weight> \"1.50\"^^{decimal} <http://x/Machine/>"
            ),
            "<http://x/Motor/1> <http://p/maker> <urn:k> <http://x/Motor/>".to_owned(),
            format!("<http://x/Motor/1> <http://p/power> \"2e3\"^^{double} <http://x/Motor/>"),
            "<http://x/Part/1> <http://p/name> \"p1\" <http://x/Part/>".to_owned(),
            "<http://x/Part/2> <http://p/maker> <urn:k> <http://x/Part/>".to_owned(),
            "<http://x/Part/2> <http://p/name> \"p2\" <http://x/Part/>".to_owned(),
            "<urn:k> <http://p/name> \"M\" <http://x/Maker/>".to_owned(),
        ]
    );
    assert_eq!(
        fixture.view("http://x/Machine/1"),
        r#"{"uri":"http://x/Machine/1","id":"http://x/Machine/1","name":"Press","weight":1.50,"tags":["a","b"],"motor":{"uri":"http://x/Motor/1","power":2e3,"maker":{"uri":"urn:k","name":"M"}},"parts":[{"uri":"http://x/Part/1","name":"p1"},{"uri":"http://x/Part/2","name":"p2","maker":{"uri":"urn:k","name":"M"}}]}"#
    );
}

#[test]
fn adding_the_same_again_changes_nothing() {
    let fixture = Fixture::new(machine());
    let data = r#"{"uri": "urn:m", "name": "Press", "parts": [{"uri": "urn:p", "weight": 1}]}"#;
    assert_eq!(fixture.add(data).created, 1);
    let quads = fixture.quads();
    let again = fixture.add(data);
    assert_eq!((again.created, again.updated, again.unchanged), (0, 0, 1));
    assert_eq!(fixture.quads(), quads);
}

#[test]
fn adding_values_keeps_existing_ones() {
    let fixture = Fixture::new(machine());
    fixture.add(r#"{"uri": "urn:m", "name": "Press", "tags": ["a"]}"#);
    let answer = fixture.add(r#"{"id": "urn:m", "weight": 5, "tags": ["b"]}"#);
    assert_eq!(answer.objects[0].status, IngestedStatus::Updated);
    assert_eq!(
        fixture.view("urn:m"),
        r#"{"uri":"urn:m","id":"urn:m","name":"Press","weight":5,"tags":["a","b"],"parts":[]}"#
    );
}

#[test]
fn a_different_value_for_a_single_field_is_refused() {
    let fixture = Fixture::new(machine());
    fixture.add(r#"{"uri": "urn:m", "name": "Press", "motor": {"uri": "urn:e", "power": 1}}"#);
    let conflict = |data| fixture.expect_refusal(Mode::Add, data, ErrorClass::Conflict);
    assert_eq!(
        conflict(r#"{"uri": "urn:n", "name": "x"}, {"uri": "urn:m", "name": "Lathe"}"#),
        ["/data/1/name"]
    );
    assert_eq!(conflict(r#"{"uri": "urn:m", "motor": {"uri": "urn:f"}}"#), ["/data/0/motor"]);
    assert_eq!(conflict(r#"{"uri": "urn:m", "motor": {"power": 2}}"#), ["/data/0/motor/power"]);
    assert_eq!(
        conflict(r#"{"uri": "urn:z", "name": "a"}, {"uri": "urn:z", "name": "b"}"#),
        ["/data/1/name"]
    );
    let error = fixture.send(Mode::Add, r#"{"uri": "urn:m", "name": "Lathe"}"#).unwrap_err();
    assert!(error.detail.contains("\"Press\"") && error.detail.contains("\"Lathe\""), "{error}");
}

#[test]
fn contradicting_values_of_one_object_are_refused() {
    let inner = shape("Plant", vec![string("name")]);
    let fixture =
        Fixture::new(shape("Plant", vec![field("part", Value::Object(inner)), string("name")]));
    let data = r#"{"uri": "urn:a", "name": "x", "part": {"uri": "urn:a", "name": "y"}}"#;
    assert_eq!(
        fixture.expect_refusal(Mode::Add, data, ErrorClass::Conflict),
        ["/data/0/part/name"]
    );
}

#[test]
fn a_single_nested_object_without_uri_is_the_linked_one() {
    let fixture = Fixture::new(machine());
    fixture.add(r#"{"uri": "urn:m", "motor": {"name": "e"}}"#);
    let answer = fixture.add(r#"{"uri": "urn:m", "motor": {"power": 3}}"#);
    assert_eq!(answer.objects[0].nested[0].uri, "http://x/Motor/1");
    assert_eq!(
        fixture.view("urn:m"),
        r#"{"uri":"urn:m","id":"urn:m","tags":[],"motor":{"uri":"http://x/Motor/1","name":"e","power":3},"parts":[]}"#
    );
    let twice = fixture.add(
        r#"{"uri": "urn:n", "motor": {"name": "f"}}, {"uri": "urn:n", "motor": {"power": 9}}"#,
    );
    assert_eq!(twice.objects[0].nested, {
        let mut nested = twice.objects[1].nested.clone();
        nested[0].pointer = "/data/0/motor".to_owned();
        nested
    });
}

#[test]
fn elements_of_an_array_without_uri_are_new() {
    let fixture = Fixture::new(machine());
    fixture.add(r#"{"uri": "urn:m", "parts": [{"name": "p"}]}"#);
    let answer = fixture.add(r#"{"uri": "urn:m", "parts": [{"name": "p"}]}"#);
    assert_eq!(answer.objects[0].nested[0].uri, "http://x/Part/2");
    assert_eq!(answer.updated, 1);
}

#[test]
fn a_reference_only_creates_the_link() {
    let part = shape("Part", vec![required(string("name"))]);
    let fixture = Fixture::new(shape("Machine", vec![field("part", Value::Object(part))]));
    let answer = fixture.add(r#"{"uri": "urn:m", "part": {"uri": "urn:p"}}"#);
    assert_eq!(answer.created, 1);
    assert_eq!(fixture.quads(), ["<urn:m> <http://p/part> <urn:p> <http://x/Machine/>"]);
    assert_eq!(fixture.view("urn:m"), r#"{"uri":"urn:m","part":{"uri":"urn:p"}}"#);
}

#[test]
fn null_and_absent_mean_the_same() {
    let fixture = Fixture::new(machine());
    fixture.add(
        r#"{"uri": "urn:m", "id": null, "name": "x", "weight": null, "tags": null, "motor": null, "parts": [null]}"#,
    );
    assert_eq!(fixture.quads(), ["<urn:m> <http://p/name> \"x\" <http://x/Machine/>"]);
}

#[test]
fn duplicates_in_an_array_cause_warnings() {
    let fixture = Fixture::new(machine());
    let answer = fixture.add(
        r#"{"uri": "urn:m", "tags": ["a", "b", "a"], "parts": [{"uri": "urn:p"}, {"uri": "urn:p", "name": "n"}]}"#,
    );
    let pointers: Vec<_> = answer.warnings.iter().map(|w| w.pointer.as_str()).collect();
    assert_eq!(pointers, ["/data/0/tags/2", "/data/0/parts/1"]);
    assert_eq!(
        fixture.view("urn:m"),
        r#"{"uri":"urn:m","id":"urn:m","tags":["a","b"],"parts":[{"uri":"urn:p","name":"n"}]}"#
    );
}

#[test]
fn a_new_object_needs_a_value_and_the_required_fields() {
    let fixture = Fixture::new(shape("Machine", vec![required(string("name")), many(number("n"))]));
    let invalid = |data| fixture.expect_refusal(Mode::Add, data, ErrorClass::Invalid);
    assert_eq!(invalid("{}"), ["/data/0"]);
    assert_eq!(invalid(r#"{"uri": "urn:m"}"#), ["/data/0"]);
    assert_eq!(invalid(r#"{"uri": "urn:m", "n": [1]}"#), ["/data/0/name"]);
    fixture.add(r#"{"uri": "urn:m", "name": "x"}"#);
    assert_eq!(fixture.add(r#"{"uri": "urn:m", "n": [1]}"#).updated, 1);
    assert_eq!(fixture.add(r#"{"uri": "urn:m"}"#).unchanged, 1);
}

#[test]
fn a_manual_namespace_mints_nothing() {
    let fixture = Fixture::with_generator(machine(), Generator::Manual);
    let data = r#"{"name": "x"}, {"uri": "urn:m", "parts": [{"name": "p"}]}"#;
    assert_eq!(
        fixture.expect_refusal(Mode::Add, data, ErrorClass::Invalid),
        ["/data/0", "/data/1/parts/0"]
    );
    fixture.add(r#"{"uri": "urn:m", "parts": [{"uri": "urn:p", "name": "p"}], "motor": {"uri": "urn:e", "power": 1}}"#);
    assert_eq!(fixture.add(r#"{"uri": "urn:m", "motor": {"power": 1}}"#).unchanged, 1);
}

#[test]
fn a_counter_never_repeats_a_number() {
    let fixture = Fixture::new(machine());
    assert_eq!(fixture.add(r#"{"name": "a"}"#).objects[0].uri, "http://x/Machine/1");
    fixture.expect_refusal(Mode::Add, r#"{"name": "b"}, {"name": 5}"#, ErrorClass::Invalid);
    fixture.add(r#"{"uri": "http://x/Machine/2", "name": "taken"}"#);
    assert_eq!(fixture.add(r#"{"name": "c"}"#).objects[0].uri, "http://x/Machine/3");
    fixture.send(Mode::Delete, r#"{"uri": "http://x/Machine/3"}"#).unwrap();
    assert_eq!(fixture.add(r#"{"name": "d"}"#).objects[0].uri, "http://x/Machine/4");
}

#[test]
fn a_given_uri_never_equals_a_minted_one() {
    let fixture = Fixture::new(machine());
    let data = r#"{"name": "a"}, {"uri": "http://x/Machine/1", "weight": 1}"#;
    assert_eq!(fixture.expect_refusal(Mode::Add, data, ErrorClass::Invalid), ["/data/1"]);
    let data = r#"{"uri": "urn:m", "parts": [{"uri": "http://x/Part/1", "name": "given"}, {"name": "new"}]}"#;
    assert_eq!(fixture.add(data).objects[0].nested[1].uri, "http://x/Part/2");
}

#[test]
fn fields_of_one_property_are_separated_by_language() {
    let labelled = |name: &str, kind| {
        let mut field = string(name);
        if let FieldKind::Property(property) = &mut field.kind {
            property.predicate = NamedNode::new_unchecked("http://p/label");
            property.value = Value::Literal(kind);
        }
        field
    };
    let fields: Vec<Field> = vec![
        labelled("en", Literal::Language("en".to_owned())),
        labelled("de", Literal::Language("de".to_owned())),
        labelled("plain", Literal::String),
    ];
    let fixture = Fixture::new(shape("Machine", fields));
    fixture.add(r#"{"uri": "urn:m", "en": "press", "de": "Presse"}"#);
    fixture.add(r#"{"uri": "urn:m", "plain": "P"}"#);
    assert_eq!(
        fixture.expect_refusal(
            Mode::Add,
            r#"{"uri": "urn:m", "de": "Drehbank"}"#,
            ErrorClass::Conflict
        ),
        ["/data/0/de"]
    );
    fixture.send(Mode::Update, r#"{"uri": "urn:m", "de": "Drehbank"}"#).unwrap();
    assert_eq!(
        fixture.view("urn:m"),
        r#"{"uri":"urn:m","en":"press","de":"Drehbank","plain":"P"}"#
    );
    fixture.insert(
        "urn:m",
        "http://p/label",
        oxrdf::Literal::new_language_tagged_literal_unchecked("presse", "fr"),
        "urn:g",
    );
    let (_, warnings) = fixture.view_with_warnings("urn:m");
    assert_eq!(warnings.len(), 1, "`plain` has two values: {warnings:?}");
}

#[test]
fn validate_answers_like_add_and_stores_nothing() {
    let fixture = Fixture::new(machine());
    let answer = fixture.send(Mode::Validate, r#"{"name": "a", "tags": ["x", "x"]}"#).unwrap();
    assert_eq!((answer.mode, answer.created), (Mode::Validate, 1));
    assert_eq!(answer.warnings.len(), 1);
    assert_eq!(fixture.quads(), Vec::<String>::new());
    assert_eq!(fixture.add(r#"{"name": "a"}"#).objects[0].uri, "http://x/Machine/1");
    assert_eq!(
        fixture.expect_refusal(
            Mode::Validate,
            r#"{"uri": "http://x/Machine/1", "name": "b"}"#,
            ErrorClass::Conflict
        ),
        ["/data/0/name"]
    );
}

#[test]
fn values_that_look_equal_are_distinguished() {
    let fixture = Fixture::new(machine());
    let integer = oxrdf::Literal::new_typed_literal("5", oxrdf::vocab::xsd::INTEGER);
    fixture.insert("urn:m", "http://p/weight", integer, "http://x/Machine/");
    let long = "x".repeat(100);
    fixture.insert("urn:m", "http://p/name", oxrdf::Literal::from(format!("{long}1")), "urn:g");
    for (given, expected) in [
        (r#""weight": 5"#.to_owned(), r"urn:m already has 5 (xsd:integer), not 5 (xsd:decimal);"),
        (
            format!(r#""name": "{long}2""#),
            r#"urn:m already has ..."xxxxxxxxxxxxxxxxxxxx1", not ..."xxxxxxxxxxxxxxxxxxxx2";"#,
        ),
        (
            r#""weight": 6"#.to_owned(),
            r"urn:m already has 5, not 6; use UPDATE or MERGE to change it",
        ),
    ] {
        let data = format!(r#"{{"uri": "urn:m", {given}}}"#);
        let error = fixture.send(Mode::Add, &data).unwrap_err();
        assert_eq!(error.class, ErrorClass::Conflict);
        assert!(error.detail.contains(expected), "{error}");
    }
}
