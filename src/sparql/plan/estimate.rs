//! Estimates the rows of a pattern by the statistics of the index.
use crate::dataset::{Statistics, to_float};
use oxrdf::{Term, Variable};
use spargebra::algebra::GraphPattern;
use spargebra::term::{NamedNodePattern, TermPattern, TriplePattern};
use std::collections::HashSet;

/// Estimated rows of a part whose size is not known.
pub(super) const UNKNOWN_ROWS: f64 = 1_000.0;
/// The factor by which one more bound term reduces the rows of a pattern.
pub(super) const UNKNOWN_SELECTIVITY: f64 = 0.1;

/// Returns the subject, predicate and object of a pattern that are constants.
pub(super) fn find_constants(triple: &TriplePattern) -> [Option<Term>; 3] {
    let predicate = match &triple.predicate {
        NamedNodePattern::NamedNode(node) => Some(Term::from(node.clone())),
        NamedNodePattern::Variable(_) => None,
    };
    [to_constant(&triple.subject), predicate, to_constant(&triple.object)]
}

pub(super) fn estimate_triple(
    triple: &TriplePattern,
    statistics: &Statistics,
    bound: &HashSet<Variable>,
) -> f64 {
    let is_joined = |term: &TermPattern| to_constant(term).is_none() && is_bound(term, bound);
    let is_predicate_joined = match &triple.predicate {
        NamedNodePattern::NamedNode(_) => false,
        NamedNodePattern::Variable(variable) => bound.contains(variable),
    };
    let mut rows = statistics.rows;
    if is_joined(&triple.subject) {
        rows = rows.min(statistics.rows_per_subject);
        if is_bound(&triple.object, bound) {
            rows *= UNKNOWN_SELECTIVITY;
        }
    }
    if is_joined(&triple.object) {
        rows = rows.min(statistics.rows_per_object);
        if to_constant(&triple.subject).is_some() {
            rows *= UNKNOWN_SELECTIVITY;
        }
    }
    if is_predicate_joined { rows * UNKNOWN_SELECTIVITY } else { rows }
}

pub(super) fn is_bound(term: &TermPattern, bound: &HashSet<Variable>) -> bool {
    match term {
        TermPattern::Variable(variable) => bound.contains(variable),
        TermPattern::BlankNode(node) => bound.contains(&to_variable(node)),
        // A triple term is refused before the parser.
        TermPattern::NamedNode(_) | TermPattern::Literal(_) | TermPattern::Triple(_) => true,
    }
}

pub(super) fn to_constant(term: &TermPattern) -> Option<Term> {
    match term {
        TermPattern::NamedNode(node) => Some(node.clone().into()),
        TermPattern::Literal(literal) => Some(literal.clone().into()),
        TermPattern::Variable(_) | TermPattern::BlankNode(_) | TermPattern::Triple(_) => None,
    }
}

/// Estimates the rows of a part that is computed apart.
pub(super) fn estimate_rows(pattern: &GraphPattern) -> f64 {
    match pattern {
        GraphPattern::Values { bindings, .. } => to_float(bindings.len()),
        GraphPattern::Slice { inner, length, .. } => {
            let inner = estimate_rows(inner);
            length.map_or(inner, |length| inner.min(to_float(length)))
        }
        GraphPattern::Union { left, right } => estimate_rows(left) + estimate_rows(right),
        GraphPattern::Group { variables, .. } if variables.is_empty() => 1.0,
        GraphPattern::Project { inner, .. }
        | GraphPattern::Distinct { inner }
        | GraphPattern::Reduced { inner }
        | GraphPattern::OrderBy { inner, .. }
        | GraphPattern::Extend { inner, .. }
        | GraphPattern::Filter { inner, .. } => estimate_rows(inner),
        GraphPattern::Lateral { left, .. } => estimate_rows(left),
        _ => UNKNOWN_ROWS,
    }
}

/// Returns the variable in place of a blank node of a pattern.
pub(super) fn to_variable(node: &oxrdf::BlankNode) -> Variable {
    Variable::new_unchecked(format!("_:{}", node.as_str()))
}
