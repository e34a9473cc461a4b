//! How values compare, and the position of an object in a listing.
use super::filter::find_property;
use crate::mapping::{FieldKind, Literal, Property, Shape, Value};
use crate::view::{Number, ShownValues};
use oxsdatatypes::{Date, DateTime, TimezoneOffset};
use penstock_base::error::{self, GatewayError};
use std::cmp::Ordering;
use std::str::FromStr;

/// The number of characters of a text that are compared. If these are equal, the URI decides the order.
const MAX_KEY_CHARACTERS: usize = 256;

/// The order of a listing; the default is by URI. Objects with equal values are ordered by ascending URI, and objects
/// without a value come last, in both directions.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Order {
    /// The index in [`Shape::fields`] of a field that is not an array and does not hold objects.
    pub field: Option<usize>,
    /// Whether the listing runs from the last to the first.
    pub descending: bool,
}

impl Order {
    /// Creates an order by the field of this name.
    ///
    /// # Errors
    /// `ErrorClass::Invalid` if there is no such field, or objects cannot be ordered by it.
    pub fn by_field(shape: &Shape, name: &str, descending: bool) -> Result<Self, GatewayError> {
        if shape.is_id(name) {
            return Ok(Self { field: None, descending });
        }
        let field = shape.fields.iter().position(|field| field.name == name);
        if field.is_none() {
            return Err(invalid_order_error(format!("there is no field `{name}` to order by")));
        }
        let order = Self { field, descending };
        order.value_kind(shape)?;
        Ok(order)
    }

    /// Returns how the values compare; `None` if the order is by URI.
    pub(super) fn value_kind(self, shape: &Shape) -> Result<Option<ValueKind>, GatewayError> {
        let Some(field) = self.field else { return Ok(None) };
        let (name, property) = find_property(shape, field)?;
        if property.is_array || matches!(property.value, Value::Object(_)) {
            return Err(invalid_order_error(format!(
                "objects cannot be ordered by {name}, because it holds arrays or objects"
            )));
        }
        Ok(Some(ValueKind::of_property(property)))
    }

    /// Returns a name that distinguishes cursors of this order from others.
    pub(super) fn cursor_name(self, shape: &Shape) -> String {
        let field = self.field.and_then(|field| shape.fields.get(field));
        let sign = if self.descending { '-' } else { '+' };
        // A field of type `id` is the object's own URI: such an order is named as the one by URI.
        let name = match field {
            Some(field) if field.kind != FieldKind::Id => field.name.as_str(),
            _ => "",
        };
        format!("{sign}{name}")
    }
}

/// How the values of a field compare.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ValueKind {
    Number,
    Date,
    DateTime,
    Text,
}

impl ValueKind {
    pub(crate) fn of_property(property: &Property) -> Self {
        match &property.value {
            Value::Literal(Literal::Number | Literal::Integer) => Self::Number,
            Value::Literal(Literal::Date) => Self::Date,
            Value::Literal(Literal::DateTime) => Self::DateTime,
            _ => Self::Text,
        }
    }

    /// Returns the sort key of a text as the view shows it.
    pub(crate) fn sort_key(self, text: &str) -> SortKey {
        match self {
            Self::Number => Number::parse(text).map(SortKey::Number),
            Self::Date => Date::from_str(text)
                .ok()
                .and_then(|date| DateTime::try_from(date).ok())
                .and_then(Moment::from_date_time)
                .map(SortKey::Moment),
            Self::DateTime => {
                DateTime::from_str(text).ok().and_then(Moment::from_date_time).map(SortKey::Moment)
            }
            Self::Text => None,
        }
        .unwrap_or_else(|| SortKey::Text(text.to_owned()))
    }

    /// Returns whether a text can be compared with the values.
    pub(super) fn can_parse(self, text: &str) -> bool {
        self == Self::Text || !matches!(self.sort_key(text), SortKey::Text(_))
    }

    pub(super) fn describe_mismatch(self) -> &'static str {
        match self {
            Self::Number => "not a number",
            Self::Date => "not a date (2026-03-01)",
            Self::DateTime => "not a date and time (2026-03-01T12:00:00Z)",
            Self::Text => "not a text",
        }
    }
}

/// The sort key of a value. Numbers come first, then moments, then values that an ingestion of the field would
/// refuse.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum SortKey {
    Number(Number),
    Moment(Moment),
    Text(String),
}

/// A moment in UTC. A time without a time zone is taken as UTC.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Moment(DateTime);

impl Moment {
    fn from_date_time(time: DateTime) -> Option<Self> {
        time.adjust(Some(TimezoneOffset::UTC)).map(Self)
    }
}

impl Ord for Moment {
    fn cmp(&self, other: &Self) -> Ordering {
        // All are in UTC, where two moments always compare.
        self.0.partial_cmp(&other.0).unwrap_or(Ordering::Equal)
    }
}

impl PartialOrd for Moment {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

/// The position of an object in a listing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct ListPosition {
    /// The value that the object is ordered by, as the view shows it, and its sort key.
    pub(super) value: Option<(String, SortKey)>,
    pub(super) uri: String,
    pub(super) order: Order,
}

impl ListPosition {
    /// Returns the position of an object that shows these values in the field that it is ordered by.
    pub(super) fn of_object(
        order: Order,
        kind: ValueKind,
        values: &ShownValues<'_>,
        uri: &str,
    ) -> Self {
        let text = match values {
            ShownValues::Literals(shown) => shown.first().map(|shown| shown.text.to_string()),
            ShownValues::Iris(iris) => iris.first().map(|iri| iri.as_str().to_owned()),
        };
        Self::at_value(order, Some(kind), text, uri)
    }

    /// Returns the position of an object with this value.
    pub(super) fn at_value(
        order: Order,
        kind: Option<ValueKind>,
        text: Option<String>,
        uri: &str,
    ) -> Self {
        let value = kind.zip(text).map(|(kind, mut text)| {
            let key = kind.sort_key(&text);
            if let SortKey::Text(_) = key
                && let Some((end, _)) = text.char_indices().nth(MAX_KEY_CHARACTERS)
            {
                text.truncate(end);
                return (text.clone(), SortKey::Text(text));
            }
            (text, key)
        });
        Self { value, uri: uri.to_owned(), order }
    }
}

impl Ord for ListPosition {
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

impl PartialOrd for ListPosition {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

fn invalid_order_error(detail: String) -> GatewayError {
    GatewayError::new(error::ErrorClass::Invalid, detail)
}
