//! Rewrites expressions: the operators, functions and aggregates that are replaced, and what keeps the form of literals.
use super::{Planner, Scope, find_variables};
use crate::aggregates::{call_item, find_aggregate};
use crate::expressions::has_part;
use crate::form::hide_misread;
use crate::functions::{call_named_node, call_row, find_replacement, is_named_node_function};
use crate::operators::{replace_condition, replace_constant, replace_operator};
use spargebra::algebra::{
    AggregateExpression, AggregateFunction, Expression, Function, GraphPattern,
};

impl Planner<'_, '_> {
    pub(super) fn rewrite_aggregate(
        &self,
        aggregate: AggregateExpression,
        scope: &Scope,
    ) -> AggregateExpression {
        let AggregateExpression::FunctionCall { name, expr, distinct } = aggregate else {
            return aggregate;
        };
        let mut expr = self.rewrite_expression(expr, scope);
        let shows_terms = matches!(
            name,
            AggregateFunction::Min
                | AggregateFunction::Max
                | AggregateFunction::Sample
                | AggregateFunction::GroupConcat { .. }
        );
        if shows_terms || distinct {
            self.dataset.keep_forms();
            expr = replace_constant(expr);
        }
        if let AggregateFunction::GroupConcat { separator } = &name {
            expr = if distinct {
                // DISTINCT compares terms, so it comes before their texts.
                call_item(expr, separator.as_deref())
            } else {
                // The evaluator concatenates strings only, and ignores groups with another term.
                Expression::FunctionCall(Function::Str, vec![expr])
            };
        }
        let name = find_aggregate(&name, distinct).unwrap_or(name);
        AggregateExpression::FunctionCall { name, expr, distinct }
    }

    /// Rewrites assignments. Those that create blank nodes for strings get a number for each row first.
    pub(super) fn rewrite_extension(&self, pattern: GraphPattern, scope: &Scope) -> GraphPattern {
        let mut pattern = pattern;
        let mut assignments = Vec::new();
        while let GraphPattern::Extend { inner, variable, expression } = pattern {
            assignments.push((variable, expression));
            pattern = *inner;
        }
        let mut extended = self.rewrite(pattern, scope);
        let mut scope = scope.with_bound(find_variables(&extended));
        if assignments.iter().any(|(_, expression)| has_part(expression, &is_named_node_function)) {
            let variable = self.name_variable("row");
            let expression = call_row();
            scope.row = Some(variable.clone());
            extended = GraphPattern::Extend { inner: extended.into(), variable, expression };
        }
        for (variable, expression) in assignments.into_iter().rev() {
            let expression = self.rewrite_expression(expression, &scope);
            scope.bound.insert(variable.clone());
            extended = GraphPattern::Extend { inner: extended.into(), variable, expression };
        }
        extended
    }

    /// Rewrites an expression of which the effective boolean value is needed.
    pub(super) fn rewrite_condition(&self, expression: Expression, scope: &Scope) -> Expression {
        match expression {
            // A filter on several patterns is recognized by its `&&`.
            Expression::And(left, right) => Expression::And(
                self.rewrite_condition(*left, scope).into(),
                self.rewrite_condition(*right, scope).into(),
            ),
            other => replace_condition(self.rewrite_expression(other, scope)),
        }
    }

    pub(super) fn rewrite_expression(&self, expression: Expression, scope: &Scope) -> Expression {
        let one = |inner: Box<Expression>| Box::new(self.rewrite_expression(*inner, scope));
        let condition = |inner: Box<Expression>| Box::new(self.rewrite_condition(*inner, scope));
        let all = |inner: Vec<Expression>| {
            inner.into_iter().map(|inner| self.rewrite_expression(inner, scope)).collect()
        };
        let kept = |inner: Box<Expression>| {
            self.dataset.keep_forms();
            Box::new(replace_constant(self.rewrite_expression(*inner, scope)))
        };
        let all_kept = |inner: Vec<Expression>| {
            inner.into_iter().map(|inner| *kept(Box::new(inner))).collect::<Vec<_>>()
        };
        let rewritten = match expression {
            Expression::NamedNode(_) | Expression::Variable(_) | Expression::Bound(_) => expression,
            Expression::Literal(literal) => Expression::Literal(hide_misread(literal)),
            Expression::Or(left, right) => Expression::Or(condition(left), condition(right)),
            Expression::And(left, right) => Expression::And(condition(left), condition(right)),
            Expression::Equal(left, right) => Expression::Equal(one(left), one(right)),
            Expression::SameTerm(left, right) => Expression::SameTerm(kept(left), kept(right)),
            Expression::Greater(left, right) => Expression::Greater(one(left), one(right)),
            Expression::GreaterOrEqual(left, right) => {
                Expression::GreaterOrEqual(one(left), one(right))
            }
            Expression::Less(left, right) => Expression::Less(one(left), one(right)),
            Expression::LessOrEqual(left, right) => Expression::LessOrEqual(one(left), one(right)),
            Expression::In(left, list) => Expression::In(one(left), all(list)),
            Expression::Add(left, right) => Expression::Add(one(left), one(right)),
            Expression::Subtract(left, right) => Expression::Subtract(one(left), one(right)),
            Expression::Multiply(left, right) => Expression::Multiply(one(left), one(right)),
            Expression::Divide(left, right) => Expression::Divide(one(left), one(right)),
            Expression::UnaryPlus(inner) => Expression::UnaryPlus(one(inner)),
            Expression::UnaryMinus(inner) => Expression::UnaryMinus(one(inner)),
            Expression::Not(inner) => Expression::Not(condition(inner)),
            Expression::Exists(pattern) => {
                Expression::Exists(Box::new(self.rewrite(*pattern, scope)))
            }
            Expression::If(test, yes, no) => Expression::If(condition(test), kept(yes), kept(no)),
            Expression::Coalesce(list) => return Expression::Coalesce(all_kept(list)),
            Expression::FunctionCall(function, arguments) => {
                let arguments = match function {
                    Function::Str | Function::Datatype => all_kept(arguments),
                    _ => all(arguments),
                };
                if let (Function::BNode, [name], Some(row)) =
                    (&function, arguments.as_slice(), &scope.row)
                {
                    return call_named_node(name.clone(), row.clone());
                }
                let function = find_replacement(&function).unwrap_or(function);
                Expression::FunctionCall(function, arguments)
            }
        };
        replace_operator(rewritten)
    }
}
