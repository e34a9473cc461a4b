//! The settings of a definition for automatic exports and retention.
use super::schedule::{Schedule, parse_zone};
use super::{Definition, SettingError};
use std::time::Duration;

/// The default time that an export on change waits for further changes.
const DEFAULT_DEBOUNCE: Duration = Duration::from_secs(5);
/// The maximum `debounce`.
const MAX_DEBOUNCE: Duration = Duration::from_hours(24);
/// The maximum `retention`, a thousand years.
const MAX_RETENTION_DAYS: u64 = 365_000;
const SECONDS_PER_DAY: u64 = 24 * 60 * 60;

/// The parsed settings for automatic exports and retention.
#[derive(Debug, Clone)]
pub struct AutomaticExports {
    /// The schedule of full exports.
    pub schedule: Option<Schedule>,
    /// The time that an export on change waits for further changes.
    pub debounce: Duration,
    /// The time after which unchanged, delivered objects are removed.
    pub retention: Option<Duration>,
}

impl Definition {
    /// Parses the settings for automatic exports and retention.
    ///
    /// # Errors
    /// Returns all settings that are not valid.
    pub fn parse_automatic(&self) -> Result<AutomaticExports, Vec<SettingError>> {
        let mut wrong = Vec::new();
        let mut read =
            AutomaticExports { schedule: None, debounce: DEFAULT_DEBOUNCE, retention: None };
        // A time zone without a schedule has no effect, but an invalid one is still an error. It hides none of the schedule.
        let timezone = self.timezone.as_deref();
        let invalid_zone = timezone.and_then(|name| parse_zone(name).err());
        let timezone = timezone.filter(|_| invalid_zone.is_none());
        match self.schedule.as_deref().map(|schedule| Schedule::parse(schedule, timezone)) {
            Some(Ok(schedule)) => read.schedule = Some(schedule),
            Some(Err(found)) => wrong.push(found),
            None => {}
        }
        wrong.extend(invalid_zone);
        let mut find = |member, cause| wrong.push(SettingError { member, cause });
        match self.debounce.as_deref().map(parse_duration) {
            Some(Ok(debounce)) if debounce > MAX_DEBOUNCE => {
                find("debounce", "`debounce` must be at most a day (24h)".to_owned());
            }
            Some(Ok(debounce)) => read.debounce = debounce,
            Some(Err(cause)) => find("debounce", cause),
            None => {}
        }
        match self.retention.as_deref().map(parse_iso_duration) {
            Some(Ok(retention)) => read.retention = Some(retention),
            Some(Err(cause)) => find("retention", cause),
            None => {}
        }
        if wrong.is_empty() { Ok(read) } else { Err(wrong) }
    }
}

/// Parses a number with its unit: `500ms`, `5s`, `2m`, `1h`.
fn parse_duration(text: &str) -> Result<Duration, String> {
    let wrong = || {
        format!(
            "{text:?} is not a duration; expected a number and a unit, such as `500ms`, `5s`, `2m` or `1h`"
        )
    };
    let digits = text.find(|c: char| !c.is_ascii_digit()).ok_or_else(wrong)?;
    let (number, unit) = text.split_at(digits);
    let number: u64 = number.parse().map_err(|_| wrong())?;
    let seconds = match unit {
        "ms" => return Ok(Duration::from_millis(number)),
        "s" => 1,
        "m" => 60,
        "h" => 60 * 60,
        _ => return Err(wrong()),
    };
    Ok(Duration::from_secs(number.saturating_mul(seconds)))
}

/// Parses an ISO 8601 duration without a calendar: a year has 365 days, a month 30.
fn parse_iso_duration(text: &str) -> Result<Duration, String> {
    let wrong = |why: &str| {
        format!("{text:?} is not an ISO 8601 duration such as `P30D`, `P1Y` or `PT12H`{why}")
    };
    if !text.starts_with('P') {
        return Err(wrong(""));
    }
    let span: jiff::Span = text.parse().map_err(|_| wrong(""))?;
    let part = |number: i64| u64::try_from(number).unwrap_or_default();
    let days = part(span.get_years().into()) * 365
        + part(span.get_months().into()) * 30
        + part(span.get_weeks().into()) * 7
        + part(span.get_days().into());
    let seconds = part(span.get_hours().into()) * 60 * 60
        + part(span.get_minutes()) * 60
        + part(span.get_seconds());
    let total = days.saturating_mul(SECONDS_PER_DAY).saturating_add(seconds);
    if total == 0 {
        return Err(wrong(": it must be at least a second"));
    }
    if total > MAX_RETENTION_DAYS * SECONDS_PER_DAY {
        return Err(format!("{text:?} is more than a thousand years"));
    }
    Ok(Duration::from_secs(total))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_are_numbers_with_a_unit() {
        assert_eq!(parse_duration("5s"), Ok(Duration::from_secs(5)));
        assert_eq!(parse_duration("0s"), Ok(Duration::ZERO));
        assert_eq!(parse_duration("1500ms"), Ok(Duration::from_millis(1500)));
        assert_eq!(parse_duration("2m"), Ok(Duration::from_mins(2)));
        assert_eq!(parse_duration("1h"), Ok(Duration::from_hours(1)));
        for text in ["", "5", "s", "5 s", "-5s", "1.5s", "5x", "PT5S", "99999999999999999999s"] {
            assert!(parse_duration(text).is_err(), "{text}");
        }
    }

    #[test]
    fn retention_is_counted_without_a_calendar() {
        assert_eq!(parse_iso_duration("P30D"), Ok(Duration::from_secs(30 * SECONDS_PER_DAY)));
        assert_eq!(
            parse_iso_duration("P1Y2M1W"),
            Ok(Duration::from_secs((365 + 60 + 7) * SECONDS_PER_DAY))
        );
        assert_eq!(parse_iso_duration("PT1H30M5S"), Ok(Duration::from_secs(5405)));
        for text in ["", "P", "30 days", "1d", "PT0S", "-P1D", "P-1D", "P1Y1Y", "P9999Y", "PT0.1S"]
        {
            assert!(parse_iso_duration(text).is_err(), "{text}");
        }
    }
}
