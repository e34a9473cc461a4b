//! What the evaluator sorts by: in subqueries, in CONSTRUCT and DESCRIBE, and with DISTINCT by something else than columns.
//!
//! The evaluator compares literals of different types by their texts, and numbers in the type of both. That is no total
//! order, and a sort of many rows that notices it panics. So it gets texts, whose order is that of [`Value`].
use crate::value::{Number, Value};
use penstock_rdf::number::split_decimal;

/// Comes after every digit.
const AFTER_DIGITS: char = '~';

/// Returns a text whose order by code point is that of the value among literals; `None` if it is no literal.
pub(crate) fn to_rank(value: &Value) -> Option<String> {
    Some(match value {
        Value::Unbound | Value::BlankNode(_) | Value::NamedNode(_) => return None,
        Value::Boolean(value) => format!("0{}", u8::from(*value)),
        Value::Number(number) => format!("1{}", rank_number(number)),
        Value::DateTime(moment) => format!("2{:032x}", moment.to_ordered()),
        Value::Date(moment) => format!("3{:032x}", moment.to_ordered()),
        Value::String(text) => format!("4{text}"),
        // Neither a language nor a datatype has the separator.
        Value::LanguageString(language, text) => format!("5{language}\0{text}"),
        Value::Other(datatype, text) => format!("6{datatype}\0{text}"),
    })
}

/// Ranks a number by its nearest double. A double comes first, then the exact numbers that round to it.
fn rank_number(number: &Number) -> String {
    let bits = (number.round() + 0.0).to_bits();
    // As `f64::total_cmp` orders them.
    let rounded = if bits >> 63 == 0 { bits | (1 << 63) } else { !bits };
    let exact = match number {
        Number::Exact(value, _) => Some(value.to_string()),
        Number::Long(text, _) => Some(text.clone()),
        Number::Double(_) => None,
    };
    match exact.as_deref().and_then(split_decimal) {
        Some((true, whole, fraction)) => {
            let digits = whole.chars().chain(fraction.chars());
            let complements: String = digits.map(to_complement).collect();
            // The one with more digits before the point, or a longer fraction, comes first.
            format!("{rounded:016x}0{:08x}{complements}{AFTER_DIGITS}", u32::MAX - count(whole))
        }
        Some((false, whole, fraction)) => {
            format!("{rounded:016x}1{:08x}{whole}{fraction}", count(whole))
        }
        None => format!("{rounded:016x}"),
    }
}

fn count(digits: &str) -> u32 {
    u32::try_from(digits.len()).unwrap_or(u32::MAX)
}

fn to_complement(digit: char) -> char {
    digit.to_digit(10).and_then(|digit| char::from_digit(9 - digit, 10)).unwrap_or(digit)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::form::to_expression_term;
    use oxrdf::vocab::xsd;
    use oxrdf::{Literal, NamedNodeRef};

    fn value(text: &str, datatype: NamedNodeRef<'_>) -> Value {
        let literal = Literal::new_typed_literal(text, datatype);
        Value::new(Some(to_expression_term(literal.into(), false)))
    }

    #[test]
    fn ranks_have_the_order_of_values() {
        let small = format!("0.{}1", "0".repeat(330));
        let decimals = "0 -0.0 7 7.5 7.25 10 9 -9 -10 -7.5 -7.25 -0.5 -0.51 0.1 0.1000000000000000000001 \
            9007199254740992 9007199254740992.5 9007199254740993 9223372036854775807 9223372036854775808 \
            -9007199254740992 -9007199254740992.5 -9007199254740993 99999999999999999999999998 \
            99999999999999999999999999 -99999999999999999999999999";
        let times = "2024-01-01T00:00:00 2024-01-01T00:00:00Z 2024-01-01T00:00:00+01:00 \
            2023-12-31T23:59:59.9999999999Z -0044-03-15T00:00:00Z 400000-01-01T00:00:00Z 1969-12-31T23:59:59Z";
        let mut values =
            vec![value(&small, xsd::DECIMAL), value(&format!("-{small}"), xsd::DECIMAL)];
        for (texts, datatype) in [
            ("true false 1", xsd::BOOLEAN),
            (decimals, xsd::DECIMAL),
            ("x", xsd::DECIMAL),
            ("0 -0 0.1 7 9007199254740992 1e26 INF -INF NaN", xsd::DOUBLE),
            ("0 0.1 7 1e26 NaN", xsd::FLOAT),
            (times, xsd::DATE_TIME),
            ("2024-01-01 2024-01-01+01:00 2024-01-02", xsd::DATE),
            ("a ab b \0 a\0 é", xsd::STRING),
            ("PT1H PT60M P1D", xsd::DURATION),
        ] {
            values.extend(texts.split(' ').map(|text| value(text, datatype)));
        }
        for (text, language) in [("b", "en"), ("a", "en-gb"), ("a", "de"), ("", "en"), ("aa", "en")]
        {
            values.push(Value::LanguageString(language.to_owned(), text.to_owned()));
        }
        for one in &values {
            for other in &values {
                let [left, right] = [one, other].map(|value| to_rank(value).unwrap());
                assert_eq!(left.cmp(&right), one.cmp(other), "{left:?} {right:?}");
            }
        }
    }
}
