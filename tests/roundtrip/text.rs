//! JSON as text, and the expected form of an object in the view.
use penstock_base::json::{self, Json, push_pointer};
use penstock_model::mapping::{FieldKind, Property, Shape, Value};
use penstock_resources::ingestion::IngestedObject;

pub(crate) fn write(json: &Json) -> String {
    match json {
        Json::Null => "null".to_owned(),
        Json::Bool(value) => value.to_string(),
        Json::Number(digits) => digits.clone(),
        Json::String(text) => serde_json::to_string(text).unwrap(),
        Json::Array(array) => format!("[{}]", elements(array)),
        Json::Object(members) => {
            let members = members
                .iter()
                .map(|(name, value)| {
                    format!("{}:{}", serde_json::to_string(name).unwrap(), write(value))
                })
                .collect::<Vec<_>>();
            format!("{{{}}}", members.join(","))
        }
    }
}

/// Writes the elements of an array, separated by commas.
pub(crate) fn elements(array: &[Json]) -> String {
    array.iter().map(write).collect::<Vec<_>>().join(",")
}

/// Normalizes JSON text by sorting the elements of each array.
pub(crate) fn normal(text: &str) -> String {
    write(&sorted(json::parse(text.as_bytes(), 128).unwrap()))
}

fn sorted(json: Json) -> Json {
    match json {
        Json::Array(elements) => {
            let mut elements: Vec<Json> = elements.into_iter().map(sorted).collect();
            elements.sort_by_key(write);
            Json::Array(elements)
        }
        Json::Object(members) => {
            Json::Object(members.into_iter().map(|(name, value)| (name, sorted(value))).collect())
        }
        other => other,
    }
}

/// Returns what the view should show of an object: its values with URIs, without `null`, and arrays as sets.
pub(crate) fn expected(
    shape: &Shape,
    given: &Json,
    pointer: &str,
    outcome: &IngestedObject,
) -> String {
    write(&sorted(object(shape, given, pointer, outcome)))
}

fn object(shape: &Shape, given: &Json, pointer: &str, outcome: &IngestedObject) -> Json {
    let Json::Object(members) = given else { panic!("an object is given") };
    let uri = outcome
        .nested
        .iter()
        .find(|nested| nested.pointer == pointer)
        .map_or(&outcome.uri, |nested| &nested.uri);
    let uri = Json::String(uri.clone());
    let mut shown = Vec::new();
    if !shape.fields.iter().any(|field| field.kind == FieldKind::Id && field.name == "uri") {
        shown.push(("uri".to_owned(), uri.clone()));
    }
    for field in &shape.fields {
        let FieldKind::Property(property) = &field.kind else {
            shown.push((field.name.clone(), uri.clone()));
            continue;
        };
        let mut pointer = pointer.to_owned();
        push_pointer(&mut pointer, &field.name);
        let given = members.iter().find(|(name, _)| *name == field.name).map(|(_, value)| value);
        let value = match given {
            None | Some(Json::Null) if property.is_array => Json::Array(Vec::new()),
            None | Some(Json::Null) => continue,
            Some(Json::Array(elements)) => {
                let mut values: Vec<Json> = elements
                    .iter()
                    .enumerate()
                    .map(|(i, element)| one(property, element, &format!("{pointer}/{i}"), outcome))
                    .collect();
                values.sort_by_key(write);
                values.dedup();
                Json::Array(values)
            }
            Some(value) => one(property, value, &pointer, outcome),
        };
        shown.push((field.name.clone(), value));
    }
    Json::Object(shown)
}

fn one(property: &Property, given: &Json, pointer: &str, outcome: &IngestedObject) -> Json {
    match &property.value {
        Value::Object(shape) => object(shape, given, pointer, outcome),
        _ => given.clone(),
    }
}
