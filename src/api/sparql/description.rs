//! The service description (SPARQL 1.1 Service Description).
use super::formats::{SOLUTION_FORMATS, negotiate_graph};
use oxrdf::vocab::rdf;
use oxrdf::{GraphName, NamedNode, Quad};
use penstock_config::Sparql;
use penstock_http::accept::AcceptedTypes;
use penstock_http::call::Call;
use penstock_http::origin::origin;
use penstock_http::problem::Problem;
use penstock_http::reply::{Reply, ReplyResult};
use penstock_model::rdf::{Format, parse_iri, write_triples};
use salvo::http::header::VARY;
use std::collections::BTreeMap;

const NAMESPACE: &str = "http://www.w3.org/ns/sparql-service-description#";

/// Describes the service in the RDF format that the client accepts.
pub(super) fn describe_service(call: &Call<'_>) -> ReplyResult {
    let (media_type, format) = negotiate_graph(&AcceptedTypes::from_headers(call.req.headers()))?;
    let (state, origin) = (call.state(), origin(call.depot));
    let settings = state.settings();
    let base = settings.base_url.clone().or_else(|| {
        let url = origin.url()?;
        Some(format!("{url}{}", origin.prefix))
    });
    let base = base.unwrap_or_else(|| "http://localhost".to_owned());
    let endpoint = parse_iri(&format!("{base}/sparql")).map_err(Problem::malformed)?;
    let quads = build_description(&endpoint, &settings.sparql);
    let bytes = write_triples(format, &quads, &BTreeMap::new())?;
    Ok(Reply::bytes(media_type, bytes).with_header(VARY, "Accept"))
}

fn build_description(endpoint: &NamedNode, settings: &Sparql) -> Vec<Quad> {
    let term = |name: &str| NamedNode::new_unchecked(format!("{NAMESPACE}{name}"));
    let part = |name: &str| NamedNode::new_unchecked(format!("{}#{name}", endpoint.as_str()));
    let (dataset, default_graph) = (part("dataset"), part("default-graph"));
    let mut quads = Vec::new();
    let mut add = |subject: &NamedNode, predicate: NamedNode, object: NamedNode| {
        quads.push(Quad::new(subject.clone(), predicate, object, GraphName::DefaultGraph));
    };
    add(endpoint, rdf::TYPE.into_owned(), term("Service"));
    add(endpoint, term("endpoint"), endpoint.clone());
    add(endpoint, term("supportedLanguage"), term("SPARQL11Query"));
    if settings.allows_updates {
        add(endpoint, term("supportedLanguage"), term("SPARQL11Update"));
    }
    // The default graph of a query is the union of all graphs.
    add(endpoint, term("feature"), term("UnionDefaultGraph"));
    if !settings.services.is_empty() {
        add(endpoint, term("feature"), term("BasicFederatedQuery"));
    }
    for format in SOLUTION_FORMATS {
        add(endpoint, term("resultFormat"), NamedNode::new_unchecked(format.iri()));
    }
    for format in Format::ALL {
        let iri = NamedNode::new_unchecked(format.to_rdf_format().iri());
        add(endpoint, term("resultFormat"), iri);
    }
    add(endpoint, term("defaultDataset"), dataset.clone());
    add(&dataset, rdf::TYPE.into_owned(), term("Dataset"));
    add(&dataset, term("defaultGraph"), default_graph.clone());
    add(&default_graph, rdf::TYPE.into_owned(), term("Graph"));
    quads
}
