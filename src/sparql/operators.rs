//! Operators and functions that compute with what the evaluator's own types cannot hold: numbers of any length, and
//! literals that keep their form ([`crate::form`]).
//!
//! The evaluator's operator is tried first. If it has no result, a function of ours computes it from the terms. That also
//! finds what really is an error. An operator with large arguments is replaced, because each of them would be there twice.
use crate::expressions::has_parts_within;
use crate::form::{keep_form, restore_form, to_expression_term};
use crate::number::{Arithmetic, Number, Transformation};
use crate::rank::to_rank;
use crate::value::Value;
use oxrdf::vocab::xsd;
use oxrdf::{Literal, NamedNode, NamedNodeRef, Term, Variable};
use penstock_rdf::number::is_integer_type;
use spareval::{ExpressionTerm, QueryEvaluator};
use spargebra::algebra::{Expression, Function};
use sparopt::algebra::Expression as Evaluated;
use std::cmp::Ordering;
use std::sync::Arc;

/// The maximum size of the arguments of an operator that is tried before it is replaced, in parts of an expression.
const MAX_TRIED_PARTS: usize = 10;

/// What is replaced.
#[derive(Debug, Clone, Copy)]
enum Operator {
    Compare(&'static [Ordering]),
    Equal,
    In,
    Calculate(Arithmetic),
    Transform(Transformation),
    /// The effective boolean value.
    Condition,
    IsNumeric,
    Datatype,
    StrDt,
    /// What the evaluator sorts a term by, see [`crate::rank`].
    Rank,
    Cast(NamedNodeRef<'static>),
    /// A function of the evaluator that needs a value in its own types.
    Evaluate(&'static str),
}

use Operator::{Calculate, Compare, Evaluate, Transform};

/// The operators by their names, which no request can use.
const OPERATORS: &[(&str, Operator)] = &[
    ("equal", Operator::Equal),
    ("in", Operator::In),
    ("greater", Compare(&[Ordering::Greater])),
    ("greater-or-equal", Compare(&[Ordering::Greater, Ordering::Equal])),
    ("less", Compare(&[Ordering::Less])),
    ("less-or-equal", Compare(&[Ordering::Less, Ordering::Equal])),
    ("add", Calculate(Arithmetic::Add)),
    ("subtract", Calculate(Arithmetic::Subtract)),
    ("multiply", Calculate(Arithmetic::Multiply)),
    ("divide", Calculate(Arithmetic::Divide)),
    ("plus", Transform(Transformation::Plus)),
    ("minus", Transform(Transformation::Minus)),
    ("abs", Transform(Transformation::Abs)),
    ("ceil", Transform(Transformation::Ceil)),
    ("floor", Transform(Transformation::Floor)),
    ("round", Transform(Transformation::Round)),
    ("condition", Operator::Condition),
    ("is-numeric", Operator::IsNumeric),
    ("datatype", Operator::Datatype),
    ("strdt", Operator::StrDt),
    ("rank", Operator::Rank),
    ("year", Evaluate("year")),
    ("month", Evaluate("month")),
    ("day", Evaluate("day")),
    ("hours", Evaluate("hours")),
    ("minutes", Evaluate("minutes")),
    ("seconds", Evaluate("seconds")),
    ("timezone", Evaluate("timezone")),
    ("tz", Evaluate("tz")),
    ("substr", Evaluate("substr")),
    ("string", Operator::Cast(xsd::STRING)),
    ("boolean", Operator::Cast(xsd::BOOLEAN)),
    ("integer", Operator::Cast(xsd::INTEGER)),
    ("decimal", Operator::Cast(xsd::DECIMAL)),
    ("float", Operator::Cast(xsd::FLOAT)),
    ("double", Operator::Cast(xsd::DOUBLE)),
    ("date-time", Operator::Cast(xsd::DATE_TIME)),
    ("date", Operator::Cast(xsd::DATE)),
    ("time", Operator::Cast(xsd::TIME)),
    ("duration", Operator::Cast(xsd::DURATION)),
    ("day-time-duration", Operator::Cast(xsd::DAY_TIME_DURATION)),
    ("year-month-duration", Operator::Cast(xsd::YEAR_MONTH_DURATION)),
];

/// Names an operator as no request can name it.
fn operator_name(name: &str) -> NamedNode {
    NamedNode::new_unchecked(format!("penstock operator {name}"))
}

fn call(name: &str, arguments: Vec<Expression>) -> Expression {
    Expression::FunctionCall(Function::Custom(operator_name(name)), arguments)
}

/// Replaces the operator or function at the root of an expression, whose arguments are replaced already.
pub(crate) fn replace_operator(expression: Expression) -> Expression {
    use Expression::{
        Add, Divide, Equal, Greater, GreaterOrEqual, In, Less, LessOrEqual, Multiply, Subtract,
        UnaryMinus, UnaryPlus,
    };
    let name = match &expression {
        Equal(left, right) if is_iri(left) || is_iri(right) => return expression,
        Equal(left, right)
        | Greater(left, right)
        | GreaterOrEqual(left, right)
        | Less(left, right)
        | LessOrEqual(left, right)
            if is_own_value(left) && is_own_value(right) =>
        {
            return expression;
        }
        Equal(..) => "equal",
        Greater(..) => "greater",
        GreaterOrEqual(..) => "greater-or-equal",
        Less(..) => "less",
        LessOrEqual(..) => "less-or-equal",
        Add(..) => "add",
        Subtract(..) => "subtract",
        Multiply(..) => "multiply",
        // The evaluator cuts quotients off behind 18 digits of the fraction.
        Divide(..) => return call("divide", take_arguments(expression)),
        UnaryPlus(_) => "plus",
        UnaryMinus(_) => "minus",
        In(left, list) => {
            if list.is_empty() {
                // The evaluator needs the effective boolean value of what is sought.
                return call("in", take_arguments(expression));
            }
            let is_constant =
                |item: &Expression| matches!(item, Expression::Literal(_)) || is_iri(item);
            if list.iter().all(is_iri) {
                return expression;
            }
            if list.iter().all(is_constant) {
                return try_first("in", has_parts_within(left, MAX_TRIED_PARTS), expression);
            }
            return replace_in(expression);
        }
        Expression::FunctionCall(function, arguments) => match find_function(function, arguments) {
            Some((name, true)) => name,
            Some((name, false)) => return call(name, take_arguments(expression)),
            None => return expression,
        },
        _ => return expression,
    };
    let is_small = has_parts_within(&expression, MAX_TRIED_PARTS + 1);
    try_first(name, is_small, expression)
}

/// Evaluates a small operator, and if it has no result, the function of this name. Evaluates only that in place of a large
/// one.
fn try_first(name: &str, is_small: bool, operator: Expression) -> Expression {
    if !is_small {
        return call(name, take_arguments(operator));
    }
    let replacement = call(name, take_arguments(operator.clone()));
    Expression::Coalesce(vec![operator, replacement])
}

fn take_arguments(expression: Expression) -> Vec<Expression> {
    match expression {
        Expression::Equal(left, right)
        | Expression::Greater(left, right)
        | Expression::GreaterOrEqual(left, right)
        | Expression::Less(left, right)
        | Expression::LessOrEqual(left, right)
        | Expression::Add(left, right)
        | Expression::Subtract(left, right)
        | Expression::Multiply(left, right)
        | Expression::Divide(left, right) => vec![*left, *right],
        Expression::UnaryPlus(inner) | Expression::UnaryMinus(inner) => vec![*inner],
        Expression::In(left, list) => std::iter::once(*left).chain(list).collect(),
        Expression::FunctionCall(_, arguments) => arguments,
        other => vec![other],
    }
}

/// Replaces IN by comparisons: an error of one item leaves the others as they are.
fn replace_in(expression: Expression) -> Expression {
    let Expression::In(left, list) = expression else { return expression };
    let equals =
        list.into_iter().map(|item| replace_operator(Expression::Equal(left.clone(), item.into())));
    let any = equals.reduce(|any, equal| Expression::Or(any.into(), equal.into()));
    any.unwrap_or(Expression::In(left, Vec::new()))
}

/// Returns the name of what replaces a function, and whether the function is tried first.
fn find_function(function: &Function, arguments: &[Expression]) -> Option<(&'static str, bool)> {
    let tried = match function {
        Function::Abs => "abs",
        Function::Ceil => "ceil",
        Function::Floor => "floor",
        Function::Round => "round",
        Function::Year => "year",
        Function::Month => "month",
        Function::Day => "day",
        Function::Hours => "hours",
        Function::Minutes => "minutes",
        Function::Seconds => "seconds",
        Function::Timezone => "timezone",
        Function::Tz => "tz",
        Function::SubStr if arguments.iter().skip(1).all(is_own_value) => return None,
        Function::SubStr => "substr",
        Function::IsNumeric => return Some(("is-numeric", false)),
        Function::Datatype if !matches!(arguments, [Expression::Variable(_)]) => {
            return Some(("datatype", false));
        }
        Function::StrDt => return Some(("strdt", false)),
        Function::Custom(iri) if arguments.len() == 1 => {
            let is_cast = |operator: &Operator| matches!(operator, Operator::Cast(datatype) if *datatype == iri.as_ref());
            let cast = OPERATORS.iter().find(|(_, operator)| is_cast(operator));
            return cast.map(|(name, _)| (*name, false));
        }
        _ => return None,
    };
    Some((tried, true))
}

/// Replaces an expression, which is replaced already, where its effective boolean value is needed.
pub(crate) fn replace_condition(expression: Expression) -> Expression {
    if is_boolean(&expression) {
        return expression;
    }
    if !has_parts_within(&expression, MAX_TRIED_PARTS) {
        return call("condition", vec![expression]);
    }
    let boolean = |value: bool| Box::new(Expression::Literal(value.into()));
    let replacement = call("condition", vec![expression.clone()]);
    let tried = Expression::If(expression.into(), boolean(true), boolean(false));
    Expression::Coalesce(vec![tried, replacement])
}

/// Returns the call of what the evaluator sorts by in place of an expression, which is replaced already.
pub(crate) fn call_rank(expression: Expression) -> Expression {
    call("rank", vec![expression])
}

/// Replaces a constant where its form matters.
pub(crate) fn replace_constant(expression: Expression) -> Expression {
    match expression {
        Expression::Literal(literal) => Expression::Literal(keep_form(literal)),
        other => other,
    }
}

fn is_iri(expression: &Expression) -> bool {
    matches!(expression, Expression::NamedNode(_))
}

/// Returns whether an expression has a boolean or no result.
fn is_boolean(expression: &Expression) -> bool {
    match expression {
        Expression::Or(..)
        | Expression::And(..)
        | Expression::Not(_)
        | Expression::Equal(..)
        | Expression::SameTerm(..)
        | Expression::Greater(..)
        | Expression::GreaterOrEqual(..)
        | Expression::Less(..)
        | Expression::LessOrEqual(..)
        | Expression::In(..)
        | Expression::Exists(_)
        | Expression::Bound(_) => true,
        // What the functions here return is a boolean if the operator that is tried first does.
        Expression::Coalesce(list) => list.first().is_some_and(is_boolean) && is_replacement(list),
        Expression::FunctionCall(function, _) => match function {
            Function::LangMatches
            | Function::StrStarts
            | Function::StrEnds
            | Function::Contains
            | Function::IsIri
            | Function::IsBlank
            | Function::IsLiteral
            | Function::IsNumeric
            | Function::Regex => true,
            Function::Custom(name) => {
                ["equal", "in", "is-numeric", "condition", "boolean"]
                    .iter()
                    .any(|boolean| *name == operator_name(boolean))
                    || OPERATORS.iter().any(|(compare, operator)| {
                        matches!(operator, Compare(_)) && *name == operator_name(compare)
                    })
            }
            _ => false,
        },
        _ => false,
    }
}

/// Returns whether a list is that of [`try_first`].
fn is_replacement(list: &[Expression]) -> bool {
    let [_, Expression::FunctionCall(Function::Custom(name), _)] = list else { return false };
    OPERATORS.iter().any(|(operator, _)| *name == operator_name(operator))
}

/// Returns whether the evaluator can always compare the value of an expression, if it has one.
fn is_own_value(expression: &Expression) -> bool {
    match expression {
        Expression::NamedNode(_) => true,
        Expression::Literal(literal) => !matches!(
            ExpressionTerm::from(Term::from(literal.clone())),
            ExpressionTerm::OtherTypedLiteral { .. }
        ),
        Expression::FunctionCall(function, _) => matches!(
            function,
            Function::Str
                | Function::Lang
                | Function::Iri
                | Function::StrLen
                | Function::UCase
                | Function::LCase
                | Function::EncodeForUri
                | Function::StrBefore
                | Function::StrAfter
                | Function::SubStr
                | Function::Now
                | Function::Rand
                | Function::Uuid
                | Function::StrUuid
                | Function::Md5
                | Function::Sha1
                | Function::Sha256
                | Function::Sha384
                | Function::Sha512
                | Function::StrLang
                | Function::Datatype
        ),
        other => is_boolean(other),
    }
}

/// Adds the operators to an evaluator.
pub(crate) fn add_operators(mut evaluator: QueryEvaluator) -> QueryEvaluator {
    let own = Arc::new(QueryEvaluator::new());
    for (name, operator) in OPERATORS {
        let own = own.clone();
        evaluator = evaluator.with_custom_function(operator_name(name), move |arguments| {
            let arguments: Vec<_> = arguments.iter().cloned().map(restore_form).collect();
            operator.evaluate(&arguments, &own)
        });
    }
    evaluator
}

impl Operator {
    fn evaluate(self, arguments: &[Term], evaluator: &QueryEvaluator) -> Option<Term> {
        match (self, arguments) {
            (Self::Equal, [left, right]) => equal(left, right, evaluator).map(to_term),
            (Self::In, [left, list @ ..]) => {
                let mut has_error = false;
                for item in list {
                    match equal(left, item, evaluator) {
                        Some(true) => return Some(to_term(true)),
                        Some(false) => {}
                        None => has_error = true,
                    }
                }
                (!has_error).then(|| to_term(false))
            }
            (Self::Compare(wanted), [left, right]) => {
                match (read_number(left), read_number(right)) {
                    (Some(left), Some(right)) => {
                        let ordering = left.compare(right);
                        Some(to_term(ordering.is_some_and(|ordering| wanted.contains(&ordering))))
                    }
                    _ => self.delegate(arguments, evaluator),
                }
            }
            (Self::Calculate(operation), [left, right]) => {
                match (read_number(left), read_number(right)) {
                    (Some(left), Some(right)) => left.calculate(operation, right),
                    _ => self.delegate(arguments, evaluator),
                }
            }
            (Self::Transform(operation), [term]) => match read_number(term) {
                Some(number) => number.transform(operation),
                None => self.delegate(arguments, evaluator),
            },
            (Self::Condition, [term]) => to_condition(term).map(to_term),
            (Self::IsNumeric, [term]) => Some(to_term(read_number(term).is_some())),
            (Self::Datatype, [Term::Literal(literal)]) => {
                Some(literal.datatype().into_owned().into())
            }
            (Self::StrDt, [Term::Literal(text), Term::NamedNode(datatype)])
                if text.datatype() == xsd::STRING =>
            {
                let literal = Literal::new_typed_literal(text.value(), datatype.clone());
                Some(keep_form(literal).into())
            }
            (Self::Rank, [Term::Literal(literal)]) => {
                let value = to_expression_term(literal.clone().into(), false);
                to_rank(&Value::new(Some(value))).map(|rank| Literal::from(rank).into())
            }
            (Self::Rank, [name]) => Some(name.clone()),
            (Self::Cast(datatype), [term]) => cast(datatype, term, evaluator),
            (Self::Evaluate(_), _) => self.delegate(arguments, evaluator),
            _ => None,
        }
    }

    /// Evaluates with the evaluator's own operator, which reads the values of the terms.
    fn delegate(self, arguments: &[Term], evaluator: &QueryEvaluator) -> Option<Term> {
        let names = ["a", "b", "c"].map(Variable::new_unchecked);
        let parts = || names.iter().zip(arguments).map(|(name, _)| Evaluated::from(name.clone()));
        let mut operands = parts();
        let expression = match self {
            Self::Equal => Evaluated::equal(operands.next()?, operands.next()?),
            Compare([Ordering::Greater]) => Evaluated::greater(operands.next()?, operands.next()?),
            Compare([Ordering::Less]) => Evaluated::less(operands.next()?, operands.next()?),
            Compare([Ordering::Greater, _]) => {
                Evaluated::greater_or_equal(operands.next()?, operands.next()?)
            }
            Compare(_) => Evaluated::less_or_equal(operands.next()?, operands.next()?),
            Calculate(Arithmetic::Add) => operands.next()? + operands.next()?,
            Calculate(Arithmetic::Subtract) => operands.next()? - operands.next()?,
            Calculate(Arithmetic::Multiply) => operands.next()? * operands.next()?,
            Calculate(Arithmetic::Divide) => operands.next()? / operands.next()?,
            Transform(Transformation::Plus) => Evaluated::unary_plus(operands.next()?),
            Transform(Transformation::Minus) => -operands.next()?,
            Self::Cast(datatype) => {
                Evaluated::call(Function::Custom(datatype.into_owned()), parts().collect())
            }
            Evaluate(name) => Evaluated::call(to_function(name)?, parts().collect()),
            _ => return None,
        };
        let values = arguments.iter().cloned().map(|term| match term {
            Term::Literal(literal) => crate::form::hide_misread(literal).into(),
            other => other,
        });
        evaluator.evaluate_expression(&expression, names.iter().zip(values))
    }
}

fn to_function(name: &str) -> Option<Function> {
    Some(match name {
        "year" => Function::Year,
        "month" => Function::Month,
        "day" => Function::Day,
        "hours" => Function::Hours,
        "minutes" => Function::Minutes,
        "seconds" => Function::Seconds,
        "timezone" => Function::Timezone,
        "tz" => Function::Tz,
        "substr" => Function::SubStr,
        _ => return None,
    })
}

fn to_term(value: bool) -> Term {
    Literal::from(value).into()
}

fn read_number(term: &Term) -> Option<Number<'_>> {
    match term {
        Term::Literal(literal) => Number::read(literal),
        _ => None,
    }
}

fn equal(left: &Term, right: &Term, evaluator: &QueryEvaluator) -> Option<bool> {
    match (read_number(left), read_number(right)) {
        (Some(left), Some(right)) => return Some(left.compare(right) == Some(Ordering::Equal)),
        // Also a number that the evaluator cannot hold equals no value of another type.
        (Some(_), None) if is_known_value(right) => return Some(false),
        (None, Some(_)) if is_known_value(left) => return Some(false),
        _ => {}
    }
    let arguments = [left.clone(), right.clone()];
    to_condition(&Operator::Equal.delegate(&arguments, evaluator)?)
}

/// Returns whether a term is a literal of a type that the evaluator knows, and valid for it.
fn is_known_value(term: &Term) -> bool {
    matches!(term, Term::Literal(_))
        && !matches!(
            to_expression_term(term.clone(), false),
            ExpressionTerm::OtherTypedLiteral { .. }
        )
}

/// Returns the effective boolean value of a term (SPARQL 1.1, section 17.2.2).
fn to_condition(term: &Term) -> Option<bool> {
    let Term::Literal(literal) = term else { return None };
    if let Some(number) = Number::read(literal) {
        return Some(!number.is_zero_or_nan());
    }
    let datatype = literal.datatype();
    match datatype {
        xsd::STRING => Some(!literal.value().is_empty()),
        xsd::BOOLEAN => Some(matches!(literal.value(), "true" | "1")),
        // One that is not valid is false.
        xsd::DECIMAL | xsd::FLOAT | xsd::DOUBLE => Some(false),
        other => is_integer_type(other).then_some(false),
    }
}

/// Casts as the constructors of `XPath` do (section 17.5): they ignore white space at both ends of a string.
fn cast(datatype: NamedNodeRef<'static>, term: &Term, evaluator: &QueryEvaluator) -> Option<Term> {
    let mut term = term.clone();
    if let Term::Literal(literal) = &term {
        if literal.datatype() == xsd::STRING && datatype != xsd::STRING {
            let text = literal.value().trim_matches([' ', '\t', '\n', '\r']);
            if [xsd::INTEGER, xsd::DECIMAL, xsd::FLOAT, xsd::DOUBLE].contains(&datatype) {
                return Number::parse(text, datatype)?.cast(datatype);
            }
            term = Literal::new_simple_literal(text).into();
        } else if let Some(number) = Number::read(literal) {
            return match datatype {
                xsd::STRING => Some(Literal::new_simple_literal(number.to_canonical()?).into()),
                _ => number.cast(datatype),
            };
        } else if datatype == xsd::STRING {
            // A value in canonical form.
            term = to_expression_term(term, false).into();
        }
    }
    Operator::Cast(datatype).delegate(&[term], evaluator)
}
