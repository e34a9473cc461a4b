//! The order of values that `ORDER BY`, `MIN` and `MAX` use.
use crate::number as exact;
use oxrdf::{NamedNode, Term};
use oxsdatatypes::{DateTime, Decimal, Double};
use penstock_rdf::compare::Moment;
use penstock_rdf::number::compare_decimals;
use spareval::ExpressionTerm;
use std::cmp::Ordering;
use std::sync::OnceLock;

/// A value in the order of SPARQL 1.1, section 15.1: unbound, blank nodes, IRIs, literals. That section leaves the order
/// of different kinds of literals open; here it is that of the variants. So it is a total order, which sorting needs.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Value {
    Unbound,
    BlankNode(String),
    NamedNode(String),
    Boolean(bool),
    Number(Number),
    DateTime(Moment),
    Date(Moment),
    String(String),
    /// The language comes first.
    LanguageString(String, String),
    /// The datatype comes first.
    Other(String, String),
}

impl Value {
    pub(crate) fn new(term: Option<ExpressionTerm>) -> Self {
        match term {
            None => Self::Unbound,
            Some(ExpressionTerm::BlankNode(node)) => Self::BlankNode(node.into_string()),
            Some(ExpressionTerm::NamedNode(node)) => Self::NamedNode(node.into_string()),
            Some(ExpressionTerm::BooleanLiteral(value)) => Self::Boolean(value.into()),
            Some(ExpressionTerm::IntegerLiteral(value)) => Self::Number(Number::exact(value)),
            Some(ExpressionTerm::DecimalLiteral(value)) => Self::Number(Number::exact(value)),
            Some(ExpressionTerm::FloatLiteral(value)) => Self::Number(Number::Double(value.into())),
            Some(ExpressionTerm::DoubleLiteral(value)) => Self::Number(Number::Double(value)),
            Some(ExpressionTerm::DateTimeLiteral(value)) => Self::DateTime(Moment::new(value)),
            Some(ExpressionTerm::DateLiteral(value))
                if let Ok(midnight) = DateTime::try_from(value) =>
            {
                Self::Date(Moment::new(midnight))
            }
            Some(ExpressionTerm::StringLiteral(value)) => Self::String(value),
            Some(ExpressionTerm::LangStringLiteral { value, language }) => {
                Self::LanguageString(language, value)
            }
            Some(other) => match Term::from(other) {
                Term::Literal(literal) => {
                    if let Some(number) = exact::Number::read(&literal)
                        && let Some(text) = number.exact_text()
                    {
                        return Self::Number(Number::Long(text.to_owned(), number.to_double()));
                    }
                    let (value, datatype, _, _) = literal.destruct();
                    Self::Other(datatype.map(NamedNode::into_string).unwrap_or_default(), value)
                }
                Term::NamedNode(node) => Self::NamedNode(node.into_string()),
                Term::BlankNode(node) => Self::BlankNode(node.into_string()),
                // No quad has one, and no expression creates one.
                Term::Triple(triple) => Self::Other(String::new(), triple.to_string()),
            },
        }
    }
}

/// A number. An exact one and a double are compared as doubles. Rounding keeps the order, so this is a total order.
#[derive(Clone)]
pub(crate) enum Number {
    /// With the nearest double, once it is needed.
    Exact(Decimal, OnceLock<f64>),
    /// An exact number that the evaluator's types are too small for, with the nearest double.
    Long(String, f64),
    Double(Double),
}

impl Number {
    fn exact(value: impl Into<Decimal>) -> Self {
        Self::Exact(value.into(), OnceLock::new())
    }

    /// Returns the nearest double.
    pub(crate) fn round(&self) -> f64 {
        match self {
            Self::Double(value) => (*value).into(),
            Self::Long(_, rounded) => *rounded,
            // The conversion of the type rounds twice, which does not keep the order.
            Self::Exact(value, rounded) => *rounded.get_or_init(|| {
                value.to_string().parse().unwrap_or_else(|_| Double::from(*value).into())
            }),
        }
    }
}

impl Ord for Number {
    fn cmp(&self, other: &Self) -> Ordering {
        let exact = match (self, other) {
            (Self::Exact(left, _), Self::Exact(right, _)) => Some(left.cmp(right)),
            (Self::Long(left, _), Self::Long(right, _)) => compare_decimals(left, right),
            (Self::Long(left, _), Self::Exact(right, _)) => {
                compare_decimals(left, &right.to_string())
            }
            (Self::Exact(left, _), Self::Long(right, _)) => {
                compare_decimals(&left.to_string(), right)
            }
            _ => None,
        };
        if let Some(exact) = exact {
            return exact;
        }
        // Zeros are equal; NaN comes last. A double comes before the exact values that round to it.
        let [left, right] = [self, other].map(|number| number.round() + 0.0);
        let is_exact = |number: &Self| !matches!(number, Self::Double(_));
        left.total_cmp(&right).then_with(|| is_exact(self).cmp(&is_exact(other)))
    }
}

impl PartialOrd for Number {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Number {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for Number {}
