//! The axis of a chart over time: periods of one unit, one after the other.
use super::period::{Period, read_second};
use jiff::{SignedDuration, Timestamp, civil};
use penstock_base::time_zone::Zone;
use penstock_rdf::compare::ValueOrder;

/// The maximum number of periods, if a unit that is longer exists.
const MAX_PERIODS: i64 = 120;
/// The maximum number of years. With more, there is no axis.
const MAX_YEARS: i64 = 1_000;

/// How a moment is written.
const TIME_FORM: &str = "%Y-%m-%dT%H:%M:%SZ";
/// How a date is written.
const DATE_FORM: &str = "%Y-%m-%d";
/// What follows the limit of a day among dates with offsets, which compare by the moment when they begin. From this offset
/// on, the day has the dates with its name and an offset from -10:59 to +13:00, or none.
const DAY_OFFSET: &str = "+13:00";

/// An axis of time.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TimeAxis {
    /// The name of the unit: `minute` to `year`; empty without a value.
    pub unit: &'static str,
    /// The periods, without a gap.
    pub periods: Vec<AxisPeriod>,
}

/// A period of an axis.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AxisPeriod {
    /// Its name, as that of its group in a summary.
    pub name: String,
    /// The first date or time of it, which filters take.
    pub begin: String,
    /// The first date or time after it.
    pub end: String,
}

impl TimeAxis {
    /// Returns the axis from one date or time to another, with the shortest unit of which there are not too many. Dates are in
    /// no time zone. Those with offsets are not in the order of their days, so for them the axis has a day more at both ends.
    /// `None` if a text is neither a date nor a time, or there are too many years between them.
    pub fn new(first: &str, last: &str, order: ValueOrder, zone: &Zone) -> Option<Self> {
        let is_date = order == ValueOrder::Date;
        let zone = if is_date { &Zone::UTC } else { zone };
        let has_offsets = is_date && [first, last].into_iter().any(has_offset);
        let (mut first, mut last) = (read_moment(first)?, read_moment(last)?);
        if has_offsets {
            let day = SignedDuration::from_hours(24);
            (first, last) = (first.checked_sub(day).ok()?, last.checked_add(day).ok()?);
        }
        let seconds = last.duration_since(first).as_secs();
        let mut units = Period::NAMES.iter().filter(|(_, unit)| !(is_date && unit.is_within_day()));
        let fitting = |unit: &Period| seconds / unit.seconds() <= MAX_PERIODS - 2;
        let (unit, period) = *units.clone().find(|(_, unit)| fitting(unit)).or(units.next_back())?;
        if seconds / period.seconds() > MAX_YEARS {
            return None;
        }
        let form = if is_date { DATE_FORM } else { TIME_FORM };
        let text = |at: Timestamp| at.strftime(form).to_string();
        let mut periods = Vec::new();
        let mut begin = period.find_begin(first, zone)?;
        while begin <= last {
            let end = period.find_next(begin, zone)?;
            let name = period.name_at(begin, zone);
            periods.push(AxisPeriod { name, begin: text(begin), end: text(end) });
            if end <= begin {
                return None;
            }
            begin = end;
        }
        Some(Self { unit, periods }.with_offsets(has_offsets))
    }

    /// Returns the axis of days with limits that are right for dates with offsets too, if some are between the first date and
    /// the last.
    #[must_use]
    pub fn with_offsets(mut self, has_offsets: bool) -> Self {
        let periods = self.periods.iter_mut().filter(|_| has_offsets);
        for limit in periods.flat_map(|period| [&mut period.begin, &mut period.end]) {
            if !limit.contains('T') && !limit.ends_with(DAY_OFFSET) {
                limit.push_str(DAY_OFFSET);
            }
        }
        self
    }
}

/// Returns the first value of a day, for fields whose values compare so: its date, or the time when it begins in a time zone.
/// `None` for a day beyond the times that there are.
pub fn find_begin_of_day(day: civil::Date, order: ValueOrder, zone: &Zone) -> Option<String> {
    if order == ValueOrder::Date {
        return Some(day.to_string());
    }
    Some(find_midnight(day, zone)?.strftime(TIME_FORM).to_string())
}

/// Returns the second of a date or a time.
fn read_moment(text: &str) -> Option<Timestamp> {
    let has_time = text.contains('T');
    // A date can have a time zone, which does not count here.
    let date = text.get(.."2024-01-01".len()).filter(|_| !has_time && !text.starts_with('-'));
    if has_time { read_second(text) } else { read_second(&format!("{}T00:00:00Z", date?)) }
}

/// Returns whether a date has an offset other than `Z`.
pub(super) fn has_offset(date: &str) -> bool {
    date.get(date.len().saturating_sub("+00:00".len())..)
        .is_some_and(|end| end.starts_with(['+', '-']) && end.contains(':'))
}

impl Period {
    /// Returns about how many seconds it has, but no more than any of its kind has.
    fn seconds(self) -> i64 {
        match self {
            Self::Minute => 60,
            Self::Hour => 3_600,
            Self::Day => 24 * 3_600,
            Self::Week => 7 * 24 * 3_600,
            Self::Month => 30 * 24 * 3_600,
            Self::Year => 365 * 24 * 3_600,
        }
    }

    /// Returns when the period begins that has this moment.
    fn find_begin(self, at: Timestamp, zone: &Zone) -> Option<Timestamp> {
        let local = zone.civil_time_at(at);
        let since = |seconds: i64| at.checked_sub(SignedDuration::from_secs(seconds)).ok();
        let (minute, second) = (i64::from(local.minute()), i64::from(local.second()));
        // A time with a fraction of a second was rounded down already.
        let date = match self {
            Self::Minute => return since(second),
            Self::Hour => {
                // The clocks may have changed within the hour.
                let name = self.name_at(at, zone);
                let mut begins =
                    (0..=minute).rev().filter_map(|minutes| since(60 * minutes + second));
                return begins.find(|begin| self.name_at(*begin, zone) == name).or(Some(at));
            }
            Self::Day => local.date(),
            Self::Week => {
                let days = i64::from(local.date().weekday().to_monday_zero_offset());
                local.date().checked_sub(SignedDuration::from_hours(24 * days)).ok()?
            }
            Self::Month => local.date().first_of_month(),
            Self::Year => local.date().first_of_year(),
        };
        find_midnight(date, zone)
    }

    /// Returns when the next period begins, after one that begins at this moment.
    fn find_next(self, begin: Timestamp, zone: &Zone) -> Option<Timestamp> {
        let after = |seconds: i64| begin.checked_add(SignedDuration::from_secs(seconds)).ok();
        if self == Self::Hour {
            // A change of the clocks may end an hour early.
            let name = self.name_at(begin, zone);
            let mut quarters = (1..=4).filter_map(|quarter| after(15 * 60 * quarter));
            let next = quarters.find(|at| self.name_at(*at, zone) != name)?;
            return self.find_begin(next, zone);
        }
        // No other period is as long as this, and no two together are as short.
        self.find_begin(after(self.seconds() * 3 / 2)?, zone)
    }

    /// Returns the name of the period that has this moment.
    fn name_at(self, at: Timestamp, zone: &Zone) -> String {
        let (local, offset) = zone.time_and_offset_at(at);
        self.format(local, offset)
    }
}

/// Returns when a day begins. The clocks may skip midnight.
fn find_midnight(date: civil::Date, zone: &Zone) -> Option<Timestamp> {
    use jiff::tz::AmbiguousOffset::{Fold, Gap, Unambiguous};
    let local = date.at(0, 0, 0, 0);
    let (Unambiguous { offset } | Gap { before: offset, .. } | Fold { before: offset, .. }) =
        zone.offset_of(local);
    offset.to_timestamp(local).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn axis(first: &str, last: &str, zone: &str) -> TimeAxis {
        let order = if first.contains('T') { ValueOrder::DateTime } else { ValueOrder::Date };
        TimeAxis::new(first, last, order, &zone.parse().unwrap()).unwrap()
    }

    #[test]
    fn the_unit_fits_the_range() {
        for (first, last, unit, count) in [
            ("2024-03-31T12:00:00Z", "2024-03-31T12:00:00Z", "minute", 1),
            ("2024-03-31T12:00:30Z", "2024-03-31T13:58:00Z", "minute", 119),
            ("2024-03-31T12:00:00Z", "2024-03-31T14:00:00Z", "hour", 3),
            ("2024-01-01T00:00:00Z", "2024-01-15T00:00:00.5Z", "day", 15),
            ("2024-01-01", "2024-01-15", "day", 15),
            ("2024-01-01T00:00:00Z", "2025-01-01T00:00:00Z", "week", 53),
            ("2020-02-29", "2024-02-29", "month", 49),
            ("1900-01-01", "2024-02-29", "year", 125),
        ] {
            let axis = axis(first, last, "UTC");
            assert_eq!((axis.unit, axis.periods.len()), (unit, count), "{first}");
        }
        assert_eq!(TimeAxis::new("0001-01-01", "2024-01-01", ValueOrder::Date, &Zone::UTC), None);
        assert_eq!(TimeAxis::new("soon", "2024-01-01", ValueOrder::Date, &Zone::UTC), None);
    }

    #[test]
    fn periods_follow_each_other_when_clocks_change() {
        let berlin = axis("2024-10-26T20:00:00Z", "2024-10-27T03:00:00Z", "Europe/Berlin");
        let names: Vec<&str> = berlin.periods.iter().map(|period| period.name.as_str()).collect();
        assert_eq!(names[..2], ["2024-10-26T22:00+02:00", "2024-10-26T23:00+02:00"]);
        assert_eq!(names[4..6], ["2024-10-27T02:00+02:00", "2024-10-27T02:00+01:00"]);
        for zone in ["Europe/Berlin", "America/Sao_Paulo", "Pacific/Apia", "Australia/Lord_Howe"] {
            for (first, last) in [
                ("2011-12-20T00:00:00Z", "2012-01-10T00:00:00Z"),
                ("2017-10-01T00:00:00Z", "2017-12-01T00:00:00Z"),
                ("2010-01-01T00:00:00Z", "2024-01-01T00:00:00Z"),
                ("2024-10-26T00:00:00Z", "2024-10-28T00:00:00Z"),
            ] {
                let periods = axis(first, last, zone).periods;
                assert!(periods.windows(2).all(|two| two[0].end == two[1].begin), "{zone}");
                assert!(periods[0].begin.as_str() <= first, "{zone}");
                assert!(periods.last().unwrap().end.as_str() > last, "{zone}");
            }
        }
    }

    #[test]
    fn every_moment_is_in_its_hour_when_clocks_change_within_one() {
        for (first, last, zone) in [
            ("2024-04-06T12:10:00Z", "2024-04-06T18:00:00Z", "Australia/Lord_Howe"),
            ("2024-10-05T15:40:00Z", "2024-10-05T18:00:00Z", "Australia/Lord_Howe"),
            ("2018-05-04T12:00:00Z", "2018-05-04T18:00:00Z", "Asia/Pyongyang"),
            ("2016-05-01T04:00:00Z", "2016-05-01T10:00:00Z", "America/Caracas"),
        ] {
            let hours = axis(first, last, zone);
            assert_eq!(hours.unit, "hour");
            assert!(hours.periods.windows(2).all(|two| two[0].end == two[1].begin), "{zone}");
            let zone: Zone = zone.parse().unwrap();
            for AxisPeriod { name, begin, end } in &hours.periods {
                let (mut at, end) = (read_second(begin).unwrap(), read_second(end).unwrap());
                while at < end {
                    assert_eq!(Period::Hour.name_at(at, &zone), *name, "{at}");
                    at = at.checked_add(SignedDuration::from_mins(5)).unwrap();
                }
            }
        }
    }

    #[test]
    fn dates_with_offsets_are_within_the_limits_of_their_day() {
        // By moment, the first one is not the earlier day.
        let days = axis("2024-03-31+14:00", "2024-03-30-12:00", "Europe/Berlin");
        let names: Vec<&str> = days.periods.iter().map(|period| period.name.as_str()).collect();
        assert_eq!(names, ["2024-03-30", "2024-03-31"]);
        let key = |date: &str| ValueOrder::Date.sort_key(date);
        for AxisPeriod { name, begin, end } in &days.periods {
            for offset in ["", "Z", "+13:00", "+01:00", "-05:00", "-10:00"] {
                let date = format!("{name}{offset}");
                assert!(key(begin) <= key(&date) && key(&date) < key(end), "{date}");
            }
        }
        let plain = axis("2024-01-01Z", "2024-01-02", "UTC");
        assert_eq!(plain.periods[0].begin, "2024-01-01");
        assert_eq!(plain.clone().with_offsets(false), plain);
        // One between the first date and the last, and times, which never have them.
        assert_eq!(plain.with_offsets(true).periods[0].end, "2024-01-02+13:00");
        assert_eq!(days.clone().with_offsets(true), days);
    }

    #[test]
    fn weeks_begin_on_monday_and_days_at_midnight() {
        let weeks = axis("2024-01-03", "2025-01-01", "UTC");
        let first = &weeks.periods[0];
        let expected = ("2024-W01", "2024-01-01", "2024-01-08");
        assert_eq!((first.name.as_str(), first.begin.as_str(), first.end.as_str()), expected);
        let days = axis("2024-03-25T00:00:00Z", "2024-04-02T00:00:00Z", "Europe/Berlin");
        let change = days.periods.iter().find(|day| day.name == "2024-03-31").unwrap();
        let expected = ("2024-03-30T23:00:00Z", "2024-03-31T22:00:00Z");
        assert_eq!((change.begin.as_str(), change.end.as_str()), expected);
    }
}
