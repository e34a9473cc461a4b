//! Exact sums.
use penstock_rdf::number::ExactDecimal;

/// The maximum number of digits before or behind the point of a number that is computed with.
pub(super) const MAX_DIGITS: usize = 1_000;
/// The maximum number of characters of a number that is added as an integer.
const MAX_SHORT_CHARS: usize = 18;

/// A sum of numbers. Short numbers are added as integers, which takes much less time than arithmetic without limits.
#[derive(Debug, Default)]
pub(super) struct Total {
    /// The sum of short numbers: `short / 10^scale`.
    short: i128,
    scale: u32,
    /// The sum of all others.
    long: ExactDecimal,
}

impl Total {
    /// Adds a JSON number. Returns `None` if it has too many digits.
    pub(super) fn add(&mut self, text: &str) -> Option<()> {
        if parse_short(text).and_then(|(digits, scale)| self.add_short(digits, scale)).is_none() {
            self.long = self.long.add(&ExactDecimal::parse_number(text, MAX_DIGITS)?);
        }
        Some(())
    }

    /// Adds `digits / 10^scale`; returns `None` if the sum would be too large.
    fn add_short(&mut self, digits: i64, scale: u32) -> Option<()> {
        let common = self.scale.max(scale);
        let scale_up =
            |number: i128, from: u32| number.checked_mul(10_i128.checked_pow(common - from)?);
        let sum = scale_up(self.short, self.scale)?;
        (self.short, self.scale) = (sum.checked_add(scale_up(digits.into(), scale)?)?, common);
        Some(())
    }

    /// Returns the sum.
    pub(super) fn to_decimal(&self) -> ExactDecimal {
        let short = format!("{}e-{}", self.short, self.scale);
        let short = ExactDecimal::parse_number(&short, MAX_DIGITS);
        self.long.add(&short.unwrap_or_default())
    }

    /// Returns about how many bytes it has besides its own.
    pub(super) fn count_bytes(&self) -> usize {
        self.long.count_bytes()
    }
}

/// Reads a short number without an exponent as an integer and the number of digits behind the point.
fn parse_short(text: &str) -> Option<(i64, u32)> {
    if text.len() > MAX_SHORT_CHARS {
        return None;
    }
    let (mut number, mut scale) = (0_i64, None);
    let unsigned = text.strip_prefix('-');
    for byte in unsigned.unwrap_or(text).bytes() {
        match byte {
            b'0'..=b'9' => {
                number = number * 10 + i64::from(byte - b'0');
                scale = scale.map(|scale| scale + 1);
            }
            b'.' if scale.is_none() => scale = Some(0),
            _ => return None,
        }
    }
    Some((if unsigned.is_some() { -number } else { number }, scale.unwrap_or_default()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn totals_are_those_of_exact_decimals(
            texts in prop::collection::vec("-?(0|[1-9][0-9]{0,20})(\\.[0-9]{1,16})?(e-?[0-9]{1,2})?", 0..40),
        ) {
            let (mut total, mut expected) = (Total::default(), ExactDecimal::default());
            for text in &texts {
                prop_assert_eq!(total.add(text), Some(()));
                expected = expected.add(&ExactDecimal::parse_number(text, MAX_DIGITS).unwrap());
            }
            prop_assert_eq!(total.to_decimal(), expected);
        }
    }

    #[test]
    fn sums_that_do_not_fit_continue_without_limits() {
        let mut total = Total::default();
        for text in ["999999999999999999", "0.0000000000000001", "999999999999999999"] {
            for _ in 0..100_000 {
                total.add(text).unwrap();
            }
        }
        assert_eq!(total.to_decimal().to_string(), "199999999999999999800000.00000000001");
        assert_eq!(total.add("1e2000"), None);
    }
}
