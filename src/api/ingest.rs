//! `POST /api/v1/business-objects/{id}`: ingestion, as one JSON body or as a stream of lines.
use crate::change_owners::read_change_owners;
use crate::shapes;
use crate::stream::{self, StreamForm};
use penstock_auth::Authorized;
use penstock_http::accept::read_languages;
use penstock_http::body::{self, MediaType, check_media_type, find_charset};
use penstock_http::caller::caller;
use penstock_http::etag::{read_if_match_tags, read_if_none_match_tags};
use penstock_http::path::path_parameter;
use penstock_http::problem::Problem;
use penstock_http::query::Query;
use penstock_http::reply::{Reply, ReplyResult};
use penstock_http::service::{origin, trace};
use penstock_http::state::{self, gateway, run_ingestion};
use penstock_model::changes::State;
use penstock_model::csv::{CsvFormat, CsvHeader};
use penstock_model::ingest::{Answer, BegunIngestion, Body, Mode, ObjectCondition, OnError};
use penstock_service::business_objects::find_business_object;
use penstock_service::gateway::Gateway;
use penstock_service::ingestions::{self, IngestionRequest, NewChange};
use salvo::http::StatusCode;
use salvo::http::header::LOCATION;
use salvo::{Depot, Request};
use salvo_oapi::endpoint;
use std::sync::Arc;

/// A requested ingestion, without its body.
#[derive(Debug, Clone)]
pub(super) struct Job {
    pub(super) state: Arc<state::State>,
    gateway: Gateway,
    by: Authorized,
    pub(super) request: IngestionRequest,
}

impl Job {
    /// Ingests this body, unless the client leaves too many responses unread. Blocking, except for the sync.
    pub(super) fn ingest_body(&self, body: Body<'_>) -> Result<BegunIngestion<Answer>, Problem> {
        let capacity = self.state.unsent_responses.check_capacity(&self.by);
        capacity.inspect_err(|problem| self.log_refusal(problem))?;
        Ok(ingestions::begin_ingestion(&self.gateway, &self.by, &self.request, body)?)
    }

    /// Checks that the columns of a stream of CSV are fields.
    pub(super) fn check_header(&self, header: &CsvHeader) -> Result<(), Problem> {
        Ok(ingestions::check_csv_header(&self.gateway, &self.by, &self.request, header)?)
    }

    /// Logs that the request was refused before an ingestion began. An ingestion logs its own refusals.
    pub(super) fn log_refusal(&self, problem: &Problem) {
        self.request.log_refusal(&self.by, problem.detail(), problem.status().as_u16());
    }
}

/// Ingests objects, all or nothing.
///
/// With `onError=skip`, the valid objects are stored. The response lists the others as `rejected`. Their texts are kept
/// as dead letters: see `/api/v1/ingestions/{id}/rejected`. An object that refers to a rejected one is rejected too.
///
/// Into a Business Object whose `review` is `required`, and with `review=true`, `draft=true` or change owners, the
/// graph stays as it is. The request is checked as any other, and becomes a change: see `/api/v1/changes`.
///
/// With `application/x-ndjson`, one object per line, the body is ingested in chunks of up to 1,000 objects or
/// 1 MiB. Each chunk is an ingestion of its own, all or nothing, and has one line in the response, which is
/// NDJSON too.
///
/// `text/csv` (RFC 4180) is ingested in chunks in the same way: a header of field names, then one record per object. The
/// name `position.latitude` is a field of the object in the field `position`. Cells get the types of the mapping, and an
/// empty cell is an absent field. `charset` in the media type names the charset; the default is UTF-8.
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
        ("onError" = Option<shapes::OnError>, Query, description = "What to do if an object has an error: store nothing (`abort`), or leave it out (`skip`); `abort` when absent."),
        ("objects" = Option<bool>, Query, description = "Whether the response reports the result of each object; true when absent, and false for NDJSON and CSV."),
        ("delimiter" = Option<String>, Query, description = "CSV: the ASCII character between cells, or `tab`; a comma when absent."),
        ("arrayDelimiter" = Option<String>, Query, description = "CSV: the character between the elements of an array in one cell, or `tab`; without it, a cell is one element."),
        ("decimalComma" = Option<bool>, Query, description = "CSV: whether numbers have a comma in place of the decimal point."),
        ("review" = Option<bool>, Query, description = "Store the request as a change, which an approver publishes."),
        ("draft" = Option<bool>, Query, description = "As `review`; the change is a draft until it is submitted."),
        ("changeOwners" = Option<Vec<String>>, Query, description = "As `review`; `user:<id or email>` and `group:<name>` see the change too. Repeat it as needed."),
        ("Change-Owners" = Option<String>, Header, description = "As `changeOwners`: a list of strings in quotes."),
        ("bypass" = Option<bool>, Query, description = "Change objects of other Business Objects that require a review too, and members that are too many to validate; only for Admins. With a review, the change does so when it is published."),
        ("If-Match" = Option<String>, Header, description = "Change the only object of the request only if its view has this `ETag`; not for NDJSON and CSV."),
        ("If-None-Match" = Option<String>, Header, description = "`*`: store the only object of the request only if there is none with its URI; not for NDJSON and CSV."),
        ("Accept-Language" = Option<String>, Header, description = "The language of the messages of shapes (`sh:message`)."),
        ("Idempotency-Key" = Option<String>, Header, description = "1 to 255 visible characters: the same key and body returns the first response again, for 24 h."),
    ),
    request_body(content = shapes::IngestionRequest, content_type = "application/json"),
    responses(
        (status_code = 200, description = "Ingested and synced to disk.", body = shapes::Ingestion),
        (status_code = 202, description = "Stored as a change and synced to disk; nothing of it is in the graph yet.", body = shapes::SubmittedChange,
            headers(("Location" = String, description = "The path of the change."))),
    ),
)]
pub(super) async fn ingest_objects(req: &mut Request, depot: &mut Depot) -> ReplyResult {
    ingest_unprefixed(req, depot).await.map_err(|problem| problem.with_prefix("Ingestion failed: "))
}

async fn ingest_unprefixed(req: &mut Request, depot: &mut Depot) -> ReplyResult {
    let (job, form) = prepare_job(req, depot).inspect_err(|problem| {
        let query = req.query::<String>("mode");
        let mode = query.as_deref().unwrap_or(Mode::default().name());
        let (business_object, status) = (path_parameter(req, "id"), problem.status().as_u16());
        ingestions::log_refusal(business_object, mode, caller(depot), problem.detail(), status);
    })?;
    match form {
        BodyForm::Stream(form) => stream::ingest_stream(req.take_body(), job, form).await,
        BodyForm::Json => {
            let body = body::read_whole_body(req, depot).await;
            let body = body.inspect_err(|problem| job.log_refusal(problem))?;
            let prefix = origin(depot).prefix.clone();
            run_ingestion(move || {
                let begun = job.ingest_body(Body::Json(body.bytes()))?;
                // The answer may be as large as the body, so both are not kept at once.
                let permit = body.into_permit();
                let IngestionRequest { lists_objects, on_error, .. } = job.request;
                let reply = begun.map(|answer| match answer.change {
                    Some(state) => change_reply(answer, state, lists_objects, &prefix),
                    None => Reply::json(&shapes::Ingestion::from_answer(
                        answer,
                        lists_objects,
                        on_error,
                    )),
                });
                Ok(async {
                    let reply = reply.synced().await;
                    drop(permit);
                    reply?
                })
            })
            .await
        }
    }
}

/// Responds with the change that the ingestion became.
fn change_reply(answer: Answer, state: State, lists_objects: bool, prefix: &str) -> ReplyResult {
    let location = format!("{prefix}/api/v1/changes/{}", answer.ingestion_id);
    let change = shapes::SubmittedChange::from_answer(answer, state, lists_objects);
    let reply = Reply::json(&change)?.with_status(StatusCode::ACCEPTED);
    Ok(reply.with_header(LOCATION, &location))
}

/// The form of the body.
enum BodyForm {
    Json,
    Stream(StreamForm),
}

/// The query parameters of CSV.
const CSV_PARAMETERS: [&str; 3] = ["delimiter", "arrayDelimiter", "decimalComma"];

/// Reads everything about the ingestion except its body.
fn prepare_job(req: &Request, depot: &Depot) -> Result<(Job, BodyForm), Problem> {
    let known = ["mode", "objects", "onError", "review", "draft", "bypass"];
    let known = [known.as_slice(), &CSV_PARAMETERS].concat();
    let (query, owners) = Query::read_with_list(req, &known, "changeOwners")?;
    let mode = query.get("mode").map_or(Ok(Mode::default()), str::parse)?;
    let on_error = query.get("onError").map_or(Ok(OnError::default()), str::parse)?;
    let (state, gateway) = (state::state(depot), gateway(depot)?);
    let compiled = find_business_object(&gateway, path_parameter(req, "id"))?;
    let media_type = check_media_type(req, &[MediaType::Json, MediaType::NdJson, MediaType::Csv])?;
    let form = read_form(req, &query, media_type)?;
    let lists_objects = match (query.get("objects"), media_type) {
        (None, MediaType::Json) => true,
        _ => query.read_flag("objects")?,
    };
    let request = IngestionRequest {
        business_object: compiled.object.id.clone(),
        business_object_name: compiled.object.definition.name.clone(),
        mode,
        on_error,
        submission: read_submission(req, &query, &owners)?,
        bypass: query.read_flag("bypass")?,
        idempotency_key: read_idempotency_key(req)?,
        condition: read_condition(req, media_type, on_error)?,
        languages: read_languages(req.headers()),
        lists_objects,
        trace: trace(depot),
    };
    Ok((Job { state, gateway, by: caller(depot).clone(), request }, form))
}

/// Returns the form of the body. The parameters of CSV are errors with anything else.
fn read_form(req: &Request, query: &Query, media_type: MediaType) -> Result<BodyForm, Problem> {
    if media_type == MediaType::Csv {
        let (delimiter, array_delimiter) = (query.get("delimiter"), query.get("arrayDelimiter"));
        let format = CsvFormat::new(delimiter, array_delimiter, query.read_flag("decimalComma")?)?;
        return Ok(BodyForm::Stream(StreamForm::Csv { format, charset: find_charset(req) }));
    }
    if let Some(name) = CSV_PARAMETERS.into_iter().find(|name| query.get(name).is_some()) {
        return Err(Problem::malformed(format!(
            "the query parameter {name} is for CSV; send it with Content-Type: text/csv"
        )));
    }
    Ok(match media_type {
        MediaType::NdJson => BodyForm::Stream(StreamForm::Lines),
        MediaType::Json | MediaType::Csv => BodyForm::Json,
    })
}

/// Returns what the client says about its change; `None` if it does not ask for a review.
fn read_submission(
    req: &Request,
    query: &Query,
    owners: &[String],
) -> Result<Option<NewChange>, Problem> {
    let owners = read_change_owners(req, owners)?;
    let is_draft = query.read_flag("draft")?;
    let is_asked = query.read_flag("review")? || is_draft || !owners.is_empty();
    Ok(is_asked.then_some(NewChange { owners, is_draft }))
}

/// Returns the state that the only object of the request must have.
fn read_condition(
    req: &Request,
    media_type: MediaType,
    on_error: OnError,
) -> Result<Option<ObjectCondition>, Problem> {
    let (header, condition) = match (read_if_match_tags(req)?, read_if_none_match_tags(req)?) {
        (None, None) => return Ok(None),
        (Some(tags), None) if tags.is_empty() => ("If-Match", ObjectCondition::Exists),
        (Some(tags), None) => ("If-Match", ObjectCondition::HasTag(tags)),
        (None, Some(tags)) if tags.is_empty() => ("If-None-Match", ObjectCondition::Missing),
        (None, Some(tags)) => ("If-None-Match", ObjectCondition::LacksTag(tags)),
        (Some(_), Some(_)) => {
            return Err(Problem::malformed("send either If-Match or If-None-Match, not both"));
        }
    };
    if media_type != MediaType::Json {
        return Err(Problem::malformed(format!(
            "{header} is the state of one object; send it as application/json"
        )));
    }
    if on_error == OnError::Skip {
        return Err(Problem::malformed(format!(
            "{header} cannot be combined with onError=skip: a later retry would not check it"
        )));
    }
    Ok(Some(condition))
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
