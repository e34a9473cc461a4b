//! Time zones of the IANA database, which is part of the program. The database of the machine, if any, is not used.
use chrono::{DateTime, NaiveDateTime, TimeDelta, Utc};
use jiff::civil;
use jiff::tz::{AmbiguousOffset, Offset, TimeZone, TimeZoneDatabase};
use jiff::{SignedDuration, Timestamp};
use std::fmt;
use std::str::FromStr;

/// A time zone, identified by its name in the database.
#[derive(Clone, PartialEq, Eq)]
pub struct Zone(TimeZone);

impl Zone {
    /// Coordinated universal time.
    pub const UTC: Self = Self(TimeZone::UTC);

    /// Returns the names of all zones.
    pub fn all_names() -> Vec<String> {
        TimeZoneDatabase::bundled().available().map(|name| name.to_string()).collect()
    }

    /// Returns the offset from UTC at a moment.
    pub fn offset_at(&self, at: DateTime<Utc>) -> TimeDelta {
        // Times that only chrono can represent are more than ten thousand years away.
        let at = Timestamp::from_second(at.timestamp());
        at.map_or(TimeDelta::zero(), |at| offset_to_delta(self.0.to_offset(at)))
    }

    /// Returns the local time at a moment.
    pub fn local_time_at(&self, at: DateTime<Utc>) -> NaiveDateTime {
        at.naive_utc() + self.offset_at(at)
    }

    /// Returns the local time at a moment, as jiff has it.
    pub fn civil_time_at(&self, at: Timestamp) -> civil::DateTime {
        self.0.to_datetime(at)
    }

    /// Returns the local time at a time in UTC, and its offset. Before the first and after the last moment that jiff has, the
    /// offset is that of this moment. A time whose local time would be beyond the years -9999 to 9999 stays in UTC: the last
    /// second of 9999 means "without end" in every time zone.
    pub fn time_and_offset_of(&self, utc: civil::DateTime) -> (civil::DateTime, Offset) {
        let nearest = if utc.year() < 0 { Timestamp::MIN } else { Timestamp::MAX };
        let offset = self.0.to_offset(Offset::UTC.to_timestamp(utc).unwrap_or(nearest));
        let local = utc.checked_add(SignedDuration::from_secs(offset.seconds().into()));
        local.map_or((utc, Offset::UTC), |local| (local, offset))
    }

    /// Returns the local time at a moment, and its offset from UTC.
    pub fn time_and_offset_at(&self, at: Timestamp) -> (civil::DateTime, Offset) {
        let offset = self.0.to_offset(at);
        (offset.to_datetime(at), offset)
    }

    /// Returns the offset from UTC at a local time, which a change of the clocks skips or repeats.
    pub fn offset_of(&self, local: civil::DateTime) -> AmbiguousOffset {
        self.0.to_ambiguous_timestamp(local).offset()
    }

    /// Returns the first moment with this local time; `None` if the clocks are set forward over it.
    pub fn first_moment_of(&self, local: NaiveDateTime) -> Option<DateTime<Utc>> {
        let utc = local.and_utc();
        let Ok(shown) = Timestamp::from_second(utc.timestamp()) else { return Some(utc) };
        let offset = match self.offset_of(Offset::UTC.to_datetime(shown)) {
            AmbiguousOffset::Unambiguous { offset } => offset,
            AmbiguousOffset::Gap { .. } => return None,
            AmbiguousOffset::Fold { before, .. } => before,
        };
        Some(utc - offset_to_delta(offset))
    }
}

fn offset_to_delta(offset: Offset) -> TimeDelta {
    TimeDelta::seconds(offset.seconds().into())
}

impl FromStr for Zone {
    type Err = ();

    fn from_str(name: &str) -> Result<Self, ()> {
        let zone = TimeZoneDatabase::bundled().get(name).map_err(drop)?;
        // The database ignores the case of names.
        if zone.iana_name() == Some(name) { Ok(Self(zone)) } else { Err(()) }
    }
}

impl fmt::Display for Zone {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0.iana_name().unwrap_or("UTC"))
    }
}

impl fmt::Debug for Zone {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse_zone(name: &str) -> Zone {
        name.parse().unwrap()
    }

    fn parse_utc(text: &str) -> DateTime<Utc> {
        DateTime::parse_from_rfc3339(text).unwrap().to_utc()
    }

    fn parse_local(text: &str) -> NaiveDateTime {
        text.parse().unwrap()
    }

    #[test]
    fn names_must_match_the_database_exactly() {
        for name in [
            "UTC",
            "Etc/UTC",
            "GMT",
            "Europe/Berlin",
            "US/Eastern",
            "Asia/Calcutta",
            "America/Argentina/Ushuaia",
        ] {
            assert_eq!(parse_zone(name).to_string(), name);
            assert!(Zone::all_names().iter().any(|known| known == name), "{name}");
        }
        for wrong in ["", "europe/berlin", "Europe/Berln", "utc", "+01:00", "../etc/passwd"] {
            assert_eq!(wrong.parse::<Zone>(), Err(()), "{wrong}");
        }
        assert!(Zone::all_names().iter().all(|name| name.parse::<Zone>().is_ok()));
    }

    #[test]
    fn clocks_are_set_forward_and_back() {
        let berlin = parse_zone("Europe/Berlin");
        assert_eq!(
            berlin.local_time_at(parse_utc("2026-03-29T00:59:59Z")),
            parse_local("2026-03-29T01:59:59")
        );
        assert_eq!(
            berlin.local_time_at(parse_utc("2026-03-29T01:00:00Z")),
            parse_local("2026-03-29T03:00:00")
        );
        assert_eq!(berlin.first_moment_of(parse_local("2026-03-29T02:30:00")), None);
        assert_eq!(
            berlin.first_moment_of(parse_local("2026-10-25T02:30:00")),
            Some(parse_utc("2026-10-25T00:30:00Z"))
        );
        assert_eq!(
            berlin.first_moment_of(parse_local("2026-10-25T03:00:00")),
            Some(parse_utc("2026-10-25T02:00:00Z"))
        );
        // By rule, long after the years that the database lists.
        assert_eq!(
            berlin.local_time_at(parse_utc("2150-07-01T00:00:00Z")),
            parse_local("2150-07-01T02:00:00")
        );
        assert_eq!(
            parse_zone("Pacific/Apia").first_moment_of(parse_local("2011-12-30T12:00:00")),
            None
        );
        assert_eq!(
            parse_zone("Asia/Kolkata").offset_at(parse_utc("2026-01-01T00:00:00Z")),
            TimeDelta::minutes(330)
        );
        assert_eq!(
            Zone::UTC.first_moment_of(parse_local("2026-10-25T02:30:00")),
            Some(parse_utc("2026-10-25T02:30:00Z"))
        );
    }

    #[test]
    fn the_first_and_the_last_day_have_a_local_time() {
        let berlin = parse_zone("Europe/Berlin");
        let local = |utc: civil::DateTime| berlin.time_and_offset_of(utc).0;
        let summer = civil::date(2026, 7, 1);
        assert_eq!(local(summer.at(0, 0, 0, 0)), summer.at(2, 0, 0, 0));
        let last = civil::date(9999, 12, 31);
        assert_eq!(local(last.at(0, 0, 0, 0)), last.at(1, 0, 0, 0));
        let end = last.at(23, 30, 0, 0);
        assert_eq!(berlin.time_and_offset_of(end), (end, Offset::UTC));
        let first = civil::date(-9999, 1, 1);
        assert_eq!(local(first.at(0, 0, 0, 0)), first.at(0, 53, 28, 0));
    }
}
