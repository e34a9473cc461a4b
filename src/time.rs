//! The two forms of a moment that Penstock writes.
use jiff::{Timestamp, Unit};

/// Now, as RFC 3339 in UTC with milliseconds: `2026-03-01T12:00:00.123Z`.
pub fn rfc3339() -> String {
    let now = Timestamp::now();
    format!("{:.3}", now.round(Unit::Millisecond).unwrap_or(now))
}

/// The moment so long from now, in the form of [`rfc3339`].
pub fn rfc3339_in(wait: std::time::Duration) -> String {
    let then = Timestamp::now().saturating_add(wait).unwrap_or(Timestamp::MAX);
    format!("{:.3}", then.round(Unit::Millisecond).unwrap_or(then))
}

/// Now, as the compact form of the specification (2.4): `20260301T120000Z`.
pub fn compact() -> String {
    Timestamp::now().strftime("%Y%m%dT%H%M%SZ").to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The text with every digit as `0`.
    fn form(text: &str) -> String {
        text.chars().map(|c| if c.is_ascii_digit() { '0' } else { c }).collect()
    }

    #[test]
    fn both_forms_are_utc_and_of_fixed_length() {
        assert_eq!(form(&rfc3339()), "0000-00-00T00:00:00.000Z");
        assert_eq!(form(&compact()), "00000000T000000Z");
        let parsed: Timestamp = rfc3339().parse().unwrap();
        assert!(parsed.duration_until(Timestamp::now()).as_secs().abs() < 60);
    }
}
