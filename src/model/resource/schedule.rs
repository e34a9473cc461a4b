//! Finds when the runs of a schedule are due: cron in a time zone.
//!
//! croner parses the fields and finds the next local time that they match. This module converts that time to UTC,
//! because croner (3.0) skips the hour that occurs twice when clocks go back, and during its second occurrence returns
//! times in the past.
//!
//! Changes of the UTC offset are handled as in Vixie cron. A schedule with fixed hours, minutes and seconds runs once:
//! at the first of two equal local times, or at the end of a gap that skips its time. A schedule with a `*` in one of
//! these fields follows the wall clock: it runs in both occurrences of an hour, and never in a gap.
use chrono::{DateTime, NaiveDateTime, TimeDelta, Utc};
use croner::Cron;
use croner::parser::{CronParser, Seconds, Year};
use penstock_base::time_zone::Zone;

/// The names of the six fields; a schedule with five fields has no seconds.
const FIELD_NAMES: [&str; 6] =
    ["second", "minute", "hour", "day of the month", "month", "day of the week"];
/// The time span that is searched for changes of the offset at once.
const OFFSET_SEARCH_SPAN: TimeDelta = TimeDelta::hours(24);
/// The maximum length of a gap. The longest one so far was a day (Samoa, 2011).
const MAX_GAP_MINUTES: i64 = 2 * 24 * 60;
/// The maximum number of years until a run. The longest distance between two days is that of February 29 around a
/// century that is not a leap year (8 years).
const MAX_YEARS_AHEAD: i32 = 9;

/// A parsed schedule.
#[derive(Clone)]
pub struct Schedule {
    cron: Cron,
    zone: Zone,
    /// Whether it follows the wall clock through changes of the offset.
    follows_wall_clock: bool,
}

impl std::fmt::Debug for Schedule {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Schedule({} in {})", self.cron.pattern, self.zone)
    }
}

/// An error in a setting for automatic exports, with the member of the definition.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SettingError {
    /// The member: `schedule`, `timezone`, `debounce` or `retention`.
    pub member: &'static str,
    /// The cause.
    pub cause: String,
}

impl Schedule {
    /// Parses cron with five fields, or Spring's six, which begin with seconds.
    pub fn parse(schedule: &str, timezone: Option<&str>) -> Result<Self, SettingError> {
        let zone = timezone.map_or(Ok(Zone::UTC), parse_zone)?;
        let wrong = |cause| SettingError { member: "schedule", cause };
        let fields: Vec<&str> = schedule.split_whitespace().collect();
        if fields.len() != 5 && fields.len() != 6 {
            return Err(wrong(format!(
                "{schedule:?} has {} fields; cron has five (minute, hour, day of the month, month, day of the \
                 week), or six with seconds before them",
                fields.len()
            )));
        }
        // If the day of the month and the day of the week are both restricted, cron with five fields needs one of them
        // to match, and Spring's needs both.
        let parser = CronParser::builder()
            .seconds(Seconds::Optional)
            .year(Year::Disallowed)
            .dom_and_dow(fields.len() == 6)
            .build();
        let names = FIELD_NAMES.get(6 - fields.len()..).unwrap_or_default();
        for (place, (field, name)) in fields.iter().zip(names).enumerate() {
            check_field(parser, fields.len(), place, field).map_err(|cause| {
                wrong(format!("the {name} {field:?} of {schedule:?} is not valid: {cause}"))
            })?;
        }
        let cron = parser
            .parse(schedule)
            .map_err(|error| wrong(format!("{schedule:?} is not a cron schedule: {error}")))?;
        let times = fields.get(..fields.len() - 3).unwrap_or_default();
        let wild = times.iter().any(|field| field.contains('*'));
        if !can_run(&fields) {
            return Err(wrong(format!("{schedule:?} never runs: no month in it has this day")));
        }
        Ok(Self { cron, zone, follows_wall_clock: wild })
    }

    /// Returns the first time after `after` at which a run is due; `None` if there is none for years.
    pub fn next(&self, after: DateTime<Utc>) -> Option<DateTime<Utc>> {
        // Runs are at whole seconds, so fractions of `after` do not matter.
        let after = DateTime::from_timestamp(after.timestamp(), 0)?;
        let next = if self.follows_wall_clock {
            self.next_wall_clock(after)
        } else {
            self.next_fixed(after)
        };
        next.filter(|next| *next > after)
    }

    /// Returns the local time in the zone of the schedule.
    pub fn local_time_at(&self, at: DateTime<Utc>) -> NaiveDateTime {
        self.zone.local_time_at(at)
    }

    fn next_fixed(&self, after: DateTime<Utc>) -> Option<DateTime<Utc>> {
        let mut local = self.zone.local_time_at(after);
        loop {
            local = self.next_local(local, false)?;
            let at = self.zone.first_moment_of(local).or_else(|| self.find_gap_end(local))?;
            if at > after {
                return Some(at);
            }
        }
    }

    fn next_wall_clock(&self, after: DateTime<Utc>) -> Option<DateTime<Utc>> {
        let (mut from, mut inclusive) = (after, false);
        // Each iteration reaches a change of the offset or comes close to the run, so a few are enough.
        for _ in 0..1000 {
            let local = self.zone.local_time_at(from);
            let next = self.next_local(local, inclusive)?;
            let at = from + (next - local);
            // The clocks may be set back soon after `from`, to local times before the one that is searched from.
            let near = at.min(from + OFFSET_SEARCH_SPAN);
            if let Some(change) = self.find_offset_change(from, near) {
                (from, inclusive) = (change, true);
            } else if near == at {
                return Some(at);
            } else {
                (from, inclusive) = (at - OFFSET_SEARCH_SPAN / 2, true);
                // There is no run in between, because all local times up to there were searched.
                if self.zone.local_time_at(from) > next {
                    return Some(at);
                }
            }
        }
        None
    }

    fn next_local(&self, local: NaiveDateTime, inclusive: bool) -> Option<NaiveDateTime> {
        // Treated as UTC, which has neither gaps nor repeated hours.
        let next = self.cron.find_next_occurrence(&local.and_utc(), inclusive).ok()?.naive_utc();
        let years = chrono::Datelike::year(&next) - chrono::Datelike::year(&local);
        (years <= MAX_YEARS_AHEAD).then_some(next)
    }

    /// Returns the first moment after `from`, at the latest `to`, at which the offset changes.
    fn find_offset_change(&self, from: DateTime<Utc>, to: DateTime<Utc>) -> Option<DateTime<Utc>> {
        let mut before = from;
        while before < to {
            let mut after = (before + TimeDelta::minutes(15)).min(to);
            if self.zone.offset_at(after) != self.zone.offset_at(before) {
                while after - before > TimeDelta::seconds(1) {
                    let middle = before + TimeDelta::seconds((after - before).num_seconds() / 2);
                    if self.zone.offset_at(middle) == self.zone.offset_at(before) {
                        before = middle;
                    } else {
                        after = middle;
                    }
                }
                return Some(after);
            }
            before = after;
        }
        None
    }

    /// Returns the first moment after the gap that skips a local time.
    fn find_gap_end(&self, local: NaiveDateTime) -> Option<DateTime<Utc>> {
        (1..=MAX_GAP_MINUTES).find_map(|minutes| {
            let later = local.checked_add_signed(TimeDelta::minutes(minutes))?;
            let at = self.zone.first_moment_of(later)?;
            // The gap may end within this minute.
            Some(self.find_offset_change(at - TimeDelta::minutes(1), at).unwrap_or(at))
        })
    }
}

/// Returns the time zone of this name.
pub(crate) fn parse_zone(name: &str) -> Result<Zone, SettingError> {
    name.parse::<Zone>().map_err(|()| {
        let near = penstock_base::nearest::find_nearest(name, Zone::all_names());
        let near = near.map_or_else(String::new, |near| format!("; did you mean `{near}`?"));
        SettingError {
            member: "timezone",
            cause: format!(
                "{name:?} is not a time zone of the IANA database (`Europe/Berlin`, `UTC`){near}"
            ),
        }
    })
}

/// Checks one field, with `*` in all others.
fn check_field(parser: CronParser, fields: usize, place: usize, field: &str) -> Result<(), String> {
    if field.starts_with('@') || field.starts_with('+') {
        return Err("it begins with a character that is not allowed".to_owned());
    }
    let mut pattern = vec!["*"; fields];
    if let Some(slot) = pattern.get_mut(place) {
        *slot = field;
    }
    match parser.parse(&pattern.join(" ")) {
        Ok(_) => Ok(()),
        Err(error) => {
            let text = error.to_string();
            // croner's messages begin with the name of an error type.
            let cause = text.split_once(": ").map_or(text.as_str(), |(_, cause)| cause);
            Err(cause.trim_end_matches('.').to_owned())
        }
    }
}

/// Returns whether one of the months has one of the days. Only plain numbers are checked, and only if no day of the
/// week can cause a run instead.
fn can_run(fields: &[&str]) -> bool {
    let (Some(days), Some(months), Some(weekdays)) =
        (fields.get(fields.len() - 3), fields.get(fields.len() - 2), fields.last())
    else {
        return true;
    };
    if fields.len() == 5 && !["*", "?"].contains(weekdays) {
        return true;
    }
    let Some(days) = parse_numbers(days, &[]) else { return true };
    let names =
        ["JAN", "FEB", "MAR", "APR", "MAY", "JUN", "JUL", "AUG", "SEP", "OCT", "NOV", "DEC"];
    let Some(months) = parse_numbers(months, &names) else { return true };
    let longest = months.into_iter().map(|month| match month {
        2 => 29,
        4 | 6 | 9 | 11 => 30,
        _ => 31,
    });
    days.into_iter().min() <= longest.max()
}

/// Parses a list of numbers and ranges; `None` if the field has anything else.
fn parse_numbers(field: &str, names: &[&str]) -> Option<Vec<u32>> {
    let mut found = Vec::new();
    for part in field.split(',') {
        let number = |text: &str| {
            let named = names.iter().position(|name| name.eq_ignore_ascii_case(text));
            named.map_or_else(|| text.parse().ok(), |place| u32::try_from(place + 1).ok())
        };
        match part.split_once('-') {
            Some((from, to)) => found.extend(number(from)?..=number(to)?),
            None => found.push(number(part)?),
        }
    }
    Some(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn utc(text: &str) -> DateTime<Utc> {
        text.parse().unwrap()
    }

    fn runs(schedule: &str, zone: &str, from: &str, count: usize) -> Vec<String> {
        let schedule = Schedule::parse(schedule, Some(zone)).unwrap();
        let mut at = utc(from);
        (0..count)
            .map(|_| {
                at = schedule.next(at).unwrap();
                at.format("%m-%dT%H:%M:%S").to_string()
            })
            .collect()
    }

    #[test]
    fn five_and_six_fields_with_weekdays_by_number_and_name() {
        assert_eq!(runs("30 6 * * *", "UTC", "2026-03-01T06:30:00Z", 1), ["03-02T06:30:00"]);
        assert_eq!(
            runs("*/20 0 6 * * *", "UTC", "2026-03-01T05:00:00.5Z", 4),
            ["03-01T06:00:00", "03-01T06:00:20", "03-01T06:00:40", "03-02T06:00:00"]
        );
        // March 1, 2026 is a Sunday.
        for sunday in ["0", "7", "SUN", "sun"] {
            let schedule = format!("0 12 * * {sunday}");
            assert_eq!(runs(&schedule, "UTC", "2026-03-01T12:00:00Z", 1), ["03-08T12:00:00"]);
        }
        assert_eq!(
            runs("0 12 * * MON-WED", "UTC", "2026-03-03T12:00:00Z", 2),
            ["03-04T12:00:00", "03-09T12:00:00"]
        );
        assert_eq!(
            runs("0 12 * * 5-7", "UTC", "2026-03-07T12:00:00Z", 2),
            ["03-08T12:00:00", "03-13T12:00:00"]
        );
        // Cron needs one of the days to match, Spring both.
        assert_eq!(runs("0 0 13 * FRI", "UTC", "2026-03-01T00:00:00Z", 1), ["03-06T00:00:00"]);
        assert_eq!(runs("0 0 0 13 * FRI", "UTC", "2026-03-01T00:00:00Z", 1), ["03-13T00:00:00"]);
    }

    #[test]
    fn a_fixed_time_runs_once_a_day_across_clock_changes() {
        // Europe/Berlin: 2026-03-29 02:00 becomes 03:00, 2026-10-25 03:00 becomes 02:00.
        let berlin = |schedule, from, count| runs(schedule, "Europe/Berlin", from, count);
        assert_eq!(
            berlin("30 2 * * *", "2026-03-28T12:00:00Z", 2),
            ["03-29T01:00:00", "03-30T00:30:00"]
        );
        assert_eq!(
            berlin("30 2 * * *", "2026-10-24T12:00:00Z", 2),
            ["10-25T00:30:00", "10-26T01:30:00"]
        );
        // Also when asked during the repeated hour.
        assert_eq!(berlin("30 2 * * *", "2026-10-25T01:15:00Z", 1), ["10-26T01:30:00"]);
        // The time zone skipped a whole day.
        assert_eq!(
            runs("0 12 * * *", "Pacific/Apia", "2011-12-29T23:00:00Z", 2),
            ["12-30T10:00:00", "12-30T22:00:00"]
        );
    }

    #[test]
    fn a_schedule_with_a_star_runs_in_both_occurrences_and_never_in_a_gap() {
        let berlin = |schedule, from, count| runs(schedule, "Europe/Berlin", from, count);
        assert_eq!(
            berlin("*/30 * * * *", "2026-10-24T23:45:00Z", 7),
            [
                "10-25T00:00:00",
                "10-25T00:30:00",
                "10-25T01:00:00",
                "10-25T01:30:00",
                "10-25T02:00:00",
                "10-25T02:30:00",
                "10-25T03:00:00"
            ]
        );
        assert_eq!(
            berlin("*/30 2 * * *", "2026-10-24T23:45:00Z", 5),
            [
                "10-25T00:00:00",
                "10-25T00:30:00",
                "10-25T01:00:00",
                "10-25T01:30:00",
                "10-26T01:00:00"
            ]
        );
        // The next day of a run is a week later.
        assert_eq!(
            berlin("*/30 2 * * SUN", "2026-10-24T23:45:00Z", 5),
            [
                "10-25T00:00:00",
                "10-25T00:30:00",
                "10-25T01:00:00",
                "10-25T01:30:00",
                "11-01T01:00:00"
            ]
        );
        assert_eq!(
            berlin("*/30 * * * *", "2026-03-29T00:15:00Z", 3),
            ["03-29T00:30:00", "03-29T01:00:00", "03-29T01:30:00"]
        );
        assert_eq!(berlin("*/30 2 * * *", "2026-03-28T12:00:00Z", 1), ["03-30T00:00:00"]);
        assert_eq!(
            berlin("0 * 1 1 *", "2026-06-01T00:00:00Z", 2),
            ["12-31T23:00:00", "01-01T00:00:00"]
        );
    }

    #[test]
    fn the_next_run_is_always_in_the_future() {
        for zone in
            ["Europe/Berlin", "America/New_York", "Australia/Lord_Howe", "Africa/Casablanca", "UTC"]
        {
            for cron in ["* * * * *", "*/7 * * * *", "15 2 * * *", "0,30 1-3 * * *"] {
                let schedule = Schedule::parse(cron, Some(zone)).unwrap();
                for change in [
                    "2026-03-29",
                    "2026-10-25",
                    "2026-03-08",
                    "2026-11-01",
                    "2026-04-05",
                    "2026-02-15",
                ] {
                    let mut at = utc(&format!("{change}T00:00:00Z")) - TimeDelta::hours(12);
                    let end = at + TimeDelta::hours(40);
                    while at < end {
                        let next = schedule.next(at).unwrap();
                        assert!(
                            next > at && next - at <= TimeDelta::hours(26),
                            "{zone} {cron} {at} {next}"
                        );
                        if cron == "* * * * *" {
                            assert_eq!(next - at, TimeDelta::minutes(1), "{zone} {at}");
                        }
                        at = next;
                    }
                }
            }
        }
    }

    #[test]
    fn errors_name_the_field() {
        let wrong = |schedule, zone| Schedule::parse(schedule, zone).unwrap_err();
        for (schedule, part) in [
            ("", "0 fields"),
            ("* * * *", "4 fields"),
            ("0 0 0 1 1 ? 2026", "7 fields"),
            ("60 * * * *", "minute \"60\""),
            ("0 24 * * *", "hour \"24\""),
            ("0 0 32 * *", "day of the month \"32\""),
            ("0 0 * 13 *", "month \"13\""),
            ("0 0 * * 8", "day of the week \"8\""),
            ("0 0 * * FUN", "day of the week \"FUN\""),
            ("x 0 0 * * *", "second \"x\""),
            ("0 0 */0 * *", "day of the month \"*/0\""),
            ("@daily", "1 fields"),
            ("0 0 30 2 *", "no month"),
            ("0 0 0 30,31 FEB ?", "no month"),
        ] {
            let SettingError { member, cause } = wrong(schedule, None);
            assert_eq!(member, "schedule");
            assert!(cause.contains(part), "{schedule}: {cause}");
        }
        let SettingError { member, cause } = wrong("0 0 * * *", Some("Europe/Berln"));
        assert_eq!(member, "timezone");
        assert!(cause.contains("did you mean `Europe/Berlin`"), "{cause}");
        assert!(Schedule::parse("0 0 29 2 *", None).is_ok());
        assert!(Schedule::parse("0 0 31 * MON", None).is_ok());
    }

    #[test]
    fn february_29_is_found() {
        assert_eq!(runs("0 0 29 2 *", "UTC", "2096-03-01T00:00:00Z", 1), ["02-29T00:00:00"]);
    }
}
