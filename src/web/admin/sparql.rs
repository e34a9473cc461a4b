//! A page for SPARQL queries. Its script shows the results as a table and draws small graphs; without it, the form
//! shows the answer of `/sparql` itself.
use super::frame::{Frame, PageReply, PageResult, Section};
use askama::Template;
use penstock_http::query::Query as Parameters;
use penstock_http::state::gateway;
use penstock_service::sparql::{collect_prefixes, prefix_lines};
use salvo::{Depot, Request, handler};

/// Queries to begin with.
const EXAMPLES: [(&str, &str); 5] = [
    (
        "Properties and how often they are used",
        "SELECT ?property (COUNT(*) AS ?uses)\nWHERE { ?object ?property ?value }\nGROUP BY ?property\nORDER BY DESC(?uses)\n",
    ),
    (
        "Graphs and their size",
        "SELECT ?graph (COUNT(*) AS ?quads)\nWHERE { GRAPH ?graph { ?s ?p ?o } }\nGROUP BY ?graph\nORDER BY DESC(?quads)\n",
    ),
    (
        "Types and how many objects they have",
        "SELECT ?type (COUNT(*) AS ?objects)\nWHERE { ?object a ?type }\nGROUP BY ?type\nORDER BY DESC(?objects)\n",
    ),
    (
        "Text in any property",
        "SELECT ?object ?property ?text\nWHERE {\n  ?object ?property ?text\n  FILTER(CONTAINS(LCASE(STR(?text)), \"pump\"))\n}\nLIMIT 100\n",
    ),
    (
        "Some objects and what they refer to, as a graph",
        "CONSTRUCT { ?object ?property ?other }\nWHERE {\n  ?object ?property ?other\n  FILTER(isIRI(?other))\n}\nLIMIT 40\n",
    ),
];

#[derive(Template)]
#[template(path = "admin/sparql.html")]
struct Page {
    frame: Frame,
    query: String,
    prefixes: String,
    examples: &'static [(&'static str, &'static str)],
}

/// Shows the page.
#[handler]
pub(crate) async fn show_query(req: &mut Request, depot: &mut Depot) -> PageResult {
    let parameters = Parameters::read(req, &["query"])?;
    let prefixes = prefix_lines(&collect_prefixes(&gateway(depot)?.catalogue));
    let query = parameters.get("query").map_or_else(
        || format!("{prefixes}{}", EXAMPLES.first().map_or("", |(_, text)| text)),
        str::to_owned,
    );
    let frame = Frame::new(req, depot, Section::Sparql);
    Ok(PageReply::show(&Page { frame, query, prefixes, examples: &EXAMPLES }))
}
