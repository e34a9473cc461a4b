//! Maps, with members of any kind, round-trip through the view, and each mode changes only what it names.
use crate::data::{self, ROOT};
use crate::{check_round_trip, fixture_of, mappings, text};
use oxrdf::NamedNode;
use penstock_base::json::{self, Json};
use penstock_model::ingest::Mode;
use penstock_model::mapping::{
    Field, FieldKind, KeyDefinition, KeyFields, KeyScope, Literal, Property, Shape, Value,
};
use proptest::collection::vec;
use proptest::prelude::*;

/// What the members of a map are.
#[derive(Debug, Clone)]
pub(crate) enum Members {
    /// Objects with the fields of this shape.
    Objects(Shape),
    /// Values of this field.
    Values(Property),
    /// Maps of such values.
    Maps(Property),
}

/// Generates what can be the values of members, which have no default.
fn values() -> impl Strategy<Value = Property> {
    mappings::values().prop_map(|mut values| {
        if let Some(reading) = &mut values.reading {
            reading.default = None;
        }
        values
    })
}

/// Generates an object with maps whose members are objects of `inner`, values or maps.
fn object_with_maps(inner: BoxedStrategy<Shape>) -> BoxedStrategy<Shape> {
    let members = prop_oneof![
        2 => inner.prop_map(Members::Objects),
        2 => values().prop_map(Members::Values),
        1 => values().prop_map(Members::Maps),
    ];
    vec((members, any::<bool>()), 1..4)
        .prop_map(|maps| {
            let name = Property::new(node("name"), Value::Literal(Literal::String));
            let mut fields = vec![Field::new("name", FieldKind::Property(name))];
            for (index, (members, is_integer)) in maps.into_iter().enumerate() {
                let map = map_of(&format!("Map{index}"), members, is_integer);
                fields.push(Field::new(format!("map{index}"), FieldKind::Property(map)));
            }
            Shape::new("Root", fields)
        })
        .boxed()
}

/// Generates an object with maps of simple objects, values and maps.
pub(crate) fn simple() -> BoxedStrategy<Shape> {
    let field = |name: &str, kind| {
        let property = Property::new(node(name), Value::Literal(kind));
        Field::new(name, FieldKind::Property(property))
    };
    let fields = vec![field("key", Literal::String), field("value", Literal::Number)];
    object_with_maps(Just(Shape::new("Simple", fields)).boxed())
}

fn node(name: &str) -> NamedNode {
    NamedNode::new_unchecked(format!("http://m/{name}"))
}

/// Returns the property of a map whose members are in this namespace.
pub(crate) fn map_of(namespace: &str, members: Members, is_integer: bool) -> Property {
    let mut fields = match members {
        Members::Objects(shape) => shape.fields,
        Members::Values(values) => {
            let predicate = node(&format!("{namespace}/value"));
            vec![Field::member_value(Property { predicate, ..values })]
        }
        Members::Maps(values) => {
            let inner = map_of(&format!("{namespace}Inner"), Members::Values(values), false);
            vec![Field::member_value(inner)]
        }
    };
    let key = if is_integer { Literal::Integer } else { Literal::String };
    let key = Property::new(node(&format!("{namespace}/key")), Value::Literal(key));
    let key_index = fields.len();
    fields.push(Field::member_key(Property { required: true, ..key }));
    let mut shape = Shape::new(namespace, fields);
    shape.key =
        KeyDefinition::Fields(KeyFields { indexes: vec![key_index], scope: KeyScope::Parent });
    let property = Property::new(node(namespace), Value::Object(shape));
    Property { is_array: true, ..property }
}

/// Generates an object with a URI, a name and maps, and its shape.
pub(crate) fn with_object(shape: BoxedStrategy<Shape>) -> impl Strategy<Value = (Shape, Json)> {
    shape.prop_flat_map(|shape| {
        let map =
            |property: &Property| property.map().is_some().then(|| data::value(property, false));
        let object = data::root_object(&shape, map);
        (Just(shape), object)
    })
}

fn view(fixture: &penstock_model::testing::Fixture) -> Json {
    json::parse(fixture.view(ROOT).as_bytes(), 128).unwrap()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, ..ProptestConfig::default() })]

    #[test]
    fn maps_of_anything_round_trip(
        (shape, object) in with_object(object_with_maps(mappings::tree())),
    ) {
        check_round_trip(&shape, &object)?;
    }

    #[test]
    fn a_merge_removes_only_the_member_that_it_names(
        (shape, object) in with_object(simple()),
        seed in any::<u64>(),
    ) {
        let fixture = fixture_of(&shape);
        fixture.send(Mode::Add, &text::write(&object)).unwrap();
        let Json::Object(mut members) = view(&fixture) else { unreachable!() };
        let maps: Vec<usize> = (2..members.len()).collect();
        prop_assume!(!maps.is_empty());
        let mut seed = seed.max(1);
        let map = *maps.get(data::draw(&mut seed, maps.len())).unwrap();
        let (map_name, map_members) = members.get_mut(map).unwrap();
        let Json::Object(map_members) = map_members else { unreachable!() };
        let (name, _) = map_members.remove(data::draw(&mut seed, map_members.len()));
        let change = Json::Object(vec![
            ("uri".to_owned(), Json::String(ROOT.to_owned())),
            (map_name.clone(), Json::Object(vec![(name, Json::Null)])),
        ]);
        let is_empty = map_members.is_empty();
        if is_empty {
            members.remove(map);
        }
        fixture.send(Mode::Merge, &text::write(&change)).unwrap();
        prop_assert_eq!(text::write(&view(&fixture)), text::write(&Json::Object(members)));
        // What a REPLACE without the member leaves is the same.
        let fresh = fixture_of(&shape);
        fresh.send(Mode::Replace, &fixture.view(ROOT)).unwrap();
        prop_assert_eq!(fresh.quads(), fixture.quads());
    }
}
