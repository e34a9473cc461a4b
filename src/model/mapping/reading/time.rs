//! Dates and times in other forms than XML Schema's. jiff reads them, but for what is only numbers.
use super::form::{AcceptedForm, ReadValue};
use crate::mapping::Kind;
use jiff::SignedDuration;
use jiff::civil::{Date, DateTime, Time, date};
use jiff::fmt::strtime::{self, BrokenDownTime};
use jiff::fmt::temporal::{Pieces, PiecesOffset};
use jiff::tz::{AmbiguousOffset, Offset, TimeZone};
use penstock_base::json::Json;
use penstock_base::time_zone::Zone;
use penstock_rdf::compare::ValueOrder;
use penstock_rdf::number::PlainNumber;
use std::fmt::Display;

/// The maximum number of digits of the seconds since 1970, and of their fraction.
pub(super) const MAX_SECOND_DIGITS: usize = 18;

/// The unit of the numbers of `OData` in seconds, as a power of ten.
const ODATA_POWER: i32 = -3;

/// The maximum offset of such texts in minutes, which is that of XML Schema.
pub(super) const MAX_ODATA_OFFSET_MINUTES: i32 = 14 * 60;

/// The moment from which such times count.
const EPOCH: DateTime = DateTime::constant(1970, 1, 1, 0, 0, 0, 0);

/// The length of a date and time to the second: `2026-03-01T12:00:00`.
const SECONDS_LENGTH: usize = 19;

/// A date and time that a form has read.
struct GivenTime {
    local: DateTime,
    /// The local time as XML Schema writes it, with all digits of the fraction.
    text: String,
    offset: GivenOffset,
}

enum GivenOffset {
    /// The text has none.
    None,
    /// `Z`.
    Utc,
    /// A number.
    Numeric(Offset),
    /// A time zone by its name.
    Zone(Zone),
    /// The form is the time since 1970.
    Moment,
}

/// Returns the canonical form of a date or time in this form; `None` if the value does not fit.
///
/// # Errors
/// Returns the reason if the local time does not exist in the time zone.
pub(super) fn read(
    form: &AcceptedForm,
    order: ValueOrder,
    zone: Option<&Zone>,
    json: &Json,
) -> Option<Result<ReadValue, String>> {
    let given = match (form, json) {
        (AcceptedForm::Iso, Json::String(text)) => read_iso(text, order),
        (AcceptedForm::Unix(unit), Json::Number(digits) | Json::String(digits)) => {
            let (utc, fraction) = read_moment(digits, unit.power())?;
            Some(GivenTime::new(utc, &fraction, GivenOffset::Moment))
        }
        (AcceptedForm::OData, Json::String(text)) => read_odata(text),
        (AcceptedForm::Pattern(pattern), Json::String(text)) => read_pattern(pattern, text, order),
        _ => None,
    }?;
    given.into_value(order, zone)
}

/// Adds the offset of the time zone to a canonical time that has none.
///
/// # Errors
/// Returns the reason if the local time does not exist in the time zone.
pub(super) fn add_missing_offset(
    order: ValueOrder,
    zone: Option<&Zone>,
    json: Json,
) -> Result<ReadValue, String> {
    let (Json::String(text), Some(zone), ValueOrder::DateTime) = (&json, zone, order) else {
        return Ok(ReadValue::new(json));
    };
    let has_offset = text.split_once('T').is_some_and(|(_, time)| time.contains(['Z', '+', '-']));
    if has_offset {
        return Ok(ReadValue::new(json));
    }
    let local = text.get(..SECONDS_LENGTH).and_then(|text| text.parse::<DateTime>().ok());
    match local.and_then(|local| add_zone(text, local, zone)) {
        Some(read) => read,
        None if text.contains("T24") => Err(format!(
            "{text:?} is the end of a day, which has no offset in the time zone {zone}; send 00:00:00 of the next day, or the \
             time with its offset"
        )),
        None => {
            Err(format!("{text:?} has no offset in the time zone {zone}; send it with the offset"))
        }
    }
}

impl GivenTime {
    fn new(local: DateTime, fraction: &str, offset: GivenOffset) -> Self {
        let point = if fraction.is_empty() { "" } else { "." };
        Self { local, text: format!("{}{point}{fraction}", format_civil(&local)), offset }
    }

    /// Returns the value; `None` if XML Schema has no such offset.
    fn into_value(
        self,
        order: ValueOrder,
        zone: Option<&Zone>,
    ) -> Option<Result<ReadValue, String>> {
        let Self { local, mut text, offset } = self;
        if order == ValueOrder::Date {
            let local = match (offset, zone) {
                (GivenOffset::Moment, Some(zone)) => zone.time_and_offset_of(local).0,
                _ => local,
            };
            return Some(Ok(ReadValue::new(Json::String(format_civil(&local.date())))));
        }
        match (&offset, zone) {
            (GivenOffset::Zone(zone), _) | (GivenOffset::None, Some(zone)) => {
                return add_zone(&text, local, zone);
            }
            (GivenOffset::None, None) => {}
            (GivenOffset::Utc | GivenOffset::Moment, _) => text.push('Z'),
            (GivenOffset::Numeric(offset), _) => text.push_str(&format_offset(*offset)?),
        }
        Some(Ok(ReadValue::new(Json::String(text))))
    }
}

/// Adds the offset of a time zone to a local time. `None` if XML Schema has no such offset, as before the time zones.
fn add_zone(text: &str, local: DateTime, zone: &Zone) -> Option<Result<ReadValue, String>> {
    let (offset, is_repeated) = match zone.offset_of(local) {
        AmbiguousOffset::Unambiguous { offset } => (offset, false),
        AmbiguousOffset::Fold { before, .. } => (before, true),
        AmbiguousOffset::Gap { .. } => {
            return Some(Err(format!(
                "there is no {text:?} in the time zone {zone}, because the clocks skip this hour; send the time with its offset"
            )));
        }
    };
    let value = format!("{text}{}", format_offset(offset)?);
    let warning = is_repeated.then(|| {
        format!("{text:?} occurs twice in the time zone {zone}; the first is taken, {value}")
    });
    Some(Ok(ReadValue { json: Json::String(value), warning }))
}

/// Writes a date, perhaps with a time, as XML Schema does. jiff writes a year before 0000 with six digits.
fn format_civil(civil: &impl Display) -> String {
    let text = civil.to_string();
    match text.strip_prefix("-00") {
        Some(rest) => format!("-{rest}"),
        None => text,
    }
}

/// Writes an offset as XML Schema does; `None` if it has seconds.
fn format_offset(offset: Offset) -> Option<String> {
    let (seconds, sign) = (offset.seconds(), if offset.seconds() < 0 { '-' } else { '+' });
    let minutes = seconds.unsigned_abs() / 60;
    (seconds % 60 == 0).then(|| format!("{sign}{:02}:{:02}", minutes / 60, minutes % 60))
}

/// Reads ISO 8601. A text of only digits is no date here, because it may be the time since 1970.
fn read_iso(text: &str, order: ValueOrder) -> Option<GivenTime> {
    if text.contains('[') || text.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    let pieces = Pieces::parse(text).ok()?;
    let second = |text: &str| Some(Pieces::parse(text).ok()?.time()?.second());
    let time = match pieces.time() {
        Some(time) if is_leap_second(text, time, second) => return None,
        Some(time) => time,
        None if order == ValueOrder::Date => Time::midnight(),
        None => return None,
    };
    let offset = match pieces.offset() {
        None => GivenOffset::None,
        Some(PiecesOffset::Zulu) => GivenOffset::Utc,
        Some(offset) => GivenOffset::Numeric(offset.to_numeric_offset()),
    };
    let local = DateTime::from_parts(pieces.date(), time);
    Some(match find_fraction(text, time) {
        Some((second, digits)) => GivenTime::new(pieces.date().to_datetime(second), digits, offset),
        None => GivenTime::new(local, "", offset),
    })
}

/// Returns the second of a time, and the digits of its fraction in a text: jiff writes no zeros at the end.
fn find_fraction(text: &str, time: Time) -> Option<(Time, &str)> {
    let (_, rest) = text.split_once(['.', ','])?;
    let length = rest.bytes().take_while(u8::is_ascii_digit).count();
    let digits = rest.get(..length)?;
    let nanoseconds = format!("{digits:0<9}").parse::<i32>().ok()?;
    let second = time.with().subsec_nanosecond(0).build().ok()?;
    (nanoseconds == time.subsec_nanosecond()).then_some((second, digits))
}

/// Returns whether the second of a text is 60, which jiff reads as 59. `read_second` reads the second of a text.
fn is_leap_second(text: &str, time: Time, read_second: impl Fn(&str) -> Option<i8>) -> bool {
    const LEAP: &str = "60";
    // Only where the second is, another one gives another time.
    let is_second = |(at, _): (usize, &str)| {
        let (before, rest) = text.split_at(at);
        let after = rest.strip_prefix(LEAP).unwrap_or_default();
        read_second(&format!("{before}58{after}")) == Some(58)
    };
    time.second() == 59 && text.match_indices(LEAP).any(is_second)
}

/// Reads a time since 1970, in seconds times this power of ten: the second in UTC, and the digits of its fraction. It is no
/// `jiff::Timestamp`, because that ends before 9999-12-31, with which many systems mean "without end".
pub(super) fn read_moment(digits: &str, power: i32) -> Option<(DateTime, String)> {
    let (seconds, fraction) =
        split_integer(digits, power).or_else(|| split_number(digits, power))?;
    Some((add_seconds(EPOCH, seconds)?, fraction))
}

/// Returns a later or earlier time; `None` beyond the years -9999 to 9999.
fn add_seconds(time: DateTime, seconds: i64) -> Option<DateTime> {
    time.checked_add(SignedDuration::from_secs(seconds)).ok()
}

/// Splits an integer, as nearly all senders write times. `None` for other numbers, and for large ones.
fn split_integer(digits: &str, power: i32) -> Option<(i64, String)> {
    let number: i64 = digits.parse().ok()?;
    let length = u32::try_from(power.checked_neg()?).ok()?;
    let unit = 10_i64.checked_pow(length)?;
    let (seconds, rest) = (number.div_euclid(unit), number.rem_euclid(unit));
    if rest == 0 {
        return Some((seconds, String::new()));
    }
    let mut fraction = format!("{rest:0width$}", width = length as usize);
    fraction.truncate(fraction.trim_end_matches('0').len());
    Some((seconds, fraction))
}

/// Splits any number.
fn split_number(digits: &str, power: i32) -> Option<(i64, String)> {
    let number = PlainNumber::parse(digits, power, MAX_SECOND_DIGITS)?;
    let (mut seconds, mut fraction) = (number.whole.parse::<i64>().ok()?, number.fraction);
    if number.is_negative {
        seconds = -seconds;
        if !fraction.is_empty() {
            // The fraction counts from the second before.
            seconds -= 1;
            let length = fraction.len();
            let whole = 10_u64.checked_pow(u32::try_from(length).ok()?)?;
            fraction = format!("{:0length$}", whole - fraction.parse::<u64>().ok()?);
        }
    }
    Some((seconds, fraction))
}

/// Reads `/Date(<milliseconds since 1970><offset in minutes>)/`.
fn read_odata(text: &str) -> Option<GivenTime> {
    let (digits, offset) = split_odata(text)?;
    let (utc, fraction) = read_moment(digits, ODATA_POWER)?;
    if offset.is_empty() {
        return Some(GivenTime::new(utc, &fraction, GivenOffset::Utc));
    }
    let minutes = offset.parse::<i32>().ok()?;
    if !(-MAX_ODATA_OFFSET_MINUTES..=MAX_ODATA_OFFSET_MINUTES).contains(&minutes) {
        return None;
    }
    let offset = Offset::from_seconds(minutes * 60).ok()?;
    let local = add_seconds(utc, offset.seconds().into())?;
    Some(GivenTime::new(local, &fraction, GivenOffset::Numeric(offset)))
}

/// Returns whether a text is in this form, and cannot be read nevertheless.
pub(super) fn is_outside_odata(text: &str) -> bool {
    let is_in_form = split_odata(text).is_some_and(|(digits, offset)| {
        digits.parse::<i64>().is_ok() && (offset.is_empty() || offset.parse::<i64>().is_ok())
    });
    is_in_form && read_odata(text).is_none()
}

/// Returns the number and the offset of such a text.
fn split_odata(text: &str) -> Option<(&str, &str)> {
    let inner = text.strip_prefix("/Date(")?.strip_suffix(")/")?;
    let offset_at = inner.char_indices().skip(1).find(|(_, char)| matches!(char, '+' | '-'));
    match offset_at {
        Some((at, _)) => inner.split_at_checked(at),
        None => Some((inner, "")),
    }
}

fn read_pattern(pattern: &str, text: &str, order: ValueOrder) -> Option<GivenTime> {
    let parsed = BrokenDownTime::parse(pattern, text).ok()?;
    let local = if order == ValueOrder::Date {
        parsed.to_date().ok()?.to_datetime(Time::midnight())
    } else {
        parsed.to_datetime().ok()?
    };
    let second = |text: &str| BrokenDownTime::parse(pattern, text).ok()?.second();
    if is_leap_second(text, local.time(), second) {
        return None;
    }
    let offset = match (parsed.offset(), parsed.iana_time_zone()) {
        (Some(offset), _) => GivenOffset::Numeric(offset),
        (None, Some(name)) => GivenOffset::Zone(name.parse().ok()?),
        (None, None) => GivenOffset::None,
    };
    Some(GivenTime::new(local, "", offset))
}

/// Why a pattern cannot be in `accept`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum PatternError {
    /// jiff cannot read such a text, or it does not give a date.
    Unreadable(String),
    /// It reads the time since 1970.
    Unix,
    /// It has no time of day, and the field needs one.
    NoTime,
    /// It does not read the time that it writes, as `%I` without `%p`.
    OtherTime,
    /// Its texts are also valid in this form, with another meaning.
    Contradicts(&'static str),
}

/// Checks that a pattern reads what it writes, and that no other form of the field reads that differently.
pub(crate) fn check_pattern(
    pattern: &str,
    kind: &Kind,
    accept: &[AcceptedForm],
) -> Result<(), PatternError> {
    let unreadable = |error: jiff::Error| PatternError::Unreadable(error.to_string());
    // A month and a day that could be each other.
    let sample: Date = date(2001, 2, 3);
    // An hour that a clock of twelve hours shows as another one.
    let zoned = sample.at(14, 5, 6, 0).to_zoned(TimeZone::UTC).map_err(unreadable)?;
    let text = strtime::format(pattern, &zoned).map_err(unreadable)?;
    let parsed = BrokenDownTime::parse(pattern, &text).map_err(unreadable)?;
    if parsed.timestamp().is_some() {
        return Err(PatternError::Unix);
    }
    let mut reads_it = parsed.to_date().map_err(unreadable)? == sample;
    if kind.order == ValueOrder::DateTime {
        let read = parsed.to_datetime().map_err(unreadable)?;
        if parsed.hour().is_none() {
            return Err(PatternError::NoTime);
        }
        reads_it &= read.hour() == zoned.hour();
    }
    if !reads_it {
        return Err(PatternError::OtherTime);
    }
    let is_digits = text.bytes().all(|byte| byte.is_ascii_digit());
    if is_digits && accept.iter().any(|form| matches!(form, AcceptedForm::Unix(_))) {
        return Err(PatternError::Contradicts("the time since 1970"));
    }
    let is_iso = kind.accepts(&Json::String(text.clone())) || accept.contains(&AcceptedForm::Iso);
    match read_iso(&text, kind.order) {
        Some(given) if is_iso && given.local.date() != sample => {
            Err(PatternError::Contradicts("ISO 8601"))
        }
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn an_integer_is_split_as_any_number(
            number in any::<i64>(),
            bits in 0..64_u32,
            power in -9..=0_i32,
        ) {
            // Small numbers are as likely as large ones.
            let digits = (number >> bits).to_string();
            if let Some(split) = split_number(&digits, power) {
                prop_assert_eq!(split_integer(&digits, power), Some(split));
            } else {
                prop_assert_eq!(read_moment(&digits, power), None);
            }
        }
    }
}
