//! `/graphql`: GraphQL over HTTP (the specification of that name, stage 2), and the schema.
use penstock_graphql::{Answer, Query, check_request_size};
use penstock_http::accept::AcceptedTypes;
use penstock_http::access::MinimumRole::User;
use penstock_http::call::Call;
use penstock_http::operation::{Operation, get, post};
use penstock_http::parameters::AnyQuery;
use penstock_http::problem::Problem;
use penstock_http::reply::{Reply, ReplyResult};
use penstock_http::state::run_blocking;
use penstock_resources::graphql::{GraphqlRequest, GraphqlResponse};
use salvo::http::header::{ACCEPT, ALLOW, HeaderMap, RETRY_AFTER, VARY};
use salvo::http::{Method, StatusCode};
use serde_json::{Map, Value};

/// The newer media type. With it, the status of a document that was not executed is 400, not 200.
const RESPONSE_MEDIA_TYPE: &str = "application/graphql-response+json";
/// The older media type.
const JSON_MEDIA_TYPE: &str = "application/json";

/// Returns the operations.
pub(super) fn operations() -> Vec<Operation> {
    vec![
        add_answers(
            post("/graphql", User, execute_post)
                .describe("graphql", "GraphQL", "Executes a GraphQL document.")
                .body::<GraphqlRequest>()
                .problems(&[400, 406, 408, 413, 415]),
        ),
        add_answers(
            get("/graphql", User, execute_get)
                .describe("graphqlRead", "GraphQL", "Executes a GraphQL document that only reads.")
                .require("query")
                .problems(&[400, 405, 406, 413]),
        ),
        get("/graphql/schema.graphql", User, get_graphql_schema)
            .describe(
                "graphqlSchema",
                "GraphQL",
                "Returns the current schema in GraphQL's schema definition language.",
            )
            .empty_answer(200, "The schema.")
            .answer_as::<String>("text/plain")
            .problems(&[400]),
    ]
}

/// Adds the result, and the errors of GraphQL over HTTP, which are in `errors`.
fn add_answers(operation: Operation) -> Operation {
    operation
        .answer::<GraphqlResponse>(200, "The result: `data`, and `errors` if there are any.")
        .problem_as::<GraphqlResponse>(&[400, 503], JSON_MEDIA_TYPE)
        .problem_as::<GraphqlResponse>(&[400, 503], RESPONSE_MEDIA_TYPE)
}

async fn execute_post(mut call: Call<'_>, _query: AnyQuery) -> ReplyResult {
    let response_type = ResponseType::negotiate(call.req.headers())?;
    let body = call.read_small_json().await?;
    match read_body(body.bytes()) {
        Ok(query) => execute_query(&call, query, response_type).await,
        Err(why) => response_type.build_reply(&Answer::refused(why), StatusCode::BAD_REQUEST),
    }
}

penstock_http::parameters! {
    /// A GraphQL request in the query.
    struct ReadQuery {
        "query" => query: Option<String>, "The document.";
        "operationName" => operation_name: Option<String>, "The operation to execute.";
        "variables" => variables: Option<String>, "The values of its variables: a JSON object.";
        "extensions" => extensions: Option<String>, "A JSON object; no extension is supported.";
    }
}

async fn execute_get(call: Call<'_>, parameters: ReadQuery) -> ReplyResult {
    let response_type = ResponseType::negotiate(call.req.headers())?;
    check_request_size(call.req.uri().query().unwrap_or_default().len())?;
    let ReadQuery { query, operation_name, variables, extensions } = parameters;
    let mut members = Map::new();
    for (name, text) in [("query", query), ("operationName", operation_name)] {
        if let Some(text) = text {
            members.insert(name.to_owned(), text.into());
        }
    }
    for (name, text) in [("variables", variables), ("extensions", extensions)] {
        let Some(text) = text.filter(|text| !text.is_empty()) else { continue };
        match serde_json::from_str(&text) {
            Ok(value) => members.insert(name.to_owned(), value),
            Err(error) => {
                let refused = Answer::refused(format!("{name} is not JSON: {error}"));
                return response_type.build_reply(&refused, StatusCode::BAD_REQUEST);
            }
        };
    }
    match Query::from_members(members) {
        Ok(query) => execute_query(&call, Query { reads_only: true, ..query }, response_type).await,
        Err(why) => response_type.build_reply(&Answer::refused(why), StatusCode::BAD_REQUEST),
    }
}

async fn get_graphql_schema(call: Call<'_>) -> ReplyResult {
    let (graphql, caller) = (call.state().graphql()?.clone(), call.caller().clone());
    let sdl = run_blocking(move || Ok(graphql.render_sdl(&caller)?)).await?;
    Ok(Reply::bytes("text/plain; charset=utf-8", sdl))
}

async fn execute_query(call: &Call<'_>, query: Query, response_type: ResponseType) -> ReplyResult {
    let answer = call.state().graphql()?.execute(query, call.caller()).await;
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
