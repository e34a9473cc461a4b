//! The two forms of a moment that Penstock writes.
use jiff::{Timestamp, Unit};

/// Now, as RFC 3339 in UTC with milliseconds: `2026-03-01T12:00:00.123Z`.
pub fn rfc3339() -> String {
    let now = Timestamp::now();
    format!("{:.3}", now.round(Unit::Millisecond).unwrap_or(now))
}

/// Now, as the compact form of the specification (2.4): `20260301T120000Z`.
pub fn compact() -> String {
    Timestamp::now().strftime("%Y%m%dT%H%M%SZ").to_string()
}
