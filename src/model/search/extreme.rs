//! The least or the greatest of many values.
use penstock_rdf::compare::{SortKey, ValueOrder};
use std::cmp::Ordering;

/// The least or the greatest value so far.
#[derive(Debug)]
pub(super) struct Extreme {
    key: SortKey,
    /// About the number.
    number: f64,
    text: Box<str>,
}

impl Extreme {
    /// Keeps a value, as the view shows it, if it compares as `wanted` with the one that is kept. Of equal values, the one
    /// with the first text by code point stays, so the result does not depend on the order in which they come. What is
    /// neither a number nor a date or time does not count.
    pub(super) fn update(kept: &mut Option<Self>, order: ValueOrder, text: &str, wanted: Ordering) {
        let number = if order.is_time() { f64::NAN } else { text.parse().unwrap_or(f64::NAN) };
        // Most values need no exact comparison: rounding changes no order of numbers, and most times are as texts.
        if let Some(kept) = kept {
            let about = if order.is_time() {
                compare_plain_times(text, &kept.text)
            } else {
                number.partial_cmp(&kept.number)
            };
            if about.is_some_and(|about| about.is_ne() && about != wanted) {
                return;
            }
        }
        let key = order.sort_key(text);
        let is_better = |kept: &Self| {
            let compared = key.cmp(&kept.key);
            compared == wanted || compared.is_eq() && *text < *kept.text
        };
        if !matches!(key, SortKey::Text(_)) && kept.as_ref().is_none_or(is_better) {
            *kept = Some(Self { key, number, text: text.into() });
        }
    }

    pub(super) fn text(&self) -> &str {
        &self.text
    }

    pub(super) fn is_number(&self) -> bool {
        matches!(self.key, SortKey::Number(_))
    }
}

/// Compares two times in the form `2024-01-01T00:00:00Z`, or two dates without an offset; `None` for others. What only
/// looks like a time has some order too.
fn compare_plain_times(one: &str, other: &str) -> Option<Ordering> {
    let is_plain = |text: &str| match text.as_bytes() {
        [_, _, _, _, _, _, _, _, _, _, b'T', hour @ .., b'Z'] => {
            text.len() == "2024-01-01T00:00:00Z".len() && !hour.starts_with(b"24")
        }
        bytes => bytes.len() == "2024-01-01".len(),
    };
    (one.len() == other.len() && is_plain(one) && is_plain(other)).then(|| one.cmp(other))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn find(order: ValueOrder, texts: &[&str], wanted: Ordering) -> Option<String> {
        let mut kept = None;
        for text in texts {
            Extreme::update(&mut kept, order, text, wanted);
        }
        kept.map(|kept| kept.text().to_owned())
    }

    proptest! {
        #[test]
        fn every_order_of_numbers_has_the_same_extremes(mut texts in Just(vec![
            "9007199254740993", "9007199254740992", "9007199254740992.0", "-1", "-1.0", "-1e400", "-1e401", "1e400", "inf", "NaN", "x",
        ]).prop_shuffle()) {
            let ends = |texts: &[&str]| {
                [Ordering::Less, Ordering::Greater].map(|wanted| find(ValueOrder::Number, texts, wanted).unwrap())
            };
            prop_assert_eq!(ends(&texts), ["-1e401", "1e400"]);
            texts.retain(|text| !text.contains('e'));
            prop_assert_eq!(ends(&texts), ["-1", "9007199254740993"]);
        }

        #[test]
        fn every_order_of_times_has_the_same_extremes(texts in Just(vec![
            "2024-01-01T00:30:00Z", "2024-01-01T01:00:00+01:00", "2024-01-01T00:00:00Z", "2024-01-01T24:00:00Z",
            "2024-01-02T00:00:00Z", "2024-01-01", "0000-00-00T00:00:00Z", "zzzz-01-01T00:00:00Z", "2024-01-0x", "soon",
            "1234567890123-01-01Z",
        ]).prop_shuffle()) {
            let ends = |texts: &[&str]| [Ordering::Less, Ordering::Greater]
                .map(|wanted| find(ValueOrder::DateTime, texts, wanted).unwrap());
            prop_assert_eq!(ends(&texts), ["2024-01-01", "1234567890123-01-01Z"]);
            let texts: Vec<&str> = texts.into_iter().filter(|text| text.len() == 20 && text.starts_with('2')).collect();
            prop_assert_eq!(ends(&texts), ["2024-01-01T00:00:00Z", "2024-01-01T24:00:00Z"]);
        }
    }
}
