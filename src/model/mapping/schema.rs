//! Writes the JSON Schema (2020-12) of one object.
use super::{
    AcceptedForm, Codes, Detail, Entry, Field, FieldKind, Form, KeyScope, LanguageMap, Level,
    ListedValue, MapMember, Mapping, Property, Reading, Shape, UnknownFields, format_language_tag,
};
use penstock_base::json::Json as Code;
use serde_json::{Map, Value as Json, json};

/// A regular expression that all language tags match (RFC 5646, 2.1).
const LANGUAGE_TAG: &str = "^[A-Za-z]{1,8}(-[A-Za-z0-9]{1,8})*$";

/// A regular expression for the names of a map that are integers.
const INTEGER: &str = "^-?(0|[1-9][0-9]*)$";

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
    add_required(&mut schema, mapping.root.level());
    Json::Object(schema)
}

/// Returns `properties` and `additionalProperties` of a shape, and its natural key in the annotations `x-key` and
/// `x-keyScope`.
fn build_members(shape: &Shape, accepts_others: bool) -> Map<String, Json> {
    let mut properties = Map::new();
    if shape.find_field("uri").is_none() {
        properties.insert("uri".to_owned(), build_uri_schema(shape));
    }
    let mut members = build_level(shape, shape.level(), properties, accepts_others);
    if let Some(key) = shape.key_fields().filter(|_| shape.map_member().is_none()) {
        members.insert("x-key".to_owned(), json!(shape.key_names()));
        if key.scope == KeyScope::Parent {
            members.insert("x-keyScope".to_owned(), json!("parent"));
        }
    }
    members
}

/// Returns `properties`, which the members of this level join, and `additionalProperties`.
fn build_level(
    shape: &Shape,
    level: Level<'_>,
    mut properties: Map<String, Json>,
    accepts_others: bool,
) -> Map<String, Json> {
    for (name, entry) in level.entries() {
        let schema = match entry {
            Entry::Field(_, field) => build_field_schema(shape, field, accepts_others),
            Entry::Group(inner) => {
                let (mut kinds, must_be_given) = (vec!["object"], inner.has_required());
                if !must_be_given {
                    add_kinds(&mut kinds, inner.absent().iter().filter_map(ListedValue::json_type));
                }
                let mut schema = Map::new();
                schema.insert("type".to_owned(), build_type(&kinds, must_be_given));
                schema.append(&mut build_level(shape, inner, Map::new(), accepts_others));
                add_required(&mut schema, inner);
                Json::Object(schema)
            }
        };
        properties.insert(name.to_owned(), schema);
    }
    let mut members = Map::new();
    members.insert("properties".to_owned(), Json::Object(properties));
    members.insert("additionalProperties".to_owned(), json!(accepts_others));
    members
}

/// Returns the members that an object needs: required fields, and groups with one.
fn list_required(level: Level<'_>) -> Vec<&str> {
    let is_required = |entry: &Entry<'_>| match entry {
        Entry::Field(_, field) => field.must_be_given(),
        Entry::Group(inner) => inner.has_required(),
    };
    level.entries().filter(|(_, entry)| is_required(entry)).map(|(name, _)| name).collect()
}

fn add_required(schema: &mut Map<String, Json>, level: Level<'_>) {
    let required = list_required(level);
    if !required.is_empty() {
        schema.insert("required".to_owned(), json!(required));
    }
}

fn build_uri_schema(shape: &Shape) -> Json {
    let mut schema = json!({
        "type": ["string", "null"],
        "format": "iri",
        "description": match shape.key_names().as_slice() {
            _ if shape.map_member().is_some() => {
                "The URI of the object; when it is left out, its name in the map identifies it".to_owned()
            }
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
    if let Some((shape, map)) = property.map() {
        return build_map_schema(property, (shape, map), accepts_others);
    }
    let (mut kinds, mut value) = build_value_schema(property, accepts_others);
    let mut array_kinds = vec!["array"];
    let mut schema = Map::new();
    if let Some(reading) = &property.reading {
        add_accepted(reading, property.is_ordered, &mut kinds, &mut value);
        add_kinds(&mut array_kinds, reading.absent.iter().filter_map(ListedValue::json_type));
        if let Some(default) = &reading.default {
            schema.insert("default".to_owned(), to_serde(default));
        }
    }
    let must_be_given = property.must_be_given();
    if property.is_array {
        schema.insert("type".to_owned(), build_type(&array_kinds, must_be_given));
        schema.insert("description".to_owned(), json!(describe_property(property)));
        if property.required {
            schema.insert("minItems".to_owned(), json!(1));
        }
        let mut items = Map::new();
        items.insert("type".to_owned(), build_type(&kinds, true));
        items.extend(value);
        schema.insert("items".to_owned(), Json::Object(items));
    } else {
        schema.insert("type".to_owned(), build_type(&kinds, must_be_given));
        schema.insert("description".to_owned(), json!(describe_property(property)));
        schema.extend(value);
    }
    Json::Object(schema)
}

/// Returns the schema of a map. A member may be `null`, which is the same as leaving it out.
fn build_map_schema(
    property: &Property,
    (shape, map): (&Shape, MapMember<'_>),
    accepts_others: bool,
) -> Json {
    let member = if let Some(value) = shape.fields.first().filter(|_| map.value.is_some()) {
        build_field_schema(shape, value, accepts_others)
    } else {
        let (mut kinds, mut member) = build_value_schema(property, accepts_others);
        if let Some(Json::Array(forms)) = member.get_mut("anyOf") {
            forms.push(json!({"type": "null"}));
        }
        if let Some(reading) = &property.reading {
            add_accepted(reading, false, &mut kinds, &mut member);
        }
        member.insert("type".to_owned(), build_type(&kinds, false));
        Json::Object(member)
    };
    let mut kinds = vec!["object"];
    if let Some(reading) = &property.reading {
        add_kinds(&mut kinds, reading.absent.iter().filter_map(ListedValue::json_type));
    }
    let mut schema = Map::new();
    schema.insert("type".to_owned(), build_type(&kinds, property.must_be_given()));
    schema.insert("description".to_owned(), json!(describe_property(property)));
    if let Some(default) = property.default_value() {
        schema.insert("default".to_owned(), to_serde(default));
    }
    if map.key.value.kind().form == Form::Number {
        schema.insert("propertyNames".to_owned(), json!({ "pattern": INTEGER }));
    }
    schema.insert("additionalProperties".to_owned(), member);
    if property.required {
        schema.insert("minProperties".to_owned(), json!(1));
    }
    Json::Object(schema)
}

/// Adds what senders may write besides the canonical form to the types of a value and to its schema. An element of an ordered
/// array cannot be without a value.
fn add_accepted(
    reading: &Reading,
    is_in_ordered: bool,
    kinds: &mut Vec<&'static str>,
    schema: &mut Map<String, Json>,
) {
    let listed = if is_in_ordered { &[][..] } else { reading.absent.as_slice() };
    let mut forms = Vec::new();
    add_kinds(&mut forms, reading.accept.iter().flat_map(AcceptedForm::json_types));
    let mut accepted = forms.clone();
    add_kinds(&mut accepted, listed.iter().filter_map(ListedValue::json_type));
    if accepted.contains(&"string") {
        schema.remove("format");
    }
    add_kinds(kinds, accepted);
    let absent = || listed.iter().map(|listed| to_serde(listed.json()));
    if let Some(Json::Array(codes)) = schema.get_mut("enum") {
        codes.extend(absent());
    }
    // A code in another form is none of the listed values.
    if !forms.is_empty()
        && let Some(codes) = schema.remove("enum")
    {
        let codes = json!([{ "enum": codes }, { "type": forms }]);
        schema.insert("anyOf".to_owned(), codes);
        return;
    }
    if listed.is_empty() {
        return;
    }
    if let Some(Json::Array(forms)) = schema.get_mut("anyOf") {
        forms.push(json!({"enum": absent().collect::<Vec<_>>()}));
    }
}

fn add_kinds(kinds: &mut Vec<&'static str>, more: impl IntoIterator<Item = &'static str>) {
    for kind in more {
        if !kinds.contains(&kind) {
            kinds.push(kind);
        }
    }
}

fn to_serde(json: &Code) -> Json {
    serde_json::from_str(&json.to_string()).unwrap_or_default()
}

fn build_type(kinds: &[&str], required: bool) -> Json {
    match kinds {
        [kind] if required => json!(kind),
        _ if required => json!(kinds),
        _ => json!([kinds, &["null"][..]].concat()),
    }
}

fn describe_property(property: &Property) -> String {
    let predicate = &property.predicate;
    let described = match property.value.detail() {
        Detail::Language(tag) => format!("{predicate} in the language {tag}"),
        Detail::Datatype(datatype) => format!("{predicate} of the datatype {datatype}"),
        Detail::Objects(shape) => {
            format!("{predicate} leading to objects of the namespace {}", shape.namespace)
        }
        Detail::None => predicate.to_string(),
    };
    if property.is_ordered { described + ", as a list in this order" } else { described }
}

/// Returns the types of one value, and the other members of its schema.
fn build_value_schema(
    property: &Property,
    accepts_others: bool,
) -> (Vec<&'static str>, Map<String, Json>) {
    if let Some(codes) = &property.codes {
        return build_code_schema(codes, !property.is_array && !property.must_be_given());
    }
    let (kinds, format) = property.value.kind().json_schema;
    let mut more = Map::new();
    if let Some(map) = property.value.language_map() {
        more = build_text_schemas(map, property);
    }
    if let Some(format) = format {
        more.insert("format".to_owned(), json!(format));
    }
    if let Some(shape) = property.value.shape() {
        more = build_members(shape, accepts_others);
        let required = list_required(shape.level());
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
    (kinds.to_vec(), more)
}

/// Returns what the schema of a language map has for its texts.
fn build_text_schemas(map: &LanguageMap, property: &Property) -> Map<String, Json> {
    let listed = property.reading.iter().flat_map(|reading| &reading.absent);
    let absent: Vec<&'static str> = listed.filter_map(ListedValue::json_type).collect();
    let mut texts = vec!["string"];
    add_kinds(&mut texts, absent.iter().copied());
    let text = if map.has_arrays {
        let mut arrays = vec!["array"];
        add_kinds(&mut arrays, absent);
        json!({"type": build_type(&arrays, false), "items": {"type": build_type(&texts, true)}})
    } else {
        json!({"type": build_type(&texts, false)})
    };
    let mut schema = Map::new();
    if map.languages.is_empty() {
        schema.insert("propertyNames".to_owned(), json!({ "pattern": LANGUAGE_TAG }));
        schema.insert("additionalProperties".to_owned(), text);
    } else {
        let tags = map.languages.iter().map(|tag| format_language_tag(tag).into_owned());
        let properties: Map<String, Json> = tags.map(|tag| (tag, text.clone())).collect();
        let patterns = map.languages.iter().map(|tag| build_tag_pattern(tag));
        let patterns: Map<String, Json> = patterns.map(|tag| (tag, text.clone())).collect();
        schema.insert("properties".to_owned(), Json::Object(properties));
        schema.insert("patternProperties".to_owned(), Json::Object(patterns));
        schema.insert("additionalProperties".to_owned(), json!(false));
    }
    if property.required {
        schema.insert("minProperties".to_owned(), json!(1));
    }
    schema
}

/// Returns a regular expression (ECMA-262) that matches a language tag in any case.
fn build_tag_pattern(tag: &str) -> String {
    let any_case = |character: char| {
        if character.is_ascii_alphabetic() {
            format!("[{}{}]", character.to_ascii_uppercase(), character.to_ascii_lowercase())
        } else {
            character.to_string()
        }
    };
    let letters: String = tag.chars().map(any_case).collect();
    format!("^{letters}$")
}

/// Returns the types of a code, and the other members of its schema.
fn build_code_schema(codes: &Codes, is_nullable: bool) -> (Vec<&'static str>, Map<String, Json>) {
    let Some(list) = codes.list() else { return (vec!["string"], Map::new()) };
    let (mut kinds, mut values) = (Vec::new(), Vec::new());
    for (code, _) in list.iter() {
        let (kind, value) = match code {
            Code::String(text) => ("string", json!(text)),
            Code::Bool(flag) => ("boolean", json!(flag)),
            Code::Number(digits) => {
                let is_whole = !digits.contains(['.', 'e', 'E']);
                let number = serde_json::from_str(digits).unwrap_or_default();
                (if is_whole { "integer" } else { "number" }, number)
            }
            _ => continue,
        };
        if !kinds.contains(&kind) {
            kinds.push(kind);
        }
        values.push(value);
    }
    values.extend(is_nullable.then_some(Json::Null));
    (kinds, Map::from_iter([("enum".to_owned(), Json::Array(values))]))
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
  limits:
    type: group
    fields:
      low: {type: integer, path: ex:low}
      more: {type: group, fields: {high: {type: integer, path: ex:high, required: true}}}
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
                "limits": {
                    "type": "object",
                    "properties": {
                        "low": {"type": ["integer", "null"], "description": "<http://e/low>"},
                        "more": {
                            "type": "object",
                            "properties": {
                                "high": {"type": "integer", "description": "<http://e/high>"},
                            },
                            "additionalProperties": false,
                            "required": ["high"],
                        },
                    },
                    "additionalProperties": false,
                    "required": ["more"],
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
            "required": ["name", "at", "tags", "limits"],
        });
        assert_eq!(build_json_schema("Plants", &mapping), expected);
    }

    #[test]
    fn the_schema_accepts_what_senders_may_write() {
        let mapping = compile(
            "
type: object
path: Plant:.
fields:
  flow: {type: number, path: <urn:flow>, required: true, default: 1.50, accept: text, absent: [false]}
  at: {type: dateTime, path: <urn:at>, required: true, accept: unix}
  tags: {type: array, path: <urn:tag>, absent: '', elements: {type: integer, values: [1, 2]}}
  state: {type: string, path: <urn:state>, required: true, default: a, values: [a, b]}
  level: {type: integer, path: <urn:level>, values: [1, 2], accept: [text, {decimal: '.', group: ','}], absent: NA}
  device: {type: group, absent: ['', false], fields: {serial: {type: string, path: <urn:serial>}}}
",
        )
        .unwrap();
        let schema = build_json_schema("Plants", &mapping);
        assert_eq!(schema["required"], json!(["at"]));
        let properties = &schema["properties"];
        assert_eq!(properties["flow"]["type"], json!(["number", "string", "boolean", "null"]));
        assert_eq!(properties["flow"]["default"].to_string(), "1.50");
        let at = json!({"type": ["string", "number"], "description": "<urn:at>"});
        assert_eq!(properties["at"], at);
        assert_eq!(properties["tags"]["type"], json!(["array", "string", "null"]));
        assert_eq!(properties["tags"]["items"]["enum"], json!([1, 2, ""]));
        assert_eq!(properties["state"]["type"], json!(["string", "null"]));
        assert_eq!(properties["state"]["enum"], json!(["a", "b", null]));
        let level = &properties["level"];
        assert_eq!(level["enum"], Json::Null);
        assert_eq!(level["anyOf"], json!([{"enum": [1, 2, null, "NA"]}, {"type": ["string"]}]));
        assert_eq!(level["type"], json!(["integer", "string", "null"]));
        assert_eq!(properties["device"]["type"], json!(["object", "string", "boolean", "null"]));
    }

    #[test]
    fn the_schema_of_texts_and_ordered_arrays_accepts_what_an_ingestion_accepts() {
        let mapping = compile(
            "
type: object
path: Plant:.
absent: [false]
fields:
  title: {type: languageMap, path: <urn:title>, languages: [en, de-AT]}
  notes: {type: languageMap, path: <urn:note>, elements: array}
  steps: {type: array, ordered: true, path: <urn:step>, absent: ['', false], elements: {type: date, accept: unix}}
  days: {type: array, path: <urn:day>, absent: '', elements: date}
  codes: {type: array, ordered: true, path: <urn:code>, absent: 0, elements: {type: integer, values: [1, 2]}}
",
        )
        .unwrap();
        let schema = build_json_schema("Plants", &mapping);
        let properties = &schema["properties"];
        let text = json!({"type": ["string", "boolean", "null"]});
        let title = &properties["title"];
        assert_eq!(title["properties"], json!({"en": text, "de-AT": text}));
        let patterns = json!({"^[Ee][Nn]$": text, "^[Dd][Ee]-[Aa][Tt]$": text});
        assert_eq!(title["patternProperties"], patterns);
        assert_eq!(title["additionalProperties"], json!(false));
        let texts = json!({
            "type": ["array", "boolean", "null"],
            "items": {"type": ["string", "boolean"]},
        });
        assert_eq!(properties["notes"]["additionalProperties"], texts);
        let steps = &properties["steps"];
        assert_eq!(steps["type"], json!(["array", "string", "boolean", "null"]));
        assert_eq!(steps["items"], json!({"type": ["string", "number"]}));
        assert_eq!(properties["days"]["items"], json!({"type": "string"}));
        let codes = &properties["codes"]["items"];
        assert_eq!(*codes, json!({"type": "integer", "enum": [1, 2]}));
    }

    #[test]
    fn the_members_of_a_map_have_one_schema() {
        let config = "type: object\npath: A:.\nfields:\n  levels: {type: map, required: true, path: <urn:level>/Level:., \
                      key: {path: <urn:code>, type: integer}, elements: {type: number, path: <urn:value>}}\n";
        let schema = build_json_schema("A", &compile(config).unwrap());
        assert_eq!(
            schema["properties"]["levels"],
            json!({
                "type": "object",
                "description": "<urn:level> leading to objects of the namespace Level",
                "propertyNames": {"pattern": INTEGER},
                "additionalProperties": {"type": ["number", "null"], "description": "<urn:value>"},
                "minProperties": 1,
            })
        );
        let config = config.replace(
            "{type: number, path: <urn:value>}",
            "{type: object, fields: {value: {type: number, path: <urn:value>}}}",
        );
        let schema = build_json_schema("A", &compile(&config).unwrap());
        let member = &schema["properties"]["levels"]["additionalProperties"];
        assert_eq!(member["type"], json!(["object", "null"]));
        let names: Vec<&String> = member["properties"].as_object().unwrap().keys().collect();
        assert_eq!(names, ["uri", "value"]);
        assert_eq!(member["x-key"], Json::Null);
    }
}
