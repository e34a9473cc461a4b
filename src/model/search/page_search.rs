//! A running search: goes through the objects of a Business Object that may pass a filter, and reads them.
use super::budget::SearchBudget;
use super::filter::{Filter, find_property};
use super::matching::{Matcher, RequiredQuads, TestedObject};
use super::narrow::CandidateSource;
use super::order::{FirstPositions, ListPosition, Order};
use crate::list::is_list_node;
use crate::mapping::{Property, Shape};
use crate::members;
use crate::resource::Compiled;
use crate::view::{FieldValues, NestingPath};
use oxrdf::NamedNode;
use penstock_base::error::GatewayError;
use penstock_store::{ListedSubject, Read, SubjectFilter, ValueClass, ValueKey, ValueRange};
use std::cell::RefCell;
use std::rc::Rc;

/// The maximum number of candidates that are listed at a time.
const MAX_LISTED_CANDIDATES: usize = 1_000;
/// The minimum number of candidates that are listed at a time.
const MIN_LISTED_CANDIDATES: usize = 32;

/// The maximum number of values that are looked for in a listing of members.
const MAX_SELECTED_VALUES: u64 = if cfg!(test) { 10 } else { 10_000 };

/// A running search.
pub(super) struct PageSearch<'r> {
    pub(super) read: &'r dyn Read,
    pub(super) shape: &'r Shape,
    pub(super) source: CandidateSource,
    pub(super) budget: &'r SearchBudget,
    /// What all members satisfy.
    members: SubjectFilter,
    matcher: Option<(Matcher, RequiredQuads)>,
    /// What a listing in the order of a field found last, for its next page.
    pub(super) rounded: RefCell<Option<Rc<RoundedObjects>>>,
}

/// The objects that have a value with a key, but not exactly this value.
#[derive(Debug)]
pub(super) struct RoundedObjects {
    /// The property, and the key with its class.
    pub(super) place: (NamedNode, ValueClass, ValueKey),
    /// If there are more than a listing by values visits (`ordered`), only one more.
    pub(super) uris: Vec<NamedNode>,
}

/// The field that a listing is ordered by.
pub(super) struct OrderField<'s> {
    pub(super) property: &'s Property,
    /// What is read of an object for its position.
    pub(super) needs: RequiredQuads,
    index: usize,
    order: Order,
}

impl<'s> OrderField<'s> {
    /// Returns the field of an order; `None` if the order is by URI.
    pub(super) fn new(shape: &'s Shape, order: Order) -> Result<Option<Self>, GatewayError> {
        let Some(index) = order.field else { return Ok(None) };
        let (_, property) = find_property(shape, index)?;
        let needs = RequiredQuads::for_fields(shape, [index]);
        Ok(Some(Self { property, needs, index, order }))
    }

    /// Returns the position of an object with these values.
    pub(super) fn find_position(&self, values: &FieldValues<'_>, uri: &NamedNode) -> ListPosition {
        let Self { property, index, order, .. } = self;
        let shown = values.collect_shown(*index, property);
        ListPosition::of_object(*order, property.order(), &shown, uri.as_str())
    }
}

/// The function that is called with the URI of each object that passes. It returns whether to continue.
pub(super) type PassedCallback<'v> = dyn FnMut(&NamedNode) -> Result<bool, GatewayError> + 'v;

/// The function that is called with the URI of each object, and with `None` before each page of candidates. It returns whether
/// to continue.
pub(super) type PageCallback<'v> = dyn FnMut(Option<&NamedNode>) -> Result<bool, GatewayError> + 'v;

/// The function that is called with each object that passes, and with its values.
pub(super) type ReadCallback<'v> =
    dyn FnMut(&TestedObject<'_>, &FieldValues<'_>) -> Result<(), GatewayError> + 'v;

impl<'r> PageSearch<'r> {
    /// Prepares a search.
    pub(super) fn new(
        read: &'r dyn Read,
        business_object: &'r Compiled,
        filter: Option<&Filter>,
        bounds: &'r SearchBudget,
    ) -> Result<Self, GatewayError> {
        let shape = &business_object.mapping.root;
        let matcher = filter.map(|filter| Matcher::new(filter, shape)).transpose()?;
        let matcher = matcher.map(|matcher| {
            let needs = RequiredQuads::for_fields(shape, matcher.own_fields());
            (matcher, needs)
        });
        let members = members::build_member_filter(read, business_object)?;
        let mut source = CandidateSource::for_filter(read, shape, &members, filter, bounds)?;
        source.set_deadline(bounds.deadline());
        let rounded = RefCell::default();
        Ok(Self { read, shape, source, budget: bounds, members, matcher, rounded })
    }

    /// Continues with other limits.
    pub(super) fn set_budget(&mut self, bounds: &'r SearchBudget) {
        self.budget = bounds;
        self.source.set_deadline(bounds.deadline());
    }

    /// Returns the first `limit` objects that pass, by URI.
    pub(super) fn list_ascending(
        &self,
        order: Order,
        after: Option<String>,
        limit: usize,
    ) -> Result<Vec<ListPosition>, GatewayError> {
        let mut places = Vec::new();
        if limit == 0 {
            return Ok(places);
        }
        self.for_each_passing(after, limit, &mut |uri| {
            places.push(ListPosition::at_value(order, None, None, uri.as_str()));
            Ok(places.len() < limit)
        })?;
        Ok(places)
    }

    /// Returns the first `limit` objects that pass, in an order that no index has. It examines all objects and
    /// keeps the first ones.
    pub(super) fn list_sorted(
        &self,
        order: Order,
        after: Option<&ListPosition>,
        limit: usize,
    ) -> Result<Vec<ListPosition>, GatewayError> {
        let field = OrderField::new(self.shape, order)?;
        let mut first = FirstPositions::new(after, limit);
        let none = RequiredQuads::default();
        let needs = field.as_ref().map_or(&none, |field| &field.needs);
        self.for_each_read(needs, &mut |object, values| {
            let uri = object.path.uri;
            first.add(match &field {
                Some(field) => field.find_position(values, uri),
                None => ListPosition::at_value(order, None, None, uri.as_str()),
            });
            Ok(())
        })?;
        Ok(first.into_vec())
    }

    /// Counts the members that pass.
    pub(super) fn count_passing(&self, count: &mut u64) -> Result<(), GatewayError> {
        self.for_each_read(&RequiredQuads::default(), &mut |_, _| {
            *count += 1;
            Ok(())
        })
    }

    /// Reads a member. Returns its position in the order of a field, or `None` if it does not pass.
    pub(super) fn read_position(
        &self,
        field: &OrderField<'_>,
        uri: &NamedNode,
    ) -> Result<Option<ListPosition>, GatewayError> {
        let object = self.new_tested(uri);
        object.with_values(&field.needs, |values| {
            Ok(self.passes_with(&object, values)?.then(|| field.find_position(values, uri)))
        })
    }

    /// Returns an object of the Business Object, to be read.
    pub(super) fn new_tested<'t>(&'t self, uri: &'t NamedNode) -> TestedObject<'t> {
        TestedObject {
            read: self.read,
            shape: self.shape,
            path: NestingPath { uri, above: None },
            listed: None,
            budget: self.budget,
        }
    }

    /// Returns whether an object is a member.
    pub(super) fn is_member(&self, uri: &NamedNode) -> Result<bool, GatewayError> {
        Ok(members::satisfies_filter(self.read, &self.members, uri)?)
    }

    /// Returns the filter of the members that may have one of this many values in a range. It lets all pass if they are many.
    pub(super) fn members_with_value(
        &self,
        Property { predicate, .. }: &Property,
        range: ValueRange,
        count: u64,
    ) -> SubjectFilter {
        let is_selective = count <= MAX_SELECTED_VALUES;
        let having_values =
            if is_selective { vec![(predicate.clone(), range)] } else { Vec::new() };
        let deadline = Some(self.budget.deadline());
        SubjectFilter { having_values, deadline, ..self.members.clone() }
    }

    /// Returns whether a member passes the filter.
    pub(super) fn passes(&self, uri: &NamedNode) -> Result<bool, GatewayError> {
        match &self.matcher {
            Some((matcher, needs)) => self.new_tested(uri).passes_filter(matcher, needs),
            None => Ok(true),
        }
    }

    /// Returns whether a member with these values passes the filter.
    fn passes_with(
        &self,
        object: &TestedObject<'_>,
        values: &FieldValues<'_>,
    ) -> Result<bool, GatewayError> {
        match &self.matcher {
            Some((matcher, _)) => object.passes_with_values(matcher, values),
            None => Ok(true),
        }
    }

    /// Returns this part of an object, together with what the filter tests.
    pub(super) fn with_tested(&self, needs: &RequiredQuads) -> RequiredQuads {
        let none = RequiredQuads::default();
        needs.with(self.matcher.as_ref().map_or(&none, |(_, tested)| tested))
    }

    /// Reads every member once, and calls `visit` with each that passes and its values, of this part at least. They come in
    /// the order in which they are read fastest.
    pub(super) fn for_each_read(
        &self,
        needs: &RequiredQuads,
        visit: &mut ReadCallback<'_>,
    ) -> Result<(), GatewayError> {
        let needs = self.with_tested(needs);
        let mut after: Option<ListedSubject> = None;
        loop {
            self.budget.check_time()?;
            let page =
                self.source.list_to_read(self.read, after.as_ref(), MAX_LISTED_CANDIDATES)?;
            for listed in &page {
                // Pages of nothing else still end with the time.
                if is_list_node(&listed.iri) || self.read.is_hidden(listed.iri.as_ref().into())? {
                    continue;
                }
                self.budget.count_examined(1)?;
                if !self.source.has_only_members() && !self.is_member(&listed.iri)? {
                    continue;
                }
                let object = TestedObject { listed: Some(listed), ..self.new_tested(&listed.iri) };
                object.with_values(&needs, |values| {
                    if self.passes_with(&object, values)? { visit(&object, values) } else { Ok(()) }
                })?;
            }
            match page.into_iter().next_back() {
                Some(last) => after = Some(last),
                None => return Ok(()),
            }
        }
    }

    /// Calls `visit` with every member after a URI that passes, in the order of URIs, until it returns false. `wanted`
    /// is about how many objects the caller needs; it decides how many candidates are listed at first.
    pub(super) fn for_each_passing(
        &self,
        after: Option<String>,
        wanted: usize,
        visit: &mut PassedCallback<'_>,
    ) -> Result<(), GatewayError> {
        self.for_each_page(after, wanted, &mut |passed| match passed {
            Some(uri) => visit(uri),
            None => Ok(true),
        })
    }

    /// As [`Self::for_each_passing`], and also calls `visit` with `None` before each page of candidates, of which none may
    /// pass.
    pub(super) fn for_each_page(
        &self,
        after: Option<String>,
        wanted: usize,
        visit: &mut PageCallback<'_>,
    ) -> Result<(), GatewayError> {
        self.for_each_member(after, wanted, &mut |member| match member {
            Some(uri) if !self.passes(uri)? => Ok(true),
            member => visit(member),
        })
    }

    /// As [`Self::for_each_page`], with the members among the candidates, which may not pass.
    pub(super) fn for_each_member(
        &self,
        mut after: Option<String>,
        wanted: usize,
        visit: &mut PageCallback<'_>,
    ) -> Result<(), GatewayError> {
        let mut limit = wanted.clamp(MIN_LISTED_CANDIDATES, MAX_LISTED_CANDIDATES);
        loop {
            self.budget.check_time()?;
            if !visit(None)? {
                return Ok(());
            }
            let uris = self.source.list_after(self.read, after.as_deref(), limit)?;
            for uri in &uris {
                if self.read.is_hidden(uri.as_ref().into())? {
                    continue;
                }
                self.budget.count_examined(1)?;
                let is_member = self.source.has_only_members() || self.is_member(uri)?;
                if is_member && !visit(Some(uri))? {
                    return Ok(());
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
