//! JSON as text, and the expected form of an object in the view.
use penstock_base::json::{self, Json, push_pointer};
use penstock_model::mapping::{Entry, Field, FieldKind, Level, Property, Shape, Value};
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
    assert!(matches!(given, Json::Object(_)), "an object is given");
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
    shown.extend(members(shape.level(), given, pointer, outcome, &uri));
    Json::Object(shown)
}

/// Returns what the view should show of the members of an object, or of a group in it.
fn members(
    level: Level<'_>,
    given: &Json,
    pointer: &str,
    outcome: &IngestedObject,
    uri: &Json,
) -> Vec<(String, Json)> {
    let mut shown = Vec::new();
    for (name, entry) in level.entries() {
        let mut pointer = pointer.to_owned();
        push_pointer(&mut pointer, name);
        let given = given.member(name);
        let property = match entry {
            Entry::Field(_, Field { kind: FieldKind::Property(property), .. }) => property,
            Entry::Field(..) => {
                shown.push((name.to_owned(), uri.clone()));
                continue;
            }
            Entry::Group(inner) => {
                let given = given.unwrap_or(&Json::Null);
                let group = members(inner, given, &pointer, outcome, uri);
                let is_array = |name: &str| {
                    let Some(Entry::Field(_, field)) = inner.find(name) else { return false };
                    field.property().is_some_and(|property| property.is_array)
                };
                // An empty array of a field of the type `json` is a value.
                let is_empty = |(name, value): &(String, Json)| {
                    *value == Json::Array(Vec::new()) && is_array(name)
                };
                if !group.iter().all(is_empty) {
                    shown.push((name.to_owned(), Json::Object(group)));
                }
                continue;
            }
        };
        let value = match given {
            None | Some(Json::Null) if property.is_array => Json::Array(Vec::new()),
            None | Some(Json::Null) => continue,
            Some(Json::Array(elements)) if property.is_array => {
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
        shown.push((name.to_owned(), value));
    }
    shown
}

fn one(property: &Property, given: &Json, pointer: &str, outcome: &IngestedObject) -> Json {
    match &property.value {
        Value::Object(shape) => object(shape, given, pointer, outcome),
        value if value.language_map().is_some() => {
            let Json::Object(texts) = given else { panic!("a language map is given") };
            let distinct = |text: &Json| match text {
                Json::Array(texts) => {
                    let mut texts = texts.clone();
                    texts.sort_by_key(write);
                    texts.dedup();
                    Json::Array(texts)
                }
                text => text.clone(),
            };
            Json::Object(texts.iter().map(|(tag, text)| (tag.clone(), distinct(text))).collect())
        }
        _ => given.clone(),
    }
}
