//! The forms that `accept` names, and the value that one gives.
use super::listed::{ListedValue, contains_value};
use super::number;
use penstock_base::json::Json;
use std::fmt;

/// Another form of a value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AcceptedForm {
    /// A number as a text.
    Text,
    /// A number as a text with these separators.
    Decimal {
        /// The one before the fraction.
        decimal: char,
        /// The one between groups of three digits.
        group: Option<char>,
    },
    /// An integer as any number whose value is whole.
    WholeNumber,
    /// A boolean as one of these values.
    Booleans {
        /// Those that mean true.
        yes: Vec<ListedValue>,
        /// Those that mean false.
        no: Vec<ListedValue>,
    },
    /// A string as a number or a boolean.
    Scalar,
    /// A date or time in ISO 8601 as people write it.
    Iso,
    /// A date or time as the time since 1970.
    Unix(UnixUnit),
    /// A date or time as `OData` 2 writes it in JSON: `/Date(1732700000000+0060)/`.
    OData,
    /// A date or time in this pattern of strftime.
    Pattern(String),
}

/// The kind of a form.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FormName {
    /// [`AcceptedForm::Text`]
    Text,
    /// [`AcceptedForm::Decimal`]
    Decimal,
    /// [`AcceptedForm::WholeNumber`]
    WholeNumber,
    /// [`AcceptedForm::Booleans`]
    Booleans,
    /// [`AcceptedForm::Scalar`]
    Scalar,
    /// [`AcceptedForm::Iso`]
    Iso,
    /// [`AcceptedForm::Unix`]
    Unix,
    /// [`AcceptedForm::OData`]
    OData,
    /// [`AcceptedForm::Pattern`]
    Pattern,
}

/// The unit of the time since 1970.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum UnixUnit {
    /// `unix`
    Seconds,
    /// `unix-ms`
    Milliseconds,
    /// `unix-us`
    Microseconds,
    /// `unix-ns`
    Nanoseconds,
}

/// A value in its canonical form.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ReadValue {
    pub(crate) json: Json,
    pub(crate) warning: Option<String>,
}

impl ReadValue {
    pub(super) fn new(json: Json) -> Self {
        Self { json, warning: None }
    }
}

impl UnixUnit {
    /// All units.
    pub const ALL: [Self; 4] =
        [Self::Seconds, Self::Milliseconds, Self::Microseconds, Self::Nanoseconds];

    /// Returns the name in `accept`.
    pub fn name(self) -> &'static str {
        match self {
            Self::Seconds => "unix",
            Self::Milliseconds => "unix-ms",
            Self::Microseconds => "unix-us",
            Self::Nanoseconds => "unix-ns",
        }
    }

    /// Returns the unit in seconds, as a power of ten.
    pub(super) fn power(self) -> i32 {
        match self {
            Self::Seconds => 0,
            Self::Milliseconds => -3,
            Self::Microseconds => -6,
            Self::Nanoseconds => -9,
        }
    }
}

impl AcceptedForm {
    /// The forms that `accept` takes by a name.
    pub(crate) fn named() -> impl Iterator<Item = Self> {
        let plain = [Self::Text, Self::WholeNumber, Self::Scalar, Self::Iso, Self::OData];
        plain.into_iter().chain(UnixUnit::ALL.map(Self::Unix))
    }

    /// Returns the kind of the form.
    pub fn name(&self) -> FormName {
        match self {
            Self::Text => FormName::Text,
            Self::Decimal { .. } => FormName::Decimal,
            Self::WholeNumber => FormName::WholeNumber,
            Self::Booleans { .. } => FormName::Booleans,
            Self::Scalar => FormName::Scalar,
            Self::Iso => FormName::Iso,
            Self::Unix(_) => FormName::Unix,
            Self::OData => FormName::OData,
            Self::Pattern(_) => FormName::Pattern,
        }
    }

    /// Returns the canonical form of a value in this form. Those of dates and times need a time zone, and are in `time`.
    pub(super) fn read(&self, json: &Json) -> Option<Json> {
        match (self, json) {
            (Self::Text, Json::String(text)) => {
                number::read_number(text, '.', None).map(Json::Number)
            }
            (Self::Decimal { decimal, group }, Json::String(text)) => {
                number::read_number(text, *decimal, *group).map(Json::Number)
            }
            (Self::WholeNumber, Json::Number(digits)) => number::to_whole(digits).map(Json::Number),
            (Self::Booleans { yes, no }, json) => {
                let is_yes = contains_value(yes, json);
                (is_yes || contains_value(no, json)).then_some(Json::Bool(is_yes))
            }
            (Self::Scalar, Json::Number(digits)) => Some(Json::String(digits.clone())),
            (Self::Scalar, Json::Bool(value)) => Some(Json::String(value.to_string())),
            _ => None,
        }
    }

    /// Returns the values that the form lists.
    pub(crate) fn listed(&self) -> impl Iterator<Item = &ListedValue> {
        let (yes, no): (&[ListedValue], &[ListedValue]) = match self {
            Self::Booleans { yes, no } => (yes, no),
            _ => (&[], &[]),
        };
        yes.iter().chain(no)
    }

    /// Returns the separators in the texts of numbers: the one before the fraction, and the one between groups.
    pub(crate) fn separators(&self) -> Option<(char, Option<char>)> {
        match self {
            Self::Text => Some(('.', None)),
            Self::Decimal { decimal, group } => Some((*decimal, *group)),
            _ => None,
        }
    }

    /// Returns whether both forms may give one JSON value different meanings.
    pub(crate) fn contradicts(&self, other: &Self) -> bool {
        let separator = |form: &Self| form.separators().map(|(decimal, _)| decimal);
        match (self, other) {
            (Self::Unix(one), Self::Unix(other)) => one != other,
            (Self::Booleans { yes, no }, Self::Booleans { yes: other_yes, no: other_no }) => {
                share_value(yes, other_no) || share_value(no, other_yes)
            }
            _ => separator(self).zip(separator(other)).is_some_and(|(one, other)| one != other),
        }
    }

    /// Returns the types in JSON Schema that values in this form have.
    pub(crate) fn json_types(&self) -> Vec<&'static str> {
        match self {
            Self::Text | Self::Decimal { .. } | Self::Iso | Self::OData | Self::Pattern(_) => {
                vec!["string"]
            }
            Self::WholeNumber => vec!["number"],
            Self::Booleans { .. } => self.listed().filter_map(ListedValue::json_type).collect(),
            Self::Scalar => vec!["number", "boolean"],
            Self::Unix(_) => vec!["number", "string"],
        }
    }
}

impl fmt::Display for AcceptedForm {
    /// Writes the form as `accept` names it.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let list = |listed: &[ListedValue]| {
            let values: Vec<String> = listed.iter().map(|one| one.json().to_string()).collect();
            values.join(", ")
        };
        match self {
            Self::Text => f.write_str("text"),
            Self::Decimal { decimal, group: None } => {
                write!(f, "{{decimal: {:?}}}", decimal.to_string())
            }
            Self::Decimal { decimal, group: Some(group) } => {
                write!(f, "{{decimal: {:?}, group: {:?}}}", decimal.to_string(), group.to_string())
            }
            Self::WholeNumber => f.write_str("number"),
            Self::Booleans { yes, no } => {
                write!(f, "{{true: [{}], false: [{}]}}", list(yes), list(no))
            }
            Self::Scalar => f.write_str("scalar"),
            Self::Iso => f.write_str("iso"),
            Self::Unix(unit) => f.write_str(unit.name()),
            Self::OData => f.write_str("odata"),
            Self::Pattern(pattern) => write!(f, "{pattern:?}"),
        }
    }
}

/// Returns whether both lists have the same value.
fn share_value(one: &[ListedValue], other: &[ListedValue]) -> bool {
    one.iter().any(|one| other.iter().any(|other| one.is_same(other)))
}

impl FormName {
    /// Returns how a mapping writes such forms.
    pub(crate) fn syntax(self) -> &'static str {
        match self {
            Self::Text => "`text`",
            Self::Decimal => "`{decimal: \",\", group: \".\"}`",
            Self::WholeNumber => "`number`",
            Self::Booleans => "`{true: [\"1\", 1], false: [\"0\", 0]}`",
            Self::Scalar => "`scalar`",
            Self::Iso => "`iso`",
            Self::Unix => "`unix`, `unix-ms`, `unix-us`, `unix-ns`",
            Self::OData => "`odata`",
            Self::Pattern => "a pattern such as `\"%d.%m.%Y\"`",
        }
    }
}
