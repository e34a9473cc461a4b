//! The view, GraphQL and the export show the same values, with all digits.
use crate::{data, mappings, text};
use penstock_auth::Caller;
use penstock_base::json::{self, Json};
use penstock_config as config;
use penstock_export::ExportRequester;
use penstock_graphql::{GraphqlService, Query};
use penstock_model::ingest::Mode;
use penstock_model::mapping::{Field, FieldKind, Literal, Property, Shape, Value};
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
        (shape, objects) in mappings::tree().prop_flat_map(|shape| {
            let objects = data::objects(&shape);
            (Just(shape), objects)
        }),
    ) {
        // The root has a namespace of its own, so that nested objects do not belong to the Business Object.
        agree(&Shape { namespace: "Root".to_owned(), ..shape }, &objects);
    }

    #[test]
    fn they_agree_on_objects_nested_in_themselves(
        (shape, objects) in mappings::linked().prop_flat_map(|shape| {
            let objects = data::linked_objects(&shape);
            (Just(shape), objects)
        }),
    ) {
        agree(&shape, &objects);
    }
}

fn agree(shape: &Shape, objects: &[Json]) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let dir = tempfile::tempdir().unwrap();
    let arguments = vec![format!("--service.data-dir={}", dir.path().display())];
    let loaded = config::load(&config::Sources { arguments, ..config::Sources::default() });
    let settings = Arc::new(loaded.unwrap().settings);
    let _entered = runtime.enter();
    let gateway = Gateway::open(settings, &mut |_| {}).unwrap();
    let definition = serde_json::json!({
        "name": "Any Thing",
        "config": config_of(shape, true).to_string(),
        "pushTargets": [{"bucketName": "bucket"}],
    });
    let business_object = put_definition(&gateway.catalogue, &definition);
    assert_eq!(&business_object.mapping.root, shape, "the configuration describes the shape");
    let body = format!("{{\"data\":[{}]}}", text::elements(objects));
    let watch = gateway.catalogue.watch();
    ingest_body(&gateway.store, watch, &business_object, Mode::Add, &body).unwrap();

    let uris = list_members(&gateway.store.read(), &business_object);
    let view = |uri: &String| {
        let (json, warnings) = render_object(&gateway.store.read(), &business_object, uri);
        assert_eq!(warnings, Vec::<String>::new());
        json
    };
    let views: Vec<String> = uris.iter().map(view).collect();
    assert_eq!(exported(&gateway, &business_object), format!("[{}]", views.join(",")));
    let graphql = GraphqlService::new(&gateway);
    let client = GraphqlClient { graphql: &graphql, runtime: &runtime };
    assert_eq!(client.pages(shape), views);
    for (uri, view) in uris.iter().zip(&views) {
        assert_eq!(&client.one(shape, uri), view);
    }
}

/// Returns the `data` of an export.
fn exported(gateway: &Gateway, business_object: &Compiled) -> String {
    let push = gateway.exporter.push(business_object, ExportRequester::gateway()).unwrap();
    let id = &push.exports.first().unwrap().id;
    let mut file = String::new();
    gateway.exporter.open_content(id).unwrap().file.read_to_string(&mut file).unwrap();
    let (_, data) = file.split_once("\"data\":").unwrap();
    data.trim_end().strip_suffix('}').unwrap().trim_end().to_owned()
}

/// Returns the mapping in the form of a client. JSON is valid YAML.
fn config_of(shape: &Shape, is_root: bool) -> serde_json::Value {
    let fields = shape.fields.iter().map(|field| (field.name.clone(), field_of(field)));
    let fields: serde_json::Map<_, _> = fields.collect();
    if is_root {
        let path = format!("{}:.", shape.namespace);
        return serde_json::json!({"type": "object", "path": path, "fields": fields});
    }
    serde_json::json!({"type": "object", "fields": fields})
}

fn field_of(field: &Field) -> serde_json::Value {
    let FieldKind::Property(Property { predicate, is_array: many, value, .. }) = &field.kind else {
        return serde_json::json!({"type": "id"});
    };
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
        },
    };
    let path = match value {
        Value::Object(shape) => format!("{path}/{}:.", shape.namespace),
        _ => path,
    };
    one.as_object_mut().unwrap().insert("path".to_owned(), path.into());
    if *many { serde_json::json!({"type": "array", "elements": one}) } else { one }
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
        let selection = selection(shape, "AnyThing", &self.types());
        let (mut all, mut after) = (Vec::new(), String::new());
        loop {
            let data = self.ask(format!(
                "{{ anyThingConnection(first: {PAGE}{after}) {{ nodes {selection} \
                 pageInfo {{ endCursor hasNextPage }} }} }}"
            ));
            let page = get(&data, "anyThingConnection");
            let Json::Array(nodes) = get(page, "nodes") else { panic!() };
            all.extend(nodes.iter().map(|node| text::write(&viewed(shape, node))));
            let info = get(page, "pageInfo");
            if *get(info, "hasNextPage") == Json::Bool(false) {
                return all;
            }
            after = format!(", after: {}", text::write(get(info, "endCursor")));
        }
    }

    /// Reads one object by its URI.
    fn one(&self, shape: &Shape, uri: &str) -> String {
        let selection = selection(shape, "AnyThing", &self.types());
        let uri = serde_json::to_string(uri).unwrap();
        let data = self.ask(format!("{{ anyThing(uri: {uri}) {selection} }}"));
        text::write(&viewed(shape, get(&data, "anyThing")))
    }
}

fn get<'j>(json: &'j Json, name: &str) -> &'j Json {
    let Json::Object(members) = json else { panic!("{json} has no {name}") };
    members.iter().find(|(member, _)| member == name).map(|(_, value)| value).unwrap()
}

fn string(json: &Json) -> String {
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

/// Selects `f0`, `f1`, ... for the fields of the shape. After `uri`, the type has the fields in the same order.
fn selection(shape: &Shape, type_name: &str, types: &Types) -> String {
    let mut names = types.get(type_name).unwrap().iter();
    assert_eq!(names.next().unwrap().0, "uri");
    let mut text = "{ uri".to_owned();
    for (place, field) in shape.fields.iter().enumerate() {
        if field.kind == FieldKind::Id && field.name == "uri" {
            continue;
        }
        let (name, to) = names.next().unwrap();
        let _ = write!(text, " f{place}: {name}");
        if let FieldKind::Property(Property { value: Value::Object(nested), .. }) = &field.kind {
            text += &selection(nested, to, types);
        }
    }
    text + " }"
}

/// Converts an answer to the form of the view, which omits fields without a value.
fn viewed(shape: &Shape, node: &Json) -> Json {
    let uri = get(node, "uri").clone();
    let is_placed = shape.fields.iter().any(|f| f.kind == FieldKind::Id && f.name == "uri");
    let mut members = Vec::new();
    if !is_placed {
        members.push(("uri".to_owned(), uri.clone()));
    }
    for (place, field) in shape.fields.iter().enumerate() {
        let value = match &field.kind {
            FieldKind::Id if field.name == "uri" => uri.clone(),
            _ => get(node, &format!("f{place}")).clone(),
        };
        let value = match (&field.kind, value) {
            (_, Json::Null) => continue,
            (FieldKind::Property(Property { value: Value::Object(nested), .. }), value) => {
                match value {
                    Json::Array(nodes) => {
                        Json::Array(nodes.iter().map(|node| viewed(nested, node)).collect())
                    }
                    one => viewed(nested, &one),
                }
            }
            (_, value) => value,
        };
        members.push((field.name.clone(), value));
    }
    Json::Object(members)
}
