//! The order of joins: each part of a group is tried as the first one, and the order that takes the least in all is taken.
use super::estimate::{
    UNKNOWN_ROWS, estimate_rows, estimate_triple, find_constants, is_bound, to_constant,
};
use super::{NeededOrder, Planner, Scope, check, find_variables};
use crate::dataset::{FAR_LOOKUP, Statistics, to_float};
use oxrdf::{NamedNode, Variable};
use penstock_base::error::{ErrorClass, GatewayError};
use penstock_base::unwind::abort;
use penstock_store::TermCode;
use spargebra::algebra::GraphPattern;
use spargebra::term::{NamedNodePattern, TermPattern, TriplePattern};
use std::cell::OnceCell;
use std::collections::HashSet;
use std::rc::Rc;

/// The maximum number of parts of one join. Each is one more level of the evaluation.
const MAX_JOINED_PARTS: usize = 500;
/// The maximum number of groups in one join. The time of the evaluator's planning grows with their third power.
const MAX_JOINED_GROUPS: usize = 40;
/// The maximum number of parts for which each is tried as the first one of the join.
const MAX_TRIED_PARTS: usize = 12;
/// The number of rows up to which a pattern of a given subject comes first without comparing the orders.
const FEW_ROWS: f64 = 128.0;
/// Estimated rows of a path for each row that binds one of its ends.
const ROWS_PER_PATH: f64 = 50.0;
/// Estimated rows of a path without a bound end: more than any triple pattern, since it can be empty.
const ROWS_OF_OPEN_PATH: f64 = 1e9;

/// A part of a join, with its variables.
pub(super) struct Part {
    kind: PartKind,
    variables: HashSet<Variable>,
    /// The name of the GRAPH that has only this triple pattern.
    graph: Option<NamedNodePattern>,
    /// The part of a triple pattern's rows that filters on its object leave, if the index of values finds them.
    selectivity: f64,
}

/// The part that a join takes next.
struct NextPart {
    /// Its place among the parts.
    place: usize,
    /// Whether it shares no variable with the parts before it.
    is_apart: bool,
}

/// An order of all parts of a join.
struct JoinOrder {
    parts: Vec<NextPart>,
    /// What all steps take together: a unit is a row, or a lookup in a block that was just read.
    cost: f64,
    rows: f64,
}

enum PartKind {
    Triple(TriplePattern, OnceCell<Rc<Statistics>>),
    /// A path; it can be evaluated for each row of what comes before it.
    Path(GraphPattern),
    /// Rows that are computed apart.
    Rows {
        pattern: GraphPattern,
        rows: f64,
    },
}

impl Planner<'_, '_> {
    /// Adds the parts of a join, rewritten.
    pub(super) fn collect_parts(
        &self,
        pattern: GraphPattern,
        scope: &Scope,
        parts: &mut Vec<Part>,
    ) {
        check_parts(parts);
        match pattern {
            GraphPattern::Join { left, right } => {
                self.collect_parts(*left, scope, parts);
                self.collect_parts(*right, scope, parts);
            }
            // Within GRAPH, a pattern without triples matches each graph once.
            GraphPattern::Bgp { patterns } if !patterns.is_empty() || !scope.is_in_graph() => {
                check_limit(parts.len() + patterns.len(), MAX_JOINED_PARTS);
                let create = |triple| self.create_part(triple, None, scope);
                parts.extend(patterns.into_iter().map(create));
            }
            // A variable of GRAPH would join patterns that have nothing else in common, each with a scan for each row.
            GraphPattern::Graph { name: name @ NamedNodePattern::NamedNode(_), inner } if matches!(&*inner, GraphPattern::Bgp { patterns } if !patterns.is_empty()) =>
            {
                let GraphPattern::Bgp { patterns } = *inner else { return };
                check_limit(parts.len() + patterns.len(), MAX_JOINED_PARTS);
                let create = |triple| self.create_part(triple, Some(name.clone()), scope);
                parts.extend(patterns.into_iter().map(create));
            }
            path @ GraphPattern::Path { .. }
                if let Some(zero_length) = self.find_zero_length(&path, scope) =>
            {
                if !scope.is_in_graph() {
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
                let kind = PartKind::Path(path);
                parts.push(Part { kind, variables, graph: None, selectivity: 1.0 });
            }
            GraphPattern::Values { variables, bindings } => {
                let rows = to_float(bindings.len());
                parts.push(Part::from_rows(
                    check(GraphPattern::Values { variables, bindings }),
                    rows,
                ));
                if scope.is_in_graph() {
                    // The evaluator gives the graph to triples and paths only.
                    let graph = GraphPattern::Bgp { patterns: Vec::new() };
                    parts.push(Part::from_rows(graph, ROWS_PER_PATH));
                }
            }
            bgp @ GraphPattern::Bgp { .. } => parts.push(Part::from_rows(bgp, ROWS_PER_PATH)),
            other => {
                let pattern = self.rewrite(other, &scope.without_hints());
                let rows = estimate_rows(&pattern);
                parts.push(Part::from_rows(pattern, rows));
            }
        }
    }

    fn create_part(
        &self,
        triple: TriplePattern,
        graph: Option<NamedNodePattern>,
        scope: &Scope,
    ) -> Part {
        let part = match (&triple.predicate, &triple.object) {
            (NamedNodePattern::NamedNode(property), TermPattern::Variable(object)) => {
                scope.find_values(object).and_then(|values| {
                    let graph = self.find_graph(graph.as_ref(), scope);
                    self.dataset.estimate_part(property, values, graph.as_ref())
                })
            }
            _ => None,
        };
        let variables = find_variables(&GraphPattern::Bgp { patterns: vec![triple.clone()] });
        let kind = PartKind::Triple(triple, OnceCell::new());
        Part { kind, variables, graph, selectivity: part.unwrap_or(1.0) }
    }

    /// Joins parts in the order of [`Self::order_parts`].
    pub(super) fn join(&self, parts: Vec<Part>, scope: &Scope) -> GraphPattern {
        let order = self.order_parts(&parts, scope);
        let mut parts: Vec<_> = parts.into_iter().map(Some).collect();
        let mut joined: Option<GraphPattern> = None;
        for NextPart { place, is_apart } in order {
            let Some(part) = parts.get_mut(place).and_then(Option::take) else { continue };
            let (next, is_lookup) = match part.kind {
                PartKind::Triple(triple, _) => (GraphPattern::Bgp { patterns: vec![triple] }, true),
                PartKind::Path(path) => (path, true),
                PartKind::Rows { pattern, .. } => (pattern, false),
            };
            let next = match part.graph {
                Some(name) => GraphPattern::Graph { name, inner: next.into() },
                None => next,
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
    fn order_parts(&self, parts: &[Part], scope: &Scope) -> Vec<NextPart> {
        let bound = &scope.bound;
        match parts {
            [part] => {
                if let Some(order) = &scope.order {
                    self.prepare_order(part, order, scope);
                }
                return vec![NextPart { place: 0, is_apart: false }];
            }
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
            many if many.len() > MAX_TRIED_PARTS => {
                return self.order_from(parts, bound, None).parts;
            }
            _ => {}
        }
        let mut tried: Vec<_> =
            (0..parts.len()).map(|first| self.order_from(parts, bound, Some(first))).collect();
        let orders = tried.iter().enumerate();
        let best = orders.min_by(|(_, left), (_, right)| left.cost.total_cmp(&right.cost));
        let Some((place, best)) = best else { return Vec::new() };
        let first = self.find_ordered_part(parts, &tried, best, scope).unwrap_or(place);
        tried.swap_remove(first).parts
    }

    /// Returns the part that binds the first key of ORDER BY, if beginning with it in the order of the key takes less than the
    /// best order, because only the first rows are needed.
    fn find_ordered_part(
        &self,
        parts: &[Part],
        tried: &[JoinOrder],
        best: &JoinOrder,
        scope: &Scope,
    ) -> Option<usize> {
        let order = scope.order.as_ref()?;
        let (first, part) = parts
            .iter()
            .enumerate()
            .find(|(_, part)| part.find_property(&order.variable, &scope.bound).is_some())?;
        let ordered = tried.get(first)?;
        let rows = best.rows.min(ordered.rows) * order.selectivity;
        let share = (to_float(order.bound.rows()) / rows.max(1.0)).min(1.0);
        if ordered.cost * share * FAR_LOOKUP > best.cost {
            return None;
        }
        self.prepare_order(part, order, scope).then_some(first)
    }

    /// Prepares to read a part in an order. Returns false if that is not possible, or takes too much.
    fn prepare_order(&self, part: &Part, order: &NeededOrder, scope: &Scope) -> bool {
        let Some(property) = part.find_property(&order.variable, &scope.bound) else {
            return false;
        };
        let values = scope.find_values(&order.variable);
        let graph = self.find_graph(part.graph.as_ref(), scope);
        self.dataset.prepare_order(property, values, graph.as_ref(), &order.bound)
    }

    /// Returns the graph that a pattern within this name of GRAPH reads, if it is one.
    fn find_graph(&self, name: Option<&NamedNodePattern>, scope: &Scope) -> Option<TermCode> {
        self.dataset.find_graph(name.or(scope.graph.as_ref()))
    }

    /// Orders parts: after `first` always the one with the fewest rows that shares a variable with those before it.
    fn order_from(
        &self,
        parts: &[Part],
        bound: &HashSet<Variable>,
        first: Option<usize>,
    ) -> JoinOrder {
        let mut bound = bound.clone();
        let mut order: Vec<NextPart> = Vec::new();
        let mut left: Vec<_> = parts.iter().enumerate().collect();
        let (mut rows, mut cost) = (1.0, 0.0);
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
                cost += if is_near { rows } else { rows * FAR_LOOKUP };
            }
            bound.extend(part.variables.iter().cloned());
            rows *= estimate;
            cost += rows;
            order.push(NextPart { place, is_apart });
        }
        JoinOrder { parts: order, cost, rows }
    }

    /// Estimates the rows of a part for each row that binds these variables.
    fn estimate(&self, part: &Part, bound: &HashSet<Variable>) -> f64 {
        match &part.kind {
            PartKind::Rows { rows, .. } => *rows,
            PartKind::Triple(triple, statistics) => {
                let statistics = self.find_statistics(triple, statistics);
                let rows = estimate_triple(triple, statistics, bound);
                if is_bound(&triple.object, bound) { rows } else { rows * part.selectivity }
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
        known: &'p OnceCell<Rc<Statistics>>,
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
                    if part.selectivity >= 1.0
                        && self.find_statistics(triple, statistics).is_by_subject =>
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
    fn from_rows(pattern: GraphPattern, rows: f64) -> Self {
        let variables = find_variables(&pattern);
        Self { kind: PartKind::Rows { pattern, rows }, variables, graph: None, selectivity: 1.0 }
    }

    /// Returns the property of a triple pattern that has this variable as its object, if nothing else of it has a value before.
    fn find_property(&self, variable: &Variable, bound: &HashSet<Variable>) -> Option<&NamedNode> {
        let PartKind::Triple(TriplePattern { subject, predicate, object }, _) = &self.kind else {
            return None;
        };
        let NamedNodePattern::NamedNode(property) = predicate else { return None };
        let is_sought = matches!(object, TermPattern::Variable(object) if object == variable);
        let is_open = !is_bound(subject, bound) && !is_bound(object, bound) && subject != object;
        (is_sought && is_open).then_some(property)
    }
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
