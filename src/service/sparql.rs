//! SPARQL: queries, updates, and single graphs.
//!
//! A query runs on one snapshot, and on a thread of its own unless it is short. An update and a write of a graph are one commit, which passes
//! everything that an ingestion passes.
mod permits;
mod preview;
mod remote;
mod result_name;
pub(crate) mod service;

pub use penstock_sparql::QueryForm;
pub use permits::SparqlPermit;
pub use preview::{AnswerBeginning, preview_query};
pub use result_name::ResultName;

use crate::audit::change_event;
use crate::blocking::run_in_place;
use crate::gateway::Gateway;
use oxrdf::{GraphName, NamedNode};
use penstock_auth::{Authorized, Caller, Role};
use penstock_base::Preconditions;
use penstock_base::error::{ErrorClass, GatewayError, Place};
use penstock_base::events::EventKind;
use penstock_base::permits::Permit;
use penstock_base::telemetry::metrics;
use penstock_base::telemetry::trace::Trace;
use penstock_model::catalogue::Catalogue;
use penstock_model::change_feed;
use penstock_model::ingest::{self, UpdateToRecord};
use penstock_model::protection;
use penstock_model::rdf::{self, Format, GraphWrite, WrittenGraph};
use penstock_resources::ingestion::{IngestionRecord, QuadCounts};
use penstock_sparql::{
    DatasetParameters, Deadline, Limits, Query, QueryContext, ResultFormat, Update, UpdateLimits,
    apply_update, evaluate, evaluate_short, run_on_query_stack, spawn_query_thread,
};
use penstock_store::Transaction;
use service::MAX_GRAPH_READS;
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::io;
use std::ops::ControlFlow;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::sync::oneshot;
use tokio::time::timeout;

/// How long a read of a graph waits for others.
const GRAPH_READ_WAIT: Duration = Duration::from_secs(10);

/// Waits for the permit of a query or an update.
///
/// # Errors
/// `ErrorClass::Unavailable` if memory stays short, or too many requests wait, of all accounts or of this one.
pub async fn acquire_permit(
    gateway: &Gateway,
    by: &Authorized,
) -> Result<SparqlPermit, GatewayError> {
    gateway.sparql.permits.acquire(by.id()).await
}

/// Runs work on a thread whose stack suffices for deeply nested queries, in the span of the caller, and waits for it.
///
/// # Errors
/// The errors of `work`; `ErrorClass::Internal` when it ended without an answer.
pub async fn run_on_query_thread<T, E>(
    work: impl FnOnce() -> Result<T, E> + Send + 'static,
) -> Result<T, E>
where
    T: Send + 'static,
    E: From<GatewayError> + Send + 'static,
{
    let (sender, receiver) = oneshot::channel();
    // The result of a request whose client has disconnected is not needed.
    start_query_thread(move || drop(sender.send(work())))?;
    receiver.await.unwrap_or_else(|_| Err(no_answer_error().into()))
}

/// Starts work on a thread whose stack suffices for deeply nested queries, in the span of the caller.
///
/// # Errors
/// `ErrorClass::Unavailable` if the thread cannot be started.
pub fn start_query_thread(work: impl FnOnce() + Send + 'static) -> Result<(), GatewayError> {
    let span = tracing::Span::current();
    spawn_query_thread(move || span.in_scope(work)).map_err(|error| {
        tracing::warn!(%error, "A thread for a query or a download could not be started.");
        GatewayError::new(
            ErrorClass::Unavailable(Duration::from_secs(5)),
            "the machine has no capacity for another query or download now; try again later",
        )
    })
}

/// Returns the error of a query or a download whose thread ended without an answer.
pub fn no_answer_error() -> GatewayError {
    GatewayError::new(
        ErrorClass::Internal,
        "the request ended without an answer; the gateway's log says why",
    )
}

/// Evaluates a query on the state after the newest commit, and writes the answer to `output`. Returns the number of rows
/// or triples. An error from `output` ends the query. Blocking; only for a thread of [`start_query_thread`].
///
/// # Errors
/// - `ErrorClass::Invalid` past a limit of `service.limits.sparql`
/// - `ErrorClass::Unavailable` if the state could not be kept
pub fn run_query(
    gateway: &Gateway,
    query: Query,
    deadline: Deadline,
    format: ResultFormat,
    output: &mut dyn io::Write,
) -> Result<u64, GatewayError> {
    let started = Instant::now();
    let snapshot = gateway.store.snapshot()?;
    let services = Arc::new(gateway.sparql.remote.clone());
    let context = QueryContext { limits: limits_of(gateway), deadline, services };
    log_result(started, evaluate(query, &snapshot, context, format, output), |rows| *rows)
}

/// Parses a query and answers it on the calling thread, if it reads little: handing it over to a thread and back takes
/// longer than that. Returns the query if it does not. All runs on a stack as large as that of a query thread: `parse`, which
/// returns the query with what belongs to it, `of`, which finds it in that, and `finish`, which turns both and the results into
/// the answer. Blocking, for a few milliseconds.
///
/// # Errors
/// Those of `parse` and of [`run_query`]; `ErrorClass::Unavailable` if the machine has no memory for the stack.
pub fn try_short_query<Q, A, E: From<GatewayError>>(
    gateway: &Gateway,
    parse: impl FnOnce() -> Result<Q, E>,
    of: impl FnOnce(&Q) -> (&Query, ResultFormat),
    finish: impl FnOnce(Q, Vec<u8>) -> A,
) -> Result<ControlFlow<A, Q>, E> {
    let run = || -> Result<ControlFlow<A, Q>, E> {
        let parsed = parse()?;
        let (query, format) = of(&parsed);
        let started = Instant::now();
        let snapshot = gateway.store.snapshot().map_err(GatewayError::from)?;
        let Some(result) = evaluate_short(query, &snapshot, limits_of(gateway), format) else {
            return Ok(ControlFlow::Continue(parsed));
        };
        let (_, results) = log_result(started, result, |(rows, _)| *rows)?;
        Ok(ControlFlow::Break(finish(parsed, results)))
    };
    run_in_place(|| run_on_query_stack(run))?
}

fn log_result<T>(
    started: Instant,
    result: Result<T, GatewayError>,
    count_rows: impl FnOnce(&T) -> u64,
) -> Result<T, GatewayError> {
    let duration_ms = u64::try_from(started.elapsed().as_millis()).unwrap_or(u64::MAX);
    match &result {
        Ok(answer) => {
            let rows = count_rows(answer);
            tracing::debug!(rows, duration_ms, "A SPARQL query was answered.");
        }
        Err(error) => {
            tracing::info!(cause = error.detail, duration_ms, "A SPARQL query failed.");
        }
    }
    result
}

fn limits_of(gateway: &Gateway) -> Limits {
    let limits = gateway.settings.limits.sparql;
    Limits { time: limits.time, memory: limits.memory, rows: limits.rows }
}

/// Returns when a query that starts now must end.
pub fn query_deadline(gateway: &Gateway) -> Deadline {
    (Instant::now() + gateway.settings.limits.sparql.time).into()
}

/// Parses a query that uses the prefixes of the mappings.
///
/// # Errors
/// `ErrorClass::Malformed`, with the place in `text`.
pub fn parse_with_mapping_prefixes(
    catalogue: &Catalogue,
    text: &str,
    parameters: &DatasetParameters,
) -> Result<Query, GatewayError> {
    let lines = prefix_lines(&collect_prefixes(catalogue));
    let count = lines.lines().count() as u64;
    Query::parse(&format!("{lines}{text}"), parameters).map_err(|mut error| {
        for finding in &mut error.findings {
            if let Place::Line { line, column } = &mut finding.place {
                // A blank text ends with the declarations before it.
                (*line, *column) = if *line > count { (*line - count, *column) } else { (1, 1) };
            }
        }
        error
    })
}

/// Returns these prefixes as declarations in SPARQL, one a line.
pub fn prefix_lines(prefixes: &BTreeMap<String, String>) -> String {
    prefixes.iter().fold(String::new(), |mut lines, (prefix, iri)| {
        // Writing into a string cannot fail.
        let _ = writeln!(lines, "PREFIX {prefix}: <{iri}>");
        lines
    })
}

/// Collects the prefixes of all mappings. Leaves out those that two mappings define differently, and names that SPARQL
/// does not allow.
pub fn collect_prefixes(catalogue: &Catalogue) -> BTreeMap<String, String> {
    let mut found: BTreeMap<String, Option<String>> = BTreeMap::new();
    for compiled in catalogue.list() {
        for (prefix, iri) in compiled.mapping.prefixes.declared() {
            if !is_sparql_prefix(prefix) || NamedNode::new(iri).is_err() {
                continue;
            }
            let known = found.entry(prefix.to_owned()).or_insert_with(|| Some(iri.to_owned()));
            if known.as_deref() != Some(iri) {
                *known = None;
            }
        }
    }
    found.into_iter().filter_map(|(prefix, iri)| Some((prefix, iri?))).collect()
}

/// Whether this is a prefix in SPARQL (`PN_PREFIX`), of ASCII letters only, or empty.
fn is_sparql_prefix(text: &str) -> bool {
    let is_inner = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.');
    text.is_empty()
        || text.starts_with(|c: char| c.is_ascii_alphabetic())
            && !text.ends_with('.')
            && text.chars().all(is_inner)
}

/// A request that changes quads, except what it changes.
#[derive(Debug, Clone, Copy)]
pub struct ChangeRequest<'a> {
    /// Who sent it.
    pub by: &'a Authorized,
    /// The trace of the request.
    pub trace: Trace,
    /// The size of its body in bytes.
    pub bytes: u64,
    /// Whether it may change objects of Business Objects that refuse what violates their shapes.
    pub bypass: bool,
}

/// Refuses changes in SPARQL unless `service.sparql.update` allows them.
///
/// # Errors
/// `ErrorClass::Forbidden` if it does not.
pub fn check_updates_allowed(gateway: &Gateway) -> Result<(), GatewayError> {
    if gateway.settings.sparql.allows_updates {
        return Ok(());
    }
    Err(GatewayError::new(
        ErrorClass::Forbidden,
        "updates with SPARQL are off; to allow them for Admins, set service.sparql.update=true",
    ))
}

/// The maximum time of an update, whatever `service.limits.sparql.time` is: all other changes wait for it.
const MAX_UPDATE_TIME: Duration = Duration::from_mins(1);

/// Applies an update in one commit. Returns its record. Blocking; only for a thread of [`start_query_thread`].
///
/// # Errors
/// - `ErrorClass::Forbidden` if updates are off, or the requester is no longer an Admin
/// - `ErrorClass::Conflict` if it changes objects of a Business Object that refuses what violates its shapes
/// - `ErrorClass::TooLarge` past `service.limits.sparql.update`
/// - `ErrorClass::Invalid` past another limit, and for a blank node without `skolemize`
/// - `ErrorClass::InsufficientStorage` if the disk is full up to its reserve
pub fn run_update(
    gateway: &Gateway,
    request: &ChangeRequest<'_>,
    update: &Update,
    skolemize: Option<&NamedNode>,
) -> Result<IngestionRecord, GatewayError> {
    gateway.disk.check_reserve()?;
    let limits =
        UpdateLimits { quads: gateway.settings.limits.sparql.update, query: limits_of(gateway) };
    let committed = commit_change(gateway, request, "an update", |transaction| {
        // Waiting for other writers does not count. They wait for this one.
        let deadline = query_deadline(gateway).at().min(Instant::now() + MAX_UPDATE_TIME);
        let changes = apply_update(update, transaction, limits, deadline, skolemize)?;
        Ok(((), QuadCounts { inserted: changes.inserted, removed: changes.removed }))
    });
    committed.map(|((), record)| record)
}

/// Changes one graph in one commit. Blocking.
///
/// # Errors
/// As [`run_update`]; `ErrorClass::PreconditionFailed` if a precondition is false; `ErrorClass::Malformed` for an error in the document, with its place.
pub fn write_graph(
    gateway: &Gateway,
    request: &ChangeRequest<'_>,
    write: &GraphWrite<'_>,
    preconditions: Preconditions,
) -> Result<WrittenGraph, GatewayError> {
    if write.document.is_some() {
        gateway.disk.check_reserve()?;
    }
    let of = match write.graph {
        GraphName::DefaultGraph => "the default graph".to_owned(),
        graph => format!("the graph {graph}"),
    };
    let committed = commit_change(gateway, request, &of, |transaction| {
        let written = rdf::write_graph(transaction, write)?;
        if write.document.is_none() && !written.existed && *write.graph != GraphName::DefaultGraph {
            return Err(unknown_graph_error(write.graph));
        }
        // An error undoes the commit.
        preconditions.check_existence(written.existed, &of)?;
        Ok((written, written.quads))
    });
    committed.map(|(written, _)| written)
}

fn unknown_graph_error(graph: &GraphName) -> GatewayError {
    GatewayError::new(ErrorClass::NotFound, format!("the graph {graph} has no quads"))
}

/// Commits a change of quads with its record, its audit event and what automatic exports need.
fn commit_change<T>(
    gateway: &Gateway,
    request: &ChangeRequest<'_>,
    what: &str,
    change: impl FnOnce(&mut Transaction<'_>) -> Result<(T, QuadCounts), GatewayError>,
) -> Result<(T, IngestionRecord), GatewayError> {
    let started = Instant::now();
    let ChangeRequest { by, trace, bytes, bypass } = *request;
    let by = &by.with_min_role(Role::Admin);
    check_updates_allowed(gateway)?;
    by.with_current_role()?.require_role(Role::Admin)?;
    let (watch, traceparent) = (gateway.catalogue.watch(), trace.to_string());
    let time = gateway.settings.limits.shapes.time;
    let committed = gateway.store.commit::<_, GatewayError>(by, |transaction| {
        let (result, quads) = change(transaction)?;
        let bypassed = protection::check_untouched(transaction, watch, time, bypass)?;
        change_feed::record_changes(transaction, watch)?;
        let update = UpdateToRecord {
            caller: by.id(),
            api_key: by.api_key_id(),
            traceparent: &traceparent,
            bytes,
            quads,
        };
        let history = gateway.settings.limits.history;
        let record = ingest::store_update_record(transaction, &update, watch, history)?;
        let QuadCounts { inserted, removed } = quads;
        let detail = format!(
            "{what} with SPARQL: {inserted} quads inserted, {removed} removed; ingestion {}{}",
            record.id,
            describe_bypass(&bypassed)
        );
        let event = change_event(by, "data.updated", detail);
        gateway.auth.audit.add_event(transaction, &event)?;
        let (events, kind) = (&gateway.events, EventKind::Ingestion);
        events.store(transaction, Some(&traceparent), kind, &record.id, &record)?;
        Ok((result, record, event))
    });
    let (caller, seconds) = (by.id(), started.elapsed().as_secs_f64());
    match committed {
        Ok(((result, record, event), _)) => {
            let trace = Some(traceparent.as_str());
            gateway.events.publish_in_trace(trace, EventKind::Ingestion, &record.id, &record);
            metrics::count_ingestion("committed", 0, bytes, seconds);
            tracing::info!(ingestion_id = record.id, caller, bytes, "{}.", event.detail);
            Ok((result, record))
        }
        Err(error) => {
            metrics::count_ingestion("refused", 0, bytes, seconds);
            let cause = error.detail.as_str();
            tracing::warn!(cause, caller, bytes, "A change of quads with SPARQL was refused.");
            Err(error)
        }
    }
}

/// Returns the part of an audit event that names the Business Objects whose shapes were not checked.
fn describe_bypass(names: &[String]) -> String {
    if names.is_empty() {
        return String::new();
    }
    let names: Vec<_> = names.iter().map(|name| format!("{name:?}")).collect();
    format!("; bypass=true for the Business Objects {}", names.join(", "))
}

/// Checks that a graph has quads. The default graph is always there.
///
/// # Errors
/// `ErrorClass::NotFound` if it has none.
pub async fn check_graph_exists(gateway: &Gateway, graph: GraphName) -> Result<(), GatewayError> {
    gateway
        .read(move |gateway| {
            if graph == GraphName::DefaultGraph || rdf::has_quads(&gateway.store.read(), &graph)? {
                Ok(())
            } else {
                Err(unknown_graph_error(&graph))
            }
        })
        .await
}

/// Waits for the permit to read a graph. Dropping it releases it.
///
/// # Errors
/// `ErrorClass::Unavailable` if others are read for long.
pub async fn acquire_graph_permit(
    gateway: &Gateway,
    by: &Caller,
) -> Result<Permit<String>, GatewayError> {
    let permit = timeout(GRAPH_READ_WAIT, gateway.sparql.graph_reads.acquire(by.id())).await;
    permit.map_err(|_| {
        GatewayError::new(
            ErrorClass::Unavailable(Duration::from_secs(5)),
            format!(
                "{MAX_GRAPH_READS} graphs are being read, or one by this account, and no more are read at a time; try again \
                 later"
            ),
        )
    })
}

/// Writes the triples of a graph to `output`. Returns their number. Blocking.
///
/// # Errors
/// As [`rdf::write_graph_triples`].
pub fn read_graph(
    gateway: &Gateway,
    graph: &GraphName,
    format: Format,
    output: &mut dyn io::Write,
) -> Result<u64, GatewayError> {
    rdf::write_graph_triples(&gateway.store, format, graph, output)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_prefixes_that_sparql_allows_are_declared() {
        for good in ["", "a", "ex", "a-b.c_1"] {
            assert!(is_sparql_prefix(good), "{good}");
        }
        for bad in ["1a", "a b", "a.", "_a", "a:b", "a>"] {
            assert!(!is_sparql_prefix(bad), "{bad}");
        }
    }
}
