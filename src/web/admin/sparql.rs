//! A page for SPARQL queries. Its script shows the results as a table and draws small graphs. Without it, the page shows the
//! beginning of the answer: a table without a drawing, or Turtle.
use super::form::take_form;
use super::frame::{Frame, PageReply, PageResult};
use super::menu::Section;
use super::object::link::object_link;
use askama::Template;
use penstock_http::caller::caller;
use penstock_http::problem::Problem;
use penstock_http::query::Query as Parameters;
use penstock_http::state::gateway;
use penstock_service::sparql::{
    AnswerBeginning, QueryForm, collect_prefixes, prefix_lines, preview_query,
};
use salvo::http::StatusCode;
use salvo::{Depot, Request, handler};

/// The maximum number of bytes of an answer that are shown without script.
const MAX_SHOWN_BYTES: usize = 256 << 10;
/// The maximum number of rows of a table that are shown without script.
const MAX_SHOWN_ROWS: usize = 500;

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
    /// The answer, after the form was sent.
    answer: Option<Shown>,
    warnings: Vec<String>,
}

/// What the page shows of an answer.
#[derive(Debug, PartialEq, Eq)]
enum Shown {
    Table { variables: Vec<String>, rows: Vec<Vec<Term>>, is_all: bool },
    Text { text: String, is_all: bool },
    Error(String),
}

/// A cell of the table.
#[derive(Debug, PartialEq, Eq)]
struct Term {
    text: String,
    /// The address of the object that it names.
    link: Option<String>,
}

impl Shown {
    /// `link` returns the address of an object.
    fn from_answer(answer: AnswerBeginning, link: impl Fn(&str) -> String) -> Self {
        let AnswerBeginning { text, form, is_whole, warnings: _ } = answer;
        if form != QueryForm::Select {
            return Self::Text { text, is_all: is_whole };
        }
        let mut lines: Vec<&str> = text.lines().collect();
        if !is_whole && lines.len() > 1 {
            lines.pop();
        }
        let mut lines = lines.into_iter();
        let header = lines.next().unwrap_or_default();
        let to_term = |text: &str| {
            let iri = text.strip_prefix('<').and_then(|text| text.strip_suffix('>'));
            Term { text: iri.unwrap_or(text).to_owned(), link: iri.map(&link) }
        };
        let is_all = is_whole && lines.len() <= MAX_SHOWN_ROWS;
        Self::Table {
            variables: header
                .split('\t')
                .map(|name| name.trim_start_matches('?').to_owned())
                .collect(),
            rows: lines
                .take(MAX_SHOWN_ROWS)
                .map(|line| line.split('\t').map(to_term).collect())
                .collect(),
            is_all,
        }
    }
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
    let warnings = Vec::new();
    let page = Page { frame, query, prefixes, examples: &EXAMPLES, answer: None, warnings };
    Ok(PageReply::show(&page))
}

/// Shows the page with the answer.
#[handler]
pub(crate) async fn show_answer(req: &mut Request, depot: &mut Depot) -> PageResult {
    // Browsers send the ends of lines as CR and LF, which no place in an error may count twice.
    let query = take_form(depot).text("query").replace("\r\n", "\n");
    let gateway = gateway(depot)?;
    let answered = preview_query(&gateway, caller(depot), query.clone(), MAX_SHOWN_BYTES).await;
    let frame = Frame::new(req, depot, Section::Sparql);
    let mut warnings = Vec::new();
    let (status, answer) = match answered {
        Ok(mut answer) => {
            warnings = std::mem::take(&mut answer.warnings);
            (StatusCode::OK, Shown::from_answer(answer, |uri| object_link(&frame, uri)))
        }
        Err(error) => {
            let problem = Problem::from(error);
            let findings = problem.errors().iter().map(ToString::to_string);
            let words: Vec<_> =
                std::iter::once(problem.detail().to_owned()).chain(findings).collect();
            (problem.status(), Shown::Error(words.join(" ")))
        }
    };
    let prefixes = prefix_lines(&collect_prefixes(&gateway.catalogue));
    let page = Page { frame, query, prefixes, examples: &EXAMPLES, answer: Some(answer), warnings };
    Ok(PageReply::show_with_status(status, &page))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_table_has_the_complete_rows_and_links_objects() {
        let answer = |text: &str, is_whole| AnswerBeginning {
            text: text.to_owned(),
            form: QueryForm::Select,
            is_whole,
            warnings: Vec::new(),
        };
        let show = |answer| match Shown::from_answer(answer, |uri| format!("/{uri}")) {
            Shown::Table { variables, rows, is_all } => (variables, rows, is_all),
            other => panic!("{other:?}"),
        };
        let text = "?a\t?b\n<urn:x>\t\"<y>\"\n<urn:z>\t";
        let (variables, rows, is_all) = show(answer(text, true));
        assert_eq!(
            (variables, rows.len(), is_all),
            (vec!["a".to_owned(), "b".to_owned()], 2, true)
        );
        assert_eq!(rows[0][0], Term { text: "urn:x".to_owned(), link: Some("/urn:x".to_owned()) });
        assert_eq!(rows[0][1], Term { text: "\"<y>\"".to_owned(), link: None });
        let (_, rows, is_all) = show(answer(text, false));
        assert_eq!((rows.len(), is_all), (1, false));
        let many = format!("?a\n{}", "1\n".repeat(MAX_SHOWN_ROWS + 1));
        let (_, rows, is_all) = show(answer(&many, true));
        assert_eq!((rows.len(), is_all), (MAX_SHOWN_ROWS, false));
        let ask = AnswerBeginning { form: QueryForm::Ask, ..answer("true", true) };
        let shown = Shown::from_answer(ask, str::to_owned);
        assert_eq!(shown, Shown::Text { text: "true".to_owned(), is_all: true });
    }
}
