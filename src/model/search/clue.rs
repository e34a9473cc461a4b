//! What the indexes of links and of values know about the objects that pass a filter.
use super::budget::SearchBudget;
use super::filter::{Filter, ValueTest, find_property};
use super::values::find_ranges;
use crate::mapping::{Property, Shape, Value};
use oxrdf::{NamedNode, NamedOrBlankNode, Term};
use penstock_base::error::GatewayError;
use penstock_store::{Read, SubjectFilter, ValueRange};
use std::collections::BTreeSet;
use std::collections::btree_map::{BTreeMap, Entry};
use std::ops::ControlFlow;

/// The maximum number of objects that are collected beforehand. With more, the index is not used.
const MAX_COLLECTED_OBJECTS: usize = 10_000;
/// The maximum number of listings that are merged.
const MAX_MERGED_LISTINGS: usize = 100;
/// The number of objects that are listed at a time.
const LISTED_PER_PAGE: usize = if cfg!(test) { 2 } else { 1_000 };
/// The maximum number of values that are read rather than the objects with a value of type resource, whose number is unknown.
const MAX_PREFERRED_VALUES: u64 = if cfg!(test) { 4 } else { 1_000 };

/// The maximum number of pairs of ranges that are intersected for two tests of a field.
const MAX_INTERSECTIONS: usize = 10_000;

/// What the index knows about the objects that pass a filter.
pub(super) enum IndexClue {
    /// They are among these.
    Set(BTreeSet<String>),
    /// They have all of these properties and values.
    Having(Vec<(NamedNode, Term)>),
    /// They have all properties and values of at least one of these lists.
    Either(Vec<Vec<(NamedNode, Term)>>),
    /// They have at least one of these values.
    Values(ValueClue),
    /// The index does not help.
    None,
}

/// Values that the index lists.
pub(super) struct ValueClue {
    /// Properties, each with a range of its values.
    pub(super) ranges: Vec<(NamedNode, ValueRange)>,
    /// About how many values the ranges have.
    pub(super) estimate: u64,
}

impl IndexClue {
    /// Returns the better of two clues, or both of them, for objects to which both apply.
    fn and(self, other: Self) -> Self {
        match (self, other) {
            (Self::Set(a), Self::Set(b)) => Self::Set(&a & &b),
            (Self::Set(set), Self::Values(values)) | (Self::Values(values), Self::Set(set)) => {
                if values.estimate < set.len() as u64 {
                    Self::Values(values)
                } else {
                    Self::Set(set)
                }
            }
            (Self::Set(set), _) | (_, Self::Set(set)) => Self::Set(set),
            (Self::None, clue) | (clue, Self::None) => clue,
            (Self::Values(a), Self::Values(b)) => {
                Self::Values(if b.estimate < a.estimate { b } else { a })
            }
            (Self::Values(values), other) | (other, Self::Values(values)) => {
                if values.estimate <= MAX_PREFERRED_VALUES { Self::Values(values) } else { other }
            }
            (Self::Having(mut a), Self::Having(b)) => {
                a.extend(b);
                Self::Having(a)
            }
            (Self::Having(having), Self::Either(mut each))
            | (Self::Either(mut each), Self::Having(having)) => {
                for one in &mut each {
                    one.extend(having.iter().cloned());
                }
                Self::Either(each)
            }
            (Self::Either(a), Self::Either(b)) => {
                Self::Either(if b.len() < a.len() { b } else { a })
            }
        }
    }
}

/// Finds what the indexes know.
pub(super) struct ClueFinder<'n> {
    pub(super) read: &'n dyn Read,
    pub(super) budget: &'n SearchBudget,
}

impl ClueFinder<'_> {
    /// Finds a clue to the objects of a shape that pass a filter.
    pub(super) fn find_clue(
        &self,
        shape: &Shape,
        filter: &Filter,
    ) -> Result<IndexClue, GatewayError> {
        match filter {
            Filter::All(filters) => self.combine_all(shape, filters),
            Filter::Any(filters) => self.combine_any(shape, filters),
            Filter::Uri(ValueTest::In(uris)) => Ok(IndexClue::Set(uris.iter().cloned().collect())),
            Filter::Field { field, test } => {
                let (_, property) = find_property(shape, *field)?;
                match test {
                    ValueTest::In(texts) if property.value == Value::Resource => {
                        Ok(find_link_clue(property, texts))
                    }
                    _ => self.find_value_clue(property, test),
                }
            }
            Filter::Text { field, language: _, test } => {
                self.find_value_clue(find_property(shape, *field)?.1, test)
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
            Filter::Not(_) | Filter::Uri(_) => Ok(IndexClue::None),
        }
    }

    /// Finds the values that pass a test of a field.
    fn find_value_clue(
        &self,
        property: &Property,
        test: &ValueTest,
    ) -> Result<IndexClue, GatewayError> {
        match find_ranges(property, test) {
            Some(ranges) => self.estimate_ranges(property, ranges),
            None => Ok(IndexClue::None),
        }
    }

    /// Returns the clue that an object has a value of a property in one of these ranges, unless they have too many values, or
    /// there is no index of values.
    fn estimate_ranges(
        &self,
        property: &Property,
        ranges: Vec<ValueRange>,
    ) -> Result<IndexClue, GatewayError> {
        let predicate = &property.predicate;
        let mut estimate = 0_u64;
        for range in &ranges {
            self.budget.check_time()?;
            let Some(count) = self.read.estimate_values(predicate.as_ref(), range)? else {
                return Ok(IndexClue::None);
            };
            estimate = estimate.saturating_add(count);
            if estimate > MAX_COLLECTED_OBJECTS as u64 {
                return Ok(IndexClue::None);
            }
        }
        let ranges = ranges.into_iter().map(|range| (predicate.clone(), range)).collect();
        Ok(IndexClue::Values(ValueClue { ranges, estimate }))
    }

    fn combine_all(&self, shape: &Shape, filters: &[Filter]) -> Result<IndexClue, GatewayError> {
        let (mut best, mut all) = (IndexClue::None, Vec::new());
        flatten(filters, &mut all);
        // A field with one value shows one that passes all of its tests, so this value is in the ranges of each.
        let mut by_field: BTreeMap<usize, Vec<ValueRange>> = BTreeMap::new();
        for filter in all {
            if let Filter::Field { field, test } = filter
                && let (_, property) = find_property(shape, *field)?
                && property.is_orderable()
                && let Some(ranges) = find_ranges(property, test)
            {
                match by_field.entry(*field) {
                    Entry::Vacant(place) => {
                        place.insert(ranges);
                    }
                    Entry::Occupied(mut known) => {
                        let both = intersect_ranges(known.get(), &ranges);
                        known.insert(both);
                    }
                }
            } else {
                best = best.and(self.find_clue(shape, filter)?);
            }
        }
        for (field, ranges) in by_field {
            let (_, property) = find_property(shape, field)?;
            best = best.and(self.estimate_ranges(property, ranges)?);
        }
        Ok(best)
    }

    fn combine_any(&self, shape: &Shape, filters: &[Filter]) -> Result<IndexClue, GatewayError> {
        let (mut set, mut each) = (BTreeSet::new(), Vec::new());
        let mut values = ValueClue { ranges: Vec::new(), estimate: 0 };
        for filter in filters {
            match self.find_clue(shape, filter)? {
                IndexClue::Set(one) => set.extend(one),
                IndexClue::Having(having) => each.push(having),
                IndexClue::Either(more) => each.extend(more),
                IndexClue::Values(more) => {
                    values.ranges.extend(more.ranges);
                    values.estimate = values.estimate.saturating_add(more.estimate);
                }
                IndexClue::None => return Ok(IndexClue::None),
            }
            if set.len() > MAX_COLLECTED_OBJECTS
                || each.len() > MAX_MERGED_LISTINGS
                || values.estimate > MAX_COLLECTED_OBJECTS as u64
            {
                return Ok(IndexClue::None);
            }
        }
        match (set.is_empty(), each.is_empty(), values.ranges.is_empty()) {
            (_, true, true) => return Ok(IndexClue::Set(set)),
            (true, false, true) => return Ok(IndexClue::Either(each)),
            (true, true, false) => return Ok(IndexClue::Values(values)),
            _ => {}
        }
        let (Some(having), Some(valued)) =
            (self.collect_subjects(each.into_iter())?, self.collect_values(&values)?)
        else {
            return Ok(IndexClue::None);
        };
        set.extend(having);
        set.extend(valued);
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
            IndexClue::Values(values) => self.collect_values(&values),
            IndexClue::None => Ok(None),
        }
    }

    /// Returns the subjects of these values. `None` if there are more than [`MAX_COLLECTED_OBJECTS`].
    pub(super) fn collect_values(
        &self,
        values: &ValueClue,
    ) -> Result<Option<BTreeSet<String>>, GatewayError> {
        let mut gathered = BTreeSet::new();
        for (property, range) in &values.ranges {
            self.budget.check_time()?;
            self.read.visit_values(property.as_ref(), range, false, &mut |_, subject| {
                if let NamedOrBlankNode::NamedNode(uri) = subject {
                    gathered.insert(uri.into_string());
                }
                if gathered.len() > MAX_COLLECTED_OBJECTS {
                    ControlFlow::Break(())
                } else {
                    ControlFlow::Continue(())
                }
            })?;
            if gathered.len() > MAX_COLLECTED_OBJECTS {
                return Ok(None);
            }
        }
        Ok(Some(gathered))
    }

    fn collect_subjects(
        &self,
        each: impl Iterator<Item = Vec<(NamedNode, Term)>>,
    ) -> Result<Option<BTreeSet<String>>, GatewayError> {
        let mut gathered = BTreeSet::new();
        for having in each {
            let deadline = Some(self.budget.deadline());
            let filter = SubjectFilter { having, deadline, ..SubjectFilter::default() };
            let mut after: Option<String> = None;
            loop {
                self.budget.check_time()?;
                let page = self.read.list_subjects(&filter, after.as_deref(), LISTED_PER_PAGE)?;
                let is_last = page.len() < LISTED_PER_PAGE;
                after = page.last().map(|uri| uri.as_str().to_owned());
                for uri in page {
                    if !self.read.is_hidden(uri.as_ref().into())? {
                        gathered.insert(uri.into_string());
                    }
                }
                if gathered.len() > MAX_COLLECTED_OBJECTS {
                    return Ok(None);
                }
                if is_last {
                    break;
                }
            }
        }
        Ok(Some(gathered))
    }
}

/// Collects the filters that must all hold, also those in lists within lists.
fn flatten<'f>(filters: &'f [Filter], all: &mut Vec<&'f Filter>) {
    for filter in filters {
        match filter {
            Filter::All(inner) => flatten(inner, all),
            other => all.push(other),
        }
    }
}

/// Returns the ranges of what is in both lists of ranges; the shorter list if both are long.
fn intersect_ranges(one: &[ValueRange], other: &[ValueRange]) -> Vec<ValueRange> {
    if one.len() * other.len() > MAX_INTERSECTIONS {
        return if other.len() < one.len() { other } else { one }.to_vec();
    }
    let pairs = one.iter().flat_map(|one| other.iter().map(move |other| one.intersect(other)));
    pairs.flatten().collect()
}

/// Describes the objects whose field of type resource shows one of `texts`.
fn find_link_clue(property: &Property, texts: &[String]) -> IndexClue {
    let Property { predicate, codes, is_ordered, .. } = property;
    match codes {
        // Its values are in nodes of a list.
        _ if *is_ordered => IndexClue::None,
        Some(codes) => {
            let iris = texts.iter().flat_map(|text| codes.list_iris_shown_as(text));
            let iris: BTreeSet<String> = iris.map(NamedNode::into_string).collect();
            clue_for_links(predicate, iris.iter().map(String::as_str))
        }
        None => clue_for_links(predicate, texts.iter().map(String::as_str)),
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
    read: &dyn Read,
    bounds: &SearchBudget,
    predicate: &NamedNode,
    uris: &BTreeSet<String>,
) -> Result<Option<BTreeSet<String>>, GatewayError> {
    ClueFinder { read, budget: bounds }
        .collect_subjects(uris.iter().map(|uri| vec![link_condition(predicate, uri)]))
}
