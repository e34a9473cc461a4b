//! The search for objects by their values, and everything that is known about one object. Both may read many objects,
//! so they wait for one of the permits of GraphQL queries.
use super::parse_uri;
use super::resolve::find_shape;
use crate::blocking::run_blocking;
use crate::gateway::Gateway;
use oxrdf::{NamedNode, NamedOrBlankNode};
use penstock_base::error::{ErrorClass, Finding, GatewayError};
use penstock_model::ingest::{WriteHistory, find_write_history};
use penstock_model::members;
use penstock_model::rdf::{self, Format};
use penstock_model::resource::Compiled;
use penstock_model::search::{
    self, Filter, FoundObject, ReferenceFilter, Referrer, ReferrersPage, Search, SearchBudget,
    SearchPage,
};
use penstock_model::view::{self, FieldValues};
use penstock_store::{Read as _, Snapshot, SubjectQuads};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::OwnedSemaphorePermit;

/// The maximum number of objects that one search reads.
const MAX_READ_OBJECTS: u64 = 200_000;
/// The maximum time of one search.
const SEARCH_TIMEOUT: Duration = Duration::from_secs(10);
/// The maximum number of referring objects that are listed for one object.
const MAX_REFERRERS: usize = 50;

/// A page of the objects of a Business Object.
#[derive(Debug)]
pub struct FoundPage {
    /// The objects, in the order of their URIs.
    pub page: SearchPage,
    /// Each of them in the view; an error if one of them cannot be shown.
    pub views: Result<Vec<ObjectView>, GatewayError>,
}

/// An object in the view of a Business Object.
#[derive(Debug)]
pub struct ObjectView {
    /// Its JSON.
    pub json: Vec<u8>,
    /// Its label, if it has one.
    pub label: Option<String>,
}

/// Finds the objects of a Business Object that pass the filter, beginning after the cursor `after`. Without a filter,
/// these are all of them, and no permit is needed.
///
/// # Errors
/// - `ErrorClass::Invalid` if the filter does not fit the Business Object
/// - `ErrorClass::Malformed` if the cursor does not fit it
/// - `ErrorClass::TooLarge` if the search would read too many objects or take too long
/// - `ErrorClass::Unavailable` if too many other searches and queries are running
pub async fn search_objects(
    gateway: &Gateway,
    business_object: Arc<Compiled>,
    filter: Option<Filter>,
    after: Option<String>,
    limit: usize,
) -> Result<FoundPage, GatewayError> {
    let permit = if filter.is_some() { Some(acquire_permit(gateway).await?) } else { None };
    let store = gateway.store.clone();
    run_blocking(move || {
        let _permit = permit;
        let search =
            Search { filter: filter.as_ref(), after: after.as_deref(), limit, ..Search::default() };
        let snapshot = store.snapshot()?;
        let page = search::find_page(&snapshot, &business_object, &search, &new_budget())?;
        let mapping = &business_object.mapping;
        let mut quads = SubjectQuads::default();
        let views = page.found.iter().map(|FoundObject { uri, .. }| {
            snapshot.read_subject(uri.as_ref().into(), &mut quads)?;
            let mut json = Vec::new();
            view::render_subject(
                &snapshot,
                &mapping.root,
                uri,
                &quads,
                &mut json,
                &mut Vec::new(),
            )?;
            let label =
                view::find_label(mapping, &FieldValues::from_subject(&mapping.root, &quads));
            Ok(ObjectView { json, label })
        });
        Ok(FoundPage { views: views.collect(), page })
    })
    .await
}

/// Everything that is known about an object.
#[derive(Debug)]
pub struct ObjectDetails {
    /// Its URI.
    pub uri: NamedNode,
    /// Its label in the first Business Object that it belongs to and that has one for it.
    pub label: Option<String>,
    /// The Business Objects that it belongs to.
    pub business_objects: Vec<Arc<Compiled>>,
    /// Its JSON, if a Business Object shows it.
    pub json: Option<Vec<u8>>,
    /// The warnings of that view.
    pub warnings: Vec<Finding>,
    /// Its quads as Turtle.
    pub turtle: String,
    /// The first other objects that refer to it. `ErrorClass::TooLarge` if finding them would read too many objects or
    /// take too long.
    pub referrers: Result<ReferringObjects, GatewayError>,
    /// The recorded ingestions that wrote it.
    pub history: WriteHistory,
}

/// The first objects that refer to an object.
#[derive(Debug)]
pub struct ReferringObjects {
    /// The objects, each with its label, if it has one.
    pub found: Vec<(Referrer, Option<String>)>,
    /// Whether there are more.
    pub more: bool,
}

/// Collects everything that is known about an object.
///
/// # Errors
/// - `ErrorClass::Malformed` if `uri` is not an IRI
/// - `ErrorClass::NotFound` if no such object is stored
/// - `ErrorClass::TooLarge` if the object is too large to be shown
/// - `ErrorClass::Unavailable` if too many other searches and queries are running
pub async fn describe_object(gateway: &Gateway, uri: &str) -> Result<ObjectDetails, GatewayError> {
    let uri = parse_uri(uri)?;
    let permit = acquire_permit(gateway).await?;
    let gateway = gateway.clone();
    run_blocking(move || {
        let _permit = permit;
        collect_details(&gateway, uri)
    })
    .await
}

fn collect_details(gateway: &Gateway, uri: NamedNode) -> Result<ObjectDetails, GatewayError> {
    let all = gateway.catalogue.list();
    let (mut business_objects, mut json, mut warnings) = (Vec::new(), None, Vec::new());
    let mut label = None;
    let read = gateway.store.snapshot()?;
    let turtle = {
        let quads = read.quads_about(&NamedOrBlankNode::from(uri.clone()))?;
        if quads.is_empty() {
            return Err(GatewayError::new(
                ErrorClass::NotFound,
                format!("No object {} is stored.", uri.as_str()),
            ));
        }
        for compiled in &all {
            if members::is_member(&read, compiled, &uri)? {
                let Compiled { mapping, .. } = &**compiled;
                let values = FieldValues::from_quads(&mapping.root, &quads);
                label = label.or_else(|| view::find_label(mapping, &values));
                business_objects.push(Arc::clone(compiled));
            }
        }
        if let Some(shape) = find_shape(gateway, &read, &uri, &quads)? {
            let json = json.insert(Vec::new());
            view::render_object(&read, &shape, &uri, json, &mut warnings)?;
        }
        rdf::write_triples(Format::Turtle, &quads)?
    };
    let referrers = match find_referrers(&read, &all, &uri) {
        Err(error) if error.class != ErrorClass::TooLarge => return Err(error),
        found => found,
    };
    Ok(ObjectDetails {
        referrers,
        history: find_write_history(&gateway.store, uri.as_str())?,
        business_objects,
        json,
        warnings,
        // The serializer writes UTF-8.
        turtle: String::from_utf8_lossy(&turtle).into_owned(),
        label,
        uri,
    })
}

/// Finds the first other objects that refer to an object.
fn find_referrers(
    read: &Snapshot,
    all: &[Arc<Compiled>],
    uri: &NamedNode,
) -> Result<ReferringObjects, GatewayError> {
    let (filter, budget) = (ReferenceFilter::default(), new_budget());
    let ReferrersPage { found, more } =
        search::find_referrers(read, all, uri, filter, None, MAX_REFERRERS, &budget)?;
    let mut quads = SubjectQuads::default();
    // The object's own view contains its URI, which is not a reference.
    let others = found.into_iter().filter(|referrer| referrer.uri != *uri);
    let found = others.map(|referrer| {
        let mapping = &referrer.business_object.mapping;
        read.read_subject(referrer.uri.as_ref().into(), &mut quads)?;
        let label = view::find_label(mapping, &FieldValues::from_subject(&mapping.root, &quads));
        Ok((referrer, label))
    });
    Ok(ReferringObjects { found: found.collect::<Result<_, GatewayError>>()?, more })
}

fn new_budget() -> SearchBudget {
    SearchBudget::new(MAX_READ_OBJECTS, SEARCH_TIMEOUT)
}

/// Acquires one of the permits of GraphQL queries, since a search reads as much as a query.
async fn acquire_permit(gateway: &Gateway) -> Result<OwnedSemaphorePermit, GatewayError> {
    gateway.query_permits.acquire().await.ok_or_else(|| {
        GatewayError::new(
            ErrorClass::Unavailable(Duration::from_secs(1)),
            "too many searches and queries are running; try again",
        )
    })
}
