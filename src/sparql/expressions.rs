//! The parts of expressions.
use spargebra::algebra::Expression;
use std::cell::Cell;

/// Returns whether `is_sought` holds for a part of an expression.
pub(crate) fn has_part(expression: &Expression, is_sought: &impl Fn(&Expression) -> bool) -> bool {
    if is_sought(expression) {
        return true;
    }
    let any = |parts: &[&Expression]| parts.iter().any(|part| has_part(part, is_sought));
    match expression {
        Expression::NamedNode(_)
        | Expression::Literal(_)
        | Expression::Variable(_)
        | Expression::Bound(_)
        | Expression::Exists(_) => false,
        Expression::Or(left, right)
        | Expression::And(left, right)
        | Expression::Equal(left, right)
        | Expression::SameTerm(left, right)
        | Expression::Greater(left, right)
        | Expression::GreaterOrEqual(left, right)
        | Expression::Less(left, right)
        | Expression::LessOrEqual(left, right)
        | Expression::Add(left, right)
        | Expression::Subtract(left, right)
        | Expression::Multiply(left, right)
        | Expression::Divide(left, right) => any(&[left, right]),
        Expression::UnaryPlus(inner) | Expression::UnaryMinus(inner) | Expression::Not(inner) => {
            any(&[inner])
        }
        Expression::If(condition, yes, no) => any(&[condition, yes, no]),
        Expression::In(left, list) => {
            has_part(left, is_sought) || list.iter().any(|part| has_part(part, is_sought))
        }
        Expression::Coalesce(list) | Expression::FunctionCall(_, list) => {
            list.iter().any(|part| has_part(part, is_sought))
        }
    }
}

/// Returns whether an expression has at most this number of parts, and no pattern.
pub(crate) fn has_parts_within(expression: &Expression, most: usize) -> bool {
    let left = Cell::new(most);
    // Stops at the first part that exceeds the number.
    !has_part(expression, &|part| match left.get().checked_sub(1) {
        Some(rest) => {
            left.set(rest);
            matches!(part, Expression::Exists(_))
        }
        None => true,
    })
}
