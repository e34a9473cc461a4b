//! The values that a filter selects, as ranges of the index of values.
//!
//! A set never leaves out a term for which its filter holds. It may have others: the evaluator still evaluates the whole
//! filter for each row that is left.
use crate::number::Number;
use oxrdf::{Literal, Term, Variable};
use penstock_store::{ValueClass, ValueKey, ValueRange};
use spareval::ExpressionTerm;
use spargebra::algebra::{Expression, Function};

/// The maximum number of alternatives of one variable. Each is a lookup in the index, also for an estimate.
const MAX_ALTERNATIVES: usize = 2_000;

/// The terms that filters leave of one variable.
#[derive(Debug, Clone)]
pub(crate) struct ValueSet {
    /// The literals: at most one range of each class of values.
    pub(crate) ranges: Vec<ValueRange>,
    /// Whether IRIs and blank nodes are left.
    pub(crate) has_names: bool,
}

impl ValueSet {
    fn of_literals(ranges: Vec<ValueRange>) -> Self {
        Self { ranges, has_names: false }
    }

    /// Returns what two sets have in common.
    pub(crate) fn intersect(&self, other: &Self) -> Self {
        let common = |one: &ValueRange| other.ranges.iter().find_map(|other| one.intersect(other));
        Self {
            ranges: self.ranges.iter().filter_map(common).collect(),
            has_names: self.has_names && other.has_names,
        }
    }
}

/// The sets in which filters require the values of variables to be.
pub(crate) type Ranges = Vec<(Variable, ValueSet)>;

/// Returns the sets in which a filter requires the values of variables to be.
pub(crate) fn find_ranges(filter: &Expression) -> Ranges {
    let mut ranges = Vec::new();
    collect_ranges(filter, &mut ranges);
    ranges
}

/// Restricts the set of a variable further.
pub(crate) fn restrict(ranges: &mut Ranges, variable: &Variable, added: ValueSet) {
    match ranges.iter_mut().find(|(known, _)| known == variable) {
        Some((_, known)) => *known = known.intersect(&added),
        None => ranges.push((variable.clone(), added)),
    }
}

/// Returns whether a filter requires nothing else than a set of values of this variable.
pub(crate) fn is_range(filter: &Expression, variable: &Variable) -> bool {
    match filter {
        Expression::And(left, right) => is_range(left, variable) && is_range(right, variable),
        other => to_set(other).is_some_and(|(restricted, _)| restricted == variable),
    }
}

fn collect_ranges(filter: &Expression, ranges: &mut Ranges) {
    if let Expression::And(left, right) = filter {
        collect_ranges(left, ranges);
        collect_ranges(right, ranges);
    } else if let Some((variable, found)) = to_set(filter) {
        restrict(ranges, variable, found);
    }
}

/// Returns the set in which an expression requires one variable to be.
fn to_set(expression: &Expression) -> Option<(&Variable, ValueSet)> {
    use Expression::{Equal, Greater, GreaterOrEqual, In, Less, LessOrEqual};
    match expression {
        Equal(left, right) => {
            let (compared, literal, _) = to_comparison(left, right)?;
            Some(match to_text_of(compared) {
                Some(variable) => (variable, with_text(to_text(literal)?, true)),
                None => (to_variable(compared)?, ValueSet::of_literals(vec![equal_to(literal)?])),
            })
        }
        Greater(left, right) | GreaterOrEqual(left, right) => {
            let (compared, literal, is_turned) = to_comparison(left, right)?;
            let range = beyond(literal, is_turned)?;
            Some((to_variable(compared)?, ValueSet::of_literals(vec![range])))
        }
        Less(left, right) | LessOrEqual(left, right) => {
            let (compared, literal, is_turned) = to_comparison(left, right)?;
            let range = beyond(literal, !is_turned)?;
            Some((to_variable(compared)?, ValueSet::of_literals(vec![range])))
        }
        In(left, list) if list.len() <= MAX_ALTERNATIVES => {
            let variable = to_variable(left)?;
            let (mut ranges, mut has_names) = (Vec::new(), false);
            for item in list {
                match item {
                    Expression::Literal(literal) => ranges.push(equal_to(literal)?),
                    Expression::NamedNode(_) => has_names = true,
                    _ => return None,
                }
            }
            Some((variable, ValueSet { ranges: unite(&ranges), has_names }))
        }
        Expression::FunctionCall(Function::StrStarts, arguments) => {
            let [text, Expression::Literal(start)] = arguments.as_slice() else { return None };
            if let Some(variable) = to_text_of(text) {
                return Some((variable, with_text(to_text(start)?, false)));
            }
            let is_text = matches!(class_of(start), ValueClass::Text | ValueClass::LanguageText);
            let strings = is_text.then(|| ValueRange::starting_with(start.value()))?;
            let ranges = vec![strings.in_class(ValueClass::LanguageText), strings];
            Some((to_variable(text)?, ValueSet::of_literals(ranges)))
        }
        _ => None,
    }
}

/// Returns the expression and the literal that are compared, and whether the literal comes first.
fn to_comparison<'e>(
    left: &'e Expression,
    right: &'e Expression,
) -> Option<(&'e Expression, &'e Literal, bool)> {
    match (left, right) {
        (Expression::Literal(literal), compared) => Some((compared, literal, true)),
        (compared, Expression::Literal(literal)) => Some((compared, literal, false)),
        _ => None,
    }
}

fn to_variable(expression: &Expression) -> Option<&Variable> {
    if let Expression::Variable(variable) = expression { Some(variable) } else { None }
}

/// Returns the variable of which an expression is STR.
fn to_text_of(expression: &Expression) -> Option<&Variable> {
    match expression {
        Expression::FunctionCall(Function::Str, arguments) => match arguments.as_slice() {
            [argument] => to_variable(argument),
            _ => None,
        },
        _ => None,
    }
}

fn to_text(literal: &Literal) -> Option<&str> {
    (class_of(literal) == ValueClass::Text).then(|| literal.value())
}

/// Returns the terms of which STR is a text, or begins with it.
fn with_text(text: &str, is_whole: bool) -> ValueSet {
    let texts = if is_whole {
        ValueRange::equal_to(Literal::new_simple_literal(text).as_ref())
    } else {
        ValueRange::starting_with(text)
    };
    let may_begin = |characters: &str| {
        text.chars().next().is_none_or(|c| c.is_ascii_digit() || characters.contains(c))
    };
    let ranges = ValueClass::ALL.into_iter().filter_map(|class| {
        let characters = match class {
            // The index has these by their texts.
            ValueClass::Text | ValueClass::LanguageText | ValueClass::Other => {
                return Some(texts.in_class(class));
            }
            ValueClass::Boolean => "tf",
            ValueClass::Number => "+-.IN",
            ValueClass::Time | ValueClass::Date => "-",
        };
        may_begin(characters).then(|| ValueRange::of_class(class))
    });
    ValueSet { ranges: ranges.collect(), has_names: true }
}

/// Returns the union of ranges, one of each class. Each union copies both, so it is that of pairs, of pairs of these, and so
/// on.
fn unite(ranges: &[ValueRange]) -> Vec<ValueRange> {
    let of_class = |class| {
        let mut left: Vec<_> =
            ranges.iter().filter(|range| range.class() == class).cloned().collect();
        while left.len() > 1 {
            let pairs = left.chunks(2).filter_map(|pair| match pair {
                [one, other] => one.union(other),
                pair => pair.first().cloned(),
            });
            left = pairs.collect();
        }
        left.pop()
    };
    ValueClass::ALL.into_iter().filter_map(of_class).collect()
}

/// Returns the values that can be equal to a literal; `None` if others can be.
fn equal_to(literal: &Literal) -> Option<ValueRange> {
    let is_known = match class_of(literal) {
        ValueClass::Boolean => true,
        // Of a datatype that the evaluator does not know, only the same literal is equal.
        ValueClass::Other => matches!(
            ExpressionTerm::from(Term::from(literal.clone())),
            ExpressionTerm::OtherTypedLiteral { .. }
        ),
        _ => is_ordered(literal),
    };
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
