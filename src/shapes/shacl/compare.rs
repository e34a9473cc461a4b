//! Comparing values as SPARQL's `<` does (SPARQL 1.1, 17.3), also dates, times and durations.
use oxrdf::vocab::xsd;
use oxrdf::{Literal, NamedNodeRef, Term};
use oxsdatatypes::{
    Boolean, Date, DateTime, DayTimeDuration, Double, Float, Time, YearMonthDuration,
};
use std::cmp::Ordering;
use std::str::FromStr;

/// A value that can be compared.
enum Value<'a> {
    Decimal(&'a str),
    Double(f64),
    Text(&'a str),
    Boolean(bool),
    DateTime(DateTime),
    Date(Date),
    Time(Time),
    DayTimeDuration(DayTimeDuration),
    YearMonthDuration(YearMonthDuration),
}

/// Compares two values; `None` if they cannot be compared, or if one is not valid.
pub(super) fn compare(one: &Term, other: &Term) -> Option<Ordering> {
    let (Term::Literal(one), Term::Literal(other)) = (one, other) else { return None };
    match (read_value(one)?, read_value(other)?) {
        (Value::Decimal(one), Value::Decimal(other)) => compare_decimals(one, other),
        (Value::Double(one), Value::Double(other)) => one.partial_cmp(&other),
        (Value::Decimal(one), Value::Double(other)) => one.parse::<f64>().ok()?.partial_cmp(&other),
        (Value::Double(one), Value::Decimal(other)) => one.partial_cmp(&other.parse::<f64>().ok()?),
        (Value::Text(one), Value::Text(other)) => Some(one.cmp(other)),
        (Value::Boolean(one), Value::Boolean(other)) => Some(one.cmp(&other)),
        (Value::DateTime(one), Value::DateTime(other)) => one.partial_cmp(&other),
        (Value::Date(one), Value::Date(other)) => one.partial_cmp(&other),
        (Value::Time(one), Value::Time(other)) => one.partial_cmp(&other),
        (Value::DayTimeDuration(one), Value::DayTimeDuration(other)) => one.partial_cmp(&other),
        (Value::YearMonthDuration(one), Value::YearMonthDuration(other)) => one.partial_cmp(&other),
        _ => None,
    }
}

fn read_value(literal: &Literal) -> Option<Value<'_>> {
    fn read<T: FromStr>(text: &str) -> Option<T> {
        text.parse().ok()
    }
    let text = literal.value();
    let datatype = literal.datatype();
    if let Some((min, max)) = integer_bounds(datatype) {
        let digits = text.strip_prefix(['+', '-']).unwrap_or(text);
        let is_integer = !digits.is_empty() && digits.bytes().all(|digit| digit.is_ascii_digit());
        let holds = |bound: Option<&str>, is_valid: fn(Ordering) -> bool| {
            bound.is_none_or(|bound| compare_decimals(text, bound).is_some_and(is_valid))
        };
        let is_valid = is_integer && holds(min, Ordering::is_ge) && holds(max, Ordering::is_le);
        return is_valid.then_some(Value::Decimal(text));
    }
    Some(match datatype {
        xsd::DECIMAL => Value::Decimal(split_decimal(text).map(|_| text)?),
        xsd::DOUBLE => Value::Double(read::<Double>(text)?.into()),
        xsd::FLOAT => Value::Double(f32::from(read::<Float>(text)?).into()),
        xsd::STRING => Value::Text(text),
        xsd::BOOLEAN => Value::Boolean(read::<Boolean>(text)?.into()),
        xsd::DATE_TIME | xsd::DATE_TIME_STAMP => Value::DateTime(read(text)?),
        xsd::DATE => Value::Date(read(text)?),
        xsd::TIME => Value::Time(read(text)?),
        xsd::DAY_TIME_DURATION => Value::DayTimeDuration(read(text)?),
        xsd::YEAR_MONTH_DURATION => Value::YearMonthDuration(read(text)?),
        _ => return None,
    })
}

/// Returns the bounds of an integer datatype.
fn integer_bounds(
    datatype: NamedNodeRef<'_>,
) -> Option<(Option<&'static str>, Option<&'static str>)> {
    Some(match datatype {
        xsd::INTEGER => (None, None),
        xsd::LONG => (Some("-9223372036854775808"), Some("9223372036854775807")),
        xsd::INT => (Some("-2147483648"), Some("2147483647")),
        xsd::SHORT => (Some("-32768"), Some("32767")),
        xsd::BYTE => (Some("-128"), Some("127")),
        xsd::UNSIGNED_LONG => (Some("0"), Some("18446744073709551615")),
        xsd::UNSIGNED_INT => (Some("0"), Some("4294967295")),
        xsd::UNSIGNED_SHORT => (Some("0"), Some("65535")),
        xsd::UNSIGNED_BYTE => (Some("0"), Some("255")),
        xsd::NON_NEGATIVE_INTEGER => (Some("0"), None),
        xsd::POSITIVE_INTEGER => (Some("1"), None),
        xsd::NON_POSITIVE_INTEGER => (None, Some("0")),
        xsd::NEGATIVE_INTEGER => (None, Some("-1")),
        _ => return None,
    })
}

/// Compares two decimals of any length.
fn compare_decimals(one: &str, other: &str) -> Option<Ordering> {
    let (one, other) = (split_decimal(one)?, split_decimal(other)?);
    let magnitude = |(_, whole, fraction): (bool, &str, &str), (_, w, f): (bool, &str, &str)| {
        whole.len().cmp(&w.len()).then(whole.cmp(w)).then(fraction.cmp(f))
    };
    Some(match (one.0, other.0) {
        (false, false) => magnitude(one, other),
        (true, true) => magnitude(other, one),
        (true, false) => Ordering::Less,
        (false, true) => Ordering::Greater,
    })
}

/// Returns whether a decimal is less than zero, and its digits without zeros at either end; `None` if it is not valid.
fn split_decimal(text: &str) -> Option<(bool, &str, &str)> {
    let digits = text.strip_prefix(['+', '-']).unwrap_or(text);
    let (whole, fraction) = digits.split_once('.').unwrap_or((digits, ""));
    let is_digits = |text: &str| text.bytes().all(|digit| digit.is_ascii_digit());
    if (whole.is_empty() && fraction.is_empty()) || !is_digits(whole) || !is_digits(fraction) {
        return None;
    }
    let (whole, fraction) = (whole.trim_start_matches('0'), fraction.trim_end_matches('0'));
    let is_zero = whole.is_empty() && fraction.is_empty();
    Some((text.starts_with('-') && !is_zero, whole, fraction))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_compare_as_in_sparql() {
        let term = |text: &str| {
            let (value, datatype) = text.split_once('^').unwrap_or((text, "string"));
            let datatype = format!("http://www.w3.org/2001/XMLSchema#{datatype}");
            Term::from(Literal::new_typed_literal(value, oxrdf::NamedNode::new_unchecked(datatype)))
        };
        for (one, other, expected) in [
            ("01.20^decimal", "1.3^decimal", Some(Ordering::Less)),
            ("-0^decimal", "0^integer", Some(Ordering::Equal)),
            ("-10^integer", "-9.5^decimal", Some(Ordering::Less)),
            ("300^int", "15E-1^double", Some(Ordering::Greater)),
            ("INF^double", "12345678901234567890123^integer", Some(Ordering::Greater)),
            ("NaN^double", "1^integer", None),
            ("300^byte", "1^integer", None),
            ("-1^nonNegativeInteger", "1^integer", None),
            ("abc^integer", "abc^integer", None),
            ("2024-13-01^date", "2024-01-01^date", None),
            ("2024-01-01Z^date", "2024-06-01Z^date", Some(Ordering::Less)),
            ("12:30:00+01:00^time", "12:00:00Z^time", Some(Ordering::Less)),
            (
                "2024-01-01T00:00:00Z^dateTime",
                "2024-01-01T01:00:00+01:00^dateTime",
                Some(Ordering::Equal),
            ),
            ("2024-01-01T00:00:00Z^dateTime", "2024-01-01T01:00:00^dateTime", None),
            ("P1D^dayTimeDuration", "PT25H^dayTimeDuration", Some(Ordering::Less)),
            ("a", "b", Some(Ordering::Less)),
            ("1", "1^integer", None),
            ("true^boolean", "0^boolean", Some(Ordering::Greater)),
        ] {
            assert_eq!(compare(&term(one), &term(other)), expected, "{one} {other}");
        }
        let node = Term::from(oxrdf::NamedNode::new_unchecked("urn:a"));
        assert_eq!(compare(&node, &node), None);
    }
}
