//! Generates mappings: `tree` generates any tree of shapes, `linked` one whose objects may refer to each other.
use oxrdf::NamedNode;
use penstock_model::mapping::{Field, FieldKind, Literal, Property, Shape, Value};
use proptest::collection::vec;
use proptest::prelude::*;

fn literal() -> impl Strategy<Value = Literal> {
    prop_oneof![
        4 => Just(Literal::String),
        1 => Just(Literal::Typed(NamedNode::new_unchecked("urn:type"))),
        1 => Just(Literal::Language("de-at".to_owned())),
        2 => Just(Literal::Number),
        2 => Just(Literal::Integer),
        1 => Just(Literal::Boolean),
        1 => Just(Literal::Date),
        1 => Just(Literal::DateTime),
    ]
}

fn name() -> impl Strategy<Value = String> {
    prop_oneof![3 => "[a-z]{1,8}", 1 => "[ -~äß水/~\"\\\\]{1,6}"]
}

fn flat() -> BoxedStrategy<Value> {
    prop_oneof![4 => literal().prop_map(Value::Literal), 1 => Just(Value::Resource)].boxed()
}

/// Generates any tree of shapes in which each property has one field.
pub(crate) fn tree() -> BoxedStrategy<Shape> {
    shape(3)
}

fn shape(depth: u32) -> BoxedStrategy<Shape> {
    let value = if depth == 0 {
        flat()
    } else {
        prop_oneof![3 => flat(), 2 => shape(depth - 1).prop_map(Value::Object)].boxed()
    };
    let id = prop_oneof![2 => Just(None), 1 => Just(Some("uri")), 1 => Just(Some("the id"))];
    ("[A-C]", id, vec((name(), value, any::<bool>()), 1..5), 0..5_usize)
        .prop_map(|(namespace, id, values, place)| {
            let mut fields: Vec<Field> = Vec::new();
            for (index, (mut name, value, many)) in values.into_iter().enumerate() {
                if name == "uri" || name == "the id" {
                    // A shape without a field would have objects without a value, which are refused.
                    name.push('_');
                }
                if fields.iter().any(|f| f.name == name) {
                    continue;
                }
                let predicate = NamedNode::new_unchecked(format!("http://p/{namespace}/{index}"));
                let property = Property { predicate, is_array: many, required: false, value };
                fields.push(Field { name, kind: FieldKind::Property(property) });
            }
            if let Some(id) = id {
                let place = place.min(fields.len());
                fields.insert(place, Field { name: id.to_owned(), kind: FieldKind::Id });
            }
            Shape::new(namespace, fields)
        })
        .boxed()
}

/// Generates three classes of objects, each with a namespace, fields, and links to classes that are unrolled to some
/// depth. An object has the same shape at every position, except where it is too deep to be shown.
pub(crate) fn linked() -> BoxedStrategy<Shape> {
    let class = (vec((flat(), any::<bool>()), 0..4), vec((0..3_usize, any::<bool>()), 0..3));
    (vec(class, 3), 1..4_u32).prop_map(|(classes, depth)| unroll(&classes, 0, depth)).boxed()
}

type Class = (Vec<(Value, bool)>, Vec<(usize, bool)>);

fn unroll(classes: &[Class], class: usize, depth: u32) -> Shape {
    let mut fields = vec![field(class, "name", Value::Literal(Literal::String), false)];
    let (values, links) = classes.get(class).unwrap();
    for (index, (value, many)) in values.iter().enumerate() {
        fields.push(field(class, &format!("value{index}"), value.clone(), *many));
    }
    for (index, (other, many)) in links.iter().enumerate() {
        if depth > 0 {
            let nested = Value::Object(unroll(classes, *other, depth - 1));
            fields.push(field(class, &format!("link{index}"), nested, *many));
        }
    }
    Shape::new(format!("Class{class}"), fields)
}

fn field(class: usize, name: &str, value: Value, many: bool) -> Field {
    let predicate = NamedNode::new_unchecked(format!("http://p/{class}/{name}"));
    let property = Property { predicate, is_array: many, required: false, value };
    Field { name: name.to_owned(), kind: FieldKind::Property(property) }
}
