//! One literal as JSON, and how it is ordered among other values.
use super::belonging::{has_exact_datatype, is_numeric};
use super::number;
use crate::mapping::Literal as Kind;
use oxrdf::LiteralRef;
use oxrdf::vocab::xsd;
use std::borrow::Cow;
use std::cmp::Ordering;

/// A literal as a field shows it. Numbers are ordered by number and come before everything else, which is ordered
/// by code point.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ShownLiteral<'q> {
    pub(crate) number: Option<number::NumberKey>,
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
    pub(super) fn new(kind: &Kind, literal: LiteralRef<'q>) -> Self {
        let shown = Self::without_sort_key(kind, literal);
        let is_number = shown.raw && *kind != Kind::Boolean;
        Self {
            number: is_number.then(|| number::NumberKey::parse(literal.value())).flatten(),
            ..shown
        }
    }

    /// Creates one without a sort key, for a field with a single value.
    pub(super) fn without_sort_key(kind: &Kind, literal: LiteralRef<'q>) -> Self {
        let lexical = literal.value();
        match kind {
            Kind::String => Self::new_string(literal, None),
            Kind::Number | Kind::Integer => match number::to_json_number(lexical) {
                Some(text) if is_numeric(literal.datatype()) => {
                    let whole = !text.contains(['.', 'e', 'E']);
                    let doubt = (*kind == Kind::Integer && !whole)
                        .then(|| format!("{text} is not an integer"));
                    Self { number: None, text, raw: true, misfit: doubt, term: literal }
                }
                _ => Self::new_string(literal, Some(describe_misfit("a JSON number", literal))),
            },
            Kind::Boolean => match (lexical, literal.datatype() == xsd::BOOLEAN) {
                ("true" | "1", true) => Self::new_boolean("true", literal),
                ("false" | "0", true) => Self::new_boolean("false", literal),
                _ => Self::new_string(literal, Some(describe_misfit("true or false", literal))),
            },
            Kind::Typed(_) | Kind::Language(_) | Kind::Date | Kind::DateTime => {
                let other = !has_exact_datatype(kind, literal);
                Self::new_string(
                    literal,
                    other.then(|| describe_misfit("what the field holds", literal)),
                )
            }
        }
    }

    fn new_string(term: LiteralRef<'q>, misfit: Option<String>) -> Self {
        Self { number: None, text: Cow::Borrowed(term.value()), raw: false, misfit, term }
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
