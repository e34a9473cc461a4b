//! Ranges of values, as intervals of the keys in the index.
use super::number::Number;
use super::{ESCAPED_ZERO, MAX_TEXT_BYTES, Remainder, ValueClass, ValueKey, escape_text};
use oxrdf::LiteralRef;

/// A range of values of one class. It may select more literals than it says (long texts count by a prefix, numbers by their
/// nearest double, moments by microsecond): whoever reads checks each literal. It never leaves out one.
///
/// Values of [`ValueClass::Other`] are compared by their lexical forms, also if their datatypes have an order of their own,
/// such as that of durations.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ValueRange {
    class: ValueClass,
    /// In ascending order, without overlaps; not empty.
    intervals: Vec<Interval>,
    /// What the entries have in addition to their keys. That of a text that may be cut is of the only text that is meant.
    remainder: Option<Remainder>,
}

/// Encoded keys from one on up to another, exclusive; `None` is the end of the class.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Interval {
    pub(crate) from: Vec<u8>,
    pub(crate) to: Option<Vec<u8>>,
}

impl Interval {
    fn all() -> Self {
        Self { from: Vec::new(), to: None }
    }

    /// Returns the interval from one key to another, both included.
    fn between(class: ValueClass, first: &ValueKey, last: &ValueKey) -> Self {
        Self { from: encoded(class, first), to: Some(past(class, last)) }
    }

    fn intersect(&self, other: &Self) -> Option<Self> {
        let from = self.from.clone().max(other.from.clone());
        let to = match (&self.to, &other.to) {
            (Some(one), Some(other)) => Some(one.min(other)),
            (one, other) => one.as_ref().or(other.as_ref()),
        };
        if to.is_some_and(|to| *to <= from) {
            return None;
        }
        Some(Self { from, to: to.cloned() })
    }

    /// Returns whether it ends before another one does.
    fn ends_before(&self, other: &Self) -> bool {
        match (&self.to, &other.to) {
            (Some(one), Some(other)) => one < other,
            (one, _) => one.is_some(),
        }
    }
}

fn encoded(class: ValueClass, key: &ValueKey) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(MAX_TEXT_BYTES + 1);
    key.encode(class, &mut bytes);
    bytes
}

/// Returns what follows all entries of a key.
fn past(class: ValueClass, key: &ValueKey) -> Vec<u8> {
    let mut bytes = encoded(class, key);
    bytes.push(ESCAPED_ZERO);
    bytes
}

impl ValueRange {
    /// Creates the range of intervals in any order.
    fn new(class: ValueClass, mut intervals: Vec<Interval>) -> Self {
        // Stable, because that is linear for parts that are sorted already.
        intervals.sort();
        let mut merged: Vec<Interval> = Vec::with_capacity(intervals.len());
        for interval in intervals {
            match merged.last_mut() {
                Some(last) if last.to.as_ref().is_none_or(|to| *to >= interval.from) => {
                    last.to = match (last.to.take(), interval.to) {
                        (Some(one), Some(other)) => Some(one.max(other)),
                        _ => None,
                    };
                }
                _ => merged.push(interval),
            }
        }
        Self { class, intervals: merged, remainder: None }
    }

    /// Returns all values of a class.
    pub fn of_class(class: ValueClass) -> Self {
        Self::new(class, vec![Interval::all()])
    }

    /// Returns the values that may be equal to this literal: in value, as `1`, `1.0` and `"01"^^xsd:integer` are.
    pub fn equal_to(literal: LiteralRef<'_>) -> Self {
        if let Some(number) = number_of(literal) {
            return Self::new(ValueClass::Number, list_number_keys(number));
        }
        let mut range = Self::with_key_of(literal);
        // Moments can be equal though only one of them is in the usual form.
        range.remainder = range.remainder.filter(|_| range.class.is_text());
        range
    }

    /// Returns the values of a class with a key.
    pub fn of_key(class: ValueClass, key: &ValueKey) -> Self {
        Self::new(class, vec![Interval::between(class, key, key)])
    }

    /// Returns the numbers or moments that are not what their key says.
    #[must_use]
    pub fn rounded_only(self) -> Self {
        Self { remainder: Some(Remainder::Rounded), ..self }
    }

    /// Returns what comes after a key, or before it if `reverse`; `None` if that is nothing.
    pub fn beyond(&self, key: &ValueKey, reverse: bool) -> Option<Self> {
        let interval = if reverse {
            Interval { from: Vec::new(), to: Some(encoded(self.class, key)) }
        } else {
            Interval { from: past(self.class, key), to: None }
        };
        self.intersect(&Self::new(self.class, vec![interval]))
    }

    /// Returns the values that may be the same literal.
    pub(crate) fn with_key_of(literal: LiteralRef<'_>) -> Self {
        let (class, key) = ValueKey::of(literal);
        let remainder = Remainder::of(literal, class, &key);
        Self { class, intervals: vec![Interval::between(class, &key, &key)], remainder }
    }

    /// Returns the strings that begin with this one.
    pub fn starting_with(prefix: &str) -> Self {
        let prefix = prefix.as_bytes();
        let mut from = Vec::new();
        escape_text(prefix.get(..MAX_TEXT_BYTES).unwrap_or(prefix), &mut from);
        let to = successor(&from);
        Self::new(ValueClass::Text, vec![Interval { from, to }])
    }

    /// Returns the values of the class of `at` from that value on, itself included.
    pub fn at_least(at: LiteralRef<'_>) -> Self {
        let (class, key) = ValueKey::of(at);
        let mut intervals = number_of(at).map_or_else(Vec::new, number_intervals);
        intervals.push(Interval { from: encoded(class, &key), to: None });
        Self::new(class, intervals)
    }

    /// Returns the values of the class of `at` up to that value, itself included.
    pub fn at_most(at: LiteralRef<'_>) -> Self {
        let (class, key) = ValueKey::of(at);
        let mut intervals = number_of(at).map_or_else(Vec::new, number_intervals);
        intervals.push(Interval { from: Vec::new(), to: Some(past(class, &key)) });
        Self::new(class, intervals)
    }

    /// Returns what is in both; `None` if they are of different classes or have nothing in common.
    pub fn intersect(&self, other: &Self) -> Option<Self> {
        let is_other_value =
            self.remainder.zip(other.remainder).is_some_and(|(one, other)| one != other);
        if self.class != other.class || is_other_value {
            return None;
        }
        let mut ones = self.intervals.iter().peekable();
        let mut others = other.intervals.iter().peekable();
        let mut intervals = Vec::new();
        while let (Some(one), Some(other)) = (ones.peek(), others.peek()) {
            intervals.extend(one.intersect(other));
            // What ends first has nothing in common with what follows the other one.
            if one.ends_before(other) {
                ones.next();
            } else {
                others.next();
            }
        }
        let remainder = self.remainder.or(other.remainder);
        (!intervals.is_empty()).then_some(Self { class: self.class, intervals, remainder })
    }

    /// Returns what is in one of both; `None` if they are of different classes.
    pub fn union(&self, other: &Self) -> Option<Self> {
        let intervals = || self.intervals.iter().chain(&other.intervals).cloned().collect();
        (self.class == other.class).then(|| Self::new(self.class, intervals()))
    }

    /// Returns the values of another class with the same keys: times have those of dates, and texts with a language those of
    /// strings.
    #[must_use]
    pub fn in_class(&self, class: ValueClass) -> Self {
        Self { class, ..self.clone() }
    }

    /// Returns the class of the values.
    pub fn class(&self) -> ValueClass {
        self.class
    }

    pub(crate) fn intervals(&self) -> &[Interval] {
        &self.intervals
    }

    pub(crate) fn remainder(&self) -> Option<Remainder> {
        self.remainder
    }
}

fn number_of(literal: LiteralRef<'_>) -> Option<Number> {
    Number::parse(literal.value(), literal.datatype())
}

fn number_intervals(number: Number) -> Vec<Interval> {
    let ranges = number.equal_ranges().into_iter().map(|(first, last)| {
        let [first, last] = [first, last].map(ValueKey::of_number);
        Interval::between(ValueClass::Number, &first, &last)
    });
    ranges.collect()
}

/// Returns the numbers that may be equal to one as intervals of one key each, which the filters of runs leave out. A float
/// equals too many for that.
fn list_number_keys(number: Number) -> Vec<Interval> {
    if matches!(number, Number::Float(_)) {
        return number_intervals(number);
    }
    let numbers = number.equal_ranges().into_iter().flat_map(|(first, last)| {
        std::iter::successors(Some(first), move |at| (*at < last).then(|| at.next_up()))
    });
    let keys = numbers.map(ValueKey::of_number);
    keys.map(|key| Interval::between(ValueClass::Number, &key, &key)).collect()
}

/// Returns the first bytes after all that begin with these; `None` if there are none.
fn successor(bytes: &[u8]) -> Option<Vec<u8>> {
    let mut next = bytes.to_vec();
    while let Some(last) = next.pop() {
        if last < u8::MAX {
            next.push(last + 1);
            return Some(next);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use oxrdf::vocab::xsd;
    use oxrdf::{Literal, NamedNodeRef};
    use proptest::prelude::*;

    impl ValueRange {
        /// Returns whether the range has the literal.
        fn contains(&self, literal: &Literal) -> bool {
            let (class, key) = ValueKey::of(literal.as_ref());
            let bytes = encoded(class, &key);
            let remainder = Remainder::of(literal.as_ref(), class, &key);
            class == self.class
                && (self.remainder.is_none() || self.remainder == remainder)
                && self.intervals.iter().any(|interval| {
                    interval.from <= bytes && interval.to.as_ref().is_none_or(|to| *to > bytes)
                })
        }
    }

    fn typed(text: &str, datatype: NamedNodeRef<'_>) -> Literal {
        Literal::new_typed_literal(text, datatype)
    }

    fn text(text: &str) -> Literal {
        typed(text, xsd::STRING)
    }

    #[test]
    fn texts_are_selected_by_their_beginning() {
        let range = ValueRange::starting_with("aé");
        for inside in ["aé", "aé ", "aéz", "aé𝄞"] {
            assert!(range.contains(&text(inside)), "{inside}");
        }
        for outside in ["", "a", "aè", "aê", "b", "A"] {
            assert!(!range.contains(&text(outside)), "{outside}");
        }
        assert!(ValueRange::starting_with("").contains(&text("")));
        assert!(ValueRange::starting_with("a\0").contains(&text("a\0b")));
        assert!(!ValueRange::starting_with("a\0").contains(&text("a")));
        let long = "a".repeat(100);
        assert!(ValueRange::starting_with(&long).contains(&text(&format!("{long}b"))));
    }

    #[test]
    fn long_texts_are_told_apart_by_their_checksums() {
        let long = "a".repeat(MAX_TEXT_BYTES);
        let [one, other] = ["1", "2"].map(|end| text(&format!("{long}{end}")));
        let equal = ValueRange::equal_to(one.as_ref());
        assert!(equal.contains(&one) && !equal.contains(&other) && !equal.contains(&text(&long)));
        let from = ValueRange::at_least(other.as_ref());
        assert!(from.contains(&one) && from.contains(&other));
        let both = equal.intersect(&from).unwrap();
        assert!(both.contains(&one) && !both.contains(&other));
        assert_eq!(equal.intersect(&ValueRange::equal_to(other.as_ref())), None);
    }

    #[test]
    fn numbers_are_equal_after_promotion() {
        let equal = |one: (&str, NamedNodeRef<'_>), other: (&str, NamedNodeRef<'_>)| {
            let (one, other) = (typed(one.0, one.1), typed(other.0, other.1));
            let [a, b] = [(&one, &other), (&other, &one)]
                .map(|(one, other)| ValueRange::equal_to(one.as_ref()).contains(other));
            assert_eq!(a, b, "{one} {other}");
            a
        };
        assert!(equal(("1", xsd::INTEGER), ("1.0", xsd::DECIMAL)));
        assert!(equal(("01", xsd::BYTE), ("1e0", xsd::FLOAT)));
        assert!(equal(("0.1", xsd::DECIMAL), ("0.1", xsd::FLOAT)));
        assert!(equal(("0.1", xsd::DOUBLE), ("0.1", xsd::FLOAT)));
        assert!(equal(("16777217", xsd::INTEGER), ("16777216", xsd::FLOAT)));
        assert!(equal(("9007199254740993", xsd::INTEGER), ("9007199254740992", xsd::DOUBLE)));
        assert!(equal(("NaN", xsd::DOUBLE), ("NaN", xsd::FLOAT)));
        assert!(!equal(("1", xsd::INTEGER), ("1.1", xsd::DECIMAL)));
        assert!(!equal(("123456789012", xsd::INTEGER), ("123456789013", xsd::INTEGER)));
    }

    #[test]
    fn each_number_that_may_be_equal_is_an_interval_of_one_key() {
        let texts = ["0", "1", "0.1", "-16777217", "1e300", "INF", "NaN"];
        for text in texts {
            let range = ValueRange::equal_to(typed(text, xsd::DOUBLE).as_ref());
            for Interval { from, to } in &range.intervals {
                let past = [from.as_slice(), &[ESCAPED_ZERO]].concat();
                assert_eq!(to.as_ref(), Some(&past), "{text}");
            }
        }
    }

    #[test]
    fn a_range_selects_the_same_keys_in_another_class() {
        let time = |text: &str| typed(text, xsd::DATE_TIME);
        let date = |text: &str| typed(text, xsd::DATE);
        let times = ValueRange::at_least(time("2024-01-01T12:00:00Z").as_ref());
        assert!(times.contains(&time("2024-01-02T00:00:00Z")));
        assert!(!times.contains(&date("2024-01-02")));
        let dates = times.in_class(ValueClass::Date);
        assert!(dates.contains(&date("2024-01-02")) && dates.contains(&date("2024-01-01-12:00")));
        assert!(!dates.contains(&date("2024-01-01")));
        assert!(!dates.contains(&time("2024-01-02T00:00:00Z")));
        let long = "a".repeat(MAX_TEXT_BYTES + 1);
        let english = Literal::new_language_tagged_literal_unchecked(&long, "en");
        let equal = ValueRange::equal_to(text(&long).as_ref());
        assert!(!equal.contains(&english));
        assert!(equal.in_class(ValueClass::LanguageText).contains(&english));
    }

    #[test]
    fn ranges_of_different_classes_have_nothing_in_common() {
        let [one, two] = ["1", "2"].map(|text| typed(text, xsd::INTEGER));
        let most = ValueRange::at_most(one.as_ref());
        assert_eq!(most.intersect(&ValueRange::starting_with("1")), None);
        assert_eq!(most.intersect(&ValueRange::at_least(two.as_ref())), None);
        assert_eq!(most.intersect(&ValueRange::of_class(ValueClass::Number)), Some(most.clone()));
    }

    fn numbers() -> impl Strategy<Value = Literal> {
        let text = prop_oneof![
            (-3_i32..3).prop_map(|number| number.to_string()),
            (-300_i32..300).prop_map(|number| format!("{}", f64::from(number) / 100.0)),
            any::<f32>().prop_map(|number| format!("{number}")),
            any::<i64>().prop_map(|number| number.to_string()),
        ];
        let datatype =
            prop::sample::select(vec![xsd::INTEGER, xsd::DECIMAL, xsd::DOUBLE, xsd::FLOAT]);
        (text, datatype).prop_map(|(text, datatype)| typed(&text, datatype))
    }

    /// Returns the range of the numbers that are equal to some, or at most one of them.
    fn united(equal: &[Literal], most: Option<&Literal>) -> Option<ValueRange> {
        let equal = equal.iter().map(|literal| ValueRange::equal_to(literal.as_ref()));
        let ranges = equal.chain(most.map(|literal| ValueRange::at_most(literal.as_ref())));
        let numbers = ranges.filter(|range| range.class() == ValueClass::Number);
        numbers.reduce(|one, other| one.union(&other).unwrap())
    }

    /// Compares as SPARQL does.
    fn compare(one: &Literal, other: &Literal) -> Option<std::cmp::Ordering> {
        let is = |datatype| one.datatype() == datatype || other.datatype() == datatype;
        let double = |literal: &Literal| -> Option<f64> {
            let is_float = literal.datatype() == xsd::FLOAT;
            let text = literal.value();
            if is_float { text.parse::<f32>().ok().map(f64::from) } else { text.parse().ok() }
        };
        if is(xsd::FLOAT) && !is(xsd::DOUBLE) {
            let float = |literal: &Literal| literal.value().parse::<f32>().ok();
            return float(one)?.partial_cmp(&float(other)?);
        }
        double(one)?.partial_cmp(&double(other)?)
    }

    proptest! {
        #[test]
        fn what_ranges_have_in_common_is_what_both_have(
            lists in prop::collection::vec(prop::collection::vec(numbers(), 1..8), 2),
            most in prop::option::of(numbers()),
            others in prop::collection::vec(numbers(), 8),
        ) {
            let (one, other) = (united(&lists[0], most.as_ref()), united(&lists[1], None));
            let (Some(one), Some(other)) = (one, other) else { return Ok(()) };
            let common = one.intersect(&other);
            prop_assert_eq!(&common, &other.intersect(&one));
            if let Some(common) = &common {
                prop_assert!(common.intervals.is_sorted_by(Interval::ends_before));
            }
            for literal in lists.iter().flatten().chain(&others) {
                let is_common = common.as_ref().is_some_and(|common| common.contains(literal));
                prop_assert_eq!(is_common, one.contains(literal) && other.contains(literal));
            }
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(2_000))]
        #[test]
        fn a_range_leaves_out_no_number(one in numbers(), other in numbers()) {
            if ValueKey::of(one.as_ref()).0 == ValueClass::Number
                && ValueKey::of(other.as_ref()).0 == ValueClass::Number
                && let Some(order) = compare(&one, &other)
            {
                let equal = ValueRange::equal_to(other.as_ref());
                prop_assert!(order.is_ne() || equal.contains(&one));
                prop_assert!(order.is_lt() || ValueRange::at_least(other.as_ref()).contains(&one));
                prop_assert!(order.is_gt() || ValueRange::at_most(other.as_ref()).contains(&one));
            }
        }
    }
}
