//! The OpenAPI document, built from the router's table, the endpoints and the shapes.
use crate::shapes;
use penstock_config::Settings;
use penstock_http::access::MinimumRole;
use penstock_http::credential::cookie_name;
use penstock_http::problem::ProblemDocument;
use penstock_http::router::Route;
use penstock_model::rdf::Format;
use penstock_model::shapes_graphs::TextFormat;
use salvo::http::{Method, StatusCode};
use salvo_oapi::security::{ApiKey, ApiKeyValue, Http, HttpAuthScheme, OpenIdConnect};
use salvo_oapi::security::{SecurityRequirement, SecurityScheme};
use salvo_oapi::{BasicType, Operation, Ref, RefOr, Required};
use salvo_oapi::{Content, Header, Info, Object, OpenApi, PathItemType, Response, ToSchema};
use serde_json::{Map, Value};

/// The media type of one JSON object a line.
const NDJSON: &str = "application/x-ndjson";
const CSV: &str = "text/csv";
/// Problems of every route: a foreign `Host`, an error of the gateway, and a gateway that is not open yet.
const COMMON_STATUSES: &[u16] = &[400, 403, 500, 503];
/// Further problems of every route that requires credentials.
const AUTHENTICATION_STATUSES: &[u16] = &[401, 429];

/// Returns the document as JSON.
pub(super) fn build_document(settings: &Settings, routes: &[Route]) -> Value {
    let mut json = serde_json::to_value(describe_all(settings, routes))
        .expect("the document is plain data, which always has a JSON form");
    unwrap_descriptions(&mut json);
    if let Some(Value::Object(schemas)) = json.pointer_mut("/components/schemas") {
        let known = schemas.clone();
        schemas.values_mut().for_each(|schema| inline_flattened(schema, &known));
    }
    json
}

/// Gives a schema the members of the schema that it flattens. salvo writes those as `allOf: [{"$ref": …}, {"type": "object", …}]`.
fn inline_flattened(schema: &mut Value, known: &Map<String, Value>) {
    let Value::Object(all) = schema else { return };
    let Some(Value::Array(parts)) = all.remove("allOf") else { return };
    for part in parts {
        let reference = part.get("$ref").and_then(Value::as_str);
        let name = reference.and_then(|reference| reference.rsplit('/').next());
        let part = name.and_then(|name| known.get(name)).unwrap_or(&part);
        for (key, value) in part.as_object().into_iter().flatten() {
            match (all.get_mut(key), value) {
                (None, value) => drop(all.insert(key.clone(), value.clone())),
                (Some(Value::Object(members)), Value::Object(more)) => members.extend(more.clone()),
                (Some(Value::Array(members)), Value::Array(more)) => members.extend(more.clone()),
                _ => {}
            }
        }
    }
}

/// Moves each description next to its `$ref`, as OpenAPI 3.1 allows. salvo writes a described reference as
/// `allOf: [{"$ref": …}, {"description": …}]`, which client generators cannot use.
fn unwrap_descriptions(json: &mut Value) {
    match json {
        Value::Array(items) => items.iter_mut().for_each(unwrap_descriptions),
        Value::Object(members) => {
            members.values_mut().for_each(unwrap_descriptions);
            let Some(Value::Array(parts)) = members.get_mut("allOf") else { return };
            let [Value::Object(schema), Value::Object(words)] = parts.as_mut_slice() else {
                return;
            };
            if words.keys().any(|key| key != "description") {
                return;
            }
            schema.append(words);
            *json = Value::Object(std::mem::take(schema));
        }
        _ => {}
    }
}

/// Describes all routes.
fn describe_all(settings: &Settings, routes: &[Route]) -> OpenApi {
    let mut document = OpenApi::with_info(
        Info::new("Penstock", env!("CARGO_PKG_VERSION"))
            .description("A semantic data gateway: JSON in, RDF on disk, exports in order."),
    );
    let _ = ProblemDocument::to_schema(&mut document.components);
    let _ = shapes::SparqlQueryForm::to_schema(&mut document.components);
    let _ = shapes::SparqlUpdateForm::to_schema(&mut document.components);
    let schemes = security_schemes(settings);
    let names: Vec<&str> = schemes.iter().map(|(name, _)| *name).collect();
    for route in routes {
        document = document.merge_router(&route.to_router());
        describe_route(&mut document, route, &names);
    }
    for (name, scheme) in schemes {
        document = document.add_security_scheme(name, scheme);
    }
    document
}

/// Returns the ways to authenticate a request.
fn security_schemes(settings: &Settings) -> Vec<(&'static str, SecurityScheme)> {
    let is_https = settings.base_url.as_deref().is_some_and(|url| url.starts_with("https:"));
    let cookie = cookie_name(if is_https { "https" } else { "http" });
    let bearer = if settings.security.resource_server.is_some() {
        "An API key of this gateway, or an access token of its authorization server."
    } else {
        "An API key of this gateway."
    };
    let mut schemes = vec![
        ("bearer", SecurityScheme::Http(Http::new(HttpAuthScheme::Bearer).description(bearer))),
        (
            "apiKey",
            ApiKey::Header(ApiKeyValue::with_description("Apikey", "An API key of this gateway."))
                .into(),
        ),
        (
            "session",
            ApiKey::Cookie(ApiKeyValue::with_description(
                cookie,
                "The session of a browser that has signed in. A request that changes something must come from \
                 the gateway's own pages, or carry the session's token in X-CSRF-Token.",
            ))
            .into(),
        ),
    ];
    let issuer = settings.security.oidc.as_ref().and_then(|oidc| oidc.issuer_uri.as_deref());
    if let Some(issuer) = issuer {
        let issuer = issuer.trim_end_matches('/');
        let url = format!("{issuer}/.well-known/openid-configuration");
        schemes.push(("openIdConnect", OpenIdConnect::new(url).into()));
    }
    schemes
}

fn describe_route(document: &mut OpenApi, route: &Route, schemes: &[&str]) {
    let method = match route.method {
        Method::GET => PathItemType::Get,
        Method::PUT => PathItemType::Put,
        Method::POST => PathItemType::Post,
        _ => PathItemType::Delete,
    };
    let Some(operation) =
        document.paths.get_mut(route.path).and_then(|path| path.operations.get_mut(&method))
    else {
        return;
    };
    operation.extensions.insert("x-least-role".into(), format!("{:?}", route.minimum_role).into());
    let is_guarded = route.minimum_role != MinimumRole::Anyone;
    if is_guarded {
        let mut requirements: Vec<_> =
            schemes.iter().map(|name| SecurityRequirement::new(*name, [""; 0])).collect();
        if route.minimum_role == MinimumRole::Metrics {
            // A program on the gateway's own machine needs none.
            requirements.push(SecurityRequirement::default());
        }
        operation.securities = Some(requirements);
    }
    let guarded = if is_guarded { AUTHENTICATION_STATUSES } else { &[] };
    for status in COMMON_STATUSES.iter().chain(guarded).chain(route.problems) {
        let Ok(status) = StatusCode::from_u16(*status) else { continue };
        operation.responses.insert(status.as_str(), problem_response(status));
    }
    match operation.operation_id.as_deref() {
        Some("ingest") => describe_stream(operation),
        Some("retryRejected") => add_text_body(operation, CSV),
        Some("getExportContent") => add_lines_response(operation),
        Some("graphql" | "graphqlRead") => describe_graphql(operation),
        Some("sparqlQueryByPost") => add_form(operation, "SparqlQueryForm"),
        Some("sparqlUpdate") => add_form(operation, "SparqlUpdateForm"),
        Some("putGraph" | "postGraph") => add_rdf_bodies(operation),
        Some("putShapesGraph") => {
            add_rdf_bodies(operation);
            add_text_body(operation, TextFormat::ShexC.media_type());
        }
        Some("signIn") => describe_sign_in(operation),
        // Only a session has a token to send.
        Some("signOut") => make_body_optional(operation),
        Some("signInPage") => add_page_responses(operation, &["503"]),
        _ => {}
    }
}

/// Adds the form of the sign-in page, as an alternative to JSON. The response to a form is a page.
fn describe_sign_in(operation: &mut Operation) {
    add_form(operation, "Credentials");
    add_page_responses(operation, &["401", "403", "429", "503"]);
}

/// Adds a page as an alternative to the problem document, for these statuses.
fn add_page_responses(operation: &mut Operation, statuses: &[&str]) {
    for status in statuses {
        if let Some(RefOr::Type(refused)) = operation.responses.get_mut(*status) {
            let page = Content::new(Object::new().schema_type(BasicType::String));
            refused.contents.insert("text/html".to_owned(), page);
        }
    }
}

/// Adds every RDF format to the request body of an operation.
fn add_rdf_bodies(operation: &mut Operation) {
    for format in Format::ALL {
        add_text_body(operation, format.media_type());
    }
}

/// Adds a media type with any text to the request body of an operation.
fn add_text_body(operation: &mut Operation, media_type: &str) {
    let content = Content::new(Object::new().schema_type(BasicType::String));
    let body = operation.request_body.get_or_insert_default();
    body.contents.insert(media_type.to_owned(), content);
}

/// Adds a form to the request body of an operation, as an alternative to its first media type.
fn add_form(operation: &mut Operation, schema: &str) {
    let form = Content::new(Ref::from_schema_name(schema));
    let body = operation.request_body.get_or_insert_default();
    body.contents.insert("application/x-www-form-urlencoded".to_owned(), form);
}

fn make_body_optional(operation: &mut Operation) {
    if let Some(body) = &mut operation.request_body {
        body.required = Some(Required::False);
    }
}

/// Describes the errors of GraphQL over HTTP, which are in `errors`.
fn describe_graphql(operation: &mut Operation) {
    for status in ["400", "503"] {
        let Some(RefOr::Type(malformed)) = operation.responses.get_mut(status) else { continue };
        for media_type in ["application/json", "application/graphql-response+json"] {
            let errors = Content::new(Ref::from_schema_name("GraphqlResponse"));
            malformed.contents.insert(media_type.to_owned(), errors);
        }
    }
}

/// Adds NDJSON and CSV to an ingestion. OpenAPI 3.1 has no schema for the items of a stream, so only the operation's
/// description explains a line.
fn describe_stream(operation: &mut Operation) {
    if let Some(body) = &mut operation.request_body {
        for media_type in [NDJSON, CSV] {
            body.contents.insert(media_type.to_owned(), text_content());
        }
    }
    add_lines_response(operation);
}

/// Adds NDJSON to a response, as an alternative to JSON.
fn add_lines_response(operation: &mut Operation) {
    if let Some(RefOr::Type(done)) = operation.responses.get_mut("200") {
        done.contents.insert(NDJSON.to_owned(), text_content());
    }
}

fn text_content() -> Content {
    Content::new(Object::new().schema_type(BasicType::String))
}

fn problem_response(status: StatusCode) -> Response {
    let response = Response::new(describe_status(status))
        .add_content("application/problem+json", Content::new(Ref::from_schema_name("Problem")));
    let header =
        |basic_type, words| Header::new(Object::new().schema_type(basic_type)).description(words);
    match status {
        StatusCode::SERVICE_UNAVAILABLE | StatusCode::TOO_MANY_REQUESTS => {
            response.add_header("Retry-After", header(BasicType::Integer, "Seconds to wait."))
        }
        StatusCode::UNAUTHORIZED => response.add_header(
            "WWW-Authenticate",
            header(
                BasicType::String,
                "Which credentials are accepted, and what was wrong (RFC 6750, 3).",
            ),
        ),
        _ => response,
    }
}

fn describe_status(status: StatusCode) -> &'static str {
    match status.as_u16() {
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
            "Too many failed attempts, or too many changes of the caller's own account, its API keys and new namespaces."
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
    use crate::routes::api_routes;
    use penstock_config::{Sources, load};
    use serde_json::json;

    #[test]
    fn descriptions_are_beside_their_reference() {
        let settings = load(&Sources::default()).unwrap().settings;
        let document = build_document(&settings, &api_routes());
        let status = &document["components"]["schemas"]["Status"]["properties"];
        let schema = |name: &str| json!({"$ref": format!("#/components/schemas/{name}")});
        let store = json!({"$ref": schema("StoreStatus")["$ref"], "description": "The store."});
        assert_eq!(status["store"], store);
        let certificate = &status["certificate"];
        assert_eq!(certificate["oneOf"], json!([{"type": "null"}, schema("CertificateStatus")]));
        assert_eq!(certificate["description"], "The certificate of HTTPS; null without HTTPS.");
        assert!(!document.to_string().contains("allOf"), "generators cannot use allOf");
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
        let document = build_document(&settings, &api_routes());
        for route in api_routes() {
            let method = route.method.as_str().to_lowercase();
            let operation = &document["paths"][route.path][&method];
            assert!(operation["summary"].is_string(), "{method} {}", route.path);
            let answers = operation["responses"].as_object().unwrap();
            assert!(answers.keys().any(|status| status.starts_with('2')), "{}", route.path);
            for status in route.problems {
                assert!(answers.contains_key(&status.to_string()), "{status} {}", route.path);
            }
            let is_guarded = route.minimum_role != MinimumRole::Anyone;
            let has_401 = is_guarded || route.problems.contains(&401);
            assert_eq!(answers.contains_key("401"), has_401, "{method} {}", route.path);
            assert_eq!(operation["security"].is_array(), is_guarded, "{method} {}", route.path);
            for requirement in operation["security"].as_array().into_iter().flatten() {
                for name in requirement.as_object().unwrap().keys() {
                    assert!(document["components"]["securitySchemes"][name].is_object(), "{name}");
                }
            }
        }
    }
}
