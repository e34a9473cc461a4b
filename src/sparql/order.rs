//! `ORDER BY` of a SELECT, with its `OFFSET` and `LIMIT`.
//!
//! The evaluator would collect all rows, and decode the terms of two rows for each comparison. This keeps only the rows
//! that the LIMIT can return, decodes each key once, and decodes the other terms only of the rows that it returns. An
//! ORDER BY in a subquery, or with DISTINCT, is left to the evaluator.
use crate::dataset::{Dataset, InternalTerm};
use oxrdf::{NamedNode, Term, Variable};
use oxsdatatypes::{DateTime, Decimal, Double, TimezoneOffset};
use spareval::{ExpressionTerm, QueryEvaluationError, QuerySolutionIter};
use spargebra::algebra::{Expression, GraphPattern, OrderExpression};
use std::cmp::{Ordering, Reverse};
use std::collections::BinaryHeap;
use std::sync::Arc;

/// The ordering of a SELECT.
pub(crate) struct Order {
    /// The number of columns of the result, which come first in each row.
    columns: usize,
    /// For each key, its place in the row and whether it is descending.
    keys: Vec<(usize, bool)>,
    offset: usize,
    limit: Option<usize>,
}

/// A row that is sorted: the keys, its number, and the terms of the columns.
struct Row {
    keys: Vec<Key>,
    number: usize,
    terms: Vec<Option<InternalTerm>>,
}

impl Order {
    /// Takes the ordering out of the pattern of a SELECT, if it has one. The pattern then returns the columns and
    /// behind them other keys, in any order.
    pub(crate) fn take(pattern: &mut GraphPattern) -> Option<Self> {
        let (slice, offset, limit) = match &mut *pattern {
            GraphPattern::Slice { inner, start, length } => (&mut **inner, *start, *length),
            other => (other, 0, None),
        };
        let GraphPattern::Project { inner, variables } = slice else { return None };
        let GraphPattern::OrderBy { inner: unordered, expression } = &mut **inner else {
            return None;
        };
        let mut rows = std::mem::take(&mut **unordered);
        let mut variables = std::mem::take(variables);
        let columns = variables.len();
        let mut keys = Vec::new();
        for order in std::mem::take(expression) {
            let (key, is_descending) = match order {
                OrderExpression::Asc(key) => (key, false),
                OrderExpression::Desc(key) => (key, true),
            };
            let variable = match key {
                Expression::Variable(variable) => variable,
                expression => {
                    // No variable of a request has a hyphen.
                    let variable = Variable::new_unchecked(format!("order-{}", keys.len()));
                    let inner = Box::new(rows);
                    rows = GraphPattern::Extend { inner, variable: variable.clone(), expression };
                    variable
                }
            };
            let known = variables.iter().position(|known| *known == variable);
            let place = known.unwrap_or_else(|| {
                variables.push(variable);
                variables.len() - 1
            });
            keys.push((place, is_descending));
        }
        *pattern = GraphPattern::Project { inner: Box::new(rows), variables };
        Some(Self { columns, keys, offset, limit })
    }

    /// Sorts rows, and returns those that OFFSET and LIMIT select, with their columns. The dataset returns codes.
    ///
    /// # Errors
    /// Those of `rows`.
    pub(crate) fn sort<'s>(
        &self,
        rows: QuerySolutionIter<'s>,
        dataset: &'s Dataset<'s>,
    ) -> Result<QuerySolutionIter<'s>, QueryEvaluationError> {
        let columns: Arc<[Variable]> =
            rows.variables().iter().take(self.columns).cloned().collect();
        let most = self.limit.map_or(usize::MAX, |limit| limit.saturating_add(self.offset));
        let mut kept = BinaryHeap::new();
        for (number, row) in rows.enumerate() {
            let mut terms = dataset.take_codes(&row?);
            let keys = self.keys.iter().map(|(place, is_descending)| {
                let term = terms.get(*place).and_then(Option::as_ref);
                let value = Value::new(term.map(|term| dataset.decode_expression(term)));
                if *is_descending { Key::Descending(Reverse(value)) } else { Key::Ascending(value) }
            });
            let keys: Vec<_> = keys.collect();
            terms.truncate(self.columns);
            let row = Row { keys, number, terms };
            if kept.len() < most {
                kept.push(row);
            } else if let Some(mut last) = kept.peek_mut()
                && row < *last
            {
                *last = row;
            }
        }
        dataset.return_terms();
        let sorted = kept.into_sorted_vec().into_iter().skip(self.offset);
        Ok(QuerySolutionIter::from_tuples(
            columns,
            sorted.map(|row| {
                let terms = row.terms.iter();
                Ok(terms.map(|term| term.as_ref().map(|term| dataset.decode(term))).collect())
            }),
        ))
    }
}

impl Ord for Row {
    fn cmp(&self, other: &Self) -> Ordering {
        self.keys.cmp(&other.keys).then(self.number.cmp(&other.number))
    }
}

impl PartialOrd for Row {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Row {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for Row {}

#[derive(PartialEq, Eq, PartialOrd, Ord)]
enum Key {
    Ascending(Value),
    Descending(Reverse<Value>),
}

/// A value in the order of SPARQL 1.1, section 15.1: unbound, blank nodes, IRIs, literals. That section leaves the order
/// of different kinds of literals open; here it is that of the variants. So it is a total order, which sorting needs.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
enum Value {
    Unbound,
    BlankNode(String),
    NamedNode(String),
    Boolean(bool),
    Number(Number),
    DateTime(Instant),
    Date(Instant),
    String(String),
    /// The language comes first.
    LanguageString(String, String),
    /// The datatype comes first.
    Other(String, String),
}

impl Value {
    fn new(term: Option<ExpressionTerm>) -> Self {
        match term {
            None => Self::Unbound,
            Some(ExpressionTerm::BlankNode(node)) => Self::BlankNode(node.into_string()),
            Some(ExpressionTerm::NamedNode(node)) => Self::NamedNode(node.into_string()),
            Some(ExpressionTerm::BooleanLiteral(value)) => Self::Boolean(value.into()),
            Some(ExpressionTerm::IntegerLiteral(value)) => {
                Self::Number(Number::exact(value.into()))
            }
            Some(ExpressionTerm::DecimalLiteral(value)) => Self::Number(Number::exact(value)),
            Some(ExpressionTerm::FloatLiteral(value)) => {
                Self::Number(Number::inexact(value.into()))
            }
            Some(ExpressionTerm::DoubleLiteral(value)) => Self::Number(Number::inexact(value)),
            Some(ExpressionTerm::DateTimeLiteral(value)) => Self::DateTime(Instant::new(value)),
            Some(ExpressionTerm::DateLiteral(value))
                if let Ok(midnight) = DateTime::try_from(value) =>
            {
                Self::Date(Instant::new(midnight))
            }
            Some(ExpressionTerm::StringLiteral(value)) => Self::String(value),
            Some(ExpressionTerm::LangStringLiteral { value, language }) => {
                Self::LanguageString(language, value)
            }
            Some(other) => match Term::from(other) {
                Term::Literal(literal) => {
                    let (value, datatype, _, _) = literal.destruct();
                    Self::Other(datatype.map(NamedNode::into_string).unwrap_or_default(), value)
                }
                Term::NamedNode(node) => Self::NamedNode(node.into_string()),
                Term::BlankNode(node) => Self::BlankNode(node.into_string()),
                // No quad has one, and no expression creates one.
                Term::Triple(triple) => Self::Other(String::new(), triple.to_string()),
            },
        }
    }
}

/// A number. Rounding to a double keeps the order, so doubles are compared first, and exact values that round to the
/// same one by their value.
struct Number {
    rounded: Double,
    exact: Option<Decimal>,
}

impl Number {
    fn exact(value: Decimal) -> Self {
        // The conversion of the type rounds twice, which does not keep the order.
        let rounded = value.to_string().parse().unwrap_or_else(|_| value.into());
        Self { rounded, exact: Some(value) }
    }

    fn inexact(value: Double) -> Self {
        Self { rounded: value, exact: None }
    }
}

impl Ord for Number {
    fn cmp(&self, other: &Self) -> Ordering {
        // Zeros are equal; NaN comes last.
        let [left, right] = [self, other].map(|number| f64::from(number.rounded) + 0.0);
        left.total_cmp(&right).then_with(|| {
            // A double comes before the exact values that round to it.
            self.exact.cmp(&other.exact)
        })
    }
}

impl PartialOrd for Number {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Number {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for Number {}

/// A point in time. One without a time zone is taken as UTC.
struct Instant(DateTime);

impl Instant {
    fn new(value: DateTime) -> Self {
        Self(value.adjust(Some(TimezoneOffset::UTC)).unwrap_or(value))
    }
}

impl Ord for Instant {
    fn cmp(&self, other: &Self) -> Ordering {
        self.0.partial_cmp(&other.0).unwrap_or(Ordering::Equal)
    }
}

impl PartialOrd for Instant {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Instant {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for Instant {}
