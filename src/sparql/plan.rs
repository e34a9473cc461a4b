//! Rewrites a pattern before spareval gets it.
//!
//! - **Order of joins.** Triple patterns and paths that are joined become a chain of nested loops (LATERAL): first the
//!   one with the fewest results by the statistics of the index, then always one that shares a variable with those
//!   before it. spareval's own optimizer has no statistics; it still pushes filters into the chain and joins the rest.
//!   If only the first rows of an order are needed, the pattern with its first key may come first.
//! - **Checks of the limits.** What multiplies rows without reading the store is followed by a pattern that
//!   [`Dataset`] recognizes and that matches once, so each row is a check.
//! - **Conditions** of filters on one object, and ranges of its values, go to its triple pattern ([`crate::prefilter`]).
//! - **Functions** without a bound are replaced ([`crate::functions`]).
//! - **Operators and aggregates** also compute with what the evaluator's types cannot hold ([`crate::operators`],
//!   [`crate::aggregates`]). If an expression can show the form of a literal, the dataset keeps it
//!   ([`Dataset::keep_forms`]).
mod estimate;
mod expression;
mod graph;
mod group;
mod join;
mod path;

use crate::condition::Bound;
use crate::dataset::Dataset;
use crate::internal_term::CHECK;
use crate::operators::call_rank;
use crate::prefilter::add_conditions;
use crate::ranges::{Ranges, ValueSet, find_ranges, is_range, restrict};
use estimate::{UNKNOWN_SELECTIVITY, to_variable};
use oxrdf::Variable;
use spareval::QueryEvaluator;
use spargebra::algebra::{Expression, GraphPattern, OrderExpression};
use spargebra::term::{NamedNodePattern, TermPattern, TriplePattern};
use std::cell::Cell;
use std::collections::HashSet;
use std::rc::Rc;

/// Rewrites the pattern of a request. With the first key of its ORDER BY and the bound of its LIMIT, the pattern may return
/// its rows in that order. An aggregate that needs only the first rows of an order is evaluated at once.
pub(crate) fn plan(
    pattern: GraphPattern,
    dataset: &Dataset<'_>,
    evaluator: &QueryEvaluator,
    first_key: Option<(Variable, Rc<Bound>)>,
) -> GraphPattern {
    let scope = Scope { order: first_key.map(NeededOrder::from), ..Scope::default() };
    Planner { dataset, evaluator, named: Cell::new(0) }.rewrite(pattern, &scope)
}

/// What surrounds a pattern.
#[derive(Clone, Default)]
struct Scope {
    /// The variables that have a value when the pattern is evaluated.
    bound: HashSet<Variable>,
    /// The name of the GRAPH around the pattern.
    graph: Option<NamedNodePattern>,
    /// The variable that has a number for each row.
    row: Option<Variable>,
    /// What filters around the pattern leave of the values that its triple patterns bind.
    ranges: Ranges,
    /// The order in which rows are needed.
    order: Option<NeededOrder>,
}

/// An order in which only the first rows are needed.
#[derive(Clone)]
struct NeededOrder {
    variable: Variable,
    bound: Rc<Bound>,
    /// The estimated part of the rows that filters around the pattern leave.
    selectivity: f64,
}

impl From<(Variable, Rc<Bound>)> for NeededOrder {
    fn from((variable, bound): (Variable, Rc<Bound>)) -> Self {
        Self { variable, bound, selectivity: 1.0 }
    }
}

impl Scope {
    fn is_in_graph(&self) -> bool {
        self.graph.is_some()
    }

    /// Returns the scope of what is evaluated when these variables have values.
    fn with_bound(&self, variables: impl IntoIterator<Item = Variable>) -> Self {
        let mut scope = self.without_hints();
        scope.bound.extend(variables);
        scope
    }

    fn without_bound(&self) -> Self {
        Self { bound: HashSet::new(), ..self.without_hints() }
    }

    /// Returns the scope of a pattern to which filters and an order around it do not apply directly.
    fn without_hints(&self) -> Self {
        Self {
            bound: self.bound.clone(),
            graph: self.graph.clone(),
            row: self.row.clone(),
            ..Self::default()
        }
    }

    /// Returns the scope of the pattern within a filter.
    fn within_filter(&self, filter: &Expression) -> Self {
        let mut scope = self.clone();
        for (variable, values) in find_ranges(filter) {
            restrict(&mut scope.ranges, &variable, values);
        }
        if let Some(order) = &mut scope.order
            && !is_range(filter, &order.variable)
        {
            order.selectivity *= UNKNOWN_SELECTIVITY;
        }
        scope
    }

    fn find_values(&self, variable: &Variable) -> Option<&ValueSet> {
        let values = self.ranges.iter().find(|(restricted, _)| restricted == variable);
        values.map(|(_, values)| values)
    }
}

struct Planner<'a, 's> {
    dataset: &'a Dataset<'s>,
    evaluator: &'a QueryEvaluator,
    /// The number of variables of [`Self::name_variable`].
    named: Cell<usize>,
}

impl Planner<'_, '_> {
    fn rewrite(&self, pattern: GraphPattern, scope: &Scope) -> GraphPattern {
        self.dataset.check_limits();
        match pattern {
            GraphPattern::Bgp { .. }
            | GraphPattern::Path { .. }
            | GraphPattern::Values { .. }
            | GraphPattern::Join { .. } => {
                let mut parts = Vec::new();
                self.collect_parts(pattern, scope, &mut parts);
                self.join(parts, scope)
            }
            GraphPattern::LeftJoin { left, right, expression } => {
                let left = self.rewrite(*left, scope);
                let inner = scope.with_bound(find_variables(&left));
                let right = match &expression {
                    Some(expression) => {
                        let mut right = self.rewrite(*right, &inner.within_filter(expression));
                        add_conditions(expression, &mut right, scope.is_in_graph(), self.dataset);
                        right
                    }
                    None => self.rewrite(*right, &inner),
                };
                let expression = expression.map(|expression| {
                    self.rewrite_condition(expression, &inner.with_bound(find_variables(&right)))
                });
                let is_lookup = is_chain(&right);
                let joined =
                    GraphPattern::LeftJoin { left: left.into(), right: right.into(), expression };
                if is_lookup { joined } else { check(joined) }
            }
            GraphPattern::Lateral { left, right } => {
                let left = self.rewrite(*left, scope);
                let inner = scope.with_bound(find_variables(&left));
                let right = self.rewrite(*right, &inner);
                check(GraphPattern::Lateral { left: left.into(), right: right.into() })
            }
            GraphPattern::Filter { expr, inner } => {
                let mut inner = self.rewrite(*inner, &scope.within_filter(&expr));
                add_conditions(&expr, &mut inner, scope.is_in_graph(), self.dataset);
                let expr = self.rewrite_condition(expr, &scope.with_bound(find_variables(&inner)));
                GraphPattern::Filter { expr, inner: inner.into() }
            }
            GraphPattern::Union { left, right } => {
                let scope = scope.without_hints();
                GraphPattern::Union {
                    left: self.rewrite(*left, &scope).into(),
                    right: self.rewrite(*right, &scope).into(),
                }
            }
            GraphPattern::Graph { name, inner } => {
                let inner = match &name {
                    NamedNodePattern::Variable(graph) => match self.separate_graph(graph, *inner) {
                        Ok(separated) => return self.rewrite(separated, scope),
                        Err(inner) => *inner,
                    },
                    NamedNodePattern::NamedNode(_) => *inner,
                };
                let scope = Scope { graph: Some(name.clone()), ..scope.clone() };
                GraphPattern::Graph { name, inner: self.rewrite(inner, &scope).into() }
            }
            GraphPattern::Extend { .. } => self.rewrite_extension(pattern, scope),
            // Without a common variable it removes nothing. The variable of GRAPH is none.
            GraphPattern::Minus { left, right } if has_no_common_variable(&left, &right) => {
                self.rewrite(*left, scope)
            }
            GraphPattern::Minus { left, right } => GraphPattern::Minus {
                left: self.rewrite(*left, scope).into(),
                right: self.rewrite(*right, &scope.without_bound()).into(),
            },
            GraphPattern::OrderBy { inner, expression } => {
                let mut inner = self.rewrite(*inner, &scope.without_hints());
                let scope = scope.with_bound(find_variables(&inner));
                let mut to_key = |by: Expression| {
                    let expression = call_rank(self.rewrite_expression(by, &scope));
                    // Once for each row, not for each comparison.
                    let variable = self.name_variable("rank");
                    let ranked = std::mem::take(&mut inner);
                    inner = GraphPattern::Extend {
                        inner: ranked.into(),
                        variable: variable.clone(),
                        expression,
                    };
                    Expression::Variable(variable)
                };
                let expression = expression.into_iter().map(|order| match order {
                    OrderExpression::Asc(by) => OrderExpression::Asc(to_key(by)),
                    OrderExpression::Desc(by) => OrderExpression::Desc(to_key(by)),
                });
                GraphPattern::OrderBy { expression: expression.collect(), inner: inner.into() }
            }
            GraphPattern::Project { inner, variables } => {
                let mut scope = scope.clone();
                scope.bound.retain(|variable| variables.contains(variable));
                scope.ranges.retain(|(variable, _)| variables.contains(variable));
                scope.order = scope.order.filter(|order| variables.contains(&order.variable));
                GraphPattern::Project { inner: self.rewrite(*inner, &scope).into(), variables }
            }
            GraphPattern::Distinct { inner } => {
                GraphPattern::Distinct { inner: self.rewrite(*inner, scope).into() }
            }
            GraphPattern::Reduced { inner } => {
                GraphPattern::Reduced { inner: self.rewrite(*inner, scope).into() }
            }
            GraphPattern::Slice { inner, start, length } => {
                let inner = self.rewrite(*inner, &scope.without_hints()).into();
                GraphPattern::Slice { inner, start, length }
            }
            GraphPattern::Group { inner, variables, aggregates } => {
                if variables.is_empty()
                    && let Some(computed) = self.compute_group(&inner, &aggregates, scope)
                {
                    return computed;
                }
                let inner = self.rewrite(*inner, &scope.without_hints());
                let scope = scope.with_bound(find_variables(&inner));
                let aggregates = aggregates.into_iter().map(|(variable, aggregate)| {
                    (variable, self.rewrite_aggregate(aggregate, &scope))
                });
                let aggregates = aggregates.collect();
                GraphPattern::Group { inner: inner.into(), variables, aggregates }
            }
            service @ GraphPattern::Service { .. } => check(service),
        }
    }

    /// Returns a variable that no request can name.
    fn name_variable(&self, purpose: &str) -> Variable {
        self.named.set(self.named.get() + 1);
        Variable::new_unchecked(format!("{purpose}-{}", self.named.get()))
    }
}

/// Returns whether no solutions of two patterns can have a variable in common.
fn has_no_common_variable(left: &GraphPattern, right: &GraphPattern) -> bool {
    let mut variables = HashSet::new();
    left.on_in_scope_variable(|variable| {
        variables.insert(variable);
    });
    let mut is_disjoint = true;
    right.on_in_scope_variable(|variable| is_disjoint &= !variables.contains(variable));
    is_disjoint
}

/// Adds a pattern that matches once for each row and checks the limits.
fn check(pattern: GraphPattern) -> GraphPattern {
    let [subject, object] = [const { CHECK }; 2].map(|node| node.into_owned().into());
    let triple = TriplePattern { subject, predicate: CHECK.into_owned().into(), object };
    let bgp = GraphPattern::Bgp { patterns: vec![triple] };
    let right = GraphPattern::Graph { name: CHECK.into_owned().into(), inner: bgp.into() };
    GraphPattern::Lateral { left: pattern.into(), right: right.into() }
}

/// Returns whether a pattern only looks up triples and paths for each row of what comes before it.
fn is_chain(pattern: &GraphPattern) -> bool {
    match pattern {
        GraphPattern::Bgp { .. } | GraphPattern::Path { .. } => true,
        GraphPattern::Lateral { left, right } => is_chain(left) && is_chain(right),
        GraphPattern::Filter { inner, .. } | GraphPattern::Graph { inner, .. } => is_chain(inner),
        _ => false,
    }
}

/// Returns the variables that a pattern can bind. Blank nodes of patterns are variables too.
fn find_variables(pattern: &GraphPattern) -> HashSet<Variable> {
    let mut variables = HashSet::new();
    pattern.on_in_scope_variable(|variable| {
        variables.insert(variable.clone());
    });
    add_blank_nodes(pattern, &mut variables);
    variables
}

/// Adds the blank nodes of joined triple patterns as variables that no request can name.
fn add_blank_nodes(pattern: &GraphPattern, variables: &mut HashSet<Variable>) {
    let mut add = |term: &TermPattern| {
        if let TermPattern::BlankNode(node) = term {
            variables.insert(to_variable(node));
        }
    };
    match pattern {
        GraphPattern::Bgp { patterns } => {
            for triple in patterns {
                add(&triple.subject);
                add(&triple.object);
            }
        }
        GraphPattern::Path { subject, object, .. } => {
            add(subject);
            add(object);
        }
        GraphPattern::Lateral { left, right } | GraphPattern::Join { left, right } => {
            add_blank_nodes(left, variables);
            add_blank_nodes(right, variables);
        }
        _ => {}
    }
}
