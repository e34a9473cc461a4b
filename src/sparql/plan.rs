//! Rewrites a pattern before spareval gets it.
//!
//! - **Order of joins.** Triple patterns and paths that are joined become a chain of nested loops (LATERAL): first the
//!   one with the fewest results by the statistics of the index, then always one that shares a variable with those
//!   before it. spareval's own optimizer has no statistics; it still pushes filters into the chain and joins the rest.
//! - **Checks of the limits.** What multiplies rows without reading the store is followed by a pattern that
//!   [`Dataset`] recognizes and that matches once, so each row is a check.
//! - **Conditions** of filters on one object go to its triple pattern ([`crate::prefilter`]).
//! - **Functions** without a bound are replaced ([`crate::functions`]).
//! - **Operators and aggregates** also compute with what the evaluator's types cannot hold ([`crate::operators`],
//!   [`crate::aggregates`]). If an expression can show the form of a literal, the dataset keeps it
//!   ([`Dataset::keep_forms`]).
mod estimate;
mod expression;
mod graph;
mod path;

use crate::dataset::{Dataset, Statistics};
use crate::internal_term::CHECK;
use crate::operators::call_rank;
use crate::prefilter::add_conditions;
use estimate::{
    UNKNOWN_ROWS, count_to_float, estimate_rows, estimate_triple, find_constants, is_bound,
    to_constant, to_variable,
};
use oxrdf::{Literal, Variable};
use penstock_base::error::{ErrorClass, GatewayError};
use penstock_base::unwind::abort;
use spargebra::algebra::{
    AggregateExpression, AggregateFunction, Expression, GraphPattern, OrderExpression,
};
use spargebra::term::{GroundTerm, NamedNodePattern, TermPattern, TriplePattern};
use std::cell::{Cell, OnceCell};
use std::collections::HashSet;

/// The maximum number of parts of one join. Each is one more level of the evaluation.
const MAX_JOINED_PARTS: usize = 500;
/// The maximum number of groups in one join. The time of the evaluator's planning grows with their third power.
const MAX_JOINED_GROUPS: usize = 40;
/// The maximum number of parts for which each is tried as the first one of the join.
const MAX_TRIED_PARTS: usize = 12;
/// What a lookup takes that reads another block of the index, in rows.
const FAR_LOOKUP: f64 = 4.0;
/// The number of rows up to which a pattern of a given subject comes first without comparing the orders.
const FEW_ROWS: f64 = 128.0;
/// Estimated rows of a path for each row that binds one of its ends.
const ROWS_PER_PATH: f64 = 50.0;
/// Estimated rows of a path without a bound end: more than any triple pattern, since it can be empty.
const ROWS_OF_OPEN_PATH: f64 = 1e9;
/// Rewrites the pattern of a request.
pub(crate) fn plan(pattern: GraphPattern, dataset: &Dataset<'_>) -> GraphPattern {
    Planner { dataset, named: Cell::new(0) }.rewrite(pattern, &Scope::default())
}

/// What surrounds a pattern.
#[derive(Clone, Default)]
struct Scope {
    /// The variables that have a value when the pattern is evaluated.
    bound: HashSet<Variable>,
    /// Whether the pattern is within GRAPH.
    is_in_graph: bool,
    /// The variable that has a number for each row.
    row: Option<Variable>,
}

impl Scope {
    fn with_bound(&self, variables: impl IntoIterator<Item = Variable>) -> Self {
        let mut scope = self.clone();
        scope.bound.extend(variables);
        scope
    }

    fn without_bound(&self) -> Self {
        Self { bound: HashSet::new(), ..self.clone() }
    }
}

struct Planner<'a, 's> {
    dataset: &'a Dataset<'s>,
    /// The number of variables of [`Self::name_variable`].
    named: Cell<usize>,
}

/// A part of a join, with its variables.
struct Part {
    kind: PartKind,
    variables: HashSet<Variable>,
}

/// The part that a join takes next.
struct NextPart {
    /// Its place among the parts.
    place: usize,
    /// Whether it shares no variable with the parts before it.
    is_apart: bool,
}

enum PartKind {
    Triple(TriplePattern, OnceCell<Statistics>),
    /// A path; it can be evaluated for each row of what comes before it.
    Path(GraphPattern),
    /// Rows that are computed apart.
    Rows {
        pattern: GraphPattern,
        rows: f64,
    },
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
                let mut right = self.rewrite(*right, &inner);
                if let Some(expression) = &expression
                    && !scope.is_in_graph
                {
                    add_conditions(expression, &mut right, self.dataset);
                }
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
                let mut inner = self.rewrite(*inner, scope);
                if !scope.is_in_graph {
                    add_conditions(&expr, &mut inner, self.dataset);
                }
                let expr = self.rewrite_condition(expr, &scope.with_bound(find_variables(&inner)));
                GraphPattern::Filter { expr, inner: inner.into() }
            }
            GraphPattern::Union { left, right } => GraphPattern::Union {
                left: self.rewrite(*left, scope).into(),
                right: self.rewrite(*right, scope).into(),
            },
            GraphPattern::Graph { name, inner } => {
                let inner = match &name {
                    NamedNodePattern::Variable(graph) => match self.separate_graph(graph, *inner) {
                        Ok(separated) => return self.rewrite(separated, scope),
                        Err(inner) => *inner,
                    },
                    NamedNodePattern::NamedNode(_) => *inner,
                };
                let scope = Scope { is_in_graph: true, ..scope.clone() };
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
                let mut inner = self.rewrite(*inner, scope);
                let scope = scope.with_bound(find_variables(&inner));
                let mut to_key = |by: Expression| {
                    let by = self.rewrite_expression(by, &scope);
                    let Some(expression) = call_rank(&by) else { return by };
                    // Once for each row, not for each comparison.
                    let variable = self.name_variable("rank");
                    let ranked = std::mem::take(&mut inner);
                    inner = GraphPattern::Extend {
                        inner: ranked.into(),
                        variable: variable.clone(),
                        expression,
                    };
                    Expression::Coalesce(vec![Expression::Variable(variable), by])
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
                GraphPattern::Project { inner: self.rewrite(*inner, &scope).into(), variables }
            }
            GraphPattern::Distinct { inner } => {
                GraphPattern::Distinct { inner: self.rewrite(*inner, scope).into() }
            }
            GraphPattern::Reduced { inner } => {
                GraphPattern::Reduced { inner: self.rewrite(*inner, scope).into() }
            }
            GraphPattern::Slice { inner, start, length } => {
                GraphPattern::Slice { inner: self.rewrite(*inner, scope).into(), start, length }
            }
            GraphPattern::Group { inner, variables, aggregates } => {
                if variables.is_empty()
                    && let Some(triple) = find_countable(&inner, &aggregates, scope)
                {
                    return self.count(triple, aggregates);
                }
                let inner = self.rewrite(*inner, scope);
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

    /// Counts the matches of a triple pattern, for aggregates that all count them.
    fn count(
        &self,
        triple: &TriplePattern,
        aggregates: Vec<(Variable, AggregateExpression)>,
    ) -> GraphPattern {
        let count = self.dataset.count_triples(find_constants(triple));
        let count = GroundTerm::Literal(Literal::from(count));
        let variables: Vec<_> = aggregates.into_iter().map(|(variable, _)| variable).collect();
        let row = variables.iter().map(|_| Some(count.clone())).collect();
        GraphPattern::Values { variables, bindings: vec![row] }
    }

    /// Adds the parts of a join, rewritten.
    fn collect_parts(&self, pattern: GraphPattern, scope: &Scope, parts: &mut Vec<Part>) {
        check_parts(parts);
        match pattern {
            GraphPattern::Join { left, right } => {
                self.collect_parts(*left, scope, parts);
                self.collect_parts(*right, scope, parts);
            }
            // Within GRAPH, a pattern without triples matches each graph once.
            GraphPattern::Bgp { patterns } if !patterns.is_empty() || !scope.is_in_graph => {
                check_limit(parts.len() + patterns.len(), MAX_JOINED_PARTS);
                parts.extend(patterns.into_iter().map(Part::from_triple));
            }
            path @ GraphPattern::Path { .. }
                if let Some(zero_length) = self.find_zero_length(&path, scope) =>
            {
                if !scope.is_in_graph {
                    // No triple has the constant.
                    return self.collect_parts(zero_length, scope, parts);
                }
                let mut rows = Vec::new();
                self.collect_parts(zero_length, scope, &mut rows);
                let zero_length = self.join(rows, scope);
                let both = GraphPattern::Union { left: path.into(), right: zero_length.into() };
                let distinct = GraphPattern::Distinct { inner: both.into() };
                parts.push(Part::from_rows(check(distinct), UNKNOWN_ROWS));
            }
            path @ GraphPattern::Path { .. } => {
                let variables = find_variables(&path);
                parts.push(Part { kind: PartKind::Path(path), variables });
            }
            GraphPattern::Values { variables, bindings } => {
                let rows = count_to_float(bindings.len());
                parts.push(Part::from_rows(
                    check(GraphPattern::Values { variables, bindings }),
                    rows,
                ));
                if scope.is_in_graph {
                    // The evaluator gives the graph to triples and paths only.
                    let graph = GraphPattern::Bgp { patterns: Vec::new() };
                    parts.push(Part::from_rows(graph, ROWS_PER_PATH));
                }
            }
            bgp @ GraphPattern::Bgp { .. } => parts.push(Part::from_rows(bgp, ROWS_PER_PATH)),
            other => {
                let pattern = self.rewrite(other, scope);
                let rows = estimate_rows(&pattern);
                parts.push(Part::from_rows(pattern, rows));
            }
        }
    }

    /// Joins parts in the order of [`Self::order_parts`].
    fn join(&self, parts: Vec<Part>, scope: &Scope) -> GraphPattern {
        let order = self.order_parts(&parts, &scope.bound);
        let mut parts: Vec<_> = parts.into_iter().map(Some).collect();
        let mut joined: Option<GraphPattern> = None;
        for NextPart { place, is_apart } in order {
            let Some(part) = parts.get_mut(place).and_then(Option::take) else { continue };
            let (next, is_lookup) = match part.kind {
                PartKind::Triple(triple, _) => (GraphPattern::Bgp { patterns: vec![triple] }, true),
                PartKind::Path(path) => (path, true),
                PartKind::Rows { pattern, .. } => (pattern, false),
            };
            joined = Some(match joined {
                None => next,
                Some(left) if is_lookup && !is_apart => {
                    GraphPattern::Lateral { left: left.into(), right: next.into() }
                }
                Some(left) => check(GraphPattern::Join { left: left.into(), right: next.into() }),
            });
        }
        joined.unwrap_or(GraphPattern::Bgp { patterns: Vec::new() })
    }

    /// Returns the order of a join that takes the least in all of its steps together, among those that begin with each
    /// part. If there are many parts, only the one with the fewest rows comes first.
    fn order_parts(&self, parts: &[Part], bound: &HashSet<Variable>) -> Vec<NextPart> {
        match parts {
            [_] => return vec![NextPart { place: 0, is_apart: false }],
            [left, right] if self.is_small(left) || self.is_small(right) => {
                let (first, left, right) =
                    if self.is_small(left) { (0, left, right) } else { (1, right, left) };
                let is_apart = !right.variables.is_empty()
                    && right.variables.is_disjoint(&left.variables)
                    && right.variables.is_disjoint(bound);
                return vec![
                    NextPart { place: first, is_apart: false },
                    NextPart { place: 1 - first, is_apart },
                ];
            }
            many if many.len() > MAX_TRIED_PARTS => return self.order_from(parts, bound, None).0,
            _ => {}
        }
        let tried = (0..parts.len()).map(|first| self.order_from(parts, bound, Some(first)));
        let best = tried.min_by(|left, right| left.1.total_cmp(&right.1));
        best.map(|(order, _)| order).unwrap_or_default()
    }

    /// Orders parts: after `first` always the one with the fewest rows that shares a variable with those before it.
    /// Returns the order, and what all steps take together: a unit is a row, or a lookup in a block that was just read.
    fn order_from(
        &self,
        parts: &[Part],
        bound: &HashSet<Variable>,
        first: Option<usize>,
    ) -> (Vec<NextPart>, f64) {
        let mut bound = bound.clone();
        let mut order: Vec<NextPart> = Vec::new();
        let mut left: Vec<_> = parts.iter().enumerate().collect();
        let (mut rows, mut costs) = (1.0, 0.0);
        let mut ordered = None;
        while !left.is_empty() {
            self.dataset.check_limits();
            let estimates = left.iter().enumerate().map(|(at, (place, part))| {
                let is_apart = !order.is_empty()
                    && !part.variables.is_empty()
                    && part.variables.is_disjoint(&bound);
                let is_later = order.is_empty() && first.is_some_and(|first| first != *place);
                (at, is_apart, is_later, self.estimate(part, &bound))
            });
            let best = estimates.min_by(|left, right| {
                (left.1, left.2).cmp(&(right.1, right.2)).then(left.3.total_cmp(&right.3))
            });
            let Some((at, is_apart, _, estimate)) = best else { break };
            let (place, part) = left.swap_remove(at);
            if order.is_empty() {
                ordered = self.find_ordered_subject(part);
            } else if !is_apart {
                let is_near = match &part.kind {
                    PartKind::Triple(triple, _) => {
                        matches!(&triple.subject, TermPattern::Variable(subject) if ordered == Some(subject))
                    }
                    _ => false,
                };
                costs += if is_near { rows } else { rows * FAR_LOOKUP };
            }
            bound.extend(part.variables.iter().cloned());
            rows *= estimate;
            costs += rows;
            order.push(NextPart { place, is_apart });
        }
        (order, costs)
    }

    /// Estimates the rows of a part for each row that binds these variables.
    fn estimate(&self, part: &Part, bound: &HashSet<Variable>) -> f64 {
        match &part.kind {
            PartKind::Rows { rows, .. } => *rows,
            PartKind::Triple(triple, statistics) => {
                let statistics = self.find_statistics(triple, statistics);
                estimate_triple(triple, statistics, bound)
            }
            PartKind::Path(GraphPattern::Path { subject, object, .. }) => {
                match [subject, object].iter().filter(|end| !is_bound(end, bound)).count() {
                    0 => 1.0,
                    1 => ROWS_PER_PATH,
                    _ => ROWS_OF_OPEN_PATH,
                }
            }
            PartKind::Path(_) => UNKNOWN_ROWS,
        }
    }

    fn find_statistics<'p>(
        &self,
        triple: &TriplePattern,
        known: &'p OnceCell<Statistics>,
    ) -> &'p Statistics {
        known.get_or_init(|| self.dataset.estimate(find_constants(triple)))
    }

    /// Returns whether a part is a pattern of a given subject that has few rows. That takes little to find out.
    fn is_small(&self, part: &Part) -> bool {
        let PartKind::Triple(triple, statistics) = &part.kind else { return false };
        to_constant(&triple.subject).is_some()
            && self.find_statistics(triple, statistics).rows <= FEW_ROWS
    }

    /// Returns the variable whose values come in the order of subjects if this part comes first.
    fn find_ordered_subject<'p>(&self, part: &'p Part) -> Option<&'p Variable> {
        match &part.kind {
            PartKind::Triple(triple, statistics) => match &triple.subject {
                TermPattern::Variable(subject)
                    if self.find_statistics(triple, statistics).is_by_subject =>
                {
                    Some(subject)
                }
                _ => None,
            },
            _ => None,
        }
    }
}

impl Part {
    fn from_triple(triple: TriplePattern) -> Self {
        let variables = find_variables(&GraphPattern::Bgp { patterns: vec![triple.clone()] });
        Self { kind: PartKind::Triple(triple, OnceCell::new()), variables }
    }
}

/// Returns the triple pattern whose matches these aggregates count, if that is all they do.
fn find_countable<'p>(
    pattern: &'p GraphPattern,
    aggregates: &[(Variable, AggregateExpression)],
    scope: &Scope,
) -> Option<&'p TriplePattern> {
    let GraphPattern::Bgp { patterns } = pattern else { return None };
    let [triple] = patterns.as_slice() else { return None };
    let TriplePattern { subject, predicate, object } = triple;
    let predicate = match predicate {
        NamedNodePattern::Variable(variable) => Some(variable),
        NamedNodePattern::NamedNode(_) => None,
    };
    let ends = [subject, object].into_iter().filter_map(|term| match term {
        TermPattern::Variable(variable) => Some(variable),
        _ => None,
    });
    let variables: Vec<_> = ends.chain(predicate).collect();
    let is_repeated = variables.iter().collect::<HashSet<_>>().len() < variables.len();
    let has_node = [subject, object].iter().any(|term| matches!(term, TermPattern::BlankNode(_)));
    let counts_matches = |aggregate: &AggregateExpression| match aggregate {
        AggregateExpression::CountSolutions { distinct } => !distinct,
        AggregateExpression::FunctionCall {
            name: AggregateFunction::Count,
            expr: Expression::Variable(counted),
            distinct: false,
        } => variables.contains(&counted),
        AggregateExpression::FunctionCall { .. } => false,
    };
    let is_countable = !is_repeated
        && !has_node
        && !scope.is_in_graph
        && scope.bound.is_empty()
        && aggregates.iter().all(|(_, aggregate)| counts_matches(aggregate));
    is_countable.then_some(triple)
}

impl Part {
    fn from_rows(pattern: GraphPattern, rows: f64) -> Self {
        let variables = find_variables(&pattern);
        Self { kind: PartKind::Rows { pattern, rows }, variables }
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

/// Refuses a join of too many parts.
fn check_parts(parts: &[Part]) {
    check_limit(parts.len(), MAX_JOINED_PARTS);
    let groups = parts.iter().filter(|part| matches!(part.kind, PartKind::Rows { .. }));
    check_limit(groups.count(), MAX_JOINED_GROUPS);
}

fn check_limit(parts: usize, most: usize) {
    if parts > most {
        abort(GatewayError::new(
            ErrorClass::Malformed,
            format!(
                "the SPARQL request joins more than {MAX_JOINED_PARTS} triple patterns or {MAX_JOINED_GROUPS} groups; use VALUES or split the request"
            ),
        ));
    }
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
