//! Numbers in other forms than JSON's.
use penstock_rdf::number::{PlainNumber, to_json_number};

/// The maximum number of digits of a whole number that had an exponent or a fraction.
pub(super) const MAX_WHOLE_DIGITS: usize = 400;

/// Reads a number with this decimal separator, perhaps with groups of three digits and with white space around it.
pub(super) fn read_number(text: &str, decimal: char, group: Option<char>) -> Option<String> {
    let text = text.trim();
    let (whole, rest) = match text.find(decimal) {
        Some(at) => text.split_at_checked(at)?,
        None => (text, ""),
    };
    let whole = match group {
        Some(group) if rest.is_empty() && may_be_decimal(whole, group) => return None,
        Some(group) if whole.contains(group) => join_groups(whole, group)?,
        _ => whole.to_owned(),
    };
    // A point that separates nothing here is a mistake.
    if decimal != '.' && whole.contains('.') {
        return None;
    }
    let number = match rest.strip_prefix(decimal) {
        Some(fraction) => format!("{whole}.{fraction}"),
        None => whole,
    };
    to_json_number(&number).map(Into::into)
}

/// Returns whether the separator of groups is rather a decimal point, as in `0.500`: it is the only one, after a zero.
fn may_be_decimal(whole: &str, group: char) -> bool {
    let digits = whole.trim_start_matches(['+', '-']);
    matches!(group, '.' | ',') && digits.starts_with('0') && digits.matches(group).count() == 1
}

/// Removes the separators of groups, if all groups but the first have three digits.
fn join_groups(whole: &str, group: char) -> Option<String> {
    let mut groups = whole.split(group);
    let first = groups.next()?;
    let digits = first.trim_start_matches(['+', '-']);
    let fits = |part: &str| part.len() == 3 && part.bytes().all(|byte| byte.is_ascii_digit());
    if !(1..=3).contains(&digits.len()) || !groups.clone().all(fits) {
        return None;
    }
    Some(std::iter::once(first).chain(groups).collect())
}

/// Returns whether a number has too many digits to be written without exponent.
pub(super) fn is_too_long(digits: &str) -> bool {
    PlainNumber::parse(digits, 0, MAX_WHOLE_DIGITS).is_none()
}

/// Writes a number whose value is whole without fraction and exponent.
pub(super) fn to_whole(digits: &str) -> Option<String> {
    let number = PlainNumber::parse(digits, 0, MAX_WHOLE_DIGITS)?;
    number.fraction.is_empty().then(|| number.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_in_texts_have_one_canonical_form() {
        for (text, expected) in [
            (" 12.50 ", Some("12.50")),
            ("+007", Some("7")),
            ("-.5", Some("-0.5")),
            ("1e3", Some("1e3")),
            ("", None),
            ("NaN", None),
            ("INF", None),
            ("0x1F", None),
            ("1,5", None),
            ("1 000", None),
        ] {
            assert_eq!(read_number(text, '.', None).as_deref(), expected, "{text}");
        }
    }

    #[test]
    fn groups_have_three_digits() {
        for (text, expected) in [
            ("1.234,5", Some("1234.5")),
            ("-12.345.678", Some("-12345678")),
            ("1234,5", Some("1234.5")),
            (" +1,50", Some("1.50")),
            ("1.23,5", None),
            ("1234.567", None),
            ("12.5", None),
            (".123", None),
            ("0.500", None),
            ("-012.345", None),
            ("-01.234,5", Some("-1234.5")),
            ("000.123.456", Some("123456")),
            ("0,500", Some("0.500")),
            ("1,5,0", None),
            ("1,234.5", None),
            ("1..234", None),
        ] {
            assert_eq!(read_number(text, ',', Some('.')).as_deref(), expected, "{text}");
        }
        assert_eq!(read_number("1.5", ',', None), None);
        assert_eq!(read_number("0'500", '.', Some('\'')).as_deref(), Some("500"));
        assert_eq!(read_number("1,234.5", '.', Some(',')).as_deref(), Some("1234.5"));
        assert_eq!(read_number("1\u{a0}234,5", ',', Some('\u{a0}')).as_deref(), Some("1234.5"));
    }

    #[test]
    fn a_whole_number_has_no_exponent_and_a_limit() {
        for (digits, expected) in
            [("1.0", Some("1")), ("1e3", Some("1000")), ("-0.0", Some("0")), ("1.5", None)]
        {
            assert_eq!(to_whole(digits).as_deref(), expected, "{digits}");
        }
        assert_eq!(to_whole("1e399").map(|whole| whole.len()), Some(400));
        assert_eq!(to_whole("1e400"), None);
    }
}
