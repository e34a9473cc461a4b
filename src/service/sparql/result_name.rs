//! The formats of answers by their short names, as the command line has them.
use penstock_model::rdf::Format;
use penstock_sparql::{QueryForm, ResultFormat};
use sparesults::QueryResultsFormat;
use std::str::FromStr;

/// The formats of solutions with their names.
const SOLUTIONS: [(&str, QueryResultsFormat); 4] = [
    ("json", QueryResultsFormat::Json),
    ("xml", QueryResultsFormat::Xml),
    ("csv", QueryResultsFormat::Csv),
    ("tsv", QueryResultsFormat::Tsv),
];

/// The short name of a format, as the command line has it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ResultName {
    solutions: Option<QueryResultsFormat>,
    graph: Option<Format>,
}

impl ResultName {
    /// Returns the format of an answer whose client names none: TSV, which shows terms exactly, or Turtle.
    pub fn default_of(form: QueryForm) -> (&'static str, ResultFormat) {
        if has_solutions(form) {
            let format = QueryResultsFormat::Tsv;
            (format.media_type(), ResultFormat::Solutions(format))
        } else {
            (Format::Turtle.media_type(), to_result(Format::Turtle))
        }
    }

    /// Returns the format of the answer to a query of this form.
    ///
    /// # Errors
    /// Names the formats for such an answer.
    pub fn choose(self, form: QueryForm) -> Result<(&'static str, ResultFormat), String> {
        match self {
            Self { solutions: Some(format), .. } if has_solutions(form) => {
                Ok((format.media_type(), ResultFormat::Solutions(format)))
            }
            Self { graph: Some(format), .. } if !has_solutions(form) => {
                Ok((format.media_type(), to_result(format)))
            }
            _ if has_solutions(form) => Err(
                "this query has a table or a truth value as its answer; use json, xml, csv or tsv"
                    .to_owned(),
            ),
            _ => Err(format!(
                "this query has a graph as its answer; use {}",
                Format::ALL.map(Format::name).join(", ")
            )),
        }
    }
}

impl FromStr for ResultName {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let solutions = SOLUTIONS.iter().find(|(name, _)| *name == text).map(|(_, format)| *format);
        let graph = text.parse().ok();
        if solutions.is_none() && graph.is_none() {
            return Err(format!(
                "{text:?} is not a format; use json, xml, csv or tsv for a table, and {} for a graph",
                Format::ALL.map(Format::name).join(", ")
            ));
        }
        Ok(Self { solutions, graph })
    }
}

fn has_solutions(form: QueryForm) -> bool {
    matches!(form, QueryForm::Select | QueryForm::Ask)
}

fn to_result(format: Format) -> ResultFormat {
    ResultFormat::Graph(format)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn short_names_fit_the_form_of_the_query() {
        let json: ResultName = "json".parse().unwrap();
        assert_eq!(
            json.choose(QueryForm::Select).unwrap().1,
            ResultFormat::Solutions(QueryResultsFormat::Json)
        );
        assert_eq!(json.choose(QueryForm::Construct).unwrap().0, "application/ld+json");
        let turtle: ResultName = "ttl".parse().unwrap();
        assert!(turtle.choose(QueryForm::Ask).unwrap_err().contains("csv"));
        assert!("csv".parse::<ResultName>().unwrap().choose(QueryForm::Describe).is_err());
        assert!("pdf".parse::<ResultName>().is_err());
    }
}
