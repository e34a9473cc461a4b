//! Generates data that fits a mapping.
use crate::{codes, readings};
use penstock_base::json::Json;
use penstock_model::mapping::{Field, Literal, Property, Shape, Value};
use proptest::collection::{btree_map, vec};
use proptest::prelude::*;
use std::collections::HashMap;

/// The languages of generated language maps, in the order of the view.
pub(crate) const LANGUAGES: [&str; 3] = ["de", "de-AT", "en"];

/// The URI of the object that [`number`] numbers first.
pub(crate) const ROOT: &str = "urn:o:1";

/// Generates shapes, each with data that fits it.
pub(crate) fn with<D: Strategy>(
    shapes: impl Strategy<Value = Shape>,
    data: impl Fn(&Shape) -> D,
) -> impl Strategy<Value = (Shape, D::Value)> {
    shapes.prop_flat_map(move |shape| {
        let data = data(&shape);
        (Just(shape), data)
    })
}

/// Generates objects, some of them with a URI.
pub(crate) fn objects(shape: &Shape) -> impl Strategy<Value = Vec<Json>> + use<> {
    let shape = shape.clone();
    vec(object(&shape, false), 1..4).prop_map(move |objects| fill(&shape, objects))
}

/// Generates objects that all have a URI, including nested ones.
pub(crate) fn named_objects(shape: &Shape) -> impl Strategy<Value = Vec<Json>> + use<> {
    let shape = shape.clone();
    vec(object(&shape, true), 1..4).prop_map(move |objects| fill(&shape, objects))
}

/// As `named_objects`, with some nested objects replaced by references to others of their class.
pub(crate) fn linked_objects(shape: &Shape) -> impl Strategy<Value = Vec<Json>> + use<> {
    let shape = shape.clone();
    (vec(object(&shape, true), 1..6), any::<u64>()).prop_map(move |(mut objects, seed)| {
        let name = shape.find_field("name").unwrap();
        for object in &mut objects {
            name.set_value(object, Some(Json::String("x".to_owned())));
        }
        let mut objects = number(objects);
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

/// Generates two versions of the same objects, whose nested objects have no URIs.
pub(crate) fn unnamed_versions(shape: &Shape) -> impl Strategy<Value = [Vec<Json>; 2]> + use<> {
    versions(shape).prop_map(|mut versions| {
        for object in versions.iter_mut().flatten() {
            let Json::Object(members) = object else { continue };
            for (_, value) in members {
                remove_uris(value);
            }
        }
        versions
    })
}

fn remove_uris(json: &mut Json) {
    match json {
        Json::Array(elements) => elements.iter_mut().for_each(remove_uris),
        Json::Object(members) => {
            members.retain(|(name, _)| name != "uri");
            for (_, value) in members {
                remove_uris(value);
            }
        }
        _ => {}
    }
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
    let mut all = uri.prop_map(|uri| Json::Object(Vec::from_iter(uri))).boxed();
    for (_, field, property) in shape.iter_properties() {
        let field = field.clone();
        let value = if property.required || property.default_value().is_some() {
            value(property, named).prop_map(Some).boxed()
        } else {
            prop_oneof![4 => value(property, named).prop_map(Some), 1 => Just(None), 1 => Just(Some(Json::Null))]
                .boxed()
        };
        all = (all, value)
            .prop_map(move |(mut all, value)| {
                if value.is_some() {
                    field.set_value(&mut all, value);
                }
                all
            })
            .boxed();
    }
    all
}

/// Generates an object with the URI [`ROOT`], a name, and the values that `generate` has for its fields.
pub(crate) fn root_object(
    shape: &Shape,
    generate: impl Fn(&Property) -> Option<BoxedStrategy<Json>>,
) -> BoxedStrategy<Json> {
    let mut all = Just(Json::Object(vec![
        ("uri".to_owned(), Json::String(ROOT.to_owned())),
        ("name".to_owned(), Json::String("x".to_owned())),
    ]))
    .boxed();
    for (_, field, property) in shape.iter_properties() {
        let Some(value) = generate(property) else { continue };
        let field = field.clone();
        all = (all, value)
            .prop_map(move |(mut all, value)| {
                field.set_value(&mut all, Some(value));
                all
            })
            .boxed();
    }
    all.prop_map(|object| number(vec![object]).pop().unwrap()).boxed()
}

/// Generates a value of a field.
pub(crate) fn value(property: &Property, named: bool) -> BoxedStrategy<Json> {
    if property.map().is_some() {
        return members(property, named);
    }
    let one = match &property.value {
        _ if property.codes.is_some() => codes::value(property.codes.as_ref().unwrap()),
        Value::Resource => "[a-z]{1,3}:[a-z0-9]{0,3}(/[a-z0-9]{0,3})?(#[a-z0-9]{0,2})?"
            .prop_map(Json::String)
            .boxed(),
        Value::Object(shape) => object(shape, named),
        Value::Literal(kind) => literal(kind),
    };
    let owner = property.clone();
    let one = one.prop_map(move |one| readings::to_canonical(&owner, one)).boxed();
    // A field with a default always has a value.
    let minimum = usize::from(property.required || property.default_value().is_some());
    let value =
        if property.is_array { vec(one, minimum..4).prop_map(Json::Array).boxed() } else { one };
    match property.default_value() {
        Some(default) => prop_oneof![2 => value, 1 => Just(default.clone())].boxed(),
        None => value,
    }
}

/// Generates the members of a map.
fn members(map: &Property, named: bool) -> BoxedStrategy<Json> {
    let (shape, member) = map.map().unwrap();
    let name = if member.key.value == Value::Literal(Literal::Integer) {
        any::<i32>().prop_map(|number| number.to_string()).boxed()
    } else {
        // The name `uri` would be numbered as a URI.
        "[ -~ä水]{1,5}".prop_filter("a name", |name| !["uri", ".", ".."].contains(&&**name)).boxed()
    };
    let one = match member.value {
        None => {
            let fields = shape.fields.iter().take(member.key_index).cloned();
            let inner = Shape::new("Inner", fields.collect());
            let one = object(&inner, named);
            one.prop_map(move |one| fill(&inner, vec![one]).pop().unwrap()).boxed()
        }
        Some((_, inner)) => value(inner, named),
    };
    let one = prop_oneof![4 => one, 1 => Just(Json::Null)];
    btree_map(name, one, 0..4).prop_map(|map| Json::Object(map.into_iter().collect())).boxed()
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
        Literal::Scalar => prop_oneof![
            2 => literal(&Literal::String),
            1 => literal(&Literal::Number),
            1 => literal(&Literal::Integer),
            1 => literal(&Literal::Boolean),
        ]
        .boxed(),
        Literal::Json => prop_oneof![2 => literal(&Literal::Scalar), 3 => nested_json()].boxed(),
        Literal::LanguageMap(map) => texts(map.has_arrays),
    }
}

/// Generates arrays and objects with at most one value each, so that [`shuffle`] does not change them.
fn nested_json() -> BoxedStrategy<Json> {
    let leaf = prop_oneof![
        3 => literal(&Literal::Scalar),
        1 => Just(Json::Null),
        1 => Just(Json::Array(Vec::new())),
        1 => Just(Json::Object(Vec::new())),
    ];
    let nested = leaf.prop_recursive(4, 4, 1, |inner| {
        let named = ("[a-c \"]{0,3}", inner.clone());
        prop_oneof![
            inner.prop_map(|element| Json::Array(vec![element])),
            named.prop_map(|member| Json::Object(vec![member])),
        ]
    });
    nested.prop_filter("a field without a value", |json| *json != Json::Null).boxed()
}

/// Generates a language map in the order of the view.
fn texts(has_arrays: bool) -> BoxedStrategy<Json> {
    let text = || literal(&Literal::String);
    let one = if has_arrays { vec(text(), 1..3).prop_map(Json::Array).boxed() } else { text() };
    vec(prop_oneof![3 => one.prop_map(Some), 1 => Just(None)], LANGUAGES.len())
        .prop_filter("a map without a text", |texts| texts.iter().any(Option::is_some))
        .prop_map(|texts| {
            let texts = LANGUAGES.iter().zip(texts);
            let texts = texts.filter_map(|(tag, text)| Some(((*tag).to_owned(), text?)));
            Json::Object(texts.collect())
        })
        .boxed()
}

/// Returns a field and a value for it, so that an object is not empty.
fn first_value(shape: &Shape) -> Option<(&Field, Json)> {
    shape.iter_properties().next().map(|(_, field, property)| {
        let one = match &property.value {
            _ if property.codes.is_some() => codes::first_value(property.codes.as_ref().unwrap()),
            Value::Resource => Json::String("urn:r".to_owned()),
            Value::Object(_) => Json::Object(Vec::new()),
            Value::Literal(Literal::Number | Literal::Integer) => Json::Number("1".to_owned()),
            Value::Literal(Literal::Boolean) => Json::Bool(true),
            Value::Literal(Literal::Date) => Json::String("2026-01-01".to_owned()),
            Value::Literal(Literal::DateTime) => Json::String("2026-01-01T00:00:00Z".to_owned()),
            Value::Literal(Literal::LanguageMap(map)) => {
                let text = Json::String("x".to_owned());
                let text = if map.has_arrays { Json::Array(vec![text]) } else { text };
                Json::Object(vec![("en".to_owned(), text)])
            }
            Value::Literal(_) => Json::String("x".to_owned()),
        };
        let one = match (&property.value, one) {
            (Value::Object(_), Json::Object(_)) => {
                Json::Object(vec![("uri".to_owned(), Json::Null)])
            }
            (_, one) => one,
        };
        (field, if property.is_array { Json::Array(vec![one]) } else { one })
    })
}

/// Returns whether something is stored for what a field has.
pub(crate) fn is_value(property: &Property, json: &Json) -> bool {
    match (json, property.map()) {
        (Json::Null, _) => false,
        (Json::Array(elements), _) if property.is_array => !elements.is_empty(),
        (Json::Object(members), Some((_, map))) => {
            members.iter().any(|(_, member)| match map.value {
                Some((_, inner)) => is_value(inner, member),
                None => *member != Json::Null,
            })
        }
        _ => true,
    }
}

/// Returns whether an object has a value.
pub(crate) fn has_value(shape: &Shape, object: &Json) -> bool {
    shape.iter_properties().any(|(_, field, property)| {
        field.value_in(object).is_some_and(|value| is_value(property, value))
    })
}

/// Gives a value to each empty root, and a unique URI to each object that needs one.
fn fill(shape: &Shape, mut objects: Vec<Json>) -> Vec<Json> {
    for object in &mut objects {
        if !has_value(shape, object)
            && let Some((field, value)) = first_value(shape)
        {
            field.set_value(object, Some(value));
        }
    }
    number(objects)
}

/// Gives a unique URI to each object that needs one.
pub(crate) fn number(mut objects: Vec<Json>) -> Vec<Json> {
    let mut next = 0;
    for object in &mut objects {
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
        Json::Object(_) => {
            classes
                .entry(shape.namespace.clone())
                .or_default()
                .extend(uri(json).map(str::to_owned));
            for (field, _, nested) in shape.iter_nested() {
                if let Some(value) = field.value_in(json) {
                    gather(nested, value, classes);
                }
            }
        }
        _ => {}
    }
}

/// Replaces some nested objects by references to any object of their class.
fn refer(shape: &Shape, json: &mut Json, classes: &HashMap<String, Vec<String>>, seed: &mut u64) {
    for (field, _, shape) in shape.iter_nested() {
        let Some(value) = field.value_mut(json) else { continue };
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
