//! `/sparql`: the SPARQL 1.1 Protocol and the service description; `/sparql/update`; `/control/query`.
mod answer;
mod description;
mod formats;
pub(super) mod graphs;

use answer::with_warnings;
pub(crate) use answer::{WriteLimit, stream_answer};
use oxrdf::NamedNode;
use penstock_http::accept::AcceptedTypes;
use penstock_http::access::MinimumRole::{Admin, Local, User};
use penstock_http::body::{self, find_media_type};
use penstock_http::call::Call;
use penstock_http::operation::{Operation, get, post};
use penstock_http::parameters::AnyQuery;
use penstock_http::problem::Problem;
use penstock_http::query::parse_form;
use penstock_http::reply::{Reply, ReplyResult};
use penstock_model::rdf::parse_iri;
use penstock_resources::ingestion::SparqlUpdate;
use penstock_resources::sparql::{SparqlQueryForm, SparqlUpdateForm};
use penstock_service::gateway::Gateway;
use penstock_service::sparql::{self, ChangeRequest, ResultName};
use penstock_sparql::{DatasetParameters, Query, QueryForm, ResultFormat, Update};
use salvo::Request;
use salvo::http::header::VARY;
use std::ops::ControlFlow;

const FORM: &str = "application/x-www-form-urlencoded";
const SPARQL_QUERY: &str = "application/sparql-query";
const SPARQL_UPDATE: &str = "application/sparql-update";
/// The maximum bytes of a query or an update, which is parsed as a whole.
const MAX_TEXT_BYTES: u64 = 1 << 20;
/// The maximum bytes of a form, where percent-encoding may need three characters for one byte.
const MAX_FORM_BYTES: u64 = 3 * MAX_TEXT_BYTES;
/// The maximum bytes of a query that is tried on the thread that reads it. Parsing a longer one may take long.
const MAX_SHORT_TEXT_BYTES: usize = 4 << 10;
/// The parameters of a query.
const QUERY_PARAMETERS: &[&str] = &["query", "default-graph-uri", "named-graph-uri"];
/// The parameters of an update.
const UPDATE_PARAMETERS: &[&str] =
    &["update", "using-graph-uri", "using-named-graph-uri", "skolemize", "bypass"];
/// Parameters of other servers, which some clients add to each query, as they do to `Accept`. They have no effect.
const IGNORED_PARAMETERS: &[&str] = &["format", "output", "results"];

/// Returns the operations.
pub(super) fn operations() -> Vec<Operation> {
    let query_by_get = get("/sparql", User, query_by_get)
        .describe(
            "sparqlQuery",
            "SPARQL",
            "Answers a query, or describes the service if there is none.",
        )
        .query::<String>(
            "query",
            "The query. Without it, the answer is the service description (SPARQL 1.1 Service Description).",
        )
        .problems(&[400, 406, 422]);
    let query_by_post = post("/sparql", User, query_by_post)
        .describe("sparqlQueryByPost", "SPARQL", "Answers a query.")
        .body_as::<String>(SPARQL_QUERY)
        .body_as::<SparqlQueryForm>(FORM)
        .problems(&[400, 406, 408, 413, 415, 422]);
    let update = post("/sparql/update", Admin, update)
        .describe(
            "sparqlUpdate",
            "SPARQL",
            "Changes the graph in one commit.\n\nOnly with `service.sparql.update=true`. In updates outside `WHERE`, \
             the default graph is the unnamed graph. `LOAD` and `SERVICE` are refused.",
        )
        .query::<Vec<String>>(
            "using-graph-uri",
            "A graph of the default graph of `WHERE`, in place of `USING`; it may be repeated.",
        )
        .query::<Vec<String>>(
            "using-named-graph-uri",
            "A named graph of `WHERE`, in place of `USING NAMED`; it may be repeated.",
        )
        .query::<String>(
            "skolemize",
            "Replace each blank node that would be stored by an IRI that begins with this one.",
        )
        .query::<bool>(
            "bypass",
            "Change objects of Business Objects that refuse what violates their shapes; the audit trail names it.",
        )
        .body_as::<String>(SPARQL_UPDATE)
        .body_as::<SparqlUpdateForm>(FORM)
        .answer::<SparqlUpdate>(200, "Applied and synced to disk.")
        .problems(&[400, 404, 408, 409, 413, 415, 422, 507]);
    vec![describe_query(query_by_get), describe_query(query_by_post), update]
}

/// Describes the dataset of a query, and its answer.
fn describe_query(operation: Operation) -> Operation {
    operation
        .query::<Vec<String>>(
            "default-graph-uri",
            "A graph of the default graph, in place of `FROM`; it may be repeated.",
        )
        .query::<Vec<String>>(
            "named-graph-uri",
            "A named graph, in place of `FROM NAMED`; it may be repeated.",
        )
        .empty_answer(200, "The answer in the media type that Accept prefers.")
        .answer_as::<serde_json::Value>("application/sparql-results+json")
        .answer_as::<String>("application/sparql-results+xml")
        .answer_as::<String>("text/csv")
        .answer_as::<String>("text/tab-separated-values")
        .answer_as_rdf()
}

/// Returns the operations of the control socket.
pub(super) fn control_operations() -> Vec<Operation> {
    vec![post("/control/query", Local, query_locally)]
}

async fn query_by_get(call: Call<'_>, _query: AnyQuery) -> ReplyResult {
    let parameters = Parameters::read_url(call.req, QUERY_PARAMETERS)?;
    if parameters.0.is_empty() {
        return description::describe_service(&call);
    }
    let text = parameters.require_one("query")?.to_owned();
    let dataset = parameters.read_dataset("default-graph-uri", "named-graph-uri")?;
    answer_query(&call, text, dataset).await
}

async fn query_by_post(mut call: Call<'_>, _query: AnyQuery) -> ReplyResult {
    let (text, parameters, _) =
        read_request(&mut call, ("query", SPARQL_QUERY), QUERY_PARAMETERS).await?;
    let dataset = parameters.read_dataset("default-graph-uri", "named-graph-uri")?;
    answer_query(&call, text, dataset).await
}

async fn update(mut call: Call<'_>, _query: AnyQuery) -> ReplyResult {
    let gateway = call.gateway()?;
    sparql::check_updates_allowed(&gateway)?;
    let (text, parameters, bytes) =
        read_request(&mut call, ("update", SPARQL_UPDATE), UPDATE_PARAMETERS).await?;
    let using = parameters.read_dataset("using-graph-uri", "using-named-graph-uri")?;
    let skolemize = parameters.read_one("skolemize")?.map(parse_iri).transpose();
    let skolemize = skolemize.map_err(Problem::malformed)?;
    let bypass = match parameters.read_one("bypass")? {
        None | Some("false") => false,
        Some("true") => true,
        Some(other) => {
            let detail = format!("the parameter bypass is {other:?}; it must be true or false");
            return Err(Problem::malformed(detail));
        }
    };
    let (by, trace) = (call.caller().clone(), call.trace());
    let permit = sparql::acquire_permit(&gateway, &by).await?;
    let record = sparql::run_on_query_thread(move || {
        let _permit = permit;
        let parsed = Update::parse(&text, &using)?;
        drop(text);
        let request = ChangeRequest { by: &by, trace, bytes, bypass };
        sparql::run_update(&gateway, &request, &parsed, skolemize.as_ref()).map_err(Problem::from)
    })
    .await?;
    let quads = record.quads.unwrap_or_default();
    Reply::json(&SparqlUpdate {
        ingestion_id: record.id,
        inserted: quads.inserted,
        removed: quads.removed,
    })
}

penstock_http::parameters! {
    /// The form of the answer.
    struct LocalQuery {
        "format" => format: Option<String>, "The format of the answer: json, xml, csv or tsv for a table, and ttl, nt, nq, trig, rdf or jsonld for a graph.";
    }
}

/// Answers a query over the control socket. It may use the prefixes of all mappings.
async fn query_locally(call: Call<'_>, query: LocalQuery) -> ReplyResult {
    let name = query.format.as_deref().map(str::parse::<ResultName>).transpose();
    let name = name.map_err(Problem::malformed)?;
    let body = body::read_body_up_to(call.req, call.depot, MAX_TEXT_BYTES).await?;
    let text = read_utf8(body.bytes())?.to_owned();
    drop(body);
    run_query(
        &call,
        text.len(),
        move |gateway| {
            let dataset = DatasetParameters::default();
            Ok(sparql::parse_with_mapping_prefixes(&gateway.catalogue, &text, &dataset)?)
        },
        move |form| match name {
            None => Ok(ResultName::default_of(form)),
            Some(name) => name.choose(form).map_err(Problem::malformed),
        },
    )
    .await
}

async fn answer_query(call: &Call<'_>, text: String, dataset: DatasetParameters) -> ReplyResult {
    let accepted = AcceptedTypes::from_headers(call.req.headers());
    let reply = run_query(
        call,
        text.len(),
        move |_| Ok(Query::parse(&text, &dataset)?),
        move |form| formats::negotiate_result(form, &accepted),
    );
    Ok(reply.await?.with_header(VARY, "Accept"))
}

/// A query, and the form of its answer.
struct PreparedQuery {
    query: Query,
    media_type: &'static str,
    format: ResultFormat,
}

/// Parses a query, unless it is parsed already.
type Prepare = Box<dyn FnOnce(&Gateway) -> Result<PreparedQuery, Problem> + Send>;

/// Waits for a permit, and runs a query: a short one at once, all others on a thread of their own. The answer ends early
/// if its client is too slow.
async fn run_query(
    call: &Call<'_>,
    text_bytes: usize,
    parse: impl FnOnce(&Gateway) -> Result<Query, Problem> + Send + 'static,
    choose_format: impl FnOnce(QueryForm) -> Result<(&'static str, ResultFormat), Problem>
    + Send
    + 'static,
) -> ReplyResult {
    let gateway = call.gateway()?;
    let permit = sparql::acquire_permit(&gateway, call.caller()).await?;
    let deadline = sparql::query_deadline(&gateway);
    let prepare = move |gateway: &Gateway| -> Result<PreparedQuery, Problem> {
        let query = parse(gateway)?;
        let (media_type, format) = choose_format(query.form())?;
        Ok(PreparedQuery { query, media_type, format })
    };
    let mut prepare: Prepare = Box::new(prepare);
    if text_bytes <= MAX_SHORT_TEXT_BYTES {
        let tried = sparql::try_short_query(
            &gateway,
            || prepare(&gateway),
            |prepared: &PreparedQuery| (&prepared.query, prepared.format),
            |prepared, answer| {
                let reply = Reply::bytes(prepared.media_type, answer);
                with_warnings(reply, &prepared.query.warnings())
            },
        )?;
        match tried {
            ControlFlow::Break(reply) => return Ok(reply),
            ControlFlow::Continue(prepared) => prepare = Box::new(move |_| Ok(prepared)),
        }
    }
    stream_answer(call.req, WriteLimit::Until(deadline.clone()), move |writer| {
        let _permit = permit;
        let PreparedQuery { query, media_type, format } = prepare(&gateway)?;
        writer.set_media_type(media_type);
        writer.set_warnings(&query.warnings());
        sparql::run_query(&gateway, query, deadline, format, writer)?;
        Ok(())
    })
    .await
}

/// Reads a query or an update from the body: in its own media type, or as the field `name` of a form. Returns it with the
/// other parameters, and the size of the body in bytes.
async fn read_request(
    call: &mut Call<'_>,
    (name, media_type): (&str, &'static str),
    known: &[&str],
) -> Result<(String, Parameters, u64), Problem> {
    let declared = find_media_type(call.req, &[media_type, FORM])?;
    let mut parameters = Parameters::read_url(call.req, known)?;
    let max_bytes = if declared == FORM { MAX_FORM_BYTES } else { MAX_TEXT_BYTES };
    let body = body::read_body_up_to(call.req, call.depot, max_bytes).await?;
    let bytes = body.bytes().len() as u64;
    let text = if declared == FORM {
        parameters.add(parse_form(body.bytes())?, known)?;
        parameters.require_one(name)?.to_owned()
    } else if parameters.read_one(name)?.is_some() {
        return Err(Problem::malformed(format!(
            "the {name} is in the body and in the URL; send it only once"
        )));
    } else {
        read_utf8(body.bytes())?.to_owned()
    };
    Ok((text, parameters, bytes))
}

fn read_utf8(bytes: &[u8]) -> Result<&str, Problem> {
    std::str::from_utf8(bytes).map_err(|error| {
        Problem::malformed(format!("the body is not UTF-8 from byte {} on", error.valid_up_to()))
    })
}

/// The parameters of a request, in its URL and in its form. Some may be repeated.
#[derive(Debug)]
struct Parameters(Vec<(String, String)>);

impl Parameters {
    fn read_url(req: &Request, known: &[&str]) -> Result<Self, Problem> {
        let mut parameters = Self(Vec::new());
        let given = parse_form(req.uri().query().unwrap_or_default().as_bytes())?;
        parameters.add(given, known)?;
        Ok(parameters)
    }

    fn add(&mut self, given: Vec<(String, String)>, known: &[&str]) -> Result<(), Problem> {
        for (name, value) in given {
            if known.contains(&name.as_str()) {
                self.0.push((name, value));
            } else if !IGNORED_PARAMETERS.contains(&name.as_str()) {
                return Err(Problem::malformed(format!(
                    "this route has no parameter {name:?}; it has {}",
                    known.join(", ")
                )));
            }
        }
        Ok(())
    }

    fn all<'a>(&'a self, name: &str) -> impl Iterator<Item = &'a str> {
        self.0.iter().filter(move |(known, _)| known == name).map(|(_, value)| value.as_str())
    }

    fn read_one(&self, name: &str) -> Result<Option<&str>, Problem> {
        let mut values = self.all(name);
        let first = values.next();
        if values.next().is_some() {
            let detail = format!("the parameter {name:?} is given more than once");
            return Err(Problem::malformed(detail));
        }
        Ok(first)
    }

    fn require_one(&self, name: &str) -> Result<&str, Problem> {
        self.read_one(name)?
            .ok_or_else(|| Problem::malformed(format!("the parameter {name:?} is missing")))
    }

    fn read_dataset(&self, default: &str, named: &str) -> Result<DatasetParameters, Problem> {
        let read = |name: &str| -> Result<Vec<NamedNode>, Problem> {
            let iris = self.all(name).map(parse_iri).collect::<Result<_, _>>();
            iris.map_err(|why| Problem::malformed(format!("the parameter {name}: {why}")))
        };
        Ok(DatasetParameters { default_graphs: read(default)?, named_graphs: read(named)? })
    }
}
