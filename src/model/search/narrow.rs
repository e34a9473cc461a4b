//! Finds the candidates for a filter with the index, before any object is read.
//!
//! A source never leaves out an object that passes. It may contain objects that do not, so each candidate is tested.
use super::bounds::Bounds;
use super::filter::{Filter, Test, property};
use crate::mapping::{Property, Shape, Value};
use crate::members;
use crate::resource::Compiled;
use oxrdf::{NamedNode, Term};
use penstock_base::fault::Fault;
use penstock_store::{ReadStore, SubjectFilter};
use std::collections::BTreeSet;

/// The maximum number of objects that are collected beforehand. With more, the index is not used.
const MOST: usize = 10_000;
/// The maximum number of listings that are merged.
const MERGED: usize = 100;
/// The number of objects that are listed at a time.
const PAGE: usize = 1_000;

/// The source of the candidates, in the order of their URIs.
#[derive(Debug, Clone)]
pub(super) enum Source {
    /// These objects, ascending. Whether they are members must still be checked.
    Set(Vec<NamedNode>),
    /// The members that an index lists for this filter.
    Listing(SubjectFilter),
    /// The members that an index lists for at least one of these filters.
    Merged(Vec<SubjectFilter>),
}

impl Source {
    /// Returns a source that contains all members of a Business Object that pass `filter`.
    pub(super) fn of(
        store: &ReadStore,
        business_object: &Compiled,
        filter: Option<&Filter>,
        bounds: &Bounds,
    ) -> Result<Self, Fault> {
        let all = members::filter(&store.read(), business_object)?;
        let Some(filter) = filter else { return Ok(Self::Listing(all)) };
        let shape = &business_object.mapping.root;
        let narrow = Narrow { store, bounds };
        match narrow.clue(shape, filter)? {
            Clue::Set(set) => {
                Ok(Self::Set(set.into_iter().map(NamedNode::new_unchecked).collect()))
            }
            Clue::Having(having) => Ok(Self::Listing(all.and(having))),
            Clue::Either(each) => {
                Ok(Self::Merged(each.into_iter().map(|having| all.clone().and(having)).collect()))
            }
            Clue::None => Ok(Self::Listing(all)),
        }
    }

    /// Returns up to `limit` candidates after a URI. If they are members, also returns the sequence of the commit
    /// as of which they are.
    pub(super) fn after(
        &self,
        store: &ReadStore,
        after: Option<&str>,
        limit: usize,
    ) -> Result<(Vec<NamedNode>, Option<u64>), Fault> {
        match self {
            Self::Set(all) => {
                let from =
                    all.partition_point(|uri| after.is_some_and(|after| uri.as_str() <= after));
                Ok((all.iter().skip(from).take(limit).cloned().collect(), None))
            }
            Self::Listing(filter) => {
                let (uris, seen) = store.subjects(filter, after, limit)?;
                Ok((uris, Some(seen)))
            }
            // The first candidates of all listings are among the first of each.
            Self::Merged(filters) => {
                let (mut merged, mut oldest) = (BTreeSet::new(), u64::MAX);
                for filter in filters {
                    let (uris, seen) = store.subjects(filter, after, limit)?;
                    merged.extend(uris.into_iter().map(NamedNode::into_string));
                    oldest = oldest.min(seen);
                }
                let uris = merged.into_iter().take(limit).map(NamedNode::new_unchecked);
                Ok((uris.collect(), Some(oldest)))
            }
        }
    }
}

/// What the index knows about the objects that pass a filter.
enum Clue {
    /// They are among these.
    Set(BTreeSet<String>),
    /// They have all of these properties and values.
    Having(Vec<(NamedNode, Term)>),
    /// They have all properties and values of at least one of these lists.
    Either(Vec<Vec<(NamedNode, Term)>>),
    /// The index does not help.
    None,
}

trait And {
    fn and(self, having: Vec<(NamedNode, Term)>) -> Self;
}

impl And for SubjectFilter {
    fn and(mut self, having: Vec<(NamedNode, Term)>) -> Self {
        self.having.extend(having);
        self
    }
}

struct Narrow<'n> {
    store: &'n ReadStore,
    bounds: &'n Bounds,
}

impl Narrow<'_> {
    fn clue(&self, shape: &Shape, filter: &Filter) -> Result<Clue, Fault> {
        match filter {
            Filter::All(filters) => self.all(shape, filters),
            Filter::Any(filters) => self.any(shape, filters),
            Filter::Uri(Test::In(uris)) => Ok(Clue::Set(uris.iter().cloned().collect())),
            Filter::Field { field, test: Test::In(values) } => match property(shape, *field)?.1 {
                Property { predicate, value: Value::Resource, .. } => {
                    Ok(linked(predicate, values.iter().map(String::as_str)))
                }
                _ => Ok(Clue::None),
            },
            Filter::Nested { field, filter } => {
                let Property { predicate, value: Value::Object(nested), .. } =
                    property(shape, *field)?.1
                else {
                    return Ok(Clue::None);
                };
                let Some(nested) = self.set(nested, filter)? else { return Ok(Clue::None) };
                if nested.len() <= MERGED {
                    return Ok(linked(predicate, nested.iter().map(String::as_str)));
                }
                let links = nested.iter().map(|uri| vec![link(predicate, uri)]);
                Ok(self.gather(links)?.map_or(Clue::None, Clue::Set))
            }
            Filter::Not(_) | Filter::Uri(_) | Filter::Field { .. } => Ok(Clue::None),
        }
    }

    fn all(&self, shape: &Shape, filters: &[Filter]) -> Result<Clue, Fault> {
        let mut best = Clue::None;
        for filter in filters {
            best = match (best, self.clue(shape, filter)?) {
                (Clue::Set(a), Clue::Set(b)) => Clue::Set(&a & &b),
                (Clue::Set(set), _) | (_, Clue::Set(set)) => Clue::Set(set),
                (Clue::Having(mut a), Clue::Having(b)) => {
                    a.extend(b);
                    Clue::Having(a)
                }
                (Clue::Having(having), Clue::Either(mut each))
                | (Clue::Either(mut each), Clue::Having(having)) => {
                    for one in &mut each {
                        one.extend(having.iter().cloned());
                    }
                    Clue::Either(each)
                }
                (Clue::Either(a), Clue::Either(b)) => {
                    Clue::Either(if b.len() < a.len() { b } else { a })
                }
                (Clue::None, clue) | (clue, Clue::None) => clue,
            };
        }
        Ok(best)
    }

    fn any(&self, shape: &Shape, filters: &[Filter]) -> Result<Clue, Fault> {
        let (mut set, mut each) = (BTreeSet::new(), Vec::new());
        for filter in filters {
            match self.clue(shape, filter)? {
                Clue::Set(one) => set.extend(one),
                Clue::Having(having) => each.push(having),
                Clue::Either(more) => each.extend(more),
                Clue::None => return Ok(Clue::None),
            }
            if set.len() > MOST || each.len() > MERGED {
                return Ok(Clue::None);
            }
        }
        if each.is_empty() {
            return Ok(Clue::Set(set));
        }
        if set.is_empty() {
            return Ok(Clue::Either(each));
        }
        let Some(gathered) = self.gather(each.into_iter())? else { return Ok(Clue::None) };
        set.extend(gathered);
        Ok(Clue::Set(set))
    }

    /// Returns all objects of a shape, members or not, that may pass a filter. `None` if the index does not help, or
    /// there are more than [`MOST`].
    fn set(&self, shape: &Shape, filter: &Filter) -> Result<Option<BTreeSet<String>>, Fault> {
        match self.clue(shape, filter)? {
            Clue::Set(set) => Ok(Some(set)),
            Clue::Having(having) => self.gather(std::iter::once(having)),
            Clue::Either(each) => self.gather(each.into_iter()),
            Clue::None => Ok(None),
        }
    }

    fn gather(
        &self,
        each: impl Iterator<Item = Vec<(NamedNode, Term)>>,
    ) -> Result<Option<BTreeSet<String>>, Fault> {
        let mut gathered = BTreeSet::new();
        for having in each {
            let filter = SubjectFilter { graph: None, having };
            let mut after: Option<String> = None;
            loop {
                self.bounds.check_time()?;
                let (page, _) = self.store.subjects(&filter, after.as_deref(), PAGE)?;
                let whole = page.len() < PAGE;
                gathered.extend(page.into_iter().map(NamedNode::into_string));
                if gathered.len() > MOST {
                    return Ok(None);
                }
                if whole {
                    break;
                }
                after = gathered.last().cloned();
            }
        }
        Ok(Some(gathered))
    }
}

fn link(predicate: &NamedNode, uri: &str) -> (NamedNode, Term) {
    (predicate.clone(), NamedNode::new_unchecked(uri).into())
}

/// Describes the objects that have one of `values` under a property.
fn linked<'v>(predicate: &NamedNode, values: impl ExactSizeIterator<Item = &'v str>) -> Clue {
    if values.len() > MERGED {
        return Clue::None;
    }
    let mut each: Vec<_> = values.map(|value| vec![link(predicate, value)]).collect();
    match each.len() {
        1 => Clue::Having(each.swap_remove(0)),
        _ => Clue::Either(each),
    }
}

/// Returns the objects, members or not, that refer to one of `uris` with a property. `None` if there are more than
/// [`MOST`].
pub(super) fn leading_to(
    store: &ReadStore,
    bounds: &Bounds,
    predicate: &NamedNode,
    uris: &BTreeSet<String>,
) -> Result<Option<BTreeSet<String>>, Fault> {
    Narrow { store, bounds }.gather(uris.iter().map(|uri| vec![link(predicate, uri)]))
}
