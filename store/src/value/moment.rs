//! The moments of dates and times. Each literal of a commit passes here, so the usual form has a reader of its own.
use oxrdf::NamedNodeRef;
use oxrdf::vocab::xsd;
use oxsdatatypes::{Date, DateTime, TimezoneOffset};
use std::iter;
use std::sync::LazyLock;

/// The maximum number of digits of the fraction of a second in the usual form.
const MAX_FRACTION_DIGITS: usize = 9;
const MICROS_PER_SECOND: i64 = 1_000_000;
const MICROS_PER_DAY: i64 = 86_400 * MICROS_PER_SECOND;
/// The days from the first of March of the year 0 to 1970.
const DAYS_BEFORE_1970: i64 = 719_468;

/// Returns the moment of a date or a time, in microseconds since 1970, rounded down. `None` if the text is not valid.
pub(super) fn parse_moment(text: &str, datatype: NamedNodeRef<'_>) -> Option<i64> {
    parse_usual_moment(text, datatype).or_else(|| parse_any_moment(text, datatype))
}

/// Returns whether the moment of a valid text is not one of whole microseconds, or may be too far away to be told from others.
pub(super) fn is_rounded(text: &str) -> bool {
    let is_usual_year = matches!(text.as_bytes(), [b'0'..=b'9', _, _, _, b'-', ..]);
    let (_, fraction) = text.split_once('.').unwrap_or_default();
    let mut digits = fraction.bytes().take_while(u8::is_ascii_digit).skip(6);
    !is_usual_year || digits.any(|digit| digit != b'0')
}

/// Returns the moment of an `xsd:date`, or with another datatype of an `xsd:dateTime`, in microseconds since 1970, rounded
/// down. Without a time zone it is in UTC.
///
/// It only reads the usual form: years from 0001 to 9999, at most nine digits after the point, and no end of a day as
/// `24:00:00`. Returns `None` for other texts, which may be valid.
pub fn parse_usual_moment(text: &str, datatype: NamedNodeRef<'_>) -> Option<i64> {
    let mut input = text.as_bytes();
    let mut micros = read_date(&mut input)? * MICROS_PER_DAY;
    if datatype != xsd::DATE {
        skip(&mut input, b'T')?;
        micros += read_time(&mut input)?;
    }
    Some(micros - read_offset(input)?)
}

fn parse_any_moment(text: &str, datatype: NamedNodeRef<'_>) -> Option<i64> {
    static EPOCH: LazyLock<Option<DateTime>> =
        LazyLock::new(|| "1970-01-01T00:00:00Z".parse().ok());
    let time = if datatype == xsd::DATE {
        DateTime::try_from(text.parse::<Date>().ok()?).ok()?
    } else {
        text.parse::<DateTime>().ok()?
    };
    let utc = time.adjust(Some(TimezoneOffset::UTC)).unwrap_or(time);
    let micros = utc.checked_sub((*EPOCH)?).map(|since| {
        // A fixed-point number of 18 digits after the point.
        i128::from_be_bytes(since.as_seconds().to_be_bytes()).div_euclid(10_i128.pow(12))
    });
    let farthest = if utc.year() < 0 { i64::MIN } else { i64::MAX };
    Some(micros.and_then(|micros| i64::try_from(micros).ok()).unwrap_or(farthest))
}

/// Reads the days since 1970.
fn read_date(input: &mut &[u8]) -> Option<i64> {
    let year = 100 * read_two_digits(input)? + read_two_digits(input)?;
    skip(input, b'-')?;
    let month = read_two_digits(input)?;
    skip(input, b'-')?;
    let day = read_two_digits(input)?;
    let is_leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
    let last_day = match month {
        2 => 28 + i64::from(is_leap),
        4 | 6 | 9 | 11 => 30,
        1 | 3 | 5 | 7 | 8 | 10 | 12 => 31,
        _ => return None,
    };
    if year == 0 || !(1..=last_day).contains(&day) {
        return None;
    }
    // With years that begin in March, the day of a leap year is the last one.
    let year = year - i64::from(month <= 2);
    let day_of_year = (153 * ((month + 9) % 12) + 2) / 5 + day - 1;
    Some(365 * year + year / 4 - year / 100 + year / 400 + day_of_year - DAYS_BEFORE_1970)
}

/// Reads the microseconds since midnight.
fn read_time(input: &mut &[u8]) -> Option<i64> {
    let hour = read_two_digits(input)?;
    skip(input, b':')?;
    let minute = read_two_digits(input)?;
    skip(input, b':')?;
    let second = read_two_digits(input)?;
    if hour > 23 || minute > 59 || second > 59 {
        return None;
    }
    Some((3600 * hour + 60 * minute + second) * MICROS_PER_SECOND + read_fraction(input)?)
}

/// Reads the fraction of a second, if there is one, in microseconds.
fn read_fraction(input: &mut &[u8]) -> Option<i64> {
    let Some(rest) = input.strip_prefix(b".") else { return Some(0) };
    let length = rest.iter().take_while(|byte| byte.is_ascii_digit()).count();
    if !(1..=MAX_FRACTION_DIGITS).contains(&length) {
        return None;
    }
    let (digits, rest) = rest.split_at_checked(length)?;
    *input = rest;
    let digits = digits.iter().copied().chain(iter::repeat(b'0')).take(6);
    Some(digits.fold(0, |number, digit| 10 * number + i64::from(digit - b'0')))
}

/// Reads what remains: how much the local time is ahead of UTC, in microseconds.
fn read_offset(input: &[u8]) -> Option<i64> {
    let (sign, mut input) = match input {
        [] | [b'Z'] => return Some(0),
        [b'+', rest @ ..] => (1, rest),
        [b'-', rest @ ..] => (-1, rest),
        _ => return None,
    };
    let hours = read_two_digits(&mut input)?;
    skip(&mut input, b':')?;
    let minutes = read_two_digits(&mut input)?;
    let is_usual = hours < 14 && minutes < 60 && input.is_empty();
    is_usual.then_some(sign * (60 * hours + minutes) * 60 * MICROS_PER_SECOND)
}

fn read_two_digits(input: &mut &[u8]) -> Option<i64> {
    let ([tens, ones], rest) = input.split_first_chunk::<2>()?;
    *input = rest;
    let are_digits = tens.is_ascii_digit() && ones.is_ascii_digit();
    are_digits.then(|| i64::from(tens - b'0') * 10 + i64::from(ones - b'0'))
}

fn skip(input: &mut &[u8], byte: u8) -> Option<()> {
    let (first, rest) = input.split_first()?;
    *input = rest;
    (*first == byte).then_some(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn the_usual_form_is_read_without_oxsdatatypes() {
        for (text, datatype, moment) in [
            ("1970-01-01T00:00:00Z", xsd::DATE_TIME, 0),
            ("2024-02-29T12:00:00.5+01:00", xsd::DATE_TIME, 1_709_204_400_500_000),
            ("1969-12-31T23:59:59.9999995", xsd::DATE_TIME_STAMP, -1),
            ("0001-01-01", xsd::DATE, -62_135_596_800_000_000),
            ("9999-12-31-13:59", xsd::DATE, 253_402_264_740_000_000),
        ] {
            assert_eq!(parse_usual_moment(text, datatype), Some(moment), "{text}");
        }
    }

    #[test]
    fn other_texts_are_left_to_oxsdatatypes() {
        for text in [
            "",
            "0000-01-01T00:00:00Z",
            "10000-01-01T00:00:00Z",
            "-0001-01-01T00:00:00Z",
            "2023-02-29T00:00:00Z",
            "2024-13-01T00:00:00Z",
            "2024-01-01T24:00:00Z",
            "2024-01-01T00:00:60Z",
            "2024-01-01T00:00:00.Z",
            "2024-01-01T00:00:00.1234567890Z",
            "2024-01-01T00:00:00+14:00",
            "2024-01-01T00:00:00+01:00Z",
            "2024-01-01T00:00:00z",
            "2024-01-01 00:00:00Z",
            "2024-01-01",
        ] {
            assert_eq!(parse_usual_moment(text, xsd::DATE_TIME), None, "{text}");
        }
    }

    /// Texts that are dates and times, or nearly so.
    fn texts() -> impl Strategy<Value = String> {
        let date = (0..10_000_i32, 1..14_i32, 1..33_i32);
        let time = (0..25_i32, 0..61_i32, 0..61_i32, prop::collection::vec(0..10_u8, 0..12));
        let offset =
            prop::sample::select(vec!["", "Z", "+00:00", "-00:30", "+13:59", "-14:00", "+14:01"]);
        let change =
            prop::option::weighted(0.2, (0..30_usize, prop::sample::select(b"0+:.Z ".to_vec())));
        (date, prop::option::of(time), offset, change).prop_map(|(date, time, offset, change)| {
            let (year, month, day) = date;
            let time = time.map_or_else(String::new, |(hour, minute, second, fraction)| {
                let point = if fraction.is_empty() { "" } else { "." };
                let digits: String = fraction.iter().map(u8::to_string).collect();
                format!("T{hour:02}:{minute:02}:{second:02}{point}{digits}")
            });
            let text = format!("{year:04}-{month:02}-{day:02}{time}{offset}");
            let mut bytes = text.into_bytes();
            if let Some((at, new)) = change
                && let Some(byte) = bytes.get_mut(at)
            {
                *byte = new;
            }
            String::from_utf8(bytes).unwrap()
        })
    }

    proptest! {
        #[test]
        fn usual_moments_are_those_of_oxsdatatypes(text in texts()) {
            for datatype in [xsd::DATE, xsd::DATE_TIME] {
                if let Some(moment) = parse_usual_moment(&text, datatype) {
                    prop_assert_eq!(parse_any_moment(&text, datatype), Some(moment), "{}", text);
                }
            }
        }
    }
}
