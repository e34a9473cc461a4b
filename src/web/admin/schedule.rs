//! The schedule of a Business Object in words, with its next runs.
use askama::Template;
use chrono::{DateTime, TimeDelta, Utc};
use penstock_model::resource::Schedule;

/// The number of next runs that are shown.
const SHOWN_RUNS: usize = 3;
/// The names of the days of the week, from 0 for Sunday; 7 is Sunday too.
const WEEKDAYS: [&str; 8] =
    ["Sunday", "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday"];

/// A schedule in words, with its next runs.
#[derive(Debug, Default, PartialEq, Eq, Template)]
#[template(path = "admin/runs.html")]
pub(super) struct ShownSchedule {
    /// Whether there is a schedule.
    pub(super) is_set: bool,
    /// What it says; the text itself if there are no words for it.
    pub(super) words: String,
    /// The next runs in its time zone.
    pub(super) runs: Vec<String>,
    pub(super) zone: String,
    /// Why it is not valid.
    pub(super) error: Option<String>,
}

impl ShownSchedule {
    /// Describes a schedule; `zone` is the name of its time zone, by default UTC.
    pub(super) fn new(text: Option<&str>, zone: Option<&str>, now: DateTime<Utc>) -> Self {
        let Some(text) = text else { return Self::default() };
        let shown = Self {
            is_set: true,
            words: describe_cron(text).unwrap_or_else(|| text.to_owned()),
            zone: zone.unwrap_or("UTC").to_owned(),
            ..Self::default()
        };
        match Schedule::parse(text, zone) {
            Ok(schedule) => Self { runs: list_runs(&schedule, now), ..shown },
            Err(error) => Self { error: Some(error.cause), ..shown },
        }
    }
}

/// Lists the next runs in the local time of the schedule. If the clocks are changed in between, each has its offset.
fn list_runs(schedule: &Schedule, now: DateTime<Utc>) -> Vec<String> {
    let mut last = now;
    let runs = std::iter::from_fn(|| {
        last = schedule.next(last)?;
        let local = schedule.local_time_at(last);
        let text = local.format("%a %Y-%m-%d %H:%M:%S").to_string();
        Some((text, local - last.naive_utc()))
    });
    let runs: Vec<_> = runs.take(SHOWN_RUNS).collect();
    let has_change = runs.windows(2).any(|two| matches!(two, [(_, one), (_, next)] if one != next));
    let shown = runs.into_iter().map(|(text, offset)| {
        if has_change { format!("{text} {}", format_offset(offset)) } else { text }
    });
    shown.collect()
}

/// Formats the offset of a time zone: `+02:00`.
fn format_offset(offset: TimeDelta) -> String {
    let minutes = offset.num_minutes();
    let sign = if minutes < 0 { '−' } else { '+' };
    let minutes = minutes.unsigned_abs();
    format!("{sign}{:02}:{:02}", minutes / 60, minutes % 60)
}

/// Describes a cron schedule; `None` if it is none of the usual ones.
pub(super) fn describe_cron(text: &str) -> Option<String> {
    let fields: Vec<&str> = text.split_whitespace().collect();
    let (second, [minute, hour, day, month, weekday]) = match fields.as_slice() {
        [minute, hour, day, month, weekday] => ("0", [minute, hour, day, month, weekday]),
        [second, minute, hour, day, month, weekday] => {
            (*second, [minute, hour, day, month, weekday])
        }
        _ => return None,
    };
    if second != "0" || !is_any(month) {
        return None;
    }
    let days = describe_days(day, weekday)?;
    let times = match (*minute, *hour) {
        (minute, "*" | "*/1") => describe_minutes(minute)?,
        (minute, hour) => match hour.strip_prefix("*/") {
            Some(hours) if minute == "0" => format!("every {} hours", parse_step(hours, 24)?),
            Some(_) => return None,
            None => describe_hours(minute, hour)?,
        },
    };
    Some(match (days.as_str(), times.starts_with("at ")) {
        ("", true) => format!("every day {times}"),
        ("", false) => times,
        (days, true) => format!("{days} {times}"),
        (days, false) => format!("{times}, {days}"),
    })
}

fn is_any(field: &str) -> bool {
    matches!(field, "*" | "?")
}

fn parse_number(text: &str) -> Option<u32> {
    text.parse().ok()
}

/// Parses a step after which a run follows the one before at any time. Other steps are shorter at the end of the hour or
/// day, so that no words are right.
fn parse_step(step: &str, whole: u32) -> Option<u32> {
    parse_number(step).filter(|step| (2..whole).contains(step) && whole.is_multiple_of(*step))
}

/// Describes the minutes of every hour.
fn describe_minutes(minute: &str) -> Option<String> {
    match minute {
        "*" | "*/1" => return Some("every minute".to_owned()),
        "0" => return Some("every hour".to_owned()),
        _ => {}
    }
    Some(match minute.strip_prefix("*/") {
        Some(step) => format!("every {} minutes", parse_step(step, 60)?),
        None => format!("every hour at minute {}", parse_number(minute)?),
    })
}

/// Describes one minute of single hours.
fn describe_hours(minute: &str, hours: &str) -> Option<String> {
    let minute = parse_number(minute)?;
    let times =
        hours.split(',').map(|hour| Some(format!("{:02}:{minute:02}", parse_number(hour)?)));
    Some(format!("at {}", join_words(&times.collect::<Option<Vec<_>>>()?)))
}

/// Describes the days; empty if it is every day.
fn describe_days(day: &str, weekday: &str) -> Option<String> {
    match (is_any(day), is_any(weekday)) {
        (true, true) => Some(String::new()),
        (true, false) => describe_weekdays(weekday),
        (false, true) => {
            let day = parse_number(day)?;
            let condition = if day > 28 { " that has it" } else { "" };
            Some(format!("on day {day} of each month{condition}"))
        }
        (false, false) => None,
    }
}

fn describe_weekdays(weekday: &str) -> Option<String> {
    if let Some((first, last)) = weekday.split_once('-') {
        return Some(format!("{} to {}", name_weekday(first)?, name_weekday(last)?));
    }
    let days = weekday.split(',').map(|day| Some(name_weekday(day)?.to_owned()));
    Some(format!("every {}", join_words(&days.collect::<Option<Vec<_>>>()?)))
}

fn name_weekday(text: &str) -> Option<&'static str> {
    match parse_number(text) {
        Some(number) => WEEKDAYS.get(usize::try_from(number).ok()?).copied(),
        None if text.len() >= 3 => WEEKDAYS.into_iter().find(|name| {
            let name = name.get(..text.len()).unwrap_or(name);
            name.eq_ignore_ascii_case(text)
        }),
        None => None,
    }
}

fn join_words(words: &[String]) -> String {
    match words {
        [] => String::new(),
        [one] => one.clone(),
        [others @ .., last] => format!("{} and {last}", others.join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn usual_schedules_have_words() {
        for (cron, words) in [
            ("0 5 * * *", "every day at 05:00"),
            ("0 0 5,17 * * *", "every day at 05:00 and 17:00"),
            ("30 6 * * 1-5", "Monday to Friday at 06:30"),
            ("30 6 ? * MON,wed,7", "every Monday, Wednesday and Sunday at 06:30"),
            ("0 3 1 * *", "on day 1 of each month at 03:00"),
            ("*/15 * * * *", "every 15 minutes"),
            ("* * * * *", "every minute"),
            ("5 * * * *", "every hour at minute 5"),
            ("0 * * * SAT", "every hour, every Saturday"),
            ("0 */6 * * *", "every 6 hours"),
            ("*/1 * * * *", "every minute"),
            ("0 */1 * * *", "every hour"),
            ("*/30 */1 * * *", "every 30 minutes"),
            ("0 3 28 * *", "on day 28 of each month at 03:00"),
            ("0 3 31 * *", "on day 31 of each month that has it at 03:00"),
        ] {
            assert_eq!(describe_cron(cron).as_deref(), Some(words), "{cron}");
        }
        for cron in [
            "0 5 1 * 1",
            "0 5 * 1 *",
            "1-5 5 * * *",
            "0 5 L * *",
            "30 0 5 * * *",
            "daily",
            "*/7 * * * *",
            "*/45 * * * *",
            "*/90 * * * *",
            "*/0 * * * *",
            "0 */5 * * *",
            "*/5 */2 * * *",
        ] {
            assert_eq!(describe_cron(cron), None, "{cron}");
        }
    }

    #[test]
    fn next_runs_have_the_time_of_the_zone() {
        let now = "2026-03-28T12:00:00Z".parse().unwrap();
        let shown = ShownSchedule::new(Some("0 5 * * *"), Some("Europe/Vienna"), now);
        assert_eq!(shown.words, "every day at 05:00");
        assert_eq!(
            shown.runs,
            ["Sun 2026-03-29 05:00:00", "Mon 2026-03-30 05:00:00", "Tue 2026-03-31 05:00:00"]
        );
        assert_eq!(shown.zone, "Europe/Vienna");
        let wrong = ShownSchedule::new(Some("every day"), None, now);
        assert!(wrong.error.is_some() && wrong.runs.is_empty(), "{wrong:?}");
        assert_eq!(ShownSchedule::new(None, Some("UTC"), now), ShownSchedule::default());
    }

    #[test]
    fn runs_in_a_repeated_hour_have_their_offset() {
        let now = "2026-10-25T00:10:00Z".parse().unwrap();
        let list = |zone| ShownSchedule::new(Some("*/30 * * * *"), zone, now).runs;
        assert_eq!(
            list(Some("Europe/Vienna")),
            [
                "Sun 2026-10-25 02:30:00 +02:00",
                "Sun 2026-10-25 02:00:00 +01:00",
                "Sun 2026-10-25 02:30:00 +01:00"
            ]
        );
        assert_eq!(
            list(None),
            ["Sun 2026-10-25 00:30:00", "Sun 2026-10-25 01:00:00", "Sun 2026-10-25 01:30:00"]
        );
        assert_eq!(format_offset(TimeDelta::minutes(-210)), "−03:30");
    }
}
