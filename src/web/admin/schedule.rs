//! The schedule of a Business Object in words, with its next runs.
use askama::Template;
use chrono::{DateTime, Utc};
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

/// Lists the next runs in the local time of the schedule.
fn list_runs(schedule: &Schedule, now: DateTime<Utc>) -> Vec<String> {
    let mut last = now;
    let runs = std::iter::from_fn(|| {
        last = schedule.next(last)?;
        Some(schedule.local_time_at(last).format("%a %Y-%m-%d %H:%M:%S").to_string())
    });
    runs.take(SHOWN_RUNS).collect()
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
        (minute, "*") => describe_minutes(minute)?,
        (minute, hour) => match hour.strip_prefix("*/") {
            Some(hours) if minute == "0" => format!("every {} hours", parse_number(hours)?),
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

/// Describes the minutes of every hour.
fn describe_minutes(minute: &str) -> Option<String> {
    if let Some(step) = minute.strip_prefix("*/") {
        return Some(format!("every {} minutes", parse_number(step)?));
    }
    match minute {
        "*" => Some("every minute".to_owned()),
        "0" => Some("every hour".to_owned()),
        minute => Some(format!("every hour at minute {}", parse_number(minute)?)),
    }
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
        (false, true) => Some(format!("on day {} of each month", parse_number(day)?)),
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
        ] {
            assert_eq!(describe_cron(cron).as_deref(), Some(words), "{cron}");
        }
        for cron in ["0 5 1 * 1", "0 5 * 1 *", "1-5 5 * * *", "0 5 L * *", "30 0 5 * * *", "daily"]
        {
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
        let wrong = ShownSchedule::new(Some("every day"), None, now);
        assert!(wrong.error.is_some() && wrong.runs.is_empty(), "{wrong:?}");
        assert_eq!(ShownSchedule::new(None, Some("UTC"), now), ShownSchedule::default());
    }
}
