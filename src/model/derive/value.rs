//! Guesses the type of single values, and the other forms in which they are written.
use super::name::{is_identifier_name, is_time_name};
use super::seen::is_link;
use crate::mapping::{self, AcceptedForm, Kind, ListedValue, Literal, Reading, UnixUnit, Value};
use penstock_base::json::Json;
use penstock_base::time_zone::Zone;
use penstock_rdf::number::to_json_number;
use std::collections::HashMap;

/// The type of the values at one position.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct ValueGuess {
    /// The name of the type in a mapping.
    pub(super) kind: &'static str,
    /// The other form in which all values are written.
    pub(super) accept: Option<AcceptedForm>,
    /// Whether the values are codes, which become IRIs.
    pub(super) is_code: bool,
    /// Why it is this type, if that is not obvious.
    pub(super) note: Option<String>,
}

/// The range of times in smaller units, in seconds since 1970, in which a number can be one: from 2000 to 2100.
const TIME_RANGE: std::ops::Range<f64> = 946_684_800.0..4_102_444_800.0;
/// The range of times in seconds since 1970: from 2001 to 2038. Smaller numbers, and those of 32 bits beyond it, are rather
/// counters, such as that of the microseconds of a gateway of `LoRaWAN`.
const SECONDS_RANGE: std::ops::Range<f64> = 1_000_000_000.0..2_147_483_648.0;
/// The patterns of dates and times that are tried.
const PATTERNS: [(&Value, &str); 13] = [
    (DATE_TIME, "%d.%m.%Y %H:%M:%S"),
    (DATE_TIME, "%d.%m.%Y %H:%M"),
    (DATE_TIME, "%Y/%m/%d %H:%M:%S"),
    (DATE_TIME, "%d/%m/%Y %H:%M:%S"),
    (DATE_TIME, "%m/%d/%Y %H:%M:%S"),
    (DATE_TIME, "%m/%d/%Y %I:%M:%S %p"),
    (DATE_TIME, "%d-%b-%Y %H:%M:%S"),
    (DATE_TIME, "%a, %d %b %Y %H:%M:%S %z"),
    (DATE, "%d.%m.%Y"),
    (DATE, "%Y/%m/%d"),
    (DATE, "%d/%m/%Y"),
    (DATE, "%m/%d/%Y"),
    (DATE, "%Y%m%d"),
];
const DATE: &Value = &Value::Literal(Literal::Date);
const DATE_TIME: &Value = &Value::Literal(Literal::DateTime);
/// The separators of fraction and groups that are tried.
const SEPARATORS: [(char, char); 2] = [(',', '.'), ('.', ',')];
/// The length of a date that is only digits.
const DIGITS_OF_DATE: usize = 8;
/// The minimum number of texts among which codes can be found.
const MIN_TEXTS_WITH_CODES: usize = 8;
/// How often codes repeat at least, on average.
const MIN_REPEATS_OF_CODES: usize = 4;
/// The maximum length of a code.
const MAX_CODE_LENGTH: usize = 24;

impl ValueGuess {
    pub(super) fn new(kind: &'static str) -> Self {
        Self { kind, accept: None, is_code: false, note: None }
    }

    fn with_form(kind: &'static str, form: AcceptedForm, why: &str) -> Self {
        let note = format!(
            "{why}, so the type is `{kind}` with `accept: {form}`. The view shows the values in the form of the type."
        );
        Self { accept: Some(form), note: Some(note), ..Self::new(kind) }
    }

    /// Guesses the type of numbers in a member of this name.
    pub(super) fn of_numbers(name: &str, numbers: &[&str]) -> Self {
        let as_json = |digits: &str| Json::Number(digits.to_owned());
        if let Some(guess) = guess_unix(name, numbers, as_json) {
            return guess;
        }
        let has_fractions = numbers.iter().any(|digits| digits.contains(['.', 'e', 'E']));
        Self::new(if has_fractions { "number" } else { "integer" })
    }

    /// Returns the type of strings, numbers and booleans that are mixed.
    pub(super) fn of_scalars() -> Self {
        let note = "The samples have values of several types here, so the type is `scalar`, which keeps the type of each."
            .to_owned();
        Self { note: Some(note), ..Self::new("scalar") }
    }

    /// Guesses the type of strings in a member of this name.
    pub(super) fn of_texts(name: &str, texts: &[&str]) -> Self {
        let as_json = |text: &str| Json::String(text.to_owned());
        let mut times = [DATE, DATE_TIME].into_iter().map(Value::kind);
        if let Some(kind) = times.find(|kind| texts.iter().all(|text| kind.accepts(&as_json(text))))
        {
            return Self::new(kind.name).with_note_on_offsets(texts);
        }
        if texts.iter().all(|text| is_link(text)) {
            return Self::new("resource");
        }
        guess_time(name, texts)
            .or_else(|| guess_unix(name, texts, as_json))
            .or_else(|| guess_booleans(texts))
            .or_else(|| guess_number(name, texts))
            .or_else(|| guess_codes(name, texts))
            .unwrap_or_else(|| Self::new("string"))
            .with_note_on_offsets(texts)
    }

    /// Adds a note if these texts are times, and one has no offset.
    fn with_note_on_offsets(self, texts: &[&str]) -> Self {
        let accept = self.accept.as_ref();
        if self.kind != DATE_TIME.kind().name
            || !texts.iter().any(|text| has_no_offset(accept, text))
        {
            return self;
        }
        let note = "A time has no offset, so nobody can tell which clock it was. Write the time zone of the sender, such as \
                    `timeZone: Europe/Berlin`.";
        let notes: Vec<String> = self.note.into_iter().chain([note.to_owned()]).collect();
        Self { note: Some(notes.join(" ")), ..self }
    }

    /// Returns whether the canonical form of the values is a text that the view orders by code point.
    pub(super) fn is_plain_text(&self) -> bool {
        self.accept.is_none() && matches!(self.kind, "string" | "date" | "dateTime" | "resource")
    }

    /// Returns whether the value can be in a key.
    pub(super) fn can_be_key(&self) -> bool {
        let kind = mapping::find_kind(self.kind).map(Value::kind);
        self.accept.is_none() && kind.is_some_and(|kind| kind.key_text.is_some())
    }
}

/// Returns whether all values are of this kind in this form.
fn fit(kind: &Kind, form: &AcceptedForm, mut values: impl Iterator<Item = Json>) -> bool {
    let reading = Reading { accept: vec![form.clone()], ..Reading::default() };
    values.all(|value| reading.read(kind, value).is_ok_and(|read| kind.accepts(&read.json)))
}

fn fit_texts(kind: &Kind, form: &AcceptedForm, texts: &[&str]) -> bool {
    fit(kind, form, texts.iter().map(|text| Json::String((*text).to_owned())))
}

/// Returns whether a time in this form would get the offset of a time zone.
fn has_no_offset(form: Option<&AcceptedForm>, text: &str) -> bool {
    let read = |time_zone| {
        let accept = form.cloned().into_iter().collect();
        let reading = Reading { accept, time_zone, ..Reading::default() };
        let read = reading.read(DATE_TIME.kind(), Json::String(text.to_owned()));
        read.map(|read| read.json)
    };
    read(None) != read(Some(Zone::UTC))
}

/// Guesses that numbers, or texts of digits, are times since 1970: by the name, and if all are in the range of one unit.
fn guess_unix(name: &str, digits: &[&str], to_json: impl Fn(&str) -> Json) -> Option<ValueGuess> {
    if !is_time_name(name) {
        return None;
    }
    let values: Vec<f64> =
        digits.iter().map(|digits| to_json_number(digits)?.parse().ok()).collect::<Option<_>>()?;
    let scales = UnixUnit::ALL.into_iter().zip([1.0, 1e3, 1e6, 1e9]);
    let mut fitting = scales.filter(|(unit, scale)| {
        let range = if *unit == UnixUnit::Seconds { SECONDS_RANGE } else { TIME_RANGE };
        values.iter().all(|value| range.contains(&(value / scale)))
    });
    let form = AcceptedForm::Unix(fitting.next()?.0);
    let why = "The name and the range of the numbers are those of times since 1970";
    fit(DATE_TIME.kind(), &form, digits.iter().map(|digits| to_json(digits)))
        .then(|| ValueGuess::with_form(DATE_TIME.kind().name, form, why))
}

/// Guesses that texts are dates or times in another form than XML Schema's. If several patterns fit, none is taken.
fn guess_time(name: &str, texts: &[&str]) -> Option<ValueGuess> {
    let why = "All texts are dates or times in this form";
    for form in [AcceptedForm::Iso, AcceptedForm::OData] {
        if fit_texts(DATE_TIME.kind(), &form, texts) {
            return Some(ValueGuess::with_form(DATE_TIME.kind().name, form, why));
        }
    }
    let is_digits = |text: &&str| text.bytes().all(|byte| byte.is_ascii_digit());
    let can_be_date = |text: &&str| text.len() == DIGITS_OF_DATE && is_time_name(name);
    if texts.iter().any(|text| is_digits(text) && !can_be_date(text)) {
        return None;
    }
    let mut fitting = PATTERNS.into_iter().filter_map(|(value, pattern)| {
        let form = AcceptedForm::Pattern(pattern.to_owned());
        fit_texts(value.kind(), &form, texts).then_some((value, form))
    });
    match (fitting.next(), fitting.next()) {
        (Some((value, form)), None) => Some(ValueGuess::with_form(value.kind().name, form, why)),
        (Some(_), Some(_)) => {
            let note = "The texts are dates, but it is not clear which number is the day and which the month, so the type is \
                        `string`. Write the type `date` or `dateTime`, with the pattern in `accept`.";
            Some(ValueGuess { note: Some(note.to_owned()), ..ValueGuess::new("string") })
        }
        (None, _) => None,
    }
}

fn guess_booleans(texts: &[&str]) -> Option<ValueGuess> {
    let list = |name: &str| -> Vec<ListedValue> {
        let mut own: Vec<&str> =
            texts.iter().copied().filter(|text| text.eq_ignore_ascii_case(name)).collect();
        own.sort_unstable();
        own.dedup();
        own.into_iter().filter_map(|text| ListedValue::new(Json::String(text.to_owned()))).collect()
    };
    let is_boolean =
        |text: &&str| ["true", "false"].iter().any(|name| text.eq_ignore_ascii_case(name));
    let form = AcceptedForm::Booleans { yes: list("true"), no: list("false") };
    texts
        .iter()
        .all(is_boolean)
        .then(|| ValueGuess::with_form("boolean", form, "All texts are booleans"))
}

/// Guesses that texts are numbers, unless the name is that of an identifier or a digit would be lost.
fn guess_number(name: &str, texts: &[&str]) -> Option<ValueGuess> {
    if is_identifier_name(name) {
        return None;
    }
    let is_number = |text: &&str| to_json_number(text).is_some_and(|number| number == **text);
    if texts.iter().all(is_number) {
        let has_fractions = texts.iter().any(|text| text.contains(['.', 'e', 'E']));
        let kind = if has_fractions { "number" } else { "integer" };
        return Some(ValueGuess::with_form(kind, AcceptedForm::Text, "All texts are numbers"));
    }
    let number = Value::Literal(Literal::Number);
    let fits = |(decimal, group): (char, char)| {
        let has = |separator: char| texts.iter().any(|text| text.contains(separator));
        // A comma before three digits can be either separator.
        let is_decimal = |text: &&str| {
            text.rsplit_once(decimal).is_some_and(|(whole, fraction)| {
                let digits = whole.trim_start_matches(['+', '-']);
                fraction.len() != 3 || whole.contains(group) || digits.len() > 3
            })
        };
        let form = AcceptedForm::Decimal { decimal, group: has(group).then_some(group) };
        (texts.iter().any(is_decimal) && fit_texts(number.kind(), &form, texts)).then_some(form)
    };
    let form = SEPARATORS.into_iter().find_map(fits)?;
    Some(ValueGuess::with_form("number", form, "All texts are numbers with these separators"))
}

/// Guesses that texts are codes, because a few words repeat.
fn guess_codes(name: &str, texts: &[&str]) -> Option<ValueGuess> {
    let is_code = |text: &&str| {
        text.len() <= MAX_CODE_LENGTH
            && text.starts_with(|c: char| c.is_ascii_alphabetic())
            && text.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '-' | '_'))
    };
    if texts.len() < MIN_TEXTS_WITH_CODES || is_identifier_name(name) || !texts.iter().all(is_code)
    {
        return None;
    }
    let mut counts: HashMap<&str, usize> = HashMap::new();
    for text in texts.iter().copied() {
        *counts.entry(text).or_default() += 1;
    }
    let repeats = counts.len() > 1
        && texts.len() >= counts.len() * MIN_REPEATS_OF_CODES
        && counts.values().all(|count| *count > 1);
    let note = format!(
        "{} words repeat here, so they are codes: each is an IRI that begins with `base`. With `values`, each code can have \
         another meaning.",
        counts.len()
    );
    repeats.then(|| ValueGuess { is_code: true, note: Some(note), ..ValueGuess::new("resource") })
}
