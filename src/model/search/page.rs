//! Finds a page of objects, and counts objects.
use super::budget::SearchBudget;
use super::filter::Filter;
use super::order::{ListPosition, Order};
use super::page_search::PageSearch;
use crate::resource::Compiled;
use oxrdf::NamedNode;
use penstock_base::error::{ErrorClass, GatewayError};
use penstock_store::Read;

/// The parameters of a search.
#[derive(Debug, Clone, Copy, Default)]
pub struct Search<'s> {
    /// The filter that an object must pass.
    pub filter: Option<&'s Filter>,
    /// The order of the objects.
    pub order: Order,
    /// The cursor after which the page begins.
    pub after: Option<&'s str>,
    /// The maximum number of objects on the page.
    pub limit: usize,
}

/// A page of objects.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SearchPage {
    /// The objects, in order.
    pub found: Vec<FoundObject>,
    /// Whether there are more objects after this page.
    pub more: bool,
}

/// An object that was found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FoundObject {
    /// Its URI.
    pub uri: NamedNode,
    /// The cursor for the next page, if this is the last object of its page.
    pub cursor: String,
}

/// Returns the objects of a Business Object that pass the filter, in order. Blocking.
///
/// # Errors
/// - `ErrorClass::Invalid` if the filter or the order does not fit the Business Object
/// - `ErrorClass::Malformed` if the cursor does not fit it
/// - `ErrorClass::TooLarge` if the search would examine more than the bounds allow
pub fn find_page(
    read: &dyn Read,
    business_object: &Compiled,
    search: &Search<'_>,
    bounds: &SearchBudget,
) -> Result<SearchPage, GatewayError> {
    let shape = &business_object.mapping.root;
    let kind = search.order.value_kind(shape)?;
    let after =
        search.after.map(|cursor| ListPosition::from_cursor(cursor, shape, search.order, kind));
    let after = after.transpose()?;
    let run = PageSearch::new(read, business_object, search.filter, bounds)?;
    let limit = search.limit.saturating_add(1);
    let mut places = if kind.is_none() && !search.order.descending {
        run.list_ascending(search.order, after.map(|place| place.uri), limit)?
    } else {
        match run.list_by_values(search.order, after.as_ref(), limit)? {
            Some(places) => places,
            None => run.list_sorted(search.order, after.as_ref(), limit)?,
        }
    };
    let more = places.len() > search.limit;
    places.truncate(search.limit);
    let found = places.into_iter().map(|place| FoundObject {
        cursor: place.to_cursor(shape),
        uri: NamedNode::new_unchecked(place.uri),
    });
    Ok(SearchPage { found: found.collect(), more })
}

/// Counts the objects of a Business Object that pass the filter. Blocking.
///
/// # Errors
/// As [`find_page`].
pub fn count_objects(
    read: &dyn Read,
    business_object: &Compiled,
    filter: Option<&Filter>,
    bounds: &SearchBudget,
) -> Result<u64, GatewayError> {
    let run = PageSearch::new(read, business_object, filter, bounds)?;
    let mut count = 0;
    run.count_passing(&mut count)?;
    Ok(count)
}

/// A number of objects, which may be incomplete.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ObjectCount {
    /// How many were counted.
    pub counted: u64,
    /// Whether these are all.
    pub is_complete: bool,
}

/// Counts the objects of a Business Object that pass the filter, as far as the bounds allow. Blocking.
///
/// # Errors
/// As [`find_page`], but not `ErrorClass::TooLarge`.
pub fn count_some(
    read: &dyn Read,
    business_object: &Compiled,
    filter: Option<&Filter>,
    bounds: &SearchBudget,
) -> Result<ObjectCount, GatewayError> {
    let mut counted = 0;
    let run = PageSearch::new(read, business_object, filter, bounds);
    match run.and_then(|run| run.count_passing(&mut counted)) {
        Ok(()) => Ok(ObjectCount { counted, is_complete: true }),
        Err(error) if error.class == ErrorClass::TooLarge => {
            Ok(ObjectCount { counted, is_complete: false })
        }
        Err(error) => Err(error),
    }
}
