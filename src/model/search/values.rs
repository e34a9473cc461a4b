//! Which values in the index can pass a test, as ranges.
//!
//! A field shows literals of every datatype, and numbers and booleans not always as they are stored (`+5` as `5`). So the
//! ranges have each literal that the field could show with a text that passes. They may have others.
use super::filter::ValueTest;
use super::matching::ValueCheck;
use crate::mapping::{Codes, Detail, Property, Value, code_text};
use oxrdf::vocab::xsd;
use oxrdf::{Literal as Rdf, NamedNodeRef, Term};
use penstock_rdf::compare::{SortKey, ValueOrder};
use penstock_store::{ValueClass, ValueKey, ValueRange};

/// The maximum number of ranges that are read for one test. With more, the index is not used.
const MAX_RANGES: usize = 1_000;

/// The classes of values in the index, without those of [`related_class`].
const CLASSES: [ValueClass; 5] = [
    ValueClass::Boolean,
    ValueClass::Number,
    ValueClass::Time,
    ValueClass::Text,
    ValueClass::Other,
];

/// A datatype whose values are ordered by their texts, as those of every datatype that the index does not know.
const OTHER_DATATYPE: NamedNodeRef<'static> = xsd::ANY_URI;

/// Returns the ranges that have every value of a field with a text that passes the test. `None` if the values are no
/// literals, or only a look at each of them tells.
pub(super) fn find_ranges(property: &Property, test: &ValueTest) -> Option<Vec<ValueRange>> {
    if property.is_ordered || !matches!(property.value, Value::Literal(_)) {
        return None;
    }
    let order = property.order();
    let mut ranges = list_shown_ranges(order, test)?;
    if property.value.language_map().is_some() {
        ranges.retain(|range| range.class() == ValueClass::Text);
    }
    if let Some(list) = property.codes.as_deref().and_then(Codes::list) {
        let check = ValueCheck::new(test, order);
        for (code, term) in list.iter() {
            if let Term::Literal(meaning) = term
                && check.matches_text(code_text(code), order)
            {
                ranges.push(ValueRange::equal_to(meaning.as_ref()));
            }
        }
    }
    (ranges.len() <= MAX_RANGES).then(|| with_related(ranges))
}

/// Returns the ranges that have each literal that is shown as itself, with a text that passes.
fn list_shown_ranges(order: ValueOrder, test: &ValueTest) -> Option<Vec<ValueRange>> {
    let mut ranges = Vec::new();
    match test {
        ValueTest::In(wanted) if wanted.len() > MAX_RANGES => return None,
        ValueTest::In(wanted) => {
            for text in wanted {
                if matches!(order.sort_key(text), SortKey::Text(_)) {
                    add_literals_with_text(text, &mut ranges);
                } else {
                    ranges.push(ValueRange::equal_to(build_literal(order, text)?.as_ref()));
                    add_lenient_ranges(order, &mut ranges);
                }
            }
        }
        ValueTest::Before(limit) | ValueTest::AtMost(limit) => {
            ranges.push(ValueRange::at_most(build_literal(order, limit)?.as_ref()));
            add_lenient_ranges(order, &mut ranges);
        }
        ValueTest::After(limit) | ValueTest::AtLeast(limit) => {
            ranges.push(ValueRange::at_least(build_literal(order, limit)?.as_ref()));
            add_lenient_ranges(order, &mut ranges);
        }
        ValueTest::StartsWith(prefix) => {
            ranges.push(ValueRange::starting_with(prefix));
            // No text that begins so is after as many of the last character as a key has bytes.
            let last = format!("{prefix}{}", char::MAX.to_string().repeat(24));
            ranges.extend(range_between(OTHER_DATATYPE, prefix, &last));
            for class in [ValueClass::Boolean, ValueClass::Number, ValueClass::Time] {
                ranges.push(ValueRange::of_class(class));
            }
        }
        ValueTest::Contains(_) | ValueTest::ContainsAnyCase(_) | ValueTest::Exists => return None,
    }
    Some(ranges)
}

/// Adds the literals besides numbers or times whose texts can be those of numbers or times.
fn add_lenient_ranges(order: ValueOrder, ranges: &mut Vec<ValueRange>) {
    // Their texts begin with a digit, a sign or a point.
    let texts = [xsd::STRING, OTHER_DATATYPE].map(|datatype| range_between(datatype, "+", ":"));
    let booleans = (!order.is_time()).then(|| ValueRange::of_class(ValueClass::Boolean));
    for range in texts.into_iter().chain([booleans]).flatten() {
        if !ranges.contains(&range) {
            ranges.push(range);
        }
    }
}

/// Returns the range from one text of a datatype to another.
fn range_between(datatype: NamedNodeRef<'_>, first: &str, last: &str) -> Option<ValueRange> {
    let [first, last] = [first, last].map(|text| Rdf::new_typed_literal(text, datatype));
    ValueRange::at_least(first.as_ref()).intersect(&ValueRange::at_most(last.as_ref()))
}

/// Adds the literals of any datatype that are shown as this text.
fn add_literals_with_text(text: &str, ranges: &mut Vec<ValueRange>) {
    let datatypes =
        [xsd::STRING, OTHER_DATATYPE, xsd::BOOLEAN, xsd::DOUBLE, xsd::DATE_TIME, xsd::DATE];
    let begin = ranges.len();
    for datatype in datatypes {
        let range = ValueRange::equal_to(Rdf::new_typed_literal(text, datatype).as_ref());
        if !ranges.iter().skip(begin).any(|known| *known == range) {
            ranges.push(range);
        }
    }
}

/// Returns a number or a time of this text; `None` if it is neither.
fn build_literal(order: ValueOrder, text: &str) -> Option<Rdf> {
    let class = match order {
        ValueOrder::Number | ValueOrder::Scalar => ValueClass::Number,
        ValueOrder::Date | ValueOrder::DateTime => ValueClass::Time,
        ValueOrder::Text => return None,
    };
    list_literals_of(class, text).next()
}

/// Returns the class in whose order the values of a field are, except for values of other datatypes than its own. `None` if
/// the order of no class is that of what the field shows.
pub(super) fn find_ordered_class(property: &Property) -> Option<ValueClass> {
    if property.codes.is_some() || property.value.shape().is_some() {
        return None;
    }
    let value = &property.value;
    match (property.order(), value.kind().datatypes, value.detail()) {
        (ValueOrder::Number, ..) => Some(ValueClass::Number),
        (ValueOrder::Date | ValueOrder::DateTime, ..) => Some(ValueClass::Time),
        (ValueOrder::Text, [xsd::STRING], _) | (ValueOrder::Text, _, Detail::Language(_)) => {
            Some(ValueClass::Text)
        }
        (ValueOrder::Text, _, Detail::Datatype(_)) => Some(ValueClass::Other),
        (ValueOrder::Text | ValueOrder::Scalar, ..) => None,
    }
}

/// Returns the ranges of all values that are not in the order of this class: those of other classes, and infinite ones,
/// whose texts are no numbers.
pub(super) fn list_unordered_ranges(class: ValueClass) -> Vec<ValueRange> {
    let others = CLASSES.iter().filter(|other| **other != class);
    let mut ranges: Vec<_> = others.map(|other| ValueRange::of_class(*other)).collect();
    if class == ValueClass::Number {
        let infinity = |text| Rdf::new_typed_literal(text, xsd::DOUBLE);
        ranges.push(ValueRange::at_least(infinity("INF").as_ref()));
        ranges.push(ValueRange::at_most(infinity("-INF").as_ref()));
    }
    with_related(ranges)
}

/// Returns ranges with what a field shows beside them in the same order: dates beside times, and texts with a language beside
/// strings.
pub(super) fn with_related(mut ranges: Vec<ValueRange>) -> Vec<ValueRange> {
    let related =
        ranges.iter().filter_map(|range| Some(range.in_class(related_class(range.class())?)));
    let related: Vec<_> = related.collect();
    ranges.extend(related);
    ranges
}

/// Returns the class whose values have the same keys as those of a class, and which a field shows in one order with them.
fn related_class(class: ValueClass) -> Option<ValueClass> {
    match class {
        ValueClass::Time => Some(ValueClass::Date),
        ValueClass::Date => Some(ValueClass::Time),
        ValueClass::Text => Some(ValueClass::LanguageText),
        ValueClass::LanguageText => Some(ValueClass::Text),
        ValueClass::Boolean | ValueClass::Number | ValueClass::Other => None,
    }
}

/// Returns the literals of this class, or the one that is related to it, whose text is a value as the view shows it. Numbers
/// can be stored with two precisions.
pub(super) fn list_literals_of(class: ValueClass, text: &str) -> impl Iterator<Item = Rdf> {
    let datatypes: &[_] = match class {
        ValueClass::Boolean => &[xsd::BOOLEAN],
        ValueClass::Number => &[xsd::DOUBLE, xsd::FLOAT],
        ValueClass::Time | ValueClass::Date => &[xsd::DATE_TIME, xsd::DATE],
        ValueClass::Text | ValueClass::LanguageText => &[xsd::STRING],
        ValueClass::Other => &[OTHER_DATATYPE],
    };
    let literals = datatypes.iter().map(move |datatype| Rdf::new_typed_literal(text, *datatype));
    literals.filter(move |literal| {
        let (found, _) = ValueKey::of(literal.as_ref());
        found == class || related_class(found) == Some(class)
    })
}
