//! Lists objects in the order of a field with the index of values, which reads only those of the page.
//!
//! The index does not have exactly the order of the listing: its keys do not tell all values apart, and it has values that a
//! field does not show. So each object is read, and gets its position in the listing. No object that is still to come
//! has an earlier position once the keys are past that of the last one of the page. If no value with its key comes before its
//! own, only objects with earlier URIs are read of those with that key.
use super::order::{ListPosition, Order};
use super::page::{FirstPositions, OrderField, PageSearch};
use super::values::{
    find_ordered_class, is_first_of_key, list_literals_of, list_unordered_ranges, with_related,
};
use oxrdf::{Literal, NamedNode, NamedOrBlankNode};
use penstock_base::error::{ErrorClass, GatewayError};
use penstock_rdf::compare::SortKey;
use penstock_store::{Read, ValueClass, ValueKey, ValueRange};
use std::cmp::Ordering;
use std::collections::HashSet;
use std::ops::ControlFlow;

/// The maximum number of values that are visited. With more, all objects are read. Tests have few objects.
const MAX_VISITED_VALUES: usize = if cfg!(test) { 40 } else { 10_000 };
/// The maximum number of values that are not in the order of the index. All of them are visited.
const MAX_UNORDERED_VALUES: u64 = if cfg!(test) { 10 } else { 1_000 };
/// The maximum number of objects that are read in the order of their URIs to find those without a value.
const MAX_READ_WITHOUT_VALUE: usize = if cfg!(test) { 4 } else { 1_000 };
/// The maximum number of objects that are sorted rather than looked for in the order of the index.
const MAX_SORTED_OBJECTS: usize = if cfg!(test) { 3 } else { 200 };

impl<R: Read> PageSearch<'_, R> {
    /// Returns the first `limit` objects after a position that pass, in the order of a field. `None` if the index does not
    /// help.
    pub(super) fn list_by_values(
        &self,
        order: Order,
        after: Option<&ListPosition>,
        limit: usize,
    ) -> Result<Option<Vec<ListPosition>>, GatewayError> {
        let Some(mut field) = OrderField::new(self.shape, order)? else { return Ok(None) };
        let Some(class) = find_ordered_class(field.property) else { return Ok(None) };
        let unordered = list_unordered_ranges(class);
        if limit == 0
            || !self.has_at_most(&field, &unordered, MAX_UNORDERED_VALUES)?
            || !self.source.has_more_than(self.read, MAX_SORTED_OBJECTS)?
        {
            return Ok(None);
        }
        field.needs = self.with_tested(&field.needs);
        let mut walk = ValueWalk {
            search: self,
            field,
            class,
            first: FirstPositions::new(after, limit),
            seen: HashSet::new(),
            visited: 0,
        };
        // Those without a value come last.
        let has_values = after.is_none_or(|after| after.value.is_some());
        let examined = self.budget.examined();
        let walked =
            if has_values { walk.run(&unordered, after, order.descending) } else { Ok(true) };
        match walked {
            Ok(true) => {}
            Ok(false) => {
                self.budget.rewind(examined);
                return Ok(None);
            }
            // A listing without the index may examine fewer objects, because it has only members.
            Err(error) if error.class == ErrorClass::TooLarge => {
                self.budget.rewind(examined);
                return Ok(None);
            }
            Err(error) => return Err(error),
        }
        let ValueWalk { first, field, .. } = walk;
        let mut places = first.into_vec();
        if places.len() < limit {
            self.budget.rewind(examined);
            let last = after.filter(|_| !has_values).map(|after| after.uri.clone());
            let mut unread = MAX_READ_WITHOUT_VALUE;
            self.for_each_member(last, limit - places.len(), &mut |member| {
                let Some(uri) = member else { return Ok(true) };
                let position = self.read_position(&field, uri)?;
                places.extend(position.filter(|position| position.value.is_none()));
                unread -= 1;
                Ok(places.len() < limit && unread > 0)
            })?;
            // Few have no value: reading all objects in their own order takes less time.
            if places.len() < limit && unread == 0 {
                self.budget.rewind(examined);
                return Ok(None);
            }
        }
        Ok(Some(places))
    }

    /// Returns whether there is an index of values, and it has at most about this many values of a field in these ranges.
    fn has_at_most(
        &self,
        field: &OrderField<'_>,
        ranges: &[ValueRange],
        most: u64,
    ) -> Result<bool, GatewayError> {
        let mut sum = 0_u64;
        for range in ranges {
            match self.read.estimate_values(field.property.predicate.as_ref(), range)? {
                Some(count) => sum = sum.saturating_add(count),
                None => return Ok(false),
            }
        }
        Ok(sum <= most)
    }
}

/// A walk through the values of a field.
struct ValueWalk<'w, 'r, R> {
    search: &'w PageSearch<'r, R>,
    field: OrderField<'w>,
    /// The class whose values are in order.
    class: ValueClass,
    /// The first positions with a value.
    first: FirstPositions<'w>,
    /// The objects that were visited.
    seen: HashSet<NamedNode>,
    visited: usize,
}

impl<R: Read> ValueWalk<'_, '_, R> {
    /// Visits the values until the first positions are known. Returns false if there are too many.
    fn run(
        &mut self,
        unordered: &[ValueRange],
        after: Option<&ListPosition>,
        descending: bool,
    ) -> Result<bool, GatewayError> {
        for range in unordered {
            if !self.visit_range(range, descending, &|_, _| Ordering::Less)? {
                return Ok(false);
            }
        }
        let class = self.class;
        let from = after.map_or_else(Vec::new, |after| list_bounds(class, after));
        let range = match from.first() {
            Some(from) if descending => ValueRange::at_most(from.as_ref()),
            Some(from) => ValueRange::at_least(from.as_ref()),
            None => ValueRange::of_class(class),
        };
        let compare = |key: &ValueKey, last: &ListPosition| {
            let bounds = list_bounds(class, last);
            let bounds = bounds.iter().map(|bound| {
                let (_, bound) = ValueKey::of(bound.as_ref());
                if descending { bound.cmp(key) } else { key.cmp(&bound) }
            });
            match (bounds.min(), &last.value) {
                (Some(Ordering::Equal), Some((text, _)))
                    if is_first_of_key(class, key, text, descending) =>
                {
                    Ordering::Equal
                }
                (Some(Ordering::Greater), _) => Ordering::Greater,
                _ => Ordering::Less,
            }
        };
        for range in with_related(vec![range]) {
            if !self.visit_range(&range, descending, &compare)? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Visits the values in a range until a key is past the last one of the first positions. Returns false if there are too
    /// many. `compare` says whether values with a key may come before a position (less), only have an equal value or come
    /// later (equal), or come later (greater).
    fn visit_range(
        &mut self,
        range: &ValueRange,
        descending: bool,
        compare: &dyn Fn(&ValueKey, &ListPosition) -> Ordering,
    ) -> Result<bool, GatewayError> {
        let (read, property) = (self.search.read, self.field.property);
        let mut outcome = Ok(true);
        let mut visit = |key: &ValueKey, subject| {
            let order = self.first.last().map_or(Ordering::Less, |last| compare(key, last));
            if order.is_gt() {
                return ControlFlow::Break(());
            }
            outcome = self.visit_subject(subject, order.is_eq());
            if matches!(outcome, Ok(true)) {
                ControlFlow::Continue(())
            } else {
                ControlFlow::Break(())
            }
        };
        let is_indexed =
            read.visit_values(property.predicate.as_ref(), range, descending, &mut visit)?;
        outcome.map(|is_complete| is_complete && is_indexed)
    }

    /// Adds the position of an object. Returns false if too many values were visited. With `is_decided_by_uri`, no value of the
    /// object comes before that of the last one of the first positions, so one with a later URI is not read.
    fn visit_subject(
        &mut self,
        subject: NamedOrBlankNode,
        is_decided_by_uri: bool,
    ) -> Result<bool, GatewayError> {
        self.visited += 1;
        if self.visited > MAX_VISITED_VALUES {
            return Ok(false);
        }
        let NamedOrBlankNode::NamedNode(uri) = subject else { return Ok(true) };
        if self.seen.contains(&uri) {
            return Ok(true);
        }
        if is_decided_by_uri
            && self.first.last().is_some_and(|last| uri.as_str() > last.uri.as_str())
        {
            self.search.budget.check_time()?;
            return Ok(true);
        }
        self.search.budget.count_examined(1)?;
        if self.search.is_member(&uri)?
            && let Some(position) = self.search.read_position(&self.field, &uri)?
            && position.value.is_some()
        {
            self.first.add(position);
        }
        self.seen.insert(uri);
        Ok(true)
    }
}

/// Returns the literals of a class with the value of a position; none if the value is not in the order of the class.
fn list_bounds(class: ValueClass, position: &ListPosition) -> Vec<Literal> {
    let Some((text, key)) = &position.value else { return Vec::new() };
    let is_text = matches!(class, ValueClass::Text | ValueClass::Other);
    if is_text != matches!(key, SortKey::Text(_)) {
        return Vec::new();
    }
    list_literals_of(class, text).collect()
}
