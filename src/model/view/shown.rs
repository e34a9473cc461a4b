//! One literal as JSON, and how it is ordered among other values.
use crate::mapping::{Form, Kind, Literal, format_language_tag};
use oxrdf::LiteralRef;
use oxrdf::vocab::xsd;
use penstock_base::json::{self, Json, MAX_NESTING};
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
    /// Whether the text already is JSON: a number, `true` or `false`, or the value of a `json`.
    pub raw: bool,
    /// The reason why an ingestion of this field would refuse the value, if it would.
    pub(crate) misfit: Option<String>,
    /// The literal as it is stored.
    pub(super) term: LiteralRef<'q>,
}

impl<'q> ShownLiteral<'q> {
    pub(super) fn new(kind: &Literal, literal: LiteralRef<'q>) -> Self {
        let shown = Self::without_sort_key(kind, literal);
        let is_number = shown.raw && is_numeric(literal.datatype());
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
                    return Self { misfit, ..Self::new_raw(text, literal) };
                }
                _ => Some("a JSON number"),
            },
            Form::Scalar if is_numeric(literal.datatype()) => match to_json_number(lexical) {
                Some(text) => return Self::new_raw(text, literal),
                None => Some("a JSON number"),
            },
            Form::Json => match json::compact(lexical).filter(|_| kind.has_type_of(literal)) {
                Some(text) => return Self::new_raw(text, literal),
                None => Some("JSON"),
            },
            Form::Boolean | Form::Scalar if literal.datatype() == xsd::BOOLEAN => match lexical {
                "true" | "1" => return Self::new_raw("true".into(), literal),
                "false" | "0" => return Self::new_raw("false".into(), literal),
                _ => Some("true or false"),
            },
            Form::Boolean => Some("true or false"),
            Form::Text | Form::Token | Form::Scalar => {
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
        match self.raw.then(|| json::parse(self.text.as_bytes(), MAX_NESTING)) {
            Some(Ok(json)) => json,
            _ => Json::String(self.text.to_string()),
        }
    }

    /// Returns the language of a text, in the case that is recommended for tags.
    pub fn language(&self) -> Option<Cow<'q, str>> {
        self.term.language().map(format_language_tag)
    }

    fn new_raw(text: Cow<'q, str>, term: LiteralRef<'q>) -> Self {
        Self { number: None, text, raw: true, misfit: None, term }
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
