//! Conditions on the object of a triple pattern that are tested while its quads are read, before the evaluator builds a row,
//! and ranges of values that the index of values finds.
//!
//! The evaluator still evaluates the whole expression for each row that is left. So a condition only needs to be right when
//! it excludes a term, and leaves every case that it does not know to the evaluator.
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
    dataset: &Dataset<'_>,
) {
    add_tests(filter, pattern, dataset);
    for (variable, ranges) in find_ranges(filter) {
        add_condition(&variable, Condition::IsIn(ranges), pattern, dataset);
    }
}

fn add_tests(filter: &Expression, pattern: &mut GraphPattern, dataset: &Dataset<'_>) {
    if let Expression::And(left, right) = filter {
        add_tests(left, pattern, dataset);
        add_tests(right, pattern, dataset);
    } else if let Some((variable, condition)) = find_condition(filter, dataset) {
        add_condition(variable, condition, pattern, dataset);
    }
}

/// Adds a condition to the triple pattern that has this variable as its object, if each row of `pattern` matches one.
pub(crate) fn add_condition(
    variable: &Variable,
    condition: Condition,
    pattern: &mut GraphPattern,
    dataset: &Dataset<'_>,
) {
    let Some(found) = find_triple(pattern, variable, dataset) else { return };
    match found {
        GraphPattern::Graph { name: NamedNodePattern::NamedNode(name), .. } => {
            dataset.extend_conditions(name, condition);
        }
        bgp => {
            let name = NamedNodePattern::NamedNode(dataset.add_conditions(condition));
            *bgp = GraphPattern::Graph { name, inner: Box::new(std::mem::take(bgp)) };
        }
    }
}

/// Finds the triple pattern whose object is this variable, or the graph around it that has conditions.
fn find_triple<'p>(
    pattern: &'p mut GraphPattern,
    variable: &Variable,
    dataset: &Dataset<'_>,
) -> Option<&'p mut GraphPattern> {
    let has_object = |pattern: &GraphPattern| match pattern {
        GraphPattern::Bgp { patterns } => is_object(patterns, variable),
        _ => false,
    };
    match pattern {
        bgp @ GraphPattern::Bgp { .. } => has_object(bgp).then_some(bgp),
        GraphPattern::Graph { name: NamedNodePattern::NamedNode(name), inner }
            if has_object(inner) && dataset.has_conditions(name) =>
        {
            Some(pattern)
        }
        GraphPattern::Lateral { left, right } | GraphPattern::Join { left, right } => {
            let found = find_triple(left, variable, dataset);
            if found.is_some() { found } else { find_triple(right, variable, dataset) }
        }
        GraphPattern::LeftJoin { left, .. } | GraphPattern::Minus { left, .. } => {
            find_triple(left, variable, dataset)
        }
        GraphPattern::Filter { inner, .. }
        | GraphPattern::Extend { inner, .. }
        | GraphPattern::Distinct { inner }
        | GraphPattern::Reduced { inner } => find_triple(inner, variable, dataset),
        GraphPattern::Project { inner, variables } if variables.contains(variable) => {
            find_triple(inner, variable, dataset)
        }
        _ => None,
    }
}

fn is_object(patterns: &[TriplePattern], variable: &Variable) -> bool {
    let [TriplePattern { object: TermPattern::Variable(object), .. }] = patterns else {
        return false;
    };
    object == variable
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

/// Returns the value of a number of the most frequent types.
fn to_number(literal: &Literal) -> Option<ExpressionTerm> {
    let value = ExpressionTerm::from(oxrdf::Term::from(literal.clone()));
    matches!(
        value,
        ExpressionTerm::IntegerLiteral(_)
            | ExpressionTerm::DecimalLiteral(_)
            | ExpressionTerm::DoubleLiteral(_)
    )
    .then_some(value)
}
