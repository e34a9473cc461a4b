//! The search for objects by their values. It may read many objects, so it waits for one of the permits of GraphQL queries.
use super::{ObjectsPage, PAGE_BYTES, open_visible};
use crate::gateway::Gateway;
use crate::ingestions::find_write_scope;
use parking_lot::Mutex;
use penstock_auth::Caller;
use penstock_base::error::{ErrorClass, GatewayError};
use penstock_base::permits::Permit;
use penstock_model::resource::Compiled;
use penstock_model::search::{
    self, CellValues, Columns, Filter, FoundObject, ObjectCount, Order, Search, SearchBudget,
    SearchPage,
};
use penstock_model::view::{self, FieldValues, ViewOutput};
use penstock_model::visible::VisibleObjects;
use penstock_store::{Read as _, Snapshot, SubjectQuads};
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::time::timeout;

/// The maximum number of objects that one search reads.
const MAX_READ_OBJECTS: u64 = 200_000;
/// The maximum time of one search.
const SEARCH_TIMEOUT: Duration = Duration::from_secs(10);
/// The maximum number of objects that are read to count what a search finds.
const MAX_COUNTED_OBJECTS: u64 = 10_000;
/// The maximum time in which they are counted.
const COUNT_TIMEOUT: Duration = Duration::from_secs(1);
/// The maximum number of values of a field that a table shows.
const MAX_CELL_VALUES: usize = 10;
/// The maximum number of nested objects that are read for a table.
const MAX_NESTED_OBJECTS: u64 = 20_000;

/// A page of the objects of a Business Object.
#[derive(Debug)]
pub struct FoundPage {
    /// The objects, in order.
    pub page: SearchPage,
    /// What the view shows of each of them.
    pub rows: Vec<FoundRow>,
    /// How many objects the search finds, all pages together; `None` if too many searches are running to count them.
    pub count: Option<ObjectCount>,
}

/// What a table shows of an object.
#[derive(Debug)]
pub struct FoundRow {
    /// Its label, if it has one.
    pub label: Option<String>,
    /// The values in each column.
    pub cells: Vec<CellValues>,
}

/// A search for objects of a Business Object. Without a filter, it finds all of them.
#[derive(Debug)]
pub struct ObjectSearch {
    /// What an object must have.
    pub filter: Option<Filter>,
    /// The order of the objects.
    pub order: Order,
    /// The cursor after which the page begins.
    pub after: Option<String>,
    /// The maximum number of objects of the page.
    pub limit: usize,
}

/// Finds objects by what the caller sees, with their values in these columns. In the order of their URIs and without a filter,
/// only their number needs a permit. What no index answers reads all objects and keeps those of the page.
///
/// # Errors
/// - `ErrorClass::Invalid` if the filter, the order or a column does not fit the Business Object
/// - `ErrorClass::Malformed` if the cursor does not fit it
/// - `ErrorClass::TooLarge` if the search would read too many objects or take too long
/// - `ErrorClass::Unavailable` if too many other searches and queries are running
pub async fn search_objects(
    gateway: &Gateway,
    by: &Caller,
    business_object: Arc<Compiled>,
    search: ObjectSearch,
    columns: Vec<String>,
) -> Result<FoundPage, GatewayError> {
    let scope = find_write_scope(gateway, by, &business_object);
    let reads_all = search.filter.is_some() || search.order != Order::default();
    let permit = if reads_all {
        Some(acquire_permit(gateway, by).await?)
    } else {
        // Only if nobody waits for it.
        gateway.query_permits.enter_queue(by.id()).try_acquire_if(|_| true)
    };
    gateway
        .read(move |gateway| {
            let visible = open_visible(gateway, scope.as_deref())?;
            let page = search.find_page(&visible, &business_object)?;
            let count = permit.map(|_permit| {
                let budget = SearchBudget::new(MAX_COUNTED_OBJECTS, COUNT_TIMEOUT);
                search::count_some(&visible, &business_object, search.filter.as_ref(), &budget)
            });
            let count = count.transpose()?;
            let mapping = &business_object.mapping;
            let columns = Columns::new(&mapping.root, columns.iter().map(String::as_str))?;
            let budget = SearchBudget::new(MAX_NESTED_OBJECTS, COUNT_TIMEOUT);
            let mut quads = SubjectQuads::default();
            let rows = page.found.iter().map(|FoundObject { uri, .. }| {
                visible.read_subject(uri.as_ref().into(), &mut quads)?;
                let values = FieldValues::from_subject(&mapping.root, &quads);
                let label = view::find_label(mapping, &values);
                let cells = match columns.read(&visible, uri, MAX_CELL_VALUES, &budget) {
                    // The page of the object has all of it.
                    Err(error) if error.class == ErrorClass::TooLarge => {
                        let cut = CellValues { texts: Vec::new(), has_more: true };
                        vec![cut; columns.as_slice().len()]
                    }
                    cells => cells?,
                };
                Ok(FoundRow { label, cells })
            });
            let rows = rows.collect::<Result<_, GatewayError>>()?;
            Ok(FoundPage { page, rows, count })
        })
        .await
}

/// Lists the objects that a search finds in the view, as the caller sees them. `next` of the page is a cursor for the search. A
/// page of large objects ends before its limit.
///
/// # Errors
/// As [`search_objects`], and `ErrorClass::TooLarge` if an object is too large to be shown.
pub async fn list_found_objects(
    gateway: &Gateway,
    by: &Caller,
    business_object: Arc<Compiled>,
    search: ObjectSearch,
) -> Result<ObjectsPage, GatewayError> {
    let scope = find_write_scope(gateway, by, &business_object);
    let permit = acquire_permit(gateway, by).await?;
    gateway
        .read(move |gateway| {
            let _permit = permit;
            let visible = open_visible(gateway, scope.as_deref())?;
            let page = search.find_page(&visible, &business_object)?;
            let shape = &business_object.mapping.root;
            let mut quads = SubjectQuads::default();
            let mut json = b"[".to_vec();
            let mut last = None;
            for found in &page.found {
                if json.len() > PAGE_BYTES {
                    break;
                }
                if last.is_some() {
                    json.push(b',');
                }
                last = Some(found);
                visible.read_subject(found.uri.as_ref().into(), &mut quads)?;
                let mut warnings = Vec::new();
                let output = ViewOutput::new(&mut json, &mut warnings);
                view::render_subject(&visible, shape, &found.uri, &quads, output)?;
            }
            json.push(b']');
            let next = last.filter(|last| page.more || page.found.last() != Some(*last));
            Ok(ObjectsPage { json, next: next.map(|last| last.cursor.clone()) })
        })
        .await
}

impl ObjectSearch {
    fn find_page(
        &self,
        visible: &VisibleObjects<'_, Snapshot>,
        business_object: &Compiled,
    ) -> Result<SearchPage, GatewayError> {
        let Self { filter, order, after, limit } = self;
        let search = Search {
            filter: filter.as_ref(),
            order: *order,
            after: after.as_deref(),
            limit: *limit,
        };
        search::find_page(visible, business_object, &search, &new_budget())
    }
}

/// Returns the limits of one search.
pub(super) fn new_budget() -> SearchBudget {
    SearchBudget::new(MAX_READ_OBJECTS, SEARCH_TIMEOUT)
}

/// The time of one search, which several share: the parts of a page. Waiting for permits does not count.
#[derive(Debug, Clone, Default)]
pub struct SharedTime {
    used: Arc<Mutex<Duration>>,
}

impl SharedTime {
    /// Runs work with the limits of one search, in the time that is left.
    pub(super) fn run<T>(&self, work: impl FnOnce(&SearchBudget) -> T) -> T {
        let used = *self.used.lock();
        let begun = Instant::now();
        let done = work(&SearchBudget::after_others(MAX_READ_OBJECTS, SEARCH_TIMEOUT, used));
        *self.used.lock() += begun.elapsed();
        done
    }
}

/// Acquires one of the permits of GraphQL queries, since a search reads as much as a query.
pub(super) async fn acquire_permit(
    gateway: &Gateway,
    by: &Caller,
) -> Result<Permit<String>, GatewayError> {
    let max_wait = gateway.settings.limits.graphql.time;
    timeout(max_wait, gateway.query_permits.acquire(by.id())).await.map_err(|_| {
        GatewayError::new(
            ErrorClass::Unavailable(Duration::from_secs(1)),
            "too many searches and queries are running, of all accounts or of this one; try again",
        )
    })
}
