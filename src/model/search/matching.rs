//! Tests whether an object passes a filter.
use super::bounds::Bounds;
use super::filter::{Filter, Test, property};
use super::order::{Key, Kind};
use crate::mapping::{Shape, Value};
use crate::view::{Owned, Path, Values};
use oxrdf::{NamedNode, NamedOrBlankNode, Quad};
use penstock_base::fault::Fault;
use penstock_store::{Pattern, Read};
use std::collections::HashSet;
use std::ops::ControlFlow;

/// A compiled filter: the values that it compares with are parsed once.
#[derive(Debug)]
pub(super) enum Matcher {
    All(Vec<Matcher>),
    Any(Vec<Matcher>),
    Not(Box<Matcher>),
    Uri(Check),
    Field { field: usize, kind: Kind, check: Check },
    Nested { field: usize, matcher: Box<Matcher>, needs: Needs },
}

/// The part of an object that is read for a test.
#[derive(Debug)]
pub(super) enum Needs {
    /// The values of these properties, few enough to be looked up one by one.
    Few(Vec<NamedNode>),
    /// Everything.
    All,
}

impl Needs {
    /// The maximum number of properties that are looked up one by one.
    const FEW: usize = 3;

    /// Returns what must be read for the fields at these indexes.
    pub(super) fn of(shape: &Shape, fields: &HashSet<usize>) -> Self {
        let predicates: Option<HashSet<&NamedNode>> =
            fields.iter().map(|field| Some(&property(shape, *field).ok()?.1.predicate)).collect();
        match predicates {
            Some(few) if few.len() <= Self::FEW && few.len() * 2 < shape.fields.len() => {
                Self::Few(few.into_iter().cloned().collect())
            }
            _ => Self::All,
        }
    }
}

#[derive(Debug)]
pub(super) enum Check {
    In(HashSet<String>),
    Equal(Vec<Key>),
    Contains(String),
    ContainsAnyCase(String),
    Before(Key),
    After(Key),
    Exists,
}

impl Matcher {
    /// Compiles a filter.
    ///
    /// # Errors
    /// `Kind::Invalid` if the filter does not fit the shape.
    pub(super) fn new(filter: &Filter, shape: &Shape) -> Result<Self, Fault> {
        filter.check(shape)?;
        Self::of(filter, shape)
    }

    fn of(filter: &Filter, shape: &Shape) -> Result<Self, Fault> {
        let all = |filters: &[Filter]| {
            filters.iter().map(|filter| Self::of(filter, shape)).collect::<Result<_, Fault>>()
        };
        Ok(match filter {
            Filter::All(filters) => Self::All(all(filters)?),
            Filter::Any(filters) => Self::Any(all(filters)?),
            Filter::Not(filter) => Self::Not(Box::new(Self::of(filter, shape)?)),
            Filter::Uri(test) => Self::Uri(Check::new(test, Kind::Text)),
            Filter::Field { field, test } => {
                let kind = Kind::of(property(shape, *field)?.1);
                Self::Field { field: *field, kind, check: Check::new(test, kind) }
            }
            Filter::Nested { field, filter } => {
                let Value::Object(nested) = &property(shape, *field)?.1.value else {
                    return Ok(Self::Any(Vec::new()));
                };
                let matcher = Box::new(Self::of(filter, nested)?);
                let needs = Needs::of(nested, &matcher.fields());
                Self::Nested { field: *field, matcher, needs }
            }
        })
    }

    /// Returns the indexes of the object's own fields that the filter uses.
    pub(super) fn fields(&self) -> HashSet<usize> {
        match self {
            Self::All(matchers) | Self::Any(matchers) => {
                matchers.iter().flat_map(Self::fields).collect()
            }
            Self::Not(matcher) => matcher.fields(),
            Self::Uri(_) => HashSet::new(),
            Self::Field { field, .. } | Self::Nested { field, .. } => HashSet::from([*field]),
        }
    }

    /// Returns whether the test needs to read the object.
    pub(super) fn reads(&self) -> bool {
        match self {
            Self::All(matchers) | Self::Any(matchers) => matchers.iter().any(Self::reads),
            Self::Not(matcher) => matcher.reads(),
            Self::Uri(_) => false,
            Self::Field { .. } | Self::Nested { .. } => true,
        }
    }
}

/// An object that is tested, with one reader for all of it.
pub(super) struct Tested<'t, R> {
    pub(super) read: &'t R,
    pub(super) shape: &'t Shape,
    pub(super) path: Path<'t>,
    pub(super) bounds: &'t Bounds,
}

impl<R: Read> Tested<'_, R> {
    pub(super) fn passes(&self, matcher: &Matcher, needs: &Needs) -> Result<bool, Fault> {
        if !matcher.reads() {
            return self.passes_with(matcher, &Owned::of_quads(self.shape, &[]));
        }
        let quads = self.quads(needs)?;
        self.passes_with(matcher, &Owned::of_quads(self.shape, &quads))
    }

    /// Reads what is stored about the object; empty if it is nested in itself.
    pub(super) fn quads(&self, needs: &Needs) -> Result<Vec<Quad>, Fault> {
        if self.path.above.is_some_and(|above| above.holds(self.path.uri)) {
            return Ok(Vec::new());
        }
        self.bounds.look(1)?;
        let subject = NamedOrBlankNode::from(self.path.uri.clone());
        let predicates = match needs {
            Needs::All => return Ok(self.read.quads_about(&subject)?),
            Needs::Few(predicates) => predicates,
        };
        let mut quads = Vec::new();
        for predicate in predicates {
            let pattern = Pattern {
                subject: Some(subject.clone()),
                predicate: Some(predicate.clone()),
                ..Pattern::default()
            };
            self.read.for_each(&pattern, &mut |quad| {
                quads.push(quad);
                ControlFlow::Continue(())
            })?;
        }
        Ok(quads)
    }

    pub(super) fn passes_with(&self, matcher: &Matcher, owned: &Owned<'_>) -> Result<bool, Fault> {
        match matcher {
            Matcher::All(matchers) => {
                for matcher in matchers {
                    if !self.passes_with(matcher, owned)? {
                        return Ok(false);
                    }
                }
                Ok(true)
            }
            Matcher::Any(matchers) => {
                for matcher in matchers {
                    if self.passes_with(matcher, owned)? {
                        return Ok(true);
                    }
                }
                Ok(false)
            }
            Matcher::Not(matcher) => Ok(!self.passes_with(matcher, owned)?),
            Matcher::Uri(check) => Ok(check.passes(self.path.uri.as_str(), Kind::Text)),
            Matcher::Field { field, kind, check } => {
                let (_, property) = property(self.shape, *field)?;
                Ok(match owned.shown(*field, property) {
                    Values::Literals(shown) => {
                        shown.iter().any(|shown| check.passes(&shown.text, *kind))
                    }
                    Values::Iris(iris) => iris.iter().any(|iri| check.passes(iri.as_str(), *kind)),
                })
            }
            Matcher::Nested { field, matcher, needs } => {
                let (_, property) = property(self.shape, *field)?;
                let (Value::Object(shape), Values::Iris(iris)) =
                    (&property.value, owned.shown(*field, property))
                else {
                    return Ok(false);
                };
                for uri in iris {
                    if self.nested(shape, &uri.into_owned()).passes(matcher, needs)? {
                        return Ok(true);
                    }
                }
                Ok(false)
            }
        }
    }

    fn nested<'n>(&'n self, shape: &'n Shape, uri: &'n NamedNode) -> Tested<'n, R> {
        Tested {
            read: self.read,
            shape,
            path: Path { uri, above: Some(&self.path) },
            bounds: self.bounds,
        }
    }
}

impl Check {
    fn new(test: &Test, kind: Kind) -> Self {
        match test {
            Test::In(wanted) if kind == Kind::Text => Self::In(wanted.iter().cloned().collect()),
            Test::In(wanted) => Self::Equal(wanted.iter().map(|text| kind.key(text)).collect()),
            Test::Contains(part) => Self::Contains(part.clone()),
            Test::ContainsAnyCase(part) => Self::ContainsAnyCase(part.to_lowercase()),
            Test::Before(text) => Self::Before(kind.key(text)),
            Test::After(text) => Self::After(kind.key(text)),
            Test::Exists => Self::Exists,
        }
    }

    fn passes(&self, text: &str, kind: Kind) -> bool {
        let comparable = |key: &Key| !matches!(key, Key::Text(_));
        match self {
            Self::In(wanted) => wanted.contains(text),
            Self::Equal(wanted) => wanted.contains(&kind.key(text)),
            Self::Contains(part) => text.contains(part),
            Self::ContainsAnyCase(part) => text.to_lowercase().contains(part),
            Self::Before(limit) => {
                Some(kind.key(text)).filter(comparable).is_some_and(|key| key < *limit)
            }
            Self::After(limit) => {
                Some(kind.key(text)).filter(comparable).is_some_and(|key| key > *limit)
            }
            Self::Exists => true,
        }
    }
}
