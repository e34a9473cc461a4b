//! Exact numbers. The evaluator has integers of 64 bits and decimals of 18 fraction digits; what it cannot hold is computed
//! here, up to [`MAX_DIGITS`].
use oxrdf::vocab::xsd;
use oxrdf::{Literal, NamedNodeRef, Term};
use penstock_base::error::{ErrorClass, GatewayError};
use penstock_base::unwind::abort;
use penstock_rdf::number::{
    ExactDecimal, check_float, compare_decimals, is_valid_integer, split_decimal,
};
use std::cmp::Ordering;

/// The maximum number of digits of a number that is computed with, before and behind the point together.
const MAX_DIGITS: usize = 40;
/// The fraction digits of a quotient that has no end, and the digits that it has at least.
const QUOTIENT_DIGITS: usize = 18;
/// The characters of a number that an error quotes.
const QUOTED_CHARACTERS: usize = 60;

/// A number as a literal has it. Its text is valid for its type.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Number<'t> {
    Integer(&'t str),
    Decimal(&'t str),
    Float(f32),
    Double(f64),
}

impl<'t> Number<'t> {
    /// Reads a literal; `None` if it is no number, or not valid for its datatype.
    pub(crate) fn read(literal: &'t Literal) -> Option<Self> {
        Self::parse(literal.value(), literal.datatype())
    }

    pub(crate) fn parse(text: &'t str, datatype: NamedNodeRef<'_>) -> Option<Self> {
        match datatype {
            xsd::DECIMAL => split_decimal(text).map(|_| Self::Decimal(text)),
            xsd::DOUBLE => check_float(text)?.parse().ok().map(Self::Double),
            xsd::FLOAT => check_float(text)?.parse().ok().map(Self::Float),
            other => is_valid_integer(text, other)?.then_some(Self::Integer(text)),
        }
    }

    /// Returns the text of an integer or a decimal.
    pub(crate) fn exact_text(self) -> Option<&'t str> {
        match self {
            Self::Integer(text) | Self::Decimal(text) => Some(text),
            Self::Float(_) | Self::Double(_) => None,
        }
    }

    pub(crate) fn to_double(self) -> f64 {
        match self {
            // A valid text.
            Self::Integer(text) | Self::Decimal(text) => text.parse().unwrap_or(f64::NAN),
            Self::Float(value) => value.into(),
            Self::Double(value) => value,
        }
    }

    fn to_float(self) -> f32 {
        match self {
            Self::Integer(text) | Self::Decimal(text) => text.parse().unwrap_or(f32::NAN),
            Self::Float(value) => value,
            #[expect(clippy::cast_possible_truncation, reason = "the nearest float")]
            Self::Double(value) => value as f32,
        }
    }

    pub(crate) fn is_zero_or_nan(self) -> bool {
        let value = match self {
            Self::Integer(text) | Self::Decimal(text) => {
                return compare_decimals(text, "0") == Some(Ordering::Equal);
            }
            _ => self.to_double(),
        };
        value == 0.0 || value.is_nan()
    }

    /// Compares two numbers after the promotion of their types (SPARQL 1.1, section 17.3). Exact ones may have any length.
    pub(crate) fn compare(self, other: Self) -> Option<Ordering> {
        match (self, other) {
            (Self::Double(_), _) | (_, Self::Double(_)) => {
                self.to_double().partial_cmp(&other.to_double())
            }
            (Self::Float(_), _) | (_, Self::Float(_)) => {
                self.to_float().partial_cmp(&other.to_float())
            }
            _ => compare_decimals(self.exact_text()?, other.exact_text()?),
        }
    }

    /// Computes; `None` for a division by zero of exact numbers.
    pub(crate) fn calculate(self, operation: Arithmetic, other: Self) -> Option<Term> {
        match (self, other) {
            (Self::Double(_), _) | (_, Self::Double(_)) => {
                let (left, right) = (self.to_double(), other.to_double());
                Some(Literal::from(match operation {
                    Arithmetic::Add => left + right,
                    Arithmetic::Subtract => left - right,
                    Arithmetic::Multiply => left * right,
                    Arithmetic::Divide => left / right,
                }))
            }
            (Self::Float(_), _) | (_, Self::Float(_)) => {
                let (left, right) = (self.to_float(), other.to_float());
                Some(Literal::from(match operation {
                    Arithmetic::Add => left + right,
                    Arithmetic::Subtract => left - right,
                    Arithmetic::Multiply => left * right,
                    Arithmetic::Divide => left / right,
                }))
            }
            _ => {
                let (left, right) = (Exact::read(self)?, Exact::read(other)?);
                match operation {
                    Arithmetic::Add => Some(left.add(&right)),
                    Arithmetic::Subtract => Some(left.add(&right.negate())),
                    Arithmetic::Multiply => Some(left.multiply(&right)),
                    Arithmetic::Divide => left.divide(&right),
                }
                .map(Exact::into_literal)
            }
        }
        .map(Term::from)
    }

    /// Rounds or changes the sign.
    pub(crate) fn transform(self, operation: Transformation) -> Option<Term> {
        use Transformation::{Abs, Ceil, Floor, Minus, Plus, Round};
        let literal = match self {
            Self::Double(value) => Literal::from(match operation {
                Plus => value,
                Minus => -value,
                Abs => value.abs(),
                Ceil => value.ceil(),
                Floor => value.floor(),
                Round => (value + 0.5).floor(),
            }),
            Self::Float(value) => Literal::from(match operation {
                Plus => value,
                Minus => -value,
                Abs => value.abs(),
                Ceil => value.ceil(),
                Floor => value.floor(),
                Round => (value + 0.5).floor(),
            }),
            exact => {
                let exact = Exact::read(exact)?;
                match operation {
                    Minus => exact.negate(),
                    Abs if exact.value.is_negative() => exact.negate(),
                    Plus | Abs => exact,
                    Floor => exact.floor(),
                    Ceil => exact.negate().floor().negate(),
                    Round => exact.add(&Exact::half()).with_type_of(&exact).floor(),
                }
                .into_literal()
            }
        };
        Some(literal.into())
    }

    /// Converts to another type of numbers as `XPath` casts; `None` if it has no such value.
    pub(crate) fn cast(self, datatype: NamedNodeRef<'_>) -> Option<Term> {
        let literal = match datatype {
            xsd::DOUBLE => Literal::from(self.to_double()),
            xsd::FLOAT => Literal::from(self.to_float()),
            xsd::BOOLEAN => Literal::from(!self.is_zero_or_nan()),
            xsd::DECIMAL | xsd::INTEGER => {
                let text = match self {
                    Self::Integer(text) | Self::Decimal(text) => text.to_owned(),
                    Self::Float(value) if value.is_finite() => value.to_string(),
                    Self::Double(value) if value.is_finite() => value.to_string(),
                    Self::Float(_) | Self::Double(_) => return None,
                };
                let mut exact = Exact::parse(&text, false)?;
                if datatype == xsd::INTEGER {
                    let is_negative = exact.value.is_negative();
                    // Towards zero.
                    exact =
                        if is_negative { exact.negate().floor().negate() } else { exact.floor() };
                    exact.is_integer = true;
                }
                if exact.value.count_digits() > MAX_DIGITS {
                    return None;
                }
                exact.into_literal()
            }
            _ => return None,
        };
        Some(literal.into())
    }

    /// Returns the canonical text.
    pub(crate) fn to_canonical(self) -> Option<String> {
        let (is_negative, whole, fraction) = match self {
            Self::Double(value) => return Some(Literal::from(value).value().to_owned()),
            Self::Float(value) => return Some(Literal::from(value).value().to_owned()),
            Self::Integer(text) | Self::Decimal(text) => split_decimal(text)?,
        };
        let sign = if is_negative { "-" } else { "" };
        let whole = if whole.is_empty() { "0" } else { whole };
        let point = if fraction.is_empty() { "" } else { "." };
        Some(format!("{sign}{whole}{point}{fraction}"))
    }
}

/// An operator between two numbers.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Arithmetic {
    Add,
    Subtract,
    Multiply,
    Divide,
}

/// An operator or a function of one number.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Transformation {
    Plus,
    Minus,
    Abs,
    Ceil,
    Floor,
    Round,
}

/// An exact number, and whether its type is `xsd:integer`.
#[derive(Debug, Clone)]
pub(crate) struct Exact {
    value: ExactDecimal,
    is_integer: bool,
}

impl Exact {
    /// Reads an exact number. Aborts the request if it has more than [`MAX_DIGITS`].
    pub(crate) fn read(number: Number<'_>) -> Option<Self> {
        let (text, is_integer) = match number {
            Number::Integer(text) => (text, true),
            Number::Decimal(text) => (text, false),
            Number::Float(_) | Number::Double(_) => return None,
        };
        Some(Self::parse(text, is_integer).unwrap_or_else(|| abort_for_digits(text)))
    }

    /// Parses a valid text; `None` if it has more than [`MAX_DIGITS`].
    fn parse(text: &str, is_integer: bool) -> Option<Self> {
        Some(Self { value: ExactDecimal::parse(text, MAX_DIGITS)?, is_integer })
    }

    fn half() -> Self {
        Self { value: ExactDecimal::new(5, 1), is_integer: false }
    }

    pub(crate) fn from_count(count: u64) -> Self {
        Self { value: ExactDecimal::new(count, 0), is_integer: true }
    }

    fn with_type_of(self, other: &Self) -> Self {
        Self { is_integer: other.is_integer, ..self }
    }

    fn negate(&self) -> Self {
        Self { value: self.value.negate(), is_integer: self.is_integer }
    }

    pub(crate) fn add(&self, other: &Self) -> Self {
        let is_integer = self.is_integer && other.is_integer;
        Self { value: self.value.add(&other.value), is_integer }
    }

    fn multiply(&self, other: &Self) -> Self {
        let is_integer = self.is_integer && other.is_integer;
        Self { value: self.value.multiply(&other.value), is_integer }
    }

    /// Divides; `None` by zero. A quotient that ends within [`MAX_DIGITS`] is exact.
    pub(crate) fn divide(&self, other: &Self) -> Option<Self> {
        let (quotient, is_exact) = self.value.divide(&other.value, MAX_DIGITS)?;
        if is_exact && quotient.count_digits() <= MAX_DIGITS {
            return Some(Self { value: quotient, is_integer: false });
        }
        let (digits, scale) = (quotient.count_significant_digits(), quotient.scale());
        let (leading, whole) = (scale.saturating_sub(digits), digits.saturating_sub(scale));
        let most = MAX_DIGITS.saturating_sub(whole);
        let value = quotient.truncate((leading + QUOTIENT_DIGITS).min(most));
        Some(Self { value, is_integer: false })
    }

    fn floor(&self) -> Self {
        Self { value: self.value.floor(), is_integer: self.is_integer }
    }

    /// Returns the literal. Aborts the request if it has more than [`MAX_DIGITS`].
    pub(crate) fn into_literal(self) -> Literal {
        if self.value.count_digits() > MAX_DIGITS {
            abort_for_digits(&self.value.to_string());
        }
        let datatype = if self.is_integer { xsd::INTEGER } else { xsd::DECIMAL };
        Literal::new_typed_literal(self.value.to_string(), datatype)
    }
}

fn abort_for_digits(number: &str) -> ! {
    let quoted: String = number.chars().take(QUOTED_CHARACTERS).collect();
    let dots = if quoted.len() < number.len() { "…" } else { "" };
    abort(GatewayError::new(
        ErrorClass::Invalid,
        format!(
            "the request computes with {quoted}{dots}, which has more than {MAX_DIGITS} digits; exclude it with FILTER, or cast it with xsd:double"
        ),
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn calculate(left: &str, operation: Arithmetic, right: &str) -> Option<String> {
        let read = |text: &'static str| Number::Decimal(text);
        let (left, right) = (left.to_owned().leak(), right.to_owned().leak());
        let term = read(left).calculate(operation, read(right))?;
        let Term::Literal(literal) = term else { panic!("{term}") };
        Some(literal.value().to_owned())
    }

    #[test]
    fn results_are_exact_up_to_40_digits() {
        use Arithmetic::{Add, Divide, Multiply, Subtract};
        for (left, operation, right, result) in [
            ("0.00012345678901234567", Add, "1", "1.00012345678901234567"),
            ("99999999999999999999", Add, "1", "100000000000000000000"),
            ("1", Subtract, "0.0000000000000000000000000000000000000001", &*"9".repeat(40)),
            (
                "0.00000000000000000001",
                Multiply,
                "-0.00000000000000000001",
                "-0.0000000000000000000000000000000000000001",
            ),
            ("1", Divide, "8", "0.125"),
            ("1", Divide, "3", "0.333333333333333333"),
            ("-10", Divide, "3", "-3.333333333333333333"),
            ("0.0000000001", Divide, "10000000000", "0.00000000000000000001"),
            ("1", Divide, "300000000000000000000", "0.00000000000000000000333333333333333333"),
            ("0", Divide, "1.5", "0"),
            ("1.50", Add, "-1.5", "0"),
        ] {
            let result =
                if result.starts_with('9') { format!("0.{result}") } else { result.into() };
            let computed = calculate(left, operation, right);
            assert_eq!(computed, Some(result), "{left} {operation:?} {right}");
        }
        assert_eq!(calculate("1", Divide, "0.0"), None);
    }

    #[test]
    fn rounding_is_that_of_xpath() {
        use Transformation::{Abs, Ceil, Floor, Minus, Round};
        for (text, operation, result) in [
            ("2.5", Round, "3"),
            ("-2.5", Round, "-2"),
            ("-2.50000000000000000001", Round, "-3"),
            ("-0.4", Round, "0"),
            ("2.00000000000000000001", Ceil, "3"),
            ("-2.00000000000000000001", Ceil, "-2"),
            ("-2.00000000000000000001", Floor, "-3"),
            ("-0.00000000000000000001", Abs, "0.00000000000000000001"),
            ("0.00000000000000000001", Minus, "-0.00000000000000000001"),
        ] {
            let Some(Term::Literal(literal)) = Number::Decimal(text).transform(operation) else {
                panic!("{text}")
            };
            assert_eq!(literal.value(), result, "{text} {operation:?}");
        }
    }
}
