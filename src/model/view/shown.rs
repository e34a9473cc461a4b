//! One literal as JSON, and how it is ordered among other values.
use crate::mapping::{Form, Kind, Literal};
use oxrdf::LiteralRef;
use penstock_base::json::{self, Json};
use penstock_rdf::number::{NumberKey, is_numeric, to_json_number};
use std::borrow::Cow;
use std::cmp::Ordering;

/// A literal as a field shows it. Numbers are ordered by number and come before everything else, which is ordered
/// by code point.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ShownLiteral<'q> {
    pub(crate) number: Option<NumberKey>,
    /// The text that is written: unchanged if `raw`, otherwise as a JSON string.
    pub text: Cow<'q, str>,
    /// Whether the text already is JSON: a number, `true` or `false`.
    pub raw: bool,
    /// The reason why an ingestion of this field would refuse the value, if it would.
    pub(crate) misfit: Option<String>,
    /// The literal as it is stored.
    pub(super) term: LiteralRef<'q>,
}

impl<'q> ShownLiteral<'q> {
    pub(super) fn new(kind: &Literal, literal: LiteralRef<'q>) -> Self {
        let shown = Self::without_sort_key(kind, literal);
        let is_number = shown.raw && kind.kind().form == Form::Number;
        Self { number: is_number.then(|| NumberKey::parse(literal.value())).flatten(), ..shown }
    }

    /// Creates one without a sort key, for a field with a single value.
    pub(crate) fn without_sort_key(kind: &Literal, literal: LiteralRef<'q>) -> Self {
        let lexical = literal.value();
        let Kind { name, form, check_text, rate_datatype, .. } = kind.kind();
        let misfit = match form {
            Form::Number => match to_json_number(lexical) {
                Some(text) if is_numeric(literal.datatype()) => {
                    let misfit = check_text(&text).is_err();
                    let misfit = misfit.then(|| format!("{text} is not an {name}"));
                    return Self { number: None, text, raw: true, misfit, term: literal };
                }
                _ => Some("a JSON number"),
            },
            Form::Boolean => match (lexical, kind.has_type_of(literal)) {
                ("true" | "1", true) => return Self::new_boolean("true", literal),
                ("false" | "0", true) => return Self::new_boolean("false", literal),
                _ => Some("true or false"),
            },
            Form::Text | Form::Token => {
                let fits = rate_datatype(literal.datatype()) > 0 || kind.has_type_of(literal);
                (!fits).then_some("what the field holds")
            }
        };
        Self {
            number: None,
            text: Cow::Borrowed(lexical),
            raw: false,
            misfit: misfit.map(|wanted| describe_misfit(wanted, literal)),
            term: literal,
        }
    }

    /// Returns the JSON that is written.
    pub(crate) fn to_json(&self) -> Json {
        match self.raw.then(|| json::parse(self.text.as_bytes(), 1)) {
            Some(Ok(json)) => json,
            _ => Json::String(self.text.to_string()),
        }
    }

    fn new_boolean(text: &'static str, term: LiteralRef<'q>) -> Self {
        Self { number: None, text: Cow::Borrowed(text), raw: true, misfit: None, term }
    }
}

fn describe_misfit(wanted: &str, literal: LiteralRef<'_>) -> String {
    format!(
        "{:?} of datatype <{}> is not {wanted}, and is shown as a string",
        literal.value().chars().take(80).collect::<String>(),
        literal.datatype().as_str()
    )
}

impl Ord for ShownLiteral<'_> {
    fn cmp(&self, other: &Self) -> Ordering {
        match (&self.number, &other.number) {
            (Some(a), Some(b)) => a.cmp(b),
            (Some(_), None) => Ordering::Less,
            (None, Some(_)) => Ordering::Greater,
            (None, None) => Ordering::Equal,
        }
        .then_with(|| self.text.cmp(&other.text))
        .then_with(|| self.raw.cmp(&other.raw))
        .then_with(|| self.misfit.cmp(&other.misfit))
        .then_with(|| self.term.datatype().as_str().cmp(other.term.datatype().as_str()))
        .then_with(|| self.term.language().cmp(&other.term.language()))
        .then_with(|| self.term.value().cmp(other.term.value()))
    }
}

impl PartialOrd for ShownLiteral<'_> {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}
