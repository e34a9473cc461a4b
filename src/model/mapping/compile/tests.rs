mod errors;

use super::compiler::MAX_LEVELS;
use super::*;
use crate::mapping::{AcceptedForm, ListedValue, Literal, Property, UnixUnit, Value};
use oxrdf::vocab::xsd;
use penstock_base::json::Json;
use proptest::prelude::*;
use std::fmt::Write as _;

fn compile_valid(config: &str) -> Shape {
    match compile(config) {
        Ok(mapping) => mapping.root,
        Err(findings) => panic!("{findings:#?}"),
    }
}

#[track_caller]
fn assert_errors(config: &str, expected: &[(u64, u64, &str)]) {
    let findings = compile(config).unwrap_err();
    let found: Vec<String> = findings.iter().map(ToString::to_string).collect();
    assert_eq!(found.len(), expected.len(), "{found:#?}");
    for (found, (line, column, words)) in found.iter().zip(expected) {
        let place = format!("line {line}, column {column}: ");
        assert!(
            found.starts_with(&place) && found.contains(words),
            "{found}\nexpected: {place}{words}"
        );
    }
}

/// Returns a mapping whose only fields are these lines, which begin at line 4.
fn with_fields(fields: &str) -> String {
    let mut config = "type: object\npath: Plant:.\nfields:\n".to_owned();
    for line in fields.lines() {
        writeln!(config, "  {line}").unwrap();
    }
    config
}

fn property(config: &str, name: &str) -> Property {
    match compile_valid(config).find_field(name).map(|field| field.kind.clone()) {
        Some(FieldKind::Property(property)) => property,
        other => panic!("{other:?}"),
    }
}

fn iri(iri: &str) -> NamedNode {
    NamedNode::new(iri).unwrap()
}

fn one(predicate: &str, value: Value) -> Property {
    Property::new(iri(predicate), value)
}

fn many(predicate: &str, value: Value) -> Property {
    Property { is_array: true, ..one(predicate, value) }
}

const STRING: Value = Value::Literal(Literal::String);

#[test]
fn the_sample_of_the_specification_compiles() {
    let config = "\
type: object
path: Plant:.
fields:
  uri:
    type: id
  label:
    type: string
    path: <http://www.w3.org/2000/01/rdf-schema#label>
  type:
    type: resource
    path: <http://www.w3.org/1999/02/22-rdf-syntax-ns#type>
  synonyms:
    type: array
    path: <http://www.w3.org/2004/02/skos/core#altLabel>
    elements:
      type: string
  location:
    type: object
    path: <http://example.com/hasLocation>/Location:.
    fields:
      uri:
        type: id
      name:
        type: string
        path: <http://example.com/name>
  units:
    type: array
    elements:
      type: object
      path: <http://example.com/hasUnit>/Unit:.
      fields:
        code:
          type: string
          path: <http://example.com/code>
";
    let field = |name: &str, kind| Field::new(name, kind);
    let property = |name: &str, property| field(name, FieldKind::Property(property));
    let shape = |namespace: &str, fields| Shape::new(namespace.to_owned(), fields);
    let location = shape(
        "Location",
        vec![field("uri", FieldKind::Id), property("name", one("http://example.com/name", STRING))],
    );
    let unit = shape("Unit", vec![property("code", one("http://example.com/code", STRING))]);
    let expected = shape(
        "Plant",
        vec![
            field("uri", FieldKind::Id),
            property("label", one("http://www.w3.org/2000/01/rdf-schema#label", STRING)),
            property(
                "type",
                one("http://www.w3.org/1999/02/22-rdf-syntax-ns#type", Value::Resource),
            ),
            property("synonyms", many("http://www.w3.org/2004/02/skos/core#altLabel", STRING)),
            property("location", one("http://example.com/hasLocation", Value::Object(location))),
            property("units", many("http://example.com/hasUnit", Value::Object(unit))),
        ],
    );
    let mapping = compile(config).unwrap();
    assert_eq!(mapping.root, expected);
    assert_eq!(mapping.namespaces(), ["Plant", "Location", "Unit"]);
    assert!(mapping.root.is_id("uri") && !mapping.root.is_id("label"));
}

#[test]
fn json_compiles_to_the_same_as_yaml() {
    let json = r#"{"type": "object", "path": "Plant:.", "fields": {
        "a": {"type": "string", "path": "<http://e/a>", "required": true},
        "b": {"type": "array", "path": "<http://e/b>", "elements": {"type": "integer"}}}}"#;
    let yaml = with_fields(
        "a: {type: string, path: <http://e/a>, required: true}\nb:\n  type: array\n  path: <http://e/b>\n  elements:\n    type: integer",
    );
    assert_eq!(compile_valid(json), compile_valid(&yaml));
}

#[test]
fn each_type_has_its_value() {
    for (kind, value) in [
        ("string", Literal::String),
        ("number", Literal::Number),
        ("integer", Literal::Integer),
        ("boolean", Literal::Boolean),
        ("date", Literal::Date),
        ("dateTime", Literal::DateTime),
        ("string, datatype: <http://e/dt>", Literal::Typed(iri("http://e/dt"))),
        (
            "string, datatype: <http://www.w3.org/2001/XMLSchema#integer>",
            Literal::Typed(xsd::INTEGER.into_owned()),
        ),
        ("string, datatype: <http://www.w3.org/2001/XMLSchema#string>", Literal::String),
        ("string, language: de-AT", Literal::Language("de-at".to_owned())),
    ] {
        let value = Value::Literal(value);
        let config = with_fields(&format!("f: {{type: {kind}, path: <http://e/p>}}"));
        assert_eq!(property(&config, "f"), one("http://e/p", value.clone()), "{kind}");
        let config = with_fields(&format!(
            "f: {{type: array, path: <http://e/p>, elements: {{type: {kind}}}}}"
        ));
        assert_eq!(property(&config, "f"), many("http://e/p", value.clone()), "{kind}");
        let config = with_fields(&format!(
            "f: {{type: array, elements: {{type: {kind}, path: <http://e/p>}}}}"
        ));
        assert_eq!(property(&config, "f"), many("http://e/p", value), "{kind}");
    }
    let config = with_fields(
        "f: {type: array, path: <http://e/p>, elements: {type: resource}, required: true}",
    );
    assert_eq!(
        property(&config, "f"),
        Property { required: true, ..many("http://e/p", Value::Resource) }
    );
    assert!(
        !property(&with_fields("f: {type: string, path: <http://e/p>, required: false}"), "f")
            .required
    );
}

#[test]
fn elements_may_be_left_out_for_strings() {
    let config = with_fields("f: {type: array, path: <http://e/p>}");
    assert_eq!(property(&config, "f"), many("http://e/p", STRING));
    let config = with_fields("f: {type: array, path: <http://e/p>, language: EN}");
    let english = Value::Literal(Literal::Language("en".to_owned()));
    assert_eq!(property(&config, "f"), many("http://e/p", english));
}

#[test]
fn elements_may_be_given_by_the_name_of_their_type() {
    for kind in ["string", "number", "integer", "boolean", "date", "dateTime", "resource"] {
        let short = with_fields(&format!(
            "f: {{type: array, path: <http://e/p>, required: true, elements: {kind}}}"
        ));
        let long = with_fields(&format!(
            "f: {{type: array, path: <http://e/p>, required: true, elements: {{type: {kind}}}}}"
        ));
        assert_eq!(compile_valid(&short), compile_valid(&long));
    }
}

#[test]
fn an_array_of_objects_takes_its_property_in_either_place() {
    let fields = "fields: {x: {type: string, path: <http://e/x>}}";
    let paths = [
        ("<http://e/p>", "Unit:."),
        ("", "<http://e/p>/Unit:."),
        ("<http://e/p>", "<http://e/p>/Unit:."),
        ("<http://e/p>/Unit:.", ""),
        ("<http://e/p>/Unit:.", "Unit:."),
        ("Unit:.", "<http://e/p>"),
    ];
    for (array, elements) in paths {
        let path =
            |path: &str| if path.is_empty() { String::new() } else { format!("path: {path}, ") };
        let config = with_fields(&format!(
            "f: {{type: array, {}elements: {{type: object, {}{fields}}}}}",
            path(array),
            path(elements)
        ));
        let property = property(&config, "f");
        assert_eq!((property.predicate.as_str(), property.is_array), ("http://e/p", true));
        let Value::Object(shape) = property.value else { panic!("{array} {elements}") };
        assert_eq!(shape.namespace, "Unit");
    }
}

#[test]
fn prefixes_are_accepted_wherever_iris_are() {
    let config = "
prefixes:
  ex: http://e/
  xsd: <http://www.w3.org/2001/XMLSchema#>
type: object
path: Plant:.
fields:
  a: {type: string, path: 'ex:a', datatype: 'xsd:token'}
  b:
    type: object
    path: ex:has/Unit:.
    fields:
      c: {type: array, path: ex:c}
";
    let token = iri("http://www.w3.org/2001/XMLSchema#token");
    assert_eq!(property(config, "a"), one("http://e/a", Value::Literal(Literal::Typed(token))));
    assert_eq!(property(config, "b").predicate, iri("http://e/has"));
}

#[test]
fn fields_share_a_property_only_if_each_value_belongs_to_one() {
    let field = |name: &str, kind: &str| format!("{name}: {{type: {kind}, path: <http://e/p>}}\n");
    let integer = "string, datatype: <http://www.w3.org/2001/XMLSchema#integer>";
    for (a, b) in [
        ("string", "string, language: en"),
        ("string, language: de", "string, language: en"),
        ("string", "integer"),
        ("number", "boolean"),
        ("date", "dateTime"),
        ("resource", "string"),
        ("string, datatype: <http://e/d>", "string"),
        ("boolean", integer),
    ] {
        compile_valid(&with_fields(&(field("a", a) + &field("b", b))));
    }
    for (a, b) in [
        ("string", "string"),
        ("string, language: EN", "string, language: en"),
        ("number", "integer"),
        ("integer", integer),
        (integer, "number"),
        ("resource", "resource"),
        ("string, datatype: <http://e/d>", "string, datatype: <http://e/d>"),
    ] {
        assert_errors(
            &with_fields(&(field("a", a) + &field("b", b))),
            &[(5, 3, "field `b`: it has the property <http://e/p> in common with the field `a`")],
        );
    }
    assert_errors(
        &with_fields(
            "a: {type: resource, path: <http://e/p>}\nb: {type: object, path: <http://e/p>/B:., fields: {x: {type: string, path: <http://e/p>}}}",
        ),
        &[(5, 3, "in common with the field `a`")],
    );
}

#[test]
fn fields_of_objects_share_a_property_if_their_namespaces_differ() {
    let field = |name: &str, namespace: &str, many: bool| {
        let object = format!(
            "{{type: object, path: <http://e/p>/{namespace}:., fields: {{x: {{type: string, path: <http://e/x>}}}}}}"
        );
        if many {
            format!("{name}: {{type: array, elements: {object}}}\n")
        } else {
            format!("{name}: {object}\n")
        }
    };
    let string = "s: {type: string, path: <http://e/p>}\n";
    for (a, b) in [(true, true), (true, false), (false, false)] {
        compile_valid(&with_fields(&(field("a", "Pump", a) + &field("b", "Valve", b) + string)));
        assert_errors(
            &with_fields(&(field("a", "Pump", a) + &field("b", "Pump", b))),
            &[(5, 3, "field `b`: it has the property <http://e/p> in common with the field `a`")],
        );
    }
    let resource = "r: {type: resource, path: <http://e/p>}\n";
    for fields in [
        field("a", "Pump", true) + &field("b", "Valve", true) + resource,
        field("a", "Pump", true) + resource + &string.replace("s:", "b:"),
    ] {
        let findings = compile(&with_fields(&fields)).unwrap_err();
        assert!(findings[0].message.contains("in common with the field `a`"), "{findings:?}");
    }
}

#[test]
fn deep_mappings_compile_on_a_small_stack() {
    /// Returns a mapping in which the lines of `level` are nested.
    fn nested(levels: usize, [first, level, last]: [&str; 3]) -> String {
        let mut config = format!("type: object\npath: P:.\nfields:\n{first}");
        for at in 1..levels {
            let indent = " ".repeat(at * 3 - 2);
            level.lines().for_each(|line| writeln!(config, "{indent}{line}").unwrap());
        }
        let indent = " ".repeat(levels * 3 - 2);
        writeln!(config, "{indent}{last}").unwrap();
        config
    }
    let objects = "f:\n type: object\n path: <http://e/f>/P:.\n fields:";
    let arrays =
        "f:\n type: array\n elements:\n  type: object\n  path: <http://e/f>/P:.\n  fields:";
    let map = " type: map\n path: <http://e/f>/P:.\n key: {path: <http://e/k>}\n elements:";
    let maps_of_objects = format!("f:\n{map}\n  type: object\n  fields:");
    let field = "x: {type: string, path: <http://e/x>}";
    for parts in [
        ["", objects, field],
        ["", arrays, field],
        ["", &maps_of_objects, field],
        [" f:\n", map, " {type: string, path: <http://e/x>}"],
    ] {
        let (deepest, too_deep) = (nested(MAX_LEVELS, parts), nested(MAX_LEVELS + 1, parts));
        let work = move || {
            let mapping = compile(&deepest).unwrap();
            assert_eq!(mapping.clone(), mapping);
            assert_eq!(mapping.namespaces(), ["P"]);
            let findings = compile(&too_deep).unwrap_err();
            assert!(
                findings[0].message.contains("objects nest deeper than 256 levels"),
                "{findings:?}"
            );
            assert_eq!(findings.len(), 1);
        };
        std::thread::Builder::new().stack_size(1700 << 10).spawn(work).unwrap().join().unwrap();
    }
}

/// Generates text that is nearly a mapping.
fn near_mapping() -> impl Strategy<Value = String> {
    let token = prop::sample::select(vec![
        "type: ",
        "object",
        "string",
        "array",
        "id",
        "path: ",
        "fields:",
        "elements:",
        "\n",
        "\n  ",
        "\n    ",
        "Plant:.",
        "<http://e/p>",
        "<http://e/p>/A:.",
        "a: ",
        "b:",
        "{",
        "}",
        "[",
        "]",
        ", ",
        "required: true",
        "prefixes: ",
        "ex:x",
        "'",
        "\"",
        "null",
        "language: ",
        "en",
        "&a ",
        "*a",
        "- ",
        "? ",
        "datatype: ",
    ]);
    prop::collection::vec(token, 0..40).prop_map(|tokens| tokens.concat())
}

proptest! {
    #[test]
    fn arbitrary_text_never_panics(text in any::<String>()) {
        let _ = compile(&text);
    }

    #[test]
    fn near_mappings_never_panic(text in near_mapping(), header in any::<bool>()) {
        let text = if header { with_fields(&text) } else { text };
        if let Err(findings) = compile(&text) {
            prop_assert!(!findings.is_empty());
            let places: Vec<_> = findings.iter().map(|finding| match finding.place {
                Place::Line { line, column } => (line, column),
                _ => (0, 0),
            }).collect();
            prop_assert!(places.is_sorted(), "{:?}", findings);
            prop_assert!(places.iter().all(|(line, column)| *line >= 1 && *column >= 1));
        }
    }
}

#[test]
fn what_senders_may_write_is_part_of_the_field() {
    let config = with_fields(
        "a: {type: number, path: <http://e/a>, accept: [text, {decimal: '.', group: ','}], absent: [NA, -9999]}\n\
         b: {type: array, path: <http://e/b>, default: [x], elements: {type: string, accept: scalar}}\n\
         c: {type: dateTime, path: <http://e/c>, accept: ['%d.%m.%Y %H:%M', iso, unix-ms], timeZone: UTC}\n\
         d: {type: boolean, path: <http://e/d>, accept: {true: [yes, 1], false: ['no', 0]}}\n\
         e: {type: object, path: <http://e/e>/E:., default: {f: 1}, fields: {f: {type: integer, path: <http://e/f>, absent: []}}}\n\
         g: {type: date, path: <http://e/g>}",
    );
    let config = format!("timeZone: Europe/Berlin\nabsent: ''\n{config}");
    let reading = |name: &str| property(&config, name).reading.map(|reading| *reading).unwrap();
    let listed = |json: Json| ListedValue::new(json).unwrap();
    let text = |text: &str| Json::String(text.to_owned());
    let number = |digits: &str| Json::Number(digits.to_owned());
    let root = vec![listed(text(""))];
    let accept = vec![AcceptedForm::Text, AcceptedForm::Decimal { decimal: '.', group: Some(',') }];
    let absent = vec![listed(text("NA")), listed(number("-9999"))];
    assert_eq!(reading("a"), Reading { accept, absent, ..Reading::default() });
    assert_eq!(
        reading("b"),
        Reading {
            accept: vec![AcceptedForm::Scalar],
            absent: root.clone(),
            default: Some(Json::Array(vec![text("x")])),
            ..Reading::default()
        }
    );
    let c = reading("c");
    assert_eq!(c.time_zone.map(|zone| zone.to_string()).as_deref(), Some("UTC"));
    assert_eq!(
        c.accept,
        [
            AcceptedForm::Pattern("%d.%m.%Y %H:%M".to_owned()),
            AcceptedForm::Iso,
            AcceptedForm::Unix(UnixUnit::Milliseconds),
        ]
    );
    let yes = vec![listed(text("yes")), listed(number("1"))];
    let no = vec![listed(text("no")), listed(number("0"))];
    assert_eq!(reading("d").accept, [AcceptedForm::Booleans { yes, no }]);
    let e = property(&config, "e");
    let f = e.value.shape().unwrap().property_at(0).unwrap();
    assert_eq!(f.reading, None);
    assert_eq!(e.default_value().unwrap().to_string(), r#"{"f":1}"#);
    let zone = Some("Europe/Berlin".parse().unwrap());
    assert_eq!(reading("g"), Reading { time_zone: zone, absent: root, ..Reading::default() });
}
