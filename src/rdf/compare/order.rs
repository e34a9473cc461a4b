//! The order of values by the texts that are shown for them. Every text has a place in it.
use crate::number::NumberKey;
use oxsdatatypes::{Date, DateTime, TimezoneOffset};
use std::cmp::Ordering;

/// How values compare.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ValueOrder {
    /// By number, exactly.
    Number,
    /// By the moment when the date begins.
    Date,
    /// By moment.
    DateTime,
    /// Numbers by number, then everything else by code point.
    Scalar,
    /// By code point.
    Text,
}

impl ValueOrder {
    /// Returns whether the values are dates or times.
    pub fn is_time(self) -> bool {
        matches!(self, Self::Date | Self::DateTime)
    }

    /// Returns whether the values are numbers.
    pub fn is_number(self) -> bool {
        self == Self::Number
    }

    /// Returns the sort key of a text as the view shows it.
    pub fn sort_key(self, text: &str) -> SortKey {
        match self {
            Self::Number | Self::Scalar => NumberKey::parse(text).map(SortKey::Number),
            // A field can hold values that were stored when it had the other type.
            Self::Date => parse_date(text).or_else(|| parse_time(text)).map(SortKey::Moment),
            Self::DateTime => parse_time(text).or_else(|| parse_date(text)).map(SortKey::Moment),
            Self::Text => None,
        }
        .unwrap_or_else(|| SortKey::Text(text.to_owned()))
    }

    /// Returns whether a text is a value that can be compared with those of a field.
    pub fn can_parse(self, text: &str) -> bool {
        match self {
            Self::Number => NumberKey::parse(text).is_some(),
            Self::Date => parse_date(text).is_some(),
            Self::DateTime => parse_time(text).is_some(),
            Self::Text | Self::Scalar => true,
        }
    }

    /// Describes a text that cannot be compared with the values.
    pub fn describe_mismatch(self) -> &'static str {
        match self {
            Self::Number => "not a number",
            Self::Date => "not a date (2026-03-01)",
            Self::DateTime => "not a date and time (2026-03-01T12:00:00Z)",
            Self::Text | Self::Scalar => "not a text",
        }
    }
}

fn parse_date(text: &str) -> Option<Moment> {
    let date = text.parse::<Date>().ok()?;
    DateTime::try_from(date).ok().map(Moment::new)
}

fn parse_time(text: &str) -> Option<Moment> {
    text.parse().ok().map(Moment::new)
}

/// The sort key of a value. Numbers come first, then moments, then values that an ingestion of the field would
/// refuse.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum SortKey {
    /// A number.
    Number(NumberKey),
    /// A date or a time.
    Moment(Moment),
    /// Anything else.
    Text(String),
}

/// A moment in UTC. A time without a time zone is taken as UTC.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Moment(DateTime);

impl Moment {
    /// Returns the moment of a time.
    pub fn new(time: DateTime) -> Self {
        Self(time.adjust(Some(TimezoneOffset::UTC)).unwrap_or(time))
    }

    /// Returns a number that is ordered as the moment is.
    pub fn to_ordered(self) -> u128 {
        // The seconds as a signed fixed-point number, then the offset.
        let bytes = self.0.to_be_bytes();
        let seconds = bytes.first_chunk().copied().map_or(0, u128::from_be_bytes);
        seconds ^ (1 << 127)
    }
}

impl Ord for Moment {
    fn cmp(&self, other: &Self) -> Ordering {
        // All are in UTC, where two moments always compare.
        self.0.partial_cmp(&other.0).unwrap_or(Ordering::Equal)
    }
}

impl PartialOrd for Moment {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}
