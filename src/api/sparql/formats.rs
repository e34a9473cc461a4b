//! The formats of answers: their media types and short names.
use crate::negotiation::negotiate;
use penstock_http::accept::AcceptedTypes;
use penstock_http::problem::Problem;
use penstock_model::rdf::Format;
use penstock_sparql::{QueryForm, ResultFormat};
use sparesults::QueryResultsFormat;

/// The formats of solutions with their media types. The first one is the default.
const SOLUTIONS: [(&str, QueryResultsFormat); 5] = [
    ("application/sparql-results+json", QueryResultsFormat::Json),
    ("application/sparql-results+xml", QueryResultsFormat::Xml),
    ("text/csv", QueryResultsFormat::Csv),
    ("text/tab-separated-values", QueryResultsFormat::Tsv),
    // What some clients ask for.
    ("application/json", QueryResultsFormat::Json),
];

/// The formats of solutions, each once.
pub(super) const SOLUTION_FORMATS: [QueryResultsFormat; 4] = [
    QueryResultsFormat::Json,
    QueryResultsFormat::Xml,
    QueryResultsFormat::Csv,
    QueryResultsFormat::Tsv,
];

/// Returns the media type and the format of the answer to a query of this form.
pub(super) fn negotiate_result(
    form: QueryForm,
    accepted: &AcceptedTypes,
) -> Result<(&'static str, ResultFormat), Problem> {
    if matches!(form, QueryForm::Select | QueryForm::Ask) {
        let (media_type, format) = negotiate(accepted, &SOLUTIONS)?;
        return Ok((media_type, ResultFormat::Solutions(format)));
    }
    let (media_type, format) = negotiate_graph(accepted)?;
    Ok((media_type, ResultFormat::Graph(format)))
}

/// Returns the media type and the format of an answer that is a graph.
pub(super) fn negotiate_graph(accepted: &AcceptedTypes) -> Result<(&'static str, Format), Problem> {
    negotiate(accepted, &Format::ALL.map(|format| (format.media_type(), format)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use salvo::http::header::{ACCEPT, HeaderMap};

    fn accept(value: &str) -> AcceptedTypes {
        AcceptedTypes::from_headers(&HeaderMap::from_iter([(ACCEPT, value.parse().unwrap())]))
    }

    #[test]
    fn the_form_of_the_query_decides_what_is_offered() {
        let media_type = |form, value: &str| {
            negotiate_result(form, &accept(value)).map(|(media_type, _)| media_type).ok()
        };
        let json = Some("application/sparql-results+json");
        assert_eq!(media_type(QueryForm::Select, "*/*"), json);
        assert_eq!(media_type(QueryForm::Ask, "text/html, */*;q=0.1"), json);
        assert_eq!(media_type(QueryForm::Select, "text/*"), Some("text/csv"));
        assert_eq!(media_type(QueryForm::Select, "application/json"), Some("application/json"));
        assert_eq!(media_type(QueryForm::Select, "text/turtle"), None);
        assert_eq!(media_type(QueryForm::Construct, "text/csv"), None);
        assert_eq!(media_type(QueryForm::Construct, "*/*"), Some("text/turtle"));
        assert_eq!(
            media_type(QueryForm::Describe, "text/turtle;q=0.5, application/rdf+xml"),
            Some("application/rdf+xml")
        );
    }
}
