//! Numbers of all numeric datatypes in one order, and which of them may be equal to another after the promotion of their
//! types (SPARQL 1.1, section 17.3).
use oxrdf::NamedNodeRef;
use oxrdf::vocab::xsd;
use std::ops::RangeInclusive;

/// A number as near as its key has it.
#[derive(Debug, Clone, Copy)]
pub(super) enum Number {
    /// The nearest double of an integer, a decimal or a double.
    Double(f64),
    /// An `xsd:float`.
    Float(f32),
}

impl Number {
    /// Reads a text; `None` if the datatype is not numeric, or the text is not valid for it.
    pub(super) fn parse(text: &str, datatype: NamedNodeRef<'_>) -> Option<Self> {
        match datatype {
            xsd::FLOAT if is_float(text) => text.parse().ok().map(Self::Float),
            xsd::DOUBLE if is_float(text) => text.parse().ok().map(Self::Double),
            xsd::DECIMAL if is_decimal(text) => text.parse().ok().map(Self::Double),
            _ if is_integer(text) && is_within_bounds(text, datatype)? => {
                text.parse().ok().map(Self::Double)
            }
            _ => None,
        }
    }

    pub(super) fn to_double(self) -> f64 {
        match self {
            Self::Double(number) => number,
            Self::Float(number) => number.into(),
        }
    }

    /// Returns the ranges of numbers that may be equal to this one, each from its first number to its last, in no order.
    ///
    /// A decimal that was converted may be one step beside the nearest double or float. A float equals every number that
    /// rounds to it.
    pub(super) fn equal_ranges(self) -> Vec<(f64, f64)> {
        match self {
            Self::Float(number) => {
                vec![(number.next_down().into(), number.next_up().into())]
            }
            Self::Double(number) => {
                #[expect(clippy::cast_possible_truncation, reason = "the nearest float")]
                let float = number as f32;
                let floats = [float.next_down(), float, float.next_up()].map(f64::from);
                let mut ranges = vec![(number.next_down(), number.next_up())];
                ranges.extend(floats.map(|float| (float, float)));
                ranges
            }
        }
    }
}

/// The number of decimal digits up to which different numbers have different doubles.
const MAX_EXACT_DIGITS: usize = 15;
/// The numbers, without their sign, of which each double has as many digits. Zero is exact too.
const EXACT_RANGE: RangeInclusive<f64> = 1e-300..=1e300;

/// Returns whether other numbers may have the same key as the number of this text, which is valid for the datatype.
pub(super) fn is_rounded(text: &str, datatype: NamedNodeRef<'_>) -> bool {
    let Ok(double) = text.parse::<f64>() else { return true };
    let (mantissa, _) = text.split_once(['e', 'E']).unwrap_or((text, ""));
    let digits = mantissa.bytes().filter(u8::is_ascii_digit);
    let mut digits = digits.skip_while(|digit| *digit == b'0');
    let significant = digits.by_ref().take(MAX_EXACT_DIGITS).count();
    if significant == 0 {
        // INF and NaN have no digits either.
        return double != 0.0;
    }
    let key = Number::parse(text, datatype).map(Number::to_double);
    !EXACT_RANGE.contains(&double.abs()) || key != Some(double) || digits.any(|digit| digit != b'0')
}

/// Returns bits that compare as the numbers do. Zeros are equal, and every NaN is the last number.
pub(super) fn to_ordered(number: f64) -> u64 {
    const SIGN: u64 = 1 << 63;
    let number = if number.is_nan() { f64::NAN.abs() } else { number + 0.0 };
    let bits = number.to_bits();
    if bits & SIGN == 0 { bits | SIGN } else { !bits }
}

fn without_sign(text: &str) -> &str {
    text.strip_prefix(['+', '-']).unwrap_or(text)
}

fn are_digits(text: &str) -> bool {
    text.bytes().all(|byte| byte.is_ascii_digit())
}

/// Returns whether a text is not one of the names of infinity and NaN that only Rust reads.
fn is_float(text: &str) -> bool {
    matches!(text, "INF" | "+INF" | "-INF" | "NaN")
        || text.bytes().all(|byte| byte.is_ascii_digit() || b"+-.eE".contains(&byte))
}

fn is_decimal(text: &str) -> bool {
    let number = without_sign(text);
    let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
    whole.len() + fraction.len() > 0 && are_digits(whole) && are_digits(fraction)
}

fn is_integer(text: &str) -> bool {
    let digits = without_sign(text);
    !digits.is_empty() && are_digits(digits)
}

/// Returns whether an integer is valid for its datatype; `None` for a datatype of no integers.
fn is_within_bounds(text: &str, datatype: NamedNodeRef<'_>) -> Option<bool> {
    let (min, max) = integer_bounds(datatype)?;
    let is_within =
        |number: i128| min.is_none_or(|min| number >= min) && max.is_none_or(|max| number <= max);
    // An integer of more digits is beyond every bound.
    let farthest = if text.starts_with('-') { i128::MIN } else { i128::MAX };
    Some(is_within(text.parse().unwrap_or(farthest)))
}

/// Returns the least and the greatest integer of a datatype.
fn integer_bounds(datatype: NamedNodeRef<'_>) -> Option<(Option<i128>, Option<i128>)> {
    fn all<T: Into<i128>>(min: T, max: T) -> (Option<i128>, Option<i128>) {
        (Some(min.into()), Some(max.into()))
    }
    Some(match datatype {
        xsd::INTEGER => (None, None),
        xsd::LONG => all(i64::MIN, i64::MAX),
        xsd::INT => all(i32::MIN, i32::MAX),
        xsd::SHORT => all(i16::MIN, i16::MAX),
        xsd::BYTE => all(i8::MIN, i8::MAX),
        xsd::UNSIGNED_LONG => all(u64::MIN, u64::MAX),
        xsd::UNSIGNED_INT => all(u32::MIN, u32::MAX),
        xsd::UNSIGNED_SHORT => all(u16::MIN, u16::MAX),
        xsd::UNSIGNED_BYTE => all(u8::MIN, u8::MAX),
        xsd::NON_NEGATIVE_INTEGER => (Some(0), None),
        xsd::POSITIVE_INTEGER => (Some(1), None),
        xsd::NON_POSITIVE_INTEGER => (None, Some(0)),
        xsd::NEGATIVE_INTEGER => (None, Some(-1)),
        _ => return None,
    })
}
