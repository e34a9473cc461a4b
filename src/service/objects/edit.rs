//! Changes one object by an ingestion, from the state that a person has seen.
use super::{parse_uri, render_member};
use crate::gateway::Gateway;
use crate::ingestions::{IngestionRequest, ingest_objects, preview_objects};
use penstock_auth::{Authorized, Role};
use penstock_base::error::{ErrorClass, GatewayError};
use penstock_base::json::{self, Json};
use penstock_model::ingest::{
    Answer, Body, LockedFields, ObjectCondition, Preview, find_locked_fields,
};
use penstock_model::resource::Compiled;
use penstock_model::view::compute_etag;
use penstock_store::Snapshot;
use std::sync::Arc;

/// The maximum number of bytes of the view of an object that can be edited on a page, since a form sends it several times.
pub const MAX_EDITED_BYTES: usize = 128 << 10;
/// The maximum number of bytes of the view of an object that can be deleted on a page, since the page compares its fields.
pub const MAX_DELETED_BYTES: usize = 4 << 20;
/// What the errors of an ingestion begin with. A page says it in its own words.
const INGESTION_FAILED: &str = "Ingestion failed: ";

/// An object as it is before a person changes it.
#[derive(Debug)]
pub struct EditableObject {
    /// The text of its view.
    pub text: String,
    /// Its view.
    pub view: Json,
    /// The fields that a form cannot change.
    pub locked: LockedFields,
}

/// An object as it is before a person deletes it.
#[derive(Debug)]
pub struct DeletableObject {
    /// Its view.
    pub view: Json,
    /// The entity tag of that view.
    pub etag: String,
}

/// Reads an object that a person wants to change, through a Business Object that it belongs to.
///
/// # Errors
/// - `ErrorClass::Forbidden` without the role Contributor
/// - `ErrorClass::Malformed` if `uri` is not an IRI
/// - `ErrorClass::NotFound` if no such object belongs to the Business Object
/// - `ErrorClass::TooLarge` if its view has more than [`MAX_EDITED_BYTES`]
pub async fn read_editable_object(
    gateway: &Gateway,
    by: &Authorized,
    business_object: Arc<Compiled>,
    uri: &str,
) -> Result<EditableObject, GatewayError> {
    let uri = uri.to_owned();
    gateway
        .run(by, Role::Contributor, move |gateway, _| {
            let read = gateway.store.snapshot()?;
            let text = read_view(&read, &business_object, &uri, MAX_EDITED_BYTES)?;
            let view = json::parse(text.as_bytes(), view_nesting(gateway))?;
            let locked = find_locked_fields(&read, &business_object.mapping.root, &view)?;
            Ok(EditableObject { text, view, locked })
        })
        .await
}

/// Reads an object that a person wants to delete, through a Business Object that it belongs to.
///
/// # Errors
/// As [`read_editable_object`], with the limit [`MAX_DELETED_BYTES`].
pub async fn read_deletable_object(
    gateway: &Gateway,
    by: &Authorized,
    business_object: Arc<Compiled>,
    uri: &str,
) -> Result<DeletableObject, GatewayError> {
    let uri = uri.to_owned();
    gateway
        .run(by, Role::Contributor, move |gateway, _| {
            let read = gateway.store.snapshot()?;
            let text = read_view(&read, &business_object, &uri, MAX_DELETED_BYTES)?;
            let view = json::parse(text.as_bytes(), view_nesting(gateway))?;
            Ok(DeletableObject { view, etag: compute_etag(text.as_bytes()) })
        })
        .await
}

/// Returns how deep the view of an object may nest: an array in an object is around what an ingestion sends.
pub fn view_nesting(gateway: &Gateway) -> usize {
    gateway.settings.limits.nesting.saturating_add(2)
}

fn read_view(
    read: &Snapshot,
    business_object: &Compiled,
    uri: &str,
    max_bytes: usize,
) -> Result<String, GatewayError> {
    let json = render_member(read, business_object, &parse_uri(uri)?)?;
    if json.len() > max_bytes {
        return Err(GatewayError::new(
            ErrorClass::TooLarge,
            format!(
                "the object has {} KiB of JSON, and this page changes objects of at most {} KiB; change it with the API",
                json.len() >> 10,
                max_bytes >> 10
            ),
        ));
    }
    String::from_utf8(json).map_err(|error| {
        GatewayError::new(ErrorClass::Internal, format!("a view is not UTF-8: {error}"))
    })
}

/// Shows what a change of one object would do. `etag` is the state that the person has seen. Blocking.
///
/// # Errors
/// - `ErrorClass::PreconditionFailed` if the object has another state
/// - the errors of [`ingest_objects`]
pub fn preview_edit(
    gateway: &Gateway,
    by: &Authorized,
    request: &IngestionRequest,
    etag: &str,
    body: &[u8],
) -> Result<Preview, GatewayError> {
    let request = with_state(request, etag);
    preview_objects(gateway, by, &request, Body::Json(body)).map_err(without_prefix)
}

/// Changes one object, if it still has the state that the person has seen. Where the Business Object requires a review, or
/// the request asks for one, it becomes a change. An approval is refused if the object has changed since then. Blocking.
///
/// # Errors
/// - `ErrorClass::PreconditionFailed` if the object has another state
/// - the errors of [`ingest_objects`]
pub fn save_edit(
    gateway: &Gateway,
    by: &Authorized,
    request: &IngestionRequest,
    etag: &str,
    body: &[u8],
) -> Result<Answer, GatewayError> {
    let request = with_state(request, etag);
    ingest_objects(gateway, by, &request, Body::Json(body)).map_err(without_prefix)
}

fn with_state(request: &IngestionRequest, etag: &str) -> IngestionRequest {
    let condition = Some(ObjectCondition::IsAsShown(etag.to_owned()));
    IngestionRequest { condition, ..request.clone() }
}

fn without_prefix(mut error: GatewayError) -> GatewayError {
    if let Some(detail) = error.detail.strip_prefix(INGESTION_FAILED) {
        error.detail = detail.to_owned();
    }
    error
}
