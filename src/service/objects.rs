//! The stored objects: those of a Business Object in its view, and single objects by their URI.
//!
//! `resolve` finds what a URI leads to, and `labels` the texts by which people recognise objects. `search` finds objects
//! by their values, and `lookup` by what people call them. `summary` counts them by groups, and `download` writes all of
//! them. `explore` has what their page shows around the table. `details` collects what is known about one object, a part
//! at a time, `header` what every page about it shows, and `graph` what is around it. `edit` changes one object by an
//! ingestion, from the `draft` of a form, of which `patch` sends only what differs. `merge` combines the draft with what
//! others have changed meanwhile.

mod details;
mod download;
mod draft;
mod edit;
mod explore;
mod graph;
mod header;
mod labels;
mod lookup;
mod merge;
mod patch;
mod resolve;
mod search;
mod summary;

pub use details::{
    ObjectDetails, ObjectPart, PartContent, ReferringObject, ReferringObjects, describe_object,
};
pub use download::{Download, DownloadForm, acquire_download_permit};
pub use draft::{
    DraftTexts, JSON_FIELD, UnreadText, VALUE_FIELD, add_at, apply_texts, remove_at, remove_empty,
    show_json, show_value,
};
pub use edit::{
    DeletableObject, EditableObject, MAX_DELETED_BYTES, MAX_EDITED_BYTES, preview_edit,
    read_deletable_object, read_editable_object, save_edit, view_nesting,
};
pub use explore::{
    Chart, ChartLine, ChartPoint, ChartRequest, Explored, FoundFacet, Histogram, HistogramBar,
    Suggestion, count_without, read_chart, read_distribution, read_facets, read_histogram,
    suggest_field_values, write_sparql,
};
pub use graph::{GraphObject, GraphSide, LinkGroup, ObjectGraph};
pub use header::ObjectHeader;
pub use labels::{IriNames, find_labels};
pub use lookup::{FoundObjects, NamedObject, look_up_objects};
pub use merge::merge_drafts;
pub use patch::{URI, build_merge_patch, explain_lock};
pub use resolve::{ObjectForm, Resolution, ShapePlace, resolve_uri};
pub use search::{
    FoundPage, FoundRow, ObjectSearch, SharedTime, list_found_objects, search_objects,
};
pub use summary::summarize_objects;

use crate::blocking::{acquire_thread, run_in_place};
use crate::gateway::Gateway;
use crate::ingestions::find_write_scope;
use oxrdf::NamedNode;
use penstock_auth::Caller;
use penstock_base::error::{ErrorClass, GatewayError};
use penstock_model::mapping::Field;
use penstock_model::members;
use penstock_model::resource::Compiled;
use penstock_model::view::{self, ViewOutput};
use penstock_model::visible::VisibleObjects;
use penstock_store::{Read, Snapshot, SubjectQuads};
use std::sync::Arc;

/// The bytes after which a page ends early.
const PAGE_BYTES: usize = 4 << 20;

/// A page of the objects of a Business Object.
#[derive(Debug)]
pub struct ObjectsPage {
    /// The objects in the view: an array in JSON.
    pub json: Vec<u8>,
    /// Where the next page begins, if there are more objects: after this URI, or in a search at this cursor.
    pub next: Option<String>,
}

/// Lists the objects of a Business Object in its view as the caller sees it, in the order of their URIs, beginning after
/// `after`. A page of large objects ends before `limit`.
///
/// # Errors
/// - `ErrorClass::Conflict` if the namespace of the Business Object is not defined
/// - `ErrorClass::TooLarge` if an object is too large to be shown
pub async fn list_objects(
    gateway: &Gateway,
    by: &Caller,
    business_object: Arc<Compiled>,
    after: Option<String>,
    limit: usize,
) -> Result<ObjectsPage, GatewayError> {
    let scope = find_write_scope(gateway, by, &business_object);
    gateway
        .read(move |gateway| {
            render_page(gateway, scope.as_deref(), &business_object, after.as_deref(), limit)
        })
        .await
}

fn render_page(
    gateway: &Gateway,
    scope: Option<&[Arc<Compiled>]>,
    business_object: &Compiled,
    after: Option<&str>,
    limit: usize,
) -> Result<ObjectsPage, GatewayError> {
    let snapshot = gateway.store.snapshot()?;
    let listed = members::list_members_to_read(&snapshot, business_object, after, limit + 1)?;
    let visible =
        VisibleObjects::new(&snapshot, gateway.catalogue.watch(), scope.map(list_compiled))?;
    let mut quads = SubjectQuads::default();
    let mut json = b"[".to_vec();
    let mut last = None;
    for one in listed.iter().take(limit) {
        if json.len() > PAGE_BYTES {
            break;
        }
        last = Some(one);
        snapshot.read_listed(one, &mut quads)?;
        if json.len() > 1 {
            json.push(b',');
        }
        let shape = &business_object.mapping.root;
        let mut warnings = Vec::new();
        let output = ViewOutput::new(&mut json, &mut warnings);
        view::render_subject(&visible, shape, &one.iri, &quads, output)?;
    }
    json.push(b']');
    let next = last.filter(|last| listed.last() != Some(*last));
    Ok(ObjectsPage { json, next: next.map(|last| last.iri.as_str().to_owned()) })
}

/// Returns one object of a Business Object in its view as the caller sees it, as JSON. A flat object is read at once: this takes
/// less time than a thread switch, since it needs few blocks, most of which are in memory. One with nested objects may take
/// long, so it counts as a thread of the account, and is read from a snapshot, for which no commit waits.
///
/// # Errors
/// - `ErrorClass::Malformed` if `uri` is not an IRI
/// - `ErrorClass::NotFound` if no such object belongs to the Business Object
/// - `ErrorClass::TooLarge` if the object is too large to be shown
pub async fn view_object(
    gateway: &Gateway,
    by: &Caller,
    business_object: &Arc<Compiled>,
    uri: &str,
) -> Result<Vec<u8>, GatewayError> {
    let uri = parse_uri(uri)?;
    let is_flat = !business_object.mapping.root.fields.iter().any(Field::contains_objects);
    if is_flat && let Some(read) = gateway.store.try_read() {
        return render_member(&read, business_object, &uri);
    }
    let _thread = acquire_thread().await;
    run_in_place(|| {
        let scope = find_write_scope(gateway, by, business_object);
        let visible = open_visible(gateway, scope.as_deref())?;
        render_member(&visible, business_object, &uri)
    })
}

fn render_member(
    read: &dyn Read,
    business_object: &Compiled,
    uri: &NamedNode,
) -> Result<Vec<u8>, GatewayError> {
    let mut quads = SubjectQuads::default();
    read.read_subject(uri.as_ref().into(), &mut quads)?;
    if !members::is_member_by_quads(read, business_object, &quads)? {
        return Err(GatewayError::new(
            ErrorClass::NotFound,
            format!(
                "no stored object {} belongs to {:?}",
                uri.as_str(),
                business_object.object.definition.name
            ),
        ));
    }
    let mut json = Vec::with_capacity(1 << 10);
    let shape = &business_object.mapping.root;
    let mut warnings = Vec::new();
    let output = ViewOutput::new(&mut json, &mut warnings);
    view::render_subject(read, shape, uri, &quads, output)?;
    Ok(json)
}

/// Opens what a caller sees in a snapshot, whose credential is limited to the Business Objects of `scope`.
pub(crate) fn open_visible<'s>(
    gateway: &Gateway,
    scope: Option<&'s [Arc<Compiled>]>,
) -> Result<VisibleObjects<'s, Snapshot>, GatewayError> {
    let snapshot = gateway.store.snapshot()?;
    VisibleObjects::new(snapshot, gateway.catalogue.watch(), scope.map(list_compiled))
}

fn list_compiled(all: &[Arc<Compiled>]) -> impl Iterator<Item = &Compiled> {
    all.iter().map(|one| &**one)
}

/// Parses a URI that a client sent.
///
/// # Errors
/// `ErrorClass::Malformed` if it is not an IRI.
pub fn parse_uri(text: &str) -> Result<NamedNode, GatewayError> {
    NamedNode::new(text).map_err(|error| {
        // An IRI has these characters only percent-encoded, and decoding a query decodes them.
        let is_decoded = text.contains(|c: char| c <= ' ' || "<>\"{}|\\^`".contains(c));
        let hint = if is_decoded { "; in the query of a URL, write % as %25" } else { "" };
        GatewayError::new(ErrorClass::Malformed, format!("{text:?} is not an IRI: {error}{hint}"))
    })
}
