//! Builds an object that a mapping accepts, for the documentation of a Business Object.
use super::{Field, Form, LanguageMap, Mapping, Property, Shape, Value, format_language_tag};
use penstock_base::json::{self, Json};

/// The number of fields of an object that needs none.
const SHOWN_FIELDS: usize = 3;

/// The languages of a language map that may have all; it has the first that no other field has.
const LANGUAGES: &[&str] = &["en", "de", "fr", "es"];

/// Returns an object with the fields that the mapping requires and those of its key, otherwise with its first fields. A
/// field that holds objects is only one of them if there is no other.
pub fn build_example(mapping: &Mapping) -> Json {
    build_object(&mapping.root)
}

fn build_object(shape: &Shape) -> Json {
    let key = shape.key_names();
    let is_needed = |field: &&Field| field.is_required() || key.contains(&field.name.as_str());
    let needs_any = shape.named_fields().iter().any(|field| is_needed(&field));
    let named = shape.named_fields().iter();
    let properties = named.filter_map(|field| Some((field, field.property()?)));
    let is_object = |property: &Property| property.value.shape().is_some();
    let has_values = properties.clone().any(|(_, property)| !is_object(property));
    let count = match (needs_any, has_values) {
        (true, _) => usize::MAX,
        (false, true) => SHOWN_FIELDS,
        (false, false) => 1,
    };
    let mut object = Json::Object(Vec::new());
    let shown = properties
        .filter(
            |(field, property)| {
                if needs_any { is_needed(field) } else { !has_values || !is_object(property) }
            },
        )
        .take(count);
    for (field, property) in shown {
        field.set_value(&mut object, Some(build_value(shape, property)));
    }
    object
}

fn build_value(shape: &Shape, property: &Property) -> Json {
    let value = match &property.value {
        Value::Object(nested) => match nested.map_member().and_then(|map| map.value) {
            Some((_, value)) => build_value(nested, value),
            None => build_object(nested),
        },
        value if let Some(map) = value.language_map() => build_texts(shape, property, map),
        value => {
            let list = property.codes.as_ref().and_then(|codes| codes.list());
            let code = list.and_then(|list| list.iter().next()).map(|(code, _)| code.clone());
            let parse = || json::parse(value.kind().example.as_bytes(), 1).unwrap_or(Json::Null);
            code.unwrap_or_else(parse)
        }
    };
    match property.map() {
        Some((_, map)) => {
            let name = if map.key.value.kind().form == Form::Number { "1" } else { "name" };
            Json::Object(vec![(name.to_owned(), value)])
        }
        None if property.is_array => Json::Array(vec![value]),
        None => value,
    }
}

fn build_texts(shape: &Shape, property: &Property, map: &LanguageMap) -> Json {
    let own: Vec<&str> = map.languages.iter().map(String::as_str).collect();
    let languages = if own.is_empty() { LANGUAGES } else { own.as_slice() };
    let is_owned =
        |tag: &str| shape.iter_properties().any(|(_, _, other)| other.owns_language(property, tag));
    let tag = languages.iter().copied().find(|tag| !is_owned(tag)).unwrap_or("en");
    let text = Json::String("text".to_owned());
    let texts = if map.has_arrays { Json::Array(vec![text]) } else { text };
    Json::Object(vec![(format_language_tag(tag).into_owned(), texts)])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mapping::compile;

    fn example(config: &str) -> String {
        build_example(&compile(config).unwrap()).to_string()
    }

    #[test]
    fn an_example_has_what_the_mapping_requires() {
        let config = "\
type: object
path: Pump:.
key: tag
fields:
  id: {type: id}
  note: {type: string, path: <urn:note>}
  tag: {type: string, required: true, path: <urn:tag>}
  limits: {type: array, required: true, path: <urn:limits>, elements: number}
  size: {type: group, fields: {width: {type: integer, required: true, path: <urn:width>}}}
  position:
    type: object
    required: true
    path: <urn:position>/Position:.
    fields:
      site: {type: resource, path: <urn:site>}
      deep: {type: object, path: \"<urn:deep>/Deep:.\", fields: {a: {type: date, path: <urn:a>}}}
";
        let expected = r#"{"tag":"text","limits":[12.5],"size":{"width":1},"position":{"site":"https://example.com/1"}}"#;
        assert_eq!(example(config), expected);
        let config =
            "{type: object, path: \"Pump:.\", fields: {a: {type: boolean, path: <urn:a>}}}";
        assert_eq!(example(config), r#"{"a":true}"#);
        let config = "{type: object, path: \"Pump:.\", fields: {names: {type: languageMap, path: <urn:n>}, \
                      name: {type: string, language: EN, path: <urn:n>}}}";
        assert_eq!(example(config), r#"{"names":{"de":"text"},"name":"text"}"#);
    }

    #[test]
    fn an_example_of_a_mapping_with_only_objects_has_one() {
        let config = "\
type: object
path: Pump:.
fields:
  positions:
    type: array
    path: <urn:position>
    elements:
      type: object
      path: Position:.
      fields:
        site: {type: object, path: \"<urn:site>/Site:.\", fields: {name: {type: string, path: <urn:name>}}}
  maker: {type: object, path: \"<urn:maker>/Maker:.\", fields: {name: {type: string, path: <urn:name>}}}
";
        assert_eq!(example(config), r#"{"positions":[{"site":{"name":"text"}}]}"#);
    }
}
