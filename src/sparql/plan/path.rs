//! Paths of length zero at a constant: they match the constant, whether a triple has it or not (SPARQL 1.1 Query, section
//! 18.4). The evaluator begins only at terms that triples have.
use super::{Planner, Scope};
use oxrdf::Term;
use spargebra::algebra::{GraphPattern, PropertyPathExpression};
use spargebra::term::{GroundTerm, TermPattern};

impl Planner<'_, '_> {
    /// Returns what a path matches beside its triples: rows of a constant at which it begins and ends. `None` if it has
    /// none, or if the evaluator finds them.
    pub(super) fn find_zero_length(
        &self,
        path: &GraphPattern,
        scope: &Scope,
    ) -> Option<GraphPattern> {
        let GraphPattern::Path { subject, path, object } = path else { return None };
        if !matches_zero_length(path) {
            return None;
        }
        let (constant, other) = match (to_ground(subject), to_ground(object)) {
            (Some(constant), Some(other)) if constant != other => return None,
            (Some(constant), _) => (constant, object),
            (None, Some(constant)) => (constant, subject),
            (None, None) => return None,
        };
        // Within GRAPH it is not known which graphs have the term.
        if !scope.is_in_graph() && self.dataset.has_node(to_term(&constant)) {
            return None;
        }
        match other {
            TermPattern::Variable(variable) => Some(GraphPattern::Values {
                variables: vec![variable.clone()],
                bindings: vec![vec![Some(constant)]],
            }),
            // The variable of a blank node cannot be named.
            TermPattern::BlankNode(_) => None,
            _ => Some(GraphPattern::Bgp { patterns: Vec::new() }),
        }
    }
}

fn matches_zero_length(path: &PropertyPathExpression) -> bool {
    match path {
        PropertyPathExpression::ZeroOrMore(_) | PropertyPathExpression::ZeroOrOne(_) => true,
        PropertyPathExpression::Reverse(inner) | PropertyPathExpression::OneOrMore(inner) => {
            matches_zero_length(inner)
        }
        PropertyPathExpression::Sequence(left, right) => {
            matches_zero_length(left) && matches_zero_length(right)
        }
        PropertyPathExpression::Alternative(left, right) => {
            matches_zero_length(left) || matches_zero_length(right)
        }
        PropertyPathExpression::NamedNode(_) | PropertyPathExpression::NegatedPropertySet(_) => {
            false
        }
    }
}

fn to_ground(term: &TermPattern) -> Option<GroundTerm> {
    match term {
        TermPattern::NamedNode(node) => Some(node.clone().into()),
        TermPattern::Literal(literal) => Some(literal.clone().into()),
        TermPattern::Variable(_) | TermPattern::BlankNode(_) | TermPattern::Triple(_) => None,
    }
}

fn to_term(term: &GroundTerm) -> Term {
    match term {
        GroundTerm::NamedNode(node) => node.clone().into(),
        GroundTerm::Literal(literal) => literal.clone().into(),
        GroundTerm::Triple(triple) => Term::Triple(Box::new(triple.as_ref().clone().into())),
    }
}
