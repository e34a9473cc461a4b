//! Ordered arrays round-trip through the view, with their order and their duplicates.
use crate::data::{self, ROOT};
use crate::{check_round_trip, fixture_of, mappings, text};
use oxrdf::NamedNode;
use penstock_base::json::{self, Json};
use penstock_model::ingest::Mode;
use penstock_model::mapping::{Field, FieldKind, Literal, Property, Shape, Value};
use proptest::collection::vec;
use proptest::prelude::*;

fn node(name: &str) -> NamedNode {
    NamedNode::new_unchecked(format!("http://l/{name}"))
}

fn field(name: &str, value: Value) -> Field {
    Field::new(name, FieldKind::Property(Property::new(node(name), value)))
}

/// Generates an object with ordered arrays of values, and of objects of `inner`.
fn object_with_lists(inner: BoxedStrategy<Shape>) -> BoxedStrategy<Shape> {
    let literal = prop_oneof![
        Just(Literal::String),
        Just(Literal::Number),
        Just(Literal::Boolean),
        Just(Literal::Scalar),
        Just(Literal::Language("de".to_owned())),
    ];
    let value = prop_oneof![
        3 => literal.prop_map(Value::Literal),
        1 => Just(Value::Resource),
        3 => inner.prop_map(Value::Object),
    ];
    vec(value, 1..4)
        .prop_map(|values| {
            let mut fields = vec![field("name", Value::Literal(Literal::String))];
            for (index, value) in values.into_iter().enumerate() {
                let name = format!("list{index}");
                let property = Property::new(node(&name), value);
                let property = Property { is_array: true, is_ordered: true, ..property };
                fields.push(Field::new(name, FieldKind::Property(property)));
            }
            Shape::new("Root", fields)
        })
        .boxed()
}

/// Generates an object with ordered arrays of values, and of objects with a few values.
pub(crate) fn simple() -> BoxedStrategy<Shape> {
    let fields = vec![
        field("text", Value::Literal(Literal::String)),
        field("value", Value::Literal(Literal::Number)),
    ];
    object_with_lists(Just(Shape::new("Simple", fields)).boxed())
}

/// Generates an object with a URI, a name and ordered arrays, and its shape.
pub(crate) fn with_object(shape: BoxedStrategy<Shape>) -> impl Strategy<Value = (Shape, Json)> {
    shape.prop_flat_map(|shape| {
        let list = |property: &Property| property.is_ordered.then(|| data::value(property, false));
        let object = data::root_object(&shape, list);
        (Just(shape), object)
    })
}

/// Returns JSON without the URIs of objects and without `null`.
fn without_uris(json: &Json) -> Json {
    match json {
        Json::Array(elements) => Json::Array(elements.iter().map(without_uris).collect()),
        Json::Object(members) => {
            let kept = members.iter().filter(|(name, value)| name != "uri" && *value != Json::Null);
            Json::Object(kept.map(|(name, value)| (name.clone(), without_uris(value))).collect())
        }
        other => other.clone(),
    }
}

/// Returns whether an object in it is only a URI, and so keeps what is stored about it.
fn has_reference(json: &Json) -> bool {
    match json {
        Json::Array(elements) => elements.iter().any(has_reference),
        Json::Object(members) => {
            let is_given = |(name, value): &(String, Json)| name != "uri" && *value != Json::Null;
            !members.iter().any(is_given) || members.iter().any(|(_, value)| has_reference(value))
        }
        _ => false,
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, ..ProptestConfig::default() })]

    #[test]
    fn lists_of_anything_round_trip(
        (shape, object) in with_object(object_with_lists(mappings::tree())),
    ) {
        check_round_trip(&shape, &object)?;
    }

    #[test]
    fn order_and_repeated_values_are_kept((shape, object) in with_object(simple())) {
        let fixture = fixture_of(&shape);
        let given = text::write(&object);
        fixture.send(Mode::Add, &given).unwrap();
        let view = json::parse(fixture.view(ROOT).as_bytes(), 20).unwrap();
        prop_assert_eq!(without_uris(&view), without_uris(&object));
        let quads = fixture.quads();
        let again = fixture.send(Mode::Add, &given).unwrap();
        prop_assert_eq!(again.unchanged, 1);
        for mode in [Mode::Update, Mode::Replace, Mode::Merge] {
            fixture.send(mode, &given).unwrap();
            prop_assert_eq!(&fixture.quads(), &quads);
        }
    }

    #[test]
    fn a_replaced_list_leaves_nothing(
        (shape, object, other) in with_object(simple()).prop_flat_map(|(shape, object)| {
            let other = with_object(Just(shape.clone()).boxed()).prop_map(|(_, other)| other);
            (Just(shape), Just(object), other)
        }),
    ) {
        prop_assume!(!has_reference(&other));
        let (fixture, fresh) = (fixture_of(&shape), fixture_of(&shape));
        fixture.send(Mode::Add, &text::write(&object)).unwrap();
        fixture.send(Mode::Replace, &text::write(&other)).unwrap();
        fresh.send(Mode::Replace, &text::write(&other)).unwrap();
        prop_assert_eq!(fixture.quads(), fresh.quads());
    }
}
