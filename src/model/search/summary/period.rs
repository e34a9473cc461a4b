//! Periods: the minute, hour, day, week, month or year of a date or time.
use jiff::Timestamp;
use jiff::civil;
use jiff::tz::Offset;
use oxsdatatypes::{Date, DateTime, Integer, TimezoneOffset};
use penstock_base::time_zone::Zone;
use penstock_rdf::compare::{SortKey, ValueOrder};
use std::fmt::Write as _;

/// The unit of a period.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Period {
    Minute,
    Hour,
    Day,
    /// From Monday (ISO 8601).
    Week,
    Month,
    Year,
}

impl Period {
    /// The units and their names.
    pub(super) const NAMES: [(&'static str, Self); 6] = [
        ("minute", Self::Minute),
        ("hour", Self::Hour),
        ("day", Self::Day),
        ("week", Self::Week),
        ("month", Self::Month),
        ("year", Self::Year),
    ];

    /// Returns the unit of this name.
    pub(super) fn parse(name: &str) -> Option<Self> {
        Self::NAMES.iter().find(|(known, _)| *known == name).map(|(_, unit)| *unit)
    }

    /// Returns whether it is shorter than a day.
    pub(super) fn is_within_day(self) -> bool {
        matches!(self, Self::Minute | Self::Hour)
    }

    /// Returns the name of the period of a date or time in a time zone; `None` if the text is neither, or beyond the years
    /// -9999 to 9999 in UTC and with its own offset. A date is in no time zone.
    pub(super) fn name_of(self, text: &str, order: ValueOrder, zone: &Zone) -> Option<String> {
        if order == ValueOrder::Date {
            let date = text.parse::<Date>().ok()?;
            let date = to_civil_date(date.year(), date.month(), date.day())?;
            return Some(self.format(date.at(0, 0, 0, 0), Offset::UTC));
        }
        let (local, offset) = zone.time_and_offset_of(read_utc(text)?);
        Some(self.format(local, offset))
    }

    pub(super) fn format(self, local: civil::DateTime, offset: Offset) -> String {
        let (date, time) = (local.date(), local.time());
        let mut name = format_year(date.year());
        // Writing into a string cannot fail.
        let _ = match self {
            Self::Year => Ok(()),
            Self::Month => write!(name, "-{:02}", date.month()),
            Self::Week => {
                let week = date.iso_week_date();
                name = format_year(week.year());
                write!(name, "-W{:02}", week.week())
            }
            Self::Day | Self::Hour | Self::Minute => {
                write!(name, "-{:02}-{:02}", date.month(), date.day())
            }
        };
        let minute = match self {
            Self::Hour => 0,
            Self::Minute => time.minute(),
            Self::Day | Self::Week | Self::Month | Self::Year => return name,
        };
        let _ = write!(name, "T{:02}:{minute:02}", time.hour());
        name + &format_offset(offset)
    }

    /// Returns the sort key of a period that [`Self::name_of`] has named.
    pub(super) fn sort_key(self, name: &str) -> SortKey {
        let date = |text: String| ValueOrder::Date.sort_key(&text);
        match self {
            Self::Minute | Self::Hour => {
                let end = name.find('T').map_or(name.len(), |at| at + "T00:00".len());
                let (time, offset) = name.split_at_checked(end).unwrap_or((name, ""));
                // An offset has seconds only before the time zones.
                let offset = offset.get(.."+00:00".len()).unwrap_or_default();
                ValueOrder::DateTime.sort_key(&format!("{time}:00{offset}"))
            }
            Self::Day => date(name.to_owned()),
            Self::Month => date(format!("{name}-01")),
            Self::Year => date(format!("{name}-01-01")),
            // As a number, whose fraction is the week.
            Self::Week => ValueOrder::Number.sort_key(&name.replacen("-W", ".", 1)),
        }
    }
}

/// Returns the second in which a time is. Without a time zone it is in UTC. `None` also on the last day of the year 9999.
pub(super) fn read_second(text: &str) -> Option<Timestamp> {
    Offset::UTC.to_timestamp(read_utc(text)?).ok()
}

/// Returns the second in which a time is, in UTC. One that is beyond the years -9999 to 9999 only in UTC counts without its
/// offset.
fn read_utc(text: &str) -> Option<civil::DateTime> {
    read_plain_utc(text).or_else(|| read_any_utc(text))
}

/// Reads a time in the form that most have, `2024-01-01T00:00:00Z`, which takes much less time.
fn read_plain_utc(text: &str) -> Option<civil::DateTime> {
    let [y1, y2, y3, y4, b'-', m1, m2, b'-', d1, d2, b'T', rest @ ..] = text.as_bytes() else {
        return None;
    };
    let [h1, h2, b':', n1, n2, b':', s1, s2, b'Z'] = rest else { return None };
    let read = |digits: [&u8; 2]| {
        let [tens, ones] = digits.map(|digit| char::from(*digit).to_digit(10));
        i8::try_from(tens? * 10 + ones?).ok()
    };
    let year = i16::from(read([y1, y2])?) * 100 + i16::from(read([y3, y4])?);
    let date = civil::Date::new(year, read([m1, m2])?, read([d1, d2])?).ok()?;
    let time = civil::Time::new(read([h1, h2])?, read([n1, n2])?, read([s1, s2])?, 0).ok()?;
    // The year 0 has rules of its own.
    (year > 0).then(|| date.to_datetime(time))
}

fn read_any_utc(text: &str) -> Option<civil::DateTime> {
    let time = text.parse::<DateTime>().ok()?;
    to_civil_time(time.adjust(Some(TimezoneOffset::UTC))?).or_else(|| to_civil_time(time))
}

fn to_civil_time(time: DateTime) -> Option<civil::DateTime> {
    let date = to_civil_date(time.year(), time.month(), time.day())?;
    let second = i64::from(Integer::try_from(time.second()).ok()?);
    let small = |value: u8| i8::try_from(value).ok();
    let (hour, minute) = (small(time.hour())?, small(time.minute())?);
    let time = civil::Time::new(hour, minute, i8::try_from(second).ok()?, 0).ok()?;
    Some(date.to_datetime(time))
}

fn to_civil_date(year: i64, month: u8, day: u8) -> Option<civil::Date> {
    let (month, day) = (i8::try_from(month).ok()?, i8::try_from(day).ok()?);
    civil::Date::new(i16::try_from(year).ok()?, month, day).ok()
}

fn format_year(year: i16) -> String {
    let sign = if year < 0 { "-" } else { "" };
    format!("{sign}{:04}", year.unsigned_abs())
}

fn format_offset(offset: Offset) -> String {
    let (seconds, sign) = (offset.seconds(), if offset.seconds() < 0 { '-' } else { '+' });
    let seconds = seconds.unsigned_abs();
    let minutes = seconds / 60;
    let text = format!("{sign}{:02}:{:02}", minutes / 60, minutes % 60);
    if seconds % 60 == 0 { text } else { format!("{text}:{:02}", seconds % 60) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn name(period: Period, text: &str, zone: &str) -> Option<String> {
        let order = if text.contains('T') { ValueOrder::DateTime } else { ValueOrder::Date };
        period.name_of(text, order, &zone.parse().unwrap())
    }

    #[test]
    fn periods_are_those_of_the_time_zone() {
        let berlin = "Europe/Berlin";
        for (period, text, zone, expected) in [
            (Period::Hour, "2024-03-31T12:30:59.5Z", berlin, "2024-03-31T14:00+02:00"),
            (Period::Minute, "2024-03-31T00:59:59Z", berlin, "2024-03-31T01:59+01:00"),
            (Period::Minute, "2024-03-31T01:00:00Z", berlin, "2024-03-31T03:00+02:00"),
            // The hour that occurs twice.
            (Period::Hour, "2024-10-27T00:30:00Z", berlin, "2024-10-27T02:00+02:00"),
            (Period::Hour, "2024-10-27T01:30:00Z", berlin, "2024-10-27T02:00+01:00"),
            (Period::Hour, "2024-01-01T00:10:00", "Asia/Kolkata", "2024-01-01T05:00+05:30"),
            (Period::Hour, "2024-06-30T24:00:00Z", "UTC", "2024-07-01T00:00+00:00"),
            (Period::Day, "2024-03-31T22:30:00Z", berlin, "2024-04-01"),
            (Period::Day, "2024-03-31T22:30:00-05:00", "UTC", "2024-04-01"),
            // A date is not moved by a time zone.
            (Period::Day, "2024-03-31", "Pacific/Apia", "2024-03-31"),
            (Period::Day, "2024-03-31+14:00", "UTC", "2024-03-31"),
            (Period::Week, "2024-03-31", "UTC", "2024-W13"),
            (Period::Week, "2024-12-30", "UTC", "2025-W01"),
            (Period::Week, "2021-01-03", "UTC", "2020-W53"),
            (Period::Month, "2023-12-31T23:30:00Z", berlin, "2024-01"),
            (Period::Year, "2023-12-31T23:30:00Z", berlin, "2024"),
            (Period::Year, "-0044-03-15", "UTC", "-0044"),
            // What many systems write for "without end".
            (Period::Year, "9999-12-31T23:59:59Z", "UTC", "9999"),
            (Period::Hour, "9999-12-31T00:00:00Z", berlin, "9999-12-31T01:00+01:00"),
            (Period::Year, "9999-12-31T23:59:59Z", berlin, "9999"),
            (Period::Hour, "9999-12-31T23:59:59Z", berlin, "9999-12-31T23:00+00:00"),
            (Period::Year, "9999-12-31T23:59:59.9999999-05:00", "America/New_York", "9999"),
            (Period::Minute, "1890-01-01T00:00:00Z", berlin, "1890-01-01T00:53+00:53:28"),
        ] {
            assert_eq!(name(period, text, zone).as_deref(), Some(expected), "{text}");
        }
        for text in ["2024-02-30", "20000-01-01", "10000-01-01T12:00:00Z", "2024-01-01T00:00", "xT"]
        {
            assert_eq!(name(Period::Day, text, "UTC"), None, "{text}");
        }
    }

    #[test]
    fn plain_times_are_read_as_all_others() {
        for text in [
            "2024-02-29T23:59:59Z",
            "2023-02-29T00:00:00Z",
            "2024-01-01T24:00:00Z",
            "2024-12-31T23:59:60Z",
            "2024-13-01T00:00:00Z",
            "0000-01-01T00:00:00Z",
            "0001-01-01T00:00:00Z",
            "9999-12-31T23:59:59Z",
            "+024-01-01T00:00:00Z",
            "2024-01-01T00:00:00z",
            "2024-01-01T0\u{e9}:00:0Z",
        ] {
            assert_eq!(read_utc(text), read_any_utc(text), "{text}");
        }
        assert!(read_plain_utc("2024-02-29T23:59:59Z").is_some());
    }

    #[test]
    fn periods_are_ordered_by_time() {
        for (period, ascending) in [
            (
                Period::Hour,
                &[
                    "-0044-03-15T00:00+00:00",
                    "2024-10-27T01:00+02:00",
                    "2024-10-27T02:00+02:00",
                    "2024-10-27T02:00+01:00",
                    "2024-10-27T03:00+01:00",
                ][..],
            ),
            (Period::Day, &["2023-12-31", "2024-01-01"]),
            (Period::Week, &["2020-W53", "2021-W01", "2021-W10"]),
            (Period::Month, &["-0001-12", "2023-12", "2024-01"]),
            (Period::Year, &["-0044", "0001", "2024"]),
        ] {
            for pair in ascending.windows(2) {
                assert!(period.sort_key(pair[0]) < period.sort_key(pair[1]), "{pair:?}");
            }
        }
    }
}
