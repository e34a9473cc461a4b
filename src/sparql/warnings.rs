//! What is valid in a query and probably not meant.
use crate::expressions::has_part;
use oxrdf::Variable;
use spargebra::Query;
use spargebra::algebra::{Expression, GraphPattern};
use std::collections::HashSet;

/// The maximum number of warnings. They are sent in a header.
const MAX_WARNINGS: usize = 5;

/// Returns a sentence for each warning, for the first ones.
pub(crate) fn find_warnings(query: &Query) -> Vec<String> {
    let (Query::Select { pattern, .. }
    | Query::Ask { pattern, .. }
    | Query::Construct { pattern, .. }
    | Query::Describe { pattern, .. }) = query;
    let mut warnings = Vec::new();
    visit(pattern, &mut Vec::new(), &mut warnings);
    warnings.truncate(MAX_WARNINGS);
    warnings
}

/// Visits a pattern. `assigned` has the variables that SELECT assigns to the rows of the pattern.
fn visit<'p>(
    pattern: &'p GraphPattern,
    assigned: &mut Vec<&'p Variable>,
    warnings: &mut Vec<String>,
) {
    match pattern {
        GraphPattern::Extend { inner, variable, .. } => {
            assigned.push(variable);
            return visit(inner, assigned, warnings);
        }
        GraphPattern::OrderBy { inner, .. } => return visit(inner, assigned, warnings),
        GraphPattern::Filter { inner, expr } if matches!(**inner, GraphPattern::Group { .. }) => {
            let mut grouped = HashSet::new();
            inner.on_in_scope_variable(|variable| {
                grouped.insert(variable);
            });
            let unbound = assigned.iter().filter(|variable| !grouped.contains(*variable));
            warnings.extend(unbound.filter(|variable| names(expr, variable)).map(|variable| {
                format!(
                    "HAVING names {variable}, which SELECT assigns after it, so {variable} has no value there and the group is left out. Repeat the expression in HAVING, for example HAVING (COUNT(*) > 1)."
                )
            }));
        }
        _ => {}
    }
    assigned.clear();
    match pattern {
        GraphPattern::Join { left, right }
        | GraphPattern::LeftJoin { left, right, .. }
        | GraphPattern::Lateral { left, right }
        | GraphPattern::Union { left, right }
        | GraphPattern::Minus { left, right } => {
            visit(left, assigned, warnings);
            visit(right, &mut Vec::new(), warnings);
        }
        GraphPattern::Filter { inner, .. }
        | GraphPattern::Graph { inner, .. }
        | GraphPattern::Project { inner, .. }
        | GraphPattern::Distinct { inner }
        | GraphPattern::Reduced { inner }
        | GraphPattern::Slice { inner, .. }
        | GraphPattern::Group { inner, .. } => visit(inner, assigned, warnings),
        GraphPattern::Extend { .. }
        | GraphPattern::OrderBy { .. }
        | GraphPattern::Bgp { .. }
        | GraphPattern::Path { .. }
        | GraphPattern::Values { .. }
        | GraphPattern::Service { .. } => {}
    }
}

fn names(expression: &Expression, variable: &Variable) -> bool {
    has_part(expression, &|part| match part {
        Expression::Variable(named) | Expression::Bound(named) => named == variable,
        _ => false,
    })
}
