//! Finds a page of objects, and counts objects.
use super::budget::SearchBudget;
use super::filter::{Filter, find_property};
use super::matching::{Matcher, RequiredQuads, TestedObject};
use super::narrow::CandidateSource;
use super::order::{ListPosition, Order, ValueKind};
use crate::members;
use crate::resource::Compiled;
use crate::view::{FieldValues, NestingPath};
use oxrdf::NamedNode;
use penstock_base::error::GatewayError;
use penstock_store::{ReadStore, Reader};
use std::collections::BTreeSet;

/// The maximum number of candidates that are listed at a time.
const MAX_LISTED_CANDIDATES: usize = 1_000;
/// The number of candidates read with one reader. Commits wait for a reader.
const CANDIDATES_PER_READER: usize = 32;

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
    store: &ReadStore,
    business_object: &Compiled,
    search: &Search<'_>,
    bounds: &SearchBudget,
) -> Result<SearchPage, GatewayError> {
    let shape = &business_object.mapping.root;
    let kind = search.order.value_kind(shape)?;
    let after =
        search.after.map(|cursor| ListPosition::from_cursor(cursor, shape, search.order, kind));
    let after = after.transpose()?;
    let run = PageSearch::new(store, business_object, search.filter, bounds)?;
    let mut places = if kind.is_none() && !search.order.descending {
        run.list_ascending(
            search.order,
            after.map(|place| place.uri),
            search.limit.saturating_add(1),
        )?
    } else {
        run.list_sorted(search.order, kind, after.as_ref(), search.limit.saturating_add(1))?
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
    store: &ReadStore,
    business_object: &Compiled,
    filter: Option<&Filter>,
    bounds: &SearchBudget,
) -> Result<u64, GatewayError> {
    let run = PageSearch::new(store, business_object, filter, bounds)?;
    let mut count = 0;
    run.for_each_passing(None, MAX_LISTED_CANDIDATES, &mut |_| {
        count += 1;
        Ok(true)
    })?;
    Ok(count)
}

/// A running search.
struct PageSearch<'r> {
    store: &'r ReadStore,
    business_object: &'r Compiled,
    source: CandidateSource,
    matcher: Option<(Matcher, RequiredQuads)>,
    budget: &'r SearchBudget,
}

/// The function that is called with each object that passes. It returns whether to continue.
type PassedCallback<'v> = dyn FnMut(PassedObject<'_>) -> Result<bool, GatewayError> + 'v;

/// An object that passes, and the reader with which it was tested.
struct PassedObject<'p> {
    uri: &'p NamedNode,
    read: &'p Reader<'p>,
}

impl<'r> PageSearch<'r> {
    fn new(
        store: &'r ReadStore,
        business_object: &'r Compiled,
        filter: Option<&Filter>,
        bounds: &'r SearchBudget,
    ) -> Result<Self, GatewayError> {
        let shape = &business_object.mapping.root;
        let matcher = filter.map(|filter| Matcher::new(filter, shape)).transpose()?;
        let matcher = matcher.map(|matcher| {
            let needs = RequiredQuads::for_fields(shape, &matcher.own_fields());
            (matcher, needs)
        });
        let source = CandidateSource::for_filter(store, business_object, filter, bounds)?;
        Ok(Self { store, business_object, source, matcher, budget: bounds })
    }

    /// Returns the first `limit` objects that pass, by URI.
    fn list_ascending(
        &self,
        order: Order,
        after: Option<String>,
        limit: usize,
    ) -> Result<Vec<ListPosition>, GatewayError> {
        let mut places = Vec::new();
        if limit == 0 {
            return Ok(places);
        }
        self.for_each_passing(after, limit, &mut |passed| {
            places.push(ListPosition::at_value(order, None, None, passed.uri.as_str()));
            Ok(places.len() < limit)
        })?;
        Ok(places)
    }

    /// Returns the first `limit` objects that pass, in an order that no index has. It examines all objects and
    /// keeps the first ones.
    fn list_sorted(
        &self,
        order: Order,
        kind: Option<ValueKind>,
        after: Option<&ListPosition>,
        limit: usize,
    ) -> Result<Vec<ListPosition>, GatewayError> {
        let shape = &self.business_object.mapping.root;
        let needs = RequiredQuads::for_fields(shape, &order.field.into_iter().collect());
        let mut first: BTreeSet<ListPosition> = BTreeSet::new();
        self.for_each_passing(None, MAX_LISTED_CANDIDATES, &mut |passed| {
            let uri = passed.uri.as_str();
            let place = match (order.field, kind) {
                (Some(field), Some(kind)) => {
                    let quads = self.new_tested(passed.read, passed.uri).read_quads(&needs)?;
                    let (_, property) = find_property(shape, field)?;
                    let values =
                        FieldValues::from_quads(shape, &quads).collect_shown(field, property);
                    ListPosition::of_object(order, kind, &values, uri)
                }
                _ => ListPosition::at_value(order, None, None, uri),
            };
            let is_after = after.is_none_or(|after| place > *after);
            let is_first = first.len() < limit || first.last().is_some_and(|last| place < *last);
            if is_after && is_first {
                first.insert(place);
                if first.len() > limit {
                    first.pop_last();
                }
            }
            Ok(true)
        })?;
        Ok(first.into_iter().collect())
    }

    fn new_tested<'t>(
        &'t self,
        read: &'t Reader<'t>,
        uri: &'t NamedNode,
    ) -> TestedObject<'t, Reader<'t>> {
        TestedObject {
            read,
            shape: &self.business_object.mapping.root,
            path: NestingPath { uri, above: None },
            budget: self.budget,
        }
    }

    /// Calls `visit` with every member after a URI that passes, in the order of URIs, until it returns false. `wanted`
    /// is about how many objects the caller needs; it decides how many candidates are listed at first.
    fn for_each_passing(
        &self,
        mut after: Option<String>,
        wanted: usize,
        visit: &mut PassedCallback<'_>,
    ) -> Result<(), GatewayError> {
        let mut limit = wanted.clamp(CANDIDATES_PER_READER, MAX_LISTED_CANDIDATES);
        loop {
            self.budget.check_time()?;
            let (uris, seen) = self.source.list_after(self.store, after.as_deref(), limit)?;
            for chunk in uris.chunks(CANDIDATES_PER_READER) {
                self.budget.count_examined(chunk.len())?;
                // A new reader for each chunk, so that commits do not wait for the whole page.
                let read = self.store.read();
                let are_members = seen == Some(read.sequence());
                for uri in chunk {
                    if !are_members && !members::is_member(&read, self.business_object, uri)? {
                        continue;
                    }
                    let passes = match &self.matcher {
                        Some((matcher, needs)) => {
                            self.new_tested(&read, uri).passes_filter(matcher, needs)?
                        }
                        None => true,
                    };
                    if passes && !visit(PassedObject { uri, read: &read })? {
                        return Ok(());
                    }
                }
            }
            match uris.into_iter().last() {
                Some(last) => after = Some(last.into_string()),
                None => return Ok(()),
            }
            // Too few of them passed: list more the next time.
            limit = (limit * 2).min(MAX_LISTED_CANDIDATES);
        }
    }
}
