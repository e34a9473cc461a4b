//! `ORDER BY` of a SELECT, with its `OFFSET` and `LIMIT`.
//!
//! The evaluator would collect all rows, and decode the terms of two rows for each comparison. This keeps only the rows
//! that the LIMIT can return, decodes each key once, and decodes the other terms only of the rows that it returns. Once it
//! has as many rows as the LIMIT, the pattern that binds the first key reads only what may come before the last of them. An
//! ORDER BY in a subquery, or with DISTINCT by something else than columns, is left to the evaluator.
use crate::condition::{Bound, Condition};
use crate::dataset::Dataset;
use crate::internal_term::InternalTerm;
use crate::prefilter::add_condition;
use crate::value::Value;
use oxrdf::Variable;
use spareval::{QueryEvaluationError, QuerySolutionIter};
use spargebra::algebra::{Expression, GraphPattern, OrderExpression};
use std::cmp::{Ordering, Reverse};
use std::collections::BinaryHeap;
use std::rc::Rc;
use std::sync::Arc;

/// The ordering of a SELECT.
pub(crate) struct Order {
    /// The number of columns of the result, which come first in each row.
    columns: usize,
    /// For each key, its place in the row and whether it is descending.
    keys: Vec<(usize, bool)>,
    offset: usize,
    limit: Option<usize>,
    /// The variable of the first key, if it is one, and what bounds it.
    first: Option<(Variable, Rc<Bound>)>,
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
        let (projection, is_distinct) = match slice {
            GraphPattern::Distinct { inner } => (&mut **inner, true),
            other => (other, false),
        };
        let GraphPattern::Project { inner, variables } = projection else { return None };
        let GraphPattern::OrderBy { inner: unordered, expression } = &mut **inner else {
            return None;
        };
        let is_column = |order: &OrderExpression| match order {
            OrderExpression::Asc(Expression::Variable(key))
            | OrderExpression::Desc(Expression::Variable(key)) => variables.contains(key),
            _ => false,
        };
        if is_distinct && !expression.iter().all(is_column) {
            return None;
        }
        let mut rows = std::mem::take(&mut **unordered);
        let mut variables = std::mem::take(variables);
        let columns = variables.len();
        let mut keys = Vec::new();
        let mut first = None;
        let most = limit.map(|limit| limit.saturating_add(offset));
        for order in std::mem::take(expression) {
            let (key, is_descending) = match order {
                OrderExpression::Asc(key) => (key, false),
                OrderExpression::Desc(key) => (key, true),
            };
            let variable = match key {
                Expression::Variable(variable) => {
                    if let (true, Some(most)) = (keys.is_empty(), most) {
                        first = Some((variable.clone(), Bound::new(is_descending, most)));
                    }
                    variable
                }
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
        let is_only_key = keys.len() == 1;
        let first = first.map(|(variable, bound)| {
            (variable, Rc::new(if is_only_key { bound.of_only_key() } else { bound }))
        });
        let rows = GraphPattern::Project { inner: Box::new(rows), variables };
        *pattern = if is_distinct { GraphPattern::Distinct { inner: rows.into() } } else { rows };
        Some(Self { columns, keys, offset, limit, first })
    }

    /// Creates the ordering by one variable of which only the first row is needed.
    pub(crate) fn of_first(variable: Variable, is_descending: bool) -> Self {
        let bound = Bound::new(is_descending, 1).of_only_key();
        let first = Some((variable, Rc::new(bound)));
        Self { columns: 1, keys: vec![(0, is_descending)], offset: 0, limit: Some(1), first }
    }

    /// Returns the variable of the first key and its bound, if there is a limit.
    pub(crate) fn first_key(&self) -> Option<(Variable, Rc<Bound>)> {
        self.first.clone()
    }

    /// Lets the planned pattern read only values of the first key that may be among those of the result.
    pub(crate) fn bound_first_key(&self, pattern: &mut GraphPattern, dataset: &Dataset<'_>) {
        if let Some((variable, bound)) = &self.first {
            add_condition(variable, Condition::IsWithin(bound.clone()), pattern, false, dataset);
        }
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
        let mut kept = BinaryHeap::<Row>::new();
        for (number, row) in rows.enumerate().take_while(|_| most > 0) {
            let mut terms = dataset.take_codes(&row?);
            let last = if kept.len() < most { None } else { kept.peek() };
            let Some(keys) = self.read_keys(&terms, last, dataset) else { continue };
            terms.truncate(self.columns);
            let is_full = last.is_some();
            kept.push(Row { keys, number, terms });
            if is_full {
                kept.pop();
            }
            if kept.len() >= most {
                self.update_bound(kept.peek());
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

    fn update_bound(&self, last: Option<&Row>) {
        if let Some((_, bound)) = &self.first
            && let Some(Key::Ascending(value) | Key::Descending(Reverse(value))) =
                last.and_then(|row| row.keys.first())
        {
            bound.set_last(value.clone());
        }
    }

    /// Returns the keys of a row; `None` if they do not come before those of `last`. Decodes no more of them than that needs:
    /// a name takes much longer than a number.
    fn read_keys(
        &self,
        terms: &[Option<InternalTerm>],
        last: Option<&Row>,
        dataset: &Dataset<'_>,
    ) -> Option<Vec<Key>> {
        let mut equal = last.map(|last| last.keys.iter());
        let mut keys = Vec::with_capacity(self.keys.len());
        for (place, is_descending) in &self.keys {
            let term = terms.get(*place).and_then(Option::as_ref);
            let value = Value::new(term.map(|term| dataset.decode_value(term)));
            let key = if *is_descending {
                Key::Descending(Reverse(value))
            } else {
                Key::Ascending(value)
            };
            if let Some(other) = equal.as_mut().and_then(Iterator::next) {
                match key.cmp(other) {
                    Ordering::Less => equal = None,
                    Ordering::Equal => {}
                    Ordering::Greater => return None,
                }
            }
            keys.push(key);
        }
        // Of rows with the same keys, the first ones are kept.
        equal.is_none().then_some(keys)
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
