//! Formats times in the two forms that Penstock writes.
use jiff::{Timestamp, Unit};

/// Returns the current time as RFC 3339 in UTC with milliseconds: `2026-03-01T12:00:00.123Z`.
pub fn now_rfc3339() -> String {
    format_rfc3339(Timestamp::now())
}

/// Formats a time in the form of [`now_rfc3339`].
pub fn format_rfc3339(at: Timestamp) -> String {
    format!("{:.3}", at.round(Unit::Millisecond).unwrap_or(at))
}

/// Returns the time after `wait` from now, in the form of [`now_rfc3339`].
pub fn rfc3339_after(wait: std::time::Duration) -> String {
    format_rfc3339(Timestamp::now().saturating_add(wait).unwrap_or(Timestamp::MAX))
}

/// Formats a time in the compact form of the specification (2.4): `20260301T120000Z`.
pub fn format_compact(at: Timestamp) -> String {
    at.strftime("%Y%m%dT%H%M%SZ").to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the text with every digit replaced by `0`.
    fn mask_digits(text: &str) -> String {
        text.chars().map(|c| if c.is_ascii_digit() { '0' } else { c }).collect()
    }

    #[test]
    fn both_forms_are_utc_and_of_fixed_length() {
        assert_eq!(mask_digits(&now_rfc3339()), "0000-00-00T00:00:00.000Z");
        assert_eq!(mask_digits(&format_compact(Timestamp::now())), "00000000T000000Z");
        let parsed: Timestamp = now_rfc3339().parse().unwrap();
        assert!(parsed.duration_until(Timestamp::now()).as_secs().abs() < 60);
    }
}
