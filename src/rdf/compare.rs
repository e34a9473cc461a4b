//! The values of literals: whether they are valid (XML Schema Part 2), and how they compare as SPARQL's `<` does (SPARQL
//! 1.1, 17.3), also dates, times and durations. `order` has the order of texts that are shown, where every text has a
//! place.
mod order;

pub use order::{Moment, SortKey, ValueOrder};

use crate::number::{check_float, compare_decimals, is_numeric, is_valid_integer, split_decimal};
use oxrdf::vocab::xsd;
use oxrdf::{Literal, Term};
use oxsdatatypes::{
    Boolean, Date, DateTime, DayTimeDuration, Decimal, Double, Float, GDay, GMonth, GMonthDay,
    GYear, GYearMonth, Time, YearMonthDuration,
};
use std::borrow::Cow;
use std::cmp::Ordering;
use std::str::FromStr;

/// A value that can be compared.
enum Value<'a> {
    Decimal(&'a str),
    Float(f32),
    Double(f64),
    Text(&'a str),
    Boolean(bool),
    DateTime(DateTime),
    Date(Date),
    Time(Time),
    GYear(GYear),
    GYearMonth(GYearMonth),
    GMonth(GMonth),
    GMonthDay(GMonthDay),
    GDay(GDay),
    DayTimeDuration(DayTimeDuration),
    YearMonthDuration(YearMonthDuration),
}

/// Compares two values; `None` if they cannot be compared, or if one is not valid.
pub fn compare(one: &Term, other: &Term) -> Option<Ordering> {
    let (Term::Literal(one), Term::Literal(other)) = (one, other) else { return None };
    match (read_value(one)?, read_value(other)?) {
        (Value::Decimal(one), Value::Decimal(other)) => compare_decimals(one, other),
        (Value::Double(one), Value::Double(other)) => one.partial_cmp(&other),
        (Value::Float(one), Value::Float(other)) => one.partial_cmp(&other),
        (Value::Float(one), Value::Double(other)) => f64::from(one).partial_cmp(&other),
        (Value::Double(one), Value::Float(other)) => one.partial_cmp(&other.into()),
        // An exact number is compared as a float or a double.
        (Value::Decimal(one), Value::Float(other)) => one.parse::<f32>().ok()?.partial_cmp(&other),
        (Value::Float(one), Value::Decimal(other)) => one.partial_cmp(&other.parse::<f32>().ok()?),
        (Value::Decimal(one), Value::Double(other)) => one.parse::<f64>().ok()?.partial_cmp(&other),
        (Value::Double(one), Value::Decimal(other)) => one.partial_cmp(&other.parse::<f64>().ok()?),
        (Value::Text(one), Value::Text(other)) => Some(one.cmp(other)),
        (Value::Boolean(one), Value::Boolean(other)) => Some(one.cmp(&other)),
        (Value::DateTime(one), Value::DateTime(other)) => one.partial_cmp(&other),
        (Value::Date(one), Value::Date(other)) => one.partial_cmp(&other),
        (Value::Time(one), Value::Time(other)) => one.partial_cmp(&other),
        (Value::GYear(one), Value::GYear(other)) => one.partial_cmp(&other),
        (Value::GYearMonth(one), Value::GYearMonth(other)) => one.partial_cmp(&other),
        (Value::GMonth(one), Value::GMonth(other)) => one.partial_cmp(&other),
        (Value::GMonthDay(one), Value::GMonthDay(other)) => one.partial_cmp(&other),
        (Value::GDay(one), Value::GDay(other)) => one.partial_cmp(&other),
        (Value::DayTimeDuration(one), Value::DayTimeDuration(other)) => one.partial_cmp(&other),
        (Value::YearMonthDuration(one), Value::YearMonthDuration(other)) => one.partial_cmp(&other),
        _ => None,
    }
}

/// Returns a term in the form in which equal terms are identical: language tags are equal whatever their case (RDF 1.1
/// Concepts, 3.3).
pub fn fold_language(term: &Term) -> Cow<'_, Term> {
    let Term::Literal(literal) = term else { return Cow::Borrowed(term) };
    match literal.language() {
        Some(language) if language.bytes().any(|byte| byte.is_ascii_uppercase()) => {
            let folded = language.to_ascii_lowercase();
            let literal =
                Literal::new_language_tagged_literal_unchecked(literal.value(), folded.as_str());
            Cow::Owned(literal.into())
        }
        _ => Cow::Borrowed(term),
    }
}

/// Returns whether the text of a literal is valid for its datatype; `None` for a datatype that is not known here.
pub fn is_valid(literal: &Literal) -> Option<bool> {
    let is_known = is_numeric(literal.datatype())
        || matches!(
            literal.datatype(),
            xsd::STRING
                | xsd::BOOLEAN
                | xsd::DATE_TIME
                | xsd::DATE_TIME_STAMP
                | xsd::DATE
                | xsd::TIME
                | xsd::DAY_TIME_DURATION
                | xsd::YEAR_MONTH_DURATION
        );
    is_known.then(|| read_value(literal).is_some())
}

/// Returns the value of an integer or a decimal, if it is small enough to be exact.
pub fn to_decimal(literal: &Literal) -> Option<Decimal> {
    match read_value(literal)? {
        Value::Decimal(text) => text.parse().ok(),
        _ => None,
    }
}

fn read_value(literal: &Literal) -> Option<Value<'_>> {
    fn read<T: FromStr>(text: &str) -> Option<T> {
        text.parse().ok()
    }
    let text = literal.value();
    let datatype = literal.datatype();
    if let Some(is_valid) = is_valid_integer(text, datatype) {
        return is_valid.then_some(Value::Decimal(text));
    }
    Some(match datatype {
        xsd::DECIMAL => Value::Decimal(split_decimal(text).map(|_| text)?),
        xsd::DOUBLE => Value::Double(read::<Double>(check_float(text)?)?.into()),
        xsd::FLOAT => Value::Float(read::<Float>(check_float(text)?)?.into()),
        xsd::STRING => Value::Text(text),
        xsd::BOOLEAN => Value::Boolean(read::<Boolean>(text)?.into()),
        xsd::DATE_TIME => Value::DateTime(read(check_day(text)?)?),
        xsd::DATE_TIME_STAMP => {
            Value::DateTime(read(check_day(text).filter(|_| has_time_zone(text))?)?)
        }
        xsd::DATE => Value::Date(read(check_day(text)?)?),
        xsd::TIME => Value::Time(read(check_time_zone(text)?)?),
        xsd::G_YEAR => Value::GYear(read(check_time_zone(text)?)?),
        xsd::G_YEAR_MONTH => Value::GYearMonth(read(check_time_zone(text)?)?),
        xsd::G_MONTH => Value::GMonth(read(check_time_zone(text)?)?),
        xsd::G_MONTH_DAY => Value::GMonthDay(read(check_time_zone(text)?)?),
        xsd::G_DAY => Value::GDay(read(check_time_zone(text)?)?),
        xsd::DAY_TIME_DURATION => Value::DayTimeDuration(read(text)?),
        xsd::YEAR_MONTH_DURATION => Value::YearMonthDuration(read(text)?),
        _ => return None,
    })
}

/// Returns the text of a date, or of a date with a time, if its month has that day. oxsdatatypes accepts 30 February.
fn check_day(text: &str) -> Option<&str> {
    let without_sign = text.strip_prefix('-').unwrap_or(text);
    let mut parts = without_sign.splitn(3, '-');
    let year: i64 = parts.next()?.parse().ok()?;
    let year = if text.starts_with('-') { -year } else { year };
    let month: u8 = parts.next()?.parse().ok()?;
    let day: u8 = parts.next()?.get(..2)?.parse().ok()?;
    let is_leap =
        year.rem_euclid(4) == 0 && (year.rem_euclid(100) != 0 || year.rem_euclid(400) == 0);
    let days = match month {
        2 if is_leap => 29,
        2 => 28,
        4 | 6 | 9 | 11 => 30,
        _ => 31,
    };
    if day <= days { check_time_zone(text) } else { None }
}

/// Returns the text of a date or time, if its time zone is at most 14 hours.
fn check_time_zone(text: &str) -> Option<&str> {
    if !has_offset(text) {
        return Some(text);
    }
    let zone = text.get(text.len().checked_sub(6)?..)?;
    let (hours, minutes) =
        (zone.get(1..3)?.parse::<u8>().ok()?, zone.get(4..)?.parse::<u8>().ok()?);
    (hours < 14 && minutes < 60 || hours == 14 && minutes == 0).then_some(text)
}

fn has_time_zone(text: &str) -> bool {
    text.ends_with('Z') || has_offset(text)
}

/// Returns whether a date or time ends with an offset such as `+01:00`.
fn has_offset(text: &str) -> bool {
    match text.as_bytes() {
        [.., sign, _, _, b':', _, _] => matches!(sign, b'+' | b'-'),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_is_valid_only_for_its_datatype() {
        let literal = |text: &str, datatype: &str| {
            let datatype = format!("http://www.w3.org/2001/XMLSchema#{datatype}");
            Literal::new_typed_literal(text, oxrdf::NamedNode::new_unchecked(datatype))
        };
        for (datatype, valid, invalid) in [
            (
                "double",
                &["INF", "+INF", "-INF", "NaN", "1.5E3", "-0"][..],
                &["inf", "infinity", "Infinity", "nan", "Inf", ""][..],
            ),
            ("float", &["INF", "1"], &["Infinity"]),
            (
                "date",
                &["2024-02-29", "-0004-02-29", "2024-01-01+14:00", "2024-01-01-01:00Z"][..3],
                &["2024-02-30", "2023-02-29", "2024-04-31", "2024-01-01+99:00", "2024-01-01+14:30"],
            ),
            (
                "dateTime",
                &["2024-01-01T24:00:00", "2024-01-01T00:00:00-05:00"],
                &["2024-02-30T00:00:00", "2024-01-01"],
            ),
            ("dateTimeStamp", &["2024-01-01T00:00:00Z"], &["2024-01-01T00:00:00"]),
            ("time", &["12:00:00", "12:00:00+01:00"], &["12:00:00+15:00"]),
            ("int", &["2147483647"], &["2147483648", "1.0"]),
            ("integer", &["+1", "123456789012345678901234567890"], &["1.0", "", "-"]),
        ] {
            for text in valid {
                assert_eq!(is_valid(&literal(text, datatype)), Some(true), "{text} {datatype}");
            }
            for text in invalid {
                assert_eq!(is_valid(&literal(text, datatype)), Some(false), "{text} {datatype}");
            }
        }
        assert_eq!(is_valid(&literal("x", "gYear")), None);
    }

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
            ("0.1^float", "0.1^decimal", Some(Ordering::Equal)),
            ("16777217^integer", "16777216^float", Some(Ordering::Equal)),
            ("0.1^float", "0.1^double", Some(Ordering::Greater)),
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
