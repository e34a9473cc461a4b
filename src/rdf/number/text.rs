//! Numbers as text: their JSON form, and their exact order regardless of their size.
use std::borrow::Cow;
use std::cmp::Ordering;
use std::fmt;

/// Converts the lexical form of an XML Schema number to a JSON number (RFC 8259, section 6) and keeps its digits.
/// `+5`, `01`, `.5` and `5.` change only as far as JSON requires. Returns `None` for `INF`, `NaN` and text that is
/// not a number.
pub fn to_json_number(lexical: &str) -> Option<Cow<'_, str>> {
    let parts = NumberParts::parse(lexical)?;
    let is_whole_json =
        parts.whole == "0" || !parts.whole.starts_with('0') && !parts.whole.is_empty();
    if is_whole_json && parts.fraction != Some("") && !lexical.starts_with('+') {
        return Some(Cow::Borrowed(lexical));
    }
    let sign = if parts.negative { "-" } else { "" };
    let whole = match parts.whole.trim_start_matches('0') {
        "" => "0",
        digits => digits,
    };
    let fraction = match parts.fraction {
        Some("") | None => String::new(),
        Some(digits) => format!(".{digits}"),
    };
    let exponent = parts
        .exponent
        .map_or_else(String::new, |(mark, sign, digits)| format!("{mark}{sign}{digits}"));
    Some(Cow::Owned(format!("{sign}{whole}{fraction}{exponent}")))
}

/// The parts of a number as written.
pub(super) struct NumberParts<'a> {
    pub(super) negative: bool,
    pub(super) whole: &'a str,
    pub(super) fraction: Option<&'a str>,
    /// The mark (`e` or `E`) and the sign as written, and the digits.
    pub(super) exponent: Option<(char, &'a str, &'a str)>,
}

impl<'a> NumberParts<'a> {
    pub(super) fn parse(lexical: &'a str) -> Option<Self> {
        let (negative, rest) = match lexical.strip_prefix('-') {
            Some(rest) => (true, rest),
            None => (false, lexical.strip_prefix('+').unwrap_or(lexical)),
        };
        let (mantissa, exponent) = match rest.char_indices().find(|(_, c)| matches!(c, 'e' | 'E')) {
            None => (rest, None),
            Some((at, mark)) => {
                let (mantissa, tail) = rest.split_at(at);
                let tail = tail.get(1..)?;
                let digits = tail.trim_start_matches(['+', '-']);
                let sign = tail.strip_suffix(digits)?;
                if sign.len() > 1 || digits.is_empty() || !is_all_digits(digits) {
                    return None;
                }
                (mantissa, Some((mark, sign, digits)))
            }
        };
        let (whole, fraction) = match mantissa.split_once('.') {
            None => (mantissa, None),
            Some((whole, fraction)) => (whole, Some(fraction)),
        };
        let fraction_digits = fraction.unwrap_or_default();
        if whole.len() + fraction_digits.len() == 0
            || !is_all_digits(whole)
            || !is_all_digits(fraction_digits)
        {
            return None;
        }
        Some(Self { negative, whole, fraction, exponent })
    }
}

/// A number without an exponent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PlainNumber {
    /// Whether it is less than zero.
    pub is_negative: bool,
    /// The digits before the point, without zeros at the beginning; at least `0`.
    pub whole: String,
    /// The digits after the point, without zeros at the end.
    pub fraction: String,
}

impl PlainNumber {
    /// Reads a lexical form, times this power of ten. Returns `None` as [`to_json_number`] does, and for a number with more
    /// than `max_digits` digits before the point or after it.
    pub fn parse(lexical: &str, power: i32, max_digits: usize) -> Option<Self> {
        /// Larger exponents have more digits than memory could.
        const MAX_EXPONENT: i64 = 1 << 40;
        let parts = NumberParts::parse(lexical)?;
        let all = format!("{}{}", parts.whole, parts.fraction.unwrap_or_default());
        let digits = all.trim_start_matches('0');
        let leading = all.len() - digits.len();
        let digits = digits.trim_end_matches('0');
        if digits.is_empty() {
            return Some(Self {
                is_negative: false,
                whole: "0".to_owned(),
                fraction: String::new(),
            });
        }
        let exponent =
            match parts.exponent.map(|(_, sign, digits)| (sign, digits.trim_start_matches('0'))) {
                None | Some((_, "")) => 0,
                Some((sign, digits)) => {
                    let size = digits.parse().ok().filter(|size: &i64| *size <= MAX_EXPONENT)?;
                    if sign == "-" { -size } else { size }
                }
            };
        let place = i64::try_from(parts.whole.len()).ok()? - i64::try_from(leading).ok()?;
        // The number of digits before the point; below 0, the number of zeros behind it.
        let point = place + exponent + i64::from(power);
        let size = usize::try_from(point.unsigned_abs()).ok().filter(|size| *size <= max_digits)?;
        let (whole, fraction) = if point <= 0 {
            ("0".to_owned(), format!("{}{digits}", "0".repeat(size)))
        } else if let Some((whole, fraction)) = digits.split_at_checked(size) {
            (whole.to_owned(), fraction.to_owned())
        } else {
            (format!("{digits}{}", "0".repeat(size - digits.len())), String::new())
        };
        let fits = fraction.len() <= max_digits;
        fits.then_some(Self { is_negative: parts.negative, whole, fraction })
    }
}

impl fmt::Display for PlainNumber {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { is_negative, whole, fraction } = self;
        let sign = if *is_negative { "-" } else { "" };
        let point = if fraction.is_empty() { "" } else { "." };
        write!(f, "{sign}{whole}{point}{fraction}")
    }
}

fn is_all_digits(text: &str) -> bool {
    text.bytes().all(|b| b.is_ascii_digit())
}

/// A sort key that orders numbers exactly.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct NumberKey {
    /// -1, 0 or 1.
    sign: i8,
    /// The power of ten of the first digit that is not 0. It saturates: numbers beyond 10^(10^38) are
    /// compared only by their digits.
    magnitude: i128,
    /// The digits from the first that is not 0 to the last that is not 0.
    digits: String,
}

impl NumberKey {
    /// Creates the key of a lexical form. Returns `None` as [`to_json_number`] does.
    pub fn parse(lexical: &str) -> Option<Self> {
        let parts = NumberParts::parse(lexical)?;
        let all = format!("{}{}", parts.whole, parts.fraction.unwrap_or_default());
        let digits = all.trim_start_matches('0');
        let leading = all.len() - digits.len();
        let digits = digits.trim_end_matches('0');
        if digits.is_empty() {
            return Some(Self { sign: 0, magnitude: 0, digits: String::new() });
        }
        let exponent = parts.exponent.map_or(0, |(_, sign, digits)| {
            let size = digits.trim_start_matches('0');
            let size = if size.is_empty() { 0 } else { size.parse().unwrap_or(i128::MAX) };
            if sign == "-" { -size } else { size }
        });
        let place = i128::try_from(parts.whole.len()).unwrap_or(i128::MAX)
            - i128::try_from(leading).unwrap_or(i128::MAX);
        Some(Self {
            sign: if parts.negative { -1 } else { 1 },
            magnitude: exponent.saturating_add(place),
            digits: digits.to_owned(),
        })
    }
}

impl Ord for NumberKey {
    fn cmp(&self, other: &Self) -> Ordering {
        let size = || (self.magnitude, &self.digits).cmp(&(other.magnitude, &other.digits));
        self.sign
            .cmp(&other.sign)
            .then_with(|| if self.sign < 0 { size().reverse() } else { size() })
    }
}

impl PartialOrd for NumberKey {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_json_requires_is_changed() {
        for (lexical, expected) in [
            ("1.50", "1.50"),
            ("-0", "-0"),
            ("+5", "5"),
            ("01", "1"),
            ("-007.10", "-7.10"),
            (".5", "0.5"),
            ("5.", "5"),
            ("000", "0"),
            ("1E+05", "1E+05"),
            ("1e400", "1e400"),
        ] {
            assert_eq!(to_json_number(lexical).as_deref(), Some(expected), "{lexical}");
        }
        for none in
            ["", "INF", "-INF", "NaN", "+", ".", "1e", "1e+-2", "1,5", " 1", "0x1", "e5", "1.2.3"]
        {
            assert_eq!(to_json_number(none), None, "{none}");
        }
    }

    #[test]
    fn a_plain_number_has_no_exponent() {
        for (lexical, power, expected) in [
            ("12.50", 0, Some("12.5")),
            ("1e3", 0, Some("1000")),
            ("-1.0", 0, Some("-1")),
            ("-0.0", 0, Some("0")),
            ("1732700000123", -3, Some("1732700000.123")),
            ("1.5E-2", 0, Some("0.015")),
            ("5", -3, Some("0.005")),
            ("12345", -5, Some("0.12345")),
            ("1e20", 0, Some("100000000000000000000")),
            ("1e21", 0, None),
            ("1e-22", 0, None),
            ("1e99999999999999999999", 0, None),
            ("0e99999999999999999999", 0, Some("0")),
            ("NaN", 0, None),
        ] {
            let read = PlainNumber::parse(lexical, power, 21).map(|number| number.to_string());
            assert_eq!(read.as_deref(), expected, "{lexical}");
        }
    }

    #[test]
    fn the_order_is_exact_for_numbers_of_any_size() {
        let ascending = [
            "-1e99999999999999999999",
            "-1e400",
            "-12345678901234567890123",
            "-2",
            "-1.5",
            "-1e-400",
            "0",
            "1e-400",
            "0.1",
            "0.10000000000000000000000000000001",
            "9",
            "10",
            "123456789012345678901234567890.1",
            "123456789012345678901234567890.2",
            "1e399",
            "1e400",
            "11e399",
            "1e99999999999999999999",
        ];
        for pair in ascending.windows(2) {
            assert!(
                NumberKey::parse(pair[0]) < NumberKey::parse(pair[1]),
                "{} < {}",
                pair[0],
                pair[1]
            );
        }
        for (a, b) in [("1", "1.000"), ("10e2", "1000"), ("-0", "0"), ("0e5", "0.00")] {
            assert_eq!(NumberKey::parse(a), NumberKey::parse(b), "{a} = {b}");
        }
    }
}
