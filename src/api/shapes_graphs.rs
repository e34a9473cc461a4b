//! `/api/v1/shapes`: the shapes graphs that users define, in SHACL or `ShEx`.
use crate::definitions::{
    Served, delete_definition, list_definitions, put_definition, show_definition,
};
use penstock_http::accept::AcceptedTypes;
use penstock_http::access::MinimumRole::User;
use penstock_http::body::{self, find_media_type};
use penstock_http::call::Call;
use penstock_http::etag::{PutConditions, format_etag};
use penstock_http::operation::{Operation, delete, get, put};
use penstock_http::problem::Problem;
use penstock_http::reply::{Reply, ReplyResult};
use penstock_model::rdf::Format;
use penstock_model::shapes_graphs::{MAX_GRAPH_BYTES, TextFormat};
use penstock_resources::Page;
use penstock_resources::shapes_graph::ShapesGraph;
use penstock_service::definitions;
use penstock_service::definitions::Kind as _;
use penstock_service::shapes_graphs::{NewShapesGraph, ShapesGraphs, read_shapes_graph};
use salvo::http::StatusCode;
use salvo::http::header::{ETAG, VARY};
use serde_json::Value;

impl Served for ShapesGraphs {
    const PATH: &'static str = "/api/v1/shapes";
}

/// The media type of what is known about a shapes graph.
const JSON: &str = "application/json";

/// Returns the operations.
pub(super) fn operations() -> Vec<Operation> {
    let get_graph = get("/api/v1/shapes/{name}", User, get_shapes_graph)
        .describe(
            "getShapesGraph",
            "Shapes",
            "Returns the text of a shapes graph as it was sent, or what is known about it as JSON.\n\nThe answer is the \
             text, unless `Accept` prefers `application/json`.",
        )
        .answer::<ShapesGraph>(
            200,
            "The text in its media type, or what is known about the shapes graph.",
        )
        .etag()
        .problems(&[400, 404, 406]);
    let put_graph = put("/api/v1/shapes/{name}", ShapesGraphs::MIN_ROLE.into(), put_shapes_graph)
        .describe(
            "putShapesGraph",
            "Shapes",
            "Creates a shapes graph, or replaces the one of the same name.\n\nThe body is SHACL in one of the RDF \
             formats, or a `ShEx` schema. It is checked completely before it is stored. Nothing is fetched: it must not \
             import anything.",
        )
        .answer::<ShapesGraph>(200, "Replaced, or unchanged.")
        .etag()
        .answer::<ShapesGraph>(201, "Created.")
        .etag()
        .location()
        .problems(&[400, 408, 409, 412, 413, 415, 422, 507]);
    vec![
        get("/api/v1/shapes", User, list_definitions::<ShapesGraphs>)
            .describe("listShapesGraphs", "Shapes", "Lists the shapes graphs, ordered by name.")
            .answer::<Page<ShapesGraph>>(200, "A page.")
            .problems(&[400]),
        TextFormat::ALL.into_iter().fold(get_graph, add_answer),
        TextFormat::ALL.into_iter().fold(put_graph, add_body),
        delete(
            "/api/v1/shapes/{name}",
            ShapesGraphs::MIN_ROLE.into(),
            delete_definition::<ShapesGraphs>,
        )
        .describe(
            "deleteShapesGraph",
            "Shapes",
            "Deletes a shapes graph that no Business Object names.",
        )
        .parameter("If-Match", "Delete only this version.")
        .empty_answer(204, "Deleted.")
        .problems(&[400, 404, 409, 412, 507]),
    ]
}

/// Adds the text in this format to the last answer of an operation.
fn add_answer(operation: Operation, format: TextFormat) -> Operation {
    match format {
        TextFormat::Rdf(Format::JsonLd) => operation.answer_as::<Value>(format.media_type()),
        _ => operation.answer_as::<String>(format.media_type()),
    }
}

/// Adds the text in this format to the body of an operation.
fn add_body(operation: Operation, format: TextFormat) -> Operation {
    operation.body_as::<String>(format.media_type())
}

async fn get_shapes_graph(call: Call<'_>) -> ReplyResult {
    let (gateway, name) = (call.gateway()?, call.path("name"));
    let accepted = AcceptedTypes::from_headers(call.req.headers());
    let graph = read_shapes_graph(&gateway, name).await?;
    let media_type = graph.metadata.format.media_type();
    let (text, json) = (accepted.weight_of(media_type), accepted.weight_of(JSON));
    let reply = if text == 0 && json == 0 {
        return Err(Problem::new(
            StatusCode::NOT_ACCEPTABLE,
            format!(
                "the shapes graph is offered as {media_type}, and what is known about it as {JSON}"
            ),
        ));
    } else if text >= json {
        let etag = format_etag(graph.metadata.version);
        Reply::bytes(media_type, graph.text).with_header(ETAG, &etag)
    } else {
        let found = definitions::find::<ShapesGraphs>(&gateway, call.caller(), name).await?;
        show_definition::<ShapesGraphs>(&found)?
    };
    Ok(reply.with_header(VARY, "Accept"))
}

async fn put_shapes_graph(call: Call<'_>, conditions: PutConditions) -> ReplyResult {
    let media_type = find_media_type(call.req, &TextFormat::ALL.map(TextFormat::media_type))?;
    let format = TextFormat::from_media_type(media_type)
        .ok_or_else(|| Problem::malformed("the media type is not known"))?;
    let body = body::read_body_up_to(call.req, call.depot, MAX_GRAPH_BYTES as u64).await?;
    let name = call.path("name");
    let new = NewShapesGraph { name: name.to_owned(), text: Box::new(body), format };
    put_definition::<ShapesGraphs>(&call, name, new, &conditions).await
}
