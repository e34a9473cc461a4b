//! `/sparql/graphs`: the SPARQL 1.1 Graph Store Protocol.
use super::answer::{WriteLimit, stream_answer};
use super::formats::negotiate_graph;
use oxrdf::{GraphName, NamedNode};
use penstock_base::Preconditions;
use penstock_http::accept::AcceptedTypes;
use penstock_http::access::MinimumRole::{Admin, User};
use penstock_http::body::{self, BufferedBody, find_media_type};
use penstock_http::call::Call;
use penstock_http::etag::PutConditions;
use penstock_http::operation::{Operation, delete, get, post, put};
use penstock_http::problem::Problem;
use penstock_http::reply::{Reply, ReplyResult};
use penstock_http::state::run_blocking;
use penstock_model::rdf::{Format, GraphWrite, LoadOptions, parse_iri};
use penstock_service::sparql::{self, ChangeRequest};
use salvo::Request;
use salvo::http::header::VARY;
use salvo::http::{Method, ResBody, StatusCode};

/// Returns the operations.
pub(crate) fn operations() -> Vec<Operation> {
    let put = put("/sparql/graphs", Admin, put_graph)
        .describe("putGraph", "SPARQL", "Replaces the triples of a graph in one commit.")
        .empty_answer(201, "The graph had no triples before.")
        .empty_answer(204, "Replaced and synced to disk.");
    let post = post("/sparql/graphs", Admin, post_graph)
        .describe("postGraph", "SPARQL", "Adds triples to a graph in one commit.")
        .empty_answer(201, "The graph had no triples before.")
        .empty_answer(204, "Added and synced to disk.");
    let delete = delete("/sparql/graphs", Admin, delete_graph)
        .describe("deleteGraph", "SPARQL", "Deletes the triples of a graph in one commit.")
        .empty_answer(204, "Deleted and synced to disk.")
        .problems(&[400, 404, 409, 412, 413, 422, 507]);
    vec![
        get("/sparql/graphs", User, get_graph)
            .describe("getGraph", "SPARQL", "Returns the triples of a graph.")
            .empty_answer(200, "The triples in the media type that Accept prefers.")
            .answer_as_rdf()
            .problems(&[400, 404, 406, 422]),
        describe_preconditions(describe_document(put)),
        describe_preconditions(describe_document(post)),
        describe_preconditions(delete),
    ]
}

/// Describes the body and the problems of an operation that writes a document.
fn describe_document(operation: Operation) -> Operation {
    let formats = Format::ALL.into_iter();
    formats
        .fold(operation, |operation, format| operation.body_as::<String>(format.media_type()))
        .problems(&[400, 408, 409, 412, 413, 415, 422, 507])
}

fn describe_preconditions(operation: Operation) -> Operation {
    operation
        .parameter("If-Match", "`*`: only if the graph has triples. A graph has no `ETag`.")
        .parameter("If-None-Match", "`*`: only if the graph has no triples.")
}

penstock_http::parameters! {
    /// The graph.
    struct GraphQuery {
        "graph" => graph: Option<String>, "The IRI of the graph.";
        "default" => default: Option<String>, "The unnamed graph, in place of `graph`; without a value.";
    }
}

penstock_http::parameters! {
    /// The graph of a document, and how it is written.
    struct WriteQuery {
        "graph" => graph: Option<String>, "The IRI of the graph.";
        "default" => default: Option<String>, "The unnamed graph, in place of `graph`; without a value.";
        "skolemize" => skolemize: Option<String>, "Replace each blank node by an IRI that begins with this one.";
        "bypass" => bypass: bool, "Change objects of Business Objects that refuse what violates their shapes; the audit trail names it.";
    }
}

penstock_http::parameters! {
    /// The graph to delete, and how.
    struct DeleteQuery {
        "graph" => graph: Option<String>, "The IRI of the graph.";
        "default" => default: Option<String>, "The unnamed graph, in place of `graph`; without a value.";
        "bypass" => bypass: bool, "Change objects of Business Objects that refuse what violates their shapes; the audit trail names it.";
    }
}

async fn get_graph(call: Call<'_>, query: GraphQuery) -> ReplyResult {
    let graph = read_graph(query.graph.as_deref(), query.default.as_deref())?;
    let (media_type, format) = negotiate_graph(&AcceptedTypes::from_headers(call.req.headers()))?;
    let gateway = call.gateway()?;
    sparql::check_graph_exists(&gateway, graph.clone()).await?;
    let reply = if *call.req.method() == Method::HEAD {
        Reply::stream(media_type, ResBody::None)
    } else {
        let permit = sparql::acquire_graph_permit(&gateway, call.caller()).await?;
        stream_answer(call.req, WriteLimit::Rate, move |writer| {
            let _permit = permit;
            writer.set_media_type(media_type);
            sparql::read_graph(&gateway, &graph, format, writer)?;
            Ok(())
        })
        .await?
    };
    Ok(reply.with_header(VARY, "Accept"))
}

async fn put_graph(call: Call<'_>, query: (WriteQuery, PutConditions)) -> ReplyResult {
    write_document(call, query, true).await
}

async fn post_graph(call: Call<'_>, query: (WriteQuery, PutConditions)) -> ReplyResult {
    write_document(call, query, false).await
}

async fn delete_graph(
    call: Call<'_>,
    (query, conditions): (DeleteQuery, PutConditions),
) -> ReplyResult {
    let target = WriteTarget {
        graph: read_graph(query.graph.as_deref(), query.default.as_deref())?,
        replaces: true,
        bypass: query.bypass,
        preconditions: conditions.check_existence()?,
    };
    write_graph(&call, target, None).await
}

/// The graph of a request that writes, and how.
struct WriteTarget {
    graph: GraphName,
    /// Whether the triples of the request replace those of the graph.
    replaces: bool,
    bypass: bool,
    preconditions: Preconditions,
}

async fn write_document(
    call: Call<'_>,
    (query, conditions): (WriteQuery, PutConditions),
    replaces: bool,
) -> ReplyResult {
    let graph = read_graph(query.graph.as_deref(), query.default.as_deref())?;
    sparql::check_updates_allowed(&call.gateway()?)?;
    let format = read_format(call.req)?;
    let skolemize = query.skolemize.as_deref().map(parse_iri).transpose();
    let skolemize = skolemize.map_err(Problem::malformed)?;
    // Relative IRIs are resolved against the IRI of the graph (Graph Store Protocol, 5.3).
    let base = match &graph {
        GraphName::NamedNode(iri) => Some(iri.clone()),
        _ => None,
    };
    let preconditions = conditions.check_existence()?;
    let options =
        LoadOptions { format, graph: graph.clone(), base, skolemize, bypass: query.bypass };
    let body = body::read_whole_body(call.req, call.depot).await?;
    let target = WriteTarget { graph, replaces, bypass: query.bypass, preconditions };
    write_graph(&call, target, Some((options, body))).await
}

async fn write_graph(
    call: &Call<'_>,
    target: WriteTarget,
    document: Option<(LoadOptions, BufferedBody)>,
) -> ReplyResult {
    let WriteTarget { graph, replaces, bypass, preconditions } = target;
    let (gateway, by, trace) = (call.gateway()?, call.caller().clone(), call.trace());
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
fn read_graph(graph: Option<&str>, default: Option<&str>) -> Result<GraphName, Problem> {
    match (graph, default) {
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
