//! Finds a page of objects, and counts objects.
use super::bounds::Bounds;
use super::filter::{Filter, property};
use super::matching::{Matcher, Needs, Tested};
use super::narrow::Source;
use super::order::{Kind, Order, Place};
use crate::members;
use crate::resource::Compiled;
use crate::view::{Owned, Path};
use oxrdf::NamedNode;
use penstock_base::fault::Fault;
use penstock_store::{ReadStore, Reader};
use std::collections::BTreeSet;

/// The maximum number of candidates that are listed at a time.
const LISTED: usize = 1_000;
/// The number of candidates read with one reader. Commits wait for a reader.
const READ: usize = 32;

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
pub struct Page {
    /// The objects, in order.
    pub found: Vec<Found>,
    /// Whether there are more objects after this page.
    pub more: bool,
}

/// An object that was found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Found {
    /// Its URI.
    pub uri: NamedNode,
    /// The cursor for the next page, if this is the last object of its page.
    pub cursor: String,
}

/// Returns the objects of a Business Object that pass the filter, in order. Blocking.
///
/// # Errors
/// - `Kind::Invalid` if the filter or the order does not fit the Business Object
/// - `Kind::Malformed` if the cursor does not fit it
/// - `Kind::TooLarge` if the search would examine more than the bounds allow
pub fn page(
    store: &ReadStore,
    business_object: &Compiled,
    search: &Search<'_>,
    bounds: &Bounds,
) -> Result<Page, Fault> {
    let shape = &business_object.mapping.root;
    let kind = search.order.kind(shape)?;
    let after = search.after.map(|cursor| Place::read(cursor, shape, search.order, kind));
    let after = after.transpose()?;
    let run = Run::new(store, business_object, search.filter, bounds)?;
    let mut places = if kind.is_none() && !search.order.descending {
        run.ascending(search.order, after.map(|place| place.uri), search.limit.saturating_add(1))?
    } else {
        run.sorted(search.order, kind, after.as_ref(), search.limit.saturating_add(1))?
    };
    let more = places.len() > search.limit;
    places.truncate(search.limit);
    let found = places.into_iter().map(|place| Found {
        cursor: place.cursor(shape),
        uri: NamedNode::new_unchecked(place.uri),
    });
    Ok(Page { found: found.collect(), more })
}

/// Counts the objects of a Business Object that pass the filter. Blocking.
///
/// # Errors
/// As [`page`].
pub fn count(
    store: &ReadStore,
    business_object: &Compiled,
    filter: Option<&Filter>,
    bounds: &Bounds,
) -> Result<u64, Fault> {
    let run = Run::new(store, business_object, filter, bounds)?;
    let mut count = 0;
    run.each(None, LISTED, &mut |_| {
        count += 1;
        Ok(true)
    })?;
    Ok(count)
}

/// A running search.
struct Run<'r> {
    store: &'r ReadStore,
    business_object: &'r Compiled,
    source: Source,
    matcher: Option<(Matcher, Needs)>,
    bounds: &'r Bounds,
}

/// The function that is called with each object that passes. It returns whether to continue.
type Visit<'v> = dyn FnMut(Passed<'_>) -> Result<bool, Fault> + 'v;

/// An object that passes, and the reader with which it was tested.
struct Passed<'p> {
    uri: &'p NamedNode,
    read: &'p Reader<'p>,
}

impl<'r> Run<'r> {
    fn new(
        store: &'r ReadStore,
        business_object: &'r Compiled,
        filter: Option<&Filter>,
        bounds: &'r Bounds,
    ) -> Result<Self, Fault> {
        let shape = &business_object.mapping.root;
        let matcher = filter.map(|filter| Matcher::new(filter, shape)).transpose()?;
        let matcher = matcher.map(|matcher| {
            let needs = Needs::of(shape, &matcher.fields());
            (matcher, needs)
        });
        let source = Source::of(store, business_object, filter, bounds)?;
        Ok(Self { store, business_object, source, matcher, bounds })
    }

    /// Returns the first `limit` objects that pass, by URI.
    fn ascending(
        &self,
        order: Order,
        after: Option<String>,
        limit: usize,
    ) -> Result<Vec<Place>, Fault> {
        let mut places = Vec::new();
        if limit == 0 {
            return Ok(places);
        }
        self.each(after, limit, &mut |passed| {
            places.push(Place::at(order, None, None, passed.uri.as_str()));
            Ok(places.len() < limit)
        })?;
        Ok(places)
    }

    /// Returns the first `limit` objects that pass, in an order that no index has. It examines all objects and
    /// keeps the first ones.
    fn sorted(
        &self,
        order: Order,
        kind: Option<Kind>,
        after: Option<&Place>,
        limit: usize,
    ) -> Result<Vec<Place>, Fault> {
        let shape = &self.business_object.mapping.root;
        let needs = Needs::of(shape, &order.field.into_iter().collect());
        let mut first: BTreeSet<Place> = BTreeSet::new();
        self.each(None, LISTED, &mut |passed| {
            let uri = passed.uri.as_str();
            let place = match (order.field, kind) {
                (Some(field), Some(kind)) => {
                    let quads = self.tested(passed.read, passed.uri).quads(&needs)?;
                    let (_, property) = property(shape, field)?;
                    let values = Owned::of_quads(shape, &quads).shown(field, property);
                    Place::of(order, kind, &values, uri)
                }
                _ => Place::at(order, None, None, uri),
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

    fn tested<'t>(&'t self, read: &'t Reader<'t>, uri: &'t NamedNode) -> Tested<'t, Reader<'t>> {
        Tested {
            read,
            shape: &self.business_object.mapping.root,
            path: Path { uri, above: None },
            bounds: self.bounds,
        }
    }

    /// Calls `visit` with every member after a URI that passes, in the order of URIs, until it returns false.
    /// About `wanted` objects are needed.
    fn each(
        &self,
        mut after: Option<String>,
        wanted: usize,
        visit: &mut Visit<'_>,
    ) -> Result<(), Fault> {
        let mut limit = wanted.clamp(READ, LISTED);
        loop {
            self.bounds.check_time()?;
            let (uris, seen) = self.source.after(self.store, after.as_deref(), limit)?;
            for some in uris.chunks(READ) {
                self.bounds.look(some.len())?;
                // A new reader for each chunk, so that commits do not wait for the whole page.
                let read = self.store.read();
                let belong = seen == Some(read.sequence());
                for uri in some {
                    if !belong && !members::contains(&read, self.business_object, uri)? {
                        continue;
                    }
                    let passes = match &self.matcher {
                        Some((matcher, needs)) => self.tested(&read, uri).passes(matcher, needs)?,
                        None => true,
                    };
                    if passes && !visit(Passed { uri, read: &read })? {
                        return Ok(());
                    }
                }
            }
            match uris.into_iter().last() {
                Some(last) => after = Some(last.into_string()),
                None => return Ok(()),
            }
            // Too few of them passed: read more the next time.
            limit = (limit * 2).min(LISTED);
        }
    }
}
