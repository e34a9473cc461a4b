//! The schema of the moment, and how a document is executed.
use super::built::Built;
use super::cost::{self, Cost};
use super::document::Document;
use super::execute::Execution;
use super::{introspection, model};
use async_graphql::parser::parse_query;
use async_graphql::parser::types::{ExecutableDocument, OperationType};
use async_graphql::{Name, Request, SDLExportOptions, ServerError, Value, Variables};
use penstock_auth::{Caller, Credential};
use penstock_base::fault::{Fault, Kind};
use penstock_base::memory::Memory;
use penstock_config::GraphqlLimits;
use penstock_export::Exporter;
use penstock_model::catalogue::Catalogue;
use penstock_service::gateway::Gateway;
use penstock_service::query_permits::QueryPermits;
use penstock_store::ReadStore;
use serde::Serialize;
use serde_json::value::RawValue;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::{Duration, Instant};
use tokio::runtime::Handle;

/// How long a schema is kept that nobody asks for.
const KEPT: Duration = Duration::from_mins(1);

/// What GraphQL reads.
#[derive(Debug)]
pub(super) struct Sources {
    /// The store.
    pub(super) store: ReadStore,
    /// The Business Objects.
    pub(super) catalogue: Catalogue,
    /// The exporter.
    pub(super) exporter: Exporter,
    /// The memory of the process.
    pub(super) memory: Memory,
}

/// GraphQL over what the gateway holds. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Schema(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    sources: Sources,
    limits: GraphqlLimits,
    current: Mutex<Current>,
    permits: QueryPermits,
}

/// The schema of the moment: made when it is asked for, and let go when nobody has for a while, since it
/// takes megabytes where there are many Business Objects.
#[derive(Debug)]
struct Current {
    built: Option<Arc<Built>>,
    used: Instant,
    /// Whether somebody will let it go.
    is_watched: bool,
}

/// What is asked.
#[derive(Debug, Default)]
pub struct Query {
    /// The document.
    pub document: String,
    /// Which of its operations, where it has more than one.
    pub operation: Option<String>,
    /// The values of its variables.
    pub variables: serde_json::Map<String, serde_json::Value>,
    /// Whether only what changes nothing is done.
    pub reads_only: bool,
}

/// What is answered: `data`, unless the document was not executed; `errors`, if there are any.
#[derive(Debug, Serialize)]
pub struct Answer {
    /// The result.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub data: Option<Box<RawValue>>,
    /// What went wrong.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub errors: Vec<ServerError>,
    /// Whether it was refused because it changes something.
    #[serde(skip)]
    pub would_change: bool,
    /// Whether it was refused because too much else is under way.
    #[serde(skip)]
    pub is_busy: bool,
}

impl Schema {
    /// Creates the schema of what this gateway holds.
    pub fn new(gateway: &Gateway) -> Self {
        let sources = Sources {
            store: ReadStore::clone(&gateway.store),
            catalogue: gateway.catalogue.clone(),
            exporter: gateway.exporter.clone(),
            memory: gateway.memory.clone(),
        };
        let current = Current { built: None, used: Instant::now(), is_watched: false };
        Self(Arc::new(Inner {
            sources,
            limits: gateway.settings.limits.graphql,
            current: Mutex::new(current),
            permits: gateway.query_permits.clone(),
        }))
    }

    /// The schema that somebody sees, in the language that GraphQL has for it. Blocks.
    ///
    /// # Errors
    /// `Kind::Internal` when the types do not fit together; `Kind::Unavailable` when there is not enough memory.
    pub fn sdl(&self, caller: &Caller) -> Result<String, Fault> {
        let options = SDLExportOptions::new().include_specified_by();
        let built = self.0.seen_by(caller);
        let lease = built.lease_all(&self.0.sources.memory)?;
        Ok(introspection::describe(&lease.dynamic.sdl_with_options(options)))
    }

    /// Says which Business Objects have no type, and why; `None` when all have one.
    pub fn warning(&self) -> Option<String> {
        let all = self.0.sources.catalogue.list();
        let (_, left_out) = model::fitting(&all, self.0.limits.fields);
        let first = left_out.first()?;
        let others = match left_out.len() - 1 {
            0 => String::new(),
            others => format!(" and {others} more"),
        };
        Some(format!("{:?}{others} has no type in GraphQL: {}", first.name, first.why))
    }

    /// Executes a document on behalf of somebody.
    pub async fn execute(&self, query: Query, caller: &Caller) -> Answer {
        let (inner, who) = (Arc::clone(&self.0), caller.clone());
        let prepared = blocking(move || inner.prepare(query, &who)).await;
        let prepared = match prepared {
            Ok(Ok(prepared)) => prepared,
            Ok(Err(refused)) => return refused,
            Err(answer) => return answer,
        };
        let turn = if prepared.reads {
            let Some(turn) = self.0.permits.acquire().await else {
                let busy = Answer::refused("too many queries are under way; try again");
                return Answer { is_busy: true, ..busy };
            };
            Some(turn)
        } else {
            None
        };
        let (inner, who) = (Arc::clone(&self.0), caller.clone());
        let answer = blocking(move || {
            let _turn = turn;
            prepared.run(&inner, &who)
        });
        answer.await.unwrap_or_else(|answer| answer)
    }
}

/// Runs what blocks on a thread that may.
async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<T, Answer> {
    let span = tracing::Span::current();
    let done = tokio::task::spawn_blocking(move || span.in_scope(work)).await;
    done.map_err(|error| {
        tracing::error!(%error, "A GraphQL query ended without an answer.");
        Answer::refused("the query ended without an answer; the gateway's log says why")
    })
}

/// A document that is valid and not too dear.
struct Prepared {
    built: Arc<Built>,
    document: ExecutableDocument,
    operation: Option<String>,
    variables: Variables,
    introspected: Value,
    /// Whether it asks for more than introspection.
    reads: bool,
}

impl Prepared {
    fn run(&self, inner: &Inner, caller: &Caller) -> Answer {
        let document = Document::new(&self.document, self.operation.as_deref(), &self.variables);
        let Some(document) = document else { return Answer::refused("there is no such operation") };
        let Built { model, all, .. } = &*self.built;
        let execution = Execution::new(model, all, &document, &inner.sources, inner.limits, caller);
        let (data, errors) = execution.run(&self.introspected).write();
        for error in &errors {
            tracing::debug!(why = error.message, "A field of a GraphQL query failed.");
        }
        match RawValue::from_string(data) {
            Ok(data) => Answer { data: Some(data), ..Answer::with(errors) },
            Err(error) => {
                tracing::error!(%error, "The answer to a GraphQL query was no JSON.");
                Answer::refused("the answer could not be written; the gateway's log says why")
            }
        }
    }
}

impl Inner {
    /// Reads and validates a document, tells what it costs, and answers introspection.
    fn prepare(self: &Arc<Self>, query: Query, caller: &Caller) -> Result<Prepared, Answer> {
        cost::check_text(&query.document).map_err(Answer::refused)?;
        let document =
            parse_query(&query.document).map_err(|error| Answer::with(vec![error.into()]))?;
        cost::check(&document, self.limits.depth).map_err(Answer::refused)?;
        let changes = document.operations.iter().any(|(name, operation)| {
            operation.node.ty == OperationType::Mutation
                && query
                    .operation
                    .as_ref()
                    .is_none_or(|asked| name.is_none_or(|name| name == asked))
        });
        if query.reads_only && changes {
            let refused = Answer::refused("a mutation must be sent by POST");
            return Err(Answer { would_change: true, ..refused });
        }
        let built = self.seen_by(caller);
        let lease = built.lease_for(&document, &self.sources.memory).map_err(Answer::failed)?;
        built.check_variables(&document).map_err(Answer::refused)?;
        let variables = variables(query.variables);
        let mut request =
            Request::new(query.document).variables(variables.clone()).only_introspection();
        request.operation_name.clone_from(&query.operation);
        request.set_parsed_query(introspection::adapt(document.clone()));
        // Nothing in it waits for anything.
        let mut response = Handle::current().block_on(lease.dynamic.execute(request));
        drop(lease);
        if !response.errors.is_empty() {
            return Err(Answer::with(response.errors));
        }
        let asked = Document::new(&document, query.operation.as_deref(), &variables);
        let asked = asked.ok_or_else(|| Answer::refused("there is no such operation"))?;
        let cost = Cost::of(&built.model, &asked).map_err(Answer::refused)?;
        self.check(cost)?;
        introspection::complete(&asked, &mut response.data);
        let reads = cost.complexity > 0;
        let introspected = response.data;
        let operation = query.operation;
        Ok(Prepared { built, document, operation, variables, introspected, reads })
    }

    fn check(&self, cost: Cost) -> Result<(), Answer> {
        let limits = &self.limits;
        for (what, figure, limit, setting) in [
            ("levels of fields", cost.depth, limits.depth as u64, "depth"),
            ("objects on its pages", cost.rows, limits.rows, "rows"),
            ("fields in its answer", cost.complexity, limits.complexity, "complexity"),
        ] {
            if figure <= limit {
                continue;
            }
            let mut error = ServerError::new(
                format!(
                    "the query is too dear: it asks for {figure} {what}, and the limit is {limit} \
                     (service.limits.graphql.{setting}); ask for smaller pages or fewer fields"
                ),
                None,
            );
            let mut extensions = async_graphql::ErrorExtensionValues::default();
            extensions.set("code", "QUERY_TOO_DEAR");
            extensions.set("limit", limit);
            extensions.set("figure", figure);
            extensions.set("of", setting);
            error.extensions = Some(extensions);
            return Err(Answer::with(vec![error]));
        }
        Ok(())
    }

    /// The schema of the moment, as the caller sees it.
    fn seen_by(self: &Arc<Self>, caller: &Caller) -> Arc<Built> {
        let whole = self.whole();
        let Credential::ApiKey { business_object: Some(id), .. } = &caller.credential else {
            return whole;
        };
        whole.own(id, self.limits.fields)
    }

    fn whole(self: &Arc<Self>) -> Arc<Built> {
        let mut current = self.current();
        current.used = Instant::now();
        // Read before the entries, so that a change in between is met by the next request.
        let version = self.sources.catalogue.version();
        if let Some(built) = current.built.as_ref().filter(|built| built.version == version) {
            return Arc::clone(built);
        }
        // Lest both are in memory, unless somebody uses the old one.
        current.built = None;
        let all = self.sources.catalogue.list();
        let built = Arc::new(Built::new(version, all, self.limits.fields, true));
        current.built = Some(Arc::clone(&built));
        if !current.is_watched
            && let Ok(runtime) = Handle::try_current()
        {
            current.is_watched = true;
            runtime.spawn(let_go(Arc::downgrade(self)));
        }
        built
    }

    fn current(&self) -> MutexGuard<'_, Current> {
        self.current.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Lets the schema go when nobody has asked for it for a while.
async fn let_go(inner: Weak<Inner>) {
    loop {
        tokio::time::sleep(KEPT).await;
        let Some(inner) = inner.upgrade() else { return };
        let mut current = inner.current();
        if current.used.elapsed() >= KEPT {
            current.built = None;
            current.is_watched = false;
            return;
        }
    }
}

impl Answer {
    /// Nothing was executed, for this reason.
    pub fn refused(why: impl Into<String>) -> Self {
        Self::with(vec![ServerError::new(why, None)])
    }

    /// Nothing was executed, since the schema could not be made for it.
    fn failed(fault: Fault) -> Self {
        let is_busy = matches!(fault.kind, Kind::Unavailable(_));
        Self { is_busy, ..Self::refused(fault.detail) }
    }

    fn with(errors: Vec<ServerError>) -> Self {
        Self { data: None, errors, would_change: false, is_busy: false }
    }
}

/// The library would read them by serde, which shows the numbers of `serde_json`, kept digit by digit here,
/// as objects.
fn variables(values: serde_json::Map<String, serde_json::Value>) -> Variables {
    let mut variables = Variables::default();
    variables.extend(values.into_iter().map(|(name, value)| (Name::new(name), variable(value))));
    variables
}

fn variable(value: serde_json::Value) -> Value {
    use serde_json::Value as Json;
    match value {
        Json::Null => Value::Null,
        Json::Bool(flag) => Value::Boolean(flag),
        Json::Number(number) => Value::Number(number),
        Json::String(text) => Value::String(text),
        Json::Array(items) => Value::List(items.into_iter().map(variable).collect()),
        Json::Object(members) => Value::Object(
            members.into_iter().map(|(name, value)| (Name::new(name), variable(value))).collect(),
        ),
    }
}

#[cfg(test)]
mod tests;
