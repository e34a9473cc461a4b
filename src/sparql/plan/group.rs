//! Aggregates over one triple pattern that need no rows: COUNT by the statistics of the index, MIN and MAX by its order of
//! values.
use super::estimate::find_constants;
use super::{Planner, Scope};
use crate::dataset::Extreme;
use oxrdf::{Literal, Term, Variable};
use spargebra::algebra::{AggregateExpression, AggregateFunction, Expression, GraphPattern};
use spargebra::term::{GroundTerm, NamedNodePattern, TermPattern, TriplePattern};
use std::cell::OnceCell;
use std::collections::HashSet;

/// What is computed of a triple pattern.
enum Computed {
    Count,
    /// The first or the last object.
    Extreme {
        is_last: bool,
    },
}

impl Planner<'_, '_> {
    /// Computes the aggregates of a group without GROUP BY; `None` if that needs rows.
    pub(super) fn compute_group(
        &self,
        inner: &GraphPattern,
        aggregates: &[(Variable, AggregateExpression)],
        scope: &Scope,
    ) -> Option<GraphPattern> {
        let triple = find_triple(inner, scope)?;
        let computed = aggregates.iter().map(|(_, aggregate)| find_computed(aggregate, triple));
        let computed = computed.collect::<Option<Vec<_>>>()?;
        let count = OnceCell::new();
        let values = computed.into_iter().map(|computed| match computed {
            Computed::Count => {
                let count =
                    count.get_or_init(|| self.dataset.count_triples(find_constants(triple)));
                Some(Some(GroundTerm::Literal(Literal::from(*count))))
            }
            Computed::Extreme { is_last } => {
                let NamedNodePattern::NamedNode(property) = &triple.predicate else { return None };
                match self.dataset.find_extreme(property, is_last)? {
                    Extreme::Nothing => Some(None),
                    Extreme::Object(Term::Literal(literal)) => Some(Some(literal.into())),
                    Extreme::Object(Term::NamedNode(node)) => Some(Some(node.into())),
                    // VALUES has no blank nodes.
                    Extreme::Object(_) => None,
                }
            }
        });
        let row = values.collect::<Option<Vec<_>>>()?;
        let variables = aggregates.iter().map(|(variable, _)| variable.clone()).collect();
        Some(GraphPattern::Values { variables, bindings: vec![row] })
    }
}

/// Returns the triple pattern that is all of a pattern, if its matches are its quads.
fn find_triple<'p>(pattern: &'p GraphPattern, scope: &Scope) -> Option<&'p TriplePattern> {
    let GraphPattern::Bgp { patterns } = pattern else { return None };
    let [triple] = patterns.as_slice() else { return None };
    let variables = find_variables(triple);
    let is_repeated = variables.iter().collect::<HashSet<_>>().len() < variables.len();
    let mut ends = [&triple.subject, &triple.object].into_iter();
    let has_node = ends.any(|term| matches!(term, TermPattern::BlankNode(_)));
    let is_plain = !is_repeated && !has_node && !scope.is_in_graph && scope.bound.is_empty();
    is_plain.then_some(triple)
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

/// Returns what an aggregate computes, if the quads of the triple pattern are enough for it.
fn find_computed(aggregate: &AggregateExpression, triple: &TriplePattern) -> Option<Computed> {
    let (name, variable, distinct) = match aggregate {
        AggregateExpression::CountSolutions { distinct: false } => return Some(Computed::Count),
        AggregateExpression::FunctionCall {
            name,
            expr: Expression::Variable(variable),
            distinct,
        } => (name, variable, *distinct),
        _ => return None,
    };
    let is_object = matches!(&triple.object, TermPattern::Variable(object) if object == variable)
        && matches!(triple.subject, TermPattern::Variable(_));
    match name {
        AggregateFunction::Count if !distinct && find_variables(triple).contains(&variable) => {
            Some(Computed::Count)
        }
        AggregateFunction::Min if is_object => Some(Computed::Extreme { is_last: false }),
        AggregateFunction::Max if is_object => Some(Computed::Extreme { is_last: true }),
        _ => None,
    }
}
