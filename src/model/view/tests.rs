//! Tests of the view with quads that were not written by its own ingestion.
use super::render_object;
use crate::mapping::{Field, FieldKind, Literal as Kind, Property, Shape, Value};
use crate::testing::{insert_quad, open_store};
use oxrdf::vocab::xsd;
use oxrdf::{BlankNode, Literal, NamedNode, Term};
use penstock_base::error::{ErrorClass, Finding, GatewayError, Place};

fn node(iri: &str) -> NamedNode {
    NamedNode::new_unchecked(iri)
}

fn property(name: &str, many: bool, value: Value) -> Field {
    let predicate = node(&format!("http://p/{name}"));
    let property = Property { is_array: many, ..Property::new(predicate, value) };
    Field::new(name, FieldKind::Property(property))
}

fn shape(fields: Vec<Field>) -> Shape {
    Shape::new("N".to_owned(), fields)
}

/// Renders `urn:s` from a store with these triples (subject, property, value).
fn shown(shape: &Shape, values: Vec<(&str, &str, Term)>) -> (String, Vec<Finding>) {
    tried(shape, values).unwrap()
}

fn tried(
    shape: &Shape,
    values: Vec<(&str, &str, Term)>,
) -> Result<(String, Vec<Finding>), GatewayError> {
    let (_dir, store) = open_store();
    for (index, (subject, name, value)) in values.into_iter().enumerate() {
        // Views read all graphs.
        let graph = format!("urn:g{}", index % 3);
        insert_quad(&store, subject, &format!("http://p/{name}"), value, &graph);
    }
    let (mut out, mut warnings) = (Vec::new(), Vec::new());
    render_object(&store.read(), shape, &node("urn:s"), &mut out, &mut warnings)?;
    Ok((String::from_utf8(out).unwrap(), warnings))
}

fn typed(lexical: &str, datatype: oxrdf::NamedNodeRef<'_>) -> Term {
    Literal::new_typed_literal(lexical, datatype).into()
}

#[test]
fn numbers_are_ordered_by_number_and_become_json() {
    let shape = shape(vec![property("n", true, Value::Literal(Kind::Number))]);
    let values = [
        ("10", xsd::INTEGER),
        ("9.50", xsd::DECIMAL),
        ("+09", xsd::DECIMAL),
        ("1e400", xsd::DOUBLE),
        ("-1E3", xsd::DOUBLE),
        ("9", xsd::INT),
    ];
    let quads = values.into_iter().map(|(n, d)| ("urn:s", "n", typed(n, d))).collect();
    let (out, warnings) = shown(&shape, quads);
    assert_eq!(out, r#"{"uri":"urn:s","n":[-1E3,9,9.50,10,1e400]}"#);
    assert_eq!(warnings, []);
}

#[test]
fn a_literal_that_is_not_a_json_number_is_a_string_with_a_warning() {
    let shape = shape(vec![property("n", true, Value::Literal(Kind::Number))]);
    let quads = vec![
        ("urn:s", "n", typed("INF", xsd::DOUBLE)),
        ("urn:s", "n", typed("NaN", xsd::DOUBLE)),
        ("urn:s", "n", typed("7", xsd::STRING)),
        ("urn:s", "n", typed("2", xsd::DECIMAL)),
    ];
    let (out, warnings) = shown(&shape, quads);
    assert_eq!(out, r#"{"uri":"urn:s","n":[2,"7","INF","NaN"]}"#);
    assert_eq!(warnings.len(), 3);
    assert_eq!(warnings[0].to_string().split(": ").take(2).collect::<Vec<_>>(), ["/n/1", "urn:s"]);
}

#[test]
fn booleans_have_two_forms_each() {
    let shape = shape(vec![
        property("a", false, Value::Literal(Kind::Boolean)),
        property("b", false, Value::Literal(Kind::Boolean)),
        property("c", false, Value::Literal(Kind::Boolean)),
    ]);
    let (out, warnings) = shown(
        &shape,
        vec![
            ("urn:s", "a", typed("1", xsd::BOOLEAN)),
            ("urn:s", "b", typed("false", xsd::BOOLEAN)),
            ("urn:s", "c", typed("yes", xsd::BOOLEAN)),
        ],
    );
    assert_eq!(out, r#"{"uri":"urn:s","a":true,"b":false,"c":"yes"}"#);
    assert_eq!(warnings.len(), 1);
}

#[test]
fn a_field_that_is_not_an_array_shows_the_first_value_with_a_warning() {
    let shape = shape(vec![
        property("n", false, Value::Literal(Kind::Integer)),
        property("r", false, Value::Resource),
    ]);
    let (out, warnings) = shown(
        &shape,
        vec![
            ("urn:s", "n", typed("10", xsd::INTEGER)),
            ("urn:s", "n", typed("9", xsd::INTEGER)),
            ("urn:s", "r", node("urn:b").into()),
            ("urn:s", "r", node("urn:a").into()),
        ],
    );
    assert_eq!(out, r#"{"uri":"urn:s","n":9,"r":"urn:a"}"#);
    assert_eq!(warnings.len(), 2);
}

#[test]
fn one_value_in_several_graphs_is_one_value() {
    let shape = shape(vec![property("s", false, Value::Literal(Kind::String))]);
    let x = || ("urn:s", "s", Term::from(Literal::from("x")));
    assert_eq!(
        shown(&shape, vec![x(), x(), x()]),
        (r#"{"uri":"urn:s","s":"x"}"#.to_owned(), vec![])
    );
}

#[test]
fn a_value_that_a_field_cannot_show_is_left_out_with_a_warning() {
    let nested = shape(vec![property("s", false, Value::Literal(Kind::String))]);
    let shape = shape(vec![
        property("r", true, Value::Resource),
        property("o", false, Value::Object(nested)),
        property("s", false, Value::Literal(Kind::String)),
    ]);
    let (out, warnings) = shown(
        &shape,
        vec![
            ("urn:s", "r", Literal::from("text").into()),
            ("urn:s", "r", BlankNode::default().into()),
            ("urn:s", "o", Literal::from("text").into()),
            ("urn:s", "s", node("urn:x").into()),
        ],
    );
    assert_eq!(out, r#"{"uri":"urn:s","r":[]}"#);
    assert_eq!(warnings.len(), 4);
}

#[test]
fn a_cycle_ends_with_a_reference() {
    let inner = shape(vec![
        property("s", false, Value::Literal(Kind::String)),
        property(
            "o",
            true,
            Value::Object(shape(vec![property("s", false, Value::Literal(Kind::String))])),
        ),
    ]);
    let outer = shape(vec![property("o", true, Value::Object(inner))]);
    let (out, warnings) = shown(
        &outer,
        vec![
            ("urn:s", "s", Literal::from("S").into()),
            ("urn:s", "o", node("urn:s").into()),
            ("urn:s", "o", node("urn:t").into()),
            ("urn:t", "s", Literal::from("T").into()),
            ("urn:t", "o", node("urn:s").into()),
            ("urn:t", "o", node("urn:nothing").into()),
        ],
    );
    assert_eq!(
        out,
        r#"{"uri":"urn:s","o":[{"uri":"urn:s"},{"uri":"urn:t","s":"T","o":[{"uri":"urn:nothing"},{"uri":"urn:s"}]}]}"#
    );
    assert_eq!(warnings, []);
}

#[test]
fn the_mapping_decides_where_the_uri_is_shown() {
    let id = |name: &str| Field::new(name, FieldKind::Id);
    let name = || property("s", false, Value::Literal(Kind::String));
    let quads = || vec![("urn:s", "s", Term::from(Literal::from("x")))];
    assert_eq!(shown(&shape(vec![name(), id("uri")]), quads()).0, r#"{"s":"x","uri":"urn:s"}"#);
    assert_eq!(
        shown(&shape(vec![name(), id("key")]), quads()).0,
        r#"{"uri":"urn:s","s":"x","key":"urn:s"}"#
    );
}

#[test]
fn a_group_without_a_value_is_left_out() {
    let text = |name: &str| property(name, false, Value::Literal(Kind::String));
    let many = |name: &str| property(name, true, Value::Literal(Kind::String));
    let shape = shape(vec![
        many("a").in_group("g"),
        text("b").in_group("h").in_group("g"),
        text("c"),
        text("b").in_group("i"),
    ]);
    let of = |name| vec![("urn:s", name, Term::from(Literal::from("x")))];
    assert_eq!(shown(&shape, of("c")).0, r#"{"uri":"urn:s","c":"x"}"#);
    assert_eq!(shown(&shape, of("a")).0, r#"{"uri":"urn:s","g":{"a":["x"]}}"#);
    // The first of the fields with the same property shows the value.
    assert_eq!(shown(&shape, of("b")).0, r#"{"uri":"urn:s","g":{"a":[],"h":{"b":"x"}}}"#);
}

#[test]
fn warnings_are_bounded() {
    let shape = shape(vec![property("r", true, Value::Resource)]);
    let quads = (0..1500).map(|i| ("urn:s", "r", Term::from(Literal::from(i)))).collect();
    let (out, warnings) = shown(&shape, quads);
    assert_eq!(out, r#"{"uri":"urn:s","r":[]}"#);
    assert_eq!(warnings.len(), super::object::MAX_WARNINGS + 1);
}

#[test]
fn a_large_view_shows_an_object_whole_once_and_not_once_for_each_path() {
    const EACH: usize = 40;
    let name = || property("s", false, Value::Literal(Kind::String));
    let holding = |inner: Shape| shape(vec![name(), property("o", true, Value::Object(inner))]);
    let shape = holding(holding(holding(shape(vec![name()]))));
    let uris: Vec<Vec<String>> = (0..3)
        .map(|level| (0..EACH).map(|number| format!("urn:{level}:{number:02}")).collect())
        .collect();
    let mut quads: Vec<(&str, &str, Term)> =
        uris[0].iter().map(|uri| ("urn:s", "o", node(uri).into())).collect();
    for pair in uris.windows(2) {
        for above in &pair[0] {
            quads.extend(pair[1].iter().map(|below| (above.as_str(), "o", node(below).into())));
        }
    }
    quads.extend(uris.iter().flatten().map(|uri| (uri.as_str(), "s", Literal::from("x").into())));
    let (out, warnings) = shown(&shape, quads);

    assert_eq!(warnings.len(), 1, "{warnings:?}");
    let shown: serde_json::Value = serde_json::from_str(&out).unwrap();
    let mut whole = vec![std::collections::BTreeMap::new(); 3];
    let mut level = vec![&shown];
    for (depth, uris) in uris.iter().enumerate() {
        let mut below = Vec::new();
        for object in level {
            let Some(held) = object.get("o") else { continue };
            let held = held.as_array().unwrap();
            assert!(held.iter().map(|one| one["uri"].as_str().unwrap()).eq(uris), "every link");
            below.extend(held);
        }
        for one in below.iter().filter(|one| one.get("s").is_some()) {
            *whole[depth].entry(one["uri"].as_str().unwrap()).or_insert(0) += 1;
        }
        level = below;
    }
    for (uris, whole) in uris.iter().zip(&whole) {
        assert!(whole.keys().eq(uris), "each is whole somewhere");
    }
    let written: usize = whole.iter().flat_map(std::collections::BTreeMap::values).sum();
    assert!((25_000..25_000 + 3 * EACH).contains(&written), "{written}");
}

#[test]
fn the_error_for_a_too_large_object_names_it_and_the_place() {
    let inner = shape(vec![property("s", false, Value::Literal(Kind::String))]);
    let shape = shape(vec![property("o", true, Value::Object(inner))]);
    let text = Term::from(Literal::from("x".repeat(1 << 20)));
    let uris: Vec<String> = (0..40).map(|number| format!("urn:{number:02}")).collect();
    let mut quads = Vec::new();
    for uri in &uris {
        quads.push(("urn:s", "o", node(uri).into()));
        quads.push((uri.as_str(), "s", text.clone()));
    }
    let error = tried(&shape, quads).unwrap_err();
    assert_eq!(error.class, ErrorClass::TooLarge);
    assert!(error.detail.contains("urn:s ") && error.detail.contains("/o/32"), "{error}");
}

#[test]
fn texts_in_other_languages_are_shown_without_a_language_and_named_with_one() {
    let tagged = |text: &str, tag: &str| -> Term {
        Literal::new_language_tagged_literal_unchecked(text, tag).into()
    };
    let labels = || {
        vec![("urn:s", "label", tagged("Pumpe", "de")), ("urn:s", "label", tagged("pompe", "fr"))]
    };
    let language = |tag: &str| Value::Literal(Kind::Language(tag.to_owned()));
    let plain = shape(vec![property("label", true, Value::Literal(Kind::String))]);
    let (out, warnings) = shown(&plain, labels());
    assert_eq!((out.as_str(), warnings), (r#"{"uri":"urn:s","label":["Pumpe","pompe"]}"#, vec![]));

    let english = shape(vec![property("label", false, language("en"))]);
    let (out, warnings) = shown(&english, labels());
    assert_eq!(out, r#"{"uri":"urn:s"}"#);
    assert_eq!(warnings.len(), 1, "{warnings:?}");
    assert_eq!(warnings[0].place, Place::Pointer("/label".to_owned()));
    assert!(warnings[0].message.contains("no text in the language en, but texts in de, fr"));

    // No warning is needed if this field or another one shows a text.
    let mut with_english = labels();
    with_english.push(("urn:s", "label", tagged("pump", "en")));
    let (out, warnings) = shown(&english, with_english);
    assert_eq!((out.as_str(), warnings), (r#"{"uri":"urn:s","label":"pump"}"#, vec![]));
    let mut others = property("others", true, Value::Literal(Kind::String));
    if let FieldKind::Property(property) = &mut others.kind {
        property.predicate = node("http://p/label");
    }
    let shared = shape(vec![property("label", false, language("en")), others]);
    let (out, warnings) = shown(&shared, labels());
    assert_eq!((out.as_str(), warnings), (r#"{"uri":"urn:s","others":["Pumpe","pompe"]}"#, vec![]));
}
