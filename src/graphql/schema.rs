//! The current schema, and the execution of documents.
use super::built::BuiltSchema;
use super::cost::{self, Cost};
use super::document::{Document, find_operation};
use super::execution::Execution;
use super::plan::Planner;
use super::query::Query;
use super::sources::GraphqlSources;
use super::text::{check_unique_input_fields, decode_escapes};
use super::validation::check_values;
use super::variables::coerce_variables;
use super::{introspection, model, out};
use async_graphql::parser::parse_query;
use async_graphql::parser::types::{ExecutableDocument, OperationType};
use async_graphql::{Request, SDLExportOptions, ServerError, Value, Variables};
use parking_lot::{Mutex, MutexGuard};
use penstock_auth::Caller;
use penstock_base::error::{ErrorClass, GatewayError};
use penstock_base::permits::Permit;
use penstock_config::GraphqlLimits;
use penstock_service::blocking;
use penstock_service::gateway::Gateway;
use serde::Serialize;
use serde_json::value::RawValue;
use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};
use tokio::runtime::Handle;
use tokio::time::timeout;

/// The time after which an unused schema is dropped.
const UNUSED_SCHEMA_LIFETIME: Duration = Duration::from_mins(1);

/// The GraphQL service. Cheap to clone.
#[derive(Debug, Clone)]
pub struct GraphqlService(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    sources: GraphqlSources,
    limits: GraphqlLimits,
    current: Mutex<CurrentSchema>,
}

/// The current schema. It is built on demand and dropped when it is unused for a while, because it takes megabytes
/// if there are many Business Objects.
#[derive(Debug)]
struct CurrentSchema {
    built: Option<Arc<BuiltSchema>>,
    used: Instant,
    /// Whether a task is running that drops the unused schema.
    is_watched: bool,
}

/// The answer: `data`, unless the document was not executed, and `errors`, if there are any.
#[derive(Debug, Serialize)]
pub struct Answer {
    /// The result.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub data: Option<Box<RawValue>>,
    /// The errors.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub errors: Vec<ServerError>,
    /// Whether the query was refused because it is a mutation.
    #[serde(skip)]
    pub would_change: bool,
    /// Whether the query was refused because the gateway is busy.
    #[serde(skip)]
    pub is_busy: bool,
}

impl GraphqlService {
    /// Creates the service over this gateway.
    pub fn new(gateway: &Gateway) -> Self {
        let current = CurrentSchema { built: None, used: Instant::now(), is_watched: false };
        Self(Arc::new(Inner {
            sources: GraphqlSources::new(gateway),
            limits: gateway.settings.limits.graphql,
            current: Mutex::new(current),
        }))
    }

    /// Returns the schema that the caller may see, in the schema definition language. Blocking.
    ///
    /// # Errors
    /// `ErrorClass::Internal` when the types are inconsistent; `ErrorClass::Unavailable` when there is not enough
    /// memory.
    pub fn render_sdl(&self, caller: &Caller) -> Result<String, GatewayError> {
        let options = SDLExportOptions::new().include_specified_by();
        let built = self.0.schema_for_caller(caller);
        let lease = built.lease_all(&self.0.sources.memory)?;
        Ok(introspection::add_description(&lease.dynamic.sdl_with_options(options)))
    }

    /// Returns the schema that the caller may see. Blocking.
    pub(super) fn schema_for_caller(&self, caller: &Caller) -> Arc<BuiltSchema> {
        self.0.schema_for_caller(caller)
    }

    /// Describes which Business Objects have no type, and why; `None` when all have one.
    pub fn describe_missing_types(&self) -> Option<String> {
        let all = self.0.sources.catalogue.list();
        let (_, left_out) = model::select_fitting(&all, self.0.limits.fields);
        let first = left_out.first()?;
        let others = match left_out.len() - 1 {
            0 => String::new(),
            others => format!(" and {others} more"),
        };
        Some(format!("{:?}{others} has no type in GraphQL: {}", first.name, first.why))
    }

    /// Executes a document on behalf of the caller.
    pub async fn execute(&self, query: Query, caller: &Caller) -> Answer {
        self.try_execute(query, caller).await.unwrap_or_else(|refused| refused)
    }

    async fn try_execute(&self, query: Query, caller: &Caller) -> Result<Answer, Answer> {
        // What the library answers about the schema can take megabytes, so it has a permit before it is built.
        let mut permit = None;
        if cost::may_introspect(&query.document) {
            permit = Some(self.acquire_permit(caller).await?);
        }
        let (inner, who) = (Arc::clone(&self.0), caller.clone());
        // A client that disconnects does not end this.
        let prepared =
            run_blocking(move || Ok::<_, Answer>((inner.prepare_query(query, &who)?, permit)));
        let (prepared, mut permit) = prepared.await??;
        if prepared.reads && permit.is_none() {
            permit = Some(self.acquire_permit(caller).await?);
        }
        let (inner, who) = (Arc::clone(&self.0), caller.clone());
        run_blocking(move || {
            let _permit = permit;
            prepared.execute_query(&inner, &who)
        })
        .await
    }

    /// Waits for a permit to read, for the time limit of a query.
    async fn acquire_permit(&self, caller: &Caller) -> Result<Permit<String>, Answer> {
        let Inner { sources, limits, .. } = &*self.0;
        let acquire = sources.gateway.query_permits.acquire(caller.id());
        timeout(limits.time, acquire).await.map_err(|_| {
            let busy = Answer::refused(
                "too many queries are running, of all accounts or of this one; try again",
            );
            Answer { is_busy: true, ..busy }
        })
    }
}

/// Runs work on a thread that may block: [`blocking::run_blocking`] with answers.
async fn run_blocking<T: Send + 'static>(
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<T, Answer> {
    let done = blocking::run_blocking(move || Ok::<T, GatewayError>(work())).await;
    done.map_err(|_| Answer::refused("the query failed; the gateway's log has the cause"))
}

/// A document that is valid and within the limits.
struct PreparedQuery {
    built: Arc<BuiltSchema>,
    document: ExecutableDocument,
    operation: Option<String>,
    variables: Variables,
    introspected: Value,
    /// Whether it selects more than introspection.
    reads: bool,
}

impl PreparedQuery {
    fn execute_query(&self, inner: &Inner, caller: &Caller) -> Answer {
        let document = Document::new(&self.document, self.operation.as_deref(), &self.variables);
        let Some(document) = document else { return Answer::refused("there is no such operation") };
        let BuiltSchema { model, business_objects: all, .. } = &*self.built;
        let planner = Planner { model, document: &document };
        let execution = Execution::new(planner, all, &inner.sources, inner.limits, caller);
        let result = execution.answer_operation(&self.introspected);
        let (data, errors) = result.write_json();
        // Otherwise everything was read before the snapshot ended.
        if !errors.is_empty()
            && let Some(error) = execution.snapshot_error()
        {
            return Answer::from_error(error);
        }
        for error in &errors {
            tracing::debug!(why = error.message, "A field of a GraphQL query failed.");
        }
        match RawValue::from_string(data) {
            Ok(data) => Answer { data: Some(data), ..Answer::with_errors(errors) },
            Err(error) => {
                tracing::error!(%error, "The answer to a GraphQL query was not valid JSON.");
                Answer::refused("writing the answer failed; the gateway's log has the cause")
            }
        }
    }
}

impl Inner {
    /// Parses and validates a document, computes its cost, and answers introspection.
    fn prepare_query(
        self: &Arc<Self>,
        query: Query,
        caller: &Caller,
    ) -> Result<PreparedQuery, Answer> {
        cost::check_text(&query.document).map_err(Answer::refused)?;
        let text =
            decode_escapes(&query.document).map_err(|error| Answer::with_errors(vec![error]))?;
        let mut document =
            parse_query(&text).map_err(|error| Answer::with_errors(vec![error.into()]))?;
        check_unique_input_fields(&text).map_err(|error| Answer::with_errors(vec![error]))?;
        cost::check_document(&document, self.limits.depth).map_err(Answer::refused)?;
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
        let built = self.schema_for_caller(caller);
        let lease = built.lease_for(&document, &self.sources.memory).map_err(Answer::from_error)?;
        built.check_variables(&document).map_err(Answer::refused)?;
        let registry = lease.dynamic.registry();
        check_values(registry, &mut document).map_err(Answer::with_errors)?;
        let mut request = Request::new(query.document).only_introspection();
        let mut variables = Variables::default();
        // The library reports a missing operation.
        if let Some(operation) = find_operation(&document, query.operation.as_deref()) {
            variables = coerce_variables(registry, operation, &query.variables)
                .map_err(|error| Answer::with_errors(vec![error]))?;
            request = request.variables(introspection::adapt_variables(operation, &variables));
        }
        request.operation_name.clone_from(&query.operation);
        request.set_parsed_query(introspection::adapt_document(document.clone()));
        // The future never waits, because introspection does no I/O.
        let mut response = Handle::current().block_on(lease.dynamic.execute(request));
        drop(lease);
        if !response.errors.is_empty() {
            return Err(Answer::with_errors(response.errors));
        }
        let asked = Document::new(&document, query.operation.as_deref(), &variables);
        let asked = asked.ok_or_else(|| Answer::refused("there is no such operation"))?;
        let cost = Cost::of_document(&built.model, &asked).map_err(Answer::refused)?;
        self.check_cost(cost)?;
        introspection::complete_answer(&asked, &mut response.data);
        let reads = cost.complexity > 0;
        let introspected = response.data;
        let operation = query.operation;
        Ok(PreparedQuery { built, document, operation, variables, introspected, reads })
    }

    fn check_cost(&self, cost: Cost) -> Result<(), Answer> {
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
                    "the query is too expensive: it asks for {figure} {what}, and the limit is {limit} \
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
            return Err(Answer::with_errors(vec![error]));
        }
        Ok(())
    }

    /// Returns the current schema, limited to what the caller may see: for an API key of certain Business Objects, only
    /// these.
    fn schema_for_caller(self: &Arc<Self>, caller: &Caller) -> Arc<BuiltSchema> {
        let whole = self.current_schema();
        match caller.business_objects() {
            Some(own) => whole.limit_to_business_objects(own, self.limits.fields),
            None => whole,
        }
    }

    fn current_schema(self: &Arc<Self>) -> Arc<BuiltSchema> {
        let mut current = self.lock_current();
        current.used = Instant::now();
        // The version is read before the Business Objects. If one changes in between, the next request builds again.
        let version = self.sources.catalogue.version();
        if let Some(built) = current.built.as_ref().filter(|built| built.version == version) {
            return Arc::clone(built);
        }
        // Drop the old schema first, so that both are in memory only while a query still uses the old one.
        current.built = None;
        let all = self.sources.catalogue.list();
        let built = Arc::new(BuiltSchema::new(version, all, self.limits.fields, true));
        current.built = Some(Arc::clone(&built));
        if !current.is_watched
            && let Ok(runtime) = Handle::try_current()
        {
            current.is_watched = true;
            runtime.spawn(drop_unused_schema(Arc::downgrade(self)));
        }
        built
    }

    fn lock_current(&self) -> MutexGuard<'_, CurrentSchema> {
        self.current.lock()
    }
}

/// Drops the schema when it is unused for a while.
async fn drop_unused_schema(inner: Weak<Inner>) {
    loop {
        tokio::time::sleep(UNUSED_SCHEMA_LIFETIME).await;
        let Some(inner) = inner.upgrade() else { return };
        let mut current = inner.lock_current();
        if current.used.elapsed() >= UNUSED_SCHEMA_LIFETIME {
            current.built = None;
            current.is_watched = false;
            return;
        }
    }
}

impl Answer {
    /// Creates an answer for a query that was not executed.
    pub fn refused(why: impl Into<String>) -> Self {
        Self::with_errors(vec![ServerError::new(why, None)])
    }

    /// Creates the answer for a query that was not executed because building the schema failed.
    fn from_error(error: GatewayError) -> Self {
        let is_busy = matches!(error.class, ErrorClass::Unavailable(_));
        Self { is_busy, ..Self::refused(error.detail) }
    }

    fn with_errors(mut errors: Vec<ServerError>) -> Self {
        errors.truncate(out::MAX_ERRORS);
        Self { data: None, errors, would_change: false, is_busy: false }
    }
}

#[cfg(test)]
mod tests;
