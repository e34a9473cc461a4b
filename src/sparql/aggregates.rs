//! Aggregates of SPARQL over numbers of any length, and that return terms as they are stored: they replace the evaluator's
//! own.
use crate::form::{keep_form, restore_form, to_expression_term};
use crate::number::{Arithmetic, Exact, Number};
use crate::value::Value;
use oxrdf::vocab::xsd;
use oxrdf::{Literal, NamedNode, Term};
use oxsdatatypes::{Decimal, Integer};
use spareval::{AggregateFunctionAccumulator, QueryEvaluator};
use spargebra::algebra::{AggregateFunction, Expression, Function};
use std::cmp::Ordering;

/// The beginning of the type of an item of `GROUP_CONCAT`. It has a blank, so no request can have it.
const ITEM: &str = "penstock item ";

/// Returns the aggregate that replaces one of SPARQL.
pub(crate) fn find_aggregate(
    function: &AggregateFunction,
    distinct: bool,
) -> Option<AggregateFunction> {
    let name = match function {
        AggregateFunction::Sum => "sum",
        AggregateFunction::Avg => "avg",
        AggregateFunction::Min => "min",
        AggregateFunction::Max => "max",
        AggregateFunction::GroupConcat { .. } if distinct => "join",
        _ => return None,
    };
    Some(AggregateFunction::Custom(aggregate_name(name)))
}

/// Returns the call that makes an item of `GROUP_CONCAT` of a term.
pub(crate) fn call_item(term: Expression, separator: Option<&str>) -> Expression {
    let separator = Literal::new_simple_literal(separator.unwrap_or(" "));
    let function = Function::Custom(aggregate_name("item"));
    Expression::FunctionCall(function, vec![term, Expression::Literal(separator)])
}

/// Names an aggregate as no request can name it.
fn aggregate_name(name: &str) -> NamedNode {
    NamedNode::new_unchecked(format!("penstock {name}"))
}

/// Adds the aggregates to an evaluator.
pub(crate) fn add_aggregates(evaluator: QueryEvaluator) -> QueryEvaluator {
    evaluator
        .with_custom_aggregate_function(aggregate_name("sum"), || Box::new(Sum::default()))
        .with_custom_aggregate_function(aggregate_name("avg"), || Box::new(Average::default()))
        .with_custom_aggregate_function(aggregate_name("min"), || {
            Box::new(Extreme { kept: None, wanted: Ordering::Less })
        })
        .with_custom_aggregate_function(aggregate_name("max"), || {
            Box::new(Extreme { kept: None, wanted: Ordering::Greater })
        })
        .with_custom_aggregate_function(aggregate_name("join"), || Box::new(Joined::default()))
        .with_custom_function(aggregate_name("item"), build_item)
}

/// SUM (section 18.5.1.3).
#[derive(Default)]
struct Sum {
    /// The sum of those that the evaluator's own type can add.
    small: Decimal,
    has_decimal: bool,
    /// The sum of what was added before that type was too small, and of floats and doubles.
    other: Option<Term>,
    is_error: bool,
}

impl Sum {
    fn add(&mut self, term: &Term) -> Option<()> {
        let Term::Literal(literal) = term else { return None };
        let is_decimal = literal.datatype() == xsd::DECIMAL;
        let small = match literal.datatype() {
            xsd::DECIMAL => literal.value().parse().ok(),
            // As a decimal, a text with a fraction would be valid.
            xsd::INTEGER => literal.value().parse::<Integer>().ok().map(Decimal::from),
            _ => None,
        };
        if let Some(value) = small
            && let Some(sum) = self.small.checked_add(value)
        {
            (self.small, self.has_decimal) = (sum, self.has_decimal || is_decimal);
            return Some(());
        }
        let added = Number::read(literal)?;
        let sum = match self.other.take() {
            Some(Term::Literal(sum)) => Number::read(&sum)?.calculate(Arithmetic::Add, added)?,
            _ => added.calculate(Arithmetic::Add, Number::Integer("0"))?,
        };
        self.other = Some(sum);
        Some(())
    }

    fn total(&mut self) -> Option<Literal> {
        if self.is_error {
            return None;
        }
        let datatype = if self.has_decimal { xsd::DECIMAL } else { xsd::INTEGER };
        let small = Literal::new_typed_literal(self.small.to_string(), datatype);
        match self.other.take() {
            Some(Term::Literal(other)) => {
                let sum =
                    Number::read(&small)?.calculate(Arithmetic::Add, Number::read(&other)?)?;
                if let Term::Literal(sum) = sum { Some(sum) } else { None }
            }
            _ => Some(small),
        }
    }
}

impl AggregateFunctionAccumulator for Sum {
    fn accumulate(&mut self, element: Term) {
        if !self.is_error && self.add(&restore_form(element)).is_none() {
            self.is_error = true;
        }
    }

    fn finish(&mut self) -> Option<Term> {
        self.total().map(Term::from)
    }
}

/// AVG (section 18.5.1.4).
#[derive(Default)]
struct Average {
    sum: Sum,
    count: u64,
}

impl AggregateFunctionAccumulator for Average {
    fn accumulate(&mut self, element: Term) {
        self.sum.accumulate(element);
        self.count += 1;
    }

    fn finish(&mut self) -> Option<Term> {
        let sum = self.sum.total()?;
        if self.count == 0 {
            return Some(sum.into());
        }
        let count = Exact::from_count(self.count).into_literal();
        Number::read(&sum)?.calculate(Arithmetic::Divide, Number::read(&count)?)
    }
}

/// Returns an item of `GROUP_CONCAT`: a literal with the text of a term. Its type has what else the term is, and the separator.
/// So items are equal only if their terms are. The evaluator keeps each item, so the type of the most frequent terms is short.
fn build_item(arguments: &[Term]) -> Option<Term> {
    let [term, Term::Literal(separator)] = arguments else { return None };
    let (text, kind) = match restore_form(term.clone()) {
        Term::NamedNode(node) => (node.into_string(), "<".to_owned()),
        Term::Literal(literal) => {
            let kind = match literal.language() {
                Some(language) => format!("@{language}"),
                None if literal.datatype() == xsd::STRING => String::new(),
                None => literal.datatype().as_str().to_owned(),
            };
            (literal.value().to_owned(), kind)
        }
        _ => return None,
    };
    let datatype = NamedNode::new_unchecked(format!("{ITEM}{kind} {}", separator.value()));
    Some(Literal::new_typed_literal(text, datatype).into())
}

/// `GROUP_CONCAT` of distinct terms (section 18.5.1.7), which are items. The evaluator's own takes only strings, which are
/// equal for different terms.
#[derive(Default)]
struct Joined {
    text: Option<String>,
}

impl AggregateFunctionAccumulator for Joined {
    fn accumulate(&mut self, element: Term) {
        let Term::Literal(item) = element else { return };
        let Some(text) = &mut self.text else {
            self.text = Some(item.value().to_owned());
            return;
        };
        let rest = item.datatype().as_str().strip_prefix(ITEM).unwrap_or_default();
        let (_, separator) = rest.split_once(' ').unwrap_or_default();
        text.push_str(separator);
        text.push_str(item.value());
    }

    fn finish(&mut self) -> Option<Term> {
        Some(Literal::new_simple_literal(self.text.take().unwrap_or_default()).into())
    }
}

/// MIN and MAX (sections 18.5.1.5 and 18.5.1.6).
struct Extreme {
    kept: Option<(Value, Term)>,
    /// How a term compares with the kept one that it replaces.
    wanted: Ordering,
}

impl AggregateFunctionAccumulator for Extreme {
    fn accumulate(&mut self, element: Term) {
        let element = restore_form(element);
        let value = Value::new(Some(to_expression_term(element.clone(), false)));
        if self.kept.as_ref().is_none_or(|(kept, _)| value.cmp(kept) == self.wanted) {
            self.kept = Some((value, element));
        }
    }

    fn finish(&mut self) -> Option<Term> {
        self.kept.take().map(|(_, term)| match term {
            Term::Literal(literal) => keep_form(literal).into(),
            other => other,
        })
    }
}
