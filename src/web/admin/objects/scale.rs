//! The vertical axis of a chart, and its numbers as text.

/// The height of the drawing.
const HEIGHT: f64 = 100.0;
/// The number of digits of half of the axis that its labels have.
const LABEL_DIGITS: i32 = 3;
/// The number of digits of an average in the table, unless it is a larger whole number.
const AVERAGE_DIGITS: i32 = 8;
/// The powers of ten of numbers that are written without an exponent.
const PLAIN_POWERS: std::ops::Range<i32> = -6..15;
/// The maximum number of digits behind the point. No number has more that count.
const MAX_DECIMALS: i32 = 24;

/// The vertical axis.
pub(super) struct Scale {
    from: f64,
    to: f64,
}

impl Scale {
    /// Returns the axis of these numbers. It begins at 0 if they are not far from it.
    pub(super) fn of_numbers(numbers: impl Iterator<Item = f64>) -> Self {
        let (mut from, mut to) = (f64::INFINITY, f64::NEG_INFINITY);
        for number in numbers {
            (from, to) = (from.min(number), to.max(number));
        }
        if from > to {
            return Self { from: 0.0, to: 1.0 };
        }
        let is_near_zero = from >= 0.0 && from * 2.0 < to;
        let from = if is_near_zero { 0.0 } else { from };
        if to > from {
            return Self { from, to };
        }
        let margin = if from == 0.0 { 1.0 } else { (from.abs() / 10.0).max(f64::MIN_POSITIVE) };
        Self { from: (from - margin).max(f64::MIN), to: (to + margin).min(f64::MAX) }
    }

    /// Returns half of the length, which is finite and not 0 for the longest and the shortest axis too.
    fn half(&self) -> f64 {
        (self.to / 2.0 - self.from / 2.0).max(f64::MIN_POSITIVE)
    }

    /// Returns the height of a number in the drawing.
    pub(super) fn y_of(&self, number: f64) -> f64 {
        HEIGHT - (number / 2.0 - self.from / 2.0) / self.half() * HEIGHT
    }

    /// Returns the label at a share of the axis, with so many digits that it differs from those at other shares.
    pub(super) fn label(&self, share: f64) -> String {
        let number = self.from * (1.0 - share) + self.to * share;
        format_number(number, find_power(self.half()) + 1 - LABEL_DIGITS)
    }
}

/// Parses a number that a drawing can show.
pub(super) fn parse_number(text: &str) -> Option<f64> {
    text.parse::<f64>().ok().filter(|number| number.is_finite())
}

/// Formats an average, which has up to 18 digits behind the point, for the table.
pub(super) fn format_average(text: &str) -> String {
    match parse_number(text).filter(|_| text.contains('.')) {
        // A number of more digits than these would lose some of them.
        Some(number) if find_power(number) < PLAIN_POWERS.end => {
            format_number(number, find_power(number) + 1 - AVERAGE_DIGITS)
        }
        _ => text.to_owned(),
    }
}

/// Returns the power of ten of the first digit of a number.
fn find_power(number: f64) -> i32 {
    #[expect(clippy::cast_possible_truncation, reason = "the power of ten of a number is small")]
    let power = number.abs().log10().floor() as i32;
    if number == 0.0 { 0 } else { power }
}

/// Formats a number, rounded to the digit of this power of ten.
fn format_number(number: f64, last: i32) -> String {
    let power = find_power(number);
    // What is left of the calculation of a zero.
    if number == 0.0 || power < last {
        return "0".to_owned();
    }
    let is_plain = PLAIN_POWERS.contains(&power);
    let decimals = if is_plain { -last } else { power - last };
    let decimals = usize::try_from(decimals.clamp(0, MAX_DECIMALS)).unwrap_or_default();
    let text =
        if is_plain { format!("{number:.decimals$}") } else { format!("{number:.decimals$e}") };
    let (digits, exponent) = match text.find('e') {
        Some(end) => text.split_at(end),
        None => (text.as_str(), ""),
    };
    let digits = if digits.contains('.') {
        digits.trim_end_matches('0').trim_end_matches('.')
    } else {
        digits
    };
    format!("{digits}{exponent}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_number_is_in_the_middle_of_its_axis() {
        for number in [0.0, 40.0, 0.001, -1e20, 1e300] {
            let scale = Scale::of_numbers(std::iter::once(number));
            assert!((scale.y_of(number) - HEIGHT / 2.0).abs() < 1e-6, "{number}");
        }
        for numbers in [[f64::MAX; 2], [f64::MIN; 2], [f64::MIN, f64::MAX], [0.0, 5e-324]] {
            let scale = Scale::of_numbers(numbers.into_iter());
            assert!(numbers.iter().all(|number| scale.y_of(*number).is_finite()), "{numbers:?}");
        }
    }

    #[test]
    fn labels_have_few_digits_and_differ() {
        for (numbers, labels) in [
            ([0.0, 92.0], ["92", "46", "0"]),
            ([0.0, 0.001], ["0.001", "0.0005", "0"]),
            ([0.0, 0.000_02], ["0.00002", "0.00001", "0"]),
            ([0.0, 3e-9], ["3e-9", "1.5e-9", "0"]),
            ([-0.1, 0.1], ["0.1", "0", "-0.1"]),
            ([1000.001, 1000.003], ["1000.003", "1000.002", "1000.001"]),
            ([0.001, 0.001], ["0.0011", "0.001", "0.0009"]),
            ([123_456.7, 123_956.7], ["123957", "123707", "123457"]),
            ([0.0, 3e20], ["3e20", "1.5e20", "0"]),
            ([-1e308, 1e308], ["1e308", "0", "-1e308"]),
        ] {
            let scale = Scale::of_numbers(numbers.into_iter());
            assert_eq!([1.0, 0.5, 0.0].map(|share| scale.label(share)), labels);
        }
    }

    #[test]
    fn averages_have_few_digits() {
        for (text, shown) in [
            ("41.333333333333333333", "41.333333"),
            ("0.000123333333333333", "0.00012333333"),
            ("-0.250000000000000000", "-0.25"),
            ("123456789.333333333333333333", "123456789"),
            ("12345678901234567890.333333333333333333", "12345678901234567890.333333333333333333"),
            ("7", "7"),
            ("0.0", "0"),
        ] {
            assert_eq!(format_average(text), shown);
        }
    }
}
