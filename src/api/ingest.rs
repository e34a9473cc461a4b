//! `POST /api/v1/business-objects/{id}`: ingestion, as one JSON body or as a stream of lines.
pub(crate) mod job;

use crate::change_owners::read_change_owners;
use crate::stream::{self, StreamForm};
use job::Job;
use penstock_base::error::{ErrorClass, GatewayError};
use penstock_http::accept::read_languages;
use penstock_http::access::MinimumRole::Contributor;
use penstock_http::body::{self, MediaType, check_media_type, find_charset};
use penstock_http::call::Call;
use penstock_http::etag::PutConditions;
use penstock_http::operation::{Operation, post};
use penstock_http::origin::origin;
use penstock_http::problem::Problem;
use penstock_http::reply::{Reply, ReplyResult};
use penstock_http::state::run_ingestion;
use penstock_model::csv::CsvFormat;
use penstock_model::ingest::{Answer, Body, BodyForm, Mode, ObjectCondition, OnError};
use penstock_resources::change::{ChangeState, SubmittedChange};
use penstock_resources::ingestion::Ingestion;
use penstock_resources::object;
use penstock_service::business_objects::find_business_object;
use penstock_service::ingestions::{self, IngestionRequest, NewChange};
use salvo::Request;
use salvo::http::StatusCode;
use salvo::http::header::LOCATION;

/// Returns the operations.
pub(super) fn operations() -> Vec<Operation> {
    vec![
        post("/api/v1/business-objects/{id}", Contributor, ingest_objects)
            .describe(
                "ingest",
                "Ingestion",
                "Ingests objects, all or nothing.\n\n\
                 With `onError=skip`, the valid objects are stored. The response lists the others as `rejected`. Their \
                 texts are kept as dead letters: see `/api/v1/ingestions/{id}/rejected`. An object that refers to a \
                 rejected one is rejected too.\n\n\
                 With `form=document` the body is the document of a system as it is, or an array of them. `items` in the \
                 mapping says where the objects are in it. Errors and warnings point into the document.\n\n\
                 Into a Business Object whose `review` is `required`, and with `review=true`, `draft=true` or change \
                 owners, the graph stays as it is. The request is checked as any other, and becomes a change: see \
                 `/api/v1/changes`.\n\n\
                 With `application/x-ndjson`, one object per line, the body is ingested in chunks of up to 1,000 \
                 objects or 1 MiB. Each chunk is an ingestion of its own, all or nothing, and has one line in the \
                 response, which is NDJSON too.\n\n\
                 `text/csv` (RFC 4180) is ingested in chunks in the same way: a header of field names, then one record \
                 per object. The name `position.latitude` is a field of the object in the field `position`. Cells get \
                 the types of the mapping, and an empty cell is an absent field. `charset` in the media type names the \
                 charset; the default is UTF-8.\n\n\
                 An error in the first chunk has its own status. After the first chunk, the status is 200. The line of \
                 a failed chunk is the last line. It contains the problem (`status`, `detail`, `errors`) with its \
                 `firstIndex` and `lastIndex`. Correct the error and continue at `firstIndex`. With an \
                 `Idempotency-Key` the whole stream may be sent again: completed chunks get the same answer and are \
                 not ingested twice.",
            )
            .parameter("id", "The Business Object's id or name.")
            .header("Change-Owners", "As `changeOwners`: a list of strings in quotes.")
            .parameter(
                "If-Match",
                "Change the only object of the request only if its view has this `ETag`; not for NDJSON and CSV.",
            )
            .parameter(
                "If-None-Match",
                "`*`: store the only object of the request only if there is none with its URI; not for NDJSON and CSV.",
            )
            .header("Accept-Language", "The language of the messages of shapes (`sh:message`).")
            .header(
                "Idempotency-Key",
                "1 to 255 visible characters: the same key and body returns the first response again, for 24 h.",
            )
            .body::<object::IngestionRequest>()
            // OpenAPI 3.1 has no schema for the items of a stream, so only the description explains a line.
            .body_as::<String>("application/x-ndjson")
            .body_as::<String>("text/csv")
            .answer::<Ingestion>(200, "Ingested and synced to disk.")
            .answer_as::<String>("application/x-ndjson")
            .answer::<SubmittedChange>(
                202,
                "Stored as a change and synced to disk; nothing of it is in the graph yet.",
            )
            .answer_header("Location", "The path of the change.")
            .problems(&[400, 404, 408, 409, 412, 413, 415, 422, 503, 507]),
    ]
}

penstock_http::parameters! {
    /// How an ingestion is done.
    struct IngestQuery {
        "mode" => mode: Option<Mode>, "How stored data is changed; `ADD` when absent.";
        "objects" => objects: Option<bool>, "Whether the response reports the result of each object; true when absent, and false for NDJSON and CSV.";
        "form" => form: Option<BodyForm>, "What the body is: `{\"data\": [...]}` (`data`), or documents of a system in which the mapping finds the objects (`document`); `data` when absent. With NDJSON, `document` is a document in each line; not for CSV.";
        "onError" => on_error: Option<OnError>, "What to do if an object has an error: store nothing (`abort`), or leave it out (`skip`); `abort` when absent.";
        "review" => review: bool, "Store the request as a change, which an approver publishes.";
        "draft" => draft: bool, "As `review`; the change is a draft until it is submitted.";
        "bypass" => bypass: bool, "Change objects of other Business Objects that require a review too, and members that are too many to validate; only for Admins. With a review, the change does so when it is published.";
        "delimiter" => delimiter: Option<String>, "CSV: the ASCII character between cells, or `tab`; a comma when absent.";
        "arrayDelimiter" => array_delimiter: Option<String>, "CSV: the character between the elements of an array in one cell, or `tab`; without it, a cell is one element.";
        "arrayEscape" => array_escape: Option<bool>, "CSV: whether `\\` stands before an array delimiter that is part of an element, and before a `\\`.";
        "decimalComma" => decimal_comma: Option<bool>, "CSV: whether numbers have a comma in place of the decimal point.";
        "changeOwners" => change_owners: Vec<String>, "As `review`; `user:<id or email>` and `group:<name>` see the change too. Repeat it as needed.";
    }
}

/// The handler gets an error of the query too, because it logs each refusal.
async fn ingest_objects(
    call: Call<'_>,
    query: Result<(IngestQuery, PutConditions), Problem>,
) -> ReplyResult {
    let reply = ingest_unprefixed(call, query).await;
    reply.map_err(|problem| problem.with_prefix("Ingestion failed: "))
}

async fn ingest_unprefixed(
    call: Call<'_>,
    query: Result<(IngestQuery, PutConditions), Problem>,
) -> ReplyResult {
    let prepared = query.and_then(|(query, conditions)| prepare_job(&call, &query, conditions));
    let (job, kind) = prepared.inspect_err(|problem| {
        let given = call.req.query::<String>("mode");
        let mode = given.as_deref().unwrap_or(Mode::default().name());
        let status = problem.status().as_u16();
        ingestions::log_refusal(call.path("id"), mode, call.caller(), problem.detail(), status);
    })?;
    match kind {
        BodyKind::Stream(form) => stream::ingest_stream(call.req.take_body(), job, form).await,
        BodyKind::Json => {
            let body = body::read_whole_body(call.req, call.depot).await;
            let body = body.inspect_err(|problem| job.log_refusal(problem))?;
            let prefix = origin(call.depot).prefix.clone();
            run_ingestion(move || {
                let begun = job.ingest_body(Body::Json(body.bytes()))?;
                // The answer may be as large as the body, so both are not kept at once.
                let permit = body.into_permit();
                let IngestionRequest { lists_objects, on_error, .. } = job.request;
                let reply = begun.map(|answer| match answer.change {
                    Some(state) => change_reply(answer, state, lists_objects, &prefix),
                    None => Reply::json(&answer.into_ingestion(lists_objects, on_error)),
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
fn change_reply(
    answer: Answer,
    state: ChangeState,
    lists_objects: bool,
    prefix: &str,
) -> ReplyResult {
    let location = format!("{prefix}/api/v1/changes/{}", answer.ingestion_id);
    let change = answer.into_submitted_change(state, lists_objects);
    let reply = Reply::json(&change)?.with_status(StatusCode::ACCEPTED);
    Ok(reply.with_header(LOCATION, &location))
}

/// How the body is read.
enum BodyKind {
    Json,
    Stream(StreamForm),
}

/// Reads everything about the ingestion except its body.
fn prepare_job(
    call: &Call<'_>,
    query: &IngestQuery,
    conditions: PutConditions,
) -> Result<(Job, BodyKind), Problem> {
    let (gateway, req) = (call.gateway()?, &*call.req);
    let compiled = find_business_object(&gateway, call.path("id"))?;
    let media_type = check_media_type(req, &[MediaType::Json, MediaType::NdJson, MediaType::Csv])?;
    let kind = read_body_kind(req, query, media_type)?;
    let submission = read_submission(req, query)?;
    let on_error = query.on_error.unwrap_or_default();
    let mode = query.mode.unwrap_or_default();
    let request = IngestionRequest {
        form: query.form.unwrap_or_default(),
        on_error,
        submission,
        bypass: query.bypass,
        idempotency_key: read_idempotency_key(req)?,
        condition: read_condition(conditions, media_type, on_error)?,
        languages: read_languages(req.headers()),
        lists_objects: query.objects.unwrap_or(media_type == MediaType::Json),
        ..IngestionRequest::new(&compiled.object, mode, call.trace())
    };
    Ok((Job { state: call.state(), gateway, by: call.caller().clone(), request }, kind))
}

/// Returns how the body is read. The parameters of CSV are errors with anything else.
fn read_body_kind(
    req: &Request,
    query: &IngestQuery,
    media_type: MediaType,
) -> Result<BodyKind, Problem> {
    let (delimiter, array_delimiter) =
        (query.delimiter.as_deref(), query.array_delimiter.as_deref());
    if media_type == MediaType::Csv {
        if query.form == Some(BodyForm::Document) {
            let message = "form=document is for documents in JSON; send them as application/json or \
                           application/x-ndjson";
            return Err(GatewayError::new(ErrorClass::UnsupportedMediaType, message).into());
        }
        let decimal_comma = query.decimal_comma.unwrap_or_default();
        let format = CsvFormat::new(delimiter, array_delimiter, decimal_comma)?;
        let has_escape = query.array_escape.unwrap_or_default();
        let format = if has_escape { format.with_array_escape()? } else { format };
        return Ok(BodyKind::Stream(StreamForm::Csv { format, charset: find_charset(req) }));
    }
    let csv_parameters = [
        ("delimiter", delimiter.is_some()),
        ("arrayDelimiter", array_delimiter.is_some()),
        ("arrayEscape", query.array_escape.is_some()),
        ("decimalComma", query.decimal_comma.is_some()),
    ];
    if let Some((name, _)) = csv_parameters.into_iter().find(|(_, is_given)| *is_given) {
        return Err(Problem::malformed(format!(
            "the query parameter {name} is for CSV; send it with Content-Type: text/csv"
        )));
    }
    Ok(match media_type {
        MediaType::NdJson => BodyKind::Stream(StreamForm::Lines),
        MediaType::Json | MediaType::Csv => BodyKind::Json,
    })
}

/// Returns what the client says about its change; `None` if it does not ask for a review.
fn read_submission(req: &Request, query: &IngestQuery) -> Result<Option<NewChange>, Problem> {
    let owners = read_change_owners(req, &query.change_owners)?;
    let is_draft = query.draft;
    let is_asked = query.review || is_draft || !owners.is_empty();
    Ok(is_asked.then_some(NewChange { owners, is_draft }))
}

/// Returns the state that the only object of the request must have.
fn read_condition(
    conditions: PutConditions,
    media_type: MediaType,
    on_error: OnError,
) -> Result<Option<ObjectCondition>, Problem> {
    let (header, condition) = match (conditions.if_match, conditions.if_none_match) {
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
