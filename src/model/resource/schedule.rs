//! When a schedule's runs are due: cron in a time zone.
//!
//! croner reads the fields and finds the next local time that they match; what that time is in the zone is
//! found here, since croner (3.0) passes over the hour that a clock lives twice, and in its second pass
//! answers with times that are over.
//!
//! Across a change of the offset, as in Vixie cron: a schedule whose hours, minutes and seconds are fixed runs
//! once, at the first of two equal local times, and at the end of a gap that swallows it. One with a `*` in
//! them follows the clock on the wall: it runs in both passes, and never in a gap.
use chrono::{DateTime, NaiveDateTime, TimeDelta, Utc};
use croner::Cron;
use croner::parser::{CronParser, Seconds, Year};
use penstock_base::time_zone::Zone;

/// The names of the fields of a schedule with seconds; one of five has none.
const FIELDS: [&str; 6] =
    ["second", "minute", "hour", "day of the month", "month", "day of the week"];
/// How far ahead of a moment changes of the offset are looked for.
const NEAR: TimeDelta = TimeDelta::hours(24);
/// The longest gap there has been was a day (Samoa, 2011).
const LONGEST_GAP_MINUTES: i64 = 2 * 24 * 60;
/// A run that is further ahead than the days of the Gregorian calendar repeat for February 29 never comes.
const FURTHEST_YEARS: i32 = 9;

/// A schedule, ready to be asked.
#[derive(Clone)]
pub struct Schedule {
    cron: Cron,
    zone: Zone,
    /// Whether it follows the clock on the wall through changes of the offset.
    wild: bool,
}

impl std::fmt::Debug for Schedule {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Schedule({} in {})", self.cron.pattern, self.zone)
    }
}

/// What is wrong with a schedule, and in which member of the definition.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Wrong {
    /// `schedule` or `timezone`.
    pub member: &'static str,
    /// Why, in words.
    pub cause: String,
}

impl Schedule {
    /// Reads cron of five fields, or Spring's six, which begin with seconds.
    pub fn read(schedule: &str, timezone: Option<&str>) -> Result<Self, Wrong> {
        let zone = timezone.map_or(Ok(Zone::UTC), zone)?;
        let wrong = |cause| Wrong { member: "schedule", cause };
        let fields: Vec<&str> = schedule.split_whitespace().collect();
        if fields.len() != 5 && fields.len() != 6 {
            return Err(wrong(format!(
                "{schedule:?} has {} fields; cron has five (minute, hour, day of the month, month, day of the \
                 week), or six with seconds before them",
                fields.len()
            )));
        }
        // Cron of five fields takes either day; Spring's asks for both.
        let parser = CronParser::builder()
            .seconds(Seconds::Optional)
            .year(Year::Disallowed)
            .dom_and_dow(fields.len() == 6)
            .build();
        let names = FIELDS.get(6 - fields.len()..).unwrap_or_default();
        for (place, (field, name)) in fields.iter().zip(names).enumerate() {
            check(parser, fields.len(), place, field).map_err(|cause| {
                wrong(format!("the {name} {field:?} of {schedule:?} is not valid: {cause}"))
            })?;
        }
        let cron = parser
            .parse(schedule)
            .map_err(|error| wrong(format!("{schedule:?} is no cron schedule: {error}")))?;
        let times = fields.get(..fields.len() - 3).unwrap_or_default();
        let wild = times.iter().any(|field| field.contains('*'));
        if !comes(&fields) {
            return Err(wrong(format!("{schedule:?} names a day that no month of it has")));
        }
        Ok(Self { cron, zone, wild })
    }

    /// The first moment after `after` at which a run is due; `None` when there is none for years.
    pub fn next(&self, after: DateTime<Utc>) -> Option<DateTime<Utc>> {
        // Whole seconds: a moment within one lies after that second.
        let after = DateTime::from_timestamp(after.timestamp(), 0)?;
        let next = if self.wild { self.next_on_the_wall(after) } else { self.next_fixed(after) };
        next.filter(|next| *next > after)
    }

    fn next_fixed(&self, after: DateTime<Utc>) -> Option<DateTime<Utc>> {
        let mut local = self.zone.local(after);
        loop {
            local = self.next_local(local, false)?;
            let at = self.zone.first(local).or_else(|| self.after_gap(local))?;
            if at > after {
                return Some(at);
            }
        }
    }

    fn next_on_the_wall(&self, after: DateTime<Utc>) -> Option<DateTime<Utc>> {
        let (mut from, mut inclusive) = (after, false);
        // Each turn comes to a change of the offset or near to the run: a few are enough.
        for _ in 0..1000 {
            let local = self.zone.local(from);
            let next = self.next_local(local, inclusive)?;
            let at = from + (next - local);
            if at - from > NEAR {
                (from, inclusive) = (at - NEAR / 2, true);
                // Nothing between: all local times up to there were looked at.
                if self.zone.local(from) > next {
                    return Some(at);
                }
                continue;
            }
            match self.change(from, at) {
                Some(change) => (from, inclusive) = (change, true),
                None => return Some(at),
            }
        }
        None
    }

    fn next_local(&self, local: NaiveDateTime, inclusive: bool) -> Option<NaiveDateTime> {
        // As if it were UTC, which has neither gaps nor second passes.
        let next = self.cron.find_next_occurrence(&local.and_utc(), inclusive).ok()?.naive_utc();
        let years = chrono::Datelike::year(&next) - chrono::Datelike::year(&local);
        (years <= FURTHEST_YEARS).then_some(next)
    }

    /// The first moment after `from`, at `to` at the latest, that has another offset than the one before it.
    fn change(&self, from: DateTime<Utc>, to: DateTime<Utc>) -> Option<DateTime<Utc>> {
        let mut before = from;
        while before < to {
            let mut after = (before + TimeDelta::minutes(15)).min(to);
            if self.zone.offset(after) != self.zone.offset(before) {
                while after - before > TimeDelta::seconds(1) {
                    let middle = before + TimeDelta::seconds((after - before).num_seconds() / 2);
                    if self.zone.offset(middle) == self.zone.offset(before) {
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

    /// The first moment after the gap that swallows a local time.
    fn after_gap(&self, local: NaiveDateTime) -> Option<DateTime<Utc>> {
        (1..=LONGEST_GAP_MINUTES).find_map(|minutes| {
            let later = local.checked_add_signed(TimeDelta::minutes(minutes))?;
            let at = self.zone.first(later)?;
            // The gap may end within this minute.
            Some(self.change(at - TimeDelta::minutes(1), at).unwrap_or(at))
        })
    }
}

fn zone(name: &str) -> Result<Zone, Wrong> {
    name.parse::<Zone>().map_err(|()| {
        let near = penstock_base::nearest::nearest(name, Zone::names());
        let near = near.map_or_else(String::new, |near| format!("; did you mean `{near}`?"));
        Wrong {
            member: "timezone",
            cause: format!(
                "{name:?} is no time zone of the IANA database (`Europe/Berlin`, `UTC`){near}"
            ),
        }
    })
}

/// Checks one field, with all others left open.
fn check(parser: CronParser, fields: usize, place: usize, field: &str) -> Result<(), String> {
    if field.starts_with('@') || field.starts_with('+') {
        return Err("it has a character that no field has".to_owned());
    }
    let mut alone = vec!["*"; fields];
    if let Some(slot) = alone.get_mut(place) {
        *slot = field;
    }
    match parser.parse(&alone.join(" ")) {
        Ok(_) => Ok(()),
        Err(error) => {
            let text = error.to_string();
            // croner's own words name its types before them.
            let cause = text.split_once(": ").map_or(text.as_str(), |(_, cause)| cause);
            Err(cause.trim_end_matches('.').to_owned())
        }
    }
}

/// Whether a day of the month that is named comes in a month that is named. Only plain numbers are looked
/// at, and only where no day of the week may bring a run instead.
fn comes(fields: &[&str]) -> bool {
    let (Some(days), Some(months), Some(weekdays)) =
        (fields.get(fields.len() - 3), fields.get(fields.len() - 2), fields.last())
    else {
        return true;
    };
    if fields.len() == 5 && !["*", "?"].contains(weekdays) {
        return true;
    }
    let Some(days) = numbers(days, &[]) else { return true };
    let names =
        ["JAN", "FEB", "MAR", "APR", "MAY", "JUN", "JUL", "AUG", "SEP", "OCT", "NOV", "DEC"];
    let Some(months) = numbers(months, &names) else { return true };
    let longest = months.into_iter().map(|month| match month {
        2 => 29,
        4 | 6 | 9 | 11 => 30,
        _ => 31,
    });
    days.into_iter().min() <= longest.max()
}

/// The numbers of a list, or of ranges; `None` when there is more in it.
fn numbers(field: &str, names: &[&str]) -> Option<Vec<u32>> {
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
        let schedule = Schedule::read(schedule, Some(zone)).unwrap();
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
        // Cron takes either day, Spring both.
        assert_eq!(runs("0 0 13 * FRI", "UTC", "2026-03-01T00:00:00Z", 1), ["03-06T00:00:00"]);
        assert_eq!(runs("0 0 0 13 * FRI", "UTC", "2026-03-01T00:00:00Z", 1), ["03-13T00:00:00"]);
    }

    #[test]
    fn a_fixed_time_runs_once_a_day_whatever_the_clock_does() {
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
        // Asked in the second pass, too.
        assert_eq!(berlin("30 2 * * *", "2026-10-25T01:15:00Z", 1), ["10-26T01:30:00"]);
        // A whole day was left out.
        assert_eq!(
            runs("0 12 * * *", "Pacific/Apia", "2011-12-29T23:00:00Z", 2),
            ["12-30T10:00:00", "12-30T22:00:00"]
        );
    }

    #[test]
    fn what_follows_the_wall_runs_in_both_passes_and_never_in_a_gap() {
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
    fn the_next_run_is_always_ahead() {
        for zone in
            ["Europe/Berlin", "America/New_York", "Australia/Lord_Howe", "Africa/Casablanca", "UTC"]
        {
            for cron in ["* * * * *", "*/7 * * * *", "15 2 * * *", "0,30 1-3 * * *"] {
                let schedule = Schedule::read(cron, Some(zone)).unwrap();
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
    fn what_is_wrong_is_named_with_its_field() {
        let wrong = |schedule, zone| Schedule::read(schedule, zone).unwrap_err();
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
            let Wrong { member, cause } = wrong(schedule, None);
            assert_eq!(member, "schedule");
            assert!(cause.contains(part), "{schedule}: {cause}");
        }
        let Wrong { member, cause } = wrong("0 0 * * *", Some("Europe/Berln"));
        assert_eq!(member, "timezone");
        assert!(cause.contains("did you mean `Europe/Berlin`"), "{cause}");
        assert!(Schedule::read("0 0 29 2 *", None).is_ok());
        assert!(Schedule::read("0 0 31 * MON", None).is_ok());
    }

    #[test]
    fn february_29_is_found() {
        assert_eq!(runs("0 0 29 2 *", "UTC", "2096-03-01T00:00:00Z", 1), ["02-29T00:00:00"]);
    }
}
