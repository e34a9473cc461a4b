//! Writes the JSON Schema (2020-12) of one object.
use super::{Detail, Field, FieldKind, KeyScope, Mapping, Property, Shape, UnknownFields};
use serde_json::{Map, Value as Json, json};

/// Returns the JSON Schema (2020-12) of one object, in the form that a request's `data` accepts and the view returns. A
/// field that is not required may be `null`, which is the same as leaving it out. A nested object may be only its URI,
/// which refers to an existing object.
pub fn build_json_schema(name: &str, mapping: &Mapping) -> Json {
    let mut schema = Map::new();
    schema.insert("$schema".to_owned(), json!("https://json-schema.org/draft/2020-12/schema"));
    schema.insert("title".to_owned(), json!(name));
    schema.insert("type".to_owned(), json!("object"));
    let accepts_others = mapping.unknown_fields == UnknownFields::Ignore;
    schema.append(&mut build_members(&mapping.root, accepts_others));
    let required = list_required_fields(&mapping.root);
    if !required.is_empty() {
        schema.insert("required".to_owned(), json!(required));
    }
    Json::Object(schema)
}

/// Returns `properties` and `additionalProperties` of a shape, and its natural key in the annotations `x-key` and
/// `x-keyScope`.
fn build_members(shape: &Shape, accepts_others: bool) -> Map<String, Json> {
    let mut properties = Map::new();
    if shape.find_field("uri").is_none() {
        properties.insert("uri".to_owned(), build_uri_schema(shape));
    }
    for field in &shape.fields {
        properties.insert(field.name.clone(), build_field_schema(shape, field, accepts_others));
    }
    let mut members = Map::new();
    members.insert("properties".to_owned(), Json::Object(properties));
    members.insert("additionalProperties".to_owned(), json!(accepts_others));
    if let Some(key) = shape.key_fields() {
        members.insert("x-key".to_owned(), json!(shape.key_names()));
        if key.scope == KeyScope::Parent {
            members.insert("x-keyScope".to_owned(), json!("parent"));
        }
    }
    members
}

fn list_required_fields(shape: &Shape) -> Vec<&str> {
    let required = shape.fields.iter().filter(|field| field.is_required());
    required.map(|field| field.name.as_str()).collect()
}

fn build_uri_schema(shape: &Shape) -> Json {
    let mut schema = json!({
        "type": ["string", "null"],
        "format": "iri",
        "description": match shape.key_names().as_slice() {
            [] => "The URI of the object; one is minted when it is left out".to_owned(),
            names => format!("The URI of the object; when it is left out, the key identifies it: {}", names.join(", ")),
        },
    });
    if let (Some(prefix), Json::Object(schema)) = (&shape.uri_prefix, &mut schema) {
        schema.insert("pattern".to_owned(), json!(format!("^{}", escape_pattern(prefix))));
    }
    schema
}

/// Returns a regular expression (ECMA-262) that matches this text.
pub(super) fn escape_pattern(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for character in text.chars() {
        if r"^$\.*+?()[]{}|".contains(character) {
            escaped.push('\\');
        }
        escaped.push(character);
    }
    escaped
}

fn build_field_schema(holder: &Shape, field: &Field, accepts_others: bool) -> Json {
    let FieldKind::Property(property) = &field.kind else { return build_uri_schema(holder) };
    let (kind, value) = build_value_schema(property, accepts_others);
    let mut schema = Map::new();
    if property.is_array {
        schema.insert("type".to_owned(), build_type("array", property.required));
        schema.insert("description".to_owned(), json!(describe_property(property)));
        if property.required {
            schema.insert("minItems".to_owned(), json!(1));
        }
        let mut items = Map::new();
        items.insert("type".to_owned(), json!(kind));
        items.extend(value);
        schema.insert("items".to_owned(), Json::Object(items));
    } else {
        schema.insert("type".to_owned(), build_type(kind, property.required));
        schema.insert("description".to_owned(), json!(describe_property(property)));
        schema.extend(value);
    }
    Json::Object(schema)
}

fn build_type(kind: &str, required: bool) -> Json {
    if required { json!(kind) } else { json!([kind, "null"]) }
}

fn describe_property(property: &Property) -> String {
    let predicate = &property.predicate;
    match property.value.detail() {
        Detail::Language(tag) => format!("{predicate} in the language {tag}"),
        Detail::Datatype(datatype) => format!("{predicate} of the datatype {datatype}"),
        Detail::Objects(shape) => {
            format!("{predicate} leading to objects of the namespace {}", shape.namespace)
        }
        Detail::None => predicate.to_string(),
    }
}

/// Returns the type of one value, and the other members of its schema.
fn build_value_schema(
    property: &Property,
    accepts_others: bool,
) -> (&'static str, Map<String, Json>) {
    let (kind, format) = property.value.kind().json_schema;
    let mut more = Map::new();
    if let Some(format) = format {
        more.insert("format".to_owned(), json!(format));
    }
    if let Some(shape) = property.value.shape() {
        more = build_members(shape, accepts_others);
        let required = list_required_fields(shape);
        if !required.is_empty() {
            let ids = shape.fields.iter().filter(|field| field.kind == FieldKind::Id);
            let ids = ids.map(|field| field.name.as_str()).filter(|name| *name != "uri");
            let reference = |id| json!({"required": [id], "maxProperties": 1});
            let mut forms = vec![json!({ "required": required }), reference("uri")];
            forms.extend(ids.map(reference));
            if !property.is_array && !property.required {
                forms.push(json!({"type": "null"}));
            }
            more.insert("anyOf".to_owned(), json!(forms));
        }
    }
    (kind, more)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mapping::compile;

    #[test]
    fn the_schema_describes_what_the_mapping_accepts() {
        let mapping = compile(
            "
type: object
path: Plant:.
prefixes: {ex: 'http://e/'}
fields:
  key: {type: id}
  name: {type: string, path: ex:name, required: true}
  label: {type: string, path: ex:name, language: de}
  size: {type: number, path: ex:size}
  count: {type: integer, path: ex:count}
  on: {type: boolean, path: ex:on}
  day: {type: date, path: ex:day}
  at: {type: dateTime, path: ex:at, required: true}
  kind: {type: resource, path: ex:kind}
  tags: {type: array, path: ex:tag, required: true}
  units:
    type: array
    elements:
      type: object
      path: ex:unit/Unit:.
      fields:
        id: {type: id}
        code: {type: string, path: ex:code, datatype: ex:code, required: true}
  site:
    type: object
    path: ex:site/Site:.
    fields:
      uri: {type: id}
      name: {type: string, path: ex:name}
",
        )
        .unwrap();
        let uri = build_uri_schema(&mapping.root);
        let expected = json!({
            "$schema": "https://json-schema.org/draft/2020-12/schema",
            "title": "Plants",
            "type": "object",
            "properties": {
                "uri": uri,
                "key": uri,
                "name": {"type": "string", "description": "<http://e/name>"},
                "label": {"type": ["string", "null"], "description": "<http://e/name> in the language de"},
                "size": {"type": ["number", "null"], "description": "<http://e/size>"},
                "count": {"type": ["integer", "null"], "description": "<http://e/count>"},
                "on": {"type": ["boolean", "null"], "description": "<http://e/on>"},
                "day": {"type": ["string", "null"], "description": "<http://e/day>", "format": "date"},
                "at": {"type": "string", "description": "<http://e/at>", "format": "date-time"},
                "kind": {"type": ["string", "null"], "description": "<http://e/kind>", "format": "iri"},
                "tags": {
                    "type": "array", "description": "<http://e/tag>", "minItems": 1,
                    "items": {"type": "string"}
                },
                "units": {
                    "type": ["array", "null"],
                    "description": "<http://e/unit> leading to objects of the namespace Unit",
                    "items": {
                        "type": "object",
                        "properties": {
                            "uri": uri,
                            "id": uri,
                            "code": {
                                "type": "string",
                                "description": "<http://e/code> of the datatype <http://e/code>"
                            },
                        },
                        "additionalProperties": false,
                        "anyOf": [
                            {"required": ["code"]},
                            {"required": ["uri"], "maxProperties": 1},
                            {"required": ["id"], "maxProperties": 1},
                        ],
                    },
                },
                "site": {
                    "type": ["object", "null"],
                    "description": "<http://e/site> leading to objects of the namespace Site",
                    "properties": {
                        "uri": uri,
                        "name": {"type": ["string", "null"], "description": "<http://e/name>"},
                    },
                    "additionalProperties": false,
                },
            },
            "additionalProperties": false,
            "required": ["name", "at", "tags"],
        });
        assert_eq!(build_json_schema("Plants", &mapping), expected);
    }
}
