//! `GRAPH ?g { … }` as SPARQL 1.1 Query, section 18.6, evaluates it: the pattern for each graph, then joined with `?g`. So
//! `?g` is not in scope within the pattern, and a subquery within it reads one graph at a time.
//!
//! The evaluator gives the variable of the graph to the triple patterns. That is the same, unless the pattern has a
//! subquery, or names the variable where a triple pattern may not have bound it. Such a pattern gets a variable of ours.
use super::Planner;
use crate::expressions::has_part;
use oxrdf::Variable;
use spargebra::algebra::{Expression, GraphPattern};
use spargebra::term::NamedNodePattern;

impl Planner<'_, '_> {
    /// Returns the pattern with a variable of ours, if it needs one. It then ends with the join with `graph`.
    pub(super) fn separate_graph(
        &self,
        graph: &Variable,
        inner: GraphPattern,
    ) -> Result<GraphPattern, Box<GraphPattern>> {
        if is_own(graph) {
            return Err(inner.into());
        }
        let has_subquery = has_subquery(&inner);
        if !has_subquery && (binds_in_triple(&inner, graph) || !mentions(&inner, graph)) {
            return Err(inner.into());
        }
        let own = self.name_variable("graph");
        let within = |inner: GraphPattern| GraphPattern::Graph {
            name: NamedNodePattern::Variable(own.clone()),
            inner: inner.into(),
        };
        let pattern = if has_subquery {
            let mut inner = inner;
            return_variable(&mut inner, &own);
            let graphs = within(GraphPattern::Bgp { patterns: Vec::new() });
            GraphPattern::Lateral { left: graphs.into(), right: within(inner).into() }
        } else {
            within(inner)
        };
        let own = Expression::Variable(own);
        let is_same = Expression::Or(
            Expression::Not(Expression::Bound(graph.clone()).into()).into(),
            Expression::SameTerm(Expression::Variable(graph.clone()).into(), own.clone().into())
                .into(),
        );
        let joined = GraphPattern::Filter { expr: is_same, inner: pattern.into() };
        Ok(GraphPattern::Extend { inner: joined.into(), variable: graph.clone(), expression: own })
    }
}

/// Returns whether a variable is of [`Planner::name_variable`]. No variable of a request has a hyphen.
fn is_own(variable: &Variable) -> bool {
    variable.as_str().contains('-')
}

/// Returns whether a pattern has a subquery that reads its graph.
fn has_subquery(pattern: &GraphPattern) -> bool {
    match pattern {
        GraphPattern::Project { .. } | GraphPattern::Group { .. } => true,
        GraphPattern::Join { left, right }
        | GraphPattern::LeftJoin { left, right, .. }
        | GraphPattern::Lateral { left, right }
        | GraphPattern::Union { left, right }
        | GraphPattern::Minus { left, right } => has_subquery(left) || has_subquery(right),
        GraphPattern::Filter { inner, .. }
        | GraphPattern::Extend { inner, .. }
        | GraphPattern::Distinct { inner }
        | GraphPattern::Reduced { inner }
        | GraphPattern::Slice { inner, .. }
        | GraphPattern::OrderBy { inner, .. } => has_subquery(inner),
        GraphPattern::Bgp { .. }
        | GraphPattern::Path { .. }
        | GraphPattern::Values { .. }
        | GraphPattern::Graph { .. }
        | GraphPattern::Service { .. } => false,
    }
}

/// Makes each subquery of a graph return the variable of the graph. So the evaluator passes the graph into it.
fn return_variable(pattern: &mut GraphPattern, own: &Variable) {
    match pattern {
        GraphPattern::Project { inner, variables } => {
            variables.push(own.clone());
            return_variable(inner, own);
        }
        GraphPattern::Join { left, right }
        | GraphPattern::LeftJoin { left, right, .. }
        | GraphPattern::Lateral { left, right }
        | GraphPattern::Union { left, right }
        | GraphPattern::Minus { left, right } => {
            return_variable(left, own);
            return_variable(right, own);
        }
        GraphPattern::Filter { inner, .. }
        | GraphPattern::Extend { inner, .. }
        | GraphPattern::Distinct { inner }
        | GraphPattern::Reduced { inner }
        | GraphPattern::Slice { inner, .. }
        | GraphPattern::OrderBy { inner, .. }
        | GraphPattern::Group { inner, .. } => return_variable(inner, own),
        GraphPattern::Bgp { .. }
        | GraphPattern::Path { .. }
        | GraphPattern::Values { .. }
        | GraphPattern::Graph { .. }
        | GraphPattern::Service { .. } => {}
    }
}

/// Returns whether each solution of a pattern has the variable from a triple pattern, before anything else reads it.
fn binds_in_triple(pattern: &GraphPattern, variable: &Variable) -> bool {
    match pattern {
        GraphPattern::Bgp { .. } | GraphPattern::Path { .. } => {
            let mut is_bound = false;
            pattern.on_in_scope_variable(|bound| is_bound |= bound == variable);
            is_bound
        }
        GraphPattern::Join { left, right } => {
            binds_in_triple(left, variable) || binds_in_triple(right, variable)
        }
        GraphPattern::LeftJoin { left: inner, .. }
        | GraphPattern::Minus { left: inner, .. }
        | GraphPattern::Filter { inner, .. }
        | GraphPattern::Extend { inner, .. } => binds_in_triple(inner, variable),
        _ => false,
    }
}

/// Returns whether a pattern without subqueries names a variable, or may do so within EXISTS.
fn mentions(pattern: &GraphPattern, variable: &Variable) -> bool {
    let in_expression = |expression: &Expression| mentions_in_expression(expression, variable);
    match pattern {
        GraphPattern::Join { left, right }
        | GraphPattern::Lateral { left, right }
        | GraphPattern::Union { left, right }
        | GraphPattern::Minus { left, right } => {
            mentions(left, variable) || mentions(right, variable)
        }
        GraphPattern::LeftJoin { left, right, expression } => {
            mentions(left, variable)
                || mentions(right, variable)
                || expression.as_ref().is_some_and(in_expression)
        }
        GraphPattern::Filter { inner, expr } => mentions(inner, variable) || in_expression(expr),
        GraphPattern::Extend { inner, variable: bound, expression } => {
            bound == variable || mentions(inner, variable) || in_expression(expression)
        }
        _ => {
            let mut is_named = false;
            pattern.on_in_scope_variable(|named| is_named |= named == variable);
            is_named
        }
    }
}

fn mentions_in_expression(expression: &Expression, variable: &Variable) -> bool {
    has_part(expression, &|part| match part {
        Expression::Variable(named) | Expression::Bound(named) => named == variable,
        Expression::Exists(_) => true,
        _ => false,
    })
}
