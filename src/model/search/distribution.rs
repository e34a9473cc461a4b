//! How the numbers of a field are distributed: how many are in each of some ranges of equal width.
use super::budget::SearchBudget;
use super::errors::invalid_search_error;
use super::fields::{FieldTree, Slots};
use super::filter::Filter;
use crate::resource::Compiled;
use penstock_base::error::GatewayError;
use penstock_store::Read;

/// About how many ranges there are.
const RANGES: f64 = 20.0;
/// The maximum number of ranges. Numbers that need more, or that are too near to each other, are in one.
const MAX_RANGES: usize = 50;
/// The maximum number of values, which are all in memory.
const MAX_VALUES: usize = 500_000;
/// A number that is this near to the begin of a range, in widths of a range, is in it: the quotient of two decimal numbers is
/// not exact.
const TOLERANCE: f64 = 1e-9;
/// The number up to which all ranges are told apart.
const MAX_EXACT_RANGE: u64 = 1 << 52;
/// The power of ten from which numbers are written with an exponent.
const MAX_ZEROS: i32 = 15;

/// The distribution of numbers.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Distribution {
    /// The ranges, without a gap; none without a number.
    pub ranges: Vec<NumberRange>,
    /// The number of objects without a number.
    pub without: u64,
}

/// A range of numbers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NumberRange {
    /// The least number in it.
    pub begin: String,
    /// The least number above it.
    pub end: String,
    /// How many values are in it.
    pub count: u64,
}

/// Counts the numbers of a field by ranges, in the objects of a Business Object that pass the filter. Blocking.
///
/// # Errors
/// `ErrorClass::Invalid` if the filter or the field does not fit the Business Object, or if this would examine more objects
/// than the bounds allow; the errors of the store.
pub fn count_distribution(
    read: &dyn Read,
    business_object: &Compiled,
    filter: Option<&Filter>,
    field: &str,
    bounds: &SearchBudget,
) -> Result<Distribution, GatewayError> {
    let shape = &business_object.mapping.root;
    let mut slots = Slots::default();
    let (slot, _) = slots.add(shape, field)?;
    let tree = FieldTree::build(shape, &slots)?;
    let (mut numbers, mut without) = (Vec::<f64>::new(), 0);
    tree.for_each_object(read, business_object, filter, bounds, &mut |object, _| {
        let before = numbers.len();
        tree.visit_texts(object, slot, &mut |text| {
            let number = text.parse::<f64>().ok();
            numbers.extend(number.filter(|number| number.is_finite()));
        });
        if numbers.len() == before {
            without += 1;
        }
        if numbers.len() > MAX_VALUES {
            let error = format!("there are more than {MAX_VALUES} values; filter first");
            return Err(invalid_search_error(error));
        }
        Ok(())
    })?;
    Ok(Distribution { ranges: count_ranges(&numbers), without })
}

fn count_ranges(numbers: &[f64]) -> Vec<NumberRange> {
    let least = numbers.iter().copied().fold(f64::INFINITY, f64::min);
    let greatest = numbers.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    if numbers.is_empty() {
        return Vec::new();
    }
    let width = Width::for_range(greatest - least);
    let (first, last) = (width.find_range(least), width.find_range(greatest));
    let count = usize::try_from(last.saturating_sub(first)).unwrap_or(usize::MAX);
    if count >= MAX_RANGES || first.unsigned_abs().max(last.unsigned_abs()) > MAX_EXACT_RANGE {
        let above = greatest.next_up();
        let above = if above.is_finite() { above } else { greatest };
        let (begin, end) = (format!("{least:e}"), format!("{above:e}"));
        return vec![NumberRange { begin, end, count: numbers.len() as u64 }];
    }
    let mut counts = vec![0; count + 1];
    for number in numbers {
        let place = usize::try_from(width.find_range(*number).saturating_sub(first));
        if let Some(count) = place.ok().and_then(|place| counts.get_mut(place)) {
            *count += 1;
        }
    }
    let ranges = (first..=last).zip(counts);
    let ranges = ranges.map(|(range, count)| NumberRange {
        begin: width.begin_of(range),
        end: width.begin_of(range + 1),
        count,
    });
    ranges.collect()
}

/// The width of a range: 1, 2 or 5 times a power of ten.
struct Width {
    digit: i64,
    power: i32,
}

impl Width {
    /// Returns the width of about [`RANGES`] parts of a range of this length.
    fn for_range(length: f64) -> Self {
        let least = length / RANGES;
        if !(least > 0.0 && least.is_finite()) {
            return Self { digit: 1, power: 0 };
        }
        #[expect(
            clippy::cast_possible_truncation,
            reason = "the power of ten of a number is small"
        )]
        let power = least.log10().floor() as i32;
        let widths = [1, 2, 5].map(|digit| Self { digit, power });
        let fitting = widths.into_iter().find(|width| width.to_number() >= least);
        fitting.unwrap_or(Self { digit: 1, power: power + 1 })
    }

    fn to_number(&self) -> f64 {
        // Negative powers of ten are not exact, but their reciprocals are.
        #[expect(clippy::cast_precision_loss, reason = "it is 1, 2 or 5")]
        let digit = self.digit as f64;
        if self.power < 0 {
            digit / 10_f64.powi(-self.power)
        } else {
            digit * 10_f64.powi(self.power)
        }
    }

    /// Returns the number of the range that has a number.
    fn find_range(&self, number: f64) -> i64 {
        #[expect(clippy::cast_possible_truncation, reason = "numbers beyond are in the last range")]
        let range = (number / self.to_number() + TOLERANCE).floor() as i64;
        range
    }

    /// Returns the least number of a range, exactly.
    fn begin_of(&self, range: i64) -> String {
        let multiple = i128::from(range) * i128::from(self.digit);
        if self.power > MAX_ZEROS {
            return format!("{multiple}e{}", self.power);
        }
        let digits = multiple.unsigned_abs().to_string();
        let sign = if multiple < 0 { "-" } else { "" };
        let Ok(decimals) = usize::try_from(-self.power) else {
            let zeros = usize::try_from(self.power).unwrap_or_default();
            let zeros = if multiple == 0 { 0 } else { zeros };
            return format!("{sign}{digits}{}", "0".repeat(zeros));
        };
        if decimals == 0 {
            return format!("{sign}{digits}");
        }
        let digits = format!("{digits:0>width$}", width = decimals + 1);
        let (whole, fraction) = digits.split_at(digits.len() - decimals);
        let text = format!("{sign}{whole}.{fraction}");
        text.trim_end_matches('0').trim_end_matches('.').to_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ingest::Mode;
    use crate::mapping::compile;
    use crate::testing::Fixture;
    use std::time::Duration;

    fn ranges(numbers: &[f64]) -> Vec<(String, String, u64)> {
        let ranges = count_ranges(numbers).into_iter();
        ranges.map(|range| (range.begin, range.end, range.count)).collect()
    }

    #[test]
    fn ranges_have_round_widths_and_every_number_is_in_one() {
        assert!(ranges(&[]).is_empty());
        assert_eq!(ranges(&[7.0, 7.0]), [("7".to_owned(), "8".to_owned(), 2)]);
        // A range has its greatest number, however large.
        let huge = ranges(&[1e17, 1e17]);
        assert!(huge.len() == 1 && huge[0].1.parse::<f64>().unwrap() > 1e17, "{huge:?}");
        let tenths: Vec<f64> = (0..=30).map(|tenth| f64::from(tenth) / 10.0).collect();
        let found = ranges(&tenths);
        assert_eq!(found[0], ("0".to_owned(), "0.2".to_owned(), 2));
        assert_eq!(found[1], ("0.2".to_owned(), "0.4".to_owned(), 2));
        assert_eq!(found.last().unwrap(), &("3".to_owned(), "3.2".to_owned(), 1));
        for numbers in [
            &[-1.0, 1.0][..],
            &[1e-12, 3e-12],
            &[1e20, 9e20, -4e20],
            &[1e15, 1e15 + 1.0],
            &[-f64::MAX, f64::MAX],
            &[12.5, 13.0, 1_000_000.0],
        ] {
            let found = ranges(numbers);
            let total: u64 = found.iter().map(|(.., count)| count).sum();
            assert_eq!(total, numbers.len() as u64, "{numbers:?}: {found:?}");
            assert!(found.windows(2).all(|two| two[0].1 == two[1].0), "{found:?}");
        }
    }

    #[test]
    fn the_begin_of_a_range_is_exact() {
        for (digit, power, range, text) in [
            (2, -1, -3, "-0.6"),
            (5, -3, 1, "0.005"),
            (1, 3, 12, "12000"),
            (1, 3, 0, "0"),
            (1, 20, 3, "3e20"),
            (5, -2, 20, "1"),
        ] {
            assert_eq!(Width { digit, power }.begin_of(range), text);
        }
    }

    #[test]
    fn texts_and_missing_values_are_no_numbers() {
        let config = "{type: object, path: 'Root:.', fields: {n: {type: number, path: <urn:p:n>}, \
                      s: {type: string, path: <urn:p:s>}}}";
        let fixture = Fixture::new(compile(config).unwrap().root);
        for object in [r#"{"n": 1}"#, r#"{"n": 2.5}"#, r#"{"s": "3"}"#] {
            fixture.send(Mode::Add, object).unwrap();
        }
        let bounds = SearchBudget::new(100, Duration::from_mins(1));
        let (read, business_object) = (fixture.store.read(), &fixture.business_object);
        let found = count_distribution(&read, business_object, None, "n", &bounds).unwrap();
        assert_eq!(found.without, 1);
        assert_eq!(found.ranges.iter().map(|range| range.count).sum::<u64>(), 2);
        let few = SearchBudget::new(2, Duration::from_mins(1));
        assert!(count_distribution(&read, business_object, None, "n", &few).is_err());
    }
}
