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

/// Generates an object with ordered arrays of `values`, and of objects of `inner`.
fn object_with_lists(
    values: impl Strategy<Value = Property> + 'static,
    inner: BoxedStrategy<Shape>,
) -> BoxedStrategy<Shape> {
    let objects = inner.prop_map(|shape| Property::new(node("list"), Value::Object(shape)));
    vec(prop_oneof![4 => values, 3 => objects], 1..4)
        .prop_map(|lists| {
            let mut fields = vec![field("name", Value::Literal(Literal::String))];
            for (index, list) in lists.into_iter().enumerate() {
                let name = format!("list{index}");
                let predicate = node(&name);
                let list = Property { predicate, is_array: true, is_ordered: true, ..list };
                fields.push(Field::new(name, FieldKind::Property(list)));
            }
            Shape::new("Root", fields)
        })
        .boxed()
}

/// Generates objects with a few values.
fn simple_objects() -> BoxedStrategy<Shape> {
    let fields = vec![
        field("text", Value::Literal(Literal::String)),
        field("value", Value::Literal(Literal::Number)),
    ];
    Just(Shape::new("Simple", fields)).boxed()
}

/// Generates an object with ordered arrays of values without codes and other forms, and of objects with a few values.
pub(crate) fn plain() -> BoxedStrategy<Shape> {
    let value = prop_oneof![
        Just(Value::Literal(Literal::String)),
        Just(Value::Literal(Literal::Number)),
        Just(Value::Literal(Literal::Boolean)),
        Just(Value::Literal(Literal::Scalar)),
        Just(Value::Literal(Literal::Language("de".to_owned()))),
        Just(Value::Resource),
    ];
    object_with_lists(value.prop_map(|value| Property::new(node("list"), value)), simple_objects())
}

/// Generates an object with ordered arrays of any values, and of objects with a few values.
pub(crate) fn simple() -> BoxedStrategy<Shape> {
    object_with_lists(mappings::ordered_values(), simple_objects())
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
        (shape, object) in with_object(
            object_with_lists(mappings::ordered_values(), mappings::tree()),
        ),
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
