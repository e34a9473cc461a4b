//! Tests whether an object passes a filter.
use super::budget::SearchBudget;
use super::filter::{Filter, ValueTest, find_property};
use crate::list::Lists;
use crate::mapping::{Shape, Value, format_language_tag};
use crate::view::{FieldValues, NestingPath, ShownLiteral, ShownValues, shows_last_member};
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
    /// Returns what must be read for the fields at these indexes.
    pub(super) fn for_fields(shape: &Shape, fields: impl IntoIterator<Item = usize>) -> Self {
        let properties = fields.into_iter().filter_map(|field| shape.property_at(field));
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
pub(super) struct TestedObject<'t, R> {
    pub(super) read: &'t R,
    pub(super) shape: &'t Shape,
    pub(super) path: NestingPath<'t>,
    /// The object as it was listed, if it was listed to be read.
    pub(super) listed: Option<&'t ListedSubject>,
    pub(super) budget: &'t SearchBudget,
}

impl<R: Read> TestedObject<'_, R> {
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
        let is_repeated = || self.path.above.is_some_and(|above| above.contains_uri(self.path.uri));
        if needs.predicates.is_empty() || is_repeated() {
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
                self.has_passing(shape, &iris, |nested| nested.passes_filter(matcher, needs))
            }
        }
    }

    /// Returns whether one of these nested objects passes a test. Those that a map does not show do not count.
    fn has_passing(
        &self,
        shape: &Shape,
        uris: &[NamedNodeRef<'_>],
        passes: impl Fn(&TestedObject<'_, R>) -> Result<bool, GatewayError>,
    ) -> Result<bool, GatewayError> {
        // The names of the members are read as far as the last one that passes.
        let (mut names, mut named) = (HashSet::new(), 0);
        for (index, uri) in uris.iter().enumerate() {
            if !passes(&self.nested_object(shape, &uri.into_owned()))? {
                continue;
            }
            let unnamed = uris.get(named..=index).unwrap_or_default();
            if shows_last_member(self.read, shape, unnamed, &mut names)? {
                return Ok(true);
            }
            named = index + 1;
        }
        Ok(false)
    }

    /// Returns an object that is nested in this one.
    pub(super) fn nested_object<'n>(
        &'n self,
        shape: &'n Shape,
        uri: &'n NamedNode,
    ) -> TestedObject<'n, R> {
        TestedObject {
            read: self.read,
            shape,
            path: NestingPath { uri, above: Some(&self.path) },
            listed: None,
            budget: self.budget,
        }
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
