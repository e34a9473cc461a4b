//! `/api/v1/ingestions/{id}/rejected`: the dead letters of an ingestion; `/api/v1/sources/{name}/rejected`: those of a
//! source.
use bytes::Bytes;
use futures_util::stream;
use penstock_auth::Authorized;
use penstock_http::accept::read_languages;
use penstock_http::access::MinimumRole::Contributor;
use penstock_http::body::{self, BodyPermit, MediaType, check_media_type, find_charset};
use penstock_http::call::Call;
use penstock_http::operation::{Operation, delete, get, post};
use penstock_http::problem::Problem;
use penstock_http::reply::{Reply, ReplyResult};
use penstock_http::state::State;
use penstock_model::ingest::OnError;
use penstock_resources::dead_letter::DeadLetter;
use penstock_resources::ingestion::Ingestion;
use penstock_service::dead_letters::{
    self, Correction, DeadLetterName, DeadLetterPage, LetterList, LetterRetry,
};
use penstock_service::gateway::Gateway;
use salvo::http::header::CONTENT_TYPE;
use salvo::http::{ResBody, StatusCode};
use std::io;

/// The bytes of memory for each byte of a text: the text, its line, and the growth of the line.
const BYTES_PER_TEXT_BYTE: u64 = 3;

/// Returns the operations.
pub(super) fn operations() -> Vec<Operation> {
    vec![
        list_operation("/api/v1/ingestions/{id}/rejected")
            .describe(
                "listRejected",
                "Ingestion",
                "Returns the dead letters of an ingestion: the objects that it rejected, in the order of the request, \
                 as NDJSON. An API key with a write scope gets those that it sent.",
            )
            .parameter("id", "The `ingestionId`."),
        retry_operation("/api/v1/ingestions/{id}/rejected/{letter}/retry")
            .describe(
                "retryRejected",
                "Ingestion",
                "Ingests a dead letter again, in the mode of its ingestion and with the caller's rights.\n\nThe body \
                 is the corrected object, without `data` around it; for a record of CSV, it may be the corrected \
                 record without a header (`text/csv` in UTF-8). Without a body the gateway uses the text as received. \
                 A success removes the dead letter in the same commit, so a second retry is 404. If the object has \
                 errors again, the dead letter stays, with the new errors.",
            )
            .parameter("id", "The `ingestionId`.")
            // The dead letters of a source are never CSV.
            .body_as::<String>("text/csv"),
        delete_operation("/api/v1/ingestions/{id}/rejected/{letter}")
            .describe("deleteRejected", "Ingestion", "Deletes a dead letter.")
            .parameter("id", "The `ingestionId`."),
        list_operation("/api/v1/sources/{name}/rejected")
            .describe(
                "listSourceRejected",
                "Sources",
                "Returns the dead letters of a source, oldest first, as NDJSON.",
            )
            .parameter("name", "The name of the source."),
        retry_operation("/api/v1/sources/{name}/rejected/{letter}/retry")
            .describe(
                "retrySourceRejected",
                "Sources",
                "Ingests a dead letter of a source again, as `POST /api/v1/ingestions/{id}/rejected/{letter}/retry` \
                 does. Fields that were taken from the topic are taken from it again, unless the body has them.",
            )
            .parameter("name", "The name of the source."),
        delete_operation("/api/v1/sources/{name}/rejected/{letter}")
            .describe("deleteSourceRejected", "Sources", "Deletes a dead letter of a source.")
            .parameter("name", "The name of the source."),
    ]
}

fn list_operation(path: &'static str) -> Operation {
    get(path, Contributor, list_letters)
        .empty_answer(200, "One dead letter per line.")
        .answer_as::<DeadLetter>("application/x-ndjson")
        .problems(&[400, 404])
}

fn retry_operation(path: &'static str) -> Operation {
    post(path, Contributor, retry_letter)
        .parameter("letter", "The id of the dead letter.")
        .body::<serde_json::Value>()
        .describe_body("The corrected object; optional.", false)
        .answer::<Ingestion>(200, "Ingested and synced to disk.")
        .problems(&[400, 404, 408, 409, 413, 415, 422, 503, 507])
}

fn delete_operation(path: &'static str) -> Operation {
    delete(path, Contributor, delete_letter)
        .parameter("letter", "The id of the dead letter.")
        .empty_answer(204, "Deleted.")
        .problems(&[400, 404, 507])
}

async fn list_letters(call: Call<'_>) -> ReplyResult {
    let (gateway, by, list) = (call.gateway()?, call.caller().clone(), read_list(&call));
    let state = call.state();
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
        lines.extend(serde_json::to_vec(&letter).unwrap_or_default());
        lines.push(b'\n');
    }
    Ok(Page { lines: lines.into(), next, permit })
}

async fn retry_letter(call: Call<'_>) -> ReplyResult {
    let known = [MediaType::Json, MediaType::Csv];
    let has_media_type = call.req.headers().contains_key(CONTENT_TYPE);
    let mut media_type = None;
    if has_media_type {
        media_type = Some(check_media_type(call.req, &known)?);
        if let Some(charset) = find_charset(call.req) {
            let message = format!("the charset is {charset:?}; send a corrected record in UTF-8");
            return Err(Problem::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, message));
        }
    }
    let body = body::read_whole_body(call.req, call.depot).await?;
    let is_given = !body.bytes().trim_ascii().is_empty();
    if is_given && !has_media_type {
        check_media_type(call.req, &known)?;
    }
    let (state, gateway, name) = (call.state(), call.gateway()?, read_name(&call));
    let (by, trace) = (call.caller().clone(), call.trace());
    let languages = read_languages(call.req.headers());
    state.unsent_responses.check_capacity(&by)?;
    let permit = if is_given {
        None
    } else {
        let bytes = dead_letters::measure_dead_letter(&gateway, &by, name.clone()).await?;
        Some(state.body_quotas.data.try_acquire(bytes)?)
    };
    let retry = move |gateway: &Gateway| {
        let corrected = is_given.then(|| match media_type {
            Some(MediaType::Csv) => Correction::Record(body.bytes()),
            _ => Correction::Json(body.bytes()),
        });
        let retry = LetterRetry { corrected, languages, trace };
        let answer = dead_letters::retry_dead_letter(gateway, &by, &name, retry)?;
        drop(permit);
        Ok(answer.into_ingestion(true, OnError::Abort))
    };
    Reply::json(&gateway.read(retry).await?)
}

async fn delete_letter(call: Call<'_>) -> ReplyResult {
    dead_letters::delete_dead_letter(&call.gateway()?, call.caller(), read_name(&call)).await?;
    Ok(Reply::no_content())
}

/// Returns the list in the path: that of a source, which has a name, or that of an ingestion.
fn read_list(call: &Call<'_>) -> LetterList {
    match call.path("name") {
        "" => LetterList::Ingestion(call.path("id").to_owned()),
        name => LetterList::Source(name.to_owned()),
    }
}

/// Returns the dead letter in the path.
fn read_name(call: &Call<'_>) -> DeadLetterName {
    DeadLetterName { list: Some(read_list(call)), id: call.path("letter").to_owned() }
}
