//! Accepted data conforms to the shapes of its mapping, and data that breaks the mapping does not.
mod changes;
mod validators;

use crate::{data, fixture_of, lists, mappings, text};
use changes::{Change, list_changes};
use oxrdf::vocab::rdf;
use oxrdf::{Literal as RdfLiteral, NamedNode, Quad};
use penstock_base::json::Json;
use penstock_model::ingest::Mode;
use penstock_model::mapping::{
    Field, FieldKind, Literal, Property, Shape, Value, build_shacl, write_shex,
};
use penstock_model::rdf::{Format, write_document};
use penstock_model::testing::Fixture;
use penstock_store::{Pattern, Read};
use proptest::prelude::*;
use serde_json::json;
use std::ops::ControlFlow;
use validators::{validate_shacl, validate_shex};

/// The property of a condition that every member satisfies. With it, the target does not depend on the data.
const MEMBER: &str = "urn:member";
/// The maximum number of changes that are validated for one ingestion.
const MAX_CHANGES: usize = 8;

proptest! {
    // The validators are slow without optimization.
    #![proptest_config(ProptestConfig { cases: 10, max_shrink_iters: 40, ..ProptestConfig::default() })]

    #[test]
    fn accepted_data_conforms_and_other_data_does_not(
        (shape, mut objects) in data::with(strict_tree(), data::objects),
        seed in 1..u64::MAX,
    ) {
        let mut seed = seed;
        for object in &mut objects {
            simplify(&shape, object, &mut seed, true);
        }
        let (fixture, members, quads) = accept(&shape, &objects);
        let source = fixture.business_object.shape_source();
        prop_assert_eq!(validate_shacl(&source, &quads), Vec::<String>::new());
        prop_assert_eq!(validate_shex(&source, &quads, &members), Vec::<String>::new());

        let mut changes = Vec::new();
        for uri in &members {
            let subject = NamedNode::new_unchecked(uri);
            list_changes(&shape, &subject, &quads, true, &mut changes);
        }
        while changes.len() > MAX_CHANGES {
            let index = data::draw(&mut seed, changes.len());
            changes.swap_remove(index);
        }
        for Change { what, quads, is_valid } in changes {
            let violations = validate_shacl(&source, &quads);
            prop_assert_eq!(violations.is_empty(), is_valid, "SHACL: {}: {:?}", &what, violations);
            let refused = validate_shex(&source, &quads, &members);
            prop_assert_eq!(refused.is_empty(), is_valid, "ShEx: {}: {:?}", &what, refused);
        }
    }

    #[test]
    fn lists_conform_and_those_with_another_value_do_not(
        (shape, mut object) in lists::with_object(lists::plain()),
        seed in 1..u64::MAX,
    ) {
        let mut seed = seed;
        simplify(&shape, &mut object, &mut seed, true);
        let (fixture, members, mut quads) = accept(&shape, &[object]);
        let source = fixture.business_object.shape_source();
        prop_assert_eq!(validate_shacl(&source, &quads), Vec::<String>::new());
        prop_assert_eq!(validate_shex(&source, &quads, &members), Vec::<String>::new());

        let values = quads.iter().filter(|quad| quad.predicate == rdf::FIRST).count();
        prop_assume!(values > 0);
        let changed = data::draw(&mut seed, values);
        let mut values = quads.iter_mut().filter(|quad| quad.predicate == rdf::FIRST);
        let other = NamedNode::new_unchecked("urn:other");
        values.nth(changed).unwrap().object = RdfLiteral::new_typed_literal("x", other).into();
        prop_assert!(!validate_shacl(&source, &quads).is_empty());
        prop_assert!(!validate_shex(&source, &quads, &members).is_empty());
    }
}

/// Stores objects as members. Returns their URIs, and all quads, also the ones that make them members.
fn accept(shape: &Shape, objects: &[Json]) -> (Fixture, Vec<String>, Vec<Quad>) {
    let mut fixture = fixture_of(shape);
    let member = NamedNode::new_unchecked(MEMBER);
    fixture.business_object.conditions = vec![(member.clone(), RdfLiteral::from(true).into())];
    let answer = fixture.send(Mode::Add, &text::elements(objects)).unwrap();
    let members: Vec<String> = answer.objects.iter().map(|object| object.uri.clone()).collect();
    let mut quads = read_quads(&fixture);
    for uri in &members {
        let subject = NamedNode::new_unchecked(uri);
        quads.push(Quad::new(subject, member.clone(), RdfLiteral::from(true), member.clone()));
    }
    (fixture, members, quads)
}

/// Generates mappings whose fields may be required, whose objects may have types, and in which fields of different
/// languages share a property. Each property and each type occurs at one position only.
fn strict_tree() -> BoxedStrategy<Shape> {
    (mappings::tree(), 1..u64::MAX)
        .prop_map(|(mut shape, seed)| {
            make_strict(&mut shape, &mut (seed, 0));
            shape
        })
        .boxed()
}

fn make_strict(shape: &mut Shape, (seed, number): &mut (u64, usize)) {
    for _ in 0..data::draw(seed, 3) {
        *number += 1;
        shape.types.push(NamedNode::new_unchecked(format!("urn:class:{number}")));
    }
    let mut more = Vec::new();
    for Field { name, kind, .. } in &mut shape.fields {
        let FieldKind::Property(property) = kind else { continue };
        *number += 1;
        property.predicate = NamedNode::new_unchecked(format!("http://p/{number}"));
        property.required = data::draw(seed, 2) == 0;
        if let Value::Object(nested) = &mut property.value {
            let mut state = (*seed, *number);
            make_strict(nested, &mut state);
            (*seed, *number) = state;
        }
        if property.value == Value::Literal(Literal::String) {
            for language in ["de", "fr"].into_iter().take(data::draw(seed, 3)) {
                let value = Value::Literal(Literal::Language(language.to_owned()));
                let required = data::draw(seed, 2) == 0;
                let property =
                    Property { required, ..Property::new(property.predicate.clone(), value) };
                let kind = FieldKind::Property(property);
                more.push(Field::new(format!("{name} {language}"), kind));
            }
        }
    }
    for field in more {
        if shape.find_field(&field.name).is_none() {
            shape.fields.push(field);
        }
    }
}

/// Replaces some nested objects by references to objects that are not stored, and shortens numbers, because the
/// validators read fewer digits than the gateway.
fn simplify(shape: &Shape, json: &mut Json, seed: &mut u64, is_root: bool) {
    match json {
        Json::Array(elements) => {
            for element in elements {
                simplify(shape, element, seed, false);
            }
        }
        Json::Object(members) if !is_root && data::draw(seed, 6) == 0 => {
            let uri = Json::String(format!("urn:unknown:{seed}"));
            *members = vec![("uri".to_owned(), uri)];
        }
        Json::Object(_) => {
            for (_, field, property) in shape.iter_properties() {
                let Some(value) = field.value_mut(json) else { continue };
                let is_json = property.value == Value::Literal(Literal::Json);
                if property.codes.is_some() || is_json || property.value.language_map().is_some() {
                    continue;
                }
                simplify(property.value.shape().unwrap_or(shape), value, seed, false);
            }
        }
        Json::Number(digits) => {
            let kind = match digits.as_str() {
                text if text.contains(['e', 'E']) => "1.5e3",
                text if text.contains('.') => "1.50",
                _ => "-12",
            };
            kind.clone_into(digits);
        }
        _ => {}
    }
}

fn read_quads(fixture: &Fixture) -> Vec<Quad> {
    let mut quads = Vec::new();
    let mut visit = |quad: Quad| {
        quads.push(quad);
        ControlFlow::Continue(())
    };
    fixture.store.read().for_each(&Pattern::default(), &mut visit).unwrap();
    quads
}

/// A mapping in which two fields of objects share a property, so that the namespace decides between them.
fn fixture_with_shared_links() -> Fixture {
    let config = include_str!("shared_links.yaml");
    Fixture::with_definition(&json!({
        "name": "Pumps",
        "config": config,
        "namespaces": [
            {"name": "Pumps", "uriBase": "https://plant.example/pumps/"},
            {"name": "Motors", "uriBase": "https://plant.example/parts/"},
            {"name": "Valves", "uriBase": "https://plant.example/parts/valves.1/"},
        ],
    }))
}

#[test]
fn objects_that_share_a_property_are_counted_by_their_namespaces() {
    let fixture = fixture_with_shared_links();
    let data = r#"{"name": "a", "motor": {"power": 1.5}, "valves": [{"size": 1}, {"size": 2}]}"#;
    let answer = fixture.send(Mode::Add, data).unwrap();
    let members = [answer.objects[0].uri.clone()];
    let pump = NamedNode::new_unchecked(&members[0]);
    let source = fixture.business_object.shape_source();
    let quads = read_quads(&fixture);
    assert_eq!(validate_shacl(&source, &quads), Vec::<String>::new());
    assert_eq!(validate_shex(&source, &quads, &members), Vec::<String>::new());

    let motor = "https://plant.example/parts/m-2";
    for (what, added, is_valid) in [
        ("another valve", "https://plant.example/parts/valves.1/v-9", true),
        (
            "a second motor, whose URI only looks like that of a valve",
            "https://plant.example/parts/valvesx1/v-9",
            false,
        ),
        ("a second motor", motor, false),
        ("something else", "https://plant.example/pumps/p-9", false),
    ] {
        let part = NamedNode::new_unchecked("https://plant.example/v/part");
        let link = Quad::new(pump.clone(), part, NamedNode::new_unchecked(added), pump.clone());
        let changed = [quads.as_slice(), &[link]].concat();
        assert_eq!(validate_shacl(&source, &changed).is_empty(), is_valid, "SHACL: {what}");
        let refused = validate_shex(&source, &changed, &members);
        assert_eq!(refused.is_empty(), is_valid, "ShEx: {what}");
    }
}

#[test]
fn every_format_has_the_same_triples() {
    let fixture = fixture_with_shared_links();
    let source = fixture.business_object.shape_source();
    let shapes = build_shacl(&source);
    for format in Format::ALL {
        let text = write_document(format, &shapes, &source.prefixes()).unwrap();
        let parser = oxrdfio::RdfParser::from_format(format.to_rdf_format());
        let read: Vec<Quad> = parser.for_slice(&text).map(Result::unwrap).collect();
        assert_eq!(read.len(), shapes.len(), "{format:?}");
    }
    assert!(write_shex(&source).contains("start = @<urn:penstock:"));
}
