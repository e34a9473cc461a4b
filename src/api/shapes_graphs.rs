//! `/api/v1/shapes`: the shapes graphs that users define, in SHACL or `ShEx`.
use crate::shapes;
use penstock_base::{IfMatch, Preconditions};
use penstock_http::accept::AcceptedTypes;
use penstock_http::body::{self, find_media_type};
use penstock_http::caller::caller;
use penstock_http::etag::{format_etag, read_preconditions};
use penstock_http::path::{encode_segment, path_parameter};
use penstock_http::problem::Problem;
use penstock_http::query::{Query, truncate_page};
use penstock_http::reply::{Reply, ReplyResult};
use penstock_http::service::origin;
use penstock_http::state::gateway;
use penstock_model::shapes_graphs::{MAX_GRAPH_BYTES, TextFormat};
use penstock_service::gateway::Gateway;
use penstock_service::shapes_graphs::{self, CheckedGraph, SaveConditions};
use salvo::http::StatusCode;
use salvo::http::header::{ETAG, LOCATION, VARY};
use salvo::{Depot, Request};
use salvo_oapi::endpoint;

/// The media type of what is known about a shapes graph.
const JSON: &str = "application/json";

/// Lists the shapes graphs, ordered by name.
#[endpoint(
    operation_id = "listShapesGraphs",
    tags("Shapes"),
    parameters(
        ("limit" = Option<u32>, Query, description = "Items of a page, 1 to 1000; 100 when absent.", minimum = 1, maximum = 1000),
        ("cursor" = Option<String>, Query, description = "The `next` of the previous page."),
    ),
    responses((status_code = 200, description = "A page.", body = shapes::ShapesGraphs)),
)]
pub(super) async fn list_shapes_graphs(req: &mut Request, depot: &mut Depot) -> ReplyResult {
    let query = Query::read(req, &["limit", "cursor"])?;
    let (limit, after) = (query.read_limit()?, query.read_cursor()?);
    let listed = shapes_graphs::list_shapes_graphs(&gateway(depot)?, after, limit + 1).await?;
    let mut items: Vec<_> = listed.into_iter().map(shapes::ShapesGraph::from).collect();
    let next = truncate_page(&mut items, limit, |graph| &graph.name);
    Reply::json(&shapes::ShapesGraphs { items, next })
}

/// Returns the text of a shapes graph as it was sent, or what is known about it as JSON.
///
/// The answer is the text, unless `Accept` prefers `application/json`.
#[endpoint(
    operation_id = "getShapesGraph",
    tags("Shapes"),
    parameters(("name" = String, Path, description = "Its name.")),
    responses((status_code = 200, description = "The text in its media type, or what is known about the shapes graph.",
        headers(("ETag" = String, description = "The version in quotes.")),
        content(("application/json" = shapes::ShapesGraph), ("text/turtle" = String), ("application/n-triples" = String),
            ("application/n-quads" = String), ("application/trig" = String), ("application/rdf+xml" = String),
            ("application/ld+json" = serde_json::Value), ("text/shex" = String)))),
)]
pub(super) async fn get_shapes_graph(req: &mut Request, depot: &mut Depot) -> ReplyResult {
    Query::read(req, &[])?;
    let (gateway, name) = (gateway(depot)?, path_parameter(req, "name"));
    let accepted = AcceptedTypes::from_headers(req.headers());
    let graph = shapes_graphs::read_shapes_graph(&gateway, name).await?;
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
        metadata_reply(shapes_graphs::find_shapes_graph(&gateway, name).await?)?
    };
    Ok(reply.with_header(VARY, "Accept"))
}

/// Creates a shapes graph, or replaces the one of the same name.
///
/// The body is SHACL in one of the RDF formats, or a `ShEx` schema. It is checked completely before it is stored.
/// Nothing is fetched: it must not import anything.
#[endpoint(
    operation_id = "putShapesGraph",
    tags("Shapes"),
    parameters(
        ("name" = String, Path, description = "Its name."),
        ("If-Match" = Option<String>, Header, description = "Replace only this version."),
        ("If-None-Match" = Option<String>, Header, description = "`*`: create only."),
    ),
    request_body(content = String, content_type = "text/turtle"),
    responses(
        (status_code = 200, description = "Replaced, or unchanged.", body = shapes::ShapesGraph,
            headers(("ETag" = String, description = "The version in quotes."))),
        (status_code = 201, description = "Created.", body = shapes::ShapesGraph,
            headers(("ETag" = String, description = "The version in quotes."),
                    ("Location" = String, description = "Its path."))),
    ),
)]
pub(super) async fn put_shapes_graph(req: &mut Request, depot: &mut Depot) -> ReplyResult {
    Query::read(req, &[])?;
    let gateway = gateway(depot)?;
    let media_type = find_media_type(req, &TextFormat::ALL.map(TextFormat::media_type))?;
    let format = TextFormat::from_media_type(media_type)
        .ok_or_else(|| Problem::malformed("the media type is not known"))?;
    let body = body::read_body_up_to(req, depot, MAX_GRAPH_BYTES as u64).await?;
    let name = path_parameter(req, "name");
    let Preconditions { if_match, only_if_new } = read_path_preconditions(req, &gateway)?;
    let conditions = SaveConditions { if_match, only_if_new };
    let by = caller(depot);
    let (graph, created) =
        shapes_graphs::define_shapes_graph(&gateway, by, name, body, format, conditions).await?;
    let location =
        format!("{}/api/v1/shapes/{}", origin(depot).prefix, encode_segment(&graph.metadata.name));
    let reply = metadata_reply(graph)?;
    if !created {
        return Ok(reply);
    }
    Ok(reply.with_status(StatusCode::CREATED).with_header(LOCATION, &location))
}

/// Deletes a shapes graph that no Business Object names.
#[endpoint(
    operation_id = "deleteShapesGraph",
    tags("Shapes"),
    parameters(
        ("name" = String, Path, description = "Its name."),
        ("If-Match" = Option<String>, Header, description = "Delete only this version."),
    ),
    responses((status_code = 204, description = "Deleted.")),
)]
pub(super) async fn delete_shapes_graph(req: &mut Request, depot: &mut Depot) -> ReplyResult {
    Query::read(req, &[])?;
    let (gateway, name) = (gateway(depot)?, path_parameter(req, "name"));
    // A graph that does not exist is 404, whatever the condition.
    let if_match = match gateway.catalogue.get_shapes_graph(name) {
        Some(_) => read_path_preconditions(req, &gateway)?.if_match,
        None => IfMatch::Any,
    };
    shapes_graphs::delete_shapes_graph(&gateway, caller(depot), name, if_match).await?;
    Ok(Reply::no_content())
}

/// Responds with what is known about a shapes graph.
fn metadata_reply(graph: CheckedGraph) -> ReplyResult {
    let etag = format_etag(graph.metadata.version);
    Ok(Reply::json(&shapes::ShapesGraph::from(graph))?.with_header(ETAG, &etag))
}

/// Returns the preconditions of a change of the shapes graph in the path.
///
/// # Errors
/// 412 if one is false.
fn read_path_preconditions(req: &Request, gateway: &Gateway) -> Result<Preconditions, Problem> {
    let there = gateway.catalogue.get_shapes_graph(path_parameter(req, "name"));
    read_preconditions(req, there.map(|there| there.metadata.version))
}
