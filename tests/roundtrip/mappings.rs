//! Generates mappings: `tree` generates any tree of shapes, `linked` one whose objects may refer to each other.
use crate::{codes, data, readings};
use oxrdf::NamedNode;
use penstock_model::mapping::{Field, FieldKind, LanguageMap, Literal, Property, Shape, Value};
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
        1 => Just(Literal::Scalar),
        1 => Just(Literal::Json),
        2 => language_map().prop_map(Literal::LanguageMap),
    ]
}

fn language_map() -> impl Strategy<Value = LanguageMap> {
    (any::<bool>(), any::<bool>()).prop_map(|(is_limited, has_arrays)| {
        let languages = if is_limited { &data::LANGUAGES[..] } else { &[] };
        LanguageMap {
            languages: languages.iter().map(|tag| tag.to_ascii_lowercase()).collect(),
            has_arrays,
        }
    })
}

/// Returns whether values of this type can be elements of an array.
fn are_elements(value: &Value) -> bool {
    !matches!(value, Value::Literal(Literal::Json | Literal::LanguageMap(_)))
}

/// The number of ways in which a field can have codes and other forms of its values.
const VARIANTS: usize = 36;

/// Returns the property of a field with values of this type. The number chooses their codes and their other forms.
fn property_of(predicate: NamedNode, value: Value, many: bool, number: usize) -> Property {
    let codes = codes::for_value(&value, number % 6);
    let is_array = many && are_elements(&value);
    let reading = readings::for_value(&value, codes.as_deref(), is_array, number / 6);
    Property { is_array, codes, reading, ..Property::new(predicate, value) }
}

/// The predicate of generated properties, which their users replace.
fn unnamed() -> NamedNode {
    NamedNode::new_unchecked("urn:unnamed")
}

/// Generates fields of values of any type, with codes and other forms: single ones, arrays and ordered arrays.
pub(crate) fn values() -> BoxedStrategy<Property> {
    let values = (flat(), any::<bool>(), 0..VARIANTS);
    let values =
        values.prop_map(|(value, many, number)| property_of(unnamed(), value, many, number));
    prop_oneof![3 => values, 1 => ordered_values()].boxed()
}

/// Generates ordered arrays of values of any type, with codes and other forms.
pub(crate) fn ordered_values() -> BoxedStrategy<Property> {
    (flat().prop_filter("elements of an array", are_elements), 0..VARIANTS)
        .prop_map(|(value, number)| {
            let property = property_of(unnamed(), value, true, number);
            Property { is_ordered: true, ..property }
        })
        .boxed()
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
    let groups = prop_oneof![3 => Just(0), 2 => Just(1), 1 => Just(2)];
    let id = prop_oneof![2 => Just(None), 1 => Just(Some("uri")), 1 => Just(Some("the id"))];
    ("[A-C]", id, vec((name(), value, any::<bool>(), groups, 0..VARIANTS), 1..6), 0..5_usize)
        .prop_map(|(namespace, id, values, place)| {
            let mut fields: Vec<Field> = Vec::new();
            let mut grouping = Grouping::default();
            for (index, (mut name, value, many, groups, number)) in values.into_iter().enumerate() {
                if name == "uri" || name == "the id" {
                    // A shape without a field would have objects without a value, which are refused.
                    name.push('_');
                }
                let predicate = NamedNode::new_unchecked(format!("http://p/{namespace}/{index}"));
                let property = property_of(predicate, value, many, number);
                let field = Field::new(name, FieldKind::Property(property));
                let field = grouping.put_into_groups(field, groups);
                if !fields.iter().any(|other| other.name == field.name) {
                    fields.push(field);
                }
            }
            if let Some(id) = id {
                let mut place = place.min(fields.len());
                // The fields of a group are one after the other.
                while fields.get(place).is_some_and(Field::is_grouped) {
                    place += 1;
                }
                fields.insert(place, Field::new(id, FieldKind::Id));
            }
            Shape::new(namespace, fields)
        })
        .boxed()
}

/// Puts fields that follow each other into the same groups.
#[derive(Default)]
pub(crate) struct Grouping {
    /// The number of groups around the last field.
    depth: usize,
    /// The numbers of groups so far: in objects, and in other groups.
    counts: [usize; 2],
}

impl Grouping {
    /// Puts a field into no group, into one, or into one that is in another one.
    pub(crate) fn put_into_groups(&mut self, mut field: Field, depth: usize) -> Field {
        for (level, count) in self.counts.iter_mut().enumerate().take(depth).rev() {
            if self.depth <= level {
                *count += 1;
            }
            // It is longer than the names of fields.
            field = field.in_group(&format!("group. ~/{count} {level}"));
        }
        self.depth = depth;
        field
    }
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
    let is_array = many && are_elements(&value);
    let property = Property { is_array, ..Property::new(predicate, value) };
    Field::new(name, FieldKind::Property(property))
}
