//! The values of literals as the index of values orders them.
//!
//! A value has a class, and within it a key of bounded length. Keys do not tell all values apart, so a range of keys may
//! select more literals than are meant: whoever reads checks each literal.
mod moment;
mod number;
mod range;

pub use moment::parse_usual_moment;
pub(crate) use range::Interval;
pub use range::ValueRange;

use crate::term::{LiteralParts, split_literal};
use crate::varint::Input;
use moment::parse_moment;
use number::Number;
use oxrdf::LiteralRef;
use oxrdf::vocab::xsd;
use std::fmt;

/// The number of bytes of a text that its key has.
pub(crate) const MAX_TEXT_BYTES: usize = 24;
/// The bytes of a number's or a moment's key.
const NUMBER_BYTES: usize = 8;
/// Ends a text of fewer than [`MAX_TEXT_BYTES`] bytes. Nothing that follows a value begins with [`ESCAPED_ZERO`].
const TEXT_END: u8 = 0;
/// Follows a zero byte of a text, to tell it from the end.
pub(crate) const ESCAPED_ZERO: u8 = 0xff;
/// Follows the subject of a value that its key does not say.
const ROUNDED: u8 = 1;

/// What kinds of values a literal of a datatype has. Values of one class are in one order; those of different classes are
/// not compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ValueClass {
    /// `xsd:boolean`: false comes before true.
    Boolean,
    /// All numeric datatypes (`xsd:integer` and what is derived from it, within its bounds; decimal, double, float), by
    /// number. The value of an `xsd:float` is the nearest one of 32 bits. NaN comes last.
    Number,
    /// `xsd:dateTime` and `xsd:dateTimeStamp`, by moment; without a time zone in UTC.
    Time,
    /// `xsd:date`, by the moment of its midnight; without a time zone in UTC.
    Date,
    /// `xsd:string`, by code point.
    Text,
    /// Texts with a language, by code point. The language does not count.
    LanguageText,
    /// Every other datatype, and every invalid literal: by lexical form, whatever the datatype, by code point.
    Other,
}

impl ValueClass {
    /// All classes, by their numbers in the index.
    pub const ALL: [Self; 7] = [
        Self::Boolean,
        Self::Number,
        Self::Time,
        Self::Date,
        Self::Text,
        Self::LanguageText,
        Self::Other,
    ];

    /// Returns the byte that stands for the class in the index.
    pub(crate) fn code(self) -> u8 {
        self as u8
    }

    pub(crate) fn from_code(code: u8) -> Option<Self> {
        Self::ALL.get(usize::from(code)).copied()
    }

    /// Returns whether a key may be a number or a moment near the value.
    pub fn has_rounded_values(self) -> bool {
        matches!(self, Self::Number | Self::Time | Self::Date)
    }

    fn is_text(self) -> bool {
        matches!(self, Self::Text | Self::LanguageText | Self::Other)
    }
}

/// The place of a value in the order of its class. Equal keys do not mean equal values: numbers count by the nearest
/// double, moments by their microsecond, and texts by their first 24 bytes. Different keys mean that the values are in this
/// order.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ValueKey {
    /// Followed by zeros.
    bytes: [u8; MAX_TEXT_BYTES],
    length: u8,
}

impl fmt::Debug for ValueKey {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "ValueKey({})", self.as_bytes().escape_ascii())
    }
}

impl ValueKey {
    /// Returns the class and the key of a literal.
    pub fn of(literal: LiteralRef<'_>) -> (ValueClass, Self) {
        let (datatype, text) = match split_literal(literal) {
            LiteralParts::String(text) => return (ValueClass::Text, Self::of_text(text)),
            LiteralParts::Language(_, text) => {
                return (ValueClass::LanguageText, Self::of_text(text));
            }
            LiteralParts::Typed(datatype, text) => (datatype, text),
        };
        let typed = match datatype {
            xsd::BOOLEAN => parse_boolean(text)
                .map(|value| (ValueClass::Boolean, Self::from_bytes(&[u8::from(value)]))),
            xsd::DATE_TIME | xsd::DATE_TIME_STAMP | xsd::DATE => {
                let class = if datatype == xsd::DATE { ValueClass::Date } else { ValueClass::Time };
                parse_moment(text, datatype).map(|moment| (class, Self::of_moment(moment)))
            }
            _ => Number::parse(text, datatype)
                .map(|number| (ValueClass::Number, Self::of_number(number.to_double()))),
        };
        typed.unwrap_or_else(|| (ValueClass::Other, Self::of_text(text)))
    }

    fn from_bytes(bytes: &[u8]) -> Self {
        let bytes = bytes.get(..MAX_TEXT_BYTES).unwrap_or(bytes);
        let mut key = Self { bytes: [0; MAX_TEXT_BYTES], length: 0 };
        if let (Some(space), Ok(length)) =
            (key.bytes.get_mut(..bytes.len()), bytes.len().try_into())
        {
            space.copy_from_slice(bytes);
            key.length = length;
        }
        key
    }

    fn of_text(text: &str) -> Self {
        Self::from_bytes(text.as_bytes())
    }

    fn of_number(number: f64) -> Self {
        Self::from_bytes(&number::to_ordered(number).to_be_bytes())
    }

    /// The moment is in microseconds since 1970.
    fn of_moment(moment: i64) -> Self {
        Self::from_bytes(&(moment.cast_unsigned() ^ (1 << 63)).to_be_bytes())
    }

    /// Returns the key of a literal if it says the value: all literals of the class with this key have the same value, except
    /// those in [`ValueRange::rounded_only`].
    pub fn of_exact(literal: LiteralRef<'_>) -> Option<Self> {
        let (class, key) = Self::of(literal);
        Remainder::of(literal, class, &key).is_none().then_some(key)
    }

    /// Returns whether the key of a text may be only its beginning. Then the index also has a checksum of the text.
    pub fn is_cut(&self, class: ValueClass) -> bool {
        class.is_text() && usize::from(self.length) == MAX_TEXT_BYTES
    }

    fn as_bytes(&self) -> &[u8] {
        self.bytes.get(..usize::from(self.length)).unwrap_or_default()
    }

    /// Appends the key as in the index. No encoding of a class is the beginning of another.
    pub(crate) fn encode(&self, class: ValueClass, out: &mut Vec<u8>) {
        let bytes = self.as_bytes();
        if class.is_text() {
            escape_text(bytes, out);
            if !self.is_cut(class) {
                out.push(TEXT_END);
            }
        } else {
            out.extend_from_slice(bytes);
        }
    }

    /// Reads a key of the index. What follows a text must not begin with [`ESCAPED_ZERO`].
    pub(crate) fn decode(class: ValueClass, input: &mut Input<'_>) -> Option<Self> {
        let length = match class {
            ValueClass::Boolean => 1,
            ValueClass::Number | ValueClass::Time | ValueClass::Date => NUMBER_BYTES,
            ValueClass::Text | ValueClass::LanguageText | ValueClass::Other => {
                // Fast path: most texts have no end within the key.
                if let Some(bytes) = input.rest().first_chunk::<MAX_TEXT_BYTES>()
                    && !bytes.contains(&TEXT_END)
                {
                    return input.take(MAX_TEXT_BYTES).map(Self::from_bytes);
                }
                let mut key = Self { bytes: [0; MAX_TEXT_BYTES], length: 0 };
                for byte in &mut key.bytes {
                    let next = input.read_byte()?;
                    if next == TEXT_END {
                        if input.rest().first() != Some(&ESCAPED_ZERO) {
                            break;
                        }
                        input.read_byte()?;
                    }
                    *byte = next;
                    key.length += 1;
                }
                return Some(key);
            }
        };
        input.take(length).map(Self::from_bytes)
    }
}

/// Appends the bytes of a text as in the index, without an end.
fn escape_text(bytes: &[u8], out: &mut Vec<u8>) {
    for byte in bytes {
        out.push(*byte);
        if *byte == TEXT_END {
            out.push(ESCAPED_ZERO);
        }
    }
}

/// What the index has of a literal in addition to its key, if the key does not say the value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Remainder {
    /// A checksum of a text of which the key may be only the beginning. So it tells texts with the same beginning apart,
    /// without reading them.
    Checksum([u8; 2]),
    /// The key is a number or a moment near the value.
    Rounded,
}

impl Remainder {
    /// Returns the remainder of a literal with this class and key.
    pub(crate) fn of(literal: LiteralRef<'_>, class: ValueClass, key: &ValueKey) -> Option<Self> {
        if key.is_cut(class) {
            let [.., high, low] = crc32c::crc32c(literal.value().as_bytes()).to_be_bytes();
            return Some(Self::Checksum([high, low]));
        }
        is_rounded(literal, class).then_some(Self::Rounded)
    }

    pub(crate) fn encode(self, out: &mut Vec<u8>) {
        match self {
            Self::Checksum(bytes) => out.extend_from_slice(&bytes),
            Self::Rounded => out.push(ROUNDED),
        }
    }

    /// Reads what follows the subject of an entry with this class and key.
    pub(crate) fn decode(class: ValueClass, key: &ValueKey, rest: &[u8]) -> Option<Self> {
        match rest {
            [ROUNDED] if !class.is_text() => Some(Self::Rounded),
            [high, low] if key.is_cut(class) => Some(Self::Checksum([*high, *low])),
            _ => None,
        }
    }
}

/// Returns whether the key of a number or a moment does not say its value: literals of one class and key have equal values,
/// except those for which this is true.
fn is_rounded(literal: LiteralRef<'_>, class: ValueClass) -> bool {
    match class {
        ValueClass::Number => number::is_rounded(literal.value(), literal.datatype()),
        ValueClass::Time | ValueClass::Date => moment::is_rounded(literal.value()),
        _ => false,
    }
}

fn parse_boolean(text: &str) -> Option<bool> {
    match text {
        "true" | "1" => Some(true),
        "false" | "0" => Some(false),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use oxrdf::{Literal, NamedNodeRef};
    use proptest::prelude::*;
    use std::cmp::Ordering;

    fn typed(text: &str, datatype: NamedNodeRef<'_>) -> Literal {
        Literal::new_typed_literal(text, datatype)
    }

    fn class_of(literal: &Literal) -> ValueClass {
        ValueKey::of(literal.as_ref()).0
    }

    #[test]
    fn only_valid_literals_have_the_class_of_their_datatype() {
        use ValueClass::{Boolean, Date, LanguageText, Number, Other, Text, Time};
        for (text, datatype, class) in [
            ("true", xsd::BOOLEAN, Boolean),
            ("TRUE", xsd::BOOLEAN, Other),
            ("-01", xsd::INTEGER, Number),
            ("1.0", xsd::INTEGER, Other),
            (" 1", xsd::INTEGER, Other),
            ("", xsd::INTEGER, Other),
            ("+", xsd::INTEGER, Other),
            ("-129", xsd::BYTE, Other),
            ("-128", xsd::BYTE, Number),
            ("18446744073709551616", xsd::UNSIGNED_LONG, Other),
            ("-1", xsd::NON_NEGATIVE_INTEGER, Other),
            ("-0", xsd::NON_NEGATIVE_INTEGER, Number),
            (&"9".repeat(400), xsd::POSITIVE_INTEGER, Number),
            (&"9".repeat(400), xsd::NEGATIVE_INTEGER, Other),
            (".5", xsd::DECIMAL, Number),
            ("5.", xsd::DECIMAL, Number),
            (".", xsd::DECIMAL, Other),
            ("1e3", xsd::DECIMAL, Other),
            ("1e3", xsd::DOUBLE, Number),
            ("+INF", xsd::DOUBLE, Number),
            ("infinity", xsd::DOUBLE, Other),
            ("NaN", xsd::FLOAT, Number),
            ("2024-02-29", xsd::DATE, Date),
            ("2023-02-29", xsd::DATE, Other),
            ("2024-02-29T24:00:00Z", xsd::DATE_TIME, Time),
            ("2024-02-29", xsd::DATE_TIME, Other),
            ("12:00:00", xsd::TIME, Other),
            ("text", xsd::STRING, Text),
        ] {
            assert_eq!(class_of(&typed(text, datatype)), class, "{text} {datatype}");
        }
        let english = Literal::new_language_tagged_literal_unchecked("text", "en");
        assert_eq!(class_of(&english), LanguageText);
    }

    #[test]
    fn values_are_in_order() {
        let numbers = ["-INF", "-1e300", "-2", "-1.5", "-1e-300", "0", "1e-300", "1", "INF", "NaN"]
            .map(|text| typed(text, xsd::DOUBLE));
        let times = [
            "-400000-01-01T00:00:00Z",
            "0001-01-01T00:00:00Z",
            "1969-12-31T23:59:59.9999995Z",
            "1970-01-01T00:00:00",
            "2024-01-01T00:00:00+01:00",
            "2024-01-01T00:00:00Z",
            "2024-01-01T00:00:00.000001Z",
            "400000-01-01T00:00:00Z",
        ]
        .map(|text| typed(text, xsd::DATE_TIME));
        let long = "x".repeat(MAX_TEXT_BYTES - 1);
        let texts = ["", "\0", "\0\0", "\0a", "\u{1}", "a", "a\0", "a\u{1}", "é", "𝄞"];
        let texts = texts.map(|text| typed(text, xsd::STRING));
        // A key that ended with a character would have the last of them first.
        let cut = ["", "a", "é"].map(|end| typed(&format!("{long}{end}"), xsd::STRING));
        for values in [&numbers[..], &times, &texts, &cut] {
            let keys: Vec<_> = values.iter().map(|value| ValueKey::of(value.as_ref()).1).collect();
            assert!(keys.is_sorted_by(|one, other| one < other), "{values:?}: {keys:?}");
        }
    }

    #[test]
    fn equal_values_have_equal_keys() {
        let date = typed("2024-01-01+02:00", xsd::DATE);
        let time = typed("2023-12-31T22:00:00.0000001Z", xsd::DATE_TIME);
        let numbers = [
            typed("0", xsd::INTEGER),
            typed("-0.0", xsd::DECIMAL),
            typed("-0", xsd::DOUBLE),
            typed("0e5", xsd::FLOAT),
        ];
        for (one, other) in [
            (&date, &time),
            (&numbers[0], &numbers[1]),
            (&numbers[0], &numbers[2]),
            (&numbers[0], &numbers[3]),
        ] {
            assert_eq!(ValueKey::of(one.as_ref()).1, ValueKey::of(other.as_ref()).1);
        }
    }

    #[test]
    fn only_keys_that_say_the_value_are_exact() {
        for (text, datatype, is_exact) in [
            ("123456789012345", xsd::INTEGER, true),
            ("9007199254740993", xsd::INTEGER, false),
            ("-1000000000000000000000", xsd::INTEGER, true),
            ("0.300000000000000", xsd::DECIMAL, true),
            ("0.30000000000000004", xsd::DOUBLE, false),
            ("00.10", xsd::DECIMAL, true),
            ("-0.0", xsd::DOUBLE, true),
            ("1.5e300", xsd::DOUBLE, false),
            ("1E-301", xsd::DOUBLE, false),
            ("1e-400", xsd::DOUBLE, false),
            ("INF", xsd::DOUBLE, false),
            ("NaN", xsd::FLOAT, false),
            ("0.5", xsd::FLOAT, true),
            ("0.1", xsd::FLOAT, false),
            ("16777217", xsd::FLOAT, false),
            ("2024-01-01T00:00:00.123456000Z", xsd::DATE_TIME, true),
            ("2024-01-01T00:00:00.1234560001+01:00", xsd::DATE_TIME, false),
            ("2024-01-01T24:00:00", xsd::DATE_TIME, true),
            ("-0044-01-01T00:00:00Z", xsd::DATE_TIME, false),
            ("400000-01-01T00:00:00Z", xsd::DATE_TIME, false),
            ("2024-02-29+14:00", xsd::DATE, true),
            ("short", xsd::STRING, true),
            ("a text of at least 24 bytes", xsd::STRING, false),
            ("true", xsd::BOOLEAN, true),
        ] {
            let literal = typed(text, datatype);
            let key = is_exact.then(|| ValueKey::of(literal.as_ref()).1);
            assert_eq!(ValueKey::of_exact(literal.as_ref()), key, "{text} {datatype}");
        }
    }

    proptest! {
        #[test]
        fn different_numbers_with_exact_keys_have_different_keys(
            digits in 1_u64..999_999_999_999_999,
            step in 1_u64..3,
            exponent in -314_i32..285,
        ) {
            let number = |digits: u64| typed(&format!("{digits}E{exponent}"), xsd::DOUBLE);
            let [one, other] = [number(digits), number(digits.saturating_sub(step))];
            let keys = [&one, &other].map(|literal| ValueKey::of_exact(literal.as_ref()));
            if let [Some(one), Some(other)] = keys {
                prop_assert!(one > other);
            }
        }
    }

    fn texts() -> impl Strategy<Value = String> {
        let part = prop::sample::select(vec!["\0", "a", "é", "𝄞", "0123456789", "0123456789"]);
        prop::collection::vec(part, 0..6).prop_map(|parts| parts.concat())
    }

    proptest! {
        #[test]
        fn encoded_keys_of_entries_compare_as_the_keys_do(
            texts in prop::collection::vec(texts(), 2),
            numbers in prop::collection::vec(any::<f64>(), 2),
            subjects in prop::collection::vec(0_u64..1 << 56, 2),
        ) {
            let text = |at: usize| typed(&texts[at], xsd::STRING);
            let number = |at: usize| Literal::from(numbers[at]);
            for [one, other] in [[text(0), text(1)], [number(0), number(1)]] {
                let encode = |literal: &Literal, subject| {
                    let (class, key) = ValueKey::of(literal.as_ref());
                    let mut bytes = Vec::new();
                    key.encode(class, &mut bytes);
                    let mut bound = bytes.clone();
                    crate::varint::write_number(&mut bytes, subject);
                    bound.push(ESCAPED_ZERO);
                    assert!(bytes < bound);
                    let mut input = Input::new(&bytes);
                    assert_eq!(ValueKey::decode(class, &mut input), Some(key));
                    assert_eq!(input.read_number(), Some(subject));
                    (key, subject, bytes)
                };
                let (one, other) = (encode(&one, subjects[0]), encode(&other, subjects[1]));
                let order = one.0.cmp(&other.0).then(one.1.cmp(&other.1));
                prop_assert_eq!(one.2.cmp(&other.2), order);
            }
            let order = ValueKey::of(text(0).as_ref()).1.cmp(&ValueKey::of(text(1).as_ref()).1);
            prop_assert!(order == Ordering::Equal || order == texts[0].cmp(&texts[1]));
        }
    }
}
