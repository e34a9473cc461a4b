//! `POST /api/v1/business-objects/{id}`: ingestion, as one JSON body or as a stream of lines.
use crate::business_objects::find_business_object;
use crate::ndjson;
use crate::shapes;
use penstock_auth::{Authorized, Caller, Credential};
use penstock_base::telemetry::trace::Trace;
use penstock_http::body::{self, MediaType, check_media_type};
use penstock_http::caller::caller;
use penstock_http::path::path_parameter;
use penstock_http::problem::Problem;
use penstock_http::query::Query;
use penstock_http::reply::{Reply, ReplyResult};
use penstock_http::service::trace;
use penstock_http::state::{State, gateway, run_blocking, state};
use penstock_model::ingest::{
    Answer, ApiKey, Body, Limits, Mode, Request as Ingestion, Warning, ingest as run,
};
use penstock_model::resource::Compiled;
use penstock_service::gateway::Gateway;
use salvo::oapi::endpoint;
use salvo::{Depot, Request};
use serde::Serialize;
use std::sync::Arc;

/// Everything about an ingestion except its body.
#[derive(Debug, Clone)]
pub(super) struct Job {
    pub(super) state: Arc<State>,
    pub(super) gateway: Gateway,
    /// The id of the Business Object.
    pub(super) business_object: String,
    /// Its name when the request arrived, for the log.
    business_object_name: String,
    pub(super) caller: Authorized,
    pub(super) mode: Mode,
    pub(super) idempotency_key: Option<String>,
    /// Whether the response reports the result of each object.
    pub(super) lists_objects: bool,
    pub(super) trace: Trace,
}

impl Job {
    /// Ingests this body, if the caller still may. Uses the Business Object as it is now, not as it was when the
    /// request began: a body may take minutes to arrive, and a stream any time. Blocking.
    pub(super) fn ingest_body(&self, body: Body<'_>) -> Result<Answer, Problem> {
        let admitted = self.check_admission();
        let business_object = admitted.inspect_err(|problem| self.log_refusal(problem))?;
        let limits = self.gateway.settings.limits;
        let limits = Limits {
            nesting: limits.nesting,
            objects: limits.objects,
            values: limits.values,
            idempotency_keys: limits.idempotency_keys,
            idempotency_bytes: limits.idempotency_bytes,
            history: limits.history,
        };
        let traceparent = self.trace.to_string();
        let request = Ingestion {
            business_object: &business_object,
            mode: self.mode,
            check: &self.caller,
            caller: self.caller.id(),
            api_key: find_api_key(&self.caller),
            traceparent: Some(&traceparent),
            idempotency_key: self.idempotency_key.as_deref(),
            lists_objects: self.lists_objects,
            watch: self.gateway.catalogue.watch(),
            events: Some(&self.gateway.events),
            body,
        };
        Ok(run(&self.gateway.store, &limits, &request)?)
    }

    /// Logs that the request was refused before an ingestion began. An ingestion logs its own refusals.
    pub(super) fn log_refusal(&self, problem: &Problem) {
        log_refusal(&self.business_object_name, self.mode.name(), self.caller.id(), problem);
    }

    /// Returns the current Business Object, if the caller may ingest into it now and there is capacity for it.
    fn check_admission(&self) -> Result<Arc<Compiled>, Problem> {
        self.caller.with_current_role()?;
        self.state.unsent_responses.check_capacity(&self.caller)?;
        let business_object = self.current_business_object()?;
        if !matches!(self.mode, Mode::Delete | Mode::Validate) {
            self.gateway.disk.check_reserve()?;
        }
        Ok(business_object)
    }

    fn current_business_object(&self) -> Result<Arc<Compiled>, Problem> {
        let found = self.gateway.catalogue.get(&self.business_object);
        found
            .filter(|found| found.object.id == self.business_object)
            .ok_or_else(|| Problem::not_found("the Business Object has been deleted meanwhile"))
    }
}

/// Ingests objects, all or nothing.
///
/// With `application/x-ndjson`, one object per line, the body is ingested in chunks of up to 1,000 objects or
/// 1 MiB. Each chunk is an ingestion of its own, all or nothing, and has one line in the response, which is
/// NDJSON too.
///
/// An error in the first chunk has its own status. After the first chunk, the status is 200. The line of a
/// failed chunk is the last line. It contains the problem (`status`, `detail`, `errors`) with its
/// `firstIndex` and `lastIndex`. Correct the error and continue at `firstIndex`. With an `Idempotency-Key`
/// the whole stream may be sent again: completed chunks get the same answer and are not ingested twice.
#[endpoint(
    operation_id = "ingest",
    tags("Ingestion"),
    parameters(
        ("id" = String, Path, description = "The Business Object's id or name."),
        ("mode" = Option<shapes::Mode>, Query, description = "How stored data is changed; `ADD` when absent."),
        ("objects" = Option<bool>, Query, description = "Whether the response reports the result of each object; true when absent, and false for NDJSON."),
        ("Idempotency-Key" = Option<String>, Header, description = "1 to 255 visible characters: the same key and body returns the first response again, for 24 h."),
    ),
    request_body(content = shapes::IngestionRequest, content_type = "application/json"),
    responses((status_code = 200, description = "Ingested and synced to disk.", body = shapes::Ingestion)),
)]
pub(super) async fn ingest_objects(req: &mut Request, depot: &mut Depot) -> ReplyResult {
    ingest_unprefixed(req, depot).await.map_err(|problem| problem.with_prefix("Ingestion failed: "))
}

/// Returns the API key of the caller, if it has one.
fn find_api_key(caller: &Caller) -> Option<ApiKey<'_>> {
    match &caller.credential {
        Credential::ApiKey { id, business_object } => {
            Some(ApiKey { id, is_bound: business_object.is_some() })
        }
        _ => None,
    }
}

fn log_refusal(business_object: &str, mode: &str, caller: &str, problem: &Problem) {
    tracing::warn!(
        business_object,
        mode,
        cause = problem.detail(),
        status = problem.status().as_u16(),
        caller,
        "An ingestion was refused."
    );
}

async fn ingest_unprefixed(req: &mut Request, depot: &mut Depot) -> ReplyResult {
    let (job, media_type) = prepare_job(req, depot).inspect_err(|problem| {
        let query = req.query::<String>("mode");
        let mode = query.as_deref().unwrap_or(Mode::default().name());
        log_refusal(path_parameter(req, "id"), mode, caller(depot).id(), problem);
    })?;
    match media_type {
        MediaType::NdJson => ndjson::ingest_stream(req.take_body(), job).await,
        MediaType::Json => {
            let body = body::read_whole_body(req, depot).await;
            let body = body.inspect_err(|problem| job.log_refusal(problem))?;
            let answer = run_blocking(move || {
                Ok((job.ingest_body(Body::Json(body.bytes()))?, job.lists_objects))
            })
            .await?;
            if answer.1 {
                return Reply::json(&answer.0);
            }
            Reply::json(&Summary::of(&answer.0))
        }
    }
}

/// Reads everything about the ingestion except its body.
fn prepare_job(req: &Request, depot: &Depot) -> Result<(Job, MediaType), Problem> {
    let query = Query::read(req, &["mode", "objects"])?;
    let mode = query.get("mode").map_or(Ok(Mode::default()), str::parse)?;
    let (state, gateway) = (state(depot), gateway(depot)?);
    let compiled = find_business_object(req, &gateway)?;
    let business_object = compiled.object.id.clone();
    let business_object_name = compiled.object.definition.name.clone();
    let media_type = check_media_type(req, &[MediaType::Json, MediaType::NdJson])?;
    let objects = match (query.get("objects"), media_type) {
        (None, MediaType::Json) => true,
        _ => query.read_flag("objects")?,
    };
    let idempotency_key = read_idempotency_key(req)?;
    let (caller, trace) = (caller(depot).clone(), trace(depot));
    let job = Job {
        state,
        gateway,
        business_object,
        business_object_name,
        caller,
        mode,
        idempotency_key,
        lists_objects: objects,
        trace,
    };
    Ok((job, media_type))
}

fn read_idempotency_key(req: &Request) -> Result<Option<String>, Problem> {
    let mut values = req.headers().get_all("idempotency-key").iter();
    let Some(value) = values.next() else { return Ok(None) };
    let bytes = value.as_bytes();
    let is_visible = (1..=255).contains(&bytes.len()) && bytes.iter().all(u8::is_ascii_graphic);
    match value.to_str() {
        Ok(key) if is_visible && values.next().is_none() => Ok(Some(key.to_owned())),
        _ => Err(Problem::malformed(
            "the header Idempotency-Key must be given once, with 1 to 255 visible ASCII characters",
        )),
    }
}

/// An answer without the result of each object.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Summary<'a> {
    ingestion_id: &'a str,
    mode: Mode,
    created: u64,
    updated: u64,
    unchanged: u64,
    deleted: u64,
    warnings: &'a [Warning],
}

impl<'a> Summary<'a> {
    fn of(answer: &'a Answer) -> Self {
        Self {
            ingestion_id: &answer.ingestion_id,
            mode: answer.mode,
            created: answer.created,
            updated: answer.updated,
            unchanged: answer.unchanged,
            deleted: answer.deleted,
            warnings: &answer.warnings,
        }
    }
}
