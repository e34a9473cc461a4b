//! `/api/v1/ingestions/{id}/rejected`: the dead letters of an ingestion; `/api/v1/sources/{name}/rejected`: those of a
//! source.
use crate::shapes;
use bytes::Bytes;
use futures_util::stream;
use penstock_auth::Authorized;
use penstock_http::accept::read_languages;
use penstock_http::body::{self, BodyPermit, MediaType, check_media_type, find_charset};
use penstock_http::caller::caller;
use penstock_http::path::path_parameter;
use penstock_http::problem::Problem;
use penstock_http::query::Query;
use penstock_http::reply::{Reply, ReplyResult};
use penstock_http::service::trace;
use penstock_http::state::{State, gateway, run_blocking, state};
use penstock_model::ingest::OnError;
use penstock_service::dead_letters::{
    self, Correction, DeadLetterName, DeadLetterPage, LetterList,
};
use penstock_service::gateway::Gateway;
use salvo::http::header::CONTENT_TYPE;
use salvo::http::{ResBody, StatusCode};
use salvo::{Depot, Request};
use salvo_oapi::endpoint;
use std::io;

/// The bytes of memory for each byte of a text: the text, its line, and the growth of the line.
const BYTES_PER_TEXT_BYTE: u64 = 3;

/// Returns the dead letters of an ingestion: the objects that it rejected, in the order of the request, as NDJSON. An
/// API key with a write scope gets those that it sent.
#[endpoint(
    operation_id = "listRejected",
    tags("Ingestion"),
    parameters(("id" = String, Path, description = "The `ingestionId`.")),
    responses((status_code = 200, description = "One dead letter per line.", body = shapes::DeadLetter,
        content_type = "application/x-ndjson")),
)]
pub(super) async fn list_rejected(req: &mut Request, depot: &mut Depot) -> ReplyResult {
    Query::read(req, &[])?;
    let list = LetterList::Ingestion(path_parameter(req, "id").to_owned());
    stream_letters(depot, list).await
}

/// Returns the dead letters of a source, oldest first, as NDJSON.
#[endpoint(
    operation_id = "listSourceRejected",
    tags("Sources"),
    parameters(("name" = String, Path, description = "The name of the source.")),
    responses((status_code = 200, description = "One dead letter per line.", body = shapes::DeadLetter,
        content_type = "application/x-ndjson")),
)]
pub(super) async fn list_source_rejected(req: &mut Request, depot: &mut Depot) -> ReplyResult {
    Query::read(req, &[])?;
    stream_letters(depot, LetterList::Source(path_parameter(req, "name").to_owned())).await
}

async fn stream_letters(depot: &Depot, list: LetterList) -> ReplyResult {
    let (gateway, by) = (gateway(depot)?, caller(depot).clone());
    let state = state(depot);
    let first = read_page(&state, &gateway, &by, &list, None).await?;
    let pages = stream::try_unfold(NextPage::Read(first), move |next| {
        let (state, gateway) = (state.clone(), gateway.clone());
        let (by, list) = (by.clone(), list.clone());
        async move {
            let Page { lines, next, permit } = match next {
                NextPage::Read(page) => page,
                NextPage::After(None, _) => return Ok(None),
                NextPage::After(after, permit) => {
                    drop(permit);
                    let read = read_page(&state, &gateway, &by, &list, after).await;
                    read.map_err(|problem| io::Error::other(problem.detail().to_owned()))?
                }
            };
            Ok::<_, io::Error>(Some((lines, NextPage::After(next, permit))))
        }
    });
    Ok(Reply::stream("application/x-ndjson", ResBody::stream(pages)))
}

/// Lines of the list that are in memory together.
struct Page {
    lines: Bytes,
    /// The id to continue after; `None` at the end.
    next: Option<String>,
    permit: BodyPermit,
}

/// The page that the list sends next.
enum NextPage {
    Read(Page),
    /// That after this id; `None` at the end. The page before it holds its permit until the client has taken it.
    After(Option<String>, BodyPermit),
}

/// Reads a page of dead letters. The quota of data counts it before the texts are read.
async fn read_page(
    state: &State,
    gateway: &Gateway,
    by: &Authorized,
    list: &LetterList,
    after: Option<String>,
) -> Result<Page, Problem> {
    let listed = dead_letters::read_letter_page(gateway, by, list, after).await?;
    let DeadLetterPage { letters, text_bytes, next } = listed;
    let bytes = text_bytes.saturating_mul(BYTES_PER_TEXT_BYTE);
    // A single text must fit, whatever its size.
    let bytes = bytes.min(state.settings().limits.in_flight_bytes);
    let permit = state.body_quotas.data.try_acquire(bytes)?;
    let mut lines = Vec::new();
    for letter in dead_letters::read_texts(gateway, letters).await? {
        // A dead letter is plain data, which always has a JSON form.
        lines.extend(serde_json::to_vec(&shapes::DeadLetter::from(letter)).unwrap_or_default());
        lines.push(b'\n');
    }
    Ok(Page { lines: lines.into(), next, permit })
}

/// Ingests a dead letter again, in the mode of its ingestion and with the caller's rights.
///
/// The body is the corrected object, without `data` around it; for a record of CSV, it may be the corrected record without
/// a header (`text/csv` in UTF-8). Without a body the gateway uses the text as received. A
/// success removes the dead letter in the same commit, so a second retry is 404. If the object has errors again, the
/// dead letter stays, with the new errors.
#[endpoint(
    operation_id = "retryRejected",
    tags("Ingestion"),
    parameters(
        ("id" = String, Path, description = "The `ingestionId`."),
        ("letter" = String, Path, description = "The id of the dead letter."),
    ),
    request_body(content = serde_json::Value, content_type = "application/json", description = "The corrected object; optional."),
    responses((status_code = 200, description = "Ingested and synced to disk.", body = shapes::Ingestion)),
)]
pub(super) async fn retry_rejected(req: &mut Request, depot: &mut Depot) -> ReplyResult {
    let list = LetterList::Ingestion(path_parameter(req, "id").to_owned());
    retry_letter(req, depot, list).await
}

/// Ingests a dead letter of a source again, as `POST /api/v1/ingestions/{id}/rejected/{letter}/retry` does. Fields that
/// were taken from the topic are taken from it again, unless the body has them.
#[endpoint(
    operation_id = "retrySourceRejected",
    tags("Sources"),
    parameters(
        ("name" = String, Path, description = "The name of the source."),
        ("letter" = String, Path, description = "The id of the dead letter."),
    ),
    request_body(content = serde_json::Value, content_type = "application/json", description = "The corrected object; optional."),
    responses((status_code = 200, description = "Ingested and synced to disk.", body = shapes::Ingestion)),
)]
pub(super) async fn retry_source_rejected(req: &mut Request, depot: &mut Depot) -> ReplyResult {
    let list = LetterList::Source(path_parameter(req, "name").to_owned());
    retry_letter(req, depot, list).await
}

async fn retry_letter(req: &mut Request, depot: &mut Depot, list: LetterList) -> ReplyResult {
    Query::read(req, &[])?;
    let known = [MediaType::Json, MediaType::Csv];
    let has_media_type = req.headers().contains_key(CONTENT_TYPE);
    let mut media_type = None;
    if has_media_type {
        media_type = Some(check_media_type(req, &known)?);
        if let Some(charset) = find_charset(req) {
            let message = format!("the charset is {charset:?}; send a corrected record in UTF-8");
            return Err(Problem::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, message));
        }
    }
    let body = body::read_whole_body(req, depot).await?;
    let is_given = !body.bytes().trim_ascii().is_empty();
    if is_given && !has_media_type {
        check_media_type(req, &known)?;
    }
    let (state, gateway, name) = (state(depot), gateway(depot)?, letter_name(req, list));
    let (by, trace) = (caller(depot).clone(), trace(depot));
    let languages = read_languages(req.headers());
    state.unsent_responses.check_capacity(&by)?;
    let permit = if is_given {
        None
    } else {
        let bytes = dead_letters::measure_dead_letter(&gateway, &by, name.clone()).await?;
        Some(state.body_quotas.data.try_acquire(bytes)?)
    };
    run_blocking(move || {
        let corrected = is_given.then(|| match media_type {
            Some(MediaType::Csv) => Correction::Record(body.bytes()),
            _ => Correction::Json(body.bytes()),
        });
        let answer =
            dead_letters::retry_dead_letter(&gateway, &by, &name, corrected, languages, trace)?;
        drop(permit);
        Reply::json(&shapes::Ingestion::from_answer(answer, true, OnError::Abort))
    })
    .await
}

/// Deletes a dead letter.
#[endpoint(
    operation_id = "deleteRejected",
    tags("Ingestion"),
    parameters(
        ("id" = String, Path, description = "The `ingestionId`."),
        ("letter" = String, Path, description = "The id of the dead letter."),
    ),
    responses((status_code = 204, description = "Deleted.")),
)]
pub(super) async fn delete_rejected(req: &mut Request, depot: &mut Depot) -> ReplyResult {
    let list = LetterList::Ingestion(path_parameter(req, "id").to_owned());
    delete_letter(req, depot, list).await
}

/// Deletes a dead letter of a source.
#[endpoint(
    operation_id = "deleteSourceRejected",
    tags("Sources"),
    parameters(
        ("name" = String, Path, description = "The name of the source."),
        ("letter" = String, Path, description = "The id of the dead letter."),
    ),
    responses((status_code = 204, description = "Deleted.")),
)]
pub(super) async fn delete_source_rejected(req: &mut Request, depot: &mut Depot) -> ReplyResult {
    let list = LetterList::Source(path_parameter(req, "name").to_owned());
    delete_letter(req, depot, list).await
}

async fn delete_letter(req: &mut Request, depot: &mut Depot, list: LetterList) -> ReplyResult {
    Query::read(req, &[])?;
    let (gateway, by) = (gateway(depot)?, caller(depot).clone());
    dead_letters::delete_dead_letter(&gateway, &by, letter_name(req, list))
        .await
        .map_err(Problem::from)?;
    Ok(Reply::no_content())
}

fn letter_name(req: &Request, list: LetterList) -> DeadLetterName {
    DeadLetterName { list: Some(list), id: path_parameter(req, "letter").to_owned() }
}
