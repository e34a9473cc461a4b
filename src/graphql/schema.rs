//! The schema of the moment, and how a document is executed.
use super::cost::{self, Cost};
use super::document::Document;
use super::execute::Execution;
use super::model::Model;
use super::{system, types};
use crate::auth::{Caller, Credential};
use crate::business_object::catalogue::Catalogue;
use crate::business_object::resource::Compiled;
use crate::config::GraphqlLimits;
use crate::export::Exporter;
use crate::fault::{Fault, Kind};
use async_graphql::parser::parse_query;
use async_graphql::parser::types::{BaseType, ExecutableDocument, OperationType, Type};
use async_graphql::{Name, Request, SDLExportOptions, ServerError, Value, Variables, dynamic};
use penstock_store::Store;
use serde::Serialize;
use serde_json::value::RawValue;
use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};
use tokio::runtime::Handle;
use tokio::sync::Semaphore;

/// Operations that read what is stored at once; others wait for their turn.
const AT_ONCE: usize = 4;

/// Schemas of keys that are for one Business Object alone that are kept.
const OWN: usize = 8;

/// What GraphQL reads.
#[derive(Debug, Clone)]
pub struct Sources {
    /// The store.
    pub store: Store,
    /// The Business Objects.
    pub catalogue: Catalogue,
    /// The exporter.
    pub exporter: Exporter,
}

/// GraphQL over what the gateway holds. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Schema(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    sources: Sources,
    limits: GraphqlLimits,
    /// Made when it is first asked for, and again when a definition has changed since.
    current: Mutex<Option<Arc<Built>>>,
    turns: Arc<Semaphore>,
}

/// A schema. Whoever began with one goes on with it.
struct Built {
    /// That of the catalogue when it was made.
    version: u64,
    all: Vec<Arc<Compiled>>,
    model: Model,
    dynamic: dynamic::Schema,
    /// Those of keys that are for one Business Object, the newest first, by its id.
    own: Mutex<VecDeque<(String, Arc<Built>)>>,
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
    /// Over these sources.
    pub fn new(sources: Sources, limits: GraphqlLimits) -> Self {
        let turns = Arc::new(Semaphore::new(AT_ONCE));
        Self(Arc::new(Inner { sources, limits, current: Mutex::default(), turns }))
    }

    /// The schema that somebody sees, in the language that GraphQL has for it. Blocks.
    ///
    /// # Errors
    /// `Kind::Internal` when the types do not fit together.
    pub fn sdl(&self, caller: &Caller) -> Result<String, Fault> {
        let options = SDLExportOptions::new().include_specified_by();
        Ok(self.0.seen_by(caller)?.dynamic.sdl_with_options(options))
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
        let turn = Arc::clone(&self.0.turns).acquire_owned();
        let turn = if prepared.reads {
            match tokio::time::timeout(self.0.limits.time, turn).await {
                Ok(turn) => turn.ok(),
                Err(_) => {
                    let busy = Answer::refused("too many queries are under way; try again");
                    return Answer { is_busy: true, ..busy };
                }
            }
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
        let execution =
            Execution::new(model, all, &document, &inner.sources, inner.limits, caller);
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
    fn prepare(&self, query: Query, caller: &Caller) -> Result<Prepared, Answer> {
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
        let built = self.seen_by(caller).map_err(|fault| Answer::refused(fault.to_string()))?;
        built.check_variables(&document).map_err(Answer::refused)?;
        let variables = variables(query.variables);
        let mut request =
            Request::new(query.document).variables(variables.clone()).only_introspection();
        request.operation_name.clone_from(&query.operation);
        request.set_parsed_query(document.clone());
        // Nothing in it waits for anything.
        let response = Handle::current().block_on(built.dynamic.execute(request));
        if !response.errors.is_empty() {
            return Err(Answer::with(response.errors));
        }
        let asked = Document::new(&document, query.operation.as_deref(), &variables);
        let asked = asked.ok_or_else(|| Answer::refused("there is no such operation"))?;
        let cost = Cost::of(&built.model, &asked).map_err(Answer::refused)?;
        self.check(cost)?;
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
    fn seen_by(&self, caller: &Caller) -> Result<Arc<Built>, Fault> {
        let whole = self.whole()?;
        let Credential::ApiKey { business_object: Some(id), .. } = &caller.credential else {
            return Ok(whole);
        };
        let mut own = whole.own.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, built)) = own.iter().find(|(of, _)| of == id) {
            return Ok(Arc::clone(built));
        }
        let all = whole.all.iter().filter(|one| one.object.id == *id).cloned().collect();
        let built = Arc::new(Built::new(whole.version, all, self.limits.fields, false)?);
        own.push_front((id.clone(), Arc::clone(&built)));
        own.truncate(OWN);
        Ok(built)
    }

    fn whole(&self) -> Result<Arc<Built>, Fault> {
        let mut current = self.current.lock().unwrap_or_else(PoisonError::into_inner);
        // Read before the entries, so that a change in between is met by the next request.
        let version = self.sources.catalogue.version();
        if let Some(built) = current.as_ref().filter(|built| built.version == version) {
            return Ok(Arc::clone(built));
        }
        let all = self.sources.catalogue.list();
        let built = Arc::new(Built::new(version, all, self.limits.fields, true)?);
        *current = Some(Arc::clone(&built));
        Ok(built)
    }
}

impl Built {
    fn new(
        version: u64,
        all: Vec<Arc<Compiled>>,
        fields: usize,
        whole: bool,
    ) -> Result<Self, Fault> {
        let model = Model::new(&all, fields, whole);
        for (id, why) in &model.left_out {
            tracing::warn!(id, why, "GraphQL got no type for a Business Object.");
        }
        let (model, dynamic) = match types::schema(&model) {
            Ok(dynamic) => (model, dynamic),
            Err(error) => fitting(&all, fields, whole, &error)?,
        };
        Ok(Self { version, all, model, dynamic, own: Mutex::default() })
    }

    /// The library takes it for granted that the types of variables are there.
    fn check_variables(&self, document: &ExecutableDocument) -> Result<(), String> {
        for (_, operation) in document.operations.iter() {
            for definition in &operation.node.variable_definitions {
                let named = named(&definition.node.var_type.node);
                if !system::is_input(named) && !self.model.is_input(named) {
                    let name = &definition.node.name.node;
                    return Err(format!(
                        "the variable ${name} has the type {named}, and there is no such type of values"
                    ));
                }
            }
        }
        Ok(())
    }
}

/// What no schema can be made of alone is left out of that of all.
fn fitting(
    all: &[Arc<Compiled>],
    fields: usize,
    whole: bool,
    error: &dynamic::SchemaError,
) -> Result<(Model, dynamic::Schema), Fault> {
    tracing::error!(%error, "The GraphQL schema did not fit together; what does is served.");
    let alone = |one: &Arc<Compiled>| {
        types::schema(&Model::new(std::slice::from_ref(one), fields, whole)).map(|_| ())
    };
    let mut left_out = Vec::new();
    let fit = |one: &&Arc<Compiled>| match alone(one) {
        Ok(()) => true,
        Err(error) => {
            left_out.push((one.object.id.clone(), error.to_string()));
            false
        }
    };
    let some: Vec<_> = all.iter().filter(fit).cloned().collect();
    for some in [some.as_slice(), &[]] {
        let mut model = Model::new(some, fields, whole);
        model.left_out.extend(left_out.iter().cloned());
        if let Ok(dynamic) = types::schema(&model) {
            return Ok((model, dynamic));
        }
    }
    Err(Fault::new(Kind::Internal, format!("the GraphQL schema: {error}")))
}

fn named(of: &Type) -> &str {
    match &of.base {
        BaseType::Named(name) => name,
        BaseType::List(inner) => named(inner),
    }
}

impl std::fmt::Debug for Built {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Built").field("version", &self.version).finish_non_exhaustive()
    }
}

impl Answer {
    /// Nothing was executed, for this reason.
    pub fn refused(why: impl Into<String>) -> Self {
        Self::with(vec![ServerError::new(why, None)])
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
