//! `/admin/rejected`: dead letters, the objects that ingestions rejected. They can be corrected, retried and deleted.
use super::form::{FormErrors, take_form};
use super::frame::{Frame, PageReply, PageResult};
use super::ingestions::describe_record;
use super::menu::Section;
use super::pager::Pager;
use super::words;
use askama::Template;
use penstock_auth::{Authorized, Caller, Role};
use penstock_base::error::{ErrorClass, Finding, GatewayError};
use penstock_http::accept::read_languages;
use penstock_http::caller::caller;
use penstock_http::path::path_parameter;
use penstock_http::problem::Problem;
use penstock_http::query::{Query, UuidCursor, cursor_after};
use penstock_http::state::{gateway, run_blocking, state};
use penstock_http::trace::trace;
use penstock_model::dead_letters::{DeadLetter, Origin};
use penstock_service::dead_letters::{
    self, Correction, DeadLetterName, DeadLetterText, LetterList, LetterRetry,
};
use penstock_service::gateway::Gateway;
use penstock_service::ingestions::find_ingestion;
use salvo::{Depot, Request, handler};

/// Rows of one page.
const ROWS_PER_PAGE: usize = 50;
/// The maximum number of bytes of a text that can be corrected here. The form with it must stay a small one, and
/// percent-encoding may need three characters for one byte.
const MAX_EDITED_BYTES: usize = 48 << 10;

#[derive(Template)]
#[template(path = "admin/rejected.html")]
struct List {
    frame: Frame,
    /// The ingestion that the list is limited to: its id, and its name if it is recorded.
    ingestion: Option<(String, Option<String>)>,
    /// The source that the list is limited to.
    source: Option<String>,
    rows: Vec<Row>,
    pager: Pager,
}

/// A dead letter in the list.
struct Row {
    letter: DeadLetter,
    /// Whether the Business Object still exists.
    is_defined: bool,
    /// Its errors, in words.
    errors: Vec<String>,
    sender: String,
}

#[derive(Template)]
#[template(path = "admin/dead_letter.html")]
struct One {
    frame: Frame,
    row: Row,
    /// The errors of the retry that was sent from this page.
    retry_errors: FormErrors,
    text: String,
    /// Why the text cannot be corrected in the form.
    not_editable: Option<&'static str>,
}

impl Row {
    fn new(letter: DeadLetter, gateway: &Gateway, by: &Caller) -> Self {
        let errors = letter.errors.iter().cloned();
        Self {
            errors: errors.map(|error| Finding::from(error).to_string()).collect(),
            sender: describe_origin(&letter.origin, gateway, by),
            is_defined: gateway.catalogue.check_exists(&letter.business_object).is_ok(),
            letter,
        }
    }

    /// Returns the place of the object in its request.
    fn place(&self) -> String {
        match self.letter.line {
            Some(line) => format!("Object {}, line {line}", self.letter.index),
            None => format!("Object {}", self.letter.index),
        }
    }
}

fn describe_origin(origin: &Origin, gateway: &Gateway, by: &Caller) -> String {
    match origin {
        Origin::ApiKey(id) => match gateway.auth.keys.get(by, id) {
            Some(key) => format!("API key {:?}", key.name),
            None => "an API key".to_owned(),
        },
        // Others must not learn more about the account than the API shows.
        Origin::Source(name) => format!("source {name:?}"),
        Origin::Account(id) => {
            words::name_account(gateway, id, by.role >= Role::Admin || by.id() == id)
        }
    }
}

/// Shows the list.
#[handler]
pub(crate) async fn list_rejected(req: &mut Request, depot: &mut Depot) -> PageResult {
    let query = Query::read(req, &["ingestion", "source", "cursor"])?.without_empty();
    let after = query.read_cursor::<UuidCursor>()?;
    let (gateway, by) = (gateway(depot)?, caller(depot));
    let (ingestion, is_first) = (query.get("ingestion").map(str::to_owned), after.is_none());
    let source = query.get("source").map(str::to_owned);
    let list = match (&ingestion, &source) {
        (Some(id), _) => Some(LetterList::Ingestion(id.clone())),
        (None, Some(name)) => Some(LetterList::Source(name.clone())),
        (None, None) => None,
    };
    let listed = dead_letters::list_dead_letters(&gateway, by, list, after, ROWS_PER_PAGE).await?;
    let frame = Frame::new(req, depot, Section::Rejected);
    let next = listed.next.as_deref().map(cursor_after);
    let parameters = [("ingestion", ingestion.as_deref()), ("source", source.as_deref())];
    let ingestion_name = match &ingestion {
        // The record may have been removed before the dead letters.
        Some(id) => find_ingestion(&gateway, id.clone()).await.ok(),
        None => None,
    };
    let ingestion_name = ingestion_name.as_ref().map(describe_record);
    let rows = listed.letters.into_iter().map(|letter| Row::new(letter, &gateway, by)).collect();
    Ok(PageReply::show(&List {
        pager: Pager::new(&frame, "/admin/rejected", &parameters, is_first, next.as_deref()),
        rows,
        ingestion: ingestion.map(|id| (id, ingestion_name)),
        source,
        frame,
    }))
}

/// Shows one dead letter.
#[handler]
pub(crate) async fn show_dead_letter(req: &mut Request, depot: &mut Depot) -> PageResult {
    Query::read(req, &[])?;
    let found = read_letter(req, depot).await?;
    build_page(req, depot, found, None, FormErrors::default())
}

/// Retries a dead letter with the text of the form, otherwise with its text as received.
#[handler]
pub(crate) async fn retry_dead_letter(req: &mut Request, depot: &mut Depot) -> PageResult {
    // An object that cannot be corrected here has a form without the field.
    let sent = take_form(depot).text_if_sent("text");
    let found = read_letter(req, depot).await?;
    // Browsers change line ends, so a text without a correction is retried as received.
    let shown = String::from_utf8_lossy(&found.text).replace("\r\n", "\n");
    let corrected = sent.filter(|text| *text != shown);
    if corrected.as_ref().is_some_and(|text| text.trim().is_empty()) {
        let detail = "the text is empty; enter the corrected object, or open the page again to retry it as received";
        let error = GatewayError::new(ErrorClass::Invalid, detail);
        return build_page(req, depot, found, corrected, FormErrors::from_error(error, &[]));
    }
    let (gateway, by, trace) = (gateway(depot)?, caller(depot).clone(), trace(depot));
    let capacity = if corrected.is_some() { 0 } else { found.letter.text_bytes };
    let permit = state(depot).body_quotas.data.try_acquire(capacity)?;
    let languages = read_languages(req.headers());
    let (name, text, is_record) = (letter_name(req), corrected.clone(), found.letter.csv.is_some());
    let retried = run_blocking(move || {
        let corrected = text.as_deref().map(|text| {
            if is_record && !begins_object(text) {
                Correction::Record(text.as_bytes())
            } else {
                Correction::Json(text.as_bytes())
            }
        });
        let retry = LetterRetry { corrected, languages, trace };
        let answer = dead_letters::retry_dead_letter(&gateway, &by, &name, retry);
        drop(permit);
        Ok(answer)
    });
    match retried.await? {
        Ok(_) => Ok(PageReply::redirect("/admin/rejected", "The object was ingested.")),
        Err(error) => {
            // It has the new errors now, unless somebody else has retried or deleted it meanwhile.
            let found = read_letter(req, depot).await?;
            build_page(req, depot, found, corrected, FormErrors::from_error(error, &[]))
        }
    }
}

/// Whether a text is probably a JSON object, and no record of CSV such as `{4f1c…};12`.
fn begins_object(text: &str) -> bool {
    let members = text.trim_start().strip_prefix('{').map(str::trim_start);
    members.is_some_and(|members| members.starts_with(['"', '}']))
}

/// Deletes a dead letter.
#[handler]
pub(crate) async fn delete_dead_letter(req: &mut Request, depot: &mut Depot) -> PageResult {
    let (gateway, by) = (gateway(depot)?, caller(depot));
    dead_letters::delete_dead_letter(&gateway, by, letter_name(req)).await?;
    Ok(PageReply::redirect("/admin/rejected", "The dead letter was deleted."))
}

fn letter_name(req: &Request) -> DeadLetterName {
    DeadLetterName { list: None, id: path_parameter(req, "id").to_owned() }
}

async fn read_letter(req: &Request, depot: &Depot) -> Result<DeadLetterText, Problem> {
    let (gateway, by): (Gateway, &Authorized) = (gateway(depot)?, caller(depot));
    let name = letter_name(req);
    // The store reads a text as a whole.
    let bytes = dead_letters::measure_dead_letter(&gateway, by, name.clone()).await?;
    let _permit = state(depot).body_quotas.data.try_acquire(bytes)?;
    Ok(dead_letters::read_dead_letter(&gateway, by, name, MAX_EDITED_BYTES).await?)
}

/// Builds the page of a dead letter. `corrected` is the text of a form that failed.
fn build_page(
    req: &Request,
    depot: &Depot,
    found: DeadLetterText,
    corrected: Option<String>,
    retry_errors: FormErrors,
) -> PageResult {
    let DeadLetterText { letter, text } = found;
    let (gateway, by) = (gateway(depot)?, caller(depot));
    let status = retry_errors.status;
    let page = One {
        frame: Frame::new(req, depot, Section::Rejected),
        not_editable: if letter.message.as_ref().is_some_and(|one| one.whole_bytes.is_some()) {
            Some(
                "The message was too large, so only its beginning is kept. Send the object again in smaller messages.",
            )
        } else if (text.len() as u64) < letter.text_bytes {
            Some("The object is too large to correct it here. Use the API for that. Its beginning:")
        } else if std::str::from_utf8(&text).is_err() {
            Some(
                "The object is not UTF-8, so it cannot be shown and corrected here without a change. Use the API for that.",
            )
        } else {
            None
        },
        text: corrected.unwrap_or_else(|| String::from_utf8_lossy(&text).into_owned()),
        row: Row::new(letter, &gateway, by),
        retry_errors,
    };
    Ok(PageReply::show_with_status(status, &page))
}
