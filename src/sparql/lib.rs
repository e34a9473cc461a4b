//! SPARQL over the store.
use oxrdf::{NamedNode, TermRef};
use oxrdfio::{RdfFormat, RdfSerializer};
use penstock_base::error::{ErrorClass, Finding, GatewayError};
use penstock_store::{QuadPosition, Snapshot, Transaction};
use sparesults::{QueryResultsFormat, QueryResultsSerializer};
use std::io;
use std::ops::ControlFlow;
use std::time::{Duration, Instant};

/// The graphs that a request names.
#[derive(Debug, Clone, Default)]
pub struct DatasetParameters {
    /// The graphs of the default graph.
    pub default_graphs: Vec<NamedNode>,
    /// The named graphs.
    pub named_graphs: Vec<NamedNode>,
}

/// The limits of a query.
#[derive(Debug, Clone, Copy)]
pub struct Limits {
    /// The time.
    pub time: Duration,
    /// The memory in bytes.
    pub memory: u64,
    /// The rows or triples.
    pub rows: u64,
}

/// The form of a query.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum QueryForm {
    /// SELECT
    Select,
    /// ASK
    Ask,
    /// CONSTRUCT
    Construct,
    /// DESCRIBE
    Describe,
}

/// A parsed query.
#[derive(Debug)]
pub struct Query(spargebra::Query);

impl Query {
    /// Parses a query.
    pub fn parse(text: &str, _parameters: &DatasetParameters) -> Result<Self, GatewayError> {
        spargebra::SparqlParser::new().parse_query(text).map(Self).map_err(|error| to_error(&error))
    }

    /// Returns its form.
    pub fn form(&self) -> QueryForm {
        match self.0 {
            spargebra::Query::Select { .. } => QueryForm::Select,
            spargebra::Query::Ask { .. } => QueryForm::Ask,
            spargebra::Query::Construct { .. } => QueryForm::Construct,
            spargebra::Query::Describe { .. } => QueryForm::Describe,
        }
    }
}

fn to_error(error: &spargebra::SparqlSyntaxError) -> GatewayError {
    let findings = vec![Finding::at_line(1, 1, error.to_string())];
    GatewayError::with_findings(ErrorClass::Malformed, "the text is not valid SPARQL", findings)
}

/// The format of a result.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ResultFormat {
    /// Solutions or a truth value.
    Solutions(QueryResultsFormat),
    /// A graph.
    Graph(RdfFormat),
}

/// Asks other endpoints.
pub trait ServiceClient {
    /// Sends a query to an endpoint.
    fn query(
        &self,
        endpoint: &NamedNode,
        query: &str,
        deadline: Instant,
    ) -> Result<Box<dyn io::Read>, String>;
}

/// Evaluates a query: the stub lists quads.
pub fn evaluate(
    query: &Query,
    snapshot: Snapshot,
    limits: &Limits,
    deadline: Instant,
    services: &dyn ServiceClient,
    format: ResultFormat,
    output: &mut dyn io::Write,
) -> Result<u64, GatewayError> {
    let _ = services;
    let failed = |error: io::Error| GatewayError::new(ErrorClass::Internal, error.to_string());
    let mut rows = 0;
    let mut visit = |one: &mut dyn FnMut(oxrdf::Quad) -> io::Result<()>| {
        let mut result = Ok(());
        snapshot
            .visit_quads_from(&QuadPosition::default(), &mut |quad| {
                rows += 1;
                if rows > limits.rows || Instant::now() > deadline {
                    result = Err(GatewayError::new(
                        ErrorClass::Invalid,
                        format!("the query passed service.limits.sparql.rows ({})", limits.rows),
                    ));
                } else {
                    result = one(quad).map_err(failed);
                }
                if result.is_ok() { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
            })
            .map_err(GatewayError::from)?;
        result
    };
    match format {
        ResultFormat::Graph(format) => {
            let mut writer = RdfSerializer::from_format(format).for_writer(&mut *output);
            visit(&mut |quad| writer.serialize_triple(quad.as_ref()))?;
            writer.finish().map_err(failed)?;
        }
        ResultFormat::Solutions(format) if query.form() == QueryForm::Ask => {
            QueryResultsSerializer::from_format(format)
                .serialize_boolean_to_writer(&mut *output, true)
                .map_err(failed)?;
            rows = 1;
        }
        ResultFormat::Solutions(format) => {
            let o = oxrdf::Variable::new_unchecked("o");
            let mut writer = QueryResultsSerializer::from_format(format)
                .serialize_solutions_to_writer(&mut *output, vec![o.clone()])
                .map_err(failed)?;
            visit(&mut |quad| writer.serialize([(o.as_ref(), TermRef::from(&quad.object))]))?;
            writer.finish().map_err(failed)?;
        }
    }
    Ok(rows)
}

/// Runs work on a thread with a big stack.
pub fn spawn_query_thread<T: Send + 'static>(
    work: impl FnOnce() -> T + Send + 'static,
) -> io::Result<std::thread::JoinHandle<T>> {
    std::thread::Builder::new().stack_size(16 << 20).spawn(work)
}

/// A parsed update.
#[derive(Debug)]
pub struct Update(spargebra::Update);

impl Update {
    /// Parses an update.
    pub fn parse(text: &str, _using: &DatasetParameters) -> Result<Self, GatewayError> {
        spargebra::SparqlParser::new()
            .parse_update(text)
            .map(Self)
            .map_err(|error| to_error(&error))
    }
}

/// The limits of an update.
#[derive(Debug, Clone, Copy)]
pub struct UpdateLimits {
    /// The quads that it may insert and remove.
    pub quads: u64,
    /// The limits of its patterns.
    pub limits: Limits,
}

/// What an update changed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Changes {
    /// The quads that were not stored before.
    pub inserted: u64,
    /// The quads that were stored before.
    pub removed: u64,
}

/// Applies an update: the stub knows INSERT DATA.
pub fn apply_update(
    update: &Update,
    transaction: &mut Transaction<'_>,
    limits: &UpdateLimits,
    _deadline: Instant,
    skolemize: Option<&NamedNode>,
) -> Result<Changes, GatewayError> {
    let mut changes = Changes::default();
    for operation in &update.0.operations {
        if let spargebra::GraphUpdateOperation::InsertData { data } = operation {
            for quad in data {
                let text = quad.to_string();
                if text.contains("_:") && skolemize.is_none() {
                    return Err(GatewayError::new(ErrorClass::Invalid, "blank node: ?skolemize="));
                }
                let quad = oxrdf::Quad::new(
                    quad.subject.clone(),
                    quad.predicate.clone(),
                    quad.object.clone(),
                    match &quad.graph_name {
                        spargebra::term::GraphName::NamedNode(name) => name.clone().into(),
                        spargebra::term::GraphName::DefaultGraph => oxrdf::GraphName::DefaultGraph,
                    },
                );
                changes.inserted += u64::from(transaction.insert(quad.as_ref())?);
                if changes.inserted > limits.quads {
                    return Err(GatewayError::new(ErrorClass::TooLarge, "too many quads"));
                }
            }
        }
    }
    Ok(changes)
}
