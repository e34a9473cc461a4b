//! Finds the candidates for a filter with the index, before any object is read.
//!
//! A source never leaves out an object that passes. It may contain objects that do not, so each candidate is tested.
use super::budget::SearchBudget;
use super::filter::{Filter, ValueTest, find_property};
use crate::mapping::{Property, Shape, Value};
use crate::members;
use crate::resource::Compiled;
use oxrdf::{NamedNode, Term};
use penstock_base::error::GatewayError;
use penstock_store::{Read, SubjectFilter};
use std::collections::BTreeSet;

/// The maximum number of objects that are collected beforehand. With more, the index is not used.
const MAX_COLLECTED_OBJECTS: usize = 10_000;
/// The maximum number of listings that are merged.
const MAX_MERGED_LISTINGS: usize = 100;
/// The number of objects that are listed at a time.
const LISTED_PER_PAGE: usize = 1_000;

/// The source of the candidates, in the order of their URIs.
#[derive(Debug, Clone)]
pub(super) enum CandidateSource {
    /// These objects, ascending. Whether they are members must still be checked.
    Set(Vec<NamedNode>),
    /// The members that an index lists for this filter.
    Listing(SubjectFilter),
    /// The members that an index lists for at least one of these filters.
    Merged(Vec<SubjectFilter>),
}

impl CandidateSource {
    /// Returns a source that contains all members of a Business Object that pass `filter`.
    pub(super) fn for_filter(
        read: &impl Read,
        business_object: &Compiled,
        filter: Option<&Filter>,
        bounds: &SearchBudget,
    ) -> Result<Self, GatewayError> {
        let all = members::build_member_filter(read, business_object)?;
        let Some(filter) = filter else { return Ok(Self::Listing(all)) };
        let shape = &business_object.mapping.root;
        let narrow = ClueFinder { read, budget: bounds };
        match narrow.find_clue(shape, filter)? {
            IndexClue::Set(set) => {
                Ok(Self::Set(set.into_iter().map(NamedNode::new_unchecked).collect()))
            }
            IndexClue::Having(having) => Ok(Self::Listing(all.with_conditions(having))),
            IndexClue::Either(each) => Ok(Self::Merged(
                each.into_iter().map(|having| all.clone().with_conditions(having)).collect(),
            )),
            IndexClue::None => Ok(Self::Listing(all)),
        }
    }

    /// Returns whether all candidates are members.
    pub(super) fn has_only_members(&self) -> bool {
        !matches!(self, Self::Set(_))
    }

    /// Returns up to `limit` candidates after a URI.
    pub(super) fn list_after(
        &self,
        read: &impl Read,
        after: Option<&str>,
        limit: usize,
    ) -> Result<Vec<NamedNode>, GatewayError> {
        match self {
            Self::Set(all) => {
                let from =
                    all.partition_point(|uri| after.is_some_and(|after| uri.as_str() <= after));
                Ok(all.iter().skip(from).take(limit).cloned().collect())
            }
            Self::Listing(filter) => Ok(members::list_filtered(read, filter, after, limit)?),
            // The first candidates of all listings are among the first of each.
            Self::Merged(filters) => {
                let mut merged = BTreeSet::new();
                for filter in filters {
                    let uris = members::list_filtered(read, filter, after, limit)?;
                    merged.extend(uris.into_iter().map(NamedNode::into_string));
                }
                Ok(merged.into_iter().take(limit).map(NamedNode::new_unchecked).collect())
            }
        }
    }
}

/// What the index knows about the objects that pass a filter.
enum IndexClue {
    /// They are among these.
    Set(BTreeSet<String>),
    /// They have all of these properties and values.
    Having(Vec<(NamedNode, Term)>),
    /// They have all properties and values of at least one of these lists.
    Either(Vec<Vec<(NamedNode, Term)>>),
    /// The index does not help.
    None,
}

trait WithConditions {
    fn with_conditions(self, having: Vec<(NamedNode, Term)>) -> Self;
}

impl WithConditions for SubjectFilter {
    fn with_conditions(mut self, having: Vec<(NamedNode, Term)>) -> Self {
        self.having.extend(having);
        self
    }
}

struct ClueFinder<'n, R> {
    read: &'n R,
    budget: &'n SearchBudget,
}

impl<R: Read> ClueFinder<'_, R> {
    fn find_clue(&self, shape: &Shape, filter: &Filter) -> Result<IndexClue, GatewayError> {
        match filter {
            Filter::All(filters) => self.combine_all(shape, filters),
            Filter::Any(filters) => self.combine_any(shape, filters),
            Filter::Uri(ValueTest::In(uris)) => Ok(IndexClue::Set(uris.iter().cloned().collect())),
            Filter::Field { field, test: ValueTest::In(values) } => {
                match find_property(shape, *field)?.1 {
                    // Its values are in nodes of a list.
                    Property { is_ordered: true, .. } => Ok(IndexClue::None),
                    Property { predicate, value: Value::Resource, codes: Some(codes), .. } => {
                        let iris = values.iter().flat_map(|text| codes.list_iris_shown_as(text));
                        let iris: BTreeSet<String> = iris.map(NamedNode::into_string).collect();
                        Ok(clue_for_links(predicate, iris.iter().map(String::as_str)))
                    }
                    Property { predicate, value: Value::Resource, .. } => {
                        Ok(clue_for_links(predicate, values.iter().map(String::as_str)))
                    }
                    _ => Ok(IndexClue::None),
                }
            }
            Filter::Nested { field, filter } => {
                let Property { predicate, value: Value::Object(nested), is_ordered: false, .. } =
                    find_property(shape, *field)?.1
                else {
                    return Ok(IndexClue::None);
                };
                let Some(nested) = self.collect_set(nested, filter)? else {
                    return Ok(IndexClue::None);
                };
                if nested.len() <= MAX_MERGED_LISTINGS {
                    return Ok(clue_for_links(predicate, nested.iter().map(String::as_str)));
                }
                let links = nested.iter().map(|uri| vec![link_condition(predicate, uri)]);
                Ok(self.collect_subjects(links)?.map_or(IndexClue::None, IndexClue::Set))
            }
            Filter::Not(_) | Filter::Uri(_) | Filter::Field { .. } | Filter::Text { .. } => {
                Ok(IndexClue::None)
            }
        }
    }

    fn combine_all(&self, shape: &Shape, filters: &[Filter]) -> Result<IndexClue, GatewayError> {
        let mut best = IndexClue::None;
        for filter in filters {
            best = match (best, self.find_clue(shape, filter)?) {
                (IndexClue::Set(a), IndexClue::Set(b)) => IndexClue::Set(&a & &b),
                (IndexClue::Set(set), _) | (_, IndexClue::Set(set)) => IndexClue::Set(set),
                (IndexClue::Having(mut a), IndexClue::Having(b)) => {
                    a.extend(b);
                    IndexClue::Having(a)
                }
                (IndexClue::Having(having), IndexClue::Either(mut each))
                | (IndexClue::Either(mut each), IndexClue::Having(having)) => {
                    for one in &mut each {
                        one.extend(having.iter().cloned());
                    }
                    IndexClue::Either(each)
                }
                (IndexClue::Either(a), IndexClue::Either(b)) => {
                    IndexClue::Either(if b.len() < a.len() { b } else { a })
                }
                (IndexClue::None, clue) | (clue, IndexClue::None) => clue,
            };
        }
        Ok(best)
    }

    fn combine_any(&self, shape: &Shape, filters: &[Filter]) -> Result<IndexClue, GatewayError> {
        let (mut set, mut each) = (BTreeSet::new(), Vec::new());
        for filter in filters {
            match self.find_clue(shape, filter)? {
                IndexClue::Set(one) => set.extend(one),
                IndexClue::Having(having) => each.push(having),
                IndexClue::Either(more) => each.extend(more),
                IndexClue::None => return Ok(IndexClue::None),
            }
            if set.len() > MAX_COLLECTED_OBJECTS || each.len() > MAX_MERGED_LISTINGS {
                return Ok(IndexClue::None);
            }
        }
        if each.is_empty() {
            return Ok(IndexClue::Set(set));
        }
        if set.is_empty() {
            return Ok(IndexClue::Either(each));
        }
        let Some(gathered) = self.collect_subjects(each.into_iter())? else {
            return Ok(IndexClue::None);
        };
        set.extend(gathered);
        Ok(IndexClue::Set(set))
    }

    /// Returns all objects of a shape, members or not, that may pass a filter. `None` if the index does not help, or
    /// there are more than [`MAX_COLLECTED_OBJECTS`].
    fn collect_set(
        &self,
        shape: &Shape,
        filter: &Filter,
    ) -> Result<Option<BTreeSet<String>>, GatewayError> {
        match self.find_clue(shape, filter)? {
            IndexClue::Set(set) => Ok(Some(set)),
            IndexClue::Having(having) => self.collect_subjects(std::iter::once(having)),
            IndexClue::Either(each) => self.collect_subjects(each.into_iter()),
            IndexClue::None => Ok(None),
        }
    }

    fn collect_subjects(
        &self,
        each: impl Iterator<Item = Vec<(NamedNode, Term)>>,
    ) -> Result<Option<BTreeSet<String>>, GatewayError> {
        let mut gathered = BTreeSet::new();
        for having in each {
            let filter = SubjectFilter { graph: None, having };
            let mut after: Option<String> = None;
            loop {
                self.budget.check_time()?;
                let page = self.read.list_subjects(&filter, after.as_deref(), LISTED_PER_PAGE)?;
                let is_last = page.len() < LISTED_PER_PAGE;
                gathered.extend(page.into_iter().map(NamedNode::into_string));
                if gathered.len() > MAX_COLLECTED_OBJECTS {
                    return Ok(None);
                }
                if is_last {
                    break;
                }
                after = gathered.last().cloned();
            }
        }
        Ok(Some(gathered))
    }
}

fn link_condition(predicate: &NamedNode, uri: &str) -> (NamedNode, Term) {
    (predicate.clone(), NamedNode::new_unchecked(uri).into())
}

/// Describes the objects that have one of `values` under a property.
fn clue_for_links<'v>(
    predicate: &NamedNode,
    values: impl ExactSizeIterator<Item = &'v str>,
) -> IndexClue {
    if values.len() > MAX_MERGED_LISTINGS {
        return IndexClue::None;
    }
    let mut each: Vec<_> = values.map(|value| vec![link_condition(predicate, value)]).collect();
    match each.len() {
        1 => IndexClue::Having(each.swap_remove(0)),
        _ => IndexClue::Either(each),
    }
}

/// Returns the objects, members or not, that refer to one of `uris` with a property. `None` if there are more than
/// [`MAX_COLLECTED_OBJECTS`].
pub(super) fn find_subjects_linking_to(
    read: &impl Read,
    bounds: &SearchBudget,
    predicate: &NamedNode,
    uris: &BTreeSet<String>,
) -> Result<Option<BTreeSet<String>>, GatewayError> {
    ClueFinder { read, budget: bounds }
        .collect_subjects(uris.iter().map(|uri| vec![link_condition(predicate, uri)]))
}
