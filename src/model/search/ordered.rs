//! Lists objects in the order of a field with the index of values, which reads only those of the page.
//!
//! The index does not have exactly the order of the listing: its keys do not tell all values apart, and it has values that a
//! field does not show. So each object is read, and gets its position in the listing. No object that is still to come
//! has an earlier position once the keys are past that of the last one of the page. Objects with the same value are in the
//! order of their URIs. So if a key has many, they are listed in this order, and only those of the page are read.
use super::order::{FirstPositions, ListPosition, Order};
use super::page_search::{OrderField, PageSearch, RoundedObjects};
use super::values::{find_ordered_class, list_literals_of, list_unordered_ranges, with_related};
use crate::members::list_filtered;
use oxrdf::{Literal, NamedNode, NamedOrBlankNode};
use penstock_base::error::{ErrorClass, GatewayError};
use penstock_rdf::compare::SortKey;
use penstock_store::{ValueClass, ValueKey, ValueRange};
use std::collections::HashSet;
use std::ops::ControlFlow;
use std::rc::Rc;

/// The maximum number of objects that are visited. With more, all candidates are read. Tests have few objects.
const MAX_VISITED_OBJECTS: usize = if cfg!(test) { 40 } else { 10_000 };
/// The number of values with the same key that are visited in the order of the index. If there are more, objects are visited
/// in the order of their URIs.
const MAX_VISITED_OF_KEY: usize = if cfg!(test) { 3 } else { 16 };
/// The numbers of objects that are listed at a time.
const MIN_LISTED_OBJECTS: usize = if cfg!(test) { 2 } else { 32 };
const MAX_LISTED_OBJECTS: usize = 1_000;
/// The number of entries of the index that are read in the time in which an object is.
const ENTRIES_PER_OBJECT: u64 = if cfg!(test) { 16 } else { 256 };
/// The maximum number of values that are not in the order of the index. All of them are visited.
const MAX_UNORDERED_VALUES: u64 = if cfg!(test) { 10 } else { 1_000 };
/// The maximum number of objects that are read in the order of their URIs to find those without a value.
const MAX_READ_WITHOUT_VALUE: usize = if cfg!(test) { 4 } else { 1_000 };
/// The maximum number of objects that are sorted rather than looked for in the order of the index.
const MAX_SORTED_OBJECTS: usize = if cfg!(test) { 3 } else { 200 };

impl PageSearch<'_> {
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
        // To visit more objects than there are candidates takes longer than to sort these.
        let candidates = self.source.estimate(self.read)?;
        let max_visited = candidates.map_or(MAX_VISITED_OBJECTS, |count| {
            let count = usize::try_from(count).unwrap_or(usize::MAX);
            count.clamp(MAX_SORTED_OBJECTS, MAX_VISITED_OBJECTS)
        });
        let mut walk = ValueWalk {
            search: self,
            field,
            class,
            after,
            descending: order.descending,
            first: FirstPositions::new(after, limit),
            seen: HashSet::new(),
            visited: 0,
            max_visited,
            max_entries: candidates
                .map_or(u64::MAX, |count| count.saturating_mul(ENTRIES_PER_OBJECT)),
        };
        // Those without a value come last.
        let has_values = after.is_none_or(|after| after.value.is_some());
        let examined = self.budget.examined();
        let walked = if has_values { walk.run(&unordered) } else { Ok(true) };
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
struct ValueWalk<'w, 'r> {
    search: &'w PageSearch<'r>,
    field: OrderField<'w>,
    /// The class whose values are in order.
    class: ValueClass,
    after: Option<&'w ListPosition>,
    descending: bool,
    /// The first positions with a value.
    first: FirstPositions<'w>,
    /// The objects that were visited.
    seen: HashSet<NamedNode>,
    visited: usize,
    max_visited: usize,
    /// The maximum number of values with one key.
    max_entries: u64,
}

impl ValueWalk<'_, '_> {
    /// Visits the values until the first positions are known. Returns false if there are too many.
    fn run(&mut self, unordered: &[ValueRange]) -> Result<bool, GatewayError> {
        for range in unordered {
            if !self.visit_all(range)? {
                return Ok(false);
            }
        }
        let from = self.after.map_or_else(Vec::new, |after| list_bounds(self.class, after));
        let range = match from.first() {
            Some(from) if self.descending => ValueRange::at_most(from.as_ref()),
            Some(from) => ValueRange::at_least(from.as_ref()),
            None => ValueRange::of_class(self.class),
        };
        for range in with_related(vec![range]) {
            if !self.visit_in_order(range)? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Visits all values in a range. Returns false if there are too many.
    fn visit_all(&mut self, range: &ValueRange) -> Result<bool, GatewayError> {
        self.visit_range(range, &mut |_, _| ControlFlow::Continue(()))
    }

    /// Visits the values in a range until a key is past the last one of the first positions. Returns false if there are too
    /// many.
    fn visit_in_order(&mut self, range: ValueRange) -> Result<bool, GatewayError> {
        let class = range.class();
        let mut rest = Some(range);
        while let Some(range) = rest.take() {
            let (mut current, mut many) = (None, None);
            let is_complete = self.visit_range(&range, &mut |walk, key| {
                if walk.first.last().is_some_and(|last| walk.is_past(key, last)) {
                    return ControlFlow::Break(());
                }
                let (known, count) = current.get_or_insert((*key, 0));
                if *known != *key {
                    (*known, *count) = (*key, 0);
                }
                *count += 1;
                if *count > MAX_VISITED_OF_KEY && !key.is_cut(class) {
                    many = Some(*key);
                    return ControlFlow::Break(());
                }
                ControlFlow::Continue(())
            })?;
            if !is_complete {
                return Ok(false);
            }
            if let Some(key) = many {
                if !self.visit_key(class, &key)? {
                    return Ok(false);
                }
                rest = range.beyond(&key, self.descending);
            }
        }
        Ok(true)
    }

    /// Visits the values in a range as long as `accept` says, which is called before each. Returns false if there are too many.
    fn visit_range(
        &mut self,
        range: &ValueRange,
        accept: &mut dyn FnMut(&Self, &ValueKey) -> ControlFlow<()>,
    ) -> Result<bool, GatewayError> {
        let (read, property) = (self.search.read, self.field.property);
        let descending = self.descending;
        let mut outcome = Ok(true);
        let mut visit = |key: &ValueKey, subject| {
            accept(self, key)?;
            if let NamedOrBlankNode::NamedNode(uri) = subject {
                outcome = self.visit_object(uri);
            }
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

    /// Visits the objects that may have a value with a key, in the order of their URIs, until no other can be among the first.
    /// All values with the key are equal, except for rounded ones, whose objects are visited before. Returns false if there
    /// are too many.
    fn visit_key(&mut self, class: ValueClass, key: &ValueKey) -> Result<bool, GatewayError> {
        let range = ValueRange::of_key(class, key);
        let property = self.field.property;
        let count = self.search.read.estimate_values(property.predicate.as_ref(), &range)?;
        let count = count.unwrap_or(u64::MAX);
        if count > self.max_entries
            || class.has_rounded_values() && !self.visit_rounded(class, key)?
        {
            return Ok(false);
        }
        let members = self.search.members_with_value(property, range, count);
        let tied = self.after.filter(|after| has_value_of(after, class, key));
        let mut after = tied.map(|after| after.uri.clone());
        let mut limit = MIN_LISTED_OBJECTS;
        loop {
            let page = list_filtered(self.search.read, &members, after.as_deref(), limit)?;
            let Some(last) = page.last() else { return Ok(true) };
            after = Some(last.as_str().to_owned());
            for uri in page {
                let is_done = self.first.last().is_some_and(|last| {
                    has_value_of(last, class, key) && uri.as_str() > last.uri.as_str()
                });
                if is_done {
                    return Ok(true);
                }
                if !self.visit_object(uri)? {
                    return Ok(false);
                }
            }
            limit = (limit * 2).min(MAX_LISTED_OBJECTS);
        }
    }

    /// Visits the objects with a value that is not exactly its key. Returns false if there are too many.
    fn visit_rounded(&mut self, class: ValueClass, key: &ValueKey) -> Result<bool, GatewayError> {
        let place = (self.field.property.predicate.clone(), class, *key);
        let known = self.search.rounded.borrow().clone();
        let rounded = if let Some(known) = known.filter(|known| known.place == place) {
            known
        } else {
            let uris = self.list_rounded(class, key)?;
            let found = Rc::new(RoundedObjects { place, uris });
            self.search.rounded.replace(Some(Rc::clone(&found)));
            found
        };
        if rounded.uris.len() > MAX_VISITED_OBJECTS {
            return Ok(false);
        }
        for uri in &rounded.uris {
            if !self.visit_object(uri.clone())? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Lists the objects with a value that is not exactly its key. All values with the key are read.
    fn list_rounded(
        &self,
        class: ValueClass,
        key: &ValueKey,
    ) -> Result<Vec<NamedNode>, GatewayError> {
        let range = ValueRange::of_key(class, key).rounded_only();
        let predicate = self.field.property.predicate.as_ref();
        let mut uris = Vec::new();
        self.search.read.visit_values(predicate, &range, false, &mut |_, subject| {
            if let NamedOrBlankNode::NamedNode(uri) = subject {
                uris.push(uri);
            }
            if uris.len() > MAX_VISITED_OBJECTS {
                ControlFlow::Break(())
            } else {
                ControlFlow::Continue(())
            }
        })?;
        Ok(uris)
    }

    /// Adds the position of an object. Returns false if too many objects were visited.
    fn visit_object(&mut self, uri: NamedNode) -> Result<bool, GatewayError> {
        if self.seen.contains(&uri) {
            return Ok(true);
        }
        self.visited += 1;
        if self.visited > self.max_visited {
            return Ok(false);
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

    /// Returns whether no value with this key, or after it, comes before a position.
    fn is_past(&self, key: &ValueKey, last: &ListPosition) -> bool {
        let bounds = list_bounds(self.class, last);
        let mut keys = bounds.iter().map(|bound| ValueKey::of(bound.as_ref()).1);
        let is_past = |bound: ValueKey| if self.descending { bound > *key } else { *key > bound };
        !bounds.is_empty() && keys.all(is_past)
    }
}

/// Returns whether a position has the value that a key says.
fn has_value_of(position: &ListPosition, class: ValueClass, key: &ValueKey) -> bool {
    let bounds = list_bounds(class, position);
    bounds.iter().any(|literal| ValueKey::of_exact(literal.as_ref()) == Some(*key))
}

/// Returns the literals of a class with the value of a position; none if the value is not in the order of the class.
fn list_bounds(class: ValueClass, position: &ListPosition) -> Vec<Literal> {
    let Some((text, key)) = &position.value else { return Vec::new() };
    let is_text = matches!(class, ValueClass::Text | ValueClass::LanguageText | ValueClass::Other);
    if is_text != matches!(key, SortKey::Text(_)) {
        return Vec::new();
    }
    list_literals_of(class, text).collect()
}
