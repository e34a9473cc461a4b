//! The kinds of values: how their text is parsed, and how it is described.
use super::valid::{format_duration, format_size, is_endpoint, is_url, parse_duration, parse_size};
use penstock_base::events::EventKind;
use penstock_base::files::is_pem;
use std::fmt;
use std::str::FromStr;
use std::time::Duration;

/// What is expected of a text, of a file in PEM, and of the URL of a webhook.
pub(super) const TEXT: &str = "text without control characters";
pub(super) const PEM: &str = "the path of a file in PEM, or its text, which begins with -----BEGIN";
pub(super) const WEBHOOK_URL: &str =
    "an http or https URL without user and fragment, such as https://alerts.example/penstock";

/// A kind of values, which are parsed into a `T`.
pub struct Kind<T> {
    /// Describes the valid values, to follow "expected ".
    pub expected: String,
    /// The valid words; empty if others are valid.
    pub words: Vec<&'static str>,
    /// Whether its values are masked wherever they would be shown.
    pub is_secret: bool,
    /// The types of targets that it applies to; empty for all, and for settings of other things.
    pub target_types: &'static [&'static str],
    parse: Box<Parse<T>>,
}

type Parse<T> = dyn Fn(&RawValue) -> Result<T, String> + Send + Sync;

/// A value as its source has it, not yet parsed.
#[derive(Clone, PartialEq, Eq)]
pub(super) enum RawValue {
    Text(String),
    List(Vec<String>),
}

impl RawValue {
    /// Whether the text is blank or the list is empty; the setting then counts as not set.
    pub(super) fn is_empty(&self) -> bool {
        match self {
            Self::Text(text) => text.trim().is_empty(),
            Self::List(items) => items.is_empty(),
        }
    }

    /// Returns the items of a list. A text is split at its commas.
    pub(super) fn split_items(&self) -> Vec<String> {
        let items: Vec<&str> = match self {
            Self::Text(text) => text.split(',').collect(),
            Self::List(items) => items.iter().map(String::as_str).collect(),
        };
        items.into_iter().map(str::trim).filter(|i| !i.is_empty()).map(str::to_owned).collect()
    }
}

impl fmt::Display for RawValue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Text(text) => f.write_str(text),
            Self::List(items) => f.write_str(&items.join(",")),
        }
    }
}

impl<T: 'static> Kind<T> {
    /// Creates a kind whose values `parse` reads. Its error says more than `expected`, or is empty.
    fn new(
        expected: impl Into<String>,
        parse: impl Fn(&RawValue) -> Result<T, String> + Send + Sync + 'static,
    ) -> Self {
        let (expected, parse) = (expected.into(), Box::new(parse));
        Self { expected, words: Vec::new(), is_secret: false, target_types: &[], parse }
    }

    pub(super) fn secret(self) -> Self {
        Self { is_secret: true, ..self }
    }

    /// Limits the setting to these types of targets.
    pub(super) fn of_targets(self, target_types: &'static [&'static str]) -> Self {
        Self { target_types, ..self }
    }

    /// Returns this kind for values that are only checked.
    pub(super) fn drop_value(self) -> Kind<()> {
        let Self { expected, words, is_secret, target_types, parse } = self;
        let parse = Box::new(move |raw: &RawValue| parse(raw).map(drop));
        Kind { expected, words, is_secret, target_types, parse }
    }

    /// Parses a value.
    ///
    /// # Errors
    /// Describes the expected value, to follow "expected ".
    pub(super) fn parse(&self, raw: &RawValue) -> Result<T, String> {
        (self.parse)(raw).map_err(|why| match why.as_str() {
            "" => self.expected.clone(),
            why => format!("{}; this one {why}", self.expected),
        })
    }
}

/// A text that `parse` reads, without the blanks around it.
pub(super) fn parsed<T: 'static>(
    expected: impl Into<String>,
    parse: impl Fn(&str) -> Option<T> + Send + Sync + 'static,
) -> Kind<T> {
    Kind::new(expected, move |raw| match raw {
        RawValue::Text(text) => parse(text.trim()).ok_or_else(String::new),
        RawValue::List(_) => Err(String::new()),
    })
}

/// A text that is valid.
pub(super) fn checked(expected: &str, is_valid: fn(&str) -> bool) -> Kind<String> {
    parsed(expected, move |text| is_valid(text).then(|| text.to_owned()))
}

/// A list whose items `parse` reads.
pub(super) fn parsed_list<T: 'static>(
    expected: impl Into<String>,
    parse: impl Fn(&str) -> Option<T> + Send + Sync + 'static,
) -> Kind<Vec<T>> {
    Kind::new(expected, move |raw| {
        let items: Option<_> = raw.split_items().iter().map(|item| parse(item)).collect();
        items.ok_or_else(String::new)
    })
}

/// A list of texts that are valid.
pub(super) fn checked_list(expected: &str, is_valid: fn(&str) -> bool) -> Kind<Vec<String>> {
    parsed_list(expected, move |item| is_valid(item).then(|| item.to_owned()))
}

fn is_plain(text: &str) -> bool {
    !text.contains(|c: char| c.is_control())
}

/// Any text, or a path.
pub(super) fn text<T: From<String> + 'static>() -> Kind<T> {
    parsed(TEXT, |text| is_plain(text).then(|| T::from(text.to_owned())))
}

/// The path of a file in PEM, or its text.
pub(super) fn pem() -> Kind<String> {
    checked(PEM, |text| is_pem(text) || is_plain(text))
}

/// `true` or `false`.
pub(super) fn flag() -> Kind<bool> {
    parsed("true or false", |text| text.to_ascii_lowercase().parse().ok())
}

/// A number in this range, as `parse` reads it.
fn number<T: TryFrom<u64> + 'static>(
    expected: String,
    (min, max): (u64, u64),
    parse: fn(&str) -> Option<u64>,
) -> Kind<T> {
    parsed(expected, move |text| {
        parse(text).filter(|n| (min..=max).contains(n)).and_then(|n| n.try_into().ok())
    })
}

/// A whole number.
pub(super) fn whole<T: TryFrom<u64> + 'static>(min: u64, max: u64) -> Kind<T> {
    let expected = format!("a whole number from {min} to {max}");
    number(expected, (min, max), |text| text.parse().ok())
}

/// A size in bytes.
pub(super) fn size<T: TryFrom<u64> + 'static>(min: u64, max: u64) -> Kind<T> {
    let (least, most) = (format_size(min), format_size(max));
    let expected = format!("a size in bytes from {least} to {most}, such as 16777216 or 16MiB");
    number(expected, (min, max), parse_size)
}

/// A time span, whose range is in milliseconds.
pub(super) fn duration(min: u64, max: u64) -> Kind<Duration> {
    let (least, most) = (format_duration(min), format_duration(max));
    let expected = format!("a time from {least} to {most}, such as 90s, 30m, 12h or 7d");
    parsed(expected, move |text| {
        let milliseconds = parse_duration(text).filter(|n| (min..=max).contains(n));
        milliseconds.map(Duration::from_millis)
    })
}

/// One of these words, in any case, each with its meaning.
pub(super) fn choice<T: Copy + Send + Sync + 'static>(
    words: &'static [(&'static str, T)],
) -> Kind<T> {
    let known: Vec<&'static str> = words.iter().map(|(word, _)| *word).collect();
    let expected = match known.as_slice() {
        [word] => (*word).to_owned(),
        words => format!("one of {}", words.join(", ")),
    };
    let kind = parsed(expected, move |text| {
        words.iter().find(|(word, _)| word.eq_ignore_ascii_case(text)).map(|(_, value)| *value)
    });
    Kind { words: known, ..kind }
}

/// A list of any texts.
pub(super) fn list() -> Kind<Vec<String>> {
    checked_list("a list, or text with commas", |_| true)
}

/// A list of these words.
pub(super) fn some_of(words: &'static [&'static str]) -> Kind<Vec<String>> {
    let expected = format!("some of {}, with commas", words.join(", "));
    parsed_list(expected, move |item| words.contains(&item).then(|| item.to_owned()))
}

/// A URL, of which the slashes at its end are dropped.
pub(super) fn url() -> Kind<String> {
    let expected =
        "an http or https URL without user, query and fragment, such as https://gateway.example";
    parsed(expected, |text| is_url(text).then(|| text.trim_end_matches('/').to_owned()))
}

/// The URL of an identity provider. It is kept unchanged, because issuers are compared exactly.
pub(super) fn endpoint() -> Kind<String> {
    let expected = "an https URL (http only on loopback) without user and fragment, such as https://login.example/realms/plant";
    checked(expected, is_endpoint)
}

/// A template, such as the default. Its error says what is wrong with it.
pub(super) fn template<T>(what: &str) -> Kind<T>
where
    T: FromStr<Err: fmt::Display> + Default + fmt::Display + 'static,
{
    Kind::new(format!("{what}, such as {}", T::default()), |raw| match raw {
        RawValue::Text(text) => text.trim().parse().map_err(|error: T::Err| error.to_string()),
        RawValue::List(_) => Err(String::new()),
    })
}

/// A list of types of events, or of their beginnings.
pub(super) fn event_types() -> Kind<Vec<EventKind>> {
    let known = EventKind::FOR_WEBHOOKS.map(EventKind::name).join(", ");
    let expected = format!(
        "types of events with commas, such as penstock.change.* or *; the types are {known}"
    );
    Kind::new(expected, |raw| {
        let patterns = raw.split_items();
        let selected: Vec<_> =
            patterns.iter().map(|pattern| EventKind::select_for_webhooks(pattern)).collect();
        if selected.iter().any(Vec::is_empty) {
            return Err(String::new());
        }
        let selected = selected.concat();
        Ok(EventKind::FOR_WEBHOOKS.into_iter().filter(|kind| selected.contains(kind)).collect())
    })
}
