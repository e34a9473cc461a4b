//! Runs a query and writes its results.
use crate::aggregates::add_aggregates;
use crate::budget::{Budget, Deadline, Limits};
use crate::dataset::Dataset;
use crate::functions::add_functions;
use crate::graphs::Graphs;
use crate::internal_term::InternalTerm;
use crate::operators::add_operators;
use crate::order::Order;
use crate::plan::plan;
use crate::request::Query;
use crate::service::{NoServices, ServiceClient, Services};
use oxrdf::{GraphName, NamedNode, Term, Triple, Variable};
use penstock_base::error::{ErrorClass, GatewayError};
use penstock_base::unwind::{abort, catch};
use penstock_rdf::{Format, QuadWriter, ReferenceWriter, WriteError, find_non_xml_char};
use penstock_store::Snapshot;
use sparesults::{QueryResultsFormat, QueryResultsSerializer, QuerySolution};
use spareval::{
    QueryDatasetSpecification, QueryEvaluationError, QueryEvaluator, QueryResults,
    QuerySolutionIter,
};
use spargebra::algebra::{GraphPattern, QueryDataset};
use std::io::{self, Write};
use std::sync::{Arc, LazyLock};
use std::time::Instant;

/// The bytes that are collected before they are passed on. Serializers write a few bytes at a time.
const OUTPUT_BYTES: usize = 8 << 10;
/// The maximum bytes of the results of a short query.
const MAX_SHORT_RESULT_BYTES: usize = 64 << 10;

/// The format of a query's results.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ResultFormat {
    /// For SELECT and ASK.
    Solutions(QueryResultsFormat),
    /// For CONSTRUCT and DESCRIBE.
    Graph(Format),
}

/// What bounds a query, and whom it may ask.
pub struct QueryContext {
    /// Its limits.
    pub limits: Limits,
    /// When it must end.
    pub deadline: Deadline,
    /// Sends the requests of SERVICE.
    pub services: Arc<dyn ServiceClient>,
}

/// Runs a query on a snapshot and writes its results piece by piece. Call it on a thread of
/// [`crate::spawn_query_thread`]. Blocking.
///
/// Returns the number of rows or triples.
///
/// # Errors
/// [`ErrorClass::Invalid`] past one of the limits, with the setting and its value, and for a SERVICE that fails;
/// [`ErrorClass::Unavailable`] if the snapshot was lost. If `output` fails, [`ErrorClass::Unavailable`] too. What was
/// written before an error is not a complete result.
pub fn evaluate(
    query: Query,
    snapshot: &Snapshot,
    context: QueryContext,
    format: ResultFormat,
    output: &mut dyn Write,
) -> Result<u64, GatewayError> {
    let QueryContext { limits, deadline, services } = context;
    let services = Services { client: services, deadline: deadline.at() };
    let budget = Arc::new(Budget::new(limits, deadline));
    evaluate_within(&budget, query, snapshot, services, ResultOutput { format, output })
}

/// Runs a query that reads few quads, on the thread that asks. Call it in [`crate::run_on_query_stack`]. Returns the
/// number of rows or triples and the results, or `None` if the query reads more, takes longer, has a large result, or asks
/// other endpoints.
///
/// # Errors
/// As [`evaluate`].
pub fn evaluate_short(
    query: &Query,
    snapshot: &Snapshot,
    limits: Limits,
    format: ResultFormat,
) -> Option<Result<(u64, Vec<u8>), GatewayError>> {
    if query.uses_service {
        return None;
    }
    let budget = Arc::new(Budget::for_short_query(limits));
    let services = Services { client: Arc::new(NoServices), deadline: Instant::now() };
    let mut results = Vec::new();
    let output = ResultOutput { format, output: &mut results };
    let rows = evaluate_within(&budget, query.clone(), snapshot, services, output);
    (!budget.exceeds_short_limits()).then(|| rows.map(|rows| (rows, results)))
}

/// Where results are written to, and how.
struct ResultOutput<'o> {
    format: ResultFormat,
    output: &'o mut dyn Write,
}

fn evaluate_within(
    budget: &Arc<Budget>,
    query: Query,
    snapshot: &Snapshot,
    services: Services,
    ResultOutput { format, output }: ResultOutput<'_>,
) -> Result<u64, GatewayError> {
    catch("the SPARQL request", || {
        let mut dataset = Dataset::new(snapshot.codes(), budget);
        dataset.set_graphs(to_graphs(&dataset, query.parsed.dataset()));
        let Query { parsed: mut planned, uses_service } = query;
        let evaluator = evaluator(budget).with_default_service_handler(services);
        let order = match &mut planned {
            spargebra::Query::Select { pattern, .. } if !uses_service => Order::take(pattern),
            _ => None,
        };
        match &mut planned {
            spargebra::Query::Select { pattern, .. }
            | spargebra::Query::Ask { pattern, .. }
            | spargebra::Query::Construct { pattern, .. }
            | spargebra::Query::Describe { pattern, .. } => {
                let unplanned = std::mem::take(pattern);
                let first_key = order.as_ref().and_then(Order::first_key);
                *pattern = plan(unplanned, &dataset, &evaluator, first_key);
                if let Some(order) = &order {
                    order.bound_first_key(pattern, &dataset);
                }
            }
        }
        let mut prepared = evaluator.prepare(&planned);
        *prepared.dataset_mut() = own_graphs();
        if order.is_some() {
            dataset.return_codes();
        }
        let results = prepared.execute(&dataset).map_err(|error| to_error(&error))?;
        let mut output = BudgetedOutput { output, budget, collected: Vec::new(), passed_on: 0 };
        let results = match (results, order) {
            (QueryResults::Solutions(rows), Some(order)) => {
                let sorted = order.sort(rows, &dataset).map_err(|error| to_error(&error))?;
                QueryResults::Solutions(sorted)
            }
            (results, _) => results,
        };
        let rows = write_results(results, format, &mut output, budget)?;
        output.flush().map_err(|error| to_output_error(&error))?;
        Ok(rows)
    })
}

/// Returns an evaluator with the functions of this crate.
pub(crate) fn evaluator(budget: &Arc<Budget>) -> QueryEvaluator {
    // Most of them need no budget.
    static WITHOUT_BUDGET: LazyLock<QueryEvaluator> =
        LazyLock::new(|| add_aggregates(add_operators(QueryEvaluator::new())));
    add_functions(WITHOUT_BUDGET.clone(), budget)
}

/// Evaluates a pattern that was planned with an order by one variable, and returns the first value of the variable.
pub(crate) fn find_first<'d>(
    pattern: GraphPattern,
    variable: &Variable,
    order: &Order,
    dataset: &'d Dataset<'d>,
    evaluator: &QueryEvaluator,
) -> Option<Term> {
    let variables = vec![variable.clone()];
    let pattern = GraphPattern::Project { inner: pattern.into(), variables };
    let query = spargebra::Query::Select { dataset: None, pattern, base_iri: None };
    let find = || {
        let mut prepared = evaluator.prepare(&query);
        *prepared.dataset_mut() = own_graphs();
        dataset.return_codes();
        let QueryResults::Solutions(rows) = prepared.execute(dataset)? else { return Ok(None) };
        let first = order.sort(rows, dataset)?.next().transpose()?;
        Ok(first.and_then(|row| row.values().first().cloned().flatten()))
    };
    find().unwrap_or_else(|error: QueryEvaluationError| abort(to_error(&error)))
}

/// Returns a specification with which the evaluator leaves the choice of graphs to [`Dataset`].
pub(crate) fn own_graphs() -> QueryDatasetSpecification {
    let mut specification = QueryDatasetSpecification::new();
    specification.set_default_graph(vec![GraphName::DefaultGraph]);
    specification
}

/// Returns the graphs that a request reads: those that it names, otherwise all.
pub(crate) fn to_graphs(dataset: &Dataset<'_>, named: Option<&QueryDataset>) -> Graphs {
    let encode = |graphs: &Vec<NamedNode>| -> Vec<InternalTerm> {
        graphs.iter().map(|graph| dataset.encode(graph.clone().into())).collect()
    };
    match named {
        None => Graphs::default(),
        Some(QueryDataset { default, named }) => {
            Graphs { default: Some(encode(default)), named: named.as_ref().map(encode) }
        }
    }
}

/// Passes results on. What another thread frees later does not count as memory of the query.
///
/// It writes nothing when it is dropped, unlike a `BufWriter`: a check while the thread unwinds would end the process.
struct BudgetedOutput<'a> {
    output: &'a mut dyn Write,
    budget: &'a Budget,
    collected: Vec<u8>,
    passed_on: usize,
}

impl BudgetedOutput<'_> {
    fn pass_on(&mut self) -> io::Result<()> {
        self.budget.check();
        self.passed_on += self.collected.len();
        if self.passed_on > MAX_SHORT_RESULT_BYTES {
            self.budget.abort_short_query();
        }
        self.budget.without_counting(|| self.output.write_all(&self.collected))?;
        self.collected.clear();
        Ok(())
    }
}

impl Write for BudgetedOutput<'_> {
    fn write(&mut self, piece: &[u8]) -> io::Result<usize> {
        self.collected.extend_from_slice(piece);
        if self.collected.len() >= OUTPUT_BYTES {
            self.pass_on()?;
        }
        Ok(piece.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.pass_on()?;
        self.budget.without_counting(|| self.output.flush())
    }
}

fn write_results(
    results: QueryResults<'_>,
    format: ResultFormat,
    output: &mut BudgetedOutput<'_>,
    budget: &Budget,
) -> Result<u64, GatewayError> {
    match (results, format) {
        (QueryResults::Boolean(answer), ResultFormat::Solutions(format)) => {
            let serializer = QueryResultsSerializer::from_format(format);
            serializer
                .serialize_boolean_to_writer(output, answer)
                .map_err(|error| to_output_error(&error))?;
            Ok(1)
        }
        // XML would read a carriage return as a line feed.
        (QueryResults::Solutions(solutions), ResultFormat::Solutions(QueryResultsFormat::Xml)) => {
            let mut output = ReferenceWriter(output);
            write_solutions(solutions, QueryResultsFormat::Xml, &mut output, budget)
        }
        (QueryResults::Solutions(solutions), ResultFormat::Solutions(format)) => {
            write_solutions(solutions, format, output, budget)
        }
        (QueryResults::Graph(triples), ResultFormat::Graph(format)) => {
            let mut writer = QuadWriter::new(output, format, []);
            let mut rows = 0;
            for triple in triples {
                let triple: Triple = triple.map_err(|error| to_error(&error))?;
                rows += 1;
                budget.check_rows(rows);
                writer.write_triple(&triple).map_err(to_write_error)?;
            }
            writer.finish().map_err(to_write_error)?;
            Ok(rows)
        }
        (QueryResults::Boolean(_) | QueryResults::Solutions(_), ResultFormat::Graph(_)) => {
            Err(to_format_error("SELECT or ASK", "a graph"))
        }
        (QueryResults::Graph(_), ResultFormat::Solutions(_)) => {
            Err(to_format_error("CONSTRUCT or DESCRIBE", "solutions"))
        }
    }
}

fn write_solutions(
    solutions: QuerySolutionIter<'_>,
    format: QueryResultsFormat,
    output: &mut impl Write,
    budget: &Budget,
) -> Result<u64, GatewayError> {
    let variables: Vec<Variable> = solutions.variables().to_vec();
    let serializer = QueryResultsSerializer::from_format(format);
    let mut writer = serializer
        .serialize_solutions_to_writer(output, variables)
        .map_err(|error| to_output_error(&error))?;
    let mut rows = 0;
    for solution in solutions {
        let solution = solution.map_err(|error| to_error(&error))?;
        rows += 1;
        budget.check_rows(rows);
        if format == QueryResultsFormat::Xml {
            check_xml(&solution)?;
        }
        writer.serialize(&solution).map_err(|error| to_output_error(&error))?;
    }
    writer.finish().map_err(|error| to_output_error(&error))?;
    Ok(rows)
}

/// Refuses a value that XML cannot hold.
fn check_xml(solution: &QuerySolution) -> Result<(), GatewayError> {
    for (variable, value) in solution {
        if let Term::Literal(literal) = value
            && let Some(c) = find_non_xml_char(literal.value())
        {
            let detail = format!(
                "XML cannot hold the character {c:?}, which a value of {variable} has; use another format"
            );
            return Err(GatewayError::new(ErrorClass::Invalid, detail));
        }
    }
    Ok(())
}

fn to_write_error(error: WriteError) -> GatewayError {
    match error {
        WriteError::Output(error) => to_output_error(&error),
        error => error.into(),
    }
}

fn to_format_error(form: &str, format: &str) -> GatewayError {
    GatewayError::new(
        ErrorClass::Invalid,
        format!("the result of {form} has no format for {format}"),
    )
}

/// Converts an error of the evaluator.
pub(crate) fn to_error(error: &QueryEvaluationError) -> GatewayError {
    GatewayError::new(
        ErrorClass::Invalid,
        format!("the SPARQL request cannot be evaluated: {error}"),
    )
}

fn to_output_error(error: &io::Error) -> GatewayError {
    GatewayError::new(
        ErrorClass::Unavailable(std::time::Duration::from_secs(1)),
        format!("the results could not be sent: {error}"),
    )
}
