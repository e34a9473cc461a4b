//! `/graphql`: GraphQL over HTTP (the specification of that name, stage 2), and the schema.
use crate::shapes;
use penstock_graphql::{Answer, Query, check_request_size};
use penstock_http::accept::AcceptedTypes;
use penstock_http::body;
use penstock_http::caller::caller;
use penstock_http::problem::Problem;
use penstock_http::query::Query as Parameters;
use penstock_http::reply::{Reply, ReplyResult};
use penstock_http::state::{run_blocking, state};
use salvo::http::header::{ACCEPT, ALLOW, HeaderMap, RETRY_AFTER, VARY};
use salvo::http::{Method, StatusCode};
use salvo::{Depot, Request};
use salvo_oapi::endpoint;
use serde_json::{Map, Value};

/// The newer media type. With it, the status of a document that was not executed is 400, not 200.
const RESPONSE_MEDIA_TYPE: &str = "application/graphql-response+json";
/// The older media type.
const JSON_MEDIA_TYPE: &str = "application/json";

/// Executes a GraphQL document.
#[endpoint(
    operation_id = "graphql",
    tags("GraphQL"),
    request_body(content = shapes::GraphqlRequest, content_type = "application/json"),
    responses(
        (status_code = 200, description = "The result: `data`, and `errors` if there are any.",
         body = shapes::GraphqlResponse),
    ),
)]
pub(super) async fn execute_post(req: &mut Request, depot: &mut Depot) -> ReplyResult {
    let response_type = ResponseType::negotiate(req.headers())?;
    let body = body::read_small_json(req, depot).await?;
    match read_body(body.bytes()) {
        Ok(query) => execute_query(depot, query, response_type).await,
        Err(why) => response_type.build_reply(&Answer::refused(why), StatusCode::BAD_REQUEST),
    }
}

/// Executes a GraphQL document that only reads.
#[endpoint(
    operation_id = "graphqlRead",
    tags("GraphQL"),
    parameters(
        ("query" = String, Query, description = "The document."),
        ("operationName" = Option<String>, Query, description = "The operation to execute."),
        ("variables" = Option<String>, Query, description = "The values of its variables: a JSON object."),
        ("extensions" = Option<String>, Query, description = "A JSON object; no extension is supported."),
    ),
    responses(
        (status_code = 200, description = "The result: `data`, and `errors` if there are any.",
         body = shapes::GraphqlResponse),
    ),
)]
pub(super) async fn execute_get(req: &mut Request, depot: &mut Depot) -> ReplyResult {
    let response_type = ResponseType::negotiate(req.headers())?;
    let parameters = Parameters::read(req, &["query", "operationName", "variables", "extensions"])?;
    check_request_size(req.uri().query().unwrap_or_default().len())?;
    let mut members = Map::new();
    for name in ["query", "operationName"] {
        if let Some(text) = parameters.get(name) {
            members.insert(name.to_owned(), text.into());
        }
    }
    for name in ["variables", "extensions"] {
        let Some(text) = parameters.get(name).filter(|text| !text.is_empty()) else { continue };
        match serde_json::from_str(text) {
            Ok(value) => members.insert(name.to_owned(), value),
            Err(error) => {
                let refused = Answer::refused(format!("{name} is not JSON: {error}"));
                return response_type.build_reply(&refused, StatusCode::BAD_REQUEST);
            }
        };
    }
    match Query::from_members(members) {
        Ok(query) => execute_query(depot, Query { reads_only: true, ..query }, response_type).await,
        Err(why) => response_type.build_reply(&Answer::refused(why), StatusCode::BAD_REQUEST),
    }
}

/// Returns the current schema in GraphQL's schema definition language.
#[endpoint(
    operation_id = "graphqlSchema",
    tags("GraphQL"),
    responses((status_code = 200, description = "The schema.", body = String, content_type = "text/plain")),
)]
pub(super) async fn get_graphql_schema(req: &mut Request, depot: &mut Depot) -> ReplyResult {
    Parameters::read(req, &[])?;
    let (graphql, caller) = (state(depot).graphql()?.clone(), caller(depot).clone());
    let sdl = run_blocking(move || Ok(graphql.render_sdl(&caller)?)).await?;
    Ok(Reply::bytes("text/plain; charset=utf-8", sdl))
}

async fn execute_query(depot: &Depot, query: Query, response_type: ResponseType) -> ReplyResult {
    let answer = state(depot).graphql()?.execute(query, caller(depot)).await;
    let status = match answer.data {
        _ if answer.would_change => StatusCode::METHOD_NOT_ALLOWED,
        _ if answer.is_busy => StatusCode::SERVICE_UNAVAILABLE,
        // With the older media type, any other status may come from a proxy. Only 200 tells the client that the
        // response is the gateway's.
        None if response_type == ResponseType::Response => StatusCode::BAD_REQUEST,
        _ => StatusCode::OK,
    };
    let reply = response_type.build_reply(&answer, status)?;
    Ok(match status {
        StatusCode::METHOD_NOT_ALLOWED => reply.with_header(ALLOW, Method::POST.as_str()),
        StatusCode::SERVICE_UNAVAILABLE => reply.with_header(RETRY_AFTER, "1"),
        _ => reply,
    })
}

/// The media type of the response.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ResponseType {
    Response,
    Json,
}

impl ResponseType {
    /// Returns the type that the request prefers. If the request accepts any type, that is the older one, which
    /// every client can read.
    fn negotiate(headers: &HeaderMap) -> Result<Self, Problem> {
        let accepted = AcceptedTypes::from_headers(headers);
        match (accepted.weight_of(RESPONSE_MEDIA_TYPE), accepted.weight_of(JSON_MEDIA_TYPE)) {
            (0, 0) => Err(Problem::new(
                StatusCode::NOT_ACCEPTABLE,
                format!(
                    "the response is {RESPONSE_MEDIA_TYPE} or {JSON_MEDIA_TYPE}; Accept allows neither"
                ),
            )),
            (response, json) if response > json => Ok(Self::Response),
            // Equal weights: a client that names the newer type supports it.
            (response, json) if response == json && accepted.has_named(RESPONSE_MEDIA_TYPE) => {
                Ok(Self::Response)
            }
            _ => Ok(Self::Json),
        }
    }

    fn build_reply(self, answer: &Answer, status: StatusCode) -> ReplyResult {
        let media_type = match self {
            Self::Response => "application/graphql-response+json; charset=utf-8",
            Self::Json => "application/json; charset=utf-8",
        };
        let reply = Reply::json(answer)?.with_media_type(media_type).with_status(status);
        Ok(reply.with_header(VARY, ACCEPT.as_str()))
    }
}

fn read_body(text: &[u8]) -> Result<Query, String> {
    match serde_json::from_slice(text) {
        Ok(Value::Object(members)) => Query::from_members(members),
        Ok(Value::Array(_)) => {
            Err("batches are not supported; send one request after the other".into())
        }
        Ok(_) => Err("the body must be a JSON object".into()),
        Err(error) => Err(format!("the body is not JSON: {error}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn form(accept: &[&str]) -> Option<ResponseType> {
        let mut headers = HeaderMap::new();
        for line in accept {
            headers.append(ACCEPT, line.parse().unwrap());
        }
        ResponseType::negotiate(&headers).ok()
    }

    #[test]
    fn prefers_the_media_type_that_the_request_prefers() {
        for json in [
            &[][..],
            &["*/*"],
            &["application/json"],
            &["text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8"],
            &["application/graphql-response+json;q=0.5, application/json"],
            &["application/graphql-response+json;q=0, */*"],
        ] {
            assert_eq!(form(json), Some(ResponseType::Json), "{json:?}");
        }
        for response in [
            &["application/graphql-response+json"][..],
            &["application/graphql-response+json; charset=utf-8, application/json;q=0.9"],
            &["application/json", "Application/GraphQL-Response+JSON"],
            &["application/graphql-response+json, */*;q=0.1"],
        ] {
            assert_eq!(form(response), Some(ResponseType::Response), "{response:?}");
        }
        for none in [&["text/html"][..], &["application/json;q=0"], &["image/*"]] {
            assert_eq!(form(none), None, "{none:?}");
        }
    }

    #[test]
    fn rejects_parameters_of_other_types() {
        let read = |value: Value| read_body(value.to_string().as_bytes());
        let query =
            read(json!({"query": "{a}", "operationName": null, "variables": {"a": 1}, "x": 1}))
                .unwrap();
        assert_eq!((query.document.as_str(), query.variables.len()), ("{a}", 1));
        for bad in [
            json!({}),
            json!({"query": 1}),
            json!({"query": "{a}", "variables": "{}"}),
            json!({"query": "{a}", "variables": []}),
            json!({"query": "{a}", "operationName": 1}),
            json!({"query": "{a}", "extensions": 1}),
            json!([{"query": "{a}"}]),
            json!("{a}"),
        ] {
            assert!(read(bad.clone()).is_err(), "{bad}");
        }
        assert!(read_body(b"{").is_err());
    }
}
