//! Dead letters: the objects that ingestions rejected. A caller with a write scope sees those that it sent.
use crate::audit::change_event;
use crate::gateway::{Gateway, Parts};
use crate::ingestions::{IngestionRequest, NamedBusinessObject, retry_letter};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use penstock_auth::{Authorized, Caller, Role};
use penstock_base::error::{ErrorClass, GatewayError};
use penstock_base::telemetry::trace::Trace;
use penstock_model::dead_letters::{self, CsvRecordForm, DeadLetter, ListedLetters, Origin};
use penstock_model::ingest::{self, Answer, Body, missing_letter_error};
use penstock_resources::dead_letter;
use penstock_store::ReadStore;
use std::time::Duration;

/// The maximum number of dead letters in a page with texts.
const MAX_PAGE_LETTERS: usize = 100;
/// The maximum bytes of the texts of a page. A larger text has a page of its own.
const MAX_PAGE_TEXT_BYTES: u64 = 128 << 10;
/// The interval between two cleanups.
const CLEANUP_INTERVAL: Duration = Duration::from_hours(1);

/// A dead letter with its text, as received.
#[derive(Debug)]
pub struct DeadLetterText {
    /// The dead letter.
    pub letter: DeadLetter,
    /// Its text, or the beginning of it.
    pub text: Vec<u8>,
}

/// Some dead letters of an ingestion. [`read_texts`] reads their texts.
#[derive(Debug)]
pub struct DeadLetterPage {
    /// The dead letters, in the order of the request.
    pub letters: Vec<DeadLetter>,
    /// The bytes of their texts.
    pub text_bytes: u64,
    /// The id to continue after; `None` at the end.
    pub next: Option<String>,
}

/// The corrected text of a dead letter.
#[derive(Debug, Clone, Copy)]
pub enum Correction<'a> {
    /// A JSON object.
    Json(&'a [u8]),
    /// A record with the header of its stream of CSV.
    Record(&'a [u8]),
}

/// What a client sends to retry a dead letter.
#[derive(Debug)]
pub struct LetterRetry<'a> {
    /// The corrected text; `None` for the text as received.
    pub corrected: Option<Correction<'a>>,
    /// The languages of the client for the texts of shapes, the preferred one first.
    pub languages: Vec<String>,
    /// The trace of the request.
    pub trace: Trace,
}

/// Some of the dead letters.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LetterList {
    /// Those of the ingestion with this id.
    Ingestion(String),
    /// Those of the source with this name.
    Source(String),
}

impl LetterList {
    fn contains(&self, letter: &DeadLetter) -> bool {
        match self {
            Self::Ingestion(id) => *id == letter.ingestion_id,
            Self::Source(name) => letter.origin == Origin::Source(name.clone()),
        }
    }
}

/// A dead letter that a client names.
#[derive(Debug, Clone)]
pub struct DeadLetterName {
    /// The list that it is in, if the client names that too.
    pub list: Option<LetterList>,
    /// Its id.
    pub id: String,
}

/// Lists the dead letters that follow the id `after`, those of an ingestion in the order of the request, those of a source
/// oldest first: as many as have texts that are read together.
///
/// # Errors
/// - `ErrorClass::Forbidden` if the caller is not a Contributor, or has a write scope and asks for those of a source
/// - `ErrorClass::NotFound` if the caller sees neither a record nor a dead letter of the ingestion, or there is no such
///   source
pub async fn read_letter_page(
    gateway: &Gateway,
    by: &Authorized,
    list: &LetterList,
    after: Option<String>,
) -> Result<DeadLetterPage, GatewayError> {
    let list = list.clone();
    run(gateway, by, move |gateway, by| {
        let (store, limit) = (&gateway.store, MAX_PAGE_LETTERS);
        let ListedLetters { letters, mut next } = match &list {
            LetterList::Ingestion(id) => {
                let origin = limiting_origin(by);
                let after = after.as_deref();
                dead_letters::list_ingestion_letters(store, id, origin.as_ref(), after, limit)?
            }
            LetterList::Source(name) => {
                crate::sources::require_source(gateway, name)?;
                require_no_scope(by)?;
                let origin = Origin::Source(name.clone());
                dead_letters::list_oldest_letters(store, &origin, after.as_deref(), limit)?
            }
        };
        if letters.is_empty()
            && after.is_none()
            && let LetterList::Ingestion(id) = &list
        {
            check_ingestion(store, id, by)?;
        }
        let (mut page, mut text_bytes) = (Vec::<DeadLetter>::new(), 0_u64);
        for letter in letters {
            let bytes = text_bytes.saturating_add(letter.text_bytes);
            if let Some(last) = page.last()
                && bytes > MAX_PAGE_TEXT_BYTES
            {
                next = Some(last.id.clone());
                break;
            }
            text_bytes = bytes;
            page.push(letter);
        }
        Ok(DeadLetterPage { letters: page, text_bytes, next })
    })
    .await
}

/// Reads the texts of these dead letters. Leaves out those that were removed since they were listed.
///
/// # Errors
/// The errors of the store.
pub async fn read_texts(
    gateway: &Gateway,
    letters: Vec<DeadLetter>,
) -> Result<Vec<dead_letter::DeadLetter>, GatewayError> {
    gateway
        .read(|gateway| {
            let read = gateway.store.read();
            let mut found = Vec::with_capacity(letters.len());
            for letter in letters {
                let text = dead_letters::read_text(&read, &letter.id)?;
                found.extend(text.map(|text| show_letter(letter, text)));
            }
            Ok(found)
        })
        .await
}

/// Returns a dead letter with its text.
fn show_letter(letter: DeadLetter, text: Vec<u8>) -> dead_letter::DeadLetter {
    let (text, text_base64) = match String::from_utf8(text) {
        Ok(text) => (text, None),
        Err(error) => {
            let bytes = error.as_bytes();
            (String::from_utf8_lossy(bytes).into_owned(), Some(STANDARD.encode(bytes)))
        }
    };
    dead_letter::DeadLetter {
        id: letter.id,
        index: letter.index,
        line: letter.line,
        errors: letter.errors,
        csv_header: letter.csv.map(|csv| csv.header),
        message_bytes: letter.message.as_ref().and_then(|message| message.whole_bytes),
        topic: letter.message.map(|message| message.topic),
        text,
        text_base64,
    }
}

/// Checks that the caller may know of this ingestion.
fn check_ingestion(store: &ReadStore, id: &str, by: &Caller) -> Result<(), GatewayError> {
    let origin = limiting_origin(by);
    let record = ingest::read_record(store, id)?.filter(|record| {
        let sender = Origin::of_request(&record.caller, record.api_key.as_deref());
        origin.is_none_or(|origin| sender == origin)
    });
    record.map(drop).ok_or_else(|| {
        GatewayError::new(
            ErrorClass::NotFound,
            format!(
                "there is no ingestion {id:?}, or neither its record nor a dead letter is still kept"
            ),
        )
    })
}

/// Lists dead letters without their texts: those of one ingestion in the order of the request, otherwise those of a source
/// or all of them, newest first. The list continues after the id `after`.
///
/// # Errors
/// `ErrorClass::Forbidden` if the caller is not a Contributor.
pub async fn list_dead_letters(
    gateway: &Gateway,
    by: &Authorized,
    list: Option<LetterList>,
    after: Option<String>,
    limit: usize,
) -> Result<ListedLetters, GatewayError> {
    run(gateway, by, move |gateway, by| {
        require_no_scope(by)?;
        let (store, after) = (&gateway.store, after.as_deref());
        match list {
            Some(LetterList::Ingestion(ingestion)) => {
                dead_letters::list_ingestion_letters(store, &ingestion, None, after, limit)
            }
            Some(LetterList::Source(name)) => {
                dead_letters::list_letters(store, Some(&Origin::Source(name)), after, limit)
            }
            None => dead_letters::list_letters(store, None, after, limit),
        }
    })
    .await
}

/// Returns a dead letter with at most `max_text_bytes` of its text.
///
/// # Errors
/// - `ErrorClass::Forbidden` if the caller is not a Contributor
/// - `ErrorClass::NotFound` if the caller sees no such dead letter
pub async fn read_dead_letter(
    gateway: &Gateway,
    by: &Authorized,
    name: DeadLetterName,
    max_text_bytes: usize,
) -> Result<DeadLetterText, GatewayError> {
    run(gateway, by, move |gateway, by| {
        let letter = find_visible(&gateway.store, by, &name)?;
        let mut text = read_text(&gateway.store, &letter)?;
        text.truncate(max_text_bytes);
        text.shrink_to_fit();
        Ok(DeadLetterText { letter, text })
    })
    .await
}

/// Returns the number of bytes of the stored text.
///
/// # Errors
/// As [`read_dead_letter`].
pub async fn measure_dead_letter(
    gateway: &Gateway,
    by: &Authorized,
    name: DeadLetterName,
) -> Result<u64, GatewayError> {
    run(gateway, by, move |gateway, by| Ok(find_visible(&gateway.store, by, &name)?.text_bytes))
        .await
}

/// Ingests a dead letter again, in its mode and with the rights of the caller. A success removes the dead letter in the
/// same commit. If the object has errors again, the dead letter stays, with the new errors. Blocking.
///
/// # Errors
/// - `ErrorClass::NotFound` if the caller sees no such dead letter, or the Business Object has been deleted
/// - `ErrorClass::UnsupportedMediaType` for a record in place of what was not one
/// - the errors of [`ingest_objects`](crate::ingestions::ingest_objects)
pub fn retry_dead_letter(
    gateway: &Gateway,
    by: &Authorized,
    name: &DeadLetterName,
    retry: LetterRetry<'_>,
) -> Result<Answer, GatewayError> {
    let LetterRetry { corrected, languages, trace } = retry;
    let current = by.with_current_role()?;
    current.require_role(Role::Contributor)?;
    let letter = find_visible(&gateway.store, &current, name)?;
    let business_object = NamedBusinessObject {
        id: letter.business_object.clone(),
        name: letter.business_object_name.clone(),
    };
    let new = IngestionRequest::new(business_object, letter.mode, trace);
    let request = IngestionRequest { languages, ..new };
    let received;
    let (text, first_line, is_record) = match corrected {
        Some(Correction::Json(text)) => (text, 1, false),
        Some(Correction::Record(text)) => (text, 1, true),
        None => {
            received = read_text(&gateway.store, &letter)?;
            (received.as_slice(), letter.line.unwrap_or(1), letter.csv.is_some())
        }
    };
    if !is_record {
        let topic_fields = letter.message.as_ref().map(|message| &message.fields);
        let body = Body::Object { text, index: letter.index, first_line, topic_fields };
        return retry_letter(gateway, by, &letter.id, &request, body);
    }
    let header = letter.csv.as_ref().map(CsvRecordForm::read_header).transpose()?;
    let header = header.ok_or_else(|| {
        let message =
            "the dead letter is not from CSV; send the corrected object as application/json";
        GatewayError::new(ErrorClass::UnsupportedMediaType, message)
    })?;
    let lines = [first_line];
    let body = Body::Records { text, header: &header, first: letter.index, line_numbers: &lines };
    retry_letter(gateway, by, &letter.id, &request, body)
}

/// Deletes a dead letter.
///
/// # Errors
/// - `ErrorClass::Unauthorized` or `ErrorClass::Forbidden` if the caller may no longer ingest
/// - `ErrorClass::NotFound` if the caller sees no such dead letter
pub async fn delete_dead_letter(
    gateway: &Gateway,
    by: &Authorized,
    name: DeadLetterName,
) -> Result<(), GatewayError> {
    run(gateway, by, move |gateway, by| {
        let letter = find_visible(&gateway.store, by, &name)?;
        let what = format!(
            "{} of the ingestion {} into {:?}",
            letter.id, letter.ingestion_id, letter.business_object_name
        );
        let event = change_event(by, "dead-letter.deleted", what);
        gateway.store.commit(by, |transaction| -> Result<_, GatewayError> {
            if !dead_letters::delete_letter(transaction, &letter.id)? {
                return Err(missing_letter_error(&name.id));
            }
            gateway.auth.audit.add_event(transaction, &event)
        })?;
        tracing::info!(
            dead_letter = letter.id,
            ingestion_id = letter.ingestion_id,
            business_object = letter.business_object_name,
            caller = by.id(),
            "Deleted a dead letter."
        );
        Ok(())
    })
    .await
}

/// Removes expired dead letters, and those beyond the limit if it was lowered, at the start and every hour until this
/// future is dropped.
pub async fn clean_up_dead_letters(gateway: Gateway) {
    loop {
        let removed = gateway.read(|gateway| {
            let Parts { store, clock, settings, .. } = &**gateway;
            let limits = &settings.limits;
            let max_age = u64::try_from(limits.rejected_age.as_millis()).unwrap_or(u64::MAX);
            let expired = dead_letters::expire_letters(store, clock.elapsed(), max_age)?;
            let evicted = dead_letters::evict_letters(store, limits.rejected_bytes)?;
            Ok((expired, evicted))
        });
        match removed.await {
            Ok((0, 0)) => {}
            Ok((expired, evicted)) => tracing::warn!(
                expired,
                evicted,
                "Dead letters beyond service.limits.rejected.age and .bytes were removed, so their objects are lost. Retry \
                 dead letters in time, or raise the limits."
            ),
            Err(error) => tracing::warn!(
                cause = error.detail,
                "Removing dead letters beyond their limits failed; the gateway retries in an hour."
            ),
        }
        tokio::time::sleep(CLEANUP_INTERVAL).await;
    }
}

/// Runs a use case of Contributors.
async fn run<T: Send + 'static>(
    gateway: &Gateway,
    by: &Authorized,
    work: impl FnOnce(&Gateway, &Authorized) -> Result<T, GatewayError> + Send + 'static,
) -> Result<T, GatewayError> {
    gateway.run(&by.with_current_role()?, Role::Contributor, work).await
}

fn require_no_scope(by: &Caller) -> Result<(), GatewayError> {
    if limiting_origin(by).is_none() {
        return Ok(());
    }
    Err(GatewayError::new(
        ErrorClass::Forbidden,
        "this API key is limited to its Business Objects; it sees the dead letters of single ingestions",
    ))
}

/// Returns the origin whose dead letters the caller sees; `None` for all.
fn limiting_origin(by: &Caller) -> Option<Origin> {
    by.business_objects()?;
    by.api_key_id().map(|id| Origin::ApiKey(id.to_owned()))
}

fn find_visible(
    store: &ReadStore,
    by: &Caller,
    name: &DeadLetterName,
) -> Result<DeadLetter, GatewayError> {
    let origin = limiting_origin(by);
    dead_letters::find_letter(&store.read(), &name.id)?
        .filter(|letter| name.list.as_ref().is_none_or(|list| list.contains(letter)))
        .filter(|letter| origin.is_none_or(|origin| origin == letter.origin))
        .ok_or_else(|| missing_letter_error(&name.id))
}

fn read_text(store: &ReadStore, letter: &DeadLetter) -> Result<Vec<u8>, GatewayError> {
    let text = dead_letters::read_text(&store.read(), &letter.id)?;
    text.ok_or_else(|| missing_letter_error(&letter.id))
}
