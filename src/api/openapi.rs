//! The OpenAPI document, built from the declared operations and the schemas of their types.
#![expect(clippy::indexing_slicing, reason = "assigning to a member of a JSON object creates it")]
use penstock_config::Settings;
use penstock_http::access::MinimumRole;
use penstock_http::credential::cookie_name;
use penstock_http::operation::{Answer, Content, Operation};
use penstock_http::parameters::{Parameter, Place, SchemaFn};
use penstock_resources::problem::Problem;
use schemars::SchemaGenerator;
use schemars::generate::{Contract, SchemaSettings};
use serde_json::{Map, Value, json};

/// Problems of every operation: a foreign `Host`, an error of the gateway, and a gateway that is not open yet.
const COMMON_STATUSES: &[u16] = &[400, 403, 500, 503];
/// Further problems of every operation that requires credentials.
const AUTHENTICATION_STATUSES: &[u16] = &[401, 429];
/// The mark, in the schema of a type, of a member that an answer can leave out and that can also be null.
const NULLABLE_MARK: &str = "x-nullable";

/// Returns the document as JSON.
pub(super) fn build_document(settings: &Settings, operations: &[Operation]) -> Value {
    let schemes = security_schemes(settings);
    let mut schemas = Schemas::new();
    let mut paths = Map::new();
    for operation in operations.iter().filter(|operation| operation.is_documented()) {
        let described = describe_operation(operation, &schemes, &mut schemas);
        let path = paths.entry(operation.route.path).or_insert_with(|| json!({}));
        path[operation.route.method.as_str().to_lowercase()] = described;
    }
    json!({
        "openapi": "3.1.0",
        "info": {
            "title": "Penstock",
            "version": env!("CARGO_PKG_VERSION"),
            "description": "A semantic data gateway: JSON in, RDF on disk, exports in order.",
        },
        "paths": paths,
        "components": { "schemas": schemas.take_definitions(), "securitySchemes": schemes },
    })
}

/// The schemas of the types. A body may leave out what an answer always has.
struct Schemas {
    bodies: SchemaGenerator,
    answers: SchemaGenerator,
}

impl Schemas {
    fn new() -> Self {
        let generator = |contract| {
            let mut settings = SchemaSettings::draft2020_12();
            settings.definitions_path = "/components/schemas".into();
            settings.contract = contract;
            settings.into_generator()
        };
        Self { bodies: generator(Contract::Deserialize), answers: generator(Contract::Serialize) }
    }

    /// Returns all schemas that are referred to, by name. The schema of an answer is also that of a body with its name.
    fn take_definitions(mut self) -> Map<String, Value> {
        let mut definitions = self.bodies.take_definitions(true);
        let mut answers = self.answers.take_definitions(true);
        answers.values_mut().for_each(never_null_if_optional);
        definitions.extend(answers);
        for schema in definitions.values_mut() {
            merge_named_values(schema);
            adapt_to_generators(schema);
        }
        definitions
    }
}

/// Writes what client generators understand. Instead of the formats of unsigned integers, which OpenAPI does not define,
/// it writes those of signed ones; `minimum` says that they are not negative. Any value is `{}` instead of `true`.
fn adapt_to_generators(schema: &mut Value) {
    match schema {
        Value::Array(items) => items.iter_mut().for_each(adapt_to_generators),
        Value::Object(members) => {
            members.values_mut().for_each(adapt_to_generators);
            if let Some(Value::String(format)) = members.get_mut("format") {
                match format.as_str() {
                    "uint" | "uint64" => "int64".clone_into(format),
                    "uint8" | "uint16" | "uint32" => "int32".clone_into(format),
                    _ => {}
                }
            }
            let of_members = members.get_mut("properties").and_then(Value::as_object_mut);
            of_members.into_iter().flat_map(Map::values_mut).for_each(write_any_as_object);
            members.get_mut("items").into_iter().for_each(write_any_as_object);
        }
        _ => {}
    }
}

fn write_any_as_object(schema: &mut Value) {
    if *schema == Value::Bool(true) {
        *schema = json!({});
    }
}

/// Returns the schema of a parameter or of a body.
fn describe_type(schema: SchemaFn, generator: &mut SchemaGenerator) -> Value {
    let mut described = schema(generator).to_value();
    write_any_as_object(&mut described);
    adapt_to_generators(&mut described);
    described
}

/// Describes that a member which an answer can leave out is never null, unless it is marked.
fn never_null_if_optional(schema: &mut Value) {
    let required = schema.get("required").cloned().unwrap_or_default();
    let is_required = |name: &String| {
        required.as_array().is_some_and(|names| names.iter().any(|known| known == name))
    };
    let Some(members) = schema.get_mut("properties").and_then(Value::as_object_mut) else { return };
    for (_, member) in members.iter_mut().filter(|(name, _)| !is_required(name)) {
        let marked = member.as_object_mut();
        if marked.and_then(|member| member.remove(NULLABLE_MARK)).is_some() {
            continue;
        }
        if let Some(Value::Array(types)) = member.get_mut("type") {
            types.retain(|name| name != "null");
            if let [only] = types.as_slice() {
                member["type"] = only.clone();
            }
        }
        let Some(Value::Array(choices)) = member.get_mut("anyOf") else { continue };
        choices.retain(|choice| *choice != json!({"type": "null"}));
        if let [Value::Object(only)] = choices.as_mut_slice() {
            let only = std::mem::take(only);
            if let Some(member) = member.as_object_mut() {
                member.remove("anyOf");
                member.extend(only);
            }
        }
    }
}

/// Replaces a choice between described names by an `enum`, which client generators understand.
fn merge_named_values(schema: &mut Value) {
    let Some(Value::Array(choices)) = schema.get("oneOf") else { return };
    let mut names = Vec::new();
    for choice in choices {
        match (choice.get("const"), choice.get("enum")) {
            (Some(name), None) => names.push(name.clone()),
            (None, Some(Value::Array(more))) => names.extend(more.iter().cloned()),
            _ => return,
        }
    }
    if let Value::Object(members) = schema {
        members.remove("oneOf");
        members.insert("type".into(), "string".into());
        members.insert("enum".into(), names.into());
    }
}

/// Returns the ways to authenticate a request.
fn security_schemes(settings: &Settings) -> Map<String, Value> {
    let is_https = settings.base_url.as_deref().is_some_and(|url| url.starts_with("https:"));
    let bearer = if settings.security.resource_server.is_some() {
        "An API key of this gateway, or an access token of its authorization server."
    } else {
        "An API key of this gateway."
    };
    let mut schemes = Map::new();
    schemes.insert(
        "bearer".into(),
        json!({"type": "http", "scheme": "bearer", "description": bearer}),
    );
    schemes.insert(
        "apiKey".into(),
        json!({
            "type": "apiKey",
            "in": "header",
            "name": "Apikey",
            "description": "An API key of this gateway.",
        }),
    );
    schemes.insert(
        "session".into(),
        json!({
            "type": "apiKey",
            "in": "cookie",
            "name": cookie_name(if is_https { "https" } else { "http" }),
            "description": "The session of a browser that has signed in. A request that changes something must come from \
                            the gateway's own pages, or carry the session's token in X-CSRF-Token.",
        }),
    );
    let issuer = settings.security.oidc.as_ref().and_then(|oidc| oidc.issuer_uri.as_deref());
    if let Some(issuer) = issuer {
        let url = format!("{}/.well-known/openid-configuration", issuer.trim_end_matches('/'));
        let scheme = json!({"type": "openIdConnect", "openIdConnectUrl": url});
        schemes.insert("openIdConnect".into(), scheme);
    }
    schemes
}

fn describe_operation(
    operation: &Operation,
    schemes: &Map<String, Value>,
    schemas: &mut Schemas,
) -> Value {
    let (summary, description) =
        operation.description.split_once("\n\n").unwrap_or((operation.description, ""));
    let role = operation.route.minimum_role;
    let mut described = json!({
        "tags": [operation.tag],
        "summary": summary,
        "operationId": operation.id,
        "x-least-role": format!("{role:?}"),
        "responses": describe_responses(operation, &mut schemas.answers),
    });
    if !description.is_empty() {
        described["description"] = description.into();
    }
    if !operation.parameters.is_empty() {
        let parameters = operation.parameters.iter();
        let parameters = parameters.map(|parameter| describe_parameter(parameter, schemas));
        described["parameters"] = parameters.collect();
    }
    if let Some(body) = &operation.body {
        described["requestBody"] = json!({
            "required": body.is_required,
            "content": describe_contents(&body.contents, &mut schemas.bodies),
        });
        if !body.description.is_empty() {
            described["requestBody"]["description"] = body.description.into();
        }
    }
    if role != MinimumRole::Anyone {
        let mut requirements: Vec<_> = schemes.keys().map(|name| json!({name: []})).collect();
        if role == MinimumRole::Metrics {
            // A program on the gateway's own machine needs none.
            requirements.push(json!({}));
        }
        described["security"] = requirements.into();
    }
    described
}

fn describe_parameter(parameter: &Parameter, schemas: &mut Schemas) -> Value {
    json!({
        "name": parameter.name,
        "in": match parameter.place {
            Place::Path => "path",
            Place::Query => "query",
            Place::Header => "header",
        },
        "description": parameter.description,
        "required": parameter.is_required,
        "schema": describe_type(parameter.schema, &mut schemas.bodies),
    })
}

fn describe_contents(contents: &[Content], generator: &mut SchemaGenerator) -> Map<String, Value> {
    let describe = |content: &Content| {
        (content.media_type.to_owned(), json!({"schema": describe_type(content.schema, generator)}))
    };
    contents.iter().map(describe).collect()
}

/// Describes the answers and the problems, by status.
fn describe_responses(
    operation: &Operation,
    generator: &mut SchemaGenerator,
) -> Map<String, Value> {
    let is_guarded = operation.route.minimum_role != MinimumRole::Anyone;
    let guarded = if is_guarded { AUTHENTICATION_STATUSES } else { &[] };
    let problems = COMMON_STATUSES.iter().chain(guarded).chain(operation.problems);
    let mut responses: Map<_, _> =
        problems.map(|status| (status.to_string(), describe_problem(*status, generator))).collect();
    for (status, content) in &operation.problem_contents {
        if let Some(response) = responses.get_mut(&status.to_string()) {
            let schema = describe_type(content.schema, generator);
            response["content"][content.media_type] = json!({ "schema": schema });
        }
    }
    for answer in &operation.answers {
        responses.insert(answer.status.to_string(), describe_answer(answer, generator));
    }
    responses
}

fn describe_answer(answer: &Answer, generator: &mut SchemaGenerator) -> Value {
    let mut described = json!({ "description": answer.description });
    if !answer.contents.is_empty() {
        described["content"] = describe_contents(&answer.contents, generator).into();
    }
    for (name, description) in &answer.headers {
        described["headers"][name] =
            json!({"description": description, "schema": {"type": "string"}});
    }
    described
}

fn describe_problem(status: u16, generator: &mut SchemaGenerator) -> Value {
    let schema = generator.subschema_for::<Problem>();
    let mut described = json!({
        "description": describe_status(status),
        "content": {"application/problem+json": {"schema": schema}},
    });
    let header = |value_type: &str, description: &str| json!({"description": description, "schema": {"type": value_type}});
    if matches!(status, 429 | 503) {
        described["headers"]["Retry-After"] = header("integer", "Seconds to wait.");
    }
    if status == 401 {
        let description = "Which credentials are accepted, and what was wrong (RFC 6750, 3).";
        described["headers"]["WWW-Authenticate"] = header("string", description);
    }
    described
}

fn describe_status(status: u16) -> &'static str {
    match status {
        400 => {
            "The request is malformed: for example an unknown parameter, or an invalid cursor or mode."
        }
        401 => "The request has no credentials, or they are unknown, expired or revoked.",
        403 => {
            "Not allowed: the role is not sufficient, the Host is not this gateway's, or a page of another site sent the request."
        }
        404 => "There is no such resource.",
        405 => "The method is not allowed; the header Allow lists the allowed ones.",
        408 => "The body arrived too slowly.",
        409 => "The request conflicts with the current state.",
        412 => "The resource has another version than If-Match or If-None-Match requires.",
        413 => "The request exceeds a limit; see /api/v1/limits.",
        415 => "The media type, charset or coding of the body is not supported.",
        406 => "None of the media types in Accept is offered.",
        422 => "The request is well-formed and invalid; every finding has its place.",
        429 => {
            "Too many failed attempts, or too many changes of the caller's own account, its API keys, new namespaces and saved views."
        }
        503 => {
            "Temporarily unavailable: the store is opening or accepts no changes, or too many requests are in flight."
        }
        507 => "The gateway's disk is full.",
        _ => "An error of the gateway; its log has the cause.",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::routes::api_operations;
    use penstock_config::{Sources, load};
    use serde_json::json;
    use std::fmt::Write as _;
    use std::path::Path;
    use std::{env, fs};

    #[test]
    fn descriptions_are_beside_their_reference() {
        let settings = load(&Sources::default()).unwrap().settings;
        let document = build_document(&settings, &api_operations());
        let status = &document["components"]["schemas"]["Status"]["properties"];
        let schema = |name: &str| json!({"$ref": format!("#/components/schemas/{name}")});
        let store = json!({"$ref": schema("StoreStatus")["$ref"], "description": "The store."});
        assert_eq!(status["store"], store);
        let certificate = &status["certificate"];
        assert_eq!(certificate["anyOf"], json!([schema("CertificateStatus"), {"type": "null"}]));
        assert_eq!(certificate["description"], "The certificate of HTTPS; null without HTTPS.");
        assert!(!document.to_string().contains("allOf"), "generators cannot use allOf");
        assert!(!document.to_string().contains(NULLABLE_MARK));
        let warning = &document["components"]["schemas"]["IngestionWarning"];
        assert_eq!(warning["description"], "Something the caller should know.");
        assert_eq!(warning["required"], json!(["pointer", "message"]));
        for name in ["message", "focusNode"] {
            assert_eq!(warning["properties"][name]["type"], "string", "{warning}");
        }
    }

    #[test]
    fn describes_every_route_of_the_table() {
        let settings = load(&Sources::default()).unwrap().settings;
        let document = build_document(&settings, &api_operations());
        for operation in api_operations() {
            let route = &operation.route;
            let method = route.method.as_str().to_lowercase();
            let described = &document["paths"][route.path][&method];
            assert!(described["summary"].is_string(), "{method} {}", route.path);
            let answers = described["responses"].as_object().unwrap();
            assert!(answers.keys().any(|status| status.starts_with('2')), "{}", route.path);
            for status in operation.problems {
                assert!(answers.contains_key(&status.to_string()), "{status} {}", route.path);
            }
            let is_guarded = route.minimum_role != MinimumRole::Anyone;
            let has_401 = is_guarded || operation.problems.contains(&401);
            assert_eq!(answers.contains_key("401"), has_401, "{method} {}", route.path);
            assert_eq!(described["security"].is_array(), is_guarded, "{method} {}", route.path);
            for requirement in described["security"].as_array().into_iter().flatten() {
                for name in requirement.as_object().unwrap().keys() {
                    assert!(document["components"]["securitySchemes"][name].is_object(), "{name}");
                }
            }
        }
    }

    /// The members of every shown type, in the order of its JSON: name, `?` if an answer or a body can leave it out, type.
    /// `UPDATE=1 cargo test -p penstock-api the_members` writes the file.
    #[test]
    fn the_members_of_every_type_are_pinned() {
        let settings = load(&Sources::default()).unwrap().settings;
        let document = build_document(&settings, &api_operations());
        let schemas = document["components"]["schemas"].as_object().unwrap();
        let mut lines: Vec<_> =
            schemas.iter().map(|(name, schema)| list_members(name, schema)).collect();
        lines.sort();
        let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("openapi/members.txt");
        let now = lines.concat();
        if env::var_os("UPDATE").is_some() {
            fs::write(&file, &now).unwrap();
        }
        assert_eq!(fs::read_to_string(&file).unwrap(), now, "UPDATE=1 accepts the difference");
    }

    fn list_members(name: &str, schema: &Value) -> String {
        let Some(members) = schema["properties"].as_object() else {
            return format!("{name} = {}\n", describe_in_short(schema));
        };
        let required = schema["required"].as_array();
        let mut text = format!("{name}\n");
        for (member, schema) in members {
            let is_required = required.is_some_and(|names| names.iter().any(|name| name == member));
            let mark = if is_required { "" } else { "?" };
            writeln!(text, "  {member}{mark}: {}", describe_in_short(schema)).unwrap();
        }
        text
    }

    /// Describes a type in short: `Export[]`, `string | null`, `"full" | "deleted"`.
    fn describe_in_short(schema: &Value) -> String {
        if let Some(reference) = schema["$ref"].as_str() {
            return reference.rsplit('/').next().unwrap().to_owned();
        }
        let join = |types: Vec<String>| types.join(" | ");
        for choices in [&schema["anyOf"], &schema["oneOf"]] {
            if let Some(choices) = choices.as_array() {
                return join(choices.iter().map(describe_in_short).collect());
            }
        }
        if let Some(names) = schema["enum"].as_array() {
            return join(names.iter().map(Value::to_string).collect());
        }
        let with_items = |name: &str| match name {
            "array" => format!("{}[]", describe_in_short(&schema["items"])),
            name => name.to_owned(),
        };
        match &schema["type"] {
            Value::String(name) => with_items(name),
            Value::Array(names) => {
                join(names.iter().map(|name| with_items(name.as_str().unwrap())).collect())
            }
            _ => "any".to_owned(),
        }
    }
}
