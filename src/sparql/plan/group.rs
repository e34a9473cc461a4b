//! Aggregates that do not need all rows of a group: COUNT of one triple pattern by the statistics of the index, MIN and MAX of
//! a variable by its order of values.
use super::estimate::find_constants;
use super::{NeededOrder, Planner, Scope};
use crate::evaluate::find_first;
use crate::expressions::has_part;
use crate::order::Order;
use oxrdf::{Literal, Term, Variable};
use spargebra::algebra::{AggregateExpression, AggregateFunction, Expression, GraphPattern};
use spargebra::term::{GroundTerm, NamedNodePattern, TermPattern, TriplePattern};
use std::cell::OnceCell;
use std::collections::HashSet;

/// What is computed of a group.
enum Computed<'p> {
    /// The number of quads of a triple pattern.
    Count(&'p TriplePattern),
    /// The first or the last value of a variable.
    Extreme { variable: &'p Variable, is_last: bool },
}

/// The value of an aggregate; `None` if it has none.
type AggregateValue = Option<GroundTerm>;

impl Planner<'_, '_> {
    /// Computes the aggregates of a group without GROUP BY; `None` if that needs all rows.
    pub(super) fn compute_group(
        &self,
        inner: &GraphPattern,
        aggregates: &[(Variable, AggregateExpression)],
        scope: &Scope,
    ) -> Option<GraphPattern> {
        if scope.is_in_graph() || !scope.bound.is_empty() {
            return None;
        }
        let triple = find_triple(inner);
        let computed = aggregates.iter().map(|(_, aggregate)| find_computed(aggregate, triple));
        let computed = computed.collect::<Option<Vec<_>>>()?;
        let count = OnceCell::new();
        let values = computed.into_iter().map(|computed| match computed {
            Computed::Count(triple) => {
                let count =
                    count.get_or_init(|| self.dataset.count_triples(find_constants(triple)));
                Some(Some(GroundTerm::Literal(Literal::from(*count))))
            }
            Computed::Extreme { variable, is_last } => self.find_extreme(inner, variable, is_last),
        });
        let row = values.collect::<Option<Vec<_>>>()?;
        let variables = aggregates.iter().map(|(variable, _)| variable.clone()).collect();
        Some(GraphPattern::Values { variables, bindings: vec![row] })
    }

    /// Returns the first or the last value of a variable in the order of SPARQL, or that there is none; `None` if the index of
    /// values does not have that order.
    fn find_extreme(
        &self,
        inner: &GraphPattern,
        variable: &Variable,
        is_last: bool,
    ) -> Option<AggregateValue> {
        if !is_simple(inner) {
            return None;
        }
        let order = Order::of_first(variable.clone(), is_last);
        let (_, bound) = order.first_key()?;
        let scope = Scope { order: order.first_key().map(NeededOrder::from), ..Scope::default() };
        let mut pattern = self.rewrite(inner.clone(), &scope);
        if !bound.has_source() {
            return None;
        }
        order.bound_first_key(&mut pattern, self.dataset);
        match find_first(pattern, variable, &order, self.dataset, self.evaluator) {
            None => Some(None),
            Some(Term::Literal(literal)) => Some(Some(literal.into())),
            Some(Term::NamedNode(node)) => Some(Some(node.into())),
            // VALUES has no blank nodes.
            Some(_) => None,
        }
    }
}

/// Returns whether a pattern has no subquery, in which other groups would be planned again, and no SERVICE.
fn is_simple(pattern: &GraphPattern) -> bool {
    match pattern {
        GraphPattern::Bgp { .. } | GraphPattern::Path { .. } | GraphPattern::Values { .. } => true,
        GraphPattern::Join { left, right } => is_simple(left) && is_simple(right),
        GraphPattern::Graph { inner, .. } => is_simple(inner),
        GraphPattern::Filter { inner, expr } => {
            is_simple(inner) && !has_part(expr, &|part| matches!(part, Expression::Exists(_)))
        }
        _ => false,
    }
}

/// Returns the triple pattern that is all of a pattern, if its matches are its quads.
fn find_triple(pattern: &GraphPattern) -> Option<&TriplePattern> {
    let GraphPattern::Bgp { patterns } = pattern else { return None };
    let [triple] = patterns.as_slice() else { return None };
    let variables = find_variables(triple);
    let is_repeated = variables.iter().collect::<HashSet<_>>().len() < variables.len();
    let mut ends = [&triple.subject, &triple.object].into_iter();
    let has_node = ends.any(|term| matches!(term, TermPattern::BlankNode(_)));
    (!is_repeated && !has_node).then_some(triple)
}

fn find_variables(triple: &TriplePattern) -> Vec<&Variable> {
    let ends = [&triple.subject, &triple.object].into_iter().filter_map(|term| match term {
        TermPattern::Variable(variable) => Some(variable),
        _ => None,
    });
    let predicate = match &triple.predicate {
        NamedNodePattern::Variable(variable) => Some(variable),
        NamedNodePattern::NamedNode(_) => None,
    };
    ends.chain(predicate).collect()
}

/// Returns what an aggregate computes of a group that is this triple pattern, or of another one.
fn find_computed<'p>(
    aggregate: &'p AggregateExpression,
    triple: Option<&'p TriplePattern>,
) -> Option<Computed<'p>> {
    let (name, variable, distinct) = match aggregate {
        AggregateExpression::CountSolutions { distinct: false } => {
            return triple.map(Computed::Count);
        }
        AggregateExpression::FunctionCall {
            name,
            expr: Expression::Variable(variable),
            distinct,
        } => (name, variable, *distinct),
        _ => return None,
    };
    match name {
        AggregateFunction::Count if !distinct => {
            triple.filter(|triple| find_variables(triple).contains(&variable)).map(Computed::Count)
        }
        AggregateFunction::Min => Some(Computed::Extreme { variable, is_last: false }),
        AggregateFunction::Max => Some(Computed::Extreme { variable, is_last: true }),
        _ => None,
    }
}
