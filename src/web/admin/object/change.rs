//! What changing and deleting an object have in common: its name, what would change, and the ingestion.
use super::link::object_link;
use crate::admin::changes::difference::ChangedObject;
use crate::admin::form::Form;
use crate::admin::frame::{Frame, PageReply};
use crate::admin::words::shorten_text;
use penstock_base::error::{ErrorClass, GatewayError};
use penstock_base::json::Json;
use penstock_http::accept::read_languages;
use penstock_http::caller::caller;
use penstock_http::path::encode_segment;
use penstock_http::problem::Problem;
use penstock_http::query::Query;
use penstock_http::state::{gateway, run_blocking, state};
use penstock_http::trace::trace;
use penstock_model::ingest::{Answer, Mode, Preview};
use penstock_model::resource::Compiled;
use penstock_resources::business_object::Review;
use penstock_resources::ingestion::IngestedStatus;
use penstock_service::business_objects::find_business_object;
use penstock_service::ingestions::{IngestionRequest, NewChange};
use penstock_service::objects::{preview_edit, save_edit};
use salvo::http::StatusCode;
use salvo::{Depot, Request};
use std::sync::Arc;
use uuid::Uuid;

/// The object that a page changes.
pub(super) struct Target {
    pub(super) uri: String,
    pub(super) label: String,
    /// The address of its page.
    pub(super) link: String,
    pub(super) business_object: String,
    /// The address of the list of objects.
    pub(super) list: String,
    /// The query of the pages that change it.
    pub(super) query: String,
    pub(super) requires_review: bool,
    pub(super) offers_review: bool,
}

impl Target {
    pub(super) fn new(frame: &Frame, compiled: &Compiled, uri: &str, view: &Json) -> Self {
        let id = &compiled.object.id;
        let review = compiled.object.definition.review();
        let label = compiled.mapping.find_label_field();
        let label = label.and_then(|(_, field)| field.value_in(view));
        let label = match label {
            Some(Json::String(text)) if !text.trim().is_empty() => shorten_text(text),
            _ => uri.to_owned(),
        };
        Self {
            label,
            link: format!("{}&view={}", object_link(frame, uri), encode_segment(id)),
            business_object: compiled.object.definition.name.clone(),
            list: format!("{}/admin/objects/{id}", frame.prefix),
            query: format!("?uri={}&view={}", encode_segment(uri), encode_segment(id)),
            requires_review: review == Review::Required,
            offers_review: review == Review::Optional,
            uri: uri.to_owned(),
        }
    }
}

/// What keeps a change from being shown or saved.
pub(super) enum Obstacle {
    /// The object has changed since the form was loaded.
    Outdated,
    /// The draft has errors.
    Invalid(GatewayError),
    /// Everything else.
    Failed(Problem),
}

impl From<GatewayError> for Obstacle {
    fn from(error: GatewayError) -> Self {
        match error.class {
            ErrorClass::PreconditionFailed => Self::Outdated,
            ErrorClass::Invalid
            | ErrorClass::Malformed
            | ErrorClass::Conflict
            | ErrorClass::TooLarge => Self::Invalid(error),
            _ => Self::Failed(error.into()),
        }
    }
}

/// What a change does, as a page shows it.
pub(super) struct Difference {
    pub(super) objects: Vec<ChangedObject>,
    /// Nested objects.
    pub(super) others: Vec<ChangedObject>,
    /// How many further ones there are.
    pub(super) omitted: usize,
    pub(super) warnings: Vec<String>,
    /// Whether it creates objects, whose URIs are only examples if they are generated.
    pub(super) has_new: bool,
}

impl Difference {
    pub(super) fn new(
        preview: Preview,
        compiled: &Compiled,
        nesting: usize,
        frame: &Frame,
    ) -> Self {
        let Preview { answer, items, omitted } = preview;
        let has_new = items.iter().any(|item| item.status == IngestedStatus::Created);
        let label = compiled.mapping.find_label_field().map(|(_, field)| field);
        let show = |item| ChangedObject::from_item(item, label, false, nesting, frame);
        let (named, others): (Vec<_>, Vec<_>) =
            items.into_iter().partition(|item| item.index.is_some());
        Self {
            objects: named.into_iter().map(show).collect(),
            others: others.into_iter().map(show).collect(),
            omitted,
            warnings: answer.warnings.into_iter().map(|warning| warning.message).collect(),
            has_new,
        }
    }
}

/// Returns the Business Object and the URI that the address names.
pub(super) fn read_target(
    req: &Request,
    depot: &Depot,
) -> Result<(Arc<Compiled>, String), Problem> {
    let query = Query::read(req, &["uri", "view"])?;
    let compiled = find_business_object(&gateway(depot)?, query.get("view").unwrap_or_default())?;
    Ok((compiled, query.get("uri").unwrap_or_default().to_owned()))
}

/// Returns a key for a form that saves or deletes. If the form is sent twice, only the first one counts.
pub(super) fn new_form_key() -> String {
    Uuid::now_v7().to_string()
}

/// Creates the request for an ingestion of one object. The form says whether to send a change, and has the key.
pub(super) fn new_request(
    req: &Request,
    depot: &Depot,
    compiled: &Compiled,
    mode: Mode,
    form: &Form,
) -> IngestionRequest {
    let idempotency_key = form.trimmed("key");
    let submission = form.is_ticked("review").then(NewChange::default);
    IngestionRequest {
        submission,
        idempotency_key,
        languages: read_languages(req.headers()),
        ..IngestionRequest::new(&compiled.object, mode, trace(depot))
    }
}

/// Computes what a change would do.
pub(super) async fn preview(
    depot: &Depot,
    request: IngestionRequest,
    etag: String,
    body: String,
) -> Result<Preview, Obstacle> {
    let (gateway, by) = (gateway(depot).map_err(Obstacle::Failed)?, caller(depot).clone());
    let permit = state(depot).body_quotas.data.try_acquire(body.len() as u64);
    let permit = permit.map_err(Obstacle::Failed)?;
    let done = run_blocking(move || {
        let _permit = permit;
        Ok(preview_edit(&gateway, &by, &request, &etag, body.as_bytes()))
    });
    Ok(done.await.map_err(Obstacle::Failed)??)
}

/// Saves a change.
pub(super) async fn save(
    depot: &Depot,
    request: IngestionRequest,
    etag: String,
    body: String,
) -> Result<Answer, Obstacle> {
    let (gateway, by) = (gateway(depot).map_err(Obstacle::Failed)?, caller(depot).clone());
    let permit = state(depot).body_quotas.data.try_acquire(body.len() as u64);
    let permit = permit.map_err(Obstacle::Failed)?;
    let done = run_blocking(move || {
        let _permit = permit;
        Ok(save_edit(&gateway, &by, &request, &etag, body.as_bytes()))
    });
    Ok(done.await.map_err(Obstacle::Failed)??)
}

/// Leads to the change that the ingestion became.
pub(super) fn report_submitted(answer: &Answer) -> PageReply {
    let path = format!("/admin/changes/{}", answer.ingestion_id);
    PageReply::redirect(path, "The change was sent. It waits for approval.")
}

impl Obstacle {
    /// Returns the problem, for a page that has no form to correct.
    pub(super) fn into_problem(self) -> Problem {
        match self {
            Self::Outdated => Problem::new(
                StatusCode::PRECONDITION_FAILED,
                "the object has changed since the page was loaded",
            ),
            Self::Invalid(error) => error.into(),
            Self::Failed(problem) => problem,
        }
    }
}
