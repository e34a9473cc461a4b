//! Generates data that fits a mapping.
use penstock_base::json::Json;
use penstock_model::mapping::{FieldKind, Literal, Property, Shape, Value};
use proptest::collection::vec;
use proptest::prelude::*;
use std::collections::HashMap;

/// Generates objects, some of them with a URI.
pub(crate) fn objects(shape: &Shape) -> impl Strategy<Value = Vec<Json>> + use<> {
    let filler = first_value(shape);
    vec(object(shape, false), 1..4).prop_map(move |objects| number(objects, filler.as_ref(), false))
}

/// Generates objects that all have a URI, including nested ones.
pub(crate) fn named_objects(shape: &Shape) -> impl Strategy<Value = Vec<Json>> + use<> {
    let filler = first_value(shape);
    vec(object(shape, true), 1..4).prop_map(move |objects| number(objects, filler.as_ref(), false))
}

/// As `named_objects`, with some nested objects replaced by references to others of their class.
pub(crate) fn linked_objects(shape: &Shape) -> impl Strategy<Value = Vec<Json>> + use<> {
    let shape = shape.clone();
    (vec(object(&shape, true), 1..6), any::<u64>()).prop_map(move |(objects, seed)| {
        let filler = ("name".to_owned(), Json::String("x".to_owned()));
        let mut objects = number(objects, Some(&filler), true);
        let mut classes: HashMap<String, Vec<String>> = HashMap::new();
        for object in &objects {
            gather(&shape, object, &mut classes);
        }
        let mut seed = seed.max(1);
        for object in &mut objects {
            refer(&shape, object, &classes, &mut seed);
        }
        objects
    })
}

/// Generates two versions of the same objects, whose nested objects differ.
pub(crate) fn versions(shape: &Shape) -> impl Strategy<Value = [Vec<Json>; 2]> + use<> {
    (named_objects(shape), named_objects(shape)).prop_map(|(mut old, mut new)| {
        let count = old.len().min(new.len());
        for (objects, version) in [(&mut old, "old"), (&mut new, "new")] {
            objects.truncate(count);
            for (index, object) in objects.iter_mut().enumerate() {
                rename(object, version);
                if let Json::Object(members) = object {
                    members.retain(|(name, _)| name != "uri");
                    members.push(("uri".to_owned(), Json::String(format!("urn:root:{index}"))));
                }
            }
        }
        [old, new]
    })
}

fn rename(json: &mut Json, version: &str) {
    match json {
        Json::Array(elements) => {
            for element in elements {
                rename(element, version);
            }
        }
        Json::Object(members) => {
            for (name, value) in members {
                match value {
                    Json::String(uri) if name == "uri" => *uri = format!("{uri}:{version}"),
                    value => rename(value, version),
                }
            }
        }
        _ => {}
    }
}

/// Shuffles objects and arrays at every level.
pub(crate) fn shuffle(json: &mut Json, seed: &mut u64) {
    match json {
        Json::Array(elements) => {
            for element in elements.iter_mut() {
                shuffle(element, seed);
            }
            mix(elements, seed);
        }
        Json::Object(members) => {
            for (_, value) in members.iter_mut() {
                shuffle(value, seed);
            }
            mix(members, seed);
        }
        _ => {}
    }
}

fn mix<T>(values: &mut [T], seed: &mut u64) {
    for i in (1..values.len()).rev() {
        values.swap(i, draw(seed, i + 1));
    }
}

/// Returns a pseudo-random number below `below` (xorshift).
pub(crate) fn draw(seed: &mut u64, below: usize) -> usize {
    *seed ^= *seed << 13;
    *seed ^= *seed >> 7;
    *seed ^= *seed << 17;
    usize::try_from(*seed % below as u64).unwrap()
}

fn object(shape: &Shape, named: bool) -> BoxedStrategy<Json> {
    let uri = prop_oneof![Just(true), Just(named)]
        .prop_map(|named| named.then(|| ("uri".to_owned(), Json::Null)));
    let mut all: BoxedStrategy<Vec<(String, Json)>> = uri.prop_map(Vec::from_iter).boxed();
    for field in &shape.fields {
        let FieldKind::Property(property) = &field.kind else { continue };
        let name = field.name.clone();
        let value = if property.required {
            value(property, named).prop_map(Some).boxed()
        } else {
            prop_oneof![4 => value(property, named).prop_map(Some), 1 => Just(None), 1 => Just(Some(Json::Null))]
                .boxed()
        };
        all = (all, value)
            .prop_map(move |(mut all, value)| {
                all.extend(value.map(|value| (name.clone(), value)));
                all
            })
            .boxed();
    }
    all.prop_map(Json::Object).boxed()
}

fn value(property: &Property, named: bool) -> BoxedStrategy<Json> {
    let one = match &property.value {
        Value::Resource => "[a-z]{1,3}:[a-z0-9]{0,3}(/[a-z0-9]{0,3})?(#[a-z0-9]{0,2})?"
            .prop_map(Json::String)
            .boxed(),
        Value::Object(shape) => object(shape, named),
        Value::Literal(kind) => literal(kind),
    };
    let minimum = usize::from(property.required);
    if property.is_array { vec(one, minimum..4).prop_map(Json::Array).boxed() } else { one }
}

fn literal(kind: &Literal) -> BoxedStrategy<Json> {
    match kind {
        Literal::Number => "-?(0|[1-9][0-9]{0,30})(\\.[0-9]{1,30})?([eE][+-]?[0-9]{1,4})?"
            .prop_map(Json::Number)
            .boxed(),
        Literal::Integer => "-?(0|[1-9][0-9]{0,40})".prop_map(Json::Number).boxed(),
        Literal::Boolean => any::<bool>().prop_map(Json::Bool).boxed(),
        Literal::Date => "[12][0-9]{3}-(0[1-9]|1[0-2])-(0[1-9]|1[0-9]|2[0-8])(Z|[+-]0[0-9]:[0-5]0)?"
            .prop_map(Json::String)
            .boxed(),
        Literal::DateTime => {
            "[12][0-9]{3}-0[1-9]-[01][1-9]T[01][0-9]:[0-5][0-9]:[0-5][0-9](\\.[0-9]{1,6})?(Z|[+-]0[0-9]:[0-5]0)?"
                .prop_map(Json::String)
                .boxed()
        }
        Literal::String | Literal::Typed(_) | Literal::Language(_) => {
            prop_oneof![any::<String>(), "[ab]{0,2}"].prop_map(Json::String).boxed()
        }
    }
}

/// Returns a field and a value for it, so that an object is not empty.
fn first_value(shape: &Shape) -> Option<(String, Json)> {
    shape.fields.iter().find_map(|field| {
        let FieldKind::Property(property) = &field.kind else { return None };
        let one = match &property.value {
            Value::Resource => Json::String("urn:r".to_owned()),
            Value::Object(_) => Json::Object(Vec::new()),
            Value::Literal(Literal::Number | Literal::Integer) => Json::Number("1".to_owned()),
            Value::Literal(Literal::Boolean) => Json::Bool(true),
            Value::Literal(Literal::Date) => Json::String("2026-01-01".to_owned()),
            Value::Literal(Literal::DateTime) => Json::String("2026-01-01T00:00:00Z".to_owned()),
            Value::Literal(_) => Json::String("x".to_owned()),
        };
        let one = match (&property.value, one) {
            (Value::Object(_), Json::Object(_)) => {
                Json::Object(vec![("uri".to_owned(), Json::Null)])
            }
            (_, one) => one,
        };
        Some((field.name.clone(), if property.is_array { Json::Array(vec![one]) } else { one }))
    })
}

/// Gives a unique URI to each object that needs one, and a value to each empty root.
fn number(mut objects: Vec<Json>, filler: Option<&(String, Json)>, always: bool) -> Vec<Json> {
    let mut next = 0;
    for object in &mut objects {
        let Json::Object(members) = &mut *object else { continue };
        let empty = members.iter().all(|(name, value)| {
            name == "uri" || *value == Json::Null || *value == Json::Array(Vec::new())
        });
        if (empty || always)
            && let Some((name, value)) = filler
        {
            members.retain(|(member, _)| member != name);
            members.push((name.clone(), value.clone()));
        }
        name_all(object, &mut next);
    }
    objects
}

fn name_all(json: &mut Json, next: &mut u32) {
    match json {
        Json::Array(elements) => elements.iter_mut().for_each(|element| name_all(element, next)),
        Json::Object(members) => {
            for (name, value) in members {
                if name == "uri" {
                    *next += 1;
                    *value = Json::String(format!("urn:o:{next}"));
                } else {
                    name_all(value, next);
                }
            }
        }
        _ => {}
    }
}

pub(crate) fn nested<'s>(shape: &'s Shape, name: &str) -> Option<&'s Shape> {
    match &shape.find_field(name)?.kind {
        FieldKind::Property(Property { value: Value::Object(nested), .. }) => Some(nested),
        _ => None,
    }
}

fn uri(json: &Json) -> Option<&str> {
    let Json::Object(members) = json else { return None };
    members.iter().find_map(|(name, value)| match value {
        Json::String(uri) if name == "uri" => Some(uri.as_str()),
        _ => None,
    })
}

fn gather(shape: &Shape, json: &Json, classes: &mut HashMap<String, Vec<String>>) {
    match json {
        Json::Array(elements) => elements.iter().for_each(|e| gather(shape, e, classes)),
        Json::Object(members) => {
            classes
                .entry(shape.namespace.clone())
                .or_default()
                .extend(uri(json).map(str::to_owned));
            for (name, value) in members {
                if let Some(shape) = nested(shape, name) {
                    gather(shape, value, classes);
                }
            }
        }
        _ => {}
    }
}

/// Replaces some nested objects by references to any object of their class.
fn refer(shape: &Shape, json: &mut Json, classes: &HashMap<String, Vec<String>>, seed: &mut u64) {
    let Json::Object(members) = json else { return };
    for (name, value) in members {
        let Some(shape) = nested(shape, name) else { continue };
        let elements = match value {
            Json::Array(elements) => elements.iter_mut().collect(),
            other => vec![other],
        };
        for element in elements {
            if *element == Json::Null {
                continue;
            }
            refer(shape, element, classes, seed);
            let class = classes.get(&shape.namespace).unwrap();
            if draw(seed, 3) == 0 {
                let uri = class.get(draw(seed, class.len())).unwrap().clone();
                *element = Json::Object(vec![("uri".to_owned(), Json::String(uri))]);
            }
        }
    }
}
