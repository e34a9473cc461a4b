//! How values compare, and where an object stands in a listing.
use super::filter::property;
use crate::mapping::{FieldKind, Literal, Property, Shape, Value};
use crate::view::{Number, Values};
use oxsdatatypes::{Date, DateTime, TimezoneOffset};
use penstock_base::fault::{self, Fault};
use std::cmp::Ordering;
use std::str::FromStr;

/// Characters of a text that it is ordered by; past them the URI decides.
const LONGEST: usize = 256;

/// What a listing is ordered by; by URI when nothing else is said. Objects that are alike there are ordered by
/// URI, and objects without a value come last, both whatever the direction.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Order {
    /// The place among [`Shape::fields`] of a field that is no array and holds no objects.
    pub field: Option<usize>,
    /// From the last to the first.
    pub descending: bool,
}

impl Order {
    /// By the field of this name.
    ///
    /// # Errors
    /// `Kind::Invalid` when there is none, or it has no order.
    pub fn by(shape: &Shape, name: &str, descending: bool) -> Result<Self, Fault> {
        if shape.is_id(name) {
            return Ok(Self { field: None, descending });
        }
        let field = shape.fields.iter().position(|field| field.name == name);
        if field.is_none() {
            return Err(wrong(format!("there is no field `{name}` to order by")));
        }
        let order = Self { field, descending };
        order.kind(shape)?;
        Ok(order)
    }

    /// How its values compare; `None` when it is by URI.
    pub(super) fn kind(self, shape: &Shape) -> Result<Option<Kind>, Fault> {
        let Some(field) = self.field else { return Ok(None) };
        let (name, property) = property(shape, field)?;
        if property.many || matches!(property.value, Value::Object(_)) {
            return Err(wrong(format!(
                "objects are not ordered by {name}, since it holds arrays or objects"
            )));
        }
        Ok(Some(Kind::of(property)))
    }

    /// What tells cursors of this order from those of others.
    pub(super) fn name(self, shape: &Shape) -> String {
        let field = self.field.and_then(|field| shape.fields.get(field));
        let sign = if self.descending { '-' } else { '+' };
        // The object's own URI is no property, so no field of this name is one.
        let name = match field {
            Some(field) if field.kind != FieldKind::Id => field.name.as_str(),
            _ => "",
        };
        format!("{sign}{name}")
    }
}

/// How the values of a field compare.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Number,
    Date,
    DateTime,
    Text,
}

impl Kind {
    pub(super) fn of(property: &Property) -> Self {
        match &property.value {
            Value::Literal(Literal::Number | Literal::Integer) => Self::Number,
            Value::Literal(Literal::Date) => Self::Date,
            Value::Literal(Literal::DateTime) => Self::DateTime,
            _ => Self::Text,
        }
    }

    /// The key of a text as the view shows it.
    pub(super) fn key(self, text: &str) -> Key {
        match self {
            Self::Number => Number::of(text).map(Key::Number),
            Self::Date => Date::from_str(text)
                .ok()
                .and_then(|date| DateTime::try_from(date).ok())
                .and_then(Moment::of)
                .map(Key::Moment),
            Self::DateTime => DateTime::from_str(text).ok().and_then(Moment::of).map(Key::Moment),
            Self::Text => None,
        }
        .unwrap_or_else(|| Key::Text(text.to_owned()))
    }

    /// Whether a text can be compared with the values.
    pub(super) fn takes(self, text: &str) -> bool {
        self == Self::Text || !matches!(self.key(text), Key::Text(_))
    }

    pub(super) fn not(self) -> &'static str {
        match self {
            Self::Number => "no number",
            Self::Date => "no date (2026-03-01)",
            Self::DateTime => "no date and time (2026-03-01T12:00:00Z)",
            Self::Text => "no text",
        }
    }
}

/// A value among others of its field. Numbers, then moments, come before what the field cannot take back.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Key {
    Number(Number),
    Moment(Moment),
    Text(String),
}

/// A moment; without a time zone it is taken to be in UTC.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Moment(DateTime);

impl Moment {
    fn of(time: DateTime) -> Option<Self> {
        time.adjust(Some(TimezoneOffset::UTC)).map(Self)
    }
}

impl Ord for Moment {
    fn cmp(&self, other: &Self) -> Ordering {
        // All are in one time zone, where there is always an answer.
        self.0.partial_cmp(&other.0).unwrap_or(Ordering::Equal)
    }
}

impl PartialOrd for Moment {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

/// Where an object stands in a listing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Place {
    /// The value that it is ordered by, as the view shows it, and its key.
    pub(super) value: Option<(String, Key)>,
    pub(super) uri: String,
    pub(super) order: Order,
}

impl Place {
    /// Of an object that shows these values in the field that it is ordered by.
    pub(super) fn of(order: Order, kind: Kind, values: &Values<'_>, uri: &str) -> Self {
        let text = match values {
            Values::Literals(shown) => shown.first().map(|shown| shown.text.to_string()),
            Values::Iris(iris) => iris.first().map(|iri| iri.as_str().to_owned()),
        };
        Self::at(order, Some(kind), text, uri)
    }

    /// At this value.
    pub(super) fn at(order: Order, kind: Option<Kind>, text: Option<String>, uri: &str) -> Self {
        let value = kind.zip(text).map(|(kind, mut text)| {
            let key = kind.key(&text);
            if let Key::Text(_) = key
                && let Some((end, _)) = text.char_indices().nth(LONGEST)
            {
                text.truncate(end);
                return (text.clone(), Key::Text(text));
            }
            (text, key)
        });
        Self { value, uri: uri.to_owned(), order }
    }
}

impl Ord for Place {
    fn cmp(&self, other: &Self) -> Ordering {
        let directed = |order: Ordering| {
            if self.order.descending { order.reverse() } else { order }
        };
        if self.order.field.is_none() {
            return directed(self.uri.cmp(&other.uri));
        }
        match (&self.value, &other.value) {
            (Some((_, a)), Some((_, b))) => directed(a.cmp(b)),
            (Some(_), None) => Ordering::Less,
            (None, Some(_)) => Ordering::Greater,
            (None, None) => Ordering::Equal,
        }
        .then_with(|| self.uri.cmp(&other.uri))
    }
}

impl PartialOrd for Place {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

fn wrong(detail: String) -> Fault {
    Fault::new(fault::Kind::Invalid, detail)
}
