//! Ingestion into a Business Object, and the records of ingestions.
use crate::audit::change_event;
use crate::changes::audit_events::submission_event;
use crate::gateway::Gateway;
use crate::pages::FoundPage;
use penstock_auth::audit::Event;
use penstock_auth::{Authorized, Caller, Role};
use penstock_base::error::{ErrorClass, GatewayError};
use penstock_base::principal::Principal;
use penstock_base::telemetry::trace::Trace;
use penstock_model::csv::CsvHeader;
use penstock_model::ingest::{
    self, Answer, AuditHook, AuditedStep, BegunIngestion, Body, BodyForm, Limits, Mode,
    ObjectCondition, OnError, Preview, Request, ReviewStep, Submission,
};
use penstock_model::resource::{BusinessObject, Compiled};
use penstock_resources::business_object::Review;
use penstock_resources::ingestion::IngestionRecord;
use penstock_store::Transaction;
use std::sync::Arc;

/// A Business Object that a request names.
#[derive(Debug, Clone)]
pub struct NamedBusinessObject {
    /// Its id.
    pub id: String,
    /// Its name when the request arrived, for the log.
    pub name: String,
}

impl From<&BusinessObject> for NamedBusinessObject {
    fn from(object: &BusinessObject) -> Self {
        Self { id: object.id.clone(), name: object.definition.name.clone() }
    }
}

/// What a client asks for with an ingestion, except the body and the client itself.
#[derive(Debug, Clone)]
pub struct IngestionRequest {
    /// The Business Object.
    pub business_object: NamedBusinessObject,
    /// What the body has around its objects.
    pub form: BodyForm,
    /// How stored data is changed.
    pub mode: Mode,
    /// What to do if an object has an error.
    pub on_error: OnError,
    /// What the client says about its change, if it asks for a review.
    pub submission: Option<NewChange>,
    /// Whether it may change objects of other Business Objects that require a review.
    pub bypass: bool,
    /// The key under which a repeated request gets the first answer.
    pub idempotency_key: Option<String>,
    /// The state that the only object of the request must have.
    pub condition: Option<ObjectCondition>,
    /// Whether the answer reports the result of each object.
    pub lists_objects: bool,
    /// The languages of the client for the texts of shapes, the preferred one first.
    pub languages: Vec<String>,
    /// The trace of the request.
    pub trace: Trace,
}

/// What a client says about a change that it sends.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct NewChange {
    /// The users and groups that see it too.
    pub owners: Vec<Principal>,
    /// Whether it is a draft.
    pub is_draft: bool,
}

impl IngestionRequest {
    /// Creates a request with the defaults into this Business Object.
    pub fn new(business_object: impl Into<NamedBusinessObject>, mode: Mode, trace: Trace) -> Self {
        Self {
            business_object: business_object.into(),
            form: BodyForm::Data,
            mode,
            on_error: OnError::Abort,
            submission: None,
            bypass: false,
            idempotency_key: None,
            condition: None,
            lists_objects: true,
            languages: Vec::new(),
            trace,
        }
    }

    /// Logs that the request was refused before an ingestion began. An ingestion logs its own refusals.
    pub fn log_refusal(&self, by: &Caller, cause: &str, http_status: u16) {
        log_refusal(&self.business_object.name, self.mode.name(), by, cause, http_status);
    }
}

/// Logs that a request to ingest into the Business Object of this name or id was refused before an ingestion began.
pub fn log_refusal(business_object: &str, mode: &str, by: &Caller, cause: &str, http_status: u16) {
    let (status, caller) = (http_status, by.id());
    tracing::warn!(business_object, mode, cause, status, caller, "An ingestion was refused.");
}

/// Ingests this body, if the caller still may. Uses the Business Object as it is now, not as it was when
/// the request began: a body may take minutes to arrive, and a stream any time. Returns once the data is synced to disk.
/// Blocking.
///
/// # Errors
/// - `ErrorClass::Unauthorized` or `ErrorClass::Forbidden` if the caller may no longer ingest
/// - `ErrorClass::NotFound` if the Business Object has been deleted
/// - `ErrorClass::InsufficientStorage` if the disk is full up to its reserve
/// - the errors of [`ingest::ingest`]
pub fn ingest_objects(
    gateway: &Gateway,
    by: &Authorized,
    request: &IngestionRequest,
    body: Body<'_>,
) -> Result<Answer, GatewayError> {
    run_request(gateway, by, request, body, |limits, request| {
        ingest::ingest(&gateway.store, limits, request)
    })
}

/// Ingests the text of the dead letter with this id as [`ingest_objects`] does. A success removes the dead letter in the
/// same commit. Blocking.
pub(crate) fn retry_letter(
    gateway: &Gateway,
    by: &Authorized,
    letter_id: &str,
    request: &IngestionRequest,
    body: Body<'_>,
) -> Result<Answer, GatewayError> {
    run_request(gateway, by, request, body, |limits, request| {
        let request = Request { retried_letter: Some(letter_id), ..*request };
        ingest::ingest(&gateway.store, limits, &request)
    })
}

/// Ingests as [`ingest_objects`] does, except waiting for the sync. Blocking.
///
/// # Errors
/// The errors of [`ingest_objects`] before it reads the body.
pub fn begin_ingestion(
    gateway: &Gateway,
    by: &Authorized,
    request: &IngestionRequest,
    body: Body<'_>,
) -> Result<BegunIngestion<Answer>, GatewayError> {
    run_request(gateway, by, request, body, |limits, request| {
        Ok(ingest::begin_ingestion(&gateway.store, limits, request))
    })
}

/// Shows what an ingestion of this body would change, with the same checks, and stores nothing. Blocking.
///
/// # Errors
/// As [`ingest_objects`].
pub fn preview_objects(
    gateway: &Gateway,
    by: &Authorized,
    request: &IngestionRequest,
    body: Body<'_>,
) -> Result<Preview, GatewayError> {
    run_request(gateway, by, request, body, |limits, request| {
        ingest::preview_ingestion(&gateway.store, limits, request)
    })
}

/// Checks that the caller may ingest, and passes the complete request to `run`.
fn run_request<T>(
    gateway: &Gateway,
    by: &Authorized,
    request: &IngestionRequest,
    body: Body<'_>,
    run: impl FnOnce(&Limits, &Request<'_>) -> Result<T, GatewayError>,
) -> Result<T, GatewayError> {
    // The commit checks it again.
    let min_role = if request.bypass { Role::Admin } else { Role::Contributor };
    let by = &by.with_min_role(min_role);
    let admitted = check_admission(gateway, by, request);
    let Admission { business_object, is_reviewed } = admitted.inspect_err(|error| {
        request.log_refusal(by, &error.detail, error.class.http_status());
    })?;
    let write_scope = find_write_scope(gateway, by, &business_object);
    let write_scope: Option<Vec<&Compiled>> =
        write_scope.as_ref().map(|found| found.iter().map(|one| &**one).collect());
    let limits = gateway.settings.limits;
    let review = match &request.submission {
        Some(NewChange { owners, is_draft }) => {
            ReviewStep::Submit(Submission { owners, is_draft: *is_draft })
        }
        None => ReviewStep::None,
    };
    let add_event = |transaction: &mut Transaction<'_>, step: AuditedStep<'_>| {
        let event = match step {
            AuditedStep::Bypassed(names) => bypass_event(by, request, names),
            AuditedStep::Submitted(change) => submission_event(by, change),
        };
        gateway.auth.audit.add_event(transaction, &event)
    };
    if is_reviewed || request.bypass {
        gateway.auth.audit.flush();
    }
    let traceparent = request.trace.to_string();
    let request = Request {
        business_object: &business_object,
        mode: request.mode,
        on_error: request.on_error,
        retried_letter: None,
        review,
        bypass: request.bypass,
        audit: Some(AuditHook(&add_event)),
        check: by,
        caller: by.id(),
        api_key: by.api_key_id(),
        write_scope: write_scope.as_deref(),
        traceparent: Some(&traceparent),
        idempotency_key: request.idempotency_key.as_deref(),
        condition: request.condition.as_ref(),
        languages: &request.languages,
        lists_objects: request.lists_objects,
        watch: gateway.catalogue.watch(),
        events: Some(&gateway.events),
        form: request.form,
        body,
    };
    run(&limits, &request)
}

/// Checks that the caller may ingest, and that the columns of a stream of CSV are fields of the Business Object, before the
/// first chunk is ingested.
///
/// # Errors
/// The errors of [`ingest_objects`] before it reads a body; `ErrorClass::Invalid` for other columns.
pub fn check_csv_header(
    gateway: &Gateway,
    by: &Authorized,
    request: &IngestionRequest,
    header: &CsvHeader,
) -> Result<(), GatewayError> {
    let Admission { business_object, .. } = check_admission(gateway, by, request)?;
    header.check_columns(&business_object.mapping)
}

/// Builds the audit event of an ingestion that changes objects of Business Objects that require a review, or that could
/// not be validated.
fn bypass_event(by: &Caller, request: &IngestionRequest, names: &[String]) -> Event {
    let detail = format!(
        "{} into {:?} with bypass=true changed objects of the Business Objects {names:?}, without their review or validation",
        request.mode, request.business_object.name
    );
    change_event(by, "review.bypassed", detail)
}

/// What an ingestion is admitted to.
struct Admission {
    /// The current Business Object.
    business_object: Arc<Compiled>,
    /// Whether the ingestion becomes a change.
    is_reviewed: bool,
}

/// Returns the current Business Object, if the caller may ingest into it now and there is disk space for it.
fn check_admission(
    gateway: &Gateway,
    by: &Authorized,
    request: &IngestionRequest,
) -> Result<Admission, GatewayError> {
    by.with_current_role()?;
    let NamedBusinessObject { id, name } = &request.business_object;
    if !by.may_use(id) {
        return Err(GatewayError::new(
            ErrorClass::Forbidden,
            format!("this credential is limited to other Business Objects than {name:?}"),
        ));
    }
    let found = gateway.catalogue.get(id).filter(|found| found.object.id == *id);
    let business_object = found.ok_or_else(|| {
        GatewayError::new(ErrorClass::NotFound, "the Business Object has been deleted meanwhile")
    })?;
    let is_reviewed = request.submission.is_some()
        || business_object.object.definition.review() == Review::Required;
    let takes_space = match request.mode {
        Mode::Validate => false,
        // Dead letters and changes take space too.
        Mode::Delete => request.on_error == OnError::Skip || is_reviewed,
        _ => true,
    };
    if takes_space {
        gateway.disk.check_reserve()?;
    }
    Ok(Admission { business_object, is_reviewed })
}

/// Returns the Business Objects that the caller may write, as they are now; `None` without a limit. One that was deleted
/// is left out, so its namespaces are no longer among those that the caller may write. The commit checks that none was
/// changed meanwhile.
pub(crate) fn find_write_scope(
    gateway: &Gateway,
    by: &Caller,
    business_object: &Arc<Compiled>,
) -> Option<Vec<Arc<Compiled>>> {
    by.business_objects().map(|ids| find_compiled(gateway, ids, business_object))
}

/// Returns the Business Objects with these ids as they are now, and `business_object` as given. One that was deleted is left
/// out.
pub(crate) fn find_compiled(
    gateway: &Gateway,
    ids: &[String],
    business_object: &Arc<Compiled>,
) -> Vec<Arc<Compiled>> {
    let find = |id: &String| {
        if *id == business_object.object.id {
            return Some(Arc::clone(business_object));
        }
        gateway.catalogue.get(id).filter(|found| found.object.id == *id)
    };
    ids.iter().filter_map(find).collect()
}

/// Lists the records of ingestions that the caller may see, newest first: those older than the one with the id `after`.
///
/// # Errors
/// `ErrorClass::Malformed` if there is no record `after`, for example because it was removed.
pub async fn list_ingestions(
    gateway: &Gateway,
    by: &Authorized,
    after: Option<String>,
    limit: usize,
) -> Result<FoundPage<IngestionRecord>, GatewayError> {
    let by = by.clone();
    gateway
        .read(move |gateway| {
            // An update in SPARQL belongs to no Business Object.
            let is_visible = |record: &IngestionRecord| match &record.business_object {
                Some(id) => by.may_use(id),
                None => by.business_objects().is_none(),
            };
            let places = &gateway.hidden_places;
            let after = after.map(|after| places.find_entry(after));
            let records = ingest::iter_records(&gateway.store, after.as_deref())?;
            places.collect_visible(records, is_visible, |record| record.id.as_str(), limit)
        })
        .await
}

/// Returns the record of an ingestion.
///
/// # Errors
/// `ErrorClass::NotFound` if there is none.
pub async fn find_ingestion(
    gateway: &Gateway,
    id: String,
) -> Result<IngestionRecord, GatewayError> {
    gateway
        .read(move |gateway| {
            ingest::read_record(&gateway.store, &id)?.ok_or_else(|| {
                GatewayError::new(
                    ErrorClass::NotFound,
                    format!("there is no ingestion {id:?}, or its record is no longer kept"),
                )
            })
        })
        .await
}

#[cfg(test)]
mod tests;
