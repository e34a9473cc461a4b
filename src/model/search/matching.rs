//! Tests whether an object passes a filter.
use super::budget::SearchBudget;
use super::filter::{Filter, ValueTest, find_property};
use crate::list::Lists;
use crate::mapping::{Shape, Value, format_language_tag};
use crate::view::{
    FieldValues, NestingPath, ShownLiteral, ShownValues, shows_last_member, shows_member,
};
use oxrdf::{NamedNode, NamedNodeRef};
use penstock_base::error::GatewayError;
use penstock_rdf::compare::{SortKey, ValueOrder};
use penstock_store::{ListedSubject, Read, SubjectQuads};
use std::borrow::Cow;
use std::cell::RefCell;
use std::cmp::Ordering;
use std::collections::HashSet;

/// A compiled filter: the values that it compares with are parsed once.
#[derive(Debug)]
pub(super) enum Matcher {
    All(Vec<Matcher>),
    Any(Vec<Matcher>),
    Not(Box<Matcher>),
    Uri(ValueCheck),
    Field { field: usize, order: ValueOrder, check: ValueCheck },
    Text { field: usize, language: Option<String>, check: ValueCheck },
    Nested { field: usize, matcher: Box<Matcher>, needs: RequiredQuads },
}

/// The part of an object that is read: the values of some properties.
#[derive(Debug, Default)]
pub(super) struct RequiredQuads {
    predicates: Vec<NamedNode>,
    /// What read them before, for the next objects.
    buffers: RefCell<Vec<SubjectQuads>>,
}

impl RequiredQuads {
    /// Returns what must be read for the fields at these indexes. Of a member of a map, this includes its value, without which
    /// the map does not show it.
    pub(super) fn for_fields(shape: &Shape, fields: impl IntoIterator<Item = usize>) -> Self {
        let value = shape.map_member().and_then(|map| map.value);
        let fields = fields.into_iter().chain(value.map(|(index, _)| index));
        let properties = fields.filter_map(|field| shape.property_at(field));
        Self::for_predicates(properties.map(|property| property.predicate.clone()).collect())
    }

    fn for_predicates(mut predicates: Vec<NamedNode>) -> Self {
        predicates.sort_unstable();
        predicates.dedup();
        Self { predicates, buffers: RefCell::default() }
    }

    /// Returns both parts together.
    pub(super) fn with(&self, other: &Self) -> Self {
        Self::for_predicates(self.predicates.iter().chain(&other.predicates).cloned().collect())
    }
}

#[derive(Debug)]
pub(super) enum ValueCheck {
    In(HashSet<String>),
    Equal(Vec<SortKey>),
    Contains(String),
    ContainsAnyCase(String),
    StartsWith(String),
    /// The value is a number or a time, and compares so with this one.
    Compares(SortKey, fn(Ordering) -> bool),
    Exists,
}

impl Matcher {
    /// Compiles a filter.
    ///
    /// # Errors
    /// `ErrorClass::Invalid` if the filter does not fit the shape.
    pub(super) fn new(filter: &Filter, shape: &Shape) -> Result<Self, GatewayError> {
        filter.check_shape(shape)?;
        Self::compile_filter(filter, shape)
    }

    fn compile_filter(filter: &Filter, shape: &Shape) -> Result<Self, GatewayError> {
        let all = |filters: &[Filter]| {
            filters
                .iter()
                .map(|filter| Self::compile_filter(filter, shape))
                .collect::<Result<_, GatewayError>>()
        };
        Ok(match filter {
            Filter::All(filters) => Self::All(all(filters)?),
            Filter::Any(filters) => Self::Any(all(filters)?),
            Filter::Not(filter) => Self::Not(Box::new(Self::compile_filter(filter, shape)?)),
            Filter::Uri(test) => Self::Uri(ValueCheck::new(test, ValueOrder::Text)),
            Filter::Field { field, test } => {
                let order = find_property(shape, *field)?.1.order();
                Self::Field { field: *field, order, check: ValueCheck::new(test, order) }
            }
            Filter::Text { field, language, test } => {
                let order = find_property(shape, *field)?.1.order();
                let language = language.as_deref().map(format_language_tag).map(Cow::into_owned);
                Self::Text { field: *field, language, check: ValueCheck::new(test, order) }
            }
            Filter::Nested { field, filter } => {
                let Value::Object(nested) = &find_property(shape, *field)?.1.value else {
                    return Ok(Self::Any(Vec::new()));
                };
                let matcher = Box::new(Self::compile_filter(filter, nested)?);
                let needs = RequiredQuads::for_fields(nested, matcher.own_fields());
                Self::Nested { field: *field, matcher, needs }
            }
        })
    }

    /// Returns the indexes of the object's own fields that the filter uses.
    pub(super) fn own_fields(&self) -> HashSet<usize> {
        match self {
            Self::All(matchers) | Self::Any(matchers) => {
                matchers.iter().flat_map(Self::own_fields).collect()
            }
            Self::Not(matcher) => matcher.own_fields(),
            Self::Uri(_) => HashSet::new(),
            Self::Field { field, .. } | Self::Text { field, .. } | Self::Nested { field, .. } => {
                HashSet::from([*field])
            }
        }
    }
}

/// An object that is tested. One reader reads it and everything nested in it.
pub(super) struct TestedObject<'t> {
    pub(super) read: &'t dyn Read,
    pub(super) shape: &'t Shape,
    pub(super) path: NestingPath<'t>,
    /// The object as it was listed, if it was listed to be read.
    pub(super) listed: Option<&'t ListedSubject>,
    pub(super) budget: &'t SearchBudget,
}

impl TestedObject<'_> {
    pub(super) fn passes_filter(
        &self,
        matcher: &Matcher,
        needs: &RequiredQuads,
    ) -> Result<bool, GatewayError> {
        self.with_values(needs, |values| self.passes_with_values(matcher, values))
    }

    /// Passes the values of these properties of the object to `visit`: none if it is nested in itself. The search counts
    /// objects that are not nested when it lists them.
    pub(super) fn with_values<T>(
        &self,
        needs: &RequiredQuads,
        visit: impl FnOnce(&FieldValues<'_>) -> Result<T, GatewayError>,
    ) -> Result<T, GatewayError> {
        if needs.predicates.is_empty() || self.path.is_within_itself() {
            return visit(&FieldValues::from_quads(self.shape, &[]));
        }
        if self.path.above.is_some() {
            self.budget.count_examined(1)?;
        }
        let kept = needs.buffers.borrow_mut().pop();
        let mut quads = kept.unwrap_or_else(|| SubjectQuads::limited_to(needs.predicates.clone()));
        match self.listed {
            Some(listed) => self.read.read_listed(listed, &mut quads)?,
            None => self.read.read_subject(self.path.uri.as_ref().into(), &mut quads)?,
        }
        let lists = self.read_lists(&quads)?;
        let done = visit(&FieldValues::from_subject(self.shape, &quads).with_lists(&lists));
        needs.buffers.borrow_mut().push(quads);
        done
    }

    /// Reads the lists of ordered arrays.
    fn read_lists(&self, quads: &SubjectQuads) -> Result<Lists, GatewayError> {
        let mut lists = Lists::default();
        let nodes = lists.add_object(self.read, self.shape, quads.iter())?;
        if nodes > 0 {
            self.budget.count_examined(nodes)?;
        }
        Ok(lists)
    }

    pub(super) fn passes_with_values(
        &self,
        matcher: &Matcher,
        owned: &FieldValues<'_>,
    ) -> Result<bool, GatewayError> {
        match matcher {
            Matcher::All(matchers) => {
                for matcher in matchers {
                    if !self.passes_with_values(matcher, owned)? {
                        return Ok(false);
                    }
                }
                Ok(true)
            }
            Matcher::Any(matchers) => {
                for matcher in matchers {
                    if self.passes_with_values(matcher, owned)? {
                        return Ok(true);
                    }
                }
                Ok(false)
            }
            Matcher::Not(matcher) => Ok(!self.passes_with_values(matcher, owned)?),
            Matcher::Uri(check) => Ok(check.matches_text(self.path.uri.as_str(), ValueOrder::Text)),
            Matcher::Field { field, order, check } => {
                let (_, property) = find_property(self.shape, *field)?;
                let shown = owned.collect_shown(*field, property);
                Ok(shown.texts().any(|text| check.matches_text(text, *order)))
            }
            Matcher::Text { field, language, check } => {
                let (_, property) = find_property(self.shape, *field)?;
                let ShownValues::Literals(texts) = owned.collect_shown(*field, property) else {
                    return Ok(false);
                };
                let is_in_language = |text: &ShownLiteral<'_>| {
                    language.is_none() || text.language().as_deref() == language.as_deref()
                };
                let mut texts = texts.iter().filter(|text| is_in_language(text));
                Ok(texts.any(|text| check.matches_text(&text.text, property.order())))
            }
            Matcher::Nested { field, matcher, needs } => {
                let (_, property) = find_property(self.shape, *field)?;
                let (Value::Object(shape), ShownValues::Iris(iris)) =
                    (&property.value, owned.collect_shown(*field, property))
                else {
                    return Ok(false);
                };
                let found =
                    self.find_nested((shape, iris.as_slice()), needs, 1, |nested, values| {
                        Ok(nested.passes_with_values(matcher, values)?.then_some(()))
                    })?;
                Ok(!found.is_empty())
            }
        }
    }

    /// Reads these nested objects in order. Returns what `test` finds, until it has found something in `limit` of them. Those
    /// that a map does not show do not count.
    pub(super) fn find_nested<T>(
        &self,
        (shape, uris): (&Shape, &[NamedNodeRef<'_>]),
        needs: &RequiredQuads,
        limit: usize,
        test: impl Fn(&TestedObject<'_>, &FieldValues<'_>) -> Result<Option<T>, GatewayError>,
    ) -> Result<Vec<T>, GatewayError> {
        let mut found = Vec::new();
        // The names of the members are read as far as the last one in which something is found.
        let (mut names, mut named) = (HashSet::new(), 0);
        for (index, uri) in uris.iter().enumerate() {
            if found.len() >= limit {
                break;
            }
            let uri = uri.into_owned();
            let nested = TestedObject {
                read: self.read,
                shape,
                path: NestingPath { uri: &uri, above: Some(&self.path) },
                listed: None,
                budget: self.budget,
            };
            let one = nested.with_values(needs, |values| {
                let one = test(&nested, values)?;
                let is_shown =
                    one.is_some() && shows_member(self.read, shape, &nested.path, values)?;
                Ok(one.filter(|_| is_shown))
            })?;
            let Some(one) = one else { continue };
            let unnamed = uris.get(named..=index).unwrap_or_default();
            named = index + 1;
            if shows_last_member(self.read, shape, unnamed, &mut names)? {
                found.push(one);
            }
        }
        Ok(found)
    }
}

impl ValueCheck {
    pub(super) fn new(test: &ValueTest, order: ValueOrder) -> Self {
        let compare = |limit: &str, is_wanted| Self::Compares(order.sort_key(limit), is_wanted);
        match test {
            ValueTest::In(wanted) if order == ValueOrder::Text => {
                Self::In(wanted.iter().cloned().collect())
            }
            ValueTest::In(wanted) => {
                Self::Equal(wanted.iter().map(|text| order.sort_key(text)).collect())
            }
            ValueTest::Contains(part) => Self::Contains(part.clone()),
            ValueTest::ContainsAnyCase(part) => Self::ContainsAnyCase(part.to_lowercase()),
            ValueTest::StartsWith(prefix) => Self::StartsWith(prefix.clone()),
            ValueTest::Before(limit) => compare(limit, Ordering::is_lt),
            ValueTest::After(limit) => compare(limit, Ordering::is_gt),
            ValueTest::AtLeast(limit) => compare(limit, Ordering::is_ge),
            ValueTest::AtMost(limit) => compare(limit, Ordering::is_le),
            ValueTest::Exists => Self::Exists,
        }
    }

    pub(super) fn matches_text(&self, text: &str, order: ValueOrder) -> bool {
        match self {
            Self::In(wanted) => wanted.contains(text),
            Self::Equal(wanted) => wanted.contains(&order.sort_key(text)),
            Self::Contains(part) => text.contains(part),
            Self::ContainsAnyCase(part) => text.to_lowercase().contains(part),
            Self::StartsWith(prefix) => text.starts_with(prefix),
            Self::Compares(limit, is_wanted) => {
                let key = order.sort_key(text);
                !matches!(key, SortKey::Text(_)) && is_wanted(key.cmp(limit))
            }
            Self::Exists => true,
        }
    }
}
