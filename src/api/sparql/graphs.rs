//! `/sparql/graphs`: the SPARQL 1.1 Graph Store Protocol.
use super::answer::{WriteLimit, stream_answer};
use super::formats::negotiate_graph;
use oxrdf::{GraphName, NamedNode};
use penstock_base::Preconditions;
use penstock_http::accept::AcceptedTypes;
use penstock_http::body::{self, BufferedBody, find_media_type};
use penstock_http::caller::caller;
use penstock_http::etag::read_existence_preconditions;
use penstock_http::problem::Problem;
use penstock_http::query::Query;
use penstock_http::reply::{Reply, ReplyResult};
use penstock_http::service::trace;
use penstock_http::state::{gateway, run_blocking};
use penstock_model::rdf::{Format, GraphWrite, LoadOptions, parse_iri};
use penstock_service::sparql::{self, ChangeRequest};
use salvo::http::header::VARY;
use salvo::http::{Method, ResBody, StatusCode};
use salvo::{Depot, Request};
use salvo_oapi::endpoint;

/// Returns the triples of a graph.
#[endpoint(
    operation_id = "getGraph",
    tags("SPARQL"),
    parameters(
        ("graph" = Option<String>, Query, description = "The IRI of the graph."),
        ("default" = Option<String>, Query, description = "The unnamed graph, in place of `graph`; without a value."),
    ),
    responses((status_code = 200, description = "The triples in the media type that Accept prefers.",
        content(("text/turtle" = String), ("application/n-triples" = String), ("application/n-quads" = String),
            ("application/trig" = String), ("application/rdf+xml" = String),
            ("application/ld+json" = serde_json::Value)))),
)]
pub(crate) async fn get_graph(req: &mut Request, depot: &mut Depot) -> ReplyResult {
    let graph = read_graph(&Query::read(req, &["graph", "default"])?)?;
    let (media_type, format) = negotiate_graph(&AcceptedTypes::from_headers(req.headers()))?;
    let gateway = gateway(depot)?;
    sparql::check_graph_exists(&gateway, graph.clone()).await?;
    let reply = if *req.method() == Method::HEAD {
        Reply::stream(media_type, ResBody::None)
    } else {
        let permit = sparql::acquire_graph_permit(&gateway, caller(depot)).await?;
        stream_answer(req, WriteLimit::Rate, move |writer| {
            let _permit = permit;
            writer.set_media_type(media_type);
            sparql::read_graph(&gateway, &graph, format, writer)?;
            Ok(())
        })
        .await?
    };
    Ok(reply.with_header(VARY, "Accept"))
}

/// Replaces the triples of a graph in one commit.
#[endpoint(
    operation_id = "putGraph",
    tags("SPARQL"),
    parameters(
        ("graph" = Option<String>, Query, description = "The IRI of the graph."),
        ("default" = Option<String>, Query, description = "The unnamed graph, in place of `graph`; without a value."),
        ("skolemize" = Option<String>, Query, description = "Replace each blank node by an IRI that begins with this one."),
        ("bypass" = Option<bool>, Query, description = "Change objects of Business Objects that refuse what violates their shapes; the audit log names it."),
        ("If-Match" = Option<String>, Header, description = "`*`: only if the graph has triples. A graph has no `ETag`."),
        ("If-None-Match" = Option<String>, Header, description = "`*`: only if the graph has no triples."),
    ),
    request_body(content = String, content_type = "text/turtle"),
    responses(
        (status_code = 201, description = "The graph had no triples before."),
        (status_code = 204, description = "Replaced and synced to disk."),
    ),
)]
pub(crate) async fn put_graph(req: &mut Request, depot: &mut Depot) -> ReplyResult {
    write_document(req, depot, true).await
}

/// Adds triples to a graph in one commit.
#[endpoint(
    operation_id = "postGraph",
    tags("SPARQL"),
    parameters(
        ("graph" = Option<String>, Query, description = "The IRI of the graph."),
        ("default" = Option<String>, Query, description = "The unnamed graph, in place of `graph`; without a value."),
        ("skolemize" = Option<String>, Query, description = "Replace each blank node by an IRI that begins with this one."),
        ("bypass" = Option<bool>, Query, description = "Change objects of Business Objects that refuse what violates their shapes; the audit log names it."),
        ("If-Match" = Option<String>, Header, description = "`*`: only if the graph has triples. A graph has no `ETag`."),
        ("If-None-Match" = Option<String>, Header, description = "`*`: only if the graph has no triples."),
    ),
    request_body(content = String, content_type = "text/turtle"),
    responses(
        (status_code = 201, description = "The graph had no triples before."),
        (status_code = 204, description = "Added and synced to disk."),
    ),
)]
pub(crate) async fn post_graph(req: &mut Request, depot: &mut Depot) -> ReplyResult {
    write_document(req, depot, false).await
}

/// Deletes the triples of a graph in one commit.
#[endpoint(
    operation_id = "deleteGraph",
    tags("SPARQL"),
    parameters(
        ("graph" = Option<String>, Query, description = "The IRI of the graph."),
        ("default" = Option<String>, Query, description = "The unnamed graph, in place of `graph`; without a value."),
        ("bypass" = Option<bool>, Query, description = "Change objects of Business Objects that refuse what violates their shapes; the audit log names it."),
        ("If-Match" = Option<String>, Header, description = "`*`: only if the graph has triples. A graph has no `ETag`."),
        ("If-None-Match" = Option<String>, Header, description = "`*`: only if the graph has no triples."),
    ),
    responses((status_code = 204, description = "Deleted and synced to disk.")),
)]
pub(crate) async fn delete_graph(req: &mut Request, depot: &mut Depot) -> ReplyResult {
    let query = Query::read(req, &["graph", "default", "bypass"])?;
    let target = WriteTarget {
        graph: read_graph(&query)?,
        replaces: true,
        bypass: query.read_flag("bypass")?,
        preconditions: read_existence_preconditions(req)?,
    };
    write_graph(depot, target, None).await
}

/// The graph of a request that writes, and how.
struct WriteTarget {
    graph: GraphName,
    /// Whether the triples of the request replace those of the graph.
    replaces: bool,
    bypass: bool,
    preconditions: Preconditions,
}

async fn write_document(req: &mut Request, depot: &mut Depot, replaces: bool) -> ReplyResult {
    let query = Query::read(req, &["graph", "default", "skolemize", "bypass"])?;
    let graph = read_graph(&query)?;
    sparql::check_updates_allowed(&gateway(depot)?)?;
    let format = read_format(req)?;
    let skolemize = query.get("skolemize").map(parse_iri).transpose();
    let skolemize = skolemize.map_err(Problem::malformed)?;
    // Relative IRIs are resolved against the IRI of the graph (Graph Store Protocol, 5.3).
    let base = match &graph {
        GraphName::NamedNode(iri) => Some(iri.clone()),
        _ => None,
    };
    let bypass = query.read_flag("bypass")?;
    let preconditions = read_existence_preconditions(req)?;
    let options = LoadOptions { format, graph: graph.clone(), base, skolemize, bypass };
    let body = body::read_whole_body(req, depot).await?;
    let target = WriteTarget { graph, replaces, bypass, preconditions };
    write_graph(depot, target, Some((options, body))).await
}

async fn write_graph(
    depot: &Depot,
    target: WriteTarget,
    document: Option<(LoadOptions, BufferedBody)>,
) -> ReplyResult {
    let WriteTarget { graph, replaces, bypass, preconditions } = target;
    let (gateway, by, trace) = (gateway(depot)?, caller(depot).clone(), trace(depot));
    let is_created = run_blocking(move || {
        let document = document.as_ref().map(|(options, body)| (options, body.bytes()));
        let bytes = document.map_or(0, |(_, text)| text.len() as u64);
        let request = ChangeRequest { by: &by, trace, bytes, bypass };
        let max_quads = gateway.settings.limits.sparql.update;
        let write = GraphWrite { graph: &graph, replaces, document, max_quads };
        let written = sparql::write_graph(&gateway, &request, &write, preconditions)?;
        Ok(!written.existed && written.quads.inserted > 0)
    })
    .await?;
    let status = if is_created { StatusCode::CREATED } else { StatusCode::NO_CONTENT };
    Ok(Reply::no_content().with_status(status))
}

/// Returns the graph that the request names: `?graph=` an absolute IRI, or `?default`.
fn read_graph(query: &Query) -> Result<GraphName, Problem> {
    match (query.get("graph"), query.get("default")) {
        (Some(iri), None) => {
            let iri: NamedNode = parse_iri(iri)
                .map_err(|why| Problem::malformed(format!("the query parameter graph: {why}")))?;
            Ok(iri.into())
        }
        (None, Some("")) => Ok(GraphName::DefaultGraph),
        _ => Err(Problem::malformed(
            "name one graph: ?graph= with its absolute IRI, or ?default without a value",
        )),
    }
}

fn read_format(req: &Request) -> Result<Format, Problem> {
    let media_type = find_media_type(req, &Format::ALL.map(Format::media_type))?;
    Ok(Format::ALL
        .into_iter()
        .find(|format| format.media_type() == media_type)
        .unwrap_or(Format::Turtle))
}
