//! The OpenAPI document, made from the router's table, the endpoints and the shapes.
use super::router::{Route, table};
use super::shapes;
use salvo::http::{Method, StatusCode};
use salvo::oapi::{BasicType, Operation, Ref, RefOr};
use salvo::oapi::{Content, Header, Info, Object, OpenApi, PathItemType, Response, ToSchema};

/// Problems that every route can answer: a foreign `Host`, a fault of the gateway, and not yet open.
const EVERYWHERE: &[u16] = &[400, 403, 500, 503];

/// The document of all routes.
pub(super) fn document() -> OpenApi {
    let mut document = OpenApi::with_info(
        Info::new("Penstock", env!("CARGO_PKG_VERSION"))
            .description("A semantic data gateway: JSON in, RDF on disk, exports in order."),
    );
    let _ = shapes::Problem::to_schema(&mut document.components);
    for route in table() {
        document = document.merge_router(&route.router());
        describe(&mut document, &route);
    }
    document
}

fn describe(document: &mut OpenApi, route: &Route) {
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
    operation.extensions.insert("x-least-role".into(), format!("{:?}", route.role).into());
    for status in EVERYWHERE.iter().chain(route.problems) {
        let Ok(status) = StatusCode::from_u16(*status) else { continue };
        operation.responses.insert(status.as_str(), problem(status));
    }
    if operation.operation_id.as_deref() == Some("ingest") {
        stream(operation);
    }
}

/// Adds the other form of an ingestion: a line is described in words, since OpenAPI 3.1 has no schema
/// for the items of a stream.
fn stream(operation: &mut Operation) {
    let lines = || Content::new(Object::new().schema_type(BasicType::String));
    let media_type = "application/x-ndjson";
    if let Some(body) = &mut operation.request_body {
        body.contents.insert(media_type.to_owned(), lines());
    }
    if let Some(RefOr::Type(done)) = operation.responses.get_mut("200") {
        done.contents.insert(media_type.to_owned(), lines());
    }
}

fn problem(status: StatusCode) -> Response {
    let response = Response::new(meaning(status))
        .add_content("application/problem+json", Content::new(Ref::from_schema_name("Problem")));
    if status == StatusCode::SERVICE_UNAVAILABLE {
        let seconds = Object::new().schema_type(BasicType::Integer);
        return response
            .add_header("Retry-After", Header::new(seconds).description("Seconds to wait."));
    }
    response
}

fn meaning(status: StatusCode) -> &'static str {
    match status.as_u16() {
        400 => "It cannot be read: malformed, an unknown parameter, a bad cursor or mode.",
        403 => {
            "The request may not come in: its Host is not this gateway's, or another site sent it."
        }
        404 => "There is no such thing.",
        408 => "The body came too slowly.",
        409 => "It contradicts what is there.",
        412 => "The resource has another version than If-Match or If-None-Match asks for.",
        413 => "It is over a limit; see /api/v1/limits.",
        415 => "The body's media type, charset or coding is none that is taken here.",
        406 => "None of the media types in Accept is offered.",
        422 => "It can be read, and it is wrong; every finding has its place.",
        503 => "Not now: the store is being opened, takes no changes, or too much is in flight.",
        507 => "There is no room on the gateway's disk.",
        _ => "A fault of the gateway; its log has more.",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_route_of_the_table_is_described() {
        let document = serde_json::to_value(document()).unwrap();
        for route in table() {
            let method = route.method.as_str().to_lowercase();
            let operation = &document["paths"][route.path][&method];
            assert!(operation["summary"].is_string(), "{method} {}", route.path);
            let answers = operation["responses"].as_object().unwrap();
            assert!(answers.keys().any(|status| status.starts_with('2')), "{}", route.path);
            for status in route.problems {
                assert!(answers.contains_key(&status.to_string()), "{status} {}", route.path);
            }
        }
    }
}
