//! Maps and ordered arrays round-trip through the view below nested objects, arrays of objects, members of maps, groups and
//! each other.
use crate::mappings::Grouping;
use crate::maps::{Members, map_of};
use crate::{check_round_trip, data};
use oxrdf::NamedNode;
use penstock_base::json::Json;
use penstock_model::mapping::{Field, FieldKind, Literal, Property, Shape, Value};
use proptest::prelude::*;

fn node(name: &str) -> NamedNode {
    NamedNode::new_unchecked(format!("http://s/{name}"))
}

/// Generates an object with a name and two structures, perhaps in groups, each of objects with two more, to this depth. The
/// innermost have numbers. The namespace is part of the names of all namespaces and properties below it.
pub(crate) fn object_with_structures(namespace: &str, depth: u32) -> BoxedStrategy<Shape> {
    let structures = ["A", "B"].map(|name| {
        let property = structure(&format!("{namespace}{name}"), depth);
        let field =
            property.prop_map(move |property| Field::new(name, FieldKind::Property(property)));
        (field, 0..3_usize)
    });
    let namespace = namespace.to_owned();
    structures
        .prop_map(move |structures| {
            let name = Property::new(node("name"), Value::Literal(Literal::String));
            let mut fields = vec![Field::new("name", FieldKind::Property(name))];
            let mut grouping = Grouping::default();
            let grouped = structures.map(|(field, groups)| grouping.put_into_groups(field, groups));
            fields.extend(grouped);
            Shape::new(namespace.clone(), fields)
        })
        .boxed()
}

/// Generates a map, an ordered array, an array or a single object.
fn structure(namespace: &str, depth: u32) -> BoxedStrategy<Property> {
    let predicate = node(namespace);
    let property = move |value, is_array, is_ordered| Property {
        is_array,
        is_ordered,
        ..Property::new(predicate.clone(), value)
    };
    let map_namespace = namespace.to_owned();
    let map = move |members| map_of(&map_namespace, members, false);
    if depth == 0 {
        return prop_oneof![
            Just(map(Members::Values(property(Value::Literal(Literal::Number), false, false)))),
            Just(property(Value::Literal(Literal::Number), true, true)),
        ]
        .boxed();
    }
    (object_with_structures(namespace, depth - 1), 0..4_u8)
        .prop_map(move |(shape, kind)| match kind {
            0 => map(Members::Objects(shape)),
            1 => property(Value::Object(shape), true, true),
            2 => property(Value::Object(shape), true, false),
            _ => property(Value::Object(shape), false, false),
        })
        .boxed()
}

/// Generates an object with a URI, a name and structures of this depth, and its shape.
pub(crate) fn with_object(depth: u32) -> impl Strategy<Value = (Shape, Json)> {
    object_with_structures("Root", depth).prop_flat_map(|shape| {
        let structure = |property: &Property| {
            (property.predicate != node("name")).then(|| data::value(property, false))
        };
        let object = data::root_object(&shape, structure);
        (Just(shape), object)
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, ..ProptestConfig::default() })]

    #[test]
    fn maps_and_ordered_arrays_below_objects_round_trip((shape, object) in with_object(2)) {
        check_round_trip(&shape, &object)?;
    }
}
