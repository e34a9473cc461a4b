//! The texts of XML Schema's numbers (XML Schema Part 2): whether they are valid, and their exact order. `decimal` computes
//! with them.
mod decimal;
mod text;

pub use decimal::ExactDecimal;
pub use text::{NumberKey, PlainNumber, to_json_number};

use oxrdf::NamedNodeRef;
use oxrdf::vocab::xsd;
use std::cmp::Ordering;
use text::NumberParts;

/// Returns whether the values of a datatype are numbers.
pub fn is_numeric(datatype: NamedNodeRef<'_>) -> bool {
    matches!(datatype, xsd::DECIMAL | xsd::DOUBLE | xsd::FLOAT) || is_integer_type(datatype)
}

/// Returns whether a datatype is `xsd:integer` or derived from it.
pub fn is_integer_type(datatype: NamedNodeRef<'_>) -> bool {
    integer_bounds(datatype).is_some()
}

/// Returns whether a text is valid for a datatype of integers, of any length and within its bounds; `None` for another
/// datatype.
pub fn is_valid_integer(text: &str, datatype: NamedNodeRef<'_>) -> Option<bool> {
    let (min, max) = integer_bounds(datatype)?;
    let digits = text.strip_prefix(['+', '-']).unwrap_or(text);
    let is_integer = !digits.is_empty() && digits.bytes().all(|digit| digit.is_ascii_digit());
    let holds = |bound: Option<&str>, is_valid: fn(Ordering) -> bool| {
        bound.is_none_or(|bound| compare_decimals(text, bound).is_some_and(is_valid))
    };
    Some(is_integer && holds(min, Ordering::is_ge) && holds(max, Ordering::is_le))
}

/// Returns the text of a double or float, if it is none of the names of special values that only oxsdatatypes accepts.
pub fn check_float(text: &str) -> Option<&str> {
    let is_special = matches!(text, "INF" | "+INF" | "-INF" | "NaN");
    let is_number = text.bytes().all(|byte| byte.is_ascii_digit() || b"+-.eE".contains(&byte));
    (is_special || is_number).then_some(text)
}

/// Returns a number in the canonical form of a double, such as `1.25E-1`, without its exponent. `None` if it has another
/// form, or a large exponent.
pub(crate) fn without_exponent(text: &str) -> Option<String> {
    let (mantissa, exponent) = text.split_once('E')?;
    let (sign, mantissa) = mantissa.strip_prefix('-').map_or(("", mantissa), |rest| ("-", rest));
    let (first, fraction) = mantissa.split_once('.')?;
    let is_short = fraction == "0" || !fraction.is_empty() && !fraction.ends_with('0');
    let power: i32 = exponent.parse().ok().filter(|power: &i32| power.unsigned_abs() <= 400)?;
    let digits = format!("{first}{}", fraction.trim_end_matches('0'));
    if first.len() != 1
        || !is_short
        || power.to_string() != exponent
        || !digits.bytes().all(|byte| byte.is_ascii_digit())
    {
        return None;
    }
    // The number of digits before the point.
    let point = usize::try_from(power + 1).unwrap_or_default();
    let zeros = usize::try_from(-(power + 1)).unwrap_or_default();
    Some(if point == 0 {
        format!("{sign}0.{}{digits}", "0".repeat(zeros))
    } else if point < digits.len() {
        let (whole, fraction) = digits.split_at(point);
        format!("{sign}{whole}.{fraction}")
    } else {
        format!("{sign}{digits}{}", "0".repeat(point - digits.len()))
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

/// Compares two decimals or integers of any length; `None` if one is not valid.
pub fn compare_decimals(one: &str, other: &str) -> Option<Ordering> {
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
pub fn split_decimal(text: &str) -> Option<(bool, &str, &str)> {
    let parts = NumberParts::parse(text).filter(|parts| parts.exponent.is_none())?;
    let (whole, fraction) = (parts.whole, parts.fraction.unwrap_or_default());
    let (whole, fraction) = (whole.trim_start_matches('0'), fraction.trim_end_matches('0'));
    let is_zero = whole.is_empty() && fraction.is_empty();
    Some((parts.negative && !is_zero, whole, fraction))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_canonical_doubles_lose_their_exponent() {
        for (text, expected) in [
            ("1.5E7", Some("15000000")),
            ("-1.25E-1", Some("-0.125")),
            ("1.25E1", Some("12.5")),
            ("0.0E0", Some("0")),
            ("1.50E7", None),
            ("1.5E+7", None),
            ("1.5E07", None),
            ("15.0E1", None),
            (".5E1", None),
            ("1.E1", None),
            ("1.5", None),
            ("E", None),
            ("1.0E1000000000", None),
            ("1.5E-2147483648", None),
        ] {
            assert_eq!(without_exponent(text).as_deref(), expected, "{text}");
        }
    }
}
