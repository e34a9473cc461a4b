//! A quick check that most objects pass. rudof takes about 2 us for each constraint of an object, a multiple of what
//! storing it takes. This check reads each object once and says "conforms" only if that is certain: for the frequent
//! constraints, and values of the frequent datatypes. rudof validates the other data, and alone decides what violates.
use super::patterns::{Patterns, pattern_key};
use crate::data::{Data, to_named_node};
use crate::patterns::Pattern;
use oxrdf::vocab::rdf;
use oxrdf::{NamedNode, NamedNodeRef, Term};
use oxsdatatypes::Decimal;
use penstock_rdf::compare::{fold_language, is_valid, to_decimal};
use rudof_rdf::rdf_core::term::Object;
use rudof_rdf::rdf_core::term::literal::ConcreteLiteral;
use shacl::ir::{IRComponent, IRSchema, ShapeLabelIdx};
use shacl::types::NodeKind;
use std::cell::Cell;
use std::collections::{HashMap, HashSet};
use std::sync::Arc;

/// The quick checks of a shapes graph, by shape. A shape is missing if it has a constraint without a quick check.
#[derive(Debug, Default)]
pub(super) struct QuickShapes(HashMap<ShapeLabelIdx, QuickShape>);

#[derive(Debug)]
struct QuickShape {
    /// The property whose values are checked; `None` for the object itself.
    property: Option<NamedNode>,
    checks: Vec<Check>,
    /// The property shapes of each value.
    parts: Vec<ShapeLabelIdx>,
}

#[derive(Debug)]
enum Check {
    MinCount(usize),
    MaxCount(usize),
    Class(Term),
    Datatype(NamedNode),
    NodeKind(NodeKind),
    MinInclusive(Decimal),
    MinExclusive(Decimal),
    MaxInclusive(Decimal),
    MaxExclusive(Decimal),
    MinLength(usize),
    MaxLength(usize),
    Pattern(Arc<Pattern>),
    HasValue(Term),
    In(HashSet<Term>),
    Node(ShapeLabelIdx),
    And(Vec<ShapeLabelIdx>),
    Or(Vec<ShapeLabelIdx>),
}

impl QuickShapes {
    pub(super) fn compile(schema: &IRSchema, patterns: &Patterns) -> Self {
        let mut shapes = Self::default();
        for (id, shape) in schema.iter() {
            let property = match shape.path() {
                None => None,
                Some(path) => match path.pred() {
                    Some(property) => Some(to_named_node(property)),
                    None => continue,
                },
            };
            if shape.deactivated().is_some() || shape.reifier_info().is_some() || shape.closed() {
                continue;
            }
            let components = shape.components().iter();
            let checks: Option<Vec<Check>> =
                components.map(|one| to_check(one, patterns)).collect();
            if let (Some(index), Some(checks)) = (schema.get_idx(id), checks) {
                let parts = shape.property_shapes().clone();
                shapes.0.insert(*index, QuickShape { property, checks, parts });
            }
        }
        shapes
    }

    /// Returns whether it is certain that a node conforms to a shape.
    pub(super) fn conforms(&self, data: &Data<'_>, shape: ShapeLabelIdx, focus: &Term) -> bool {
        Run { shapes: self, data, steps: Cell::new(0) }.conforms(shape, focus)
    }
}

/// The check of one object.
struct Run<'a> {
    shapes: &'a QuickShapes,
    data: &'a Data<'a>,
    steps: Cell<u32>,
}

impl Run<'_> {
    /// The number of shapes and values from which an object is left to rudof, which checks no pair of them twice.
    const MAX_STEPS: u32 = 10_000;

    fn conforms(&self, shape: ShapeLabelIdx, focus: &Term) -> bool {
        self.steps.set(self.steps.get() + 1);
        if self.steps.get() > Self::MAX_STEPS {
            return false;
        }
        let Some(shape) = self.shapes.0.get(&shape) else { return false };
        let triples;
        let values: Vec<&Term> = match &shape.property {
            None => vec![focus],
            Some(property) => {
                triples = self.data.read_term(focus);
                let own = triples.iter().filter(|triple| triple.predicate == *property);
                own.map(|triple| &triple.object).collect()
            }
        };
        shape.checks.iter().all(|check| self.holds(check, &values))
            && self.all_conform(&shape.parts, &values)
    }

    fn all_conform(&self, shapes: &[ShapeLabelIdx], values: &[&Term]) -> bool {
        shapes.iter().all(|shape| values.iter().all(|value| self.conforms(*shape, value)))
    }

    fn holds(&self, check: &Check, values: &[&Term]) -> bool {
        match check {
            Check::MinCount(count) => return values.len() >= *count,
            Check::MaxCount(count) => return values.len() <= *count,
            Check::HasValue(sought) => {
                return values.iter().any(|value| *fold_language(value) == *sought);
            }
            _ => {}
        }
        values.iter().all(|value| self.holds_for_value(check, value))
    }

    fn holds_for_value(&self, check: &Check, value: &Term) -> bool {
        match check {
            Check::MinCount(_) | Check::MaxCount(_) | Check::HasValue(_) => false,
            Check::In(allowed) => allowed.contains(&*fold_language(value)),
            Check::Datatype(datatype) => has_datatype(value, datatype.as_ref()),
            Check::NodeKind(kind) => has_kind(value, kind),
            Check::MinInclusive(than) => to_number(value).is_some_and(|number| number >= *than),
            Check::MinExclusive(than) => to_number(value).is_some_and(|number| number > *than),
            Check::MaxInclusive(than) => to_number(value).is_some_and(|number| number <= *than),
            Check::MaxExclusive(than) => to_number(value).is_some_and(|number| number < *than),
            Check::MinLength(length) => {
                text_of(value).is_some_and(|t| t.chars().count() >= *length)
            }
            Check::MaxLength(length) => {
                text_of(value).is_some_and(|t| t.chars().count() <= *length)
            }
            Check::Pattern(pattern) => text_of(value).is_some_and(|text| {
                text.len() <= pattern.max_text_bytes() && self.data.is_match(pattern, text)
            }),
            Check::Class(class) => {
                let triples = self.data.read_term(value);
                let mut types = triples.iter().filter(|triple| triple.predicate == rdf::TYPE);
                types.any(|triple| triple.object == *class)
            }
            Check::Node(shape) => self.conforms(*shape, value),
            Check::And(shapes) => shapes.iter().all(|shape| self.conforms(*shape, value)),
            Check::Or(shapes) => shapes.iter().any(|shape| self.conforms(*shape, value)),
        }
    }
}

/// Returns the quick check of a constraint; `None` if there is none.
fn to_check(component: &IRComponent, patterns: &Patterns) -> Option<Check> {
    let number = |literal: &ConcreteLiteral| to_number(&Object::Literal(literal.clone()).into());
    Some(match component {
        IRComponent::MinCount(count) => Check::MinCount(count.min_count()),
        IRComponent::MaxCount(count) => Check::MaxCount(count.max_count()),
        IRComponent::Class(class) => Check::Class(class.class_rule().clone().into()),
        IRComponent::Datatype(datatype) => Check::Datatype(to_named_node(datatype.datatype())),
        IRComponent::NodeKind(kind) => Check::NodeKind(kind.node_kind().clone()),
        IRComponent::MinInclusive(than) => Check::MinInclusive(number(than.min_inclusive())?),
        IRComponent::MinExclusive(than) => Check::MinExclusive(number(than.min_exclusive())?),
        IRComponent::MaxInclusive(than) => Check::MaxInclusive(number(than.max_inclusive())?),
        IRComponent::MaxExclusive(than) => Check::MaxExclusive(number(than.max_exclusive())?),
        IRComponent::MinLength(length) => {
            Check::MinLength(usize::try_from(length.min_length()).ok()?)
        }
        IRComponent::MaxLength(length) => {
            Check::MaxLength(usize::try_from(length.max_length()).ok()?)
        }
        IRComponent::Pattern(pattern) => {
            Check::Pattern(patterns.get(&pattern_key(pattern))?.clone())
        }
        IRComponent::HasValue(value) => Check::HasValue(to_folded(value.value())),
        IRComponent::In(values) => Check::In(values.values().iter().map(to_folded).collect()),
        IRComponent::Node(node) => Check::Node(*node.shape()),
        IRComponent::And(and) => Check::And(and.shapes().clone()),
        IRComponent::Or(or) => Check::Or(or.shapes().clone()),
        _ => return None,
    })
}

/// Returns a value of a shape as values of the data are compared with it.
pub(super) fn to_folded(value: &Object) -> Term {
    let term = Term::from(value.clone());
    fold_language(&term).into_owned()
}

/// Returns what a regular expression and a length are for.
pub(super) fn text_of(value: &Term) -> Option<&str> {
    match value {
        Term::NamedNode(node) => Some(node.as_str()),
        Term::Literal(literal) => Some(literal.value()),
        _ => None,
    }
}

fn has_kind(value: &Term, kind: &NodeKind) -> bool {
    match value {
        Term::NamedNode(_) => {
            matches!(kind, NodeKind::Iri | NodeKind::BNodeOrIri | NodeKind::IriOrLit)
        }
        Term::Literal(_) => {
            matches!(kind, NodeKind::Lit | NodeKind::BNodeOrLit | NodeKind::IriOrLit)
        }
        _ => false,
    }
}

/// Returns whether the value is certainly a valid literal of the datatype.
fn has_datatype(value: &Term, datatype: NamedNodeRef<'_>) -> bool {
    let Term::Literal(literal) = value else { return false };
    literal.datatype() == datatype && is_valid(literal) == Some(true)
}

fn to_number(value: &Term) -> Option<Decimal> {
    match value {
        Term::Literal(literal) => to_decimal(literal),
        _ => None,
    }
}
