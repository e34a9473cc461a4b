//! Conditions on the object of a triple pattern that are tested while its quads are read, before the evaluator builds a row,
//! and ranges of values that the index of values finds.
//!
//! The evaluator still evaluates the whole expression for each row that is left. So a condition only needs to be right when
//! it excludes a term, and leaves every case that it does not know to the evaluator.
//!
//! The name of conditions takes the place of the pattern's property, in every graph. If the predicate is a variable, it takes
//! the place of the default graph.
use crate::condition::Condition;
use crate::dataset::Dataset;
use crate::ranges::find_ranges;
use oxrdf::{Literal, Variable};
use spareval::ExpressionTerm;
use spargebra::algebra::{Expression, Function, GraphPattern};
use spargebra::term::{NamedNodePattern, TermPattern, TriplePattern};
use std::cmp::Ordering;

/// Adds the conditions that a filter requires to the triple patterns of `pattern` that bind their variables.
pub(crate) fn add_conditions(
    filter: &Expression,
    pattern: &mut GraphPattern,
    is_in_graph: bool,
    dataset: &Dataset<'_>,
) {
    add_tests(filter, pattern, is_in_graph, dataset);
    for (variable, values) in find_ranges(filter) {
        add_condition(&variable, Condition::IsIn(values), pattern, is_in_graph, dataset);
    }
}

fn add_tests(
    filter: &Expression,
    pattern: &mut GraphPattern,
    is_in_graph: bool,
    dataset: &Dataset<'_>,
) {
    if let Expression::And(left, right) = filter {
        add_tests(left, pattern, is_in_graph, dataset);
        add_tests(right, pattern, is_in_graph, dataset);
    } else if let Some((variable, condition)) = find_condition(filter, dataset) {
        add_condition(variable, condition, pattern, is_in_graph, dataset);
    }
}

/// Adds a condition to the triple pattern that has this variable as its object, if each row of `pattern` matches one.
pub(crate) fn add_condition(
    variable: &Variable,
    condition: Condition,
    pattern: &mut GraphPattern,
    is_in_graph: bool,
    dataset: &Dataset<'_>,
) {
    let Some(found) = find_triple(pattern, variable, is_in_graph, dataset) else { return };
    let name = match found {
        GraphPattern::Graph { name, .. } => Some(name),
        GraphPattern::Bgp { patterns } => patterns.first_mut().map(|triple| &mut triple.predicate),
        _ => None,
    };
    match name {
        Some(NamedNodePattern::NamedNode(name)) if dataset.has_conditions(name) => {
            dataset.extend_conditions(name, condition);
        }
        Some(NamedNodePattern::NamedNode(property)) => {
            *property = dataset.add_conditions(condition, Some(property.clone()));
        }
        _ => {
            let name = NamedNodePattern::NamedNode(dataset.add_conditions(condition, None));
            *found = GraphPattern::Graph { name, inner: Box::new(std::mem::take(found)) };
        }
    }
}

/// Finds the triple pattern whose object is this variable and that can have conditions, or the graph around it if that is
/// their name.
fn find_triple<'p>(
    pattern: &'p mut GraphPattern,
    variable: &Variable,
    is_in_graph: bool,
    dataset: &Dataset<'_>,
) -> Option<&'p mut GraphPattern> {
    let find = |inner: &'p mut GraphPattern| find_triple(inner, variable, is_in_graph, dataset);
    match pattern {
        bgp @ GraphPattern::Bgp { .. } => has_object(bgp, variable, is_in_graph).then_some(bgp),
        GraphPattern::Graph { name: NamedNodePattern::NamedNode(name), inner }
            if dataset.has_conditions(name) =>
        {
            has_object(inner, variable, false).then_some(pattern)
        }
        GraphPattern::Graph { inner, .. } => find_triple(inner, variable, true, dataset),
        GraphPattern::Lateral { left, right } | GraphPattern::Join { left, right } => {
            let found = find(left);
            if found.is_some() { found } else { find(right) }
        }
        GraphPattern::LeftJoin { left, .. } | GraphPattern::Minus { left, .. } => find(left),
        GraphPattern::Filter { inner, .. }
        | GraphPattern::Extend { inner, .. }
        | GraphPattern::Distinct { inner }
        | GraphPattern::Reduced { inner } => find(inner),
        GraphPattern::Project { inner, variables } if variables.contains(variable) => find(inner),
        _ => None,
    }
}

/// Returns whether a pattern is one triple pattern with this variable as its object, and can have conditions.
fn has_object(pattern: &GraphPattern, variable: &Variable, is_in_graph: bool) -> bool {
    let GraphPattern::Bgp { patterns } = pattern else { return false };
    let [TriplePattern { predicate, object: TermPattern::Variable(object), .. }] =
        patterns.as_slice()
    else {
        return false;
    };
    object == variable && (!is_in_graph || matches!(predicate, NamedNodePattern::NamedNode(_)))
}

/// Returns what an expression requires of one variable.
fn find_condition<'e>(
    expression: &'e Expression,
    dataset: &Dataset<'_>,
) -> Option<(&'e Variable, Condition)> {
    use Ordering::{Equal, Greater, Less};
    let compared = |(left, right): (&'e Expression, &'e Expression),
                    expected: &'static [Ordering],
                    turned: &'static [Ordering]| {
        let (variable, constant, expected) = match (left, right) {
            (Expression::Variable(variable), constant) => (variable, constant, expected),
            (constant, Expression::Variable(variable)) => (variable, constant, turned),
            _ => return None,
        };
        match constant {
            Expression::Literal(literal) => {
                Some((variable, Condition::Compares(to_number(literal)?, expected)))
            }
            Expression::NamedNode(iri) if expected == [Equal] => {
                Some((variable, Condition::Is(dataset.encode(iri.clone().into()))))
            }
            _ => None,
        }
    };
    match expression {
        Expression::Equal(left, right) => compared((left, right), &[Equal], &[Equal]),
        Expression::Greater(left, right) => compared((left, right), &[Greater], &[Less]),
        Expression::GreaterOrEqual(left, right) => {
            compared((left, right), &[Greater, Equal], &[Less, Equal])
        }
        Expression::Less(left, right) => compared((left, right), &[Less], &[Greater]),
        Expression::LessOrEqual(left, right) => {
            compared((left, right), &[Less, Equal], &[Greater, Equal])
        }
        Expression::FunctionCall(function, arguments) => {
            let [Expression::Variable(variable), Expression::Literal(text)] = arguments.as_slice()
            else {
                return None;
            };
            let text = text.value().to_owned();
            let condition = match function {
                Function::Contains => Condition::Contains(text),
                Function::StrStarts => Condition::StartsWith(text),
                Function::StrEnds => Condition::EndsWith(text),
                _ => return None,
            };
            Some((variable, condition))
        }
        _ => None,
    }
}

/// Returns the value of a number of the most frequent types. To the evaluator, NaN is at least and at most NaN.
fn to_number(literal: &Literal) -> Option<ExpressionTerm> {
    let value = ExpressionTerm::from(oxrdf::Term::from(literal.clone()));
    match &value {
        ExpressionTerm::IntegerLiteral(_) | ExpressionTerm::DecimalLiteral(_) => Some(value),
        ExpressionTerm::DoubleLiteral(double) if !double.is_nan() => Some(value),
        _ => None,
    }
}
