//! Federated queries (SPARQL 1.1 Federated Query): `SERVICE` patterns.
use oxrdf::NamedNode;
use penstock_store::check_supported;
use sparesults::{QueryResultsFormat, QueryResultsParser, ReaderQueryResultsParserOutput};
use spareval::{DefaultServiceHandler, QuerySolutionIter};
use spargebra::Query;
use spargebra::algebra::GraphPattern;
use std::io::{self, Read};
use std::sync::Arc;
use std::time::Instant;

/// Sends queries to other endpoints.
pub trait ServiceClient: Send + Sync {
    /// Sends a query and returns the body of the answer, in the JSON format of SPARQL results.
    ///
    /// # Errors
    /// Returns why the endpoint gave no answer, or may not be asked.
    fn query(
        &self,
        endpoint: &NamedNode,
        query: &str,
        deadline: Instant,
    ) -> Result<Box<dyn Read>, String>;
}

/// Refuses every `SERVICE`.
#[derive(Debug, Clone, Copy)]
pub struct NoServices;

impl ServiceClient for NoServices {
    fn query(&self, endpoint: &NamedNode, _: &str, _: Instant) -> Result<Box<dyn Read>, String> {
        Err(format!("SERVICE {endpoint} is not allowed here"))
    }
}

/// Passes `SERVICE` patterns to a client.
pub(crate) struct Services {
    pub(crate) client: Arc<dyn ServiceClient>,
    pub(crate) deadline: Instant,
}

impl DefaultServiceHandler for Services {
    type Error = io::Error;

    fn handle(
        &self,
        service_name: &NamedNode,
        pattern: &GraphPattern,
        base_iri: Option<&oxiri::Iri<String>>,
    ) -> Result<QuerySolutionIter<'static>, io::Error> {
        let base_iri = base_iri.cloned();
        let query = Query::Select { dataset: None, pattern: pattern.clone(), base_iri };
        let answer = self.client.query(service_name, &query.to_string(), self.deadline);
        let answer = answer.map_err(io::Error::other)?;
        let parser = QueryResultsParser::from_format(QueryResultsFormat::Json);
        match parser.for_reader(answer).map_err(io::Error::other)? {
            ReaderQueryResultsParserOutput::Solutions(solutions) => {
                let variables = solutions.variables().into();
                let solutions = solutions.map(|solution| {
                    let failed = |error| spareval::QueryEvaluationError::Service(error);
                    let solution = solution.map_err(|error| failed(Box::new(error)))?;
                    for term in solution.values().iter().flatten() {
                        check_supported(term.as_ref()).map_err(|error| failed(Box::new(error)))?;
                    }
                    Ok(solution)
                });
                Ok(QuerySolutionIter::new(variables, solutions))
            }
            ReaderQueryResultsParserOutput::Boolean(_) => {
                Err(io::Error::other(format!("{service_name} answered with a boolean")))
            }
        }
    }
}
