//! The values that a filter selects, as ranges of the index of values.
//!
//! A range never leaves out a value for which its filter holds. It may have others: the evaluator still evaluates the whole
//! filter for each row that is left.
use crate::number::Number;
use oxrdf::{Literal, Variable};
use penstock_store::{ValueClass, ValueKey, ValueRange};
use spargebra::algebra::{Expression, Function};

/// The maximum number of alternatives of one variable. More are not worth as many lookups in the index.
const MAX_ALTERNATIVES: usize = 100;

/// The ranges in which filters require the values of variables to be: at most one of each class of values.
pub(crate) type Ranges = Vec<(Variable, Vec<ValueRange>)>;

/// Returns the ranges in which a filter requires the values of variables to be.
pub(crate) fn find_ranges(filter: &Expression) -> Ranges {
    let mut ranges = Vec::new();
    collect_ranges(filter, &mut ranges);
    ranges
}

/// Adds ranges of a variable to those that apply already.
pub(crate) fn restrict(ranges: &mut Ranges, variable: &Variable, added: Vec<ValueRange>) {
    match ranges.iter_mut().find(|(known, _)| known == variable) {
        Some((_, known)) => *known = intersect(known, &added),
        None => ranges.push((variable.clone(), added)),
    }
}

/// Returns what two lists of ranges have in common.
pub(crate) fn intersect(some: &[ValueRange], others: &[ValueRange]) -> Vec<ValueRange> {
    let pairs = some.iter().flat_map(|one| others.iter().filter_map(|other| one.intersect(other)));
    pairs.collect()
}

/// Returns whether a filter requires nothing else than ranges of this variable.
pub(crate) fn is_range(filter: &Expression, variable: &Variable) -> bool {
    match filter {
        Expression::And(left, right) => is_range(left, variable) && is_range(right, variable),
        other => to_ranges(other).is_some_and(|(ranged, _)| ranged == variable),
    }
}

fn collect_ranges(filter: &Expression, ranges: &mut Ranges) {
    if let Expression::And(left, right) = filter {
        collect_ranges(left, ranges);
        collect_ranges(right, ranges);
    } else if let Some((variable, found)) = to_ranges(filter) {
        restrict(ranges, variable, found);
    }
}

/// Returns the ranges in which an expression requires one variable to be.
fn to_ranges(expression: &Expression) -> Option<(&Variable, Vec<ValueRange>)> {
    use Expression::{Equal, Greater, GreaterOrEqual, In, Less, LessOrEqual};
    match expression {
        Equal(left, right) => {
            let (variable, literal, _) = to_comparison(left, right)?;
            Some((variable, vec![equal_to(literal)?]))
        }
        Greater(left, right) | GreaterOrEqual(left, right) => {
            let (variable, literal, is_turned) = to_comparison(left, right)?;
            Some((variable, vec![beyond(literal, is_turned)?]))
        }
        Less(left, right) | LessOrEqual(left, right) => {
            let (variable, literal, is_turned) = to_comparison(left, right)?;
            Some((variable, vec![beyond(literal, !is_turned)?]))
        }
        In(left, list) if list.len() <= MAX_ALTERNATIVES => {
            let Expression::Variable(variable) = &**left else { return None };
            let mut ranges = Vec::new();
            for item in list {
                let Expression::Literal(literal) = item else { return None };
                unite(&mut ranges, equal_to(literal)?);
            }
            Some((variable, ranges))
        }
        Expression::FunctionCall(Function::StrStarts, arguments) => {
            let [Expression::Variable(variable), Expression::Literal(text)] = arguments.as_slice()
            else {
                return None;
            };
            let is_text = matches!(class_of(text), ValueClass::Text | ValueClass::LanguageText);
            is_text.then(|| {
                let strings = ValueRange::starting_with(text.value());
                (variable, vec![strings.in_class(ValueClass::LanguageText), strings])
            })
        }
        _ => None,
    }
}

/// Returns the variable and the literal that are compared, and whether the literal comes first.
fn to_comparison<'e>(
    left: &'e Expression,
    right: &'e Expression,
) -> Option<(&'e Variable, &'e Literal, bool)> {
    match (left, right) {
        (Expression::Variable(variable), Expression::Literal(literal)) => {
            Some((variable, literal, false))
        }
        (Expression::Literal(literal), Expression::Variable(variable)) => {
            Some((variable, literal, true))
        }
        _ => None,
    }
}

/// Adds a range to the one of its class.
fn unite(ranges: &mut Vec<ValueRange>, added: ValueRange) {
    for range in ranges.iter_mut() {
        if let Some(both) = range.union(&added) {
            *range = both;
            return;
        }
    }
    ranges.push(added);
}

/// Returns the values that can be equal to a literal; `None` if others can be.
fn equal_to(literal: &Literal) -> Option<ValueRange> {
    let is_known = is_ordered(literal) || class_of(literal) == ValueClass::Boolean;
    is_known.then(|| ValueRange::equal_to(literal.as_ref()))
}

/// Returns the values from a literal on, or up to it; `None` if others can compare so with it.
fn beyond(literal: &Literal, is_up_to: bool) -> Option<ValueRange> {
    let range = if is_up_to { ValueRange::at_most } else { ValueRange::at_least };
    is_ordered(literal).then(|| range(literal.as_ref()))
}

/// Returns whether a literal compares with literals of its class in the index only, and in the order of their keys. A time
/// without a zone is before or after one with a zone only if it is so in UTC too.
fn is_ordered(literal: &Literal) -> bool {
    match class_of(literal) {
        // NaN compares with nothing, but `<=` and `>=` hold for the same term.
        ValueClass::Number => {
            Number::read(literal).is_some_and(|number| !number.to_double().is_nan())
        }
        ValueClass::Time | ValueClass::Date | ValueClass::Text | ValueClass::LanguageText => true,
        ValueClass::Boolean | ValueClass::Other => false,
    }
}

fn class_of(literal: &Literal) -> ValueClass {
    ValueKey::of(literal.as_ref()).0
}
