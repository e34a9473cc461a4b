//! Finds the candidates for a filter with the index, before any object is read.
//!
//! A source never leaves out an object that passes. It may contain objects that do not, so each candidate is tested.
use super::budget::SearchBudget;
use super::clue::{ClueFinder, IndexClue, ValueClue};
use super::filter::{Filter, ValueTest};
use crate::mapping::Shape;
use crate::members;
use oxrdf::{NamedNode, Term};
use penstock_base::error::GatewayError;
use penstock_store::{ListedSubject, Read, SubjectFilter};
use std::collections::BTreeSet;
use std::time::Instant;

/// The number of values up to which the subjects are collected by their names.
const MAX_NAMED_SUBJECTS: u64 = if cfg!(test) { 2 } else { 64 };
/// The maximum number of ranges that are read again for each page of a listing.
const MAX_LISTED_RANGES: usize = 16;

/// The source of the candidates, in the order of their URIs.
#[derive(Debug, Clone)]
pub(super) enum CandidateSource {
    /// These objects, ascending. Whether they are members must still be checked.
    Set(Vec<NamedNode>),
    /// The members that an index lists for this filter.
    Listing(SubjectFilter),
    /// The members that an index lists for at least one of these filters.
    Merged(Vec<SubjectFilter>),
    /// The members that an index lists for this filter, as far as their URIs begin with this text.
    Prefixed(SubjectFilter, String),
}

impl CandidateSource {
    /// Returns a source that contains all members that pass `filter`. `all` is the filter of all members, which are of this
    /// shape.
    pub(super) fn for_filter(
        read: &dyn Read,
        shape: &Shape,
        all: &SubjectFilter,
        filter: Option<&Filter>,
        bounds: &SearchBudget,
    ) -> Result<Self, GatewayError> {
        let Some(filter) = filter else { return Ok(Self::Listing(all.clone())) };
        let narrow = ClueFinder { read, budget: bounds };
        let mut having_values = Vec::new();
        let having = match narrow.find_clue(shape, filter)? {
            IndexClue::Set(set) => return Ok(Self::from_set(set)),
            IndexClue::Values(ValueClue { ranges, estimate })
                if estimate > MAX_NAMED_SUBJECTS && ranges.len() <= MAX_LISTED_RANGES =>
            {
                having_values = ranges;
                Vec::new()
            }
            IndexClue::Values(values) => match narrow.collect_values(&values)? {
                Some(set) => return Ok(Self::from_set(set)),
                None => Vec::new(),
            },
            IndexClue::Having(having) => having,
            IndexClue::Either(each) => {
                let filters = each.into_iter().map(|having| all.clone().with_conditions(having));
                return Ok(Self::Merged(filters.collect()));
            }
            IndexClue::None => Vec::new(),
        };
        let listing = SubjectFilter { having_values, ..all.clone().with_conditions(having) };
        Ok(match find_uri_prefix(filter) {
            Some(prefix) => Self::Prefixed(listing, prefix.to_owned()),
            None => Self::Listing(listing),
        })
    }

    /// Ends listings after this time.
    pub(super) fn set_deadline(&mut self, deadline: Instant) {
        match self {
            Self::Set(_) => {}
            Self::Listing(filter) | Self::Prefixed(filter, _) => filter.deadline = Some(deadline),
            Self::Merged(filters) => {
                for filter in filters {
                    filter.deadline = Some(deadline);
                }
            }
        }
    }

    fn from_set(uris: BTreeSet<String>) -> Self {
        Self::Set(uris.into_iter().map(NamedNode::new_unchecked).collect())
    }

    /// Returns whether there may be more candidates than this. Those of a set were collected already, so they count as few.
    pub(super) fn has_more_than(
        &self,
        read: &dyn Read,
        count: usize,
    ) -> Result<bool, GatewayError> {
        Ok(match self {
            Self::Set(_) => false,
            _ => self.list_after(read, None, count + 1)?.len() > count,
        })
    }

    /// Returns about how many candidates there are at most; `None` if no index tells.
    pub(super) fn estimate(&self, read: &dyn Read) -> Result<Option<u64>, GatewayError> {
        let (Self::Listing(filter) | Self::Prefixed(filter, _)) = self else { return Ok(None) };
        let mut sum = None;
        for (property, range) in &filter.having_values {
            let Some(count) = read.estimate_values(property.as_ref(), range)? else {
                return Ok(None);
            };
            sum = Some(sum.unwrap_or(0_u64).saturating_add(count));
        }
        Ok(sum)
    }

    /// Returns whether all candidates are members.
    pub(super) fn has_only_members(&self) -> bool {
        !matches!(self, Self::Set(_))
    }

    /// Returns up to `limit` candidates after one, in the order in which they are read fastest; none at the end. There may be
    /// nodes of lists and hidden objects among them.
    pub(super) fn list_to_read(
        &self,
        read: &dyn Read,
        after: Option<&ListedSubject>,
        limit: usize,
    ) -> Result<Vec<ListedSubject>, GatewayError> {
        let Self::Listing(filter) = self else {
            let uris = self.list_after(read, after.map(|after| after.iri.as_str()), limit)?;
            return Ok(uris.into_iter().map(ListedSubject::from).collect());
        };
        Ok(read.list_to_read(filter, after, limit)?)
    }

    /// Returns up to `limit` candidates after a URI.
    pub(super) fn list_after(
        &self,
        read: &dyn Read,
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
            Self::Prefixed(filter, prefix) => {
                let mut found = Vec::new();
                let from = match after {
                    Some(after) if after >= prefix.as_str() => after,
                    _ => {
                        let first = NamedNode::new_unchecked(prefix);
                        if members::satisfies_filter(read, filter, &first)? {
                            found.push(first);
                        }
                        prefix.as_str()
                    }
                };
                found.extend(members::list_filtered(read, filter, Some(from), limit)?);
                found.retain(|uri| uri.as_str().starts_with(prefix));
                found.truncate(limit);
                Ok(found)
            }
        }
    }
}

/// Returns what the URI of each object begins with that passes a filter, if the filter says it.
fn find_uri_prefix(filter: &Filter) -> Option<&str> {
    match filter {
        Filter::Uri(ValueTest::StartsWith(prefix)) if !prefix.is_empty() => Some(prefix),
        Filter::All(filters) => filters.iter().find_map(find_uri_prefix),
        _ => None,
    }
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
