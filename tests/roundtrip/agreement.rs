//! The view, GraphQL and the export show the same values, with all digits.
use crate::{codes, data, lists, mappings, maps, readings, structures, text};
use penstock_auth::Caller;
use penstock_base::json::{self, Json};
use penstock_config as config;
use penstock_export::ExportRequester;
use penstock_graphql::{GraphqlService, Query};
use penstock_model::ingest::Mode;
use penstock_model::mapping::{
    Entry, Field, FieldKind, LanguageMap, Level, Literal, Property, Shape, Value, compile,
};
use penstock_model::resource::Compiled;
use penstock_model::testing::{ingest_body, list_members, put_definition, render_object};
use penstock_service::gateway::Gateway;
use proptest::prelude::*;
use std::collections::HashMap;
use std::fmt::Write as _;
use std::io::Read as _;
use std::sync::Arc;
use tokio::runtime::Runtime;

/// The number of objects on a page, few so that there are several pages.
const PAGE: usize = 2;

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, ..ProptestConfig::default() })]

    #[test]
    fn graphql_the_view_and_the_export_agree_on_every_value(
        (shape, objects) in data::with(mappings::tree(), data::objects),
    ) {
        // The root has a namespace of its own, so that nested objects do not belong to the Business Object.
        agree(&Shape { namespace: "Root".to_owned(), ..shape }, &objects);
    }

    #[test]
    fn they_agree_on_maps((shape, object) in maps::with_object(maps::simple())) {
        agree(&shape, &[object]);
    }

    #[test]
    fn they_agree_on_ordered_arrays((shape, object) in lists::with_object(lists::simple())) {
        agree(&shape, &[object]);
    }

    #[test]
    fn they_agree_on_maps_and_ordered_arrays_below_objects(
        (shape, object) in structures::with_object(1),
    ) {
        agree(&shape, &[object]);
    }

    #[test]
    fn they_agree_on_objects_nested_in_themselves(
        (shape, objects) in data::with(mappings::linked(), data::linked_objects),
    ) {
        agree(&shape, &objects);
    }
}

/// Runs `work` with a gateway that has a Business Object with this mapping, which may export its changes.
pub(crate) fn with_gateway(
    shape: &Shape,
    exports_changes: bool,
    work: impl FnOnce(&Runtime, &Gateway, &Compiled),
) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let dir = tempfile::tempdir().unwrap();
    let arguments = vec![format!("--service.data-dir={}", dir.path().display())];
    let loaded = config::load(&config::Sources { arguments, ..config::Sources::default() });
    let settings = Arc::new(loaded.unwrap().settings);
    let _entered = runtime.enter();
    let gateway = Gateway::open(settings, &mut |_| {}).unwrap();
    let config = config_of(shape, true).to_string();
    assert_eq!(&compile(&config).unwrap().root, shape, "the configuration describes the shape");
    let definition = serde_json::json!({
        "name": "Any Thing",
        "config": config,
        "pushTargets": [{"bucketName": "bucket"}],
        "exportOnChange": exports_changes,
        "debounce": "1ms",
    });
    let business_object = put_definition(&gateway.catalogue, &definition);
    work(&runtime, &gateway, &business_object);
}

/// Sends the elements of `data`, separated by commas.
pub(crate) fn send(gateway: &Gateway, business_object: &Compiled, mode: Mode, elements: &str) {
    let body = format!("{{\"data\":[{elements}]}}");
    let watch = gateway.catalogue.watch();
    ingest_body(&gateway.store, watch, business_object, mode, &body).unwrap();
}

/// Returns what the view shows of each object, with its URI.
pub(crate) fn view_all(gateway: &Gateway, business_object: &Compiled) -> Vec<(String, String)> {
    let view = |uri: String| {
        let (json, warnings) = render_object(&gateway.store.read(), business_object, &uri);
        assert_eq!(warnings, Vec::<String>::new());
        (uri, json)
    };
    let members = list_members(&gateway.store.read(), business_object);
    members.into_iter().map(view).collect()
}

fn agree(shape: &Shape, objects: &[Json]) {
    with_gateway(shape, false, |runtime, gateway, business_object| {
        send(gateway, business_object, Mode::Add, &text::elements(objects));
        let (uris, views): (Vec<String>, Vec<String>) =
            view_all(gateway, business_object).into_iter().unzip();
        let push = gateway.exporter.push(business_object, ExportRequester::gateway()).unwrap();
        let exported = read_data(gateway, &push.exports.first().unwrap().id);
        assert_eq!(exported, format!("[{}]", views.join(",")));
        let graphql = GraphqlService::new(gateway);
        let client = GraphqlClient { graphql: &graphql, runtime };
        assert_eq!(client.pages(shape), views);
        for (uri, view) in uris.iter().zip(&views) {
            assert_eq!(&client.one(shape, uri), view);
        }
    });
}

/// Returns the `data` of an export.
pub(crate) fn read_data(gateway: &Gateway, id: &str) -> String {
    let mut file = String::new();
    gateway.exporter.open_content(id).unwrap().file.read_to_string(&mut file).unwrap();
    let (_, data) = file.split_once("\"data\":").unwrap();
    data.trim_end().strip_suffix('}').unwrap().trim_end().to_owned()
}

/// Returns the mapping in the form of a client. JSON is valid YAML.
fn config_of(shape: &Shape, is_root: bool) -> serde_json::Value {
    let fields = config_of_fields(shape.level());
    if is_root {
        let path = format!("{}:.", shape.namespace);
        return serde_json::json!({"type": "object", "path": path, "fields": fields});
    }
    serde_json::json!({"type": "object", "fields": fields})
}

fn config_of_fields(level: Level<'_>) -> serde_json::Map<String, serde_json::Value> {
    let config_of = |entry: Entry<'_>| match entry {
        Entry::Field(_, field) => field_of(field),
        Entry::Group(inner) => {
            serde_json::json!({"type": "group", "fields": config_of_fields(inner)})
        }
    };
    level.entries().map(|(name, entry)| (name.to_owned(), config_of(entry))).collect()
}

fn field_of(field: &Field) -> serde_json::Value {
    let FieldKind::Property(property) = &field.kind else {
        return serde_json::json!({"type": "id"});
    };
    if let Some(map) = map_config(property) {
        return map;
    }
    let Property { predicate, is_array: many, is_ordered, value, codes, reading, .. } = property;
    let path = format!("<{}>", predicate.as_str());
    let mut one = match value {
        Value::Resource => serde_json::json!({"type": "resource"}),
        Value::Object(shape) => config_of(shape, false),
        Value::Literal(kind) => match kind {
            Literal::String => serde_json::json!({"type": "string"}),
            Literal::Typed(datatype) => {
                serde_json::json!({"type": "string", "datatype": format!("<{}>", datatype.as_str())})
            }
            Literal::Language(tag) => serde_json::json!({"type": "string", "language": tag}),
            Literal::Number => serde_json::json!({"type": "number"}),
            Literal::Integer => serde_json::json!({"type": "integer"}),
            Literal::Boolean => serde_json::json!({"type": "boolean"}),
            Literal::Date => serde_json::json!({"type": "date"}),
            Literal::DateTime => serde_json::json!({"type": "dateTime"}),
            Literal::Scalar => serde_json::json!({"type": "scalar"}),
            Literal::Json => serde_json::json!({"type": "json"}),
            Literal::LanguageMap(map) => {
                let mut one = serde_json::json!({"type": "languageMap"});
                let members = one.as_object_mut().unwrap();
                if !map.languages.is_empty() {
                    members.insert("languages".to_owned(), map.languages.clone().into());
                }
                if map.has_arrays {
                    members.insert("elements".to_owned(), "array".into());
                }
                one
            }
        },
    };
    let path = match value {
        Value::Object(shape) => format!("{path}/{}:.", shape.namespace),
        _ => path,
    };
    one.as_object_mut().unwrap().insert("path".to_owned(), path.into());
    if let Some(codes) = codes {
        codes::add_to(&mut one, codes);
    }
    let reading = reading.as_deref().cloned().unwrap_or_default();
    readings::add_accept_to(&mut one, &reading);
    let mut field = match (*many, *is_ordered) {
        (false, _) => one,
        (true, false) => serde_json::json!({"type": "array", "elements": one}),
        (true, true) => serde_json::json!({"type": "array", "ordered": true, "elements": one}),
    };
    readings::add_absent_to(&mut field, &reading);
    field
}

/// Returns the definition of a map; `None` for another field.
fn map_config(property: &Property) -> Option<serde_json::Value> {
    let (shape, map) = property.map()?;
    let elements = match map.value {
        None => config_of(shape, false),
        Some((place, _)) => field_of(shape.fields.get(place)?),
    };
    Some(serde_json::json!({
        "type": "map",
        "path": format!("<{}>/{}:.", property.predicate.as_str(), shape.namespace),
        "key": field_of(shape.fields.get(map.key_index)?),
        "elements": elements,
    }))
}

/// A GraphQL client that discovers all names by introspection.
struct GraphqlClient<'a> {
    graphql: &'a GraphqlService,
    runtime: &'a Runtime,
}

/// The fields of each type: their names and the types that they lead to.
type Types = HashMap<String, Vec<(String, String)>>;

impl GraphqlClient<'_> {
    fn ask(&self, document: String) -> Json {
        let query = Query { document, ..Query::default() };
        let answer = self.runtime.block_on(self.graphql.execute(query, &Caller::local()));
        assert!(answer.errors.is_empty(), "{:?}", answer.errors);
        json::parse(answer.data.unwrap().get().as_bytes(), 128).unwrap()
    }

    fn types(&self) -> Types {
        let of = "name ofType { name ofType { name ofType { name } } }";
        let schema = self.ask(format!(
            "{{ __schema {{ types {{ name fields {{ name type {{ {of} }} }} }} }} }}"
        ));
        let Json::Array(types) = get(get(&schema, "__schema"), "types") else { panic!() };
        let fields = |of: &Json| match get(of, "fields") {
            Json::Array(fields) => {
                fields.iter().map(|f| (string(get(f, "name")), named(get(f, "type")))).collect()
            }
            _ => Vec::new(),
        };
        types.iter().map(|of| (string(get(of, "name")), fields(of))).collect()
    }

    /// Reads all objects, page by page, in the form of the view.
    fn pages(&self, shape: &Shape) -> Vec<String> {
        let selection = selection(shape.level(), "AnyThing", &self.types());
        let (mut all, mut after) = (Vec::new(), String::new());
        loop {
            let data = self.ask(format!(
                "{{ anyThingConnection(first: {PAGE}{after}) {{ nodes {selection} \
                 pageInfo {{ endCursor hasNextPage }} }} }}"
            ));
            let page = get(&data, "anyThingConnection");
            let Json::Array(nodes) = get(page, "nodes") else { panic!() };
            all.extend(nodes.iter().map(|node| text::write(&viewed(shape.level(), node))));
            let info = get(page, "pageInfo");
            if *get(info, "hasNextPage") == Json::Bool(false) {
                return all;
            }
            after = format!(", after: {}", text::write(get(info, "endCursor")));
        }
    }

    /// Reads one object by its URI.
    fn one(&self, shape: &Shape, uri: &str) -> String {
        let selection = selection(shape.level(), "AnyThing", &self.types());
        let uri = serde_json::to_string(uri).unwrap();
        let data = self.ask(format!("{{ anyThing(uri: {uri}) {selection} }}"));
        text::write(&viewed(shape.level(), get(&data, "anyThing")))
    }
}

pub(crate) fn get<'j>(json: &'j Json, name: &str) -> &'j Json {
    let Json::Object(members) = json else { panic!("{json} has no {name}") };
    members.iter().find(|(member, _)| member == name).map(|(_, value)| value).unwrap()
}

pub(crate) fn string(json: &Json) -> String {
    let Json::String(text) = json else { panic!("{json} is no string") };
    text.clone()
}

/// Returns the name of the innermost type.
fn named(of: &Json) -> String {
    match get(of, "name") {
        Json::String(name) => name.clone(),
        _ => named(get(of, "ofType")),
    }
}

/// Selects `f0`, `f1`, ... for the members of an object or a group. After the `uri` of an object, the type has them in the
/// same order.
fn selection(level: Level<'_>, type_name: &str, types: &Types) -> String {
    let mut names = types.get(type_name).unwrap().iter();
    let mut text = "{".to_owned();
    if level.is_object() {
        assert_eq!(names.next().unwrap().0, "uri");
        text += " uri";
    }
    for (place, (member, entry)) in level.entries().enumerate() {
        if is_uri(level, member) {
            continue;
        }
        let (name, to) = names.next().unwrap();
        let _ = write!(text, " f{place}: {name}");
        if let Some(map) = find_map(entry) {
            text += &map_selection(map, to, types);
            continue;
        }
        let inner = match entry {
            Entry::Field(_, field) => field.shape().map(Shape::level),
            Entry::Group(inner) => Some(inner),
        };
        text += &inner.map_or_else(String::new, |inner| selection(inner, to, types));
        if find_language_map(entry).is_some() {
            text += TEXT_SELECTION;
        }
    }
    text + " }"
}

/// Returns the property of a map; `None` for another member.
fn find_map(entry: Entry<'_>) -> Option<&Property> {
    let Entry::Field(_, field) = entry else { return None };
    field.property().filter(|property| property.map().is_some())
}

/// Selects the texts of a language map.
const TEXT_SELECTION: &str = " { language value }";

/// Selects the names and the values of a map, whose type has these two fields.
fn map_selection(property: &Property, type_name: &str, types: &Types) -> String {
    let (shape, map) = property.map().unwrap();
    let (value, to) = types.get(type_name).unwrap().get(1).unwrap();
    let inner = match map.value {
        None => selection(shape.level(), to, types),
        Some((_, inner)) if inner.map().is_some() => map_selection(inner, to, types),
        Some((_, inner)) if inner.value.language_map().is_some() => TEXT_SELECTION.to_owned(),
        Some(_) => String::new(),
    };
    format!(" {{ key {value}{inner} }}")
}

/// Converts the names and values of a map to the form of the view; `None` without members.
fn viewed_map(property: &Property, nodes: &Json) -> Option<Json> {
    let (shape, map) = property.map().unwrap();
    let Json::Array(nodes) = nodes else { panic!("{nodes} is no list") };
    let mut members = Vec::new();
    for node in nodes {
        let name = match get(node, "key") {
            Json::String(name) | Json::Number(name) => name.clone(),
            other => panic!("{other} is no name"),
        };
        let value = get(node, "value");
        let value = match map.value {
            None => Some(viewed(shape.level(), value)),
            Some((_, inner)) if inner.map().is_some() => viewed_map(inner, value),
            Some((_, inner)) => match (inner.value.language_map(), value) {
                (Some(map), Json::Array(texts)) => viewed_texts(map, texts),
                _ => Some(value.clone()),
            },
        };
        members.extend(value.map(|value| (name, value)));
    }
    (!members.is_empty()).then_some(Json::Object(members))
}

fn find_language_map(entry: Entry<'_>) -> Option<&LanguageMap> {
    let Entry::Field(_, field) = entry else { return None };
    field.property()?.value.language_map()
}

/// Converts the texts of a language map to the form of the view; `None` without texts.
fn viewed_texts(map: &LanguageMap, texts: &[Json]) -> Option<Json> {
    let mut members: Vec<(String, Json)> = Vec::new();
    for text in texts {
        let (language, value) = (string(get(text, "language")), get(text, "value").clone());
        match members.last_mut() {
            Some((last, Json::Array(values))) if *last == language => values.push(value),
            _ if map.has_arrays => members.push((language, Json::Array(vec![value]))),
            _ => members.push((language, value)),
        }
    }
    (!members.is_empty()).then_some(Json::Object(members))
}

/// Returns whether a member is the URI of an object.
fn is_uri(level: Level<'_>, member: &str) -> bool {
    level.is_object() && member == "uri"
}

/// Converts an answer to the form of the view, which omits fields without a value.
fn viewed(level: Level<'_>, node: &Json) -> Json {
    let mut members = Vec::new();
    if level.is_object() && level.find("uri").is_none() {
        members.push(("uri".to_owned(), get(node, "uri").clone()));
    }
    for (place, (member, entry)) in level.entries().enumerate() {
        let alias = format!("f{place}");
        let value = get(node, if is_uri(level, member) { member } else { &alias }).clone();
        if let Some(map) = find_map(entry) {
            members.extend(viewed_map(map, &value).map(|map| (member.to_owned(), map)));
            continue;
        }
        if let (Some(map), Json::Array(texts)) = (find_language_map(entry), &value) {
            members.extend(viewed_texts(map, texts).map(|map| (member.to_owned(), map)));
            continue;
        }
        let inner = match entry {
            Entry::Field(_, field) => field.shape().map(Shape::level),
            Entry::Group(inner) => Some(inner),
        };
        let value = match (inner, value) {
            (_, Json::Null) => continue,
            (Some(inner), Json::Array(nodes)) => {
                Json::Array(nodes.iter().map(|node| viewed(inner, node)).collect())
            }
            (Some(inner), one) => viewed(inner, &one),
            (None, value) => value,
        };
        members.push((member.to_owned(), value));
    }
    Json::Object(members)
}
