//! Exact arithmetic with decimals of any length.
use super::{PlainNumber, split_decimal};
use num_bigint::{BigInt, Sign};
use std::cmp::Ordering;
use std::fmt;

/// A decimal of any length: `unscaled / 10^scale`, without zeros at the end of the fraction.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ExactDecimal {
    unscaled: BigInt,
    scale: usize,
}

impl ExactDecimal {
    /// Creates `unscaled / 10^scale`.
    pub fn new(unscaled: u64, scale: usize) -> Self {
        Self { unscaled: unscaled.into(), scale }.trim()
    }

    /// Parses a decimal or an integer; `None` if it is not valid, or has more than `max_digits`.
    pub fn parse(text: &str, max_digits: usize) -> Option<Self> {
        let (is_negative, whole, fraction) = split_decimal(text)?;
        let fits = whole.len() + fraction.len() <= max_digits;
        if fits { Self::from_digits(is_negative, whole, fraction) } else { None }
    }

    /// Parses a number, perhaps with an exponent; `None` as [`PlainNumber::parse`].
    pub fn parse_number(lexical: &str, max_digits: usize) -> Option<Self> {
        let number = PlainNumber::parse(lexical, 0, max_digits)?;
        Self::from_digits(number.is_negative, &number.whole, &number.fraction)
    }

    fn from_digits(is_negative: bool, whole: &str, fraction: &str) -> Option<Self> {
        let digits = format!("0{whole}{fraction}");
        let unscaled = BigInt::parse_bytes(digits.as_bytes(), 10)?;
        let unscaled = if is_negative { -unscaled } else { unscaled };
        Some(Self { unscaled, scale: fraction.len() })
    }

    /// Returns whether it is less than zero.
    pub fn is_negative(&self) -> bool {
        self.unscaled.sign() == Sign::Minus
    }

    /// Returns the number of digits of the fraction.
    pub fn scale(&self) -> usize {
        self.scale
    }

    /// Returns the number of digits from the first that is not 0; 1 for zero.
    pub fn count_significant_digits(&self) -> usize {
        self.unscaled.magnitude().to_string().len()
    }

    /// Returns the number of digits before and behind the point.
    pub fn count_digits(&self) -> usize {
        self.count_significant_digits().max(self.scale)
    }

    /// Returns about how many bytes the digits take in memory.
    pub fn count_bytes(&self) -> usize {
        usize::try_from(self.unscaled.bits() / 8).unwrap_or(usize::MAX)
    }

    /// Returns the value with the other sign.
    #[must_use]
    pub fn negate(&self) -> Self {
        Self { unscaled: -&self.unscaled, ..*self }
    }

    /// Returns the value times 10^`scale`, which is at least [`Self::scale`].
    fn scale_to(&self, scale: usize) -> BigInt {
        &self.unscaled * power_of_ten(scale - self.scale)
    }

    /// Adds.
    #[must_use]
    pub fn add(&self, other: &Self) -> Self {
        let scale = self.scale.max(other.scale);
        let unscaled = match self.scale.cmp(&other.scale) {
            Ordering::Equal => &self.unscaled + &other.unscaled,
            _ => self.scale_to(scale) + other.scale_to(scale),
        };
        Self { unscaled, scale }.trim()
    }

    /// Multiplies.
    #[must_use]
    pub fn multiply(&self, other: &Self) -> Self {
        let unscaled = &self.unscaled * &other.unscaled;
        Self { unscaled, scale: self.scale + other.scale }.trim()
    }

    /// Divides, and cuts the quotient off behind this many digits of the fraction. Also returns whether it is exact. `None` for a
    /// division by zero.
    pub fn divide(&self, other: &Self, fraction_digits: usize) -> Option<(Self, bool)> {
        let scale = self.scale.max(other.scale);
        let (left, right) = (self.scale_to(scale), other.scale_to(scale));
        if right == BigInt::ZERO {
            return None;
        }
        let shifted = left * power_of_ten(fraction_digits);
        let unscaled = &shifted / &right;
        let is_exact = &unscaled * &right == shifted;
        Some((Self { unscaled, scale: fraction_digits }.trim(), is_exact))
    }

    /// Cuts the fraction off behind this many digits.
    #[must_use]
    pub fn truncate(self, scale: usize) -> Self {
        let excess = self.scale.saturating_sub(scale);
        let unscaled = self.unscaled / power_of_ten(excess);
        Self { unscaled, scale: self.scale - excess }.trim()
    }

    /// Rounds the fraction to this many digits, halves away from zero.
    #[must_use]
    pub fn round(self, scale: usize) -> Self {
        if self.scale <= scale {
            return self;
        }
        let power = power_of_ten(self.scale - scale);
        let half = &power / 2;
        let shifted = if self.is_negative() { self.unscaled - half } else { self.unscaled + half };
        Self { unscaled: shifted / power, scale }.trim()
    }

    /// Returns the greatest integer that is not greater.
    #[must_use]
    pub fn floor(&self) -> Self {
        let power = power_of_ten(self.scale);
        let mut unscaled = &self.unscaled / &power;
        if self.is_negative() && &unscaled * &power != self.unscaled {
            unscaled -= 1;
        }
        Self { unscaled, scale: 0 }
    }

    fn trim(mut self) -> Self {
        while self.scale > 0 && &self.unscaled % 10 == BigInt::ZERO {
            self.unscaled /= 10;
            self.scale -= 1;
        }
        self
    }
}

impl fmt::Display for ExactDecimal {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let digits = format!("{:0>1$}", self.unscaled.magnitude().to_string(), self.scale + 1);
        let (whole, fraction) = digits.split_at(digits.len() - self.scale);
        let sign = if self.is_negative() { "-" } else { "" };
        let point = if fraction.is_empty() { "" } else { "." };
        write!(formatter, "{sign}{whole}{point}{fraction}")
    }
}

fn power_of_ten(exponent: usize) -> BigInt {
    BigInt::from(10).pow(u32::try_from(exponent).unwrap_or(u32::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sums_keep_all_digits() {
        let sum = |texts: &[&str]| {
            let parse = |text: &&str| ExactDecimal::parse_number(text, 400).unwrap();
            let sum =
                texts.iter().map(parse).fold(ExactDecimal::default(), |sum, one| sum.add(&one));
            sum.to_string()
        };
        assert_eq!(sum(&[]), "0");
        assert_eq!(sum(&["0.1", "0.2"]), "0.3");
        assert_eq!(sum(&["1.50", "-1.5"]), "0");
        assert_eq!(
            sum(&["1e20", "0.00000000000000000001"]),
            "100000000000000000000.00000000000000000001"
        );
        assert_eq!(sum(&["-0.05", "+007", "2.5E-1"]), "7.2");
        assert_eq!(ExactDecimal::parse_number("1e400", 400), None);
        assert_eq!(ExactDecimal::parse_number("NaN", 400), None);
        assert_eq!(ExactDecimal::parse("123.45", 4), None);
    }

    #[test]
    fn halves_are_rounded_away_from_zero() {
        for (text, scale, rounded) in [
            ("2.5", 0, "3"),
            ("-2.5", 0, "-3"),
            ("2.4999", 0, "2"),
            ("-0.4", 0, "0"),
            ("0.125", 2, "0.13"),
            ("-0.125", 2, "-0.13"),
            ("9.995", 2, "10"),
            ("1.5", 18, "1.5"),
        ] {
            let value = ExactDecimal::parse(text, 400).unwrap();
            assert_eq!(value.round(scale).to_string(), rounded, "{text}");
        }
    }
}
