//! Parses times of day: `22:00-06:00,12:30-13:00`.
use std::fmt;
use std::str::FromStr;

const MINUTES_PER_DAY: u16 = 24 * 60;

/// Ranges of minutes of a day. A range includes its start and excludes its end, and may cross midnight.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Window(Vec<(u16, u16)>);

impl Window {
    /// Whether this minute of the day is in one of the ranges.
    pub fn contains_minute(&self, minute: u16) -> bool {
        self.0.iter().any(|&(from, to)| {
            if from < to { (from..to).contains(&minute) } else { minute >= from || minute < to }
        })
    }
}

/// The error for a text that is not a list of times of day.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("expected times of day, such as 22:00-06:00")]
pub struct WindowParseError;

impl FromStr for Window {
    type Err = WindowParseError;

    /// Parses `HH:MM-HH:MM`; several ranges are separated by commas.
    fn from_str(text: &str) -> Result<Self, WindowParseError> {
        let ranges: Option<Vec<_>> =
            text.split(',').map(|range| parse_range(range.trim())).collect();
        ranges.map(Self).ok_or(WindowParseError)
    }
}

impl fmt::Display for Window {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (i, (from, to)) in self.0.iter().enumerate() {
            let comma = if i == 0 { "" } else { "," };
            write!(f, "{comma}{:02}:{:02}-{:02}:{:02}", from / 60, from % 60, to / 60, to % 60)?;
        }
        Ok(())
    }
}

fn parse_range(text: &str) -> Option<(u16, u16)> {
    let (from, to) = text.split_once('-')?;
    let (from, to) = (parse_minute(from.trim())?, parse_minute(to.trim())?);
    (from != to && from < MINUTES_PER_DAY).then_some((from, to))
}

/// Parses a time as the minute of the day; `24:00` is the end of the day.
fn parse_minute(text: &str) -> Option<u16> {
    let (hours, minutes) = text.split_once(':')?;
    let digits = |text: &str| text.len() == 2 && text.bytes().all(|byte| byte.is_ascii_digit());
    if !digits(hours) || !digits(minutes) {
        return None;
    }
    let (hours, minutes) = (hours.parse::<u16>().ok()?, minutes.parse::<u16>().ok()?);
    (minutes < 60 && hours * 60 + minutes <= MINUTES_PER_DAY).then_some(hours * 60 + minutes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_include_their_start_exclude_their_end_and_cross_midnight() {
        let window = "22:00-06:00, 12:30-13:00".parse::<Window>().unwrap();
        for (minute, within) in [
            (0, true),
            (359, true),
            (360, false),
            (749, false),
            (750, true),
            (780, false),
            (1319, false),
            (1320, true),
            (1439, true),
        ] {
            assert_eq!(window.contains_minute(minute), within, "{minute}");
        }
        assert_eq!(window.to_string(), "22:00-06:00,12:30-13:00");
        assert!("00:00-24:00".parse::<Window>().unwrap().contains_minute(1439));
        assert!(!"18:00-24:00".parse::<Window>().unwrap().contains_minute(0));
        for text in [
            "",
            "22-06",
            "22:00",
            "22:60-23:00",
            "24:00-01:00",
            "1:00-2:00",
            "06:00-06:00",
            "25:00-01:00",
            "a:bc-de:fg",
        ] {
            assert_eq!(text.parse::<Window>(), Err(WindowParseError), "{text}");
        }
    }
}
